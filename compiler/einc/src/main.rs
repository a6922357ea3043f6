//! The einc command.
fn main() {}
