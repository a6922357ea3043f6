//! One mesh: its best plan, as exactly as its size allows.
//!
//! The limits of balance and memory that hold for a whole plan, not for a statement, are kept to by giving load or
//! memory a price and solving again. Must not know the other meshes.
//!
//! ```text
//! 2x2: 64800000 (proved); with 1 GB a site: 97200000, memory had to be given a price
//! ```

use super::assemble::{Allowed, Domain, Workspace};
use super::balance::Balance;
use super::choice::{Choice, Run};
use super::cost_table::{CostTable, Objective, Weights};
use super::descent::descend;
use super::known::Known;
use super::machine::orders;
use super::model::Model;
use super::narrow::{self, HARDLY};
use super::network::{Solution, Stop};
use super::options::{NoLayout, SearchOptions};
use super::price::{LayoutCost, of_problem, padded_run, runs_on};
use super::problem::Problem;
use super::report::SearchReport;
use super::residency;
use super::settle;
use super::transfer::{Roles, counts, padded};
use crate::einsum::TensorId;
use crate::ia::layout::Layout;
use ein_plan::Mesh;
use std::collections::HashMap;

/// Operations granted to the search over all meshes: some ten seconds of them.
pub(super) const BUDGET: f64 = 2e10;

/// Times that the price of load or of memory is raised before a mesh is given up; by more where that changed nothing.
const MOST_RAISES: usize = 10;

/// A mesh's plan.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) layout: Layout,
    pub(super) price: LayoutCost,
    pub(super) bound: f64,
    /// Why it is not proved.
    pub(super) why: Option<String>,
}

/// The outcome of looking at a mesh.
pub(super) enum Looked {
    /// A plan.
    Plan(Box<Candidate>),
    /// No plan on it is below this, which is dearer than the best so far.
    Dearer(f64),
    /// No plan on it is below this, which is hardly below the best so far.
    Near(f64),
    /// No plan that keeps the limits was found.
    Nothing,
}

impl Looked {
    pub(super) fn plan(self) -> Option<Candidate> {
        match self {
            Looked::Plan(candidate) => Some(*candidate),
            _ => None,
        }
    }
}

pub(super) struct Search<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a SearchOptions,
    pub(super) model: Model,
    /// Prices and tables of earlier searches.
    pub(super) known: &'a Known,
    pub(super) balance: Balance,
    pub(super) runs: HashMap<usize, Run>,
    pub(super) rests: HashMap<usize, Roles>,
    pub(super) weights: Weights,
    /// The objective's price of the best plan so far.
    pub(super) ceiling: f64,
    /// True if a plan has shown that the limits are not tight enough.
    pub(super) too_loose: bool,
    pub(super) report: SearchReport,
    /// The plan that was furthest from fitting least: statement, tensor, bytes missing.
    pub(super) misfit: Option<(TensorId, TensorId, f64)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        options: &'a SearchOptions,
        known: &'a Known,
        tight: bool,
    ) -> Result<Search<'a>, NoLayout> {
        let pinned = &options.pinned;
        let sites = options.sites.max(1);
        if pinned.mesh.is_none() && !(pinned.statements.is_empty() && pinned.rests.is_empty()) {
            let why = "roles are pinned, but not the mesh that they speak of";
            return Err(NoLayout::Pinned(why.to_string()));
        }
        let mut balance = Balance::new(problem, sites, options.balance, tight);
        for statement in pinned.statements.keys() {
            balance.limits[statement.0 as usize] = f64::INFINITY;
        }
        if let Some(mesh) = &pinned.mesh {
            if mesh.sites() > sites || mesh.axes.len() > super::mesh::AXES {
                let why = format!("mesh {mesh} does not fit {sites} sites and three axes");
                return Err(NoLayout::Pinned(why));
            }
            balance.meshes = vec![mesh.clone()];
            for _ in 0..200 {
                if balance.blocked(problem, mesh).is_none() {
                    break;
                }
                balance.limits.iter_mut().for_each(|limit| *limit *= 1.1);
                balance.whole *= 1.1;
                balance.kappa *= 1.1;
            }
        }
        if let (Objective::Time(model), None) = (&options.objective, &pinned.mesh) {
            let meshes = balance.meshes.iter();
            balance.meshes = meshes.flat_map(|mesh| orders(mesh, model)).collect();
        }
        if options.all_sites {
            balance.meshes.retain(|mesh| mesh.sites() == sites);
        }
        let model = known.model(problem);
        let objective = &options.objective;
        let numbers = |id: &TensorId| id.0 as usize;
        Ok(Search {
            problem,
            options,
            known,
            runs: pinned
                .statements
                .iter()
                .map(|(id, r)| (numbers(id), padded_run(r)))
                .collect(),
            rests: pinned
                .rests
                .iter()
                .map(|(id, r)| (numbers(id), padded(r)))
                .collect(),
            report: SearchReport {
                kappa: balance.kappa,
                variables: model.variables.len(),
                ..SearchReport::default()
            },
            weights: Weights::below(most(problem, sites, objective), objective),
            balance,
            model,
            ceiling: options.ceiling,
            too_loose: false,
            misfit: None,
        })
    }
}

impl Search<'_> {
    /// The best plan on a mesh that keeps the whole program's balance and the memory; none if none was found.
    pub(super) fn candidate(
        &mut self,
        mesh: &Mesh,
        how: How,
        deadline: &dyn Fn() -> bool,
    ) -> Looked {
        if mesh.sites() <= 1 && self.runs.is_empty() {
            let layout = settle::one_site(self.problem);
            let price = of_problem(self.problem, &layout, &self.options.objective);
            let candidate = Candidate {
                layout,
                price,
                bound: 0.0,
                why: None,
            };
            return match self.fits(&candidate.layout) {
                None => Looked::Plan(Box::new(candidate)),
                Some(misfit) => {
                    self.misfit.get_or_insert(misfit);
                    Looked::Nothing
                }
            };
        }
        let mut weights = self.weights;
        let (mut first_bound, mut last): (Option<f64>, f64) = (None, 0.0);
        for _ in 0..MOST_RAISES {
            let mut candidate = match self.solved(mesh, how, weights, deadline) {
                Looked::Plan(candidate) => *candidate,
                other => return other,
            };
            let price = candidate.price.under(&self.options.objective);
            let first = *first_bound.get_or_insert(candidate.bound);
            candidate.bound = candidate.bound.min(first.min(price));
            let scale = price.max(self.weights.quantum * 1e6);
            if self.whole(&candidate.price) > self.balance.whole && self.runs.is_empty() {
                if !self.balance.tight {
                    self.too_loose = true;
                    return Looked::Nothing;
                }
                weights.load = (weights.load * 4.0).max(scale * 0.05);
            } else if let Some((statement, tensor, missing)) = self.fits(&candidate.layout) {
                let least = self.misfit.filter(|(.., least)| *least <= missing);
                self.misfit = least.or(Some((statement, tensor, missing)));
                let limit = self.options.memory.map_or(1.0, |bytes| bytes.max(1) as f64);
                let again = missing == std::mem::replace(&mut last, missing);
                let raised = weights.resident * if again { 32.0 } else { 4.0 };
                weights.resident = raised.max(scale * 0.05 / limit);
            } else {
                if weights != self.weights && candidate.bound < price {
                    let why = "balance or memory had to be given a price".to_string();
                    candidate.why.get_or_insert(why);
                }
                return Looked::Plan(Box::new(candidate));
            }
        }
        Looked::Nothing
    }

    /// Operations of the busiest sites of the statements that are held to balance.
    fn whole(&self, price: &LayoutCost) -> f64 {
        let limits = self.balance.limits.iter();
        let heavy = price
            .loads
            .iter()
            .zip(limits)
            .filter(|(_, limit)| limit.is_finite());
        heavy.map(|(load, _)| load).sum()
    }

    /// Where a layout does not fit: statement, tensor, bytes missing.
    fn fits(&self, layout: &Layout) -> Option<(TensorId, TensorId, f64)> {
        let memory = self.options.memory? as f64;
        let residencies = residency::of_problem(self.problem, layout);
        let most = residency::peak(&residencies)?;
        (most.bytes > memory).then_some((most.statement, most.largest, most.bytes - memory))
    }

    fn solved(
        &mut self,
        mesh: &Mesh,
        how: How,
        weights: Weights,
        deadline: &dyn Fn() -> bool,
    ) -> Looked {
        let (problem, options) = (self.problem, self.options);
        let mut cost_table = CostTable::new(problem, counts(mesh), &options.objective, weights);
        cost_table.disabled_moves = options.disabled_moves;
        let mut space = Workspace::new(problem, &self.model, cost_table, self.known);
        let allowed = Allowed {
            limits: &self.balance.limits,
            memory: options.memory.map(|bytes| bytes as f64),
            runs: &self.runs,
            rests: &self.rests,
        };
        let domains = match space.domains(&allowed) {
            Ok(domains) => domains,
            Err(_) => {
                if let Some(memory) = options.memory {
                    let (statement, tensor, missing) = too_large(problem, &space, memory as f64);
                    if self.misfit.is_none_or(|(.., least)| missing < least) && missing > 0.0 {
                        self.misfit = Some((statement, tensor, missing));
                    }
                }
                return Looked::Nothing;
            }
        };
        space.eliminated.budget = (BUDGET - self.report.operations).max(BUDGET / 100.0);
        let exact = match how {
            How::Exact => self.exactly(&mut space, &domains, weights, deadline),
            _ => Exact::default(),
        };
        self.report.largest_table = self.report.largest_table.max(exact.largest_table);
        if let Some(looked) = exact.no_plan {
            self.report.operations += space.eliminated.operations;
            return looked;
        }
        let (bound, mut why, met) = (exact.bound, exact.why, exact.met);
        // A choice that is hardly above what none is below needs no other beside it.
        let enough = |met: &Met| met.value - exact.enough <= HARDLY * met.value.abs();
        let runs = match (exact.runs, met) {
            (Some(runs), _) => runs,
            (None, Some(met)) if enough(&met) => {
                why.get_or_insert("too many operations".to_string());
                met.runs
            }
            (None, met) => {
                let thorough = how == How::Exact;
                let scale = self
                    .ceiling
                    .min(most(problem, options.sites, &options.objective))
                    + decisive(&weights);
                let known = match thorough {
                    true => options.seed.as_ref().and_then(|seed| runs_on(seed, mesh)),
                    false => self.known.runs(problem, &self.model, mesh),
                };
                let limits = (options.table_cap.min(1 << 22), scale);
                let from = (thorough, known.as_ref());
                let descended = descend(&mut space, &domains, &allowed, limits, from, deadline);
                why.get_or_insert("found by descent".to_string());
                match (descended, met) {
                    (Some(found), Some(met)) if met.value < found.value => met.runs,
                    (Some(found), _) => found.runs,
                    (None, Some(met)) => met.runs,
                    (None, None) => return Looked::Nothing,
                }
            }
        };
        self.report.operations += space.eliminated.operations;
        self.report.reused += space.eliminated.reused;
        let rests = settle::rests(
            problem,
            &self.model,
            &mut space.cost_table,
            &runs,
            &self.rests,
        );
        let layout = settle::layout_of(mesh, &runs, &rests);
        let price = of_problem(problem, &layout, &options.objective);
        Looked::Plan(Box::new(Candidate {
            bound: bound.min(price.under(&options.objective)),
            layout,
            price,
            why,
        }))
    }

    /// Solves the network of a mesh exactly, as far as tables and the budget allow.
    fn exactly(
        &self,
        space: &mut Workspace<'_>,
        domains: &[Domain],
        weights: Weights,
        deadline: &dyn Fn() -> bool,
    ) -> Exact {
        let (problem, options) = (self.problem, self.options);
        let network = space.network(domains);
        let classes = space.turned(domains);
        // A price of load or memory makes values of other plans incomparable.
        let comparable = weights == self.weights;
        let ceiling = if comparable {
            self.ceiling * (1.0 + 1e-9) + decisive(&weights)
        } else {
            f64::INFINITY
        };
        let scale = (self.ceiling).min(most(problem, options.sites, &options.objective));
        let solved = narrow::solve(
            &network,
            classes.as_deref(),
            options.table_cap,
            scale + decisive(&weights),
            ceiling,
            &mut space.eliminated,
            deadline,
        );
        // A solution that is neither proved nor better than what is known is one of those that were met.
        let better = |solution: &Solution| solution.value <= ceiling;
        let (found, unproved) = match solved.proved || solved.solution.iter().any(better) {
            true => (solved.solution, None),
            false => (None, solved.solution),
        };
        let found = found.filter(|solution| solution.value.is_finite());
        let runs = found.map(|solution| chosen(&self.model, domains, &solution.choice));
        let met = solved.met.into_iter().chain(unproved);
        let met = met.min_by(|a, b| a.value.total_cmp(&b.value));
        let met = met.filter(|met| met.value.is_finite()).map(|met| Met {
            runs: chosen(&self.model, domains, &met.choice),
            value: met.value,
        });
        let enough = solved.bound;
        // What decides between equals is in the bound, and must not be in a bound of prices.
        let mut bound = (solved.bound - decisive(&weights)).max(0.0);
        let near = solved.stop == Some(Stop::Near);
        let no_plan = (solved.proved && runs.is_none()).then(|| {
            match ceiling.is_finite() && solved.bound.is_finite() {
                true => Looked::Dearer(bound),
                false => Looked::Nothing,
            }
        });
        let no_plan = no_plan.or_else(|| near.then_some(Looked::Near(bound)));
        if solved.proved {
            bound = f64::INFINITY;
        }
        let why = solved.stop.map(|stop| match stop {
            Stop::TooLarge(entries) => format!("a table would have {entries:.1e} entries"),
            Stop::Budget => "too many operations".to_string(),
            Stop::Near => "what is left to gain is hardly anything".to_string(),
            Stop::Deadline => "the deadline has passed".to_string(),
        });
        if no_plan.is_none() {
            space.eliminated.forget();
        }
        Exact {
            runs,
            met,
            enough,
            bound,
            why,
            no_plan,
            largest_table: solved.largest,
        }
    }
}

/// The outcome of solving a mesh's network.
#[derive(Default)]
struct Exact {
    /// The runs of the best plan that was found.
    runs: Option<Vec<Option<Choice>>>,
    /// The best plan that was met where none was proved.
    met: Option<Met>,
    /// A price that no choice of the network is below.
    enough: f64,
    /// A lower bound on the price of all plans; infinite if the plan is proved to be the best.
    bound: f64,
    /// Why the plan is not proved to be the best.
    why: Option<String>,
    /// If the mesh has no plan that is cheaper than the best so far: what that says of it.
    no_plan: Option<Looked>,
    /// Entries of the largest table.
    largest_table: f64,
}

/// A plan as a choice of the network.
struct Met {
    runs: Vec<Option<Choice>>,
    /// The network's price of it.
    value: f64,
}

/// How a mesh is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Exactly if possible, else by descent with a bound.
    Exact,
    /// By a quick descent.
    Grown,
}

/// The most that the tie-breaks of a plan can add up to: load of all sites, everything touched often.
fn decisive(weights: &Weights) -> f64 {
    64.0 * (weights.load + weights.touched + weights.moves)
}

/// A price that no sensible plan is above: everything moved to everywhere a few times.
fn most(problem: &Problem, sites: u32, objective: &Objective) -> f64 {
    let floats = problem
        .tensors
        .iter()
        .map(|t| t.times * t.floats * (t.readers.len() + 1) as f64);
    let floats: f64 = floats.sum();
    match objective {
        Objective::Transfer => floats * f64::from(sites),
        Objective::Bytes => floats,
        Objective::Time(model) => {
            let arithmetic = problem
                .statements()
                .map(|(_, made)| model.compute.of_operations(&made.pace, made.work()));
            model.most(floats, arithmetic.sum(), problem.tensors.len(), sites)
        }
    }
}

/// The statement whose smallest footprint is the largest, its largest operand, and the bytes that it lacks: however the other
/// statements run, a site lacks at least these.
fn too_large(problem: &Problem, space: &Workspace<'_>, memory: f64) -> (TensorId, TensorId, f64) {
    let least = |at: usize| {
        let all = super::choice::choices(problem, at, space.cost_table.counts, true, f64::INFINITY);
        let touched = all.iter().map(|choice| choice.touched);
        touched.fold(f64::INFINITY, f64::min)
    };
    let statements = (0..problem.tensors.len()).map(|at| (at, least(at)));
    let finite = statements.filter(|(_, bytes)| bytes.is_finite());
    let (at, bytes) = finite.fold(
        (0, 0.0),
        |most, this| if this.1 > most.1 { this } else { most },
    );
    let reads = problem.tensors[at]
        .statement()
        .into_iter()
        .flat_map(|s| &s.reads);
    let operands = reads.map(|read| read.tensor).chain([at]);
    let bytes_of = |t: &usize| problem.tensors[*t].floats * problem.tensors[*t].width;
    let largest = operands.max_by(|a, b| bytes_of(a).total_cmp(&bytes_of(b)).then(b.cmp(a)));
    (
        TensorId(at as u32),
        TensorId(largest.unwrap_or(at) as u32),
        bytes - memory,
    )
}

fn chosen(model: &Model, domains: &[Domain], choice: &[usize]) -> Vec<Option<Choice>> {
    let runs = model.run.iter();
    runs.map(
        |variable| match (*variable).map(|v| (&domains[v], choice[v])) {
            Some((Domain::Runs(list, _), at)) => Some(list[at].clone()),
            _ => None,
        },
    )
    .collect()
}
