//! Special functions as the interpreters compute them: by their definitions, slowly.
//!
//! Kernels compute them in other ways, so that one checks the other. Must not know kernels.
//!
//! ```text
//! erfc(1) = 0.15729920705   lgamma(5) = log 24   polygamma(0, 1) = -0.5772156649
//! ```

use ein_plan::DType;
use std::f64::consts::PI;

/// Terms of a sum that is cut off.
const TERMS: u32 = 20_000;

/// 1 - erf(a); where that is small, by the continued fraction of Abramowitz and Stegun, 7.1.14.
pub(super) fn erfc(a: f64) -> f64 {
    if a.is_nan() || a < 1.5 {
        return 1.0 - libm::erf(a);
    }
    let deepest_first = (1..400).rev().map(|k| f64::from(k) / 2.0);
    let below = deepest_first.fold(0.0, |below, numerator| numerator / (a + below));
    (-a * a).exp() / PI.sqrt() / (a + below)
}

/// The x with erf(x) = a, by halving the interval that it is in.
pub(super) fn erfinv(a: f64) -> f64 {
    let size = a.abs();
    if a.is_nan() || size > 1.0 {
        return f64::NAN;
    }
    if size == 1.0 {
        return a * f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let is_below = match size < 0.5 {
            true => libm::erf(middle) < size,
            false => erfc(middle) > 1.0 - size,
        };
        if is_below {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.copysign(a)
}

/// log |Γ(a)|: Stirling's series far from 0, nearer by Γ(a + 1) = a Γ(a).
pub(super) fn lgamma(a: f64) -> f64 {
    if a.is_infinite() {
        return f64::INFINITY;
    }
    if a < 0.5 {
        // Γ(a) Γ(1 - a) = π / sin(π a)
        let sine = (PI * (a - a.round())).sin().abs();
        return (PI / sine).ln() - lgamma(1.0 - a);
    }
    let (mut at, mut product) = (a, 0.0);
    while at < 20.0 {
        product += at.ln();
        at += 1.0;
    }
    let series = 1.0 / (12.0 * at) - 1.0 / (360.0 * at.powi(3)) + 1.0 / (1260.0 * at.powi(5));
    (at - 0.5) * at.ln() - at + 0.5 * (2.0 * PI).ln() + series - product
}

/// Derivative number `n + 1` of log Γ, as a sum over its poles; what is cut off is an integral.
pub(super) fn polygamma(n: f64, x: f64) -> f64 {
    let order = n as i32;
    let is_pole = x <= 0.0 && x == x.floor();
    match (is_pole, order % 2 == 1) {
        (true, true) => return f64::INFINITY,
        (true, false) => return f64::NAN,
        _ => {}
    }
    if x.is_infinite() {
        return match (x > 0.0, order) {
            (true, 0) => f64::INFINITY,
            (true, _) => 0.0,
            (false, _) => f64::NAN,
        };
    }
    let terms = (0..TERMS).map(|k| (x + f64::from(k)).powi(-order - 1));
    let sum: f64 = terms.sum();
    let rest = x + f64::from(TERMS) - 0.5;
    if order == 0 {
        // The integral from the middle of the first term that is left out, and the next term of its error.
        return rest.ln() + 1.0 / (24.0 * rest * rest) - sum;
    }
    let factorial: f64 = (1..=order).map(f64::from).product();
    let size = factorial * (sum + rest.powi(-order) / n);
    if order % 2 == 1 { size } else { -size }
}

/// The number next to `a` on the way to `b`, among those of the type.
pub(super) fn nextafter(a: f64, b: f64, dtype: DType) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let single = a as f32;
    match (a < b, dtype == DType::F32) {
        _ if a == b => b,
        (true, true) => f64::from(single.next_up()),
        (true, false) => a.next_up(),
        (false, true) => f64::from(single.next_down()),
        (false, false) => a.next_down(),
    }
}
