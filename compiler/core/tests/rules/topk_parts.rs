//! The largest values of vectors against the largest values of parts that they become.
//!
//! Must not know placements.
//!
//! ```text
//! topk(x, 5)   and   topk of topk(x[part], 5) of every part:   the same positions
//! ```

use crate::support::{self, Kind, compiled, difference};
use einc_core::einsum::Program;
use einc_core::rules::topk_parts::expand;

const OPERANDS: &str = "input x: f64[1300] = unbound\ninput y: f32[1280] = unbound\ninput n: i64[150] = unbound\n\
    input r: f64[3, 1300] = unbound\ninput b: u8[1300] = unbound\n";

/// A program over the operands with the largest values of its vectors by parts; nothing if it has none.
fn expanded(statements: &str) -> (Program, Option<Program>) {
    support::expanded(&format!("{OPERANDS}{statements}"), expand)
}

#[test]
fn the_largest_values_are_those_of_the_parts() {
    let (_, found) = expanded(
        "p: i64[5] = [i: 5] topk(x[:1], i)\nv: f64[5] = [i: 5] x[p[i]]\nw: f64[5] = [i: 5] x[p[4 - i]] + x[i]\n\
         output p\noutput v\noutput w",
    );
    insta::assert_snapshot!(found.unwrap());
}

#[test]
fn the_values_are_the_same() {
    for statements in [
        "p: i64[5] = [i: 5] topk(x[:1], i)\nv: f64[5] = [i: 5] x[p[i]]\noutput p\noutput v",
        "p: i64[7] = [i: 7] topk(y[:1], i)\nv: f32[7] = [i: 7] y[p[i]] * 2.0\noutput p\noutput v",
        "p: i64[3] = [i: 3] topk(n[:1], i)\nv: i64[3] = [i: 3] n[p[i]] + p[i]\noutput p\noutput v",
        "p: i64[1] = [i: 1] topk(n[:1], i)\nq: i64[2] = [i: 2] topk(n[:1], i)\noutput p\noutput q",
        // A position before the first.
        "p: i64[5] = [i: 5] topk(x[:1], i)\nv: f64[5] = [i: 5] x[p[i - 1] else 7]\noutput p\noutput v",
        // All values of a part are less than those behind its end, but NaN.
        "z: f64[1300] = [i: 1300] where(i < 1290, -inf_f64, x[i])\np: i64[9] = [i: 9] topk(z[:1], i)\n\
         v: f64[9] = [i: 9] z[p[i]]\noutput p\noutput v",
    ] {
        let (program, found) = expanded(statements);
        let found = found.unwrap();
        for seed in 1..5 {
            for kind in [Kind::Finite, Kind::Wild] {
                let difference = difference(&program, &found, seed, kind, true);
                assert_eq!(difference, None, "{statements}");
            }
        }
    }
}

#[test]
fn other_calls_stay() {
    for statements in [
        // Many values of few, rows, and values that a part cannot be filled up with.
        "p: i64[40] = [i: 40] topk(n[:1], i)\noutput p",
        "p: i64[3, 5] = [b: 3, i: 5] topk(r[b, :1], i)\noutput p",
        "p: i64[5] = [i: 5] topk(b[:1], i)\noutput p",
        "p: i64[1300] = [i: 1300] argsort(x[:1], i)\noutput p",
    ] {
        let (_, found) = expanded(statements);
        assert!(found.is_none(), "{statements}\n{}", found.unwrap());
    }
}

#[test]
fn sites_move_what_they_found() {
    let text = "input x: f32[100000] = unbound\ny: f32[100000] = [i: 100000] exp(x[i]) * x[i]\n\
        p: i64[10] = [i: 10] topk(y[:1], i)\nv: f32[10] = [i: 10] y[p[i]]\noutput p\noutput v";
    let compiled = compiled(text, 4);
    let rules: Vec<&str> = compiled
        .chosen
        .rewrites
        .iter()
        .map(|r| r.rule.as_str())
        .collect();
    assert!(rules.contains(&"topk-by-parts"), "{rules:?}");
    assert!(compiled.cost.transfer < 3000, "{}", compiled.plan);
}
