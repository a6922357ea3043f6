//! Sums of products for blocks of an output index.

use einc_core::search::divided::by_block;

const INPUTS: &str = "input x: f64[5, 12] = unbound\ninput w: f64[12, 4] = unbound\n\
    input v: f64[12, 3] = unbound\ninput u: f64[3, 4] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput w\noutput v\noutput u";

#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(by_block, (INPUTS, OUTPUTS), statement, expected);
}

/// Asserts that a statement stays as it is.
#[track_caller]
fn stays(statement: &str) {
    becomes(statement, statement);
}

#[test]
fn a_block_has_an_index_of_its_own() {
    becomes(
        "y: f64[5, 12] = [n: 5, f: 12 | c: 4] sum x[n, 4 * floordiv(f, 4) + c] * w[f, c]",
        "hidden y.blocks: f64[5, 3, 4] = [n: 5, f: 3, f_2: 4 | c: 4] sum x[n, 4 * f + c] * w[4 * f + f_2, c]\n\
         y: f64[5, 12] = [n: 5, f: 12] y.blocks[n, floordiv(f, 4), rem(f, 4)]",
    );
    // The gradient by what is read in blocks.
    becomes(
        "y: f64[5, 12] = [n: 5, p: 12 | r: 4] sum x[n, 4 * floordiv(p, 4) + r] * w[4 * floordiv(p, 4) + r, rem(p, 4)]",
        "hidden y.blocks: f64[5, 3, 4] = [n: 5, p: 3, p_2: 4 | r: 4] sum x[n, 4 * p + r] * w[4 * p + r, p_2]\n\
         y: f64[5, 12] = [n: 5, p: 12] y.blocks[n, floordiv(p, 4), rem(p, 4)]",
    );
    // Outside of what is read there is a number.
    becomes(
        "y: f64[5, 12] = [n: 5, f: 12 | c: 4] sum x[n, 4 * floordiv(f, 4) + c - 1] else 0.0_f64 * w[f, c]",
        "hidden y.blocks: f64[5, 3, 4] = [n: 5, f: 3, f_2: 4 | c: 4] sum x[n, 4 * f + c - 1] else 0.0_f64 * w[4 * f + f_2, c]\n\
         y: f64[5, 12] = [n: 5, f: 12] y.blocks[n, floordiv(f, 4), rem(f, 4)]",
    );
}

#[test]
fn what_is_a_product_of_matrices_stays() {
    // The block alone is the place.
    stays("y: f64[5, 12] = [n: 5, f: 12 | c: 4] sum u[floordiv(f, 4), c] * x[n, c] * w[f, c]");
}

#[test]
fn other_sums_stay() {
    // Blocks that are no equal parts.
    stays("y: f64[5, 10] = [n: 5, f: 10 | c: 3] sum x[n, 3 * floordiv(f, 4) + c] * w[f, c]");
    // The place in the block is not read.
    stays("y: f64[5, 12] = [n: 5, f: 12 | c: 4] sum x[n, 4 * floordiv(f, 4) + c] * w[n, c]");
    // No product.
    stays("y: f64[5, 12] = [n: 5, f: 12 | c: 4] max x[n, 4 * floordiv(f, 4) + c] * w[f, c]");
}
