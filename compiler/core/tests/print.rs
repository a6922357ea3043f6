//! The printed forms of TRA, IA and of `einc plan`, and their way back.
#![allow(clippy::unwrap_used)]

mod support;

use einc_core::einsum::Program;
use einc_core::pipeline::{Compiled, Options, compile, describe, explain};
use einc_core::{ia, tra};
use support::build::{conv, gather, matmul, nearest, softmax};
use support::random;

fn compiled(program: &Program, sites: u32) -> Compiled {
    let options = Options {
        sites,
        deterministic: false,
        ..Options::new(1)
    };
    compile(program, &options, &|| false).unwrap()
}

fn printed(program: &Program, sites: u32) -> String {
    let compiled = compiled(program, sites);
    let (tra, ia) = (&compiled.tra, &compiled.ia);
    let report = describe(&compiled, &Options::new(sites), &[]);
    format!("{tra}\n{ia}\n{}", explain(&report))
}

#[test]
fn matmul_on_two_sites() {
    insta::assert_snapshot!(printed(&matmul(4, 6, 8), 2));
}

#[test]
fn long_matmul_on_two_sites() {
    insta::assert_snapshot!(printed(&matmul(4, 600, 8), 2));
}

#[test]
fn nearest_on_three_sites() {
    insta::assert_snapshot!(printed(&nearest(10, 4), 3));
}

#[test]
fn softmax_on_two_sites() {
    insta::assert_snapshot!(printed(&softmax(4, 6), 2));
}

#[test]
fn conv_on_two_sites() {
    insta::assert_snapshot!(printed(&conv(4, 8), 2));
}

/// The text of origins has no bytes.
fn without_bytes(program: &mut tra::Program, other: &mut ia::Program) {
    for origin in program.relations.iter_mut().map(|r| &mut r.origin) {
        (origin.start, origin.end) = (0, 0);
    }
    for origin in other.relations.iter_mut().map(|r| &mut r.origin) {
        (origin.start, origin.end) = (0, 0);
    }
    for output in program.outputs.iter_mut().chain(&mut other.outputs) {
        (output.origin.start, output.origin.end) = (0, 0);
    }
}

fn check_round_trip(program: &Program, sites: u32) {
    let Compiled {
        mut tra, mut ia, ..
    } = compiled(program, sites);
    without_bytes(&mut tra, &mut ia);
    assert_eq!(tra::parse::parse(&tra.to_string()).unwrap(), tra);
    assert_eq!(ia::parse::parse(&ia.to_string()).unwrap(), ia);
}

#[test]
fn what_is_printed_parses_back() {
    for sites in 1..4 {
        for program in [
            matmul(4, 6, 8),
            nearest(10, 4),
            softmax(4, 6),
            conv(4, 8),
            gather(5, 3),
        ] {
            check_round_trip(&program, sites);
        }
        for seed in 0..100 {
            check_round_trip(&random::program(seed), sites);
        }
    }
}

const ALL_OF_TRA: &str = r#"files "a.ein"
x: {i: 4/2, j: 6/3} f32[i, j] = source x from unbound   // a.ein:1
x.turned of x: {j: 6/3, i: 4/2} f32[i, j] = rekey x by {j, i}   // a.ein:2
x.row of x: {j: 6/3} f32[2, j] = filter x where i = 1   // a.ein:3
x.whole of x: {j: 6/3} f32[4, j] = concat x dim 0   // a.ein:4
x.again of x: {j: 6/3, i: 4/4} f32[i, j] = tile x.whole dim 0   // a.ein:5
x.twice of x: {j: 6/3} f32[2, j] = transform x.row over [_, j] (f32[2, 6]) [i: 2, j: 6] f32 = a0[i, j] * 2.0   // a.ein:6
output x = x.twice -> "x.npy"   // a.ein:7
output y = x.turned   // a.ein:8
output z = x.again   // a.ein:9
"#;

#[test]
fn every_operator_has_a_text_and_a_translation() {
    let program = tra::parse::parse(ALL_OF_TRA).unwrap();
    tra::verify::verify(&program).unwrap();
    assert_eq!(program.to_string(), ALL_OF_TRA);
    let inputs = |_: &str| tra::chunk::Chunk {
        shape: vec![4, 6],
        columns: vec![
            (0..24)
                .map(|n| ein_plan::Scalar::Float(f64::from(n)))
                .collect(),
        ],
    };
    let expected = tra::interpret::interpret(&program, &inputs).unwrap();
    let doubled: Vec<f64> = (12..24).map(|n| 2.0 * f64::from(n)).collect();
    let found: Vec<f64> = expected[0].columns[0].iter().map(|x| x.as_f64()).collect();
    assert_eq!((found, &expected[0].shape), (doubled, &vec![2, 6]));
    assert_eq!(expected[1], inputs("x"));
    assert_eq!(expected[2], inputs("x"));
    for sites in 1..6 {
        let ia = ia::from_tra::from_tra(&program, sites).unwrap();
        ia::verify::verify(&ia).unwrap();
        let again = ia::parse::parse(&ia.to_string()).unwrap();
        assert_eq!(again, ia);
        assert_eq!(ia::interpret::interpret(&ia, &inputs).unwrap(), expected);
    }
}
