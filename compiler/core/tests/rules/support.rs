//! Programs from text, inputs, comparison.

use ein_plan::{DType, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Program, Tensor, parse::parse, verify::verify};
use einc_core::pipeline::{Compiled, Options, compile};
use einc_core::rules::{self, Expand, Logic, LogicOptions};

pub fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()), "{text}");
    program
}

/// The plan of a program on that many sites, and what it transfers.
pub fn compiled(program: &str, sites: u32) -> Compiled {
    let program = parse(program).unwrap();
    compile(&program, &Options::new(sites), &|| false).unwrap()
}

/// A program of a text with the reads of all tables in another form; nothing if it has none.
pub fn expanded(text: &str, expand: Expand) -> (Program, Option<Program>) {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let program = program.needed();
    assert_eq!(verify(&program), Ok(()), "{text}");
    let found = expand(&program, &[], &|_| true).map(|found| found.program);
    if let Some(found) = &found {
        assert_eq!(verify(found), Ok(()), "{found}");
    }
    (program, found)
}

/// Rewrites with some rules disabled.
pub fn rewrite_without(program: &Program, disabled: &[&str]) -> Logic {
    let disabled: Vec<String> = disabled.iter().map(|d| d.to_string()).collect();
    rules::rewrite(
        program,
        &LogicOptions {
            disabled: &disabled,
            node_limit: 50_000,
            candidates: 3,
            deadline: &|| false,
        },
    )
}

pub fn rewrite(program: &Program) -> Logic {
    rewrite_without(program, &[])
}

/// What the values of sources are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Small, and no two alike.
    Finite,
    /// Some are infinite or NaN.
    Wild,
}

/// Values of a source, from its name and a seed.
pub fn values(tensor: &Tensor, seed: u64, kind: Kind) -> Values {
    let mut state = tensor
        .name
        .bytes()
        .fold(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, |n, b| {
            (n ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3)
        });
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    let count: u64 = tensor.shape.iter().product();
    let data = (0..count).map(|_| {
        let n = next();
        match tensor.dtype {
            DType::Bool => Scalar::Bool(n % 2 == 1),
            // Large integers: sums and products wrap.
            DType::I32 => Scalar::Int(i64::from(n as i32)),
            DType::I64 => Scalar::Int((n << 30) as i64),
            DType::U8 => Scalar::Int((n % 256) as i64),
            DType::U16 => Scalar::Int(i64::from(n as u16)),
            DType::U32 => Scalar::Int(i64::from(n as u32)),
            DType::I8 => Scalar::Int(i64::from(n as i8)),
            DType::I16 => Scalar::Int(i64::from(n as i16)),
            _ if kind == Kind::Wild && n % 5 == 0 => {
                let wild = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0];
                Scalar::Float(wild[(n / 5 % 4) as usize])
            }
            _ => Scalar::Float((n % 33) as f64 / 8.0 - 2.0),
        }
    });
    Values {
        shape: tensor.shape.clone(),
        data: data.collect(),
    }
}

/// Runs two programs on the same inputs; the first difference, with `exact` also in which value is not finite.
pub fn difference(a: &Program, b: &Program, seed: u64, kind: Kind, exact: bool) -> Option<String> {
    let input = |tensor: &Tensor| values(tensor, seed, kind);
    let (left, right) = match (interpret(a, &input), interpret(b, &input)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(_), Err(_)) => return None,
        (left, right) => return Some(format!("{left:?} but {right:?}")),
    };
    for (at, (x, y)) in left.iter().zip(&right).enumerate() {
        if x.shape != y.shape {
            return Some(format!("output {at}: {:?} but {:?}", x.shape, y.shape));
        }
        // Rounding is in proportion to what was added up, not to what is left of it.
        let largest = x.data.iter().map(|v| v.as_f64().abs());
        let largest = largest.filter(|v| v.is_finite()).fold(1.0, f64::max);
        let tolerance = match a.tensor(a.outputs[at].tensor).dtype {
            DType::F64 => 1e-9,
            DType::F32 => 1e-4,
            _ => 5e-2,
        };
        for (n, (v, w)) in x.data.iter().zip(&y.data).enumerate() {
            let same = match (v, w) {
                (Scalar::Float(v), Scalar::Float(w)) => {
                    let near = (v - w).abs() <= tolerance * largest;
                    let wild = !v.is_finite() && !w.is_finite();
                    near || v == w || wild && (!exact || v.is_nan() == w.is_nan())
                }
                (v, w) => v == w,
            };
            if !same {
                return Some(format!("output {at}, element {n}: {v:?} but {w:?}"));
            }
        }
    }
    None
}

/// Rewrites with these rules alone, and gives many programs.
pub fn rewrite_only(program: &Program, enabled: &[&str]) -> Logic {
    let others = rules::logic().into_iter().map(|row| row.name.to_string());
    let disabled: Vec<String> = others.filter(|n| !enabled.contains(&n.as_str())).collect();
    rules::rewrite(
        program,
        &LogicOptions {
            disabled: &disabled,
            node_limit: 5_000,
            candidates: 20,
            deadline: &|| false,
        },
    )
}
