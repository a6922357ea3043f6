//! The placement search: exactness, prices of the papers, limits, invariances.
#![allow(clippy::unwrap_used)]

mod axes;
mod bands;
mod between;
mod conditions;
mod constants;
mod diagonals;
mod digits;
mod divided;
mod edges;
mod exact;
mod gathered_rows;
mod group_positions;
mod grouped;
mod groups;
mod inner_sums;
mod limits;
mod long_windows;
mod masked_products;
mod means;
mod named;
mod named_conditions;
mod named_indices;
mod nodes;
mod one_hot;
mod orders;
mod overlaps;
mod pairs;
mod papers;
mod programs;
mod ranked;
mod recount;
mod repeats;
mod short;
mod single_points;
mod sums;
mod truth_products;
mod values_in_order;
mod weights;
mod windows;

use einc_core::einsum::{Program, parse::parse, verify::verify};

/// Asserts what a pass makes of a statement between these inputs and outputs.
#[track_caller]
fn becomes(
    pass: fn(&Program) -> Program,
    (inputs, outputs): (&str, &str),
    statement: &str,
    expected: &str,
) {
    let program = parse(&format!("{inputs}{statement}\n{outputs}")).unwrap();
    verify(&program).unwrap();
    let program = pass(&program);
    verify(&program).unwrap();
    let expected = format!("{inputs}{expected}\n{outputs}");
    assert_eq!(program.to_string().trim_end(), expected);
}

/// Asserts what a pass makes of a statement, and that its values stay.
#[track_caller]
fn keeps(
    pass: fn(&Program) -> Program,
    (inputs, outputs): (&str, &str),
    statement: &str,
    expected: &str,
) {
    becomes(pass, (inputs, outputs), statement, expected);
    let program = parse(&format!("{inputs}{statement}\n{outputs}")).unwrap();
    assert_eq!(
        digits::run(&program),
        digits::run(&pass(&program)),
        "{statement}"
    );
}
