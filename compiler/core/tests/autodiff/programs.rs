//! The cases in files.

use crate::{check, program};
use einc_core::einsum::Definition;
use std::path::Path;

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/autodiff/cases");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in text.split("// ----\n") {
            check(case);
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} cases");
}

/// Of all places one is left, so no sum is taken over them.
#[test]
fn the_gradient_of_a_scatter_is_a_gather() {
    let scatters = [
        "G[at[n], d]: f64[4, 2] += E[n,d] * w[n]",
        "G[at[n], d]: f64[4, 2] max= E[n,d] * w[n]",
        "G[n % 4, d]: f64[4, 2] += E[n,d] * w[n]",
        "G[n + 3, d]: f64[9, 2] += E[n,d] * w[n]",
        "G[at[n], d] else drop: f64[4, 2] += E[n,d] * w[n]",
        "G[2*n - 3, d] else drop: f64[4, 2] += E[n,d] * w[n]",
    ];
    for scatter in scatters {
        let text = format!(
            "input E: f64[6, 2]\ninput w: f64[6]\ninput at: i64[6]\n{scatter}\nloss = sum[v,d] G[v,d]^3\n\
             g = grad(loss, E)\noutput g\n"
        );
        let program = program(&text);
        let g = program.tensors.iter().find(|tensor| tensor.name == "g");
        let Definition::Statement { kernel, .. } = &g.unwrap().definition else {
            panic!("{program}");
        };
        assert!(kernel.reduction.is_none(), "{program}");
    }
}
