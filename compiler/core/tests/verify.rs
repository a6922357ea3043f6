//! What the verifiers refuse: each invariant with a program that breaks it.
#![allow(clippy::unwrap_used)]

use einc_core::{ia, tra};

fn tra_says(text: &str) -> String {
    let program = tra::parse::parse(text).unwrap();
    tra::verify::verify(&program).expect_err("the program is wrong")
}

fn ia_says(text: &str) -> String {
    let program = ia::parse::parse(text).unwrap();
    ia::verify::verify(&program).expect_err("the program is wrong")
}

#[test]
fn tra_is_verified() {
    for (text, says) in [
        (
            "x: {} f32[4] = source x from unbound\nx: {} f32[4] = source x from unbound",
            "the name is used twice",
        ),
        ("x: {i: 4/0} f32[i] = source x from unbound", "has no piece"),
        (
            "x: {i: 4/2, i: 4/2} f32[#0, #1] = source x from unbound",
            "two key dimensions are named",
        ),
        (
            "x: {i: 4/2} f32[i, i] = source x from unbound",
            "cuts two array dimensions",
        ),
        (
            "x: {i: 4/2} f32[i: 5] = source x from unbound",
            "has extent 5 but `i` cuts 4",
        ),
        ("x: {} (f32, i64)[4] = source x from unbound", "one column"),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {} f32[4] = tile x dim 0",
            "has a key dimension",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {} f32[] = aggregate sum x keep {}",
            "cuts the arrays is not kept",
        ),
        (
            "x: {} f16[4] = source x from unbound\ny: {} f16[4] = aggregate sum x keep {}",
            "no carriers of `sum`",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {i: 4/3} f32[i] = join(x{i}) over [i] (f32[4]) [i: 4] f32 = a0[i]",
            "key dimension `i` is i: 4/2 but `i` is i: 4/3",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {i: 4/2} f32[i] = join(x{i}) over [i] (f32[4]) [i: 4] f32 = a0[3 - i]",
            "more than the part at hand",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {i: 4/2} f32[] = join(x{i}) over [i] (f32[4]) [| i: 4] f32 = sum a0[i]",
            "a reduced index is cut",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {} f32[5] = concat x dim 0",
            "its operator gives",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {} f32[2] = filter x where i = 2",
            "has no piece 2",
        ),
        (
            "x: {i: 4/2} f32[i] = source x from unbound\ny: {i: 4/2} f32[i] = rekey x by {i, i}",
            "not a permutation",
        ),
    ] {
        let said = tra_says(text);
        assert!(said.contains(says), "{said}\ninstead of {says}");
    }
}

#[test]
fn ia_is_verified() {
    let start = "sites 2\nx: {i: 4/2, k: 6/2} f32[i, k] @ PART(i) = source x from unbound\nq: {k: 6/2} f32[k] @ PART(k) = source q from unbound\n";
    for (line, says) in [
        (
            "y: {i: 4/2, k: 6/2} f32[i, k] @ PART(i) = local join(x{i, k}, q{k}) over [i, k] (f32[4, 6], f32[6]) [i: 4, k: 6] f32 = a0[i, k] - a1[k]",
            "it requires `q` at ALL, which is at PART(k)",
        ),
        (
            "y: {i: 4/2, k: 6/2} f32[i, k] @ PART(k) = local join(x{i, k}, q{k}) over [i, k] (f32[4, 6], f32[6]) [i: 4, k: 6] f32 = a0[i, k] - a1[k]",
            "it requires `x` at PART(k), which is at PART(i)",
        ),
        (
            "y: {i: 4/2} f32[i, 6] @ PART(i) = local concat x dim 1\nz: {i: 4/2} f32[i, 6] @ PART(i) = broadcast y",
            "a broadcast gives copies along an axis",
        ),
        (
            "y: {k: 6/2} f32[4, k] @ PART(k) = local concat x dim 0",
            "it requires `x` at PART(k), which is at PART(i)",
        ),
        (
            "y: {i: 4/2, k: 6/2} f32[i, k] @ ALL = shuffle x",
            "a shuffle gives no copies",
        ),
        (
            "y: {i: 4/2, k: 6/2} f32[i, k] @ GRID(k, i) = shuffle x",
            "not one role for each axis",
        ),
        (
            "y: {i: 4/2@_, k: 6/2} f32[i, k] @ PART(i) = source y from unbound",
            "on an axis that does not number its blocks",
        ),
        (
            "y: {i: 4/2@y} f32[i] @ ALL = source y from unbound",
            "not numbered by axes of the mesh, each once",
        ),
        (
            "y: {k: 6/2@_, i: 4/2} f32[i, k] @ PART(i) = local map x by {k, i}",
            "its operator gives",
        ),
        (
            "y: {i: 4/2} f32[i] @ PART(i) = local fold {i: 4/2, k: 6/2} keep {i}(x{i, k}) over [i, k] (f32[4, 6]) [i: 4 | k: 6] f32 = sum a0[i, k]",
            "its kernel gives no carriers to combine",
        ),
        (
            "y: {i: 4/2} f32[i] @ PART(i) = local fold {i: 4/2, k: 6/2} keep {i}(x{i, k}) over [i, k] (f32[4, 6]) [i: 4 | k: 6] f32 = partial sum a0[i, k]\nz: {i: 4/2} f32[i] @ PART(i) = local fold {i: 4/2, k: 6/2} keep {k}(x{i, k}) over [i, k] (f32[4, 6]) [i: 4 | k: 6] f32 = partial sum a0[i, k]",
            "it cannot keep `k` as i: 4/2",
        ),
        (
            "y: {k: 6/2} f32[4] @ ONE = local fold {i: 4/2, k: 6/2} keep {k}(x{i, k}) over [i, k] (f32[4, 6]) [i: 4 | k: 6] f32 = partial sum a0[i, k]",
            "does not keep a key dimension that cuts the arrays",
        ),
        (
            "y: {} f32[] @ ONE = local fold {i: 4/2, k: 6/2} keep {}(x{i, k}) over [i, k] (f32[4, 6]) [| i: 4, k: 6] f32 = partial sum a0[i, k]",
            "it requires `x` at ONE, which is at PART(i)",
        ),
    ] {
        let said = ia_says(&format!("{start}{line}"));
        assert!(said.contains(says), "{said}\ninstead of {says}");
    }
    let none = ia::Program::default();
    assert_eq!(ia::verify::verify(&none).unwrap_err(), "there is no site");
}
