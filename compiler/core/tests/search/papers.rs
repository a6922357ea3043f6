//! Numbers of the papers and of the communication literature, as upper bounds on what the search finds.

use super::programs::{Linked, ffnn, luo, matmul};
use einc_core::cost::Rates;
use einc_core::einsum::Program;
use einc_core::search::{Found, Link, Objective, SearchOptions, TimeModel, layout};

fn found(program: &Program, sites: u32, objective: Objective) -> Found {
    let options = SearchOptions::new(sites, objective);
    let found = layout(program, &options, &|| false).unwrap();
    assert!(found.proved_optimal, "{}", found.report);
    assert!(found.bound <= found.price.under(&options.objective) * (1.0 + 1e-9));
    found
}

#[test]
fn products_receive_no_more_words_than_on_the_best_grid() {
    let square = matmul(16384, 16384, 16384);
    let long = matmul(10_000, 640_000, 10_000);
    for (program, sites, millions) in [
        (&square, 4, 134.3),
        (&square, 5, 134.3),
        (&square, 8, 100.7),
        (&square, 16, 83.9),
        (&square, 64, 37.8),
        (&long, 4, 75.0),
        (&long, 5, 75.0),
        (&long, 16, 93.8),
    ] {
        let words = found(program, sites, Objective::Bytes).price.words;
        assert!(words <= millions * 1e6, "{sites}: {words}");
    }
    let longest = matmul(17408, 3_473_408, 17408);
    for (sites, millions) in [(16, 284.2), (128, 300.8)] {
        let words = found(&longest, sites, Objective::Bytes).price.words;
        assert!(words <= millions * 1e6, "{sites}: {words}");
    }
}

#[test]
fn a_training_step_moves_less_than_the_papers_plans() {
    for (program, floats) in [
        (ffnn(10_000, 1600, 100_000, 10), 8.2e7),
        (ffnn(1000, 597_540, 1000, 14_588), 2.1e7),
    ] {
        let transfer = found(&program, 5, Objective::Transfer).price.transfer;
        assert!(transfer <= floats, "{transfer}");
    }
}

#[test]
fn luo_graphs() {
    for (kind, scale, floats, words) in [
        (Linked::Dag2, 4, 4.56e10, 2.65e9),
        (Linked::Dag1, 4, 4.8e10, f64::INFINITY),
        (Linked::Tree, 4, 4.8e10, f64::INFINITY),
    ] {
        let program = luo(kind, scale, 20_000);
        let transfer = found(&program, 10, Objective::Transfer).price.transfer;
        assert!(transfer <= floats, "{kind:?} {transfer}");
        let received = found(&program, 10, Objective::Bytes).price.words;
        assert!(received <= words, "{kind:?} {received}");
    }
}

#[test]
fn table_3_3_on_grids() {
    for (program, floats) in [
        (matmul(40_000, 40_000, 40_000), 1.6e10),
        (matmul(10_000, 640_000, 10_000), 1.0e9),
        (matmul(80_000, 10_000, 80_000), 8.0e9),
    ] {
        let transfer = found(&program, 10, Objective::Transfer).price.transfer;
        assert!(transfer <= floats, "{transfer}");
    }
    for (sites, words) in [(4, 4e8), (5, 4e8), (8, 4e8), (16, 3e8)] {
        let received = found(&matmul(80_000, 10_000, 80_000), sites, Objective::Bytes)
            .price
            .words;
        assert!(received <= words, "{sites}: {received}");
    }
}

#[test]
fn words_of_a_training_step_and_time_without_idle_sites() {
    for (program, words) in [
        (ffnn(10_000, 1600, 100_000, 10), 12.16e6),
        (ffnn(1000, 597_540, 1000, 14_588), 3.01e6),
    ] {
        let received = found(&program, 5, Objective::Bytes).price.words;
        assert!(received <= words, "{received}");
        let model = TimeModel {
            compute: Rates {
                operation: 1e-11,
                touched: 1e-12,
                tuple: 1e-7,
                element: 1e-11,
                place: 0.0,
            },
            node: Link {
                message: 1e-5,
                byte: 1e-10,
            },
            network: None,
        };
        let timed = found(&program, 5, Objective::Time(model));
        assert_eq!(timed.layout.mesh.sites(), 5);
        assert!(timed.price.seconds >= timed.price.load * model.compute.operation);
    }
}
