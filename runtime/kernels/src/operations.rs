//! The scalar functions over strips: one loop a function and type.
//!
//! Must not know registers or masks of poison.
//!
//! ```text
//! float_f32(Add, [0 0], [1 2], [3 4]) -> [4 6]
//! ```

use crate::math;
use ein_plan::Function;

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

/// `to[l] = c[l] ? a[l] : b[l]`.
#[inline(always)]
pub(crate) fn select<T: Copy>(to: &mut [T], c: &[u8], a: &[T], b: &[T]) {
    for (((to, c), a), b) in to.iter_mut().zip(c).zip(a).zip(b) {
        *to = if *c != 0 { *a } else { *b };
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

macro_rules! floats {
    ($unary:ident, $binary:ident, $t:ty, $exp:expr, $tanh:expr, $sigmoid:expr, $gelu:expr, $erf:expr) => {
        /// A function of one floating-point value.
        #[inline(always)]
        pub(crate) fn $unary(f: Function, to: &mut [$t], a: &[$t]) {
            match f {
                Function::Neg => map(to, a, |x: $t| -x),
                Function::Exp => map(to, a, $exp),
                Function::Log => map(to, a, |x: $t| x.ln()),
                Function::Log1p => map(to, a, |x: $t| x.ln_1p()),
                Function::Expm1 => map(to, a, |x: $t| x.exp_m1()),
                Function::Sqrt => map(to, a, |x: $t| x.sqrt()),
                Function::Rsqrt => map(to, a, |x: $t| 1.0 / x.sqrt()),
                Function::Tanh => map(to, a, $tanh),
                Function::Sigmoid => map(to, a, $sigmoid),
                Function::Relu => map(to, a, |x: $t| if x <= 0.0 { 0.0 } else { x }),
                Function::Gelu => map(to, a, $gelu),
                Function::Erf => map(to, a, $erf),
                Function::Sin => map(to, a, |x: $t| x.sin()),
                Function::Cos => map(to, a, |x: $t| x.cos()),
                Function::Abs => map(to, a, |x: $t| x.abs()),
                Function::Sign => map(to, a, |x: $t| {
                    if x > 0.0 {
                        1.0
                    } else if x < 0.0 {
                        -1.0
                    } else {
                        x
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
                Function::FloorDiv => zip(to, a, b, |x: $t, y: $t| (x / y).floor()),
                Function::Rem => zip(to, a, b, |x: $t, y: $t| x - y * (x / y).floor()),
                Function::Pow => {
                    if b.iter().all(|y| *y == 2.0) {
                        map(to, a, |x| x * x);
                    } else {
                        zip(to, a, b, |x: $t, y: $t| x.powf(y));
                    }
                }
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

floats!(
    unary_f32,
    binary_f32,
    f32,
    math::exp_f32,
    math::tanh_f32,
    math::sigmoid_f32,
    math::gelu_f32,
    math::erf_f32
);
floats!(
    unary_f64,
    binary_f64,
    f64,
    |x: f64| x.exp(),
    |x: f64| x.tanh(),
    math::sigmoid_f64,
    math::gelu_f64,
    libm::erf
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
