//! The `einc` command and what it builds, end to end, as a user meets them.
#![allow(clippy::unwrap_used)]

mod examples;
mod fuzz;
mod language;
mod loops;
mod methods;
mod operations;
mod plans;
mod properties;
mod readme;
mod resume;
mod wrong_input;
