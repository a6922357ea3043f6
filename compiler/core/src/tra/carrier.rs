//! Carriers of reductions, one at a time: the definition that the interpreters use.
//!
//! Floats are `f64` throughout; integers wrap at the width of their type. Must not know chunks or kernels.
//!
//! ```text
//! argmax: (3.0, 4) merged with (3.0, 2)  ->  (3.0, 2)
//! ```

use crate::einsum::scalar::truth;
use ein_plan::{DType, Reduction, Scalar};

/// The carrier of no value, for values of compute type `value`.
pub fn neutral(reduction: Reduction, value: DType) -> Vec<Scalar> {
    use Reduction as R;
    let extreme = |least: bool| match value {
        DType::I32 => Scalar::Int(i64::from(if least { i32::MIN } else { i32::MAX })),
        DType::I64 => Scalar::Int(if least { i64::MIN } else { i64::MAX }),
        DType::Bool => Scalar::Bool(!least),
        _ if least => Scalar::Float(f64::NEG_INFINITY),
        _ => Scalar::Float(f64::INFINITY),
    };
    let whole = |n: i64| match value {
        DType::I32 | DType::I64 => Scalar::Int(n),
        DType::Bool => Scalar::Bool(n != 0),
        _ => Scalar::Float(n as f64),
    };
    match reduction {
        R::Sum | R::Norm1 | R::NormInf | R::Any => vec![whole(0)],
        R::Prod | R::All => vec![whole(1)],
        R::Max => vec![extreme(true)],
        R::Min => vec![extreme(false)],
        R::Mean => vec![whole(0), Scalar::Int(0)],
        R::ArgMax => vec![extreme(true), Scalar::Int(-1)],
        R::ArgMin => vec![extreme(false), Scalar::Int(-1)],
        R::LogSumExp => vec![extreme(true), whole(0)],
        R::Norm => vec![whole(0), whole(1)],
    }
}

/// The carrier of one value; `index` is the number of the reduced index, for `argmax` and `argmin`.
pub fn single(reduction: Reduction, value: DType, of: Scalar, index: i64) -> Vec<Scalar> {
    use Reduction as R;
    let size = match of {
        Scalar::Float(x) => Scalar::Float(x.abs()),
        Scalar::Int(x) => wrapped(value, x.wrapping_abs()),
        truth => truth,
    };
    match reduction {
        R::Mean => vec![of, Scalar::Int(1)],
        R::ArgMax | R::ArgMin => vec![of, Scalar::Int(index)],
        R::LogSumExp if of.as_f64() == f64::NEG_INFINITY => neutral(reduction, value),
        R::LogSumExp => vec![of, Scalar::Float(1.0)],
        R::Norm => vec![size, Scalar::Float(1.0)],
        R::Norm1 | R::NormInf => vec![size],
        _ => vec![of],
    }
}

/// Two carriers as one; `a`'s values stand before `b`'s.
pub fn merge(reduction: Reduction, value: DType, a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    use Reduction as R;
    let add = || arithmetic(value, a[0], b[0], |x, y| x + y, i64::wrapping_add);
    match reduction {
        R::Sum | R::Norm1 => vec![add()],
        R::Prod => vec![arithmetic(
            value,
            a[0],
            b[0],
            |x, y| x * y,
            i64::wrapping_mul,
        )],
        R::Any => vec![Scalar::Bool(truth(a[0]) || truth(b[0]))],
        R::All => vec![Scalar::Bool(truth(a[0]) && truth(b[0]))],
        R::Max | R::NormInf => vec![if wins(b[0], a[0], true) { b[0] } else { a[0] }],
        R::Min => vec![if wins(b[0], a[0], false) { b[0] } else { a[0] }],
        R::Mean => vec![add(), Scalar::Int(whole(a[1]) + whole(b[1]))],
        R::ArgMax | R::ArgMin => {
            let (have, next) = (whole(a[1]), whole(b[1]));
            let better = next >= 0 && (have < 0 || wins(b[0], a[0], reduction == R::ArgMax));
            if better { b.to_vec() } else { a.to_vec() }
        }
        R::LogSumExp => {
            let top = if wins(b[0], a[0], true) { b[0] } else { a[0] }.as_f64();
            let sum = if top.is_infinite() {
                f64::from(u8::from(top > 0.0))
            } else {
                let part = |c: &[Scalar]| c[1].as_f64() * (c[0].as_f64() - top).exp();
                part(a) + part(b)
            };
            vec![Scalar::Float(top), Scalar::Float(sum)]
        }
        R::Norm => {
            let scale = if wins(b[0], a[0], true) { b[0] } else { a[0] }.as_f64();
            let sum = if scale == 0.0 || scale.is_infinite() {
                1.0
            } else {
                let part = |c: &[Scalar]| c[1].as_f64() * (c[0].as_f64() / scale).powi(2);
                part(a) + part(b)
            };
            vec![Scalar::Float(scale), Scalar::Float(sum)]
        }
    }
}

/// The result of a carrier; `None` where there was nothing to choose from.
pub fn finish(reduction: Reduction, carrier: &[Scalar]) -> Option<Scalar> {
    use Reduction as R;
    let float = |n: usize| carrier[n].as_f64();
    Some(match reduction {
        R::Mean => Scalar::Float(float(0) / float(1)),
        R::ArgMax | R::ArgMin if whole(carrier[1]) < 0 => return None,
        R::ArgMax | R::ArgMin => carrier[1],
        R::LogSumExp if float(0).is_infinite() => carrier[0],
        R::LogSumExp => Scalar::Float(float(0) + float(1).ln()),
        R::Norm if float(0).is_infinite() => carrier[0],
        R::Norm => Scalar::Float(float(0) * float(1).sqrt()),
        _ => carrier[0],
    })
}

/// Returns whether `x` takes the place of `y`, which stands before it: strictly larger (smaller), or the first NaN.
fn wins(x: Scalar, y: Scalar, largest: bool) -> bool {
    match (x, y) {
        (Scalar::Float(x), Scalar::Float(y)) => {
            !y.is_nan() && (x.is_nan() || if largest { x > y } else { x < y })
        }
        (Scalar::Int(x), Scalar::Int(y)) => {
            if largest {
                x > y
            } else {
                x < y
            }
        }
        _ => truth(x) != truth(y) && truth(x) == largest,
    }
}

fn arithmetic(
    value: DType,
    a: Scalar,
    b: Scalar,
    float: impl Fn(f64, f64) -> f64,
    int: impl Fn(i64, i64) -> i64,
) -> Scalar {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => wrapped(value, int(a, b)),
        _ => Scalar::Float(float(a.as_f64(), b.as_f64())),
    }
}

/// An integer at the width of its compute type.
fn wrapped(value: DType, n: i64) -> Scalar {
    Scalar::Int(if value == DType::I32 {
        i64::from(n as i32)
    } else {
        n
    })
}

fn whole(x: Scalar) -> i64 {
    match x {
        Scalar::Int(n) => n,
        other => other.as_f64() as i64,
    }
}
