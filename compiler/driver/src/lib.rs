//! Ties files, data, compiler core and runtime together.
