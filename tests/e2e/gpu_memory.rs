//! `--gpu-memory`: plans keep to a limit on what a GPU holds, values rest in the host's memory between two uses, and results are those of the
//! processor. The emulated GPU counts what arrays take.

use einc_tests::{Finished, einc_command, run};
use std::fs;
use std::path::Path;

/// Products whose factors are read again at the end, a softmax of products, and sums of products that lie otherwise than the matrix library
/// writes them.
const PROGRAM: &str = "\
dim N = 90, D = 30, H = 4
input X: f32[N, D] = uniform(-1, 1)
input W: f32[D, H, 8] = uniform(-1, 1)
input A: f32[N, N] = uniform(-0.1, 0.1)
Q[n,h,e] = X[n,d] * W[d,h,e]
S[h,n,m] = Q[n,h,e] * Q[m,h,e] / 3
P[h,n,m] = exp(S[h,n,m]) / (sum[k] exp(S[h,n,k]))
Z[n,h,e] = P[h,n,m] * Q[m,h,e]
B[i,j] = tanh(A[i,k] * A[k,j])
C[i,j] = tanh(B[i,k] * A[k,j])
G[i,j] = C[i,k] * B[k,j] + A[i,j]
R[n,h,e] = G[n,m] * Z[m,h,e]
r = sum[n,h,e] R[n,h,e] * R[n,h,e]
output R
output r
";

fn planned(folder: &Path, arguments: &[&str]) -> Finished {
    run(einc_command(&["plan", "model.ein"])
        .args(arguments)
        .current_dir(folder))
}

fn computed(folder: &Path, arguments: &[&str]) -> Finished {
    let mut command = einc_command(&["run", "model.ein", "--stats"]);
    run(command.args(arguments).current_dir(folder))
}

/// The number behind some words.
fn number(text: &str, before: &str) -> u64 {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("`{before}` is not in {text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn values(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    words.filter_map(|word| word.parse().ok()).collect()
}

fn assert_near(found: &str, wanted: &str, what: &str) {
    let (found, wanted) = (values(found), values(wanted));
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (a, b) in found.iter().zip(&wanted) {
        assert!(
            (a - b).abs() <= 1e-4 * b.abs().max(1.0),
            "{what}: {a}, not {b}"
        );
    }
}

#[test]
fn a_limit_on_the_memory_of_gpus_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("model.ein"), PROGRAM).unwrap();
    let wanted = computed(folder, &[]).success();
    let mut rested = vec![];
    for (sites, limits) in [
        (1, &[400_000, 150_000, 90_000][..]),
        (3, &[300_000, 60_000]),
    ] {
        for limit in limits {
            let (on, limited) = (sites.to_string(), limit.to_string());
            let arguments = ["--sites", &on, "--gpu-memory", &limited];
            let emulated = [&arguments[..], &["--device", "emulated"]].concat();
            let found = computed(folder, &emulated).success();
            let what = format!("{limit} bytes on {sites}");
            assert_near(&found.stdout, &wanted.stdout, &what);
            // All sites share the GPU.
            let taken = number(&found.stderr, "site 0: arrays took at most ");
            assert!(taken <= limit * sites, "{what}: {taken} bytes were taken");
            let rests = found.stderr.contains("bytes to host memory and read");
            let stated = planned(folder, &arguments).success();
            assert_eq!(
                stated.stdout.contains("rests in host memory: "),
                rests,
                "{what}: {stated}"
            );
            rested.push(rests);
        }
    }
    assert_eq!(rested, [false, true, true, false, true]);
}

#[test]
fn what_rests_in_the_hosts_memory_has_a_limit_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("model.ein"), PROGRAM).unwrap();
    let limits = ["--gpu-memory", "150kB", "--memory", "10kB"];
    planned(folder, &limits).fails_with(1).says(&[
        "E0996",
        "values that rest in the host's memory between two uses take",
        "of which `--memory` allows 10.0 kB",
        "`--spill`",
    ]);
    let on_disk = [&limits[..], &["--spill=."]].concat();
    let stated = planned(folder, &on_disk).success();
    let line = stated
        .stdout
        .lines()
        .find(|line| line.starts_with("rests on disk: "));
    assert!(line.unwrap().ends_with(" at one time"), "{stated}");
    let found = computed(folder, &[&on_disk[..], &["--device", "emulated"]].concat()).success();
    assert!(found.stderr.contains("bytes to disk and read"), "{found}");
    // What kernels work in is told beside what a plan may hold.
    planned(folder, &["--gpu-memory", "40"])
        .fails_with(1)
        .says(&[
            "E0996",
            "fits in 32 B a site (`--gpu-memory` allows 40 B, and kernels work in the rest)",
        ]);
    // The processor holds nothing in a GPU's memory.
    let found = computed(folder, &["--gpu-memory", "40"]).success();
    assert!(!found.stderr.contains("host memory"), "{found}");
}

#[test]
fn a_built_program_keeps_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("model.ein"), PROGRAM).unwrap();
    let wanted = computed(folder, &[]).success();
    let mut build = einc_command(&["build", "model.ein", "--gpu-memory", "150kB", "-o", "model"]);
    run(build.current_dir(folder)).success();
    for device in ["emulated", "cpu"] {
        let mut built = std::process::Command::new(folder.join("model"));
        let found = run(built
            .args(["--device", device, "--stats"])
            .current_dir(folder))
        .success();
        assert_near(&found.stdout, &wanted.stdout, device);
        let rests = found.stderr.contains("bytes to host memory and read");
        assert_eq!(rests, device == "emulated", "{found}");
    }
}

#[test]
fn a_training_keeps_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "\
dim N = 240, D = 40, H = 60
input X: f32[N, D] = uniform(-1, 1)
param W1: f32[D, H] = uniform(-0.3, 0.3)
param W2: f32[H, D] = uniform(-0.3, 0.3)
h1[n,k] = tanh(X[n,d] * W1[d,k])
h2[n,d] = tanh(h1[n,k] * W2[k,d])
h3[n,k] = tanh(h2[n,d] * W1[d,k])
Y[n,d] = h3[n,k] * W2[k,d]
e = mean[n,d] (Y[n,d] - X[n,d])^2
train { loss: e; data: X over N by 120; epochs: 3; optimizer: adam(lr: 0.01) }
output e
";
    fs::write(folder.join("model.ein"), text).unwrap();
    let wanted = computed(folder, &["--progress", "none"]).success();
    let arguments = [
        "--progress",
        "none",
        "--device",
        "emulated",
        "--gpu-memory",
        "240kB",
    ];
    let found = computed(folder, &arguments).success();
    assert_near(&found.stdout, &wanted.stdout, "trained");
    let taken = number(&found.stderr, "site 0: arrays took at most ");
    assert!(taken <= 240_000, "{taken} bytes were taken");
    let rests = found.stderr.contains("bytes to host memory and read");
    assert!(rests, "{found}");
}
