//! How long the placement search takes: luo2021's graphs (section 8.4), transformers, a deep perceptron, large meshes.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/search/programs.rs"]
#[allow(dead_code)]
mod programs;

use einc_core::pipeline::{Options, compile};

use criterion::{Criterion, criterion_group, criterion_main};
use einc_core::einsum::Program;
use einc_core::search::{Objective, SearchOptions, layout};
use programs::{Linked, Transformer, chain, ffnn, luo, matmul, perceptron, transformer};
use std::time::Duration;

const GPT: Transformer = Transformer {
    layers: 12,
    batch: 8,
    sequence: 1024,
    heads: 12,
    head: 64,
    hidden: 3072,
};

fn search(c: &mut Criterion) {
    let cases: Vec<(&str, Program, u32, Objective)> = vec![
        (
            "matmul at 128",
            matmul(16384, 16384, 16384),
            128,
            Objective::Bytes,
        ),
        (
            "ffnn at 5",
            ffnn(10_000, 1600, 100_000, 10),
            5,
            Objective::Transfer,
        ),
        (
            "dag1 scale 4 at 10",
            luo(Linked::Dag1, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag2 scale 4 at 10",
            luo(Linked::Dag2, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "tree scale 4 at 10",
            luo(Linked::Tree, 4, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag1 scale 16 at 10",
            luo(Linked::Dag1, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "dag2 scale 16 at 10",
            luo(Linked::Dag2, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "tree scale 16 at 10",
            luo(Linked::Tree, 16, 20_000),
            10,
            Objective::Transfer,
        ),
        (
            "perceptron 48 at 8",
            perceptron(48, 4096, 4096),
            8,
            Objective::Transfer,
        ),
        (
            "transformer at 4",
            transformer(GPT, false),
            4,
            Objective::Bytes,
        ),
        (
            "transformer at 8",
            transformer(GPT, false),
            8,
            Objective::Bytes,
        ),
        (
            "transformer at 16",
            transformer(GPT, false),
            16,
            Objective::Bytes,
        ),
        (
            "transformer at 64",
            transformer(GPT, false),
            64,
            Objective::Bytes,
        ),
        (
            "transformer training at 8",
            transformer(GPT, true),
            8,
            Objective::Bytes,
        ),
    ];
    let mut group = c.benchmark_group("search");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1));
    for (name, program, sites, objective) in cases {
        let options = SearchOptions::new(sites, objective);
        group.bench_function(name, |b| {
            b.iter(|| layout(&program, &options, &|| false).unwrap())
        });
    }
    group.finish();
}

/// Whole compilations: rewrites, order and placement together, lowering; and proofs.
fn whole(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1));
    let extents: Vec<u64> = (0..101).map(|n| 64 + n * 7919 % 1021).collect();
    let chain = chain(&extents);
    for sites in [4, 8, 64] {
        let options = Options::new(sites);
        group.bench_function(format!("chain of 100 at {sites}"), |b| {
            b.iter(|| compile(&chain, &options, &|| false).unwrap())
        });
    }
    let forward = transformer(GPT, false);
    let options = Options::new(8);
    group.bench_function("transformer at 8", |b| {
        b.iter(|| compile(&forward, &options, &|| false).unwrap())
    });
    let compiled = compile(&forward, &options, &|| false).unwrap();
    group.bench_function("proof of the transformer at 8", |b| {
        b.iter(|| {
            let mut compiled = compiled.clone();
            compiled.prove(&options, false, &|| false);
            assert!(compiled.proof.unwrap().proved);
        })
    });
    group.finish();
}

criterion_group!(benches, search, whole);
criterion_main!(benches);
