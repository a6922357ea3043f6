//! Accumulators of the reductions: strips of values into carriers.
//!
//! Lanes are either results of their own or points of one result; then eight of them (`FOLD`) run side by
//! side and are merged in order. Either way the order of operations depends on the loops alone. Must not
//! know programs.
//!
//! ```text
//! sum, one result:  x0 .. x9  ->  (x0 + x8 + x1 + x9) + (x2 + x3) + …
//! ```

mod lanes;
mod results;

use crate::carrier::{Carrier, Rule};
use crate::math::max_nan;
use crate::wide;
use ein_plan::{DType, Reduction};
pub(crate) use lanes::Float;
use lanes::{
    each, extreme, extreme_of, extremes, first_lane, firsts, log_sum_exp, log_sums_exp, norm, sums,
    update, updates,
};

/// Number of interleaved partial results of a result that lanes are folded into.
pub(crate) const FOLD: usize = 8;

/// Strips that are added at once to results that are lanes.
pub(crate) const HELD: usize = 4;

/// The carriers of one unit.
pub(crate) struct Accumulator {
    pub rule: Rule,
    /// Whether lanes are points of one result.
    folds: bool,
    /// True if it keeps plain sums of squares: squares of `f32` do not overflow in `f64`.
    squares: bool,
    // Of each result; what the rule needs nothing of is empty.
    float: Vec<f64>,
    second: Vec<f64>,
    integer: Vec<i64>,
    number: Vec<i64>,
}

impl Accumulator {
    /// For a reduction of all lanes into one result.
    pub(crate) fn folding(rule: Rule) -> Accumulator {
        Accumulator::with_slots(rule, true, FOLD)
    }

    /// For reductions of so many lanes, each into a result of its own.
    pub(crate) fn of_lanes(rule: Rule, lanes: usize) -> Accumulator {
        Accumulator::with_slots(rule, false, lanes)
    }

    /// Where nothing is reduced.
    pub(crate) fn none(value: DType) -> Accumulator {
        let reduction = Reduction::Max;
        Accumulator::with_slots(Rule { reduction, value }, false, 0)
    }

    fn with_slots(rule: Rule, folds: bool, slots: usize) -> Accumulator {
        use Reduction as R;
        let is_float = rule.value.is_float();
        let used = |is_used: bool| if is_used { slots } else { 0 };
        Accumulator {
            rule,
            folds,
            squares: rule.reduction == R::Norm && rule.value == DType::F32,
            float: vec![0.0; used(is_float)],
            second: vec![0.0; used(matches!(rule.reduction, R::LogSumExp | R::Norm))],
            integer: vec![0; used(!is_float)],
            number: vec![0; used(rule.reduction.is_arg() || rule.reduction == R::Mean)],
        }
    }

    /// Forgets everything, for `lanes` results that are lanes.
    pub(crate) fn reset(&mut self, lanes: usize) {
        let used = if self.folds { FOLD } else { lanes };
        let mut neutral = self.rule.neutral();
        if self.squares {
            neutral.second = 0.0;
        }
        self.float
            .iter_mut()
            .take(used)
            .for_each(|x| *x = neutral.float);
        self.second
            .iter_mut()
            .take(used)
            .for_each(|x| *x = neutral.second);
        self.integer
            .iter_mut()
            .take(used)
            .for_each(|x| *x = neutral.integer);
        self.number
            .iter_mut()
            .take(used)
            .for_each(|x| *x = neutral.number);
    }

    /// The carrier of a lane, or of everything if lanes are folded.
    pub(crate) fn carrier(&self, lane: usize) -> Carrier {
        let at = |l: usize| {
            let mut carrier = Carrier {
                float: self.float.get(l).copied().unwrap_or_default(),
                second: self.second.get(l).copied().unwrap_or_default(),
                integer: self.integer.get(l).copied().unwrap_or_default(),
                number: self.number.get(l).copied().unwrap_or_default(),
            };
            if self.squares {
                carrier.float = carrier.second.sqrt();
                carrier.second = 1.0;
            }
            carrier
        };
        if !self.folds {
            return at(lane);
        }
        let mut total = at(0);
        if self.rule.value.is_float()
            && matches!(self.rule.reduction, Reduction::Sum | Reduction::Mean)
        {
            let pair = |l: usize| self.float[l] + self.float[l + 1];
            total.float = (pair(0) + pair(2)) + (pair(4) + pair(6));
            total.number = self.number.iter().take(FOLD).sum();
            return total;
        }
        for l in 1..FOLD {
            self.rule.merge(&mut total, &at(l));
        }
        total
    }

    fn count(&mut self, lanes: usize, mask: Option<&[u8]>) {
        if self.rule.reduction != Reduction::Mean {
            return;
        }
        match mask {
            None if self.folds => self.number[0] += lanes as i64,
            None => self.number[..lanes].iter_mut().for_each(|n| *n += 1),
            Some(mask) => {
                let (folds, number) = (self.folds, &mut self.number);
                each(folds, mask, Some(mask), |s, _, _| number[s] += 1);
            }
        }
    }

    /// Adds at most [`HELD`] strips of floats, one after another, to results that are lanes; none of these is a place.
    #[inline(always)]
    pub(crate) fn add_strips<T: Float>(&mut self, strips: &[&[T]]) {
        use Reduction as R;
        let to = &mut self.float;
        match (strips.first_chunk::<HELD>(), self.rule.reduction) {
            (Some(strips), R::Sum | R::Mean) => {
                updates(to, strips, |x| x, |x| x, |s, x: T| s + x.into());
            }
            (Some(strips), R::Max) => {
                extremes(to, strips, |x, s| x > s);
            }
            (Some(strips), R::Min) => {
                extremes(to, strips, |x, s| x < s);
            }
            _ => {
                for strip in strips {
                    self.add_floats(strip, None, |_| 0);
                }
                return;
            }
        }
        for strip in strips {
            self.count(strip.len(), None);
        }
    }

    /// Adds a strip of floats. `number(lane)` is the row-major number of a lane's point of the reduction.
    #[inline(always)]
    pub(crate) fn add_floats<T: Float>(
        &mut self,
        x: &[T],
        mask: Option<&[u8]>,
        number: impl Fn(usize) -> i64,
    ) {
        use Reduction as R;
        let folds = self.folds;
        match self.rule.reduction {
            R::Sum | R::Mean if folds && mask.is_none() => {
                sums(&mut self.float, x, T::into, |s, x| s + x)
            }
            R::Norm1 if folds && mask.is_none() => {
                sums(&mut self.float, x, T::into, |s, x| s + x.abs())
            }
            R::Norm if folds && mask.is_none() && self.squares => {
                // The square of a lane is exact, so it does not matter whether it is rounded.
                match wide::has_wide() {
                    true => sums(&mut self.second, x, T::into, |s, x| x.mul_add(x, s)),
                    false => sums(&mut self.second, x, T::into, |s, x| s + x * x),
                }
            }
            R::Sum | R::Mean => update(folds, &mut self.float, x, mask, |s, x| s + x.into()),
            R::Norm1 => update(folds, &mut self.float, x, mask, |s, x| s + x.into().abs()),
            R::Prod => update(folds, &mut self.float, x, mask, |s, x| s * x.into()),
            R::Max => extreme(folds, &mut self.float, x, mask, |x: T, s: T| x > s, |x| x),
            R::Min => extreme(folds, &mut self.float, x, mask, |x: T, s: T| x < s, |x| x),
            R::NormInf => extreme(
                folds,
                &mut self.float,
                x,
                mask,
                |x: T, s: T| x > s,
                T::magnitude,
            ),
            R::Norm if self.squares => update(folds, &mut self.second, x, mask, |s, x| {
                let x: f64 = x.into();
                s + x * x
            }),
            R::Norm => {
                let (scales, sums) = (&mut self.float, &mut self.second);
                each(folds, x, mask, |s, _, x| {
                    norm(&mut scales[s], &mut sums[s], x.into().abs());
                });
            }
            R::LogSumExp => self.log_sum_exp(x, mask),
            R::ArgMax | R::ArgMin => {
                let largest = self.rule.reduction == R::ArgMax;
                let (values, numbers) = (&mut self.float, &mut self.number);
                let better = |x: f64, best: f64, number: i64| {
                    let better = if largest { x > best } else { x < best };
                    better || number < 0 || (x.is_nan() && !best.is_nan())
                };
                let best = match (folds && mask.is_none(), largest) {
                    (false, _) => None,
                    (true, true) => extreme_of(x, |x, s| x > s, |x| x),
                    (true, false) => extreme_of(x, |x, s| x < s, |x| x),
                };
                if let Some(best) = best {
                    if better(best.into(), values[0], numbers[0])
                        && let Some(lane) = first_lane(x, best)
                    {
                        (values[0], numbers[0]) = (best.into(), number(lane));
                    }
                    return;
                }
                if !folds && mask.is_none() {
                    return firsts(
                        (&mut values[..], &mut numbers[..]),
                        x,
                        number(0),
                        |x: f64, best| {
                            let is_before = if largest { x > best } else { x < best };
                            is_before | (x.is_nan() & !best.is_nan())
                        },
                    );
                }
                each(folds, x, mask, |s, l, x| {
                    let (x, best) = (x.into(), values[s]);
                    if better(x, best, numbers[s]) {
                        (values[s], numbers[s]) = (x, number(l));
                    }
                });
            }
            R::Any | R::All => unreachable!("any and all reduce truth values"),
        }
        self.count(x.len(), mask);
    }

    #[inline(always)]
    fn log_sum_exp<T: Float>(&mut self, x: &[T], mask: Option<&[u8]>) {
        let (tops, sums) = (&mut self.float, &mut self.second);
        if !self.folds && x.iter().all(|x| (*x).into().is_finite()) {
            return log_sums_exp(tops, sums, x, mask);
        }
        if !self.folds || mask.is_some() {
            return each(self.folds, x, mask, |s, _, x| {
                log_sum_exp::<T>(&mut tops[s], &mut sums[s], x.into());
            });
        }
        // The largest first, so that one exponential a lane is enough.
        let largest = extreme_of(x, |x: T, s: T| x > s, |x| x).map_or(f64::NAN, T::into);
        let top = tops[..FOLD].iter().fold(largest, |s, x| max_nan(s, *x));
        if !top.is_finite() {
            return each(true, x, None, |s, _, x| {
                log_sum_exp::<T>(&mut tops[s], &mut sums[s], x.into());
            });
        }
        for s in 0..FOLD {
            if tops[s] != top {
                sums[s] *= T::exp(tops[s] - top);
                tops[s] = top;
            }
        }
        lanes::sums(sums, x, |x: T| x.exp_beside(top), |s, x| s + x);
    }

    /// Adds a strip of integers or truth values.
    #[inline(always)]
    pub(crate) fn add_integers<T: Copy + Into<i64>>(
        &mut self,
        x: &[T],
        mask: Option<&[u8]>,
        number: impl Fn(usize) -> i64,
    ) {
        use Reduction as R;
        let (folds, truth) = (self.folds, self.rule.value == DType::Bool);
        let to = &mut self.integer;
        match self.rule.reduction {
            R::Sum | R::Mean if !truth => {
                update(folds, to, x, mask, |s, x| s.wrapping_add(x.into()));
            }
            R::Prod if !truth => update(folds, to, x, mask, |s, x| s.wrapping_mul(x.into())),
            R::Norm1 => update(folds, to, x, mask, |s, x| {
                s.wrapping_add(x.into().wrapping_abs())
            }),
            // The absolute value of the least number of a type wraps to itself.
            R::NormInf if self.rule.value == DType::I32 => update(folds, to, x, mask, |s, x| {
                let x: i64 = x.into();
                s.max(i64::from((x as i32).wrapping_abs()))
            }),
            R::NormInf => update(folds, to, x, mask, |s, x| s.max(x.into().wrapping_abs())),
            R::Min | R::All | R::Prod => update(folds, to, x, mask, |s, x| s.min(x.into())),
            R::Max | R::Any | R::Sum | R::Mean => {
                update(folds, to, x, mask, |s, x| s.max(x.into()));
            }
            R::ArgMax | R::ArgMin => {
                let largest = self.rule.reduction == R::ArgMax;
                let numbers = &mut self.number;
                let is_before = |x: i64, best| if largest { x > best } else { x < best };
                if !folds && mask.is_none() {
                    return firsts((&mut to[..], &mut numbers[..]), x, number(0), is_before);
                }
                if folds && mask.is_none() {
                    let wide = || x.iter().map(|x| (*x).into());
                    let best: Option<i64> = if largest { wide().max() } else { wide().min() };
                    if let Some(best) = best
                        && (numbers[0] < 0 || is_before(best, to[0]))
                        && let Some(lane) = wide().position(|x| x == best)
                    {
                        (to[0], numbers[0]) = (best, number(lane));
                    }
                    return;
                }
                each(folds, x, mask, |s, l, x| {
                    let (x, best) = (x.into(), to[s]);
                    if is_before(x, best) || numbers[s] < 0 {
                        (to[s], numbers[s]) = (x, number(l));
                    }
                });
            }
            R::LogSumExp | R::Norm => unreachable!("reduces floating-point values"),
        }
        self.count(x.len(), mask);
    }
}
