//! Rewrite rules, one row a rule. Must not know costs of machines, nor plans.
//!
//! ```text
//! R2-1   SHUF(D2)(SHUF(D1)(R)) ≡ SHUF(D2)(R)
//! ```

pub mod ia;
