//! Statements that move out of the steps of a training: text of the steps, then of the constants and the steps.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_plan::source::FileRef;
use ein_plan::training::{Carried, CarriedKind, TrainBlock, Training};
use ein_plan::{DType, Source};
use einc_core::einsum::{Program, parse::parse, verify::verify};
use einc_core::hoist::hoisted;
use std::fmt::Write as _;

/// A training of these steps, which carries inputs `A` and `x` of a file and params `w` and `v`.
fn training(steps: &[&str]) -> Training<Program> {
    let mut block = TrainBlock::named("train.1".into());
    for (rows, step) in (1..).zip(steps) {
        let step = parse(step).unwrap_or_else(|error| panic!("{error}\n{step}"));
        block.step.insert(rows, step.needed());
    }
    let carried = |name: &str, kind, shape: &[u64]| {
        let file = FileRef {
            path: format!("{name}.npy"),
            key: None,
        };
        let about = Carried {
            kind,
            begin: Source::Load(file),
            dtype: DType::F32,
            shape: shape.to_vec(),
            complex: false,
        };
        (name.to_owned(), about)
    };
    Training {
        blocks: vec![block],
        carried: [
            carried("A", CarriedKind::Input, &[3000, 2000]),
            carried("x", CarriedKind::Input, &[2000]),
            carried("w", CarriedKind::Param, &[3000]),
            carried("v", CarriedKind::Param, &[2000]),
        ]
        .into(),
        ..Training::default()
    }
}

/// The text of the programs of a training after the pass, and the names of what is carried.
fn text_after(training: Training<Program>) -> String {
    let training = hoisted(training);
    let mut text = String::new();
    for program in training.programs() {
        verify(program).unwrap();
        writeln!(text, "{}", program.to_string().trim_end()).unwrap();
        writeln!(text, "--").unwrap();
    }
    let names: Vec<&str> = training.carried.keys().map(String::as_str).collect();
    text + &names.join(" ")
}

#[test]
fn sums_of_data_are_computed_once() {
    let step = "input A: f32[3000, 2000] = kept\ninput x: f32[2000] = kept\nparam w: f32[3000] = fed\n\
        degree: f32[3000] = [i: 3000 | j: 2000] sum A[i, j]\nl: f32[] = [| i: 3000] sum w[i] / degree[i]\n\
        w_next: f32[3000] = [i: 3000] w[i] - 1.0 / degree[i]\noutput l\noutput w_next";
    insta::assert_snapshot!(text_after(training(&[step])), @r#"
    input A: f32[3000, 2000] = load("A.npy")
    degree: f32[3000] = [i: 3000 | j: 2000] sum A[i, j]
    output degree
    --
    param w: f32[3000] = fed
    input degree: f32[3000] = kept
    l: f32[] = [| i: 3000] sum w[i] / degree[i]
    w_next: f32[3000] = [i: 3000] w[i] - 1.0 / degree[i]
    output l
    output w_next
    --
    degree v w
    "#);
}

#[test]
fn programs_share_constants_and_different_ones_get_names() {
    let step = |size: &str| {
        format!(
            "input A: f32[3000, 2000] = kept\nparam w: f32[3000] = fed\n\
            hidden y.1: f32[3000] = [i: 3000 | j: 2000] {size}\nhidden y.2: f32[3000] = [i: 3000 | j: 2000] max A[i, j]\n\
            l: f32[] = [| i: 3000] sum w[i] / y.1[i] + y.2[i]\noutput l"
        )
    };
    let steps = [step("sum A[i, j]"), step("norm A[i, j]")];
    insta::assert_snapshot!(text_after(training(&[&steps[0], &steps[1]])), @r#"
    input A: f32[3000, 2000] = load("A.npy")
    hidden y.1: f32[3000] = [i: 3000 | j: 2000] sum A[i, j]
    hidden y.2: f32[3000] = [i: 3000 | j: 2000] max A[i, j]
    hidden y.1.1: f32[3000] = [i: 3000 | j: 2000] norm A[i, j]
    output y.1
    output y.2
    output y.1.1
    --
    param w: f32[3000] = fed
    input y.1: f32[3000] = kept
    input y.2: f32[3000] = kept
    l: f32[] = [| i: 3000] sum w[i] / y.1[i] + y.2[i]
    output l
    --
    param w: f32[3000] = fed
    input y.1.1: f32[3000] = kept
    input y.2: f32[3000] = kept
    l: f32[] = [| i: 3000] sum w[i] / y.1.1[i] + y.2[i]
    output l
    --
    v w y.1 y.1.1 y.2
    "#);
}

#[test]
fn formulas_move_where_they_take_the_place_of_their_data() {
    // `P` takes the place of `A`. `both` is as large as `x`, which the step reads itself.
    let step = "input A: f32[3000, 2000] = kept\ninput x: f32[2000] = kept\nparam w: f32[3000] = fed\n\
        degree: f32[3000] = [i: 3000 | j: 2000] sum A[i, j]\nP: f32[3000, 2000] = [i: 3000, j: 2000] A[i, j] / degree[i]\n\
        both: f32[2000] = [j: 2000] x[j] + 1.0\n\
        l: f32[] = [| i: 3000, j: 2000] sum w[i] * P[i, j] * x[j] * both[j]\noutput l";
    insta::assert_snapshot!(text_after(training(&[step])), @r#"
    input A: f32[3000, 2000] = load("A.npy")
    degree: f32[3000] = [i: 3000 | j: 2000] sum A[i, j]
    P: f32[3000, 2000] = [i: 3000, j: 2000] A[i, j] / degree[i]
    output P
    --
    input x: f32[2000] = kept
    param w: f32[3000] = fed
    input P: f32[3000, 2000] = kept
    both: f32[2000] = [j: 2000] x[j] + 1.0
    l: f32[] = [| i: 3000, j: 2000] sum w[i] * P[i, j] * x[j] * both[j]
    output l
    --
    P v w x
    "#);
}

#[test]
fn what_is_large_or_depends_on_params_stays() {
    // All pairs of rows are 36 times their data; `s` reads a param; `t` is an output.
    let step = "input A: f32[3000, 2000] = kept\ninput x: f32[2000] = kept\nparam w: f32[3000] = fed\nparam v: f32[2000] = fed\n\
        pairs: f32[3000, 3000, 24] = [i: 3000, k: 3000, b: 24 | j: 2000] sum A[i, j] * A[k, j] if j == b\n\
        s: f32[3000] = [i: 3000 | j: 2000] sum A[i, j] * v[j]\nt: f32[] = [| j: 2000] sum x[j]\n\
        l: f32[] = [| i: 3000, k: 3000, b: 24] sum pairs[i, k, b] * s[i] * w[k] * t[]\noutput l\noutput t";
    insta::assert_snapshot!(text_after(training(&[step])), @r"
    input A: f32[3000, 2000] = kept
    input x: f32[2000] = kept
    param w: f32[3000] = fed
    param v: f32[2000] = fed
    pairs: f32[3000, 3000, 24] = [i: 3000, k: 3000, b: 24 | j: 2000] sum A[i, j] * A[k, j] if j == b
    s: f32[3000] = [i: 3000 | j: 2000] sum A[i, j] * v[j]
    t: f32[] = [| j: 2000] sum x[j]
    l: f32[] = [| i: 3000, k: 3000, b: 24] sum pairs[i, k, b] * s[i] * w[k] * t[]
    output l
    output t
    --
    A v w x
    ");
}

#[test]
fn files_are_read_once() {
    let step = "M: f32[2000] = load(\"M.npy\")\nparam v: f32[2000] = fed\ns: f32[] = [| j: 2000] sum M[j]\n\
        l: f32[] = [| j: 2000] sum v[j] * M[j] / s[]\noutput l";
    insta::assert_snapshot!(text_after(training(&[step])), @r#"
    M: f32[2000] = load("M.npy")
    s: f32[] = [| j: 2000] sum M[j]
    output M
    output s
    --
    input M: f32[2000] = kept
    param v: f32[2000] = fed
    input s: f32[] = kept
    l: f32[] = [| j: 2000] sum v[j] * M[j] / s[]
    output l
    --
    M s v w
    "#);
}
