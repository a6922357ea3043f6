//! What plans say that they cost: seconds on machines of one level and of two.

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
    let time = ["--sites", "16", "--cost", "time", "--machine", &machine];
    let finished = einc(&[&["plan", &program][..], &time].concat());
    finished.says(&["E0193", "cluster.toml:11: `network.message` is -1"]);
}
