//! The elimination of one variable: the least sum of its tables, for every combination of its neighbours.
//!
//! Must not know the order of eliminations.
//!
//! ```text
//! x in 0..2, y in 0..2, price(x, y) = [[3, 1], [2, 4]]: eliminate x, m(y) = [2, 1]
//! ```

use super::table::Table;

/// Entries along which an elimination loops innermost, at least, where a table has as many.
const ROW: usize = 32;

/// A table with its axes in the order that the elimination loops in.
struct Aligned {
    /// Distance between neighbours along each looped variable; 0 where the table does not depend on it.
    strides: Vec<usize>,
    values: Vec<f64>,
}

/// `min over x` of the sum of the tables, over `around` in row-major order; `None` once the deadline has passed.
pub(super) fn eliminate(
    domains: &[usize],
    x: usize,
    around: &[usize],
    tables: &[Table],
    deadline: &dyn Fn() -> bool,
) -> Option<Vec<f64>> {
    let count = domains[x];
    // The last variables are the inner loop: prices of one choice of `x` along them are a row.
    let mut split = around.len();
    let mut row = 1;
    while split > 0 && row < ROW {
        split -= 1;
        row *= domains[around[split]];
    }
    let (outer, inner) = around.split_at(split);
    let (with_inner, without): (Vec<&Table>, Vec<&Table>) = tables
        .iter()
        .partition(|table| inner.iter().any(|y| table.variables.contains(y)));
    let along = |inner: &[usize], tables: &[&Table]| -> Vec<Aligned> {
        let tables = tables.iter();
        tables
            .map(|table| aligned(domains, table, outer, x, inner))
            .collect()
    };
    let rows = along(inner, &with_inner);
    let bases = along(&[], &without);
    let combinations: usize = outer.iter().map(|y| domains[*y]).product();
    let mut result = vec![f64::INFINITY; combinations * row];
    let mut at = vec![0usize; outer.len()];
    let mut sum = vec![0.0; row];
    let mut base_starts = vec![0; bases.len()];
    let mut row_starts = vec![0; rows.len()];
    for combination in 0..combinations {
        if combination % 256 == 255 && deadline() {
            return None;
        }
        let best = &mut result[combination * row..(combination + 1) * row];
        for choice in 0..count {
            let with_base = bases.iter().zip(&base_starts);
            let base: f64 = with_base
                .map(|(table, start)| table.values[start + choice])
                .sum();
            if base == f64::INFINITY {
                continue;
            }
            let part = |number: usize| {
                let start = row_starts[number] + choice * row;
                &rows[number].values[start..start + row]
            };
            match rows.len() {
                0 => best
                    .iter_mut()
                    .for_each(|b| *b = if base < *b { base } else { *b }),
                1 => lower(best, part(0), base),
                _ => {
                    sum.copy_from_slice(part(0));
                    for number in 1..rows.len() {
                        sum.iter_mut().zip(part(number)).for_each(|(s, p)| *s += p);
                    }
                    lower(best, &sum, base);
                }
            }
        }
        for place in (0..outer.len()).rev() {
            at[place] += 1;
            let wrapped = at[place] == domains[outer[place]];
            let steps = if wrapped { at[place] - 1 } else { 1 };
            let starts = bases.iter().zip(&mut base_starts);
            for (table, start) in starts.chain(rows.iter().zip(&mut row_starts)) {
                let step = table.strides[place] * steps;
                *start = if wrapped {
                    *start - step
                } else {
                    *start + step
                };
            }
            if !wrapped {
                break;
            }
            at[place] = 0;
        }
    }
    Some(result)
}

fn lower(best: &mut [f64], row: &[f64], base: f64) {
    for (best, price) in best.iter_mut().zip(row) {
        let price = price + base;
        *best = if price < *best { price } else { *best };
    }
}

/// A table in the order: its outer variables, `x`, then the inner ones, repeated along those that it does not speak of.
fn aligned(
    domains: &[usize],
    table: &Table,
    outer: &[usize],
    x: usize,
    inner: &[usize],
) -> Aligned {
    let own_outer = outer.iter().filter(|y| table.variables.contains(y));
    let order: Vec<usize> = own_outer
        .copied()
        .chain([x])
        .chain(inner.to_vec())
        .collect();
    let own = |y: usize| -> usize {
        let Some(place) = table.variables.iter().position(|z| *z == y) else {
            return 0;
        };
        let after = &table.variables[place + 1..];
        after.iter().map(|z| domains[*z]).product()
    };
    let own: Vec<usize> = order.iter().map(|y| own(*y)).collect();
    let sizes: Vec<usize> = order.iter().map(|y| domains[*y]).collect();
    let mut values = Vec::with_capacity(sizes.iter().product());
    arrange(&table.prices.values, &sizes, &own, &mut values);
    let strides = outer
        .iter()
        .map(|y| {
            let place = order.iter().position(|z| z == y);
            let after = place.map(|p| order[p + 1..].iter().map(|z| domains[*z]).product());
            after.unwrap_or(0)
        })
        .collect();
    Aligned { strides, values }
}

/// Appends entries in row-major order of axes that have these sizes, and these distances between neighbours.
fn arrange(entries: &[f64], sizes: &[usize], strides: &[usize], arranged: &mut Vec<f64>) {
    match (sizes, strides) {
        ([size], [0]) => arranged.extend(std::iter::repeat_n(entries[0], *size)),
        ([size], [1]) => arranged.extend_from_slice(&entries[..*size]),
        ([size, sizes @ ..], [stride, strides @ ..]) => {
            for at in 0..*size {
                arrange(&entries[at * stride..], sizes, strides, arranged);
            }
        }
        _ => arranged.push(entries[0]),
    }
}
