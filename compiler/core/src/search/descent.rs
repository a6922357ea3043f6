//! A good plan where the exact one is out of reach: the axes of a mesh one or two at a time.
//!
//! The mesh is grown axis by axis, what is decided staying as it is; then single axes are freed in turn, and pairs, of the best plan first,
//! until nothing improves; pairs as long as that takes few operations. With one axis free no domain is larger than a statement has indices.
//! A program that differs from another one in a few statements begins with the plan of that one, and frees what is near these statements. Must
//! not know which meshes there are.
//!
//! ```text
//! 2x2x2: axis 0 alone, + axis 1, + axis 2, free 0, 1, 2, free 01, 02, 12: 6.49e7
//! ```

use super::assemble::{Allowed, Domain, Workspace};
use super::choice::{Choice, Run, Runs};
use super::cost_table::{CostTable, Objective, Weights};
use super::lifted::Lifted;
use super::mesh::AXES;
use super::model::{Model, Variable};
use super::narrow;
use super::network::{Eliminated, Network};
use super::problem::Problem;
use super::transfer::{Counts, Roles};
use std::collections::HashMap;
use std::rc::Rc;

/// Operations of a step of a thorough descent, and of a quick one: what takes more ends with the best choice that was met.
const STEPS: [f64; 2] = [2e8, 3e7];

/// Operations after which no pair of axes is freed any more.
const PAIRS: f64 = 1e8;

/// Operations after which no other order of growth is tried.
const ORDERS: f64 = 1e8;

/// Rounds over all axes.
const MOST_ROUNDS: usize = 6;

/// A value of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Run(Run),
    Place(Roles),
}

/// The result of a descent.
#[derive(Clone, Debug)]
pub struct Descended {
    /// The network's price of it.
    pub value: f64,
    /// By tensor: how its statement runs.
    pub runs: Vec<Option<Choice>>,
}

/// Steps from a statement to those that read it or that it reads, within which statements are near.
const NEAR: usize = 3;

/// The plan of a mesh while a descent works on it.
struct Descent<'a, 'b> {
    space: &'a mut Workspace<'b>,
    domains: &'a [Domain],
    values: Vec<Value>,
    value: f64,
    /// How often the plan has become another one.
    changes: usize,
    /// By axes that were freed: how often the plan had changed then.
    freed: HashMap<Vec<usize>, usize>,
    /// By variable: whether it may change.
    open: Vec<bool>,
    effort: Effort,
}

/// The limits of a step.
#[derive(Clone, Copy)]
struct Effort {
    /// Operations.
    step: f64,
    /// Entries of a table.
    cap: usize,
    /// About what a plan costs.
    scale: f64,
}

/// A plan that a descent begins with.
#[derive(Clone, Copy)]
enum Start<'a> {
    /// That of a layout.
    Known(&'a Runs),
    /// One that grows on axes in this order.
    Grown(&'a [usize]),
}

/// Grows a plan on the axes of a workspace's mesh and improves it. `thorough`: the best of several orders of growth, and pairs of axes
/// too. `known`: how statements run in a plan of the mesh; a thorough descent improves it beside what grows, a quick one takes it instead and
/// changes what is near the statements that it does not know. `scale`: about what a plan costs. `None`: nothing admissible was found, or the
/// deadline passed before anything was.
pub fn descend(
    space: &mut Workspace<'_>,
    domains: &[Domain],
    allowed: &Allowed<'_>,
    (cap, scale): (usize, f64),
    (thorough, known): (bool, Option<&Runs>),
    deadline: &dyn Fn() -> bool,
) -> Option<Descended> {
    let counts = space.cost_table.counts;
    let used: Vec<usize> = (0..AXES).filter(|axis| counts[*axis] > 1).collect();
    let orders = match thorough {
        true => permutations(&used),
        false => vec![used.clone()],
    };
    let effort = Effort {
        step: STEPS[usize::from(!thorough)],
        cap,
        scale,
    };
    let axes: Vec<Vec<usize>> = used.iter().map(|axis| vec![*axis]).collect();
    let begun = space.eliminated.operations;
    let mut found: Vec<(f64, Vec<Value>)> = vec![];
    let starts = known.map(Start::Known).into_iter();
    for start in starts.chain(orders.iter().map(|order| Start::Grown(order))) {
        let enough = !thorough || space.eliminated.operations > begun + ORDERS;
        let grown = match start {
            Start::Known(runs) => placed(space, domains, runs, effort, deadline),
            Start::Grown(_) if !found.is_empty() && enough => break,
            Start::Grown(order) => grow(space, allowed, order, effort, deadline),
        };
        let Some(values) = grown else {
            continue;
        };
        // Freed on its first axis, the grown plan is put among the admissible ones.
        let mut descent = Descent::new(space, domains, (f64::INFINITY, values), effort);
        if let (Start::Known(runs), false) = (start, thorough) {
            descent.open = near(descent.space, runs);
        }
        descent.improve(&axes, deadline);
        if descent.value.is_finite() {
            found.push((descent.value, descent.values));
        }
    }
    // The best first; those of one price are nearly always one plan.
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.dedup_by_key(|(value, _)| *value);
    for plan in found.iter_mut().filter(|_| thorough) {
        if space.eliminated.operations > begun + PAIRS {
            break;
        }
        let mut descent = Descent::new(space, domains, std::mem::take(plan), effort);
        descent.freed = axes.iter().map(|axis| (axis.clone(), 0)).collect();
        descent.improve_in_pairs(&axes, begun + PAIRS, deadline);
        *plan = (descent.value, descent.values);
    }
    let best = found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (value, values) = best?;
    let mut runs = vec![None; space.problem.tensors.len()];
    for (at, run) in runs.iter_mut().enumerate() {
        if let Some(variable) = space.model.run[at]
            && let Domain::Runs(list, _) = &domains[variable]
            && let Value::Run(chosen) = values[variable]
        {
            *run = list.iter().find(|choice| choice.run == chosen).cloned();
        }
    }
    Some(Descended { value, runs })
}

impl<'a, 'b> Descent<'a, 'b> {
    /// A plan of this price.
    fn new(
        space: &'a mut Workspace<'b>,
        domains: &'a [Domain],
        (value, values): (f64, Vec<Value>),
        effort: Effort,
    ) -> Descent<'a, 'b> {
        Descent {
            space,
            domains,
            values,
            value,
            changes: 0,
            freed: HashMap::new(),
            open: vec![true; domains.len()],
            effort,
        }
    }

    /// Frees axes in turn until that improves nothing.
    fn improve(&mut self, axes: &[Vec<usize>], deadline: &dyn Fn() -> bool) {
        for _ in 0..MOST_ROUNDS {
            let before = self.value;
            for free in axes {
                self.free(free, deadline);
            }
            if self.value >= before || deadline() {
                break;
            }
        }
    }

    /// Frees pairs of axes, then axes again, until that improves nothing or the operations come to a limit.
    fn improve_in_pairs(&mut self, axes: &[Vec<usize>], until: f64, deadline: &dyn Fn() -> bool) {
        let firsts = axes.iter().enumerate();
        let pairs = firsts.flat_map(|(number, first)| {
            let seconds = axes[number + 1..].iter();
            seconds.map(|second| [first.as_slice(), second.as_slice()].concat())
        });
        let pairs: Vec<Vec<usize>> = pairs.collect();
        for _ in 0..MOST_ROUNDS {
            let before = self.value;
            for free in &pairs {
                if self.space.eliminated.operations < until {
                    self.free(free, deadline);
                }
            }
            if self.value >= before || deadline() {
                break;
            }
            self.improve(axes, deadline);
        }
    }

    /// Solves with those axes free, and keeps the result if it is better. Nothing is done if nothing has changed on the other axes
    /// since they were freed last.
    fn free(&mut self, free: &[usize], deadline: &dyn Fn() -> bool) {
        if self.freed.get(free) == Some(&self.changes) {
            return;
        }
        let narrowed = narrowed(self.space, self.domains, &self.values, free, &self.open);
        if let Some((value, values)) = solve(self.space, &narrowed, self.effort, deadline)
            && value < self.value
        {
            (self.value, self.values) = (value, values);
            self.changes += 1;
        }
        self.freed.insert(free.to_vec(), self.changes);
    }
}

/// All orders of axes, the given one first.
fn permutations(axes: &[usize]) -> Vec<Vec<usize>> {
    if axes.is_empty() {
        return vec![vec![]];
    }
    let firsts = axes.iter().flat_map(|first| {
        let others: Vec<usize> = axes.iter().copied().filter(|axis| axis != first).collect();
        let rest = permutations(&others).into_iter();
        rest.map(move |rest| [*first].into_iter().chain(rest).collect())
    });
    firsts.collect()
}

/// A plan on the axes of `order`, each decided with the earlier ones fixed.
fn grow(
    space: &Workspace<'_>,
    allowed: &Allowed<'_>,
    order: &[usize],
    effort: Effort,
    deadline: &dyn Fn() -> bool,
) -> Option<Vec<Value>> {
    let (problem, model): (&Problem, &Model) = (space.problem, space.model);
    let full = space.cost_table.counts;
    let mut counts: Counts = [1; AXES];
    let mut values: Option<Vec<Value>> = None;
    for (grown, axis) in order.iter().enumerate() {
        counts[*axis] = full[*axis];
        // What is not cut yet will be.
        let rest: f64 = order[grown + 1..]
            .iter()
            .map(|axis| f64::from(full[*axis]))
            .product();
        let limits: Vec<f64> = allowed.limits.iter().map(|limit| limit * rest).collect();
        let part = Allowed {
            limits: &limits,
            memory: allowed.memory.map(|memory| memory * rest),
            runs: &HashMap::new(),
            rests: &HashMap::new(),
        };
        let objective: &Objective = space.cost_table.objective;
        let weights: Weights = space.cost_table.weights;
        let mut cost_table = CostTable::new(problem, counts, objective, weights);
        cost_table.disabled_moves = space.cost_table.disabled_moves;
        cost_table.levels = space.cost_table.levels;
        let mut stage = Workspace::new(problem, model, cost_table, space.known);
        let domains = stage.domains(&part).ok()?;
        let narrowed = match &values {
            None => domains,
            Some(values) => {
                let open = vec![true; domains.len()];
                narrowed(&mut stage, &domains, values, &[*axis], &open)
            }
        };
        let (_, found) = solve(&mut stage, &narrowed, effort, deadline)?;
        values = Some(found);
    }
    values
}

/// The values that agree with the present ones on all axes that are not free; all of them where none does. Variables that are not open
/// have no free axes.
fn narrowed(
    space: &mut Workspace<'_>,
    domains: &[Domain],
    values: &[Value],
    free: &[usize],
    open: &[bool],
) -> Vec<Domain> {
    let all: Vec<usize> = (0..AXES).collect();
    let fixed: Vec<usize> = (0..AXES).filter(|axis| !free.contains(axis)).collect();
    let model = space.model;
    let mut result = vec![];
    let variables = model.variables.iter().zip(open);
    for ((domain, value), (variable, open)) in domains.iter().zip(values).zip(variables) {
        let fixed = if *open { &fixed } else { &all };
        result.push(match (domain, value, variable) {
            (Domain::Runs(list, _), Value::Run(now), Variable::Run(at)) => {
                let agrees = |choice: &&Choice| {
                    let mut axes = fixed.iter();
                    axes.all(|axis| choice.run[*axis] == now[*axis])
                };
                let agreeing: Vec<Choice> = list.iter().filter(agrees).cloned().collect();
                if agreeing.is_empty() {
                    domain.clone()
                } else {
                    space.numbered(*at, Rc::new(agreeing))
                }
            }
            (Domain::Places(list, _), Value::Place(now), _) => {
                let agrees = |place: &&Roles| {
                    let mut axes = fixed.iter();
                    axes.all(|axis| place[*axis] == now[*axis])
                };
                let agreeing: Vec<Roles> = list.iter().filter(agrees).copied().collect();
                if agreeing.is_empty() {
                    domain.clone()
                } else {
                    space.places(Rc::new(agreeing))
                }
            }
            _ => domain.clone(),
        });
    }
    result
}

/// By variable: whether it is of a tensor near a statement of which it is not known how it runs.
fn near(space: &Workspace<'_>, runs: &Runs) -> Vec<bool> {
    let (problem, model) = (space.problem, space.model);
    let unknown = |(at, run): (usize, &Option<Run>)| {
        let statement = problem.tensors[at].statement().is_some();
        statement && run.is_none()
    };
    let mut near: Vec<bool> = runs.iter().enumerate().map(unknown).collect();
    for _ in 0..NEAR {
        let mut further = near.clone();
        for (at, tensor) in problem.tensors.iter().enumerate() {
            let reads = tensor.statement().into_iter().flat_map(|s| &s.reads);
            for read in reads {
                further[at] |= near[read.tensor];
                further[read.tensor] |= near[at];
            }
        }
        near = further;
    }
    let of = |variable: &Variable| match variable {
        Variable::Run(at) | Variable::Rest(at) | Variable::Common(at) => near[*at],
    };
    model.variables.iter().map(of).collect()
}

/// The plan in which statements run as they are known to; where tensors rest is decided anew.
fn placed(
    space: &mut Workspace<'_>,
    domains: &[Domain],
    runs: &Runs,
    effort: Effort,
    deadline: &dyn Fn() -> bool,
) -> Option<Vec<Value>> {
    let model = space.model;
    let mut placed = vec![];
    for (variable, domain) in model.variables.iter().zip(domains) {
        placed.push(match (variable, domain) {
            (Variable::Run(at), Domain::Runs(list, _)) => {
                let run = runs[*at];
                let only = list.iter().filter(|choice| Some(choice.run) == run);
                let only: Vec<Choice> = only.cloned().collect();
                match only.is_empty() {
                    true => domain.clone(),
                    false => space.numbered(*at, Rc::new(only)),
                }
            }
            _ => domain.clone(),
        });
    }
    Some(solve(space, &placed, effort, deadline)?.1)
}

fn solve(
    space: &mut Workspace<'_>,
    domains: &[Domain],
    Effort { step, cap, scale }: Effort,
    deadline: &dyn Fn() -> bool,
) -> Option<(f64, Vec<Value>)> {
    let network = space.network(domains);
    let eliminated = &mut space.eliminated;
    eliminated.budget = eliminated.operations + step;
    let solved = |network: &Network, eliminated: &mut Eliminated| {
        let solution = narrow::good(network, cap, scale, eliminated, deadline);
        solution.filter(|solution| solution.value.is_finite())
    };
    let alike = Lifted::of(&network, eliminated).and_then(|lifted| {
        let solution = solved(&lifted.network, eliminated)?;
        Some(lifted.given(&network, &solution)).filter(|given| given.value.is_finite())
    });
    let solution = alike.or_else(|| solved(&network, eliminated));
    eliminated.forget();
    let solution = solution?;
    let values = domains
        .iter()
        .zip(&solution.choice)
        .map(|(domain, at)| match domain {
            Domain::Runs(list, _) => Value::Run(list[*at].run),
            Domain::Places(list, _) => Value::Place(list[*at]),
        });
    Some((solution.value, values.collect()))
}
