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

use super::eliminate::eliminate;
pub use super::table::{Prices, Table};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;

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
    /// No choice is cheaper than a known one by more than a trifle.
    Near,
    /// The deadline has passed.
    Deadline,
}

/// Facts about numbered tables that hold in every network that has them.
#[derive(Debug, Default)]
pub struct Lasting {
    /// The last number that was given to a table.
    last: u64,
    /// By table: the table of the classes of its values.
    pub classes: FxHashMap<u64, Prices>,
}

/// Eliminations that were done, for reuse: by the sizes and tables that went in.
#[derive(Debug)]
pub struct Eliminated {
    /// The numbers of tables.
    pub lasting: Lasting,
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
            lasting: Lasting::default(),
            results: FxHashMap::default(),
            reused: 0,
            operations: 0.0,
            budget: f64::INFINITY,
        }
    }
}

impl Eliminated {
    /// Nothing is eliminated yet; this is known of tables.
    pub fn after(lasting: Lasting) -> Eliminated {
        Eliminated {
            lasting,
            ..Eliminated::default()
        }
    }

    /// Forgets what was eliminated; numbers stay valid.
    pub fn forget(&mut self) {
        self.results.clear();
    }

    /// A number for entries that are equal to no other table's, as far as is known.
    pub fn number(&mut self, values: Vec<f64>) -> Prices {
        self.lasting.last += 1;
        Prices {
            values: Rc::new(values),
            number: self.lasting.last,
        }
    }
}

impl Network {
    /// The order in which variables are eliminated, and what that takes.
    pub fn order(&self) -> (Vec<usize>, Effort) {
        self.order_up_to(f64::INFINITY, f64::INFINITY)
    }

    /// Returns the order in which every variable is eliminated, if that takes at most so many operations, and no table of more than
    /// `cap` entries.
    pub fn small(&self, operations: f64, cap: usize) -> Option<(Vec<usize>, Effort)> {
        let (order, effort) = self.order_up_to(operations, cap as f64);
        let small = effort.operations <= operations && effort.largest <= cap as f64;
        small.then_some((order, effort))
    }

    /// [`Network::order`] as far as it takes so many operations, and no table of more than `cap` entries.
    fn order_up_to(&self, operations: f64, cap: f64) -> (Vec<usize>, Effort) {
        let count = self.domains.len();
        let mut neighbours: Vec<Vec<usize>> = vec![vec![]; count];
        for table in &self.tables {
            for x in self.open(table) {
                neighbours[*x].extend(self.open(table).filter(|y| *y != x));
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
            if effort.operations > operations || effort.largest > cap {
                break;
            }
            let around = std::mem::take(&mut neighbours[x]);
            effort.operations += sizes[x];
            effort.largest = effort.largest.max(sizes[x] / self.domains[x].max(1) as f64);
            for y in &around {
                left.remove(&place(*y, &sizes, &age));
                let list = &mut neighbours[*y];
                *list = merged(list, &around, |z| z != x && z != *y);
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
        self.solve_in(&order, eliminated, deadline)
    }

    /// [`Network::solve`] by an order of all variables, whatever tables that takes.
    pub fn solve_in(
        &self,
        order: &[usize],
        eliminated: &mut Eliminated,
        deadline: &dyn Fn() -> bool,
    ) -> Result<Solution, Stop> {
        let (value, steps) = self.eliminate_all(order, f64::INFINITY, eliminated, deadline)?;
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
        let open = self.tables.iter().map(|table| Table {
            variables: self.open(table).copied().collect(),
            prices: table.prices.clone(),
        });
        let (open, constants): (Vec<Table>, Vec<Table>) =
            open.partition(|table| !table.variables.is_empty());
        let mut value: f64 = constants.iter().map(|table| table.prices.values[0]).sum();
        let mut touching: Vec<Vec<usize>> = vec![vec![]; self.domains.len()];
        for (number, table) in open.iter().enumerate() {
            for x in &table.variables {
                touching[*x].push(number);
            }
        }
        let mut tables: Vec<Option<Table>> = open.into_iter().map(Some).collect();
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

    /// The variables of a table that have a choice. One with a single value connects nothing, and takes no part in an elimination.
    fn open<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a usize> {
        let variables = table.variables.iter();
        variables.filter(|x| self.domains[**x] != 1)
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

/// Those of two ascending lists that are wanted, ascending, each once.
fn merged(left: &[usize], right: &[usize], wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let Some(next) = match (left.peek(), right.peek()) {
        (Some(a), Some(b)) if a <= b => left.next(),
        (Some(_), None) => left.next(),
        _ => right.next(),
    } {
        if wanted(*next) && all.last() != Some(next) {
            all.push(*next);
        }
    }
    all
}
