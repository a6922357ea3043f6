//! Classes of indices: which indices of statements and dimensions of tensors are cut alike.
//!
//! An index and a dimension belong together where a statement reads the dimension by the index's bare name over
//! its whole extent, or writes it (but for the indices of a library operation's own result); so do the dimensions of a loop's state with those of what
//! a round ends with, and of what the first round begins with, unless that is re-chunked. A caller may set reads apart, which are re-chunked then. If all members of a class are cut into the same pieces, nothing has to be
//! re-chunked between a statement and what it reads so. Must not know sites, nor into how many pieces.
//!
//! ```text
//! C[i, j] = sum[k] A[i, k] * B[k, j]     {C.i, C dim 0, A dim 0}  {C.j, C dim 1, B dim 1}  {C.k, A dim 1, B dim 0}
//! ```

use super::operands::bare_reads;
use crate::einsum::{Definition, Program, TensorId};
use ein_plan::{IndexId, Kernel};
use std::collections::HashMap;

/// The classes of a program, numbered from 0 by their first member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// By tensor and index of its statement.
    pub indices: Vec<Vec<u32>>,
    /// By tensor and dimension.
    pub dims: Vec<Vec<u32>>,
    /// Number of classes.
    pub count: u32,
}

impl Classes {
    /// The classes of a program. `apart`: by the number of a state's tensor, whether what its loop begins with is cut by itself. `alike`: whether
    /// an index is cut as the dimension that it reads.
    pub fn of_program(
        program: &Program,
        apart: impl Fn(usize) -> bool,
        alike: impl Fn(Read) -> bool,
    ) -> Classes {
        let mut members = Members::default();
        let (mut indices, mut dims) = (vec![], vec![]);
        for tensor in &program.tensors {
            let own: Vec<usize> = tensor.shape.iter().map(|_| members.add()).collect();
            let mut of_statement = vec![];
            let (count, whole) = match &tensor.definition {
                Definition::Statement { kernel, .. } => {
                    let library = kernel.library().map(|library| library.own);
                    (kernel.indices.len(), library.unwrap_or_default())
                }
                Definition::Loop(value) if value.is_carried() => (own.len(), vec![]),
                Definition::Source(_) | Definition::Loop(_) => (0, vec![]),
            };
            of_statement.extend((0..count).map(|_| members.add()));
            for (number, (dim, index)) in (0..).zip(own.iter().zip(&of_statement)) {
                // A part of a library operation's result costs as much as all of it: it is not made in parts.
                if !whole.contains(&IndexId(number)) {
                    members.join(*dim, *index);
                }
            }
            dims.push(own);
            indices.push(of_statement);
        }
        for (at, (tensor, of_statement)) in program.tensors.iter().zip(&indices).enumerate() {
            if let Definition::Loop(value) = &tensor.definition {
                let from = program.carries(*value);
                // Of a state, the last is what a round ends with.
                let first = if apart(at) {
                    from.len().saturating_sub(1)
                } else {
                    0
                };
                for (other, dims_of) in from.into_iter().skip(first) {
                    for (dim, of) in of_statement.iter().zip(dims_of) {
                        if let Some(of) = of {
                            members.join(dims[other.0 as usize][of as usize], *dim);
                        }
                    }
                }
            }
            let Definition::Statement { kernel, operands } = &tensor.definition else {
                continue;
            };
            for read in reads(at, kernel, operands) {
                if alike(read) {
                    let dim = dims[read.tensor][read.dim];
                    members.join(dim, of_statement[read.index]);
                }
            }
        }
        let mut numbers: HashMap<usize, u32> = HashMap::new();
        let mut number = |lists: Vec<Vec<usize>>| -> Vec<Vec<u32>> {
            let mut numbered = vec![];
            for list in lists {
                let mut classes = vec![];
                for member in list {
                    let next = numbers.len() as u32;
                    classes.push(*numbers.entry(members.root(member)).or_insert(next));
                }
                numbered.push(classes);
            }
            numbered
        };
        Classes {
            dims: number(dims),
            indices: number(indices),
            count: numbers.len() as u32,
        }
    }
}

/// A read of a dimension by an index's bare name over its whole extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// Number of the tensor whose statement reads.
    pub reader: usize,
    /// Index of that statement.
    pub index: usize,
    /// Number of the tensor that is read.
    pub tensor: usize,
    /// Dimension of it.
    pub dim: usize,
}

/// The reads by bare names of the statement of tensor `reader`.
pub fn reads(reader: usize, kernel: &Kernel, operands: &[TensorId]) -> Vec<Read> {
    let mut reads = vec![];
    for (operand, indices) in bare_reads(kernel) {
        let tensor = operands[operand as usize].0 as usize;
        for (dim, index) in indices.into_iter().enumerate() {
            reads.extend(index.map(|IndexId(index)| Read {
                reader,
                index: index as usize,
                tensor,
                dim,
            }));
        }
    }
    reads
}

/// A forest: each member knows another of its class, the root itself.
#[derive(Default)]
struct Members(Vec<usize>);

impl Members {
    fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn root(&self, mut member: usize) -> usize {
        while self.0[member] != member {
            member = self.0[member];
        }
        member
    }

    /// Makes one class of two; the earlier root stays one.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
