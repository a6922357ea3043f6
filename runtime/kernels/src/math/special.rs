//! Special functions that have no short polynomial: one value at a time, in double precision.
//!
//! Must not know strips.
//!
//! ```text
//! erfinv(0) = 0   erfinv(1) = inf   polygamma(0, 1) = -0.5772156649015329   polygamma(1, 1) = pi² / 6
//! ```

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// The x with erf(x) = a: infinite at 1 and -1, NaN beyond.
///
/// Winitzki's closed form (2008) is within 0.2 %; three of Halley's steps, each of which triples the number of right digits, do the rest.
/// Where |a| is near 1, the complement is exact and is what the steps compare.
pub(crate) fn erfinv(a: f64) -> f64 {
    let size = a.abs();
    if size >= 1.0 {
        return if size == 1.0 {
            a * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let logarithm = libm::log1p(-size * size);
    let half = 2.0 / (PI * 0.147) + logarithm / 2.0;
    let mut x = ((half * half - logarithm / 0.147).sqrt() - half)
        .max(0.0)
        .sqrt();
    for _ in 0..3 {
        let over = match size < 0.5 {
            true => libm::erf(x) - size,
            false => (1.0 - size) - libm::erfc(x),
        };
        let step = over / (FRAC_2_SQRT_PI * libm::exp(-x * x));
        x -= step / (1.0 + x * step);
    }
    x.copysign(a)
}

/// B(2k) for k = 1, 2, …
const BERNOULLI: [f64; 9] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
];

/// Derivative number `n + 1` of log Γ at `x`; `n` is a whole number, not negative.
///
/// At the poles, 0, -1, -2, …, it is infinite where both sides are (n odd), else NaN.
pub(crate) fn polygamma(n: f64, x: f64) -> f64 {
    let is_odd = n % 2.0 == 1.0;
    if x > 0.0 {
        return at_positive(n, x);
    }
    // The distance from the nearest pole, which is exact.
    let distance = x - x.round();
    if distance == 0.0 {
        return if is_odd { f64::INFINITY } else { f64::NAN };
    }
    let near = match distance > 0.0 {
        true => at_positive(n, distance),
        false => {
            let order = n as i32;
            let pole = factorial(order) * distance.powi(-order - 1);
            at_positive(n, 1.0 + distance) + if is_odd { pole } else { -pole }
        }
    };
    // The reflection formula, its cotangent's derivative written as that of the distance.
    let difference = at_positive(n, 1.0 - x) - at_positive(n, 1.0 - distance);
    near + if is_odd { -difference } else { difference }
}

fn factorial(order: i32) -> f64 {
    (1..=order).map(f64::from).product()
}

/// [`polygamma`] of a positive number: steps up to where the asymptotic series (Abramowitz and Stegun, 6.3.18 and 6.4.11) is exact.
fn at_positive(n: f64, x: f64) -> f64 {
    if x == f64::INFINITY {
        return if n == 0.0 { x } else { 0.0 };
    }
    let order = n as i32;
    let factorial = factorial(order);
    let (mut at, mut steps) = (x, 0.0);
    while at < 12.0 + n {
        steps += at.powi(-order - 1);
        at += 1.0;
    }
    // (2k + n - 1)! / (2k)!, beginning with k = 1.
    let mut ratio: f64 =
        (3..=order + 1).map(f64::from).product::<f64>() / if order == 0 { 2.0 } else { 1.0 };
    let mut series = 0.0;
    for (k, number) in (1i32..).zip(BERNOULLI) {
        series += number * ratio * at.powi(-2 * k - order);
        let (k, n) = (f64::from(2 * k), n);
        ratio *= (k + n) * (k + n + 1.0) / ((k + 1.0) * (k + 2.0));
    }
    if order == 0 {
        return libm::log(at) - 0.5 / at - series - steps;
    }
    let size = factorial / n * at.powi(-order)
        + factorial / 2.0 * at.powi(-order - 1)
        + series
        + factorial * steps;
    if order % 2 == 1 { size } else { -size }
}
