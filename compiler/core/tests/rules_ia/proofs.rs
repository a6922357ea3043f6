//! Proofs that plans compute what the initial translation computes.

use crate::support::{Numbers, build, chunking_by, given, inputs, random, same};
use einc_core::einsum::Program;
use einc_core::ia;
use einc_core::ia::from_layout::place;
use einc_core::rules::ia::{Options, Proof, initial, prove};
use einc_core::tra;

fn lowered(program: &Program, pieces: impl FnMut() -> u32) -> tra::Program {
    tra::from_einsum::from_einsum(program, &chunking_by(program, pieces)).unwrap()
}

fn proof(first: &ia::Program, second: &ia::Program) -> Proof {
    let options = Options {
        node_limit: 20_000,
        disabled: &[],
        explain: true,
        deadline: &|| false,
    };
    prove(first, second, &options)
}

/// The naive translation is a program that computes the same, and every plan of today's translation is proved equal to it.
fn check(program: &Program, tra: &tra::Program, chosen: &ia::Program) {
    let first = initial(tra, chosen.sites, &chosen.mesh);
    ia::verify::verify(&first).unwrap();
    let expected = given(tra::interpret::interpret(tra, &inputs(program)));
    let actual = given(ia::interpret::interpret(&first, &inputs(program)));
    same(&expected, &actual, "the initial translation");
    let proof = proof(&first, chosen);
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
    for program in &known() {
        for sites in [1, 2, 5] {
            for pieces in [1, 3] {
                let tra = lowered(program, || pieces);
                check(program, &tra, &ia::from_tra::from_tra(&tra, sites).unwrap());
            }
        }
    }
}

fn known() -> [Program; 5] {
    [
        build::matmul(7, 5, 6),
        build::nearest(9, 4),
        build::gather(6, 4),
        build::softmax(5, 7),
        build::conv(3, 8),
    ]
}

#[test]
fn plans_of_random_programs() {
    for seed in 0..40 {
        let program = random::program(seed);
        let mut numbers = Numbers(seed + 11);
        let tra = lowered(&program, || 1 + numbers.below(3) as u32);
        let chosen = ia::from_tra::from_tra(&tra, 1 + (seed % 5) as u32).unwrap();
        check(&program, &tra, &chosen);
    }
}

#[test]
fn plans_of_random_layouts() {
    for (number, program) in known().iter().enumerate() {
        for seed in 0..6 {
            let layout = ia::random::layout(program, 8, 31 * seed + number as u64);
            let placed = place(program, &layout, 8, seed % 3 == 0).unwrap();
            check(program, &placed.tra, &placed.ia);
        }
    }
    for seed in 0..25 {
        let program = random::program(seed);
        let layout = ia::random::layout(&program, 6, seed);
        let placed = place(&program, &layout, 6, seed % 3 == 0).unwrap();
        check(&program, &placed.tra, &placed.ia);
    }
}

/// A proof that may not use what it needs does not go through, and a wrong plan has none.
#[test]
fn what_is_not_so_is_not_proved() {
    let program = build::matmul(8, 6, 4);
    let tra = lowered(&program, || 2);
    let chosen = ia::from_tra::from_tra(&tra, 2).unwrap();
    let first = initial(&tra, 2, &chosen.mesh);
    let disabled: Vec<String> = einc_core::rules::ia::all()
        .iter()
        .map(|info| info.name.into())
        .collect();
    let without = Options {
        node_limit: 20_000,
        disabled: &disabled,
        explain: true,
        deadline: &|| false,
    };
    let refused = prove(&first, &chosen, &without);
    assert!(!refused.proved);
    assert_eq!(
        refused.stopped.as_deref(),
        Some("output `C` was not shown to be the initial one")
    );

    let late = Options {
        node_limit: 20_000,
        disabled: &[],
        explain: true,
        deadline: &|| true,
    };
    assert_eq!(
        prove(&first, &chosen, &late).stopped.as_deref(),
        Some("the time is over")
    );

    // Another program of the same types.
    let mut other = build::matmul(8, 6, 4);
    if let einc_core::einsum::Definition::Statement { kernel, .. } =
        &mut other.tensors[2].definition
    {
        kernel.reduction = Some(ein_plan::Reduction::Norm1);
    }
    let wrong = ia::from_tra::from_tra(&lowered(&other, || 2), 2).unwrap();
    assert!(!proof(&first, &wrong).proved);

    // A move left out: the operator's input is not where it needs it.
    let mut broken = chosen.clone();
    let moved = broken.relations.iter().position(|r| {
        matches!(
            r.operation,
            ia::Operation::Shuffle { .. } | ia::Operation::Broadcast { .. }
        )
    });
    let moved = moved.unwrap();
    let before = broken.relations[moved].operation.inputs()[0];
    for relation in &mut broken.relations[moved + 1..] {
        relation
            .operation
            .rename(|id| if id.0 as usize == moved { before } else { id });
    }
    let refused = proof(&first, &broken);
    assert!(!refused.proved);
    let why = refused.stopped.unwrap();
    assert!(why.contains("it needs an input at"), "{why}");
}

#[test]
fn a_proof_reads() {
    let program = build::matmul(8, 6, 4);
    let tra = lowered(&program, || 2);
    let chosen = ia::from_tra::from_tra(&tra, 2).unwrap();
    let proof = proof(&initial(&tra, 2, &chosen.mesh), &chosen);
    insta::assert_snapshot!(text(&proof));
}
