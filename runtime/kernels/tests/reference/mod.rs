//! A naive evaluator of kernels, point by point, and random kernels to compare it with.
//!
//! ```text
//! seed 17  ->  [i0: 3, i1: 300 | i2: 4] f32 = max a0[i1, 2 * i2 - 1] else i0 ...
//! ```
#![allow(dead_code)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fault, Fusion, Options, run};
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};
use half::{bf16, f16};

/// A value of a compute type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    F(f64),
    I(i64),
    B(bool),
}
use Value::{B, F, I};

impl Value {
    pub fn f(self) -> f64 {
        match self {
            F(x) => x,
            I(x) => x as f64,
            B(x) => f64::from(u8::from(x)),
        }
    }
    pub fn i(self) -> i64 {
        match self {
            F(x) => x as i64,
            I(x) => x,
            B(x) => i64::from(x),
        }
    }
    pub fn b(self) -> bool {
        match self {
            F(x) => x != 0.0,
            I(x) => x != 0,
            B(x) => x,
        }
    }
}

/// An operand that the test owns.
#[derive(Clone, Debug)]
pub struct Owned {
    pub columns: Vec<Array>,
    pub start: Vec<u64>,
}

/// Whole operands of a kernel, of numbers that follow from their type and place.
pub fn operands(kernel: &Kernel, value: impl Fn(DType, usize) -> f64) -> Vec<Owned> {
    let one = |operand: &ein_plan::Operand| {
        let shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
        let dtype = operand.columns[0];
        Owned {
            start: vec![0; shape.len()],
            columns: vec![array(dtype, &shape, |at| value(dtype, at))],
        }
    };
    kernel.operands.iter().map(one).collect()
}

/// The operands as a kernel takes them.
pub fn chunks(owned: &[Owned]) -> Vec<Chunk<'_>> {
    let chunks = owned.iter().map(|operand| Chunk {
        columns: operand.columns.iter().collect(),
        start: operand.start.clone(),
    });
    chunks.collect()
}

/// Rounds to the compute type.
fn typed(dtype: DType, value: Value) -> Value {
    match (dtype, value) {
        (DType::F32, v) => F(f64::from(v.f() as f32)),
        (DType::F64, v) => F(v.f()),
        (DType::I32, F(x)) => I(i64::from(x as i32)),
        (DType::I32, v) => I(i64::from(v.i() as i32)),
        (DType::I64, v) => I(v.i()),
        (_, v) => B(v.b()),
    }
}

pub fn evaluate(
    kernel: &Kernel,
    operands: &[Owned],
    point: &[i64],
    id: NodeId,
) -> Result<Value, Fault> {
    let dtype = kernel.graph.dtype(id);
    let go = |id: NodeId| evaluate(kernel, operands, point, id);
    match kernel.graph.node(id) {
        Node::Constant(Scalar::Float(x)) => Ok(typed(dtype, F(*x))),
        Node::Constant(Scalar::Int(x)) => Ok(typed(dtype, I(*x))),
        Node::Constant(Scalar::Bool(x)) => Ok(typed(dtype, B(*x))),
        Node::Index(i) => Ok(I(point[i.0 as usize])),
        Node::Convert(a) => Ok(typed(dtype, go(*a)?)),
        Node::Read {
            operand,
            column,
            positions,
            otherwise,
        } => {
            let chunk = &operands[*operand as usize];
            let array = &chunk.columns[*column as usize];
            let mut at = 0usize;
            let mut outside = None;
            let mut places = vec![];
            for p in positions {
                places.push(go(*p)?.i());
            }
            for (d, p) in places.iter().enumerate() {
                let (start, n) = (chunk.start[d] as i64, array.shape()[d] as i64);
                if *p < start || p.wrapping_sub(start) >= n {
                    outside = outside.or(Some(Fault::OutOfRange {
                        operand: *operand,
                        dimension: d as u32,
                        position: *p,
                        extent: kernel.operands[*operand as usize].shape[d],
                    }));
                } else {
                    at = at * n as usize + (p - start) as usize;
                }
            }
            match (outside, otherwise) {
                (None, _) => Ok(match array.data().get(at) {
                    Scalar::Float(x) => F(x),
                    Scalar::Int(x) => I(x),
                    Scalar::Bool(x) => B(x),
                }),
                (Some(_), Some(o)) => go(*o),
                (Some(fault), None) => Err(fault),
            }
        }
        Node::Apply(Function::Select, a) => {
            if go(a[0])?.b() {
                go(a[1])
            } else {
                go(a[2])
            }
        }
        Node::Apply(f, a) => {
            let x = go(a[0])?;
            let y = if a.len() > 1 { go(a[1])? } else { x };
            let argument = kernel.graph.dtype(a[0]);
            Ok(typed(dtype, apply(*f, id, argument, x, y)?))
        }
    }
}

fn apply(f: Function, check: NodeId, argument: DType, x: Value, y: Value) -> Result<Value, Fault> {
    use Function as G;
    if let (I(x), I(y)) = (x, y) {
        let floor_div = |x: i64, y: i64| {
            let q = x.wrapping_div(y);
            if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) {
                q - 1
            } else {
                q
            }
        };
        return Ok(match f {
            G::Add => I(x.wrapping_add(y)),
            G::Sub => I(x.wrapping_sub(y)),
            G::Mul => I(x.wrapping_mul(y)),
            G::FloorDiv | G::Rem if y == 0 => return Err(Fault::DivisionByZero),
            G::FloorDiv => I(floor_div(x, y)),
            G::Rem => I(x.wrapping_sub(y.wrapping_mul(floor_div(x, y)))),
            G::Pow if y < 0 => return Err(Fault::NegativePower),
            G::Within if !(0..y).contains(&x) => {
                return Err(Fault::NotWithin {
                    check,
                    position: x,
                    extent: y,
                });
            }
            G::Within => I(x),
            G::Pow => I((0..y.min(64)).fold(1i64, |p, _| p.wrapping_mul(x))),
            G::Min => I(x.min(y)),
            G::Max => I(x.max(y)),
            G::Eq => B(x == y),
            G::Ne => B(x != y),
            G::Lt => B(x < y),
            G::Le => B(x <= y),
            G::Gt => B(x > y),
            G::Ge => B(x >= y),
            G::Neg => I(x.wrapping_neg()),
            G::Abs => I(if argument == DType::I32 {
                i64::from((x as i32).wrapping_abs())
            } else {
                x.wrapping_abs()
            }),
            G::Sign => I(x.signum()),
            other => panic!("{other:?} of integers"),
        });
    }
    if let (B(x), B(y)) = (x, y) {
        return Ok(B(match f {
            G::And => x && y,
            G::Or => x || y,
            G::Not => !x,
            G::Eq => x == y,
            G::Ne => x != y,
            other => panic!("{other:?} of truth values"),
        }));
    }
    let (x, y) = (x.f(), y.f());
    Ok(match f {
        G::Add => F(x + y),
        G::Sub => F(x - y),
        G::Mul => F(x * y),
        G::Div => F(x / y),
        // Rust's `%` is exact, and has the sign of the dividend.
        G::Rem if x % y == 0.0 => F(0f64.copysign(y)),
        G::Rem if (x % y < 0.0) != (y < 0.0) => F(x % y + y),
        G::Rem => F(x % y),
        G::Pow => F(x.powf(y)),
        // Of zeros that differ in sign, the second one: neither is less.
        G::Min | G::Max if x.is_nan() || y.is_nan() => F(f64::NAN),
        G::Min => F(if x < y { x } else { y }),
        G::Max => F(if x > y { x } else { y }),
        G::Eq => B(x == y),
        G::Ne => B(x != y),
        G::Lt => B(x < y),
        G::Le => B(x <= y),
        G::Gt => B(x > y),
        G::Ge => B(x >= y),
        G::Neg => F(-x),
        G::Exp => F(x.exp()),
        G::Log => F(x.ln()),
        G::Log1p => F(x.ln_1p()),
        G::Expm1 => F(x.exp_m1()),
        G::Sqrt => F(x.sqrt()),
        G::Rsqrt => F(1.0 / x.sqrt()),
        G::Tanh => F(x.tanh()),
        G::Sigmoid => F(1.0 / (1.0 + (-x).exp())),
        G::Relu => F(if x.is_nan() { x } else { x.max(0.0) }),
        G::Gelu => F(if x == f64::NEG_INFINITY {
            0.0
        } else {
            0.5 * x * libm::erfc(-x / 2f64.sqrt())
        }),
        G::Erf => F(libm::erf(x)),
        G::Sin => F(x.sin()),
        G::Cos => F(x.cos()),
        G::Tan => F(x.tan()),
        G::Asin => F(x.asin()),
        G::Acos => F(x.acos()),
        G::Atan => F(x.atan()),
        G::Atan2 => F(x.atan2(y)),
        G::Sinh => F(x.sinh()),
        G::Cosh => F(x.cosh()),
        G::Asinh => F(x.asinh()),
        G::Acosh => F(x.acosh()),
        G::Atanh => F(x.atanh()),
        G::Exp2 => F(x.exp2()),
        G::Log2 => F(x.log2()),
        G::Log10 => F(x.log10()),
        G::Cbrt => F(x.cbrt()),
        G::Hypot => F(x.hypot(y)),
        G::Erfc => F(1.0 - libm::erf(x)),
        G::Abs => F(x.abs()),
        G::Sign => F(if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else if x.is_nan() {
            x
        } else {
            0.0
        }),
        G::Floor => F(x.floor()),
        G::Ceil => F(x.ceil()),
        G::Round => F(x.round_ties_even()),
        G::Stop => F(x),
        other => panic!("{other:?} of floats"),
    })
}

/// Every point of a box, in row-major order.
pub fn points(ranges: &[(u64, u64)]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    for (start, n) in ranges {
        all = all
            .into_iter()
            .flat_map(|p: Vec<i64>| {
                (*start..start + n).map(move |x| {
                    let mut p = p.clone();
                    p.push(x as i64);
                    p
                })
            })
            .collect();
    }
    all
}

/// A result and the scale of its rounding errors.
pub type Scaled = (Value, f64);
/// A fault and its point.
pub type Failure = (Fault, Vec<i64>);

/// The finished results, and for each a scale that rounding errors are relative to.
pub fn interpret(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Owned],
) -> Result<Vec<Scaled>, Failure> {
    let rank = kernel.output_rank as usize;
    let mut results = vec![];
    for output in points(&ranges[..rank]) {
        let mut values = vec![];
        for reduced in points(&ranges[rank..]) {
            let point: Vec<i64> = output.iter().chain(&reduced).copied().collect();
            let fail = |fault| (fault, point.clone());
            let holds = match kernel.guard {
                Some(guard) => evaluate(kernel, operands, &point, guard).map_err(fail)?.b(),
                None => true,
            };
            if holds {
                let value = evaluate(kernel, operands, &point, kernel.root).map_err(fail)?;
                let extents = kernel.indices[rank..].iter().map(|i| i.extent as i64);
                let number = reduced.iter().zip(extents);
                values.push((value, number.fold(0, |n, (at, extent)| n * extent + at)));
            }
        }
        let dtype = kernel.graph.dtype(kernel.root);
        results.push(match kernel.reduction {
            None => match values.first() {
                Some((v, _)) => (*v, v.f().abs()),
                None => (typed(dtype, I(0)), 0.0),
            },
            Some(reduction) => reduce(reduction, dtype, &values),
        });
    }
    // Other faults come first, wherever they are.
    let chooses = kernel.finish && kernel.reduction.is_some_and(Reduction::is_arg);
    let empty = results.iter().position(|(index, _)| matches!(index, I(-1)));
    match empty.filter(|_| chooses) {
        Some(at) => Err((
            Fault::NothingToChoose,
            points(&ranges[..rank]).swap_remove(at),
        )),
        None => Ok(results),
    }
}

fn reduce(reduction: Reduction, dtype: DType, values: &[(Value, i64)]) -> (Value, f64) {
    use Reduction as R;
    let scale = values.iter().map(|(v, _)| v.f().abs()).sum::<f64>();
    let float = dtype.is_float();
    let fs = || values.iter().map(|(v, _)| v.f());
    let is = || values.iter().map(|(v, _)| v.i());
    let nan = fs().any(f64::is_nan);
    let narrow = |x: i64| {
        if dtype == DType::I32 {
            I(i64::from(x as i32))
        } else {
            I(x)
        }
    };
    let (least, greatest) = match dtype {
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let value = match reduction {
        R::Sum if float => F(fs().sum()),
        R::Sum => narrow(is().fold(0, i64::wrapping_add)),
        R::Prod if float => F(fs().product()),
        R::Prod => narrow(is().fold(1, i64::wrapping_mul)),
        R::Max | R::Min | R::NormInf if float && nan => F(f64::NAN),
        R::Max if float => F(fs().fold(f64::NEG_INFINITY, f64::max)),
        R::Min if float => F(fs().fold(f64::INFINITY, f64::min)),
        R::Max => I(is().fold(least, i64::max)),
        R::Min => I(is().fold(greatest, i64::min)),
        R::Mean => F(fs().sum::<f64>() / values.len() as f64),
        R::Any => B(values.iter().any(|(v, _)| v.b())),
        R::All => B(values.iter().all(|(v, _)| v.b())),
        R::ArgMax | R::ArgMin => {
            let mut best: Option<(f64, i64, i64)> = None;
            for (v, at) in values {
                let (x, n) = (v.f(), v.i());
                let better = best.is_none_or(|(b, m, _)| {
                    if float {
                        !b.is_nan()
                            && (x.is_nan() || if reduction == R::ArgMax { x > b } else { x < b })
                    } else if reduction == R::ArgMax {
                        n > m
                    } else {
                        n < m
                    }
                });
                if better {
                    best = Some((x, n, *at));
                }
            }
            I(best.map_or(-1, |(_, _, at)| at))
        }
        R::LogSumExp => {
            let top = fs().fold(f64::NEG_INFINITY, f64::max);
            F(if nan {
                f64::NAN
            } else if top.is_infinite() {
                top
            } else {
                top + fs().map(|x| (x - top).exp()).sum::<f64>().ln()
            })
        }
        R::Norm => F(fs().map(|x| x * x).sum::<f64>().sqrt()),
        R::Norm1 if float => F(fs().map(f64::abs).sum()),
        R::Norm1 => narrow(is().fold(0, |s, x| s.wrapping_add(x.wrapping_abs()))),
        R::NormInf if float => F(fs().map(f64::abs).fold(0.0, f64::max)),
        R::NormInf if dtype == DType::I32 => {
            let wrapped = is().map(|x| i64::from((x as i32).wrapping_abs()));
            I(wrapped.fold(0, i64::max))
        }
        R::NormInf => I(is().map(i64::wrapping_abs).fold(0, i64::max)),
    };
    (value, scale)
}

/// Whether two results agree up to rounding in the stored type.
pub fn close(dtype: DType, got: f64, want: f64, scale: f64) -> bool {
    let stored = match dtype {
        DType::F16 => f16::from_f64(want).to_f64(),
        DType::BF16 => bf16::from_f64(want).to_f64(),
        DType::F32 => f64::from(want as f32),
        _ => want,
    };
    if got == stored || (got.is_nan() && stored.is_nan()) {
        return true;
    }
    let unit = match dtype {
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        DType::F32 => 3e-6,
        DType::F64 => 1e-12,
        _ => return false,
    };
    (got - stored).abs() <= unit * (scale.max(want.abs()) + 1e-3)
}

/// Runs a kernel at these ranges with and without compiled groups, and compares the results with the definition's.
pub fn check(kernel: &Kernel, ranges: &[(u64, u64)], owned: &[Owned]) {
    let wanted = interpret(kernel, ranges, owned);
    let wanted = wanted.unwrap_or_else(|error| panic!("{kernel}: {error:?}"));
    for fusion in [Fusion::Never, Fusion::Always] {
        let options = Options {
            fusion,
            ..Options::default()
        };
        let found = run(kernel, ranges, &chunks(owned), &options);
        let found = found.unwrap_or_else(|error| panic!("{kernel}: {error:?}"));
        let found = found[0].data();
        assert_eq!(found.len(), wanted.len(), "{kernel}");
        for (at, (value, scale)) in wanted.iter().enumerate() {
            let (got, want) = (found.get(at).as_f64(), value.f());
            assert!(
                close(kernel.output[0], got, want, *scale),
                "{kernel} over {ranges:?}: {got} for {want} at {at}"
            );
        }
    }
}

/// An array filled by `f(element number)`.
pub fn array(dtype: DType, shape: &[usize], mut f: impl FnMut(usize) -> f64) -> Array {
    let n: usize = shape.iter().product();
    let mut v = || (0..n).map(&mut f).collect::<Vec<f64>>();
    let data = match dtype {
        DType::F16 => Data::F16(v().into_iter().map(f16::from_f64).collect()),
        DType::BF16 => Data::BF16(v().into_iter().map(bf16::from_f64).collect()),
        DType::F32 => Data::F32(v().into_iter().map(|x| x as f32).collect()),
        DType::F64 => Data::F64(v()),
        DType::U8 => Data::U8(v().into_iter().map(|x| x.abs() as u8).collect()),
        DType::U16 => Data::U16(v().into_iter().map(|x| x as i64 as u16).collect()),
        DType::U32 => Data::U32(v().into_iter().map(|x| x as i64 as u32).collect()),
        DType::U64 => Data::U64(v().into_iter().map(|x| x as i64 as u64).collect()),
        DType::I8 => Data::I8(v().into_iter().map(|x| x as i64 as i8).collect()),
        DType::I16 => Data::I16(v().into_iter().map(|x| x as i64 as i16).collect()),
        DType::I32 => Data::I32(v().into_iter().map(|x| x as i32).collect()),
        DType::I64 => Data::I64(v().into_iter().map(|x| x as i64).collect()),
        DType::Bool => Data::Bool(v().into_iter().map(|x| u8::from(x > 0.0)).collect()),
        DType::C64 | DType::C128 => unreachable!("no type of arrays"),
    };
    Array::new(shape.to_vec(), data).expect("as many as the shape says")
}
