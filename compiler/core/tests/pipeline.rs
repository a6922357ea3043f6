//! The compiler behind sema, on programs built by hand and at random: TRA and IA give what the program says,
//! on any chunking and any number of sites.
#![allow(clippy::unwrap_used)]

mod support;

use einc_core::einsum::Program;
use einc_core::pipeline::{Options, compile};
use einc_core::{ia, tra};
use support::build::{conv, gather, matmul, nearest, softmax};
use support::{Numbers, check_chunking, chunking_by, given, inputs, random, same, uncut};

/// The whole pipeline on 1 to 5 sites, and lowering with chunkings that nobody would choose.
fn check(program: &Program, seed: u64) {
    let whole = tra::from_einsum::from_einsum(program, &uncut(program)).unwrap();
    let expected = given(tra::interpret::interpret(&whole, &inputs(program)));
    for deterministic in [false, true] {
        for sites in 1..=5 {
            let options = Options {
                sites,
                deterministic,
            };
            let compiled = compile(program, &options).unwrap();
            let by_tra = given(tra::interpret::interpret(&compiled.tra, &inputs(program)));
            same(&expected, &by_tra, "TRA");
            let by_ia = given(ia::interpret::interpret(&compiled.ia, &inputs(program)));
            same(&expected, &by_ia, "IA");
            assert_eq!(compiled.cost.steps.len(), compiled.plan.steps.len());
        }
    }
    let mut numbers = Numbers(seed | 1);
    for _ in 0..4 {
        let chunking = chunking_by(program, || numbers.pick(&[1, 1, 2, 3, 4]));
        check_chunking(program, &chunking, &[1, 2, 3, 5], &expected);
    }
}

#[test]
fn hand_written_programs_keep_their_meaning() {
    for (i, k, j) in [
        (4, 6, 8),
        (1, 7, 1),
        (5, 5, 5),
        (0, 3, 2),
        (3, 0, 2),
        (2, 40, 3),
    ] {
        check(&matmul(i, k, j), 1);
    }
    for (n, d) in [(9, 3), (2, 7), (1, 1)] {
        check(&nearest(n, d), 2);
    }
    for (n, d) in [(9, 3), (4, 4), (1, 1), (2, 6)] {
        check(&gather(n, d), 2);
    }
    for (t, s) in [(3, 5), (1, 9), (7, 1), (0, 4), (4, 0)] {
        check(&softmax(t, s), 3);
    }
    for (n, h) in [(3, 8), (1, 7), (5, 2)] {
        check(&conv(n, h), 4);
    }
}

#[test]
fn random_programs_keep_their_meaning() {
    for seed in 0..60 {
        check(&random::program(seed), seed);
    }
}
