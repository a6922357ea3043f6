//! Powers and logarithms of other bases, and the cube root, in double precision, within four units in the last place (ulp).
//!
//! Straight-line code, as in [`super::double`]; whole powers of a base are exact, and so are their logarithms. Must not know strips.
//!
//! ```text
//! exp2(-1074) = 4.9e-324   log2(8) = 3   log10(1000) = 3   cbrt(-27) = -3
//! ```

use super::double::{EXP, Logarithm, ROUND, far_scaled, logarithm, logarithm_of, series};
use std::f64::consts::{LN_2, LOG2_E, LOG10_E};

/// The parts of ln 2, log2(e) and log10(e) behind [`LN_2`], [`LOG2_E`] and [`LOG10_E`].
const LN_2_LACKS: f64 = 2.319_046_813_846_299_6e-17;
const LOG2_E_LACKS: f64 = 2.035_527_374_093_103_3e-17;
const LOG10_E_LACKS: f64 = 1.098_319_650_216_765e-17;

/// log10(2) in two parts; the first has 42 bits, so that its small multiples are exact.
const LOG10_2_HIGH: f64 = 3.010_299_956_639_528_3e-1;
const LOG10_2_LOW: f64 = 2.836_339_455_104_496_4e-14;

/// The cube root of 1 <= z < 8, to 1.5e-3.
const CBRT: [f64; 6] = [
    6.084_349_186_865_862e-1,
    4.888_123_358_150_584_5e-1,
    -1.121_201_065_565_786_6e-1,
    1.825_165_668_958_942_2e-2,
    -1.596_887_337_316_374e-3,
    5.655_254_894_221_102e-5,
];

/// 2^x.
#[inline(always)]
pub(crate) fn exp2_f64(x: f64) -> f64 {
    let clamped = if x > 1030.0 { 1030.0 } else { x };
    let clamped = if clamped < -1080.0 { -1080.0 } else { clamped };
    let n = clamped + ROUND - ROUND;
    let part = clamped - n;
    let r = part * LN_2;
    let lost = part.mul_add(LN_2, -r) + part * LN_2_LACKS;
    let s = (r * r).mul_add(series(r, &EXP), lost) + r;
    far_scaled(1.0 + s, n)
}

/// The logarithm to base 2.
#[inline(always)]
pub(crate) fn log2_f64(x: f64) -> f64 {
    in_base(x, (1.0, 0.0), (LOG2_E, LOG2_E_LACKS))
}

/// The logarithm to base 10.
#[inline(always)]
pub(crate) fn log10_f64(x: f64) -> f64 {
    in_base(x, (LOG10_2_HIGH, LOG10_2_LOW), (LOG10_E, LOG10_E_LACKS))
}

/// The logarithm to the base for which those of 2 and of e are these, each in two parts.
#[inline(always)]
fn in_base(x: f64, (of_2, of_2_low): (f64, f64), (of_e, of_e_low): (f64, f64)) -> f64 {
    let Logarithm { k, high, low } = logarithm(x);
    let whole = k * of_2;
    let part = high * of_e;
    let lost = high.mul_add(of_e, -part) + high.mul_add(of_e_low, low.mul_add(of_e, k * of_2_low));
    let sum = whole + part;
    // The larger one is the whole, if there is one.
    let lost = if k == 0.0 {
        lost
    } else {
        lost + ((whole - sum) + part)
    };
    logarithm_of(x, sum + lost)
}

/// The cube root.
#[inline(always)]
pub(crate) fn cbrt_f64(x: f64) -> f64 {
    const SMALL: f64 = f64::MIN_POSITIVE;
    let a = x.abs();
    let scaled = if a < SMALL {
        a * 18_014_398_509_481_984.0
    } else {
        a
    };
    let bits = scaled.to_bits();
    // The exponent as a number: put below the leading bit of 2^52.
    let k = f64::from_bits(0x4330_0000_0000_0000 | bits >> 52) - 4_503_599_627_370_496.0 - 1023.0;
    let third = (k - 1.0).mul_add(1.0 / 3.0, ROUND) - ROUND;
    let rest = third.mul_add(-3.0, k);
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    // The rest of the exponent is 0, 1 or 2.
    let times = if rest > 0.5 { 2.0 } else { 1.0 };
    let z = mantissa * if rest > 1.5 { 4.0 } else { times };
    let y = series(z, &CBRT);
    let cube = y * y * y;
    let y = y * (cube + z + z) / (cube + cube + z);
    let square = y * y;
    let above = square.mul_add(y, -z) + y.mul_add(y, -square) * y;
    let y = y - above / (3.0 * square);
    let y = far_scaled(y, if a < SMALL { third - 18.0 } else { third });
    let y = if a < f64::INFINITY { y } else { a };
    (if a == 0.0 { a } else { y }).copysign(x)
}
