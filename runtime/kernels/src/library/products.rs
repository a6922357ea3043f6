//! Products of two matrices that are lists of rows, row by row (Gustavson, ACM Transactions on Mathematical Software 4, 1978).
//!
//! Each element of a row of the first matrix meets the row of the second one that its position says. Terms of an element are added up in the order of
//! these positions. Must not know kernels.
//!
//! ```text
//! a {0: 2.0, 1: 1.0} and b {0: 5.0}, {0: 1.0, 2: 3.0}    ->   row 11.0 0.0 3.0, places 0 2, sums 11.0 3.0
//! ```

use super::listed::{Rows, Summed};
use crate::parallel;
use std::ops::Range;

/// Terms that are worth a task of their own.
const TERMS: usize = 1 << 16;
/// Positions of which each has a sum while a row is added up. Of more, the places of the row have sums, and are looked for.
const NEAR: usize = 1 << 20;
/// A row of which there are so many words of marks for each term sorts its positions; others look through the words.
const WORDS: usize = 16;

/// A row of the product of `a` and `b`, which has the sums that `sums` has room for.
pub(super) fn row<T: Summed>(
    [a, b]: [&Rows<'_, T>; 2],
    row: usize,
    sums: &mut [T::Sum],
    to: &mut [T],
) {
    add_row([a, b], row, sums);
    for (to, sum) in to.iter_mut().zip(sums) {
        *to = T::stored(std::mem::take(sum));
    }
}

/// The places at which the product may have an element, with `columns` places a row; behind them, up to `count`, the last one there is.
pub(super) fn places<T: Clone + Sync>(
    [a, b]: [&Rows<'_, T>; 2],
    columns: usize,
    count: usize,
) -> Vec<i64> {
    let marks = || vec![0u64; columns.div_ceil(64)];
    let tasks = tasks([a, b]);
    let counts = parallel::map_with(tasks.clone(), marks, |marks, _, rows| {
        let mut count = 0;
        for row in rows {
            positions_of_row([a, b], row, (&mut *marks, columns), |_| count += 1);
        }
        count
    });
    let mut all = vec![0; count];
    let (mut rest, mut parts) = (&mut all[..], vec![]);
    for (rows, count) in tasks.into_iter().zip(counts) {
        let (part, behind) = rest.split_at_mut(count.min(rest.len()));
        parts.push((rows, part));
        rest = behind;
    }
    rest.fill((a.ends.len() * columns) as i64 - 1);
    parallel::map_with(parts, marks, |marks, _, (rows, part)| {
        let mut places = part.iter_mut();
        for row in rows {
            positions_of_row([a, b], row, (&mut *marks, columns), |position| {
                if let Some(place) = places.next() {
                    *place = (row * columns + position) as i64;
                }
            });
        }
    });
    all
}

/// The elements of the product at its places, as [`places`] gives them. A place that stands there again has the value 0.
pub(super) fn sums<T: Summed>([a, b]: [&Rows<'_, T>; 2], places: &[i64], columns: usize) -> Vec<T> {
    let mut all = vec![T::ZERO; places.len()];
    let (mut rest, mut from) = (&mut all[..], 0);
    let mut parts = vec![];
    for rows in tasks([a, b]) {
        let end = match rows.end == a.ends.len() {
            true => places.len(),
            false => places.partition_point(|place| *place < (rows.end * columns) as i64),
        };
        let (part, behind) = rest.split_at_mut(end - from);
        parts.push((rows, &places[from..end], part));
        (rest, from) = (behind, end);
    }
    let scratch = || vec![T::Sum::default(); if columns > NEAR { 0 } else { columns }];
    parallel::map_with(parts, scratch, |scratch, _, (rows, mut places, mut to)| {
        for row in rows {
            let (first, end) = ((row * columns) as i64, ((row + 1) * columns) as i64);
            let count = match row + 1 == a.ends.len() {
                true => places.len(),
                false => places.iter().take_while(|place| **place < end).count(),
            };
            let own;
            (own, places) = places.split_at(count);
            let (sums, behind) = to.split_at_mut(count);
            to = behind;
            if columns > NEAR {
                let mut totals = vec![T::Sum::default(); count];
                each_term([a, b], row, |position, term| {
                    let at = own.partition_point(|place| place - first < i64::from(position));
                    if let Some(total) = totals.get_mut(at) {
                        *total = T::plus(*total, term);
                    }
                });
                for (sum, total) in sums.iter_mut().zip(totals) {
                    *sum = T::stored(total);
                }
                continue;
            }
            add_row([a, b], row, scratch);
            for (sum, place) in sums.iter_mut().zip(own) {
                *sum = T::stored(std::mem::take(&mut scratch[(place - first) as usize]));
            }
        }
    });
    all
}

/// Adds the terms of a row to the sums of its positions.
#[inline(always)]
fn add_row<T: Summed>(of: [&Rows<'_, T>; 2], row: usize, sums: &mut [T::Sum]) {
    each_term(of, row, |position, term| {
        if let Some(sum) = sums.get_mut(position as usize) {
            *sum = T::plus(*sum, term);
        }
    });
}

/// Calls `to` with the position and the value of each term of a row.
#[inline(always)]
fn each_term<T: Summed>([a, b]: [&Rows<'_, T>; 2], row: usize, mut to: impl FnMut(u32, T)) {
    let own = a.range(row as i64);
    for (middle, value) in a.positions[own.clone()].iter().zip(&a.values[own]) {
        let met = b.range(i64::from(*middle));
        for (position, other) in b.positions[met.clone()].iter().zip(&b.values[met]) {
            to(*position, value.times(*other));
        }
    }
}

/// Calls `found` with each position below `columns` that a row has, ascending. All marks are 0 before and afterwards.
fn positions_of_row<T: Clone>(
    [a, b]: [&Rows<'_, T>; 2],
    row: usize,
    (marks, columns): (&mut [u64], usize),
    mut found: impl FnMut(usize),
) {
    let met = a.positions[a.range(row as i64)].iter();
    let met = met.map(|middle| &b.positions[b.range(i64::from(*middle))]);
    let terms: usize = met.clone().map(<[u32]>::len).sum();
    if terms * WORDS < marks.len() {
        let mut positions: Vec<u32> = Vec::with_capacity(terms);
        met.for_each(|met| positions.extend_from_slice(met));
        positions.sort_unstable();
        positions.dedup();
        let positions = positions.into_iter().map(|position| position as usize);
        positions
            .take_while(|position| *position < columns)
            .for_each(found);
        return;
    }
    for position in met.flatten() {
        if (*position as usize) < columns {
            marks[*position as usize / 64] |= 1 << (position % 64);
        }
    }
    for (number, word) in marks.iter_mut().enumerate() {
        let mut word = std::mem::take(word);
        while word != 0 {
            found(number * 64 + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}

/// Rows of the product that have about as many terms.
fn tasks<T: Clone>([a, b]: [&Rows<'_, T>; 2]) -> Vec<Range<usize>> {
    let rows = a.ends.len();
    let (mut tasks, mut start, mut terms) = (vec![], 0, 0);
    for row in 0..rows {
        for middle in &a.positions[a.range(row as i64)] {
            terms += b.range(i64::from(*middle)).len();
        }
        terms += 1;
        if terms >= TERMS {
            tasks.push(start..row + 1);
            (start, terms) = (row + 1, 0);
        }
    }
    tasks.push(start..rows);
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::listed::positions;
    use ein_array::Data;
    use std::borrow::Cow;

    /// A matrix of whole numbers, about one of so many elements of which is listed, and its rows.
    fn matrix(
        rows: usize,
        columns: usize,
        few: usize,
        seed: usize,
    ) -> (Vec<Vec<f64>>, [Vec<i64>; 2], Vec<f64>) {
        let element = |row: usize, column: usize| match (row * 31 + column * 17 + seed) % few {
            0 => ((row + 2 * column) % 7) as f64 - 3.0,
            _ => 0.0,
        };
        let row = |row: usize| (0..columns).map(|column| element(row, column)).collect();
        let all: Vec<Vec<f64>> = (0..rows).map(row).collect();
        let (mut ends, mut at, mut values) = (vec![], vec![], vec![]);
        for row in &all {
            for (column, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                at.push(column as i64);
                values.push(*value);
            }
            ends.push(at.len() as i64);
        }
        (all, [ends, at], values)
    }

    #[test]
    fn products_are_those_of_dense_matrices() {
        // Few and many words of marks for each term, an empty row, a last column that has elements.
        for (rows, inner, columns, few) in [
            (9, 40, 70, 5),
            (5, 6, 7, 2),
            (4, 3, 9000, 61),
            (300, 200, 129, 9),
        ] {
            let (left, [ends, at], values) = matrix(rows, inner, few, 0);
            let (right, [other_ends, other_at], others) = matrix(inner, columns, few, 3);
            let side = |ends, at, values, count| Rows {
                ends,
                positions: Cow::Owned(positions(&Data::I64(at), count).into_owned()),
                values: Cow::Owned(values),
            };
            let a: Rows<'_, f64> = side(&ends, at, values, inner);
            let b = side(&other_ends, other_at, others, columns);
            let mut expected = vec![];
            for row in &left {
                let element = |column: usize| (0..inner).map(|k| row[k] * right[k][column]).sum();
                let product: Vec<f64> = (0..columns).map(element).collect();
                expected.extend(product);
            }
            let (mut sums_of_row, mut all) = (vec![0.0; columns], vec![]);
            for number in 0..rows {
                let mut to = vec![1.0; columns];
                row([&a, &b], number, &mut sums_of_row, &mut to);
                all.extend(to);
            }
            assert_eq!(all, expected);
            let count = rows * columns;
            let found = places([&a, &b], columns, count);
            let last = count as i64 - 1;
            let real = found
                .iter()
                .position(|place| *place == last)
                .map_or(count, |at| at + 1);
            assert!(found[..real].is_sorted_by(|a, b| a < b));
            assert!(found[real..].iter().all(|place| *place == last));
            let mut of_places = vec![0.0; count];
            for (place, sum) in found.iter().zip(sums([&a, &b], &found, columns)) {
                of_places[*place as usize] += sum;
            }
            assert_eq!(of_places, expected);
        }
    }
}
