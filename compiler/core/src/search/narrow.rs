//! The exact solution of a network that is too large to eliminate as it is: bounds first, then what they leave.
//!
//! Values whose bound is above the price of a choice are left out, again and again, until what is left is small enough.
//! Where that does not happen, the optimum is guessed to be slightly above the bound, which leaves few values; if their best
//! choice is no dearer than the guess, it is the optimum, since every choice up to the guess was left. Otherwise it is the
//! next guess's ceiling. Must not know what the variables stand for.
//!
//! ```text
//! 1105 variables: bound 2.05e8, guess 2.0500001e8 leaves 1 to 4 values each, solved: 2.05e8, the optimum
//! ```

use super::bounds::{Bounding, of_classes, restricted};
use super::lifted::Lifted;
use super::network::{Eliminated, Network, Solution, Stop};

/// Operations up to which a network is eliminated as it is.
const SMALL: f64 = 2e7;

/// How far above the bound the optimum is guessed to be, as parts of the bound.
const GUESSES: [f64; 7] = [1e-7, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.3];

/// Times that prices are passed there and back.
const MOST_TRIPS: usize = 60;

/// As many trips may be spent on solving what is left instead.
const TRIPS_WORTH: f64 = 6.0;

/// Trips after which too little gain ends them.
const PATIENCE: usize = 8;

/// The least part of the bound that a trip has to add to it.
const LEAST_GAIN: f64 = 1e-7;

/// The least part of what is between the bound and the best choice that a trip has to add to the bound, where values are left out
/// on the way.
const LEAST_CLOSED: f64 = 0.01;

/// A choice that is above what none is below by no more than this part of its price is hardly dearer than the optimum.
pub(super) const HARDLY: f64 = 1e-3;

/// Operations after which a ceiling that is hardly above the bound is not lowered any more.
const LONG: f64 = 3e8;

/// Operations after which the bound is not raised any more, of classes and of values.
const LONGEST: f64 = 1e9;

/// Operations up to which the bound is raised once more where guesses did not lead to a proof.
const AGAIN: f64 = 1e9;

/// The bounds and values that are known of a network.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The best choice found; the optimum if `proved`.
    pub solution: Option<Solution>,
    /// The best choice that was met on the way; it may be better where nothing is proved.
    pub met: Option<Solution>,
    /// True if no choice is better.
    pub proved: bool,
    /// No choice is below this.
    pub bound: f64,
    /// Entries of the largest table made.
    pub largest: f64,
    /// Why it is not proved.
    pub stop: Option<Stop>,
}

impl Default for Narrowed {
    fn default() -> Narrowed {
        Narrowed {
            solution: None,
            met: None,
            proved: false,
            bound: f64::NEG_INFINITY,
            largest: 0.0,
            stop: None,
        }
    }
}

/// Solves a network whose optimum matters only if it is at most `ceiling`: a proof without a solution says that it is
/// not. `scale`: about what a good choice costs; `classes`: by variable and value, classes of values that cost nearly the same, if
/// there are any.
pub fn solve(
    network: &Network,
    classes: Option<&[Vec<usize>]>,
    cap: usize,
    scale: f64,
    ceiling: f64,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Narrowed {
    let mut result = Narrowed::default();
    if let Some((order, effort)) = network.small(SMALL, cap) {
        result.largest = effort.largest;
        match network.solve_in(&order, eliminated, deadline) {
            Ok(solution) => {
                result.bound = solution.value;
                (result.solution, result.proved) = (Some(solution), true);
            }
            Err(stop) => result.stop = Some(stop),
        }
        return result;
    }
    let known = match classes {
        Some(classes) => {
            let coarse = coarse(network, classes, scale, ceiling, cap, eliminated, deadline);
            coarse.refined(network, classes, ceiling, eliminated)
        }
        None => begun(network, scale, ceiling, eliminated, deadline),
    };
    let mut narrowing = Narrowing {
        known,
        ceiling,
        scale,
        cap,
        result,
        eliminated,
        deadline,
    };
    if !narrowing.passes() {
        narrowing.guesses();
    }
    narrowing.met();
    if narrowing.result.stop == Some(Stop::Near) {
        return narrowing.result;
    }
    // The bounds of all values take no less than those of the values that are left.
    if !narrowing.result.proved && is_soon(&narrowing.known) {
        narrowing.anew(Bounding::new(network, scale));
    }
    narrowing.result
}

/// A good choice of a network, if one is found; it need not be the best. `scale`: about what a good choice costs.
pub fn good(
    network: &Network,
    cap: usize,
    scale: f64,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Option<Solution> {
    if let Some((order, _)) = network.small(SMALL, cap) {
        return network.solve_in(&order, eliminated, deadline).ok();
    }
    let known = begun(network, scale, f64::INFINITY, eliminated, deadline);
    let mut narrowing = Narrowing {
        known,
        ceiling: f64::INFINITY,
        scale,
        cap,
        result: Narrowed::default(),
        eliminated,
        deadline,
    };
    // A bound that is as high as it gets is worth more here than one that soon leaves out values: choices are met on its way.
    narrowing.raise();
    narrowing.guesses();
    narrowing.met();
    let Narrowed { solution, met, .. } = narrowing.result;
    let both = solution.into_iter().chain(met);
    both.min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Returns whether the bound may be raised once more.
fn is_soon(known: &Bounding) -> bool {
    known.effort() * MOST_TRIPS as f64 <= AGAIN
}

/// Bounds of the classes of values, raised while that pays.
fn coarse(
    network: &Network,
    classes: &[Vec<usize>],
    scale: f64,
    ceiling: f64,
    cap: usize,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Bounding {
    let of_classes = of_classes(network, classes, eliminated);
    let mut coarse = begun(&of_classes, scale, ceiling, eliminated, deadline);
    let mut progress = Progress::default();
    for trip in 1..=MOST_TRIPS * 2 {
        if deadline() {
            break;
        }
        coarse.pass_only();
        let least = coarse.least();
        if least > ceiling * (1.0 + 1e-6)
            || progress.is_over(least, ceiling, LEAST_CLOSED)
            || is_near(least, ceiling, coarse.operations)
            || coarse.operations > LONGEST
        {
            break;
        }
        coarse.shrink(ceiling, eliminated);
        if trip % 8 == 0 {
            let left = Network {
                domains: coarse.counted(classes, ceiling),
                tables: network.tables.clone(),
            };
            if left.small(SMALL, cap).is_some() {
                break;
            }
        }
    }
    eliminated.operations += coarse.operations;
    coarse
}

/// First bounds of a network. Where it repeats itself, what its parts hand to each other is found once for all that are alike.
fn begun(
    network: &Network,
    scale: f64,
    ceiling: f64,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Bounding {
    let Some(lifted) = Lifted::of(network, eliminated) else {
        return Bounding::new(network, scale);
    };
    // A table here may stand for as many tables as there are variables.
    let mut above = Bounding::new(&lifted.network, scale * network.domains.len() as f64);
    let mut progress = Progress::default();
    for _ in 0..MOST_TRIPS {
        above.pass_only();
        if deadline() || progress.is_over(above.least(), ceiling, LEAST_CLOSED) {
            break;
        }
    }
    eliminated.operations += above.operations;
    Bounding::below_lifted(network, scale, &lifted, &above)
}

/// Returns whether a bound is hardly below a ceiling after so many operations.
fn is_near(least: f64, ceiling: f64, operations: f64) -> bool {
    operations > LONG && ceiling.is_finite() && least > ceiling * (1.0 - HARDLY)
}

/// How much trips still add to a bound.
#[derive(Default)]
struct Progress {
    before: Option<f64>,
    stale: usize,
}

impl Progress {
    /// Returns whether trips add too little, with the bound that the last one gave. `most`: what matters is at most this dear;
    /// `closed`: the part of what is between that has to be added.
    fn is_over(&mut self, least: f64, most: f64, closed: f64) -> bool {
        if let Some(before) = self.before {
            let needed = (LEAST_GAIN * before.abs()).max(match most.is_finite() {
                true => closed * (most - before),
                false => 0.0,
            });
            let gained = least - before > needed;
            self.stale = if gained { 0 } else { self.stale + 1 };
        }
        self.before = Some(least);
        self.stale >= PATIENCE
    }
}

/// A network while values are left out of it.
struct Narrowing<'a> {
    known: Bounding,
    ceiling: f64,
    scale: f64,
    cap: usize,
    result: Narrowed,
    eliminated: &'a mut Eliminated,
    deadline: &'a dyn Fn() -> bool,
}

impl Narrowing<'_> {
    /// Raises the bound, leaving out values, while that pays; returns whether nothing is left to do.
    fn passes(&mut self) -> bool {
        let mut progress = Progress::default();
        let mut shrunk = false;
        let begun = self.eliminated.operations - self.known.operations;
        for trip in 0..MOST_TRIPS {
            let least = self.known.least();
            // The bound is a sum of many rounded parts.
            self.result.bound = self.result.bound.max(least - least.abs() * 1e-9);
            if self.result.bound > self.ceiling + self.ceiling.abs() * 2e-9 {
                self.result.proved = true;
                return true;
            }
            let operations = self.eliminated.operations - begun;
            if is_near(self.result.bound, self.ceiling, operations) {
                self.result.stop = Some(Stop::Near);
                return true;
            }
            let most = self.most();
            let small = (shrunk || trip % 4 == 0) && self.is_small(most);
            if small && self.left(most).is_ok() && self.result.proved {
                return true;
            }
            let granted = self.eliminated.budget.min(begun + 2.0 * LONGEST);
            if (self.deadline)()
                || self.eliminated.operations > granted
                || (trip > 0 && progress.is_over(least, most, LEAST_CLOSED))
            {
                break;
            }
            self.trip();
            shrunk = self.known.shrink(self.most(), self.eliminated);
        }
        false
    }

    /// Raises the bound from the beginning, if that does not take long, and guesses again: values that are left out on the way may
    /// keep the bound from rising.
    fn anew(&mut self, known: Bounding) {
        if !is_soon(&known) {
            return;
        }
        self.known = known;
        self.result.stop = None;
        self.raise();
        self.guesses();
        self.met();
    }

    /// Raises the bound as far as trips do.
    fn raise(&mut self) {
        let mut progress = Progress::default();
        for _ in 0..MOST_TRIPS {
            if (self.deadline)() || self.eliminated.operations > self.eliminated.budget {
                break;
            }
            self.trip();
            let least = self.known.least();
            self.result.bound = self.result.bound.max(least - least.abs() * 1e-9);
            if least > self.most() || progress.is_over(least, f64::INFINITY, 0.0) {
                break;
            }
        }
    }

    fn trip(&mut self) {
        let spent = self.known.operations;
        self.known.trip();
        self.eliminated.operations += self.known.operations - spent;
    }

    /// Keeps the best choice that was met.
    fn met(&mut self) {
        let met = self.result.met.take();
        let both = met.into_iter().chain(self.known.best().cloned());
        self.result.met = both.min_by(|a, b| a.value.total_cmp(&b.value));
    }

    /// Returns whether it takes no longer to solve what is left below a price than a few more trips.
    fn is_small(&self, limit: f64) -> bool {
        let trips = TRIPS_WORTH * self.known.effort();
        let left = self.counted(limit);
        left.small(trips.max(SMALL), self.cap).is_some()
    }

    /// Returns whether a guess is worth it: what is left below it is solved soon, or much sooner than what is left below the highest
    /// price, which needs no guess after it.
    fn is_cheaper(&self, guess: f64, most: f64) -> bool {
        let (_, effort) = self.counted(guess).order();
        let enough = 2.0 * effort.operations;
        effort.operations <= SMALL || self.counted(most).small(enough, self.cap).is_none()
    }

    /// The network that is left below a price; of its values only their numbers are known.
    fn counted(&self, limit: f64) -> Network {
        Network {
            domains: self.known.below(limit).iter().map(Vec::len).collect(),
            tables: self.known.current().tables.clone(),
        }
    }

    /// The highest price of a plan that is still of interest.
    fn most(&self) -> f64 {
        let result = [&self.result.solution, &self.result.met];
        let choices = result.into_iter().flatten().chain(self.known.best());
        choices.fold(self.ceiling, |most, choice| most.min(choice.value))
    }

    /// Guesses the optimum, higher each time.
    fn guesses(&mut self) {
        let least = self.known.least().max(self.result.bound);
        for guess in GUESSES {
            let most = self.most();
            let limit = least + guess * least.abs().max(self.scale * 1e-3);
            let limit = match limit < most && !self.is_cheaper(limit, most) {
                true => most,
                false => limit.min(most),
            };
            if let Err(reason) = self.left(limit) {
                self.result.stop = Some(reason);
                return;
            }
            if self.result.proved {
                return;
            }
        }
        self.result.stop = Some(Stop::Budget);
    }

    /// Solves what is left of the network below a price.
    fn left(&mut self, limit: f64) -> Result<(), Stop> {
        let kept = self.known.below(limit);
        self.eliminated.forget();
        let smaller = restricted(self.known.current(), &kept, self.eliminated);
        let (order, effort) = smaller.order();
        if effort.largest > self.cap as f64 {
            return Err(Stop::TooLarge(effort.largest));
        }
        let solution = smaller.solve_in(&order, self.eliminated, self.deadline)?;
        self.result.largest = self.result.largest.max(effort.largest);
        let known = self.result.solution.as_ref();
        let better = known.is_none_or(|known| solution.value < known.value);
        if better && solution.value.is_finite() {
            let values = solution.choice.iter().zip(&kept);
            let choice = values.map(|(at, kept)| kept[*at]).collect();
            let value = solution.value;
            self.result.solution = Some(self.known.given(Solution { value, choice }));
        }
        if solution.value <= limit {
            (self.result.proved, self.result.bound) = (true, solution.value);
        } else if limit >= self.ceiling {
            // Nothing is left up to the ceiling.
            (self.result.solution, self.result.proved) = (None, true);
            self.result.bound = self.ceiling;
        }
        Ok(())
    }
}
