//! Training in less memory than a step would like: values are computed again, and the params end the same.

use einc_tests::{Finished, Tensor, einc_command, launchers, mpirun, run};
use std::fs;
use std::path::Path;
use std::process::Command;

const LAYERS: usize = 8;

/// A deep net with a step over everything; what its layers give is most of what it holds.
fn deep() -> String {
    let mut text = String::from("dim N = 700\ndim D = 24\ninput X: f32[N, D] = uniform(-1, 1)\n");
    for layer in 1..=LAYERS {
        let below = match layer {
            1 => "X".to_string(),
            _ => format!("h{}", layer - 1),
        };
        text += &format!(
            "param W{layer}: f32[D, D] = normal(0, 0.3)\nh{layer}[n,e] = tanh({below}[n,d] * W{layer}[d,e])\n"
        );
    }
    format!(
        "{text}loss = mean[n,e] (h{LAYERS}[n,e] - X[n,e])^2\n\
         train {{ loss: loss; steps: 5; optimizer: sgd(lr: 0.1) }}\noutput W1\noutput W{LAYERS}\n"
    )
}

fn peak(folder: &Path, sites: &str) -> u64 {
    let plan = run(
        einc_command(&["plan", "deep.ein", "--sites", sites, "--format", "json"])
            .current_dir(folder),
    );
    let (_, rest) = plan
        .stdout
        .split_once("\"peak_memory_per_site_max\":")
        .unwrap();
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn a_deep_net_is_trained_in_less_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("deep.ein"), deep()).unwrap();
    let last = format!("W{LAYERS}");
    let trained = |how: &str, command: &mut Command| -> (Finished, Vec<Vec<u8>>) {
        for name in ["W1", last.as_str()] {
            command.args(["--save", &format!("{name}={name}.npy")]);
        }
        let finished = run(command.args(["--progress", "none"]).current_dir(folder));
        let bytes = |name: &str| {
            fs::read(folder.join(format!("{name}.npy")))
                .unwrap_or_else(|_| panic!("{how}: {finished}"))
        };
        let both = vec![bytes("W1"), bytes(&last)];
        (finished.success(), both)
    };
    let (_, wanted) = trained("all", &mut einc_command(&["run", "deep.ein"]));
    let values = |name: &str| Tensor::read(&folder.join(format!("{name}.npy")));
    let (first, late) = (values("W1"), values(&last));
    for sites in ["1", "2", "4"] {
        let limit = (peak(folder, sites) * 3 / 4).to_string();
        let limited = ["--sites", sites, "--memory", &limit];
        let plan = run(einc_command(&["plan", "deep.ein"])
            .args(limited)
            .current_dir(folder))
        .success();
        assert!(plan.stdout.contains(".again"), "{plan}");
        let (_, found) = trained(sites, einc_command(&["run", "deep.ein"]).args(limited));
        if sites == "1" {
            assert!(found == wanted, "not bit for bit the same");
        }
        values("W1").assert_close(&first, 1e-4, sites);
        values(&last).assert_close(&late, 1e-4, sites);
    }
    let limit = (peak(folder, "2") * 3 / 4).to_string();
    run(einc_command(&["build", "deep.ein", "--memory", &limit, "-o", "deep"]).current_dir(folder))
        .success();
    for launcher in launchers() {
        trained(launcher, &mut mpirun(launcher, 2, &folder.join("deep")));
        values("W1").assert_close(&first, 1e-4, launcher);
    }
    let refused = run(einc_command(&["run", "deep.ein", "--memory", "150kB"]).current_dir(folder));
    refused
        .fails_with(1)
        .says(&["E0996", "also with values computed again instead of kept"]);
}
