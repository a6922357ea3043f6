//! Counts of points at which two conditions hold.

use einc_core::search::truth_products::multiplied;

const INPUTS: &str = "input X: f64[90, 9] = unbound\ninput k: i64[90] = unbound\n";
const OUTPUTS: &str = "output y\noutput X\noutput k";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(multiplied, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn counts_are_products() {
    becomes(
        "y: i64[9, 9] = [i: 9, j: 9 | n: 90] sum i64(and(X[n, i] > 3.0_f64, X[n, j] > 3.0_f64))",
        "hidden y.product: f64[9, 9] = [i: 9, j: 9 | n: 90] sum f64(X[n, i] > 3.0_f64) * f64(X[n, j] > 3.0_f64)\n\
         y: i64[9, 9] = [i: 9, j: 9] i64(y.product[i, j])",
    );
    becomes(
        "y: f32[9, 9] = [i: 9, j: 9 | n: 90] sum 1.0 if and(and(k[n] > 2, X[n, i] > 3.0_f64), not(X[n, j] > 3.0_f64))",
        "hidden y.product: f64[9, 9] = [i: 9, j: 9 | n: 90] sum f64(X[n, i] > 3.0_f64) * f64(and(k[n] > 2, not(X[n, j] > 3.0_f64)))\n\
         y: f32[9, 9] = [i: 9, j: 9] f32(y.product[i, j])",
    );
}

#[test]
fn questions_are_products() {
    becomes(
        "y: bool[9, 9] = [i: 9, j: 9 | n: 90] any and(X[n, i] > 3.0_f64, X[n, j] > 3.0_f64)",
        "hidden y.product: f32[9, 9] = [i: 9, j: 9 | n: 90] sum f32(X[n, i] > 3.0_f64) * f32(X[n, j] > 3.0_f64)\n\
         y: bool[9, 9] = [i: 9, j: 9] y.product[i, j] > 0.0",
    );
    becomes(
        "y: bool[9, 9] = [i: 9, j: 9 | n: 90] all or(X[n, i] > 3.0_f64, not(and(k[n] > 2, X[n, j] > 3.0_f64)))",
        "hidden y.product: f32[9, 9] = [i: 9, j: 9 | n: 90] sum f32(not(X[n, i] > 3.0_f64)) * f32(and(k[n] > 2, X[n, j] > 3.0_f64))\n\
         y: bool[9, 9] = [i: 9, j: 9] y.product[i, j] == 0.0",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // One condition, one matrix, groups, indices that are compared, values.
        "y: i64[9] = [i: 9 | n: 90] sum i64(and(X[n, i] > 3.0_f64, k[n] > 2))",
        "y: bool[9, 9] = [i: 9, j: 9 | n: 90] any or(X[n, i] > 3.0_f64, X[n, j] > 3.0_f64)",
        "y: bool[9, 9] = [i: 9, j: 9 | n: 90] all and(X[n, i] > 3.0_f64, X[n, j] > 3.0_f64)",
        "y: i64[9, 9] = [i: 9, j: 9 | n: 90] sum i64(X[n, i] > X[n, j])",
        "y: i64[9, 9] = [i: 9, j: 9 | n: 90] sum i64(and(k[n] == i, X[n, j] > 3.0_f64))",
        "y: i64[9, 9] = [i: 9, j: 9 | n: 90] sum i64(and(n > i, X[n, j] > 3.0_f64))",
        "y: f64[9, 9] = [i: 9, j: 9 | n: 90] sum where(and(X[n, i] > 3.0_f64, X[n, j] > 3.0_f64), X[n, i], 0.0_f64)",
    ] {
        becomes(statement, statement);
    }
}

const NARROW: &str = "input a: i8[40, 90] = unbound\ninput b: u8[90, 9] = unbound\ninput c: i16[90, 9] = unbound\n\
                      input d: i32[90, 9] = unbound\n";

/// Asserts what products of narrow whole numbers become, and that their values stay.
#[track_caller]
fn narrow(statement: &str, expected: &str) {
    let outputs = "output y\noutput a\noutput b\noutput c\noutput d";
    crate::keeps(multiplied, (NARROW, outputs), statement, expected);
}

#[test]
fn products_of_narrow_whole_numbers_are_products_of_floats() {
    narrow(
        "y: i32[40, 9] = [i: 40, j: 9 | k: 90] sum a[i, k] * b[k, j]",
        "hidden y.product: f32[40, 9] = [i: 40, j: 9 | k: 90] sum f32(a[i, k]) * f32(b[k, j])\n\
         y: i32[40, 9] = [i: 40, j: 9] i32(i64(y.product[i, j]))",
    );
    // Of larger numbers f64 holds the sums, which wrap as those of whole numbers do.
    narrow(
        "y: i32[9, 9] = [i: 9, j: 9 | k: 90] sum (c[k, i] - 3_i32) * c[k, j]",
        "hidden y.product: f64[9, 9] = [i: 9, j: 9 | k: 90] sum f64(c[k, i] - 3_i32) * f64(c[k, j])\n\
         y: i32[9, 9] = [i: 9, j: 9] i32(i64(y.product[i, j]))",
    );
    for statement in [
        // Numbers that may be too large, a vector, a maximum.
        "y: i32[40, 9] = [i: 40, j: 9 | k: 90] sum a[i, k] * d[k, j]",
        "y: i32[40] = [i: 40 | k: 90] sum a[i, k] * b[k, 3]",
        "y: i32[40, 9] = [i: 40, j: 9 | k: 90] max a[i, k] * b[k, j]",
    ] {
        narrow(statement, statement);
    }
}
