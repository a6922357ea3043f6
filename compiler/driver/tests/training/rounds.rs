//! Independent subnets and local SGD against plain loops in double precision: a net of three layers, every site's steps on its own rows and
//! neurons, put together by index.
//!
//! ```text
//! 3 sites, rounds of 4 steps, momentum that travels: losses of all steps and params at the end
//! ```

use crate::subnets::{Net, Rule, Way, convolutions, dense};
use crate::{attempt, attempt_in, close};
use ein_comm::{CommError, Communicator, Ticket, in_process};
use ein_device::{Buffer, BufferType};
use ein_exec::Event;
use ein_exec::session::Begin;
use einc_core::pipeline::{self, report::PlanRounds};
use einc_driver::planned::Prepared;
use einc_driver::purpose::Purpose;
use einc_driver::settings::Settings;
use einc_driver::{load, session};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

fn check(net: &Net, strategy: &str, way: Way) {
    let text = net.text(strategy, &way);
    let found =
        attempt(&text, way.sites as u32).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let (losses, params) = net.reference(&way);
    let what = format!("{strategy} on {}", way.sites);
    close(&found.losses, &losses, &format!("losses, {what}"));
    for (name, values) in params {
        close(&found.outputs[name], &values, &format!("{name}, {what}"));
    }
}

fn way(rule: Rule, reset: Option<bool>, sites: usize) -> Way {
    Way {
        rule,
        reset,
        local_steps: 3,
        parts: sites,
        sites,
        batch: 3,
        epochs: 3,
    }
}

#[test]
fn subnets_learn_what_loops_learn() {
    for sites in 1..=4 {
        check(
            &dense(),
            "ist(local_steps: 3)",
            way(Rule::Sgd, Some(false), sites),
        );
        check(
            &dense(),
            "ist(local_steps: 3)",
            way(Rule::Momentum, Some(false), sites),
        );
        check(
            &dense(),
            "ist(local_steps: 3, state: reset)",
            way(Rule::Momentum, Some(true), sites),
        );
    }
    check(
        &dense(),
        "ist(local_steps: 3)",
        way(Rule::Adam, Some(false), 3),
    );
    check(
        &dense(),
        "ist(local_steps: 3, state: reset)",
        way(Rule::Adam, Some(true), 2),
    );
}

/// Norms are those of a site's block.
#[test]
fn subnets_learn_by_lamb_and_others_what_loops_learn() {
    for (rule, sites) in [Rule::Lamb, Rule::Lars, Rule::AdamW]
        .into_iter()
        .flat_map(|rule| (1..=5).map(move |sites| (rule, sites)))
    {
        check(
            &dense(),
            "ist(local_steps: 3)",
            way(rule, Some(false), sites),
        );
        check(
            &dense(),
            "ist(local_steps: 3, state: reset)",
            way(rule, Some(true), sites),
        );
    }
    let two = Way {
        parts: 2,
        ..way(Rule::Lamb, Some(false), 4)
    };
    check(&dense(), "ist(local_steps: 3, parts: 2)", two);
}

/// Parts of filters, in a residual block too.
#[test]
fn filters_learn_what_loops_learn() {
    for sites in 1..=4 {
        let net = convolutions();
        check(
            &net,
            "ist(local_steps: 3)",
            way(Rule::Momentum, Some(false), sites),
        );
        check(
            &net,
            "ist(local_steps: 3, state: reset)",
            way(Rule::Lamb, Some(true), sites),
        );
    }
    let whole = Way {
        parts: 1,
        ..way(Rule::Sgd, Some(false), 3)
    };
    check(&convolutions(), "local_sgd(steps: 3)", whole);
}

#[test]
fn sites_with_the_same_part_average_it() {
    for (sites, parts) in [(4, 2), (5, 2), (3, 1)] {
        let way = Way {
            parts,
            ..way(Rule::Momentum, Some(false), sites)
        };
        check(
            &dense(),
            &format!("ist(local_steps: 3, parts: {parts})"),
            way,
        );
    }
}

#[test]
fn local_sgd_averages_params_and_may_average_states() {
    for sites in 1..=4 {
        for (average, reset) in [("params", None), ("params_and_state", Some(false))] {
            let way = Way {
                parts: 1,
                ..way(Rule::Momentum, reset, sites)
            };
            check(
                &dense(),
                &format!("local_sgd(steps: 3, average: {average})"),
                way,
            );
        }
    }
}

/// On one site rounds are ordinary training, to the last bit.
#[test]
fn alone_a_site_trains_as_ever() {
    use Rule::{Adam, AdamW, Lamb, Lars, Momentum, Sgd};
    let rules = [Sgd, Momentum, Adam, AdamW, Lamb, Lars];
    let nets = rules.map(|rule| (dense(), rule)).into_iter();
    for (net, rule) in nets.chain([Sgd, AdamW, Lars].map(|rule| (convolutions(), rule))) {
        let way = way(rule, Some(false), 1);
        let sync = attempt(&net.text("sync", &way), 1).unwrap();
        for strategy in ["ist(local_steps: 4)", "local_sgd(steps: 4)"] {
            let found = attempt(&net.text(strategy, &way), 1).unwrap();
            assert_eq!(found.losses, sync.losses, "{strategy}");
            assert_eq!(found.outputs, sync.outputs, "{strategy}");
        }
    }
}

/// The digits, two or three layers, with what is written after the net.
fn digits(hidden: &[&str], rest: &str) -> String {
    let mut text = "use std.nn\ndim N\ndim V\ninput X: f32[N, 64] = load(\"data/digits_train_x.npy\")\n\
         input y: i64[N] = load(\"data/digits_train_y.npy\")\ninput Xv: f32[V, 64] = load(\"data/digits_test_x.npy\")\n\
         input yv: i64[V] = load(\"data/digits_test_y.npy\")\n"
        .to_owned();
    let mut body = String::new();
    let (mut size, mut value) = ("64", "X".to_owned());
    for (layer, next) in hidden.iter().enumerate() {
        text += &format!(
            "param W{layer}: f32[{size}, {next}] = he_normal\nparam n{layer}: nn.ist_norm({next})\n"
        );
        body += &format!(
            "a{layer}[n,j] = {value}[n,i] * W{layer}[i,j]\ns{layer} = n{layer}(a{layer})\nh{layer}[n,j] = relu(s{layer}[n,j])\n"
        );
        (size, value) = (next, format!("h{layer}"));
    }
    text += &format!("param V0: f32[{size}, 10] = he_normal\nparam c: f32[10] = zeros\n{body}");
    text + &format!(
        "z[n,q] = {value}[n,j] * V0[j,q] + c[q]\nloss = mean[n] nn.cross_entropy(z, y)[n]\n\
         accuracy = mean[n] f32(argmax[q] z[n,q] == y[n])\n{rest}\noutput accuracy\n"
    )
}

fn examples() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

fn on_digits(hidden: &[&str], strategy: &str, sites: u32) -> f64 {
    let rest = format!(
        "train {{ loss: loss; data: (X, y) over N by 32 shuffle; steps: 200; optimizer: momentum(lr: 0.3); strategy: {strategy}\n\
         schedule: poly(power: 1); validate: accuracy on (Xv, yv) every 200 steps }}"
    );
    let text = digits(hidden, &rest);
    let run = attempt_in(examples(), &text, sites, &|_, _| {})
        .unwrap_or_else(|error| panic!("{error:?}"));
    *run.validated.last().unwrap()
}

/// Section 5.4 of the design paper: .991 and .992 at the end.
#[test]
fn digits_are_learnt_by_subnets() {
    for (hidden, sites) in [(&["512"][..], 4), (&["256", "256"], 4), (&["512"], 3)] {
        let found = on_digits(hidden, "ist(local_steps: 10, state: reset)", sites);
        assert!(found >= 0.98, "{hidden:?} on {sites}: {found}");
    }
    let found = on_digits(
        &["512"],
        "local_sgd(steps: 10, average: params_and_state)",
        4,
    );
    assert!(found >= 0.975, "local SGD: {found}");
}

/// An estimate for one site is equal under every strategy, to the last bit; and the statistics are those of the rows, one layer behind the
/// other.
#[test]
fn statistics_are_estimated_whatever_the_strategy() {
    let rest = |strategy: &str| {
        format!(
            "train {{ loss: loss; data: (X, y) over N by 64 shuffle; steps: 20; optimizer: sgd(lr: 0.3); strategy: {strategy} }}\n\
             const rows = 1437\noutput h1; output a1; output s1"
        )
    };
    let text = digits(&["8", "6"], &rest("sync(statistics: 1437)"));
    let sync = attempt_in(examples(), &text, 1, &|_, _| {}).unwrap();
    let alone = attempt_in(
        examples(),
        &digits(&["8", "6"], &rest("ist(local_steps: 5, statistics: 1437)")),
        1,
        &|_, _| {},
    )
    .unwrap();
    assert_eq!(sync.outputs, alone.outputs);
    // With all rows, what is printed is normalised: the corners of `s1` are those of `a1`, moved and scaled.
    assert!(sync.outputs["accuracy"][0] > 0.3);
}

#[test]
fn a_run_that_was_stopped_ends_as_if_it_was_not() {
    for strategy in [
        "ist(local_steps: 3)",
        "ist(local_steps: 3, state: reset)",
        "ist(local_steps: 3, parts: 2)",
        "local_sgd(steps: 3)",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ckpt");
        let text = |epochs: usize| {
            let way = Way {
                epochs,
                ..way(Rule::Momentum, None, 3)
            };
            let saves = format!("checkpoint: \"{}\" every 6 steps", path.display());
            dense().text(&format!("{strategy}; {saves}"), &way)
        };
        let whole = attempt(&text(4), 3).unwrap();
        let _ = std::fs::remove_dir_all(&path);
        attempt(&text(2), 3).unwrap();
        let resumed = attempt_in(".".into(), &text(4), 3, &|_, options| {
            options.keeping.begin = Begin::Resume
        })
        .unwrap();
        assert_eq!(resumed.losses, whole.losses[6..], "{strategy}");
        assert_eq!(resumed.outputs, whole.outputs, "{strategy}");
        // Rounds are shared out over the sites that there are.
        let other = attempt_in(".".into(), &text(5), 2, &|_, options| {
            options.keeping.begin = Begin::Resume
        });
        let error = other.err().unwrap();
        assert!(error.message.contains("the number of sites"), "{error:?}");
    }
}

/// Returns the report of `einc plan` on a program on so many sites.
fn planned(text: &str, sites: u32) -> PlanRounds {
    let program = load::load_text("test", "test.ein", text.into(), None, PathBuf::from("."));
    let settings = Settings {
        sites: Some(sites),
        ..Settings::default()
    };
    let checked = session::check(&program, &settings, Purpose::Plan).unwrap();
    let training = checked
        .training
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    pipeline::rounds(&training, &training.blocks[0]).unwrap()
}

/// Figure 2 of the paper: 1,000 features, three hidden layers of 4,000, 200 labels, batches of 512, rounds of 10 steps; millions of floats a step, by
/// its formula with the inner layers alone in the sum.
#[test]
fn volumes_are_those_of_the_formula() {
    let net = |optimizer: &str, strategy: &str| {
        format!(
            "use std.nn\ndim N = 65536\ninput X: f32[N, 1000]\ninput y: i64[N]\nparam W1: f32[1000, 4000] = he_normal\n\
             param W2: f32[4000, 4000] = he_normal\nparam W3: f32[4000, 4000] = he_normal\nparam W4: f32[4000, 200] = he_normal\nparam c: f32[200] = zeros\n\
             param n1: nn.ist_norm(4000); param n2: nn.ist_norm(4000); param n3: nn.ist_norm(4000)\n\
             a[n,i] = X[n,d] * W1[d,i]\ns = n1(a)\nb[n,j] = relu(s[n,i]) * W2[i,j]\nt = n2(b)\ne[n,k] = relu(t[n,j]) * W3[j,k]\nu = n3(e)\n\
             z[n,q] = relu(u[n,k]) * W4[k,q] + c[q]\nloss = mean[n] nn.cross_entropy(z, y)[n]\n\
             train {{ loss: loss; data: (X, y) over N by 512; epochs: 1; optimizer: {optimizer}; strategy: {strategy} }}\noutput loss\n"
        )
    };
    let (f, l, inner) = (4.0e6, 0.8e6, 32.0e6);
    let (hidden, labels) = (12_000.0, 200.0);
    for (sites, paper, parallel) in [
        (2, 2.08, 73.6),
        (4, 1.28, 147.2),
        (8, 0.88, 294.4),
        (16, 0.68, 588.8),
    ] {
        let n = f64::from(sites);
        let rounds = planned(&net("sgd(lr: 1)", "ist(local_steps: 10)"), sites);
        let weights = rounds
            .tensors
            .iter()
            .filter(|tensor| tensor.name.starts_with('W'));
        let fetched: f64 = weights.clone().map(|tensor| tensor.fetched).sum();
        assert!((fetched / 1e6 - paper).abs() < 1e-9, "{sites}: {fetched}");
        let all: f64 = weights.clone().map(|tensor| tensor.data_parallel).sum();
        assert!((all / 1e6 - parallel).abs() < 1e-9, "{sites}: {all}");
        // A site's block, section 2, with what travels.
        for (optimizer, k) in [
            ("sgd(lr: 1)", 1.0),
            ("momentum(lr: 1)", 2.0),
            ("lamb(lr: 1)", 3.0),
        ] {
            let rounds = planned(&net(optimizer, "ist(local_steps: 10)"), sites);
            let found: f64 = rounds.tensors.iter().map(|tensor| tensor.fetched).sum();
            let block = k * ((f + l + 2.0 * hidden) / n + inner / (n * n) + labels);
            assert!(
                (found - n * block / 10.0).abs() < 1e-3,
                "{optimizer} on {sites}: {found}"
            );
            let rounds = planned(&net(optimizer, "ist(local_steps: 10, state: reset)"), sites);
            let found: f64 = rounds.tensors.iter().map(|tensor| tensor.fetched).sum();
            assert!(
                (found - n * block / k / 10.0).abs() < 1e-3,
                "{optimizer} on {sites}, reset: {found}"
            );
        }
        let flops: u64 = weights.map(|tensor| tensor.flops).sum();
        let wanted = 512.0 * (4.0 * f + 6.0 * l) / n + 6.0 * 512.0 * inner / (n * n);
        assert_eq!(flops as f64, wanted, "{sites}");
    }
}

/// Filters are neurons too; what is added in a residual block is of one layer.
#[test]
fn filters_of_convolutions_are_dealt() {
    let net_at = |rate: &str, strategy: &str| {
        format!(
            "use std.nn\ndim N = 24\ninput X: f32[N, 1, 6, 6] = uniform(-1, 1)\ninput y: f32[N, 3] = uniform(-1, 1)\n\
             param A: f32[8, 1, 3, 3] = he_normal\nparam B: f32[6, 8, 3, 3] = he_normal\nparam C: f32[8, 6, 3, 3] = he_normal\n\
             param D: f32[8, 10] = he_normal\nparam E: f32[10, 3] = he_normal\nparam c: f32[3] = zeros\n\
             a = nn.conv2d(X, A)\nb = nn.conv2d(a, B)\nr[n,f,i,j] = relu(b[n,f,i,j])\nd = nn.conv2d(r, C)\n\
             s[n,f,i,j] = relu(a[n,f,i,j] + d[n,f,i,j])\ng[n,f] = mean[i,j] s[n,f,i,j]\nh[n,k] = relu(g[n,f] * D[f,k])\n\
             z[n,q] = h[n,k] * E[k,q] + c[q]\nloss = mean[n,q] (z[n,q] - y[n,q])^2\n\
             train {{ loss: loss; data: (X, y) over N by 4 shuffle; epochs: 4; optimizer: momentum(lr: {rate}); strategy: {strategy} }}\n\
             output A; output B; output C; output D; output E; output c\n"
        )
    };
    let net = |strategy: &str| net_at("0.02", strategy);
    let dims = |strategy: &str| -> BTreeMap<String, Vec<usize>> {
        let tensors = planned(&net(strategy), 2).tensors.into_iter();
        tensors
            .map(|tensor| (tensor.name, tensor.neurons))
            .filter(|(name, _)| name.len() == 1)
            .collect()
    };
    let expected = |list: [(&str, &[usize]); 6]| {
        list.map(|(name, dims)| (name.to_owned(), dims.to_vec()))
            .into()
    };
    assert_eq!(
        dims("ist(local_steps: 2)"),
        expected([
            ("A", &[0]),
            ("B", &[0, 1]),
            ("C", &[0, 1]),
            ("D", &[0, 1]),
            ("E", &[0]),
            ("c", &[])
        ])
    );
    let dense = expected([
        ("A", &[]),
        ("B", &[]),
        ("C", &[]),
        ("D", &[1]),
        ("E", &[0]),
        ("c", &[]),
    ]);
    assert_eq!(dims("ist(local_steps: 2, layers: dense)"), dense);
    assert_eq!(dims("ist(local_steps: 2, neurons: [h])"), dense);
    // A layer that reads all of an image is dense as well.
    let images = |strategy: &str| {
        net(strategy)
            .replace("D: f32[8, 10]", "D: f32[8, 6, 6, 10]")
            .replace("g[n,f] * D[f,k]", "s[n,f,i,j] * D[f,i,j,k]")
    };
    let tensors = planned(&images("ist(local_steps: 2, layers: dense)"), 2).tensors;
    let tensors = tensors.into_iter().map(|t| (t.name, t.neurons));
    let tensors: BTreeMap<String, Vec<usize>> = tensors.collect();
    assert_eq!((&tensors["D"], &tensors["E"]), (&vec![3], &vec![0]));
    assert!(
        ["A", "B", "C", "c"]
            .iter()
            .all(|name| tensors[*name].is_empty())
    );
    let sync = attempt(&net("sync"), 1).unwrap();
    for strategy in ["ist(local_steps: 3)", "ist(local_steps: 3, layers: dense)"] {
        let alone = attempt(&net(strategy), 1).unwrap();
        assert_eq!(
            (alone.losses, alone.outputs),
            (sync.losses.clone(), sync.outputs.clone())
        );
        // What nobody changes is dealt and put back as it was; the last sums are those of a part.
        let still = attempt(&net_at("0", "sync"), 1).unwrap().outputs;
        for sites in [2, 3, 4] {
            let found = attempt(&net_at("0", strategy), sites).unwrap().outputs;
            for (name, values) in &still {
                let parts = if name == "E" { f64::from(sites) } else { 1.0 };
                let wanted: Vec<f64> = values.iter().map(|value| value / parts).collect();
                close(
                    &found[name],
                    &wanted,
                    &format!("{name}, {strategy} on {sites}"),
                );
            }
            let moving = attempt(&net(strategy), sites).unwrap();
            assert!(
                moving.losses.iter().all(|loss| *loss < 1.0),
                "{:?}",
                moving.losses
            );
        }
    }
}

/// A second block with fewer parts, and one in which all train the whole net, go on where the first one ended.
#[test]
fn blocks_with_fewer_parts_follow() {
    let train = |strategy: &str, steps: usize| {
        format!(
            "train {{ loss: loss; data: (X, y) over N by 32 shuffle; steps: {steps}; optimizer: sgd(lr: 0.5); strategy: {strategy}; validate: accuracy on (Xv, yv) every 10 steps }}\n"
        )
    };
    let text = digits(
        &["128", "128"],
        &[
            train("ist(local_steps: 10)", 100),
            train("ist(local_steps: 10, parts: 2)", 30),
            train("sync", 20),
        ]
        .concat(),
    );
    let run = attempt_in(examples(), &text, 4, &|_, _| {}).unwrap();
    let (first, others) = (
        run.losses[95..100].iter().sum::<f64>() / 5.0,
        &run.losses[100..],
    );
    assert!(
        others.iter().all(|loss| *loss < 3.0 * first.max(0.1)),
        "{first}: {others:?}"
    );
    assert!(run.validated.last().unwrap() > &0.97, "{:?}", run.validated);
}

/// Two hidden layers: a net of 41.8 MB, evaluated as it goes, and checkpoints.
fn large(strategy: &str, (epochs, folder): (usize, &std::path::Path)) -> String {
    format!(
        "use std.nn\ndim N = 64\ndim V = 30\ninput X: f32[N, 3000] = uniform(-1, 1)\ninput y: i64[N] = 1\n\
         input Xv: f32[V, 3000] = uniform(-1, 1)\ninput yv: i64[V] = 1\nparam W: f32[3000, 2048] = he_normal\nparam n1: nn.ist_norm(2048)\n\
         param U: f32[2048, 2100] = he_normal\nparam n2: nn.ist_norm(2100)\nparam V2: f32[2100, 4] = he_normal\nparam c: f32[4] = zeros\n\
         a[n,k] = X[n,d] * W[d,k]\ns = n1(a)\nb[n,l] = relu(s[n,k]) * U[k,l]\nt = n2(b)\nz[n,q] = relu(t[n,l]) * V2[l,q] + c[q]\n\
         loss = mean[n] nn.cross_entropy(z, y)[n]\naccuracy = mean[n] f32(argmax[q] z[n,q] == y[n])\n\
         train {{ loss: loss; data: (X, y) over N by 4 shuffle; epochs: {epochs}; optimizer: sgd(lr: 0.1); strategy: {strategy}\n\
         validate: accuracy on (Xv, yv) every 1 epoch; checkpoint: \"{}\" every 1 epoch }}\noutput loss; output accuracy on (Xv, yv)\n",
        folder.display()
    )
}

/// A net of 41.8 MB on sites that have less, with evaluations and checkpoints, and from a checkpoint on; training by itself a site
/// would need twice the net. On two sites the halves of a step, before and after it, are already the net.
#[test]
fn a_net_larger_than_a_site_is_trained() {
    let net = (3000 * 2048 + 2048 * 2100 + 2100 * 4 + 4 + 2 * (2048 + 2100)) * 4;
    for (sites, part) in [(2, 1.2), (3, 0.95), (4, 0.75), (5, 0.65)] {
        let memory = (net as f64 * part) as u64;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ckpt");
        let session = |epochs: usize, sites: u32| {
            let text = large("ist(local_steps: 2, statistics: 32)", (epochs, &path));
            let program = load::load_text("test", "test.ein", text, None, PathBuf::from("."));
            let mut settings = Settings::default();
            settings.criteria.memory = Some(memory);
            let planned = session::plan(&program, &settings, sites, Purpose::Run, None)?;
            let Prepared::Session(session) = planned.0 else {
                unreachable!("the program trains");
            };
            Ok::<_, einc_driver::failure::Failure>(session)
        };
        let refused = session(2, 1).err().unwrap();
        assert_eq!(refused.diagnostics[0].code, "E0996");
        let run = |epochs: usize, resume: bool| {
            let session = session(epochs, sites).unwrap_or_else(|failure| {
                panic!("{sites} sites of {memory}: {:?}", failure.diagnostics)
            });
            let mut options = ein_exec::Options {
                threads: sites as usize,
                ..ein_exec::Options::on(ein_device_cpu::device())
            };
            if resume {
                options.keeping.begin = Begin::Resume;
            }
            let report =
                ein_exec::train_in_process(&session, sites, &options, &|_| Ok(())).unwrap();
            let stated = einc_driver::training::peaks(&session);
            for (held, stated) in report.peak_bytes.iter().zip(&stated) {
                assert!(
                    held <= stated && *stated <= memory,
                    "{held} {stated} {memory} on {sites}"
                );
            }
            let printed = report.printed.iter();
            let printed: Vec<f64> = printed.map(|p| p.values.data().get(0).as_f64()).collect();
            assert!(printed[0] < 1.0 && printed[1] > 0.9, "{printed:?}");
            printed
        };
        let whole = run(4, false);
        std::fs::remove_dir_all(&path).unwrap();
        run(2, false);
        assert_eq!(run(4, true), whole, "continued on {sites}");
    }
}

/// Weights that are made of others: the last ones are divided by what makes them.
#[test]
fn weights_that_are_made_of_others_are_divided() {
    let text = |last: &str, sum: &str, rate: &str, strategy: &str| {
        format!(
            "dim N = 24\ninput X: f64[N, 5] = uniform(-1, 1)\ninput y: f64[N, 3] = uniform(-1, 1)\nparam W: f64[5, 8] = uniform(-1, 1)\n\
             {last}\nh[n,k] = tanh(X[n,d] * W[d,k])\n{sum}\nreg = 0.01 * (sum[d,k] W[d,k]^2)\nloss = reg + mean[n,c] (z[n,c] - y[n,c])^2\n\
             train {{ loss: loss; data: (X, y) over N by 3 shuffle; epochs: 3; optimizer: sgd(lr: {rate}); strategy: {strategy} }}\n\
             output W; output z\n"
        )
    };
    let nets = [
        ("param V: f64[8, 3] = full(0.3)", "z[n,c] = h[n,k] * V[k,c]"),
        (
            "param V: f64[3, 8] = full(0.3)\nT[k,c] = V[c,k]",
            "z[n,c] = h[n,k] * T[k,c]",
        ),
        (
            "param V: f64[8, 3] = full(0.3)\nhalf[k,c] = 2 * V[k,c]",
            "z[n,c] = h[n,k] * half[k,c] / 2",
        ),
    ];
    for sites in [1, 2, 3, 5] {
        let found = nets.map(|(last, sum)| {
            let text = text(last, sum, "0.1", "ist(local_steps: 2)");
            attempt(&text, sites).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
        });
        for other in &found[1..] {
            let what = format!("on {sites}");
            close(&other.losses, &found[0].losses, &what);
            close(&other.outputs["W"], &found[0].outputs["W"], &what);
            close(&other.outputs["z"], &found[0].outputs["z"], &what);
        }
        // Nothing is learnt: what is evaluated is a part's share.
        for (last, sum) in nets {
            let still = attempt(&text(last, sum, "0", "sync"), 1).unwrap();
            let dealt = attempt(&text(last, sum, "0", "ist(local_steps: 2)"), sites).unwrap();
            let share = still.outputs["z"].iter().map(|z| z / f64::from(sites));
            let share: Vec<f64> = share.collect();
            close(&dealt.outputs["z"], &share, &format!("{last} on {sites}"));
        }
    }
}

/// A sum over two dealt indices has, in a subnet, as many terms as both leave: what is evaluated is what the steps saw.
#[test]
fn sums_over_two_dealt_indices_are_divided_twice() {
    let text = "dim N = 16
input X: f64[N, 3] = ones
param Wv: f64[3, 8, 8] = full(0.5)
param Wo: f64[8, 8] = full(0.25)
v[n,h,e] = X[n,d] * Wv[d,h,e]
z[n] = v[n,h,e] * Wo[h,e]
loss = mean[n] z[n]^2
train { loss: loss; data: X over N by 4; epochs: 1; optimizer: sgd(lr: 0); strategy: ist(local_steps: 2) }
output z
";
    for sites in [1, 2, 4] {
        let found = attempt(text, sites).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let terms = f64::from((8 / sites) * (8 / sites));
        let z = 3.0 * 0.5 * 0.25 * terms;
        let what = format!("on {sites}");
        close(&found.outputs["z"], &[z; 16], &what);
        close(&found.losses, &vec![z * z; found.losses.len()], &what);
    }
}

/// A site that fails at one of its exchanges.
struct Failing<'a> {
    end: &'a dyn Communicator,
    left: AtomicUsize,
}

impl Communicator for Failing<'_> {
    fn site(&self) -> u32 {
        self.end.site()
    }
    fn sites(&self) -> u32 {
        self.end.sites()
    }
    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "the power is gone");
        self.end.begin(outgoing, incoming)
    }
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.end.end(ticket)
    }
    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.end.share(mine, incoming)
    }
    fn barrier(&self) -> Result<(), CommError> {
        self.end.barrier()
    }
    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        self.end.agree(mine)
    }
    fn abort(&self, message: &str) {
        self.end.abort(message);
    }
}

/// The others are told which site is lost, in which round, and how to go on; the last round that was completed is in the checkpoint.
#[test]
fn a_lost_site_is_named_with_its_round() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ckpt");
    let way = way(Rule::Sgd, Some(false), 3);
    let saves = format!(
        "ist(local_steps: 3); checkpoint: \"{}\" every 3 steps",
        path.display()
    );
    let text = dense().text(&saves, &way);
    let program = load::load_text("test", "test.ein", text.clone(), None, PathBuf::from("."));
    let settings = Settings::default();
    let (prepared, _) = session::plan(&program, &settings, 3, Purpose::Run, None).unwrap();
    let Prepared::Session(session) = prepared else {
        unreachable!("the program trains");
    };
    let options = ein_exec::Options::on(ein_device_cpu::device());
    // Exchanges that a site may make; returns also how many were made until step 6 was saved.
    let run = |exchanges: usize| -> (Vec<ein_exec::RunError>, usize) {
        let _ = std::fs::remove_dir_all(&path);
        let left = AtomicUsize::new(0);
        let errors = std::thread::scope(|scope| {
            let threads: Vec<_> = in_process(3)
                .into_iter()
                .map(|end| {
                    let (session, options, left) = (&session, &options, &left);
                    scope.spawn(move || {
                        let allowed = match end.site() {
                            1 => exchanges,
                            _ => usize::MAX,
                        };
                        let failing = Failing {
                            end: &end,
                            left: AtomicUsize::new(allowed),
                        };
                        let seen = |event: &Event| {
                            if let Event::Saved { made: 6, .. } = event {
                                left.store(failing.left.load(Ordering::Relaxed), Ordering::Relaxed);
                            }
                            Ok(())
                        };
                        ein_exec::train_site(session, &failing, options, &seen).err()
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap());
            ended.flatten().collect()
        });
        (errors, usize::MAX - left.into_inner())
    };
    let (errors, until) = run(usize::MAX);
    assert!(errors.is_empty(), "{errors:?}");
    // Some exchanges further, site 1 is in its third round.
    let (errors, _) = run(until + 3);
    assert_eq!(errors.len(), 3, "{errors:?}");
    for error in errors.iter().filter(|error| error.code == "E0730") {
        assert_eq!(error.site, Some(1), "{error:?}");
        let expected = "site 1: panicked: the power is gone; in round 3 of train.1 (steps 7 to 9)";
        assert_eq!(error.message, expected);
        assert!(
            error.help.as_ref().unwrap().contains("`--resume`"),
            "{error:?}"
        );
    }
    let lost = errors.iter().filter(|error| error.code == "E0730").count();
    assert_eq!(lost, 2, "{errors:?}");
    let saved: Vec<String> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("step-"))
        .collect();
    assert!(
        saved.contains(&"step-000000006".to_owned()) && saved.len() == 2,
        "{saved:?}"
    );
    let resumed = attempt_in(".".into(), &text, 3, &|_, options| {
        options.keeping.begin = Begin::Resume
    });
    let resumed = resumed.unwrap();
    let _ = std::fs::remove_dir_all(&path);
    let whole = attempt(&text, 3).unwrap();
    assert_eq!(resumed.losses, whole.losses[6..]);
    assert_eq!(resumed.outputs, whole.outputs);
}

/// Every site's own steps are in the profile, under the numbers of its own plans.
#[test]
fn profiles_have_the_steps_that_sites_make_by_themselves() {
    let text = dense().text("ist(local_steps: 3)", &way(Rule::Sgd, Some(false), 3));
    let program = load::load_text("test", "test.ein", text, None, PathBuf::from("."));
    let (prepared, _) =
        session::plan(&program, &Settings::default(), 3, Purpose::Run, None).unwrap();
    let Prepared::Session(session) = prepared else {
        unreachable!("the program trains");
    };
    let options = ein_exec::Options {
        note: ein_exec::Note::Steps,
        ..ein_exec::Options::on(ein_device_cpu::device())
    };
    let report = ein_exec::train_in_process(&session, 3, &options, &|_| Ok(())).unwrap();
    let together = session.programs().count() as u32;
    let rounds = session.blocks[0].rounds.as_ref().unwrap();
    let own: Vec<usize> = session
        .own_programs()
        .map(|plan| plan.steps.len())
        .collect();
    let profile = report.profile.unwrap();
    assert_eq!(profile.len(), 3);
    for (site, found) in profile.iter().enumerate() {
        let alone = found
            .totals
            .iter()
            .filter(|((plan, _), _)| *plan >= together);
        let mut made = 0;
        for ((plan, step), total) in alone {
            assert!((*step as usize) < own[(plan - together) as usize]);
            if *step == 0 {
                made += total.times;
            }
        }
        assert_eq!(made as u64, session.blocks[0].steps, "site {site}");
        let slices = found.slices.iter().filter(|slice| slice.plan >= together);
        assert!(slices.count() as i64 > made);
    }
    assert_eq!(
        rounds
            .subnets
            .iter()
            .map(|subnet| subnet.step.len())
            .sum::<usize>(),
        own.len()
    );
}
