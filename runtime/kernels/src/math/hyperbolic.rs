//! Hyperbolic functions and their inverses in double precision, within four units in the last place (ulp).
//!
//! Straight-line code, as in [`super::double`], of the exponential function and the logarithm. Must not know strips.
//!
//! ```text
//! sinh(1e-300) = 1e-300   cosh(0) = 1   acosh(1) = 0   atanh(1) = inf
//! ```

use super::double::{exp_f64, expm1_f64, log_f64, log1p_f64};
use std::f64::consts::LN_2;

/// Above it e^x is nearly out of range.
const FAR: f64 = 700.0;

/// Above it 1 is nothing beside the square.
const LARGE: f64 = 268_435_456.0;

/// e^a / 2 for a > [`FAR`].
#[inline(always)]
fn half_power(a: f64) -> f64 {
    let root = exp_f64(0.5 * a);
    0.5 * root * root
}

/// Hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let e = expm1_f64(a);
    let y = 0.5 * (e + e / (e + 1.0));
    let y = if a > FAR { half_power(a) } else { y };
    y.copysign(x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh_f64(x: f64) -> f64 {
    let a = x.abs();
    let e = exp_f64(a);
    let y = 0.5 * e + 0.5 / e;
    if a > FAR { half_power(a) } else { y }
}

/// The inverse of [`sinh_f64`].
#[inline(always)]
pub(crate) fn asinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let near = log1p_f64(a + square / (1.0 + (square + 1.0).sqrt()));
    let far = log_f64(a) + LN_2;
    let y = if a > LARGE { far } else { near };
    // An a whose square is 0, whatever the sum is rounded to.
    (if a < 1e-9 { a } else { y }).copysign(x)
}

/// The inverse of [`cosh_f64`].
#[inline(always)]
pub(crate) fn acosh_f64(x: f64) -> f64 {
    let t = x - 1.0;
    let near = log1p_f64(t + t.mul_add(t, 2.0 * t).sqrt());
    let far = log_f64(x) + LN_2;
    let y = if x > LARGE { far } else { near };
    // The square of a large one below 1 is out of range.
    if x < 1.0 { f64::NAN } else { y }
}

/// The inverse of the hyperbolic tangent.
#[inline(always)]
pub(crate) fn atanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let double = a + a;
    let y = 0.5 * log1p_f64(double + double * a / (1.0 - a));
    let y = if a < 1.0 { y } else { f64::INFINITY };
    (if a <= 1.0 { y } else { f64::NAN }).copysign(x)
}
