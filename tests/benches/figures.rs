//! Figures that the project promises, printed: peak memory against what the plan states, and the time of
//! `einc check` and `einc build`. Run with `cargo bench -p einc-tests`.
//!
//! ```text
//! matmul       1 site    stated   192.0 MiB   measured   195.2 MiB   1.02
//! ```
#![allow(clippy::unwrap_used)]

use einc_tests::{einc, einc_command, root, run};
use std::process::Command;
use std::time::Instant;

/// Examples at sizes where the tensors, not the program, are what fills memory.
const RUNS: &[(&str, &[&str])] = &[
    ("digits_knn", &[]),
    ("matmul", &[]),
    ("nearest", &[]),
    ("attention", &["--dim", "T=1024"]),
    ("conv", &["--dim", "N=128"]),
];

/// A process's peak resident memory in bytes, measured by its parent's `getrusage` through GNU-free means: the
/// shell's `VmHWM` of the process itself, which built programs print on request.
fn peak(command: &mut Command) -> (f64, f64) {
    let finished = run(command.arg("--stats")).success();
    let figure = |key: &str| -> f64 {
        let line = finished
            .stderr
            .lines()
            .chain(finished.stdout.lines())
            .find(|l| l.contains(key));
        let line = line.unwrap_or_else(|| panic!("no {key:?} in\n{finished}"));
        line.rsplit_once('=')
            .unwrap()
            .1
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    (figure("stated peak bytes"), figure("measured peak bytes"))
}

fn main() {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    for (example, arguments) in RUNS {
        for sites in ["1", "4"] {
            let source = root().join("examples").join(format!("{example}.ein"));
            let (stated, measured) = peak(
                einc_command(&["run"])
                    .arg(source)
                    .args(*arguments)
                    .args(["--sites", sites]),
            );
            println!(
                "{example:<12} {sites} site(s)   stated {:>9.1} MiB   measured {:>9.1} MiB   {:.2}",
                mib(stated),
                mib(measured),
                measured / stated
            );
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let mut long = String::from("dim N = 64\ninput x0: f32[N, N] = ones\n");
    for n in 1..999 {
        long.push_str(&format!(
            "x{n}[i,j] = relu(x{}[i,k] * x0[k,j]) + {n}\n",
            n - 1
        ));
    }
    long.push_str("output x998\n");
    let file = folder.path().join("long.ein");
    std::fs::write(&file, long).unwrap();
    let time = |what: &str, arguments: &[&str]| {
        let times = (0..5).map(|_| {
            let began = Instant::now();
            einc(arguments).success();
            began.elapsed().as_secs_f64() * 1e3
        });
        println!(
            "{what:<40} {:>8.1} ms (best of 5)",
            times.fold(f64::INFINITY, f64::min)
        );
    };
    time(
        "einc check, 1,000 lines",
        &["check", file.to_str().unwrap()],
    );
    for (example, _) in RUNS {
        let source = root().join("examples").join(format!("{example}.ein"));
        let program = folder.path().join(example);
        time(
            &format!("einc build {example}"),
            &[
                "build",
                source.to_str().unwrap(),
                "-o",
                program.to_str().unwrap(),
            ],
        );
    }
}
