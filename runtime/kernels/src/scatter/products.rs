//! Scatters of products of elements, point after point: a sparse matrix times a vector.
//!
//! Elements are read as they lie, or at places that data say, and go to one place of a list of places. Parts of the points are added up in tables
//! of their own, as in `strips`. Must not know where guards come from.
//!
//! ```text
//! [v | e] sum w[e] * x[src[e]] if dst[e] == v   ->   for each e: table[dst[e]] += w[e] * x[src[e]]
//! ```

use super::strips::{MOST_TABLES, tables};
use super::table::{GROWTH, Table, together};
use super::{Solved, Sums, parts};
use crate::Chunk;
use crate::line::{FACTORS, Factor, Sight, Value};
use crate::looked::Looked;
use crate::parallel;
use crate::wide::{self, Job};
use ein_plan::schedule::leaves::value;
use ein_plan::{DType, Function, Kernel, Node, NodeId};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

/// The factors of a product, by their type.
enum Factors<'a> {
    F32(Vec<Factor<'a, f32>>),
    F64(Vec<Factor<'a, f64>>),
    I64(Vec<Factor<'a, i64>>),
}

/// A scatter in this form.
pub(super) struct Products<'a> {
    factors: Factors<'a>,
    to: Looked<'a>,
    /// Start and length of the index that a place is a value of.
    solved: (i64, i64),
    points: usize,
    /// Into how many parts points are cut, and whether each has a table of all places.
    parts: (u64, bool),
}

impl<'a> Products<'a> {
    /// A scatter over `ranges` in this form, if parts of its points can be added up by themselves.
    pub(super) fn of(
        kernel: &Kernel,
        solved: &Solved,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
        ascending: bool,
    ) -> Option<Products<'a>> {
        let &[(v, expression)] = &solved.places[..] else {
            return None;
        };
        let rank = kernel.output_rank as usize;
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let alone = (0..rank).all(|i| i == v || lengths[i] == 1);
        if !solved.rest.is_empty() || !alone {
            return None;
        }
        let of_point: Vec<usize> = (rank..ranges.len()).collect();
        let points: usize = of_point.iter().map(|i| lengths[*i]).product();
        let parts = match parts(points as u64, lengths[v]) {
            0 if ascending => (tables(points as u64), false),
            0 => return None,
            parts => (parts, true),
        };
        let to = Looked::of(kernel, expression, &of_point, ranges, operands)?;
        let sight = Sight::of(kernel, ranges, operands, (of_point, vec![]));
        let dtype = kernel.graph.dtype(kernel.root);
        Some(Products {
            factors: match dtype {
                DType::F32 => Factors::F32(factors(kernel, &sight, dtype)?),
                DType::F64 => Factors::F64(factors(kernel, &sight, dtype)?),
                DType::I64 => Factors::I64(factors(kernel, &sight, dtype)?),
                _ => return None,
            },
            to,
            solved: ranges[v],
            points,
            parts,
        })
    }

    /// The products of all points by place; `None` if something is read outside, or places do not ascend.
    fn reduced<T: Value + Into<A>, A: Copy + Send + Sync>(
        &self,
        factors: &[Factor<'a, T>],
        start: A,
        f: impl Fn(A, A) -> A + Copy + Sync,
    ) -> Option<Vec<A>> {
        let (parts, whole) = (self.parts.0 as usize, self.parts.1);
        let size = self.solved.1 as usize;
        let room = AtomicUsize::new(size + size / 2 + MOST_TABLES as usize * GROWTH);
        let tables = parallel::map(parts, |part| {
            let mut table = match whole {
                true => Table::whole(size, start),
                false => Table::growing(size, start, &room),
            };
            let inside = wide::run(Part {
                products: self,
                factors,
                points: part * self.points / parts..(part + 1) * self.points / parts,
                table: &mut table,
                add: f,
            });
            inside.map(|()| table)
        });
        let tables = tables.into_iter().collect::<Option<Vec<_>>>()?;
        Some(together(tables, size, start, f))
    }
}

/// The factors of a product.
fn factors<'a, T: Value>(
    kernel: &Kernel,
    sight: &Sight<'_, 'a>,
    dtype: DType,
) -> Option<Vec<Factor<'a, T>>> {
    let graph = &kernel.graph;
    let mut open: Vec<NodeId> = vec![kernel.root];
    let mut factors = vec![];
    while let Some(id) = open.pop() {
        match graph.node(value(graph, id)) {
            Node::Apply(Function::Mul, sides) => open.extend([sides[1], sides[0]]),
            _ => factors.push(sight.factor(id, dtype)?),
        }
        if factors.len() + open.len() > FACTORS {
            return None;
        }
    }
    Some(factors)
}

impl Sums for Products<'_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        match &self.factors {
            Factors::F32(factors) => self.reduced(factors, start, f),
            Factors::F64(factors) => self.reduced(factors, start, f),
            Factors::I64(_) => None,
        }
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        match &self.factors {
            Factors::I64(factors) => self.reduced(factors, start, f),
            _ => None,
        }
    }
}

/// A part of the points, to be added to a table.
struct Part<'t, 'r, 'a, T, A, F> {
    products: &'t Products<'a>,
    factors: &'t [Factor<'a, T>],
    points: Range<usize>,
    table: &'t mut Table<'r, A>,
    add: F,
}

/// Points that are multiplied together, factor after factor.
const BLOCK: usize = 512;

impl<T: Value + Into<A>, A: Copy, F: Fn(A, A) -> A + Copy> Job for Part<'_, '_, '_, T, A, F> {
    type Output = Option<()>;
    #[inline(always)]
    fn run(self) -> Option<()> {
        let (start, length) = self.products.solved;
        let (first, rest) = self.factors.split_first()?;
        let (mut values, mut places) = ([T::ZERO; BLOCK], [0i64; BLOCK]);
        let mut at = [0usize; BLOCK];
        let mut from = self.points.start;
        while from < self.points.end {
            let points = from..self.points.end.min(from + BLOCK);
            let count = points.len();
            from = points.end;
            let (values, places) = (&mut values[..count], &mut places[..count]);
            self.products.to.fill(points.clone(), places)?;
            first.fill(points.clone(), values)?;
            for factor in rest {
                factor.times(points.clone(), values)?;
            }
            let mut outside = false;
            for (at, place) in at.iter_mut().zip(&*places) {
                *at = place.wrapping_sub(start) as usize;
                outside |= *at >= length as usize;
            }
            if !outside {
                self.table.add(&at[..count], values, self.add)?;
                continue;
            }
            for (at, value) in at
                .iter()
                .zip(&*values)
                .filter(|(at, _)| **at < length as usize)
            {
                let sum = &mut self.table.at(*at, 1)?[0];
                *sum = (self.add)(*sum, (*value).into());
            }
        }
        Some(())
    }
}
