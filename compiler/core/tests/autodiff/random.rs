//! Random programs, made smooth, by differences.
