use super::programs::*;
use einc_core::search::{Objective, SearchOptions, layout};
use std::time::Instant;

#[test]
#[ignore]
fn timing() {
    let gpt = Transformer {
        layers: 12,
        batch: 8,
        sequence: 1024,
        heads: 12,
        head: 64,
        hidden: 3072,
    };
    for (name, program, sites, objective) in [
        (
            "matmul 128",
            matmul(16384, 16384, 16384),
            128,
            Objective::Bytes,
        ),
        (
            "ffnn 5",
            ffnn(10_000, 1600, 100_000, 10),
            5,
            Objective::Transfer,
        ),
        (
            "xml 5",
            ffnn(1000, 597_540, 1000, 14_588),
            5,
            Objective::Transfer,
        ),
        (
            "ffnn 16",
            ffnn(10_000, 1600, 100_000, 10),
            16,
            Objective::Transfer,
        ),
        (
            "dag1 4",
            luo(Linked::Dag1, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag2 4",
            luo(Linked::Dag2, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag2 4 bytes",
            luo(Linked::Dag2, 4, 20_000),
            10,
            Objective::Bytes,
        ),
        (
            "tree 4",
            luo(Linked::Tree, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag1 16",
            luo(Linked::Dag1, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag2 16",
            luo(Linked::Dag2, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "tree 16",
            luo(Linked::Tree, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "perceptron 48 at 8 ",
            perceptron(48, 4096, 4096),
            8,
            Objective::Transfer,
        ),
        (
            "transformer 4",
            transformer(gpt, false),
            4,
            Objective::Bytes,
        ),
        (
            "transformer 8",
            transformer(gpt, false),
            8,
            Objective::Bytes,
        ),
        (
            "transformer 16",
            transformer(gpt, false),
            16,
            Objective::Bytes,
        ),
        (
            "transformer 8 transfer",
            transformer(gpt, false),
            8,
            Objective::Transfer,
        ),
        (
            "transformer training 4",
            transformer(gpt, true),
            4,
            Objective::Bytes,
        ),
        (
            "transformer training 8",
            transformer(gpt, true),
            8,
            Objective::Bytes,
        ),
        (
            "transformer 64",
            transformer(gpt, false),
            64,
            Objective::Bytes,
        ),
    ] {
        if !name.contains(&std::env::var("FILTER").unwrap_or_default()) {
            continue;
        }
        let n = program.tensors.len();
        let start = Instant::now();
        let limit = Instant::now();
        let found = layout(
            &program,
            &SearchOptions::new(sites, objective.clone()),
            &|| limit.elapsed().as_secs() > 30,
        )
        .unwrap();
        println!(
            "{name} ({n}): {:?} cost {:e} mesh {} proved {} ops {:e} reused {} largest {:e}\n{}",
            start.elapsed(),
            found.price.of(&objective),
            found.layout.mesh,
            found.proved_optimal,
            found.report.operations,
            found.report.reused,
            found.report.largest_table,
            found.report
        );
    }
}
