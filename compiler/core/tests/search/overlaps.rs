//! Scatters in which values meet, and the sums and scatters that they become.

use crate::digits::run;
use einc_core::einsum::parse::parse;
use einc_core::search::overlaps::parted;

const INPUTS: &str = "input x: f32[9] = unbound\ninput u: f32[4, 7] = unbound\n\
    input v: f32[3, 4, 7] = unbound\ninput n: i64[9] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput u\noutput v\noutput n";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::becomes(parted, (INPUTS, OUTPUTS), statement, expected);
    keeps(statement);
}

/// Asserts that a statement's values stay; returns whether it becomes another one.
#[track_caller]
fn keeps(statement: &str) -> bool {
    let program = parse(&format!("{INPUTS}{statement}\n{OUTPUTS}")).unwrap();
    let after = parted(&program);
    assert_eq!(run(&program), run(&after), "{statement}");
    program.tensors.len() != after.tensors.len()
}

#[test]
fn values_that_meet_are_summed_before_they_go_to_their_places() {
    // Seven values lie at every second place of four rows: three or four of them meet.
    becomes(
        "y: f32[13] = [p: 13 | r: 4, c: 7] sum u[r, c] if 2 * r + c == p",
        "hidden y.phases: f32[2, 7] = [c': 2, r: 7 | c: 4] sum u[r - c, 2 * c + c'] \
            if and(and(r - c >= 0, r - c <= 3), 2 * c + c' <= 6)\n\
        y: f32[13] = [p: 13 | c': 2, r: 7] sum y.phases[c', r] if 2 * r + c' == p",
    );
    // One that data decide about, and one that is counted from its end.
    becomes(
        "y: f32[13] = [p: 13 | r: 4, c: 7] max u[r, c] if and(6 * r - c == p, n[r] > 1)",
        "hidden y.phases: f32[6, 5] = [c': 6, r: 5 | c: 2] max u[r - c, 6 - 6 * c - c'] \
            if where(and(and(r - c >= 0, r - c <= 3), 6 * c + c' <= 6), n[r - c] > 1, false)\n\
        y: f32[13] = [p: 13 | c': 6, r: 5] max y.phases[c', r] if 6 * r + c' == p + 6",
    );
    // Beside a dimension of the result, with a sum.
    becomes(
        "y: f32[4, 18] = [r: 4, p: 18 | b: 3, c: 7, i: 9] sum v[b, r, c] * x[i] if i + c + 1 == p",
        "y: f32[4, 18] = [r: 4, p: 18 | b: 3, c: 7] sum v[b, r, c] * x[p - c - 1] if and(p - c - 1 >= 0, p - c - 1 <= 8)",
    );
    // At places that are those of the sums.
    becomes(
        "y: f32[12] = [p: 12 | r: 4, i: 9] sum u[r, 1] * x[i] if r + i == p",
        "y: f32[12] = [p: 12 | r: 4] sum u[r, 1] * x[p - r] if and(p - r >= 0, p - r <= 8)",
    );
    // Beside a place with gaps.
    becomes(
        "y: f32[20, 7] = [p: 20, q: 7 | b: 3, r: 4, i: 9] sum u[r, b] * x[i] if and(2 * i + b == p, 2 * r == q)",
        "hidden y.phases: f32[2, 10, 4] = [b': 2, i: 10, r: 4 | b: 2] sum u[r, 2 * b + b'] * x[i - b] \
            if and(and(i - b >= 0, i - b <= 8), 2 * b + b' <= 2)\n\
        y: f32[20, 7] = [p: 20, q: 7 | b': 2, i: 10, r: 4] sum y.phases[b', i, r] if and(2 * i + b' == p, 2 * r == q)",
    );
}

#[test]
fn other_scatters_stay() {
    for statement in [
        // One value goes to each place.
        "y: f32[28] = [p: 28 | r: 4, c: 7] sum u[r, c] if 7 * r + c == p",
        // Data say where.
        "y: f32[9] = [p: 9 | i: 9] sum x[i] if n[i] == p",
        // The value depends on the place.
        "y: f32[13] = [p: 13 | r: 4, c: 7] sum u[r, c] * f32(p) if 2 * r + c == p",
        // Steps that have no unit in common.
        "y: f32[40] = [p: 40 | r: 4, c: 7] sum u[r, c] if 3 * r + 2 * c == p",
        // Three indices of a place.
        "y: f32[40] = [p: 40 | b: 3, r: 4, c: 7] sum v[b, r, c] if 4 * b + 2 * r + c == p",
        // A value that a place outside of the result keeps from stopping the run.
        "y: i64[9] = [p: 9 | i: 9, c: 7] sum floordiv(c, n[i] + 1) if i + c == p",
        // Far more places than values.
        "y: f32[900] = [p: 900 | r: 4, c: 7] sum u[r, c] if r + c == p",
    ] {
        becomes(statement, statement);
    }
}

#[test]
fn places_of_all_kinds_keep_their_values() {
    let mut parted = 0;
    for (far, near) in [-4, -2, -1, 1, 2, 3]
        .into_iter()
        .flat_map(|far| [-2, -1, 1, 2].map(|near| (far, near)))
    {
        for (shift, places, reduction) in [(0, 20, "sum"), (7, 33, "max"), (-3, 9, "min")] {
            let place = format!("{far} * r + {near} * c + {shift} == p");
            for guard in [
                &place,
                &format!("and({place}, n[r + 1] > 1)"),
                &format!("and({place}, r < c)"),
            ] {
                parted += usize::from(keeps(&format!(
                    "y: f32[{places}] = [p: {places} | r: 4, c: 7] {reduction} u[r, c] if {guard}"
                )));
                parted += usize::from(keeps(&format!(
                    "y: f32[{places}, 3] = [p: {places}, q: 3 | b: 3, r: 4, c: 7] {reduction} v[b, r, c] if and({guard}, b == q)"
                )));
            }
            parted += usize::from(keeps(&format!(
                "y: f32[{places}, 11] = [p: {places}, q: 11 | b: 3, i: 5, r: 4, c: 7] {reduction} v[b, r, c] - x[i] if and({place}, 2 * i + b - 1 == q)"
            )));
        }
    }
    assert!(parted > 300, "{parted} of 504");
}
