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
use super::convert::{share, share_of, transfer};
use super::disabled_moves::DisabledMoves;
use super::far::convert_over;
use super::machine::{Levels, TimeModel};
use super::mesh::AXES;
use super::problem::{Problem, Tensor};
use super::transfer::ReadWindows;
use super::transfer::{Counts, Move, Roles, TransferItem, is_windowed};
use super::turns::alike;
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

impl Objective {
    /// The price of moving a tensor with elements of `width` bytes.
    pub fn of_move(&self, moved: &Move, width: f64) -> f64 {
        match self {
            Objective::Transfer => moved.transfer,
            Objective::Bytes => moved.words,
            Objective::Time(model) => model.of_move(moved, width),
        }
    }

    /// The price of running a statement in one way.
    pub fn of_run(&self, choice: &Choice) -> f64 {
        match self {
            Objective::Time(model) => {
                let (rates, tuples) = (&model.compute, choice.needs.len() + 1);
                rates.of_operations(&choice.pace, choice.load)
                    + rates.of_tuples(choice.touched, tuples)
            }
            Objective::Transfer | Objective::Bytes => 0.0,
        }
    }

    /// How a mesh of these counts lies over the nodes of a machine; none where that makes no difference.
    pub fn levels(&self, counts: Counts) -> Option<Levels> {
        match self {
            Objective::Time(model) => model.levels(counts),
            Objective::Transfer | Objective::Bytes => None,
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
    /// For each byte that the busiest site holds: at rest, for a statement, or as what a conversion makes.
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
    /// How it lies over nodes, where that makes a difference.
    pub levels: Option<Levels>,
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
    /// The numbers of windows, by goods.
    windows: FxHashMap<(usize, Roles), usize>,
    /// By number of windows and place of a placement: the price of the conversion from there to them; NaN until it is asked for.
    windowed: Vec<Vec<f64>>,
    /// By goods and placement: what sites hold there, or need where it is one of windows.
    boxes: FxHashMap<(usize, Roles), Rc<SiteBoxes>>,
}

impl Conversions {
    /// How many prices there is room for.
    pub fn count(&self) -> usize {
        let kept = self.kept.iter().map(|kept| &kept.prices);
        kept.chain(&self.windowed).map(Vec::len).sum()
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
            levels: objective.levels(counts),
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
        let window = is_windowed(to).then(|| self.window(goods, to));
        self.once(goods, from, (to, window))
    }

    /// The price of a conversion, worked out if it is not known. `window`: the number of the windows, where it is to some.
    fn once(&mut self, goods: usize, from: Roles, (to, window): (Roles, Option<usize>)) -> f64 {
        let base = self.conversions.kept[goods].base();
        let start = place(from, base);
        let known = match window {
            Some(number) => self.conversions.windowed[number].get(start),
            None => {
                let at = start * base.pow(3) + place(to, base);
                self.conversions.kept[goods].prices.get(at)
            }
        };
        let known = known.copied().filter(|price| !price.is_nan());
        match (known, window) {
            (Some(price), _) => price,
            (None, Some(number)) => self.windowed(goods, from, to, number),
            (None, None) => self.placed(goods, from, to),
        }
    }

    /// Works out the price of a conversion to a placement that is not one of windows.
    fn placed(&mut self, goods: usize, from: Roles, to: Roles) -> f64 {
        let base = self.conversions.kept[goods].base();
        let slot = |[from, to]: [Roles; 2]| place(from, base) * base.pow(3) + place(to, base);
        let alike = self.in_order(from, to);
        let known = self.conversions.kept[goods].prices.get(slot(alike));
        let price = match known.copied().filter(|price| !price.is_nan()) {
            Some(price) => price,
            None => {
                let (item, levels) = (self.item(goods), self.levels.as_ref());
                let moved = match self.objective {
                    Objective::Transfer => {
                        let floats = transfer(item, self.counts, from, to);
                        floats.map(|transfer| Move {
                            transfer,
                            ..Move::default()
                        })
                    }
                    _ => convert_over(item, self.counts, levels, from, to),
                };
                self.price(goods, from, to, moved)
            }
        };
        let prices = &mut self.conversions.kept[goods].prices;
        for pair in [[from, to], alike] {
            if let Some(slot) = prices.get_mut(slot(pair)) {
                *slot = price;
            }
        }
        price
    }

    /// The conversion of the same price in which axes that are alike are in the order of what they do.
    fn in_order(&self, mut from: Roles, mut to: Roles) -> [Roles; 2] {
        for axis in 0..AXES {
            for later in axis + 1..AXES {
                if alike(self.counts, self.levels.as_ref(), axis, later)
                    && (from[axis], to[axis]) > (from[later], to[later])
                {
                    from.swap(axis, later);
                    to.swap(axis, later);
                }
            }
        }
        [from, to]
    }

    /// Works out the price of a conversion to windows, which have this number.
    fn windowed(&mut self, goods: usize, from: Roles, to: Roles, number: usize) -> f64 {
        let moved = (!from.contains(&TensorRole::Partial)).then(|| {
            let (held, needed) = (self.boxes(goods, from), self.boxes(goods, to));
            let moved = windows::between(&held, &needed);
            let far = self
                .levels
                .map(|levels| windows::far(&held, &needed, &levels));
            Move {
                far: far.unwrap_or_default(),
                ..moved
            }
        });
        let price = self.price(goods, from, to, moved);
        let base = self.conversions.kept[goods].base();
        self.conversions.windowed[number][place(from, base)] = price;
        price
    }

    /// The number of the windows of a tensor.
    fn window(&mut self, goods: usize, to: Roles) -> usize {
        let Conversions {
            windows,
            windowed,
            kept,
            ..
        } = &mut self.conversions;
        *windows.entry((goods, to)).or_insert_with(|| {
            windowed.push(vec![f64::NAN; kept[goods].base().pow(3)]);
            windowed.len() - 1
        })
    }

    /// The prices of the conversions from each placement to each, those of the first one first.
    pub fn converts(&mut self, goods: usize, from: &[Roles], to: &[Roles]) -> Vec<f64> {
        let targets: Vec<(Roles, Option<usize>)> = to
            .iter()
            .map(|to| (*to, is_windowed(*to).then(|| self.window(goods, *to))))
            .collect();
        let mut prices = Vec::with_capacity(from.len() * to.len());
        for from in from {
            for to in &targets {
                prices.push(self.once(goods, *from, *to));
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
        let exact = self.objective.of_run(choice)
            + weights.load * choice.load / self.total
            + weights.touched * choice.touched / self.bytes
            + weights.resident * choice.held;
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

impl Kept {
    /// How many roles an axis can have.
    fn base(&self) -> usize {
        self.shape.len() + 3
    }
}

/// The number of a placement among those of an axis' so many roles.
fn place(roles: Roles, base: usize) -> usize {
    roles.iter().fold(0, |at, role| at * base + code(*role))
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
