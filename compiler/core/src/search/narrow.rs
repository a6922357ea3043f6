//! The exact solution of a network that is too large to eliminate as it is: bounds first, then what they leave.
//!
//! A guess of the optimum slightly above the bound leaves few values; if their best choice is no dearer than the
//! guess, it is the optimum, since every choice up to the guess was left. Otherwise it is the next guess's ceiling.
//! Must not know what the variables stand for.
//!
//! ```text
//! 1105 variables: bound 2.05e8, guess 2.0500001e8 leaves 1 to 4 values each, solved: 2.05e8, the optimum
//! ```

use super::bounds::{Bounds, bounds, restricted};
use super::network::{Eliminated, Network, Solution, Stop};

/// Operations up to which a network is eliminated as it is.
const SMALL: f64 = 2e7;

/// How far above the bound the optimum is guessed to be, as parts of the bound.
const GUESSES: [f64; 7] = [1e-7, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.3];

/// The bounds and values that are known of a network.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The best choice found; the optimum if `proved`.
    pub solution: Option<Solution>,
    /// True if no choice is better.
    pub proved: bool,
    /// No choice is below this.
    pub bound: f64,
    /// Entries of the largest table made.
    pub largest: f64,
    /// Why it is not proved.
    pub stop: Option<Stop>,
}

/// Solves a network whose optimum matters only if it is at most `ceiling`: a proof without a solution says that it is
/// not. `scale`: about what a good choice costs.
pub fn solve(
    network: &Network,
    cap: usize,
    scale: f64,
    ceiling: f64,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Narrowed {
    let mut result = Narrowed {
        solution: None,
        proved: false,
        bound: f64::NEG_INFINITY,
        largest: 0.0,
        stop: None,
    };
    if network.is_small(SMALL, cap) {
        result.largest = network.order().1.largest;
        match network.solve(cap, eliminated, deadline) {
            Ok(solution) => {
                result.bound = solution.value;
                (result.solution, result.proved) = (Some(solution), true);
            }
            Err(stop) => result.stop = Some(stop),
        }
        return result;
    }
    let known = bounds(network, scale, ceiling + ceiling.abs() * 2e-9, deadline);
    eliminated.operations += known.operations;
    // The bound is a sum of many rounded parts.
    result.bound = known.least - known.least.abs() * 1e-9;
    if result.bound > ceiling {
        result.proved = true;
        return result;
    }
    let mut stop = Stop::Budget;
    for guess in GUESSES {
        let limit = known.least + guess * known.least.abs().max(scale * 1e-3);
        let best = result
            .solution
            .as_ref()
            .map_or(f64::INFINITY, |best| best.value);
        let tried = limit.min(best).min(ceiling);
        match left(
            network,
            &known,
            tried,
            cap,
            &mut result,
            eliminated,
            deadline,
        ) {
            Err(reason) => {
                stop = reason;
                break;
            }
            Ok(()) if result.proved => return result,
            Ok(()) if tried == ceiling => {
                (result.solution, result.proved, result.bound) = (None, true, ceiling);
                return result;
            }
            Ok(()) => {}
        }
    }
    result.stop = Some(stop);
    result
}

/// Solves what is left of a network below a price.
fn left(
    network: &Network,
    known: &Bounds,
    limit: f64,
    cap: usize,
    result: &mut Narrowed,
    eliminated: &mut Eliminated,
    deadline: &dyn Fn() -> bool,
) -> Result<(), Stop> {
    let kept = known.below(limit + limit.abs() * 1e-9);
    eliminated.forget();
    let smaller = restricted(network, &kept, eliminated);
    let (_, effort) = smaller.order();
    let solution = smaller.solve(cap, eliminated, deadline)?;
    result.largest = result.largest.max(effort.largest);
    if !solution.value.is_finite() {
        return Ok(());
    }
    let proved = solution.value <= limit;
    if result
        .solution
        .as_ref()
        .is_none_or(|best| solution.value < best.value)
    {
        let values = solution.choice.iter().zip(&kept);
        result.solution = Some(Solution {
            value: solution.value,
            choice: values.map(|(at, kept)| kept[*at]).collect(),
        });
    }
    if proved {
        result.bound = solution.value;
        result.proved = true;
    }
    Ok(())
}
