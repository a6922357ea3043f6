//! `einc doctor --fix`: a shim that is built after einc, where it is looked for, and what is said of a broken one.

use einc_tests::{einc_command, einc_path, launchers, mpirun, root, run};
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "examples/digits_knn.ein";

/// `einc` with a data folder of its own.
fn einc_with(data: &Path, arguments: &[&str]) -> Command {
    let mut command = einc_command(arguments);
    command.env("XDG_DATA_HOME", data);
    command
}

#[test]
fn doctor_builds_a_shim_that_einc_and_built_programs_prefer() {
    for launcher in launchers() {
        let name = launcher.strip_prefix("mpirun.").unwrap();
        let (full, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let built = full.path().join("program");
        // einc's own build has compiled the crates that the shim is made of.
        let target = einc_path()
            .ancestors()
            .nth(2)
            .unwrap()
            .join(format!("ein-mpi-{name}"));
        let fixed =
            run(einc_with(full.path(), &["doctor", "--fix", name]).env("CARGO_TARGET_DIR", target))
                .success();
        let shim = fixed.stdout.split_whitespace().last().unwrap();
        let shim = Path::new(shim);
        assert!(shim.starts_with(full.path().join("einc")), "{fixed}");
        assert!(shim.ends_with(format!("{name}.so")), "{fixed}");

        let ranks = |data: &Path, program: &Path| {
            let mut command = mpirun(launcher, 2, program);
            if program == einc_path() {
                command.args(["run", PROGRAM]);
            }
            run(command.env("XDG_DATA_HOME", data).current_dir(root()))
        };
        let results = ranks(full.path(), &einc_path()).success().stdout;
        assert!(results.contains("correct = 356"), "{results}");

        // A broken one is opened, and named: what lies in the folder goes before what einc was built with.
        fs::write(shim, "not a library").unwrap();
        let place = shim.to_str().unwrap();
        ranks(full.path(), &einc_path())
            .fails_with(1)
            .says(&["E0732", place]);
        ranks(empty.path(), &einc_path()).success();

        // A built program carries what was in the folder.
        let output = built.to_str().unwrap();
        run(&mut einc_with(
            full.path(),
            &["build", PROGRAM, "-o", output],
        ))
        .success();
        ranks(empty.path(), &built)
            .fails_with(1)
            .says(&["E0732", "the one in this program"]);
    }
}

#[test]
fn doctor_says_what_a_shim_takes() {
    let data = tempfile::tempdir().unwrap();
    for launcher in launchers() {
        let name = launcher.strip_prefix("mpirun.").unwrap();
        let tools = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/true", tools.path().join(format!("mpicc.{name}")))
            .unwrap();
        let mut doctor = einc_with(data.path(), &["doctor", "--fix", name]);
        run(doctor.env("PATH", tools.path()).env_remove("CARGO"))
            .fails_with(1)
            .says(&["cargo does not start", "https://rustup.rs", "libclang"]);
    }
    let nothing = tempfile::tempdir().unwrap();
    run(einc_with(data.path(), &["doctor", "--fix", "mpich"]).env("PATH", nothing.path()))
        .fails_with(1)
        .says(&[
            "its development files are not installed",
            "libmpich-dev",
            "doctor --fix",
        ]);
    run(&mut einc_with(data.path(), &["doctor", "--fix", "lam"]))
        .fails_with(2)
        .says(&["openmpi, mpich, mpi"]);
}
