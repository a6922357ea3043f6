//! Functions of double precision, within four units in the last place (ulp) over the whole range.
//!
//! Straight-line code with fused multiplications and additions, so that loops over strips become vector code. Must
//! not know strips.
//!
//! ```text
//! exp(0) = 1   exp(-746) = 0   expm1(1e-300) = 1e-300   log(0) = -inf
//! ```

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LOG2_E};

/// 1.5 · 2^52: adding it rounds to an integer, which is then in the low bits.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;

/// ln 2 in two parts; the first has 32 bits, so that its small multiples are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// (e^r - 1 - r) / r² on |r| <= ln 2 / 2, to 2.2e-16.
pub(super) const EXP: [f64; 10] = [
    5.000_000_000_000_001e-1,
    1.666_666_666_666_666_9e-1,
    4.166_666_666_662_413e-2,
    8.333_333_333_330_062e-3,
    1.388_888_891_721_371_7e-3,
    1.984_126_986_305_361_8e-4,
    2.480_152_129_595_437_6e-5,
    2.755_726_845_999_706_4e-6,
    2.762_008_844_540_974_6e-7,
    2.510_038_549_551_032e-8,
];

/// erf(x) / x in x², for |x| <= 1/2, to 4e-18.
const ERF: [f64; 9] = [
    std::f64::consts::FRAC_2_SQRT_PI,
    -3.761_263_890_318_347_6e-1,
    1.128_379_167_092_535_3e-1,
    -2.686_617_063_288_792_8e-2,
    5.223_977_373_021_47e-3,
    -8.548_297_753_674_966e-4,
    1.205_333_512_435_374_1e-4,
    -1.484_584_925_970_786_9e-5,
    1.472_586_548_055_674_4e-6,
];

/// (a + 15/4) e^(a²) erfc(a) in (a - 15/4) / (a + 15/4), for 0 <= a <= 27.5, to 5e-17.
const TAIL_FIRST: f64 = 1.091_922_909_562_789_1;

/// The coefficients of the powers of that from the first on, behind [`TAIL_FIRST`].
const TAIL_REST: [f64; 21] = [
    -9.587_415_766_529_095e-1,
    7.363_189_252_217_397e-1,
    -4.904_702_912_076_908e-1,
    2.790_620_490_344_093_4e-1,
    -1.319_554_011_780_495_8e-1,
    4.911_877_860_252_996e-2,
    -1.253_588_005_055_993_4e-2,
    9.863_382_120_698_719e-4,
    7.948_232_042_145_557e-4,
    -3.486_476_494_327_3e-4,
    1.059_330_197_295_863_7e-5,
    3.747_463_652_012_483e-5,
    -8.901_150_560_990_424e-6,
    -3.296_125_184_418_512e-6,
    1.648_981_241_662_135_9e-6,
    2.889_960_672_432_565e-7,
    -2.527_648_572_892_904_3e-7,
    -3.360_446_409_297_051e-8,
    3.056_531_792_538_191e-8,
    4.943_859_524_656_419e-9,
    -1.217_215_485_729_758_3e-9,
];

/// c0 + c1 x + c2 x² + …
#[inline(always)]
pub(super) fn series<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for c in coefficients[..N - 1].iter().rev() {
        sum = sum.mul_add(x, *c);
    }
    sum
}

/// 2^n for -1022 <= n <= 1023, of `n + ROUND`.
#[inline(always)]
fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// p 2^n of a whole n, |n| <= 2000, in two factors, since 2^n itself may be out of range.
#[inline(always)]
pub(super) fn far_scaled(p: f64, n: f64) -> f64 {
    let half = n.mul_add(0.5, ROUND);
    let rest = n - (half - ROUND) + ROUND;
    p * power_of_two(half) * power_of_two(rest)
}

/// n and e^r - 1, with x = n ln 2 + r.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let n = x.mul_add(LOG2_E, ROUND) - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    (n, (r * r).mul_add(series(r, &EXP), r))
}

/// e^x.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    let clamped = if x > 710.0 { 710.0 } else { x };
    let clamped = if clamped < -746.0 { -746.0 } else { clamped };
    let (n, s) = split(clamped);
    far_scaled(1.0 + s, n)
}

/// e^x - 1.
#[inline(always)]
pub(crate) fn expm1_f64(x: f64) -> f64 {
    let clamped = if x > 710.0 { 710.0 } else { x };
    let clamped = if clamped < -40.0 { -40.0 } else { clamped };
    let (n, s) = split(clamped);
    // Half of it, since 2^1024 is out of range.
    let c = power_of_two(n - 1.0 + ROUND);
    let y = 2.0 * c.mul_add(s, c - 0.5);
    // For n = 0 that is s, but for its rounding and the sign of zero.
    let y = if n == 0.0 { s } else { y };
    if x == 0.0 { x } else { y }
}

/// The logarithm of a positive number: `k` ln 2 + `high` + `low`.
pub(super) struct Logarithm {
    pub(super) k: f64,
    pub(super) high: f64,
    pub(super) low: f64,
}

/// The parts of a logarithm (the method of FreeBSD's `log`).
#[inline(always)]
pub(super) fn logarithm(x: f64) -> Logarithm {
    let (k, f) = mantissa(x);
    let half_square = 0.5 * f * f;
    let high = f - half_square;
    let low = (f - high) - half_square;
    Logarithm {
        k,
        high,
        low: low + behind(f, half_square),
    }
}

/// k and f, with x = 2^k (1 + f), 1 + f from √1/2 to √2.
#[inline(always)]
fn mantissa(x: f64) -> (f64, f64) {
    const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    let small = x < f64::MIN_POSITIVE;
    let scaled = if small {
        x * 18_014_398_509_481_984.0
    } else {
        x
    };
    let bits = scaled
        .to_bits()
        .wrapping_add(0x3ff0_0000_0000_0000 - ROOT_HALF);
    // The exponent as a number: put below the leading bit of 2^52.
    let k = f64::from_bits(0x4330_0000_0000_0000 | bits >> 52) - 4_503_599_627_370_496.0;
    let k = k - if small { 1023.0 + 54.0 } else { 1023.0 };
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF)) - 1.0;
    (k, f)
}

/// log(1 + f) - f + f²/2.
#[inline(always)]
fn behind(f: f64, half_square: f64) -> f64 {
    const ODD: [f64; 3] = [
        3.999_999_999_940_942e-1,
        2.222_219_843_214_978_4e-1,
        1.531_383_769_920_937_3e-1,
    ];
    const EVEN: [f64; 4] = [
        6.666_666_666_666_735e-1,
        2.857_142_874_366_239e-1,
        1.818_357_216_161_805e-1,
        1.479_819_860_511_658_6e-1,
    ];
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let r = w * series(w, &ODD) + z * series(w, &EVEN);
    s * (half_square + r)
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log_f64(x: f64) -> f64 {
    let (k, f) = mantissa(x);
    let half_square = 0.5 * f * f;
    let y = behind(f, half_square) + k * LN_2_LOW - half_square + f + k * LN_2_HIGH;
    logarithm_of(x, y)
}

/// The logarithm of x, which is y where x is positive and finite.
#[inline(always)]
pub(super) fn logarithm_of(x: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    if x > 0.0 {
        y
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

/// log(1 + x).
#[inline(always)]
pub(crate) fn log1p_f64(x: f64) -> f64 {
    let u = 1.0 + x;
    let lost = (x - (u - 1.0)) / u;
    let lost = if u < f64::INFINITY && u > 0.0 {
        lost
    } else {
        0.0
    };
    let y = log_f64(u) + lost;
    if x == 0.0 { x } else { y }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_f64(x: f64) -> f64 {
    let e = expm1_f64(-2.0 * x.abs());
    (-e / (2.0 + e)).copysign(x)
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid_f64(x: f64) -> f64 {
    let e = exp_f64(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// erfc(a) e^(a²) for 0 <= a <= 27.5: a number, and what is lost in it.
#[inline(always)]
fn tail(a: f64) -> (f64, f64) {
    // q + q e = 1 / (a + 15/4)
    let sum = a + 3.75;
    let lost = a - (sum - 3.75);
    let q = 1.0 / sum;
    let e = (-q).mul_add(lost, (-q).mul_add(sum, 1.0));
    // p + p_low = TAIL
    let w = (q * e).mul_add(-7.5, q.mul_add(-7.5, 1.0));
    let rest = series(w, &TAIL_REST);
    let p = w.mul_add(rest, TAIL_FIRST);
    let p_low = w.mul_add(rest, TAIL_FIRST - p);
    let y = q * p;
    (y, q.mul_add(p, -y) + q.mul_add(p_low, y * e))
}

/// e^-(a b), and the part of itself that it lacks: the rounding error of the product.
#[inline(always)]
fn exp_of_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let error = a.mul_add(b, -product);
    (exp_f64(-product), -error)
}

/// erf(x) for |x| < 1/2.
#[inline(always)]
fn erf_near_zero(x: f64) -> f64 {
    x * series(x * x, &ERF)
}

/// The error function.
#[inline(always)]
pub(crate) fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 6.0 { 6.0 } else { a };
    let small = erf_near_zero(x);
    let (e, lacks) = exp_of_product(a, a);
    let (t, t_low) = tail(a);
    let complement = e.mul_add(t, e * t.mul_add(lacks, t_low));
    let large = (1.0 - complement).copysign(x);
    if a < 0.5 { small } else { large }
}

/// The Gaussian error linear unit; the lower tail goes through erfc, which does not cancel.
#[inline(always)]
pub(crate) fn gelu_f64(x: f64) -> f64 {
    let c = if x > 38.8 { 38.8 } else { x };
    let c = if c < -38.8 { -38.8 } else { c };
    let half = 0.5 * c;
    let z = c * FRAC_1_SQRT_2;
    let small = half.mul_add(erf_near_zero(z), half);
    let (e, lacks) = exp_of_product(half, c);
    let (t, t_low) = tail(z.abs());
    let e = e * half;
    let rest = e.mul_add(t, e * t.mul_add(lacks, t_low));
    let large = if c < 0.0 { rest } else { x - rest };
    if z.abs() < 0.5 { small } else { large }
}

/// Below this magnitude [`sin_f64`] and [`cos_f64`] are right.
pub(crate) const LARGEST_ANGLE_F64: f64 = 1_048_576.0;

/// The sine and the cosine of what x is above a multiple of π/2, and the low bits of that multiple's number, for |x| < [`LARGEST_ANGLE_F64`].
#[inline(always)]
fn circular(x: f64) -> (f64, f64, u64) {
    let shifted = x.mul_add(FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    // π/2 in three parts; the first difference is exact.
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-6.123_233_995_736_766e-17, r);
    let r = n.mul_add(1.497_384_904_859_174e-33, r);
    let z = r * r;
    const SIN: [f64; 6] = [
        -1.666_666_666_666_663_2e-1,
        8.333_333_333_322_49e-3,
        -1.984_126_982_985_795e-4,
        2.755_731_370_707_006_8e-6,
        -2.505_076_025_340_686_3e-8,
        1.589_690_995_211_55e-10,
    ];
    const COS: [f64; 6] = [
        4.166_666_666_666_66e-2,
        -1.388_888_888_887_411e-3,
        2.480_158_728_947_673e-5,
        -2.755_731_435_139_066_3e-7,
        2.087_572_321_298_175e-9,
        -1.135_964_755_778_819_5e-11,
    ];
    let sin = (r * z).mul_add(series(z, &SIN), r);
    let half = 0.5 * z;
    let one = 1.0 - half;
    let cos = one + (z * z).mul_add(series(z, &COS), (1.0 - one) - half);
    (sin, cos, shifted.to_bits())
}

/// sin(x + quadrants π/2) for |x| < [`LARGEST_ANGLE_F64`].
#[inline(always)]
fn sin_ahead(x: f64, quadrants: u64) -> f64 {
    let (sin, cos, quadrant) = circular(x);
    let quadrant = quadrant.wrapping_add(quadrants);
    let y = if quadrant & 1 == 0 { sin } else { cos };
    f64::from_bits(y.to_bits() ^ (quadrant & 2) << 62)
}

/// The sine of |x| < [`LARGEST_ANGLE_F64`].
#[inline(always)]
pub(crate) fn sin_f64(x: f64) -> f64 {
    let y = sin_ahead(x, 0);
    if x == 0.0 { x } else { y }
}

/// The cosine of |x| < [`LARGEST_ANGLE_F64`].
#[inline(always)]
pub(crate) fn cos_f64(x: f64) -> f64 {
    sin_ahead(x, 1)
}

/// The tangent of |x| < [`LARGEST_ANGLE_F64`].
#[inline(always)]
pub(crate) fn tan_f64(x: f64) -> f64 {
    let (sin, cos, quadrant) = circular(x);
    let odd = quadrant & 1 == 1;
    let y = if odd { -cos } else { sin } / if odd { sin } else { cos };
    if x == 0.0 { x } else { y }
}
