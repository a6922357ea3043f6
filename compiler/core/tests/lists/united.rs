//! Tensors with the places of several lists: their text, and their values.

use super::random::Random;
use super::{assert_same, listing, over_lists, program};
use einc_core::einsum::verify::verify;
use einc_core::lists::with_lists;

#[test]
fn a_matrix_and_its_transpose_have_a_list_together() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[50, 50] = unbound\ninput x: f32[50] = unbound\n\
         S: f32[50, 50] = [i: 50, j: 50] A[i, j] + A[j, i] + where(i == j, 1.0, 0.0)\n\
         y: f32[50] = [i: 50 | j: 50] sum S[i, j] * x[j]\noutput y",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input x: f32[50] = unbound
    hidden S.diagonal: u32[50] = [e: 50] e
    hidden A.key: i64[5] = [e: 5] A.at0[e] * 50 + A.at1[e]
    hidden A.key.1: i64[5] = [e: 5] A.at1[e] * 50 + A.at0[e]
    hidden A.place: i64[5] = [e: 5] find(A.key[:1], A.key.1[e])
    hidden A.found: f32[5] = [e: 5] A.values[A.place[e]] else 0.0
    hidden S.part: f32[5] = [e: 5] A.values[e] + A.found[e] + where(A.at0[e] == A.at1[e], 1.0, 0.0)
    hidden S.part.1: f32[5] = [e: 5] A.found[e] + A.values[e] + where(A.at1[e] == A.at0[e], 1.0, 0.0)
    hidden A.key.2: i64[50] = [e: 50] S.diagonal[e] * 50 + S.diagonal[e]
    hidden A.place.1: i64[50] = [e: 50] find(A.key[:1], A.key.2[e])
    hidden A.found.1: f32[50] = [e: 50] A.values[A.place.1[e]] else 0.0
    hidden S.part.2: f32[50] = [e: 50] A.found.1[e] + A.found.1[e] + where(S.diagonal[e] == S.diagonal[e], 1.0, 0.0)
    hidden S.keys: i64[60] = [e: 60] A.key[e] else (A.key.1[e - 5] else (A.key.2[e - 10] else 0))
    hidden S.order: i64[60] = [e: 60] argsort(S.keys[:1], e)
    hidden S.at: i64[60] = [e: 60] S.keys[S.order[e]] else 0
    hidden S.at0: u32[60] = [e: 60] floordiv(S.at[e], 50)
    hidden S.at1: u32[60] = [e: 60] rem(S.at[e], 50)
    hidden S.values: f32[60] = [e: 60] where(S.at[e] == S.at[e - 1] else -1, 0.0, S.part[S.order[e]] else (S.part.1[S.order[e] - 5] else (S.part.2[S.order[e] - 10] else 0.0)))
    y: f32[50] = [i: 50 | e: 60] sum S.values[e] * x[S.at1[e]] if i == S.at0[e]
    output y
    "#);
}

#[test]
fn a_part_of_a_sum_gets_a_name() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[60, 60] = unbound\ninput x: f32[60, 3] = unbound\n\
         y: f32[60, 3] = [i: 60, h: 3 | j: 60] sum tanh(A[i, j] + where(i == j, 1.0, 0.0)) * x[j, h]\noutput y",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input x: f32[60, 3] = unbound
    hidden y.diagonal: u32[60] = [e: 60] e
    hidden y.part: f32[5] = [e: 5] A.values[e] + where(A.at0[e] == A.at1[e], 1.0, 0.0)
    hidden y.key: i64[5] = [e: 5] A.at0[e] * 60 + A.at1[e]
    hidden A.key: i64[60] = [e: 60] y.diagonal[e] * 60 + y.diagonal[e]
    hidden A.place: i64[60] = [e: 60] find(y.key[:1], A.key[e])
    hidden A.found: f32[60] = [e: 60] A.values[A.place[e]] else 0.0
    hidden y.part.1: f32[60] = [e: 60] A.found[e] + where(y.diagonal[e] == y.diagonal[e], 1.0, 0.0)
    hidden y.keys: i64[65] = [e: 65] y.key[e] else (A.key[e - 5] else 0)
    hidden y.order: i64[65] = [e: 65] argsort(y.keys[:1], e)
    hidden y.at: i64[65] = [e: 65] y.keys[y.order[e]] else 0
    hidden y.at0: u32[65] = [e: 65] floordiv(y.at[e], 60)
    hidden y.at1: u32[65] = [e: 65] rem(y.at[e], 60)
    hidden y.values: f32[65] = [e: 65] where(y.at[e] == y.at[e - 1] else -1, 0.0, y.part[y.order[e]] else (y.part.1[y.order[e] - 5] else 0.0))
    y: f32[60, 3] = [i: 60, h: 3 | e: 65] sum tanh(y.values[e]) * x[y.at1[e], h] if i == y.at0[e]
    output y
    "#);
}

/// Matrices with the places of `A`, its transpose, `B` and the diagonal, and what reads them.
fn random_program(random: &mut Random) -> String {
    let mut text = "input A: f32[60, 60] = unbound\ninput B: f32[60, 60] = unbound\ninput d: f32[60] = unbound\n"
        .to_owned();
    let mut matrices: Vec<String> = ["A[i, j]", "A[j, i]", "B[i, j]", "where(i == j, d[i], 0.0)"]
        .map(str::to_owned)
        .to_vec();
    let mut outputs = String::new();
    for number in 0..4 {
        let side = |random: &mut Random| matrices[random.below(matrices.len())].clone();
        let (x, y) = (side(random), side(random));
        let value = match random.below(7) {
            0 | 1 => format!("{x} + {y}"),
            2 => format!("{x} - 2.0 * {y}"),
            3 => format!("where({x} != 0.0, {x}, {y})"),
            4 => format!("max({x}, {y}) * d[j]"),
            5 => format!("tanh({x}) * {y}"),
            _ => format!("{x} * {y} + {x}"),
        };
        match random.below(4) {
            0 | 1 => {
                text += &format!("m{number}: f32[60, 60] = [i: 60, j: 60] {value}\n");
                matrices.push(format!("m{number}[i, j]"));
                matrices.push(format!("m{number}[j, i]"));
            }
            2 => {
                let value = random
                    .of(&["(V)", "(V) * d[j]", "tanh(V)"])
                    .replace('V', &value);
                let reduction = random.of(&["sum", "max", "min", "mean", "norm"]);
                text += &format!("m{number}: f32[60] = [i: 60 | j: 60] {reduction} {value}\n");
            }
            _ => text += &format!("m{number}: f32[60] = [j: 60 | i: 60] sum ({value}) * d[i]\n"),
        }
        outputs += &format!("output m{number}\n");
    }
    text + &outputs
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut over = 0;
    for seed in 0..60 {
        let dense = match einc_core::einsum::parse::parse(&random_program(&mut Random(seed))) {
            Ok(program) => program.needed(),
            Err(error) => panic!("{error}"),
        };
        let lists = with_lists(&dense, &listing(7));
        assert_eq!(verify(&lists), Ok(()), "{seed}: {lists}");
        assert_eq!(program(&lists.to_string()), lists);
        over += usize::from(lists.to_string().contains(".part"));
        assert_same((&dense, &lists), &[60, 60], &format!("seed {seed}"));
    }
    assert!(over > 30, "{over}");
}
