//! The search itself: every mesh, each as exactly as its size allows, and the best plan of all.
//!
//! A plan found by a quick descent is there whatever happens; then each mesh is solved, or shown to be dearer than the
//! best so far. All is counted, never timed; only the caller's deadline looks at a clock. Must not know how a layout is carried out.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j], 16384 each, 5 sites, words: 2x2 134217728 (proved), 5 214748364.8 (proved)
//! ```

use super::cost_table::{Objective, Weights};
use super::explore::{BUDGET, Candidate, How, Looked, Search};
use super::known::Known;
use super::options::{Found, Nearest, NoLayout, Pinned, SearchOptions};
use super::price::of_problem;
use super::problem::Problem;
use super::report::{MeshReport, Outcome, SearchReport};
use crate::einsum::{Program, TensorId};
use ein_plan::Mesh;

/// A balance factor beyond which there is no point in allowing more.
const MOST_BALANCE: f64 = 1e6;

/// The most sites that are proposed where memory does not suffice.
const MOST_SITES: u32 = 4096;

/// The cheapest layout of a program.
pub fn layout(
    program: &Program,
    options: &SearchOptions,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    layout_knowing(program, options, &Known::default(), deadline)
}

/// [`layout`], with the prices and tables of searches of like programs under the same options.
pub fn layout_knowing(
    program: &Program,
    options: &SearchOptions,
    known: &Known,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let problem = &known.problem(program);
    let of = Asked { problem, known };
    let found = balanced(of, options, deadline)?;
    busy(of, options, found, deadline)
}

/// A problem, and what is known of others like it.
#[derive(Clone, Copy)]
struct Asked<'a> {
    problem: &'a Problem,
    known: &'a Known,
}

/// The best plan, and the best of those on all sites, if it is known.
struct Best {
    found: Found,
    full: Option<Found>,
    /// True if the limits of small statements were tighter than those of the whole.
    tight: bool,
}

/// Searches with the least balance factor, from the one asked for, at which there is a plan at all.
fn balanced(
    of: Asked<'_>,
    options: &SearchOptions,
    deadline: &dyn Fn() -> bool,
) -> Result<Best, NoLayout> {
    let mut options = options.clone();
    let pinned = options.pinned != Pinned::default();
    loop {
        match search(of, &options, None, deadline) {
            Err(NoLayout::Pinned(_)) if !pinned && options.balance < MOST_BALANCE => {
                options.balance *= 1.25;
            }
            found => return found,
        }
    }
}

/// Returns the result, unless it leaves sites idle for nothing: in total fewer sites move less simply because there are
/// fewer, so they are taken only where each of them moves less too.
fn busy(
    of: Asked<'_>,
    options: &SearchOptions,
    Best { found, full, tight }: Best,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let used = found.layout.mesh.sites();
    let total = options.objective == Objective::Transfer;
    if !total || used >= options.sites || options.pinned.mesh.is_some() || options.memory.is_some()
    {
        return Ok(found);
    }
    let all = SearchOptions {
        all_sites: true,
        seed: None,
        ceiling: options.busy,
        ..options.clone()
    };
    let each = |price: f64, sites: u32| price / f64::from(sites);
    let mine = each(found.price.under(&options.objective), used);
    let pays = |full: f64| mine < each(full.min(options.busy), options.sites) * (1.0 - 1e-9);
    let full = match full {
        Some(full) if !tight => full,
        _ if !pays(options.busy) => return Err(NoLayout::Dearer),
        // Plans on all sites alone may keep the looser limits.
        full => match search(of, &all, full, deadline) {
            Ok(best) => best.found,
            Err(_) => return Ok(found),
        },
    };
    if pays(full.price.under(&options.objective)) || full.report.kappa > found.report.kappa {
        return Ok(found);
    }
    Ok(Found {
        report: SearchReport {
            gap: full.report.gap,
            ..found.report
        },
        ..full
    })
}

/// The best plan. `tightly`: that of tight limits, if it is known.
fn search(
    Asked { problem, known }: Asked<'_>,
    options: &SearchOptions,
    tightly: Option<Found>,
    deadline: &dyn Fn() -> bool,
) -> Result<Best, NoLayout> {
    let loose = match options.tight {
        true => Err(End::TooLoose),
        false => Search::new(problem, options, known, false)?.run(deadline),
    };
    match loose {
        Err(End::TooLoose) => {
            if let Some(found) = tightly {
                return Ok(Best {
                    found,
                    full: None,
                    tight: true,
                });
            }
            let mut tight = Search::new(problem, options, known, true)?;
            tight.report.tight = true;
            let tight = tight.run(deadline);
            let best = tight.map_err(|end| match end {
                End::None(why) => why,
                End::TooLoose => NoLayout::Pinned("no plan is balanced".to_string()),
            })?;
            Ok(Best {
                tight: true,
                ..best
            })
        }
        Err(End::None(why)) => Err(why),
        Ok(found) => Ok(found),
    }
}

/// Why a search ends without a plan.
enum End {
    /// There is none.
    None(NoLayout),
    /// Small statements together break the balance of the whole: their limits have to be tighter.
    TooLoose,
}

/// Returns advice where no layout fits in memory, most of all for `tensor`: the least doubling of the sites that helps, if there is one.
pub fn nearest(
    program: &Program,
    options: &SearchOptions,
    tensor: TensorId,
    deadline: &dyn Fn() -> bool,
) -> Nearest {
    let problem = &Problem::new(program);
    let mut options = SearchOptions {
        pinned: Pinned::default(),
        ..options.clone()
    };
    while options.sites < MOST_SITES {
        if deadline() {
            return Nearest::Unknown;
        }
        options.sites *= 2;
        // One mesh of each size answers the question: the one with the most even axes.
        options.pinned.mesh = super::mesh::meshes(options.sites, options.sites).pop();
        let known = &Known::default();
        if search(Asked { problem, known }, &options, None, deadline).is_ok() {
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

/// The best plan so far, of all meshes or of some, and what is known of the others.
struct Running {
    best: Option<Candidate>,
    bound: f64,
    proved: bool,
    /// True if a mesh was not looked at, or only with a ceiling below the best plan.
    missing: bool,
}

impl Running {
    fn new(best: Option<Candidate>) -> Running {
        Running {
            best,
            bound: f64::INFINITY,
            proved: true,
            missing: false,
        }
    }

    fn keep(&mut self, candidate: &Candidate, objective: &Objective) {
        self.bound = self.bound.min(candidate.bound);
        self.proved &= candidate.why.is_none();
        let better = self
            .best
            .as_ref()
            .is_none_or(|best| candidate.price.compare(&best.price, objective).is_lt());
        if better {
            self.best = Some(candidate.clone());
        }
    }

    /// No plan on a mesh is below `least`, which is above `ceiling`.
    fn dearer(&mut self, least: f64, ceiling: f64, objective: &Objective) {
        self.bound = self.bound.min(least);
        let best = self.best.as_ref();
        let above = best.is_some_and(|best| best.price.under(objective) <= ceiling * (1.0 + 1e-9));
        self.missing |= !above;
    }

    /// No plan on a mesh is below `least`, which is hardly below the best plan.
    fn near(&mut self, least: f64) {
        (self.bound, self.proved) = (self.bound.min(least), false);
    }

    /// A mesh was not looked at.
    fn skip(&mut self) {
        (self.bound, self.proved, self.missing) = (0.0, false, true);
    }

    fn found(self, objective: &Objective, report: &SearchReport) -> Option<Found> {
        let best = self.best?;
        let price = best.price.under(objective);
        let mut bound = self.bound.min(price);
        // Whole floats move: a plan that is less than one above what none is below is the best.
        let whole = matches!(objective, Objective::Transfer) && price - bound < 1.0 - 1e-3;
        if whole {
            bound = price;
        }
        Some(Found {
            layout: best.layout,
            price: best.price,
            proved_optimal: self.proved || whole,
            bound,
            report: SearchReport {
                gap: price - bound,
                ..report.clone()
            },
        })
    }
}

impl Search<'_> {
    fn run(mut self, deadline: &dyn Fn() -> bool) -> Result<Best, End> {
        let objective = self.options.objective;
        let admissible = self.admissible();
        let seed = self.seed(&admissible)?;
        let is_full = |mesh: &Mesh| mesh.sites() == self.options.sites;
        let full_seed = seed.clone().filter(|seed| is_full(&seed.layout.mesh));
        let mut all = Running::new(seed);
        let quick = self.options.quick && all.best.is_some();
        let mut full = Running::new(full_seed);
        self.report.quick = quick;
        if quick {
            all.skip();
            full.skip();
        }
        for mesh in admissible.iter().filter(|_| !quick) {
            let mut running = vec![&mut all];
            if mesh.sites() == self.options.sites {
                running.push(&mut full);
            }
            if self.report.operations > BUDGET {
                let why = "the operations granted are used up";
                self.note(mesh, Outcome::Skipped(why.to_string()));
                running.into_iter().for_each(Running::skip);
                continue;
            }
            let looked = if deadline() {
                Looked::Nothing
            } else {
                self.candidate(mesh, How::Exact, deadline)
            };
            if self.too_loose {
                return Err(End::TooLoose);
            }
            match looked {
                Looked::Plan(candidate) => {
                    let price = candidate.price.under(&objective);
                    let outcome = match &candidate.why {
                        None => Outcome::Proved { price },
                        Some(why) => Outcome::Improved {
                            price,
                            bound: candidate.bound,
                            why: why.clone(),
                        },
                    };
                    self.note(mesh, outcome);
                    self.ceiling = self.ceiling.min(price);
                    running
                        .into_iter()
                        .for_each(|r| r.keep(&candidate, &objective));
                }
                Looked::Dearer(bound) => {
                    self.note(mesh, Outcome::Dearer { bound });
                    running
                        .into_iter()
                        .for_each(|r| r.dearer(bound, self.ceiling, &objective));
                }
                Looked::Near(bound) => {
                    self.note(mesh, Outcome::Near { bound });
                    running.into_iter().for_each(|r| r.near(bound));
                }
                Looked::Nothing if deadline() => {
                    self.report.interrupted = true;
                    running.into_iter().for_each(Running::skip);
                    let why = "the deadline has passed";
                    self.note(mesh, Outcome::Skipped(why.to_string()));
                }
                Looked::Nothing => {
                    // With a limit on memory only what was tried is known not to fit.
                    let sure = self.options.memory.is_none();
                    running.into_iter().for_each(|r| r.proved &= sure);
                    let why = "no plan on it keeps the limits";
                    self.note(mesh, Outcome::Inadmissible(why.to_string()));
                }
            }
        }
        self.report.interrupted |= deadline();
        let ceiling = self.options.ceiling * (1.0 + 1e-9);
        let dearer = all.missing && ceiling.is_finite();
        let found = all.found(&objective, &self.report);
        let found = found.filter(|found| !dearer || found.price.under(&objective) <= ceiling);
        let Some(found) = found else {
            return Err(End::None(match dearer {
                true => NoLayout::Dearer,
                false => self.none(),
            }));
        };
        let full = match full.missing {
            true => None,
            false => full.found(&objective, &self.report),
        };
        Ok(Best {
            found,
            full,
            tight: false,
        })
    }

    /// The meshes that leave every statement balanced. Even axes move least as a rule, so they come first: the later meshes only
    /// have to be shown to be dearer.
    fn admissible(&mut self) -> Vec<Mesh> {
        let mut admissible: Vec<Mesh> = vec![];
        for mesh in self.balance.meshes.clone() {
            match self.balance.blocked(self.problem, &mesh) {
                None => admissible.push(mesh),
                Some(at) => {
                    let name = &self.problem.tensors[at].name;
                    self.note(
                        &mesh,
                        Outcome::Inadmissible(format!("{name} cannot be balanced")),
                    );
                }
            }
        }
        admissible.sort_by_key(|mesh| mesh.axes.iter().max().copied());
        admissible
    }

    /// Looks for a first plan, whatever the deadline says, unless a ceiling is given. Its price is the ceiling of all others and
    /// makes prices comparable.
    fn seed(&mut self, admissible: &[Mesh]) -> Result<Option<Candidate>, End> {
        let objective = &self.options.objective;
        let quick = self.options.quick;
        if self.ceiling.is_finite() && self.options.memory.is_none() && !quick {
            self.weights = Weights::below(self.ceiling, objective);
            return Ok(None);
        }
        let pinned = !(self.runs.is_empty() && self.rests.is_empty());
        let mut seed = self.options.seed.as_ref().map(|layout| Candidate {
            layout: layout.clone(),
            price: of_problem(self.problem, layout, objective),
            bound: 0.0,
            why: Some("found by descent".to_string()),
        });
        for mesh in admissible {
            if seed.is_some() {
                break;
            }
            seed = self.candidate(mesh, How::Grown, &|| false).plan();
            if self.too_loose {
                return Err(End::TooLoose);
            }
            if pinned {
                break;
            }
        }
        if let Some(seed) = &seed {
            if quick {
                let price = seed.price.under(objective);
                let (problem, model) = (self.problem, &self.model);
                (self.known).keep_plan(problem, model, &seed.layout, price);
            }
            self.ceiling = self.ceiling.min(seed.price.under(objective));
            self.weights = Weights::below(self.ceiling, objective);
        }
        Ok(seed)
    }

    fn none(&self) -> NoLayout {
        match self.misfit {
            Some((statement, tensor, missing)) => NoLayout::Memory {
                tensor,
                statement,
                shortfall: missing.ceil() as u64,
            },
            None => {
                NoLayout::Pinned("the pinned decisions leave no way to run the program".to_string())
            }
        }
    }

    fn note(&mut self, mesh: &Mesh, outcome: Outcome) {
        self.report.meshes.push(MeshReport {
            mesh: mesh.clone(),
            outcome,
        });
    }
}
