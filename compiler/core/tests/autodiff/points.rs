//! Derivatives of each element of a tensor, against central differences of all elements.

use crate::{close, inputs, program, run};

/// The Jacobian of `y` by an input: columns of differences, transposed.
fn differences(text: &str, by: &str) -> Vec<f64> {
    let program = program(&format!("{text}\noutput y\n"));
    let inputs = inputs(text, &program);
    let columns: Vec<Vec<f64>> = (0..inputs[by].len())
        .map(|number| {
            let at = |step: f64| {
                let mut inputs = inputs.clone();
                inputs.get_mut(by).unwrap()[number] += step;
                run(&program, &inputs).remove(0)
            };
            let step = 1e-5;
            let ends = [at(step), at(-step), at(2.0 * step), at(-2.0 * step)];
            let slope = |row: usize| {
                let one = (ends[0][row] - ends[1][row]) / (2.0 * step);
                let two = (ends[2][row] - ends[3][row]) / (4.0 * step);
                (4.0 * one - two) / 3.0
            };
            (0..ends[0].len()).map(slope).collect()
        })
        .collect();
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .flat_map(|row| columns.iter().map(move |column| column[row]))
        .collect()
}

/// Compares what `line` calls `J` with differences of `y` by an input.
fn check(text: &str, by: &str, line: &str) {
    let all = program(&format!("{text}\n{line}\noutput J\n"));
    let found = run(&all, &inputs(text, &all)).remove(0);
    let expected = differences(text, by);
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(a, b)| close(*a, *b, 1e-7));
    assert!(
        same,
        "by {by}: {found:?}\nexpected {expected:?}\n{text}\n{all}"
    );
}

#[test]
fn jacobians() {
    let cases: [(&str, &[&str]); 12] = [
        ("input x: f64[4]\ny[i] = sin(x[i]) * x[i]", &["x"]),
        (
            "input x: f64[6]\nu[i < 2, j < 4] = prod[r < 3] x[j]\ny[i < 5] = u[i,i] else 1",
            &["x"],
        ),
        (
            "input x: f64[6]\ninput w: f64[9]\nu[i] = x[i] * (sum[k] w[k]^2)\ny[i < 3] = u[i]",
            &["x", "w"],
        ),
        (
            "input x: f64[6]\ninput w: f64[9]\nu[i] = x[i] * (sum[k] w[k]^2)\ny[i < 8] = u[i] else 0",
            &["x", "w"],
        ),
        (
            "input A: f64[3, 4]\ninput x: f64[4]\ny[i] = tanh(A[i,j] * x[j])",
            &["x", "A"],
        ),
        (
            "input x: f64[5]\ny[i < 3] = x[i + 1] * x[i] + x[4 - i]",
            &["x"],
        ),
        (
            "// at: 2 0 2 1\ninput x: f64[3]\ninput at: i64[4]\ny[n] = x[at[n]]^2 * x[0]",
            &["x"],
        ),
        (
            "input B: f64[3, 2]\ninput c: f64[2]\ny[i,j] = B[i,k] * B[j,k] + c[0]",
            &["B", "c"],
        ),
        (
            "// at: 2 0 2 1 1\ninput x: f64[5]\ninput at: i64[5]\ny[at[n]]: f64[3] += x[n]^2",
            &["x"],
        ),
        (
            "input x: f64[3, 4]\ninput v: f64[4]\ny[n] = logsumexp[k] (x[n,k] * v[k])",
            &["x", "v"],
        ),
        ("input x: f64[5]\ny[t] = sum[s <= t] x[s]^3", &["x"]),
        (
            "input x: f64[4]\ns = sum[i] x[i]^2\ny[i] = x[i] / s + (x[(i + 1) % 4] else 0)",
            &["x"],
        ),
    ];
    for (text, inputs) in cases {
        for by in inputs {
            check(text, by, &format!("J = jacobian(y, {by})"));
        }
    }
}

#[test]
fn jacobians_through_library_operations() {
    let matrix = "input A: f64[3, 3]\ninput b: f64[3]\nM[i,j] = A[i,j] + where(i == j, 4, 0)";
    let cases: [(&str, &[&str]); 6] = [
        ("y = solve(M, b)", &["A", "b"]),
        ("y = solve(M, A)", &["A"]),
        (
            "v[p,i] = A[p,i] + b[i]\ny[p,i] = solve(M, v[p])[i]",
            &["A", "b"],
        ),
        ("y, r = qr(M)", &["A"]),
        ("s = solve(M, b)\nc, y = fft(s, b)", &["A", "b"]),
        ("c, d = fft(A, M)\ny[p,k] = c[p,k] * d[p,k]", &["A"]),
    ];
    for (lines, inputs) in cases {
        for by in inputs {
            check(
                &format!("{matrix}\n{lines}"),
                by,
                &format!("J = jacobian(y, {by})"),
            );
        }
    }
}

/// In a function that is called for every value of an index, a Jacobian is that of the call: no other value has a part in it.
#[test]
fn jacobians_in_functions_that_are_called_for_every_value() {
    let text = "input A: f64[4, 3, 3]
input z: f64[4, 3]
fn one(A[n, n], z[n]) -> y[n] { y[i] = sin(A[i,j] * z[j]) * z[i] }
fn slope(f, A[n, n], z[n]) -> J[n, n] { y = f(A, z); J = jacobian(y, z) }
y[p,i] = one(A[p], z[p])[i]";
    let line = "S[p,i,j] = slope(one, A[p], z[p])[i,j]
J[p,i,q < 4,j] = where(p == q, S[p,i,j], 0)";
    check(text, "z", line);
    let program = program(&format!("{text}\n{line}\noutput S\n"));
    for tensor in &program.tensors {
        let calls = tensor.shape.iter().filter(|extent| **extent == 4).count();
        assert!(
            calls <= 1 || tensor.name.starts_with("grad."),
            "{}: {program}",
            tensor.name
        );
    }
}

const NET: &str = "input X: f64[7, 3]
input W: f64[3, 4]
input b: f64[4]
input v: f64[4]
z[n,h] = tanh(X[n,d] * W[d,h] + b[h])
m[n] = mean[h] z[n,h]
y[n] = sum[h] (z[n,h] - m[n])^2 * v[h]";

#[test]
fn gradients_of_each_example() {
    for (by, indices) in [("W", "d,h"), ("b", "h"), ("v", "h"), ("X", "k,d")] {
        check(
            NET,
            by,
            &format!("J[n,{indices}] = grad(y[n], {by})[{indices}]"),
        );
    }
    let twice = "J[n,h] = grad(2 * y[n] - y[n], b)[h]";
    check(NET, "b", twice);
    let called = "fn one(x[d], W[d, h], b[h], v[h]) -> g[h] {
  z[h] = tanh(x[d] * W[d,h] + b[h])
  m = mean[h] z[h]
  l = sum[h] (z[h] - m)^2 * v[h]
  g = grad(l, b)
}
J[n,h] = one(X[n], W, b, v)[h]";
    check(NET, "b", called);
}

/// No tensor has the examples twice, so the gradients cost what that of the sum does.
#[test]
fn examples_are_kept_apart_without_pairs() {
    for (by, indices) in [("W", "d,h"), ("b", "h"), ("v", "h")] {
        let text = format!("{NET}\nJ[n,{indices}] = grad(y[n], {by})[{indices}]\noutput J\n");
        let program = program(&text);
        for tensor in &program.tensors {
            let examples = tensor.shape.iter().filter(|extent| **extent == 7).count();
            assert!(examples <= 1, "{}: {program}", tensor.name);
        }
    }
}

/// In a round the derivative of each element is taken by what the round reads.
#[test]
fn jacobians_in_rounds() {
    let text = "input x: f64[3]\ny[i] = sin(x[i]) * x[0]";
    let within = |by: &str, taken: &str| {
        let line = format!(
            "repeat t < 1 {{
  state s[i] = x[i]
  z[i] = sin(s[i]) * s[0]
  l = sum[i] z[i] * (1 + i)
  {taken}
  next s[i] = s[i] + d[i,0]
  ds[t,i,j] = d[i,j]
}}
J[i,j] = ds[0,i,j]"
        );
        check(text, by, &line);
    };
    within("x", "d = jacobian(z, s)");
    within("x", "d[i,j] = grad(z[i], s)[j]");
    within(
        "x",
        "e[i < 3, j < 3]: f64[3, 3] = where(i == j, 1, 0)\n  a[j,i] = jvp(z, s, e[j])[i]\n  d[i,j] = a[j,i]",
    );
    let hessian = "input x: f64[3]\nl = sum[i] sin(x[i]) * x[0] * (1 + i)\ny = grad(l, x)";
    let line = "repeat t < 2 {
  state s[i] = x[i]
  m = sum[i] sin(s[i]) * s[0] * (1 + i)
  g = grad(m, s)
  H = jacobian(g, s)
  next s[i] = s[i] + 0.1 * H[i,0]
  Hs[t,i,j] = H[i,j]
}
J[i,j] = Hs[0,i,j]";
    check(hessian, "x", line);
}

#[test]
fn derivatives_by_example_of_such_ones_have_no_matrix() {
    let first = "input x: f64[5]\ninput w: f64[3]\nu[n] = sum[k] tanh(x[n] * w[k]) * w[k]\n";
    let second = format!("{first}d[n] = grad(u[n], x)[n]\ny[n] = grad(d[n], x)[n]");
    let whole = program(&format!(
        "{second}\nl = sum[n] (y[n] + u[n])^2\ng[k] = grad(l, w)[k]\noutput g\n"
    ));
    for tensor in &whole.tensors {
        assert_ne!(tensor.shape, [5, 5], "{whole}");
    }
    check(&second, "w", "J[n,k] = grad(y[n], w)[k]");
    let first = format!("{first}y[n] = grad(u[n], x)[n]");
    check(&first, "x", "J[n,i] = grad(y[n], x)[i]");
}
