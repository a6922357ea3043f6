//! Factors and results of a product: as they lie, or by a kernel that makes an array of matrices on the way.
//!
//! Must not know how a machine multiplies.
//!
//! ```text
//! exp(a0[i, k]) over rows i, inner k   ->   a text that makes f32[i, k]
//! ```

use super::layout::matrix_of;
use crate::gpu::{Gpu, argument};
use crate::helpers::strides;
use crate::kernel;
use crate::machine::Matrix;
use crate::memory::{Elements, elements};
use crate::text::{Parameter, Reason, Text};
use crate::units::Compiled;
use ein_device::{Launch, Operand, Span};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand as OperandType};
use std::sync::{Arc, OnceLock};

/// A factor.
#[derive(Debug)]
pub(super) struct Factor {
    /// The operand and column that it is, and the index of each dimension, if it is nothing else.
    pub lies: Option<(usize, usize, Vec<IndexId>)>,
    /// The indices of its matrices: of the batch, of the rows, of the columns. Those of one value that it depends on besides stand behind them.
    pub indices: Vec<IndexId>,
    pub packed: Part,
}

/// A kernel that makes an array on the way, and its text.
#[derive(Debug)]
pub(super) struct Part {
    kernel: Kernel,
    pub text: Text,
    compiled: OnceLock<Arc<Compiled>>,
}

impl Factor {
    /// The factor in the operand's own memory, if its strides are those of matrices.
    pub fn as_it_lies(
        &self,
        launch: &Launch<'_>,
        lengths: &[u64],
        lists: [&Vec<IndexId>; 3],
    ) -> Option<Matrix> {
        let (operand, column, dims) = self.lies.as_ref()?;
        let given = &launch.operands[*operand];
        let memory = elements(&given.columns[*column]);
        let strides = strides(&memory.kind.shape);
        let of_dims = || dims.iter().zip(strides.iter().map(|stride| *stride as u64));
        let first = of_dims().zip(&given.start).map(|((index, stride), start)| {
            launch.ranges[index.0 as usize]
                .0
                .checked_sub(*start)
                .map(|at| at * stride)
        });
        let first: u64 = first.sum::<Option<u64>>()?;
        let stride = |index: IndexId| {
            let own = of_dims().filter(|(dim, _)| **dim == index);
            own.map(|(_, stride)| stride).sum()
        };
        matrix_of(
            lists,
            lengths,
            stride,
            (memory.address, first, memory.kind.dtype),
        )
    }
}

impl Part {
    /// The array of a node's values over these indices.
    pub fn new(
        kernel: &Kernel,
        root: NodeId,
        indices: &[IndexId],
        dtype: DType,
    ) -> Result<Part, Reason> {
        let number = |index: IndexId| indices.iter().position(|own| *own == index);
        let own = Kernel {
            root,
            indices: indices
                .iter()
                .map(|i| kernel.indices[i.0 as usize].clone())
                .collect(),
            output_rank: indices.len() as u32,
            guard: None,
            reduction: None,
            finish: true,
            output: vec![dtype],
            ..kernel.clone()
        };
        let own = own.canonical().rewritten(|graph, _, node, dtype| {
            let node = match node {
                Node::Index(index) => {
                    let number =
                        number(index).expect("an index that the factor depends on is its own");
                    Node::Index(IndexId(number as u32))
                }
                node => node,
            };
            graph.add(node, dtype)
        });
        Part::of(own)
    }

    /// The copy of an array of matrices, over these indices, to the kernel's result, with factors of its rows. The array is an operand behind the
    /// kernel's.
    pub fn copy(
        kernel: &Kernel,
        from: &[IndexId],
        (made, of_rows): (DType, &[(NodeId, bool)]),
    ) -> Result<Part, Reason> {
        let mut copy = kernel.clone();
        copy.indices.truncate(kernel.output_rank as usize);
        let shape = from
            .iter()
            .map(|index| copy.indices[index.0 as usize].extent);
        copy.operands.push(OperandType {
            columns: vec![made],
            shape: shape.collect(),
        });
        let positions = from
            .iter()
            .map(|index| copy.graph.add(Node::Index(*index), DType::I64));
        let read = Node::Read {
            operand: kernel.operands.len() as u32,
            column: 0,
            positions: positions.collect(),
            otherwise: None,
        };
        let read = copy.graph.add(read, made.compute());
        let graph = &mut copy.graph;
        let row = |all: NodeId, factor: &(NodeId, bool)| times(graph, all, *factor);
        copy.root = of_rows.iter().fold(read, row);
        copy.guard = None;
        copy.reduction = None;
        copy.finish = true;
        Part::of(copy.canonical())
    }

    fn of(kernel: Kernel) -> Result<Part, Reason> {
        Ok(Part {
            text: kernel::text(&kernel)?,
            kernel,
            compiled: OnceLock::new(),
        })
    }

    /// Computes the array at these ranges; `None` if some point has no value.
    pub fn made(&self, gpu: &Gpu, ranges: &[Span], operands: &[Operand<'_>]) -> Option<Elements> {
        let compiled = self
            .compiled
            .get_or_init(|| gpu.units.announce(self.text.clone()));
        let results = gpu.results(&self.kernel, ranges);
        let points = results.first().map_or(0, |column| column.kind.elements());
        let value = |parameter: &Parameter| {
            argument(
                parameter.meaning,
                ranges,
                |number| &operands[number],
                &results,
            )
        };
        let succeeds = gpu.succeeds(compiled, points, value);
        let made = results.into_iter().next();
        made.filter(|_| succeeds)
    }
}

/// A node times a factor, or divided by it.
pub(super) fn times(graph: &mut Graph, node: NodeId, (factor, divides): (NodeId, bool)) -> NodeId {
    let function = if divides {
        Function::Div
    } else {
        Function::Mul
    };
    let dtype = graph.dtype(node);
    graph.add(Node::Apply(function, vec![node, factor]), dtype)
}

/// The type in which a factor is stored, if it is an element of an operand and nothing else.
pub(super) fn stored(kernel: &Kernel, root: NodeId) -> Option<DType> {
    match kernel.graph.node(root) {
        Node::Read {
            operand,
            column,
            otherwise: None,
            ..
        } => {
            let dtype = kernel.operands[*operand as usize].columns[*column as usize];
            dtype.is_float().then_some(dtype)
        }
        _ => None,
    }
}

/// The operand that a factor is, read by bare indices, where its elements have that type.
pub(super) fn lies(
    kernel: &Kernel,
    root: NodeId,
    element: DType,
) -> Option<(usize, usize, Vec<IndexId>)> {
    let Node::Read {
        operand,
        column,
        positions,
        ..
    } = kernel.graph.node(root)
    else {
        return None;
    };
    let of_type = stored(kernel, root) == Some(element);
    let shape = &kernel.operands[*operand as usize].shape;
    let dims = positions.iter().zip(shape).map(|(position, length)| {
        let index = kernel.graph.as_index(*position)?;
        (kernel.indices[index.0 as usize].extent <= *length).then_some(index)
    });
    let dims: Vec<IndexId> = dims.collect::<Option<_>>()?;
    of_type.then_some((*operand as usize, *column as usize, dims))
}
