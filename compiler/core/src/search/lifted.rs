//! Networks with repeated parts: variables that look alike as far around them as matters, taken as one.
//!
//! Variables begin with the colour of their domain and are told apart, round by round, by the tables that they have and the
//! colours at the other ends of them (colour refinement, Weisfeiler and Leman). Layers of a deep program so get the same
//! colours but for those near its ends. A choice that gives every colour one value is a choice of the quotient network, in
//! which each table has the prices of all tables that it stands for. Its price is exact; one that tells variables of one
//! colour apart may be cheaper. Must not know what the variables stand for.
//!
//! ```text
//! 9,000 variables of 48 equal layers: 800 colours, 12 of which stand for 40 variables each
//! ```

use super::network::{Eliminated, Network, Solution, Table};
use rustc_hash::FxHashMap;

/// Networks of fewer variables are solved as they are.
const FEW: usize = 400;

/// The most colours, for each variable.
const MOST_COLOURS: f64 = 0.25;

/// The most colours in all.
const MOST: usize = 1200;

/// The most rounds: how many tables away from a variable others are looked at.
const MOST_ROUNDS: usize = 24;

/// A network whose variables are the colours of another one's.
pub(super) struct Lifted {
    /// The network of the colours.
    pub(super) network: Network,
    /// By variable of the other network: its colour.
    colours: Vec<usize>,
    /// By table of the other network: the table here that stands for it, and for how many.
    pub(super) tables: Vec<(usize, usize)>,
}

impl Lifted {
    /// The quotient of a network that repeats itself; none if it does not, or is small.
    pub(super) fn of(network: &Network, eliminated: &mut Eliminated) -> Option<Lifted> {
        let count = network.domains.len();
        if count < FEW {
            return None;
        }
        let most = MOST.min((count as f64 * MOST_COLOURS) as usize);
        let colours = colours(network, most)?;
        let (network, tables) = quotient(network, &colours, eliminated);
        Some(Lifted {
            network,
            colours,
            tables,
        })
    }

    /// A choice of the other network in which variables of one colour have one value.
    pub(super) fn given(&self, network: &Network, solution: &Solution) -> Solution {
        let colours = self.colours.iter();
        let choice: Vec<usize> = colours.map(|colour| solution.choice[*colour]).collect();
        Solution {
            value: network.price(&choice),
            choice,
        }
    }
}

/// By variable: its colour in the finest partition that refinement comes to with at most so many colours; none if the domains and
/// the tables next to variables already give more.
fn colours(network: &Network, most: usize) -> Option<Vec<usize>> {
    let count = network.domains.len();
    let mut around: Vec<Vec<(usize, usize)>> = vec![vec![]; count];
    for (number, table) in network.tables.iter().enumerate() {
        for (end, x) in table.variables.iter().enumerate() {
            around[*x].push((number, end));
        }
    }
    let mut found: Option<Vec<usize>> = None;
    let mut colours: Vec<usize> = network.domains.clone();
    let mut before = 0;
    for _ in 0..MOST_ROUNDS {
        let mut numbers: FxHashMap<(usize, Vec<u64>), usize> = FxHashMap::default();
        let next: Vec<usize> = (0..count)
            .map(|x| {
                let seen = seen(network, &around[x], &colours);
                let new = numbers.len();
                *numbers.entry((colours[x], seen)).or_insert(new)
            })
            .collect();
        let now = numbers.len();
        if now > most {
            return found;
        }
        colours = next;
        found = Some(colours.clone());
        if now == before {
            break;
        }
        before = now;
    }
    found
}

/// Lists a variable's tables, its place in each, and the colours of the variables there.
fn seen(network: &Network, around: &[(usize, usize)], colours: &[usize]) -> Vec<u64> {
    let mut tables: Vec<(u64, usize, Vec<usize>)> = around
        .iter()
        .map(|(number, end)| {
            let table = &network.tables[*number];
            let others = table.variables.iter().map(|x| colours[*x]);
            (table.prices.number, *end, others.collect())
        })
        .collect();
    tables.sort_unstable();
    let words = tables.into_iter().flat_map(|(number, end, others)| {
        let others = others.into_iter().map(|colour| colour as u64);
        [number, end as u64].into_iter().chain(others)
    });
    words.collect()
}

/// The network of the colours: each table as often as it stands for tables of the network. By table of the network: the one that stands
/// for it, and for how many.
fn quotient(
    network: &Network,
    colours: &[usize],
    eliminated: &mut Eliminated,
) -> (Network, Vec<(usize, usize)>) {
    let count = colours.iter().max().map_or(0, |most| most + 1);
    let mut domains = vec![0; count];
    for (colour, domain) in colours.iter().zip(&network.domains) {
        domains[*colour] = *domain;
    }
    // In the order in which they are met, so that plans do not depend on a hash.
    let mut places: FxHashMap<(u64, Vec<usize>), usize> = FxHashMap::default();
    let mut met: Vec<(Vec<usize>, &Table, usize)> = vec![];
    let mut stands = vec![];
    for table in &network.tables {
        let variables: Vec<usize> = table.variables.iter().map(|x| colours[*x]).collect();
        let place = *places
            .entry((table.prices.number, variables.clone()))
            .or_insert(met.len());
        stands.push(place);
        match met.get_mut(place) {
            Some((_, _, times)) => *times += 1,
            None => met.push((variables, table, 1)),
        }
    }
    let stands = stands.into_iter().map(|place| (place, met[place].2));
    let stands = stands.collect();
    let mut made: FxHashMap<(u64, bool, usize), super::table::Prices> = FxHashMap::default();
    let tables = met.into_iter().map(|(variables, table, times)| {
        let alike = matches!(variables[..], [x, y] if x == y);
        let prices = made
            .entry((table.prices.number, alike, times))
            .or_insert_with(|| {
                if !alike && times == 1 {
                    return table.prices.clone();
                }
                let values = &table.prices.values;
                let step = match alike {
                    true => domains[variables[0]] + 1,
                    false => 1,
                };
                let values = values.iter().step_by(step.max(1));
                eliminated.number(values.map(|price| price * times as f64).collect())
            })
            .clone();
        Table {
            variables: variables[..variables.len() - usize::from(alike)].to_vec(),
            prices,
        }
    });
    let tables = tables.collect();
    (Network { domains, tables }, stands)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::bounds::Bounding;
    use super::*;

    /// Layers of three variables, each layer beside the next, that pay the prices of equal tables.
    fn layers(count: usize, eliminated: &mut Eliminated) -> Network {
        let table = |eliminated: &mut Eliminated, seed: usize| {
            let values = (0..16).map(|at| ((at * 7 + seed * 13) % 11) as f64);
            eliminated.number(values.collect())
        };
        let prices = [0, 1, 2].map(|seed| table(eliminated, seed));
        let mut network = Network {
            domains: vec![4; count * 3],
            tables: vec![],
        };
        for x in 0..count * 3 - 1 {
            network.tables.push(Table {
                variables: vec![x, x + 1],
                prices: prices[x % 3].clone(),
            });
        }
        network
    }

    #[test]
    fn layers_have_the_same_colours() {
        let mut eliminated = Eliminated::default();
        let network = layers(400, &mut eliminated);
        let lifted = Lifted::of(&network, &mut eliminated).unwrap();
        // All but those near an end.
        assert!(lifted.network.domains.len() <= 300);
        let middle = &lifted.colours[480..720];
        assert!(middle.chunks(3).all(|layer| *layer == middle[..3]));
        let solved = lifted.network.solve(1 << 20, &mut eliminated, &|| false);
        let solved = solved.unwrap();
        let given = lifted.given(&network, &solved);
        assert_eq!(given.value, solved.value);
        let exact = network.solve(1 << 20, &mut eliminated, &|| false).unwrap();
        assert!(given.value >= exact.value);
    }

    #[test]
    fn bounds_of_the_colours_are_bounds_of_the_network() {
        let mut eliminated = Eliminated::default();
        let network = layers(400, &mut eliminated);
        let exact = network.solve(1 << 20, &mut eliminated, &|| false).unwrap();
        let lifted = Lifted::of(&network, &mut eliminated).unwrap();
        let mut above = Bounding::new(&lifted.network, 1e6);
        for _ in 0..20 {
            above.trip();
        }
        let mut below = Bounding::below_lifted(&network, 1e4, &lifted, &above);
        let mut anew = Bounding::new(&network, 1e4);
        for bounding in [&mut below, &mut anew] {
            bounding.trip();
            assert!(bounding.least() <= exact.value + 1e-6);
            // No value of the optimum is left out.
            let bounds = bounding.by_value();
            let mut optimum = exact.choice.iter().zip(&bounds);
            assert!(optimum.all(|(value, bounds)| bounds[*value] <= exact.value + 1e-6));
        }
        assert!(below.least() >= anew.least() - 1e-6);
    }

    #[test]
    fn equal_neighbours_of_one_colour_agree() {
        let mut eliminated = Eliminated::default();
        let prices = eliminated.number(vec![5.0, 1.0, 1.0, 3.0]);
        let count = 500;
        let tables = (0..count).map(|x| Table {
            variables: vec![x, (x + 1) % count],
            prices: prices.clone(),
        });
        let ring = Network {
            domains: vec![2; count],
            tables: tables.collect(),
        };
        let lifted = Lifted::of(&ring, &mut eliminated).unwrap();
        assert_eq!(lifted.network.domains, [2]);
        let solved = lifted
            .network
            .solve(16, &mut eliminated, &|| false)
            .unwrap();
        assert_eq!((solved.value, solved.choice.as_slice()), (1500.0, &[1][..]));
        assert_eq!(lifted.given(&ring, &solved).value, 1500.0);
    }

    #[test]
    fn networks_without_repetitions_stay() {
        let mut eliminated = Eliminated::default();
        let tables = (0..500).map(|x| Table {
            variables: vec![x],
            prices: eliminated.number(vec![x as f64, 1.0]),
        });
        let network = Network {
            domains: vec![2; 500],
            tables: tables.collect(),
        };
        assert!(Lifted::of(&network, &mut eliminated).is_none());
    }
}
