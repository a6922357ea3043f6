//! Scatters of products of elements, point after point: a sparse matrix times a vector.
//!
//! Elements are read as they lie, or at places that data say, and go to one place of a list of places. Parts of the points are added up in tables
//! of their own, as in `strips`. Must not know where guards come from.
//!
//! ```text
//! [v | e] sum w[e] * x[src[e]] if dst[e] == v   ->   for each e: table[dst[e]] += w[e] * x[src[e]]
//! ```

use super::strips::{MOST_TABLES, grows, tables};
use super::table::{GROWTH, Table, together};
use super::turns::Turns;
use super::{Solved, Sums, parts};
use crate::Chunk;
use crate::line::{FACTORS, Factor, Named, Sight, Value};
use crate::looked::Looked;
use crate::parallel;
use crate::wide::{self, Job};
use ein_plan::schedule::leaves::value;
use ein_plan::{DType, Function, Kernel, Node, NodeId};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

/// Points that are looked up together.
const MOST: usize = 512;

/// The factors of a product, by their type.
enum Factors<'a> {
    F32(Vec<Factor<'a, f32>>),
    F64(Vec<Factor<'a, f64>>),
    I64(Vec<Factor<'a, i64>>),
}

impl<'a> Factors<'a> {
    fn of(kernel: &Kernel, sight: &Sight<'_, 'a>) -> Option<Factors<'a>> {
        let dtype = kernel.graph.dtype(kernel.root);
        Some(match dtype {
            DType::F32 => Factors::F32(factors(kernel, sight, dtype)?),
            DType::F64 => Factors::F64(factors(kernel, sight, dtype)?),
            DType::I64 => Factors::I64(factors(kernel, sight, dtype)?),
            _ => return None,
        })
    }
}

/// Which place each point goes to.
enum Places<'a> {
    /// Data say it of each point.
    Listed(Looked<'a>),
    /// The points of each place follow those of the place before.
    InTurn(Turns<'a>),
}

/// A scatter in this form.
pub(super) struct Products<'a> {
    factors: Factors<'a>,
    to: Places<'a>,
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
            parts if grows(ascending, points as u64, parts) => (tables(points as u64), false),
            0 => return None,
            parts => (parts, true),
        };
        let to = Looked::of(kernel, expression, &of_point, ranges, operands)?;
        let sight = Sight::of(kernel, ranges, operands, (of_point, vec![]));
        Some(Products {
            factors: Factors::of(kernel, &sight)?,
            to: Places::Listed(to),
            solved: ranges[v],
            points,
            parts,
        })
    }

    /// The value of a kernel over `ranges`, of which the points of each place follow those of the place before.
    pub(super) fn in_turn(
        kernel: &Kernel,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
        turns: Turns<'a>,
    ) -> Option<Products<'a>> {
        let of_point: Vec<usize> = (kernel.output_rank as usize..ranges.len()).collect();
        let points = turns.points();
        let sight = Sight::of(kernel, ranges, operands, (of_point, vec![]));
        Some(Products {
            factors: Factors::of(kernel, &sight)?,
            solved: (0, turns.places() as i64),
            to: Places::InTurn(turns),
            points,
            parts: (tables(points as u64), false),
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
            let points = part * self.points / parts..(part + 1) * self.points / parts;
            let inside = self.add(factors, points, &mut table, f);
            inside.map(|()| table)
        });
        let tables = tables.into_iter().collect::<Option<Vec<_>>>()?;
        Some(together(tables, size, start, f))
    }

    /// Adds the products of some points to a table; `None` if something is read outside, or places do not ascend.
    fn add<T: Value + Into<A>, A: Copy>(
        &self,
        factors: &[Factor<'a, T>],
        points: Range<usize>,
        table: &mut Table<'_, A>,
        f: impl Fn(A, A) -> A + Copy,
    ) -> Option<()> {
        // What lies in the order of the points needs no room.
        let step = match self.to {
            Places::InTurn(_) if lie(factors, &points) => points.len().max(1),
            _ => MOST,
        };
        let mut room = [T::ZERO; MOST];
        let mut rows = [0; MOST];
        for from in points.clone().step_by(step) {
            let points = from..points.end.min(from + step);
            let (values, last) = wide::run(LookUp {
                factors,
                points: points.clone(),
                room: &mut room,
                rows: &mut rows,
            })?;
            wide::run(Adding {
                products: self,
                points,
                values,
                last,
                table: &mut *table,
                add: f,
            })?;
        }
        Some(())
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
    // Of two, the one that is looked up is the last, which may be looked up where it is multiplied by.
    if let [first, second] = &factors[..]
        && first.is_looked_up()
        && !second.is_looked_up()
    {
        factors.swap(0, 1);
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

/// Some points, of which products are looked up.
struct LookUp<'t, 'a, T> {
    factors: &'t [Factor<'a, T>],
    points: Range<usize>,
    room: &'t mut [T],
    rows: &'t mut [u32],
}

impl<'t, 'a: 't, T: Value> Job for LookUp<'t, 'a, T> {
    /// The products, and the factor that they lack, if it is looked up when they are added; `None` if something is read outside.
    type Output = Option<(&'t [T], Option<Named<'t, T>>)>;
    #[inline(always)]
    fn run<const BYTES: usize>(self) -> Self::Output {
        let LookUp {
            factors,
            points,
            room,
            rows,
        } = self;
        let (last, before) = factors.split_last()?;
        let named = match before {
            [] => None,
            _ => last.named(points.clone(), rows),
        };
        let factors = if named.is_some() { before } else { factors };
        if let [only] = factors
            && let Some(values) = only.beside(points.clone())
        {
            return Some((values, named));
        }
        multiplied(factors, &points, room)?;
        Some((&room[..points.len()], named))
    }
}

/// Stores the products of some points; `None` if something is read outside.
#[inline(always)]
fn multiplied<T: Value>(
    factors: &[Factor<'_, T>],
    points: &Range<usize>,
    to: &mut [T],
) -> Option<()> {
    let to = &mut to[..points.len()];
    let (first, rest) = factors.split_first()?;
    first.fill(points.clone(), to)?;
    // A loop: what a closure does is compiled for the vectors of any processor.
    for factor in rest {
        factor.times(points.clone(), to)?;
    }
    Some(())
}

/// Returns whether one factor lies in the order of these points, and the numbers of rows that name the other one.
fn lie<T: Value>(factors: &[Factor<'_, T>], points: &Range<usize>) -> bool {
    match factors {
        [own, named] => {
            let rows = named.named(points.clone(), &mut []);
            own.beside(points.clone()).is_some() && rows.is_some()
        }
        _ => false,
    }
}

/// Products of some points, to be added to a table.
struct Adding<'t, 'r, 'a, T, A, F> {
    products: &'t Products<'a>,
    points: Range<usize>,
    values: &'t [T],
    /// The factor that they lack.
    last: Option<Named<'t, T>>,
    table: &'t mut Table<'r, A>,
    add: F,
}

impl<T: Value + Into<A>, A: Copy, F: Fn(A, A) -> A + Copy> Job for Adding<'_, '_, '_, T, A, F> {
    /// None if something is read outside, or places do not ascend.
    type Output = Option<()>;
    #[inline(always)]
    fn run<const BYTES: usize>(mut self) -> Option<()> {
        let values = self.values;
        match self.last.take() {
            None => self.each(values, |value, _| value),
            Some(last) => {
                let is_outside = Cell::new(false);
                let product = |value: T, row| match last.element(row) {
                    Some(element) => value.times(element),
                    None => {
                        is_outside.set(true);
                        value
                    }
                };
                self.each(last.rows(), product)?;
                (!is_outside.get()).then_some(())
            }
        }
    }
}

impl<T: Value + Into<A>, A: Copy, F: Fn(A, A) -> A + Copy> Adding<'_, '_, '_, T, A, F> {
    /// Adds what a function makes of each value and of what is beside it.
    #[inline(always)]
    fn each<B: Copy>(self, beside: &[B], made: impl Fn(T, B) -> T) -> Option<()> {
        let start = self.products.solved.0;
        let at = |place: i64| place.wrapping_sub(start) as usize;
        let values = (self.values, beside, made);
        let to = match &self.products.to {
            Places::Listed(to) => to,
            Places::InTurn(turns) => {
                let place = turns.place_of(self.points.start);
                let belong = |place, point| turns.end(place).saturating_sub(point);
                let points = (self.points, belong);
                return self.table.add_in_turn(place, points, values, self.add);
            }
        };
        if let Some(places) = to.lying(self.points.clone()) {
            let places = places.iter().map(|place| at(i64::from(*place)));
            return self.table.add(places, values, self.add);
        }
        let mut places = [0; MOST];
        let places = &mut places[..self.points.len()];
        to.fill(self.points, places)?;
        (self.table).add(places.iter().map(|place| at(*place)), values, self.add)
    }
}
