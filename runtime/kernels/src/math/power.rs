//! Powers with any exponent, within two units in the last place (ulp).
//!
//! |x|^y = 2^(y log₂|x|). A logarithm that is `n` units wrong makes the power as many times worse as the exponent of 2 is large: single precision
//! takes it in double precision, and double precision in two numbers whose sum it is. Positive bases with moderate powers have a short way,
//! which says where it is right. Must not know strips.
//!
//! ```text
//! pow(2, 0.5) = 1.414…   pow(-2, 3) = -8   pow(-2, 0.5) = NaN   pow(0, -1) = inf   pow(NaN, 0) = 1
//! ```

use super::double::{self, ROUND};
use super::single::{self, SHIFT, wide_series};
use std::f64::consts::LN_2;

/// log₂(1 + f) / f, for 1 / √2 <= 1 + f <= √2, to 2^-33.
const LOG_2: [f64; 12] = [
    1.442_695_040_939_406_4,
    -0.721_347_525_218_713_1,
    0.480_898_320_706_15,
    -0.360_672_799_670_619_77,
    0.288_540_644_500_205_17,
    -0.240_504_212_582_604_43,
    0.206_096_268_214_154_42,
    -0.179_046_321_866_011_1,
    0.159_000_758_346_580_26,
    -0.156_985_681_072_354_97,
    0.154_863_659_308_437_32,
    -0.086_346_577_081_678_66,
];

/// The first coefficients of log₂((1 + s) / (1 - s)) / s in s², for the same range: 2 / ln 2 and 2 / (3 ln 2).
const FIRST: [f64; 2] = [2.885_390_081_777_926_8, 0.961_796_693_925_975_6];

/// The parts that these two lack, and the other coefficients; with them the logarithm is good to 2^-66.
const OTHERS: [f64; 10] = [
    4.071_054_748_186_206_6e-17,
    5.057_761_664_812_59e-17,
    0.577_078_016_355_585_3,
    0.412_198_583_111_144,
    0.320_598_897_967_088_96,
    0.262_308_191_481_563_63,
    0.221_952_787_282_436_78,
    0.192_380_630_972_583,
    0.168_883_685_920_824_17,
    0.169_145_302_834_403_94,
];

/// (2^r - 1) / r on |r| <= 1/2, so that 2^r is good to 2^-28.
const EXP_2: [f32; 6] = [
    std::f32::consts::LN_2,
    0.240_226_48,
    5.550_332_4e-2,
    9.618_437e-3,
    1.339_887_4e-3,
    1.535_336_2e-4,
];

/// ((2^r - 1) / r - ln 2) / r on |r| <= 1/2, so that 2^r is good to 2^-56.
const WIDE_EXP_2: [f64; 10] = [
    0.240_226_506_959_100_75,
    5.550_410_866_482_160_4e-2,
    9.618_129_107_618_648e-3,
    1.333_355_814_641_062_8e-3,
    1.540_353_042_481_830_6e-4,
    1.525_273_383_892_084_6e-5,
    1.321_545_160_245_684_3e-6,
    1.017_805_760_013_106_9e-7,
    7.070_984_823_487_246e-9,
    4.455_822_147_690_218e-10,
];

/// sqrt(1/2), as bits.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// 2^52: a whole number in its low bits is added to it.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// 2^54, which makes a normal number of any other.
const ENLARGED: f64 = 18_014_398_509_481_984.0;

/// k and m with x = 2^k m and 1 / √2 <= m < √2, of a normal number.
#[inline(always)]
fn parts(x: f64) -> (f64, f64) {
    let bits = x.to_bits().wrapping_sub(ROOT_HALF);
    let shifted = bits.wrapping_add(1023 << 52) >> 52;
    let k = f64::from_bits(shifted | WHOLE.to_bits()) - (WHOLE + 1023.0);
    (
        k,
        f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + ROOT_HALF),
    )
}

/// log₂(x) of a positive number that single precision can be, to 2^-33.
#[inline(always)]
fn log_2(x: f64) -> f64 {
    let (k, m) = parts(x);
    let f = m - 1.0;
    f.mul_add(wide_series(f, &LOG_2), k)
}

/// log₂(x / 2^by) of a normal number x in two parts: a number, and what is lost in it.
#[inline(always)]
fn wide_log_2(x: f64, by: f64) -> (f64, f64) {
    let (k, m) = parts(x);
    let k = k - by;
    // s + s_lost = (m - 1) / (m + 1); the difference is exact, the sum may lack a bit.
    let (f, d) = (m - 1.0, m + 1.0);
    let lost = m - (d - 1.0);
    let reciprocal = 1.0 / d;
    let s = f * reciprocal;
    let s_lost = s.mul_add(-lost, s.mul_add(-d, f)) * reciprocal;
    // v + v_lost = log₂((1 + s) / (1 - s)) / s; the difference of v is exact.
    let z = s * s;
    let v = z.mul_add(FIRST[1], FIRST[0]);
    let v_lost = z.mul_add(FIRST[1], FIRST[0] - v);
    let z_lost = s.mul_add(s, -z);
    let v_lost = v_lost + z_lost.mul_add(FIRST[1], wide_series(z, &OTHERS));
    // The slope at s is 2 / ln 2 (1 + z + z² + …).
    let slope = z.mul_add(FIRST[0], FIRST[0]);
    let log = s * v;
    let log_lost = s.mul_add(v, -log) + s.mul_add(v_lost, s_lost * slope);
    // k is 0, or larger than what is added to it.
    let sum = k + log;
    (sum, (k - sum) + log + log_lost)
}

/// n and 2^r with exponent + lost = n + r.
#[inline(always)]
fn exp_2(exponent: f64, lost: f64) -> (f64, f64) {
    let n = (exponent + lost + ROUND) - ROUND;
    let r = (exponent - n) + lost;
    let quotient = r.mul_add(wide_series(r, &WIDE_EXP_2), LN_2);
    (n, r.mul_add(quotient, 1.0))
}

/// x^y, the bits of [`pow_f64`], where x is a positive normal number and the power no extreme one: where the second is true.
#[inline(always)]
pub(crate) fn near_pow_f64(x: f64, y: f64) -> (f64, bool) {
    let (log, log_lost) = wide_log_2(x, 0.0);
    let exponent = y * log;
    let lost = y.mul_add(log_lost, y.mul_add(log, -exponent));
    let (n, power) = exp_2(exponent, lost);
    // The product is a normal number.
    let bits = power.to_bits().wrapping_add((n + ROUND).to_bits() << 52);
    let near = (x >= f64::MIN_POSITIVE) & (exponent.abs() < 1000.0) & (x < f64::INFINITY);
    (f64::from_bits(bits), near)
}

/// The size of x^y in double precision.
#[inline(always)]
fn size_f64(size: f64, y: f64) -> f64 {
    let small = size < f64::MIN_POSITIVE;
    let (x, by) = if small {
        (size * ENLARGED, 54.0)
    } else {
        (size, 0.0)
    };
    let (log, log_lost) = wide_log_2(x, by);
    let log = if size < f64::INFINITY { log } else { size };
    let log = if size == 0.0 { f64::NEG_INFINITY } else { log };
    let exponent = y * log;
    let lost = y.mul_add(log_lost, y.mul_add(log, -exponent));
    let lost = if exponent.abs() < 2000.0 { lost } else { 0.0 };
    // A product that is too small for any number takes a processor many times as long as others: its 0 is chosen.
    let nothing = exponent < -1076.0;
    let exponent = if nothing { 0.0 } else { exponent };
    let exponent = if exponent > 1026.0 { 1026.0 } else { exponent };
    let (n, power) = exp_2(exponent, lost);
    let power = double::far_scaled(power, n);
    if nothing { 0.0 } else { power }
}

/// The size of x^y in single precision.
#[inline(always)]
fn size_f32(size: f32, y: f32) -> f32 {
    let size = f64::from(size);
    let log = log_2(size);
    let log = if size < f64::INFINITY { log } else { size };
    let log = if size == 0.0 { f64::NEG_INFINITY } else { log };
    let exponent = f64::from(y) * log;
    let exponent = if exponent > 200.0 { 200.0 } else { exponent };
    let exponent = if exponent < -200.0 { -200.0 } else { exponent };
    let (n, power) = short_exp_2(exponent);
    single::far_scaled(power, n as f32 + SHIFT)
}

/// n and 2^r with exponent = n + r.
#[inline(always)]
fn short_exp_2(exponent: f64) -> (f64, f32) {
    let n = (exponent + ROUND) - ROUND;
    let r = (exponent - n) as f32;
    (n, r.mul_add(single::series(r, &EXP_2), 1.0))
}

/// x^y, the bits of [`pow_f32`], where x is a positive finite number and the power no extreme one: where the second is true.
#[inline(always)]
pub(crate) fn near_pow_f32(x: f32, y: f32) -> (f32, bool) {
    let exponent = f64::from(y) * log_2(f64::from(x));
    let (n, power) = short_exp_2(exponent);
    // The product is a normal number.
    let bits = power
        .to_bits()
        .wrapping_add((n as f32 + SHIFT).to_bits() << 23);
    let near = (exponent.abs() < 120.0) & (x > 0.0) & (x < f32::INFINITY);
    (f32::from_bits(bits), near)
}

/// x^y, given that of its size: with the sign, and what has another value or none.
macro_rules! power {
    ($name:ident, $size:ident, $t:ident) => {
        /// x^y.
        #[inline(always)]
        pub(crate) fn $name(x: $t, y: $t) -> $t {
            let power = $size(x.abs(), y);
            // Whole numbers, infinities among them; those too large for a half are even.
            let (whole, half) = (y.trunc() == y, 0.5 * y);
            let odd = whole & (half.trunc() != half);
            let power = if x.is_sign_negative() & odd {
                -power
            } else {
                power
            };
            let none = (x < 0.0) & (x != $t::NEG_INFINITY) & !whole;
            let power = if none { $t::NAN } else { power };
            let one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (y.abs() == $t::INFINITY));
            if one { 1.0 } else { power }
        }
    };
}

power!(pow_f32, size_f32, f32);
power!(pow_f64, size_f64, f64);
