//! Scalar functions as straight-line code, so that loops over strips become vector code.
//!
//! Errors are a few units in the last place. Must not know strips.
//!
//! ```text
//! exp(0) = 1   exp(-inf) = 0   max_nan(1, NaN) = NaN
//! ```

/// e^x in single precision.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    // e^x = 2^n e^r with |r| <= ln 2 / 2; the series of e^r to the seventh power errs by less than 1e-8.
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    const SHIFT: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to an integer
    let shifted = clamped * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = clamped - n * 0.693_359_4;
    let r = r + n * 2.121_944_4e-4;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r) * r + r + 1.0;
    // Two factors, since 2^n itself may be out of range.
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = n >> 1;
    let scale = |k: i32| f32::from_bits((k.wrapping_add(127) << 23) as u32);
    p * scale(half) * scale(n.wrapping_sub(half))
}

/// Hyperbolic tangent in single precision.
#[inline(always)]
pub(crate) fn tanh_f32(x: f32) -> f32 {
    let a = x.abs();
    // Small arguments: the odd series, without the cancellation of the other form.
    let s = x * x;
    let p = -1382.0 / 155_925.0;
    let p = p * s + 62.0 / 2835.0;
    let p = p * s - 17.0 / 315.0;
    let p = p * s + 2.0 / 15.0;
    let p = p * s - 1.0 / 3.0;
    let small = x + x * s * p;
    let e = exp_f32(-2.0 * a);
    let large = ((1.0 - e) / (1.0 + e)).copysign(x);
    if a < 0.25 { small } else { large }
}

/// 1 / (1 + e^-x) in single precision.
#[inline(always)]
pub(crate) fn sigmoid_f32(x: f32) -> f32 {
    1.0 / (1.0 + exp_f32(-x))
}

/// 1 / (1 + e^-x) in double precision.
#[inline(always)]
pub(crate) fn sigmoid_f64(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The error function in single precision, computed in double.
#[inline(always)]
pub(crate) fn erf_f32(x: f32) -> f32 {
    libm::erf(f64::from(x)) as f32
}

/// The Gaussian error linear unit; the lower tail goes through erfc, which does not cancel.
#[inline(always)]
pub(crate) fn gelu_f64(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return 0.0;
    }
    0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The same in single precision, computed in double.
#[inline(always)]
pub(crate) fn gelu_f32(x: f32) -> f32 {
    gelu_f64(f64::from(x)) as f32
}

/// a to the power b, wrapping; b must not be negative.
pub(crate) fn power(mut a: i64, mut b: i64) -> i64 {
    let mut result = 1i64;
    while b > 0 {
        if b & 1 == 1 {
            result = result.wrapping_mul(a);
        }
        a = a.wrapping_mul(a);
        b >>= 1;
    }
    result
}

/// The larger; NaN if either is, the first one if both are.
#[inline(always)]
pub(crate) fn max_nan(a: f64, x: f64) -> f64 {
    if a >= x || a.is_nan() { a } else { x }
}

/// The smaller; NaN if either is, the first one if both are.
#[inline(always)]
pub(crate) fn min_nan(a: f64, x: f64) -> f64 {
    if a <= x || a.is_nan() { a } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_functions_err_by_a_few_ulps() {
        let mut worst = [0f64; 3];
        for i in -200_000..200_000 {
            let x = i as f32 * 4.4e-4;
            let error = |got: f32, want: f64| ((f64::from(got) - want) / want).abs();
            let wide = f64::from(x);
            worst[0] = worst[0].max(error(exp_f32(x), wide.exp()));
            if i != 0 {
                worst[1] = worst[1].max(error(tanh_f32(x), wide.tanh()));
            }
            worst[2] = worst[2].max(error(sigmoid_f32(x), 1.0 / (1.0 + (-wide).exp())));
        }
        assert!(
            worst[0] < 3e-7 && worst[1] < 6e-7 && worst[2] < 4e-7,
            "{worst:?}"
        );
    }

    #[test]
    fn single_precision_functions_keep_the_ends() {
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32(88.8), f32::INFINITY);
        assert_eq!(exp_f32(0.0), 1.0);
        assert!(exp_f32(f32::NAN).is_nan() && tanh_f32(f32::NAN).is_nan());
        assert_eq!(tanh_f32(f32::INFINITY), 1.0);
        assert_eq!(tanh_f32(f32::NEG_INFINITY), -1.0);
        assert_eq!(sigmoid_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(-100.0), (-100f64).exp() as f32);
    }
}
