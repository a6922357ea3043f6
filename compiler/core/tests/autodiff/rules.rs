//! What the statements of gradients look like, and what is refused.

use crate::{analysis, check, program};
use ein_plan::Scalar;

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
    insta::assert_snapshot!(hidden(text), @r"");
}

#[test]
fn reads_have_reads_as_adjoints() {
    let text = "input x: f32[8]\ninput w: f32[3]\ninput tok: i64[4]\n\
                y[i < 8] = sum[r < 3] (x[i + r - 1] else 0) * w[r]\n\
                z[n] = x[tok[n]]\nloss = (sum[i] y[i]^2) + (sum[n] z[n]^3)\n\
                gx = grad(loss, x)\ngw = grad(loss, w)\noutput gx\noutput gw";
    insta::assert_snapshot!(hidden(text), @r"");
}
