//! Limits: memory, the deadline, the table cap, what is pinned.

use super::programs::{Transformer, matmul, perceptron, program, transformer};
use ein_plan::{IndexId, Mesh};
use einc_core::einsum::TensorId;
use einc_core::ia::layout::{StatementRole, TensorRole};
use einc_core::search::residency::{peak, residency};
use einc_core::search::{
    Nearest, NoLayout, Objective, Outcome, Pinned, SearchOptions, layout, nearest,
};

#[test]
fn a_plan_fits_the_memory_or_says_what_is_missing() {
    // MB at 4 sites: 2x2 with i and k cut holds 1.2 + 1.2 at rest, 2.4 of B gathered, 2 of the partial result and 1
    // of the result. With k alone cut nothing is gathered, but the partial result is 4.
    let program = matmul(1000, 1200, 1000);
    let mut options = SearchOptions::new(4, Objective::Bytes);
    let free = layout(&program, &options, &|| false).unwrap();
    let most = |layout| peak(&residency(&program, layout)).unwrap().bytes;
    assert_eq!((most(&free.layout), free.price.words), (7.8e6, 0.55e6));
    options.memory = Some(7_500_000);
    let tight = layout(&program, &options, &|| false).unwrap();
    assert_eq!((most(&tight.layout), tight.price.words), (7.4e6, 0.75e6));
    options.memory = Some(2_000_000);
    match layout(&program, &options, &|| false) {
        Err(NoLayout::Memory {
            statement,
            shortfall,
            tensor,
        }) => {
            assert_eq!(statement, TensorId(2));
            assert_eq!(
                nearest(&program, &options, tensor, &|| true),
                Nearest::Unknown
            );
            let Nearest::Sites(sites) = nearest(&program, &options, tensor, &|| false) else {
                panic!("more sites help");
            };
            assert!(shortfall > 0 && sites > 4);
            options.sites = sites;
            let found = layout(&program, &options, &|| false).unwrap();
            assert!(most(&found.layout) <= 2e6);
        }
        other => panic!("{other:?}"),
    }
    // A single element more than fits anywhere: no number of sites helps.
    let scalar = program_of_one();
    let options = SearchOptions {
        memory: Some(4),
        ..SearchOptions::new(2, Objective::Bytes)
    };
    match layout(&scalar, &options, &|| false) {
        Err(NoLayout::Memory { tensor, .. }) => {
            let dims = nearest(&scalar, &options, tensor, &|| false);
            assert_eq!(dims, Nearest::Dimensions(vec![0]));
        }
        other => panic!("{other:?}"),
    }
}

fn program_of_one() -> einc_core::einsum::Program {
    program("input x: f32[1] = unbound\ny: f32[1] = [i: 1] exp(x[i])\noutput y")
}

#[test]
fn the_deadline_and_the_cap_leave_a_plan_and_say_so() {
    let program = perceptron(6, 256, 256);
    let options = SearchOptions::new(8, Objective::Transfer);
    let best = layout(&program, &options, &|| false).unwrap();
    assert!(best.proved_optimal && best.report.gap == 0.0);
    let late = layout(&program, &options, &|| true).unwrap();
    assert!(!late.proved_optimal && late.report.interrupted);
    assert!(late.bound <= best.price.transfer && best.price.transfer <= late.price.transfer);
    assert!(late.report.unexplored().count() > 0);
    let capped = SearchOptions {
        table_cap: 40,
        ..options
    };
    let found = layout(&program, &capped, &|| false).unwrap();
    assert!(found.bound <= best.price.transfer * (1.0 + 1e-9));
    assert!(best.price.transfer <= found.price.transfer * (1.0 + 1e-9));
    assert_eq!(found.report.gap, found.price.transfer - found.bound);
}

#[test]
fn a_ceiling_leaves_out_dearer_plans_and_no_others() {
    let mut dearer = 0;
    for (program, sites) in [
        (matmul(640, 640, 640), 5),
        (perceptron(6, 256, 256), 5),
        (perceptron(6, 256, 256), 8),
        (perceptron(8, 4096, 1024), 8),
    ] {
        for objective in [Objective::Transfer, Objective::Bytes] {
            let options = SearchOptions::new(sites, objective);
            let best = layout(&program, &options, &|| false).unwrap();
            let price = best.price.under(&objective);
            let below = |ceiling: f64| {
                let options = SearchOptions {
                    ceiling,
                    ..options.clone()
                };
                layout(&program, &options, &|| false)
            };
            for ceiling in [price, price * 1.5] {
                let found = below(ceiling).unwrap();
                assert!(found.proved_optimal);
                let other = found.price.under(&objective);
                assert!((other - price).abs() <= 1e-9 * price, "{other} {price}");
            }
            // A network that is small is solved whatever the ceiling.
            match below(price * 0.5) {
                Err(NoLayout::Dearer) => dearer += 1,
                found => assert_eq!(found.unwrap().price.under(&objective), price),
            }
        }
    }
    assert!(dearer > 0);
}

#[test]
fn what_is_pinned_is_kept() {
    let program = matmul(640, 640, 640);
    let cut = vec![StatementRole::Index(IndexId(2))];
    let rest = vec![TensorRole::Cut(1)];
    let options = SearchOptions {
        pinned: Pinned {
            mesh: Some(Mesh::row(4)),
            statements: [(TensorId(2), cut.clone())].into(),
            rests: [(TensorId(2), rest.clone())].into(),
        },
        ..SearchOptions::new(5, Objective::Transfer)
    };
    let found = layout(&program, &options, &|| false).unwrap();
    assert_eq!(found.layout.mesh, Mesh::row(4));
    assert_eq!(
        (&found.layout.statements[2], &found.layout.rests[2]),
        (&cut, &rest)
    );
    assert_eq!(found.price.transfer, 4.0 * 640.0 * 640.0);
    let lost = SearchOptions {
        pinned: Pinned {
            mesh: None,
            ..options.pinned.clone()
        },
        ..options
    };
    assert!(matches!(
        layout(&program, &lost, &|| false),
        Err(NoLayout::Pinned(_))
    ));
}

#[test]
fn one_site_moves_nothing_and_short_indices_raise_kappa() {
    let found = layout(
        &matmul(8, 8, 8),
        &SearchOptions::new(1, Objective::Bytes),
        &|| false,
    )
    .unwrap();
    assert_eq!((found.price.moves, found.layout.mesh.sites()), (0, 1));
    let short = matmul(2, 1, 2);
    let found = layout(&short, &SearchOptions::new(7, Objective::Transfer), &|| {
        false
    })
    .unwrap();
    assert_eq!(found.layout.mesh.sites(), 4);
    assert_eq!(found.report.kappa, 7.0 / 4.0);
}

#[test]
fn a_transformer_is_proved_on_few_sites() {
    let sizes = Transformer {
        layers: 2,
        batch: 8,
        sequence: 1024,
        heads: 12,
        head: 64,
        hidden: 3072,
    };
    let program = transformer(sizes, false);
    let found = layout(&program, &SearchOptions::new(4, Objective::Bytes), &|| {
        false
    })
    .unwrap();
    assert!(found.proved_optimal);
    // A twelfth of the twelve layers' 63.7 million words, twice.
    assert!(found.price.words <= 63.8e6 / 6.0, "{}", found.price.words);
    let meshes = found.report.meshes.iter();
    assert!(
        meshes
            .clone()
            .all(|mesh| matches!(mesh.outcome, Outcome::Proved { .. }))
    );
}

/// A rule that a choice rests on takes the choice away, and the plan is never cheaper for it.
#[test]
fn disabled_rules_take_their_choices_away() {
    use einc_core::search::DisabledMoves;
    let reduced = |role: &StatementRole| *role == StatementRole::Index(IndexId(2));
    let shapes = [
        [10_000, 640_000, 10_000],
        [80_000, 1_000, 80_000],
        [4096, 4096, 4096],
    ];
    let mut dearer = std::collections::BTreeSet::new();
    for [i, k, j] in shapes {
        let program = matmul(i, k, j);
        for rule in [
            "BMM",
            "CMM",
            "RMM",
            "R2-5",
            "reduce-scatter",
            "all-reduce",
            "all-gather",
            "slice",
        ] {
            for sites in [4, 6, 8] {
                let mut options = SearchOptions::new(sites, Objective::Bytes);
                let free = layout(&program, &options, &|| false).unwrap();
                options.disabled_moves = DisabledMoves::by_rules(&[rule.to_string()]);
                let found = layout(&program, &options, &|| false).unwrap();
                assert!(
                    found.price.words >= free.price.words || found.report.kappa > free.report.kappa,
                    "{rule}"
                );
                if found.price.words > free.price.words {
                    dearer.insert(rule);
                }
                let run = &found.layout.statements[2];
                let cuts = |index: u32| run.contains(&StatementRole::Index(IndexId(index)));
                match rule {
                    "R2-5" => {
                        let cut = |role: &TensorRole| matches!(role, TensorRole::Cut(_));
                        for moved in &found.price.conversions {
                            let pairs = moved.from.iter().zip(&moved.to);
                            let mut pairs = pairs.filter(|(_, to)| cut(to));
                            assert!(pairs.all(|(from, _)| *from != TensorRole::Partial));
                        }
                    }
                    "CMM" => assert!(!run.iter().any(reduced), "{rule}: {run:?}"),
                    "RMM" => assert!(!(cuts(0) && cuts(1)), "{run:?}"),
                    "BMM" => assert!(cuts(0) == cuts(1), "{run:?}"),
                    _ => {}
                }
            }
        }
    }
    // All-reduce, all-gather and slice are not wanted by a product that is given out in pieces.
    assert!(
        dearer.contains("CMM") && dearer.contains("RMM"),
        "{dearer:?}"
    );
    // A loss that every site needs: addends are added up everywhere, or at one site and sent again.
    let loss = program(
        "input X: f32[4096, 64] = unbound\ns: f32[64] = [j: 64 | i: 4096] sum X[i, j] * X[i, j]\n\
         y: f32[4096, 64] = [i: 4096, j: 64] X[i, j] / s[j]\noutput y",
    );
    let mut options = SearchOptions::new(4, Objective::Bytes);
    let free = layout(&loss, &options, &|| false).unwrap();
    let reduces = |found: &einc_core::search::Found| {
        let conversions = found.price.conversions.iter();
        conversions
            .filter(|c| c.from.contains(&TensorRole::Partial) && c.to.contains(&TensorRole::Every))
            .count()
    };
    options.disabled_moves = DisabledMoves::by_rules(&["all-reduce".to_string()]);
    let found = layout(&loss, &options, &|| false).unwrap();
    assert_eq!(reduces(&found), 0, "{:?}", found.price.conversions);
    assert!(found.price.words >= free.price.words);
}
