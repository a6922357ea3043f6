//! The compiler behind sema, on programs built by hand and at random: TRA and IA give what the program says,
//! on any chunking and any number of sites.
#![allow(clippy::unwrap_used)]

mod support;

use einc_core::einsum::Program;
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::random::case;
use einc_core::pipeline::{Options, compile};
use einc_core::search::share::share;
use einc_core::tra::chunk::Chunk;
use einc_core::{ia, tra};
use support::build::{conv, gather, matmul, nearest, softmax};
use support::{Given, Numbers, check_chunking, chunking_by, given, inputs, random, same, uncut};

/// What the program gives by the oracle of the Einstein IR.
fn by_definition(program: &Program) -> Given {
    let inputs = inputs(program);
    let values = interpret(program, &|tensor| {
        let Chunk { shape, mut columns } = inputs(&tensor.name);
        Values {
            shape,
            data: columns.remove(0),
        }
    });
    let chunk = |Values { shape, data }| Chunk {
        shape,
        columns: vec![data],
    };
    match values {
        Ok(values) => Ok(values.into_iter().map(chunk).collect()),
        Err(_) => Err("stopped"),
    }
}

/// The whole pipeline on 1 to 5 sites, and lowering with chunkings that nobody would choose.
fn check(program: &Program, seed: u64) {
    let program = &share(program).program;
    let expected = by_definition(program);
    check_chunking(program, &uncut(program), &[1, 2], &expected);
    for deterministic in [false, true] {
        for sites in 1..=5 {
            let options = Options {
                sites,
                deterministic,
                ..Options::new(1)
            };
            let compiled = compile(program, &options, &|| false).unwrap();
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
    for seed in 0..40 {
        check(&random::program(seed), seed);
    }
}

/// The random cases that everything below the Einstein IR is tested with, through TRA and IA.
#[test]
fn random_cases_keep_their_meaning() {
    for seed in 0..80 {
        let case = case(seed);
        let expected = interpret(&case.program, &|tensor| case.input(tensor)).unwrap();
        let inputs = |name: &str| {
            let Values { shape, data } = case.inputs[name].clone();
            Chunk {
                shape,
                columns: vec![data],
            }
        };
        let compare = |what: &str, found: Vec<Chunk>| {
            for (at, (expected, mut found)) in expected.iter().zip(found).enumerate() {
                let found = Values {
                    shape: found.shape,
                    data: found.columns.remove(0),
                };
                if let Err(difference) = case.compare(at, expected, &found) {
                    panic!(
                        "seed {seed}, {what}, output {at}: {difference}\n{}",
                        case.program
                    );
                }
            }
        };
        for sites in 1..=5 {
            let deterministic = (seed + u64::from(sites)) % 3 == 0;
            let options = Options {
                sites,
                deterministic,
                ..Options::new(1)
            };
            let compiled = compile(&case.program, &options, &|| false).unwrap();
            compare(
                "TRA",
                tra::interpret::interpret(&compiled.tra, &inputs).unwrap(),
            );
            compare(
                "IA",
                ia::interpret::interpret(&compiled.ia, &inputs).unwrap(),
            );
            let traffic = ein_plan::traffic::total(&compiled.plan);
            assert_eq!(u128::from(traffic.transfer), compiled.cost.transfer);
            assert_eq!(traffic.bytes, compiled.cost.bytes);
        }
    }
}

#[test]
fn scatters_are_reductions_with_guards() {
    let text = "\
files \"a.ein\"
input at: i64[7] = unbound   // a.ein:1
input x: f64[7, 3] = unbound   // a.ein:1
hidden G.target1: i64[5] = iota   // a.ein:1
G: f64[5, 3] = [p1: 5, d: 3 | n: 7] sum x[n, d] if G.target1[at[n]] == p1   // a.ein:1
M: f64[5, 3] = [p1: 5, d: 3 | n: 7] max x[n, d] if G.target1[at[n]] == p1   // a.ein:1
even: f64[14] = [p1: 14 | n: 7] sum x[n, 1] if 2 * n == p1   // a.ein:1
output G   // a.ein:1
output M   // a.ein:1
output even   // a.ein:1
";
    check(&einc_core::einsum::parse::parse(text).unwrap(), 5);
}

#[test]
fn a_long_program_is_compared_quickly_and_laid_out_in_full() {
    let mut text = "input x: f32[100000, 8] = unbound\ninput tok: i64[64] = unbound\n\
        y0: f32[64, 8] = [n: 64, d: 8] x[tok[n], d]\n"
        .to_string();
    for number in 0..310 {
        text += &format!(
            "y{}: f32[64, 8] = [n: 64, d: 8] tanh(y{number}[n, d])\n",
            number + 1
        );
    }
    text += "output y310";
    let program = einc_core::einsum::parse::parse(&text).unwrap();
    let options = Options::new(4);
    let compiled = compile(&program, &options, &|| false).unwrap();
    let chosen = &compiled.chosen;
    // The table stays where it is, although that form of the program was looked at quickly at first.
    assert!(chosen.price.transfer < 4000.0, "{}", chosen.price.transfer);
    assert!(chosen.proved_optimal, "{:?}", chosen.not_explored);
    let said = |what: &String| what.contains("quick layouts");
    assert!(
        chosen.not_explored.iter().any(said),
        "{:?}",
        chosen.not_explored
    );
}

#[test]
fn tensors_that_every_site_cuts_along_all_dimensions_are_laid_out_on_fewer() {
    // Each product is best cut along what the others sum over, so that every dimension of `p` is cut along every axis.
    let product = |name: &str, sum: &str, read: &str| {
        format!("{name}: f32[48, 48, 48, 48] = {sum} sum p[i, j, k, l] * B[{read}]\n")
    };
    let text = [
        "input A: f32[48, 48, 48, 48] = unbound\ninput B: f32[48, 48] = unbound\n\
         p: f32[48, 48, 48, 48] = [i: 48, j: 48, k: 48, l: 48] A[i, j, k, l] * 2.0\n"
            .to_string(),
        product("a", "[i: 48, j: 48, k: 48, m: 48 | l: 48]", "l, m"),
        product("b", "[m: 48, j: 48, k: 48, l: 48 | i: 48]", "i, m"),
        product("c", "[i: 48, m: 48, k: 48, l: 48 | j: 48]", "j, m"),
        product("d", "[i: 48, j: 48, m: 48, l: 48 | k: 48]", "k, m"),
        "output a\noutput b\noutput c\noutput d".to_string(),
    ];
    let program = einc_core::einsum::parse::parse(&text.concat()).unwrap();
    let compiled = compile(&program, &Options::new(65), &|| false).unwrap();
    ein_plan::verify::verify(&compiled.plan).unwrap();
    let chosen = &compiled.chosen;
    assert!((2..=64).contains(&chosen.mesh.sites()), "{}", chosen.mesh);
    assert!(!chosen.proved_optimal);
    let told = "meshes of more than 64 sites: tensors would have more pieces than can be counted";
    assert!(chosen.not_explored.iter().any(|what| what == told));
}
