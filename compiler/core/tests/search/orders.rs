//! Order and placement of products as one search: against every order, and against the programs themselves.

use super::programs::{chain, program};
use ein_plan::{Mesh, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Program, Tensor, verify::verify};
use einc_core::pipeline::{self, Options};
use einc_core::rules::order::Order;
use einc_core::search::convert::convert;
use einc_core::search::product::{Product, products};
use einc_core::search::reorder::{Wanted, order};
use einc_core::search::settle::resting;
use einc_core::search::transfer::{Roles, TransferItem, counts};
use einc_core::search::{Objective, Pinned, SearchOptions, layout};

fn trees(from: usize, to: usize) -> Vec<Order> {
    if to - from == 1 {
        return vec![Order::Factor(from)];
    }
    let mut all = vec![];
    for middle in from + 1..to {
        for left in trees(from, middle) {
            for right in trees(middle, to) {
                all.push(Order::Pair(Box::new(left.clone()), Box::new(right)));
            }
        }
    }
    all
}

fn same(a: &Program, b: &Program) {
    let input = |tensor: &Tensor| {
        let count: u64 = tensor.shape.iter().product();
        let seed = tensor.name.bytes().map(u64::from).sum::<u64>();
        Values {
            shape: tensor.shape.clone(),
            data: (0..count)
                .map(|n| Scalar::Float(((n * 7 + seed * 5) % 11) as f64 - 5.0))
                .collect(),
        }
    };
    // Whole numbers: every order gives the same.
    assert_eq!(interpret(a, &input), interpret(b, &input));
}

#[test]
fn every_order_of_a_product_is_the_same_program() {
    let texts = [
        "input A: f32[3, 4] = unbound\ninput B: f32[4, 5] = unbound\ninput C: f32[5, 2] = unbound\n\
         hidden T: f32[3, 5] = [i: 3, l: 5 | k: 4] sum A[i, k] * B[k, l]\n\
         y: f32[2, 3] = [j: 2, i: 3 | l: 5] sum T[i, l] * C[l, j]\noutput y",
        // An index of one factor alone, a repeated factor, a batch index, another law.
        "input A: f32[3, 4] = unbound\ninput b: f32[4, 3] = unbound\ninput c: f32[3] = unbound\n\
         y: f32[3] = [i: 3 | k: 4, j: 3] sum A[i, k] * b[k, j] * c[i] * c[j] * A[i, k]\noutput y",
        "input A: f32[3, 4] = unbound\ninput B: f32[4, 5] = unbound\ninput C: f32[5, 2] = unbound\n\
         y: f32[3, 2] = [i: 3, j: 2 | k: 4, l: 5] min A[i, k] + B[k, l] + C[l, j]\noutput y",
    ];
    for text in texts {
        let program = program(text);
        let found = products(&program);
        let [product] = found.as_slice() else {
            panic!("{} products in\n{program}", found.len());
        };
        let count = product.factors.len();
        assert!(count > 2);
        for order in trees(0, count) {
            let other = product.reordered(&program, &order).unwrap();
            assert_eq!(verify(&other), Ok(()), "{other}");
            same(&program, &other);
        }
    }
}

#[test]
fn what_is_used_elsewhere_is_no_part_of_a_product() {
    let program = program(
        "input A: f32[3, 4] = unbound\ninput B: f32[4, 5] = unbound\ninput C: f32[5, 2] = unbound\n\
         T: f32[3, 5] = [i: 3, l: 5 | k: 4] sum A[i, k] * B[k, l]\n\
         y: f32[3, 2] = [i: 3, j: 2 | l: 5] sum T[i, l] * C[l, j]\noutput y\noutput T",
    );
    assert!(products(&program).is_empty());
}

fn wanted<'a>(
    mesh: &Mesh,
    objective: &'a Objective,
    factor: &'a dyn Fn(usize, Roles) -> f64,
    result: &'a dyn Fn(Roles) -> f64,
) -> Wanted<'a> {
    Wanted {
        counts: counts(mesh),
        levels: objective.levels(counts(mesh)),
        objective,
        load: 1e-9,
        balance: 1.0,
        light: 0.0,
        width: 4.0,
        alone: false,
        factor,
        result,
    }
}

/// The words of the best layout on a mesh.
fn words(program: &Program, mesh: &Mesh) -> f64 {
    let options = SearchOptions {
        balance: 1.0,
        pinned: Pinned {
            mesh: Some(mesh.clone()),
            ..Pinned::default()
        },
        ..SearchOptions::new(mesh.sites(), Objective::Bytes)
    };
    layout(program, &options, &|| false).unwrap().price.words
}

fn joint(product: &Product, program: &Program, mesh: &Mesh) -> (Order, f64) {
    let counts = counts(mesh);
    let moved = |shape: &[u64], from, to| {
        let goods = TransferItem {
            shape,
            columns: 1.0,
            windows: &[],
        };
        convert(goods, counts, from, to).map_or(f64::INFINITY, |moved| moved.words)
    };
    let factor = |number: usize, to: Roles| {
        let shape = &program.tensor(product.factors[number].tensor).shape;
        let starts = resting(shape, counts, &Objective::Bytes, false).into_iter();
        starts
            .map(|from| moved(shape, from, to))
            .fold(f64::INFINITY, f64::min)
    };
    let result = |from: Roles| {
        let shape = &program.tensor(product.root).shape;
        let ends = resting(shape, counts, &Objective::Bytes, true).into_iter();
        ends.map(|to| moved(shape, from, to))
            .fold(f64::INFINITY, f64::min)
    };
    let wanted = wanted(mesh, &Objective::Bytes, &factor, &result);
    let leaves: Vec<usize> = (0..product.factors.len()).collect();
    order(&product.network, &leaves, &wanted).unwrap()
}

/// The search against each order's own exact layout, on meshes and extents where the orders differ.
#[test]
fn the_best_order_moves_least_of_all_orders() {
    let mut better = 0;
    for extents in [
        [24, 96, 24, 96, 24],
        [240, 24, 24, 24, 240],
        [48, 96, 12, 60, 24],
        [12, 120, 60, 12, 96],
    ] {
        for axes in [vec![4], vec![2, 2], vec![2, 2, 3]] {
            let mesh = Mesh { axes };
            let program = chain(&extents);
            let found = products(&program);
            let product = &found[0];
            let (best, price) = joint(product, &program, &mesh);
            let all: Vec<f64> = trees(0, product.factors.len())
                .iter()
                .map(|order| words(&product.reordered(&program, order).unwrap(), &mesh))
                .collect();
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let own = words(&product.reordered(&program, &best).unwrap(), &mesh);
            // Each matrix multiplication is balanced, in both searches; the layout may also move a matrix twice.
            assert!(
                own <= least * 1.001 + 1.0,
                "{extents:?} {mesh}: {own}, not {least}"
            );
            assert!(
                (price - own).abs() <= 0.01 * own + 1.0,
                "{extents:?} {mesh}: {price}, {own}"
            );
            better += usize::from(all[0] > least * 1.2);
        }
    }
    assert!(better > 3, "the order as written was nearly always best");
}

/// Where the order with the least arithmetic moves more, another one that has little more of it is found unaided.
#[test]
fn a_chain_is_ordered_for_what_it_moves() {
    let mut gained = 0;
    for (extents, sites) in [
        (vec![960, 1000, 960, 1040, 960, 960], 4),
        (vec![600, 640, 2000, 640, 600, 2000, 600], 8),
        (vec![512, 2048, 512, 2048, 512], 6),
    ] {
        let program = chain(&extents);
        let mut options = Options::new(sites);
        options.criteria.objective = pipeline::Objective::Bytes;
        let joint = pipeline::compile(&program, &options, &|| false).unwrap();
        options.criteria.disabled_rules = vec!["contraction-order".into()];
        let written = pipeline::compile(&program, &options, &|| false).unwrap();
        assert!(joint.chosen.price.words <= written.chosen.price.words);
        gained += usize::from(joint.chosen.price.words < written.chosen.price.words);
    }
    assert!(gained > 0);
}
