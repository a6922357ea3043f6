//! The entry point linked into every built program.
