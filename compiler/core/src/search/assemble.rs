//! A program on one mesh as a network of prices.
//!
//! Domains are lists of runs or resting places; lists and tables that are equal have one number, so what the network
//! has solved for one block of a program it knows for the next. Must not know how networks are solved.
//!
//! ```text
//! run C {27 choices}, rest A {64}: table (rest A, run C) = price of rest -> need
//! ```

use super::choice::{Choice, Run, choices};
use super::cost_table::CostTable;
pub use super::domain::Domain;
use super::domain::{distinct, wanted};
use super::known::{Circumstances, Known, Tables};
use super::mesh::AXES;
use super::model::{Entry, Model, Variable};
use super::network::{Eliminated, Network, Prices, Table};
use super::problem::Problem;
use super::settle;
use super::transfer::Roles;
use super::turns::{Turns, equal_axes, turned};
use crate::ia::layout::TensorRole;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::rc::Rc;

/// The restrictions beyond those of the mesh itself.
#[derive(Clone, Debug)]
pub struct Allowed<'a> {
    /// By tensor: the most operations of its statement's busiest site.
    pub limits: &'a [f64],
    /// The most bytes that a statement's operands and result may take at a site.
    pub memory: Option<f64>,
    /// By tensor: the only way to run it.
    pub runs: &'a HashMap<usize, Run>,
    /// By tensor: the only place to rest.
    pub rests: &'a HashMap<usize, Roles>,
}

/// Everything about one mesh.
pub struct Workspace<'a> {
    /// The program.
    pub problem: &'a Problem,
    /// Its variables.
    pub model: &'a Model,
    /// Prices.
    pub cost_table: CostTable<'a>,
    /// The variables that were eliminated on this mesh.
    pub eliminated: Eliminated,
    /// Whose tables these are.
    pub known: &'a Known,
    tables: Tables,
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        let mut tables = std::mem::take(&mut self.tables);
        tables.conversions = std::mem::take(&mut self.cost_table.conversions);
        tables.lasting = std::mem::take(&mut self.eliminated.lasting);
        self.known.keep(circumstances(&self.cost_table), tables);
    }
}

impl<'a> Workspace<'a> {
    /// A mesh's workspace, with the tables that are known of like programs.
    pub fn new(
        problem: &'a Problem,
        model: &'a Model,
        mut cost_table: CostTable<'a>,
        known: &'a Known,
    ) -> Workspace<'a> {
        let mut tables = known.take(&circumstances(&cost_table));
        cost_table.conversions = std::mem::take(&mut tables.conversions);
        Workspace {
            problem,
            model,
            cost_table,
            eliminated: Eliminated::after(std::mem::take(&mut tables.lasting)),
            known,
            tables,
        }
    }

    /// The domains of all variables; the variable that has none, if one has.
    pub fn domains(&mut self, allowed: &Allowed<'_>) -> Result<Vec<Domain>, Variable> {
        let mut made: HashMap<(u64, u64, u64), Domain> = HashMap::new();
        let model = self.model;
        let variables = model.variables.iter();
        variables
            .map(|variable| {
                let domain = match *variable {
                    Variable::Run(at) => {
                        let only = allowed.runs.get(&at);
                        let limit = allowed.limits[at];
                        let key = (model.signatures[at], limit.to_bits(), 0);
                        match (made.get(&key), only) {
                            (Some(domain), None) => domain.clone(),
                            _ => {
                                let domain = self.runs(at, limit, allowed.memory, only);
                                if only.is_none() {
                                    made.insert(key, domain.clone());
                                }
                                domain
                            }
                        }
                    }
                    Variable::Rest(at) | Variable::Common(at) => {
                        let only = allowed.rests.get(&at);
                        let only = only.filter(|_| matches!(variable, Variable::Rest(_)));
                        let list = match only {
                            Some(only) => Rc::new(vec![*only]),
                            None if self.problem.tensors[at].everywhere => {
                                Rc::new(vec![[TensorRole::Every; AXES]])
                            }
                            None => self.resting(at, true),
                        };
                        self.places(list)
                    }
                };
                if domain.is_empty() {
                    return Err(*variable);
                }
                Ok(domain)
            })
            .collect()
    }

    fn runs(&mut self, at: usize, limit: f64, memory: Option<f64>, only: Option<&Run>) -> Domain {
        let all = choices(
            self.problem,
            at,
            self.cost_table.counts,
            settle::alone(self.cost_table.objective),
            limit,
        );
        let fitting = all.into_iter().filter(|choice| {
            let statement = self.problem.tensors[at].statement();
            memory.is_none_or(|memory| choice.touched <= memory)
                && !statement.is_some_and(|s| self.cost_table.disabled_moves.run(s, choice.run))
                && only.is_none_or(|only| choice.run == *only)
        });
        let list: Vec<Choice> = fitting.collect();
        self.numbered(at, Rc::new(list))
    }

    /// By variable and value: the class of values that differ in the order of axes that are alike; none where no two axes are.
    pub fn turned(&self, domains: &[Domain]) -> Option<Vec<Vec<usize>>> {
        let groups = self.equal_axes();
        if groups.is_empty() {
            return None;
        }
        let mut made: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        let classes = domains.iter().map(|domain| {
            let classes = made.entry(domain.number()).or_insert_with(|| match domain {
                Domain::Runs(list, _) => {
                    distinct(list.iter().map(|choice| turned(choice.run, &groups))).0
                }
                Domain::Places(list, _) => {
                    distinct(list.iter().map(|place| turned(*place, &groups))).0
                }
            });
            classes.clone()
        });
        Some(classes.collect())
    }

    fn equal_axes(&self) -> Vec<Vec<usize>> {
        equal_axes(self.cost_table.counts, self.cost_table.levels.as_ref())
    }

    /// A list of runs of a statement as a domain.
    pub fn numbered(&mut self, at: usize, list: Rc<Vec<Choice>>) -> Domain {
        let key: Vec<Run> = list.iter().map(|choice| choice.run).collect();
        let next = self.tables.lists + 1;
        let known = self.tables.runs.entry((self.model.signatures[at], key));
        let number = *known.or_insert(next);
        self.tables.lists = self.tables.lists.max(number);
        Domain::Runs(list, number)
    }

    /// A list of resting places as a domain.
    pub fn places(&mut self, list: Rc<Vec<Roles>>) -> Domain {
        let next = self.tables.lists + 1;
        let number = *self.tables.places.entry(list.to_vec()).or_insert(next);
        self.tables.lists = self.tables.lists.max(number);
        Domain::Places(list, number)
    }

    /// Where a tensor may rest; `copies`: also with copies along an axis.
    pub fn resting(&mut self, at: usize, copies: bool) -> Rc<Vec<Roles>> {
        let shape = &self.problem.tensors[at].shape;
        let (counts, objective) = (self.cost_table.counts, self.cost_table.objective);
        let list = self.tables.resting.entry((shape.clone(), u8::from(copies)));
        list.or_insert_with(|| Rc::new(settle::resting(shape, counts, objective, copies)))
            .clone()
    }

    /// The network over these domains.
    pub fn network(&mut self, domains: &[Domain]) -> Network {
        let mut network = Network {
            domains: domains.iter().map(Domain::len).collect(),
            tables: vec![],
        };
        let model = self.model;
        for at in 0..self.problem.tensors.len() {
            if let Some(run) = model.run[at] {
                let [work, bytes] = self.cost_table.scale_of_runs();
                let key = vec![0, domains[run].number(), work, bytes];
                let prices = self.table(key, |space| {
                    let runs = domains[run].runs().iter();
                    runs.map(|choice| space.cost_table.run(choice)).collect()
                });
                network.add(vec![run], prices);
            }
            self.tensor(at, domains, &mut network);
        }
        network
    }

    fn tensor(&mut self, at: usize, domains: &[Domain], network: &mut Network) {
        let model = self.model;
        let goods = self.cost_table.goods(&self.problem.tensors[at]);
        let readers = &model.readers[at];
        match model.ways[at] {
            Entry::Free => {}
            Entry::LoadedOnce => {
                if let Some((reader, numbers)) = readers.first()
                    && let Some(run) = model.run[*reader]
                {
                    let copied = self.problem.tensors[at].starts_copied();
                    let starts = self.resting(at, copied);
                    let key = key(1 + 8 * u64::from(copied), goods, &[&domains[run]], numbers);
                    let prices = self.table(key, |space| {
                        let runs = domains[run].runs().iter();
                        let (of, needs) = distinct(runs.map(|choice| wanted(choice, numbers)));
                        let least = space.loading(at, goods, &starts, &needs);
                        of.into_iter().map(|at| least[at]).collect()
                    });
                    network.add(vec![run], prices);
                }
            }
            Entry::Ends => {
                if let Some(run) = model.run[at] {
                    let rests = self.resting(at, true);
                    let prices = self.table(key(2, goods, &[&domains[run]], &[]), |space| {
                        let onward = space.resting_prices(at, &rests);
                        let runs = domains[run].runs().iter();
                        let (of, gives) = distinct(runs.map(|choice| choice.gives));
                        let there = space.cost_table.settles(goods, &gives, &rests);
                        let there = there.chunks_exact(rests.len().max(1));
                        let least: Vec<f64> =
                            there.map(|there| least_sum(there, &onward)).collect();
                        of.into_iter().map(|at| least[at]).collect()
                    });
                    network.add(vec![run], prices);
                }
            }
            Entry::Passes => {
                if let Some(run) = model.run[at]
                    && let Some((reader, numbers)) = readers.first()
                    && let Some(to) = model.run[*reader]
                {
                    let rests = self.resting(at, true);
                    let pair = [&domains[run], &domains[to]];
                    let prices = self.table(key(3, goods, &pair, numbers), |space| {
                        space.passing(at, goods, &rests, pair, numbers)
                    });
                    network.add(vec![run, to], prices);
                }
            }
            Entry::LoadedOften | Entry::Rests | Entry::Carried | Entry::Update(_) => {
                if let Some(rest) = model.rest[at] {
                    self.resting_tensor(at, goods, rest, domains, network);
                }
            }
        }
    }

    fn resting_tensor(
        &mut self,
        at: usize,
        goods: usize,
        rest: usize,
        domains: &[Domain],
        network: &mut Network,
    ) {
        let model = self.model;
        let own = &self.problem.tensors[at];
        let copied = own.starts_copied();
        let starts = (model.ways[at] == Entry::LoadedOften).then(|| self.resting(at, copied));
        let once = u64::from(starts.is_some());
        let prices = self.table(
            key(
                4 + once + 8 * u64::from(copied),
                goods,
                &[&domains[rest]],
                &[],
            ),
            |space| {
                let places = domains[rest].places().iter();
                places
                    .map(|place| {
                        let from = starts.iter().flat_map(|starts| starts.iter());
                        let start = from.map(|from| space.cost_table.convert(goods, *from, *place));
                        let start = start.fold(f64::INFINITY, f64::min);
                        let start = if once == 1 { start } else { 0.0 };
                        start + space.cost_table.rest(own, *place)
                    })
                    .collect()
            },
        );
        network.add(vec![rest], prices);
        if let Some(run) = model.run[at] {
            let pair = [&domains[run], &domains[rest]];
            let prices = self.table(key(6, goods, &pair, &[]), |space| {
                let (of, gives) = distinct(pair[0].runs().iter().map(|choice| choice.gives));
                let places = pair[1].places();
                let rows = space.cost_table.settles(goods, &gives, places);
                of.into_iter()
                    .flat_map(|row| rows[row * places.len()..][..places.len()].iter().copied())
                    .collect()
            });
            network.add(vec![run, rest], prices);
        }
        let mut from = rest;
        if let Some(common) = model.common[at] {
            let pair = [&domains[rest], &domains[common]];
            let prices = self.table(key(7, goods, &pair, &[]), |space| {
                let [rests, commons] = pair.map(Domain::places);
                space.cost_table.converts(goods, rests, commons)
            });
            network.add(vec![rest, common], prices);
            from = common;
        }
        for (reader, numbers) in &model.readers[at] {
            let Some(run) = model.run[*reader] else {
                continue;
            };
            let pair = [&domains[from], &domains[run]];
            let prices = self.table(key(8, goods, &pair, numbers), |space| {
                let needs = pair[1].runs().iter();
                let (of, needs) = distinct(needs.map(|choice| wanted(choice, numbers)));
                let moves = space.onward(goods, pair[0].places(), &needs);
                let rows = moves.chunks_exact(needs.len().max(1));
                rows.flat_map(|row| of.iter().map(|column| row[*column]))
                    .collect()
            });
            network.add(vec![from, run], prices);
        }
    }

    fn table(&mut self, key: Vec<u64>, make: impl FnOnce(&mut Self) -> Vec<f64>) -> Prices {
        if let Some(prices) = self.tables.prices.get(&key) {
            return prices.clone();
        }
        let values = make(self);
        let prices = self.eliminated.number(values);
        self.tables.prices.insert(key, prices.clone());
        prices
    }

    /// By needs of a run: the price of reading a loaded tensor so, from the best place to start.
    fn loading(
        &mut self,
        at: usize,
        goods: usize,
        starts: &[Roles],
        needs: &[Vec<Roles>],
    ) -> Vec<f64> {
        let onward = self.onward(goods, starts, needs);
        let rest = self.resting_prices(at, starts);
        let mut least = vec![f64::INFINITY; needs.len()];
        for (row, rest) in onward.chunks_exact(needs.len().max(1)).zip(rest) {
            for (least, price) in least.iter_mut().zip(row) {
                *least = least.min(price + rest);
            }
        }
        least
    }

    /// By resting place and needs of a run, those of the first place first: the price of going there.
    fn onward(&mut self, goods: usize, rests: &[Roles], needs: &[Vec<Roles>]) -> Vec<f64> {
        let (places, all) = distinct(needs.iter().flatten().copied());
        let moves = self.cost_table.converts(goods, rests, &all);
        let mut prices = Vec::with_capacity(rests.len() * needs.len());
        for row in 0..rests.len() {
            let row = &moves[row * all.len()..][..all.len()];
            let mut places = places.iter();
            prices.extend(needs.iter().map(|needs| -> f64 {
                places.by_ref().take(needs.len()).map(|at| row[*at]).sum()
            }));
        }
        prices
    }

    /// By resting place: the price of resting there.
    fn resting_prices(&self, at: usize, rests: &[Roles]) -> Vec<f64> {
        let tensor = &self.problem.tensors[at];
        rests
            .iter()
            .map(|rest| self.cost_table.rest(tensor, *rest))
            .collect()
    }

    fn passing(
        &mut self,
        at: usize,
        goods: usize,
        rests: &[Roles],
        pair: [&Domain; 2],
        numbers: &[usize],
    ) -> Vec<f64> {
        let (rows, gives) = distinct(pair[0].runs().iter().map(|choice| choice.gives));
        let needs = pair[1].runs().iter();
        let (columns, needs) = distinct(needs.map(|choice| wanted(choice, numbers)));
        // By resting place: the way there, and the way on from there.
        let there = self.cost_table.settles(goods, &gives, rests);
        let resting = self.resting_prices(at, rests);
        let moves = self.onward(goods, rests, &needs);
        let mut onward = vec![0.0; moves.len()];
        for (place, (row, resting)) in moves
            .chunks_exact(needs.len().max(1))
            .zip(&resting)
            .enumerate()
        {
            for (number, price) in row.iter().enumerate() {
                onward[number * rests.len() + place] = price + resting;
            }
        }
        let turns = Turns::new(&self.equal_axes(), &gives, &needs);
        let mut least: Vec<f64> = Vec::with_capacity(gives.len() * needs.len());
        for (row, there) in there.chunks_exact(rests.len().max(1)).enumerate() {
            let onward = onward.chunks_exact(rests.len().max(1)).enumerate();
            for (column, onward) in onward {
                let known = turns.before(row, column);
                let known = known.map(|(row, column)| least[row * needs.len() + column]);
                least.push(known.unwrap_or_else(|| least_sum(there, onward)));
            }
        }
        let mut prices = Vec::with_capacity(rows.len() * columns.len());
        for row in rows {
            let row = &least[row * needs.len()..][..needs.len()];
            prices.extend(columns.iter().map(|column| row[*column]));
        }
        prices
    }
}

/// The circumstances under which the prices of a table hold.
fn circumstances(cost_table: &CostTable<'_>) -> Circumstances {
    Circumstances {
        counts: cost_table.counts,
        levels: cost_table.levels,
        objective: *cost_table.objective,
        weights: cost_table.weights,
        disabled_moves: cost_table.disabled_moves,
    }
}

/// The least sum of entries at the same place. Four minima side by side, as a vector unit takes them.
fn least_sum(left: &[f64], right: &[f64]) -> f64 {
    let mut least = [f64::INFINITY; 4];
    let (left, left_rest) = left.as_chunks::<4>();
    let (right, right_rest) = right.as_chunks::<4>();
    for (left, right) in left.iter().zip(right) {
        for (least, (left, right)) in least.iter_mut().zip(left.iter().zip(right)) {
            let sum = left + right;
            *least = if sum < *least { sum } else { *least };
        }
    }
    let rest = left_rest
        .iter()
        .zip(right_rest)
        .map(|(left, right)| left + right);
    rest.chain(least).fold(f64::INFINITY, f64::min)
}

impl Network {
    fn add(&mut self, variables: Vec<usize>, prices: Prices) {
        self.tables.push(Table { variables, prices });
    }
}

fn key(kind: u64, goods: usize, domains: &[&Domain], numbers: &[usize]) -> Vec<u64> {
    let head = [kind, goods as u64];
    let lists = domains.iter().map(|domain| domain.number());
    let reads = numbers.iter().map(|number| *number as u64);
    head.into_iter()
        .chain(lists)
        .chain([u64::MAX])
        .chain(reads)
        .collect()
}
