//! What the statements of gradients look like, where `grad` may stand, and what is refused.

use crate::{analysis, inputs, program, run};

/// The hidden statements of a program.
fn hidden(text: &str) -> String {
    let program = program(text);
    let hidden = program
        .tensors
        .iter()
        .filter(|t| t.name.starts_with("grad."));
    hidden
        .map(|tensor| {
            let text = program.tensor_text(tensor);
            let text = text.split("   //").next().unwrap().to_owned();
            text + "\n"
        })
        .collect()
}

#[test]
fn contractions_have_contractions_as_adjoints() {
    let text = "input X: f32[8, 3]\ninput T: f32[8, 4]\nparam W: f32[3, 5] = zeros\nparam V: f32[5, 4] = zeros\n\
                a[n,h] = relu(X[n,d] * W[d,h])\ny[n,l] = a[n,h] * V[h,l]\n\
                loss = mean[n,l] (y[n,l] - T[n,l])^2\n\
                W1[d,h] = W[d,h] - 0.1 * grad(loss, W)[d,h]\nV1[h,l] = V[h,l] - 0.1 * grad(loss, V)[h,l]\n\
                output W1\noutput V1";
    insta::assert_snapshot!(hidden(text), @r"
    hidden grad.y: f32[8, 4] = [n: 8, l: 4] 0.0625 * (y[n, l] - T[n, l])
    hidden grad.a: f32[8, 5] = [n: 8, h: 5 | l: 4] sum grad.y[n, l] * V[h, l]
    hidden grad.a.1: f32[8, 5] = [n: 8, h: 5] where(a[n, h] > 0.0, grad.a[n, h], 0.0)
    hidden grad.W: f32[3, 5] = [d: 3, h: 5 | n: 8] sum grad.a.1[n, h] * X[n, d]
    hidden grad.V: f32[5, 4] = [h: 5, l: 4 | n: 8] sum grad.y[n, l] * a[n, h]
    ");
}

#[test]
fn reads_have_reads_as_adjoints() {
    let text = "input x: f32[8]\ninput w: f32[3]\ninput tok: i64[4]\ninput A: f32[8, 8]\n\
                y[i < 8] = sum[r < 3] (x[i + r - 1] else 0) * w[r]\n\
                s[i < 3] = sum[r < 3] x[2*i + r] * w[r]\n\
                z[n] = x[tok[n]]\nd[i] = A[i,i] * A[i,0]\n\
                loss = (sum[i] y[i]^2) + (sum[n] z[n]^3) + (sum[i] s[i]^2) + (sum[i] d[i])\n\
                gx = grad(loss, x)\ngw = grad(loss, w)\ngA = grad(loss, A)\noutput gx\noutput gw\noutput gA";
    insta::assert_snapshot!(hidden(text), @r"
    hidden grad.z: f32[4] = [n: 4] 3.0 * (z[n] * z[n])
    hidden grad.s: f32[3] = [i: 3] 2.0 * s[i]
    hidden grad.y: f32[8] = [i: 8] 2.0 * y[i]
    hidden grad.x.1: f32[8] = [i: 8 | r: 3] sum grad.y[i + 1 - r] else 0.0 * w[r]
    hidden grad.x.2: f32[8] = [i: 8 | i_2: 3, r: 3] sum grad.s[i_2] * w[r] if 2 * i_2 + r == i
    hidden grad.x.3: f32[8] = [i: 8 | n: 4] sum grad.z[n] if tok[n] == i
    hidden grad.x: f32[8] = [i: 8] grad.x.1[i] + grad.x.2[i] + grad.x.3[i]
    hidden grad.w.1: f32[3] = [r: 3 | i: 8] sum grad.y[i] * x[r + i - 1] else 0.0
    hidden grad.w.2: f32[3] = [r: 3 | i: 3] sum grad.s[i] * x[r + 2 * i]
    hidden grad.w: f32[3] = [r: 3] grad.w.1[r] + grad.w.2[r]
    hidden grad.A: f32[8, 8] = [i: 8, j: 8] where(0 == j, A[i, i], 0.0) + where(i == j, A[i, 0], 0.0)
    ");
}

#[test]
fn branches_keep_their_conditions() {
    let text = "input x: f32[8]\ninput y: f32[8]\n\
                loss = sum[i] where(x[i] > 0, log(x[i]) * y[i], where(y[i] > 0, x[i] / y[i], 0))\n\
                gx = grad(loss, x)\ngy = grad(loss, y)\noutput gx\noutput gy";
    insta::assert_snapshot!(hidden(text), @r"
    hidden grad.x: f32[8] = [i: 8] where(x[i] > 0.0, y[i] / x[i], where(y[i] > 0.0, 1.0 / y[i], 0.0))
    hidden grad.y: f32[8] = [i: 8] where(x[i] > 0.0, log(x[i]), where(y[i] > 0.0, -(x[i] / y[i] / y[i]), 0.0))
    ");
}

#[test]
fn reductions_divide_their_adjoints() {
    let text = "input x: f32[8, 5]\n\
                m[i] = max[j] x[i,j]\nl[i] = logsumexp[j] x[i,j]\nn[i] = norm[j] x[i,j]\n\
                p[i] = prod[j] x[i,j]\na[i] = mean[j < 3] x[i,j]\n\
                loss = sum[i] m[i] * l[i] + n[i] * p[i] * a[i]\n\
                g = grad(loss, x)\noutput g";
    insta::assert_snapshot!(hidden(text), @r"
    hidden grad.a: f32[8] = [i: 8] n[i] * p[i]
    hidden grad.p: f32[8] = [i: 8] a[i] * n[i]
    hidden grad.n: f32[8] = [i: 8] a[i] * p[i]
    hidden grad.m.count: f32[8] = [i: 8 | j: 5] sum where(x[i, j] == m[i], 1.0, 0.0)
    hidden grad.p.others: f32[8, 5] = [i: 8, j: 5 | j_2: 5] prod x[i, j_2] if j != j_2
    hidden grad.x: f32[8, 5] = [i: 8, j: 5] where(x[i, j] == m[i], l[i] / grad.m.count[i], 0.0) + where(x[i, j] > -inf, m[i] * exp(x[i, j] - l[i]), 0.0) + where(n[i] == 0.0, 0.0, grad.n[i] * (x[i, j] / n[i])) + grad.p[i] * grad.p.others[i, j] + where(j < 3, grad.a[i] / 3.0, 0.0)
    ");
}

/// `found` and `expected` are the same.
fn same(text: &str) {
    let text = format!("{text}\noutput found\noutput expected\n");
    let program = program(&text);
    let all = run(&program, &inputs(&text, &program));
    assert_eq!(all[0].len(), all[1].len(), "{program}");
    for (found, expected) in all[0].iter().zip(&all[1]) {
        assert!((found - expected).abs() < 1e-12, "{all:?}\n{program}");
    }
}

#[test]
fn grad_stands_where_a_tensor_may() {
    // By a definition, which nothing else reads.
    same(
        "input x: f64[3]\nh[i] = x[i]^2\nloss = sum[i] h[i]^2\nfound = grad(loss, h)\nexpected[i] = 2 * h[i]",
    );
    // By a scalar, in an expression; by the loss itself.
    same(
        "input x: f64\nloss = x^3\nfound = 1 + grad(loss, x) * grad(loss, loss)\nexpected = 1 + 3 * x^2",
    );
    // Of an expression; indexed in another order.
    same(
        "input A: f64[3, 3]\nfound[i,j] = grad(sum[k,l] A[k,l]^2 * l, A)[j,i]\nexpected[i,j] = 2 * A[j,i] * i",
    );
    // As an argument of a function; in a function; with an index of the same name as a tensor.
    same(
        "input W: f64[3]\nfn twice(x[n]) -> y[n] { y[n] = 2 * x[n] }\n\
         fn slope(l, x[n]) -> g[n] { g = grad(l, x) }\nloss = sum[W] W[W]^2\n\
         found[i] = twice(grad(loss, W))[i] + slope(loss, W)[i]\nexpected[i] = 6 * W[i]",
    );
    same(
        "input w: f64[3]\nfn size2(w) = sum[k] grad(sum[l] w[l]^2, w)[k]^2\n\
         found = size2(w)\nexpected = sum[i] 4 * w[i]^2",
    );
    // A user's function of that name is the user's.
    same("input x: f64\nfn grad(a, b) = a - b\nfound = grad(x, 1)\nexpected = x - 1");
}

#[test]
fn what_does_not_matter_is_zero_with_a_warning() {
    for loss in [
        "sum[i] x[i]",
        "(sum[i] x[i]) + f64(argmax[i] y[i]) + (sum[i] stop(y[i]) * f64(i32(y[i])))",
        "sum[i] x[i] * sign(y[i])",
    ] {
        let text = format!(
            "input x: f64[3]\ninput y: f64[3]\nloss = {loss}\nfound = grad(loss, y)\nexpected[i < 3] = 0.0 * x[i]"
        );
        same(&text);
        let analysis = analysis(&format!("{text}\noutput found"));
        let messages: Vec<&str> = analysis
            .diagnostics
            .iter()
            .map(|d| d.message.as_str())
            .collect();
        assert_eq!(
            messages,
            ["`loss` does not depend on `y`: the gradient is zeros"]
        );
    }
}

/// Derivatives of and by both parts of complex numbers are one for the user.
#[test]
fn of_the_parts_of_complex_numbers_all_must_be_zero() {
    let warned = |line: &str| -> Vec<String> {
        let text = format!(
            "input z: c64[3]\ninput s: c64[3]\ninput x: f32[3]\nw[i] = re(z[i]) * x[i]\n\
             l = sum[i] w[i]\nm = sum[i] abs(s[i])\n{line}\noutput y"
        );
        let told = analysis(&text).diagnostics;
        told.iter().map(|d| d.message.clone()).collect()
    };
    for line in [
        "y = grad(l, z)",
        "y = jvp(w, z, s)",
        "y = jvp(z, z, x)",
        "y = jacobian(w, z)",
        "v[i] = complex(0, 1) * x[i]\ny = jacobian(v, x)",
    ] {
        assert_eq!(warned(line), [""; 0], "{line}");
    }
    for (line, of, by) in [
        ("y = grad(m, z)", "m", "z"),
        ("y = jvp(s, z, x)", "s", "z"),
        ("y = jacobian(w, s)", "w", "s"),
        ("y = jacobian(s, x)", "s", "x"),
    ] {
        let zeros = format!("`{of}` does not depend on `{by}`: the gradient is zeros");
        assert_eq!(warned(line), [zeros], "{line}");
    }
}

#[test]
fn names_stay_the_users() {
    let text = "input x: f64[3]\nuse \"a.ein\"\nloss = sum[i] x[i]^3\n\
                y = grad(loss, x)\nz[i] = y[i] * y[i]\nl = sum[i] z[i]\nw = grad(l, x)\noutput w\noutput y";
    let program = program(&text.replace("use \"a.ein\"\n", ""));
    let mut names: Vec<&String> = program.tensors.iter().map(|t| &t.name).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for hidden in program
        .tensors
        .iter()
        .filter(|t| t.name.starts_with("grad."))
    {
        assert_ne!(hidden.origin.line, 0, "{}", hidden.name);
    }
}

/// The programs of the language reference that take gradients.
#[test]
fn the_reference_is_true() {
    let blocks = include_str!("../../../LANGUAGE.md")
        .split("\n```ein\n")
        .skip(1);
    let blocks = blocks.map(|rest| rest.split("\n```").next().unwrap());
    let mut count = 0;
    for block in blocks.filter(|block| block.contains("grad(")) {
        let analysis = analysis(block);
        assert!(
            analysis.program.is_some() && analysis.diagnostics.is_empty(),
            "{:?}",
            analysis.diagnostics
        );
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn only_what_is_asked_for_is_made() {
    let text = "input X: f64[4, 3]\nparam W: f64[3, 2] = zeros\nparam V: f64[2, 2] = zeros\n\
                h[n,k] = tanh(X[n,d] * W[d,k])\ny[n,c] = h[n,k] * V[k,c]\nloss = sum[n,c] y[n,c]^2\n\
                g = grad(loss, V)\noutput g";
    let program = program(text);
    let names: Vec<&str> = program.tensors.iter().map(|t| t.name.as_str()).collect();
    // Neither the loss, nor the adjoint of `h`.
    assert_eq!(
        names,
        ["X", "W", "V", "h.1", "h", "y", "grad.y", "grad.V", "g"]
    );
}
