//! The e-graph of placed relations: the papers' rules, one row each, and what they prove.
//!
//! Its terms are physical relations, and all members of a class have the same keys, arrays and placement, which makes congruence sound.
//! Rows rewrite local operators and moves; saturation shows that a plan computes what the translation by table 3.1 computes, and
//! finds cheapest placements of small programs. Must not know layouts, plans or how a plan was found.
//!
//! ```text
//! R2-1   SHUF(⟨0⟩)(BCAST(A)) ≡ SHUF(⟨0⟩)(A)
//! ```

pub mod cheapest;
pub mod collective;
pub mod compose;
pub mod content;
pub mod explain;
pub mod function;
pub mod graph;
pub mod initial;
pub mod keys;
pub mod language;
pub mod local;
pub mod matmul;
pub mod moves;
pub mod placement;
pub mod predicate;
pub mod prove;
pub mod row;
pub mod rows;
pub mod table;
pub mod term;

pub use super::RuleInfo;
pub use explain::ProofStep;
pub use initial::initial;
pub use placement::{Placement, Role};
pub use prove::{Options, Proof, prove};
pub use row::Row;
pub use rows::all;
