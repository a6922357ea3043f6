//! How much memory a layout takes at the busiest site, statement by statement.
//!
//! A tensor is held where it rests from its statement (a loaded one: from its first use) to its last reader, an
//! output to the end; a converted form from its first reader to its last. A result that is partial is held beside
//! the rest. The sum of the busiest sites is an upper bound of any site's. Must not know how layouts are found.
//!
//! ```text
//! at C: 1.5 GB, of which A (gathered) 1.0 GB
//! ```

use super::convert::share_of;
use super::price::run_choices;
use super::problem::{Kind, Problem};
use super::transfer::{Roles, TransferItem, counts, padded};
use crate::einsum::{Program, TensorId};
use crate::ia::layout::{Layout, TensorRole, satisfies};

/// The tensors that are held while a statement runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Residency {
    /// The statement.
    pub statement: TensorId,
    /// Bytes at the busiest site.
    pub bytes: f64,
    /// The tensor that takes most of them.
    pub largest: TensorId,
    /// How much it takes, converted forms included.
    pub largest_bytes: f64,
}

/// By statement, in order, what is held while it runs.
pub fn residency(program: &Program, layout: &Layout) -> Vec<Residency> {
    of_problem(&Problem::new(program), layout)
}

/// The statement at which most is held.
pub fn peak(residencies: &[Residency]) -> Option<&Residency> {
    residencies
        .iter()
        .reduce(|most, next| if next.bytes > most.bytes { next } else { most })
}

/// [`residency`] of a program that is already a problem.
pub fn of_problem(problem: &Problem, layout: &Layout) -> Vec<Residency> {
    let mesh = counts(&layout.mesh);
    let runs = run_choices(problem, layout);
    let end = problem.tensors.len();
    let mut spans: Vec<Span> = vec![];
    for (at, tensor) in problem.tensors.iter().enumerate() {
        let goods = TransferItem {
            shape: &tensor.shape,
            columns: 1.0,
            windows: &problem.windows,
        };
        let size =
            |roles: Roles, columns: f64| share_of(goods, mesh, roles) * tensor.width * columns;
        let rest = padded(&layout.rests[at]);
        let mut forms: Vec<(Roles, usize, usize)> = vec![];
        for ((reader, number), until) in tensor.readers.iter().zip(&tensor.last_reads) {
            if let Some(choice) = &runs[*reader] {
                let need = choice.needs[*number];
                // What a round ends with is read by the next round.
                let first = (*reader).max(at);
                match forms.iter_mut().find(|(roles, ..)| *roles == need) {
                    Some((_, from, last)) => {
                        *from = (*from).min(first);
                        *last = (*last).max(*until);
                    }
                    None => forms.push((need, first, *until)),
                }
            }
        }
        let mut hold = |bytes: f64, first: usize, last: usize| {
            spans.push(Span {
                tensor: at,
                bytes,
                first,
                last,
            });
        };
        let free = tensor.kind == Kind::Free;
        for (need, first, last) in &forms {
            // A slice of what every site holds is not a copy.
            if free || !satisfies(&rest, need) {
                hold(size(*need, 1.0), *first, *last);
            }
        }
        let first_read = tensor.readers.first().map(|(reader, _)| *reader);
        let last_read = tensor.last_reads.iter().copied().max();
        let last = if tensor.output { Some(end) } else { last_read };
        let (first, last) = match &runs[at] {
            Some(choice) => {
                if choice.gives.contains(&TensorRole::Partial) {
                    let columns = tensor.statement().map_or(1.0, |s| s.columns);
                    hold(size(choice.gives, columns), at, at);
                }
                (at, last.unwrap_or(at))
            }
            None if free => continue,
            None => (first_read.unwrap_or(end), last.unwrap_or(end)),
        };
        hold(size(rest, 1.0), first, last);
    }
    held(problem, &spans)
}

struct Span {
    tensor: usize,
    bytes: f64,
    first: usize,
    last: usize,
}

fn held(problem: &Problem, spans: &[Span]) -> Vec<Residency> {
    let count = problem.tensors.len();
    let mut starts: Vec<Vec<&Span>> = vec![vec![]; count + 1];
    let mut ends: Vec<Vec<&Span>> = vec![vec![]; count + 1];
    for span in spans {
        starts[span.first].push(span);
        ends[span.last].push(span);
    }
    let mut now = vec![0.0; count];
    let mut result = vec![];
    for at in 0..count {
        for span in &starts[at] {
            now[span.tensor] += span.bytes;
        }
        if problem.tensors[at].statement().is_some() {
            let largest =
                (0..count).reduce(|most, next| if now[next] > now[most] { next } else { most });
            let largest = largest.unwrap_or(at);
            result.push(Residency {
                statement: TensorId(at as u32),
                bytes: now.iter().sum(),
                largest: TensorId(largest as u32),
                largest_bytes: now[largest],
            });
        }
        for span in &ends[at] {
            now[span.tensor] -= span.bytes;
        }
    }
    result
}
