//! Scalar functions in programs: values that are known in closed form, and the interpreter's, on 1 to 5 sites.

use crate::operations::case;
use crate::properties::Subject;
use einc_tests::einc;
use einc_tests::everywhere::printed;
use std::f64::consts::{LN_2, PI};

#[test]
fn functions_give_what_their_definitions_give() {
    for (kind, tolerance) in [("f64", 1e-9), ("f32", 1e-5)] {
        let text = format!(
            "input x: {kind}[11, 7]
             input w: {kind}[7]
             a[n] = sum[d] (tan(x[n,d]) + asin(x[n,d]) * acos(w[d]) + atan2(x[n,d], w[d]) + atan(x[n,d]))
             b[n] = sum[d] (sinh(x[n,d]) + cosh(w[d]) + asinh(x[n,d]) + acosh(2 + w[d]) + atanh(0.9 * x[n,d]))
             c[n,d] = exp2(x[n,d]) + log2(2 + w[d]) * log10(3 + x[n,d]) + cbrt(2 + x[n,d]) + hypot(x[n,d], w[d])
             e[n,d] = erfc(x[n,d]) + erfinv(0.9 * w[d]) + lgamma(2 + x[n,d]) + digamma(2 + w[d])
             f[n] = max[d] (softplus(3 * x[n,d]) + logaddexp(x[n,d], w[d]))
             loss = mean[n] (a[n] + b[n] + f[n] + (sum[d] c[n,d] * e[n,d]))
             g[d] = grad(loss, w)[d]
             output a; output b; output c; output e; output f; output g"
        );
        let subject = Subject::of_case(case(&text, tolerance));
        subject.on_all_sites(kind);
        subject.on_random_layouts(5);
    }
}

#[test]
fn ends_and_closed_forms() {
    let text = "
        input big: f64[3] = full(800)
        s[i < 3] = where(i == 0, f64(0), where(i == 1, f64(1), f64(-1)))
        ends[i] = s[i] / 0
        lse[i] = logaddexp(ends[i], ends[i])
        far[i] = softplus(big[i] * s[i])
        near[i] = logaddexp(big[i], big[i] * (s[i] + 1))
        bad[i] = i64(isnan(ends[i]))
        good[i] = i64(isfinite(ends[i]))
        steps[i] = (nextafter(s[i], 2 * s[i]) - s[i]) * 2.0^52
        angle[i] = 4 * atan2(s[i], s[i])
        gamma[i < 3] = digamma(f64(i + 1)) - digamma(f64(1))
        output lse; output far; output near; output bad; output good; output steps; output angle; output gamma";
    let found = Subject::of_case(case(text, 0.0)).once(2);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let expected = [
        [nan, inf, -inf],
        [LN_2, 800.0, 0.0],
        [800.0 + LN_2, 1600.0, 800.0],
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 1.0, -1.0],
        [0.0, PI, -3.0 * PI],
        [0.0, 1.0, 1.5],
    ];
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        for (a, b) in found.data.iter().zip(expected) {
            let a = a.as_f64();
            let is_same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 1e-12;
            assert!(is_same, "output {number}: {a} is not {b}");
        }
    }
}

/// Near a pole, functions have all their digits on both sides; what has no real value is NaN.
#[test]
fn poles_and_numbers_that_no_function_value_has() {
    let text = "
        input t: f64[4] = [-1e-11, -1e-17, -1e-31, 1e-17]
        input x: f64[4] = [-7525.45704653, -2, 0.5, -1e300]
        pole[i] = digamma(t[i]) * t[i]
        slope[i] = grad(sum[j] lgamma(t[j]), t)[i] * t[i]
        size[i] = exp(lgamma(t[i]) + log(abs(t[i])))
        none[i] = acosh(x[i])
        single[i] = f64(acosh(f32(x[i])))
        output pole; output slope; output size; output none; output single";
    let found = Subject::of_case(case(text, 0.0)).once(1);
    for (number, expected) in [-1.0, -1.0, 1.0, f64::NAN, f64::NAN]
        .into_iter()
        .enumerate()
    {
        for value in &found[number].data {
            let value = value.as_f64();
            let is_same = value.is_nan() && expected.is_nan() || (value - expected).abs() < 1e-10;
            assert!(is_same, "output {number}: {value} is not {expected}");
        }
    }
}

/// A network of two layers with a sum over its rows: what changes along a direction, a curvature, and a Jacobian with few inputs.
#[test]
fn derivatives_along_a_direction_on_all_sites() {
    let text = "input X: f64[11, 3]
         input W: f64[3, 7]
         input V: f64[3, 7]
         input u: f64[7]
         input s: f64[2]
         z[n,h] = tanh(X[n,d] * W[d,h]) * s[0]
         y[n] = z[n,h] * u[h] + s[1] * X[n,0]
         loss = mean[n] exp(y[n])
         moved = jvp(y, W, V)
         curve = hvp(loss, W, V)
         slope = jvp(loss, W, V)
         J = jacobian(y, s)
         exact[n] = J[n,1] - X[n,0]
         same = slope - (sum[d,h] grad(loss, W)[d,h] * V[d,h])
         output moved; output curve; output slope; output J; output exact; output same";
    let subject = Subject::of_case(case(text, 1e-9));
    subject.on_all_sites("along");
    subject.on_random_layouts(3);
    for zeros in &subject.once(3)[4..] {
        assert!(zeros.data.iter().all(|x| x.as_f64().abs() < 1e-12));
    }
}

/// Logistic regression from zero weights, where every point lies on the boundary. The Hessian is taken in each round.
#[test]
fn newtons_method_on_all_sites() {
    let text = "X[n < 23, d < 3] = sin(f64(3 * n + d^2))
y[n < 23] = where((7 * n) % 5 < 2, f64(1), 0)
fn loss(X[n, d], y[n], w[d]) -> l {
  z[n] = X[n,d] * w[d]
  l = (sum[n] softplus(z[n]) - y[n] * z[n]) + 0.05 * (sum[d] w[d]^2)
}
repeat k < 12 {
  state w[d < 3]: f64[3] = zeros
  l = loss(X, y, w)
  g = grad(l, w)
  H = jacobian(g, w)
  step = solve(H, g)
  next w[d] = w[d] - step[d]
}
left = grad(loss(X, y, w), w)
is_least = all[d] (abs(left[d]) < 1e-12)
millionths[d] = round(1e6 * w[d])
output is_least; output millionths
";
    let expected = "is_least = true\nmillionths = [ 278438. -253191.  181019.]\n";
    assert_eq!(printed(&[("p.ein", text)]), expected);
}

/// The sign of both zeros is 0, and of an infinite number there is no whole quotient, as in numpy, on every device and in rounds.
#[test]
fn signs_of_zeros_and_quotients_of_infinity() {
    let text = "
x[i < 4]: f64[4] = where(i == 0, -0.0, where(i == 1, 3.0, where(i == 2, -inf, inf)))
sign[i] = 1 / sign(x[i])
whole[i] = div(x[i], 2)
repeat t < 2 {
  state s = 1.0
  next s = 1 / sign(-0.0 / s) + div(2.0, inf)
}
repeat t < 2 {
  state q[i] = x[i]
  next q[i] = div(q[i], 4) + sign(-0.0 * i)
}
output sign; output whole; output s; output q
";
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein").display().to_string();
    std::fs::write(&program, text).unwrap();
    let expected =
        "sign = [inf  1. -1.  1.]\nwhole = [-0.  1. nan nan]\ns = inf\nq = [ 0.  0. nan nan]\n";
    for device in ["cpu", "reference", "emulated"] {
        let said = einc(&["run", &program, "--device", device])
            .success()
            .stdout;
        assert_eq!(said, expected, "{device}");
    }
}
