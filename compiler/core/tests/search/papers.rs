//! Numbers of the papers and of the communication literature, as upper bounds on what the search finds.

use super::programs::{Linked, ffnn, luo, matmul};
use einc_core::einsum::Program;
use einc_core::search::{Found, Objective, SearchOptions, layout};

fn found(program: &Program, sites: u32, objective: Objective) -> Found {
    let options = SearchOptions::new(sites, objective);
    let found = layout(program, &options, &|| false).unwrap();
    assert!(found.proved_optimal, "{}", found.report);
    assert!(found.bound <= found.price.of(&options.objective) * (1.0 + 1e-9));
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
    for (kind, scale, floats) in [
        (Linked::Dag2, 4, 3.93e10),
        (Linked::Dag1, 2, 3e10),
        (Linked::Tree, 2, 3e10),
    ] {
        let transfer = found(&luo(kind, scale, 20_000), 10, Objective::Transfer)
            .price
            .transfer;
        println!("{kind:?} {transfer:e}");
        assert!(transfer <= floats, "{transfer}");
    }
}
