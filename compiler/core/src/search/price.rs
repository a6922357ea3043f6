//! The price of a layout: every conversion that it implies, and the work of its busiest sites.
//!
//! A statement's result goes to where its tensor rests; from there it goes to every placement in which it is read,
//! once each. This is what the translation to IA makes of a layout. Must not know how layouts are found.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 2x2, i by j: A (0,1) -> (0,*) 2 · f, B (0,1) -> (*,1) 2 · f
//! ```

use super::choice::{Choice, Run, Runs, choice};
use super::convert::{convert, placements};
use super::cost_table::Objective;
use super::far::convert_over;
use super::machine::Levels;
use super::mesh::AXES;
use super::problem::{Kind, Problem};
use super::transfer::{Counts, Move, Roles, TransferItem, counts, padded};
use crate::einsum::{Program, TensorId};
use crate::ia::layout::{Layout, StatementRole, TensorRole, satisfies};
use ein_plan::Mesh;
use std::cmp::Ordering;

/// The price of a layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayoutCost {
    /// Floats transferred, as the thesis counts them (section 3.3.3), over all sites.
    pub transfer: f64,
    /// Words that the busiest site receives, summed over the conversions.
    pub words: f64,
    /// Messages that the busiest site receives.
    pub messages: f64,
    /// Seconds by the objective's model; 0 if the objective is another.
    pub seconds: f64,
    /// Operations of the busiest site, summed over the statements; a point counts at least one.
    pub load: f64,
    /// Bytes that the busiest site reads and writes, summed over the statements.
    pub touched: f64,
    /// Conversions that move something.
    pub moves: u32,
    /// By tensor: the operations of its statement's busiest site.
    pub loads: Vec<f64>,
    /// The conversions that move something, in the order of their tensors.
    pub conversions: Vec<Conversion>,
}

/// A tensor's way from one placement to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The tensor that is moved.
    pub tensor: TensorId,
    /// The first statement that reads the result; none: where it rests.
    pub reader: Option<TensorId>,
    /// One role an axis.
    pub from: Vec<TensorRole>,
    /// One role an axis.
    pub to: Vec<TensorRole>,
    /// The cost of the move.
    pub moved: Move,
}

impl LayoutCost {
    /// Returns the figure that the objective minimises.
    pub fn under(&self, objective: &Objective) -> f64 {
        match objective {
            Objective::Transfer => self.transfer,
            Objective::Bytes => self.words,
            Objective::Time(_) => self.seconds,
        }
    }

    /// Less is better: the objective, then the load, then the bytes touched, then the number of moves.
    pub fn compare(&self, other: &LayoutCost, objective: &Objective) -> Ordering {
        // Prices of equal plans may differ by rounding.
        let rank = |a: f64, b: f64| {
            if (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) {
                Ordering::Equal
            } else {
                a.total_cmp(&b)
            }
        };
        rank(self.under(objective), other.under(objective))
            .then(rank(self.load, other.load))
            .then(rank(self.touched, other.touched))
            .then(self.moves.cmp(&other.moves))
    }
}

/// The price of a layout of a program.
pub fn price(program: &Program, layout: &Layout, objective: &Objective) -> LayoutCost {
    of_problem(&Problem::new(program), layout, objective)
}

/// How each statement of a layout runs; none for sources.
pub fn run_choices(problem: &Problem, layout: &Layout) -> Vec<Option<Choice>> {
    let counts = counts(&layout.mesh);
    let numbered = problem.tensors.iter().enumerate();
    numbered
        .map(|(at, tensor)| {
            let statement = tensor.statement()?;
            let run = padded_run(layout.statements.get(at).map_or(&[], Vec::as_slice));
            Some(choice(problem, at, statement, counts, run))
        })
        .collect()
}

/// The role of each axis, with the axes that the mesh does not have.
pub fn padded_run(roles: &[StatementRole]) -> Run {
    let mut run = [StatementRole::Every; AXES];
    for (role, given) in run.iter_mut().zip(roles) {
        *role = *given;
    }
    run
}

/// How the statements of a layout run, if it is for this mesh.
pub fn runs_on(layout: &Layout, mesh: &Mesh) -> Option<Runs> {
    let statements = layout.statements.iter();
    let runs = statements.map(|roles| Some(padded_run(roles)));
    (layout.mesh == *mesh).then(|| runs.collect())
}

/// [`price`] of a program that is already a problem.
pub fn of_problem(problem: &Problem, layout: &Layout, objective: &Objective) -> LayoutCost {
    let mesh_counts = counts(&layout.mesh);
    let levels = objective.levels(mesh_counts);
    let levels = levels.as_ref();
    let runs = run_choices(problem, layout);
    let mut price = LayoutCost {
        loads: vec![0.0; problem.tensors.len()],
        ..LayoutCost::default()
    };
    for (at, tensor) in problem.tensors.iter().enumerate() {
        if let Some(choice) = &runs[at] {
            price.loads[at] = choice.load;
            price.load += choice.load;
            price.touched += choice.touched;
            price.seconds += objective.of_run(choice);
        }
        for conversion in conversions(problem, layout, &runs, at, (mesh_counts, levels)) {
            price.transfer += conversion.moved.transfer;
            price.words += conversion.moved.words;
            price.messages += conversion.moved.messages;
            price.moves += 1;
            if let Objective::Time(_) = objective {
                price.seconds += objective.of_move(&conversion.moved, tensor.width);
            }
            price.conversions.push(conversion);
        }
    }
    price
}

/// The conversions of one tensor that move something.
fn conversions(
    problem: &Problem,
    layout: &Layout,
    runs: &[Option<Choice>],
    at: usize,
    (counts, levels): (Counts, Option<&Levels>),
) -> Vec<Conversion> {
    let tensor = &problem.tensors[at];
    if tensor.kind == Kind::Free || layout.mesh.sites() <= 1 {
        return vec![];
    }
    let rest = padded(&layout.rests[at]);
    let axes = layout.mesh.axes.len();
    let goods = TransferItem {
        shape: &tensor.shape,
        columns: tensor.statement().map_or(1.0, |s| s.columns),
        windows: &problem.windows,
    };
    let mut found: Vec<Conversion> = vec![];
    let mut add = |from: Roles, to: Roles, reader: Option<usize>| {
        // Nothing rests partial and nothing is read partial, so there is always a way.
        let moved = convert_over(goods, counts, levels, from, to).unwrap_or_default();
        let moved = moved.times(tensor.times);
        if moved != Move::default()
            && !found
                .iter()
                .any(|f| f.to == to[..axes] && reader.is_some() && f.reader.is_some())
        {
            found.push(Conversion {
                tensor: TensorId(at as u32),
                reader: reader.map(|reader| TensorId(reader as u32)),
                from: from[..axes].to_vec(),
                to: to[..axes].to_vec(),
                moved,
            });
        }
    };
    if let Some(choice) = &runs[at] {
        add(choice.gives, rest, None);
    } else if tensor.carried.is_none() && !tensor.is_scalar() {
        // Starting with copies costs what making them costs.
        let starts = match tensor.starts_copied() {
            true => vec![rest],
            false => placements(&tensor.shape, counts, &[TensorRole::First]),
        };
        let words = starts.into_iter().map(|from| {
            let moved = convert(goods, counts, from, rest).unwrap_or_default();
            (moved.words, from)
        });
        let best = words.min_by(|(a, _), (b, _)| a.total_cmp(b));
        if let Some((_, start)) = best.filter(|(_, start)| !satisfies(start, &rest)) {
            add(start, rest, None);
        }
    }
    for (reader, number) in &tensor.readers {
        if let Some(choice) = &runs[*reader] {
            add(rest, choice.needs[*number], Some(*reader));
        }
    }
    found
}
