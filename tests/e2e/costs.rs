//! The costs that plans state: one figure everywhere, and seconds on machines of one level and of two.

use einc_core::pipeline::report::{PlanReport, PlanStep};
use einc_tests::einc;
use std::{fs, path::Path};

/// A machine of one level; of two with [`NETWORK`] behind it.
const MACHINE: &str = "format = \"einc-machine/2\"
[compute]
operation = 1e-12
touched = 1e-11
tuple = 1e-6
[node]
sites = 4
message = 5e-6
byte = 1e-10
";

/// The links between nodes.
const NETWORK: &str = "[network]
message = 2e-5
byte = 1e-9
";

/// A matrix that is applied again and again.
const ITERATE: &str = "input A: f32[4096, 4096]
input X: f32[4096, 64]
repeat t < 20 {
  state x[i,j] = X[i,j]
  next x[i,j] = sum[k] A[i,k] * x[k,j]
}
output x
";

/// A file of the folder, by name.
fn written(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().into()
}

/// The example of PLAN.md: where nodes are far apart, what is gathered lies otherwise.
#[test]
fn a_plan_for_two_levels_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path(), "iterate.ein", ITERATE);
    let two = format!("{MACHINE}{NETWORK}");
    for (name, machine) in [("one_level", MACHINE), ("two_levels", &two)] {
        let machine = written(folder.path(), &format!("{name}.toml"), machine);
        let time = ["--sites", "16", "--cost", "time", "--machine", &machine];
        let plan = einc(&[&["plan", &program][..], &time].concat()).success();
        let plan = plan.stdout.replace(&program, "iterate.ein");
        insta::assert_snapshot!(format!("iterate_on_{name}"), plan);
    }
}

#[test]
fn a_machine_that_cannot_be_is_named_by_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path(), "iterate.ein", ITERATE);
    let wrong = format!("{MACHINE}[network]\nmessage = -1.0\nbyte = 1e-9\n");
    let machine = written(folder.path(), "cluster.toml", &wrong);
    let time = ["--sites", "16", "--machine", &machine];
    for cost in [&["--cost", "time"][..], &[]] {
        let finished = einc(&[&["plan", &program][..], &time, cost].concat());
        finished.says(&["E0193", "cluster.toml:11: `network.message` is -1"]);
    }
    let other = ["--cost", "bytes"];
    let finished = einc(&[&["plan", &program][..], &time, &other].concat());
    finished.says(&["E0193", "cluster.toml are for `--cost time`"]);
}

/// Programs whose plans move in all the ways there are.
const PROGRAMS: [(&str, &str); 5] = [
    (
        "inverse",
        "dim n = 60\ninput A: f64[n, n] = normal(0, 1)\n\
         M[i,j] = sum[k] A[k,i] * A[k,j] + where(i == j, n, 0)\nB = inv(M)\noutput B\n",
    ),
    (
        "all_reduce",
        "input x: f64[1003] = normal(0, 1)\ns = sum[i] x[i] * x[i]\ny[i] = x[i] / sqrt(s)\noutput y\noutput s\n",
    ),
    (
        "windows",
        "input x: f32[40, 31] = normal(0, 1)\n\
         y[i,j] = x[i,j] + (x[i - 1, j] else 0) + (x[i + 1, j] else 0) + (x[i, j - 1] else 0)\noutput y\n",
    ),
    (
        "loop",
        "input A: f64[48, 48] = normal(0, 1)\ninput b: f64[48] = normal(0, 1)\n\
         repeat t < 7 {\n  state v[i] = b[i]\n  w[i] = sum[j] A[i,j] * v[j]\n  n = sum[i] w[i] * w[i]\n  \
         next v[i] = w[i] / sqrt(n)\n}\noutput v\n",
    ),
    (
        "product",
        "input A: f32[90, 70] = normal(0, 1)\ninput B: f32[70, 50] = normal(0, 1)\n\
         C[i,j] = tanh(sum[k] A[i,k] * B[k,j])\nD[i,j] = sum[k] C[k,i] * C[k,j]\noutput D\n",
    ),
];

/// The part of a text behind one word and in front of another.
fn between<'a>(text: &'a str, front: &str, back: &str) -> &'a str {
    let (_, rest) = text.split_once(front).expect(front);
    let (found, _) = rest.split_once(back).expect(back);
    found
}

/// The sum over steps of what they cost each time, as often as they are walked.
fn in_all(report: &PlanReport, of: impl Fn(&PlanStep) -> u64) -> u64 {
    report.steps.iter().map(|step| of(step) * step.times).sum()
}

/// Header, JSON and `--compare` of a plan say one cost; the report.
fn agreed(plan: &[&str]) -> PlanReport {
    let text = einc(&[plan, &["--compare"]].concat()).success().stdout;
    let json = einc(&[plan, &["--compare", "--format", "json"]].concat()).success();
    let report: PlanReport = serde_json::from_str(&json.stdout).unwrap();
    let cost = &report.cost;
    let what = format!("{plan:?}:\n{text}");
    // The header.
    assert_eq!(
        between(&text, ": transfer ", " floats"),
        cost.transfer.to_string(),
        "{what}"
    );
    assert_eq!(
        in_all(&report, |step| step.transfer),
        cost.transfer,
        "{what}"
    );
    assert_eq!(in_all(&report, |step| step.bytes), cost.bytes, "{what}");
    assert!(
        in_all(&report, |step| step.flops) >= cost.flops_per_site_max,
        "{what}"
    );
    for round in &report.loops {
        let steps = report.steps[round.first..round.end].iter();
        let moved: u64 = steps.map(|step| step.transfer * step.times).sum();
        assert_eq!(moved, round.transfer, "{what}");
    }
    // The table of other plans, of which the chosen one is the first.
    let chosen = &report.alternatives[0];
    assert_eq!(chosen.transfer, cost.transfer as f64, "{what}");
    assert_eq!(
        chosen.flops_per_site_max, cost.flops_per_site_max as f64,
        "{what}"
    );
    let row = between(&text, "\n  chosen ", "\n");
    let figures: Vec<&str> = row.split_whitespace().collect();
    let figure = |value: u64| match value < 10_000_000 {
        true => value.to_string(),
        false => format!("{:.3e}", value as f64),
    };
    let own = [cost.transfer, cost.flops_per_site_max].map(figure);
    assert_eq!([figures[0], figures[2]], own, "{what}");
    report
}

/// One model counts what plans cost: the header, the JSON form, `--compare` and `--stats`, which holds it against what was measured.
#[test]
fn header_json_other_plans_and_statistics_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in PROGRAMS {
        let program = written(folder.path(), &format!("{name}.ein"), text);
        for sites in ["1", "2", "3", "4", "5", "8"] {
            let report = agreed(&["plan", &program, "--sites", sites]);
            let run = einc(&["run", &program, "--sites", sites, "--stats"]).success();
            let what = format!("{name} on {sites}:\n{}", run.stderr);
            let floats = in_all(&report, |step| step.floats);
            let moved = format!("{floats} floats, {} bytes", report.cost.bytes);
            let by_steps = format!(": {moved} by steps, stated {moved}; ");
            assert!(run.stderr.contains(&by_steps), "{by_steps} in {what}");
            let lines = run.stderr.lines();
            for line in lines.filter(|line| line.contains(".ein:") && line.contains(": moved ")) {
                let found = between(line, ": moved ", " (");
                assert_eq!(found, between(line, "(stated ", ")"), "{what}");
            }
            let stated = run
                .stderr
                .lines()
                .filter(|line| line.contains("stats: site "));
            let stated = stated.map(|line| between(line, "stated peak ", " bytes"));
            let most = stated.map(|bytes| bytes.parse::<u64>().unwrap()).max();
            assert_eq!(most, Some(report.cost.peak_memory_per_site_max), "{what}");
        }
    }
}

/// A step of training, and seconds, which are counted by the model of the search alone.
#[test]
fn a_step_of_training_and_seconds_have_one_cost_too() {
    let folder = tempfile::tempdir().unwrap();
    let machine = written(
        folder.path(),
        "machine.toml",
        &format!("{MACHINE}{NETWORK}"),
    );
    // The plans of the second and the third move more than the search counts for their layouts.
    let programs: [(&str, &[&str]); 4] = [
        ("logistic", &["1", "2", "5", "8"]),
        ("block_inverse", &["2", "4", "5", "8"]),
        ("lstm", &["4"]),
        ("ffnn_step", &["4", "5", "8"]),
    ];
    for (program, on) in programs {
        for sites in on {
            let program = &format!("examples/{program}.ein");
            agreed(&["plan", program, "--sites", sites]);
            let time = ["--machine", &machine];
            let report = agreed(&[&["plan", program, "--sites", sites][..], &time].concat());
            let seconds = report.cost.seconds.expect("the plan is chosen by time");
            let own = report.search.meshes.iter().map(|(_, price)| *price);
            let least = own.fold(f64::INFINITY, f64::min);
            assert!(seconds <= least * (1.0 + 1e-9), "{seconds} {least}");
        }
    }
}
