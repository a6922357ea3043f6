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
use super::options::{Found, Nearest, NoLayout, Pinned, SearchOptions};
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
    let problem = Problem::new(program);
    let found = balanced(&problem, options, deadline);
    busy(&problem, options, found, deadline)
}

/// Searches with the least balance factor, from the one asked for, at which there is a plan at all.
fn balanced(
    problem: &Problem,
    options: &SearchOptions,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let mut options = options.clone();
    let pinned = options.pinned != Pinned::default();
    loop {
        match search(problem, &options, deadline) {
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
    problem: &Problem,
    options: &SearchOptions,
    found: Result<Found, NoLayout>,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let found = found?;
    let used = found.layout.mesh.sites();
    let total = options.objective == Objective::Transfer;
    if !total || used >= options.sites || options.pinned.mesh.is_some() || options.memory.is_some()
    {
        return Ok(found);
    }
    let all = SearchOptions {
        all_sites: true,
        ..options.clone()
    };
    let Ok(full) = search(problem, &all, deadline) else {
        return Ok(found);
    };
    let each = |found: &Found, sites: u32| found.price.under(&options.objective) / f64::from(sites);
    let pays = each(&found, used) < each(&full, options.sites) * (1.0 - 1e-9);
    if pays || full.report.kappa > found.report.kappa {
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

fn search(
    problem: &Problem,
    options: &SearchOptions,
    deadline: &dyn Fn() -> bool,
) -> Result<Found, NoLayout> {
    let loose = Search::new(problem, options, false)?.run(deadline);
    match loose {
        Err(End::TooLoose) => {
            let tight = Search::new(problem, options, true)?.run(deadline);
            tight.map_err(|end| match end {
                End::None(why) => why,
                End::TooLoose => NoLayout::Pinned("no plan is balanced".to_string()),
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
        if search(problem, &options, deadline).is_ok() {
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

impl Search<'_> {
    fn run(mut self, deadline: &dyn Fn() -> bool) -> Result<Found, End> {
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
        // Even axes move least as a rule, so that the later meshes only have to be shown to be dearer.
        admissible.sort_by_key(|mesh| mesh.axes.iter().max().copied());
        let mut best = self.seed(&admissible)?;
        let mut bound = f64::INFINITY;
        let mut proved = true;
        for mesh in &admissible {
            if self.report.operations > BUDGET {
                let why = "the operations granted are used up";
                self.note(mesh, Outcome::Skipped(why.to_string()));
                (bound, proved) = (0.0, false);
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
                    let why = "no plan on it keeps the limits";
                    self.note(mesh, Outcome::Inadmissible(why.to_string()));
                    continue;
                }
            };
            let price = candidate.price.under(&self.options.objective);
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
            return Err(End::None(self.none()));
        };
        let price = best.price.under(&self.options.objective);
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

    /// Looks for a first plan, whatever the deadline says. Its price is the ceiling of all others and makes prices comparable.
    fn seed(&mut self, admissible: &[Mesh]) -> Result<Option<Candidate>, End> {
        let pinned = !(self.runs.is_empty() && self.rests.is_empty());
        let mut seed = None;
        for mesh in admissible {
            seed = self.candidate(mesh, How::Grown, &|| false).plan();
            if self.too_loose {
                return Err(End::TooLoose);
            }
            if seed.is_some() || pinned {
                break;
            }
        }
        if let Some(seed) = &seed {
            let objective = &self.options.objective;
            self.ceiling = seed.price.under(objective);
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

    fn keep(&mut self, best: &mut Option<Candidate>, candidate: Candidate) {
        let objective = &self.options.objective;
        self.ceiling = self.ceiling.min(candidate.price.under(objective));
        let better = best
            .as_ref()
            .is_none_or(|best| candidate.price.compare(&best.price, objective).is_lt());
        if better {
            *best = Some(candidate);
        }
    }
}
