//! Products with rows that data name, and the rows and sums that they become.

use einc_core::search::gathered_rows::apart;

const INPUTS: &str = "input x: f64[9, 8] = unbound\ninput W: f64[8, 7] = unbound\ninput z: f64[9, 7] = unbound\ninput w: f64[80] = unbound\ns: i64[80] = [e: 80] rem(e * 7 + 2, 9)\nt: i64[80] = [e: 80] rem(e * 5 + 1, 9)\n";
const OUTPUTS: &str = "output y\noutput x\noutput W\noutput z\noutput w\noutput s\noutput t";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(apart, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn products_are_those_of_rows() {
    becomes(
        "y: f64[9, 7] = [v: 9, h: 7 | e: 80, d: 8] sum w[e] * x[s[e], d] * W[d, h] if v == t[e]",
        "hidden x.rows: f64[9, 7] = [e1: 9, h: 7 | d: 8] sum x[e1, d] * W[d, h]\n\
         y: f64[9, 7] = [v: 9, h: 7 | e: 80] sum w[e] * x.rows[s[e], h] if v == t[e]",
    );
    becomes(
        "y: f64[80, 7] = [e: 80, h: 7 | d: 8] sum x[s[e], d] * W[d, h] * w[e]",
        "hidden x.rows: f64[9, 7] = [e1: 9, h: 7 | d: 8] sum x[e1, d] * W[d, h]\n\
         y: f64[80, 7] = [e: 80, h: 7] w[e] * x.rows[s[e], h]",
    );
    // A condition that no summed index has stays.
    becomes(
        "y: f64[80, 7] = [e: 80, h: 7 | d: 8] sum x[s[e], d] * W[d, h] if s[e] > h",
        "hidden x.rows: f64[9, 7] = [e1: 9, h: 7 | d: 8] sum x[e1, d] * W[d, h]\n\
         y: f64[80, 7] = [e: 80, h: 7] where(s[e] > h, x.rows[s[e], h], 0.0_f64)",
    );
}

#[test]
fn what_stands_beside_rows_is_summed() {
    becomes(
        "y: f64[8, 7] = [d: 8, h: 7 | e: 80] sum w[e] * x[s[e], d] * z[t[e], h]",
        "hidden y.row: i64[80] = [e: 80] within(s[e], 9)\n\
         hidden y.names: i64[9] = [e1: 9 | e: 80] sum 1 if e1 == y.row[e]\n\
         hidden y.here: f64[9, 8] = [e1: 9, d: 8] where(y.names[e1] > 0, x[e1, d], 0.0_f64)\n\
         hidden y.sums: f64[9, 7] = [e1: 9, h: 7 | e: 80] sum w[e] * z[t[e], h] if e1 == y.row[e]\n\
         y: f64[8, 7] = [d: 8, h: 7 | e1: 9] sum y.here[e1, d] * y.sums[e1, h]",
    );
    becomes(
        "y: f64[8] = [d: 8 | e: 80] sum x[s[e], d] * w[e]",
        "hidden y.row: i64[80] = [e: 80] within(s[e], 9)\n\
         hidden y.names: i64[9] = [e1: 9 | e: 80] sum 1 if e1 == y.row[e]\n\
         hidden y.here: f64[9, 8] = [e1: 9, d: 8] where(y.names[e1] > 0, x[e1, d], 0.0_f64)\n\
         hidden y.sums: f64[9] = [e1: 9 | e: 80] sum w[e] if e1 == y.row[e]\n\
         y: f64[8] = [d: 8 | e1: 9] sum y.here[e1, d] * y.sums[e1]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Rows that indices name, fewer names than rows, a condition on what is summed, a choice, a sum of the row alone, another value outside.
        "y: f64[9, 7] = [v: 9, h: 7 | d: 8] sum x[v, d] * W[d, h]",
        "y: f64[4, 7] = [e: 4, h: 7 | d: 8] sum x[s[e], d] * W[d, h]",
        "y: f64[80, 7] = [e: 80, h: 7 | d: 8] sum x[s[e], d] * W[d, h] if d < s[e]",
        "y: f64[80, 7] = [e: 80, h: 7 | d: 8] sum where(w[e] > 0.0_f64, x[s[e], d], 0.0_f64) * W[d, h]",
        "y: f64[80] = [e: 80 | d: 8] sum x[s[e], d]",
        "y: f64[80, 7] = [e: 80, h: 7 | d: 8] max x[s[e], d] * W[d, h]",
        "y: f64[80] = [e: 80] x[s[e], 3] * w[e]",
    ] {
        becomes(statement, statement);
    }
}
