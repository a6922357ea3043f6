//! Costs of programs whose values are known from the thesis (tables 3.3 and 3.5), and what the chunking makes
//! of them.
#![allow(clippy::unwrap_used)]

mod support;

use ein_plan::Source;
use einc_core::cost::{self, Machine};
use einc_core::einsum::{Definition, Program};
use einc_core::pipeline::{Compiled, Options, compile};
use einc_core::tra::{self, Cut};
use einc_core::{ia, lower, search};
use support::build::{conv, matmul, nearest};
use support::uncut;

fn compiled(program: &Program, sites: u32) -> Compiled {
    let options = Options {
        sites,
        deterministic: false,
        ..Options::new(1)
    };
    compile(program, &options, &|| false).unwrap()
}

/// Transfers of a product with index `cut` (0 = i, 1 = j, 2 = k) in ten pieces.
fn product(i: u64, k: u64, j: u64, cut: usize) -> u128 {
    let program = matmul(i, k, j);
    let mut chunking = uncut(&program);
    let ten = || Cut::row(10);
    chunking.indices[2][cut] = ten();
    match cut {
        0 => (chunking.dims[0][0], chunking.dims[2][0]) = (ten(), ten()),
        1 => (chunking.dims[1][1], chunking.dims[2][1]) = (ten(), ten()),
        _ => {
            (chunking.dims[0][1], chunking.dims[1][0]) = (ten(), ten());
            chunking.dims[2][0] = ten();
        }
    }
    let tra = tra::from_einsum::from_einsum(&program, &chunking).unwrap();
    let ia = ia::from_tra::from_tra(&tra, 10).unwrap();
    let plan = lower::lower(&ia, false).unwrap();
    cost::of_plan(&ia, &plan, &Machine { sites: 10 }).transfer
}

#[test]
fn products_cost_what_table_3_3_says() {
    let (square, long, flat) = (
        (40_000, 40_000, 40_000),
        (10_000, 640_000, 10_000),
        (80_000, 10_000, 80_000),
    );
    // Broadcast-based: B goes everywhere. Cross-product-based: partial sums are shuffled.
    for ((i, k, j), broadcast, cross) in [
        (square, 16_000_000_000, 16_000_000_000),
        (long, 64_000_000_000, 1_000_000_000),
        (flat, 8_000_000_000, 64_000_000_000u128),
    ] {
        assert_eq!(product(i, k, j, 0), broadcast);
        assert_eq!(product(i, k, j, 2), cross);
        let chosen = compiled(&matmul(i, k, j), 10).cost.transfer;
        assert!(chosen <= broadcast.min(cross), "{chosen}");
    }
}

#[test]
fn nearest_neighbours_broadcast_the_smaller_side() {
    let many_points = compiled(&nearest(1_500_000, 6_000), 8).cost.transfer;
    assert!(many_points < 290_000_000, "{many_points}");
    let wide = compiled(&nearest(6_000, 100_000), 8).cost.transfer;
    assert!(wide < 4_810_000_000, "{wide}");
}

#[test]
fn one_site_cuts_and_moves_nothing() {
    for program in [matmul(4, 5, 6), nearest(5, 3), conv(2, 8)] {
        let compiled = compiled(&program, 1);
        assert_eq!((compiled.cost.transfer, compiled.cost.bytes), (0, 0));
        for relation in &compiled.ia.relations {
            assert!(relation.kind.keys.is_empty(), "{}", relation.name);
        }
    }
}

#[test]
fn deterministic_chunks_do_not_depend_on_the_sites() {
    for program in [matmul(40, 5, 60), nearest(50, 30), conv(20, 8)] {
        let tra = |sites| {
            let options = Options {
                sites,
                deterministic: true,
                ..Options::new(1)
            };
            compile(&program, &options, &|| false).unwrap().tra
        };
        let first = tra(1);
        for sites in 2..=7 {
            assert_eq!(first, tra(sites));
        }
    }
}

/// Three products, each cut along another index: a piece of all three is worth a tuple only where it has work enough.
#[test]
fn small_statements_are_made_in_few_tuples_in_deterministic_mode() {
    let tuples = |size: u64| -> u64 {
        let text = format!(
            "input A: f32[{size}, {size}] = unbound\n\
             input B: f32[{size}, {size}] = unbound\n\
             input E: f32[{size}, {size}] = unbound\n\
             C: f32[{size}, {size}] = [i: {size}, j: {size} | k: {size}] sum A[i, k] * B[k, j]\n\
             D: f32[{size}, {size}] = [k: {size}, j: {size} | i: {size}] sum A[i, k] * C[i, j]\n\
             F: f32[{size}, {size}] = [k: {size}, i: {size} | j: {size}] sum E[k, j] * C[i, j]\n\
             output C\noutput D\noutput F\n"
        );
        let program = einc_core::einsum::parse::parse(&text).unwrap();
        let layout = search::greedy::layout(&program, 3, true);
        let chunking = ia::from_layout::chunking(&program, &layout, true).unwrap();
        let statements = chunking.indices.iter();
        let tuples = statements.map(|cuts| cuts.iter().map(|cut| u64::from(cut.pieces)).product());
        tuples.max().unwrap_or(0)
    };
    assert!(tuples(48) <= 64, "{}", tuples(48));
    assert!(tuples(4096) > 64, "{}", tuples(4096));
}

#[test]
fn work_and_memory_are_spread() {
    let one = compiled(&matmul(64, 64, 64), 1).cost;
    let four = compiled(&matmul(64, 64, 64), 4).cost;
    assert_eq!(one.flops, 64 * 64 * 64 * 2);
    assert_eq!(four.flops * 4, one.flops);
    // One site: A, B and C. Four, in a row or as a square: at most a quarter of C and of A, and all of B.
    let matrix = 64 * 64 * 4;
    assert_eq!(one.peak_bytes, [3 * matrix]);
    assert!(
        four.peak_bytes
            .iter()
            .all(|peak| *peak <= matrix + matrix / 2)
    );
    // Along an axis of n sites, n - 1 of n copies move.
    assert_eq!(four.transfer, 4 * 64 * 64);
    assert!(four.floats <= 3 * 64 * 64);
    assert_eq!(four.bytes, four.floats * 4);
}

#[test]
fn what_can_be_made_anywhere_is_made_in_pieces_where_it_is_large() {
    let mut program = nearest(150_000, 600);
    for tensor in &mut program.tensors[..3] {
        tensor.definition = Definition::Source(Source::Gumbel);
    }
    let compiled = compiled(&program, 4);
    // Only the minimum travels: four values and their numbers.
    assert_eq!(compiled.cost.transfer, 8);
    let everywhere: Vec<&str> = compiled
        .ia
        .relations
        .iter()
        .filter(|relation| relation.kind.placement.is_all(&compiled.ia.mesh))
        .map(|relation| relation.name.as_str())
        .collect();
    assert_eq!(everywhere, ["q", "A"]);
}

#[test]
fn a_matrix_that_several_sites_factor_is_counted_at_each() {
    let program = |sides: u64| {
        let text = format!(
            "input A: f64[200, 200] = unbound\ninput y: f64[{sides}, 200] = unbound\n\
             x: f64[{sides}, 200] = [p: {sides}, i: 200] solve(A[:1, :2], y[p, :1], i)\noutput x"
        );
        einc_core::einsum::parse::parse(&text).unwrap()
    };
    let (factor, side) = (2 * 200u128.pow(3) / 3, 2 * 200 * 200);
    // The calls take longer than to factor: they are shared out, and each site factors.
    let many = compiled(&program(1000), 4);
    assert_eq!(many.cost.flops, factor + 250 * side, "{}", many.plan);
    // They do not: one site does it all, and nothing moves.
    let few = compiled(&program(8), 4);
    assert_eq!(few.cost.flops, factor + 8 * side, "{}", few.plan);
    assert_eq!(few.cost.transfer, 0, "{}", few.plan);
}

#[test]
fn sites_are_from_one_up_to_many() {
    for sites in [0, 1 << 20] {
        let options = Options {
            sites,
            deterministic: false,
            ..Options::new(1)
        };
        let found = compile(&matmul(2, 2, 2), &options, &|| false).unwrap_err();
        assert_eq!(found[0].code, "E0998");
    }
    let many = compiled(&matmul(100_000, 3, 2), 2000);
    assert_eq!(many.cost.peak_bytes.len(), 2000);
}
