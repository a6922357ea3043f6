//! What is wrong gets the right exit status and a message in the user's terms; nothing panics, nothing is
//! left half written.

use einc_tests::{Finished, Tensor, einc, einc_command, launchers, mpirun, root, run};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// `einc check` of a program text.
fn check(text: impl AsRef<[u8]>) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    einc(&["check", write(&folder, "wrong.ein", text).to_str().unwrap()])
}

#[test]
fn ill_formed_programs_are_explained() {
    // The text, and what the message must name.
    let programs: &[(&str, &[&str])] = &[
        (
            "input A: f32[3]\nB[i] = A[i] + Q[i]\noutput B\n",
            &["`Q`", "wrong.ein:2"],
        ),
        (
            "input weight: f32[3]\nB[i] = wieght[i]\noutput B\n",
            &["`wieght`", "weight"],
        ),
        (
            "input A: f32[3,4]\ninput B: f32[5,6]\nC[i,j] = A[i,k]*B[k,j]\noutput C\n",
            &["`k`", "4", "5", "wrong.ein:3"],
        ),
        (
            "input A: f32[3,4]\nB[i] = A[i]\noutput B\n",
            &["`A`", "2", "1"],
        ),
        (
            "input x: f32[9]\ny[i < 9] = x[i + 1]\noutput y\n",
            &["`x`", "9"],
        ),
        (
            "input A: f32[3,4]\nB[i] = A[i,j]\noutput B\n",
            &["`j`", "sum[j]"],
        ),
        (
            "input A: f32[3,4]\ninput B: f32[4]\ninput C: f32[4]\nD[i] = A[i,j] * exp(B[j]*C[j])\noutput D\n",
            &["`j`"],
        ),
        (
            "input A: f32[3]\ninput B: f64[3]\nC[i] = A[i] + B[i]\noutput C\n",
            &["f32", "f64"],
        ),
        (
            "input A: i64[3]\ninput B: i64[3]\nC[i] = A[i] / B[i]\noutput C\n",
            &["div"],
        ),
        (
            "a = b + 1\nb = c + 1\nc = a + 1\noutput a\n",
            &["a", "b", "c"],
        ),
        ("a = 1\na = 2\noutput a\n", &["`a`", "wrong.ein:2"]),
        (
            "fn f(x) = g(x)\nfn g(x) = f(x)\na = f(1.0)\noutput a\n",
            &["f", "g"],
        ),
        (
            "dim N = 99999999999999999999999\ninput A: f32[N]\noutput A\n",
            &["wrong.ein:1"],
        ),
        (
            "dim N = 4294967296\ninput A: f32[N, N, N]\nB[i,j,k] = A[i,j,k]\noutput B\n",
            &["4294967296 × 4294967296 × 4294967296", "wrong.ein:2"],
        ),
        ("input A: f32[3\nB[i] = A[i]\n", &["wrong.ein:1"]),
        ("input A: f32[3]\nB[i,i] = A[i]\noutput B\n", &["`i`"]),
        ("input A: f32[3]\noutput Z\n", &["`Z`"]),
        (
            "dim H = 3\ndim D = 10\nassert D % H == 0\ninput A: f32[D]\noutput A\n",
            &["wrong.ein:3"],
        ),
        ("input A: f32[3]\nx = mean[i,j] A[i]\noutput x\n", &["`j`"]),
        (
            "fn f(x[n], y[n]) -> z[n] { z[n] = x[n] + y[n] }\ninput A: f32[3]\ninput B: f32[4]\nC = f(A, B)\noutput C\n",
            &["3", "4"],
        ),
        (
            "fn f(x[n]) -> z[n] { z[n] = x[n] }\ninput A: f32[3]\nC = f(A, A)\noutput C\n",
            &["`f`"],
        ),
        ("use std.nope\n", &["std.nope"]),
        ("use \"nowhere.ein\"\n", &["nowhere.ein"]),
        (
            "input A: f32[4,5]\nB = inv(A)\noutput B\n",
            &["`inv`", "4 × 5"],
        ),
        (
            "repeat t < 3 { state x = 0.0; next x = x + 1; y = x * 2 }\noutput y\n",
            &["`y`", "rounds"],
        ),
        (
            "repeat t < 3 { state x = 0.0 }\noutput x\n",
            &["`x`", "`next`"],
        ),
    ];
    for (text, words) in programs {
        check(text).fails_with(1).says(words);
    }
}

#[test]
fn hostile_texts_are_refused_without_a_panic() {
    check([0xff, 0xfe, b'a', 0x80])
        .fails_with(1)
        .says(&["UTF-8"]);
    check("").fails_with(1).says(&["empty", "wrong.ein"]);
    check(format!(
        "a = {}1{}\noutput a\n",
        "(".repeat(5000),
        ")".repeat(5000)
    ))
    .fails_with(1);
    check(format!("a = {}1\noutput a\n", "-".repeat(100_000))).fails_with(1);
    check("{".repeat(10_000)).fails_with(1);
    let long = format!("a = 1{}\noutput a\n", " + 1".repeat(20_000));
    assert!(matches!(check(long).status, Some(0 | 1)));
}

#[test]
fn a_line_of_a_training_that_cannot_be_parsed_is_told_once() {
    let text = "input X: f32[8, 4]\nparam w: f32[4] = zeros\nloss = mean[n] (X[n,d] * w[d])^2\n\
                train {\n  loss: loss\n  data: X over 8 by 2 shuffel\n  epochs: 1\n  optimiser: sgd(lr: 0.1)\n}\n";
    let finished = check(text).fails_with(1);
    let errors = finished.stderr.matches("error[").count();
    assert_eq!(errors, 2, "{finished}");
    finished.says(&["E0116", "wrong.ein:6", "`optimiser`", "`optimizer`"]);
}

#[test]
fn independent_errors_are_reported_together_and_in_order() {
    let many: String = (0..30).map(|n| format!("a{n} = missing{n}\n")).collect();
    let finished = check(many).fails_with(1);
    let order: Vec<_> = (0..20)
        .map(|n| finished.stderr.find(&format!("`missing{n}`")))
        .collect();
    assert!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "{finished}"
    );
    assert!(!finished.stderr.contains("`missing20`"), "{finished}");
}

#[test]
fn a_cycle_of_imports_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "b.ein", "use \"a.ein\"\nfn g(x) = x\n");
    let a = write(&folder, "a.ein", "use \"b.ein\"\nfn f(x) = x\n");
    einc(&["check", a.to_str().unwrap()])
        .fails_with(1)
        .says(&["a.ein", "b.ein"]);
}

const COPY: &str = "dim N\ninput X: f32[N, 4]\nY[n,d] = X[n,d] + 1\noutput Y\n";

#[test]
fn bad_data_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = write(&folder, "copy.ein", COPY);
    let good = folder.path().join("good.npy");
    Tensor::noise(&[6, 4], 1).write_f32(&good);
    let bytes = std::fs::read(&good).unwrap();
    let target = folder.path().join("y.npy");
    let attempt = |name: &str, contents: &[u8]| {
        let file = write(&folder, name, contents);
        let finished = einc(&[
            "run",
            program.to_str().unwrap(),
            "--input",
            &format!("X={}", file.display()),
            "--save",
            &format!("Y={}", target.display()),
        ])
        .fails_with(1)
        .says(&[name]);
        assert!(!target.exists(), "{finished}");
        finished
    };
    attempt("truncated.npy", &bytes[..bytes.len() - 5]);
    attempt("lying.npy", &[&bytes[..], &[0; 7]].concat());
    attempt("header.npy", &bytes[..20]);
    attempt("empty.npy", b"");
    attempt("text.npy", b"1 2 3\n");
    attempt("data.csv", b"1,2,3\n");
    let ints = folder.path().join("ints.npy");
    Tensor::from_fn(&[6, 4], |n| n as f64).write_i64(&ints);
    attempt("ints.npy", &std::fs::read(&ints).unwrap()).says(&["i64", "f32"]);
    let flat = folder.path().join("flat.npy");
    Tensor::noise(&[6, 5], 1).write_f32(&flat);
    attempt("flat.npy", &std::fs::read(&flat).unwrap()).says(&["`X`", "5", "4"]);

    let missing = einc(&["run", program.to_str().unwrap(), "--input", "X=nowhere.npy"]);
    missing.fails_with(1).says(&["nowhere.npy"]);
    einc(&["run", program.to_str().unwrap()])
        .fails_with(1)
        .says(&["`X`"]);
    einc(&[
        "run",
        program.to_str().unwrap(),
        "--input",
        &format!("Z={}", good.display()),
    ])
    .says(&["Z"]);
    // NaN is data like any other.
    let nan = folder.path().join("nan.npy");
    Tensor::from_fn(&[2, 4], |_| f64::NAN).write_f32(&nan);
    einc(&[
        "run",
        program.to_str().unwrap(),
        "--input",
        &format!("X={}", nan.display()),
        "--save",
        &format!("Y={}", target.display()),
    ])
    .success();
    assert!(Tensor::read(&target).data.iter().all(|x| x.is_nan()));
}

#[test]
fn a_gather_out_of_range_names_tensor_position_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let program = write(
        &folder,
        "gather.ein",
        "input table: f32[5, 2]\ninput at: i64[7]\nout[n,d] = table[at[n], d]\noutput out\n",
    );
    let (table, at) = (
        folder.path().join("table.npy"),
        folder.path().join("at.npy"),
    );
    Tensor::noise(&[5, 2], 1).write_f32(&table);
    Tensor::from_fn(&[7], |n| if n == 4 { 5.0 } else { 1.0 }).write_i64(&at);
    for sites in ["1", "3"] {
        einc(&[
            "run",
            program.to_str().unwrap(),
            "--sites",
            sites,
            "--input",
            &format!("table={}", table.display()),
            "--input",
            &format!("at={}", at.display()),
        ])
        .fails_with(1)
        .says(&["`table`", "5", "n = 4", "gather.ein:3"]);
    }
}

#[test]
fn an_output_that_cannot_be_written_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = write(
        &folder,
        "fill.ein",
        "x[i < 300_000]: f32[300_000] = 1\noutput x\n",
    );
    let run_to = |target: &str| {
        einc(&[
            "run",
            program.to_str().unwrap(),
            "--save",
            &format!("x={target}"),
        ])
    };
    run_to("/proc/nowhere/x.npy")
        .fails_with(1)
        .says(&["/proc/nowhere"]);
    run_to(folder.path().to_str().unwrap()).fails_with(1);
    run_to(folder.path().join("x.xyz").to_str().unwrap())
        .fails_with(1)
        .says(&["x.xyz"]);

    // A full disk: a small file system of its own, where that may be mounted.
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if !mounted {
        eprintln!(
            "a file system cannot be mounted here: the full-disk half of this test did not run"
        );
        return;
    }
    let target = disk.join("x.npy");
    std::fs::write(&target, "precious").unwrap();
    let finished = run_to(target.to_str().unwrap());
    let kept = std::fs::read(&target).unwrap();
    let left: Vec<_> = std::fs::read_dir(&disk)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    run(Command::new("umount").arg(&disk)).success();
    finished.fails_with(1).says(&["x.npy"]);
    assert_eq!(kept, b"precious");
    assert_eq!(left, ["x.npy"]);
}

#[test]
fn usage_errors_have_status_2() {
    einc(&["frobnicate"]).fails_with(2);
    einc(&["run"]).fails_with(2);
    einc(&["run", "examples/matmul.ein", "--sites", "0"]).fails_with(2);
    einc(&["run", "examples/matmul.ein", "--dim", "I"]).fails_with(2);
    einc(&["run", "nowhere.ein"])
        .fails_with(1)
        .says(&["nowhere.ein"]);
    einc(&["run", "examples/matmul.ein", "--dim", "Q=4"]).says(&["Q"]);
    einc(&["explain", "E9999"]).says(&["E9999"]);
    for (option, value, says) in [
        ("--memory", "-5", "a number of bytes above 0"),
        ("--sites", "-1", "write a whole number from 1 to 4096"),
        ("--sites", "two", "write a whole number from 1 to 4096"),
        ("--stall", "-1", "a number of seconds from 0"),
        ("--time-limit", "-1", "a number above 0"),
        ("--balance", "-2", "--balance"),
        (
            "--seed",
            "-1",
            "a whole number from 0 to 18446744073709551615",
        ),
    ] {
        let refused = einc(&["run", "examples/matmul.ein", option, value]).fails_with(2);
        refused.says(&["invalid value", says]);
    }
}

#[test]
fn a_const_that_is_a_tensor_takes_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let text = "const w = [1.0, 2, 3]\ny[i] = w[i] * 2\noutput y\n";
    let program = write(&folder, "p.ein", text);
    let refused = einc(&["run", program.to_str().unwrap(), "--set", "w=3"]);
    refused
        .fails_with(2)
        .says(&["E0711", "`w` is a tensor, not a number", "--input w=FILE"]);
    let text = "const c: f64[] = 3\ny = c * 2\noutput y\n";
    let program = write(&folder, "scalar.ein", text);
    let scalar = einc(&["run", program.to_str().unwrap(), "--set", "c=4"]).success();
    assert_eq!(scalar.stdout, "y = 8.0\n");
}

/// Their sizes would help nobody.
#[test]
fn data_with_other_dimensions_are_told_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = "dim N, D\ninput X: f64[N, D]\ns = sum[n,d] X[n,d]\noutput s\n";
    let program = write(&folder, "p.ein", text);
    let data = folder.path().join("x.npy");
    Tensor::noise(&[4], 1).write_f64(&data);
    let input = format!("X={}", data.display());
    let refused = einc(&["run", program.to_str().unwrap(), "--input", &input]).fails_with(1);
    let refused = refused.says(&["E0704", "declared with 2 dimensions, but its data has 1"]);
    assert!(!refused.stderr.contains("E0714"), "{refused}");
}

#[test]
fn a_name_has_one_value() {
    let twice = [
        ("--dim", "N=3", "N=4"),
        ("--set", "c=1", "c=2"),
        ("--input", "x=1", "x=2"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let text = "dim N\nconst c = 0\ninput x: f32[N]\ny[i] = x[i] + c\noutput y\n";
    let program = write(&folder, "p.ein", text);
    for (option, first, second) in twice {
        for verb in ["run", "check", "plan", "build"] {
            let refused = einc(&[
                verb,
                program.to_str().unwrap(),
                option,
                first,
                option,
                second,
            ]);
            let name = format!("`{option}` gives `{}` two values", &first[..1]);
            refused.fails_with(1).says(&["E0737", &name]);
        }
    }
    let all: Vec<&str> = twice
        .iter()
        .flat_map(|(o, v, _)| [*o, *v, *o, *v])
        .collect();
    let all = [&["run", program.to_str().unwrap()], &all[..]].concat();
    assert_eq!(einc(&all).success().stdout, "y = [2. 2. 2.]\n");
}

#[test]
fn a_text_that_never_ends_is_refused() {
    einc(&["check", "/dev/zero"])
        .fails_with(1)
        .says(&["E0190", "longer than 64 MiB"]);
}

fn built(folder: &TempDir, example: &Path) -> PathBuf {
    let program = folder.path().join("program");
    einc(&[
        "build",
        example.to_str().unwrap(),
        "-o",
        program.to_str().unwrap(),
    ])
    .success();
    program
}

#[test]
fn a_build_is_refused_for_what_no_number_of_sites_changes() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let text = "param W: f32[40, 50] = normal(0, 1)\nloss = sum[i,j] W[i,j]^2\n\
        train { loss: loss; steps: 2; optimizer: sgd(lr: 0.1) }\noutput loss\n";
    let source = write(&folder, "train.ein", text);
    let build = |options: &[&str]| {
        let mut command = einc_command(&["build"]);
        run(command.arg(&source).args(options).arg("-o").arg(&program))
    };
    let wrong = build(&["--disable-rule", "R2-9"]).fails_with(2);
    wrong.says(&["E0997", "did you mean"]);
    assert!(!program.exists());
    // More sites may hold what one does not.
    build(&["--memory", "10kB"]).success();
    run(&mut Command::new(&program))
        .fails_with(1)
        .says(&["E0996"]);
}

#[test]
fn more_ranks_than_cores_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(
        &folder,
        "one.ein",
        "input x: f32[7] = ones\ns = sum[i] x[i]\noutput s\n",
    );
    let program = folder.path().join("one");
    run(einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    // A machine of many cores has no need of it.
    if cores > 8 {
        return;
    }
    for launcher in launchers() {
        let crowded = run(&mut mpirun(launcher, cores + 1, &program)).success();
        let told = format!("{} ranks share {cores} of the machine's cores", cores + 1);
        assert_eq!(crowded.stderr.matches(&told).count(), 1, "{crowded}");
    }
    let alone = run(Command::new(&program).args(["--sites", "5"])).success();
    assert!(!alone.stderr.contains("E0733"), "{alone}");
}

#[test]
fn a_misspelt_variable_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let example = root().join("examples/digits_knn.ein");
    let program = built(&folder, &example);
    let prefix = "EIN_";
    let told = |mut command: Command| {
        for name in ["THREAD", "BLASS"] {
            command.env(format!("{prefix}{name}"), "4");
        }
        let finished = run(&mut command).success();
        assert!(
            finished.stdout.contains("accuracy = 0.98888886"),
            "{finished}"
        );
        for (wrong, right) in [("THREAD", "THREADS"), ("BLASS", "BLAS")] {
            let warning = format!("einc reads no variable `{prefix}{wrong}`");
            assert_eq!(finished.stderr.matches(&warning).count(), 1, "{finished}");
            let nearest = format!("did you mean `{prefix}{right}`?");
            assert_eq!(finished.stderr.matches(&nearest).count(), 1, "{finished}");
        }
    };
    let mut interpreted = einc_command(&["run"]);
    interpreted.arg(&example).args(["--sites", "3"]);
    told(interpreted);
    let mut alone = Command::new(&program);
    alone.args(["--sites", "2"]);
    told(alone);
    for launcher in launchers() {
        told(mpirun(launcher, 2, &program));
    }
}

#[test]
fn another_number_of_ranks_than_asked_for_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(&folder, &root().join("examples/digits_knn.ein"));
    for launcher in launchers() {
        let finished = run(mpirun(launcher, 2, &program).args(["--sites", "3"]));
        assert_ne!(finished.status, Some(0), "{finished}");
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains('3') && said.contains("2 ranks"), "{finished}");
    }
}

/// Two machines with a file of the same name, size and shape, but other numbers. For each rank `/proc/self/cwd` is a folder of its own.
#[test]
fn ranks_with_other_data_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("sum.ein");
    let text = "dim N\ninput x: f64[N]\ns = sum[i] x[i] * x[i]\noutput s\n";
    std::fs::write(&source, text).unwrap();
    let program = built(&folder, &source);
    let machine = |name: &str, last: f64| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        let mut data = vec![1.0; 50_000];
        data[49_999] = last;
        let shape = vec![50_000];
        Tensor { shape, data }.write_f64(&own.join("x.npy"));
        own
    };
    let (one, other, same) = (machine("a", 1.0), machine("b", 2.0), machine("c", 1.0));
    for launcher in launchers() {
        let job = |second: &Path| {
            let mut command = mpirun(launcher, 1, Path::new("-wdir"));
            command
                .arg(&one)
                .arg(&program)
                .arg("--input=x=/proc/self/cwd/x.npy");
            command
                .args([":", "-n", "1", "-wdir"])
                .arg(second)
                .arg(&program);
            run(command.arg("--input=x=/proc/self/cwd/x.npy"))
        };
        assert!(job(&same).success().stdout.contains("50000"), "{launcher}");
        let finished = job(&other);
        assert_ne!(finished.status, Some(0), "{finished}");
        for part in ["E0731", "x.npy", "site 1"] {
            assert!(finished.stderr.contains(part), "no {part} in {finished}");
        }
    }
}

#[test]
fn a_rank_that_dies_ends_the_job() {
    let folder = tempfile::tempdir().unwrap();
    // Long enough to be killed in the middle.
    let program = built(&folder, &root().join("examples/matmul.ein"));
    for launcher in launchers() {
        let mut job = mpirun(launcher, 3, &program)
            .args([
                "--dim",
                "I=6000",
                "--dim",
                "K=6000",
                "--dim",
                "J=6000",
                "--threads",
                "3",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let victim = loop {
            std::thread::sleep(Duration::from_millis(50));
            let ranks =
                run(Command::new("pgrep").args(["-f", &format!("^{}", program.display())])).stdout;
            // The launcher's own command line begins with its own name, so these are the ranks.
            let ranks: Vec<_> = ranks.lines().map(str::to_string).collect();
            if ranks.len() >= 3 && began.elapsed() > Duration::from_millis(1500) {
                break ranks[1].clone();
            }
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "three ranks never ran: {ranks:?}"
            );
        };
        run(Command::new("kill").args(["-9", &victim])).success();
        let deadline = Instant::now() + Duration::from_secs(30);
        let status = loop {
            if let Some(status) = job.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{launcher}: the job hangs after a rank died"
            );
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(!status.success(), "{launcher}");
    }
}

#[test]
fn a_broken_pipe_is_no_panic() {
    let mut child = einc_command(&["explain", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn a_position_that_is_outside_is_told_by_its_tensor_and_dimension() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "input t: i64[2, 2] = iota\ninput T: f64[3, 2] = iota\ny[i,j,d] = T[t[i,j], d]\noutput y\n",
            "position 3 is outside `T`, whose dimension 1 has positions 0 to 2; at i = 1, j = 1, d = 0",
        ),
        // A tensor that is defined has an index there.
        (
            "input t: i64[2, 2] = iota\ninput T: f64[3, 2] = iota\nQ[c,r] = 2 * T[r,c]\ny[i,j] = Q[0, t[i,j]]\noutput y\noutput Q\n",
            "position 3 is outside `Q`, whose dimension 2 (`r`) has positions 0 to 2; at i = 1, j = 1",
        ),
        (
            "input t: i64[2, 2] = iota\nG[i, t[i,j]]: i64[2, 3] += 1\noutput G\n",
            "position 3 is outside `G`, whose dimension 2 has positions 0 to 2; at i = 1, j = 1",
        ),
        (
            "input t: i64[2, 2] = iota\nG[t[i,j]]: i64[3] max= j\noutput G\n",
            "position 3 is outside `G`, whose dimension 1 has positions 0 to 2; at i = 1, j = 1",
        ),
    ];
    for (text, message) in cases {
        let program = write(&folder, "outside.ein", text);
        for sites in ["1", "3"] {
            let finished =
                einc(&["run", program.to_str().unwrap(), "--sites", sites]).fails_with(1);
            assert!(finished.stderr.contains(message), "{}", finished.stderr);
        }
    }
}

#[test]
fn an_empty_variable_is_as_if_it_were_not_set() {
    let mut command = einc_command(&["run", "examples/gcd.ein"]);
    for variable in ["EIN_THREADS", "EIN_STALL", "EIN_SPILL", "EIN_BLAS"] {
        command.env(variable, "");
    }
    let said = run(&mut command).success();
    assert_eq!(said.stderr, "");
    command.args(["--threads", "0"]);
    assert!(
        !run(&mut command)
            .fails_with(2)
            .stderr
            .contains("EIN_THREADS")
    );
}

#[test]
fn a_value_that_is_refused_is_told_to_be_a_variables() {
    let cases = [
        ("EIN_THREADS", "some", true, &[][..]),
        ("EIN_THREADS", "0", true, &[]),
        ("EIN_STALL", "soon", true, &[]),
        ("EIN_THREADS", "0", false, &["--threads", "0"]),
        ("EIN_THREADS", "2", false, &["--threads", "0"]),
    ];
    for (variable, value, told, more) in cases {
        let mut command = einc_command(&["run", "examples/gcd.ein"]);
        command.env(variable, value).args(more);
        let said = run(&mut command).fails_with(2).stderr;
        let help = format!("help: the value is that of the variable {variable}");
        assert_eq!(said.contains(&help), told, "{variable}={value}: {said}");
    }
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input A: f32[3]\nparam w: f32[3] = zeros\nB[i] = A[i] + w[i]\nl = sum[i] B[i]^2\ntrain { loss: l; steps: 1; optimizer: sgd(lr: 0.1) }\noutput B\n";
    let program = write(&folder, "p.ein", text);
    let data = folder.path().join("a.npy");
    einc_tests::Tensor::from_fn(&[3], |e| e as f64).write_f32(&data);
    let bytes = std::fs::read(&data).unwrap();
    let (program, data) = (program.to_str().unwrap(), data.to_str().unwrap());
    let given = format!("A={data}");
    for (verb, flag) in [
        ("build", "-o"),
        ("plan", "-o"),
        ("run", "--profile"),
        ("run", "--csv"),
        ("run", "--json-lines"),
        ("run", "--curves"),
    ] {
        for (target, what) in [(program, "is a program"), (data, "is the data of `A`")] {
            let refused = einc(&[verb, program, "--input", &given, flag, target]);
            assert_ne!(refused.status, Some(0), "{verb} {flag} {target}: {refused}");
            refused.says(&["E0705", "would write over", what]);
        }
    }
    einc(&["calibrate", "-o", program]).says(&["E0705", "is a program"]);
    einc(&["plan", program, "--input", &given, "-o", "/dev/null"])
        .fails_with(1)
        .says(&["E0705", "it is a device"]);
    assert_eq!(std::fs::read_to_string(program).unwrap(), text);
    assert_eq!(std::fs::read(data).unwrap(), bytes);
    // A trace leaves nothing but itself, and a link to its place stays one.
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink("trace.json", &link).unwrap();
    std::fs::write(folder.path().join("trace.json"), "old").unwrap();
    let link = link.to_str().unwrap();
    einc(&[
        "run",
        program,
        "--input",
        &given,
        "--profile",
        link,
        "--progress",
        "none",
    ])
    .success();
    assert!(std::fs::symlink_metadata(link).unwrap().is_symlink());
    let trace = std::fs::read_to_string(folder.path().join("trace.json")).unwrap();
    assert!(trace.contains("traceEvents"), "{trace}");
}

#[test]
fn what_does_not_fit_is_refused_soon() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "input x: f32[2, 4097, 16] = 1\n".to_owned();
    for k in 0..120 {
        text += &format!(
            "a{k}[a,b] = sum[c] exp({k} * x[a,b,c])\nm{k}[b,c] = max[a] x[a,b,c] * {k}\noutput a{k}\noutput m{k}\n"
        );
    }
    let program = write(&folder, "p.ein", text);
    let began = Instant::now();
    einc(&["plan", program.to_str().unwrap(), "--memory", "64kB"])
        .fails_with(1)
        .says(&["E0996", "are missing", "--sites"]);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
}

/// The message names the bytes that the statement with the greatest need lacks, not those of the first one that does not fit.
#[test]
fn what_is_missing_is_that_of_the_largest_statement() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input x: f32[40] = 1\ninput A: f32[400, 400] = 1\ny[i] = 2 * x[i]\nz[i] = sum[j] A[i,j]\noutput y\noutput z";
    let program = write(&folder, "p.ein", text);
    for (sites, most) in [("1", "641.8 kB"), ("3", "214.9 kB"), ("4", "160.4 kB")] {
        einc(&[
            "plan",
            program.to_str().unwrap(),
            "--sites",
            sites,
            "--memory",
            "1",
        ])
        .fails_with(1)
        .says(&[
            "E0996",
            &format!("at least {most} are missing while `z` is computed"),
        ]);
    }
}
