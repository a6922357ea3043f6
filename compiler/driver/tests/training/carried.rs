//! Params and states so large that the next ones take the memory of the old: the bits are those of a training that keeps the old ones.
//!
//! ```text
//! w_next over w   and   w_next beside w, which is given out   ->   the same losses and params, and less memory stated for the first
//! ```

use crate::{Run, attempt_in};
use ein_exec::{RunError, Session};
use ein_plan::{Output, Plan};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

/// Two layers, whose loss may depend on the params alone too, and how it is trained.
fn program(extra: &str, rest: &str) -> String {
    format!(
        "dim N = 24; dim D = 1300; dim H = 1403; dim L = 7\n\
         input X: f32[N, D] = uniform(-1, 1)\ninput y: f32[N, L] = uniform(-1, 1)\n\
         param w: f32[D, H] = uniform(-0.1, 0.1)\nparam v: f32[H, L] = uniform(-0.1, 0.1)\n\
         h[n,k] = tanh(X[n,d] * w[d,k])\nz[n,l] = h[n,k] * v[k,l]\n\
         error = mean[n,l] (z[n,l] - y[n,l])^2\nloss = error{extra}\n\
         train {{ loss: loss; data: (X, y) over N by 10 shuffle; epochs: 2; {rest} }}\noutput w\noutput v\n"
    )
}

/// The plans in which steps are made.
fn steps(session: &mut Session) -> impl Iterator<Item = &mut Plan> {
    let plans = session.blocks.iter_mut().flat_map(|block| {
        let own = block
            .rounds
            .iter_mut()
            .flat_map(|rounds| &mut rounds.subnets);
        let own = own.flat_map(|subnet| subnet.step.values_mut().chain(&mut subnet.apply));
        block.step.values_mut().chain(&mut block.apply).chain(own)
    });
    plans.map(Arc::make_mut)
}

/// Gives out what is carried too, so that nothing takes its memory.
fn keep(plan: &mut Plan) {
    let carried: Vec<_> = plan.carried().collect();
    for relation in carried {
        let step = plan.step(relation);
        let dims = step.kind.array.dims.iter();
        let shape: Vec<u64> = dims.map(|dim| dim.extent).collect();
        if !shape.is_empty() {
            plan.outputs.push(Output {
                name: format!("{}.old", step.tensor),
                relation,
                dtype: step.kind.array.columns[0],
                shape,
                replaces: None,
                file: None,
                asserts: None,
                complex: false,
                origin: step.origin,
            });
        }
    }
}

/// Runs a text; the second is how many relations are written over, and what is stated of the fullest site.
fn trained(text: &str, sites: u32, kept: bool) -> (Result<Run, RunError>, (usize, u64)) {
    let (over, stated) = (Cell::new(0), Cell::new(0));
    let run = attempt_in(PathBuf::from("."), text, sites, &|session, _| {
        if kept {
            steps(session).for_each(keep);
        }
        let written = |plan: &mut Plan| plan.successions().list.len();
        over.set(steps(session).map(written).sum());
        let peaks = einc_driver::training::peaks(session);
        stated.set(peaks.into_iter().max().unwrap_or(0));
    });
    (run, (over.get(), stated.get()))
}

fn compare(text: &str, sites: u32) {
    let (kept, (none, most)) = trained(text, sites, true);
    let (over, (some, less)) = trained(text, sites, false);
    assert_eq!(none, 0, "{text}");
    // The pieces of several sites stay in a cache between steps; a sweep is of larger ones or of none.
    let large = sites < 3 || !text.contains("sgd");
    assert!(
        some > 0 || !large,
        "nothing is written over on {sites}\n{text}"
    );
    assert!(less <= most, "{less} and {most} on {sites}\n{text}");
    let (kept, over) = (kept.unwrap(), over.unwrap());
    let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|x| x.to_bits()).collect() };
    assert_eq!(bits(&kept.losses), bits(&over.losses), "{sites}\n{text}");
    assert_eq!(
        bits(&kept.validated),
        bits(&over.validated),
        "{sites}\n{text}"
    );
    for (name, kept) in &kept.outputs {
        assert!(
            bits(kept) == bits(&over.outputs[name]),
            "{name} on {sites}\n{text}"
        );
    }
}

#[test]
fn what_is_carried_on_has_the_bits_of_what_is_made_beside_it() {
    for rule in [
        "sgd(lr: 0.1)",
        "momentum(lr: 0.1)",
        "adamw(lr: 0.01, weight_decay: 0.1)",
        "lamb(lr: 0.01, weight_decay: 0.1)",
    ] {
        for sites in 1..=5 {
            compare(&program("", &format!("optimizer: {rule}")), sites);
        }
    }
    for extra in ["", " + 0.001 * (w[d,k] * w[d,k])"] {
        for rest in [
            "clip: 0.01; optimizer: adam(lr: 0.01)",
            "accumulate: 3; optimizer: adamw(lr: 0.01); validate: error",
        ] {
            for sites in [1, 2, 3] {
                compare(&program(extra, rest), sites);
            }
        }
    }
}

#[test]
fn rounds_have_the_bits_of_what_is_made_beside_it() {
    for strategy in ["local_sgd(steps: 2)", "ist(local_steps: 2)"] {
        let rest = format!("optimizer: momentum(lr: 0.1); strategy: {strategy}");
        for sites in 1..=3 {
            compare(&program("", &rest), sites);
        }
    }
}

#[test]
fn a_single_site_holds_less() {
    for rule in ["sgd(lr: 0.1)", "adamw(lr: 0.01)"] {
        let text = program("", &format!("optimizer: {rule}"));
        let (_, (_, most)) = trained(&text, 1, true);
        let (_, (_, less)) = trained(&text, 1, false);
        assert!(less * 10 < most * 7, "{rule}: {less} and {most}");
    }
}

/// States are written over before the loss is known, params are not.
#[test]
fn a_loss_that_is_not_finite_is_explained_as_with_the_old_params() {
    for extra in [
        "",
        " + 1e-9 * (w[d,k] * w[d,k])",
        " + sqrt(1e30 - sum[d,k] exp(w[d,k])^2)",
    ] {
        for rule in ["sgd(lr: 1e30)", "momentum(lr: 1e30)", "adamw(lr: 1e30)"] {
            let text = program(extra, &format!("optimizer: {rule}"));
            for sites in 1..=3 {
                let told = |kept: bool| {
                    let (run, _) = trained(&text, sites, kept);
                    let error = run.err().unwrap_or_else(|| panic!("it went on\n{text}"));
                    (error.code, error.message, error.tensor)
                };
                let (code, message, tensor) = told(true);
                assert_eq!(code, "E0801", "{message}");
                assert_eq!((code, message, tensor), told(false), "{sites}\n{text}");
            }
        }
    }
}
