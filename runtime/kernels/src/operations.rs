//! The scalar functions over strips: one loop a function and type.
//!
//! Must not know registers or masks of poison.
//!
//! ```text
//! float_f32(Add, [0 0], [1 2], [3 4]) -> [4 6]
//! ```

mod powers;

use crate::math;
use ein_plan::Function;
pub(crate) use powers::{
    WHOLE_F64, exponent, half_power_f32, half_power_f64, whole_power_f32, whole_power_f64,
};
use powers::{powers_f32, powers_f64};

/// `to[l] = f(a[l])`.
#[inline(always)]
pub(crate) fn map<A: Copy, R>(to: &mut [R], a: &[A], f: impl Fn(A) -> R) {
    for (to, a) in to.iter_mut().zip(a) {
        *to = f(*a);
    }
}

/// `to[l] = f(a[l], b[l])`.
#[inline(always)]
pub(crate) fn zip<A: Copy, B: Copy, R>(to: &mut [R], a: &[A], b: &[B], f: impl Fn(A, B) -> R) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = f(*a, *b);
    }
}

/// Lanes of a condition that are looked at together.
const TOGETHER: usize = 64;

/// How many lanes of a condition are true.
#[inline(always)]
pub(crate) fn trues(condition: &[u8]) -> usize {
    let some = |lanes: &[u8]| lanes.iter().fold(0, |n, lane| n + u8::from(*lane != 0));
    // Of a number that is known beforehand, so that they go together.
    let (parts, rest) = condition.as_chunks::<TOGETHER>();
    let parts = parts.iter().map(|lanes| usize::from(some(lanes)));
    parts.sum::<usize>() + usize::from(some(rest))
}

/// Values that are chosen by their bits, which takes no branch.
pub(crate) trait Choose: Copy {
    /// `first` or `second`.
    fn choose(is_first: bool, first: Self, second: Self) -> Self;
}

macro_rules! choose {
    ($($t:ty, $bits:ty, $to_bits:expr, $from_bits:expr;)*) => {$(
        impl Choose for $t {
            #[inline(always)]
            fn choose(is_first: bool, first: $t, second: $t) -> $t {
                let mask = <$bits>::from(is_first).wrapping_neg();
                $from_bits(($to_bits(first) & mask) | ($to_bits(second) & !mask))
            }
        }
    )*};
}

choose! {
    f32, u32, f32::to_bits, f32::from_bits;
    f64, u64, f64::to_bits, f64::from_bits;
    i32, i32, std::convert::identity, std::convert::identity;
    i64, i64, std::convert::identity, std::convert::identity;
    u8, u8, std::convert::identity, std::convert::identity;
}

/// `to[l] = c[l] ? a[l] : b[l]`.
#[inline(always)]
pub(crate) fn select<T: Choose>(to: &mut [T], c: &[u8], a: &[T], b: &[T]) {
    for (((to, c), a), b) in to.iter_mut().zip(c).zip(a).zip(b) {
        *to = T::choose(*c != 0, *a, *b);
    }
}

/// A comparison of values of one type.
#[inline(always)]
pub(crate) fn compare<T: Copy + PartialOrd>(f: Function, to: &mut [u8], a: &[T], b: &[T]) {
    match f {
        Function::Eq => zip(to, a, b, |x, y| u8::from(x == y)),
        Function::Ne => zip(to, a, b, |x, y| u8::from(x != y)),
        Function::Lt => zip(to, a, b, |x, y| u8::from(x < y)),
        Function::Le => zip(to, a, b, |x, y| u8::from(x <= y)),
        Function::Gt => zip(to, a, b, |x, y| u8::from(x > y)),
        Function::Ge => zip(to, a, b, |x, y| u8::from(x >= y)),
        other => unreachable!("{} is not a comparison", other.name()),
    }
}

/// Puts `exact(a[l], b[l])` where a lane is not `ok`, one by one.
#[inline(always)]
fn patch<T: Copy>(to: &mut [T], a: &[T], b: &[T], ok: impl Fn(T, T) -> bool, exact: fn(T, T) -> T) {
    let all = a.iter().zip(b).fold(true, |all, (a, b)| all & ok(*a, *b));
    if !all {
        for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
            if !ok(*a, *b) {
                *to = exact(*a, *b);
            }
        }
    }
}

/// `to[l] = f(a[l])` or `f(a[l], b[l])` by a call of the function itself: one that is passed as a value may be left out of
/// line, without the instructions of the loop's processor.
macro_rules! direct {
    ($to:ident, $a:ident => $($f:tt)+) => {
        for (to, a) in $to.iter_mut().zip($a) {
            *to = $($f)+(*a);
        }
    };
    ($to:ident, $a:ident, $b:ident => $($f:tt)+) => {
        for ((to, a), b) in $to.iter_mut().zip($a).zip($b) {
            *to = $($f)+(*a, *b);
        }
    };
}

use direct;

/// A loop over a function of double precision, rounded once where the strip has single precision.
macro_rules! in_double {
    ($to:ident, $a:ident => $($f:tt)+) => {
        for (to, a) in $to.iter_mut().zip($a) {
            *to = $($f)+(f64::from(*a)) as _;
        }
    };
    ($to:ident, $a:ident, $b:ident => $($f:tt)+) => {
        for ((to, a), b) in $to.iter_mut().zip($a).zip($b) {
            *to = $($f)+(f64::from(*a), f64::from(*b)) as _;
        }
    };
}

/// `$exp` and so on are the type's functions in [`math`].
macro_rules! floats {
    ($unary:ident, $binary:ident, $power:ident, $t:ty, $exp:ident, $log:ident, $log1p:ident, $expm1:ident, $tanh:ident,
     $sigmoid:ident, $gelu:ident, $erf:ident, $sines:ident, $cosines:ident, $rem:ident, $floordiv:ident, $quotient:ident,
     $next:path) => {
        /// A function of one floating-point value.
        #[inline(always)]
        pub(crate) fn $unary(f: Function, to: &mut [$t], a: &[$t]) {
            match f {
                Function::Neg => map(to, a, |x: $t| -x),
                Function::Exp => direct!(to, a => math::$exp),
                Function::Log => direct!(to, a => math::$log),
                Function::Log1p => direct!(to, a => math::$log1p),
                Function::Expm1 => direct!(to, a => math::$expm1),
                Function::Sqrt => map(to, a, |x: $t| x.sqrt()),
                Function::Rsqrt => map(to, a, |x: $t| 1.0 / x.sqrt()),
                Function::Tanh => direct!(to, a => math::$tanh),
                Function::Sigmoid => direct!(to, a => math::$sigmoid),
                Function::Relu => map(to, a, |x: $t| if x <= 0.0 { 0.0 } else { x }),
                Function::Gelu => direct!(to, a => math::$gelu),
                Function::Erf => direct!(to, a => math::$erf),
                Function::Sin => $sines(to, a),
                Function::Cos => $cosines(to, a),
                Function::Tan => {
                    in_double!(to, a => math::tan_f64);
                    let moderate = |x: $t, _: $t| is_moderate(f64::from(x), 0.0);
                    patch(to, a, a, moderate, |x, _| libm::tan(f64::from(x)) as $t);
                }
                Function::Asin => in_double!(to, a => math::asin_f64),
                Function::Acos => in_double!(to, a => math::acos_f64),
                Function::Atan => in_double!(to, a => math::atan_f64),
                Function::Sinh => in_double!(to, a => math::sinh_f64),
                Function::Cosh => in_double!(to, a => math::cosh_f64),
                Function::Asinh => in_double!(to, a => math::asinh_f64),
                Function::Acosh => in_double!(to, a => math::acosh_f64),
                Function::Atanh => in_double!(to, a => math::atanh_f64),
                Function::Exp2 => in_double!(to, a => math::exp2_f64),
                Function::Log2 => in_double!(to, a => math::log2_f64),
                Function::Log10 => in_double!(to, a => math::log10_f64),
                Function::Cbrt => in_double!(to, a => math::cbrt_f64),
                Function::Erfc => in_double!(to, a => libm::erfc),
                Function::Erfinv => in_double!(to, a => math::special::erfinv),
                Function::Lgamma => in_double!(to, a => libm::lgamma),
                Function::Abs => map(to, a, |x: $t| x.abs()),
                Function::Sign => map(to, a, |x: $t| {
                    if x > 0.0 {
                        1.0
                    } else if x < 0.0 {
                        -1.0
                    } else {
                        // NaN stays, and -0 becomes 0.
                        x + 0.0
                    }
                }),
                Function::Floor => map(to, a, |x: $t| x.floor()),
                Function::Ceil => map(to, a, |x: $t| x.ceil()),
                Function::Round => map(to, a, |x: $t| x.round_ties_even()),
                Function::Stop => map(to, a, |x: $t| x),
                other => unreachable!("{} of one float", other.name()),
            }
        }

        /// A function of two floating-point values that gives another.
        #[inline(always)]
        pub(crate) fn $binary(f: Function, to: &mut [$t], a: &[$t], b: &[$t]) {
            match f {
                Function::Add => zip(to, a, b, |x, y| x + y),
                Function::Sub => zip(to, a, b, |x, y| x - y),
                Function::Mul => zip(to, a, b, |x, y| x * y),
                Function::Div => zip(to, a, b, |x, y| x / y),
                Function::FloorDiv => direct!(to, a, b => math::$floordiv),
                Function::Rem => {
                    let moderate =
                        |x: $t, y: $t| (x / y).abs() < math::$quotient && y.abs() < <$t>::INFINITY;
                    direct!(to, a, b => math::$rem);
                    patch(to, a, b, moderate, |x, y| {
                        ein_plan::remainder(f64::from(x), f64::from(y)) as $t
                    });
                }
                Function::Pow => $power(to, a, b),
                Function::Atan2 => in_double!(to, a, b => math::atan2_f64),
                Function::Hypot => in_double!(to, a, b => math::hypot_f64),
                Function::Polygamma => in_double!(to, a, b => math::special::polygamma),
                Function::Nextafter => direct!(to, a, b => $next),
                Function::Min => zip(to, a, b, |x: $t, y: $t| {
                    let m = if x < y { x } else { y };
                    if x.is_nan() { x } else { m }
                }),
                Function::Max => zip(to, a, b, |x: $t, y: $t| {
                    let m = if x > y { x } else { y };
                    if x.is_nan() { x } else { m }
                }),
                other => unreachable!("{} of two floats", other.name()),
            }
        }
    };
}

/// Angles that single precision can reduce, larger ones of a strip that has any in double precision, and those beyond that one by one.
macro_rules! angles_f32 {
    ($name:ident, $of:ident, $of_large:ident, $exact:path) => {
        #[inline(always)]
        fn $name(to: &mut [f32], a: &[f32]) {
            direct!(to, a => math::$of);
            let small = |x: f32| x.abs() < math::LARGE_ANGLE_F32;
            if a.iter().fold(true, |all, a| all & small(*a)) {
                return;
            }
            for (to, a) in to.iter_mut().zip(a) {
                let large = math::$of_large(*a);
                *to = if small(*a) { *to } else { large };
            }
            let moderate = |x: f32, _: f32| x.abs() < math::LARGEST_ANGLE_F32;
            patch(to, a, a, moderate, |x, _| $exact(x));
        }
    };
}

angles_f32!(sines_f32, sin_f32, sin_large_f32, f32::sin);
angles_f32!(cosines_f32, cos_f32, cos_large_f32, f32::cos);

#[inline(always)]
fn sines_f64(to: &mut [f64], a: &[f64]) {
    direct!(to, a => math::sin_f64);
    patch(to, a, a, is_moderate, |x, _| x.sin());
}

#[inline(always)]
fn cosines_f64(to: &mut [f64], a: &[f64]) {
    direct!(to, a => math::cos_f64);
    patch(to, a, a, is_moderate, |x, _| x.cos());
}

#[inline(always)]
fn is_moderate(x: f64, _: f64) -> bool {
    x.abs() < math::LARGEST_ANGLE_F64
}

floats!(
    unary_f32,
    binary_f32,
    powers_f32,
    f32,
    exp_f32,
    log_f32,
    log1p_f32,
    expm1_f32,
    tanh_f32,
    sigmoid_f32,
    gelu_f32,
    erf_f32,
    sines_f32,
    cosines_f32,
    rem_f32,
    floordiv_f32,
    LARGEST_QUOTIENT_F32,
    libm::nextafterf
);
floats!(
    unary_f64,
    binary_f64,
    powers_f64,
    f64,
    exp_f64,
    log_f64,
    log1p_f64,
    expm1_f64,
    tanh_f64,
    sigmoid_f64,
    gelu_f64,
    erf_f64,
    sines_f64,
    cosines_f64,
    rem_f64,
    floordiv_f64,
    LARGEST_QUOTIENT_F64,
    libm::nextafter
);

macro_rules! integers {
    ($unary:ident, $binary:ident, $t:ty) => {
        /// A function of one integer.
        #[inline(always)]
        pub(crate) fn $unary(f: Function, to: &mut [$t], a: &[$t]) {
            match f {
                Function::Neg => map(to, a, |x: $t| x.wrapping_neg()),
                Function::Abs => map(to, a, |x: $t| x.wrapping_abs()),
                Function::Sign => map(to, a, |x: $t| x.signum()),
                Function::Relu => map(to, a, |x: $t| x.max(0)),
                Function::Popcount => map(to, a, |x: $t| x.count_ones() as $t),
                Function::Floor | Function::Ceil | Function::Round | Function::Stop => {
                    map(to, a, |x: $t| x)
                }
                other => unreachable!("{} of one integer", other.name()),
            }
        }

        /// A function of two integers that gives another. Where it has no value (division by zero, negative
        /// power) it gives 0.
        #[inline(always)]
        pub(crate) fn $binary(f: Function, to: &mut [$t], a: &[$t], b: &[$t]) {
            match f {
                Function::Add => zip(to, a, b, |x: $t, y: $t| x.wrapping_add(y)),
                Function::Sub => zip(to, a, b, |x: $t, y: $t| x.wrapping_sub(y)),
                Function::Mul => zip(to, a, b, |x: $t, y: $t| x.wrapping_mul(y)),
                Function::FloorDiv | Function::Div => zip(to, a, b, |x: $t, y: $t| {
                    if y == 0 {
                        return 0;
                    }
                    let q = x.wrapping_div(y);
                    let inexact = x.wrapping_rem(y) != 0;
                    q - <$t>::from(inexact && (x < 0) != (y < 0))
                }),
                Function::Rem => zip(to, a, b, |x: $t, y: $t| {
                    if y == 0 {
                        return 0;
                    }
                    let r = x.wrapping_rem(y);
                    if r != 0 && (r < 0) != (y < 0) {
                        r + y
                    } else {
                        r
                    }
                }),
                Function::Pow => zip(to, a, b, |x: $t, y: $t| {
                    math::power(i64::from(x), i64::from(y)) as $t
                }),
                Function::Min => zip(to, a, b, |x: $t, y: $t| x.min(y)),
                Function::Max => zip(to, a, b, |x: $t, y: $t| x.max(y)),
                Function::Within => to.copy_from_slice(a),
                Function::BitAnd => zip(to, a, b, |x: $t, y: $t| x & y),
                Function::BitOr => zip(to, a, b, |x: $t, y: $t| x | y),
                Function::BitXor => zip(to, a, b, |x: $t, y: $t| x ^ y),
                Function::ShiftLeft => zip(to, a, b, |x: $t, y: $t| {
                    let within = (0..<$t>::BITS as $t).contains(&y);
                    if within { x.wrapping_shl(y as u32) } else { 0 }
                }),
                Function::ShiftRight => zip(to, a, b, |x: $t, y: $t| {
                    let within = (0..<$t>::BITS as $t).contains(&y);
                    let sign = x >> (<$t>::BITS - 1);
                    if within {
                        x.wrapping_shr(y as u32)
                    } else {
                        sign
                    }
                }),
                other => unreachable!("{} of two integers", other.name()),
            }
        }
    };
}

integers!(unary_i32, binary_i32, i32);
integers!(unary_i64, binary_i64, i64);

/// A function of truth values that gives a truth value.
#[inline(always)]
pub(crate) fn truth(f: Function, to: &mut [u8], a: &[u8], b: &[u8]) {
    match f {
        Function::And | Function::Min | Function::Mul => zip(to, a, b, |x, y| x & y),
        Function::Or | Function::Max | Function::Add => zip(to, a, b, |x, y| x | y),
        other => compare(other, to, a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_chosen_one_by_one_and_in_parts() {
        let [a, b] = [1.0, -2.0].map(|x: f32| (0..200).map(|l| x * l as f32).collect::<Vec<_>>());
        let mut b = b;
        b[70] = f32::NAN;
        let conditions: [fn(usize) -> bool; 4] = [|_| true, |_| false, |l| l < 130, |l| l % 3 == 0];
        for condition in conditions {
            for n in [0, 1, 63, 64, 65, 200] {
                let c: Vec<u8> = (0..n).map(|l| u8::from(condition(l))).collect();
                assert_eq!(trues(&c), (0..n).filter(|l| condition(*l)).count());
                let mut to = vec![7.0; n];
                select(&mut to, &c, &a[..n], &b[..n]);
                for (l, to) in to.iter().enumerate() {
                    let wanted = if condition(l) { a[l] } else { b[l] };
                    assert_eq!(to.to_bits(), wanted.to_bits(), "lane {l} of {n}");
                }
            }
        }
    }
}
