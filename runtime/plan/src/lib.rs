//! The run-time's machine language: element types, scalar kernels, relations, placements, plans.
//!
//! This crate knows no compiler, no file system, no device and no transport; everything under
//! `runtime/` and the compiler's core meet here and nowhere else.
//!
//! ```text
//! kernel k0 (f32[4096, 4096], f32[4096, 4096]) [i: 4096, j: 4096 | k: 4096] f32 = sum a0[i, k] * a1[k, j]
//! ```

pub mod amounts;
pub mod blocks;
pub mod dtype;
pub mod encode;
pub mod exchange;
pub mod fault;
pub mod format;
pub mod function;
pub mod ids;
pub mod kernel;
pub mod library;
pub mod lifetime;
pub mod loops;
pub mod memory;
pub mod mesh;
pub mod overwrite;
pub mod parse;
pub mod plan;
pub mod points;
pub mod print;
pub mod reduction;
pub mod relation;
pub mod repeat;
pub mod schedule;
pub mod small_rounds;
pub mod source;
pub mod spill;
pub mod stream;
pub mod succession;
pub mod sweep;
pub mod traffic;
pub mod training;
pub mod verify;
pub mod window;
pub mod work;
mod working_space;

pub use dtype::{DType, Scalar};
pub use fault::{Fault, KernelError, Problem};
pub use format::Format;
pub use function::{Function, floor_quotient, remainder, shift_left, shift_right};
pub use ids::{KernelId, Origin, RelationId};
pub use kernel::{Affine, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Quotient};
pub use library::Library;
pub use loops::{Block, BlockId, Bound, Collected, LoopValue, Repeat, State};
pub use mesh::Mesh;
pub use plan::{
    Exchange, Fold, JoinInput, Operation, Output, Plan, Range, Resting, Spill, Step, Sweep,
    same_cut,
};
pub use points::{Point, Position, Update};
pub use reduction::Reduction;
pub use relation::{ArrayDim, ArrayType, AxisRole, KeyDim, Placement, RelationType, Window, piece};
pub use schedule::{LoopKernel, LoopKind};
pub use small_rounds::SmallRounds;
pub use source::{FileRef, ListColumn, Part, Source};
pub use succession::{Settled, Succession, Successions};
