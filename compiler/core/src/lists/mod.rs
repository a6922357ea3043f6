//! Programs over the listed elements of inputs of which a file lists few.
//!
//! A list is tensors: the values, and the positions along each dimension. A reduction whose value is its neutral element wherever the input is
//! 0 goes through the list alone, and one whose value there depends on the output alone nearly so. A tensor that is one number wherever the input is 0 has a list at the same places; a tensor that lists read
//! is computed at their places. Terms that are not listed are left out also where another factor is infinite or NaN. Must not know files, nor
//! how a sum is computed.
//!
//! ```text
//! C: f32[9, 4] = [i: 9, j: 4 | k: 8] sum A[i, k] * X[k, j]                              with 5 elements of A listed
//! C: f32[9, 4] = [i: 9, j: 4 | e: 5] sum A.values[e] * X[A.at1[e], j] if i == A.at0[e]
//! ```

mod access;
mod at_places;
mod completed;
mod fill;
mod statement;

use crate::einsum::{Definition, Program, Rewriting, Role, Tensor, TensorId};
use ein_plan::training::{Carried, CarriedKind, Training};
use ein_plan::{DType, Kernel, ListColumn, Scalar, Source};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

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
        counts: HashMap::new(),
    };
    for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let mut tensor = lists.rewriting.copy(tensor);
        let list = match &mut tensor.definition {
            Definition::Statement { kernel, operands } => {
                let list = lists.derived(&tensor.name, kernel, operands, tensor.origin);
                let over = (list.as_ref()).and_then(|list| lists.scattered(kernel, list));
                (*kernel, *operands) = over.unwrap_or_else(|| lists.reduced(kernel, operands));
                let completed = lists.completed(&tensor.name, kernel, operands, tensor.origin);
                if let Some(completed) = completed {
                    (*kernel, *operands) = completed;
                }
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

/// Returns the training in which statements over inputs that are not batched read lists, where they can. Lists are carried as the inputs are.
/// Trainings in which sites make steps by themselves are left alone.
#[must_use]
pub fn in_training(
    training: Training<Program>,
    listed: &BTreeMap<String, u64>,
) -> Training<Program> {
    if training.blocks.iter().any(|block| block.rounds.is_some()) {
        return training;
    }
    let over = |program: &Program| Ok::<_, Infallible>(with_lists(program, listed));
    let Ok(mut training) = training.planned(&over, &over);
    let mut carried = BTreeMap::new();
    for (name, input) in &training.carried {
        let Some(count) = listed
            .get(name)
            .filter(|_| input.kind == CarriedKind::Input)
        else {
            continue;
        };
        for column in columns_of(input.shape.len()) {
            let begin = listed_source(name, &input.begin, input.dtype, column);
            let list = begin.map(|begin| Carried {
                kind: CarriedKind::Input,
                begin,
                dtype: column_type(column, input.dtype),
                shape: vec![*count],
                complex: false,
            });
            carried.extend(list.map(|list| (column_name(name, column), list)));
        }
    }
    let reads = |name: &str| {
        let mut tensors = training.programs().flat_map(|program| &program.tensors);
        tensors.any(|tensor| tensor.name == name)
    };
    carried.retain(|name, _| reads(name));
    training.carried.extend(carried);
    training
}

/// The columns of a list of a tensor of that rank: the values, then the positions.
fn columns_of(rank: usize) -> impl Iterator<Item = ListColumn> {
    let positions = (0..rank as u32).map(ListColumn::Positions);
    std::iter::once(ListColumn::Values).chain(positions)
}

/// The name of a column of the list of an input.
fn column_name(input: &str, column: ListColumn) -> String {
    match column {
        ListColumn::Values => format!("{input}.values"),
        ListColumn::Positions(dim) => format!("{input}.at{dim}"),
    }
}

/// The element type of a column of the list of an input of a type.
fn column_type(column: ListColumn, dtype: DType) -> DType {
    match column {
        ListColumn::Values => dtype,
        ListColumn::Positions(_) => DType::I64,
    }
}

/// The source of a column of the list of an input, if that comes from a file.
fn listed_source(input: &str, source: &Source, dtype: DType, column: ListColumn) -> Option<Source> {
    let file = match source {
        Source::Load(file) => Some(file.clone()),
        Source::Unbound => None,
        _ => return None,
    };
    Some(Source::Listed {
        tensor: input.to_owned(),
        file,
        dtype,
        column,
    })
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
    /// Statements that count places.
    counts: HashMap<(Kernel, Vec<TensorId>), TensorId>,
}

impl Lists {
    fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    /// The list of an input whose data list few elements.
    fn of_input(&mut self, tensor: &Tensor, listed: &BTreeMap<String, u64>) -> Option<List> {
        let Definition::Source(source) = &tensor.definition else {
            return None;
        };
        let count = *listed.get(&tensor.name)?;
        if tensor.role != Role::Input || !is_sparse(&tensor.shape, count) {
            return None;
        }
        let rank = tensor.shape.len();
        let mut columns = vec![];
        for column in columns_of(rank) {
            let source = match source {
                Source::Kept => Source::Kept,
                source => listed_source(&tensor.name, source, tensor.dtype, column)?,
            };
            columns.push(self.rewriting.add(Tensor {
                name: column_name(&tensor.name, column),
                dtype: column_type(column, tensor.dtype),
                shape: vec![count],
                role: Role::Hidden,
                definition: Definition::Source(source),
                block: None,
                origin: tensor.origin,
            }));
        }
        let values = columns.remove(0);
        self.patterns.push(Pattern {
            count,
            shape: tensor.shape.clone(),
            positions: columns,
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
