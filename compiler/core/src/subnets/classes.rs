//! Which dimensions of a program's tensors are one index: those that some statement reads or writes at the same index.
//!
//! Must not know what an index means.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j]   =>   {C.0, A.0}  {C.1, B.1}  {A.1, B.0}
//! ```

use crate::einsum::{Definition, Program, TensorId};
use ein_plan::{IndexId, Kernel};

/// A class of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(usize);

/// The classes of a program.
pub struct Classes {
    /// Union-find over the dimensions of all tensors, then the indices of all statements.
    parents: Vec<usize>,
    /// Where the dimensions of a tensor begin.
    tensors: Vec<usize>,
    /// Where the indices of a statement begin.
    indices: Vec<usize>,
}

impl Classes {
    /// The classes of a program.
    pub fn of_program(program: &Program) -> Classes {
        let (mut tensors, mut indices, mut count) = (vec![], vec![], 0);
        for tensor in &program.tensors {
            tensors.push(count);
            count += tensor.shape.len();
            indices.push(count);
            if let Definition::Statement { kernel, .. } = &tensor.definition {
                count += kernel.indices.len();
            }
        }
        let mut classes = Classes {
            parents: (0..count).collect(),
            tensors,
            indices,
        };
        for (at, tensor) in (0..).zip(&program.tensors) {
            let id = TensorId(at);
            match &tensor.definition {
                Definition::Source(_) => {}
                Definition::Statement { kernel, operands } => {
                    for dim in 0..kernel.output_rank {
                        classes.tie(
                            classes.dim_at(id, dim as usize),
                            classes.index_at(id, IndexId(dim)),
                        );
                    }
                    for (operand, dim, index) in bare_reads(kernel) {
                        let read = operands[operand as usize];
                        if program.tensor(read).shape[dim]
                            == kernel.indices[index.0 as usize].extent
                        {
                            classes.tie(classes.dim_at(read, dim), classes.index_at(id, index));
                        }
                    }
                }
                Definition::Loop(value) => {
                    for (from, dims) in program.carries(*value) {
                        for (dim, source) in dims.iter().enumerate() {
                            if let Some(source) = source {
                                let source = classes.dim_at(from, *source as usize);
                                classes.tie(classes.dim_at(id, dim), source);
                            }
                        }
                    }
                }
            }
        }
        classes
    }

    /// The class of a dimension of a tensor.
    pub fn of_dim(&self, tensor: TensorId, dim: usize) -> Class {
        Class(self.root(self.dim_at(tensor, dim)))
    }

    /// The class of an index of a statement.
    pub fn of_index(&self, statement: TensorId, index: IndexId) -> Class {
        Class(self.root(self.index_at(statement, index)))
    }

    fn dim_at(&self, tensor: TensorId, dim: usize) -> usize {
        self.tensors[tensor.0 as usize] + dim
    }

    fn index_at(&self, statement: TensorId, index: IndexId) -> usize {
        self.indices[statement.0 as usize] + index.0 as usize
    }

    fn root(&self, mut at: usize) -> usize {
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    fn tie(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The lower one stays, so that paths stay short along a program that is read in order.
        self.parents[a.max(b)] = a.min(b);
    }
}

/// The reads of a kernel at one index and nothing else: operand, dimension, index.
pub fn bare_reads(kernel: &Kernel) -> Vec<(u32, usize, IndexId)> {
    let mut found = vec![];
    for (operand, positions) in kernel.graph.reads() {
        for (dim, position) in positions.iter().enumerate() {
            if let Some(index) = kernel.graph.as_index(*position) {
                found.push((operand, dim, index));
            }
        }
    }
    found
}
