//! Costs of conversions and runs under an objective, each as one number that a network can add up.
//!
//! The number is the objective's price plus, far below its smallest difference, the load, the bytes touched and the
//! number of moves, which so decide between equals. Everything is a multiple of one quantum, so that sums do not
//! depend on their order. Must not know networks.
//!
//! ```text
//! transfer 3600 floats + 0.01 · (load / even share …) rounded to a multiple of 2^-20
//! ```

use super::choice::Choice;
use super::convert::{convert, share, share_of};
use super::disabled_moves::DisabledMoves;
use super::problem::{Problem, Tensor};
use super::transfer::ReadWindows;
use super::transfer::{Counts, Move, Roles, TransferItem, is_windowed};
use super::windows::{self, SiteBoxes};
use crate::ia::layout::TensorRole;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// The quantity that the search minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Objective {
    /// Floats transferred, as the thesis counts them (section 3.3.3).
    #[default]
    Transfer,
    /// Words that the busiest site receives, summed over the conversions.
    Bytes,
    /// Seconds, by a machine's coefficients.
    Time(TimeModel),
}

impl Objective {
    /// Returns the name that command lines and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Transfer => "transfer",
            Objective::Bytes => "bytes",
            Objective::Time(_) => "time",
        }
    }
}

/// The coefficients of the time that a plan takes: a linear model as in luo2021, section 7.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeModel {
    /// Seconds a message.
    pub alpha: f64,
    /// Seconds a byte received.
    pub beta: f64,
    /// Seconds an operation.
    pub gamma: f64,
    /// Seconds a byte touched.
    pub delta: f64,
    /// Seconds a tuple.
    pub epsilon: f64,
}

impl Objective {
    /// The price of moving a tensor with elements of `width` bytes.
    pub fn of_move(&self, moved: &Move, width: f64) -> f64 {
        match self {
            Objective::Transfer => moved.transfer,
            Objective::Bytes => moved.words,
            Objective::Time(model) => {
                model.alpha * moved.messages + model.beta * moved.words * width
            }
        }
    }

    /// The price of running a statement: `tuples` are its operands and its result.
    pub fn of_run(&self, load: f64, touched: f64, tuples: usize) -> f64 {
        match self {
            Objective::Time(model) => {
                model.gamma * load + model.delta * touched + model.epsilon * tuples as f64
            }
            _ => 0.0,
        }
    }
}

/// The weights of the terms that are added to the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// All prices are multiples of this.
    pub quantum: f64,
    /// For a load of the program's whole work.
    pub load: f64,
    /// For touching the bytes of all tensors once.
    pub touched: f64,
    /// For a conversion that moves something.
    pub moves: f64,
    /// For each byte that the busiest site holds: at rest, of addends, or as what a conversion makes.
    pub resident: f64,
}

impl Weights {
    /// Weights for plans whose price is at most `price`: they add at most about a hundredth, or, where
    /// prices are so large that numbers do not hold both, some thousand quanta.
    pub fn below(price: f64, objective: &Objective) -> Weights {
        let price = price.max(1e-9);
        let exponent = (price * 4.0).log2().ceil() as i32 - 50;
        let quantum = 2f64.powi(exponent);
        let decisive = match objective {
            Objective::Time(_) => price * 1e-9,
            _ => (quantum * 4096.0).clamp(0.01, 0.25),
        };
        Weights {
            quantum,
            load: decisive / 2.0,
            touched: decisive / 64.0,
            moves: decisive / 4096.0,
            resident: 0.0,
        }
    }
}

/// The largest table of conversions between the placements of a tensor that is kept.
const MOST_KEPT: usize = 1 << 18;

/// Prices on one mesh.
pub struct CostTable<'a> {
    /// The mesh.
    pub counts: Counts,
    /// The quantity that is minimised.
    pub objective: &'a Objective,
    /// The terms that decide between equals.
    pub weights: Weights,
    /// Conversions that are not to be had.
    pub disabled_moves: DisabledMoves,
    /// Conversions that have been priced.
    pub conversions: Conversions,
    total: f64,
    bytes: f64,
    windows: Vec<ReadWindows>,
}

/// Prices of conversions on one mesh under one objective, and the numbers of what is converted. They hold for every program
/// whose windows have the same numbers.
#[derive(Debug, Default)]
pub struct Conversions {
    numbers: FxHashMap<(Vec<u64>, u64, u64, u64), usize>,
    kept: Vec<Kept>,
    /// Prices of conversions to windows, by goods.
    windowed: FxHashMap<(usize, Roles, Roles), f64>,
    /// By goods and placement: what sites hold there, or need where it is one of windows.
    boxes: FxHashMap<(usize, Roles), Rc<SiteBoxes>>,
}

impl Conversions {
    /// How many prices there is room for.
    pub fn count(&self) -> usize {
        let kept = self.kept.iter().map(|kept| kept.prices.len());
        kept.sum::<usize>() + self.windowed.len()
    }
}

/// The prices between the placements of tensors of one shape; NaN until they are asked for.
#[derive(Debug)]
struct Kept {
    shape: Vec<u64>,
    columns: f64,
    width: f64,
    times: f64,
    prices: Vec<f64>,
}

impl<'a> CostTable<'a> {
    /// The prices of a program's conversions.
    pub fn new(
        problem: &Problem,
        counts: Counts,
        objective: &'a Objective,
        weights: Weights,
    ) -> CostTable<'a> {
        let bytes = problem.tensors.iter().map(|t| t.floats * t.width);
        CostTable {
            counts,
            objective,
            weights,
            disabled_moves: DisabledMoves::default(),
            total: problem.total.max(1.0),
            bytes: bytes.sum::<f64>().max(1.0),
            windows: problem.windows.clone(),
            conversions: Conversions::default(),
        }
    }

    /// Returns the numbers that prices of runs depend on beside the run: they differ from program to program.
    pub fn scale_of_runs(&self) -> [u64; 2] {
        [self.total.to_bits(), self.bytes.to_bits()]
    }

    /// A number for tensors that cost the same to convert.
    pub fn goods(&mut self, tensor: &Tensor) -> usize {
        let columns = tensor.statement().map_or(1.0, |s| s.columns);
        let (width, times) = (tensor.width as u64, tensor.times.to_bits());
        let key = (tensor.shape.clone(), columns as u64, width, times);
        let next = self.conversions.kept.len();
        let number = *self.conversions.numbers.entry(key).or_insert(next);
        if number == next {
            let placements = (tensor.shape.len() + 3).pow(3);
            let entries = placements * placements;
            self.conversions.kept.push(Kept {
                shape: tensor.shape.clone(),
                columns,
                width: tensor.width,
                times: tensor.times,
                prices: vec![f64::NAN; if entries <= MOST_KEPT { entries } else { 0 }],
            });
        }
        number
    }

    /// The price of a conversion; infinite where there is none.
    pub fn convert(&mut self, goods: usize, from: Roles, to: Roles) -> f64 {
        if is_windowed(to) {
            if let Some(price) = self.conversions.windowed.get(&(goods, from, to)) {
                return *price;
            }
            let moved = (!from.contains(&TensorRole::Partial)).then(|| {
                let (held, needed) = (self.boxes(goods, from), self.boxes(goods, to));
                let shape = &self.conversions.kept[goods].shape;
                windows::between(shape, self.counts, from, &held, &needed)
            });
            let price = self.price(goods, from, to, moved);
            self.conversions.windowed.insert((goods, from, to), price);
            return price;
        }
        let kept = &self.conversions.kept[goods];
        let base = kept.shape.len() + 3;
        let place = |roles: Roles| roles.iter().fold(0, |at, role| at * base + code(*role));
        let at = place(from) * base.pow(3) + place(to);
        if let Some(price) = kept.prices.get(at)
            && !price.is_nan()
        {
            return *price;
        }
        let moved = convert(self.item(goods), self.counts, from, to);
        let price = self.price(goods, from, to, moved);
        if let Some(slot) = self.conversions.kept[goods].prices.get_mut(at) {
            *slot = price;
        }
        price
    }

    /// The prices of the conversions from each placement to each, those of the first one first.
    pub fn converts(&mut self, goods: usize, from: &[Roles], to: &[Roles]) -> Vec<f64> {
        let base = self.conversions.kept[goods].shape.len() + 3;
        let place = |roles: &Roles| roles.iter().fold(0, |at, role| at * base + code(*role));
        let known = !self.conversions.kept[goods].prices.is_empty();
        let places: Vec<Option<usize>> = to
            .iter()
            .map(|to| (known && !is_windowed(*to)).then(|| place(to)))
            .collect();
        let mut prices = Vec::with_capacity(from.len() * to.len());
        for from in from {
            let start = place(from) * base.pow(3);
            for (to, at) in to.iter().zip(&places) {
                let price = at.map_or(f64::NAN, |at| {
                    self.conversions.kept[goods].prices[start + at]
                });
                prices.push(match price.is_nan() {
                    true => self.convert(goods, *from, *to),
                    false => price,
                });
            }
        }
        prices
    }

    fn item(&self, goods: usize) -> TransferItem<'_> {
        let kept = &self.conversions.kept[goods];
        TransferItem {
            shape: &kept.shape,
            columns: kept.columns,
            windows: &self.windows,
        }
    }

    /// The boxes of sites at a placement, or in windows.
    fn boxes(&mut self, goods: usize, at: Roles) -> Rc<SiteBoxes> {
        if let Some(boxes) = self.conversions.boxes.get(&(goods, at)) {
            return Rc::clone(boxes);
        }
        let item = self.item(goods);
        let boxes = Rc::new(match is_windowed(at) {
            true => SiteBoxes::needed(item, self.counts, at),
            false => SiteBoxes::held(item.shape, self.counts, at),
        });
        self.conversions
            .boxes
            .insert((goods, at), Rc::clone(&boxes));
        boxes
    }

    /// The price of a move between two placements; infinite if there is none.
    fn price(&self, goods: usize, from: Roles, to: Roles, moved: Option<Move>) -> f64 {
        let kept = &self.conversions.kept[goods];
        let disabled_moves = self.disabled_moves.conversion(self.counts, from, to);
        match moved.filter(|_| !disabled_moves) {
            None => f64::INFINITY,
            Some(moved) if moved == Move::default() => 0.0,
            Some(moved) => {
                let weights = &self.weights;
                let copy = match weights.resident {
                    0.0 => 0.0,
                    _ => share_of(self.item(goods), self.counts, to) * kept.width,
                };
                let exact = self.objective.of_move(&moved, kept.width) * kept.times
                    + weights.moves
                    + weights.resident * copy;
                rounded(exact, weights.quantum)
            }
        }
    }

    /// [`CostTable::settle`] from each placement to each, those of the first one first.
    pub fn settles(&mut self, goods: usize, from: &[Roles], rests: &[Roles]) -> Vec<f64> {
        if self.weights.resident == 0.0 {
            return self.converts(goods, from, rests);
        }
        let pairs = from
            .iter()
            .flat_map(|from| rests.iter().map(move |rest| (*from, *rest)));
        pairs
            .map(|(from, rest)| self.settle(goods, from, rest))
            .collect()
    }

    /// The price of a conversion to where the tensor rests: what it makes is what rests, not another copy.
    pub fn settle(&mut self, goods: usize, from: Roles, rest: Roles) -> f64 {
        let price = self.convert(goods, from, rest);
        if self.weights.resident == 0.0 || price == 0.0 || price.is_infinite() {
            return price;
        }
        let kept = &self.conversions.kept[goods];
        let copy = share(&kept.shape, self.counts, rest) * kept.width;
        let copy = rounded(self.weights.resident * copy, self.weights.quantum);
        (price - copy).max(0.0)
    }

    /// The price of running a statement.
    pub fn run(&self, choice: &Choice) -> f64 {
        let weights = &self.weights;
        let tuples = choice.needs.len() + 1;
        let exact = self.objective.of_run(choice.load, choice.touched, tuples)
            + weights.load * choice.load / self.total
            + weights.touched * choice.touched / self.bytes
            + weights.resident * choice.addends;
        rounded(exact, weights.quantum)
    }

    /// The price of a tensor's resting somewhere.
    pub fn rest(&self, tensor: &Tensor, rest: Roles) -> f64 {
        if self.weights.resident == 0.0 {
            return 0.0;
        }
        let bytes = share(&tensor.shape, self.counts, rest) * tensor.width;
        rounded(self.weights.resident * bytes, self.weights.quantum)
    }
}

fn code(role: TensorRole) -> usize {
    match role {
        TensorRole::Every => 0,
        TensorRole::First => 1,
        // Windows have prices of their own.
        TensorRole::Partial | TensorRole::Window(..) => 2,
        TensorRole::Cut(dim) => 3 + dim as usize,
    }
}

fn rounded(price: f64, quantum: f64) -> f64 {
    (price / quantum).round() * quantum
}
