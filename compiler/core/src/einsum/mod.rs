//! The Einstein IR: a program as a list of tensors, each a source or one statement.
//!
//! Functions are expanded, sums explicit, nested reductions tensors of their own, all sizes numbers. Must
//! not know surface syntax, keys, sites or placements.
//!
//! ```text
//! C: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]   // model.ein:5
//! ```

mod arrange;
mod blocks;
pub mod canonical;
mod carried;
pub mod interpret;
mod join;
pub mod library;
mod needed;
pub(crate) mod nodes;
pub mod parse;
pub mod print;
pub mod random;
mod rewriting;
pub mod scalar;
mod special;
pub(crate) mod values;
pub mod verify;

pub use blocks::{Block, BlockId, Bound, Collected, Item, LoopValue, Nest, State};
pub use rewriting::{Rewriting, Rewritten, Statement};

use ein_plan::{DType, Kernel, Origin, Source};

/// A tensor of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// How a tensor comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// An input or param, or a definition that is a source; in a block it is random and drawn anew in every round.
    Source(Source),
    /// `operands[o]` is the kernel's operand `o`; all are tensors with smaller numbers.
    Statement {
        /// The expression; its output has one column, `finish` is true.
        kernel: Kernel,
        /// The tensors that it reads.
        operands: Vec<TensorId>,
    },
    /// A value that a block gives to its rounds, or to statements after it.
    Loop(LoopValue),
}

/// The role of a tensor for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `input`.
    Input,
    /// `param`.
    Param,
    /// A definition of the program.
    Named,
    /// An inner reduction, or a tensor of an expanded function.
    Hidden,
}

impl Role {
    /// Returns whether a run may bind a file to a tensor of this role, whatever source it has.
    pub fn is_bound(self) -> bool {
        matches!(self, Role::Input | Role::Param)
    }
}

/// A tensor: its full name, type and definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Unique; hidden ones are named after what they belong to (`y.1`, `nn.softmax.2.m`).
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// The role for the user.
    pub role: Role,
    /// How it comes about.
    pub definition: Definition,
    /// The innermost block whose rounds compute it: for statements the innermost that any operand is in.
    pub block: Option<BlockId>,
    /// Where it is written.
    pub origin: Origin,
}

/// A tensor that is given out.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Which tensor.
    pub tensor: TensorId,
    /// The carried tensor whose place it takes after a step, by name: the program need not read that one.
    pub replaces: Option<String>,
    /// `-> "file"`, as written.
    pub file: Option<String>,
    /// The message with which a run stops if this truth value is false. Then nothing is printed or written. `None`: given out.
    pub asserts: Option<String>,
    /// True if the last dimension holds the real and the imaginary part of a complex number.
    pub complex: bool,
    /// Where it is declared.
    pub origin: Origin,
}

/// A program: tensors in an order in which every operand stands before its users and what is of a block stands
/// together; only those that an output needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Tensors; [`TensorId`] is a position in this list.
    pub tensors: Vec<Tensor>,
    /// Blocks, each after the one around it; [`BlockId`] is a position in this list.
    pub blocks: Vec<Block>,
    /// The outputs, in the order of the text.
    pub outputs: Vec<Output>,
    /// The files of the text, for messages.
    pub files: Vec<String>,
}

impl Program {
    /// The tensor of that number.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }
}
