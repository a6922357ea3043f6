//! The cost of the way back through rounds.

use crate::program;
use einc_core::einsum::{Definition, Program};

/// The points of the statements of all blocks.
fn points_of_a_round(program: &Program) -> u64 {
    let inner = program
        .tensors
        .iter()
        .filter(|tensor| tensor.block.is_some());
    let points = inner.map(|tensor| match &tensor.definition {
        Definition::Statement { kernel, .. } => kernel.indices.iter().map(|i| i.extent).product(),
        _ => 0,
    });
    points.sum()
}

/// A round back gives the slice that its round reads, wherever the read stands: what it computes does not grow with the number of rounds.
#[test]
fn a_round_back_is_as_long_as_a_round() {
    let recurrent = |rounds: u64, read: &str| {
        let text = format!(
            "input x: f64[{rounds}, 8]\ninput w: f64[8, 8]\na[t,h] = x[t,d] * w[d,h]
repeat t < {rounds} {{\n  state s[h<8] = 0.0\n  {read}\n}}\nloss = sum[h] s[h]^2\ng = grad(loss, w)\noutput g\n"
        );
        points_of_a_round(&program(&text).needed())
    };
    for read in [
        "b[h] = a[t,h]\n  next s[h] = tanh(b[h] + s[h])",
        "next s[h] = tanh(a[t,h] + s[h])",
        "next s[h] = tanh(a[t,h] + s[h]) * sigmoid(a[t,h])",
    ] {
        assert_eq!(recurrent(50, read), recurrent(100, read), "{read}");
    }
}
