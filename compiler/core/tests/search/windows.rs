//! The search prices windows at the number of elements that the plan of its layout moves.

use einc_core::cost::{Machine, of_plan};
use einc_core::einsum::parse::parse;
use einc_core::ia::from_layout::place;
use einc_core::lower;
use einc_core::search::{Objective, SearchOptions, layout};

/// Programs whose statements read a tensor at affine positions; the sizes do not divide.
pub(crate) const PROGRAMS: [(&str, &str); 6] = [
    (
        "a shift",
        "input x: f32[1001] = unbound\ny: f32[1001] = [i: 1001] x[i] + (x[i - 1] else 0.0)\noutput y",
    ),
    (
        "a diagonal",
        "input Z: f32[61, 61] = unbound\nd: f32[61] = [i: 61] Z[i, i]\noutput d",
    ),
    (
        "a stencil",
        "input Z: f32[61, 47] = unbound\nY: f32[61, 47] = [i: 61, j: 47] (Z[i - 1, j] else 0.0) + (Z[i, j + 2] else 0.0)\noutput Y",
    ),
    (
        "every third, and back to front",
        "input x: f32[300] = unbound\ny: f32[100] = [i: 100] x[3 * i + 1]\nz: f32[300] = [i: 300] x[299 - i]\noutput y\noutput z",
    ),
    (
        "a convolution",
        "input x: f32[400] = unbound\ninput w: f32[5] = unbound\ny: f32[400] = [i: 400 | r: 5] sum w[r] * (x[i + r - 2] else 0.0)\noutput y",
    ),
    (
        "some rows",
        "input X: f32[500, 12] = unbound\nc: f32[7, 12] = [k: 7, d: 12] X[k + 3, d]\noutput c",
    ),
];

#[test]
fn windows_cost_what_their_plans_move() {
    for (what, text) in PROGRAMS {
        let program = parse(text).unwrap();
        for sites in [2, 3, 4, 5, 6, 8] {
            let options = SearchOptions::new(sites, Objective::Transfer);
            let found = layout(&program, &options, &|| false).unwrap();
            assert!(found.proved_optimal, "{what} on {sites}");
            let placed = place(&program, &found.layout, sites, false).unwrap();
            let plan = lower::lower(&placed.ia, false).unwrap();
            let cost = of_plan(&placed.ia, &plan, &Machine { sites });
            assert_eq!(
                found.price.transfer, cost.transfer as f64,
                "{what} on {sites}: {:?}\n{plan}",
                found.layout
            );
        }
    }
}

#[test]
fn edges_are_all_that_a_shift_moves() {
    for (text, each) in [(PROGRAMS[0].1, 1.0), (PROGRAMS[1].1, 0.0)] {
        let program = parse(text).unwrap();
        for sites in 2..=5 {
            let options = SearchOptions::new(sites, Objective::Transfer);
            let found = layout(&program, &options, &|| false).unwrap();
            let inner = f64::from(sites - 1);
            assert_eq!(found.price.transfer, inner * each);
        }
    }
}
