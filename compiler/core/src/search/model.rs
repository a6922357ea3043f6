//! The variables of a program's network, whatever the mesh: how each statement runs, where tensors rest.
//!
//! A tensor between one statement and one other needs no variable: the best resting place for a way to make it and a
//! way to read it is found when their table is made. Must not know meshes or prices.
//!
//! ```text
//! param W; h = f(x, W); g = f'(h, W); W_next = W - g
//! run h, run g, run W_next, rest W = rest W_next, common W (what its readers share), rest h
//! ```

use super::problem::{Kind, Problem, Statement};
use std::collections::HashMap;

/// A decision of the search, with the tensor that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// How the tensor's statement runs.
    Run(usize),
    /// Where the tensor rests. That of a carried pair is the param's.
    Rest(usize),
    /// A placement that a param's readers share, made once from where the param rests.
    Common(usize),
}

/// How a tensor enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It costs nothing anywhere.
    Free,
    /// Loaded and read by one statement: a price on that statement's runs.
    LoadedOnce,
    /// Loaded and read by several: starts anywhere, without copies if it is not kept, then rests where they read it.
    LoadedOften,
    /// Made and given out only: a price on its statement's runs.
    Ends,
    /// Made and read by one statement: a table on the two runs.
    Passes,
    /// Made, rests, and is read from there.
    Rests,
    /// A param that a loop carries.
    Carried,
    /// The successor of a param: it rests where the param does.
    Update(usize),
}

/// The variables.
#[derive(Clone, Debug)]
pub struct Model {
    /// In the order of their tensors.
    pub variables: Vec<Variable>,
    /// By tensor: how it enters.
    pub ways: Vec<Entry>,
    /// By tensor: its [`Variable::Run`].
    pub run: Vec<Option<usize>>,
    /// By tensor: its [`Variable::Rest`].
    pub rest: Vec<Option<usize>>,
    /// By tensor: its [`Variable::Common`].
    pub common: Vec<Option<usize>>,
    /// By tensor: the statements that read it, each with the numbers of its reads of it.
    pub readers: Vec<Vec<(usize, Vec<usize>)>>,
    /// By tensor: a number that statements share if they differ in nothing but their operands.
    pub signatures: Vec<u64>,
}

impl Model {
    /// The variables of a problem.
    pub fn new(problem: &Problem) -> Model {
        Model::with_signatures(problem, &mut HashMap::new())
    }

    /// [`Model::new`], with statements that have numbers already.
    pub fn with_signatures(problem: &Problem, numbers: &mut HashMap<Vec<u64>, u64>) -> Model {
        let count = problem.tensors.len();
        let mut readers: Vec<Vec<(usize, Vec<usize>)>> = vec![vec![]; count];
        for (at, tensor) in problem.tensors.iter().enumerate() {
            for (statement, number) in &tensor.readers {
                match readers[at].last_mut() {
                    Some((last, numbers)) if last == statement => numbers.push(*number),
                    _ => readers[at].push((*statement, vec![*number])),
                }
            }
        }
        let mut model = Model {
            variables: vec![],
            ways: vec![Entry::Free; count],
            run: vec![None; count],
            rest: vec![None; count],
            common: vec![None; count],
            signatures: signatures(problem, numbers),
            readers,
        };
        for at in 0..count {
            let way = model.way(problem, at);
            model.ways[at] = way;
            if problem.tensors[at].statement().is_some() {
                model.run[at] = Some(model.add(Variable::Run(at)));
            }
            match way {
                Entry::LoadedOften | Entry::Rests | Entry::Carried => {
                    model.rest[at] = Some(model.add(Variable::Rest(at)));
                }
                Entry::Update(param) => model.rest[at] = model.rest[param],
                _ => {}
            }
            if way == Entry::Carried && model.readers[at].len() > 1 {
                model.common[at] = Some(model.add(Variable::Common(at)));
            }
        }
        model
    }

    /// The variables of each table of more than one that a network over this model has.
    pub fn scopes(&self) -> Vec<Vec<usize>> {
        let mut scopes = vec![];
        for at in 0..self.ways.len() {
            let own = match (self.ways[at], self.rest[at]) {
                (Entry::Passes, _) => self.run[at],
                (_, Some(rest)) => {
                    scopes.extend(self.run[at].map(|run| vec![run, rest]));
                    scopes.extend(self.common[at].map(|common| vec![rest, common]));
                    self.common[at].or(Some(rest))
                }
                _ => None,
            };
            let readers = self.readers[at]
                .iter()
                .filter_map(|(reader, _)| self.run[*reader]);
            scopes.extend(readers.filter_map(|run| Some(vec![own?, run])));
        }
        scopes
    }

    fn add(&mut self, variable: Variable) -> usize {
        self.variables.push(variable);
        self.variables.len() - 1
    }

    fn way(&self, problem: &Problem, at: usize) -> Entry {
        let tensor = &problem.tensors[at];
        let once = self.readers[at].len() <= 1;
        match (&tensor.kind, tensor.carried) {
            (Kind::Free, None) => Entry::Free,
            (Kind::Made(_), Some(param)) => Entry::Update(param),
            (_, Some(_)) => Entry::Carried,
            (Kind::Loaded | Kind::Kept, None) if tensor.is_scalar() => Entry::Free,
            (Kind::Made(_), None) if tensor.everywhere => Entry::Rests,
            (Kind::Loaded | Kind::Kept, None) if once => Entry::LoadedOnce,
            (Kind::Loaded | Kind::Kept, None) => Entry::LoadedOften,
            (Kind::Made(_), None) if self.readers[at].is_empty() => Entry::Ends,
            (Kind::Made(_), None) if once && !tensor.output => Entry::Passes,
            (Kind::Made(_), None) => Entry::Rests,
        }
    }
}

fn signatures(problem: &Problem, numbers: &mut HashMap<Vec<u64>, u64>) -> Vec<u64> {
    let mut signatures = vec![0; problem.tensors.len()];
    for (at, statement) in problem.statements() {
        let next = numbers.len() as u64 + 1;
        let key = signature(problem, at, statement);
        signatures[at] = *numbers.entry(key).or_insert(next);
    }
    signatures
}

fn signature(problem: &Problem, at: usize, statement: &Statement) -> Vec<u64> {
    let tensor = &problem.tensors[at];
    let head = [
        statement.rank as u64,
        statement.flops.to_bits(),
        statement.columns.to_bits(),
        tensor.width.to_bits(),
        statement.extents.len() as u64,
        tensor.times.to_bits(),
    ];
    let mut key: Vec<u64> = head.into_iter().chain(statement.extents.clone()).collect();
    for looked_at in [&statement.fixed, &statement.solved] {
        key.extend(looked_at.iter().map(|index| u64::from(index.0)));
        key.push(u64::MAX);
    }
    for read in &statement.reads {
        let operand = &problem.tensors[read.tensor];
        key.push(operand.width.to_bits());
        key.push(read.passed);
        key.push(operand.shape.len() as u64);
        key.extend(&operand.shape);
        key.extend(read.dims.iter().map(|dim| dim.map_or(u64::MAX, u64::from)));
        if let Some((windows, indices)) = &read.windows {
            key.push(u64::from(windows.0));
            key.extend(indices.iter().map(|index| u64::from(index.0)));
        }
        key.push(u64::MAX);
    }
    key
}
