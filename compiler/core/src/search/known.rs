//! Prices and tables that searches of like programs share.
//!
//! Programs that compute the same in other ways agree in most of their statements, and so in most tables of their networks.
//! Windows, statements, lists of choices and tables are numbered here by what they are, so that a number means the same in
//! every program. Must not know how networks are solved.
//!
//! ```text
//! program 1, mesh 2x2: 41 tables made;  program 2, mesh 2x2: 38 of them found, 3 made
//! ```

use super::choice::{Run, Runs};
use super::cost_table::{Conversions, Objective, Weights};
use super::disabled_moves::DisabledMoves;
use super::machine::Levels;
use super::model::Model;
use super::network::{Lasting, Prices};
use super::price::padded_run;
use super::problem::Problem;
use super::transfer::{Counts, ReadWindows, Roles};
use crate::einsum::Program;
use crate::ia::layout::Layout;
use ein_plan::Mesh;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Most prices that are kept from search to search; the tables used longest ago go first.
const MOST_PRICES: usize = 1 << 24;

/// A program differs from another one in few statements if at most one in so many is not in both.
const FEW: usize = 8;

/// The circumstances under which tables hold: a mesh, what is minimised, and the moves that there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Circumstances {
    /// The mesh.
    pub counts: Counts,
    /// How it lies over nodes, where that makes a difference.
    pub levels: Option<Levels>,
    /// The quantity that is minimised.
    pub objective: Objective,
    /// The terms that decide between equals.
    pub weights: Weights,
    /// The moves that disabled rules take away.
    pub disabled_moves: DisabledMoves,
}

/// Lists and tables on one mesh, by what they are of.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) runs: FxHashMap<(u64, Vec<Run>), u64>,
    pub(super) places: FxHashMap<Vec<Roles>, u64>,
    /// Lists that have numbers.
    pub(super) lists: u64,
    pub(super) prices: FxHashMap<Vec<u64>, Prices>,
    pub(super) resting: FxHashMap<(Vec<u64>, u8), Rc<Vec<Roles>>>,
    pub(super) conversions: Conversions,
    pub(super) lasting: Lasting,
}

impl Tables {
    /// How many prices they have in all.
    fn count(&self) -> usize {
        let tables = self.prices.values().chain(self.lasting.classes.values());
        let tables = tables.map(|prices| prices.values.len());
        tables.sum::<usize>() + self.conversions.count()
    }
}

/// The numbers and tables of earlier searches.
#[derive(Debug, Default)]
pub struct Known {
    windows: RefCell<Vec<ReadWindows>>,
    signatures: RefCell<HashMap<Vec<u64>, u64>>,
    /// Those used last at the end.
    tables: RefCell<Vec<Held>>,
    /// The best plan that was found quickly.
    plan: RefCell<Option<Plan>>,
}

/// How the statements of a program run.
#[derive(Debug)]
struct Plan {
    mesh: Mesh,
    /// By name and number of a statement.
    runs: HashMap<(String, u64), Run>,
    /// The price in the objective's unit.
    price: f64,
}

/// Tables, and how many prices they have.
#[derive(Debug)]
struct Held {
    circumstances: Circumstances,
    tables: Tables,
    count: usize,
}

impl Known {
    /// The problem of a program, its windows numbered as in the programs before.
    pub fn problem(&self, program: &Program) -> Problem {
        let problem = Problem::with_windows(program, self.windows.take());
        self.windows.replace(problem.windows.clone());
        problem
    }

    /// The variables of a problem, its statements numbered as in the programs before.
    pub fn model(&self, problem: &Problem) -> Model {
        Model::with_signatures(problem, &mut self.signatures.borrow_mut())
    }

    /// Returns how statements run in the best plan for this mesh, if it is of a program that differs in few of them.
    pub(super) fn runs(&self, problem: &Problem, model: &Model, mesh: &Mesh) -> Option<Runs> {
        let plan = self.plan.borrow();
        let plan = plan.as_ref().filter(|plan| plan.mesh == *mesh)?;
        let run = |at: usize| {
            let name = problem.tensors[at].name.clone();
            plan.runs.get(&(name, model.signatures[at])).copied()
        };
        let runs: Runs = (0..problem.tensors.len()).map(run).collect();
        let all = problem.statements().count().max(plan.runs.len());
        let known = runs.iter().flatten().count();
        ((all - known) * FEW <= all).then_some(runs)
    }

    /// Keeps a plan, unless a cheaper one of a program that differs in few statements is kept.
    pub(super) fn keep_plan(&self, problem: &Problem, model: &Model, layout: &Layout, price: f64) {
        let alike = self.runs(problem, model, &layout.mesh).is_some();
        let of = |(at, _): (usize, _)| {
            let run = padded_run(&layout.statements[at]);
            (
                (problem.tensors[at].name.clone(), model.signatures[at]),
                run,
            )
        };
        let runs: HashMap<(String, u64), Run> = problem.statements().map(of).collect();
        let mut plan = self.plan.borrow_mut();
        let better = plan.as_ref().is_none_or(|plan| match alike {
            true => price < plan.price,
            false => runs.len() >= plan.runs.len(),
        });
        if better {
            *plan = Some(Plan {
                mesh: layout.mesh.clone(),
                runs,
                price,
            });
        }
    }

    /// Takes out the tables that hold under these circumstances.
    pub(super) fn take(&self, circumstances: &Circumstances) -> Tables {
        let mut all = self.tables.borrow_mut();
        let place = (all.iter()).position(|held| held.circumstances == *circumstances);
        place.map_or_else(Tables::default, |at| all.remove(at).tables)
    }

    /// Puts tables back for later searches.
    pub(super) fn keep(&self, circumstances: Circumstances, tables: Tables) {
        let mut all = self.tables.borrow_mut();
        // A search inside another one may have made tables of its own.
        let other = (all.iter()).position(|held| held.circumstances == circumstances);
        let other = other.map(|at| all.remove(at));
        let count = tables.count();
        let other = other.filter(|other| other.count > count);
        all.push(other.unwrap_or(Held {
            circumstances,
            tables,
            count,
        }));
        let mut prices: usize = all.iter().map(|held| held.count).sum();
        while prices > MOST_PRICES && all.len() > 1 {
            prices -= all.remove(0).count;
        }
    }
}
