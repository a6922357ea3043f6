//! Sums of products whose condition breaks at the ends of an index alone, and their parts.

use einc_core::search::edges::parted;

const INPUTS: &str = "input x: f32[5000] = unbound\ninput h: f32[40] = unbound\ninput A: f64[100, 90] = unbound\ninput G: f64[6, 6] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput h\noutput A\noutput G";

/// Asserts what statements become.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::becomes(parted, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn the_end_of_a_sum_is_cut_off() {
    becomes(
        "y: f32[40] = [l: 40 | i: 5000] sum x[i] * x[l + i] if i < 5000 - l",
        "hidden y.inner: f32[40] = [l: 40 | i: 4961] sum x[i] * x[l + i]\n\
         hidden y.edge: f32[40] = [l: 40 | i: 39] sum x[i + 4961] * x[l + i + 4961] if i + 4961 < 5000 - l\n\
         y: f32[40] = [l: 40] y.inner[l] + y.edge[l]",
    );
    becomes(
        "y: f32[40] = [l: 40 | i: 5000] sum where(l + i < 5000, x[i] * x[l + i], 0.0)",
        "hidden y.inner: f32[40] = [l: 40 | i: 4961] sum x[i] * x[l + i]\n\
         hidden y.edge: f32[40] = [l: 40 | i: 39] sum x[i + 4961] * x[l + i + 4961] if l + i + 4961 < 5000\n\
         y: f32[40] = [l: 40] y.inner[l] + y.edge[l]",
    );
}

#[test]
fn distances_are_cut_as_products_are() {
    becomes(
        "y: f32[40] = [l: 40 | i: 5000] sum (x[l + i] - x[i]) * (x[l + i] - x[i]) if l + i < 5000",
        "hidden y.inner: f32[40] = [l: 40 | i: 4961] sum let $0 = x[l + i] - x[i] in $0 * $0\n\
         hidden y.edge: f32[40] = [l: 40 | i: 39] sum let $0 = x[l + i + 4961] - x[i + 4961] in $0 * $0 if l + i + 4961 < 5000\n\
         y: f32[40] = [l: 40] y.inner[l] + y.edge[l]",
    );
}

#[test]
fn elements_at_both_ends_are_put_beside_the_others() {
    becomes(
        "y: f32[5000] = [n: 5000 | k: 40] sum h[k] * x[k + n - 20] if and(n + k >= 20, n + k < 5020)",
        "hidden y.edge: f32[20] = [n: 20 | k: 40] sum h[k] * x[k + n - 20] if and(n + k >= 20, n + k < 5020)\n\
         hidden y.inner: f32[4961] = [n: 4961 | k: 40] sum h[k] * x[n + k]\n\
         hidden y.edge.1: f32[19] = [n: 19 | k: 40] sum h[k] * x[n + k + 4961] if and(n + k + 4981 >= 20, n + k + 4981 < 5020)\n\
         y: f32[5000] = [n: 5000] where(n < 20, y.edge[n] else 0.0, where(n < 4981, y.inner[n - 20] else 0.0, y.edge.1[n - 4981] else 0.0))",
    );
    // Two indices, one after the other.
    becomes(
        "y: f64[100, 90] = [i: 100, j: 90 | a: 6, b: 6] sum A[a + i, b + j] * G[a, b] if and(a + i < 100, b + j < 90)",
        "hidden y.inner: f64[95, 85] = [i: 95, j: 85 | a: 6, b: 6] sum A[a + i, b + j] * G[a, b]\n\
         hidden y.edge: f64[95, 5] = [i: 95, j: 5 | a: 6, b: 6] sum A[i + a, j + b + 85] * G[a, b] if j + b + 85 < 90\n\
         hidden y.inner.1: f64[95, 90] = [i: 95, j: 90] where(j < 85, y.inner[i, j] else 0.0_f64, y.edge[i, j - 85] else 0.0_f64)\n\
         hidden y.edge.1: f64[5, 90] = [i: 5, j: 90 | a: 6, b: 6] sum A[i + a + 95, j + b] * G[a, b] if and(i + a + 95 < 100, j + b < 90)\n\
         y: f64[100, 90] = [i: 100, j: 90] where(i < 95, y.inner.1[i, j] else 0.0_f64, y.edge.1[i - 95, j] else 0.0_f64)",
    );
}

#[test]
fn padding_is_cut_off_with_the_ends() {
    becomes(
        "y: f32[40] = [l: 40 | i: 5000] sum x[i] * (x[i - l + 20] else 0.0)",
        "hidden y.edge: f32[40] = [l: 40 | i: 19] sum x[i] * x[i - l + 20] else 0.0\n\
         hidden y.inner: f32[40] = [l: 40 | i: 4961] sum x[i + 19] * x[i + 39 - l]\n\
         hidden y.edge.1: f32[40] = [l: 40 | i: 20] sum x[i + 4980] * x[i + 5000 - l] else 0.0\n\
         y: f32[40] = [l: 40] y.edge[l] + (y.inner[l] + y.edge.1[l])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // A condition that is no bound, one in the middle, a product already, few terms, no product.
        "y: f32[40] = [l: 40 | i: 5000] sum x[i] * x[l + i] if and(rem(l + i, 5000) != 7, l + i < 5000)",
        "y: f32[5000] = [l: 5000 | i: 5000] sum x[i] * x[l + i] if l + i < 5000",
        "y: f32[40] = [l: 40 | i: 4000] sum x[i] * x[l + i]",
        "y: f32[5000] = [n: 5000 | k: 5] sum h[k] * x[n - k] if k <= n",
        "y: f32[40] = [l: 40 | i: 5000] max x[i] * x[l + i] if l + i < 5000",
    ] {
        becomes(statement, statement);
    }
}
