//! A record of a search: the meshes it looked at, how far, and the ones it left out.
//!
//! Must not know how meshes are solved.
//!
//! ```text
//! kappa 1.25, 23 variables
//! 2x2: 64800000 (proved)
//! 5: 81000000 (proved)
//! ```

use ein_plan::Mesh;
use std::fmt;

/// A record of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchReport {
    /// The balance factor that was used: the one asked for, or more where nothing can be balanced so well.
    pub kappa: f64,
    /// Variables of the network.
    pub variables: usize,
    /// Entries of the largest table.
    pub largest_table: f64,
    /// Sums compared.
    pub operations: f64,
    /// Eliminations that equal parts of the program shared.
    pub reused: usize,
    /// The meshes, in the order of the search.
    pub meshes: Vec<MeshReport>,
    /// The price of the plan less what no plan is below.
    pub gap: f64,
    /// True if a quick descent was all that was made.
    pub quick: bool,
    /// True if the limits of small statements had to be tighter than those of the whole.
    pub tight: bool,
    /// True if the deadline cut the search short.
    pub interrupted: bool,
}

/// The outcome of a search on one mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshReport {
    /// The mesh.
    pub mesh: Mesh,
    /// How far it was explored.
    pub outcome: Outcome,
}

/// How far a mesh was explored.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its best plan is known.
    Proved {
        /// The objective's price of it.
        price: f64,
    },
    /// All its plans are dearer than the best of another mesh.
    Dearer {
        /// None is below this.
        bound: f64,
    },
    /// No plan on it is cheaper than the best of another mesh by more than a trifle.
    Near {
        /// None is below this.
        bound: f64,
    },
    /// A good plan is known.
    Improved {
        /// The objective's price of it.
        price: f64,
        /// No plan on this mesh is below this.
        bound: f64,
        /// Why it was not solved exactly.
        why: String,
    },
    /// No plan on it keeps the limits; why.
    Inadmissible(String),
    /// It was not looked at; why.
    Skipped(String),
}

impl SearchReport {
    /// The meshes that were not solved exactly, with the reasons; inadmissible ones are left out.
    pub fn unexplored(&self) -> impl Iterator<Item = &MeshReport> {
        self.meshes.iter().filter(|mesh| match mesh.outcome {
            Outcome::Near { .. } | Outcome::Improved { .. } | Outcome::Skipped(_) => true,
            Outcome::Proved { .. } | Outcome::Dearer { .. } | Outcome::Inadmissible(_) => false,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Proved { price } => write!(f, "{price} (proved)"),
            Outcome::Dearer { bound } => write!(f, "at least {bound} (proved)"),
            Outcome::Near { bound } => {
                write!(
                    f,
                    "at least {bound}; what is left to gain was not looked for"
                )
            }
            Outcome::Improved { price, bound, why } => {
                write!(f, "{price} (at least {bound}; {why})")
            }
            Outcome::Inadmissible(why) => write!(f, "inadmissible: {why}"),
            Outcome::Skipped(why) => write!(f, "not explored: {why}"),
        }
    }
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kappa {}, {} variables", self.kappa, self.variables)?;
        for mesh in &self.meshes {
            writeln!(f, "{}: {}", mesh.mesh, mesh.outcome)?;
        }
        if self.gap > 0.0 {
            writeln!(f, "gap {}", self.gap)?;
        }
        if self.interrupted {
            writeln!(f, "the deadline cut the search short")?;
        }
        Ok(())
    }
}
