//! Lists in the order in which scatters go through them.

use super::{listing, needed};
use einc_core::lists::with_formats;

/// The columns of the lists of a program of so many rounds, of which each begins with `v` and ends with `n`.
fn columns(rounds: u32, statements: &str) -> String {
    let text = format!(
        "input A: f32[12, 20] = load(\"a.mtx\")\ninput u: f32[12] = unbound\ninput V: f32[20] = unbound\n\
         repeat t < {rounds} {{\n  carry V -> n\n  v: f32[20] = state 0 of t\n  {statements}\n}}\n\
         last: f32[20] = last 0 of t\noutput last\n"
    );
    let lists = with_formats(&needed(&text), &listing(5)).to_string();
    let lines = lists.lines().filter(|line| line.contains("listed("));
    lines.collect::<Vec<_>>().join("\n")
}

const SENT_TO_COLUMNS: &str = "n: f32[20] = [j: 20 | i: 12] sum A[i, j] * u[i]";

#[test]
fn rounds_that_send_to_columns_go_through_columns() {
    insta::assert_snapshot!(columns(40, SENT_TO_COLUMNS), @r#"
    hidden A.values: f32[5] = listed("A", f32, values by 1, load("a.mtx"))
    hidden A.at0: u32[5] = listed("A", f32, 0 by 1, load("a.mtx"))
    hidden A.at1: u32[5] = listed("A", f32, 1 by 1, load("a.mtx"))
    "#);
    // A tensor with a number for each place is read in the same order.
    insta::assert_snapshot!(columns(
        40,
        "hidden B: f32[12, 20] = [i: 12, j: 20] A[i, j] * v[j]\n  y: f32[12] = [i: 12 | j: 20] sum B[i, j]\n  \
         z: f32[20] = [j: 20 | i: 12] max B[i, j]\n  n: f32[20] = [j: 20 | i: 12] sum B[i, j] * y[i] * z[j]"
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values by 1, load("a.mtx"))
    hidden A.at0: u32[5] = listed("A", f32, 0 by 1, load("a.mtx"))
    hidden A.at1: u32[5] = listed("A", f32, 1 by 1, load("a.mtx"))
    "#);
}

#[test]
fn other_lists_ascend_by_rows() {
    // Few rounds; as many scatters to rows; an element that is looked for by its place.
    for (rounds, statements) in [
        (3, SENT_TO_COLUMNS),
        (
            40,
            "y: f32[12] = [i: 12 | j: 20] sum A[i, j] * v[j]\n  n: f32[20] = [j: 20 | i: 12] sum A[i, j] * y[i]",
        ),
        (
            40,
            "m: f32[20] = [j: 20 | i: 12] sum A[i, j] * u[i]\n  x: f32[] = [] A[3, 4]\n  n: f32[20] = [j: 20] m[j] + x[]",
        ),
    ] {
        let columns = columns(rounds, statements);
        assert!(
            columns.contains("values, load") && !columns.contains(" by "),
            "{columns}"
        );
    }
}
