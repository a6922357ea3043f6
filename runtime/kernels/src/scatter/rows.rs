//! Lines that are added up row by row of the output: those of a scatter into an output that no cache holds, and those of a gathered sum.
//!
//! The points of a scatter are ordered by the row that they go to; those of a gathered sum follow each other. Then the lines of each row are
//! added up where the row is, in the order of the points, and the row is written once: no table of sums beside the output, and rows without a
//! point cost nothing but their start. A line is read as it lies, or at a row that data say, and may be multiplied by numbers of its point.
//! Must not know where guards come from.
//!
//! ```text
//! [v, h | e] sum w[e] * x[src[e], h] if dst[e] == v   ->   v: the points e with dst[e] == v; of each, w[e] * x[src[e], ..]
//! ```

use super::row_sums::RowSums;
use crate::Chunk;
use crate::carrier::Rule;
use crate::line::{Line, Scaled, Sight, Value};
use crate::looked::Looked;
use crate::math::{max_nan, min_nan};
use crate::parallel;
use crate::segment::Segment;
use crate::wide;
use ein_array::Array;
use ein_plan::schedule::guard::Solved;
use ein_plan::{DType, Kernel, Reduction};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lines of fewer values are left to the ways that go through points in their order; those need less for lines that are as they lie, and are twice as
/// good at points whose places do not ascend.
const WIDE: usize = 2;
/// Bytes of sums that stay in a core's cache.
const NEAR: usize = 1 << 20;
/// Points that are worth a task of their own.
const TASK: usize = 1 << 11;
/// Most rows for each point where points are ordered by counting them.
const COUNTED: usize = 4;
/// Most threads that do not sort faster together than one counts.
const FEW_THREADS: usize = 4;

/// A scatter in this form, over a row of the output for each value of the index that its guard gives; or a gathered sum.
pub(super) struct Rows<'a> {
    /// Its value, from the innermost product outwards.
    line: Line<'a>,
    /// The row that each point goes to; `None`: all rows have the same number of points, which follow each other.
    to: Option<Looked<'a>>,
    width: usize,
    /// The first row, and their count.
    rows: (i64, i64),
    points: usize,
    /// True if the line is what lies there.
    pub(super) plain: bool,
}

/// Runs the loops of one function over some rows of the output, in blocks of at most so many columns.
macro_rules! part {
    ($of:ident, $line:ident, ($order:ident, $rows:ident, $ends:ident), ($reduction:ident, $start:ident), $wider:expr, $add:expr, $store:ident, $block:literal) => {
        wide::run(RowSums::<'_, '_, _, _, _, _, _, $block> {
            line: $line,
            width: $of.width,
            order: $order,
            of: $rows,
            ends: $ends,
            start: $start,
            starts_as_zeros: $reduction == Reduction::Sum,
            wider: $wider,
            add: $add,
            store: $store,
        })
    };
}

impl<'a> Rows<'a> {
    /// A scatter over `ranges` in this form, if its output is large for a cache or its lines are not as they lie.
    pub(super) fn of(
        kernel: &Kernel,
        solved: &Solved,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
        ascending: bool,
    ) -> Option<Rows<'a>> {
        let &[(v, expression)] = &solved.places[..] else {
            return None;
        };
        let rank = kernel.output_rank as usize;
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        if !solved.rest.is_empty() || lengths[..v].iter().any(|n| *n > 1) {
            return None;
        }
        let (of_point, of_line): (Vec<usize>, Vec<usize>) =
            ((rank..ranges.len()).collect(), (v + 1..rank).collect());
        let width: usize = of_line.iter().map(|i| lengths[*i]).product();
        let points: usize = of_point.iter().map(|i| lengths[*i]).product();
        // A row and a point are the two halves of one number.
        let halves = [points, lengths[v]].iter().all(|n| *n < 1 << 32);
        let least = if ascending { WIDE } else { 2 * WIDE };
        if width < least || !halves {
            return None;
        }
        let to = Looked::of(kernel, expression, &of_point, ranges, operands)?;
        let sight = Sight::of(kernel, ranges, operands, (of_point, of_line));
        let line = line(kernel, &sight)?;
        fn is_plain<T>(scaled: &Scaled<'_, T>) -> bool {
            scaled.factors.is_empty() && scaled.elements.row.is_none()
        }
        let plain = match &line {
            Line::F32(scaled) => is_plain(scaled),
            Line::F64(scaled) => is_plain(scaled),
            Line::I64(scaled) => is_plain(scaled),
        };
        let table = width * lengths[v] * size_of::<f64>();
        let is_worth = !plain || table > NEAR && width >= 2 * least;
        is_worth.then_some(Rows {
            line,
            to: Some(to),
            width,
            rows: ranges[v],
            points,
            plain,
        })
    }

    /// A gathered sum over `ranges`, in which rows begin at the index `row`.
    pub(super) fn gathered(
        kernel: &Kernel,
        row: usize,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<Rows<'a>> {
        let rank = kernel.output_rank as usize;
        let count = |indices: &[usize]| indices.iter().map(|i| ranges[*i].1 as usize).product();
        let outer: Vec<usize> = (0..row).collect();
        let of_line: Vec<usize> = (row..rank).collect();
        let of_point: Vec<usize> = outer.iter().copied().chain(rank..ranges.len()).collect();
        let (rows, width, points): (usize, _, usize) =
            (count(&outer), count(&of_line), count(&of_point));
        // A row and a point are the two halves of one number.
        let halves = [points, rows].iter().all(|n| *n < 1 << 32);
        let sight = Sight::of(kernel, ranges, operands, (of_point, of_line));
        Some(Rows {
            line: line(kernel, &sight).filter(|_| halves)?,
            to: None,
            width,
            rows: (0, rows as i64),
            points,
            plain: false,
        })
    }

    /// The whole output, if nothing is read outside. Each row's lines are added up part by part of the points, and the parts in order:
    /// the parts end at `ends`.
    pub(super) fn run(
        &self,
        kernel: &Kernel,
        rule: Rule,
        shape: &[usize],
        ends: &[usize],
    ) -> Option<Array> {
        let order = self.order()?;
        let mut column = crate::memory::zeros(kernel.output[0], shape);
        let neutral = rule.neutral();
        let each = match rule.reduction {
            Reduction::Mean => self.points as f64 / self.rows.1 as f64,
            _ => 1.0,
        };
        let tasks = self.tasks(&order);
        let mut rest = Segment::of(column.data_mut());
        let mut parts = Vec::with_capacity(tasks.len());
        for (points, rows) in tasks {
            let part;
            (part, rest) = rest.split(rows.len() * self.width);
            parts.push((&order[points], rows, part));
        }
        let inside = AtomicBool::new(true);
        parallel::items(parts, |_, (order, rows, to)| {
            let there = match &self.line {
                Line::F32(line) => self.floats(
                    line,
                    f64::from,
                    (order, rows, to),
                    ends,
                    rule.reduction,
                    (neutral.float, each),
                ),
                Line::F64(line) => self.floats(
                    line,
                    |x| x,
                    (order, rows, to),
                    ends,
                    rule.reduction,
                    (neutral.float, each),
                ),
                Line::I64(line) => self.integers(
                    line,
                    (order, rows, to),
                    ends,
                    rule.reduction,
                    neutral.integer,
                ),
            };
            if !there {
                inside.store(false, Ordering::Relaxed);
            }
        });
        inside.into_inner().then_some(column)
    }

    /// The number of points.
    pub(super) fn points(&self) -> (usize, usize) {
        (self.points, self.width)
    }

    /// Rows with their points, in the order of both; `None` if a point's place is read outside of its list.
    fn order(&self) -> Option<Vec<u64>> {
        let (start, length) = self.rows;
        let Some(to) = &self.to else {
            let each = self.points / length as usize;
            let rows = (0..length as u64).flat_map(|row| std::iter::repeat_n(row << 32, each));
            return Some(rows.zip(0..).map(|(row, point)| row | point).collect());
        };
        let outside = AtomicBool::new(false);
        let mut order = vec![0; self.points];
        parallel::chunks_mut(&mut order, TASK, |part, numbers| {
            let points = part * TASK..part * TASK + numbers.len();
            let mut rows = vec![0; numbers.len()];
            if to.fill(points.clone(), &mut rows).is_none() {
                outside.store(true, Ordering::Relaxed);
                return;
            }
            for ((number, row), point) in numbers.iter_mut().zip(rows).zip(points) {
                let row = row.wrapping_sub(start);
                *number = match (0..length).contains(&row) {
                    true => (row as u64) << 32 | point as u64,
                    false => u64::MAX,
                };
            }
        });
        if outside.into_inner() {
            return None;
        }
        if !order.is_sorted() {
            order = self.sorted(order);
        }
        let there = order.partition_point(|number| *number < u64::MAX);
        order.truncate(there);
        Some(order)
    }

    /// Numbers in the order of points, in their own order.
    fn sorted(&self, mut numbers: Vec<u64>) -> Vec<u64> {
        let rows = self.rows.1 as usize;
        if numbers.len() <= TASK {
            numbers.sort_unstable();
        } else if rows > COUNTED * numbers.len() || rayon::current_num_threads() > FEW_THREADS {
            numbers.par_sort_unstable();
        } else {
            // Points without a row stand behind the last one.
            let row = |number: u64| ((number >> 32) as usize).min(rows);
            let mut ends = vec![0u32; rows + 1];
            numbers.iter().for_each(|number| ends[row(*number)] += 1);
            let mut begin = 0;
            for end in &mut ends {
                begin += std::mem::replace(end, begin);
            }
            let mut sorted = vec![0; numbers.len()];
            for number in numbers {
                let end = &mut ends[row(number)];
                sorted[*end as usize] = number;
                *end += 1;
            }
            return sorted;
        }
        numbers
    }

    /// Stretches of the order with the rows that they fill; together all rows.
    fn tasks(&self, order: &[u64]) -> Vec<(Range<usize>, Range<usize>)> {
        let rows = self.rows.1 as usize;
        // Rows without points cost something, too: their start is written.
        let each = TASK.max(order.len() / 64);
        let most = (rows / 64).max(1024);
        let (mut tasks, mut from, mut first) = (vec![], 0, 0);
        while first < rows {
            let mut end = (from + each).min(order.len());
            let mut last = match order.get(end) {
                Some(number) => (number >> 32) as usize,
                None => rows,
            };
            // The row at the end is the next task's, unless it fills this one.
            if last <= first {
                last = first + 1;
            }
            last = last.min(first + most);
            end = from + order[from..].partition_point(|number| ((number >> 32) as usize) < last);
            tasks.push((from..end, first..last));
            (from, first) = (end, last);
        }
        tasks
    }

    fn floats<T: Value>(
        &self,
        line: &Scaled<'_, T>,
        wider: impl Fn(T) -> f64 + Copy,
        (order, rows, mut to): (&[u64], Range<usize>, Segment<'_>),
        ends: &[usize],
        reduction: Reduction,
        (start, each): (f64, f64),
    ) -> bool {
        let mut means = vec![];
        let store = |at: usize, sums: &[f64]| match reduction {
            Reduction::Mean => {
                means.clear();
                means.extend(sums.iter().map(|sum| sum / each));
                to.set_floats(at, &means);
            }
            _ => to.set_floats(at, sums),
        };
        macro_rules! sums {
            ($add:expr, $block:literal) => {
                part!(
                    self,
                    line,
                    (order, rows, ends),
                    (reduction, start),
                    wider,
                    $add,
                    store,
                    $block
                )
            };
        }
        match reduction {
            Reduction::Max => sums!(max_nan, 8),
            Reduction::Min => sums!(min_nan, 8),
            Reduction::Prod => sums!(|x, y| x * y, 8),
            _ => sums!(|x, y| x + y, 32),
        }
    }

    fn integers(
        &self,
        line: &Scaled<'_, i64>,
        (order, rows, mut to): (&[u64], Range<usize>, Segment<'_>),
        ends: &[usize],
        reduction: Reduction,
        start: i64,
    ) -> bool {
        let store = |at: usize, sums: &[i64]| to.set_integers(at, sums);
        macro_rules! sums {
            ($add:expr, $block:literal) => {
                part!(
                    self,
                    line,
                    (order, rows, ends),
                    (reduction, start),
                    |x: i64| x,
                    $add,
                    store,
                    $block
                )
            };
        }
        match reduction {
            Reduction::Max => sums!(i64::max, 8),
            Reduction::Min => sums!(i64::min, 8),
            Reduction::Prod => sums!(i64::wrapping_mul, 8),
            _ => sums!(i64::wrapping_add, 8),
        }
    }
}

/// The value of a kernel, as a line for each point.
fn line<'a>(kernel: &Kernel, sight: &Sight<'_, 'a>) -> Option<Line<'a>> {
    let dtype = kernel.graph.dtype(kernel.root);
    Some(match dtype {
        DType::F32 => Line::F32(sight.scaled(kernel.root, dtype)?),
        DType::F64 => Line::F64(sight.scaled(kernel.root, dtype)?),
        DType::I64 => Line::I64(sight.scaled(kernel.root, dtype)?),
        _ => return None,
    })
}
