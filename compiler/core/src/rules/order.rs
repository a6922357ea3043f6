//! In which order to multiply: trees of two-operand products for an n-ary product-sum.
//!
//! Exact over all subsets up to [`MOST_EXACT`] factors; exact over all intervals of a chain; beyond that the best over
//! the intervals of a greedy tree's leaves or of the factors as they are given, repeated. Arithmetic first, sizes of intermediates break ties; orders that
//! are best by size are given too where they need at most twice the arithmetic. Must not know terms or tensors.
//!
//! ```text
//! ik kl lj   extents 9 9 9 1   gives   (0 (1 2)): 324 operations, intermediates of 9
//! ```

use std::cmp::Ordering;

/// Most factors of which every subset is tried.
pub const MOST_EXACT: usize = 10;
/// An order may need this much more arithmetic than the best and still be given.
const SLACK: f64 = 2.0;

/// A product over sets of indices; bit `i` stands for index `i`.
#[derive(Clone, Debug)]
pub struct Network {
    /// Extents of all indices; at most 128.
    pub extents: Vec<u64>,
    /// The indices of each factor.
    pub factors: Vec<u128>,
    /// The indices that are not reduced.
    pub kept: u128,
}

/// A tree of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A factor.
    Factor(usize),
    /// A product of two, reduced over what nothing else needs.
    Pair(Box<Order>, Box<Order>),
}

/// The cost of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OrderCost {
    /// Operations: a multiplication a point, and an addition where something is reduced.
    pub flops: f64,
    /// Elements of all intermediates.
    pub size: f64,
}

/// The figure that is compared first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Flops,
    Size,
}

impl OrderCost {
    fn plus(self, other: OrderCost) -> OrderCost {
        OrderCost {
            flops: self.flops + other.flops,
            size: self.size + other.size,
        }
    }

    fn compare(&self, other: &OrderCost, by: By) -> Ordering {
        let (flops, size) = (
            self.flops.total_cmp(&other.flops),
            self.size.total_cmp(&other.size),
        );
        match by {
            By::Flops => flops.then(size),
            By::Size => size.then(flops),
        }
    }
}

/// Different orders, the one with the least arithmetic first; none if there are too many indices or no factors.
pub fn orders(network: &Network) -> Vec<(Order, OrderCost)> {
    let count = network.factors.len();
    if count == 0 || network.extents.len() > 128 {
        return vec![];
    }
    let mut found: Vec<(Order, OrderCost)> = vec![];
    for by in [By::Flops, By::Size] {
        let (order, cost) = match count <= MOST_EXACT {
            true => subsets(network, by),
            false => large(network, by),
        };
        let near = found
            .first()
            .is_none_or(|f| cost.flops <= f.1.flops * SLACK);
        if near && found.iter().all(|(known, _)| *known != order) {
            found.push((order, cost));
        }
    }
    found
}

impl Order {
    /// The factors from left to right.
    pub fn leaves(&self) -> Vec<usize> {
        match self {
            Order::Factor(factor) => vec![*factor],
            Order::Pair(left, right) => [left.leaves(), right.leaves()].concat(),
        }
    }
}

/// The indices before and after every part of an arrangement of factors.
pub struct Around {
    /// The indices of all factors before a place.
    pub before: Vec<u128>,
    /// The indices of all factors from a place on.
    pub after: Vec<u128>,
}

impl Network {
    /// The indices of all factors of a tree, reduced or not.
    pub fn indices(&self, order: &Order) -> u128 {
        match order {
            Order::Factor(at) => self.factors[*at],
            Order::Pair(left, right) => self.indices(left) | self.indices(right),
        }
    }

    /// The indices before and after every place of an arrangement.
    pub fn around(&self, arrangement: &[usize]) -> Around {
        let count = arrangement.len();
        let (mut before, mut after) = (vec![0u128; count + 1], vec![0u128; count + 1]);
        for at in 0..count {
            before[at + 1] = before[at] | self.factors[arrangement[at]];
            let last = count - 1 - at;
            after[last] = after[last + 1] | self.factors[arrangement[last]];
        }
        Around { before, after }
    }

    /// Returns the cost of an order.
    pub fn cost(&self, order: &Order) -> OrderCost {
        self.within(order, 0).1
    }

    /// Returns the indices that remain of a tree where `outside` is needed besides, and its cost.
    fn within(&self, order: &Order, outside: u128) -> (u128, OrderCost) {
        match order {
            Order::Factor(at) => {
                let remaining = self.remaining(self.factors[*at], outside);
                (remaining, self.leaf(*at, remaining))
            }
            Order::Pair(left, right) => {
                let (l, r) = (self.indices(left), self.indices(right));
                let (a, first) = self.within(left, outside | r);
                let (b, second) = self.within(right, outside | l);
                let remaining = self.remaining(l | r, outside);
                let own = self.pair(a, b, remaining);
                (remaining, own.plus(first).plus(second))
            }
        }
    }

    fn volume(&self, mut indices: u128) -> f64 {
        let mut volume = 1.0;
        while indices != 0 {
            volume *= self.extents[indices.trailing_zeros() as usize] as f64;
            indices &= indices - 1;
        }
        volume
    }

    /// Returns the indices among these that `outside` and the result still need.
    pub fn remaining(&self, indices: u128, outside: u128) -> u128 {
        indices & (self.kept | outside)
    }

    fn leaf(&self, factor: usize, remaining: u128) -> OrderCost {
        match remaining == self.factors[factor] {
            true => OrderCost::default(),
            false => OrderCost {
                flops: self.volume(self.factors[factor]),
                size: self.volume(remaining),
            },
        }
    }

    /// Returns the cost of a product of two parts, of which these indices are left.
    pub fn pair(&self, left: u128, right: u128, remaining: u128) -> OrderCost {
        let points = self.volume(left | right);
        let reduces = left | right != remaining;
        OrderCost {
            flops: points * if reduces { 2.0 } else { 1.0 },
            size: self.volume(remaining),
        }
    }
}

/// The best over all subsets.
fn subsets(network: &Network, by: By) -> (Order, OrderCost) {
    let count = network.factors.len();
    let full = (1usize << count) - 1;
    let mut indices = vec![0u128; full + 1];
    for set in 1..=full {
        let low = set.trailing_zeros() as usize;
        indices[set] = indices[set & (set - 1)] | network.factors[low];
    }
    let remaining: Vec<u128> = (0..=full)
        .map(|set| network.remaining(indices[set], indices[full & !set]))
        .collect();
    let mut best: Vec<(OrderCost, usize)> = vec![(OrderCost::default(), 0); full + 1];
    for set in 1..=full {
        if set.is_power_of_two() {
            best[set].0 = network.leaf(set.trailing_zeros() as usize, remaining[set]);
            continue;
        }
        let low = set & set.wrapping_neg();
        let mut found: Option<(OrderCost, usize)> = None;
        let mut part = (set - 1) & set;
        while part > 0 {
            // Each split once: the part with the lowest factor.
            if part & low != 0 {
                let other = set & !part;
                let own = network.pair(remaining[part], remaining[other], remaining[set]);
                let cost = own.plus(best[part].0).plus(best[other].0);
                if found.is_none_or(|(known, _)| cost.compare(&known, by).is_lt()) {
                    found = Some((cost, part));
                }
            }
            part = (part - 1) & set;
        }
        best[set] = found.unwrap_or_default();
    }
    fn tree(best: &[(OrderCost, usize)], set: usize) -> Order {
        match set.is_power_of_two() {
            true => Order::Factor(set.trailing_zeros() as usize),
            false => {
                let part = best[set].1;
                let (left, right) = (tree(best, part), tree(best, set & !part));
                Order::Pair(Box::new(left), Box::new(right))
            }
        }
    }
    (tree(&best, full), best[full].0)
}

/// The best over intervals of a good arrangement.
fn large(network: &Network, by: By) -> (Order, OrderCost) {
    if let Some(path) = path(network) {
        return intervals(network, &path, by);
    }
    let arrangement = greedy(network).leaves();
    let mut best = intervals(network, &arrangement, by);
    let written: Vec<usize> = (0..network.factors.len()).collect();
    let as_written = intervals(network, &written, by);
    if as_written.1.compare(&best.1, by).is_lt() {
        best = as_written;
    }
    for _ in 0..4 {
        let again = intervals(network, &best.0.leaves(), by);
        if again.1.compare(&best.1, by).is_ge() {
            break;
        }
        best = again;
    }
    best
}

/// The best tree whose leaves stand in this order.
fn intervals(network: &Network, arrangement: &[usize], by: By) -> (Order, OrderCost) {
    let count = arrangement.len();
    let of = |at: usize| network.factors[arrangement[at]];
    let Around { before, after } = network.around(arrangement);
    let mut remaining = vec![vec![0u128; count + 1]; count];
    for from in 0..count {
        let mut indices = 0;
        for to in from + 1..=count {
            indices |= of(to - 1);
            remaining[from][to] = network.remaining(indices, before[from] | after[to]);
        }
    }
    let mut best = vec![vec![(OrderCost::default(), 0usize); count + 1]; count];
    for at in 0..count {
        best[at][at + 1].0 = network.leaf(arrangement[at], remaining[at][at + 1]);
    }
    for length in 2..=count {
        for from in 0..=count - length {
            let to = from + length;
            let mut found: Option<(OrderCost, usize)> = None;
            for middle in from + 1..to {
                let sets = (remaining[from][middle], remaining[middle][to]);
                let own = network.pair(sets.0, sets.1, remaining[from][to]);
                let cost = own.plus(best[from][middle].0).plus(best[middle][to].0);
                if found.is_none_or(|(known, _)| cost.compare(&known, by).is_lt()) {
                    found = Some((cost, middle));
                }
            }
            best[from][to] = found.unwrap_or_default();
        }
    }
    fn tree(
        best: &[Vec<(OrderCost, usize)>],
        arrangement: &[usize],
        (from, to): (usize, usize),
    ) -> Order {
        if to - from == 1 {
            return Order::Factor(arrangement[from]);
        }
        let middle = best[from][to].1;
        let left = tree(best, arrangement, (from, middle));
        let right = tree(best, arrangement, (middle, to));
        Order::Pair(Box::new(left), Box::new(right))
    }
    (tree(&best, arrangement, (0, count)), best[0][count].0)
}

/// The factors from one end to the other, if each shares indices with its neighbours only.
fn path(network: &Network) -> Option<Vec<usize>> {
    let count = network.factors.len();
    let near = |a: usize, b: usize| a != b && network.factors[a] & network.factors[b] != 0;
    let neighbours: Vec<Vec<usize>> = (0..count)
        .map(|a| (0..count).filter(|b| near(a, *b)).collect())
        .collect();
    if neighbours.iter().any(|n| n.len() > 2) {
        return None;
    }
    let mut path = vec![neighbours.iter().position(|n| n.len() == 1)?];
    while let Some(&last) = path.last() {
        match neighbours[last].iter().find(|n| !path.contains(n)) {
            Some(next) => path.push(*next),
            None => break,
        }
    }
    (path.len() == count).then_some(path)
}

/// A pair of parts and what remains of its indices, by how much it adds and what it costs.
type Nearest = ((f64, f64), (usize, usize), u128);

/// Always the pair whose result adds the least to what is there, the cheaper one among equals.
fn greedy(network: &Network) -> Order {
    let mut uses = vec![0u32; network.extents.len()];
    for factor in &network.factors {
        (0..uses.len()).for_each(|i| uses[i] += u32::from(factor >> i & 1 == 1));
    }
    let mut parts: Vec<(Order, u128)> = (0..network.factors.len())
        .map(|f| (Order::Factor(f), network.factors[f]))
        .collect();
    while parts.len() > 1 {
        let mut found: Option<Nearest> = None;
        for a in 0..parts.len() {
            for b in a + 1..parts.len() {
                let (left, right) = (parts[a].1, parts[b].1);
                let needed = |i: u32| {
                    let own = u32::from(left >> i & 1 == 1) + u32::from(right >> i & 1 == 1);
                    network.kept >> i & 1 == 1 || uses[i as usize] > own
                };
                let mut remaining = 0u128;
                let mut rest = left | right;
                while rest != 0 {
                    let i = rest.trailing_zeros();
                    remaining |= u128::from(needed(i)) << i;
                    rest &= rest - 1;
                }
                let grows =
                    network.volume(remaining) - network.volume(left) - network.volume(right);
                let key = (grows, network.volume(left | right));
                if found.is_none_or(|(known, ..)| key < known) {
                    found = Some((key, (a, b), remaining));
                }
            }
        }
        let Some((_, (a, b), remaining)) = found else {
            break;
        };
        let (right, r) = parts.remove(b);
        let (left, l) = parts.remove(a);
        for (i, count) in uses.iter_mut().enumerate() {
            let had = u32::from(l >> i & 1 == 1) + u32::from(r >> i & 1 == 1);
            *count = *count - had + u32::from(remaining >> i & 1 == 1);
        }
        parts.push((Order::Pair(Box::new(left), Box::new(right)), remaining));
    }
    parts.pop().map_or(Order::Factor(0), |(order, _)| order)
}
