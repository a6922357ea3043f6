//! Numbers as data, definitions that are shown or saved though they are no outputs, and inputs that nothing needs.

use einc_tests::{Tensor, einc, run};
use std::path::Path;
use std::process::Command;

const TEXT: &str = "dim N = 4
dim M
input x: f32[N] = iota
input lr: f32
input count: i64 = 2
input unused: f32[M, N]
half[i] = x[i] * lr
also[i] = unused[0, i] + half[i]
y = sum[i] half[i] * f32(count)
repeat t < 3 { state s = 0.0; next s = s + y }
output y
";

fn written(folder: &Path) -> String {
    let program = folder.join("p.ein");
    std::fs::write(&program, TEXT).unwrap();
    program.display().to_string()
}

#[test]
fn numbers_are_data() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path());
    for sites in ["1", "2", "3"] {
        let run = einc(&["run", &program, "--sites", sites, "--input", "lr=0.5"]).success();
        assert_eq!(run.stdout, "y = 6.0\n");
        let arguments = ["--input", "lr=-2", "--input", "x=1", "--input", "count=3"];
        let run = einc(&[&["run", &program, "--sites", sites], &arguments[..]].concat()).success();
        assert_eq!(run.stdout, "y = -24.0\n");
    }
    einc(&["run", &program, "--input", "lr=1", "--input", "count=0.5"])
        .fails_with(1)
        .says(&["E0401", "i64", "p.ein:5"]);
    einc(&["run", &program, "--input", "rate=1"])
        .fails_with(2)
        .says(&["E0711", "the program has no input `rate`", "it has: x, lr"]);
}

#[test]
fn a_built_program_keeps_its_numbers_until_others_come() {
    let folder = tempfile::tempdir().unwrap();
    let (program, built) = (written(folder.path()), folder.path().join("built"));
    let target = built.display().to_string();
    einc(&["build", &program, "--input", "lr=0.5", "-o", &target]).success();
    let said = |arguments: &[&str]| run(Command::new(&built).args(arguments)).success().stdout;
    assert_eq!(said(&[]), "y = 6.0\n");
    assert_eq!(said(&["--input", "lr=2"]), "y = 24.0\n");
    assert_eq!(said(&["--show", "s"]), "y = 6.0\ns = 18.0\n");
    let file = folder.path().join("lr.npy");
    Tensor::from_fn(&[], |_| 4.0).write_f32(&file);
    let file = format!("lr={}", file.display());
    assert_eq!(said(&["--input", &file]), "y = 48.0\n");
}

#[test]
fn any_definition_is_shown_or_saved() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path());
    let file = folder.path().join("half.npy");
    let save = format!("half={}", file.display());
    for sites in ["1", "3"] {
        let shown = ["--show", "s", "--show", "t", "--show", "x", "--save", &save];
        let base = ["run", &program, "--sites", sites, "--input", "lr=0.5"];
        let run = einc(&[&base, &shown[..]].concat()).success();
        assert_eq!(run.stdout, "y = 6.0\ns = 18.0\nt = 3\nx = [0. 1. 2. 3.]\n");
        let expected = Tensor::from_fn(&[4], |i| i as f64 / 2.0);
        Tensor::read(&file).assert_close(&expected, 0.0, "half");
    }
    einc(&["run", &program, "--input", "lr=1", "--show", "halt"])
        .fails_with(2)
        .says(&[
            "E0711",
            "`--show halt`: the program has no definition `halt`",
            "did you mean `--show half`?",
        ]);
}

/// An input needs data where what is given out needs it.
#[test]
fn what_nothing_needs_needs_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path());
    let arguments = ["run", &program, "--input", "lr=1"];
    einc(&arguments).success();
    einc(&[&arguments[..], &["--show", "also"]].concat())
        .fails_with(1)
        .says(&["E0710", "`unused` has no data", "p.ein:6"]);
    einc(&["run", &program])
        .fails_with(1)
        .says(&["E0710", "`lr` has no data"]);
}
