//! Every scalar function, every reduction, at ordinary points and at those with a convention.

use crate::{check, program, run};

/// Differences at points where the function is smooth.
#[test]
fn scalar_functions_by_differences() {
    for (function, points) in [
        ("exp(x[i])", "-1 0 0.5 2"),
        ("log(x[i])", "0.1 1 3 7"),
        ("log1p(x[i])", "-0.5 0 1 4"),
        ("expm1(x[i])", "-2 0 0.5 1"),
        ("sqrt(x[i])", "0.1 1 3 7"),
        ("rsqrt(x[i])", "0.2 1 3 7"),
        ("tanh(x[i])", "-2 -0.1 0 1"),
        ("sigmoid(x[i])", "-2 -0.1 0 1"),
        ("relu(x[i])", "-2 -0.1 0.3 1"),
        ("gelu(x[i])", "-2 -0.1 0 1"),
        ("erf(x[i])", "-2 -0.1 0 1"),
        ("sin(x[i])", "-2 -0.1 0 1"),
        ("cos(x[i])", "-2 -0.1 0 1"),
        ("tan(x[i])", "-1.2 -0.1 0 1"),
        ("asin(x[i])", "-0.9 -0.1 0 0.7"),
        ("acos(x[i])", "-0.9 -0.1 0 0.7"),
        ("atan(x[i])", "-2 -0.1 0 1"),
        ("atan2(x[i], c[i])", "-2 -0.1 0.3 1"),
        ("atan2(c[i], x[i])", "-2 -0.1 0.3 1"),
        ("sinh(x[i])", "-2 -0.1 0 1"),
        ("cosh(x[i])", "-2 -0.1 0 1"),
        ("asinh(x[i])", "-2 -0.1 0 1"),
        ("acosh(x[i])", "1.2 1.5 2 7"),
        ("atanh(x[i])", "-0.9 -0.1 0 0.7"),
        ("exp2(x[i])", "-2 -0.1 0 1"),
        ("log2(x[i])", "0.1 1 3 7"),
        ("log10(x[i])", "0.1 1 3 7"),
        ("cbrt(x[i])", "-2 -0.3 0.3 1"),
        ("hypot(x[i], c[i])", "-2 -0.1 0.3 1"),
        ("erfc(x[i])", "-2 -0.1 0 1"),
        ("erfinv(x[i])", "-0.9 -0.1 0 0.7"),
        ("lgamma(x[i])", "-1.4 0.3 2 7"),
        ("digamma(x[i])", "-1.4 0.3 2 7"),
        ("softplus(x[i])", "-2 -0.1 0 1"),
        ("logaddexp(x[i], c[i])", "-2 -0.1 0.3 1"),
        ("nextafter(x[i], 9)", "-2 -0.1 0.3 1"),
        ("abs(x[i])", "-2 -0.1 0.3 1"),
        ("sign(x[i])", "-2 -0.1 0.3 1"),
        ("floor(x[i])", "-2.5 -0.1 0.3 1.2"),
        ("ceil(x[i])", "-2.5 -0.1 0.3 1.2"),
        ("round(x[i])", "-2.4 -0.1 0.3 1.2"),
        ("-x[i]", "-2 -0.1 0.3 1"),
        ("x[i] + c[i] * x[i]", "-2 -0.1 0.3 1"),
        ("x[i] - c[i]", "-2 -0.1 0.3 1"),
        ("c[i] - x[i]", "-2 -0.1 0.3 1"),
        ("c[i] / x[i]", "-2 -0.1 0.3 1"),
        ("x[i] / (2 + c[i])", "-2 -0.1 0.3 1"),
        ("x[i] % 0.7", "-2 -0.1 0.3 1"),
        ("3.1 % x[i]", "-2 -0.4 0.3 1"),
        ("x[i]^0", "-2 -0.1 0 1"),
        ("x[i]^1", "-2 -0.1 0 1"),
        ("x[i]^2", "-2 -0.1 0 1"),
        ("x[i]^3", "-2 -0.1 0 1"),
        ("x[i]^7", "-2 -0.1 0 1"),
        ("x[i]^-2", "-2 -0.4 0.3 1"),
        ("x[i]^0.5", "0.1 0.4 0.3 1"),
        ("x[i]^c[i]", "0.1 0.4 0.3 1"),
        ("2^x[i]", "-2 -0.1 0 1"),
        ("min(x[i], c[i])", "-2 -0.1 0.3 1"),
        ("max(x[i], c[i])", "-2 -0.1 0.3 1"),
        ("max(c[i], x[i])", "-2 -0.1 0.3 1"),
        ("clip(x[i], -1, 0.5)", "-2 -0.1 0.3 1"),
        ("div(x[i], 0.7)", "-2 -0.1 0.3 1"),
        ("where(x[i] > 0, x[i]^2, sin(x[i]))", "-2 -0.1 0.3 1"),
        ("where(c[i] > 0, 2, x[i])", "-2 -0.1 0.3 1"),
        ("stop(exp(c[i])) * x[i]", "-2 -0.1 0.3 1"),
        ("f64(f32(x[i])) * c[i]", "-2 -0.125 0.25 1"),
        ("x[i] * f64(i32(10 * x[i]))", "-2.03 -0.12 0.32 1.01"),
        ("x[i] * i", "-2 -0.1 0.3 1"),
        (
            "exp(sin(x[i]) * c[i]) / (1 + x[i]^2) - tanh(c[i] * x[i])",
            "-2 -0.1 0.3 1",
        ),
    ] {
        let kinks = match function {
            // Rounding to f32 makes steps.
            f if f.contains("f32") => "// kinks: x\nhand_x[i] = f64(f32((1 + f64(i)) * c[i]))",
            f if f.contains("nextafter") => "// kinks: x\nhand_x[i] = 0 * x[i]",
            f if f.contains("stop") => "// kinks: c\nhand_c[i] = 0 * x[i]",
            _ => "",
        };
        check(&format!(
            "input x: f64[4]\ninput c: f64[4]\n// x: {points}\n{kinks}\n\
             y[i] = {function}\nloss = sum[i] y[i] * (i + 1)"
        ));
    }
}

/// The gradient of `sum[i] f(x[i])` by x at given points.
fn slopes(function: &str, points: &str) -> Vec<f64> {
    let count = points.split_whitespace().count();
    let text = format!(
        "input x: f64[{count}]\n// x: {points}\nloss = sum[i] {function}\n\
         g[i] = grad(loss, x)[i]\noutput g"
    );
    let program = program(&text);
    let inputs = crate::inputs(&text, &crate::program(&format!("{text}\noutput loss")));
    run(&program, &inputs).remove(0)
}

#[test]
fn conventions_of_scalar_functions() {
    let inf = f64::INFINITY;
    for (function, points, expected) in [
        ("relu(x[i])", "0", vec![0.0]),
        ("max(x[i], 0)", "0", vec![0.5]),
        ("(max(x[i], 0) + log1p(exp(-abs(x[i]))))", "0", vec![0.5]),
        ("max(x[i], 1)", "1", vec![0.5]),
        ("min(x[i], x[i])", "2", vec![1.0]),
        ("clip(x[i], -1, 1)", "-1 1 5", vec![0.5, 0.5, 0.0]),
        ("abs(x[i])", "0", vec![0.0]),
        ("sign(x[i]) * floor(x[i])", "0 1", vec![0.0, 0.0]),
        ("sqrt(x[i])", "0 4", vec![inf, 0.25]),
        (
            "where(x[i] > 0, sqrt(x[i]), 0)",
            "0 4 -1",
            vec![0.0, 0.25, 0.0],
        ),
        (
            "where(x[i] > 0, log(x[i]) / x[i], x[i])",
            "0 1",
            vec![1.0, 1.0],
        ),
        ("x[i]^x[i]", "0 1", vec![0.0, 1.0]),
        ("x[i]^0", "0", vec![0.0]),
        ("0^x[i]", "0 2", vec![0.0, 0.0]),
        ("stop(x[i])", "3", vec![0.0]),
        ("softplus(x[i])", "0", vec![0.5]),
        ("logaddexp(x[i], x[i])", "2", vec![1.0]),
        ("logaddexp(x[i], 0)", "0", vec![0.5]),
        ("logaddexp(0, x[i])", "0", vec![0.5]),
        ("logaddexp(x[i], -inf)", "-inf 1", vec![0.0, 1.0]),
        ("logaddexp(-inf, x[i])", "-inf 1", vec![0.0, 1.0]),
        ("asin(x[i])", "1", vec![inf]),
        ("hypot(x[i], 0)", "0 2 -2", vec![0.0, 1.0, -1.0]),
        ("hypot(x[i], x[i])", "0", vec![0.0]),
        ("x[i] * stop(x[i])", "3", vec![3.0]),
    ] {
        assert_eq!(slopes(function, points), expected, "{function}");
    }
}

/// Functions that take the larger of two values, and are smooth where these are equal.
#[test]
fn second_derivatives_of_smooth_functions() {
    let quarter = |x: f64| 0.25 / (x / 2.0).cosh().powi(2);
    for (function, points) in [
        ("softplus(x[i])", [-3.0, 0.0, 2.0]),
        ("logaddexp(x[i], 0)", [-3.0, 0.0, 2.0]),
        ("logaddexp(0, x[i])", [-3.0, 0.0, 2.0]),
        ("logaddexp(x[i] / 2, -x[i] / 2)", [-3.0, 0.0, 2.0]),
    ] {
        let [a, b, c] = points;
        let text = format!(
            "input x: f64[3]\n// x: {a} {b} {c}\nloss = sum[i] {function}\ng = grad(loss, x)\n\
             slopes = sum[i] g[i]\nh = grad(slopes, x)\noutput h"
        );
        let program = program(&text);
        let inputs = crate::inputs(&text, &program);
        let found = run(&program, &inputs).remove(0);
        for (x, found) in points.iter().zip(found) {
            assert!(
                (found - quarter(*x)).abs() < 1e-12,
                "{function} at {x}: {found}"
            );
        }
    }
}

#[test]
fn reductions_by_differences() {
    for reduction in [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "logsumexp",
        "norm",
        "norm1",
        "norminf",
    ] {
        for body in [
            "x[i,j]",
            "(x[i,j] * w[j] + 0.1)",
            "where(j <= i, x[i,j], w[j])",
            "sin(x[i,j])",
        ] {
            check(&format!(
                "input x: f64[3, 4]\ninput w: f64[4]\n\
                 y[i] = {reduction}[j] {body}\nloss = sum[i] y[i]^2 * (i + 1) + (sum[j] w[j] * x[0,j])"
            ));
        }
        // Two indices, a bound that leaves points out, and rows in which nothing is left.
        check(&format!(
            "input x: f64[3, 4]\ny = {reduction}[i, j] x[i,j]\nloss = y^2"
        ));
        check(&format!(
            "input x: f64[4, 4]\ny[i] = {reduction}[j <= i] x[i,j] * 0.9\nloss = sum[i] sin(y[i])"
        ));
    }
}

#[test]
fn conventions_of_reductions() {
    let slopes = |reduction: &str, points: &str| {
        let count = points.split_whitespace().count();
        let text = format!(
            "input x: f64[{count}]\n// x: {points}\nloss = 6 * ({reduction}[i] x[i])\n\
             g[i] = grad(loss, x)[i]\noutput g"
        );
        let inputs = crate::inputs(&text, &program(&format!("{text}\noutput loss")));
        run(&program(&text), &inputs).remove(0)
    };
    assert_eq!(slopes("max", "3 1 3 2"), [3.0, 0.0, 3.0, 0.0]);
    assert_eq!(slopes("min", "3 1 1 1"), [0.0, 2.0, 2.0, 2.0]);
    assert_eq!(slopes("norm", "0 0 0"), [0.0, 0.0, 0.0]);
    assert_eq!(slopes("norm1", "0 2 -2"), [0.0, 6.0, -6.0]);
    assert_eq!(slopes("norminf", "1 -3 3"), [0.0, -3.0, 3.0]);
    assert_eq!(slopes("prod", "2 0 5"), [0.0, 60.0, 0.0]);
    assert_eq!(slopes("prod", "2 0 0"), [0.0, 0.0, 0.0]);
    let halves = slopes("logsumexp", "-inf 4 4");
    assert!(halves[0] == 0.0 && halves[1..].iter().all(|x| (x - 3.0).abs() < 1e-12));
    assert_eq!(slopes("logsumexp", "-inf -inf"), [0.0, 0.0]);
    // argmax gives a position, which has no derivative; what is read there has.
    let text = "input x: f64[3]\n// x: 1 4 2\nbest = argmax[i] x[i]\nloss = x[best]^2\n\
                g[i] = grad(loss, x)[i]\noutput g";
    let inputs = crate::inputs(text, &program(&format!("{text}\noutput loss")));
    assert_eq!(run(&program(text), &inputs)[0], [0.0, 8.0, 0.0]);
}

/// One value on many paths, none of which is the beginning or the other side of another.
#[test]
fn many_branches_share_a_value() {
    let mut value = "x[i]".to_owned();
    for level in 0..12 {
        value = format!(
            "where(c[i] > {}.5, s * {level}, where(x[i] > {}, 1, {value}))",
            level,
            level - 1
        );
    }
    check(&format!(
        "input x: f64[16]\ninput c: f64[16]\n\
         // c: 0 1 2 3 4 5 6 7 8 9 10 11 12 3 7 0\n// kinks: c\nhand_c[i] = 0 * x[i]\n\
         fn choose(s, x, c) = {}\ny[i] = choose(exp(x[i]) * x[i], x[i], c[i])\nloss = sum[i] y[i] * (1 + i)",
        value.replace("[i]", "")
    ));
}

/// More points than the product of the others is made for.
#[test]
fn long_products() {
    for zeros in [0, 1, 2] {
        let points: Vec<String> = (0..300)
            .map(|at| match at < zeros {
                true => "0".into(),
                false => format!("{}", 1.0 + f64::from(at % 7) * 0.001),
            })
            .collect();
        check(&format!(
            "input x: f64[300]\n// x: {}\nloss = prod[i] x[i]",
            points.join(" ")
        ));
    }
}

#[test]
fn narrow_types_have_wide_gradients() {
    let text = "input x: f16[3]\n// x: 1 2.5 -3\ninput w: bf16[3]\n// w: 2 1 0.5\n\
                m: f16 = f16(max[i] x[i] * 3.001)\ns[i] = f16(x[i]) * f16(w[i])\n\
                loss = f32(m) + (sum[i] f32(s[i]))\n\
                g = grad(loss, x)\nh = grad(loss, w)\noutput g\noutput h";
    let program = program(&text.replace("f16(w[i])", "f16(f32(w[i]))"));
    let inputs = crate::inputs(text, &program);
    let found = run(&program, &inputs);
    for output in &program.outputs {
        assert_eq!(program.tensor(output.tensor).dtype, ein_plan::DType::F32);
    }
    for (found, expected) in found[0].iter().zip([2.0, 1.0 + 3.001, 0.5]) {
        assert!((found - expected).abs() < 2e-3, "{found} is not {expected}");
    }
    assert_eq!(found[1], [1.0, 2.5, -3.0]);
}
