//! Runs of an example in every way there is: in process, alone and under both MPIs, on 1 to 4 sites.
//!
//! Must not know any example.
//!
//! ```text
//! everywhere("matmul.ein", &dims(&[("I", 8)]), &["C"], |output, how| output("C").assert_close(&expected, 1e-5, how))
//! ```

use crate::{Tensor, einc, einc_command, launchers, mpirun, root, run};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

/// Numbers of sites on which a program gives the same.
pub const SITES: [&str; 5] = ["1", "2", "3", "4", "5"];

/// Returns the text that the program `p.ein` among these files prints, which is the same on any number of sites.
#[track_caller]
pub fn printed(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("room for a program");
    }
    let program = folder.path().join("p.ein").display().to_string();
    let said = SITES.map(|sites| {
        let arguments = ["run", &program, "--sites", sites, "--deterministic"];
        einc(&arguments).success().stdout
    });
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
    said[0].clone()
}

/// Runs an example every way there is and hands the outputs of each run to `check`.
pub fn everywhere(
    example: &str,
    arguments: &[String],
    saved: &[&str],
    check: impl Fn(&dyn Fn(&str) -> Tensor, &str),
) {
    with_ranks(1..=4, example, arguments, saved, check);
}

/// Does so with these numbers of ranks: thousands of small exchanges crawl where there are more ranks than cores.
pub fn with_ranks(
    ranks: RangeInclusive<u32>,
    example: &str,
    arguments: &[String],
    saved: &[&str],
    check: impl Fn(&dyn Fn(&str) -> Tensor, &str),
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = root().join("examples").join(example);
    let program = folder.path().join("program");
    run(einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();

    let outcome = |how: &str, command: &mut Command| {
        let out = folder.path().join(how.replace(' ', "_"));
        std::fs::create_dir(&out).expect("a temporary folder takes folders");
        let file = |name: &str| out.join(format!("{name}.npy"));
        command.args(arguments);
        for name in saved {
            command
                .arg("--save")
                .arg(format!("{name}={}", file(name).display()));
        }
        run(command).success();
        check(&|name| Tensor::read(&file(name)), how);
    };
    for sites in ["1", "2", "3", "4"] {
        outcome(
            &format!("einc run on {sites}"),
            einc_command(&["run"]).arg(&source).args(["--sites", sites]),
        );
        outcome(
            &format!("alone on {sites}"),
            Command::new(&program).args(["--sites", sites]),
        );
    }
    for launcher in launchers() {
        for ranks in ranks.clone() {
            outcome(
                &format!("{launcher} on {ranks}"),
                &mut mpirun(launcher, ranks, &program),
            );
        }
    }
}

/// `--input` arguments for tensors that are written as `f32`.
pub fn inputs(folder: &Path, tensors: &[(&str, &Tensor)]) -> Vec<String> {
    let mut arguments = vec![];
    for (name, tensor) in tensors {
        let file = folder.join(format!("{name}.npy"));
        tensor.write_f32(&file);
        arguments.extend(["--input".to_string(), format!("{name}={}", file.display())]);
    }
    arguments
}

/// `--dim` arguments.
pub fn dims(sizes: &[(&str, usize)]) -> Vec<String> {
    sizes
        .iter()
        .flat_map(|(name, n)| ["--dim".to_string(), format!("{name}={n}")])
        .collect()
}
