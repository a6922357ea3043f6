//! In which order to multiply, and where: one search over both.
//!
//! F(S, p) is the least price of having the product of the factors S at placement p, over all ways to split S and to run
//! the last multiplication; G(S, q) that of having it where something needs it. S runs over all subsets of few factors,
//! else over the intervals of one arrangement of them (all of them, for a chain). luo2021 (section 5) searches formats
//! for a fixed tree; the tree is part of the search here. Must not know what the rest of the program does, but for where
//! factors are and where the result is wanted.
//!
//! ```text
//! A B C D on 2x2, words: ((A B) (C D)) 3.1e6, not (A (B (C D))) 4.0e6, which has less arithmetic
//! ```

use super::cost_table::Objective;
use super::far::convert_over;
use super::machine::Levels;
use super::mesh::AXES;
use super::transfer::{Counts, Roles, TransferItem};
use crate::ia::layout::TensorRole;
use crate::rules::order::{Around, Network, Order};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Most factors of which every subset is tried.
pub const MOST_EXACT: usize = 8;

/// Most prices of moves that are kept.
const MOST_KEPT: usize = 1 << 23;

/// In long products, splits with more arithmetic than this times the least of their set are not tried.
const SLACK: f64 = 1.5;

/// The result that a product is multiplied for.
pub struct Wanted<'a> {
    /// Counts of the mesh's axes.
    pub counts: Counts,
    /// How they lie over nodes, where that makes a difference.
    pub levels: Option<Levels>,
    /// The quantity that is minimised.
    pub objective: &'a Objective,
    /// The price of an operation, in the objective's unit; above 0.
    pub load: f64,
    /// How many times its even share of its own work the busiest site may have, in one multiplication.
    pub balance: f64,
    /// Multiplications below this many operations need no balance.
    pub light: f64,
    /// Bytes of an element.
    pub width: f64,
    /// True if one site of an axis may work alone.
    pub alone: bool,
    /// The price of reading a factor at a placement of its indices in ascending order.
    pub factor: &'a dyn Fn(usize, Roles) -> f64,
    /// The price of the result's being made at a placement of its indices in ascending order.
    pub result: &'a dyn Fn(Roles) -> f64,
}

/// The best order among those of the arrangement, and its price with the load's.
pub fn order(
    network: &Network,
    arrangement: &[usize],
    wanted: &Wanted<'_>,
) -> Option<(Order, f64)> {
    let sets = match network.factors.len() <= MOST_EXACT {
        true => subsets(network),
        false => sparing(network, intervals(network, arrangement)),
    };
    let moves = Moves::default();
    let mut tables: Vec<Table> = Vec::with_capacity(sets.len());
    for set in &sets {
        let mut table = Table::new(network, set);
        match set.factor {
            Some(factor) => table.read(network, factor, wanted),
            None => set
                .splits
                .iter()
                .for_each(|split| table.split(network, *split, &mut tables, (wanted, &moves))),
        }
        tables.push(table);
    }
    let root = tables.last()?;
    let places = root.places();
    let priced = places.map(|(code, price)| (code, price + (wanted.result)(root.roles(code))));
    let (code, price) = priced.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))?;
    let tree = tree(&tables, tables.len() - 1, code);
    price.is_finite().then_some((tree, price))
}

/// The prices of moves on one mesh: parts of one shape move alike, and a product of many equal factors has many such parts.
#[derive(Default)]
struct Moves(RefCell<FxHashMap<Vec<u64>, Vec<f64>>>);

impl Moves {
    /// The price of a move between two of so many placements of a part, which `price` finds if it is not known yet.
    fn price(
        &self,
        shape: &[u64],
        places: usize,
        (from, to): (usize, usize),
        price: impl FnOnce() -> f64,
    ) -> f64 {
        let Some(size) = places.checked_mul(places).filter(|size| *size <= MOST_KEPT) else {
            return price();
        };
        let mut known = self.0.borrow_mut();
        if !known.contains_key(shape) {
            let kept = known.values().map(Vec::len).sum::<usize>();
            if kept + size > MOST_KEPT {
                known.clear();
            }
            known.insert(shape.to_vec(), vec![f64::NAN; size]);
        }
        let prices = known.get_mut(shape).expect("it has just been put there");
        let at = &mut prices[to * places + from];
        if at.is_nan() {
            *at = price();
        }
        *at
    }
}

/// A part of the product.
struct Set {
    /// The indices that are left of it.
    remaining: u128,
    /// The factor, if it is one.
    factor: Option<usize>,
    /// Pairs of sets that it is made of; they stand before it.
    splits: Vec<(usize, usize)>,
}

fn subsets(network: &Network) -> Vec<Set> {
    let count = network.factors.len();
    let full = (1usize << count) - 1;
    let all = |set: usize| {
        let within = (0..count).filter(|f| set >> f & 1 == 1);
        within.fold(0u128, |all, f| all | network.factors[f])
    };
    let sets = 1..=full;
    sets.map(|set| {
        let mut splits = vec![];
        let low = set & set.wrapping_neg();
        let mut part = (set - 1) & set;
        while part > 0 {
            // Each split once: the part with the lowest factor. Set number s stands at s - 1.
            if part & low != 0 {
                splits.push((part - 1, (set & !part) - 1));
            }
            part = (part - 1) & set;
        }
        Set {
            remaining: network.remaining(all(set), all(full & !set)),
            factor: set
                .is_power_of_two()
                .then_some(set.trailing_zeros() as usize),
            splits,
        }
    })
    .collect()
}

fn intervals(network: &Network, arrangement: &[usize]) -> Vec<Set> {
    let count = arrangement.len();
    let of = |at: usize| network.factors[arrangement[at]];
    let Around { before, after } = network.around(arrangement);
    let mut sets = vec![];
    // Where the interval from `from` of `length` stands.
    let at = |from: usize, length: usize| (1..length).map(|l| count + 1 - l).sum::<usize>() + from;
    for length in 1..=count {
        for from in 0..=count - length {
            let to = from + length;
            let own = (from..to).fold(0, |own, f| own | of(f));
            let middles = from + 1..to;
            sets.push(Set {
                remaining: network.remaining(own, before[from] | after[to]),
                factor: (length == 1).then(|| arrangement[from]),
                splits: middles
                    .map(|middle| (at(from, middle - from), at(middle, to - middle)))
                    .collect(),
            });
        }
    }
    sets
}

/// The sets without the splits that need much more arithmetic than others of their set.
fn sparing(network: &Network, mut sets: Vec<Set>) -> Vec<Set> {
    let mut least = vec![0.0; sets.len()];
    for at in 0..sets.len() {
        let flops = |(a, b): (usize, usize)| {
            let parts = (sets[a].remaining, sets[b].remaining);
            let own = network.pair(parts.0, parts.1, sets[at].remaining).flops;
            own + least[a] + least[b]
        };
        let all: Vec<f64> = sets[at].splits.iter().map(|split| flops(*split)).collect();
        let best = all.iter().copied().fold(f64::INFINITY, f64::min);
        let mut flops = all.iter();
        let sparing = |_: &(usize, usize)| flops.next().is_some_and(|f| *f <= best * SLACK);
        sets[at].splits.retain(sparing);
        least[at] = if best.is_finite() { best } else { 0.0 };
    }
    sets
}

/// The best known parts of a set of factors.
struct Table {
    /// The indices that are left of it, ascending.
    indices: Vec<u32>,
    shape: Vec<u64>,
    /// By placement: what it costs to have it there.
    made: Vec<f64>,
    /// By placement: the split and, of its two sets, the placements that they were read at.
    how: Vec<((usize, usize), (usize, usize))>,
    /// Placements at which it can be made, the cheapest first; filled when it is first read.
    order: Vec<(f64, usize)>,
    /// By placement: what it costs to have it for reading there, and from which it comes; NaN until it is asked for.
    read: Vec<(f64, usize)>,
    /// A placement's code has one digit an axis, to this base.
    base: usize,
    /// The factor, if it is one.
    factor: Option<usize>,
}

/// The code of an axis that cuts nothing of a set; cuts of the index at place p are `CUT + p`.
const EVERY: usize = 0;
const FIRST: usize = 1;
const PARTIAL: usize = 2;
const CUT: usize = 3;

impl Table {
    fn new(network: &Network, set: &Set) -> Table {
        let indices: Vec<u32> = (0..128).filter(|i| set.remaining >> i & 1 == 1).collect();
        let base = CUT + indices.len();
        let codes = base.pow(AXES as u32);
        Table {
            shape: indices
                .iter()
                .map(|i| network.extents[*i as usize])
                .collect(),
            indices,
            made: vec![f64::INFINITY; codes],
            how: vec![((0, 0), (0, 0)); codes],
            order: vec![],
            read: vec![(f64::NAN, 0); codes],
            base,
            factor: set.factor,
        }
    }

    fn places(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let all = self.made.iter().copied().enumerate();
        all.filter(|(_, price)| price.is_finite())
    }

    fn roles(&self, mut code: usize) -> Roles {
        let mut roles = [TensorRole::Every; AXES];
        for role in roles.iter_mut().rev() {
            *role = match code % self.base {
                EVERY => TensorRole::Every,
                FIRST => TensorRole::First,
                PARTIAL => TensorRole::Partial,
                cut => TensorRole::Cut((cut - CUT) as u32),
            };
            code /= self.base;
        }
        roles
    }

    /// Returns the digit of one axis's role in this set: the cut index, or none.
    fn digit(&self, role: Axis, without: usize) -> usize {
        match role {
            Axis::Every => EVERY,
            Axis::First => FIRST,
            Axis::Index(index) => match self.indices.iter().position(|i| *i == index) {
                Some(place) => CUT + place,
                None => without,
            },
        }
    }

    /// A factor that is read as it is or, where some of its indices are its own alone, reduced first: that takes no more
    /// than reading it.
    fn read(&mut self, network: &Network, factor: usize, wanted: &Wanted<'_>) {
        let own = network.factors[factor];
        let all: Vec<u32> = (0..128).filter(|i| own >> i & 1 == 1).collect();
        for code in 0..self.read.len() {
            let mut roles = self.roles(code);
            for role in &mut roles {
                if let TensorRole::Cut(place) = role {
                    let index = self.indices[*place as usize];
                    let place = all.iter().position(|i| *i == index).unwrap_or(0);
                    *role = TensorRole::Cut(place as u32);
                }
            }
            let price = match roles.contains(&TensorRole::Partial) {
                true => f64::INFINITY,
                false => (wanted.factor)(factor, roles),
            };
            self.read[code] = (price, code);
        }
    }

    /// All ways to make it of two sets.
    fn split(
        &mut self,
        network: &Network,
        split: (usize, usize),
        tables: &mut [Table],
        (wanted, moves): (&Wanted<'_>, &Moves),
    ) {
        let (left, right) = (&tables[split.0], &tables[split.1]);
        let mut all: Vec<u32> = left.indices.clone();
        all.extend(right.indices.iter().filter(|i| !left.indices.contains(i)));
        let extents: Vec<u64> = all.iter().map(|i| network.extents[*i as usize]).collect();
        let reduces = all.len() > self.indices.len();
        let point = if reduces { 2.0 } else { 1.0 };
        let work = point * extents.iter().map(|e| *e as f64).product::<f64>();
        let sites: f64 = wanted.counts.iter().map(|c| f64::from(*c)).product();
        let light = work <= wanted.light;
        let limit = work / sites * wanted.balance * (1.0 + 1e-7);
        // By role of an axis: the index that it cuts, and what it is to the result and to each side.
        let mut roles = vec![];
        roles.extend(
            (0..all.len())
                .filter(|i| extents[*i] > 1)
                .map(|i| Axis::Index(all[i])),
        );
        if light || roles.is_empty() {
            roles.push(Axis::Every);
            roles.extend(wanted.alone.then_some(Axis::First));
        }
        let options: Vec<(Option<usize>, [usize; 3])> = roles
            .into_iter()
            .map(|role| {
                let digits = [
                    self.digit(role, PARTIAL),
                    left.digit(role, EVERY),
                    right.digit(role, EVERY),
                ];
                let cut = |index| all.iter().position(|i| *i == index);
                let cut = if let Axis::Index(index) = role {
                    cut(index)
                } else {
                    None
                };
                (cut, digits)
            })
            .collect();
        let bases = [self.base, left.base, right.base];
        let mut runs: Vec<(f64, [usize; 3])> = vec![];
        let mut chosen = [0usize; AXES];
        let mut cuts = vec![1u64; all.len()];
        loop {
            cuts.fill(1);
            let mut codes = [0usize; 3];
            for (axis, number) in chosen.iter().enumerate() {
                // An axis that the mesh does not have does nothing.
                let nothing = (None, [EVERY; 3]);
                let (cut, digits) = match wanted.counts[axis] {
                    1 => &nothing,
                    _ => &options[*number],
                };
                for ((code, base), digit) in codes.iter_mut().zip(bases).zip(digits) {
                    *code = *code * base + digit;
                }
                if let Some(at) = cut {
                    cuts[*at] *= u64::from(wanted.counts[axis]);
                }
            }
            let mut load = point;
            let mut fits = true;
            for (extent, cuts) in extents.iter().zip(&cuts) {
                fits &= cuts <= extent;
                load *= extent.div_ceil(*cuts) as f64;
            }
            if fits {
                runs.push((load, codes));
            }
            if !next(&mut chosen, wanted.counts, options.len()) {
                break;
            }
        }
        if !light {
            let least = runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
            runs.retain(|(load, _)| *load <= limit.max(least));
        }
        for (load, [result, a, b]) in runs {
            let own = load * wanted.load;
            if own >= self.made[result] {
                continue;
            }
            let mut price = own + tables[split.0].reading(a, wanted, moves);
            if price >= self.made[result] {
                continue;
            }
            price += tables[split.1].reading(b, wanted, moves);
            if price < self.made[result] {
                self.made[result] = price;
                self.how[result] = (split, (a, b));
            }
        }
    }

    /// The price of having it for reading at a placement.
    fn reading(&mut self, code: usize, wanted: &Wanted<'_>, moves: &Moves) -> f64 {
        if self.factor.is_some() || !self.read[code].0.is_nan() {
            return self.read[code].0;
        }
        if self.order.is_empty() {
            let mut order: Vec<(f64, usize)> = self.places().map(|(c, price)| (price, c)).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            self.order = order;
        }
        let to = self.roles(code);
        let mut best = (f64::INFINITY, 0);
        for (price, from) in &self.order {
            if *price >= best.0 {
                break;
            }
            let moved = moves.price(&self.shape, self.made.len(), (*from, code), || {
                let goods = TransferItem {
                    shape: &self.shape,
                    columns: 1.0,
                    windows: &[],
                };
                let from = self.roles(*from);
                let moved = convert_over(goods, wanted.counts, wanted.levels.as_ref(), from, to);
                moved.map_or(f64::INFINITY, |moved| {
                    wanted.objective.of_move(&moved, wanted.width)
                })
            });
            let whole = price + moved;
            if whole < best.0 {
                best = (whole, *from);
            }
        }
        self.read[code] = best;
        best.0
    }
}

/// The role of an axis in a multiplication.
#[derive(Clone, Copy)]
enum Axis {
    Every,
    First,
    Index(u32),
}

/// The next choice of a role for each axis that the mesh has; false after the last one.
fn next(chosen: &mut [usize; AXES], counts: Counts, options: usize) -> bool {
    for (choice, count) in chosen.iter_mut().zip(counts).rev() {
        if count == 1 {
            continue;
        }
        *choice += 1;
        if *choice < options {
            return true;
        }
        *choice = 0;
    }
    false
}

/// The tree that makes a set at a placement.
fn tree(tables: &[Table], set: usize, code: usize) -> Order {
    let ((a, b), (left, right)) = tables[set].how[code];
    let part = |set: usize, read: usize| {
        let table = &tables[set];
        match table.factor {
            Some(factor) => Order::Factor(factor),
            None => tree(tables, set, table.read[read].1),
        }
    };
    Order::Pair(Box::new(part(a, left)), Box::new(part(b, right)))
}
