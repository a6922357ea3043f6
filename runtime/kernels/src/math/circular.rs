//! Sine and cosine of single precision, within two units in the last place (ulp).
//!
//! Single precision for angles of a few thousand turns, double precision for larger ones. Must not know strips.
//!
//! ```text
//! sin(-0) = -0   cos(0) = 1   sin(70000), by way of double precision
//! ```

use super::double::ROUND;
use super::single::{SHIFT, series, wide_series};
use std::f64::consts::FRAC_2_PI;

/// π/2 in three parts.
const HALF_PI: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_5e-15];

/// (sin(r) / r - 1) / r² in r², for |r| <= π/4, so that sin is good to 2^-28.
const SIN: [f32; 3] = [-0.166_666_55, 8.332_176e-3, -1.951_697_8e-4];

/// (cos(r) - 1 + r²/2) / r⁴ in r², for |r| <= π/4, so that cos is good to 2^-33.
const COS: [f32; 3] = [4.166_664_6e-2, -1.388_736_4e-3, 2.443_809_2e-5];

/// Below this magnitude [`sin_f32`] and [`cos_f32`] are right.
pub(crate) const LARGE_ANGLE_F32: f32 = 65_536.0;

/// Below this magnitude [`sin_large_f32`] and [`cos_large_f32`] are right.
pub(crate) const LARGEST_ANGLE_F32: f32 = 1_073_741_824.0;

/// sin(x + quadrants π/2) for |x| < [`LARGE_ANGLE_F32`].
#[inline(always)]
fn circular(x: f32, quadrants: u32) -> f32 {
    let shifted = x.mul_add(std::f32::consts::FRAC_2_PI, SHIFT);
    let n = shifted - SHIFT;
    // r + low = x - n π/2; the first difference is exact.
    let first = n.mul_add(-HALF_PI[0], x);
    let r = n.mul_add(-HALF_PI[1], first);
    let taken = first - r;
    let low = n.mul_add(-HALF_PI[1], taken) + ((first - taken) - r);
    let low = n.mul_add(-HALF_PI[2], low);
    let z = r * r;
    let sin = r + (r * z).mul_add(series(z, &SIN), low);
    let half = 0.5 * z;
    let most = 1.0 - half;
    let lost = r.mul_add(-low, (1.0 - most) - half);
    let cos = most + (z * z).mul_add(series(z, &COS), lost);
    let quadrant = shifted.to_bits().wrapping_add(quadrants);
    let y = if quadrant & 1 == 0 { sin } else { cos };
    f32::from_bits(y.to_bits() ^ (quadrant & 2) << 30)
}

/// The same for |x| < [`LARGEST_ANGLE_F32`], by way of double precision.
#[inline(always)]
fn circular_large(x: f32, quadrants: u64) -> f32 {
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
    let sin = (r * z).mul_add(wide_series(z, &SIN), r);
    let cos = z.mul_add(wide_series(z, &COS), 1.0);
    let quadrant = shifted.to_bits().wrapping_add(quadrants);
    let y = if quadrant & 1 == 0 { sin } else { cos };
    f64::from_bits(y.to_bits() ^ (quadrant & 2) << 62) as f32
}

/// The sine of |x| < [`LARGE_ANGLE_F32`].
#[inline(always)]
pub(crate) fn sin_f32(x: f32) -> f32 {
    let y = circular(x, 0);
    if x == 0.0 { x } else { y }
}

/// The cosine of |x| < [`LARGE_ANGLE_F32`].
#[inline(always)]
pub(crate) fn cos_f32(x: f32) -> f32 {
    circular(x, 1)
}

/// The sine of [`LARGE_ANGLE_F32`] <= |x| < [`LARGEST_ANGLE_F32`].
#[inline(always)]
pub(crate) fn sin_large_f32(x: f32) -> f32 {
    circular_large(x, 0)
}

/// The cosine of such an angle.
#[inline(always)]
pub(crate) fn cos_large_f32(x: f32) -> f32 {
    circular_large(x, 1)
}
