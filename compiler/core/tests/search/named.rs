//! Plans with names: tables 3.3, 3.5 and 3.8 of the thesis (with the errata of the design notes).

use super::programs::{ffnn, matmul, nearest};
use einc_core::einsum::Program;
use einc_core::search::{Objective, SearchOptions, layout, named};

fn transfers(program: &Program, sites: u32) -> Vec<(&'static str, f64)> {
    let plans = named(program, sites, &Objective::Transfer);
    plans
        .iter()
        .map(|plan| (plan.name, plan.price.transfer))
        .collect()
}

fn found(program: &Program, sites: u32) -> f64 {
    let options = SearchOptions::new(sites, Objective::Transfer);
    layout(program, &options, &|| false).unwrap().price.transfer
}

#[test]
fn table_3_3_to_the_float() {
    for (i, k, j, prices) in [
        (40_000, 40_000, 40_000, [1.6e10, 1.6e10, 1.6e10]),
        (10_000, 640_000, 10_000, [6.4e10, 1.0e9, 6.4e10]),
        (80_000, 10_000, 80_000, [8.0e9, 6.4e10, 8.0e9]),
    ] {
        let program = matmul(i, k, j);
        let expected = [
            ("one site", 0.0),
            ("BMM", prices[0]),
            ("CMM", prices[1]),
            ("RMM", prices[2]),
        ];
        assert_eq!(transfers(&program, 10), expected);
        let cheapest = prices.into_iter().fold(f64::INFINITY, f64::min);
        assert!(found(&program, 10) <= cheapest);
    }
}

#[test]
fn nearest_neighbours_broadcast_for_many_points_and_cross_for_wide_ones() {
    let many = transfers(&matmul(1_500_000, 6000, 6000), 8);
    assert_eq!(many[1..3], [("BMM", 2.88e8), ("CMM", 7.2e10)]);
    let wide = transfers(&matmul(6000, 100_000, 100_000), 8);
    assert_eq!(wide[2], ("CMM", 4.8e9));
    assert!(found(&nearest(1_500_000, 6000), 8) <= 2.9e8);
    assert!(found(&nearest(6000, 100_000), 8) <= 4.81e9);
}

#[test]
fn table_3_8_counted_in_full() {
    // Weights at every site: the gradients are added up and broadcast, all-reduced, once.
    let speech = transfers(&ffnn(10_000, 1600, 100_000, 10), 5);
    let weights = 1600.0 * 1e5 + 1e5 * 10.0;
    assert_eq!(speech[1], ("data parallel", 10.0 * weights));
    // Forward, the partial N x H pre-activations are added up and broadcast: 1.0e10, as printed; and once more
    // backwards.
    assert_eq!(speech[2], ("model parallel", 2.0e10));
    let xml = transfers(&ffnn(1000, 597_540, 1000, 14_588), 5);
    let weights = 597_540.0 * 1e3 + 1e3 * 14_588.0;
    assert_eq!(xml[1], ("data parallel", 10.0 * weights));
    assert_eq!(xml[2], ("model parallel", 2.0e7));
}
