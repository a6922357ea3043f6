//! Programs over the listed elements of inputs of which a file lists few, and over the rows that data name (`touched`).
//!
//! A list is tensors: the values, and the positions along each dimension. A reduction whose value is its neutral element wherever the input
//! is 0 goes through the list alone, and nearly so one whose value there depends on the output alone. A tensor that is one number wherever the
//! input is 0 has a list at the same places. A tensor that lists read is computed at their places. Terms that are not listed are left out also
//! where another factor is infinite or NaN. Must not know files, nor how a sum is computed.
//!
//! ```text
//! C: f32[9, 4] = [i: 9, j: 4 | k: 8] sum A[i, k] * X[k, j]                              with 5 elements of A listed
//! C: f32[9, 4] = [i: 9, j: 4 | e: 5] sum A.values[e] * X[A.at1[e], j] if i == A.at0[e]
//! ```

mod access;
mod ascending;
mod at_places;
mod chains;
pub mod choice;
mod completed;
mod computed;
mod dot;
mod fill;
mod found;
mod gathered;
mod ordered;
mod split;
mod starts;
mod statement;
mod terms;
mod touched;
mod united;
mod views;
mod windows;

use crate::einsum::{Definition, Program, Rewriting, Role, Statement, Tensor, TensorId};
pub use choice::{Form, FormChoice};
use ein_plan::source::{Listing, position_type};
use ein_plan::training::{BatchInput, Carried, CarriedKind, Training};
use ein_plan::{DType, Kernel, ListColumn, Origin, Scalar, Source};
pub use ordered::{LEAST_OUTPUT, with_ordered_points};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
pub use touched::with_touched_rows;

/// A statement is computed at the places of lists alone if it has at least so many elements for each place. A dense product computes so many
/// more operations in the time in which a sum over a list gathers, adds and scatters one.
const SPARSE: u64 = 32;

/// Returns the program in which statements over these inputs (name and number of listed elements) read lists, where they can.
#[must_use]
pub fn with_lists(program: &Program, listed: &BTreeMap<String, Listing>) -> Program {
    let mut lists = Lists {
        rewriting: Rewriting::of(program),
        patterns: vec![],
        lists: BTreeMap::new(),
        at_places: BTreeMap::new(),
        before: BTreeMap::new(),
        starts: BTreeMap::new(),
        made: HashMap::new(),
    };
    for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let mut tensor = lists.rewriting.copy(tensor);
        let (list, before) = match &mut tensor.definition {
            Definition::Statement { kernel, operands } => {
                if let Some(views) = lists.with_views((kernel, operands), tensor.origin) {
                    (*kernel, *operands) = views;
                }
                let about = (tensor.name.as_str(), tensor.origin);
                if let Some(rows) = lists.of_named_rows(about, kernel, operands) {
                    (*kernel, *operands) = rows;
                }
                if let Some(found) = lists.looked_up(about, kernel, operands) {
                    (*kernel, *operands) = found;
                }
                let list = lists.derived(&tensor.name, kernel, operands, tensor.origin);
                let about = (tensor.name.as_str(), tensor.origin);
                let list = list.or_else(|| lists.united(about, kernel, operands));
                let list = list.or_else(|| lists.multiplied(about, (kernel, operands)));
                let before = (kernel.clone(), operands.clone());
                let over = (list.as_ref()).and_then(|list| lists.scattered(kernel, list));
                (*kernel, *operands) = over.unwrap_or_else(|| {
                    lists.summed((&tensor.name, tensor.origin), kernel, operands)
                });
                let changed = *kernel != before.0;
                (list, changed.then_some(before))
            }
            _ => (lists.of_input(&tensor, listed), None),
        };
        let id = lists.rewriting.place(old, tensor);
        if let Some(list) = list {
            lists.add_list(id, list);
        }
        lists.before.extend(before.map(|before| (id, before)));
    }
    if lists.patterns.is_empty() {
        return program.clone();
    }
    let program = lists.rewriting.finish().needed().arranged();
    program
        .expect("a statement over a list reads what the statement in its place reads, and the list")
}

/// Returns the program over the lists of these inputs ([`with_lists`]) and over the rows that data touch ([`with_touched_rows`]), with scatters of
/// rounds in the order of their rows ([`with_ordered_points`]).
#[must_use]
pub fn with_formats(program: &Program, listed: &BTreeMap<String, Listing>) -> Program {
    let written = windows::written(program, listed);
    let parted = computed::before(&chains::parted(&written, listed), listed);
    let program = with_touched_rows(&with_lists(&parted, listed), touched::LEAST);
    let program = ascending::by_scatters(&program);
    let program = with_ordered_points(&program, LEAST_OUTPUT, &[], &|_| false);
    starts::between(&program)
}

/// Returns the training in which statements over sparse inputs read lists and touched rows, where they can. A batch has the list of its rows, with room for that
/// of the fullest ones; lists of other inputs are carried as those are. Trainings in which sites make steps by themselves are left alone.
#[must_use]
pub fn in_training(
    training: Training<Program>,
    listed: &BTreeMap<String, Listing>,
) -> Training<Program> {
    if training.blocks.iter().any(|block| block.rounds.is_some()) {
        return training;
    }
    let mut listed = listed.clone();
    for input in training.blocks.iter().flat_map(|block| &block.inputs) {
        // Only rows of the first dimension are neighbours in the list.
        if input.axis != 0 {
            listed.remove(&input.name);
        }
    }
    let over = |program: &Program| Ok::<_, Infallible>(with_formats(program, &listed));
    let Ok(mut training) = training.planned(&over, &over);
    for block in &mut training.blocks {
        let mut columns = vec![];
        for input in &block.inputs {
            if listed.contains_key(&input.name) {
                // Rows are counted anew in each batch, which is not so long that their numbers need another type.
                let mut shape = input.shape.clone();
                shape[0] = 1;
                let all = columns_of((&input.name, input.dtype), &shape, &input.source);
                columns.extend(all.map(|(name, dtype, source)| BatchInput {
                    name,
                    dtype,
                    source,
                    ..input.clone()
                }));
            }
        }
        let statistics = block.statistics.as_ref().map(|(_, program)| program);
        let programs: Vec<&Program> = (block.step.values())
            .chain(&block.apply)
            .chain(statistics)
            .collect();
        columns.retain(|column| reads(programs.iter().copied(), &column.name));
        let is_read = |input: &BatchInput| reads(programs.iter().copied(), &input.name);
        block
            .inputs
            .retain(|input| !listed.contains_key(&input.name) || is_read(input));
        block.inputs.extend(columns);
    }
    let mut carried = BTreeMap::new();
    for (name, input) in &training.carried {
        let Some(listed) = listed
            .get(name)
            .filter(|_| input.kind == CarriedKind::Input)
        else {
            continue;
        };
        let columns = columns_of((name, input.dtype), &input.shape, &input.begin);
        carried.extend(columns.map(|(name, dtype, begin)| {
            let list = Carried {
                kind: CarriedKind::Input,
                begin,
                dtype,
                shape: vec![listed.count],
                complex: false,
            };
            (name, list)
        }));
    }
    carried.retain(|name, _| reads(training.programs(), name));
    training.carried.extend(carried);
    training
}

/// Returns whether some of these programs has a tensor of a name.
fn reads<'p>(programs: impl IntoIterator<Item = &'p Program>, name: &str) -> bool {
    let mut tensors = programs.into_iter().flat_map(|program| &program.tensors);
    tensors.any(|tensor| tensor.name == name)
}

/// The columns of the list of an input: for each its name, element type and source. An input that is given has no other source.
fn columns_of<'i>(
    (name, dtype): (&'i str, DType),
    shape: &'i [u64],
    source: &'i Source,
) -> impl Iterator<Item = (String, DType, Source)> + 'i {
    let values = (format!("{name}.values"), dtype, ListColumn::Values);
    let positions = (0u32..).zip(shape).map(move |(dim, extent)| {
        let column = ListColumn::Positions(dim);
        (format!("{name}.at{dim}"), position_type(*extent), column)
    });
    let columns = std::iter::once(values).chain(positions);
    columns.filter_map(move |(own, own_dtype, column)| {
        let file = match source {
            Source::Load(file) => Some(file.clone()),
            Source::Unbound | Source::Kept | Source::Fed => None,
            _ => return None,
        };
        let listed = Source::Listed {
            tensor: name.to_owned(),
            file,
            dtype,
            column,
            by: 0,
        };
        let source = match source {
            given @ (Source::Kept | Source::Fed) => given.clone(),
            _ => listed,
        };
        Some((own, own_dtype, source))
    })
}

/// The product of extents.
fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n, extent| n.saturating_mul(*extent))
}

/// A kernel from its text.
fn written(text: &str) -> Kernel {
    text.parse()
        .expect("the text of a kernel is one that kernels are printed as")
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
    /// The tensor that lists them.
    tensor: TensorId,
    /// True if there may be more places than the tensor lists, with the value 0.
    has_more: bool,
    /// True if there are such places beside those that the tensor lists, anywhere: they are left out.
    has_gaps: bool,
    /// True if places stand in row-major order.
    ascends: bool,
    /// True if the places are those of a product of lists.
    is_product: bool,
    /// How many the data list, if they list these places.
    listing: Option<Listing>,
}

impl Pattern {
    /// The stored type of the positions along a dimension.
    fn position_type(&self, dim: usize) -> DType {
        position_type(self.shape[dim])
    }
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
    /// The statements over all elements in the place of which are statements over lists, by tensor.
    before: BTreeMap<TensorId, (Kernel, Vec<TensorId>)>,
    /// Where the rows of an input's list start, by pattern.
    starts: BTreeMap<PatternId, TensorId>,
    /// Statements that several may read.
    made: HashMap<(Kernel, Vec<TensorId>), TensorId>,
}

impl Lists {
    fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    /// Says that a tensor has a list. The first one of a pattern is the one that lists its places.
    fn add_list(&mut self, id: TensorId, list: List) {
        let lists_them = &mut self.patterns[list.pattern.0].tensor;
        if *lists_them == TensorId::UNKNOWN {
            *lists_them = id;
        }
        self.lists.insert(id, list);
    }

    /// A statement that no user sees, which is made once.
    fn made(&mut self, name: &str, over: (Kernel, Vec<TensorId>), origin: Origin) -> TensorId {
        match self.made.get(&over) {
            Some(known) => *known,
            None => {
                let made = self.rewriting.add_hidden(name, over.clone(), origin);
                self.made.insert(over, made);
                made
            }
        }
    }

    /// The list of an input whose data list few elements.
    fn of_input(&mut self, tensor: &Tensor, listed: &BTreeMap<String, Listing>) -> Option<List> {
        let Definition::Source(source) = &tensor.definition else {
            return None;
        };
        let listed = listed.get(&tensor.name)?;
        let count = match source {
            Source::Fed => listed.most(*tensor.shape.first()?),
            _ => listed.count,
        };
        if tensor.role != Role::Input || tensor.shape.is_empty() {
            return None;
        }
        let rank = tensor.shape.len();
        let columns = columns_of((&tensor.name, tensor.dtype), &tensor.shape, source);
        let mut columns: Vec<TensorId> = columns
            .map(|(name, dtype, source)| {
                self.rewriting.add(Tensor {
                    name,
                    dtype,
                    shape: vec![count],
                    role: Role::Hidden,
                    definition: Definition::Source(source),
                    block: None,
                    origin: tensor.origin,
                })
            })
            .collect();
        if columns.is_empty() {
            return None;
        }
        let values = columns.remove(0);
        self.patterns.push(Pattern {
            count,
            shape: tensor.shape.clone(),
            positions: columns,
            tensor: TensorId::UNKNOWN,
            has_more: *source == Source::Fed,
            has_gaps: false,
            ascends: *source != Source::Fed,
            is_product: false,
            listing: (*source != Source::Fed).then(|| listed.clone()),
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
        origin: Origin,
    ) -> Option<List> {
        let (access, fill) = self.access_of_output(kernel, operands)?;
        let over = self.values_at((name, origin), kernel, operands, &access);
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

    /// The statement as reductions over lists that are completed, as far as it is one.
    fn summed(
        &mut self,
        about: (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Statement {
        let (kernel, operands) = self.reduced(about, kernel, operands);
        let completed = self.completed(about.0, &kernel, &operands, about.1);
        completed.unwrap_or((kernel, operands))
    }

    /// The statement as reductions over lists, as far as it is one.
    fn reduced(
        &mut self,
        about: (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Statement {
        if let Some(terms) = self.in_terms(about, kernel, operands) {
            return terms;
        }
        if let Some(rows) = self.rows_of_product(about, kernel, operands) {
            return rows;
        }
        let named = self.named(about, kernel, operands);
        let (mut kernel, mut operands) = named.unwrap_or((kernel.clone(), operands.to_vec()));
        while let Some(access) = self.access_of_sum(&kernel, &operands) {
            (kernel, operands) = self.sum_over(about, &kernel, &operands, &access);
        }
        (kernel, operands)
    }
}
