//! Derivatives along a direction, against central differences, and the mode in which Jacobians are taken.

use crate::{Inputs, close, inputs, program, run};
use einc_core::einsum::{Definition, Program};

/// The change of the first output where an input moves along a direction, by central differences of fourth order.
fn differences(program: &Program, inputs: &Inputs, (by, direction): (&str, &[f64])) -> Vec<f64> {
    let at = |step: f64| {
        let mut inputs = inputs.clone();
        for (x, v) in inputs.get_mut(by).unwrap().iter_mut().zip(direction) {
            *x += step * v;
        }
        run(program, &inputs).remove(0)
    };
    let step = 1e-5;
    let ends = [at(step), at(-step), at(2.0 * step), at(-2.0 * step)];
    let slope = |n: usize| {
        let one = (ends[0][n] - ends[1][n]) / (2.0 * step);
        let two = (ends[2][n] - ends[3][n]) / (4.0 * step);
        (4.0 * one - two) / 3.0
    };
    (0..ends[0].len()).map(slope).collect()
}

fn assert_close(found: &[f64], expected: &[f64], text: &str) {
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| close(*a, *b, 1e-7));
    assert!(same, "{found:?}\nexpected {expected:?}\n{text}");
}

/// Compares what `line` calls `T` with differences of `y` by `by` along `v`.
fn check(text: &str, by: &str, line: &str) {
    let of = program(&format!("{text}\noutput y\n"));
    let all = program(&format!("{text}\n{line}\noutput T\noutput v\n"));
    let inputs = {
        let mut known = inputs(text, &of);
        known.extend(inputs(text, &all));
        known
    };
    let mut found = run(&all, &inputs);
    let direction = found.remove(1);
    let expected = differences(&of, &inputs, (by, &direction));
    assert_close(
        &found[0],
        &expected,
        &format!("by {by}\n{text}\n{line}\n{all}"),
    );
}

/// The seventh of these has a scalar that moves, the last two go through rounds and library operations.
const CASES: [(&str, &str); 12] = [
    (
        "input x: f64[4]\ninput v: f64[4]\ny[i] = sin(x[i]) * x[i]",
        "x",
    ),
    (
        "input A: f64[3, 4]\ninput x: f64[4]\ninput v: f64[3, 4]\ny[i] = tanh(A[i,j] * x[j])",
        "A",
    ),
    (
        "input x: f64[5]\ninput v: f64[5]\ny[i < 3] = x[i + 1] * x[i] + x[4 - i]",
        "x",
    ),
    (
        "// at: 2 0 2 1\ninput x: f64[3]\ninput v: f64[3]\ninput at: i64[4]\ny[n] = x[at[n]]^2 * x[0]",
        "x",
    ),
    (
        "// at: 2 0 2 1 1\ninput x: f64[5]\ninput v: f64[5]\ninput at: i64[5]\ny[at[n]]: f64[3] += x[n]^2",
        "x",
    ),
    (
        "input x: f64[3, 4]\ninput v: f64[3, 4]\nm[n] = max[k] x[n,k]\ny[n] = m[n] * logsumexp[k] (x[n,k] * x[0,k]) + prod[k] x[n,k]",
        "x",
    ),
    (
        "input a: f64\nconst v = 0.75\nj[i < 5] = exp(a * i / 5)\ny[i] = j[i] * a",
        "a",
    ),
    (
        "input x: f64[4]\ninput v: f64[4]\ny = sum[i] where(x[i] > 0, x[i]^3, -x[i]) * x[i]",
        "x",
    ),
    ("input x: f64[4]\ninput v: f64[4]\ny[i] = x[i]", "x"),
    (
        "input x: f64[4]\ninput v: f64[4]\ns = sum[i] x[i]^2\nz[i] = x[i] / s\ny[i] = z[i] * z[3 - i] + norm[k] z[k]",
        "x",
    ),
    (
        "input x: f64[3]\ninput v: f64[3]\ninput A: f64[3, 3]\nrepeat t < 4 { state h[i] = x[i]; next h[i] = tanh(A[i,j] * h[j] + x[i]) }\ny[i] = h[i]",
        "x",
    ),
    (
        "input x: f64[3]\ninput v: f64[3]\nS[i,j] = x[i] * x[j] + where(i == j, 4, 0)\nu = solve(S, x)\ns = sort(x)\ny[i] = u[i] + logdet(S) * s[i]",
        "x",
    ),
];

#[test]
fn along_a_direction() {
    for (text, by) in CASES {
        check(text, by, &format!("T = jvp(y, {by}, v)"));
    }
}

/// In positions, in an expression, of an element, and of what is no tensor by itself.
#[test]
fn wherever_a_value_stands() {
    let text = "input x: f64[4]\ninput v: f64[4]\ny[i] = exp(x[i]) * x[0]";
    check(text, "x", "T[k] = 2 * jvp(y, x, v)[k] - jvp(y[k], x, v)");
    check(text, "x", "T[k] = jvp(exp(x[k]) * x[0], x, v)");
    let scalar = "input x: f64[4]\ninput v: f64[4]\ny = sum[i] exp(x[i]) * x[0]";
    check(scalar, "x", "T = jvp(sum[i] exp(x[i]) * x[0], x, v)");
    let called = "input x: f64[4]\ninput v: f64[4]\nfn moved(x[n], v[n]) -> t { y = sum[i] x[i]^3 * x[0]; t = jvp(y, x, v) }
y = sum[i] x[i]^3 * x[0]";
    check(called, "x", "T = moved(x, v)");
}

/// A direction for every value of an index, and what moves at an index.
#[test]
fn several_directions() {
    let text = "input x: f64[3]\ninput V: f64[2, 3]\ny[i,j] = sin(x[i]) * x[j]";
    let slices = program(&format!(
        "{text}\nT[p,i,j] = jvp(y, x, V[p])[i,j]\noutput T\n"
    ));
    let known = inputs(text, &slices);
    let of = program(&format!("{text}\noutput y\n"));
    let expected: Vec<f64> = known["V"]
        .chunks(3)
        .flat_map(|v| differences(&of, &known, ("x", v)))
        .collect();
    assert_close(&run(&slices, &known)[0], &expected, text);

    // In a function that is called for every row, only the row moves.
    let text = "input X: f64[2, 3]\ninput V: f64[2, 3]\ns[d] = sum[n] X[n,d]^2
fn moved(x[d], v[d], s[d]) -> t[d] { y[d] = exp(x[d]) * x[0] * s[d]; t = jvp(y, x, v) }";
    let calls = program(&format!(
        "{text}\nT[n,d] = moved(X[n], V[n], s)[d]\noutput T\n"
    ));
    let known = inputs(text, &calls);
    let of = program(&format!(
        "{text}\ny[n,d] = exp(X[n,d]) * X[n,0] * s[d]\noutput y\n"
    ));
    let mut expected = vec![];
    for row in 0..2 {
        let mut direction = vec![0.0; 6];
        direction[3 * row..][..3].copy_from_slice(&known["V"][3 * row..][..3]);
        let all = differences(&of, &known, ("X", &direction));
        expected.extend_from_slice(&all[3 * row..][..3]);
    }
    assert_close(&run(&calls, &known)[0], &expected, text);
}

#[test]
fn hessians_times_vectors() {
    let net = "input X: f64[5, 3]\ninput w: f64[3]\ninput v: f64[3]\nz[n] = X[n,d] * w[d]\nl[n] = log1p(exp(z[n])) * z[n]\nloss = mean[n] l[n]\ny[d] = grad(loss, w)[d]";
    check(net, "w", "T = hvp(loss, w, v)");
    check(net, "w", "T[d] = hvp(mean[n] l[n], w, v)[d]");
    let rounds = "input w: f64[3]\ninput v: f64[3]\nrepeat t < 3 { state h[i] = w[i]; next h[i] = sin(h[i]) * w[i] }\nloss = sum[i] h[i]^2 * h[0]\ny = grad(loss, w)";
    check(rounds, "w", "T = hvp(loss, w, v)");
    let each = net.replace("y[d] = grad(loss, w)[d]", "y[n,d] = grad(l[n], w)[d]");
    check(&each, "w", "T[n,d] = hvp(l[n], w, v)[d]");
    // A derivative along a direction has derivatives itself, by the direction, too: 2 H (H v).
    let again = format!(
        "{net}\nh = hvp(loss, w, v)\ns = sum[d] h[d]^2\ng = grad(s, v)\nhh = hvp(loss, w, h)\ne = max[d] abs(g[d] - 2 * hh[d])\noutput e\n"
    );
    let again = program(&again);
    assert!(run(&again, &inputs(net, &again))[0][0] < 1e-12);
}

/// Conjugate gradients on a Hessian that nobody writes down: the direction is a state that depends on what moves.
#[test]
fn directions_of_rounds() {
    let text = "input X: f64[6, 3]\ninput w: f64[3]
loss = (mean[n] exp(X[n,d] * w[d])) + (sum[d] w[d]^2)
g = grad(loss, w)
repeat k < 3 {
  state x[i] = zeros
  state r[i] = g[i]
  state p[i] = g[i]
  q = hvp(loss, w, p)
  a = (sum[i] r[i]^2) / (sum[i] p[i] * q[i])
  next x[i] = x[i] + a * p[i]
  next r[i] = r[i] - a * q[i]
  next p[i] = next r[i] + (sum[j] next r[j] * next r[j]) / (sum[j] r[j]^2) * p[i]
}
h = hvp(loss, w, x)
e = max[i] abs(h[i] - g[i])
output e
";
    let program = program(text);
    assert!(run(&program, &inputs(text, &program))[0][0] < 1e-9);
}

/// How many points the statements have.
fn points(program: &Program) -> u64 {
    let tensors = program.tensors.iter();
    let points = tensors.map(|tensor| match &tensor.definition {
        Definition::Statement { kernel, .. } => kernel.indices.iter().map(|i| i.extent).product(),
        _ => 0,
    });
    points.sum()
}

/// Few inputs and many outputs take forward mode, the reverse the other; both are the same numbers.
#[test]
fn jacobians_go_the_shorter_way() {
    let net = |first: u64, last: u64| {
        format!("input x: f64[{first}]\ninput A: f64[{first}, 20]\ninput B: f64[20, 20]\ninput C: f64[20, {last}]
h[j] = tanh(x[i] * A[i,j])\nk[j] = tanh(h[i] * B[i,j])\ny[j] = tanh(k[i] * C[i,j])\nJ = jacobian(y, x)\noutput J\n")
    };
    let few = program(&net(2, 50));
    let many = program(&net(50, 2));
    // A way with a matrix of 20 by 20 for each of the 50 would have 20,000 points in the middle alone.
    for program in [&few, &many] {
        assert!(points(program) < 10_000, "{}: {program}", points(program));
    }
    let text = net(2, 50);
    let of = program(&text.replace("J = jacobian(y, x)\noutput J", "output y"));
    let known = inputs(&text, &few);
    let columns = [[1.0, 0.0], [0.0, 1.0]].map(|v| differences(&of, &known, ("x", &v)));
    let expected: Vec<f64> = (0..50)
        .flat_map(|j| [columns[0][j], columns[1][j]])
        .collect();
    assert_close(&run(&few, &known)[0], &expected, &text);
    // By a scalar.
    let text =
        "input a: f64\ninput x: f64[4]\ny[i] = sin(a * x[i]) * a\nJ = jacobian(y, a)\noutput J\n";
    let all = program(text);
    let of = program(&text.replace("J = jacobian(y, a)\noutput J", "output y"));
    let known = inputs(text, &all);
    assert_close(
        &run(&all, &known)[0],
        &differences(&of, &known, ("a", &[1.0])),
        text,
    );
}
