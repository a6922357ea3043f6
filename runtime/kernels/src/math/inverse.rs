//! The inverses of sine, cosine and tangent in double precision, within four units in the last place (ulp).
//!
//! Straight-line code, as in [`super::double`]. An angle is a multiple of π/4, in two numbers, and the rest of it. Must not know strips.
//!
//! ```text
//! asin(1) = π/2   acos(-1) = π   atan(inf) = π/2   atan2(-0, -1) = -π
//! ```

use super::double::series;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// The part of π/4 behind [`FRAC_PI_4`].
const LACKS: f64 = 3.061_616_997_868_383e-17;

/// tan(π/8), and tan(3π/8).
const EIGHTH: f64 = 0.414_213_562_373_095_03;
const THREE_EIGHTHS: f64 = 2.414_213_562_373_095;

/// (asin(x) / x - 1) / x² in x², for |x| <= 1/2, to 2.4e-16 of x².
const ASIN: [f64; 12] = [
    1.666_666_666_666_665e-1,
    7.500_000_000_020_764e-2,
    4.464_285_710_342_364_6e-2,
    3.038_194_736_709_848e-2,
    2.237_204_763_174_451e-2,
    1.735_525_995_578_632_3e-2,
    1.392_965_290_232_663_3e-2,
    1.187_549_438_263_692_2e-2,
    7.802_949_477_353_317_5e-3,
    1.603_551_434_914_882e-2,
    -1.074_905_033_969_780_8e-2,
    2.816_921_806_088_141_4e-2,
];

/// (atan(x) / x - 1) / x² in x², for |x| <= tan(π/8), to 1.2e-18 of x².
const ATAN: [f64; 12] = [
    -3.333_333_333_333_333e-1,
    1.999_999_999_999_980_4e-1,
    -1.428_571_428_565_974_8e-1,
    1.111_111_110_514_776_4e-1,
    -9.090_908_753_118_594e-2,
    7.692_296_363_979_952e-2,
    -6.666_424_687_246_5e-2,
    5.878_926_715_756_726e-2,
    -5.230_437_464_251_687_4e-2,
    4.551_516_563_590_310_4e-2,
    -3.456_859_066_860_69e-2,
    1.628_357_235_648_259e-2,
];

/// √z for 0 <= z <= 1/4, and asin(√z) less that.
#[inline(always)]
fn half_angle(z: f64) -> (f64, f64) {
    let root = z.sqrt();
    let lost = (-root).mul_add(root, z) / (root + root);
    let lost = if root > 0.0 { lost } else { 0.0 };
    (root, (root * z).mul_add(series(z, &ASIN), lost))
}

/// The angle in [-π/2, π/2] that has this sine.
#[inline(always)]
pub(crate) fn asin_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let near = (a * square).mul_add(series(square, &ASIN), a);
    let (root, rest) = half_angle(0.5 - 0.5 * a);
    let double = root + root;
    let turn = FRAC_PI_2 - double;
    let lost = (FRAC_PI_2 - turn) - double;
    let far = turn + (lost - (rest + rest - 2.0 * LACKS));
    (if a <= 0.5 { near } else { far }).copysign(x)
}

/// The angle in [0, π] that has this cosine.
#[inline(always)]
pub(crate) fn acos_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = x * x;
    let rest = (x * square).mul_add(series(square, &ASIN), -2.0 * LACKS);
    let turn = FRAC_PI_2 - x;
    let near = turn + ((FRAC_PI_2 - turn) - x - rest);
    let (root, rest) = half_angle(0.5 - 0.5 * a);
    let acute = 2.0 * (root + rest);
    let double = root + root;
    let turn = PI - double;
    let obtuse = turn + ((PI - turn) - double - (rest + rest - 4.0 * LACKS));
    let far = if x < 0.0 { obtuse } else { acute };
    if a <= 0.5 { near } else { far }
}

/// The angle in [-π/2, π/2] that has this tangent.
#[inline(always)]
pub(crate) fn atan_f64(x: f64) -> f64 {
    angle(x.abs(), 1.0, false).copysign(x)
}

/// The angle from the first axis to the point (x, y), in [-π, π].
#[inline(always)]
pub(crate) fn atan2_f64(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    // Of two infinities, and of two zeros, one stands for a number.
    let both = a == b && (a == f64::INFINITY || a == 0.0);
    let at_zero = if a == 0.0 { 0.0 } else { 1.0 };
    let (a, b) = (if both { at_zero } else { a }, if both { 1.0 } else { b });
    // The sum of the two is in range.
    let scale = if a > 1e300 || b > 1e300 { 0.25 } else { 1.0 };
    angle(a * scale, b * scale, x.is_sign_negative()).copysign(y)
}

/// The angle of the point (b, a), both at least 0, or of (-b, a).
#[inline(always)]
fn angle(a: f64, b: f64, left: bool) -> f64 {
    let (few, some) = (a <= EIGHTH * b, a <= THREE_EIGHTHS * b);
    let above = if some { a - b } else { -b };
    let below = if some { a + b } else { a };
    let above = if few { a } else { above };
    let below = if few { b } else { below };
    let turns = if some { 1.0 } else { 2.0 };
    let turns = if few { 0.0 } else { turns };
    let u = above / below;
    let (u, turns) = (
        if left { -u } else { u },
        if left { 4.0 - turns } else { turns },
    );
    let z = u * u;
    let rest = (u * z).mul_add(series(z, &ATAN), turns * LACKS);
    turns.mul_add(FRAC_PI_4, u + rest)
}
