//! The question that a placement search is asked, and its answer.
//!
//! Must not know how it searches.
//!
//! ```text
//! sites 5, transfer, balance 1.25   ->   layout on 2x2, 64800000 floats, proved optimal
//! ```

use super::cost_table::Objective;
use super::disabled_moves::DisabledMoves;
use super::price::LayoutCost;
use super::report::SearchReport;
use crate::einsum::TensorId;
use crate::ia::layout::{Layout, StatementRole, TensorRole};
use ein_plan::Mesh;
use std::collections::BTreeMap;

/// The options of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Number of sites, from 1; a plan may leave some idle where each site at work then moves less.
    pub sites: u32,
    /// True if no site may idle.
    pub all_sites: bool,
    /// The quantity that a plan is to have little of.
    pub objective: Objective,
    /// κ: how many times its even share of the work the busiest site may have; 1.25 is usual.
    pub balance: f64,
    /// The most bytes of relations that a site may hold at one time.
    pub memory: Option<u64>,
    /// True if a plan found by a quick descent will do.
    pub quick: bool,
    /// True if the limits of small statements are known to be too loose for the balance of the whole.
    pub tight: bool,
    /// A plan of the program that is known, if there is one.
    pub seed: Option<Layout>,
    /// Plans whose price in the objective's unit is above this do not matter.
    pub ceiling: f64,
    /// The price of a plan, of this program or of one that computes the same, on which no site idles; infinite if none is known.
    pub busy: f64,
    /// The most entries of a table of the exact search; 1 << 24 is usual.
    pub table_cap: usize,
    /// The decisions that are made already.
    pub pinned: Pinned,
    /// The moves that disabled rules take away.
    pub disabled_moves: DisabledMoves,
}

impl SearchOptions {
    /// The usual options.
    pub fn new(sites: u32, objective: Objective) -> SearchOptions {
        SearchOptions {
            sites,
            all_sites: false,
            objective,
            balance: 1.25,
            memory: None,
            quick: false,
            tight: false,
            seed: None,
            ceiling: f64::INFINITY,
            busy: f64::INFINITY,
            table_cap: 1 << 24,
            pinned: Pinned::default(),
            disabled_moves: DisabledMoves::default(),
        }
    }

    /// The options of a search that looks for something cheaper than a plan of a program that computes the same.
    pub fn cheaper_than(&self, found: &Found) -> SearchOptions {
        let price = found.price.under(&self.objective);
        let all = found.layout.mesh.sites() == self.sites && found.report.kappa <= self.balance;
        SearchOptions {
            ceiling: self.ceiling.min(price),
            busy: if all { self.busy.min(price) } else { self.busy },
            ..self.clone()
        }
    }
}

/// Decisions that the search keeps to. Roles are for the pinned mesh's axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pinned {
    /// The only mesh to try.
    pub mesh: Option<Mesh>,
    /// How statements run; without a limit on their balance.
    pub statements: BTreeMap<TensorId, Vec<StatementRole>>,
    /// Where tensors rest; of a carried pair, the param's.
    pub rests: BTreeMap<TensorId, Vec<TensorRole>>,
}

/// A plan and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How everything runs and where it rests.
    pub layout: Layout,
    /// The price of the layout.
    pub price: LayoutCost,
    /// True if no plan on any admissible mesh is cheaper (each tensor resting in one place).
    pub proved_optimal: bool,
    /// No such plan is below this, in the objective's unit.
    pub bound: f64,
    /// How it was found.
    pub report: SearchReport,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum NoLayout {
    /// No plan that was found fits a site's memory.
    Memory {
        /// The tensor that takes most where most is held.
        tensor: TensorId,
        /// The statement at which most is held.
        statement: TensorId,
        /// Bytes that are missing at the busiest site.
        shortfall: u64,
    },
    /// No plan is below the ceiling that was given.
    Dearer,
    /// A pinned decision cannot be kept; the reason.
    Pinned(String),
}

/// The nearest change with which a program fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// This number of sites (of the doublings of what there is).
    Sites(u32),
    /// No number of sites helps: these dimensions of the tensor would have to be smaller (all that it has, if none
    /// is named).
    Dimensions(Vec<u32>),
    /// That was not found out in time.
    Unknown,
}
