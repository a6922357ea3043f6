//! Programs that are built by calls: the lines that they become, and what is said about them.

#[path = "../../examples/linear_regression.rs"]
mod linear_regression;
#[path = "../../examples/power_iteration.rs"]
mod power_iteration;

use ein_plan::{DType, Reduction};
use einc_core::build::{Expr, Program, call, index, named, reduce, select, sum};
use einc_core::sema::{Bindings, check, world::Memory};

#[test]
fn brackets_stand_where_they_change_the_meaning() {
    let mut program = Program::new();
    let x = program.input("x", DType::F32, [3]);
    let (i, k) = (index("i"), index("k"));
    let (a, b) = (x.at([&i]), x.at([&k]));
    let cases: Vec<(Expr, &str)> = vec![
        (a.clone() + &b + 1, "x[i] + x[k] + 1"),
        (a.clone() - (b.clone() + 1), "x[i] - (x[k] + 1)"),
        ((a.clone() + 1) * &b, "(x[i] + 1) * x[k]"),
        (a.clone() / (b.clone() * 2), "x[i] / (x[k] * 2)"),
        (2 * a.clone() * -b.clone(), "2 * x[i] * -x[k]"),
        (a.clone() * -2, "x[i] * -2"),
        (a.clone() + sum([&k], &b), "x[i] + (sum[k] x[k])"),
        (sum([&k], b.clone() + 1), "sum[k] (x[k] + 1)"),
        (sum([&k], b.clone() * 2), "sum[k] x[k] * 2"),
        (a.clone().power(2), "x[i] ^ 2"),
        ((-a.clone()).power(-1), "(-x[i]) ^ -1"),
        (-(a.clone().power(2)), "-x[i] ^ 2"),
        (
            select(a.clone().less(0.5).and(b.equals(&a)), 1, -1),
            "where(x[i] < 0.5 and x[k] == x[i], 1, -1)",
        ),
        (
            x.at([&i - Expr::from(1)]).otherwise(0) * 2,
            "(x[i - 1] else (0)) * 2",
        ),
        (
            reduce(Reduction::ArgMax, [&k], call("exp", [x.at([&k])])),
            "argmax[k] exp(x[k])",
        ),
        (named("sgd", &[("lr", 0.1)]), "sgd(lr: 0.1)"),
    ];
    for (built, expected) in cases {
        assert_eq!(built.to_string(), expected);
        let parsed = einc_syntax::parse(einc_diag::FileId(0), &format!("y = {built}\n"));
        assert!(parsed.diagnostics.is_empty(), "{built}");
    }
}

#[test]
fn an_error_shows_the_line_that_was_built() {
    let mut program = Program::new();
    let x = program.input("x", DType::F32, [3]);
    let (i, k) = (index("i"), index("k"));
    let y = program.define("y", [&i], x.at([&i, &k]));
    program.output(&y);
    let loaded = program.load("built", &Memory::default());
    let found = check(&loaded.sources, &Bindings::default()).diagnostics;
    let span = found[0].labels[0].span;
    assert_eq!(found[0].code, "E0302");
    assert_eq!(
        &program.text()[span.start as usize..span.end as usize],
        "x[i, k]"
    );
}

#[test]
fn the_example_with_training_has_a_step_for_each_number_of_rows() {
    let (text, steps) = linear_regression::run();
    let expected = "\
dim N
dim D = 8
input X: f32[N, D]
input y: f32[N]
param w: f32[D] = normal(0.0, 0.1)
guess[i] = sum[k] X[i, k] * w[k]
error[i] = (guess[i] - y[i]) ^ 2
loss = mean[i] error[i]
train {
  loss: loss
  data: (X, y) over N by 32 shuffle
  epochs: 5
  optimizer: adamw(lr: 0.01)
  clip: 1.0
}
output w
";
    assert_eq!(text, expected);
    let rows: Vec<&str> = steps
        .lines()
        .filter(|line| line.starts_with("//"))
        .collect();
    assert_eq!(rows, ["// a step with 4 rows", "// a step with 32 rows"]);
    assert!(steps.contains("output w_next"), "{steps}");
}

#[test]
fn the_example_with_rounds_is_planned_for_four_sites() {
    let (text, placed) = power_iteration::run();
    let expected = "\
dim N = 1000
input A: f64[N, N]
repeat t < 50 {
  state v[i] = ones
  image[i] = sum[j] A[i, j] * v[j]
  length = sqrt(sum[i] image[i] * image[i])
  next v[i] = image[i] / length
}
value = sum[i, j] v[i] * A[i, j] * v[j]
output value
";
    assert_eq!(text, expected);
    assert!(placed.contains("repeat b0 t < 50"), "{placed}");
}
