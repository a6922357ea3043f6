//! Trainings whose steps exceed the memory of a site: what a step makes lies on disk between its uses, and params end as they do in memory.

use einc_tests::{Finished, Tensor, einc_command, launchers, mpirun, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Activations are most of what it holds; the last batch is shorter, and it is validated on other rows.
const WIDE: &str = "dim N = 3000\ndim T = 300\ndim D = 31\ndim H = 40\n\
    input X: f64[N, D] = normal(0, 1)\ninput Y: f64[N, H] = normal(0, 1)\n\
    input XV: f64[T, D] = normal(0, 1)\ninput YV: f64[T, H] = normal(0, 1)\n\
    param W1: f64[D, H] = normal(0, 0.2)\nparam W2: f64[H, H] = normal(0, 0.2)\n\
    h[n,j] = relu(sum[k] X[n,k] * W1[k,j])\ng[n,j] = h[n,j] * sigmoid(h[n,j])\np[n,j] = tanh(g[n,k] * W2[k,j])\n\
    loss = mean[n,j] (p[n,j] - Y[n,j])^2\n\
    train {\n  data: (X, Y) over N by 1200\n  loss: loss\n  optimizer: adamw(lr: 0.01)\n  epochs: 2\n\
    \x20 validate: loss on (XV, YV) every 1 epoch\n}\noutput W1\noutput W2\n";

fn peak(folder: &Path, sites: &str) -> u64 {
    let plan = run(
        einc_command(&["plan", "wide.ein", "--sites", sites, "--format", "json"])
            .current_dir(folder),
    );
    let plan: serde_json::Value = serde_json::from_str(&plan.success().stdout).unwrap();
    plan["cost"]["peak_memory_per_site_max"].as_u64().unwrap()
}

fn trained(folder: &Path, command: &mut Command) -> (Finished, [Tensor; 2]) {
    command.args(["--save", "W1=W1.npy", "--save", "W2=W2.npy", "--stats"]);
    let finished = run(command.current_dir(folder)).success();
    let params = ["W1.npy", "W2.npy"].map(|name| Tensor::read(&folder.join(name)));
    (finished, params)
}

/// The most that a site held, by the run's own figures, and whether anything went to disk.
fn figures(finished: &Finished) -> (u64, bool) {
    let held = finished.stderr.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" bytes, held ")?;
        rest.strip_suffix(" bytes")?.parse::<u64>().ok()
    });
    let rested = |line: &&str| line.contains("bytes to disk") && !line.contains("wrote 0 bytes");
    let rested = finished.stderr.lines().any(|line| rested(&line));
    (held.max().unwrap_or(0), rested)
}

#[test]
fn activations_are_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("wide.ein"), WIDE).unwrap();
    let (free, params) = trained(folder, &mut einc_command(&["run", "wide.ein"]));
    assert!(!figures(&free).1, "{free}");
    for (sites, percent) in [
        ("1", 60),
        ("1", 45),
        ("2", 60),
        ("3", 60),
        ("4", 60),
        ("5", 60),
    ] {
        let limit = peak(folder, sites) * percent / 100;
        let limited = ["--sites", sites, "--memory", &limit.to_string(), "--spill"];
        let (finished, found) = trained(folder, einc_command(&["run", "wide.ein"]).args(limited));
        let (held, rested) = figures(&finished);
        assert!(rested && held <= limit, "{held} of {limit}: {finished}");
        for (found, expected) in found.iter().zip(&params) {
            found.assert_close(expected, 1e-9, &format!("{percent}% on {sites}"));
        }
    }
    let limit = (peak(folder, "2") * 60 / 100).to_string();
    run(einc_command(&[
        "build", "wide.ein", "--memory", &limit, "--spill", "-o", "wide",
    ])
    .current_dir(folder))
    .success();
    for launcher in launchers() {
        let (finished, found) = trained(folder, &mut mpirun(launcher, 2, &folder.join("wide")));
        assert!(figures(&finished).1, "{finished}");
        for (found, expected) in found.iter().zip(&params) {
            found.assert_close(expected, 1e-9, launcher);
        }
    }
}

/// The steps that a site makes by itself, and those in parts of a batch.
#[test]
fn subnets_and_accumulated_steps_are_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (setting, limit) in [
        ("strategy: ist(local_steps: 3)", "700kB"),
        ("accumulate: 2", "200kB"),
    ] {
        let text = WIDE.replace("epochs: 2\n", &format!("epochs: 2\n  {setting}\n"));
        fs::write(folder.join("wide.ein"), text).unwrap();
        let on_four = ["--sites", "4"];
        let (free, params) = trained(folder, einc_command(&["run", "wide.ein"]).args(on_four));
        assert!(!figures(&free).1, "{free}");
        let limited = ["--memory", limit, "--spill"];
        let mut command = einc_command(&["run", "wide.ein"]);
        let (finished, found) = trained(folder, command.args(on_four).args(limited));
        assert!(figures(&finished).1, "{finished}");
        for (found, expected) in found.iter().zip(&params) {
            found.assert_close(expected, 1e-9, setting);
        }
    }
}

/// The step at which a loss stops being finite is named also if what it makes lies on disk.
#[test]
fn a_loss_that_is_not_finite_is_found_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = WIDE.replace("tanh(g[n,k] * W2[k,j])", "log(g[n,k] * W2[k,j])");
    fs::write(folder.join("wide.ein"), text).unwrap();
    let limit = (peak(folder, "1") * 75 / 100).to_string();
    for options in [vec![], vec!["--memory", &limit, "--spill"]] {
        let failed = run(einc_command(&["run", "wide.ein"])
            .args(options)
            .current_dir(folder));
        failed.fails_with(1).says(&["wide.ein:13", "`p`"]);
    }
}

/// A network of luo2021's figure 7 (a forward pass, and backpropagation to the second weights), at a hundredth of each side: on five
/// sites it needs three times the memory that they have in the paper.
#[test]
fn a_network_of_the_papers_on_five_sites() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "dim B = 10_000\ndim D = 60_000\ndim H = 160_000\ndim L = 17\n\
        input X: f64[B, D]\ninput Y: f64[B, L]\ninput W1: f64[D, H]\ninput W2: f64[H, H]\ninput W3: f64[H, L]\n\
        a1[n,h] = relu(sum[d] X[n,d] * W1[d,h])\na2[n,h] = relu(sum[k] a1[n,k] * W2[k,h])\nz[n,l] = a2[n,h] * W3[h,l]\n\
        e[n,l] = exp(z[n,l] - max[m] z[n,m])\np[n,l] = e[n,l] / (sum[m] e[n,m])\n\
        loss = -(sum[n,l] Y[n,l] * log(p[n,l] + 1e-30)) / B\n\
        W2_new[k,h] = W2[k,h] - 0.01 * grad(loss, W2)[k,h]\noutput W2_new\n";
    fs::write(folder.join("luo.ein"), text).unwrap();
    let planned = |options: &[&str]| {
        let mut command = einc_command(&["plan", "luo.ein", "--sites", "5"]);
        run(command.args(options).current_dir(folder))
    };
    planned(&["--memory", "68GB"])
        .fails_with(1)
        .says(&["E0996", "`--spill`: it fits, with"]);
    let stated = planned(&["--memory", "68GB", "--spill"]).success();
    assert!(stated.stdout.contains(", on disk"), "{stated}");

    let (b, d, h, l) = (100, 600, 1600, 17);
    let x = Tensor::noise(&[b, d], 1);
    let y = Tensor::noise(&[b, l], 2);
    // Small enough that the softmax does not saturate.
    let scaled = |shape: &[usize], seed: u64, by: f64| {
        let noise = Tensor::noise(shape, seed);
        Tensor::from_fn(shape, |at| noise.data[at] * by)
    };
    let (w1, w2) = (scaled(&[d, h], 3, 0.05), scaled(&[h, h], 4, 0.05));
    let w3 = scaled(&[h, l], 5, 0.05);
    let mut command = einc_command(&["run", "luo.ein", "--sites", "5", "--stats"]);
    for (name, tensor) in [("X", &x), ("Y", &y), ("W1", &w1), ("W2", &w2), ("W3", &w3)] {
        tensor.write_f64(&folder.join(format!("{name}.npy")));
        command.args(["--input", &format!("{name}={name}.npy")]);
    }
    let sizes = ["B=100", "D=600", "H=1600"];
    sizes.iter().for_each(|size| {
        command.args(["--dim", size]);
    });
    command.args([
        "--memory",
        "6.8MB",
        "--spill",
        "--save",
        "W2_new=W2_new.npy",
    ]);
    let finished = run(command.current_dir(folder)).success();
    let (held, rested) = figures(&finished);
    assert!(rested && held <= 6_800_000, "{held}: {finished}");

    let product = |a: &[f64], w: &[f64], (rows, inner, columns): (usize, usize, usize)| {
        let mut c = vec![0.0; rows * columns];
        for i in 0..rows {
            for k in 0..inner {
                for j in 0..columns {
                    c[i * columns + j] += a[i * inner + k] * w[k * columns + j];
                }
            }
        }
        c
    };
    let relu = |mut values: Vec<f64>| {
        values.iter_mut().for_each(|value| *value = value.max(0.0));
        values
    };
    let a1 = relu(product(&x.data, &w1.data, (b, d, h)));
    let a2 = relu(product(&a1, &w2.data, (b, h, h)));
    let z = product(&a2, &w3.data, (b, h, l));
    let mut slope = vec![0.0; b * l];
    for n in 0..b {
        let row = &z[n * l..(n + 1) * l];
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|z| (z - most).exp()).sum();
        let p: Vec<f64> = row.iter().map(|z| (z - most).exp() / sum).collect();
        // Of -sum y log(p + tiny) by p, and of p by z.
        let by_p: Vec<f64> = (0..l)
            .map(|m| -y.data[n * l + m] / (p[m] + 1e-30) / b as f64)
            .collect();
        let mean: f64 = by_p.iter().zip(&p).map(|(a, b)| a * b).sum();
        for m in 0..l {
            slope[n * l + m] = p[m] * (by_p[m] - mean);
        }
    }
    let mut back = vec![0.0; b * h];
    for n in 0..b {
        for k in (0..h).filter(|k| a2[n * h + k] > 0.0) {
            back[n * h + k] = (0..l).map(|m| slope[n * l + m] * w3.data[k * l + m]).sum();
        }
    }
    let mut expected = w2.data.clone();
    for n in 0..b {
        for k in (0..h).filter(|k| a1[n * h + k] > 0.0) {
            for j in 0..h {
                expected[k * h + j] -= 0.01 * a1[n * h + k] * back[n * h + j];
            }
        }
    }
    let expected = Tensor::from_fn(&[h, h], |at| expected[at]);
    let found = Tensor::read(&folder.join("W2_new.npy"));
    found.assert_close(&expected, 1e-9, "the second weights");
}
