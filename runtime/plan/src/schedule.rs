//! Scheduled kernels: which loops compute each local operation of a plan.
//!
//! The choice is made once, from the kernel and the shapes of its largest tuple, and is data in the plan ([`Plan::loops`]): printed, parsed,
//! verified, encoded. Tuples of a relation differ in size by one at most along each dimension that is cut, and one choice serves all of them; what
//! depends on the exact tuple (how many tiles there are) is arithmetic. A device decides nothing but the number of threads, what depends on
//! addresses, and what depends on values (a factor that is no ordinary number, a point that faults), where [`LoopKind::Strips`], which define the
//! result of every other loop, take over. Must not know how a loop is carried out.
//!
//! ```text
//! (f32[64, 32], f32[32, 48]) [i: 64, j: 48 | k: 32] f32 = sum a0[i, k] * a1[k, j]   ->   matmul rows [i] columns [j] inner [k]
//! (f32[64, 32]) [i: 64 | k: 32] f32 = max a0[i, k]                                  ->   row_reduction
//! ```
//!
//! [`Plan::loops`]: crate::Plan::loops

pub mod access;
pub mod bounded;
pub mod choose;
pub mod factors;
pub mod facts;
pub mod forms;
mod fused_rows;
pub mod gathered_sum;
pub mod grouped;
pub mod guard;
mod guarded;
mod inlining;
pub mod leaves;
pub mod mask;

pub mod matmul;
pub mod merging;
pub mod outline;
pub mod pairwise;
mod pass;
mod passed;
pub mod patched;
pub mod placed_matmul;
mod reason;
mod row_loops;
pub mod row_product;
pub mod row_reduce;
mod row_text;
pub mod segments;
pub mod selection;
mod text;
pub mod tiling;
pub mod zeros;

use crate::points::Point;
use crate::{IndexId, Kernel, Operand};
use access::Place;
pub use choose::{Candidate, Verdict, candidates, choose};
pub use facts::Facts;
pub(crate) use fused_rows::fit;
pub use fused_rows::{Fused, fused_rows};
pub use grouped::Grouped;
pub use matmul::Matmul;
pub use pairwise::Pairwise;
pub use reason::Reason;
pub use row_loops::RowLoops;
pub use segments::Segments;
use serde::{Deserialize, Serialize};

/// The loops of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopKernel {
    /// Which loops.
    pub kind: LoopKind,
    /// The reduced indices that the guard fixes ([`crate::Kernel::fixed`]): the loops run over nothing else of them.
    pub fixed: Point,
    /// How a member of a sweep is taken in each block of rows.
    pub rows: RowLoops,
    /// The kernel that they compute, where a member of a sweep computes others too.
    pub fused: Option<Box<Fused>>,
}

/// A kind of loops, with what distinguishes one use of it from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LoopKind {
    /// A library operation: one call for each value of the batch indices.
    Library,
    /// Element by element of the output, at positions that follow from the indices.
    Elementwise,
    /// Element by element of the output, read at positions that some operand holds.
    Gather,
    /// Every reduced point is added to the one output point that the guard names: these output indices are solved for.
    Scatter(Vec<IndexId>),
    /// Every output point looks at the one value of these reduced indices that the guard names.
    Lookup(Vec<IndexId>),
    /// A running reduction along an index.
    Scan(Scan),
    /// A reduction of the points that have the key of an output point.
    Grouped(Grouped),
    /// A reduction of the points between two ends that data say for each output point.
    Segments(Segments),
    /// A function of two elements, reduced, without a matrix product.
    Pairwise(Pairwise),
    /// Neighbouring elements reduced row by row.
    RowReduce(RowReduce),
    /// An operand, but for the rows that data find in another one.
    Patched,
    /// A part of an operand, at the places that the guard fixes.
    Selection,
    /// Sums of products of two rows, of which data say which ones they are.
    RowProduct,
    /// Reductions of rows of which data say which ones they are.
    GatheredSum,
    /// Matrix products, each of the points that read a factor at the same place.
    GatheredMatmul,
    /// Matrix products, each of the points whose terms are added at the same place.
    ScatteredMatmul,
    /// Matrix products.
    Matmul(Matmul),
    /// None: in a sweep, the members that read it compute it themselves.
    Inlined,
    /// The general case: strips of points, one operation after another.
    Strips,
}

/// A running reduction: each output point takes in the reduced points on one side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scan {
    /// The output index.
    pub output: IndexId,
    /// The reduced index that is compared with it.
    pub reduced: IndexId,
    /// True if the points above are taken in, false if it is those below.
    pub suffix: bool,
    /// True if the point of the same number is taken in.
    pub inclusive: bool,
}

/// Elements of a row, which are neighbours, reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowReduce {
    /// True if a number of the row is subtracted from each of its elements.
    pub differences: bool,
}

impl LoopKind {
    /// The name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            LoopKind::Library => "library",
            LoopKind::Elementwise => "elementwise",
            LoopKind::Gather => "gather",
            LoopKind::Scatter(_) => "scatter",
            LoopKind::Lookup(_) => "lookup",
            LoopKind::Scan(_) => "scan",
            LoopKind::Grouped(_) => "grouped",
            LoopKind::Segments(_) => "segments",
            LoopKind::Pairwise(_) => "pairwise",
            LoopKind::RowReduce(_) => "row_reduction",
            LoopKind::Patched => "patched",
            LoopKind::Selection => "selection",
            LoopKind::RowProduct => "row_product",
            LoopKind::GatheredSum => "gathered_sum",
            LoopKind::GatheredMatmul => "gathered_matmul",
            LoopKind::ScatteredMatmul => "scattered_matmul",
            LoopKind::Matmul(_) => "matmul",
            LoopKind::Inlined => "inlined",
            LoopKind::Strips => "strips",
        }
    }
}

impl LoopKind {
    /// The loops without blocks of their own, as members of a sweep have them: blocks of rows differ in size.
    #[must_use]
    pub(crate) fn untiled(self) -> LoopKind {
        match self {
            LoopKind::Matmul(matmul) => LoopKind::Matmul(matmul.untiled()),
            other => other,
        }
    }
}

impl LoopKernel {
    /// The loops of a kernel that belongs to no plan, over the whole of every index and operand.
    pub fn of_whole(kernel: &Kernel) -> LoopKernel {
        let lengths = kernel.indices.iter().map(|index| index.extent as usize);
        let place = |operand: &Operand| {
            let ranges: Vec<(u64, u64)> = operand.shape.iter().map(|n| (0, *n)).collect();
            Place::new(&ranges)
        };
        let places = kernel.operands.iter().map(place);
        choose(&Facts::new(kernel, lengths.collect(), places.collect()))
    }

    /// Returns whether the loops of a kernel without a guard, over the whole of every index, go to rows or matrices that data find. The choice
    /// of loops is asked only where data say of some read where it is.
    pub fn finds_rows(kernel: &Kernel) -> bool {
        let found = || LoopKernel::of_whole(kernel).kind;
        kernel.reduction.is_some()
            && gathered_sum::first_of_row(kernel).is_some()
            && matches!(
                found(),
                LoopKind::RowProduct | LoopKind::GatheredSum | LoopKind::GatheredMatmul
            )
    }

    /// Loops of this kind over the whole of every index.
    pub fn whole(kind: LoopKind) -> LoopKernel {
        LoopKernel {
            kind,
            fixed: vec![],
            rows: RowLoops::default(),
            fused: None,
        }
    }
}
