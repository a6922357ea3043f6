//! Gradients of whole programs, by central differences and by gradients that are written out.
//!
//! A file under `cases/` holds programs between lines `// ----`. Every program defines `loss`; its gradient by each of
//! its f64 inputs is compared with differences of the interpreted loss, and with `hand_x` where the program defines it
//! (the gradient by `x`, written out). A line `// x: 1 2 3` gives the values of an input, `// kinks: x` says that
//! differences make no sense for it.

#![allow(clippy::unwrap_used)]

mod directional;
mod functions;
mod points;
mod programs;
mod random;
mod rounds;
mod rules;
mod step;

use ein_plan::{DType, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Definition, Program, Tensor, verify::verify};
use einc_core::pipeline::{Options, compile};
use einc_core::sema::{self, Analysis, Bindings, SourceFile, Sources};
use einc_core::{ia, tra};
use einc_diag::FileId;
use std::collections::BTreeMap;

/// The program of a text that has no errors.
fn analysis(text: &str) -> Analysis {
    let parsed = einc_syntax::parse(FileId(0), text);
    assert!(
        parsed.diagnostics.is_empty(),
        "{:?}\n{text}",
        parsed.diagnostics
    );
    let file = SourceFile {
        name: "case.ein".into(),
        text: text.into(),
        ast: parsed.ast,
    };
    let mut sources = Sources {
        files: vec![file],
        ..Sources::default()
    };
    if text.contains("use std.nn") {
        let library = include_str!("../../../../stdlib/nn.ein");
        sources.files.push(SourceFile {
            name: "std.nn".into(),
            text: library.into(),
            ast: einc_syntax::parse(FileId(1), library).ast,
        });
        sources.libraries.insert("std.nn".to_owned(), FileId(1));
    }
    let bindings = Bindings {
        require_sizes: true,
        ..Bindings::default()
    };
    sema::check(&sources, &bindings)
}

fn program(text: &str) -> Program {
    let analysis = analysis(text);
    let Some(program) = analysis.program else {
        panic!("{:#?}\n{text}", analysis.diagnostics);
    };
    assert_eq!(verify(&program), Ok(()), "{program}");
    program
}

type Inputs = BTreeMap<String, Vec<f64>>;

/// Values for the inputs of a text: those that it gives, else numbers without pattern between -1.5 and 1.5.
fn inputs(text: &str, program: &Program) -> Inputs {
    let mut inputs = Inputs::new();
    for tensor in &program.tensors {
        if !matches!(tensor.definition, Definition::Source(_)) {
            continue;
        }
        let given = text.lines().find_map(|line| {
            let (name, values) = line.strip_prefix("// ")?.split_once(": ")?;
            (name == tensor.name).then(|| values.split_whitespace().map(|v| v.parse().unwrap()))
        });
        let count = tensor.shape.iter().product::<u64>();
        let mut state = tensor.name.bytes().fold(7u64, |n, b| n * 31 + u64::from(b));
        let values = match given {
            Some(values) => values.collect(),
            None => (0..count)
                .map(|_| {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (state >> 33) as f64 / f64::from(1u32 << 31) * 3.0 - 1.5
                })
                .collect(),
        };
        let values: Vec<f64> = values;
        assert_eq!(values.len() as u64, count, "{} in\n{text}", tensor.name);
        inputs.insert(tensor.name.clone(), values);
    }
    inputs
}

fn values(tensor: &Tensor, inputs: &Inputs) -> Values {
    let value = |x: &f64| match tensor.dtype {
        dtype if dtype.is_float() => Scalar::Float(*x),
        DType::Bool => Scalar::Bool(*x != 0.0),
        _ => Scalar::Int(*x as i64),
    };
    Values {
        shape: tensor.shape.clone(),
        data: inputs[&tensor.name].iter().map(value).collect(),
    }
}

/// The outputs of a program as numbers.
fn run(program: &Program, inputs: &Inputs) -> Vec<Vec<f64>> {
    let found = interpret(program, &|tensor| values(tensor, inputs))
        .unwrap_or_else(|fault| panic!("{fault:?}\n{program}"));
    let numbers = |values: Values| values.data.iter().map(|x| x.as_f64()).collect();
    found.into_iter().map(numbers).collect()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// The gradient of the first output by one input, by central differences.
fn differences(loss: &Program, inputs: &Inputs, by: &str) -> Vec<f64> {
    let at = |number: usize, step: f64| {
        let mut inputs = inputs.clone();
        inputs.get_mut(by).unwrap()[number] += step;
        run(loss, &inputs)[0][0]
    };
    let slope = |number: usize| {
        let step = 1e-5;
        // Two steps, so that the error is of fourth order.
        let one = (at(number, step) - at(number, -step)) / (2.0 * step);
        let two = (at(number, 2.0 * step) - at(number, -2.0 * step)) / (4.0 * step);
        (4.0 * one - two) / 3.0
    };
    (0..inputs[by].len()).map(slope).collect()
}

/// Checks one case; see above. Gives the program with all gradients.
fn check(text: &str) -> Program {
    let loss = program(&format!("{text}\noutput loss\n"));
    let kinks: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("// kinks: "))
        .flat_map(str::split_whitespace)
        .collect();
    let mut all = text.to_owned();
    let mut wrt = vec![];
    for line in text.lines() {
        let declared = line.strip_prefix("input ").or(line.strip_prefix("param "));
        if let Some((name, ty)) = declared.and_then(|rest| rest.split_once(':'))
            && ["f64", "f32", "f16", "bf16"]
                .iter()
                .any(|float| ty.trim().starts_with(float))
        {
            all += &format!("\ngradient_{name} = grad(loss, {name})\noutput gradient_{name}");
            wrt.push(name);
        }
    }
    for name in &wrt {
        if text.contains(&format!("hand_{name}")) {
            all += &format!("\noutput hand_{name}");
        }
    }
    let all = program(&(all + "\n"));
    let inputs = inputs(text, &all);
    let found = run(&all, &inputs);
    let mut hands = wrt.len()..;
    for (name, gradient) in wrt.iter().zip(&found) {
        let mut expected = vec![];
        if !kinks.contains(name) {
            // Inputs that the loss reads but no gradient does have values of their own.
            let inputs = inputs_of(text, &loss, &inputs);
            let read = loss.tensors.iter().any(|tensor| tensor.name == *name);
            expected.push(match read {
                true => (differences(&loss, &inputs, name), 1e-7),
                false => (vec![0.0; gradient.len()], 0.0),
            });
        }
        if text.contains(&format!("hand_{name}")) {
            expected.push((found[hands.next().unwrap()].clone(), 1e-12));
        }
        assert!(
            !expected.is_empty(),
            "nothing to compare `{name}` with in\n{text}"
        );
        for (expected, tolerance) in expected {
            let same = expected.len() == gradient.len()
                && expected
                    .iter()
                    .zip(gradient)
                    .all(|(a, b)| close(*a, *b, tolerance));
            assert!(
                same,
                "by {name}: {gradient:?}\nexpected {expected:?}\n{text}\n{all}"
            );
        }
    }
    on_two_sites(&all, &inputs, &found);
    all
}

fn inputs_of(text: &str, program: &Program, known: &Inputs) -> Inputs {
    let mut inputs = inputs(text, program);
    inputs.extend(known.clone());
    inputs
}

/// The passes below take the program and give the same.
fn on_two_sites(program: &Program, inputs: &Inputs, expected: &[Vec<f64>]) {
    let options = Options::new(2);
    let compiled =
        compile(program, &options, &|| false).unwrap_or_else(|e| panic!("{e:?}\n{program}"));
    let chunk = |name: &str| {
        let tensor = program.tensors.iter().find(|t| t.name == name).unwrap();
        let values = values(tensor, inputs);
        tra::chunk::Chunk {
            shape: values.shape,
            columns: vec![values.data],
        }
    };
    let found = ia::interpret::interpret(&compiled.ia, &chunk).unwrap();
    for (expected, mut found) in expected.iter().zip(found) {
        let found: Vec<f64> = found.columns.remove(0).iter().map(|x| x.as_f64()).collect();
        let same = expected
            .iter()
            .zip(&found)
            .all(|(a, b)| close(*a, *b, 1e-9));
        assert!(same, "{found:?}\nexpected {expected:?}\n{program}");
    }
}
