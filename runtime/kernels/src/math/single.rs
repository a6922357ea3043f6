//! Functions of single precision, within two units in the last place (ulp) over the whole range.
//!
//! All but `exp` and `log` are computed in double precision with series that are good to about 10^-9, so that one
//! rounding is nearly the whole error. Must not know strips.
//!
//! ```text
//! exp(0) = 1   exp(-inf) = 0   tanh(20) = 1   log1p(-1) = -inf
//! ```

use super::double::{ROUND, log_f64, power_of_two};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LN_2, LOG2_E};

/// (e^r - 1 - r) / r² on |r| <= ln 2 / 2, to 1.3e-7.
const EXP: [f64; 5] = [
    5.0e-1,
    1.666_657_698_969_877_5e-1,
    4.166_655_461_720_457_4e-2,
    8.363_179_052_722_578e-3,
    1.392_618_358_771_349_4e-3,
];

/// erf(x) / x in x², for |x| <= 1/2, to 1.3e-9.
const ERF: [f64; 5] = [
    1.128_379_165_601_791_4,
    -3.761_260_900_746_980_5e-1,
    1.128_283_142_846_586_2e-1,
    -2.675_773_273_501_551_7e-2,
    4.719_082_567_218_814e-3,
];

/// (a + 5/2) e^(a²) erfc(a) in (a - 5/2) / (a + 5/2), for 0 <= a <= 10.3, to 3.2e-9.
const TAIL: [f64; 11] = [
    1.054_031_819_194_062,
    -8.046_518_164_362_277e-1,
    4.539_142_284_944_553_4e-1,
    -1.712_522_074_718_709_8e-1,
    2.835_938_639_575_251e-2,
    8.402_080_953_128_934e-3,
    -4.802_227_152_001_803e-3,
    -4.664_502_063_550_751e-4,
    6.470_688_957_189_296e-4,
    7.886_258_266_530_375e-5,
    -3.980_888_954_569_518e-5,
];

/// c0 + c1 x + c2 x² + …
#[inline(always)]
fn series<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for c in coefficients[..N - 1].iter().rev() {
        sum = sum.mul_add(x, *c);
    }
    sum
}

/// n and e^r - 1, with x = n ln 2 + r; n still holds [`ROUND`]. |x| must be below 2^30.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let shifted = x.mul_add(LOG2_E, ROUND);
    let r = (shifted - ROUND).mul_add(-LN_2, x);
    (shifted, (r * r).mul_add(series(r, &EXP), r))
}

/// e^x for |x| <= 700, to 10^-8.
#[inline(always)]
fn exp_short(x: f64) -> f64 {
    let (n, s) = split(x);
    (1.0 + s) * power_of_two(n)
}

/// x, but no more than `most` and no less than `-most`; NaN stays.
#[inline(always)]
fn within(x: f64, most: f64) -> f64 {
    let x = if x > most { most } else { x };
    if x < -most { -most } else { x }
}

/// e^x.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    const SHIFT: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to an integer
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-0.693_359_4, clamped);
    let r = n.mul_add(2.121_944_4e-4, r);
    let p = 1.392_618_4e-3_f32;
    let p = p.mul_add(r, 8.363_179e-3);
    let p = p.mul_add(r, 4.166_655_5e-2);
    let p = p.mul_add(r, 1.666_657_7e-1);
    let p = p.mul_add(r, 0.5);
    let p = (r * r).mul_add(p, r) + 1.0;
    // Two factors, since 2^n itself may be out of range.
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = n >> 1;
    let scale = |k: i32| f32::from_bits((k.wrapping_add(127) << 23) as u32);
    p * scale(half) * scale(n.wrapping_sub(half))
}

/// e^x - 1.
#[inline(always)]
pub(crate) fn expm1_f32(x: f32) -> f32 {
    let clamped = within(f64::from(x), 90.0);
    let (n, s) = split(clamped);
    let c = power_of_two(n);
    let y = c.mul_add(s, c - 1.0) as f32;
    if x == 0.0 { x } else { y }
}

/// The natural logarithm (the method of FreeBSD's `logf`).
#[inline(always)]
pub(crate) fn log_f32(x: f32) -> f32 {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    let small = x < f32::MIN_POSITIVE;
    let scaled = if small { x * 33_554_432.0 } else { x };
    let bits = scaled.to_bits().wrapping_add(0x3f80_0000 - ROOT_HALF);
    let k = (bits >> 23) as i32 - if small { 127 + 25 } else { 127 };
    let k = k as f32;
    let f = f32::from_bits((bits & 0x007f_ffff) + ROOT_HALF) - 1.0;
    let s = f / (2.0 + f);
    let (z, half_square) = (s * s, 0.5 * f * f);
    let w = z * z;
    let even = z * w.mul_add(0.284_987_87, 0.666_666_6);
    let odd = w * w.mul_add(0.242_790_79, 0.400_009_72);
    let y = s * (half_square + (even + odd)) + k * 9.058_001e-6 - half_square + f;
    let y = y + k * 6.931_381e-1;
    let y = if x < f32::INFINITY { y } else { x };
    if x > 0.0 {
        y
    } else if x == 0.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    }
}

/// log(1 + x).
#[inline(always)]
pub(crate) fn log1p_f32(x: f32) -> f32 {
    let wide = f64::from(x);
    let u = 1.0 + wide;
    // What the sum lost matters for tiny x only, where the derivative is 1.
    let lost = wide - (u - 1.0);
    let lost = if u < 2.0 && u > 0.0 { lost } else { 0.0 };
    let y = (log_f64(u) + lost) as f32;
    if x == 0.0 { x } else { y }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_f32(x: f32) -> f32 {
    let wide = within(f64::from(x), 20.0);
    let a = wide.abs();
    // Small arguments: the odd series, without the cancellation of the other form.
    let s = wide * wide;
    let small = (wide * s).mul_add(s.mul_add(2.0 / 15.0, -1.0 / 3.0), wide);
    let e = exp_short(-2.0 * a);
    let large = ((1.0 - e) / (1.0 + e)).copysign(wide);
    let y = (if a < 0.02 { small } else { large }) as f32;
    if x == 0.0 { x } else { y }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid_f32(x: f32) -> f32 {
    (1.0 / (1.0 + exp_short(-within(f64::from(x), 120.0)))) as f32
}

/// erfc(a) e^(a²) for 0 <= a <= 10.7.
#[inline(always)]
fn tail(a: f64) -> f64 {
    let u = 1.0 / (a + 2.5);
    u * series(u.mul_add(-5.0, 1.0), &TAIL)
}

/// The error function.
#[inline(always)]
pub(crate) fn erf_f32(x: f32) -> f32 {
    let wide = within(f64::from(x), 6.0);
    let (a, s) = (wide.abs(), wide * wide);
    let small = wide * series(s, &ERF);
    let large = (1.0 - exp_short(-s) * tail(a)).copysign(wide);
    (if a < 0.5 { small } else { large }) as f32
}

/// The Gaussian error linear unit; the lower tail goes through erfc, which does not cancel.
#[inline(always)]
pub(crate) fn gelu_f32(x: f32) -> f32 {
    let wide = f64::from(x);
    let c = within(wide, 15.0);
    let rest = 0.5 * c * exp_short(-0.5 * c * c) * tail(c.abs() * FRAC_1_SQRT_2);
    (if c < 0.0 { rest } else { wide - rest }) as f32
}

/// Below this magnitude [`sin_f32`] and [`cos_f32`] are right.
pub(crate) const LARGEST_ANGLE_F32: f32 = 1_073_741_824.0;

/// sin(x + quadrants π/2) for |x| < [`LARGEST_ANGLE_F32`].
#[inline(always)]
fn circular(x: f32, quadrants: u64) -> f32 {
    let wide = f64::from(x);
    let shifted = wide.mul_add(FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, wide);
    let r = n.mul_add(-6.123_233_995_736_766e-17, r);
    let z = r * r;
    const SIN: [f64; 4] = [
        -1.666_666_664_162_654e-1,
        8.333_329_385_889_463e-3,
        -1.983_932_963_974_7e-4,
        2.718_311_493_989_822e-6,
    ];
    const COS: [f64; 4] = [
        -4.999_999_972_510_31e-1,
        4.166_662_332_373_906e-2,
        -1.388_676_377_460_993e-3,
        2.439_044_879_627_741e-5,
    ];
    let sin = (r * z).mul_add(series(z, &SIN), r);
    let cos = z.mul_add(series(z, &COS), 1.0);
    let quadrant = shifted.to_bits().wrapping_add(quadrants);
    let y = if quadrant & 1 == 0 { sin } else { cos };
    f64::from_bits(y.to_bits() ^ (quadrant & 2) << 62) as f32
}

/// The sine of |x| < [`LARGEST_ANGLE_F32`].
#[inline(always)]
pub(crate) fn sin_f32(x: f32) -> f32 {
    let y = circular(x, 0);
    if x == 0.0 { x } else { y }
}

/// The cosine of |x| < [`LARGEST_ANGLE_F32`].
#[inline(always)]
pub(crate) fn cos_f32(x: f32) -> f32 {
    circular(x, 1)
}

/// x^y.
#[inline(always)]
pub(crate) fn pow_f32(x: f32, y: f32) -> f32 {
    let exponent = f64::from(y) * log_f64(f64::from(x.abs()));
    let power = exp_short(within(exponent, 150.0)) as f32;
    // Whole numbers, infinities among them; from 2^24 on they are even.
    let (whole, half) = (y.trunc() == y, 0.5 * y);
    let odd = whole & (half.trunc() != half);
    let power = if x.is_sign_negative() & odd {
        -power
    } else {
        power
    };
    let none = (x < 0.0) & (x != f32::NEG_INFINITY) & !whole;
    let power = if none { f32::NAN } else { power };
    let one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (y.abs() == f32::INFINITY));
    if one { 1.0 } else { power }
}

/// x^n for -8 <= n <= 8, rounded once.
#[inline(always)]
pub(crate) fn whole_power_f32(x: f32, n: i32) -> f32 {
    let power = power_by_squares(f64::from(x), n.unsigned_abs());
    (if n < 0 { 1.0 / power } else { power }) as f32
}

/// x^n for n <= 8, with n - 1 roundings at most.
#[inline(always)]
pub(crate) fn power_by_squares(x: f64, n: u32) -> f64 {
    let square = x * x;
    let fourth = square * square;
    let low = match n & 3 {
        0 => 1.0,
        1 => x,
        2 => square,
        _ => x * square,
    };
    match n >> 2 {
        0 => low,
        1 => fourth * low,
        _ => fourth * fourth,
    }
}
