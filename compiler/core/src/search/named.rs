//! Plans that have names: the papers' products, data and model parallelism, one site.
//!
//! They are for comparison, and priced like any other layout. A class is everything that one index ties together:
//! the dimensions that it reads by its bare name, the indices of their other readers, and so on. Must not know the
//! search.
//!
//! ```text
//! BMM on 10: broadcast A, cut i    CMM on 10: cut k, add up    RMM on 5x5: A copied along j, B along i
//! ```

use super::choice::Run;
use super::cost_table::{CostTable, Objective, Weights};
use super::mesh::AXES;
use super::model::Model;
use super::price::{LayoutCost, of_problem};
use super::problem::{Problem, Statement};
use super::settle::settle;
use super::transfer::counts;
use crate::einsum::{Definition, Program, Role};
use crate::ia::layout::{Layout, StatementRole, TensorRole};
use ein_plan::{IndexId, Mesh};
use std::collections::BTreeMap;

/// A plan with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The name of the strategy.
    pub name: &'static str,
    /// The plan. Its mesh may have more coordinates than there are sites: then several are folded onto one, as the
    /// thesis' replication-based product does, and the plan is for its price only.
    pub layout: Layout,
    /// The price of its layout.
    pub price: LayoutCost,
}

/// The named plans that make sense for a program, in a fixed order. The products' are there if the program has one
/// statement, a reduction of a product of two operands.
pub fn named(program: &Program, sites: u32, objective: &Objective) -> Vec<Named> {
    let problem = Problem::new(program);
    let sites = sites.max(1);
    let mut plans: Vec<(&'static str, Layout)> =
        vec![("one site", super::settle::one_site(&problem))];
    let classes = Classes::new(&problem);
    if sites > 1 {
        if let Some(batch) = classes.batch(program, &problem) {
            let layout = cut_everywhere(&problem, sites, objective, &classes, &[batch], true);
            plans.push(("data parallel", layout));
            let outer = classes.outer(program, &problem, batch);
            if !outer.is_empty() {
                let layout = cut_everywhere(&problem, sites, objective, &classes, &outer, false);
                plans.push(("model parallel", layout));
            }
        }
        products(&problem, sites, objective, &mut plans);
    }
    plans
        .into_iter()
        .map(|(name, layout)| Named {
            name,
            price: of_problem(&problem, &layout, objective),
            layout,
        })
        .collect()
}

/// The thesis' products (section 3.3.2) of the only statement of a program.
fn products(
    problem: &Problem,
    sites: u32,
    objective: &Objective,
    plans: &mut Vec<(&'static str, Layout)>,
) {
    let mut statements = problem.statements();
    let (Some((at, statement)), None) = (statements.next(), statements.next()) else {
        return;
    };
    let [left, right] = statement.reads.as_slice() else {
        return;
    };
    let indices = || 0..statement.extents.len();
    let longest = |list: &mut dyn Iterator<Item = usize>| {
        list.max_by_key(|index| (statement.extents[*index], std::cmp::Reverse(*index)))
    };
    let own = |a: &super::problem::Read, b: &super::problem::Read| {
        let own = |index: &usize| {
            *index < statement.rank && a.dims[*index].is_some() && b.dims[*index].is_none()
        };
        longest(&mut indices().filter(own))
    };
    let (rows, columns) = (own(left, right), own(right, left));
    let shared = longest(&mut indices().filter(|index| {
        *index >= statement.rank && left.dims[*index].is_some() && right.dims[*index].is_some()
    }));
    let run = |roles: &[usize]| -> Run {
        let mut run = [StatementRole::Every; AXES];
        for (role, index) in run.iter_mut().zip(roles) {
            *role = StatementRole::Index(IndexId(*index as u32));
        }
        run
    };
    let mut plan = |name, mesh: Mesh, run: Run| {
        let runs = BTreeMap::from([(at, run)]);
        plans.push((name, with_runs(problem, &mesh, objective, &runs)));
    };
    let floats = |tensor: usize| problem.tensors[tensor].floats;
    // The smaller operand is broadcast; of equal ones the first, as in table 3.1.
    let kept = if floats(left.tensor) <= floats(right.tensor) {
        columns.or(rows)
    } else {
        rows.or(columns)
    };
    if let Some(kept) = kept {
        plan("BMM", Mesh::row(sites), run(&[kept]));
    }
    if let Some(shared) = shared {
        plan("CMM", Mesh::row(sites), run(&[shared]));
    }
    if let (Some(rows), Some(columns)) = (rows, columns) {
        // The thesis copies the operands as often as the other one has pieces; its table 3.3 has as many pieces
        // together as there are sites.
        let axes = vec![sites.div_ceil(2), (sites / 2).max(1)];
        plan("RMM", Mesh { axes }, run(&[rows, columns]));
    }
}

/// A layout with these runs on a mesh, everything resting where it costs least.
fn with_runs(
    problem: &Problem,
    mesh: &Mesh,
    objective: &Objective,
    runs: &BTreeMap<usize, Run>,
) -> Layout {
    let model = Model::new(problem);
    let floats: f64 = problem.tensors.iter().map(|t| t.floats).sum();
    let weights = Weights::below(floats * f64::from(mesh.sites()), objective);
    let mut cost_table = CostTable::new(problem, counts(mesh), objective, weights);
    settle(problem, &model, &mut cost_table, mesh, runs)
}

/// On a row of all sites: every statement cuts the first of these classes that it has, and does the same everywhere
/// if it has none; params rest at every site if `copies`.
fn cut_everywhere(
    problem: &Problem,
    sites: u32,
    objective: &Objective,
    classes: &Classes,
    cut: &[usize],
    copies: bool,
) -> Layout {
    let mut runs = BTreeMap::new();
    for (at, statement) in problem.statements() {
        let index = cut.iter().find_map(|class| {
            (0..statement.extents.len()).find(|index| {
                classes.of_index(at, *index) == *class
                    && statement.extents[*index] >= u64::from(sites)
            })
        });
        let mut run = [StatementRole::Every; AXES];
        if let Some(index) = index {
            run[0] = StatementRole::Index(IndexId(index as u32));
        }
        runs.insert(at, run);
    }
    let mut layout = with_runs(problem, &Mesh::row(sites), objective, &runs);
    if copies {
        for (at, tensor) in problem.tensors.iter().enumerate() {
            if tensor.carried.is_some() {
                layout.rests[at] = vec![TensorRole::Every];
            }
        }
    }
    layout
}

/// The classes of indices that reads tie together.
struct Classes {
    /// By tensor: where its dimensions start in `parents`, then where its statement's indices do.
    starts: Vec<(usize, usize)>,
    parents: Vec<usize>,
}

impl Classes {
    fn new(problem: &Problem) -> Classes {
        let mut starts = vec![];
        let mut count = 0;
        for tensor in &problem.tensors {
            let indices = tensor.statement().map_or(0, |s| s.extents.len());
            starts.push((count, count + tensor.shape.len()));
            count += tensor.shape.len() + indices;
        }
        let mut classes = Classes {
            starts,
            parents: (0..count).collect(),
        };
        for (at, statement) in problem.statements() {
            for dim in 0..statement.rank {
                classes.join(classes.starts[at].0 + dim, classes.starts[at].1 + dim);
            }
            classes.reads(problem, at, statement);
        }
        for (at, tensor) in problem.tensors.iter().enumerate() {
            for dim in 0..tensor.shape.len() {
                if let Some(other) = tensor.carried {
                    classes.join(classes.starts[at].0 + dim, classes.starts[other].0 + dim);
                }
            }
        }
        classes
    }

    fn reads(&mut self, problem: &Problem, at: usize, statement: &Statement) {
        for read in &statement.reads {
            for (index, dim) in read.dims.iter().enumerate() {
                let Some(dim) = dim else { continue };
                // A dimension of one does not say which index it is.
                if problem.tensors[read.tensor].shape[*dim as usize] > 1 {
                    let dim = self.starts[read.tensor].0 + *dim as usize;
                    self.join(dim, self.starts[at].1 + index);
                }
            }
        }
    }

    fn find(&self, mut x: usize) -> usize {
        while self.parents[x] != x {
            x = self.parents[x];
        }
        x
    }

    fn join(&mut self, x: usize, y: usize) {
        let (x, y) = (self.find(x), self.find(y));
        self.parents[x.max(y)] = x.min(y);
    }

    fn of_index(&self, tensor: usize, index: usize) -> usize {
        self.find(self.starts[tensor].1 + index)
    }

    fn of_dims(&self, problem: &Problem, tensor: usize) -> Vec<usize> {
        let dims = 0..problem.tensors[tensor].shape.len();
        dims.map(|dim| self.find(self.starts[tensor].0 + dim))
            .collect()
    }

    /// The class that inputs have and params do not; of several that of the most inputs, then the first.
    fn batch(&self, program: &Program, problem: &Problem) -> Option<usize> {
        let params = self.weights(program, problem);
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, tensor) in program.tensors.iter().enumerate() {
            let source = matches!(tensor.definition, Definition::Source(_));
            if source && tensor.role == Role::Input {
                let mut classes = self.of_dims(problem, at);
                classes.dedup();
                for class in classes {
                    *counted.entry(class).or_default() += 1;
                }
            }
        }
        counted.retain(|class, _| !params.iter().any(|(_, dims)| dims.contains(class)));
        if params.is_empty() {
            return None;
        }
        let best = counted
            .iter()
            .max_by_key(|(class, count)| (**count, std::cmp::Reverse(**class)));
        best.map(|(class, _)| *class)
    }

    /// The classes of the weights' dimensions that only one weight has, of the weights' first dimensions where all
    /// are shared; without the batch's.
    fn outer(&self, program: &Program, problem: &Problem, batch: usize) -> Vec<usize> {
        let weights = self.weights(program, problem);
        let mut outer = vec![];
        for (at, dims) in &weights {
            let alone = dims.iter().filter(|class| {
                let mut others = weights.iter().filter(|(other, _)| other != at);
                !others.any(|(_, dims)| dims.contains(class))
            });
            let alone: Vec<usize> = alone.copied().collect();
            let chosen = if alone.is_empty() {
                dims[..1.min(dims.len())].to_vec()
            } else {
                alone
            };
            outer.extend(chosen.into_iter().filter(|class| *class != batch));
        }
        outer.sort_unstable();
        outer.dedup();
        outer
    }

    fn weights(&self, program: &Program, problem: &Problem) -> Vec<(usize, Vec<usize>)> {
        let numbered = program.tensors.iter().enumerate();
        let params = numbered.filter(|(_, tensor)| {
            tensor.role == Role::Param && matches!(tensor.definition, Definition::Source(_))
        });
        params
            .map(|(at, _)| (at, self.of_dims(problem, at)))
            .collect()
    }
}
