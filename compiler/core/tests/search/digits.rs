//! Scatters to places in mixed radix, and the reads that they become.

use ein_plan::Scalar;
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Program, Tensor};
use einc_core::search::digits::taken;

const INPUTS: &str = "input x: f32[9] = unbound\ninput u: f32[4, 7] = unbound\n\
    input v: f32[3, 4, 7] = unbound\ninput n: i64[9] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput u\noutput v\noutput n";

pub fn run(program: &Program) -> Vec<Values> {
    let values = |tensor: &Tensor| {
        let count: u64 = tensor.shape.iter().product();
        let number = |at: u64| match tensor.dtype {
            dtype if !dtype.is_float() => Scalar::Int((at as i64 * 7 + 2) % 5),
            _ => Scalar::Float((at as f64 - 7.0) / 4.0),
        };
        Values {
            shape: tensor.shape.clone(),
            data: (0..count).map(number).collect(),
        }
    };
    interpret(program, &values).unwrap()
}

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(taken, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn places_that_are_all_taken_take_their_values() {
    becomes(
        "y: f32[28] = [p: 28 | r: 4, c: 7] sum u[r, c] + 1.0 if 7 * r + c == p",
        "y: f32[28] = [p: 28] u[floordiv(p, 7), rem(p, 7)] + 1.0",
    );
    becomes(
        "y: f32[84] = [p: 84 | b: 3, r: 4, c: 7] sum v[b, r, c] if p == 28 * b + (7 * r + c)",
        "y: f32[84] = [p: 84] v[floordiv(p, 28), floordiv(rem(p, 28), 7), rem(p, 7)]",
    );
    // Backwards, and beside another index of the result.
    becomes(
        "y: f32[3, 28] = [b: 3, p: 28 | r: 4, c: 7] sum v[b, r, c] if 7 * r - c + 6 == p",
        "y: f32[3, 28] = [b: 3, p: 28] v[b, floordiv(p, 7), 6 - rem(p, 7)]",
    );
    // A place in each of two dimensions, of a sum.
    becomes(
        "y: f32[4, 6] = [p: 4, q: 6 | b: 3, r: 4, c: 7] sum v[b, r, c] if and(r == p, 2 * b == q)",
        "y: f32[4, 6] = [p: 4, q: 6 | c: 7] sum v[floordiv(q, 2), p, c] if rem(q, 2) == 0",
    );
}

#[test]
fn a_place_that_is_put_together_again_is_the_place() {
    // The gradient of a maximum of windows that lie beside each other.
    becomes(
        "y: f32[8] = [p: 8 | i: 4, r: 2] sum where(x[2 * i + r + 1] == u[i, 0], u[i, 1], 0.0) if 2 * i + r == p",
        "y: f32[8] = [p: 8] let $0 = floordiv(p, 2) in where(x[p + 1] == u[$0, 0], u[$0, 1], 0.0)",
    );
    becomes(
        "y: f32[8] = [p: 8 | i: 4, r: 2] sum x[8 - r - 2 * i] + u[i, 3 * r + i] if 2 * i + r == p",
        "y: f32[8] = [p: 8] let $0 = floordiv(p, 2) in x[8 - p] + u[$0, 3 * rem(p, 2) + $0]",
    );
}

#[test]
fn indices_that_are_read_in_two_parts_are_two_indices() {
    // The gradient of a pixel shuffle along one dimension, and of what repeats each element.
    becomes(
        "y: f32[2, 14] = [m: 2, p: 14 | i: 28] sum v[rem(i, 3), 1, 2] * f32(i) if and(rem(i, 2) == m, floordiv(i, 2) == p)",
        "y: f32[2, 14] = [m: 2, p: 14 | i: 28] sum v[rem(i, 3), 1, 2] * f32(i) if and(rem(i, 2) == m, floordiv(i, 2) == p)",
    );
    becomes(
        "y: f32[2, 4] = [m: 2, p: 4 | i: 8] sum x[i] if and(rem(i, 2) == m, floordiv(i, 2) == p)",
        "y: f32[2, 4] = [m: 2, p: 4] x[2 * p + m]",
    );
    becomes(
        "y: f32[4, 8] = [m: 4, p: 8 | c: 2, i: 4] sum u[i, c + rem(i, 2)] if and(2 * c + rem(i, 2) == m, floordiv(i, 2) == p)",
        "y: f32[4, 8] = [m: 4, p: 8] let $0 = rem(m, 2) in where(p <= 1, u[2 * p + $0, floordiv(m, 2) + $0], 0.0)",
    );
    becomes(
        "y: f32[3] = [p: 3 | i: 9] sum x[i] if floordiv(i, 3) == p",
        "y: f32[3] = [p: 3 | i_2: 3] sum x[3 * p + i_2]",
    );
    // The last quotient has fewer values than the others.
    becomes(
        "y: f32[5] = [p: 5 | i: 9] sum x[i] if floordiv(i, 2) == p",
        "y: f32[5] = [p: 5 | i: 9] sum x[i] if floordiv(i, 2) == p",
    );
}

#[test]
fn places_that_are_not_take_nothing() {
    becomes(
        "y: f32[8] = [p: 8 | i: 4] sum x[i] if 2 * i + 1 == p",
        "y: f32[8] = [p: 8] where(rem(p, 2) == 1, x[floordiv(p, 2)], 0.0)",
    );
    becomes(
        "y: f32[3] = [p: 3 | i: 4] sum x[i] if 3 * i + 2 == p",
        "y: f32[3] = [p: 3] where(rem(p, 3) == 2, x[floordiv(p, 3)], 0.0)",
    );
    becomes(
        "y: f32[18] = [p: 18 | i: 9] sum x[i] if 2 * i == p",
        "y: f32[18] = [p: 18] where(rem(p, 2) == 0, x[floordiv(p, 2)], 0.0)",
    );
    becomes(
        "y: f32[40] = [p: 40 | i: 9] max x[i] if 2 * i + 3 == p",
        "y: f32[40] = [p: 40] let $0 = floordiv(p - 3, 2) in \
            where(and(and(p - 3 >= 0, $0 <= 8), rem(p - 3, 2) == 0), x[$0], -inf)",
    );
    // Rows of seven among rows of nine.
    becomes(
        "y: f32[36] = [p: 36 | r: 4, c: 7] sum u[r, c] if 9 * r + c == p",
        "y: f32[36] = [p: 36] let $0 = rem(p, 9) in where($0 <= 6, u[floordiv(p, 9), $0], 0.0)",
    );
    // Another condition is asked only where there is a value.
    becomes(
        "y: f32[40] = [p: 40 | i: 9] sum x[i] if and(2 * i == p, n[i] > 1)",
        "y: f32[40] = [p: 40] let $0 = floordiv(p, 2) in \
            where(where(and($0 <= 8, rem(p, 2) == 0), n[$0] > 1, false), x[$0], 0.0)",
    );
    // A place between two dimensions of the result.
    becomes(
        "y: f32[5, 5] = [p: 5, q: 5 | i: 9] sum x[i] if p + q == i",
        "y: f32[5, 5] = [p: 5, q: 5] x[p + q]",
    );
}

#[test]
fn other_scatters_stay() {
    for statement in [
        // Two values may go to one place.
        "y: f32[28] = [p: 28 | r: 4, c: 7] sum u[r, c] if 6 * r + c == p",
        "y: f32[13] = [p: 13 | r: 4, c: 7] sum u[r, c] if 2 * r + c == p",
        // Data say where.
        "y: f32[9] = [p: 9 | i: 9] sum x[i] if n[i] == p",
        // Most places take nothing.
        "y: f32[900] = [p: 900 | i: 9] sum x[i] if 100 * i == p",
        // There is no place in it.
        "y: f32[4] = [r: 4 | c: 7] sum u[r, c] if c == 3",
        "y: f32[4] = [r: 4 | c: 7, i: 9] sum u[r, c] * x[i] if c == i",
    ] {
        becomes(statement, statement);
    }
}
