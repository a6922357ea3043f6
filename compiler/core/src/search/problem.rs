//! A program as the placement search sees it: statements with index extents, reads and arithmetic.
//!
//! Everything else about a kernel is forgotten. A read names, for each index, the dimension that is cut when the
//! index is cut; an index that reads an operand in any other way than by its bare name over the whole extent leaves
//! the operand whole. Must not know meshes, placements or prices.
//!
//! ```text
//! C: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]
//! extents 4 8 6, rank 2, 2 flops a point, reads A (i cuts 0, k cuts 1), B (k cuts 0, j cuts 1)
//! ```

use super::transfer::ReadWindows;
use super::windows::reads;
use crate::cost::{Pace, flops_per_point};
use crate::einsum::{Definition, LoopValue, Program, Role};
use crate::ia::layout::WindowRead;
use ein_plan::{IndexId, Kernel, Source};
use std::collections::HashMap;

/// Fewest rounds of a loop that may be too small to be shared out: below, it does not matter how long they take.
const FEWEST_ROUNDS: f64 = 32.0;

/// Most operations of a round that is made in less time than sites need to hand each other a part of it.
const LEAST_SHARED: f64 = 4096.0;

/// A program to be placed; tensors have the numbers that they have in the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// By [`crate::einsum::TensorId`].
    pub tensors: Vec<Tensor>,
    /// Arithmetic of all statements, each point once: the sum of [`Statement::work`].
    pub total: f64,
    /// The windows in which statements read tensors, by [`WindowRead`].
    pub windows: Vec<ReadWindows>,
}

/// A tensor, as the search sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name, for reports.
    pub name: String,
    /// Extents.
    pub shape: Vec<u64>,
    /// Number of elements; an element counts as one float.
    pub floats: f64,
    /// Bytes of an element.
    pub width: f64,
    /// How it comes about.
    pub kind: Kind,
    /// The reads of it: (statement's tensor, number of the read), in order.
    pub readers: Vec<(usize, usize)>,
    /// True if it is given out.
    pub output: bool,
    /// How many times it is expected to be made and moved: the rounds of the loops that it is in.
    pub times: f64,
    /// True if every site has to know it where it rests: the bound or the condition of a loop.
    pub everywhere: bool,
    /// By reader, in the order of [`Tensor::readers`]: the last tensor that is made while that reader may still read it;
    /// in a loop that it is outside of, the loop's last.
    pub last_reads: Vec<usize>,
    /// The other tensor of a carried pair: a param and the output that takes its place after a step.
    pub carried: Option<usize>,
}

/// How a tensor comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Read from outside: each site reads its own part.
    Loaded,
    /// Given once and read round after round: each site has been given what it reads, copies or not.
    Kept,
    /// Made wherever it is read.
    Free,
    /// Computed.
    Made(Statement),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Extent of each index: the output's dimensions first, then the reduced ones.
    pub extents: Vec<u64>,
    /// How many indices are the output's.
    pub rank: usize,
    /// The indices of which all points look at the same one value: to cut one deals out no work.
    pub fixed: Vec<IndexId>,
    /// The indices of which each point looks at one value: to cut one deals out whole points.
    pub solved: Vec<IndexId>,
    /// Operations at one point, all rounds of the loops around counted: at least 1 a round; 0 for what only names what
    /// is there, a loop's value.
    pub flops: f64,
    /// The kind of these operations.
    pub pace: Pace,
    /// True if it is made in many rounds, each of which takes less time than sites need to hand each other a part of it.
    pub small: bool,
    /// Columns of an addend of the reduction (1 without a reduction).
    pub columns: f64,
    /// The reads of the statement.
    pub reads: Vec<Read>,
}

/// One way in which a statement reads a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// Which tensor.
    pub tensor: usize,
    /// By index: the dimension that is cut with it.
    pub dims: Vec<Option<u32>>,
    /// Of how many elements one is looked at, in all: the others have an index that the statement fixes.
    pub passed: u64,
    /// The windows in which it may be had, with the statement's index of each index that they speak of.
    pub windows: Option<(WindowRead, Vec<IndexId>)>,
}

impl Statement {
    /// Operations of the whole statement.
    pub fn work(&self) -> f64 {
        self.load(|_| 1)
    }

    /// Operations of the busiest site where each index is cut into so many pieces. Of a small statement these take longer than all of it.
    pub fn load(&self, pieces: impl Fn(IndexId) -> u64) -> f64 {
        if !self.small {
            return self.shared(pieces);
        }
        let indices = 0..self.extents.len() as u32;
        let is_cut = indices.map(IndexId).any(|index| pieces(index) > 1);
        let all = self.shared(|_| 1);
        if is_cut { 2.0 * all.max(1.0) } else { all }
    }

    /// Operations of the busiest site where the pieces share the points out.
    fn shared(&self, pieces: impl Fn(IndexId) -> u64) -> f64 {
        let (mut points, mut owners) = (1.0, 1.0);
        for (index, extent) in (0u32..).map(IndexId).zip(&self.extents) {
            if self.solved.contains(&index) {
                owners *= pieces(index) as f64;
            } else if !self.fixed.contains(&index) {
                points *= extent.div_ceil(pieces(index)) as f64;
            }
        }
        self.flops * f64::ceil(points / owners)
    }
}

impl Tensor {
    /// The statement that makes it.
    pub fn statement(&self) -> Option<&Statement> {
        match &self.kind {
            Kind::Made(statement) => Some(statement),
            _ => None,
        }
    }

    /// Returns whether it starts with copies where these are read, at no cost.
    pub fn starts_copied(&self) -> bool {
        self.kind == Kind::Kept
    }

    /// Returns whether it is a single number, which every site can have for nothing when it is loaded.
    pub fn is_scalar(&self) -> bool {
        self.floats <= 1.0
    }
}

impl Problem {
    /// The problem of a program whose statements are verified.
    pub fn new(program: &Program) -> Problem {
        Problem::with_windows(program, vec![])
    }

    /// [`Problem::new`], with windows that have numbers already.
    pub fn with_windows(program: &Program, mut windows: Vec<ReadWindows>) -> Problem {
        let mut tensors: Vec<Tensor> = vec![];
        let times = program.expected_times();
        let everywhere = program.known_everywhere();
        for (at, tensor) in program.tensors.iter().enumerate() {
            let kind = match &tensor.definition {
                Definition::Source(source) if source.is_free() => Kind::Free,
                Definition::Source(Source::Kept) => Kind::Kept,
                Definition::Source(_) => Kind::Loaded,
                Definition::Loop(value) if value.is_carried() => {
                    Kind::Made(copy(program, *value, &tensor.shape))
                }
                Definition::Loop(_) => Kind::Free,
                Definition::Statement { kernel, operands } => {
                    let numbers: Vec<usize> = operands.iter().map(|o| o.0 as usize).collect();
                    let free = |operand: usize| {
                        let source = &program.tensors[numbers[operand]].definition;
                        matches!(source, Definition::Source(source) if source.is_free())
                    };
                    let mut made = statement(kernel, &numbers, &free, &mut windows);
                    made.flops *= times[at];
                    Kind::Made(made)
                }
            };
            tensors.push(Tensor {
                name: tensor.name.clone(),
                floats: tensor.shape.iter().map(|n| *n as f64).product(),
                shape: tensor.shape.clone(),
                width: tensor.dtype.size() as f64,
                kind,
                readers: vec![],
                output: false,
                times: times[at],
                everywhere: everywhere.iter().any(|id| id.0 as usize == at),
                last_reads: vec![],
                carried: None,
            });
        }
        set_small(program, &mut tensors);
        let last = last_tensors(program);
        for at in 0..tensors.len() {
            let Kind::Made(made) = &tensors[at].kind else {
                continue;
            };
            for (number, read) in made.reads.clone().iter().enumerate() {
                let operand = &mut tensors[read.tensor];
                operand.readers.push((at, number));
                let mine = &program.tensors[read.tensor];
                let path = program.path(program.tensors[at].block);
                let outer = path
                    .iter()
                    .find(|block| !program.encloses(Some(**block), mine.block));
                let until = match outer {
                    Some(block) => last[block.0 as usize],
                    // A state reads what comes later in its loop: in the next round.
                    None => at.max(match &program.tensors[at].definition {
                        Definition::Loop(LoopValue::State(block, _)) => last[block.0 as usize],
                        _ => at,
                    }),
                };
                operand.last_reads.push(until);
            }
        }
        for output in &program.outputs {
            tensors[output.tensor.0 as usize].output = true;
        }
        for (param, update) in carried_pairs(program) {
            tensors[param].carried = Some(update);
            tensors[update].carried = Some(param);
        }
        let work = tensors.iter().filter_map(Tensor::statement);
        Problem {
            total: work.map(Statement::work).sum(),
            tensors,
            windows,
        }
    }

    /// Statements with the numbers of their tensors, in order.
    pub fn statements(&self) -> impl Iterator<Item = (usize, &Statement)> {
        let numbered = self.tensors.iter().enumerate();
        numbered.filter_map(|(at, tensor)| Some((at, tensor.statement()?)))
    }
}

/// Params with the outputs that take their place, where a statement makes these.
pub fn carried_pairs(program: &Program) -> Vec<(usize, usize)> {
    let outputs: HashMap<&str, usize> = program
        .outputs
        .iter()
        .filter_map(|output| Some((output.replaces.as_deref()?, output.tensor.0 as usize)))
        .collect();
    let params = program.tensors.iter().enumerate();
    params
        .filter(|(_, tensor)| tensor.role == Role::Param)
        .filter_map(|(at, param)| {
            let update = *outputs.get(param.name.as_str())?;
            let definition = &program.tensors[update].definition;
            matches!(definition, Definition::Statement { .. }).then_some((at, update))
        })
        .collect()
}

/// Finds the statements of loops that are too small to be shared out, and the values that these loops have.
fn set_small(program: &Program, tensors: &mut [Tensor]) {
    let mut work = vec![0.0; program.blocks.len()];
    let mut times = vec![0.0; program.blocks.len()];
    for (tensor, made) in program.tensors.iter().zip(&*tensors) {
        for block in program.path(tensor.block) {
            work[block.0 as usize] += made.statement().map_or(0.0, Statement::work);
        }
        if let Some(block) = tensor.block {
            times[block.0 as usize] = made.times;
        }
    }
    for (tensor, made) in program.tensors.iter().zip(tensors) {
        let block = match &tensor.definition {
            Definition::Loop(value) => Some(value.block()),
            _ => tensor.block,
        };
        if let (Some(block), Kind::Made(statement)) = (block, &mut made.kind) {
            let (work, times) = (work[block.0 as usize], times[block.0 as usize]);
            statement.small = times >= FEWEST_ROUNDS && work <= LEAST_SHARED * times;
        }
    }
}

/// By block: its last tensor, those of blocks in it included.
fn last_tensors(program: &Program) -> Vec<usize> {
    let mut last = vec![0; program.blocks.len()];
    for (at, tensor) in program.tensors.iter().enumerate() {
        for block in program.path(tensor.block) {
            last[block.0 as usize] = at;
        }
    }
    last
}

/// A loop's value as a statement that copies what it is made of, without work. The rounds of what is collected cannot
/// be told apart by where they are: that index has the extent of one round.
fn copy(program: &Program, value: LoopValue, shape: &[u64]) -> Statement {
    let from = program.carries(value);
    let mut extents = shape.to_vec();
    for (extent, dim) in extents
        .iter_mut()
        .zip(from.first().map_or(&[][..], |f| &f.1))
    {
        if dim.is_none() {
            *extent = 1;
        }
    }
    let reads = from.into_iter().map(|(tensor, dims)| Read {
        tensor: tensor.0 as usize,
        dims,
        passed: 1,
        windows: None,
    });
    let mut reads: Vec<Read> = reads.collect();
    reads.dedup();
    Statement {
        rank: extents.len(),
        extents,
        fixed: vec![],
        solved: vec![],
        flops: 0.0,
        pace: Pace::default(),
        small: false,
        columns: 1.0,
        reads,
    }
}

fn statement(
    kernel: &Kernel,
    operands: &[usize],
    free: &dyn Fn(usize) -> bool,
    windows: &mut Vec<ReadWindows>,
) -> Statement {
    let reads = reads(kernel, free, windows);
    let fixed: Vec<IndexId> = kernel.fixed().into_iter().map(|(index, _)| index).collect();
    let extent_of = |index: &IndexId| kernel.indices[index.0 as usize].extent.max(1);
    let reads = reads.into_iter().map(|(operand, parts, windows)| Read {
        tensor: operands[operand as usize],
        passed: fixed
            .iter()
            .filter(|index| parts.iter().any(|part| part.index() == Some(**index)))
            .map(extent_of)
            .product(),
        dims: (0u32..kernel.indices.len() as u32)
            .map(|index| {
                let by = Some(IndexId(index));
                let dim = parts.iter().position(|part| part.piece() == by)?;
                Some(dim as u32)
            })
            .collect(),
        windows,
    });
    let mut extents: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
    let mut flops = flops_per_point(kernel).max(1) as f64;
    // Nothing is gained by cutting a call of a library operation: it is one point. Neither is anything gained by making calls
    // elsewhere that share a matrix, where to factor it takes longer than the calls.
    let library = kernel.library();
    let mut together: Vec<IndexId> = library.iter().flat_map(|l| l.own.clone()).collect();
    if let Some(library) = &library {
        let factored = library.factored();
        let shared = library
            .batch
            .iter()
            .filter(|index| !factored.contains(index));
        let calls: f64 = shared
            .clone()
            .map(|index| extents[index.0 as usize] as f64)
            .product();
        let (matrix, call) = library.flops_each(kernel);
        if calls * call < matrix {
            together.extend(shared);
        }
    }
    for index in &together {
        let extent = std::mem::replace(&mut extents[index.0 as usize], 1);
        flops *= extent as f64;
    }
    let value = kernel.graph.dtype(kernel.root);
    let columns = kernel.reduction.map_or(1, |r| r.carrier(value).len());
    let reads = reads.collect();
    let mut statement = Statement {
        extents,
        rank: kernel.output_rank as usize,
        fixed,
        solved: kernel.solved(),
        flops,
        pace: Pace::default(),
        small: false,
        columns: columns as f64,
        reads,
    };
    statement.pace = Pace::of(kernel, statement.work());
    statement
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    #[test]
    fn reads_say_which_dimension_an_index_cuts() {
        let text = "input A: f32[4, 6] = unbound\ninput s: f32[] = unbound\n\
            C: f32[4, 4] = [i: 4, j: 4 | k: 6] sum A[i, k] * A[j, k] * s[]\n\
            d: f32[3] = [i: 3] C[i, i + 1]\noutput d";
        let problem = Problem::new(&parse(text).unwrap());
        let product = problem.tensors[2].statement().unwrap();
        let reads: Vec<(usize, Vec<Option<u32>>)> = product
            .reads
            .iter()
            .map(|read| (read.tensor, read.dims.clone()))
            .collect();
        let expected = vec![
            (0, vec![Some(0), None, Some(1)]),
            (0, vec![None, Some(0), Some(1)]),
            (1, vec![None, None, None]),
        ];
        assert_eq!(reads, expected);
        assert_eq!(product.work(), 4.0 * 4.0 * 6.0 * 3.0);
        // Read at `i` below a shorter extent, and at `i + 1`: neither dimension can be cut.
        assert_eq!(
            problem.tensors[3].statement().unwrap().reads[0].dims,
            [None]
        );
        assert_eq!(problem.tensors[0].readers, [(2, 0), (2, 1)]);
    }

    #[test]
    fn indices_of_which_one_value_is_looked_at_deal_out_no_points_or_whole_ones() {
        let load = |text: &str, pieces: [u64; 2]| {
            let problem = Problem::new(&parse(text).unwrap());
            let statement = problem.tensors[2].statement().unwrap();
            let load = statement.load(|index| pieces[index.0 as usize]);
            load / statement.flops
        };
        // A row of a table: whoever has the row does all of it.
        let row = "input x: f32[900, 7] = unbound\ninput t: i64[] = unbound\n\
            y: f32[7] = [d: 7 | i: 900] sum x[i, d] if i == t[]\noutput y";
        assert_eq!(load(row, [1, 1]), 7.0);
        assert_eq!(load(row, [1, 4]), 7.0);
        assert_eq!(load(row, [4, 1]), 2.0);
        // Five addends, each at the site that has its place.
        let scatter = "input x: f32[5] = unbound\ninput at: i64[5] = unbound\n\
            y: f32[900] = [v: 900 | n: 5] sum x[n] if at[n] == v\noutput y";
        assert_eq!(load(scatter, [1, 1]), 5.0);
        assert_eq!(load(scatter, [2, 1]), 3.0);
        assert_eq!(load(scatter, [9, 1]), 1.0);
        assert_eq!(load(scatter, [1, 2]), 3.0);
    }

    #[test]
    fn a_param_and_its_successor_are_a_pair() {
        let text = "param W: f32[4] = unbound\nparam b: f32[2] = unbound\n\
            later: f32[4] = [i: 4] W[i] * 0.5\nb_next: f32[2] = [i: 2] W[i] + b[0]\n\
            output later replaces W\noutput b_next";
        let problem = Problem::new(&parse(text).unwrap());
        assert_eq!(problem.tensors[0].carried, Some(2));
        assert_eq!(problem.tensors[1].carried, None);
    }
}
