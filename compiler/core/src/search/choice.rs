//! The ways in which a statement can run on a mesh, and which of them are balanced enough to be considered.
//!
//! Each axis of the mesh cuts an index, or all its coordinates do the same, or only the first works. From that
//! follow what the statement needs of its operands, what it gives, and the work of the busiest site. Must not know
//! prices of conversions.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 2x2, (Index(i), Index(k)):
//! needs A (Cut(0), Cut(1)), B (Every, Cut(0)); gives (Cut(0), Partial); a quarter of the work
//! ```

use super::convert::{placements, share, share_of};
use super::mesh::AXES;
use super::problem::{Kind, Problem, Statement};
use super::transfer::{Counts, Roles, TransferItem};
use super::windows;
use crate::cost::Pace;
use crate::ia::layout::{StatementRole, TensorRole, roles as tensor_roles};
use ein_plan::IndexId;

/// The role of each axis in a statement; axes that the mesh does not have are `Every`.
pub type Run = [StatementRole; AXES];

/// By tensor: how its statement runs, where that is known.
pub type Runs = Vec<Option<Run>>;

/// One way to run a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The role of each axis.
    pub run: Run,
    /// Where the result is.
    pub gives: Roles,
    /// By read: where the operand has to be.
    pub needs: Vec<Roles>,
    /// Operations of the busiest site.
    pub load: f64,
    /// The kind of these operations.
    pub pace: Pace,
    /// Bytes that the busiest site reads and writes.
    pub touched: f64,
    /// Bytes that are held for it beside tensors at rest: its addends, if the result is not complete, and its part of the operands that are made
    /// wherever they are read, which all readers of one share.
    pub held: f64,
}

/// All ways to run a statement in which no index is cut into more pieces than it has values and the busiest site
/// has at most `limit` operations, by what the axes do, the first axis slowest.
pub fn choices(
    problem: &Problem,
    tensor: usize,
    counts: Counts,
    first: bool,
    limit: f64,
) -> Vec<Choice> {
    let Some(statement) = problem.tensors[tensor].statement() else {
        return vec![];
    };
    let runs = runs(statement, counts, first).into_iter();
    runs.filter(|run| load(statement, counts, *run) <= limit)
        .map(|run| choice(problem, tensor, statement, counts, run))
        .collect()
}

/// Derives the needs, the result and the load of one way to run a statement.
pub fn choice(
    problem: &Problem,
    tensor: usize,
    statement: &Statement,
    counts: Counts,
    run: Run,
) -> Choice {
    let place = |dim_of: &dyn Fn(IndexId) -> Option<u32>, without| -> Roles {
        let placed = tensor_roles(&run, dim_of, without);
        super::transfer::padded(&placed)
    };
    let rank = statement.rank as u32;
    let gives = place(
        &|index| (index.0 < rank).then_some(index.0),
        TensorRole::Partial,
    );
    let needs: Vec<Roles> = statement
        .reads
        .iter()
        .map(|read| {
            let shape = &problem.tensors[read.tensor].shape;
            let windows = read
                .windows
                .as_ref()
                .and_then(|of| windows::needed(&problem.windows, shape, of, run, counts));
            let plain = || place(&|index| read.dims[index.0 as usize], TensorRole::Every);
            windows.unwrap_or_else(plain)
        })
        .collect();
    let own = &problem.tensors[tensor];
    let made = share(&own.shape, counts, gives) * own.width;
    let addends = if gives.contains(&TensorRole::Partial) {
        made * statement.columns
    } else {
        0.0
    };
    let (mut touched, mut held) = (made.max(addends), addends);
    for (read, need) in statement.reads.iter().zip(&needs) {
        let operand = &problem.tensors[read.tensor];
        let goods = TransferItem {
            shape: &operand.shape,
            columns: 1.0,
            windows: &problem.windows,
        };
        let bytes = share_of(goods, counts, *need) * operand.width;
        touched += bytes / read.passed as f64;
        if operand.kind == Kind::Free {
            held += bytes / operand.readers.len().max(1) as f64;
        }
    }
    // That a piece touches less does not make up for making pieces.
    if statement.small {
        touched = 0.0;
    }
    Choice {
        run,
        gives,
        needs,
        load: load(statement, counts, run),
        pace: statement.pace,
        touched,
        held,
    }
}

fn runs(statement: &Statement, counts: Counts, first: bool) -> Vec<Run> {
    // A statement's indices are to its runs what a tensor's dimensions are to its placements.
    let allowed = [TensorRole::Every, TensorRole::First];
    let allowed = &allowed[..1 + usize::from(first)];
    let role = |role: TensorRole| match role {
        TensorRole::Cut(index) => StatementRole::Index(IndexId(index)),
        TensorRole::First => StatementRole::First,
        TensorRole::Every | TensorRole::Partial | TensorRole::Window(..) => StatementRole::Every,
    };
    let all = placements(&statement.extents, counts, allowed).into_iter();
    all.map(|roles| roles.map(role))
        .filter(|run| {
            let longer = |role: &StatementRole| match role {
                StatementRole::Index(index) => statement.extents[index.0 as usize] > 1,
                _ => true,
            };
            run.iter().all(longer)
        })
        .collect()
}

/// Operations of the busiest site.
pub fn load(statement: &Statement, counts: Counts, run: Run) -> f64 {
    statement.load(|index| {
        let cuts = run.iter().zip(counts);
        let cuts = cuts.filter(|(role, _)| **role == StatementRole::Index(index));
        cuts.map(|(_, count)| u64::from(count)).product()
    })
}

/// The fewest operations with which a mesh leaves its busiest site.
pub fn least_load(statement: &Statement, counts: Counts) -> f64 {
    let all = runs(statement, counts, false).into_iter();
    all.map(|run| load(statement, counts, run))
        .fold(f64::INFINITY, f64::min)
}
