//! Programs over the listed elements of inputs of which a file lists few.
//!
//! A list is tensors: the values, and the positions along each dimension. A reduction whose value is its neutral element wherever the input is
//! 0 goes through the list alone. A tensor that is one number wherever the input is 0 has a list at the same places; a tensor that lists read
//! is computed at their places. Terms that are not listed are left out also where another factor is infinite or NaN. Must not know files, nor
//! how a sum is computed.
//!
//! ```text
//! C: f32[9, 4] = [i: 9, j: 4 | k: 8] sum A[i, k] * X[k, j]                              with 5 elements of A listed
//! C: f32[9, 4] = [i: 9, j: 4 | e: 5] sum A.values[e] * X[A.at1[e], j] if i == A.at0[e]
//! ```

mod access;
mod at_places;
mod fill;
mod statement;

use crate::einsum::{Definition, Program, Rewriting, Role, Tensor, TensorId};
use ein_plan::{DType, Kernel, ListColumn, Scalar, Source};
use std::collections::BTreeMap;

/// A tensor is taken as a list if it has at least so many elements for each that is listed. A dense product computes so many more
/// operations in the time in which a sum over a list gathers, adds and scatters one.
pub const SPARSE: u64 = 32;

/// Returns whether a list is a shorter way than all elements.
pub fn is_sparse(shape: &[u64], listed: u64) -> bool {
    !shape.is_empty() && listed.saturating_mul(SPARSE) <= elements(shape)
}

/// Returns the program in which statements over these inputs (name and number of listed elements) read lists, where they can.
#[must_use]
pub fn with_lists(program: &Program, listed: &BTreeMap<String, u64>) -> Program {
    let mut lists = Lists {
        rewriting: Rewriting::of(program),
        patterns: vec![],
        lists: BTreeMap::new(),
        at_places: BTreeMap::new(),
    };
    for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let mut tensor = lists.rewriting.copy(tensor);
        let list = match &mut tensor.definition {
            Definition::Statement { kernel, operands } => {
                let list = lists.derived(&tensor.name, kernel, operands, tensor.origin);
                let over = (list.as_ref()).and_then(|list| lists.scattered(kernel, list));
                (*kernel, *operands) = over.unwrap_or_else(|| lists.reduced(kernel, operands));
                list
            }
            _ => lists.of_input(&tensor, listed),
        };
        let id = lists.rewriting.place(old, tensor);
        lists.lists.extend(list.map(|list| (id, list)));
    }
    if lists.patterns.is_empty() {
        return program.clone();
    }
    let program = lists.rewriting.finish().needed().arranged();
    program
        .expect("a statement over a list reads what the statement in its place reads, and the list")
}

/// The product of extents.
fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n, extent| n.saturating_mul(*extent))
}

/// The number of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PatternId(usize);

/// The places that an input lists.
struct Pattern {
    count: u64,
    shape: Vec<u64>,
    /// By dimension: the positions, one a place.
    positions: Vec<TensorId>,
}

/// A tensor as its values at the places of a pattern. Everywhere else it is one number.
#[derive(Clone)]
struct List {
    pattern: PatternId,
    /// Its first dimension counts the places; those that the pattern does not have follow in order.
    values: TensorId,
    /// By dimension of the tensor: the dimension of the pattern, if it has one.
    dims: Vec<Option<usize>>,
    /// The number everywhere else, as it is stored.
    fill: Scalar,
}

/// A program on its way to one over lists.
struct Lists {
    rewriting: Rewriting,
    patterns: Vec<Pattern>,
    /// By tensor of the new program.
    lists: BTreeMap<TensorId, List>,
    /// Tensors at the places of a pattern: by tensor and, for each dimension of it, the dimension of the pattern.
    at_places: BTreeMap<(TensorId, PatternId, Vec<Option<usize>>), TensorId>,
}

impl Lists {
    fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    /// The list of an input whose data list few elements.
    fn of_input(&mut self, tensor: &Tensor, listed: &BTreeMap<String, u64>) -> Option<List> {
        let file = match &tensor.definition {
            Definition::Source(Source::Load(file)) => Some(file.clone()),
            Definition::Source(Source::Unbound) => None,
            _ => return None,
        };
        let count = *listed.get(&tensor.name)?;
        if tensor.role != Role::Input || !is_sparse(&tensor.shape, count) {
            return None;
        }
        let mut column = |name: String, dtype, column| {
            self.rewriting.add(Tensor {
                name: format!("{}.{name}", tensor.name),
                dtype,
                shape: vec![count],
                role: Role::Hidden,
                definition: Definition::Source(Source::Listed {
                    tensor: tensor.name.clone(),
                    file: file.clone(),
                    dtype: tensor.dtype,
                    column,
                }),
                block: None,
                origin: tensor.origin,
            })
        };
        let values = column("values".into(), tensor.dtype, ListColumn::Values);
        let rank = tensor.shape.len();
        let positions = (0..rank as u32)
            .map(|dim| column(format!("at{dim}"), DType::I64, ListColumn::Positions(dim)))
            .collect();
        self.patterns.push(Pattern {
            count,
            shape: tensor.shape.clone(),
            positions,
        });
        Some(List {
            pattern: PatternId(self.patterns.len() - 1),
            values,
            dims: (0..rank).map(Some).collect(),
            fill: fill::zero(tensor.dtype),
        })
    }

    /// The list of a statement that is one number wherever a listed tensor is not listed.
    fn derived(
        &mut self,
        name: &str,
        kernel: &Kernel,
        operands: &[TensorId],
        origin: ein_plan::Origin,
    ) -> Option<List> {
        let (access, fill) = self.access_of_output(kernel, operands)?;
        let over = self.values_at(kernel, operands, &access);
        let values = (self.rewriting).add_hidden(&format!("{name}.values"), over, origin);
        let dims = (0..kernel.output_rank)
            .map(|dim| access.indices.iter().position(|index| index.0 == dim))
            .collect();
        Some(List {
            pattern: access.pattern,
            values,
            dims,
            fill,
        })
    }

    /// The statement as reductions over lists, as far as it is one.
    fn reduced(&mut self, kernel: &Kernel, operands: &[TensorId]) -> (Kernel, Vec<TensorId>) {
        let (mut kernel, mut operands) = (kernel.clone(), operands.to_vec());
        while let Some(access) = self.access_of_sum(&kernel, &operands) {
            (kernel, operands) = self.sum_over(&kernel, &operands, &access);
        }
        (kernel, operands)
    }
}
