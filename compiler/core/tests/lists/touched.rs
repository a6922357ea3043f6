//! Statements that change few rows of a tensor: their text over the touched rows, and their values.

use super::random::Random;
use super::{needed, small_input};
use einc_core::einsum::interpret::interpret;
use einc_core::einsum::{Program, parse::parse, verify::verify};
use einc_core::lists::with_touched_rows;

/// Rows of a table, and five or six numbers of rows, some of them twice.
const INPUTS: &str = "input W: f32[48, 4] = unbound\ninput T: f32[4, 48] = unbound\ninput g: f32[5, 4] = unbound\n\
    input tok: i64[5] = unbound\ninput at: i64[2, 3] = unbound\ninput d: f32[4] = unbound\n";

#[test]
fn a_step_of_an_embedding_writes_the_touched_rows() {
    let text = format!(
        "{INPUTS}grad: f32[48, 4] = [i: 48, h: 4 | n: 5] sum g[n, h] if i == tok[n]\n\
        V: f32[48, 4] = [i: 48, h: 4] W[i, h] - 0.1 * grad[i, h]\noutput V\n"
    );
    insta::assert_snapshot!(with_touched_rows(&needed(&text), 1), @r"
    input W: f32[48, 4] = unbound
    input g: f32[5, 4] = unbound
    input tok: i64[5] = unbound
    hidden grad.row: i64[5] = [e: 5] tok[e]
    hidden grad.last: i64[48] = [i: 48 | e: 5] max e if i == grad.row[e]
    hidden grad.of: i64[5] = [e: 5] grad.last[grad.row[e]] else -1
    hidden grad.rows: f32[5, 4] = [e: 5, h: 4 | n: 5] sum g[n, h] if e == grad.of[n]
    hidden V.rows: f32[5, 4] = [e: 5, h: 4] W[grad.row[e], h] else 0.0 - 0.1 * grad.rows[e, h]
    V: f32[48, 4] = [i: 48, h: 4] V.rows[grad.last[i], h] else (W[i, h])
    output V
    ");
}

#[test]
fn what_reads_touched_rows_goes_over_them() {
    // Two sums over the same rows; a square, a norm by row, a sum of all and a step that is not the identity elsewhere.
    let text = format!(
        "{INPUTS}grad: f32[4, 48] = [h: 4, i: 48 | b: 2, t: 3] sum d[h] * g[b + t, h] if and(i == at[b, t], t < 2)\n\
        V: f32[4, 48] = [h: 4, i: 48] where(grad[h, i] == 0.0, T[h, i], T[h, i] + grad[h, i])\n\
        half: f32[4, 48] = [h: 4, i: 48] grad[h, i] * 0.5\n\
        size: f32[48] = [i: 48 | h: 4] sum half[h, i] * half[h, i]\n\
        all: f32[] = [| i: 48, h: 4] norm half[h, i]\n\
        new: f32[48] = [i: 48] W[i, 0] - size[i]\n\
        output V\noutput all\noutput size\noutput new\n"
    );
    insta::assert_snapshot!(with_touched_rows(&needed(&text), 1), @r"
    input W: f32[48, 4] = unbound
    input T: f32[4, 48] = unbound
    input g: f32[5, 4] = unbound
    input at: i64[2, 3] = unbound
    input d: f32[4] = unbound
    hidden grad.row: i64[6] = [e: 6] at[floordiv(e, 3), rem(e, 3)]
    hidden grad.last: i64[48] = [i: 48 | e: 6] max e if i == grad.row[e]
    hidden grad.of: i64[6] = [e: 6] grad.last[grad.row[e]] else -1
    hidden grad.rows: f32[4, 6] = [h: 4, e: 6 | b: 2, t: 3] sum d[h] * g[b + t, h] if and(e == grad.of[b * 3 + t], t < 2)
    hidden V.rows: f32[4, 6] = [h: 4, e: 6] let $0 = T[h, grad.row[e]] else 0.0 in where(grad.rows[h, e] == 0.0, $0, $0 + grad.rows[h, e])
    V: f32[4, 48] = [h: 4, i: 48] V.rows[h, grad.last[i]] else (T[h, i])
    hidden half.rows: f32[4, 6] = [h: 4, e: 6] grad.rows[h, e] * 0.5
    hidden size.rows: f32[6] = [e: 6 | h: 4] sum half.rows[h, e] * half.rows[h, e]
    size: f32[48] = [i: 48] size.rows[grad.last[i]] else 0.0
    all: f32[] = [| e: 6, h: 4] norm half.rows[h, e]
    new: f32[48] = [i: 48] W[i, 0] - size[i]
    output V
    output all
    output size
    output new
    ");
}

#[test]
fn sums_to_several_lists_of_rows_are_taken_together() {
    let text = format!(
        "{INPUTS}one: f32[48, 4] = [i: 48, h: 4 | n: 5] sum g[n, h] if i == tok[n]\n\
        other: f32[48, 4] = [i: 48, h: 4 | b: 2, t: 3] sum d[h] if i == at[b, t]\n\
        V: f32[48, 4] = [i: 48, h: 4] W[i, h] - (one[i, h] + 2.0 * other[i, h])\noutput V\n"
    );
    insta::assert_snapshot!(with_touched_rows(&needed(&text), 1), @r"
    input W: f32[48, 4] = unbound
    input g: f32[5, 4] = unbound
    input tok: i64[5] = unbound
    input at: i64[2, 3] = unbound
    input d: f32[4] = unbound
    hidden one.row: i64[5] = [e: 5] tok[e]
    hidden one.last: i64[48] = [i: 48 | e: 5] max e if i == one.row[e]
    hidden one.of: i64[5] = [e: 5] one.last[one.row[e]] else -1
    hidden one.rows: f32[5, 4] = [e: 5, h: 4 | n: 5] sum g[n, h] if e == one.of[n]
    hidden other.row: i64[6] = [e: 6] at[floordiv(e, 3), rem(e, 3)]
    hidden other.last: i64[48] = [i: 48 | e: 6] max e if i == other.row[e]
    hidden other.of: i64[6] = [e: 6] other.last[other.row[e]] else -1
    hidden other.rows: f32[6, 4] = [e: 6, h: 4 | b: 2, t: 3] sum d[h] if e == other.of[b * 3 + t]
    hidden V.row: i64[11] = [e: 11] one.row[e] else (other.row[e - 5] else 0)
    hidden V.last: i64[48] = [i: 48 | e: 11] max e if i == V.row[e]
    hidden V.of: i64[11] = [e: 11] V.last[V.row[e]] else -1
    hidden V.rows: f32[11, 4] = [e: 11, d1: 4 | e1: 5] sum one.rows[e1, d1] if e == V.of[e1]
    hidden V.rows.1: f32[11, 4] = [e: 11, d1: 4 | e1: 6] sum other.rows[e1, d1] if e == V.of[e1 + 5]
    hidden V.rows.2: f32[11, 4] = [e: 11, h: 4] W[V.row[e], h] else 0.0 - (V.rows[e, h] + 2.0 * V.rows.1[e, h])
    V: f32[48, 4] = [i: 48, h: 4] V.rows.2[V.last[i], h] else (W[i, h])
    output V
    ");
}

/// Both programs give the same.
fn assert_same(dense: &Program, rows: &Program, seed: u64) {
    let of = |program: &Program| interpret(program, &small_input).unwrap();
    for (a, b) in of(dense).iter().zip(&of(rows)) {
        for (x, y) in a.data.iter().zip(&b.data) {
            let (x, y) = (x.as_f64(), y.as_f64());
            let near = (x - y).abs() <= 1e-4 * (1.0 + x.abs());
            assert!(near, "seed {seed}: {x} or {y}\n{dense}\n{rows}");
        }
    }
}

/// A program of one or two tables and what reads them.
fn random_program(random: &mut Random) -> String {
    let mut text = INPUTS.to_owned();
    let mut tables = vec!["W[i, h]".to_owned(), "d[h]".to_owned()];
    let mut outputs = String::new();
    for number in 0..1 + random.below(2) {
        let (points, row, value) = match random.below(3) {
            0 => ("n: 5", "tok[n]", "g[n, h]"),
            1 => ("n: 5", "tok[n]", "g[n, h] * f32(i + 1)"),
            _ => ("b: 2, t: 3", "at[b, t]", "g[b + t, h] * d[h]"),
        };
        let guard = random.of(&["", "h > 0", "i > 2"]);
        let guard = match guard {
            "" => format!("i == {row}"),
            other => format!("and({other}, {row} == i)"),
        };
        text +=
            &format!("G{number}: f32[48, 4] = [i: 48, h: 4 | {points}] sum {value} if {guard}\n");
        tables.push(format!("G{number}[i, h]"));
    }
    for number in 0..3 {
        let any = |random: &mut Random| tables[random.below(tables.len())].clone();
        let last = tables[tables.len() - 1].clone();
        let (x, y, z) = (any(random), last, any(random));
        let value = match random.below(8) {
            0 => format!("{x} * {y}"),
            1 => format!("{x} - 0.5 * {y}"),
            2 => format!("{x} - {y} / (sqrt({z} * {z}) + 1.0)"),
            3 => format!("where({x} != 0.0, {y}, {z})"),
            4 => format!("{x} + {y} * {z}"),
            5 => format!("max({x}, {y})"),
            6 => format!("W[i, h] - ({x} + 0.0 * {y})"),
            _ => format!("{x} + f32(i) * {y}"),
        };
        match random.below(3) {
            0 | 1 => {
                text += &format!("m{number}: f32[48, 4] = [i: 48, h: 4] {value}\n");
                tables.push(format!("m{number}[i, h]"));
            }
            _ => {
                let reduction = random.of(&["sum", "max", "mean", "norm"]);
                let over = random.of(&["h: 4 | i: 48", "i: 48 | h: 4"]);
                let extent = if over.starts_with('h') { 4 } else { 48 };
                text += &format!("m{number}: f32[{extent}] = [{over}] {reduction} {value}\n");
            }
        }
        if random.below(4) > 0 || number == 2 {
            outputs += &format!("output m{number}\n");
        }
    }
    text + &outputs
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut over = 0;
    for seed in 0..400 {
        let dense = needed(&random_program(&mut Random(seed)));
        let rows = with_touched_rows(&dense, 1);
        assert_eq!(parse(&rows.to_string()).as_ref(), Ok(&rows), "{seed}");
        assert_eq!(verify(&rows), Ok(()), "{seed}: {rows}");
        over += usize::from(rows != dense);
        assert_same(&dense, &rows, seed);
    }
    assert!(over > 100, "{over}");
}
