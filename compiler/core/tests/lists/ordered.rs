//! Scatters in the order of their rows: their text, and their values to the last bit.

use super::random::Random;
use super::{needed, small_input};
use einc_core::einsum::interpret::interpret;
use einc_core::einsum::{Definition, Program, Role, parse::parse, verify::verify};
use einc_core::lists::with_ordered_points;

/// `x` and `y` change in every step; the weights and the rows of points do not.
const INPUTS: &str = "input x: f32[12, 4] = fed\ninput y: f32[6, 4] = fed\ninput w: f32[6] = kept\ninput c: f32[2, 3] = kept\n\
    input src: u32[6] = kept\ninput dst: u32[6] = kept\ninput up: u32[6] = kept\ninput at: i64[2, 3] = kept\n";

/// The program with scatters in order, in which statements over kept inputs alone never change.
fn ordered(program: &Program) -> Program {
    let mut steady: Vec<bool> = vec![];
    for tensor in &program.tensors {
        steady.push(match &tensor.definition {
            Definition::Source(source) => *source == ein_plan::Source::Kept,
            Definition::Statement { operands, .. } => {
                operands.iter().all(|operand| steady[operand.0 as usize])
            }
            Definition::Loop(_) => false,
        });
    }
    with_ordered_points(program, 1, &steady, &|name| name == "up")
}

#[test]
fn a_scatter_of_messages_goes_row_by_row() {
    let text = format!(
        "{INPUTS}h: f32[12, 4] = [i: 12, k: 4 | e: 6] sum w[e] * x[src[e], k] * y[e, k] if i == dst[e]\noutput h\n"
    );
    insta::assert_snapshot!(ordered(&needed(&text)), @r"
    input x: f32[12, 4] = fed
    input y: f32[6, 4] = fed
    input w: f32[6] = kept
    input src: u32[6] = kept
    input dst: u32[6] = kept
    hidden h.row: i64[6] = [e: 6] dst[e]
    hidden h.order: i64[6] = [e: 6] argsort(h.row[:1], e)
    hidden h.point: f32[6] = [e: 6] w[h.order[e]]
    hidden h.point.1: u32[6] = [e: 6] src[h.order[e]]
    hidden h.point.2: u32[6] = [e: 6] dst[h.order[e]]
    h: f32[12, 4] = [i: 12, k: 4 | e: 6] sum h.point[e] * x[h.point.1[e], k] * y[h.order[e], k] if i == h.point.2[e]
    output h
    ");
}

#[test]
fn points_of_several_indices_are_numbered() {
    let text = format!(
        "{INPUTS}h: f32[4, 12] = [k: 4, i: 12 | b: 2, t: 3] sum c[b, t] * x[b + t, k] * f32(t) if and(i == at[b, t], t < 2)\noutput h\n"
    );
    insta::assert_snapshot!(ordered(&needed(&text)), @r"
    input x: f32[12, 4] = fed
    input c: f32[2, 3] = kept
    input at: i64[2, 3] = kept
    hidden h.row: i64[6] = [e: 6] at[floordiv(e, 3), rem(e, 3)]
    hidden h.order: i64[6] = [e: 6] argsort(h.row[:1], e)
    hidden h.point: f32[6] = [e: 6] c[floordiv(h.order[e], 3), rem(h.order[e], 3)]
    hidden h.point.1: i64[6] = [e: 6] at[floordiv(h.order[e], 3), rem(h.order[e], 3)]
    h: f32[4, 12] = [k: 4, i: 12 | e: 6] sum let $0 = rem(h.order[e], 3) in h.point[e] * x[floordiv(h.order[e], 3) + $0, k] * f32($0) if and(i == h.point.1[e], $0 < 2)
    output h
    ");
}

#[test]
fn rows_that_ascend_are_left_alone() {
    let text = format!(
        "{INPUTS}hidden key: i64[6] = [e: 6] i64(dst[e]) * 100 + i64(src[e])\nhidden order: i64[6] = [e: 6] argsort(key[:1], e)\n\
        hidden sorted: i64[6] = [e: 6] key[order[e]]\nhidden row: u32[6] = [e: 6] floordiv(sorted[e], 100)\n\
        h: f32[12, 4] = [i: 12, k: 4 | e: 6] sum y[e, k] if i == up[e]\n\
        g: f32[12, 4] = [i: 12, k: 4 | e: 6] sum w[e] * y[e, k] if i == row[e]\noutput h\noutput g\n"
    );
    let program = needed(&text);
    assert_eq!(ordered(&program), program);
}

#[test]
fn rounds_sort_before_the_first_one() {
    let text = "input X: f32[12, 4] = unbound\ninput dst: u32[6] = unbound\ninput src: u32[6] = unbound\n\
        repeat t < 3 {\n  carry X -> n\n  x: f32[12, 4] = state 0 of t\n  \
        n: f32[12, 4] = [i: 12, k: 4 | e: 6] sum x[src[e], k] if i == dst[e]\n}\nlast: f32[12, 4] = last 0 of t\noutput last\n";
    insta::assert_snapshot!(ordered(&needed(text)), @r"
    input X: f32[12, 4] = unbound
    input dst: u32[6] = unbound
    input src: u32[6] = unbound
    hidden n.row: i64[6] = [e: 6] dst[e]
    hidden n.order: i64[6] = [e: 6] argsort(n.row[:1], e)
    hidden n.point: u32[6] = [e: 6] src[n.order[e]]
    hidden n.point.1: u32[6] = [e: 6] dst[n.order[e]]
    repeat t < 3 {
      carry X -> n
      x: f32[12, 4] = state 0 of t
      n: f32[12, 4] = [i: 12, k: 4 | e: 6] sum x[n.point[e], k] if i == n.point.1[e]
    }
    last: f32[12, 4] = last 0 of t
    output last
    ");
}

#[test]
fn random_scatters_give_the_same_bits() {
    let mut changed = 0;
    for seed in 0..300 {
        let random = &mut Random(seed);
        let mut text = INPUTS.to_owned();
        for number in 0..1 + random.below(2) {
            let (points, row, place) = match random.below(3) {
                0 => ("b: 2, t: 3", "at[b, t]", "b * 3 + t"),
                1 => ("e: 6", "dst[e]", "e"),
                _ => ("e: 6", "i64(dst[e]) + i64(src[e])", "e"),
            };
            let value = match random.below(6) {
                0 => format!("w[{place}] * x[src[{place}], k]"),
                1 => format!("y[{place}, k] - f32({place})"),
                2 => format!("w[{place}] * y[src[{place}], k] else 0.5"),
                3 => format!("w[{place}] * c[floordiv({place}, 3), rem({place}, 3)] * x[i, k]"),
                4 => format!("x[{place} + i, k] else (w[{place}])"),
                _ => "x[i, k]".to_owned(),
            };
            let guard = match random.below(4) {
                0 => format!("and(k > 1, {row} == i)"),
                1 => format!("and(i == {row}, w[{place}] > 0.0)"),
                2 => format!("and(i == {row}, y[{place}, 0] > 0.0)"),
                _ => format!("i == {row}"),
            };
            text += &format!(
                "h{number}: f32[12, 4] = [i: 12, k: 4 | {points}] sum {value} if {guard}\noutput h{number}\n"
            );
        }
        let Ok(program) = parse(&text) else {
            panic!("{text}\n{:?}", parse(&text));
        };
        let program = program.needed();
        let ordered = ordered(&program);
        assert_eq!(parse(&ordered.to_string()).as_ref(), Ok(&ordered), "{seed}");
        assert_eq!(verify(&ordered), Ok(()), "{seed}: {ordered}");
        changed += usize::from(ordered != program);
        let of = |program: &Program| interpret(program, &small_input);
        let (given, wanted) = (of(&ordered), of(&program));
        assert_eq!(
            given.is_ok(),
            wanted.is_ok(),
            "{seed}\n{program}\n{ordered}"
        );
        let (Ok(given), Ok(wanted)) = (given, wanted) else {
            continue;
        };
        for (given, wanted) in given.iter().zip(&wanted) {
            assert_eq!(given.data, wanted.data, "{seed}\n{program}\n{ordered}");
        }
    }
    assert!(changed > 200, "{changed}");
}

#[test]
fn hidden_statements_are_shared() {
    let text = format!(
        "{INPUTS}h: f32[12, 4] = [i: 12, k: 4 | e: 6] sum w[e] * x[src[e], k] if i == dst[e]\n\
        g: f32[12, 4] = [i: 12, k: 4 | e: 6] sum w[e] * y[e, k] if i == dst[e]\noutput h\noutput g\n"
    );
    let program = ordered(&needed(&text));
    let hidden = program.tensors.iter().filter(|t| t.role == Role::Hidden);
    // The rows, their order, and each of `w`, `src` and `dst`.
    assert_eq!(hidden.count(), 5, "{program}");
}
