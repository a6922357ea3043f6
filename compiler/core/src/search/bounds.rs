//! Lower bounds for every value of every variable of a network, and good choices, by passing prices along its tables.
//!
//! Sequential tree-reweighted message passing (Kolmogorov 2006): each variable in turn collects what its tables
//! force it to pay, and hands a share of it on. The bound rises towards that of the linear relaxation, which for
//! placements is nearly always the optimum. On the way each variable takes the value that is cheapest beside those taken
//! before it, which makes a choice. A value whose bound exceeds the price of some choice is in no better one: it is left
//! out of what follows, which so becomes cheaper pass by pass. Where values come in classes that cost nearly the same, such as what
//! differs in the order of equal axes, the classes are bounded first, each at the least price of its values. Must not know what the variables stand for.
//!
//! ```text
//! bound 6.48e7, a choice of 6.49e7; values of `run C` below it: 3 of 27
//! ```

use super::lifted::Lifted;
use super::network::{Eliminated, Network, Prices, Solution, Table};
use super::passing::{Passing, least};
use rustc_hash::FxHashMap;

/// The part of the entries of all tables that has to become free for values to be left out.
const LEAST_FREED: f64 = 0.3;

/// Sweeps in which the values of a choice are changed one by one.
const SWEEPS: usize = 3;

/// A network with bounds for the values that are still in it.
pub struct Bounding {
    /// By variable: how many values it was given.
    sizes: Vec<usize>,
    /// The network of the values that are left.
    current: Network,
    /// By variable: the values that are left, as the given network numbers them.
    kept: Vec<Vec<usize>>,
    passing: Passing,
    least: f64,
    best: Option<Solution>,
    /// Sums compared.
    pub operations: f64,
}

impl Bounding {
    /// Bounds of a network whose tables speak of at most two variables each. `price`: a price that some choice has;
    /// what is above it several times counts as forbidden.
    pub fn new(network: &Network, price: f64) -> Bounding {
        Bounding {
            sizes: network.domains.clone(),
            current: network.clone(),
            kept: network.domains.iter().map(|n| (0..*n).collect()).collect(),
            passing: Passing::new(network, (price * 16.0).max(1.0)),
            least: f64::NEG_INFINITY,
            best: None,
            operations: 0.0,
        }
    }

    /// Bounds of a network that repeats itself, with what was passed in the network of its colours as it is in `above`.
    pub(super) fn below_lifted(
        network: &Network,
        price: f64,
        lifted: &Lifted,
        above: &Bounding,
    ) -> Bounding {
        let mut bounding = Bounding::new(network, price);
        // By table of the lifted network: its number among those between two variables.
        let mut pairs = 0;
        let numbers: Vec<Option<usize>> = (lifted.network.tables.iter())
            .map(|table| {
                let pair = table.variables.len() == 2;
                pairs += usize::from(pair);
                pair.then(|| pairs - 1)
            })
            .collect();
        let own = network.tables.iter().zip(&lifted.tables);
        let tables: Vec<Option<(usize, usize)>> = own
            .filter(|(table, _)| table.variables.len() == 2)
            .map(|(_, (place, times))| Some((numbers[*place]?, *times)))
            .collect();
        bounding.passing.take_over(&above.passing, &tables);
        bounding
    }

    /// From bounds of classes to bounds of the network's own values, of which those stay that are in a class up to `limit`.
    pub fn refined(
        &self,
        network: &Network,
        classes: &[Vec<usize>],
        limit: f64,
        eliminated: &mut Eliminated,
    ) -> Bounding {
        let (kept, from): (Vec<Vec<usize>>, Vec<Vec<usize>>) = self
            .members(classes, limit)
            .map(|members| members.into_iter().unzip())
            .unzip();
        let current = restricted(network, &kept, eliminated);
        Bounding {
            sizes: network.domains.clone(),
            passing: self.passing.carried(&current, &from),
            current,
            kept,
            least: self.least,
            best: None,
            operations: self.operations,
        }
    }

    /// By variable: the values that are in a class up to `limit`, each with its class as it is numbered now.
    fn members<'a>(
        &'a self,
        classes: &'a [Vec<usize>],
        limit: f64,
    ) -> impl Iterator<Item = Vec<(usize, usize)>> + 'a {
        let below = self.below(limit);
        below.into_iter().enumerate().map(move |(x, below)| {
            let mut place = vec![None; self.sizes[x]];
            for at in below {
                place[self.kept[x][at]] = Some(at);
            }
            let values = classes[x].iter().enumerate();
            values
                .filter_map(|(value, class)| Some((value, place[*class]?)))
                .collect()
        })
    }

    /// How many values of each variable are in a class up to `limit`.
    pub fn counted(&self, classes: &[Vec<usize>], limit: f64) -> Vec<usize> {
        self.members(classes, limit)
            .map(|members| members.len())
            .collect()
    }

    /// No choice of the values that are left is below this. It is a sum of many rounded parts.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The best choice that was met.
    pub fn best(&self) -> Option<&Solution> {
        self.best.as_ref()
    }

    /// The network of the values that are left.
    pub fn current(&self) -> &Network {
        &self.current
    }

    /// By variable and value, as the given network numbers them: no choice with this value is below this; infinite for
    /// values that were left out.
    pub fn by_value(&self) -> Vec<Vec<f64>> {
        let mut all: Vec<Vec<f64>> = self.sizes.iter().map(|n| vec![f64::INFINITY; *n]).collect();
        for ((all, kept), bounds) in all.iter_mut().zip(&self.kept).zip(&self.passing.by_value) {
            for (value, bound) in kept.iter().zip(bounds) {
                all[*value] = *bound;
            }
        }
        all
    }

    /// Sums compared on a trip: each pass looks at each table from both ends.
    pub fn effort(&self) -> f64 {
        4.0 * self.passing.sums()
    }

    /// Passes over all variables, there and back, and makes a choice on the way.
    pub fn trip(&mut self) {
        let mut choice = vec![0; self.current.domains.len()];
        self.pass(&mut choice);
        self.passing.improve(&mut choice, SWEEPS);
        let value = self.current.price(&choice);
        if value.is_finite() && self.best.as_ref().is_none_or(|best| value < best.value) {
            self.best = Some(self.given(Solution { value, choice }));
        }
    }

    /// Passes over all variables, there and back, without a choice.
    pub fn pass_only(&mut self) {
        self.pass(&mut []);
    }

    fn pass(&mut self, choice: &mut [usize]) {
        self.operations += self.effort();
        self.passing.pass(true, choice);
        let least = self.passing.pass(false, &mut []);
        self.least = self.least.max(least);
    }

    /// A choice of the values that are left, as one of the given network.
    pub fn given(&self, solution: Solution) -> Solution {
        let values = solution.choice.iter().zip(&self.kept);
        Solution {
            value: solution.value,
            choice: values.map(|(at, kept)| kept[*at]).collect(),
        }
    }

    /// Leaves out the values that no choice up to `limit` has, if that makes enough tables smaller; returns whether it did.
    pub fn shrink(&mut self, limit: f64, eliminated: &mut Eliminated) -> bool {
        let kept = self.below(limit);
        let entries = |size: &dyn Fn(usize) -> usize| -> f64 {
            let tables = self.current.tables.iter();
            let sizes = tables.map(|table| {
                table
                    .variables
                    .iter()
                    .map(|x| size(*x) as f64)
                    .product::<f64>()
            });
            sizes.sum()
        };
        if entries(&|x| kept[x].len()) > (1.0 - LEAST_FREED) * entries(&|x| self.current.domains[x])
        {
            return false;
        }
        self.current = restricted(&self.current, &kept, eliminated);
        self.passing = self.passing.carried(&self.current, &kept);
        for (all, kept) in self.kept.iter_mut().zip(&kept) {
            *all = kept.iter().map(|at| all[*at]).collect();
        }
        true
    }

    /// The values of each variable, of those that are left, whose bound is at most `price`; at least one each.
    pub fn below(&self, price: f64) -> Vec<Vec<usize>> {
        let price = price + price.abs() * 1e-9;
        let kept = |bounds: &Vec<f64>| -> Vec<usize> {
            let limit = price.max(least(bounds));
            (0..bounds.len())
                .filter(|at| bounds[*at] <= limit)
                .collect()
        };
        self.passing.by_value.iter().map(kept).collect()
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
        let all = table.variables.iter().zip(&lists);
        if all
            .into_iter()
            .all(|(x, list)| list.len() == network.domains[*x])
        {
            tables.push(table.clone());
            continue;
        }
        let key = (table.prices.number, lists.clone());
        let prices = made.entry(key).or_insert_with(|| {
            let sizes = table.variables.iter().map(|x| network.domains[*x]);
            let sizes: Vec<usize> = sizes.collect();
            let entries = lists.iter().map(|list| list.len()).product();
            let mut values = Vec::with_capacity(entries);
            pick(&table.prices.values, &sizes, &lists, &mut values);
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

/// Appends the entries of a table at these values of its variables, in row-major order. `sizes`: how many values each variable has.
fn pick(entries: &[f64], sizes: &[usize], lists: &[&[usize]], picked: &mut Vec<f64>) {
    match lists {
        [] => picked.push(entries[0]),
        [list] => picked.extend(list.iter().map(|value| entries[*value])),
        [list, others @ ..] => {
            let row = entries.len() / sizes[0];
            for value in *list {
                pick(&entries[value * row..][..row], &sizes[1..], others, picked);
            }
        }
    }
}

/// Returns the network of classes of values, each with the least prices of its values. Tables of one number have the same classes in every
/// network.
pub fn of_classes(
    network: &Network,
    classes: &[Vec<usize>],
    eliminated: &mut Eliminated,
) -> Network {
    let count = |x: usize| classes[x].iter().max().map_or(0, |most| most + 1);
    let domains: Vec<usize> = (0..classes.len()).map(count).collect();
    let mut tables = vec![];
    for table in &network.tables {
        let number = table.prices.number;
        let known = eliminated.lasting.classes.get(&number).cloned();
        let prices = known.unwrap_or_else(|| {
            let lists = table.variables.iter().map(|x| classes[*x].as_slice());
            let mut places = vec![0usize];
            for (x, list) in table.variables.iter().zip(lists) {
                let size = domains[*x];
                let wider = places
                    .iter()
                    .flat_map(|at| list.iter().map(move |class| at * size + class));
                places = wider.collect();
            }
            let sizes = table.variables.iter().map(|x| domains[*x]);
            let mut least = vec![f64::INFINITY; sizes.product()];
            for (place, price) in places.into_iter().zip(table.prices.values.iter()) {
                least[place] = least[place].min(*price);
            }
            let least = eliminated.number(least);
            eliminated.lasting.classes.insert(number, least.clone());
            least
        });
        tables.push(Table {
            variables: table.variables.clone(),
            prices,
        });
    }
    Network { domains, tables }
}
