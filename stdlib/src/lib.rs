//! The standard library: .ein sources, embedded.
