//! The Einstein IR: its text, its verifier, its interpreter, and random programs through the passes below it.
#![allow(clippy::unwrap_used)]

use ein_plan::{DType, Function, Plan, Scalar};
use einc_core::einsum::interpret::{Fault, Values, interpret};
use einc_core::einsum::{Program, parse::parse, random, scalar::apply, verify::verify};
use einc_core::pipeline::{Options, compile};
use einc_core::{ia, tra};

fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()), "{text}");
    program
}

#[test]
fn programs_print_as_they_are_written() {
    for text in [
        r#"files "model.ein", "layers.ein"
input A: f32[4, 6] = load("a.npy")   // model.ein:1
param B: f16[6, 8] = normal(0.0, 0.02)   // model.ein:2
C: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]   // model.ein:5
hidden nn.softmax.2.m: f32[4] = [i: 4 | j: 8] max C[i, j] if j <= i   // layers.ein:7
s: bf16[] = [| i: 4] norm exp(nn.softmax.2.m[i]) - 1.0
output C -> "c.npy"   // model.ein:6
output s
"#,
        r#"input tok: i32[5] = unbound
input output: f64[7, 3] = load("t.npz", "table")
E: f64[5, 3] = [t: 5, d: 3] output[i64(tok[t]), d] else 0.0_f64
best: i64[3] = [d: 3 | t: 5] argmax E[t, d]
"two words": bool[3] = [d: 3 | t: 5] any E[t, d] < E[best[d], d]
output E
output "two words"
"#,
        r#"x: u8[4, 4] = full(3)
d: i32[] = [| i: 4] sum let $0 = abs(x[i, i]) in where($0 == 2_i32, $0 * $0, x[i, i - 1] else -1_i32)
output d
"#,
    ] {
        assert_eq!(program(text).to_string(), text);
    }
}

#[test]
fn statements_that_print_alike_are_equal() {
    let program = program(
        "A: f32[3] = iota\nB: f32[3] = full(2.0)\n\
         C: f32[3] = [i: 3] B[i] * A[i] + B[i]\noutput C",
    );
    let mut other = program.clone();
    if let einc_core::einsum::Definition::Statement { kernel, operands } =
        &mut other.tensors[2].definition
    {
        // An operand that nothing reads, and one twice.
        operands.extend(operands.clone());
        kernel.operands.extend(kernel.operands.clone());
    }
    assert!(verify(&other).is_err());
    assert_eq!(other.to_string(), program.to_string());
    assert_eq!(other.canonical(), program);
}

#[test]
fn wrong_programs_are_named() {
    let says = |text: &str| match parse(text) {
        Ok(program) => verify(&program).unwrap_err(),
        Err(error) => error.to_string(),
    };
    let x = "x: f32[3] = unbound\n";
    for (text, message) in [
        (
            format!("{x}y: f32[3] = [i: 3] z[i]"),
            "2:20: expected a tensor or operand that is known here",
        ),
        (
            format!("{x}y: f32[3] = [i: 3] x[i, i]\noutput y"),
            "tensor `y`: node 1: operand 0 has 1 dimensions but is read at 2 positions",
        ),
        (
            format!("{x}y: f32[4] = [i: 3] x[i]\noutput y"),
            "tensor `y`: its shape is [4] but its indices run over [3]",
        ),
        (
            format!("{x}y: i64[3] = [i: 3] x[i]\noutput y"),
            "tensor `y`: the output is i64 but the value is f32",
        ),
        (
            format!("{x}y: f32[] = [| i: 3] any x[i]\noutput y"),
            "tensor `y`: `any` of f32 values",
        ),
        (
            format!("{x}y: i64[] = [| i: 3, j: 3] argmax x[i]\noutput y"),
            "tensor `y`: `argmax` reduces one index",
        ),
        (
            format!("{x}y: f32[] = [| i: 3] sum x[i] if x[i]\noutput y"),
            "tensor `y`: the guard is no truth value",
        ),
        (
            format!("{x}x: f32[] = iota\noutput x"),
            "tensor `x`: the name is used twice",
        ),
        (x.to_string(), "tensor `x`: no output needs it"),
        (
            format!("{x}y: f32[] = [| i: 3] sum x[i]\noutput y replaces x"),
            "`y` cannot replace `x`",
        ),
        (
            format!("{x}y: f32[3] = [i: 3] -x[i]\noutput x replaces w\noutput y replaces w"),
            "two outputs replace `w`",
        ),
        (
            "p: i64[2, 2] = permutation\noutput p".into(),
            "tensor `p`: a permutation has one dimension",
        ),
        (
            "p: bool[2] = full(1.0)\noutput p".into(),
            "tensor `p`: `full(1.0)` is no value of bool",
        ),
        (
            "p: f32[4294967296, 4294967296] = unbound\noutput p".into(),
            "tensor `p`: it has more elements than can be counted",
        ),
    ] {
        assert_eq!(says(&text), message, "{text}");
    }
}

/// The outputs of a program without inputs, one a line.
fn run(text: &str) -> String {
    let none = |tensor: &einc_core::einsum::Tensor| panic!("{} has no values", tensor.name);
    let lines = match interpret(&program(text), &none) {
        Ok(values) => values.iter().map(line).collect(),
        Err(Fault {
            tensor,
            kind,
            point,
        }) => {
            vec![format!("tensor {} at {point:?}: {kind:?}", tensor.0)]
        }
    };
    lines.join("\n")
}

fn line(values: &Values) -> String {
    let one = |value: &Scalar| match value {
        Scalar::Float(x) => x.to_string(),
        Scalar::Int(x) => x.to_string(),
        Scalar::Bool(x) => x.to_string(),
    };
    values.data.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// One statement over `x = 0 1 2 3 4 5`, f32.
fn over_x(statement: &str) -> String {
    // Not every statement reads x.
    let text = run(&format!(
        "x: f32[6] = iota\n{statement}\noutput y\noutput x"
    ));
    text.lines().next().unwrap_or_default().to_string()
}

/// No function is forgotten: each gives what its definition says, of every type that it accepts.
#[test]
fn the_oracle_knows_every_function_on_every_type_that_it_accepts() {
    use Function::*;
    let float = |function: Function, a: f64, b: f64| -> f64 {
        match function {
            Add => a + b,
            Sub => a - b,
            Mul => a * b,
            Div => a / b,
            FloorDiv => (a / b).floor(),
            Rem => a - b * (a / b).floor(),
            Pow => a.powf(b),
            Min => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            Max => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            Neg => -a,
            Exp => a.exp(),
            Log => a.ln(),
            Log1p => (1.0 + a).ln(),
            Expm1 => a.exp() - 1.0,
            Sqrt => a.sqrt(),
            Rsqrt => a.sqrt().recip(),
            Tanh => (a.exp() - (-a).exp()) / (a.exp() + (-a).exp()),
            Sigmoid => a.exp() / (a.exp() + 1.0),
            Relu => a,
            // Of 2.5 and 1.25, from a table of the error function.
            Gelu => {
                a * (1.0
                    + if a == 2.5 {
                        0.987_580_669
                    } else {
                        0.788_700_453
                    })
                    / 2.0
            }
            Erf => {
                if a == 2.5 {
                    0.999_593_048
                } else {
                    0.922_900_128
                }
            }
            Sin => a.sin(),
            Cos => a.cos(),
            Tan => a.sin() / a.cos(),
            // 2.5 is outside; values inside are below.
            Asin | Acos | Atanh | Erfinv => f64::NAN,
            Atan => 1.190_289_949_682_531_7,
            Atan2 => 1.107_148_717_794_090_4,
            Sinh => (a.exp() - (-a).exp()) / 2.0,
            Cosh => (a.exp() + (-a).exp()) / 2.0,
            Asinh => (a + (a * a + 1.0).sqrt()).ln(),
            Acosh => (a + (a * a - 1.0).sqrt()).ln(),
            Exp2 => (a * 2f64.ln()).exp(),
            Log2 => a.ln() / 2f64.ln(),
            Log10 => a.ln() / 10f64.ln(),
            Cbrt => (a.ln() / 3.0).exp(),
            Hypot => (a * a + b * b).sqrt(),
            // Tables of Abramowitz and Stegun: erfc(2.5), log of the gamma function at 2.5.
            Erfc => 0.000_406_952_017,
            Lgamma => 0.284_682_870_5,
            Abs => {
                if a < 0.0 {
                    -a
                } else {
                    a
                }
            }
            Sign => 1.0,
            Floor => {
                if a == 2.5 {
                    2.0
                } else {
                    1.0
                }
            }
            Ceil => {
                if a == 2.5 {
                    3.0
                } else {
                    2.0
                }
            }
            Round => {
                if a == 2.5 {
                    2.0
                } else {
                    1.0
                }
            }
            Stop => a,
            // Of 3 and 2.
            BitAnd => 2.0,
            BitOr => 3.0,
            BitXor => 1.0,
            ShiftLeft => 12.0,
            ShiftRight => 0.0,
            Popcount => 2.0,
            other => panic!("{} has no values here", other.name()),
        }
    };
    let elsewhere = |f: &Function| f.is_library() || matches!(f, Polygamma | Nextafter | Within);
    for function in Function::ALL.iter().copied().filter(|f| !elsewhere(f)) {
        for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool] {
            let mut types = vec![dtype; function.arity()];
            if function == Select {
                types[0] = DType::Bool;
            }
            let Ok(result) = function.result(&types) else {
                continue;
            };
            let value = |number: f64| match dtype {
                DType::Bool => Scalar::Bool(number > 2.0),
                DType::I32 | DType::I64 => Scalar::Int(number as i64 + 1),
                _ => Scalar::Float(number),
            };
            let mut arguments = vec![value(2.5), value(1.25), value(1.25)];
            if function == Select {
                arguments = vec![Scalar::Bool(true), value(2.5), value(1.25)];
            }
            let found = apply(function, &arguments[..function.arity()], dtype).unwrap();
            let kind = match found {
                Scalar::Bool(_) => result == DType::Bool,
                Scalar::Int(_) => result.is_integer(),
                Scalar::Float(_) => result.is_float(),
            };
            let what = format!("{} of {dtype}: {found:?}", function.name());
            assert!(kind, "{what}");
            // 3 and 2 as whole numbers.
            let (a, b) = match dtype.is_float() {
                true => (2.5, 1.25),
                false => (3.0, 2.0),
            };
            match function {
                Select => assert_eq!(found, value(2.5), "{what}"),
                Eq | Lt | Le | And | Not => assert_eq!(found, Scalar::Bool(false), "{what}"),
                Ne | Gt | Ge | Or => assert_eq!(found, Scalar::Bool(true), "{what}"),
                Stop => assert_eq!(found, arguments[0], "{what}"),
                Floor | Ceil | Round | Abs | Relu if dtype.is_integer() => {
                    assert_eq!(found, arguments[0], "{what}");
                }
                _ => {
                    let (found, expected) = (found.as_f64(), float(function, a, b));
                    let is_near = (found - expected).abs() < 1e-8;
                    assert!(
                        is_near || found.is_nan() && expected.is_nan(),
                        "{what}, not {expected}"
                    );
                }
            }
        }
    }
}

/// Values by mpmath of what the test above has no place for.
#[test]
fn the_oracle_knows_special_functions() {
    use Function::*;
    let known: [(Function, &[f64], f64); 12] = [
        (Asin, &[0.5], std::f64::consts::FRAC_PI_6),
        (Acos, &[0.5], std::f64::consts::FRAC_PI_3),
        (Atanh, &[0.5], 0.549_306_144_334_055),
        (Erfinv, &[0.5], 0.476_936_276_204_47),
        (Erfinv, &[-0.99], -1.821_386_367_718_45),
        (Erfc, &[3.0], 2.209_049_699_858_54e-5),
        (Lgamma, &[0.3], 1.095_797_994_818_08),
        (Lgamma, &[-2.5], -0.056_243_716_497_674),
        (Polygamma, &[0.0, 2.5], 0.703_156_640_645_243),
        (Polygamma, &[0.0, -1.25], 3.714_139_120_213_53),
        (Polygamma, &[1.0, 1.25], 1.197_329_154_507_11),
        (Polygamma, &[2.0, -0.5], -0.828_796_644_234_32),
    ];
    for (function, arguments, expected) in known {
        let arguments: Vec<Scalar> = arguments.iter().map(|x| Scalar::Float(*x)).collect();
        let found = apply(function, &arguments, DType::F64).unwrap().as_f64();
        let error = (found - expected).abs() / expected.abs();
        assert!(
            error < 1e-9,
            "{} of {arguments:?}: {found}, not {expected}",
            function.name()
        );
    }
    let next = |dtype| apply(Nextafter, &[Scalar::Float(1.0), Scalar::Float(0.0)], dtype);
    let below = |size: f64| Ok(Scalar::Float(1.0 - size / 2.0));
    assert_eq!(next(DType::F64), below(f64::EPSILON));
    assert_eq!(next(DType::F32), below(f64::from(f32::EPSILON)));
}

#[test]
fn reductions_are_computed_by_their_definition() {
    for (statement, expected) in [
        ("y: f32[] = [| i: 6] sum x[i]", "15"),
        ("y: f32[] = [| i: 6] prod x[i] if i > 0", "120"),
        ("y: f32[] = [| i: 6] mean x[i]", "2.5"),
        ("y: f32[] = [| i: 6] mean x[i] if x[i] > 9.0", "NaN"),
        ("y: f32[] = [| i: 6] norm x[i] if i == 0", "0"),
        ("y: f32[] = [| i: 6] norm x[i] if abs(i - 3) < 2", "5.38516"),
        ("y: f32[] = [| i: 6] norm1 -x[i]", "15"),
        ("y: f32[] = [| i: 6] norminf -x[i]", "5"),
        ("y: f32[] = [| i: 6] max x[i] if i < 0", "-inf"),
        ("y: f32[] = [| i: 6] min x[i] if i < 0", "inf"),
        ("y: f32[] = [| i: 6] logsumexp x[i] if i < 0", "-inf"),
        (
            "y: f32[] = [| i: 6] logsumexp x[i] * 0.0 + 1000.0",
            "1001.7917",
        ),
        ("y: i64[] = [| i: 6] argmax abs(x[i] - 2.5)", "0"),
        ("y: i64[] = [| i: 6] argmin abs(x[i] - 2.5)", "2"),
        ("y: i64[] = [| i: 6] argmax where(i == 3, nan, x[i])", "3"),
        ("y: f32[] = [| i: 6] min where(i == 3, nan, x[i])", "NaN"),
        ("y: bool[] = [| i: 6] any x[i] == 3.0", "true"),
        ("y: bool[] = [| i: 6] all x[i] == 3.0 if i < 0", "true"),
        ("y: i32[] = [| i: 6] max i32(x[i]) if i < 0", "-2147483648"),
        (
            "y: i32[] = [| i: 6] sum i32(x[i]) * 1000000000_i32",
            "2115098112",
        ),
    ] {
        let found = over_x(statement);
        let close = match (found.parse::<f64>(), expected.parse::<f64>()) {
            (Ok(a), Ok(b)) => a == b || (a - b).abs() < 1e-4 || a.is_nan() && b.is_nan(),
            _ => found == expected,
        };
        assert!(close, "{statement}\n{found} is not {expected}");
    }
}

#[test]
fn only_what_a_point_needs_is_read() {
    assert_eq!(
        over_x("y: f32[6] = [i: 6] x[i + 1] else (-x[i])"),
        "1 2 3 4 5 -5"
    );
    assert_eq!(
        over_x("y: f32[6] = [i: 6] where(i < 5, x[i + 1], 0.5)"),
        "1 2 3 4 5 0.5"
    );
    assert_eq!(
        over_x("y: f32[3] = [i: 3 | k: 9] sum x[k + i] if k + i < 6"),
        "15 15 14"
    );
    assert_eq!(
        over_x("y: f32[6] = [i: 6] x[i + 1]"),
        "tensor 1 at [5]: OutOfRange { operand: 0, dimension: 0, position: 6, extent: 6 }"
    );
    assert_eq!(
        over_x("y: i64[6] = [i: 6] floordiv(7, i - 2)"),
        "tensor 1 at [2]: DivisionByZero"
    );
    assert_eq!(
        over_x("y: i64[2, 3] = [i: 2, j: 3] pow(2, j - 1)"),
        "tensor 1 at [0, 0]: NegativePower"
    );
    assert_eq!(
        over_x("y: i64[4] = [i: 4] within(i, 3)"),
        "tensor 1 at [3]: NotWithin { position: 3, extent: 3 }"
    );
    assert_eq!(
        over_x("y: i64[2] = [i: 2 | k: 0] argmax x[k]"),
        "tensor 1 at [0]: NothingToChoose"
    );
    assert_eq!(over_x("y: i64[0] = [i: 0 | k: 0] argmax x[k]"), "");
}

#[test]
fn values_are_rounded_where_they_are_stored() {
    assert_eq!(over_x("y: f16[] = [] 2049.0"), "2048");
    assert_eq!(over_x("y: bf16[] = [] 257.0"), "256");
    assert_eq!(over_x("y: f32[] = [] 16777217.0"), "16777216");
    assert_eq!(over_x("y: u8[2] = [i: 2] 255_i32 + i32(i)"), "255 0");
    assert_eq!(
        over_x("y: i32[3] = [i: 3] i32(x[i] * -1e10)"),
        "0 -2147483648 -2147483648"
    );
    assert_eq!(
        over_x("y: i64[3] = [i: 3] rem(i - 1, -3) + 10 * floordiv(i - 1, 2)"),
        "-11 0 -2"
    );
}

/// A chunk of one column as values.
fn values(chunks: Vec<tra::chunk::Chunk>) -> Vec<Values> {
    let one = |mut chunk: tra::chunk::Chunk| Values {
        shape: chunk.shape,
        data: chunk.columns.remove(0),
    };
    chunks.into_iter().map(one).collect()
}

#[test]
fn random_programs_keep_their_meaning_on_one_to_five_sites() {
    for seed in 0..60 {
        let case = random::case(seed);
        let text = case.program.to_string();
        let expected = interpret(&case.program, &|tensor| case.input(tensor)).unwrap();
        let input = |name: &str| tra::chunk::Chunk {
            shape: case.inputs[name].shape.clone(),
            columns: vec![case.inputs[name].data.clone()],
        };
        let agree = |found: Vec<Values>, what: &str| {
            for (output, (expected, found)) in expected.iter().zip(&found).enumerate() {
                if let Err(why) = case.compare(output, expected, found) {
                    panic!("seed {seed}, {what}, output {output}: {why}\n{text}");
                }
            }
        };
        for sites in 1..=5 {
            let deterministic = seed % 2 == 0;
            let options = Options {
                sites,
                deterministic,
                ..Options::new(1)
            };
            let compiled = compile(&case.program, &options, &|| false)
                .unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}\n{text}"));
            let by_tra = tra::interpret::interpret(&compiled.tra, &input).unwrap();
            agree(values(by_tra), &format!("TRA for {sites} sites"));
            let by_ia = ia::interpret::interpret(&compiled.ia, &input).unwrap();
            agree(values(by_ia), &format!("IA on {sites} sites"));
            let printed = compiled.plan.to_string();
            assert_eq!(
                printed.parse::<Plan>(),
                Ok(compiled.plan),
                "seed {seed}\n{printed}"
            );
        }
    }
}

#[test]
fn random_programs_have_every_element_type() {
    let types = (0..60).flat_map(|seed| random::case(seed).program.tensors);
    let types: Vec<DType> = types.map(|tensor| tensor.dtype).collect();
    assert!(DType::ALL.iter().all(|dtype| types.contains(dtype)));
}
