//! Register programs for strips.
//!
//! Every node that is needed is one operation with a register of its own, placed at the outermost loop
//! at which its value changes. What is the same in all lanes is computed once and copied to the lanes. A
//! node that can fault has a *poison* mask beside its value; selects pass on the poison of the branch taken
//! only, so a fault counts at a point if and only if it reaches the root there. Must not know how a program is
//! made of a kernel (`assemble`), or how operations are executed.
//!
//! ```text
//! [n, d | k] sum a0[n, k] * a1[k, d]:   level n: -   level tile(d): -   level k: r0 = a0, r1 = a1, r2 = r0 * r1
//! ```

mod operation;
mod places;

use crate::Chunk;
use crate::nest::Nest;
use ein_plan::{DType, Graph, Kernel, NodeId, Reduction};
pub(crate) use operation::{Curve, Followed, Form, Fused, Kind, Operation, Position, Read};
pub(crate) use places::{is_place_of, place_of, prepare_read, proved, read_strides};

/// What is to be evaluated: `output` and `reduced` indices in order; all others keep one value a run.
pub(crate) struct Request<'a, 'r> {
    pub graph: &'r Graph,
    pub operands: &'a [Chunk<'a>],
    pub root: NodeId,
    pub guard: Option<NodeId>,
    pub reduction: Option<Reduction>,
    pub output: &'r [usize],
    pub reduced: &'r [usize],
    /// The values that any run gives an index: start and length.
    pub ranges: &'r [(i64, i64)],
    /// The usual number of values in one run.
    pub lengths: &'r [usize],
    /// True if lanes are output points, and the rows of a strip, where that is not to be chosen by these lengths.
    pub lanes: Option<(bool, usize)>,
    /// Whether a strip holds neighbours along the last output index only.
    pub apart: bool,
    /// True if a strip may be a patch: pieces of several rows of the output.
    pub patches: bool,
}

impl<'a, 'r> Request<'a, 'r> {
    /// A whole kernel over these indices.
    pub(crate) fn of_kernel(
        kernel: &'r Kernel,
        operands: &'a [Chunk<'a>],
        (output, reduced): (&'r [usize], &'r [usize]),
        ranges: &'r [(i64, i64)],
        lengths: &'r [usize],
    ) -> Request<'a, 'r> {
        Request {
            graph: &kernel.graph,
            operands,
            root: kernel.root,
            guard: kernel.guard,
            reduction: kernel.reduction,
            output,
            reduced,
            ranges,
            lengths,
            lanes: None,
            apart: false,
            patches: false,
        }
    }
}

/// What is known of a node's register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    pub dtype: DType,
    /// Number of the register among those of its type.
    pub slot: u32,
    /// Number of its poison mask, if it can fault.
    pub poison: Option<u32>,
    /// Whether all lanes have one value.
    pub uniform: bool,
    /// The value, if it is a constant whole number from -8 to 8.
    pub whole: Option<i8>,
    /// Twice the value, if it is a constant half of 1, 3, -1 or -3.
    pub halves: Option<i8>,
}

/// A compiled kernel.
pub(crate) struct Program<'a> {
    pub operands: &'a [Chunk<'a>],
    pub root: u32,
    /// Nodes whose values somebody outside wants: the root and other results, the guard.
    pub wanted: Vec<u32>,
    pub guard: Option<u32>,
    pub reduction: Option<Reduction>,
    pub nest: Nest,
    pub registers: Vec<Register>,
    /// Operations of each level: 0 once a run, `p + 1` when axis `p` (units' axes, then steps') moves.
    pub levels: Vec<Vec<Operation>>,
    /// Registers of each bank: f32, f64, i32, i64, bool; then poison masks.
    pub banks: [usize; 6],
    /// Whether it goes from memory to memory (see [`crate::direct`]).
    pub direct: bool,
}

impl Program<'_> {
    /// For each node the nodes that use its value; what is wanted outside is used by one that does not exist.
    pub(crate) fn users(&self) -> Vec<Vec<u32>> {
        let mut users = vec![vec![]; self.registers.len()];
        for operation in self.levels.iter().flatten() {
            for argument in operation.arguments() {
                users[argument as usize].push(match operation.kind {
                    Kind::Skip { .. } => u32::MAX,
                    _ => operation.node,
                });
            }
        }
        for outside in &self.wanted {
            users[*outside as usize].push(u32::MAX);
        }
        users
    }

    /// Whether the lanes of an operand can be those of the result before it is written: what is over it is computed in the innermost level,
    /// as all that reads it, and cannot fault.
    pub(crate) fn may_be_over(&self, operand: usize) -> bool {
        let reads = |operation: &Operation| matches!(&operation.kind, Kind::Read(read) if read.operand == operand);
        let Some((inner, outer)) = self.levels.split_last() else {
            return false;
        };
        self.reduction.is_none()
            && self.guard.is_none()
            && self.banks[5] == 0
            && outer.len() == self.nest.unit.len()
            && !outer.is_empty()
            && !outer.iter().flatten().any(reads)
            && !inner
                .iter()
                .any(|operation| reads(operation) && operation.uniform)
    }

    /// Whether a direct program's group reads or makes a node.
    pub(crate) fn has_lanes(&self, node: u32) -> bool {
        let mut level = self.levels.last().into_iter().flatten();
        level.any(|operation| match &operation.kind {
            Kind::Fused(fused) => fused.inputs.contains(&node) || fused.outputs.contains(&node),
            _ => false,
        })
    }

    /// The type of the value at a point.
    pub(crate) fn value(&self) -> DType {
        self.registers[self.root as usize].dtype
    }
}

/// The bank of registers of a compute type.
pub(crate) fn bank_of(dtype: DType) -> usize {
    match dtype.compute() {
        DType::F32 => 0,
        DType::F64 => 1,
        DType::I32 => 2,
        DType::I64 => 3,
        _ => 4,
    }
}
