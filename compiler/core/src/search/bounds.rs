//! Lower bounds for every value of every variable of a network, by passing prices along its tables.
//!
//! Sequential tree-reweighted message passing (Kolmogorov 2006): each variable in turn collects what its tables
//! force it to pay, and hands a share of it on. The bound rises towards that of the linear relaxation, which for
//! placements is nearly always the optimum. A value whose bound exceeds the price of some plan is in no better plan:
//! what is left is small enough to be solved exactly. Must not know what the variables stand for.
//!
//! ```text
//! bound 6.48e7; values of `run C` below 6.49e7: 3 of 27
//! ```

use super::network::{Eliminated, Network, Prices, Table};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Bounds of a network.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// No choice is below this.
    pub least: f64,
    /// By variable and value: no choice with this value is below this.
    pub by_value: Vec<Vec<f64>>,
    /// Sums compared.
    pub operations: f64,
}

/// Passes over all variables.
const MOST_PASSES: usize = 120;

/// Passes after which too little gain ends them.
const PATIENCE: usize = 8;

/// The least part of the bound that a pass has to add to it.
const LEAST_GAIN: f64 = 1e-7;

/// A table between two variables without its repetitions: values whose rows are equal are one class.
struct Distinct {
    /// By end and value: its class.
    classes: [Vec<usize>; 2],
    /// Prices of classes, with those of the first variable slowest, and of the second slowest.
    prices: [Vec<f64>; 2],
    /// The least entry.
    least: f64,
}

/// A table between two variables, and what has been handed to each.
struct Edge {
    ends: [usize; 2],
    table: Rc<Distinct>,
    /// The amounts that each end has taken out of the table (negative: put in), by its value.
    taken: [Vec<f64>; 2],
    /// The least entry of the table as it is now.
    least: f64,
}

/// Bounds of a network whose tables speak of at most two variables each. `price`: a price that some choice has; what
/// is above it several times counts as forbidden. Stops early when the deadline passes, or when no choice is left up to `enough`.
pub fn bounds(network: &Network, price: f64, enough: f64, deadline: &dyn Fn() -> bool) -> Bounds {
    let forbidden = (price * 16.0).max(1.0);
    let mut passing = Passing::new(network, forbidden);
    let mut best = f64::NEG_INFINITY;
    let mut stale = 0;
    let tables = passing.edges.iter();
    let entries: f64 = tables.map(|edge| edge.table.prices[0].len() as f64).sum();
    let mut operations = 0.0;
    for _ in 0..MOST_PASSES / 2 {
        if deadline() {
            break;
        }
        // Each pass looks at each table from both ends.
        operations += 4.0 * entries;
        passing.pass(true);
        let least = passing.pass(false);
        if least <= best + LEAST_GAIN * best.abs() {
            stale += 1;
        } else {
            stale = 0;
        }
        best = best.max(least);
        if stale >= PATIENCE || best > enough {
            break;
        }
    }
    Bounds {
        least: best,
        by_value: passing.by_value,
        operations,
    }
}

impl Bounds {
    /// The values of each variable whose bound is at most `price`; at least one each.
    pub fn below(&self, price: f64) -> Vec<Vec<usize>> {
        let kept = |bounds: &Vec<f64>| -> Vec<usize> {
            let least = bounds.iter().copied().fold(f64::INFINITY, f64::min);
            let limit = price.max(least);
            (0..bounds.len())
                .filter(|at| bounds[*at] <= limit)
                .collect()
        };
        self.by_value.iter().map(kept).collect()
    }
}

/// The network in which each variable has only these values, in their order.
pub fn restricted(network: &Network, kept: &[Vec<usize>], eliminated: &mut Eliminated) -> Network {
    let mut made: FxHashMap<(u64, Vec<&[usize]>), Prices> = FxHashMap::default();
    let mut tables = vec![];
    for table in &network.tables {
        let lists: Vec<&[usize]> = table
            .variables
            .iter()
            .map(|x| kept[*x].as_slice())
            .collect();
        let mut sizes = table.variables.iter().map(|x| network.domains[*x]);
        if lists.iter().all(|list| Some(list.len()) == sizes.next()) {
            tables.push(table.clone());
            continue;
        }
        let key = (table.prices.number, lists.clone());
        let prices = made.entry(key).or_insert_with(|| {
            let mut places = vec![0usize];
            for (x, list) in table.variables.iter().zip(&lists) {
                let size = network.domains[*x];
                let wider = places
                    .iter()
                    .flat_map(|at| list.iter().map(move |v| at * size + v));
                places = wider.collect();
            }
            let values = places.iter().map(|at| table.prices.values[*at]).collect();
            eliminated.number(values)
        });
        tables.push(Table {
            variables: table.variables.clone(),
            prices: prices.clone(),
        });
    }
    Network {
        domains: kept.iter().map(Vec::len).collect(),
        tables,
    }
}

struct Passing {
    /// The cost of each value by itself, less the amounts that were handed on.
    own: Vec<Vec<f64>>,
    edges: Vec<Edge>,
    /// By variable: its tables, and which end of each it is.
    around: Vec<Vec<(usize, usize)>>,
    by_value: Vec<Vec<f64>>,
    /// Prices of tables of no variable.
    constant: f64,
}

impl Passing {
    fn new(network: &Network, forbidden: f64) -> Passing {
        let mut passing = Passing {
            own: network.domains.iter().map(|n| vec![0.0; *n]).collect(),
            edges: vec![],
            around: vec![vec![]; network.domains.len()],
            by_value: network
                .domains
                .iter()
                .map(|n| vec![f64::NEG_INFINITY; *n])
                .collect(),
            constant: 0.0,
        };
        let mut distinct: FxHashMap<u64, Rc<Distinct>> = FxHashMap::default();
        for table in &network.tables {
            let values = table.prices.values.iter().map(|price| price.min(forbidden));
            match table.variables.as_slice() {
                [x, y] => {
                    let (rows, columns) = (network.domains[*x], network.domains[*y]);
                    let table = distinct.entry(table.prices.number).or_insert_with(|| {
                        let values: Vec<f64> = values.collect();
                        Rc::new(Distinct::new(&values, rows, columns))
                    });
                    let number = passing.edges.len();
                    passing.around[*x].push((number, 0));
                    passing.around[*y].push((number, 1));
                    passing.edges.push(Edge {
                        ends: [*x, *y],
                        table: table.clone(),
                        taken: [vec![0.0; rows], vec![0.0; columns]],
                        least: table.least,
                    });
                }
                [x] => passing.own[*x]
                    .iter_mut()
                    .zip(values)
                    .for_each(|(own, v)| *own += v),
                _ => passing.constant += values.sum::<f64>(),
            }
        }
        passing
    }

    /// Visits every variable, in order or backwards; the bound afterwards.
    fn pass(&mut self, forward: bool) -> f64 {
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let count = self.own.len();
        let mut bound: f64 = self.constant
            + self.own.iter().map(|own| least(own)).sum::<f64>()
            + self.edges.iter().map(|edge| edge.least).sum::<f64>();
        let mut highest = bound;
        for step in 0..count {
            let x = if forward { step } else { count - 1 - step };
            let before = least(&self.own[x]);
            let mut own = std::mem::take(&mut self.own[x]);
            let mut spread = [0usize; 2];
            for (edge, end) in &self.around[x] {
                let edge = &mut self.edges[*edge];
                bound -= edge.least;
                edge.collect(*end, &mut own);
                edge.least = 0.0;
                let other = edge.ends[1 - end];
                spread[usize::from((other > x) == forward)] += 1;
            }
            let now = least(&own);
            bound += now - before;
            highest = highest.max(bound);
            for (known, price) in self.by_value[x].iter_mut().zip(&own) {
                *known = known.max(bound - now + price);
            }
            let share = 1.0 / spread[0].max(spread[1]).max(1) as f64;
            for (edge, end) in &self.around[x] {
                let edge = &mut self.edges[*edge];
                if (edge.ends[1 - end] > x) != forward {
                    continue;
                }
                for (taken, price) in edge.taken[*end].iter_mut().zip(&own) {
                    *taken -= share * price;
                }
                edge.least = share * now;
            }
            // What is handed on leaves; the bound is as it was, since every share has the same least value.
            let kept = 1.0 - share * spread[1] as f64;
            own.iter_mut().for_each(|price| *price *= kept);
            self.own[x] = own;
        }
        highest
    }
}

impl Distinct {
    /// Of a table in row-major order.
    fn new(values: &[f64], rows: usize, columns: usize) -> Distinct {
        let (of_row, first_rows) = classes(rows, |row| {
            let row = &values[row * columns..(row + 1) * columns];
            row.iter().map(|price| price.to_bits()).collect()
        });
        let (of_column, first_columns) = classes(columns, |column| {
            let prices = first_rows.iter().map(|row| values[row * columns + column]);
            prices.map(f64::to_bits).collect()
        });
        let at = |row: usize, column: usize| values[row * columns + column];
        let straight = first_rows
            .iter()
            .flat_map(|row| first_columns.iter().map(move |column| at(*row, *column)));
        let straight: Vec<f64> = straight.collect();
        let turned = first_columns
            .iter()
            .flat_map(|column| first_rows.iter().map(move |row| at(*row, *column)));
        Distinct {
            least: straight.iter().copied().fold(f64::INFINITY, f64::min),
            prices: [straight, turned.collect()],
            classes: [of_row, of_column],
        }
    }
}

/// By value: which class it is in; by class: its first value. `of` is what values of one class share.
fn classes(count: usize, of: impl Fn(usize) -> Vec<u64>) -> (Vec<usize>, Vec<usize>) {
    let mut known: FxHashMap<Vec<u64>, usize> = FxHashMap::default();
    let mut first = vec![];
    let numbers = (0..count).map(|value| {
        *known.entry(of(value)).or_insert_with(|| {
            first.push(value);
            first.len() - 1
        })
    });
    (numbers.collect(), first)
}

impl Edge {
    /// Takes out of the table what every value of one end pays at least, and adds it to `own`.
    fn collect(&mut self, end: usize, own: &mut [f64]) {
        let turned = &self.table.prices[1 - end];
        let mine = &self.table.classes[end];
        let others = &self.table.classes[1 - end];
        let count = mine.iter().max().map_or(0, |most| most + 1);
        // Of values with the same prices only the one that has taken most can be the cheapest.
        let mut most = vec![f64::NEG_INFINITY; turned.len() / count.max(1)];
        for (class, taken) in others.iter().zip(&self.taken[1 - end]) {
            most[*class] = most[*class].max(*taken);
        }
        let mut least = vec![f64::INFINITY; count];
        // Rows of the other end's classes, so that the inner loop runs over this end's.
        for (row, taken) in turned.chunks_exact(count.max(1)).zip(most) {
            for (least, price) in least.iter_mut().zip(row) {
                let price = price - taken;
                *least = if price < *least { price } else { *least };
            }
        }
        for ((own, taken), class) in own.iter_mut().zip(&mut self.taken[end]).zip(mine) {
            *own += least[*class] - *taken;
            *taken = least[*class];
        }
    }
}
