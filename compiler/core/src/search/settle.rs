//! Where tensors rest once it is decided how every statement runs.
//!
//! With the runs fixed, tensors do not depend on each other (but for carried pairs), so the best place is found by
//! trying all, equal conversions counted once. Must not know how the runs were chosen.
//!
//! ```text
//! C gives (Cut(0), Partial), read as (Cut(0), Every) twice: rests (Cut(0), Every), one all-reduce
//! ```

use super::choice::{Choice, Run, choice};
use super::convert::{placements, share};
use super::cost_table::{CostTable, Objective};
use super::mesh::AXES;
use super::model::{Entry, Model};
use super::problem::{Kind, Problem};
use super::transfer::{Counts, Roles, counts};
use crate::ia::layout::{Layout, StatementRole, TensorRole};
use ein_plan::Mesh;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};

/// Returns whether one site of an axis may hold or do something alone: only where moving nothing at all counts as little;
/// in words received by the busiest site a single holder is never better than a cut.
pub fn alone(objective: &Objective) -> bool {
    matches!(objective, Objective::Transfer)
}

/// Where a tensor may rest; `copies`: also with copies along an axis.
pub fn resting(shape: &[u64], counts: Counts, objective: &Objective, copies: bool) -> Vec<Roles> {
    let mut allowed = vec![];
    if copies {
        allowed.push(TensorRole::Every);
    }
    // Without copies what is too short to be cut can only be at one site.
    if alone(objective) || !copies {
        allowed.push(TensorRole::First);
    }
    placements(shape, counts, &allowed)
}

/// The conversions of a tensor that depend on where it rests: what is converted, where it is made, and where it is read.
type Moves = (usize, Option<Roles>, Vec<Roles>);

/// The best place to rest for every tensor, by tensor; of equal ones that which takes the least memory, and for values of loops of small
/// rounds first one without pieces. `only`: places that are decided.
pub fn rests(
    problem: &Problem,
    model: &Model,
    cost_table: &mut CostTable<'_>,
    runs: &[Option<Choice>],
    only: &HashMap<usize, Roles>,
) -> Vec<Roles> {
    let counts = cost_table.counts;
    let mut rests = vec![[TensorRole::Every; AXES]; model.ways.len()];
    // Tensors that are made and read alike rest alike.
    let mut known: FxHashMap<([bool; 3], Vec<Moves>), Roles> = FxHashMap::default();
    for at in 0..rests.len() {
        let way = model.ways[at];
        if matches!(way, Entry::Free | Entry::Update(_)) {
            continue;
        }
        let tensor = &problem.tensors[at];
        let loaded = matches!(way, Entry::LoadedOnce | Entry::LoadedOften);
        let copies = !loaded || tensor.starts_copied();
        let together: Vec<usize> = [at].into_iter().chain(tensor.carried).collect();
        let moves = together.iter().map(|at| {
            let goods = cost_table.goods(&problem.tensors[*at]);
            let gives = runs[*at].as_ref().map(|choice| choice.gives);
            (goods, gives, needs(model, *at, runs))
        });
        let is_small = tensor.statement().is_some_and(|statement| statement.small);
        let flags = [copies, tensor.everywhere, is_small];
        let key = (flags, moves.collect::<Vec<Moves>>());
        let decided = only.get(&at);
        if let (Some(rest), None) = (known.get(&key), decided) {
            for tensor in together {
                rests[tensor] = *rest;
            }
            continue;
        }
        let candidates = match decided {
            Some(only) => vec![*only],
            None if tensor.everywhere => vec![[TensorRole::Every; AXES]],
            None => resting(&tensor.shape, counts, cost_table.objective, copies),
        };
        let is_cut = |role: &TensorRole| is_small && matches!(role, TensorRole::Cut(_));
        let mut best: Option<(f64, usize, f64, Roles)> = None;
        for rest in candidates {
            let mut price = 0.0;
            for (at, (goods, gives, needs)) in together.iter().zip(&key.1) {
                if let Some(gives) = gives {
                    price += cost_table.settle(*goods, *gives, rest);
                }
                for need in needs {
                    price += cost_table.convert(*goods, rest, *need);
                }
                price += cost_table.rest(&problem.tensors[*at], rest);
            }
            let pieces = rest.iter().filter(|role| is_cut(role)).count();
            let size = share(&tensor.shape, counts, rest);
            if best.is_none_or(|(p, n, s, _)| (price, pieces, size) < (p, n, s)) {
                best = Some((price, pieces, size, rest));
            }
        }
        for tensor in together {
            rests[tensor] = best.map_or(rests[tensor], |(.., rest)| rest);
        }
        if decided.is_none() {
            known.insert(key, rests[at]);
        }
    }
    rests
}

/// The layout with these runs, by tensor, and the best places to rest.
pub fn settle(
    problem: &Problem,
    model: &Model,
    cost_table: &mut CostTable<'_>,
    mesh: &Mesh,
    runs: &BTreeMap<usize, Run>,
) -> Layout {
    let numbered = problem.tensors.iter().enumerate();
    let choices: Vec<Option<Choice>> = numbered
        .map(|(at, tensor)| {
            let statement = tensor.statement()?;
            let run = runs.get(&at)?;
            Some(choice(problem, at, statement, counts(mesh), *run))
        })
        .collect();
    let rests = rests(problem, model, cost_table, &choices, &HashMap::new());
    layout_of(mesh, &choices, &rests)
}

/// Everything on one site.
pub fn one_site(problem: &Problem) -> Layout {
    let free = |kind: &Kind| *kind == Kind::Free;
    let tensors = problem.tensors.iter();
    Layout {
        mesh: Mesh::row(1),
        statements: tensors
            .clone()
            .map(|t| t.statement().map_or(vec![], |_| vec![StatementRole::First]))
            .collect(),
        rests: tensors
            .map(|t| {
                vec![if free(&t.kind) {
                    TensorRole::Every
                } else {
                    TensorRole::First
                }]
            })
            .collect(),
    }
}

/// The layout of these runs and resting places.
pub fn layout_of(mesh: &Mesh, runs: &[Option<Choice>], rests: &[Roles]) -> Layout {
    let axes = mesh.axes.len();
    let run = |run: &Option<Choice>| match run {
        Some(choice) => choice.run[..axes].to_vec(),
        None => vec![],
    };
    Layout {
        mesh: mesh.clone(),
        statements: runs.iter().map(run).collect(),
        rests: rests.iter().map(|rest| rest[..axes].to_vec()).collect(),
    }
}

/// The different placements in which a tensor is read.
fn needs(model: &Model, at: usize, runs: &[Option<Choice>]) -> Vec<Roles> {
    let mut needs: Vec<Roles> = vec![];
    for (reader, numbers) in &model.readers[at] {
        if let Some(choice) = &runs[*reader] {
            needs.extend(numbers.iter().map(|number| choice.needs[*number]));
        }
    }
    needs.sort_unstable();
    needs.dedup();
    needs
}
