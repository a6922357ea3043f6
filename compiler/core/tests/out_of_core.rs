//! Plans in less memory than one step works on: relations lie on disk tuple by tuple, and what they hold is the same.
#![allow(clippy::unwrap_used)]

mod support;

use einc_core::einsum::Program;
use einc_core::ia;
use einc_core::pipeline::{Compiled, Options, compile};
use einc_core::search::share::share;
use support::build::{conv, gather, matmul, nearest, softmax};
use support::{given, inputs, random, same};

fn planned(program: &Program, options: &Options) -> Result<Compiled, String> {
    compile(program, options, &|| false).map_err(|errors| format!("{errors:?}"))
}

fn most(compiled: &Compiled) -> u64 {
    compiled.cost.peak_bytes.iter().copied().max().unwrap()
}

/// How many plans of a program in less and less memory stream something.
fn streamed(program: &Program, deterministic: bool) -> usize {
    let program = &share(program).program;
    let mut found = 0;
    for sites in 1..=4 {
        let mut options = Options {
            deterministic,
            ..Options::new(sites)
        };
        let free = planned(program, &options).unwrap();
        assert!(free.plan.streams.is_empty());
        let expected = given(ia::interpret::interpret(&free.ia, &inputs(program)));
        for percent in [70, 40, 20] {
            let limit = most(&free) * percent / 100;
            options.criteria.memory = Some(limit);
            options.criteria.spill = true;
            let less = match planned(program, &options) {
                Ok(less) => less,
                Err(refused) => {
                    assert!(refused.contains("E0996"), "{refused}");
                    continue;
                }
            };
            assert!(most(&less) <= limit);
            assert_eq!(less.cost.steps.len(), less.plan.steps.len());
            found += usize::from(!less.plan.streams.is_empty());
            let text = less.plan.to_string();
            let parsed: ein_plan::Plan = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
            ein_plan::verify::verify(&parsed).unwrap();
            let actual = given(ia::interpret::interpret(&less.ia, &inputs(program)));
            match deterministic {
                true => assert_eq!(format!("{actual:?}"), format!("{expected:?}")),
                false => same(&expected, &actual, "less memory"),
            }
        }
    }
    found
}

#[test]
fn products_and_others_are_streamed() {
    for (program, least) in [
        (matmul(30, 21, 26), 6),
        (matmul(7, 90, 5), 8),
        (nearest(30, 6), 8),
        // What is looked up is held.
        (gather(30, 8), 0),
        (softmax(23, 31), 6),
        (conv(9, 14), 6),
    ] {
        let found = streamed(&program, false);
        assert!(found >= least, "{found} of {least}: {program}");
    }
    assert!(streamed(&matmul(64, 64, 64), true) > 0);
}

#[test]
fn random_programs_are_streamed() {
    let found: usize = (0..8)
        .map(|seed| streamed(&random::program(seed), false))
        .sum();
    assert!(found > 8, "{found}");
}
