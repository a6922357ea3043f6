//! Sums of products against the loops over panels that they become.
//!
//! Must not know placements.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j]   and   repeat p { C[i,j] += A[i,K*p+k] * B[K*p+k,j] }:   the same values
//! ```

use crate::support::{Kind, difference};
use einc_core::einsum::Program;
use einc_core::einsum::parse::parse;
use einc_core::einsum::verify::verify;
use einc_core::rules::panels::expand;

const OPERANDS: &str = "input A: f64[6, 35] = unbound\ninput B: f64[35, 4] = unbound\ninput S: f64[35, 35] = unbound\n\
    input v: f32[35] = unbound\ninput h: f16[6, 35] = unbound\ninput n: i64[35] = unbound\n";

/// A program over the operands with its sums in panels of so many bytes at most for one site; nothing if it has none.
fn expanded(statements: &str, room: u64) -> (Program, Option<Program>) {
    let program = parse(&format!("{OPERANDS}{statements}")).unwrap().needed();
    assert_eq!(verify(&program), Ok(()), "{statements}");
    let found = expand(&program, &[], (1, room)).map(|found| found.program);
    if let Some(found) = &found {
        assert_eq!(verify(found), Ok(()), "{found}");
    }
    (program, found)
}

#[test]
fn a_product_is_a_loop_over_panels() {
    let statement = "C: f64[6, 4] = [i: 6, j: 4 | k: 35] sum A[i, k] * B[k, j]\noutput C";
    // Five times 7 values of k, and twice 17 beside a rest of 1.
    let (_, even) = expanded(statement, 700);
    let (_, uneven) = expanded(
        "C: f64[6] = [i: 6 | k: 35] sum A[i, k] * A[i, k] * f64(v[k])\noutput C",
        1000,
    );
    insta::assert_snapshot!(format!("{}\n{}", even.unwrap(), uneven.unwrap()));
}

#[test]
fn the_values_are_the_same() {
    for statements in [
        "C: f64[6, 4] = [i: 6, j: 4 | k: 35] sum A[i, k] * B[k, j]\noutput C",
        "C: f64[6, 6] = [i: 6, j: 6 | k: 35] sum A[i, k] * A[j, k]\noutput C",
        "C: f64[6, 4] = [i: 6, j: 4 | k: 35, l: 35] sum A[i, k] * S[k, l] * B[l, j]\noutput C",
        "C: f64[35, 35] = [i: 35, j: 35 | k: 35] sum S[i, k] * S[k, j]\noutput C",
        "C: f64[35] = [i: 35 | k: 35] sum exp(S[k, i] - 2.0_f64) + S[i, i]\noutput C",
        "C: f32[6] = [i: 6 | k: 35] sum h[i, k] * v[k]\nD: f32[6] = [i: 6] C[i] * 2.0\noutput C\noutput D",
        "C: f64[4] = [j: 4 | k: 35] sum f64(n[k]) * B[k, j]\noutput C",
    ] {
        let mut loops = 0;
        for room in [200, 500, 1000] {
            let (program, Some(found)) = expanded(statements, room) else {
                continue;
            };
            loops += 1;
            let difference = difference(&program, &found, 1, Kind::Finite, true);
            assert_eq!(difference, None, "{statements}");
        }
        assert!(loops > 0, "{statements}");
    }
}

#[test]
fn other_sums_stay() {
    for statements in [
        // Another law, a guard, a result that is rounded, and one number.
        "C: f64[6, 4] = [i: 6, j: 4 | k: 35] max A[i, k] * B[k, j]\noutput C",
        "C: f64[6, 4] = [i: 6, j: 4 | k: 35] sum A[i, k] * B[k, j] if k <= i\noutput C",
        "C: f16[6] = [i: 6 | k: 35] sum h[i, k] * v[k]\noutput C",
        "C: f64[] = [| k: 35] sum S[k, 0] * B[k, 1]\noutput C",
        // The summed index is a number, is moved, stands twice in a read, or goes through a part.
        "C: f64[6] = [i: 6 | k: 35] sum A[i, k] * f64(k)\noutput C",
        "C: f64[6] = [i: 6 | k: 34] sum A[i, k + 1]\noutput C",
        "C: f64[6] = [i: 6 | k: 35] sum S[k, k] * A[i, k]\noutput C",
        "C: f64[6] = [i: 6 | k: 30] sum A[i, k]\noutput C",
        // A read may be outside.
        "C: f64[4] = [j: 4 | k: 35] sum B[n[k], j] * B[k, j]\noutput C",
    ] {
        let (_, found) = expanded(statements, 100);
        assert!(found.is_none(), "{statements}\n{}", found.unwrap());
    }
    let wide = "C: f64[6, 4] = [i: 6, j: 4 | k: 35] sum A[i, k] * B[k, j]\noutput C";
    assert!(expanded(wide, 1 << 20).1.is_none());
}
