//! Proofs that plans compute what the initial translation computes.

use crate::support::{Numbers, build, chunking_by, given, inputs, random, same};
use einc_core::einsum::Program;
use einc_core::ia;
use einc_core::rules::ia::{Options, Proof, initial, prove};
use einc_core::tra;

fn lowered(program: &Program, pieces: impl FnMut() -> u32) -> tra::Program {
    tra::from_einsum::from_einsum(program, &chunking_by(program, pieces)).unwrap()
}

fn proof(first: &ia::Program, second: &ia::Program) -> Proof {
    let options = Options {
        node_limit: 20_000,
        disabled: &[],
        deadline: &|| false,
    };
    prove(first, second, &options)
}

/// The naive translation is a program that computes the same, and every plan of today's translation is proved equal to it.
fn check(program: &Program, tra: &tra::Program, sites: u32) {
    let first = initial(tra, sites);
    ia::verify::verify(&first).unwrap();
    let expected = given(tra::interpret::interpret(tra, &inputs(program)));
    let actual = given(ia::interpret::interpret(&first, &inputs(program)));
    same(&expected, &actual, "the initial translation");
    let chosen = ia::from_tra::from_tra(tra, sites).unwrap();
    let proof = proof(&first, &chosen);
    assert!(
        proof.proved,
        "{:?}\n{first}\n{chosen}\n{}",
        proof.stopped,
        text(&proof)
    );
}

fn text(proof: &Proof) -> String {
    proof.steps.iter().map(|step| format!("{step}\n")).collect()
}

#[test]
fn plans_of_known_programs() {
    let programs = [
        build::matmul(7, 5, 6),
        build::nearest(9, 4),
        build::gather(6, 4),
        build::softmax(5, 7),
        build::conv(3, 8),
    ];
    for program in &programs {
        for sites in 1..=5 {
            for pieces in [1, 2, 3] {
                check(program, &lowered(program, || pieces), sites);
            }
        }
    }
}

#[test]
fn plans_of_random_programs() {
    for seed in 0..150 {
        let program = random::program(seed);
        let mut numbers = Numbers(seed + 11);
        let tra = lowered(&program, || 1 + numbers.below(3) as u32);
        check(&program, &tra, 1 + (seed % 5) as u32);
    }
}

#[test]
fn a_proof_reads() {
    let program = build::matmul(8, 6, 4);
    let mut pieces = [2, 1, 2, 1].into_iter().cycle();
    let tra = lowered(&program, || pieces.next().unwrap());
    let chosen = ia::from_tra::from_tra(&tra, 2).unwrap();
    let proof = proof(&initial(&tra, 2), &chosen);
    println!("{chosen}\n{}", text(&proof));
}
