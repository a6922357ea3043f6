//! Exact minimisation over a network of discrete choices: variables with finite domains, prices on small groups.
//!
//! Variables are eliminated one by one, each time the one whose neighbours' joint table is smallest:
//! `m(N) = min over x of the sum of the tables that speak of x`. (luo2021's algorithm 4 is this recurrence with a
//! topological order and the joint table of everything live.) Tables are compared by number: an elimination that has
//! the same tables as an earlier one is not done again, so repeated parts of a network are solved once and combined
//! by min-plus products. All prices are multiples of one quantum, hence sums exact and ties broken by position.
//! Must not know what the variables stand for.
//!
//! ```text
//! x in 0..2, y in 0..2, price(x, y) = [[3, 1], [2, 4]]: eliminate x, m(y) = [2, 1]; the least is 1 at (0, 1)
//! ```

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A table of prices over some variables, the last one fastest; infinite where a combination is not allowed.
#[derive(Clone, Debug)]
pub struct Table {
    /// Different variables.
    pub variables: Vec<usize>,
    /// One price a combination.
    pub prices: Prices,
}

/// The entries of a table, with a number that equal entries may share.
#[derive(Clone, Debug)]
pub struct Prices {
    /// The entries.
    pub values: Rc<Vec<f64>>,
    /// Equal numbers mean equal entries.
    pub number: u64,
}

/// A network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The size of each variable's domain.
    pub domains: Vec<usize>,
    /// The price of a choice is the sum of the tables.
    pub tables: Vec<Table>,
}

/// The effort of solving, known beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Entries of the largest table made.
    pub largest: f64,
    /// Sums compared in all.
    pub operations: f64,
}

/// The best choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Its price; infinite if no combination is allowed.
    pub value: f64,
    /// By variable.
    pub choice: Vec<usize>,
}

/// Why there is no solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// A table would have so many entries.
    TooLarge(f64),
    /// The operations that were granted are used up.
    Budget,
    /// The deadline has passed.
    Deadline,
}

/// Eliminations that were done, for reuse: by the sizes and tables that went in.
#[derive(Debug)]
pub struct Eliminated {
    numbers: u64,
    results: FxHashMap<Vec<u64>, Prices>,
    /// How many eliminations were found here rather than done.
    pub reused: usize,
    /// Sums compared so far.
    pub operations: f64,
    /// The most that may be compared.
    pub budget: f64,
}

impl Default for Eliminated {
    fn default() -> Eliminated {
        Eliminated {
            numbers: 0,
            results: FxHashMap::default(),
            reused: 0,
            operations: 0.0,
            budget: f64::INFINITY,
        }
    }
}

impl Eliminated {
    /// Forgets what was eliminated; numbers stay valid.
    pub fn forget(&mut self) {
        self.results.clear();
    }

    /// A number for entries that are equal to no other table's, as far as is known.
    pub fn number(&mut self, values: Vec<f64>) -> Prices {
        self.numbers += 1;
        Prices {
            values: Rc::new(values),
            number: self.numbers,
        }
    }
}

impl Network {
    /// The order in which variables are eliminated, and what that takes.
    pub fn order(&self) -> (Vec<usize>, Effort) {
        self.order_up_to(f64::INFINITY)
    }

    /// Returns whether eliminating every variable takes at most so many operations, and no table of more than `cap` entries.
    pub fn is_small(&self, operations: f64, cap: usize) -> bool {
        let (_, effort) = self.order_up_to(operations);
        effort.operations <= operations && effort.largest <= cap as f64
    }

    /// [`Network::order`] as far as it takes so many operations.
    fn order_up_to(&self, operations: f64) -> (Vec<usize>, Effort) {
        let count = self.domains.len();
        let mut neighbours: Vec<Vec<usize>> = vec![vec![]; count];
        for Table { variables, .. } in &self.tables {
            for x in variables {
                neighbours[*x].extend(variables.iter().filter(|y| *y != x));
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let size = |x: usize, list: &[usize]| -> f64 {
            let sizes = list.iter().chain([&x]).map(|y| self.domains[*y] as f64);
            sizes.product()
        };
        let mut sizes: Vec<f64> = (0..count).map(|x| size(x, &neighbours[x])).collect();
        // How many eliminations a variable's tables have been through: preferring fresh ones combines equal blocks
        // in pairs, then pairs of pairs, so that they stay equal.
        let mut age = vec![0usize; count];
        // Sizes are positive: their bits are in their order.
        let place = |x: usize, sizes: &[f64], age: &[usize]| (sizes[x].to_bits(), age[x], x);
        let mut left: BTreeSet<(u64, usize, usize)> =
            (0..count).map(|x| place(x, &sizes, &age)).collect();
        let mut order = vec![];
        let mut effort = Effort::default();
        while let Some((_, _, x)) = left.pop_first() {
            if effort.operations > operations {
                break;
            }
            let around = std::mem::take(&mut neighbours[x]);
            effort.operations += sizes[x];
            effort.largest = effort.largest.max(sizes[x] / self.domains[x].max(1) as f64);
            for y in &around {
                left.remove(&place(*y, &sizes, &age));
                let list = &mut neighbours[*y];
                list.extend(around.iter().filter(|z| *z != y));
                list.retain(|z| *z != x);
                list.sort_unstable();
                list.dedup();
                sizes[*y] = size(*y, list);
                age[*y] = age[*y].max(age[x] + 1);
                left.insert(place(*y, &sizes, &age));
            }
            order.push(x);
        }
        (order, effort)
    }

    /// The best choice; of equal ones that with the lowest values, those eliminated last deciding first. No table
    /// of more than `cap` entries is made.
    pub fn solve(
        &self,
        cap: usize,
        eliminated: &mut Eliminated,
        deadline: &dyn Fn() -> bool,
    ) -> Result<Solution, Stop> {
        let (order, effort) = self.order();
        if effort.largest > cap as f64 {
            return Err(Stop::TooLarge(effort.largest));
        }
        let (value, steps) = self.eliminate_all(&order, f64::INFINITY, eliminated, deadline)?;
        let mut choice = vec![0; self.domains.len()];
        for (x, gone) in steps.iter().rev() {
            let mut best = f64::INFINITY;
            let mut chosen = 0;
            for value in 0..self.domains[*x] {
                choice[*x] = value;
                let price: f64 = gone.iter().map(|table| self.at(table, &choice)).sum();
                if price < best {
                    (best, chosen) = (price, value);
                }
            }
            choice[*x] = chosen;
        }
        Ok(Solution { value, choice })
    }

    /// A price that no choice is below. Where a table would have more than `cap` entries, the tables are divided
    /// into groups that are minimised each for itself (mini-buckets).
    pub fn bound(
        &self,
        cap: usize,
        eliminated: &mut Eliminated,
        deadline: &dyn Fn() -> bool,
    ) -> Result<f64, Stop> {
        let (order, _) = self.order();
        let (value, _) = self.eliminate_all(&order, cap as f64, eliminated, deadline)?;
        Ok(value)
    }

    /// Eliminates every variable; the value, and the tables that went with each.
    #[allow(clippy::type_complexity)]
    fn eliminate_all(
        &self,
        order: &[usize],
        cap: f64,
        eliminated: &mut Eliminated,
        deadline: &dyn Fn() -> bool,
    ) -> Result<(f64, Vec<(usize, Vec<Table>)>), Stop> {
        let mut tables: Vec<Option<Table>> = self.tables.iter().cloned().map(Some).collect();
        let mut touching: Vec<Vec<usize>> = vec![vec![]; self.domains.len()];
        for (number, table) in self.tables.iter().enumerate() {
            for x in &table.variables {
                touching[*x].push(number);
            }
        }
        let constants = self.tables.iter().filter(|t| t.variables.is_empty());
        let mut value: f64 = constants.map(|table| table.prices.values[0]).sum();
        let mut steps: Vec<(usize, Vec<Table>)> = vec![];
        for x in order {
            let gone: Vec<Table> = touching[*x]
                .iter()
                .filter_map(|t| tables[*t].take())
                .collect();
            for group in self.groups(*x, &gone, cap) {
                let around = self.around(*x, &group);
                let prices = self.eliminated(*x, &around, &group, eliminated, deadline)?;
                if around.is_empty() {
                    value += prices.values[0];
                    continue;
                }
                for y in &around {
                    touching[*y].push(tables.len());
                }
                tables.push(Some(Table {
                    variables: around,
                    prices,
                }));
            }
            steps.push((*x, gone));
        }
        Ok((value, steps))
    }

    /// Tables in groups, each with a joint table of at most `cap` entries if there is more than one in it.
    fn groups(&self, x: usize, tables: &[Table], cap: f64) -> Vec<Vec<Table>> {
        let entries = |tables: &[Table]| -> f64 {
            let around = self.around(x, tables);
            around.iter().map(|y| self.domains[*y] as f64).product()
        };
        if entries(tables) <= cap {
            return vec![tables.to_vec()];
        }
        let mut groups: Vec<Vec<Table>> = vec![];
        for table in tables {
            let fitting = groups.iter_mut().find_map(|group| {
                let joint: Vec<Table> = group.iter().chain([table]).cloned().collect();
                (entries(&joint) <= cap).then_some((group, joint))
            });
            match fitting {
                Some((group, joint)) => *group = joint,
                None => groups.push(vec![table.clone()]),
            }
        }
        groups
    }

    fn eliminated(
        &self,
        x: usize,
        around: &[usize],
        gone: &[Table],
        eliminated: &mut Eliminated,
        deadline: &dyn Fn() -> bool,
    ) -> Result<Prices, Stop> {
        if deadline() {
            return Err(Stop::Deadline);
        }
        let key = self.key(x, around, gone);
        if let Some(prices) = eliminated.results.get(&key) {
            eliminated.reused += 1;
            return Ok(prices.clone());
        }
        let sizes = around.iter().chain([&x]).map(|y| self.domains[*y] as f64);
        eliminated.operations += sizes.product::<f64>();
        if eliminated.operations > eliminated.budget {
            return Err(Stop::Budget);
        }
        let made = eliminate(&self.domains, x, around, gone, deadline).ok_or(Stop::Deadline)?;
        let made = eliminated.number(made);
        eliminated.results.insert(key, made.clone());
        Ok(made)
    }

    /// The price of a choice.
    pub fn price(&self, choice: &[usize]) -> f64 {
        self.tables.iter().map(|table| self.at(table, choice)).sum()
    }

    fn at(&self, table: &Table, choice: &[usize]) -> f64 {
        let variables = table.variables.iter();
        table.prices.values[variables.fold(0, |at, x| at * self.domains[*x] + choice[*x])]
    }

    /// The variables that share a table with `x`, by size, then number.
    fn around(&self, x: usize, tables: &[Table]) -> Vec<usize> {
        let mut around: Vec<usize> = tables.iter().flat_map(|t| t.variables.clone()).collect();
        around.retain(|y| *y != x);
        around.sort_unstable_by_key(|y| (self.domains[*y], *y));
        around.dedup();
        around
    }

    /// Returns everything that an elimination depends on, with variables numbered anew.
    fn key(&self, x: usize, around: &[usize], tables: &[Table]) -> Vec<u64> {
        let place = |y: &usize| around.iter().position(|z| z == y).unwrap_or(around.len());
        let mut parts: Vec<Vec<u64>> = tables
            .iter()
            .map(|table| {
                let places = table.variables.iter().map(|y| place(y) as u64);
                let length = table.variables.len() as u64;
                [table.prices.number, length]
                    .into_iter()
                    .chain(places)
                    .collect()
            })
            .collect();
        parts.sort_unstable();
        let mut key = vec![self.domains[x] as u64];
        key.extend(around.iter().map(|y| self.domains[*y] as u64));
        key.push(u64::MAX);
        key.extend(parts.concat());
        key
    }
}

/// A table with its axes in the order that the elimination loops in.
struct Aligned {
    /// Distance between neighbours along each looped variable; 0 where the table does not depend on it.
    strides: Vec<usize>,
    values: Vec<f64>,
}

/// `min over x` of the sum of the tables, over `around` in row-major order; `None` once the deadline has passed.
fn eliminate(
    domains: &[usize],
    x: usize,
    around: &[usize],
    tables: &[Table],
    deadline: &dyn Fn() -> bool,
) -> Option<Vec<f64>> {
    let count = domains[x];
    // The last variable is the inner loop: prices of one choice of `x` along it are a row.
    let (outer, last) = match around.split_last() {
        Some((last, outer)) => (outer, Some(*last)),
        None => (around, None),
    };
    let row = last.map_or(1, |y| domains[y]);
    let (with_last, without): (Vec<&Table>, Vec<&Table>) = tables
        .iter()
        .partition(|table| last.is_some_and(|y| table.variables.contains(&y)));
    let rows: Vec<Aligned> = with_last
        .iter()
        .map(|table| aligned(domains, table, outer, x, last))
        .collect();
    let bases: Vec<Aligned> = without
        .iter()
        .map(|table| aligned(domains, table, outer, x, None))
        .collect();
    let combinations: usize = outer.iter().map(|y| domains[*y]).product();
    let mut result = vec![f64::INFINITY; combinations * row];
    let mut at = vec![0usize; outer.len()];
    let mut sum = vec![0.0; row];
    for combination in 0..combinations {
        if combination % 256 == 255 && deadline() {
            return None;
        }
        let start = |table: &Aligned| -> usize {
            table
                .strides
                .iter()
                .zip(&at)
                .map(|(stride, at)| stride * at)
                .sum()
        };
        let base_starts: Vec<usize> = bases.iter().map(start).collect();
        let row_starts: Vec<usize> = rows.iter().map(start).collect();
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
        for (at, y) in at.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < domains[*y] {
                break;
            }
            *at = 0;
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

/// A table in the order: its outer variables, `x`, then `last` if it is given.
fn aligned(
    domains: &[usize],
    table: &Table,
    outer: &[usize],
    x: usize,
    last: Option<usize>,
) -> Aligned {
    let order: Vec<usize> = outer
        .iter()
        .copied()
        .filter(|y| table.variables.contains(y))
        .chain([x])
        .chain(last)
        .collect();
    let own = |y: usize| -> usize {
        let place = table.variables.iter().position(|z| *z == y);
        let after = &table.variables[place.map_or(0, |p| p + 1)..];
        after.iter().map(|z| domains[*z]).product()
    };
    let own: Vec<usize> = order.iter().map(|y| own(*y)).collect();
    let total = table.prices.values.len();
    let mut values = Vec::with_capacity(total);
    let mut at = vec![0usize; order.len()];
    let mut from = 0;
    for _ in 0..total {
        values.push(table.prices.values[from]);
        for (place, y) in order.iter().enumerate().rev() {
            at[place] += 1;
            from += own[place];
            if at[place] < domains[*y] {
                break;
            }
            from -= own[place] * domains[*y];
            at[place] = 0;
        }
    }
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
