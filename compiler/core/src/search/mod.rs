//! The choice of a layout: how every statement runs and where every tensor rests.
//!
//! [`layout`] finds the provably cheapest one as a small discrete network; [`greedy`] decides statement by
//! statement, for results that must not depend on the number of sites. What follows (lowering, placement, plan)
//! carries any layout out. Must not know plans.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 4 sites: mesh 2x2, axis 0 cuts i, axis 1 cuts j; A rests (i, k), B rests (k, j)
//! ```

mod alone;
pub mod assemble;
pub mod axes;
pub mod balance;
pub mod bands;
pub mod between;
pub mod bounds;
pub mod choice;
pub mod constants;
pub mod convert;
pub mod cost_table;
pub mod descent;
pub mod diagonals;
pub mod digits;
pub mod disabled_moves;
pub mod divided;
mod domain;
pub mod edges;
mod eliminate;
mod explore;
pub mod factors;
pub mod far;
pub mod gathered_rows;
pub mod greedy;
pub mod group_positions;
pub mod group_values;
pub mod grouped;
pub mod inner_sums;
pub mod invariant;
pub mod known;
mod lifted;
pub mod long_windows;
pub mod machine;
pub mod masked_products;
pub mod means;
mod meeting;
pub mod memory_order;
pub mod mesh;
pub mod model;
pub mod named;
pub mod named_conditions;
pub mod named_indices;
pub mod narrow;
pub mod network;
pub mod one_hot;
pub mod options;
pub mod other_points;
pub mod overlaps;
pub mod pairs;
mod parts;
mod passing;
pub mod price;
pub mod problem;
pub mod product;
pub mod ranked;
pub mod recount;
pub mod reorder;
mod reordered;
pub mod repeats;
pub mod report;
pub mod residency;
pub mod row_order;
pub mod scatters;
pub mod select;
pub mod settle;
pub mod share;
pub mod short;
pub mod single_points;
pub mod solve;
mod table;
pub mod transfer;
pub mod truth_products;
mod turns;
pub mod values_in_order;
pub mod weights;
mod whole_products;
pub mod windows;
pub mod written_in;

pub use alone::seconds_alone;
pub use cost_table::Objective;
pub use disabled_moves::DisabledMoves;
pub use known::Known;
pub use machine::{Link, Network, TimeModel};
pub use named::{Named, named};
pub use options::{Found, Nearest, NoLayout, Pinned, SearchOptions};
pub use price::{Conversion, LayoutCost, price};
pub use report::{MeshReport, Outcome, SearchReport};
pub use residency::{Residency, residency};
pub use solve::{layout, layout_knowing, nearest};
