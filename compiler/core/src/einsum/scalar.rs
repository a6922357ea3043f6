//! The scalar functions on single values, as the interpreters compute them.
//!
//! Floating-point values are computed in `f64`, integers wrap in their type. Must not know kernels.
//!
//! ```text
//! rem(-7, 3) = 2    floordiv(-7, 3) = -3    min(nan, 1.0) = nan
//! ```

use super::special;
use ein_plan::{DType, Function, Scalar};
use std::f64::consts::SQRT_2;

/// Why a function has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// An integer is divided by zero.
    DivisionByZero,
    /// An integer has a negative exponent.
    NegativePower,
    /// A position is not one of so many.
    NotWithin(i64, i64),
}

/// The function of its arguments; `dtype` is the compute type of the arguments after which integers wrap. Of a
/// `select`, give all three arguments, the untaken one with any value. The arguments have the types that
/// [`Function::result`] accepts.
pub fn apply(function: Function, arguments: &[Scalar], dtype: DType) -> Result<Scalar, NoValue> {
    let a = arguments[0];
    let b = arguments.get(1).copied().unwrap_or(a);
    match function {
        Function::Select => return Ok(if truth(a) { b } else { arguments[2] }),
        Function::Stop => return Ok(a),
        Function::Nextafter => {
            let next = special::nextafter(a.as_f64(), b.as_f64(), dtype);
            return Ok(Scalar::Float(next));
        }
        Function::Eq | Function::Ne | Function::Lt => {}
        Function::Le | Function::Gt | Function::Ge => {}
        _ => {
            return match (a, b) {
                (Scalar::Int(a), Scalar::Int(b)) => Ok(wrap(whole(function, a, b, dtype)?, dtype)),
                (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(logical(function, a, b))),
                _ => Ok(Scalar::Float(real(function, a.as_f64(), b.as_f64()))),
            };
        }
    }
    let order = match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(&b)),
        _ => a.as_f64().partial_cmp(&b.as_f64()),
    };
    // Nothing is known of NaN, except that it differs from everything.
    Ok(Scalar::Bool(order.map_or(
        function == Function::Ne,
        |order| match function {
            Function::Eq => order.is_eq(),
            Function::Ne => order.is_ne(),
            Function::Lt => order.is_lt(),
            Function::Le => order.is_le(),
            Function::Gt => order.is_gt(),
            Function::Ge => order.is_ge(),
            other => not_of(other, "an order"),
        },
    )))
}

/// A value converted to a compute type: float to integer truncates and saturates, NaN is 0; integers wrap; f32 is
/// rounded; what is not zero is true.
pub fn convert(x: Scalar, to: DType) -> Scalar {
    match (x, to) {
        (x, DType::Bool) => Scalar::Bool(truth(x)),
        (Scalar::Float(x), DType::I32) => Scalar::Int(i64::from(x as i32)),
        (Scalar::Float(x), DType::I64) => Scalar::Int(x as i64),
        (Scalar::Int(x), DType::I32 | DType::I64) => wrap(x, to),
        (Scalar::Bool(x), DType::I32 | DType::I64) => Scalar::Int(i64::from(x)),
        // Once: by way of f64 it would be rounded twice.
        (Scalar::Int(x), DType::F32) => Scalar::Float(f64::from(x as f32)),
        (x, DType::F32) => Scalar::Float(f64::from(x.as_f64() as f32)),
        (x, _) => Scalar::Float(x.as_f64()),
    }
}

/// A value as it is read back after being stored: rounded, or wrapped, to the stored type.
pub fn stored(x: Scalar, dtype: DType) -> Scalar {
    match (x, dtype) {
        // Rounding by way of f32 is not always the nearest f16, but it is what storing a computed f32 gives.
        (Scalar::Float(x), DType::F16) => Scalar::Float(half::f16::from_f32(x as f32).to_f64()),
        (Scalar::Float(x), DType::BF16) => Scalar::Float(half::bf16::from_f32(x as f32).to_f64()),
        (Scalar::Float(x), DType::F32) => Scalar::Float(f64::from(x as f32)),
        (Scalar::Int(x), DType::U8) => Scalar::Int(i64::from(x as u8)),
        (Scalar::Int(x), DType::U16) => Scalar::Int(i64::from(x as u16)),
        (Scalar::Int(x), DType::U32) => Scalar::Int(i64::from(x as u32)),
        (Scalar::Int(x), DType::I8) => Scalar::Int(i64::from(x as i8)),
        (Scalar::Int(x), DType::I16) => Scalar::Int(i64::from(x as i16)),
        (Scalar::Int(x), DType::I32) => Scalar::Int(i64::from(x as i32)),
        (x, _) => x,
    }
}

/// Returns whether a value is true, that is, not zero.
pub fn truth(x: Scalar) -> bool {
    match x {
        Scalar::Bool(x) => x,
        Scalar::Int(x) => x != 0,
        Scalar::Float(x) => x != 0.0,
    }
}

fn wrap(x: i64, dtype: DType) -> Scalar {
    Scalar::Int(if dtype == DType::I32 {
        i64::from(x as i32)
    } else {
        x
    })
}

fn logical(function: Function, a: bool, b: bool) -> bool {
    match function {
        Function::And => a && b,
        Function::Or => a || b,
        Function::Not => !a,
        other => not_of(other, "truth values"),
    }
}

/// Stops at a function that has no such values. [`apply`] requires arguments that [`Function::result`] accepts, so it never comes here.
fn not_of(function: Function, values: &str) -> ! {
    unreachable!("`{}` is no function of {values}", function.name())
}

fn whole(function: Function, a: i64, b: i64, dtype: DType) -> Result<i64, NoValue> {
    let bits = if dtype == DType::I32 { 32 } else { 64 };
    Ok(match function {
        Function::Add => a.wrapping_add(b),
        Function::Sub => a.wrapping_sub(b),
        Function::Mul => a.wrapping_mul(b),
        Function::FloorDiv | Function::Rem if b == 0 => return Err(NoValue::DivisionByZero),
        Function::FloorDiv => floor_quotient(a, b),
        Function::Rem => remainder(a, b),
        Function::Pow if b < 0 => return Err(NoValue::NegativePower),
        Function::Within if !(0..b).contains(&a) => return Err(NoValue::NotWithin(a, b)),
        Function::Within => a,
        Function::Pow => power(a, b),
        Function::BitAnd => a & b,
        Function::BitOr => a | b,
        Function::BitXor => a ^ b,
        Function::ShiftLeft if (0..bits).contains(&b) => a.wrapping_shl(b as u32),
        Function::ShiftLeft => 0,
        Function::ShiftRight if (0..bits).contains(&b) => a >> b,
        Function::ShiftRight => -i64::from(a < 0),
        // Of 32 bits, the upper ones of an i64 repeat the sign.
        Function::Popcount if dtype == DType::I32 => i64::from((a as i32).count_ones()),
        Function::Popcount => i64::from(a.count_ones()),
        Function::Min => a.min(b),
        Function::Max => a.max(b),
        Function::Neg => a.wrapping_neg(),
        Function::Abs => a.wrapping_abs(),
        Function::Sign => a.signum(),
        Function::Relu => a.max(0),
        // A whole number is its own nearest one.
        Function::Floor | Function::Ceil | Function::Round => a,
        Function::And
        | Function::Or
        | Function::Not
        | Function::Div
        | Function::Exp
        | Function::Log
        | Function::Log1p
        | Function::Expm1
        | Function::Sqrt
        | Function::Rsqrt
        | Function::Tanh
        | Function::Sigmoid
        | Function::Gelu
        | Function::Erf
        | Function::Sin
        | Function::Cos
        | Function::Tan
        | Function::Asin
        | Function::Acos
        | Function::Atan
        | Function::Atan2
        | Function::Sinh
        | Function::Cosh
        | Function::Asinh
        | Function::Acosh
        | Function::Atanh
        | Function::Exp2
        | Function::Log2
        | Function::Log10
        | Function::Cbrt
        | Function::Hypot
        | Function::Erfc
        | Function::Erfinv
        | Function::Lgamma
        | Function::Polygamma
        | Function::Nextafter
        | Function::Eq
        | Function::Ne
        | Function::Lt
        | Function::Le
        | Function::Gt
        | Function::Ge
        | Function::Select
        | Function::Stop
        | Function::Solve
        | Function::Cholesky
        | Function::Inv
        | Function::Qr
        | Function::Eigh
        | Function::Eig
        | Function::Svd
        | Function::Logdet
        | Function::Argsort
        | Function::Sort
        | Function::Topk
        | Function::Lu
        | Function::Fft
        | Function::Find
        | Function::ListedDot
        | Function::ListedProduct
        | Function::ListedPlaces
        | Function::ListedSums => not_of(function, "whole numbers"),
    })
}

/// The quotient, rounded down; of the lowest number and -1, that wraps.
fn floor_quotient(a: i64, b: i64) -> i64 {
    let exact = a.wrapping_rem(b) == 0 || (a < 0) == (b < 0);
    a.wrapping_div(b).wrapping_sub(i64::from(!exact))
}

/// The remainder of the quotient rounded down: it has the sign of `b`.
fn remainder(a: i64, b: i64) -> i64 {
    let rest = a.wrapping_rem(b);
    let same_sign = rest == 0 || (rest < 0) == (b < 0);
    if same_sign { rest } else { rest + b }
}

/// The product of `exponent` factors, which wraps: it depends on their number only through repeated squares.
fn power(base: i64, exponent: i64) -> i64 {
    let (mut power, mut square, mut left) = (1i64, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left /= 2;
    }
    power
}

fn real(function: Function, a: f64, b: f64) -> f64 {
    let unordered = a.is_nan() || b.is_nan();
    match function {
        Function::Add => a + b,
        Function::Sub => a - b,
        Function::Mul => a * b,
        Function::Div => a / b,
        Function::FloorDiv => ein_plan::floor_quotient(a, b),
        Function::Rem => ein_plan::remainder(a, b),
        Function::Pow => a.powf(b),
        Function::Min | Function::Max if unordered => f64::NAN,
        Function::Min => a.min(b),
        Function::Max => a.max(b),
        Function::Neg => -a,
        Function::Exp => a.exp(),
        Function::Log => a.ln(),
        Function::Log1p => a.ln_1p(),
        Function::Expm1 => a.exp_m1(),
        Function::Sqrt => a.sqrt(),
        Function::Rsqrt => 1.0 / a.sqrt(),
        Function::Tanh => a.tanh(),
        Function::Sigmoid => 1.0 / (1.0 + (-a).exp()),
        Function::Relu if a.is_nan() => a,
        Function::Relu => a.max(0.0),
        Function::Gelu if a == f64::NEG_INFINITY => -0.0,
        Function::Gelu => a * libm::erfc(-a / SQRT_2) / 2.0,
        Function::Erf => libm::erf(a),
        Function::Sin => a.sin(),
        Function::Cos => a.cos(),
        Function::Tan => a.tan(),
        Function::Asin => a.asin(),
        Function::Acos => a.acos(),
        Function::Atan => a.atan(),
        Function::Atan2 => a.atan2(b),
        Function::Sinh => a.sinh(),
        Function::Cosh => a.cosh(),
        Function::Asinh => a.asinh(),
        Function::Acosh => a.acosh(),
        Function::Atanh => a.atanh(),
        Function::Exp2 => a.exp2(),
        Function::Log2 => a.log2(),
        Function::Log10 => a.log10(),
        Function::Cbrt => a.cbrt(),
        Function::Hypot => a.hypot(b),
        Function::Erfc => special::erfc(a),
        Function::Erfinv => special::erfinv(a),
        Function::Lgamma => special::lgamma(a),
        Function::Polygamma => special::polygamma(a, b),
        Function::Abs => a.abs(),
        Function::Sign if a.is_nan() => a,
        Function::Sign if a == 0.0 => 0.0,
        Function::Sign => a.signum(),
        Function::Floor => a.floor(),
        Function::Ceil => a.ceil(),
        Function::Round => a.round_ties_even(),
        Function::And
        | Function::Or
        | Function::Not
        | Function::Eq
        | Function::Ne
        | Function::Lt
        | Function::Le
        | Function::Gt
        | Function::Ge
        | Function::Select
        | Function::Stop
        | Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::ShiftLeft
        | Function::ShiftRight
        | Function::Popcount
        | Function::Nextafter
        | Function::Within
        | Function::Solve
        | Function::Cholesky
        | Function::Inv
        | Function::Qr
        | Function::Eigh
        | Function::Eig
        | Function::Svd
        | Function::Logdet
        | Function::Argsort
        | Function::Sort
        | Function::Topk
        | Function::Lu
        | Function::Fft
        | Function::Find
        | Function::ListedDot
        | Function::ListedProduct
        | Function::ListedPlaces
        | Function::ListedSums => not_of(function, "real numbers"),
    }
}
