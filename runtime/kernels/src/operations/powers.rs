//! Powers over strips: with exponents that differ from lane to lane, and with known ones that are whole or halves.
//!
//! Must not know registers or masks of poison.
//!
//! ```text
//! whole_power_f32([2 3], -1) -> [0.5 0.333…]   half_power_f64([4 -0], 1) -> [2 0]
//! ```

use super::{TOGETHER, direct, map};
use crate::math;

/// Powers by the short way, and by the long one in parts of a strip where that is not right everywhere.
macro_rules! powers {
    ($name:ident, $t:ty, $near:ident, $exact:ident) => {
        #[inline(always)]
        pub(super) fn $name(to: &mut [$t], a: &[$t], b: &[$t]) {
            let parts = a.chunks(TOGETHER).zip(b.chunks(TOGETHER));
            for (to, (a, b)) in to.chunks_mut(TOGETHER).zip(parts) {
                let mut all = true;
                for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
                    let (power, is_near) = math::$near(*a, *b);
                    *to = power;
                    all &= is_near;
                }
                if !all {
                    direct!(to, a, b => math::$exact);
                }
            }
        }
    };
}

powers!(powers_f32, f32, near_pow_f32, pow_f32);
powers!(powers_f64, f64, near_pow_f64, pow_f64);

/// A known exponent, if it is a whole number from -8 to 8, and twice the exponent, if it is a half of 1, 3, -1 or -3.
pub(crate) fn exponent(x: f64) -> (Option<i8>, Option<i8>) {
    let whole = x.trunc() == x && x.abs() <= 8.0;
    let halves = [1.0, 3.0, -1.0, -3.0].contains(&(2.0 * x));
    (whole.then_some(x as i8), halves.then_some((2.0 * x) as i8))
}

/// `to[l] = f(a[l], n)`, with a loop for each exponent of the list, so that cases are decided outside it.
macro_rules! by_exponent {
    ($to:ident, $a:ident, $n:ident => $f:path, $($exponent:literal)+) => {
        match $n {
            $($exponent => map($to, $a, |x| $f(x, $exponent)),)+
            n => map($to, $a, |x| $f(x, n)),
        }
    };
}

/// Powers with a constant whole exponent from -8 to 8, each rounded once.
#[inline(always)]
pub(crate) fn whole_power_f32(to: &mut [f32], a: &[f32], n: i32) {
    match n {
        2 => map(to, a, |x| x * x),
        -1 => map(to, a, |x| 1.0 / x),
        n => by_exponent!(to, a, n => math::whole_power_f32, 0 1 3 4 5 6 7 8 -2 -3 -4 -5 -6 -7 -8),
    }
}

/// The whole exponents of [`whole_power_f64`]: four roundings at most.
pub(crate) const WHOLE_F64: std::ops::RangeInclusive<i8> = -2..=5;

/// Powers in double precision for exponents from 0 on, with n - 1 roundings at most, and for -1 and -2, with one and two.
#[inline(always)]
pub(crate) fn whole_power_f64(to: &mut [f64], a: &[f64], n: i32) {
    match n {
        -1 => map(to, a, |x| 1.0 / x),
        // The reciprocal first: the square of a large number has no reciprocal.
        -2 => map(to, a, |x| (1.0 / x) * (1.0 / x)),
        2 => map(to, a, |x| x * x),
        3 => map(to, a, |x| math::power_by_squares(x, 3)),
        4 => map(to, a, |x| math::power_by_squares(x, 4)),
        n => map(to, a, |x| math::power_by_squares(x, n.unsigned_abs())),
    }
}

/// Powers with the exponents 1/2, 3/2, -1/2 and -3/2 (`halves`: twice them) by square roots, with one rounding to three. As a power, that of
/// -infinity is infinite or 0, and that of -0 has no sign.
macro_rules! half_power {
    ($name:ident, $t:ident) => {
        #[inline(always)]
        pub(crate) fn $name(to: &mut [$t], a: &[$t], halves: i8) {
            #[inline(always)]
            fn root(x: $t) -> $t {
                if x == $t::NEG_INFINITY {
                    return $t::INFINITY;
                }
                // -0 is 0.
                (x + 0.0).sqrt()
            }
            match halves {
                1 => map(to, a, root),
                3 => map(to, a, |x| x.abs() * root(x)),
                -1 => map(to, a, |x| 1.0 / root(x)),
                _ => map(to, a, |x| 1.0 / x.abs() / root(x)),
            }
        }
    };
}

half_power!(half_power_f32, f32);
half_power!(half_power_f64, f64);
