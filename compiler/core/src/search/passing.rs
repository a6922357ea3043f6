//! Prices of a network on their way between its variables, as [`super::bounds`] passes them.
//!
//! A price that a variable hands to a table it shares with another is its own no more, so that prices of choices stay as they
//! were; the sum of all least prices, which no choice is below, rises. Must not know what is done with the bounds.
//!
//! ```text
//! x pays 3 or 1, x and y together [[0, 4], [2, 0]]: handed to y, x pays 0, and y at least 2 or 1
//! ```

use super::network::Network;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Sums that could be compared in the time that it takes to come to a table.
const COMING: usize = 16;

/// A network whose variables hand prices to each other.
pub(super) struct Passing {
    /// By variable: where its values begin in `own`; at last, how many there are.
    starts: Vec<usize>,
    /// The cost of each value by itself, less the amounts that were handed on.
    own: Vec<f64>,
    links: Links,
    pub(super) by_value: Vec<Vec<f64>>,
    /// Prices of tables of no variable.
    constant: f64,
    /// Prices from here on are those of choices that are forbidden.
    forbidden: f64,
    scratch: [Vec<f64>; 2],
}

/// The tables between two variables, and what they were handed.
struct Links {
    edges: Vec<Edge>,
    /// By table and end: the price that the end has taken out of the table (negative: put in), by its value.
    taken: Vec<f64>,
    /// By variable: its tables, and which end of each it is.
    around: Vec<Vec<(usize, usize)>>,
}

impl Passing {
    /// Nothing is handed on yet. `forbidden`: dearer than any choice that matters; prices above it are lowered to it.
    pub(super) fn new(network: &Network, forbidden: f64) -> Passing {
        let mut starts = vec![0];
        for domain in &network.domains {
            starts.push(starts[starts.len() - 1] + domain);
        }
        let mut own = vec![0.0; starts[network.domains.len()]];
        let mut links = Links {
            edges: vec![],
            taken: vec![],
            around: vec![vec![]; network.domains.len()],
        };
        let mut constant = 0.0;
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
                    links.add([*x, *y], [rows, columns], table);
                }
                [x] => own[starts[*x]..]
                    .iter_mut()
                    .zip(values)
                    .for_each(|(own, v)| *own += v),
                _ => constant += values.sum::<f64>(),
            }
        }
        let unknown = |n: &usize| vec![f64::NEG_INFINITY; *n];
        Passing {
            starts,
            own,
            links,
            by_value: network.domains.iter().map(unknown).collect(),
            constant,
            forbidden,
            scratch: [vec![], vec![]],
        }
    }

    /// Carries the bounds over to a network of the same tables over other values: by variable and new value, the value here that stands for
    /// it. New prices are nowhere lower than those of what stands for them.
    pub(super) fn carried(&self, network: &Network, from: &[Vec<usize>]) -> Passing {
        let mut next = Passing::new(network, self.forbidden);
        for (known, (before, from)) in next.by_value.iter_mut().zip(self.by_value.iter().zip(from))
        {
            *known = from.iter().map(|at| before[*at]).collect();
        }
        // The least entry of a new table may be higher than is said here.
        let edges = next.links.edges.iter_mut().zip(&self.links.edges);
        for (edge, before) in edges {
            edge.least = before.least;
            for end in 0..2 {
                let x = edge.ends[end];
                let own = &mut next.own[next.starts[x]..];
                let taken = &mut next.links.taken[edge.places[end]..];
                let before = &self.links.taken[before.places[end]..];
                for ((own, taken), from) in own.iter_mut().zip(taken).zip(&from[x]) {
                    *taken = before[*from];
                    *own += *taken;
                }
            }
        }
        next
    }

    /// Takes over what tables of another network have been handed, each of which stands for some of the tables here. By table between
    /// two variables: its number among those of the other network, if it is one there, and for how many it stands.
    pub(super) fn take_over(&mut self, other: &Passing, tables: &[Option<(usize, usize)>]) {
        for (edge, stands) in self.links.edges.iter_mut().zip(tables) {
            let Some((number, times)) = *stands else {
                continue;
            };
            let from = &other.links.edges[number];
            let share = 1.0 / times as f64;
            for end in 0..2 {
                let values = self.starts[edge.ends[end]]..self.starts[edge.ends[end] + 1];
                let taken = &mut self.links.taken[edge.places[end]..];
                let given = &other.links.taken[from.places[end]..];
                let both = taken.iter_mut().zip(given);
                for (own, (taken, given)) in self.own[values].iter_mut().zip(both) {
                    *taken = share * given;
                    *own += *taken;
                }
            }
            edge.least = share * from.least;
        }
    }

    /// Sums compared where each table between two variables is looked at once: its entries without repetitions, and as many more as
    /// it takes to come to it.
    pub(super) fn sums(&self) -> f64 {
        let tables = self.links.edges.iter();
        let sums = tables.map(|edge| edge.table.prices[0].len() + COMING);
        sums.sum::<usize>() as f64
    }

    /// Changes the values of a choice one by one while that makes it cheaper.
    pub(super) fn improve(&mut self, choice: &mut [usize], sweeps: usize) {
        // A variable is looked at again only if one beside it has changed.
        let mut open = vec![true; choice.len()];
        let [sum, _] = &mut self.scratch;
        for _ in 0..sweeps {
            let mut changed = false;
            for x in 0..choice.len() {
                if !std::mem::replace(&mut open[x], false) {
                    continue;
                }
                let own = &self.own[self.starts[x]..self.starts[x + 1]];
                let value = self.links.cheapest(x, own, choice, sum, |_| true);
                if value != choice[x] {
                    changed = true;
                    choice[x] = value;
                    self.links.beside(x).for_each(|y| open[y] = true);
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// Visits every variable, in order or backwards; the bound afterwards. `choice`: takes for each variable the value
    /// that is cheapest beside those taken before it; empty if that is not wanted.
    pub(super) fn pass(&mut self, forward: bool, choice: &mut [usize]) -> f64 {
        let Passing {
            starts,
            own,
            links,
            by_value,
            scratch,
            ..
        } = self;
        let count = by_value.len();
        let of = |x: usize| starts[x]..starts[x + 1];
        let mut bound: f64 = self.constant
            + (0..count).map(|x| least(&own[of(x)])).sum::<f64>()
            + links.edges.iter().map(|edge| edge.least).sum::<f64>();
        let mut highest = bound;
        for step in 0..count {
            let x = if forward { step } else { count - 1 - step };
            let own = &mut own[of(x)];
            let before = least(own);
            let mut spread = [0usize; 2];
            for (edge, end) in &links.around[x] {
                let edge = &mut links.edges[*edge];
                bound -= edge.least;
                edge.collect(*end, own, &mut links.taken, scratch);
                edge.least = 0.0;
                let other = edge.ends[1 - end];
                spread[usize::from((other > x) == forward)] += 1;
            }
            let now = least(own);
            bound += now - before;
            highest = highest.max(bound);
            for (known, price) in by_value[x].iter_mut().zip(own.iter()) {
                *known = known.max(bound - now + price);
            }
            if !choice.is_empty() {
                let [sum, _] = &mut *scratch;
                choice[x] = links.cheapest(x, own, choice, sum, |y| (y < x) == forward);
            }
            let share = 1.0 / spread[0].max(spread[1]).max(1) as f64;
            for (edge, end) in &links.around[x] {
                let edge = &mut links.edges[*edge];
                if (edge.ends[1 - end] > x) != forward {
                    continue;
                }
                let taken = &mut links.taken[edge.places[*end]..];
                for (taken, price) in taken.iter_mut().zip(own.iter()) {
                    *taken -= share * price;
                }
                edge.least = share * now;
            }
            // What is handed on leaves; the bound is as it was, since every share has the same least value.
            let kept = 1.0 - share * spread[1] as f64;
            own.iter_mut().for_each(|price| *price *= kept);
        }
        highest
    }
}

impl Links {
    /// A table between two variables of so many values, to which nothing is handed yet.
    fn add(&mut self, ends: [usize; 2], sizes: [usize; 2], table: &Rc<Distinct>) {
        let number = self.edges.len();
        self.around[ends[0]].push((number, 0));
        self.around[ends[1]].push((number, 1));
        let first = self.taken.len();
        self.taken.resize(first + sizes[0] + sizes[1], 0.0);
        self.edges.push(Edge {
            ends,
            table: table.clone(),
            places: [first, first + sizes[0]],
            least: table.least,
        });
    }

    /// The variables that share a table with one.
    fn beside(&self, x: usize) -> impl Iterator<Item = usize> + '_ {
        let around = self.around[x].iter();
        around.map(|(edge, end)| self.edges[*edge].ends[1 - end])
    }

    /// The value of a variable that is cheapest by itself and with the values that some neighbours have.
    fn cheapest(
        &self,
        x: usize,
        own: &[f64],
        choice: &[usize],
        sum: &mut Vec<f64>,
        with: impl Fn(usize) -> bool,
    ) -> usize {
        sum.clear();
        sum.extend_from_slice(own);
        for (edge, end) in &self.around[x] {
            let edge = &self.edges[*edge];
            let other = edge.ends[1 - end];
            if with(other) {
                edge.beside(*end, choice[other], &self.taken, sum);
            }
        }
        let least = least(sum);
        sum.iter().position(|price| *price <= least).unwrap_or(0)
    }
}

/// A table between two variables without its repetitions: values whose rows are equal are one class.
struct Distinct {
    /// By end and value: its class.
    classes: [Vec<usize>; 2],
    /// Prices of classes, with those of the first variable slowest, and of the second slowest.
    prices: [Vec<f64>; 2],
    /// By end: how many classes.
    counts: [usize; 2],
    /// The least entry.
    least: f64,
}

/// A table between two variables, and where it is noted what has been handed to each.
struct Edge {
    ends: [usize; 2],
    table: Rc<Distinct>,
    /// By end: where the amounts that it has taken begin.
    places: [usize; 2],
    /// The least entry of the table as it is now.
    least: f64,
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
            least: least(&straight),
            prices: [straight, turned.collect()],
            classes: [of_row, of_column],
            counts: [first_rows.len(), first_columns.len()],
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
    fn collect(
        &mut self,
        end: usize,
        own: &mut [f64],
        taken: &mut [f64],
        [most, least]: &mut [Vec<f64>; 2],
    ) {
        let turned = &self.table.prices[1 - end];
        let mine = &self.table.classes[end];
        let others = &self.table.classes[1 - end];
        let count = self.table.counts[end];
        let handed = &taken[self.places[1 - end]..][..others.len()];
        // Of values with the same prices only the one that has taken most can be the cheapest.
        let most = match self.table.counts[1 - end] == others.len() {
            true => handed,
            false => {
                most.clear();
                most.resize(self.table.counts[1 - end], f64::NEG_INFINITY);
                for (class, taken) in others.iter().zip(handed) {
                    most[*class] = most[*class].max(*taken);
                }
                most.as_slice()
            }
        };
        least.clear();
        least.resize(count, f64::INFINITY);
        // Rows of the other end's classes, so that the inner loop runs over this end's.
        for (row, taken) in turned.chunks_exact(count.max(1)).zip(most) {
            for (least, price) in least.iter_mut().zip(row) {
                let price = price - *taken;
                *least = if price < *least { price } else { *least };
            }
        }
        let taken = &mut taken[self.places[end]..][..mine.len()];
        for ((own, taken), class) in own.iter_mut().zip(taken).zip(mine) {
            *own += least[*class] - *taken;
            *taken = least[*class];
        }
    }

    /// Adds what the values of one end pay beside a value of the other.
    fn beside(&self, end: usize, value: usize, taken: &[f64], own: &mut [f64]) {
        let count = self.table.counts[end];
        let class = self.table.classes[1 - end][value];
        let row = &self.table.prices[1 - end][class * count..][..count];
        let handed = taken[self.places[1 - end] + value];
        let values = self.table.classes[end]
            .iter()
            .zip(&taken[self.places[end]..]);
        for (own, (class, taken)) in own.iter_mut().zip(values) {
            *own += row[*class] - taken - handed;
        }
    }
}

/// The least of some values, infinite if there are none.
pub(super) fn least(values: &[f64]) -> f64 {
    // Lanes of their own, so that no comparison waits for the one before it.
    let mut lanes = [f64::INFINITY; 4];
    let (chunks, rest) = values.as_chunks::<4>();
    for chunk in chunks {
        for (least, value) in lanes.iter_mut().zip(chunk) {
            *least = if *value < *least { *value } else { *least };
        }
    }
    let least = |least: f64, value: &f64| if *value < least { *value } else { least };
    let lanes = lanes.iter().fold(f64::INFINITY, least);
    rest.iter().fold(lanes, least)
}
