//! Every row by execution: instances of it with uneven sizes, alone and with all rules, on values that wrap, round, are
//! infinite or NaN.

use crate::support::{Kind, difference, program, rewrite_only};
use einc_core::einsum::verify::verify;
use einc_core::rules;
use std::collections::BTreeSet;

/// What is kept where values are not finite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Exact,
    Spreads,
}
use Claim::{Exact, Spreads};

/// The rule, what it claims, element types, and the text, in which T is the type, I J K L are extents.
struct Instance(&'static str, Claim, &'static str, &'static str);

const NUMBERS: &str = "f64 f32 i32 i64";
const FLOATS: &str = "f64 f32";

const INSTANCES: &[Instance] = &[
    Instance(
        "common-subexpression",
        Exact,
        NUMBERS,
        "x: T[I] = unbound\na: T[I] = [i: I] x[i] * x[i]\nb: T[I] = [j: I] x[j] * x[j]\nc: T[I] = [i: I] max(a[i], b[i])\noutput c",
    ),
    Instance(
        "transpose-read",
        Exact,
        "f64 f16 bf16 i32 u8 bool",
        "x: T[I, J] = unbound\nt: T[J, I] = [j: J, i: I] x[i, j]\nu: T[I, J] = [i: I, j: J] t[j, i]\noutput t\noutput u",
    ),
    Instance(
        "read-through",
        Exact,
        NUMBERS,
        "x: T[I, I] = unbound\ny: T[I] = unbound\nz: T[I, I] = [i: I, j: I] max(x[i, j] + y[j], x[j, i])\nd: T[I] = [i: I] z[i, i]\noutput d",
    ),
    Instance(
        "read-through",
        Exact,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K, I] = unbound\nz: T[I, I] = [i: I, j: I | k: K] sum x[i, k] * y[k, j]\nd: T[I] = [i: I] z[i, i]\noutput d",
    ),
    Instance(
        "merge-products",
        Spreads,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K, L] = unbound\nz: T[L, J] = unbound\nt: T[I, L] = [i: I, l: L | k: K] sum x[i, k] * y[k, l]\nu: T[I, J] = [i: I, j: J | l: L] sum t[i, l] * z[l, j]\noutput u\noutput t",
    ),
    Instance(
        "merge-products",
        Spreads,
        FLOATS,
        "x: T[I, K] = unbound\ny: T[K] = unbound\nt: T[I] = [i: I | k: K] max x[i, k] + y[k]\nu: T[I] = [j: I | i: I] max t[i] - x[j, K - 1 - (K - 1)]\noutput t\nv: T[] = [| i: I] max t[i] + t[i]\noutput v\noutput u",
    ),
    Instance(
        "contraction-order",
        Spreads,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K, L] = unbound\nz: T[L, J] = unbound\nu: T[I, J] = [i: I, j: J | k: K, l: L] sum x[i, k] * y[k, l] * z[l, j]\noutput u",
    ),
    Instance(
        "contraction-order",
        Spreads,
        FLOATS,
        "x: T[I, K] = unbound\ny: T[K, L] = unbound\nz: T[L, J] = unbound\nu: T[I, J] = [i: I, j: J | k: K, l: L] min x[i, k] + y[k, l] - z[l, j]\noutput u",
    ),
    Instance(
        "contraction-order",
        Exact,
        "bool",
        "x: T[I, K] = unbound\ny: T[K, L] = unbound\nz: T[L, J] = unbound\nu: T[I, J] = [i: I, j: J | k: K, l: L] any and(and(x[i, k], y[k, l]), z[l, j])\noutput u",
    ),
    Instance(
        "pull-factor",
        Spreads,
        NUMBERS,
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] sum x[i] * y[k]\noutput u",
    ),
    Instance(
        "pull-factor",
        Spreads,
        FLOATS,
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] max y[k] - x[i]\noutput u",
    ),
    Instance(
        "pull-factor",
        Spreads,
        FLOATS,
        "x: T[I, J] = unbound\ny: T[I] = unbound\nu: T[I] = [i: I | j: J] sum x[i, j] / y[i]\noutput u",
    ),
    Instance(
        "pull-factor",
        Exact,
        "f64 i32 i64",
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] max min(x[i], y[k])\noutput u",
    ),
    Instance(
        "pull-factor",
        Exact,
        "bool",
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] all or(x[i], y[k])\noutput u",
    ),
    Instance(
        "factor",
        Spreads,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K, J] = unbound\nz: T[K, J] = unbound\np: T[I, J] = [i: I, j: J | k: K] sum x[i, k] * y[k, j]\nq: T[I, J] = [i: I, j: J | l: K] sum x[i, l] * z[l, j]\nu: T[I, J] = [i: I, j: J] p[i, j] - q[i, j]\noutput u",
    ),
    Instance(
        "factor",
        Spreads,
        NUMBERS,
        "x: T[I] = unbound\ny: T[I] = unbound\nu: T[I] = [i: I] x[i] * y[i] + x[i]\noutput u",
    ),
    Instance(
        "factor",
        Spreads,
        FLOATS,
        "x: T[I] = unbound\ny: T[J] = unbound\nz: T[J] = unbound\nu: T[I] = [i: I | j: J] max max(x[i] + y[j], x[i] + z[j])\noutput u",
    ),
    Instance(
        "distribute",
        Spreads,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[I, K] = unbound\nz: T[K] = unbound\nu: T[I] = [i: I | k: K] sum (x[i, k] - y[i, k]) * z[k]\noutput u",
    ),
    Instance(
        "split-sum",
        Exact,
        "i32 i64",
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] sum x[i] - y[k]\noutput u",
    ),
    Instance(
        "split-sum",
        Exact,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K] = unbound\nz: T[K, I] = unbound\nu: T[I] = [i: I | k: K] sum x[i, k] * y[k] - z[k, i] * y[k]\noutput u",
    ),
    Instance(
        "split-sum",
        Exact,
        NUMBERS,
        "x: T[I] = unbound\ny: T[K] = unbound\nu: T[I] = [i: I | k: K] sum x[i] + y[k]\noutput u",
    ),
    Instance(
        "split-sum",
        Exact,
        "f64 i32",
        "x: T[I] = unbound\ny: T[I, K] = unbound\nu: T[I] = [i: I | k: K] max max(x[i], y[i, k])\noutput u",
    ),
    Instance(
        "join-sums",
        Exact,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[K, I] = unbound\np: T[I] = [i: I | k: K] sum x[i, k]\nq: T[I] = [i: I | l: K] sum y[l, i]\nu: T[I] = [i: I] p[i] - q[i]\noutput u",
    ),
    Instance(
        "nested-reductions",
        Exact,
        NUMBERS,
        "x: T[I, K, J] = unbound\np: T[I, K] = [i: I, k: K | j: J] min x[i, k, j]\nu: T[I] = [i: I | k: K] min p[i, k]\noutput u\noutput p",
    ),
    Instance(
        "reduce-filter",
        Exact,
        NUMBERS,
        "x: T[I, K] = unbound\nc: bool[I] = unbound\nu: T[I] = [i: I | k: K] sum x[i, k] if c[i]\noutput u",
    ),
    Instance(
        "reduce-filter",
        Exact,
        NUMBERS,
        "x: T[I, K] = unbound\ny: T[I] = unbound\nc: bool[I] = unbound\nu: T[I] = [i: I | k: K] max where(c[i], x[i, k], y[i])\noutput u",
    ),
    Instance(
        "identity-element",
        Exact,
        FLOATS,
        "x: T[I] = unbound\nu: T[I] = [i: I] max(x[i] * 1.0_T / 1.0_T + 0.0_T, -inf_T)\noutput u",
    ),
    Instance(
        "identity-element",
        Exact,
        "i32 i64",
        "x: T[I] = unbound\nu: T[I] = [i: I] x[i] * 1_T - 0_T\noutput u",
    ),
    Instance(
        "fold-constants",
        Exact,
        FLOATS,
        "x: T[I] = unbound\nu: T[] = [| i: I] sum x[i] * 3.0_T * 0.5_T\noutput u",
    ),
    Instance(
        "fold-constants",
        Exact,
        "i32 i64",
        "x: T[I] = unbound\nu: T[I] = [i: I] x[i] * 1234567_T * 7654321_T\noutput u",
    ),
    Instance(
        "unused-index",
        Exact,
        NUMBERS,
        "x: T[I] = unbound\nu: T[I] = [i: I | k: K, l: L] sum x[i]\noutput u",
    ),
    Instance(
        "unused-index",
        Exact,
        "bool",
        "x: T[I] = unbound\nu: T[I] = [i: I | k: K] any x[i]\noutput u",
    ),
    Instance(
        "unused-index",
        Exact,
        FLOATS,
        "u: T[] = [| k: K] sum 2.0_T\noutput u",
    ),
];

/// The text with a type and extents.
fn filled(text: &str, dtype: &str, extents: [u64; 4]) -> String {
    let mut result = String::new();
    let mut word = String::new();
    for letter in text.chars().chain(" ".chars()) {
        if letter.is_alphanumeric() || letter == '_' || letter == '.' {
            word.push(letter);
            continue;
        }
        let at = ["I", "J", "K", "L"].iter().position(|name| *name == word);
        match (at, word.strip_suffix("_T")) {
            (Some(at), _) => result += &extents[at].to_string(),
            (None, Some(number)) => result += &format!("{number}_{dtype}").replace("_i64", ""),
            (None, None) if word == "T" => result += dtype,
            _ => result += &word,
        }
        word.clear();
        result.push(letter);
    }
    result.replace("_f32", "")
}

#[test]
fn every_row_keeps_the_meaning() {
    let mut fired = BTreeSet::new();
    let sizes = [
        [1, 2, 3, 5],
        [7, 3, 2, 1],
        [2, 7, 5, 3],
        [5, 5, 5, 5],
        [3, 1, 7, 2],
        [0, 2, 3, 1],
        [2, 3, 0, 1],
    ];
    for Instance(rule, claim, dtypes, text) in INSTANCES {
        let mut met = false;
        for dtype in dtypes.split(' ') {
            for extents in sizes {
                if extents[2] == 0 && text.contains("K - 1") {
                    continue;
                }
                let program = program(&filled(text, dtype, extents));
                let logic = rewrite_only(&program, &[rule]);
                let here = logic.explored.fired.contains_key(rule);
                met |= here;
                for alternative in &logic.alternatives {
                    let other = &alternative.program;
                    assert_eq!(verify(other), Ok(()), "{rule}\n{program}\n{other}");
                    for seed in 1..4 {
                        for kind in [Kind::Finite, Kind::Wild] {
                            let found = difference(&program, other, seed, kind, *claim == Exact);
                            assert_eq!(found, None, "{rule} {kind:?}\n{program}\n{other}");
                        }
                    }
                }
                let used = logic.alternatives.iter().flat_map(|a| &a.rules);
                if used.map(|u| u.rule).any(|name| name == *rule) {
                    fired.insert(*rule);
                }
            }
        }
        assert!(met, "{rule} never fires\n{text}");
    }
    let all: BTreeSet<&str> = rules::logic().iter().map(|row| row.name).collect();
    assert_eq!(fired, all, "some rows are in no program that was run");
}

#[test]
fn rows_have_different_names_and_say_something() {
    let rows = rules::logic();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len());
    for row in rows {
        assert!(!row.left.is_empty() && !row.right.is_empty() && !row.conditions.is_empty());
        // Alone it is disabled, nothing it found is left.
        for Instance(rule, _, dtypes, text) in INSTANCES {
            if *rule == row.name {
                let dtype = dtypes.split(' ').next().unwrap_or("f64");
                let program = program(&filled(text, dtype, [3, 2, 5, 7]));
                let logic = crate::support::rewrite_without(&program, &[row.name]);
                assert!(!logic.explored.fired.contains_key(row.name), "{}", row.name);
            }
        }
    }
}
