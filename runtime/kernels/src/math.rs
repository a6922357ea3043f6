//! Scalar functions as straight-line code, so that loops over strips become vector code.
//!
//! Products and sums are fused where the code says so and nowhere else, so every processor gives the same bits; one
//! without fused instructions computes them in software. Must not know strips.
//!
//! ```text
//! exp(0) = 1   exp(-inf) = 0   max_nan(1, NaN) = NaN
//! ```

mod bases;
mod circular;
mod double;
mod hyperbolic;
mod inverse;
mod length;
mod power;
mod remainder;
mod single;
pub(crate) mod special;

pub(crate) use bases::{cbrt_f64, exp2_f64, log2_f64, log10_f64};
pub(crate) use circular::{
    LARGE_ANGLE_F32, LARGEST_ANGLE_F32, cos_f32, cos_large_f32, sin_f32, sin_large_f32,
};
pub(crate) use double::{
    LARGEST_ANGLE_F64, cos_f64, erf_f64, exp_f64, expm1_f64, gelu_f64, log_f64, log1p_f64,
    sigmoid_f64, sin_f64, tan_f64, tanh_f64,
};
pub(crate) use hyperbolic::{acosh_f64, asinh_f64, atanh_f64, cosh_f64, sinh_f64};
pub(crate) use inverse::{acos_f64, asin_f64, atan_f64, atan2_f64};
pub(crate) use length::hypot_f64;
pub(crate) use power::{near_pow_f32, near_pow_f64, pow_f32, pow_f64};
pub(crate) use remainder::{
    LARGEST_QUOTIENT_F32, LARGEST_QUOTIENT_F64, floordiv_f32, floordiv_f64, rem_f32, rem_f64,
};
pub(crate) use single::{
    NEAR, erf_f32, exp_f32, exp_near_f32, expm1_f32, gelu_f32, log_f32, log1p_f32, magnitude_bits,
    power_by_squares, sigmoid_f32, tanh_f32, whole_power_f32,
};

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
