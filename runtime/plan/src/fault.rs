//! Reasons for which a kernel stops, and the point at which it stopped.
//!
//! Every device reports these, whatever its loops are. Must not know how a point was found, nor how the user is told.
//!
//! ```text
//! operand 0 is read at position 7 of dimension 1, which has 4, at point [6]
//! ```

use crate::function::Function;
use crate::kernel::NodeId;
use std::fmt;

/// Why a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A read outside its operand.
    OutOfRange {
        /// Which operand.
        operand: u32,
        /// Which dimension of it.
        dimension: u32,
        /// The global position.
        position: i64,
        /// Extent of the whole operand along the dimension.
        extent: u64,
    },
    /// A position that `within` checks is not among those of the dimension.
    NotWithin {
        /// The check: a node of the kernel's graph.
        check: NodeId,
        /// The position.
        position: i64,
        /// How many positions there are.
        extent: i64,
    },
    /// An integer division or remainder by zero.
    DivisionByZero,
    /// An integer raised to a negative power.
    NegativePower,
    /// `argmax` or `argmin` over nothing; the point is the output's.
    NothingToChoose,
    /// A library operation has no result; of the point, only batch indices count.
    Library {
        /// The operation.
        operation: Function,
        /// Why.
        problem: Problem,
    },
}

/// Why a library operation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Elimination finds no pivot other than 0 in this column.
    Singular {
        /// Number of the column, from 0.
        pivot: u64,
    },
    /// The pivot of this row is not positive.
    NotPositive {
        /// Number of the row, from 0.
        pivot: u64,
    },
    /// NaN or infinity in an argument.
    NotFinite {
        /// Which argument.
        argument: u32,
        /// Where along its first whole dimension.
        row: u64,
        /// Where along its second one.
        column: u64,
    },
    /// The determinant has no logarithm.
    NegativeDeterminant,
    /// The iteration for eigenvalues or singular values does not end.
    NoConvergence,
}

/// A fault and where it happened: the first faulty point in row-major order of the kernel's indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The fault.
    pub fault: Fault,
    /// The global number of each of the kernel's indices.
    pub point: Vec<u64>,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::OutOfRange {
                operand,
                dimension,
                position,
                extent,
            } => write!(
                f,
                "operand {operand} is read at position {position} of dimension {dimension}, which has {extent}"
            )?,
            Fault::NotWithin {
                position, extent, ..
            } => write!(f, "position {position} is not one of {extent}")?,
            Fault::DivisionByZero => f.write_str("an integer is divided by zero")?,
            Fault::NegativePower => f.write_str("an integer is raised to a negative power")?,
            Fault::NothingToChoose => f.write_str("there is nothing to choose from")?,
            Fault::Library { operation, problem } => {
                write!(f, "`{}` stops: {problem:?}", operation.name())?;
            }
        }
        write!(f, ", at point {:?}", self.point)
    }
}

impl std::error::Error for KernelError {}
