//! `output D on (…)` as a user meets it: files, `--save`, `einc build`, ranks, `--infer`, and without training.

use einc_tests::{Tensor, einc_command, launchers, mpirun, run};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
dim N
input X: f32[N, 6]
input y: f32[N]
input Xv: f32[9, 6]
input yv: f32[9]
param w: f32[6] = normal(0, 1)
z[n] = tanh(X[n,d] * w[d])
loss = mean[n] (z[n] - y[n])^2
TRAIN
output loss
output z on (Xv) -> "z.npy"
output loss on (Xv, yv)
"#;

fn write(folder: &Path, name: &str, shape: &[usize], seed: u64) -> Vec<String> {
    let file = folder.join(format!("{name}.npy"));
    Tensor::noise(shape, seed).write_f32(&file);
    vec!["--input".into(), format!("{name}={}", file.display())]
}

#[test]
fn definitions_are_evaluated_on_other_data_everywhere() {
    let train = "train { loss: loss; data: (X, y) over N by 8 shuffle; epochs: 3; optimizer: adam(lr: 0.01) }";
    for train in ["", train] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("net.ein"), PROGRAM.replace("TRAIN", train)).unwrap();
        let mut inputs = vec![];
        for (number, (name, rows)) in [("X", 29), ("y", 29), ("Xv", 9), ("yv", 9)]
            .into_iter()
            .enumerate()
        {
            let shape: &[usize] = if name.starts_with('X') {
                &[rows, 6]
            } else {
                &[rows]
            };
            inputs.extend(write(folder.path(), name, shape, number as u64));
        }
        let build = |arguments: &[&str]| {
            run(einc_command(&["build", "net.ein"])
                .args(arguments)
                .current_dir(&folder))
            .success();
        };
        build(&["-o", "program"]);
        // What a program gives on data that are its own is what it has to give on others.
        build(&["-o", "predict", "--infer", "z"]);
        let mut first = run(einc_command(&["run", "net.ein"])
            .args(&inputs)
            .current_dir(&folder));
        if !train.is_empty() {
            first = run(
                einc_command(&["run", "net.ein", "--export", "w.safetensors"])
                    .args(&inputs)
                    .current_dir(&folder),
            );
        }
        let first = first.success();
        assert!(first.stdout.contains("loss.on.Xv.yv = "), "{first}");
        let z = Tensor::read(&at("z.npy"));
        assert_eq!(z.shape, [9]);
        if !train.is_empty() {
            let mut predict = Command::new(at("predict"));
            predict.args([
                "--weights",
                "w.safetensors",
                "--input",
                "X=Xv.npy",
                "--save",
                "z=p.npy",
            ]);
            run(predict.current_dir(&folder)).success();
            z.assert_close(&Tensor::read(&at("p.npy")), 1e-6, "on Xv in the place of X");
        }
        let check = |how: &str, command: &mut Command| {
            let (saved, loss) = (format!("z.on.Xv={}", at("s.npy").display()), at("l.npy"));
            command.args(&inputs).args(["--save", &saved]);
            command
                .arg("--save")
                .arg(format!("loss.on.Xv.yv={}", loss.display()));
            run(command.current_dir(&folder)).success();
            Tensor::read(&at("s.npy")).assert_close(&z, 1e-5, how);
            let errors = z.data.iter().zip(Tensor::noise(&[9], 3).data);
            let errors = errors.map(|(z, y)| (z - f64::from(y as f32)).powi(2));
            let wanted = Tensor::from_fn(&[], |_| errors.clone().sum::<f64>() / 9.0);
            Tensor::read(&loss).assert_close(&wanted, 1e-5, how);
        };
        for sites in ["1", "3"] {
            check(sites, Command::new(at("program")).args(["--sites", sites]));
        }
        for launcher in launchers() {
            check(launcher, &mut mpirun(launcher, 2, &at("program")));
        }
    }
}

/// The labels are called as the result of a module is, and the data of another function as its argument.
#[test]
fn data_of_training_alone_are_not_needed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "dim N
input x: f32[N, 6] = load(\"x.npy\")
input y: f32[N] = load(\"y.npy\")
input s: f32[N] = load(\"y.npy\")
module linear(D)(x[.., D]) -> y[..] {
  param w: f32[D] = normal(0, 1)
  y[..] = x[.., d] * w[d]
}
fn scaled(a[n], k = 2) -> s[n] { s[i] = k * a[i] }
param head: linear(6)
p = head(x)
z = scaled(p)
loss = mean[n] (z[n] - y[n] * s[n])^2
train { loss: loss; data: (x, y, s) over N by 8; epochs: 1; optimizer: sgd(lr: 0.01) }
output loss
";
    std::fs::write(at("net.ein"), text).unwrap();
    write(folder.path(), "x", &[29, 6], 1);
    write(folder.path(), "y", &[29], 2);
    write(folder.path(), "new", &[9, 6], 3);
    let export = ["run", "net.ein", "--export", "w.safetensors"];
    run(einc_command(&export).current_dir(&folder)).success();
    let build = ["build", "net.ein", "--infer", "z", "-o", "predict"];
    run(einc_command(&build).current_dir(&folder)).success();
    std::fs::remove_file(at("y.npy")).unwrap();
    let arguments = ["--weights", "w.safetensors", "--input", "x=new.npy"];
    let mut predict = Command::new(at("predict"));
    predict.args(arguments).args(["--save", "z=z.npy"]);
    run(predict.current_dir(&folder)).success();
    assert_eq!(Tensor::read(&at("z.npy")).shape, [9]);
}
