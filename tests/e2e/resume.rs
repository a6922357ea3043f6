//! Checkpoints, resuming, signals, exports, records and inference, as a user meets them.

use einc_tests::{Finished, Tensor, einc_command, launchers, mpirun, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A net of two layers; 53 rows in batches of 8, so that epochs of 7 steps end in short batches; a param of one number that begins with 0, and a
/// running mean, so that everything that a checkpoint holds matters.
const PROGRAM: &str = r#"
dim N
const K = 40
const lr = 0.02
input X: f32[N, 6]
input y: f32[N]
module scaled(D)(x[n, D]) -> z[n, D] {
  state level[d] = zeros
  next level[d] = 0.9 * level[d] + 0.1 * (sum[n] x[n,d]) / size(n)
  z[n, d] = x[n, d] - where(training, 0, 1) * level[d]
}
param scale: scaled(6)
param W: f32[6, 7] = normal(0, 0.5)
param v: f32[7] = normal(0, 0.5)
param b: f32 = 0
Z = scale(X)
h[n, k] = tanh(Z[n, d] * W[d, k])
p[n] = h[n, k] * v[k] + b
loss = mean[n] (p[n] - y[n])^2
train {
  loss: loss
  data: (X, y) over N by 8 shuffle
  steps: K
  optimizer: lamb(lr: lr)
  validate: loss every 1 epoch
  checkpoint: "ckpt" every 6 steps keep 2
}
output loss
"#;

struct Place {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Place {
        Place::with(PROGRAM)
    }

    fn with(program: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("net.ein");
        fs::write(&file, program).unwrap();
        Tensor::noise(&[53, 6], 1).write_f32(&folder.path().join("X.npy"));
        Tensor::noise(&[53], 2).write_f32(&folder.path().join("y.npy"));
        Place { folder, file }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lines of the records of steps.
    fn lines(&self) -> usize {
        fs::read_to_string(self.at("run.jsonl")).map_or(0, |text| text.lines().count())
    }

    /// Waits until so many steps are recorded.
    #[track_caller]
    fn reaches(&self, steps: usize) {
        let begun = Instant::now();
        while self.lines() < steps {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "it does not begin"
            );
            sleep(Duration::from_millis(5));
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let file = self.file.display().to_string();
        let mut command = einc_command(&["run", &file, "--input", "X=X.npy", "--input", "y=y.npy"]);
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Finished {
        run(&mut self.command(arguments))
    }

    /// Trains anew in this folder and returns the bytes of the params.
    #[track_caller]
    fn trained(&self, arguments: &[&str]) -> Vec<u8> {
        let export = [
            "--restart",
            "--export",
            "all.safetensors",
            "--deterministic",
        ];
        self.run(&[arguments, &export].concat()).success();
        fs::read(self.at("all.safetensors")).unwrap()
    }

    #[track_caller]
    fn resumed(&self, arguments: &[&str]) -> Vec<u8> {
        let export = ["--resume", "--export", "all.safetensors", "--deterministic"];
        self.run(&[arguments, &export].concat()).success();
        fs::read(self.at("all.safetensors")).unwrap()
    }

    fn checkpoints(&self) -> Vec<String> {
        names(&self.at("ckpt"))
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_resumed_run_ends_bit_for_bit_where_an_unbroken_one_does() {
    let place = Place::new();
    let whole = place.trained(&["--sites", "2"]);
    assert_eq!(place.checkpoints(), ["step-000000036", "step-000000040"]);
    // In the middle of an epoch, at the end of one, at a checkpoint of the rhythm, before the first one.
    for stop in ["17", "21", "24", "3"] {
        for sites in ["1", "2", "3", "5"] {
            place.trained(&["--sites", "2", "--set", &format!("K={stop}")]);
            let again = place.resumed(&["--sites", sites]);
            assert!(
                again == whole,
                "stopped at step {stop}, resumed on {sites} sites"
            );
        }
    }
    // Twice, and once more when there is nothing left to do.
    place.trained(&["--sites", "4", "--set", "K=5"]);
    place.resumed(&["--sites", "3", "--set", "K=26"]);
    assert!(place.resumed(&[]) == whole);
    let finished = place.run(&["--resume", "--deterministic"]).success();
    finished.says(&["continuing ckpt/step-000000040 after step 40"]);
    assert_eq!(place.checkpoints(), ["step-000000036", "step-000000040"]);
}

#[test]
fn ranks_of_a_job_resume_what_threads_began_and_the_other_way_round() {
    let place = Place::new();
    let whole = place.trained(&["--sites", "2"]);
    let program = place.at("net");
    let file = place.file.display().to_string();
    let mut build = einc_command(&["build", &file]);
    run(build.current_dir(place.folder.path())).success();
    for launcher in launchers() {
        let job = |arguments: &[&str]| {
            let mut job = mpirun(launcher, 3, &program);
            job.args([
                "--input",
                "X=X.npy",
                "--input",
                "y=y.npy",
                "--deterministic",
            ]);
            run(job.args(arguments).current_dir(place.folder.path())).success();
        };
        place.trained(&["--set", "K=17"]);
        job(&["--resume", "--export", "mpi.safetensors"]);
        assert!(
            fs::read(place.at("mpi.safetensors")).unwrap() == whole,
            "{launcher}"
        );
        job(&["--restart", "--set", "K=17"]);
        assert!(place.resumed(&["--sites", "2"]) == whole, "{launcher}");
    }
}

#[test]
fn a_signal_ends_the_step_and_saves() {
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let place = Place::new();
        let mut command = place.command(&[
            "--sites",
            "2",
            "--deterministic",
            "--set",
            "K=1000000",
            "--json-lines",
            "run.jsonl",
        ]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        place.reaches(10);
        // Other runs are kept out meanwhile.
        for other in ["--restart", "--resume"] {
            let refused = run(&mut place.command(&[other])).fails_with(1).stderr;
            let text = "another run keeps its checkpoints in";
            assert!(refused.contains(text), "{refused}");
        }
        let kill = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        let made = place.lines();
        let newest = place.checkpoints().pop().unwrap();
        assert_eq!(newest, format!("step-{made:09}"), "{said}");
        let text = format!("SIG{signal} after step {made}: saved; `--resume` continues");
        assert!(said.contains(&text), "{said}");
        let end = format!("K={}", made + 9);
        let again = place.resumed(&["--sites", "3", "--set", &end, "--json-lines", "run.jsonl"]);
        assert_eq!(
            place.lines(),
            made + 9,
            "the records go on where they ended"
        );
        assert!(
            again == place.trained(&["--set", &end]),
            "after {made} steps"
        );
    }
}

/// Rounds of 100 steps that every site makes by itself, on its own neurons, with states that travel.
const ROUNDS: &str = r#"
use std.nn
dim N
const K = 1000000
input X: f32[N, 6]
input y: f32[N]
param W: f32[6, 12] = normal(0, 0.5)
param first: nn.ist_norm(12)
param V: f32[12, 9] = normal(0, 0.5)
param second: nn.ist_norm(9)
param v: f32[9] = normal(0, 0.5)
param b: f32 = 0
s[n, k] = X[n, d] * W[d, k]
a = first(s)
t[n, l] = relu(a[n, k]) * V[k, l]
c = second(t)
p[n] = relu(c[n, l]) * v[l] + b
loss = mean[n] (p[n] - y[n])^2
train {
  loss: loss
  data: (X, y) over N by 4 shuffle
  steps: K
  optimizer: momentum(lr: 0.002)
  strategy: ist(local_steps: 100)
  checkpoint: "ckpt" every 100 steps keep 3
}
output loss
"#;

/// A site is killed in the middle of a round: the last round that was completed is there, and the run goes on behind it bit for bit.
#[test]
fn a_site_that_is_killed_costs_its_round() {
    let mut transports = vec![None];
    transports.extend(launchers().into_iter().map(Some));
    for transport in transports {
        let place = Place::with(ROUNDS);
        let program = place.at("net");
        let file = place.file.display().to_string();
        let mut build = einc_command(&["build", &file]);
        run(build.current_dir(place.folder.path())).success();
        let mut job = match transport {
            None => {
                let mut alone = Command::new(&program);
                alone.args(["--sites", "3"]);
                alone
            }
            Some(launcher) => mpirun(launcher, 3, &program),
        };
        job.args([
            "--input",
            "X=X.npy",
            "--input",
            "y=y.npy",
            "--deterministic",
        ]);
        job.args(["--json-lines", "run.jsonl", "--progress", "none"]);
        let job = job
            .current_dir(place.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        place.reaches(300);
        // The launcher's own command line begins with its own name, so these are the sites' processes.
        let pattern = format!("^{}", program.display());
        let ranks = run(Command::new("pgrep").args(["-f", &pattern])).stdout;
        let victim = ranks.lines().nth(1).or(ranks.lines().next()).unwrap();
        run(Command::new("kill").args(["-9", victim])).success();
        let output = job.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let told = format!("{}{said}", String::from_utf8_lossy(&output.stdout));
        assert!(!output.status.success(), "{told}");
        assert!(transport.is_none() || told.contains("signal 9"), "{told}");
        let made = place.lines() / 100 * 100;
        let mut whole = place.checkpoints();
        whole.retain(|name| name.starts_with("step-"));
        let newest = whole.pop().unwrap();
        let step: usize = newest.trim_start_matches("step-").parse().unwrap();
        assert!(
            step.is_multiple_of(100) && step + 100 >= made,
            "{step} of {made}: {told}"
        );
        let end = format!("K={}", step + 150);
        let arguments = ["--sites", "3", "--set", &end, "--export", "all.safetensors"];
        let again =
            place.run(&[&arguments[..], &["--resume", "--deterministic", "--stats"]].concat());
        let again = again.success();
        let again = again.says(&[&format!("continuing ckpt/{newest} after step {step}")]);
        // What was exchanged since then is what is stated of the rounds since then.
        let exchanged: Vec<&str> = again
            .stderr
            .lines()
            .filter(|line| line.contains(": fetched "))
            .collect();
        assert!(!exchanged.is_empty(), "{again}");
        for line in exchanged {
            for part in line.split(", ").filter(|part| part.contains("stated")) {
                let numbers: Vec<&str> = part
                    .split(|c: char| !c.is_ascii_digit())
                    .filter(|n| !n.is_empty())
                    .collect();
                let [.., found, stated] = numbers[..] else {
                    panic!("{line}");
                };
                assert_eq!(found, stated, "{line}");
            }
        }
        let again = fs::read(place.at("all.safetensors")).unwrap();
        assert!(
            again == place.trained(&["--sites", "3", "--set", &end]),
            "{transport:?}: resumed after step {step}"
        );
    }
}

#[test]
fn what_cannot_be_resumed_is_said() {
    let place = Place::new();
    place.run(&["--resume"]).fails_with(1).says(&[
        "E0709",
        "there is nothing to resume: no checkpoint is in `ckpt`",
    ]);
    place.trained(&["--set", "K=20"]);
    place.run(&[]).fails_with(1).says(&[
        "E0709",
        "`ckpt` holds checkpoints of an earlier run, up to step 20",
        "--restart",
    ]);
    place
        .run(&["--resume", "--seed", "7"])
        .fails_with(1)
        .says(&[
            "no checkpoint can be resumed",
            "--seed is `0` there and `7` here",
        ]);
    let other = PROGRAM
        .replace("f32[6, 7]", "f32[6, 8]")
        .replace("v: f32[7]", "v: f32[8]");
    fs::write(&place.file, other).unwrap();
    place
        .run(&["--resume"])
        .fails_with(1)
        .says(&["`W` is f32[6, 7] there and f32[6, 8] here"]);
    fs::write(&place.file, PROGRAM.replace("by 8", "by 9")).unwrap();
    place
        .run(&["--resume"])
        .fails_with(1)
        .says(&["the batch of train.1 is `8` there and `9` here"]);
    place.run(&["--resume", "--restart"]).fails_with(2);
    let none = Place::with("x[i < 3] = i\noutput x\n");
    let file = none.file.display().to_string();
    for flag in [
        &["--resume"][..],
        &["--restart"],
        &["--export", "x.safetensors"],
        &["--json-lines", "x.jsonl"],
        &["--csv", "x.csv"],
        &["--tensorboard", "x"],
        &["--curves", "x.svg"],
    ] {
        run(einc_command(&["run", &file]).args(flag))
            .fails_with(2)
            .says(&["E0709", "but the program trains nothing"]);
    }
}

#[test]
fn a_damaged_checkpoint_is_left_out_and_the_one_before_it_used() {
    let place = Place::new();
    let whole = place.trained(&[]);
    place.trained(&["--set", "K=20"]);
    assert_eq!(place.checkpoints(), ["step-000000018", "step-000000020"]);
    let newest = place.at("ckpt/step-000000020/tensors.safetensors");
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() - 9;
    bytes[middle] ^= 4;
    fs::write(&newest, bytes).unwrap();
    let arguments = [
        "--resume",
        "--export",
        "all.safetensors",
        "--deterministic",
        "--sites",
        "2",
    ];
    let finished = place.run(&arguments).success();
    finished.says(&[
        "warning[E0709]: a checkpoint is left out: ckpt/step-000000020: the tensor",
        "is damaged",
        "continuing ckpt/step-000000018 after step 18",
    ]);
    assert!(fs::read(place.at("all.safetensors")).unwrap() == whole);
}

#[test]
fn records_go_where_they_are_asked_to() {
    let place = Place::new();
    let finished = place
        .run(&[
            "--json-lines",
            "a.jsonl",
            "--csv",
            "a.csv",
            "--tensorboard",
            "events",
            "--curves",
            "a.svg",
            "--restart",
        ])
        .success();
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(lines.len(), 6, "a line an epoch: {}", finished.stderr);
    assert!(
        lines[0].starts_with("epoch 1/6  step 7/40  loss 0."),
        "{}",
        lines[0]
    );
    assert!(
        lines[4].contains("epoch 5/6  step 35/40  loss 0."),
        "{}",
        lines[4]
    );
    let text = fs::read_to_string(place.at("a.jsonl")).unwrap();
    let records: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 40);
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["step"], at + 1);
        assert_eq!(record["epoch"], at / 7 + 1);
        assert!(record["loss"].as_f64().unwrap() > 0.0);
        assert!(
            (record["rate"].as_f64().unwrap() - 0.02).abs() < 1e-12,
            "{record}"
        );
        assert_eq!(
            record["validation"]["validation.loss"].is_number(),
            at % 7 == 6
        );
    }
    assert_eq!(records[39]["examples"], 5 * 53 + 40);
    assert_eq!(
        fs::read_to_string(place.at("a.csv"))
            .unwrap()
            .lines()
            .count(),
        41
    );
    assert!(
        fs::read_to_string(place.at("a.svg"))
            .unwrap()
            .contains("loss of the batch")
    );
    assert_eq!(names(&place.at("events")).len(), 1);
    let quiet = place.run(&["--progress", "none", "--restart"]).success();
    assert_eq!(quiet.stderr, "");
    let nowhere = ["--csv", "none/a.csv", "--restart"];
    place
        .run(&nowhere)
        .fails_with(1)
        .says(&["E0705", "none/a.csv: cannot be written"]);
}

/// A folder that cannot be written is told before the first step; one that is gone behind the last, after the outputs.
#[test]
fn an_export_that_fails_costs_nothing_else() {
    let place = Place::with(&PROGRAM.replace("output loss", "output loss\noutput W -> \"W.npy\""));
    place
        .run(&["--export", "none/w.safetensors"])
        .fails_with(1)
        .says(&["E0705", "none/w.safetensors: there is no folder `none`"]);
    assert!(!place.at("ckpt").exists() && !place.at("W.npy").exists());
    for sites in ["1", "2"] {
        fs::create_dir(place.at("some")).unwrap();
        let _ = fs::remove_file(place.at("run.jsonl"));
        let mut command = place.command(&["--sites", sites, "--set", "K=500", "--restart"]);
        let child = command
            .args([
                "--json-lines",
                "run.jsonl",
                "--export",
                "some/w.safetensors",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        place.reaches(1);
        fs::remove_dir(place.at("some")).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let missing = "some/w.safetensors: there is no folder `some`";
        assert!(said.contains(missing), "{said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("loss = "), "{printed}");
        assert_eq!(Tensor::read(&place.at("W.npy")).shape, [6, 7]);
        fs::remove_file(place.at("W.npy")).unwrap();
    }
}

/// A loss may be finite and its gradient not: what would replace good params is not written.
#[test]
fn params_that_are_not_finite_are_in_no_checkpoint() {
    // The gradient of sqrt(b^2) is infinity times 0 where `b` is 0, which it is from the beginning.
    let text = PROGRAM
        .replace("every 6 steps", "every 1 step")
        .replace("(p[n] - y[n])^2", "(p[n] - y[n])^2 + 0.001 * sqrt(b * b)");
    let place = Place::with(&text);
    for sites in ["1", "2"] {
        place.run(&["--sites", sites]).fails_with(1).says(&[
            "E0801",
            "`b` is the first tensor that holds a value that is not finite after step 1 (epoch 1)",
            "no checkpoint is written",
        ]);
        assert!(place.checkpoints().is_empty());
    }
    let good = Place::with(
        &text
            .replace("param b: f32 = 0", "param b: f32 = 1")
            .replace("b * b", "max(b * b, 1e-30)"),
    );
    good.run(&["--set", "K=3"]).success();
    assert_eq!(good.checkpoints(), ["step-000000002", "step-000000003"]);
    fs::write(
        &good.file,
        text.replace("0.001 * sqrt(b * b)", "0.001 * sqrt(b * b - b * b)"),
    )
    .unwrap();
    good.run(&["--resume"])
        .fails_with(1)
        .says(&["after step 4"]);
    assert_eq!(good.checkpoints(), ["step-000000002", "step-000000003"]);
}

/// The last step has nobody behind it who would see a loss that is not finite.
#[test]
fn params_that_are_not_finite_are_not_exported() {
    let text = PROGRAM
        .replace("  checkpoint: \"ckpt\" every 6 steps keep 2\n", "")
        .replace("output loss", "output W -> \"W.npy\"")
        .replace("(p[n] - y[n])^2", "(p[n] - y[n])^2 + 0.001 * sqrt(b * b)");
    let place = Place::with(&text);
    fs::write(place.at("w.safetensors"), "good").unwrap();
    for sites in ["1", "2"] {
        let run = place.run(&[
            "--sites",
            sites,
            "--set",
            "K=1",
            "--export",
            "w.safetensors",
        ]);
        run.fails_with(1).says(&[
            "E0801",
            "`b` is the first tensor that holds a value that is not finite after the last step",
            "w.safetensors is not written",
        ]);
        assert_eq!(fs::read(place.at("w.safetensors")).unwrap(), b"good");
        assert!(place.at("W.npy").exists(), "outputs are not lost with it");
        fs::remove_file(place.at("W.npy")).unwrap();
    }
}

/// Where a square root ends the gradient is infinite, and the step goes to minus infinity.
#[test]
fn params_of_minus_infinity_are_not_exported() {
    let place = Place::with(
        "param w: f32[3] = 1\nloss = sum[i] sqrt(w[i] - 1)\ntrain { loss: loss; steps: 1; optimizer: sgd(lr: 0.1) }\noutput loss\n",
    );
    fs::write(place.at("w.safetensors"), "good").unwrap();
    let said = [
        "E0801",
        "`w` is the first tensor",
        "w.safetensors is not written",
    ];
    let arguments = ["run", "net.ein", "--export", "w.safetensors"];
    run(einc_command(&arguments).current_dir(place.folder.path()))
        .fails_with(1)
        .says(&said);
    assert_eq!(fs::read(place.at("w.safetensors")).unwrap(), b"good");
}

#[test]
fn exported_params_are_evaluated_by_a_program_that_does_not_train() {
    let place = Place::with(&PROGRAM.replace("output loss", "output p -> \"p.npy\""));
    place.trained(&["--sites", "2"]);
    let wanted = Tensor::read(&place.at("p.npy"));
    let program = place.at("predict");
    let file = place.file.display().to_string();
    let build = |name: &str| {
        let arguments = ["build", &file, "--infer", name, "-o", "predict"];
        run(einc_command(&arguments).current_dir(place.folder.path()))
    };
    build("pp")
        .fails_with(2)
        .says(&["E0711", "has no definition `pp`", "it has: Z, h, p, loss"]);
    let several = [
        "build", &file, "--infer", "p", "--infer", "loss", "--infer", "p", "-o", "both",
    ];
    run(einc_command(&several).current_dir(place.folder.path())).success();
    build("p").success();
    let predict = |arguments: &[&str]| {
        run(Command::new(&program)
            .args(arguments)
            .env("NO_COLOR", "1")
            .current_dir(place.folder.path()))
    };
    // Without `y`, which only training needs.
    let save = [
        "--input",
        "X=X.npy",
        "--weights",
        "all.safetensors",
        "--save",
        "p=q.npy",
    ];
    for sites in ["1", "3"] {
        predict(&[&save[..], &["--sites", sites]].concat()).success();
        Tensor::read(&place.at("q.npy")).assert_close(&wanted, 1e-6, "p");
    }
    let both = run(Command::new(place.at("both"))
        .args(["--input", "X=X.npy", "--input", "y=y.npy"])
        .args(["--weights", "all.safetensors", "--save", "p=r.npy"])
        .current_dir(place.folder.path()))
    .success();
    assert!(both.stdout.contains("loss = "), "{}", both.stdout);
    Tensor::read(&place.at("r.npy")).assert_close(&wanted, 1e-6, "p");
    predict(&["--input", "X=X.npy"]).fails_with(1).says(&[
        "E0710",
        "the param `",
        "has no data",
        "--weights model.safetensors",
    ]);
    // Of another program, which has no `v`.
    let other = PROGRAM.replace("param v: f32[7] = normal(0, 0.5)", "const v[k < 7] = 1.0");
    fs::write(place.at("other.ein"), other).unwrap();
    let less = [
        "run",
        "other.ein",
        "--input",
        "X=X.npy",
        "--input",
        "y=y.npy",
        "--restart",
    ];
    run(einc_command(&less)
        .args(["--export", "less.safetensors"])
        .current_dir(place.folder.path()))
    .success();
    let weights = ["--input", "X=X.npy", "--weights", "less.safetensors"];
    predict(&weights).fails_with(1).says(&[
        "E0706",
        "less.safetensors: holds no param `v`",
        "it holds W, b, scale.level",
    ]);
    predict(&[&weights[..], &["--input", "v=W.npy"]].concat())
        .fails_with(1)
        .says(&["E0701", "W.npy"]);
    place.trained(&["--sites", "2"]);
    // As a beginning: training goes on with what was exported.
    place
        .run(&["--weights", "all.safetensors", "--restart", "--set", "K=1"])
        .success();
    let no_such = ["--weights", "none.safetensors", "--restart"];
    place
        .run(&no_such)
        .fails_with(1)
        .says(&["E0701", "none.safetensors: there is no such file"]);
    // A checkpoint's own tensors would be removed before they are read.
    let newest = place.checkpoints().pop().unwrap();
    let own = format!("ckpt/{newest}/tensors.safetensors");
    place
        .run(&["--weights", &own, "--restart"])
        .fails_with(1)
        .says(&["E0709", "the weights are in one of them", "copy the file"]);
    assert!(place.checkpoints().contains(&newest));
}
