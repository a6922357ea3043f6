//! Functions of single precision, within two units in the last place (ulp) over the whole range.
//!
//! Single precision throughout, but for large angles and powers: what would lose digits is kept in two numbers whose sum it is
//! (`x` and what `x` lost), until one rounding at the end is nearly the whole error. Must not know strips.
//!
//! ```text
//! exp(0) = 1   exp(-inf) = 0   tanh(20) = 1   log1p(-1) = -inf
//! ```

use std::f32::consts::LOG2_E;

/// 1.5 · 2^23: adding it rounds to an integer, which is then in the low bits.
pub(super) const SHIFT: f32 = 12_582_912.0;

/// The same for an integer that is 64 larger, so that a power of two that is too small can be had, [`TINY`] times it being meant.
const SHIFT_UP: f32 = SHIFT + 64.0;

/// 2^-64.
const TINY: f32 = 5.421_011e-20;

/// ln 2 in two parts; the first has nine bits, so that its multiples are exact.
const LN_2_PARTS: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// (e^r - 1 - r) / r² on |r| <= ln 2 / 2, so that e^r is good to 4e-9.
const EXP: [f32; 5] = [
    0.5,
    1.666_653_3e-1,
    4.166_723_8e-2,
    8.367_603e-3,
    1.386_402_2e-3,
];

/// (tanh(x) / x - 1) / x² in x², for |x| <= 0.6, so that tanh is good to 2.7e-9.
const TANH: [f32; 5] = [
    -0.333_333,
    0.133_319_36,
    -5.378_467e-2,
    2.079_825_8e-2,
    -5.897_31e-3,
];

/// erf(x) / x - 1 in x², for |x| <= 0.92, so that erf is good to 1.6e-8.
const ERF: [f32; 6] = [
    0.128_379_15,
    -0.376_124_98,
    0.112_818_435,
    -2.676_734_5e-2,
    4.994_026e-3,
    -5.994_410_6e-4,
];

/// log(erfc(a)) in a - 2.3, for 0.9 <= a <= 3.95, so that erf is good to 1.8e-9.
const LOG_ERFC: [f32; 7] = [
    -6.773_945_3,
    -4.976_510_5,
    -0.936_846_2,
    -1.273_860_5e-2,
    2.794_463_2e-3,
    -3.288_340_8e-4,
    1.983_543_5e-4,
];

/// Where [`TAIL`] has its middle.
const TAIL_MIDDLE: f32 = 0.1817;

/// 2^-64 (a + 5/2) e^(a²/2) Φ(-a) in 1 / (a + 5/2) - [`TAIL_MIDDLE`], for 0 <= a <= 14.5, to 1.8e-8.
const TAIL: [f32; 10] = [
    0.668_084_8 * TINY,
    2.046_785_4 * TINY,
    3.342_239 * TINY,
    -0.393_011_96 * TINY,
    -10.490_944 * TINY,
    0.333_259_5 * TINY,
    45.053_864 * TINY,
    -31.716_887 * TINY,
    -175.273_1 * TINY,
    313.956_45 * TINY,
];

/// c0 + c1 x + c2 x² + …
#[inline(always)]
pub(super) fn series(x: f32, coefficients: &[f32]) -> f32 {
    let (last, others) = coefficients.split_last().expect("a series has a term");
    let mut sum = *last;
    for c in others.iter().rev() {
        sum = sum.mul_add(x, *c);
    }
    sum
}

/// The same in double precision.
#[inline(always)]
pub(super) fn wide_series<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for c in coefficients[..N - 1].iter().rev() {
        sum = sum.mul_add(x, *c);
    }
    sum
}

/// n, still with `shift` in it, and e^r - 1, with x + low = n ln 2 + r; `shift` is [`SHIFT`] or [`SHIFT_UP`], |x| at most 160, and low what x lost.
#[inline(always)]
fn split(x: f32, low: f32, shift: f32) -> (f32, f32) {
    let shifted = x.mul_add(LOG2_E, shift);
    let n = shifted - shift;
    let r = n.mul_add(-LN_2_PARTS[0], x) + n.mul_add(-LN_2_PARTS[1], low);
    (shifted, (r * r).mul_add(series(r, &EXP), r))
}

/// x 2^n of an n that still holds [`SHIFT`], or x 2^(n + 64) of one that holds [`SHIFT_UP`]; x and that are normal numbers.
#[inline(always)]
fn scaled(x: f32, shifted: f32) -> f32 {
    f32::from_bits((shifted.to_bits() << 23).wrapping_add(x.to_bits()))
}

/// p 2^n of an n that still holds [`SHIFT`], -300 <= n <= 200, in two factors, since 2^n itself may be out of range.
#[inline(always)]
pub(super) fn far_scaled(p: f32, shifted: f32) -> f32 {
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = n >> 1;
    let scale = |k: i32| f32::from_bits((k.wrapping_add(127) << 23) as u32);
    p * scale(half) * scale(n.wrapping_sub(half))
}

/// |x|, but no more than `most`; NaN stays.
#[inline(always)]
fn size(x: f32, most: f32) -> f32 {
    let a = x.abs();
    if a > most { most } else { a }
}

/// e^x.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    // A product that is too small for any number takes a processor ten times as long as others: its 0 is chosen, as for what a mask takes out.
    let nothing = x <= NOTHING;
    let clamped = if x > 89.0 { 89.0 } else { x };
    let (p, shifted) = exp_parts(if nothing { 0.0 } else { clamped });
    let power = far_scaled(p, shifted);
    if nothing { 0.0 } else { power }
}

/// Of no larger number is a power of e anything but 0.
const NOTHING: f32 = -104.0;

/// p and n with e^x = p 2^n, where n is small; n stands in the low bits of the second.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32) {
    let shifted = x.mul_add(LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-LN_2_PARTS[0], x);
    let r = n.mul_add(-LN_2_PARTS[1], r);
    let p = 1.392_618_4e-3_f32;
    let p = p.mul_add(r, 8.363_179e-3);
    let p = p.mul_add(r, 4.166_655_5e-2);
    let p = p.mul_add(r, 1.666_657_7e-1);
    let p = p.mul_add(r, 0.5);
    ((r * r).mul_add(p, r) + 1.0, shifted)
}

/// The bits of |x|, which are in the order of magnitudes; those of NaN are behind all others.
#[inline(always)]
pub(crate) fn magnitude_bits(x: f32) -> u32 {
    x.to_bits() & 0x7fff_ffff
}

/// The bits of the largest magnitude of x for [`exp_near_f32`].
pub(crate) const NEAR: u32 = 86.0_f32.to_bits();

/// e^x, the bits of [`exp_f32`], where x is near 0; elsewhere any number.
#[inline(always)]
pub(crate) fn exp_near_f32(x: f32) -> f32 {
    let (p, shifted) = exp_parts(x);
    // The product is a normal number.
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// e^x - 1.
#[inline(always)]
pub(crate) fn expm1_f32(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -18.0 { -18.0 } else { clamped };
    let shifted = clamped.mul_add(LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let (high, low) = (n.mul_add(-LN_2_PARTS[0], clamped), n * -LN_2_PARTS[1]);
    let r = high + low;
    let lost = (high - r) + low;
    let f = r + (r * r).mul_add(series(r, &EXP), lost);
    // Half of it, since 2^n itself may be out of range.
    let half = scaled(0.5, shifted);
    let y = 2.0 * half.mul_add(f, half - 0.5);
    // Half of the smallest numbers would lose a digit.
    if x.abs() < 1e-30 { x } else { y }
}

/// sqrt(1/2), as bits.
const ROOT_HALF: u32 = 0x3f35_04f3;

/// k ln 2 + log(1 + f), for sqrt(1/2) <= 1 + f < sqrt(2) (the method of FreeBSD's `logf`).
#[inline(always)]
fn log_parts(k: f32, f: f32) -> f32 {
    let s = f / (2.0 + f);
    let (z, half_square) = (s * s, 0.5 * f * f);
    let w = z * z;
    let even = z * w.mul_add(0.284_987_87, 0.666_666_6);
    let odd = w * w.mul_add(0.242_790_79, 0.400_009_72);
    let y = s * (half_square + (even + odd)) + k * 9.058_001e-6 - half_square + f;
    y + k * 6.931_381e-1
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log_f32(x: f32) -> f32 {
    let small = x < f32::MIN_POSITIVE;
    let enlarged = if small { x * 33_554_432.0 } else { x };
    let bits = enlarged.to_bits().wrapping_add(0x3f80_0000 - ROOT_HALF);
    let k = (bits >> 23) as i32 - if small { 127 + 25 } else { 127 };
    let f = f32::from_bits((bits & 0x007f_ffff) + ROOT_HALF) - 1.0;
    let y = log_parts(k as f32, f);
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
    // Only the power of two of 1 + x is used, so that what the sum lost does not matter.
    let bits = (1.0 + x).to_bits().wrapping_add(0x3f80_0000 - ROOT_HALF);
    let k = (bits >> 23) as i32 - 127;
    // 2^(2 - k), since 2^-k may be out of range.
    let back = f32::from_bits(0x8000_0000_u32.wrapping_sub(bits & 0xff80_0000));
    let f = (0.25 * x).mul_add(back, 0.25_f32.mul_add(back, -1.0));
    let y = log_parts(k as f32, f);
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x.abs() < 1e-30 { x } else { y };
    if x > -1.0 {
        y
    } else if x == -1.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_f32(x: f32) -> f32 {
    let a = size(x, 10.0);
    let (shifted, f) = split(2.0 * a, 0.0, SHIFT);
    let c = scaled(1.0, shifted);
    let large = 1.0 - 2.0 / c.mul_add(f, c + 1.0);
    // Small arguments: the odd series, without the cancellation of the other form.
    let s = a * a;
    let small = (a * s).mul_add(series(s, &TANH), a);
    (if a < 0.6 { small } else { large }).copysign(x)
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn sigmoid_f32(x: f32) -> f32 {
    let a = size(x, 104.0);
    let (shifted, f) = split(-a, 0.0, SHIFT_UP);
    let c = scaled(1.0, shifted);
    // e^-a = z (1 + f), and y = 1 / (1 + e^-a) with what the division lost.
    let z = c * TINY;
    let sum = z.mul_add(f, z + 1.0);
    let y = 1.0 / sum;
    let lost = (-y).mul_add(sum, 1.0);
    let below = y.mul_add(f + lost, y) * c * TINY;
    if x < 0.0 { below } else { y }
}

/// The error function.
#[inline(always)]
pub(crate) fn erf_f32(x: f32) -> f32 {
    let a = size(x, 3.95);
    let (shifted, f) = split(series(a - 2.3, &LOG_ERFC), 0.0, SHIFT);
    let c = scaled(1.0, shifted);
    let large = (-c).mul_add(f, 1.0 - c).copysign(x);
    let small = x.mul_add(series(a * a, &ERF), x);
    if a < 0.9 { small } else { large }
}

/// The Gaussian error linear unit, x Φ(x): |x| Φ(-|x|) is taken from x if that is positive, else from 0, so that nothing cancels in the lower tail.
#[inline(always)]
pub(crate) fn gelu_f32(x: f32) -> f32 {
    let a = size(x, 14.5);
    // q + q e = 1 / (a + 5/2)
    let sum = a + 2.5;
    let lost = a - (sum - 2.5);
    let q = 1.0 / sum;
    let e = (-q).mul_add(lost, (-q).mul_add(sum, 1.0));
    // p + p_low = TAIL
    let w = q.mul_add(e, q - TAIL_MIDDLE);
    let rest = series(w, &TAIL[1..]);
    let p = w.mul_add(rest, TAIL[0]);
    let p_low = w.mul_add(rest, TAIL[0] - p);
    // 2^n (1 + f) = e^(-a²/2), and m + m_low = TAIL (1 + f)
    let half = -0.5 * a;
    let square = a * half;
    let (shifted, f) = split(square, a.mul_add(half, -square), SHIFT_UP);
    let m = p.mul_add(f, p);
    let m_low = p.mul_add(f, (p - m) + p_low);
    // g + g_low = 2^(n + 64) a / (a + 5/2)
    let q = scaled(q, shifted);
    let g = a * q;
    let g_low = g.mul_add(e, a.mul_add(q, -g));
    let taken = g.mul_add(m, g.mul_add(m_low, g_low * m));
    (if x > 0.0 { x } else { 0.0 }) - taken
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

#[cfg(test)]
mod tests {
    use super::{NEAR, NOTHING, exp_f32, exp_near_f32};

    #[test]
    fn the_short_way_to_an_exponential_has_its_bits() {
        for bits in (0..=NEAR).step_by(17).chain([NEAR]) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                let (short, long) = (exp_near_f32(x), exp_f32(x));
                assert_eq!(short.to_bits(), long.to_bits(), "{x:e}");
            }
        }
        // The nearest number is 0 from here on, by the exponential of f64.
        assert!(f64::from(NOTHING).exp() < f64::from(f32::from_bits(1)) / 2.0);
    }
}
