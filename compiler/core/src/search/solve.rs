//! The search itself: every mesh, each as exactly as its size allows, and the best plan of all.
//!
//! Meshes whose tables stay below the cap are solved exactly, while the operations granted last; the others by
//! descent, with a bound. All is counted, never timed; only the caller's deadline looks at a clock. Must not know
//! how a layout is carried out.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j], 16384 each, 5 sites, words: 2x2 134217728 (proved), 5 214748364.8 (proved)
//! ```

use super::assemble::{Allowed, Domain, Workspace};
use super::balance::Balance;
use super::choice::{Choice, Run};
use super::convert::{Roles, counts, padded};
use super::descent::descend;
use super::model::{Model, Variable};
use super::narrow;
use super::network::{Network, Stop};
use super::price::{Price, of_problem, padded_run};
use super::problem::{Kind, Problem};
use super::report::{MeshReport, Outcome, SearchReport};
use super::residency;
use super::tariff::{Objective, Tariff, Weights};
use crate::einsum::{Program, TensorId};
use crate::ia::layout::{Layout, StatementRole, TensorRole};
use ein_plan::Mesh;
use std::collections::{BTreeMap, HashMap};

/// What is searched for.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Number of sites, from 1; a plan may leave some idle.
    pub sites: u32,
    /// What a plan is to have little of.
    pub objective: Objective,
    /// κ: how many times its even share of the work the busiest site may have; 1.25 is usual.
    pub balance: f64,
    /// The most bytes of relations that a site may hold at one time.
    pub memory: Option<u64>,
    /// The most entries of a table of the exact search; 1 << 24 is usual.
    pub table_cap: usize,
    /// What is decided already.
    pub pinned: Pinned,
}

impl SearchOptions {
    /// The usual options.
    pub fn new(sites: u32, objective: Objective) -> SearchOptions {
        SearchOptions {
            sites,
            objective,
            balance: 1.25,
            memory: None,
            table_cap: 1 << 24,
            pinned: Pinned::default(),
        }
    }
}

/// Decisions that the search keeps to. Roles are for the pinned mesh's axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pinned {
    /// The only mesh to try.
    pub mesh: Option<Mesh>,
    /// How statements run; without a limit on their balance.
    pub statements: BTreeMap<TensorId, Vec<StatementRole>>,
    /// Where tensors rest; of a carried pair, the param's.
    pub rests: BTreeMap<TensorId, Vec<TensorRole>>,
}

/// A plan and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How everything runs and where it rests.
    pub layout: Layout,
    /// What that costs.
    pub price: Price,
    /// Whether no plan on any admissible mesh is cheaper (each tensor resting in one place).
    pub proved_optimal: bool,
    /// No such plan is below this, in the objective's unit.
    pub bound: f64,
    /// How it was found.
    pub report: SearchReport,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum NoLayout {
    /// No plan that was found fits a site's memory.
    Memory {
        /// The tensor that takes most where most is held.
        tensor: TensorId,
        /// The statement at which most is held.
        statement: TensorId,
        /// Bytes that are missing at the busiest site.
        shortfall: u64,
        /// What would fit.
        nearest: Nearest,
    },
    /// What is pinned cannot be kept; why.
    Pinned(String),
}

/// The nearest change with which a program fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// This number of sites (of the doublings of what there is).
    Sites(u32),
    /// No number of sites helps: these dimensions of the tensor would have to be smaller (all that it has, if none
    /// is named).
    Dimensions(Vec<u32>),
}

/// Operations granted to the exact search over all meshes.
const BUDGET: f64 = 4e9;

/// Meshes up to which all are solved exactly without being ranked first.
const FEW_MESHES: usize = 8;

/// Meshes that are solved exactly after ranking.
const BEST_MESHES: usize = 8;

/// Times that the price of load or of memory is raised before a mesh is given up.
const MOST_RAISES: usize = 10;

/// The most sites that are proposed where memory does not suffice.
const MOST_SITES: u32 = 4096;

/// The cheapest layout of a program.
pub fn layout(
    program: &Program,
    options: &SearchOptions,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let problem = Problem::new(program);
    let found = Search::new(&problem, options).and_then(|search| search.run(deadline));
    match found {
        Err(NoLayout::Memory {
            tensor,
            statement,
            shortfall,
            ..
        }) => Err(NoLayout::Memory {
            tensor,
            statement,
            shortfall,
            nearest: nearest(&problem, options, tensor, deadline),
        }),
        found => found,
    }
}

/// The least doubling of the sites with which a program fits.
fn nearest(
    problem: &Problem,
    options: &SearchOptions,
    tensor: TensorId,
    deadline: &dyn Fn() -> bool,
) -> Nearest {
    let mut options = SearchOptions {
        pinned: Pinned::default(),
        ..options.clone()
    };
    while options.sites < MOST_SITES && !deadline() {
        options.sites *= 2;
        // One mesh of each size answers the question: the one with the most even axes.
        options.pinned.mesh = super::mesh::meshes(options.sites, options.sites).pop();
        let found = Search::new(problem, &options).and_then(|search| search.run(deadline));
        if found.is_ok() {
            return Nearest::Sites(options.sites);
        }
    }
    let shape = &problem.tensors[tensor.0 as usize].shape;
    let longest = shape.iter().max().copied().unwrap_or(0);
    let numbered = (0u32..).zip(shape);
    Nearest::Dimensions(
        numbered
            .filter(|(_, n)| **n == longest)
            .map(|(d, _)| d)
            .collect(),
    )
}

/// A mesh's plan.
struct Candidate {
    layout: Layout,
    price: Price,
    bound: f64,
    /// Why it is not proved.
    why: Option<String>,
}

/// What looking at a mesh comes to.
enum Looked {
    /// A plan.
    Plan(Box<Candidate>),
    /// No plan on it is below this, which is dearer than the best so far.
    Dearer(f64),
    /// No plan that keeps the limits was found.
    Nothing,
}

impl Looked {
    fn plan(self) -> Option<Candidate> {
        match self {
            Looked::Plan(candidate) => Some(*candidate),
            _ => None,
        }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    options: &'a SearchOptions,
    model: Model,
    balance: Balance,
    runs: HashMap<usize, Run>,
    rests: HashMap<usize, Roles>,
    weights: Weights,
    /// The objective's price of the best plan so far.
    ceiling: f64,
    report: SearchReport,
    /// The plan that was furthest from fitting least: statement, tensor, bytes missing.
    misfit: Option<(TensorId, TensorId, f64)>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, options: &'a SearchOptions) -> Result<Search<'a>, NoLayout> {
        let pinned = &options.pinned;
        let sites = options.sites.max(1);
        if pinned.mesh.is_none() && !(pinned.statements.is_empty() && pinned.rests.is_empty()) {
            let why = "roles are pinned, but not the mesh that they speak of";
            return Err(NoLayout::Pinned(why.to_string()));
        }
        let mut balance = Balance::new(problem, sites, options.balance);
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
        let model = Model::new(problem);
        let objective = &options.objective;
        let numbers = |id: &TensorId| id.0 as usize;
        Ok(Search {
            problem,
            options,
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
            ceiling: f64::INFINITY,
            misfit: None,
        })
    }

    fn run(mut self, deadline: &dyn Fn() -> bool) -> Result<Found, NoLayout> {
        let mut admissible: Vec<Mesh> = vec![];
        for mesh in self.balance.meshes.clone() {
            match self.balance.blocked(self.problem, &mesh) {
                None => admissible.push(mesh),
                Some(at) => {
                    let name = &self.problem.tensors[at].name;
                    self.note(
                        &mesh,
                        Outcome::Skipped(format!("{name} cannot be balanced")),
                    );
                }
            }
        }
        let pinned = !(self.runs.is_empty() && self.rests.is_empty());
        // The seed is there whatever the deadline says, and makes prices comparable.
        let mut best: Option<Candidate> = None;
        let mut by_axes: Vec<&Mesh> = admissible.iter().collect();
        by_axes.sort_by_key(|mesh| mesh.axes.len());
        for mesh in by_axes {
            best = self.candidate(mesh, How::Grown, &|| false).plan();
            if best.is_some() || pinned {
                break;
            }
        }
        let mut meshes = admissible.clone();
        if let Some(seed) = &best {
            let objective = &self.options.objective;
            self.ceiling = seed.price.of(objective);
            self.weights = Weights::below(self.ceiling, objective);
        }
        let ranked = meshes.len() > FEW_MESHES && self.effort(&meshes) > BUDGET / 40.0;
        if ranked {
            meshes = self.ranked(meshes, &mut best, deadline);
        }
        let mut bound = f64::INFINITY;
        let mut proved = true;
        for (number, mesh) in meshes.iter().enumerate() {
            let how = if !ranked || number < BEST_MESHES {
                How::Exact
            } else {
                How::Grown
            };
            if self.options.memory.is_none() && number > 0 && how == How::Grown {
                let why = "other meshes looked better in a first descent";
                self.note(mesh, Outcome::Skipped(why.to_string()));
                (bound, proved) = (0.0, false);
                continue;
            }
            let looked = if deadline() {
                Looked::Nothing
            } else {
                self.candidate(mesh, how, deadline)
            };
            let candidate = match looked {
                Looked::Plan(candidate) => *candidate,
                Looked::Dearer(least) => {
                    bound = bound.min(least);
                    self.note(mesh, Outcome::Dearer { bound: least });
                    continue;
                }
                Looked::Nothing if deadline() => {
                    self.report.interrupted = true;
                    (bound, proved) = (0.0, false);
                    let why = "the deadline has passed";
                    self.note(mesh, Outcome::Skipped(why.to_string()));
                    continue;
                }
                Looked::Nothing => {
                    // With a limit on memory only what was tried is known not to fit.
                    proved &= self.options.memory.is_none();
                    let why = "no plan on it is admissible";
                    self.note(mesh, Outcome::Skipped(why.to_string()));
                    continue;
                }
            };
            let price = candidate.price.of(&self.options.objective);
            bound = bound.min(candidate.bound);
            proved &= candidate.why.is_none();
            let outcome = match &candidate.why {
                None => Outcome::Proved { price },
                Some(why) => Outcome::Improved {
                    price,
                    bound: candidate.bound,
                    why: why.clone(),
                },
            };
            self.note(mesh, outcome);
            self.keep(&mut best, candidate);
        }
        self.report.interrupted |= deadline();
        let Some(best) = best else {
            return Err(self.none());
        };
        let price = best.price.of(&self.options.objective);
        let bound = bound.min(price);
        self.report.gap = price - bound;
        Ok(Found {
            layout: best.layout,
            price: best.price,
            proved_optimal: proved,
            bound,
            report: self.report,
        })
    }

    fn none(&self) -> NoLayout {
        match self.misfit {
            Some((statement, tensor, missing)) => NoLayout::Memory {
                tensor,
                statement,
                shortfall: missing.ceil() as u64,
                nearest: Nearest::Dimensions(vec![]),
            },
            None => NoLayout::Pinned("what is pinned leaves no way to run the program".to_string()),
        }
    }

    fn note(&mut self, mesh: &Mesh, outcome: Outcome) {
        self.report.meshes.push(MeshReport {
            mesh: mesh.clone(),
            outcome,
        });
    }

    fn keep(&mut self, best: &mut Option<Candidate>, candidate: Candidate) {
        let objective = &self.options.objective;
        self.ceiling = self.ceiling.min(candidate.price.of(objective));
        let better = best
            .as_ref()
            .is_none_or(|best| candidate.price.compare(&best.price, objective).is_lt());
        if better {
            *best = Some(candidate);
        }
    }

    fn allowed(&self) -> Allowed<'_> {
        Allowed {
            limits: &self.balance.limits,
            memory: self.options.memory.map(|bytes| bytes as f64),
            runs: &self.runs,
            rests: &self.rests,
        }
    }

    /// Operations that solving all these meshes exactly would take, if nothing were reused.
    fn effort(&self, meshes: &[Mesh]) -> f64 {
        let mut sum = 0.0;
        for mesh in meshes {
            let tariff = Tariff::new(
                self.problem,
                counts(mesh),
                &self.options.objective,
                self.weights,
            );
            let mut space = Workspace::new(self.problem, &self.model, tariff);
            if let Ok(domains) = space.domains(&self.allowed()) {
                let network = Network {
                    domains: domains.iter().map(Domain::len).collect(),
                    ..Network::default()
                };
                let (_, effort) = network.order_of(&self.model.scopes());
                sum += effort.operations;
            }
            if sum > BUDGET {
                break;
            }
        }
        sum
    }

    /// Meshes by the price of a first descent.
    fn ranked(
        &mut self,
        meshes: Vec<Mesh>,
        best: &mut Option<Candidate>,
        deadline: &dyn Fn() -> bool,
    ) -> Vec<Mesh> {
        let objective = self.options.objective.clone();
        let mut prices: Vec<(f64, usize)> = vec![];
        for (number, mesh) in meshes.iter().enumerate() {
            let late = deadline() || self.report.operations > BUDGET / 2.0;
            let candidate = if late {
                None
            } else {
                self.candidate(mesh, How::Grown, deadline).plan()
            };
            let price = candidate.as_ref().map(|c| c.price.of(&objective));
            prices.push((price.unwrap_or(f64::INFINITY), number));
            if let Some(candidate) = candidate {
                self.keep(best, candidate);
            }
        }
        prices.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        prices
            .iter()
            .map(|(_, number)| meshes[*number].clone())
            .collect()
    }

    /// The best plan on a mesh that keeps the whole program's balance and the memory; none if none was found.
    fn candidate(&mut self, mesh: &Mesh, how: How, deadline: &dyn Fn() -> bool) -> Looked {
        if mesh.sites() <= 1 && self.runs.is_empty() {
            let layout = one_site(self.problem);
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
        let mut first_bound: Option<f64> = None;
        for _ in 0..MOST_RAISES {
            let mut candidate = match self.solved(mesh, how, weights, deadline) {
                Looked::Plan(candidate) => *candidate,
                other => return other,
            };
            let price = candidate.price.of(&self.options.objective);
            let relaxed = *first_bound.get_or_insert(candidate.bound);
            candidate.bound = candidate.bound.min(relaxed).min(price);
            let scale = price.max(self.weights.quantum * 1e6);
            if self.whole(&candidate.price) > self.balance.whole && self.runs.is_empty() {
                weights.load = (weights.load * 4.0).max(scale * 0.05);
            } else if let Some((statement, tensor, missing)) = self.fits(&candidate.layout) {
                if self.misfit.is_none_or(|(.., least)| missing < least) {
                    self.misfit = Some((statement, tensor, missing));
                }
                let limit = self.options.memory.unwrap_or(u64::MAX) as f64;
                weights.resident = (weights.resident * 4.0).max(scale * 0.05 / limit.max(1.0));
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
    fn whole(&self, price: &Price) -> f64 {
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
        (most.bytes > memory).then(|| (most.statement, most.largest, most.bytes - memory))
    }

    fn solved(
        &mut self,
        mesh: &Mesh,
        how: How,
        weights: Weights,
        deadline: &dyn Fn() -> bool,
    ) -> Looked {
        let (problem, options) = (self.problem, self.options);
        let tariff = Tariff::new(problem, counts(mesh), &options.objective, weights);
        let mut space = Workspace::new(problem, &self.model, tariff);
        let allowed = Allowed {
            limits: &self.balance.limits,
            memory: options.memory.map(|bytes| bytes as f64),
            runs: &self.runs,
            rests: &self.rests,
        };
        let domains = match space.domains(&allowed) {
            Ok(domains) => domains,
            Err(variable) => {
                let (Variable::Run(at) | Variable::Rest(at) | Variable::Common(at)) = variable;
                if let Some(memory) = options.memory {
                    let (_, tensor, missing) = too_large(problem, &space, at, memory as f64);
                    if self.misfit.is_none_or(|(.., least)| missing < least) && missing > 0.0 {
                        self.misfit = Some((TensorId(at as u32), tensor, missing));
                    }
                }
                return Looked::Nothing;
            }
        };
        let mut bound = 0.0;
        let mut why = None;
        let mut runs: Option<Vec<Option<Choice>>> = None;
        space.eliminated.budget = (BUDGET - self.report.operations).max(BUDGET / 100.0);
        if how == How::Exact {
            let network = space.network(&domains);
            // A price of load or memory makes values of other plans incomparable.
            let comparable = weights == self.weights;
            let ceiling = if comparable {
                self.ceiling * (1.0 + 1e-9) + decisive(&weights)
            } else {
                f64::INFINITY
            };
            let scale = self
                .ceiling
                .min(most(problem, options.sites, &options.objective));
            let solved = narrow::solve(
                &network,
                options.table_cap,
                scale + decisive(&weights),
                ceiling,
                &mut space.eliminated,
                deadline,
            );
            self.report.largest_table = self.report.largest_table.max(solved.largest);
            let found = solved
                .solution
                .filter(|solution| solution.value.is_finite());
            runs = found.map(|solution| chosen(&self.model, &domains, &solution.choice));
            // What decides between equals is in the bound, and must not be in a bound of prices.
            bound = (solved.bound - decisive(&weights)).max(0.0);
            if solved.proved && runs.is_none() {
                self.report.operations += space.eliminated.operations;
                return if ceiling.is_finite() && solved.bound.is_finite() {
                    Looked::Dearer(bound)
                } else {
                    Looked::Nothing
                };
            }
            if solved.proved {
                bound = f64::INFINITY;
            }
            why = solved.stop.map(|stop| match stop {
                Stop::TooLarge(entries) => format!("a table would have {entries:.1e} entries"),
                Stop::Budget => "too many operations".to_string(),
                Stop::Deadline => "the deadline has passed".to_string(),
            });
            space.eliminated.forget();
        }
        let runs = match runs {
            Some(runs) => runs,
            None => {
                space.eliminated.budget = f64::INFINITY;
                let thorough = how == How::Exact;
                let cap = options.table_cap.min(1 << 22);
                let scale = self
                    .ceiling
                    .min(most(problem, options.sites, &options.objective))
                    + decisive(&weights);
                let descended = descend(
                    &mut space, &domains, &allowed, cap, scale, thorough, deadline,
                );
                let Some(found) = descended else {
                    return Looked::Nothing;
                };
                why.get_or_insert("found by descent".to_string());
                found.runs
            }
        };
        self.report.operations += space.eliminated.operations;
        self.report.reused += space.eliminated.reused;
        let rests = space.settle(&runs, &self.rests);
        let layout = layout_of(problem, mesh, &runs, &rests);
        let price = of_problem(problem, &layout, &options.objective);
        Looked::Plan(Box::new(Candidate {
            bound: bound.min(price.of(&options.objective)),
            layout,
            price,
            why,
        }))
    }
}

/// How a mesh is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
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
        .map(|t| t.floats * (t.readers.len() + 1) as f64);
    let floats: f64 = floats.sum();
    match objective {
        Objective::Transfer => floats * f64::from(sites),
        Objective::Bytes => floats,
        Objective::Time(model) => {
            floats * 8.0 * (model.beta + model.delta)
                + problem.total * model.gamma
                + problem.tensors.len() as f64 * (model.alpha + model.epsilon) * f64::from(sites)
        }
    }
}

/// The smallest footprint of a statement for which there is no room: bytes, its largest operand, bytes missing.
fn too_large(
    problem: &Problem,
    space: &Workspace<'_>,
    at: usize,
    memory: f64,
) -> (f64, TensorId, f64) {
    let all = super::choice::choices(problem, at, space.tariff.counts, true, f64::INFINITY);
    let least = all
        .iter()
        .map(|choice| choice.touched)
        .fold(f64::INFINITY, f64::min);
    let reads = problem.tensors[at]
        .statement()
        .into_iter()
        .flat_map(|s| &s.reads);
    let operands = reads.map(|read| read.tensor).chain([at]);
    let bytes = |t: &usize| problem.tensors[*t].floats * problem.tensors[*t].width;
    let largest = operands.max_by(|a, b| bytes(a).total_cmp(&bytes(b)).then(b.cmp(a)));
    (
        least,
        TensorId(largest.unwrap_or(at) as u32),
        least - memory,
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

fn layout_of(problem: &Problem, mesh: &Mesh, runs: &[Option<Choice>], rests: &[Roles]) -> Layout {
    let axes = mesh.axes.len();
    let statements = runs.iter().map(|run| match run {
        Some(choice) => choice.run[..axes].to_vec(),
        None => vec![],
    });
    let rests = rests
        .iter()
        .zip(&problem.tensors)
        .map(|(rest, _)| rest[..axes].to_vec());
    Layout {
        mesh: mesh.clone(),
        statements: statements.collect(),
        rests: rests.collect(),
    }
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
