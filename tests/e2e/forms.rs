//! The forms of sparse inputs: chosen, asked for, and asked for where they cannot be.

use crate::sparse_files::few;
use einc_tests::{Tensor, einc_command, run};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "dim N, M
input A: f64[N, M]
x[j<M,k<3] = f64((7 * j + k) % 5)
y[i,k] = A[i,j] * x[j,k]
top[i] = max[j] A[i,j]
d[i] = A[i,0] + 1
output y
output top
output d
";

fn einc(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = einc_command(&arguments[..1]);
    command
        .args(["p.ein", "--input", "A=a.mtx"])
        .args(&arguments[1..])
        .current_dir(folder);
    command
}

/// Results are the same in every form, on any number of sites; the plan says the form and why.
#[test]
fn forms_change_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("p.ein"), PROGRAM).unwrap();
    std::fs::write(folder.join("a.mtx"), few(301, 257, 500)).unwrap();
    let values = |form: &str, sites: &str| {
        run(&mut einc(
            folder,
            &["run", "--formats", form, "--sites", sites],
        ))
        .success()
        .stdout
    };
    let dense = values("dense", "1");
    for form in ["auto", "list", "A=list", "A=dense"] {
        for sites in ["1", "2", "3", "5"] {
            assert_eq!(values(form, sites), dense, "{form} on {sites} sites");
        }
    }
    let plan = |arguments: &[&str]| {
        let all: Vec<&str> = ["plan"].iter().chain(arguments).copied().collect();
        run(&mut einc(folder, &all)).success().stdout
    };
    let line = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("A: "));
        line.unwrap_or(text).to_owned()
    };
    let chosen = plan(&[]);
    assert!(
        line(&chosen).starts_with("A: a list of 500 of 77357 elements ("),
        "{chosen}"
    );
    assert!(chosen.contains("A.values"), "{chosen}");
    let dense = plan(&["--formats", "A=dense"]);
    let expected = "A: dense, as asked for, with 500 of 77357 elements listed (";
    assert!(line(&dense).starts_with(expected), "{dense}");
    assert!(!dense.contains("A.values"), "{dense}");
    let json = plan(&["--formats", "A=list", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["forms"][0]["form"], "list");
    assert_eq!(json["forms"][0]["pinned"], true);
    assert!(plan(&["--format", "html"]).contains("form of A"));
}

#[test]
fn forms_that_cannot_be_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("p.ein"), PROGRAM).unwrap();
    std::fs::write(folder.join("a.mtx"), few(30, 20, 50)).unwrap();
    Tensor::noise(&[30, 20], 1).write_f64(&folder.join("whole.npy"));
    let says = |arguments: &[&str], words: &[&str]| {
        let all: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
        let said = run(&mut einc(folder, &all)).says(words);
        assert!(said.status != Some(0) && said.stdout.is_empty(), "{said}");
    };
    says(&["--formats", "B=list"], &["E0711", "no input `B`"]);
    says(&["--formats", "A=csr"], &["NAME=list or NAME=dense"]);
    let whole = ["p.ein", "--input", "A=whole.npy", "--formats", "A=list"];
    let said = run(einc_command(&["run"]).args(whole).current_dir(folder));
    let said = said.says(&["E0736", "the data of `A` hold all its elements"]);
    assert!(said.status != Some(0) && said.stdout.is_empty(), "{said}");
    std::fs::write(
        folder.join("p.ein"),
        "input A: f64[30, 20] = uniform(0, 1)\ny[i] = sum[j] A[i,j]\noutput y\n",
    )
    .unwrap();
    let none = ["p.ein", "--formats", "A=list"];
    let said = run(einc_command(&["run"]).args(none).current_dir(folder));
    let said = said.says(&["E0736", "`A` is read from no file"]);
    assert!(said.status != Some(0) && said.stdout.is_empty(), "{said}");
    std::fs::write(
        folder.join("p.ein"),
        "dim N, M\ninput A: f64[N, M]\ny[i,j] = exp(A[i,j])\noutput y\n",
    )
    .unwrap();
    says(
        &["--formats", "A=list"],
        &[
            "E0736",
            "no statement can read `A` by its listed elements alone",
        ],
    );
}
