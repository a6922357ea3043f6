//! The experiment of `examples/ist`: its script, and the slow links that it makes.

use einc_tests::{Finished, einc_command, einc_path, root, run};
use std::process::Command;

/// Whether a command is there; tells if not.
fn there(command: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok();
    if !found {
        eprintln!("no {command} here: this test did not run");
    }
    found
}

#[test]
fn the_script_makes_tables_and_plots() {
    if !there("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("examples/ist/experiment.py");
    let experiment = |more: &[&str]| -> Finished {
        let mut command = Command::new("python3");
        command.arg(&script).args(["--quick", "--einc"]);
        command.arg(einc_path()).arg("--folder").arg(folder.path());
        command.args(more);
        run(&mut command).success()
    };
    let first = experiment(&[]);
    assert!(first.stdout.contains("learn digits2 ist 2"), "{first}");
    let tables = std::fs::read_to_string(folder.path().join("tables.md")).unwrap();
    assert!(first.stdout.contains(&tables), "{first}");
    // Every way to train reaches every accuracy, and subnets move least.
    let rows: Vec<Vec<&str>> = tables
        .lines()
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let megabytes = |strategy: &str| -> f64 {
        let row = rows.iter().find(|row| row.get(1) == Some(&strategy));
        let [_, _, "2", steps, seconds, megabytes, _] = row.unwrap()[..] else {
            panic!("{tables}");
        };
        for cell in steps.split(" / ").chain(seconds.split(" / ")) {
            assert!(cell.parse::<f64>().is_ok_and(|n| n > 0.0), "{tables}");
        }
        megabytes.parse().unwrap()
    };
    let (parallel, local) = (megabytes("data parallel"), megabytes("local SGD 10"));
    let (sync, subnets) = (megabytes("`sync`"), megabytes("IST 10"));
    assert!(
        subnets < local && local < parallel && subnets < sync,
        "{tables}"
    );
    let plot = std::fs::read_to_string(folder.path().join("digits2.svg")).unwrap();
    assert_eq!(plot.matches("<polyline").count(), 4, "{plot}");
    // What was measured is not measured again, unless that is asked for.
    assert!(!experiment(&[]).stdout.contains("learn digits2"));
    let readme = folder.path().join("text.md");
    let before = "before\n\n**digits, 64-512-10** as it was\n\n| a |\n|---|\n| 1 |\n\nbehind\n";
    std::fs::write(&readme, before).unwrap();
    let put = ["--readme", readme.to_str().unwrap()];
    let again = experiment(&[&["--again", "time digits2 ist .*"][..], &put].concat());
    let named = |key: &str| again.stdout.lines().any(|line| line == key);
    assert!(
        named("time digits2 ist 2 process") && !named("time digits2 local 2 process"),
        "{again}"
    );
    let text = std::fs::read_to_string(&readme).unwrap();
    let tables = std::fs::read_to_string(folder.path().join("tables.md")).unwrap();
    assert_eq!(text, format!("before\n\n{tables}\nbehind\n"));
}

#[test]
fn links_join_sites_and_count_what_they_send() {
    let script = root().join("examples/ist/links.sh");
    let links = |arguments: &[&str]| -> Command {
        let mut command = Command::new("sh");
        command.arg(&script).args(arguments).env("LINKS", "eintest");
        command
    };
    let ready = links(&["needed"]).output().unwrap();
    if !ready.status.success() {
        let why = String::from_utf8_lossy(&ready.stderr);
        assert!(why.starts_with("links.sh: "), "{why}");
        eprintln!("this test did not run: {why}");
        return;
    }
    let digits = root().join("examples/digits_knn.ein");
    let alone = run(einc_command(&["run"]).arg(&digits)).success();
    let sent = || -> u64 {
        let told = run(&mut links(&["sent", "2"])).success();
        told.stdout.trim().parse().unwrap()
    };
    run(&mut links(&["up", "2", "1gbit"])).success();
    let before = sent();
    let told = run(links(&["run", "2"])
        .arg(einc_path())
        .arg("run")
        .arg(&digits));
    let after = sent();
    run(&mut links(&["down"])).success();
    let told = told.success();
    assert_eq!(told.stdout, alone.stdout);
    // `einc plan` states 96.5 kB.
    assert!(after - before > 96_500, "{before} {after}");
    run(&mut links(&["nonsense"]))
        .fails_with(2)
        .says(&["links.sh up SITES RATE"]);
}
