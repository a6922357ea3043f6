//! Numbers as data, definitions that are shown or saved though they are no outputs, and inputs that nothing needs.

use einc_tests::{Finished, Tensor, einc, run};
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

/// Names of options that no program has are told as such, whatever stands before their points; instances of modules are not offered.
#[test]
fn paths_are_those_of_instances() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein").display().to_string();
    let text = "module m(D)(x[n]) -> y[n] { param w: f32[D] = ones\n y[i] = w[i] * x[i] }\nparam enc: m(3)[2]\ninput x: f32[3] = ones\nz = enc[0](enc[1](x))\noutput z";
    std::fs::write(&program, text).unwrap();
    let run = einc(&["run", &program, "--show", "enc.1.w"]).success();
    assert_eq!(run.stdout, "z = [1. 1. 1.]\nenc.1.w = [1. 1. 1.]\n");
    for (option, value) in [("--show", "z.1"), ("--save", "z.1=z.npy")] {
        einc(&["run", &program, option, value])
            .fails_with(2)
            .says(&[
                "E0711",
                "the program has no definition `z.1`",
                "it has: z, x",
            ]);
    }
    einc(&["run", &program, "--show", "en"])
        .fails_with(2)
        .says(&["E0711", "it has: z, x"]);
    let rounds = "input x: f32[2] = ones\nrepeat t < 2 { state s[i] = x[i]; q[i] = 2 * s[i]; r[t,i] = q[i]; next s[i] = q[i] }\noutput s";
    std::fs::write(folder.path().join("rounds.ein"), rounds).unwrap();
    let other = folder.path().join("rounds.ein").display().to_string();
    einc(&["run", &other, "--show", "q"])
        .fails_with(2)
        .says(&["E0711", "it has: s, x, r, t"]);
    einc(&["run", &program, "--input", "x.1=1"])
        .fails_with(2)
        .says(&["E0711", "the program has no input `x.1`", "it has: x"]);
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

fn start_in(folder: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(einc_tests::einc_path());
    run(command
        .args(arguments)
        .env("NO_COLOR", "1")
        .current_dir(folder))
}

/// A file of several arrays, given without a key: the option that names one, of the tensor's own name if there is one.
#[test]
fn an_archive_without_a_key_is_told_which_arrays_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let start = |arguments: &[&str]| start_in(folder.path(), arguments);
    write(
        "two.ein",
        "a[i < 3] = 1.0 * i\nx = 2.0\noutput a; output x\n",
    );
    start(&["run", "two.ein", "--save", "two.npz"]).success();
    for (name, key) in [("x", "x"), ("z", "a")] {
        write(
            "one.ein",
            &format!("input {name}: f32\ny = {name} + 1\noutput y\n"),
        );
        let given = format!("{name}=two.npz");
        let help = format!("write `--input {name}=two.npz::{key}`");
        let says = ["E0706", "holds 2 arrays; say which: `a`, `x`", &help];
        start(&["run", "one.ein", "--input", &given])
            .fails_with(1)
            .says(&says);
    }
    start(&["run", "one.ein", "--input", "z=two.npz::x"]).success();
}

/// The params of one training as the beginning of other programs: all, some by name, and sizes that only the file says.
#[test]
fn parts_of_weights_begin_params() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let start = |arguments: &[&str]| start_in(folder.path(), arguments);
    let train = "loss = sum[i,j] a[i,j]^2 + sum[j] head[j]
train { loss: loss; steps: 1; optimizer: sgd(lr: 0.5) }
";
    let first = "param a: f32[5, 4] = 3\nparam head: f32[4] = 2\n";
    write("first.ein", &format!("{first}{train}output a\n"));
    start(&["run", "first.ein", "--export", "w.safetensors"]).success();
    // a = 3 - 0.5 · 6 = 0, head = 2 - 0.5.
    let other = "dim D, K
param a: f32[D, 4] = ones
param head: f32[K] = ones
param tail: f32[2] = 7
rows = sum[i < D] 1
t = sum[j] head[j]
s = sum[i,j] a[i,j]
u = sum[j] tail[j]
output rows; output t; output s; output u
";
    write("other.ein", other);
    let (heads, all) = ("w.safetensors::head", "w.safetensors::*");
    let said = |arguments: &[&str]| {
        let arguments = [&["run", "other.ein", "--weights"], arguments].concat();
        start(&arguments).success().stdout
    };
    let expected = "rows = 5\nt = 6.0\ns = 0.0\nu = 14.0\n";
    for sites in ["1", "3"] {
        assert_eq!(said(&[all, "--sites", sites]), expected);
        let both = [heads, "--weights", "w.safetensors::a", "--sites", sites];
        assert_eq!(said(&both), expected);
    }
    // A plan takes sizes from the same file.
    let plan = start(&["plan", "other.ein", "--weights", all]).success();
    assert!(plan.stdout.contains("f32[5, 4]"), "{plan}");
    let some = said(&[heads, "--dim", "D=3"]);
    assert_eq!(some, "rows = 3\nt = 6.0\ns = 12.0\nu = 14.0\n");
    let wrong = |weights: &str, says: &[&str]| {
        let arguments = [
            "run",
            "other.ein",
            "--dim",
            "D=5",
            "--dim",
            "K=4",
            "--weights",
            weights,
        ];
        start(&arguments).fails_with(1).says(says);
    };
    let none = ["E0706", "nothing in it is called `z*`", "it holds a, head"];
    wrong("w.safetensors::z*", &none);
    write(
        "last.ein",
        &format!("{first}param tail: f32[2] = 7\n{train}output tail\n"),
    );
    let arguments = ["run", "last.ein", "--weights"];
    start(&[&arguments[..], &["w.safetensors::*"]].concat()).success();
    write("third.ein", "param tail: f32[2] = 7\noutput tail\n");
    start(&["run", "third.ein", "--weights", heads])
        .fails_with(1)
        .says(&[
            "E0706",
            "is no param of the program",
            "it holds head; the program has tail",
        ]);
    write("none.ein", "input x: f64[2] = 1\noutput x\n");
    let says = [
        "E0706",
        "nothing in it is a param of the program",
        "it holds a, head; the program has no params",
    ];
    start(&["run", "none.ein", "--weights", "w.safetensors"])
        .fails_with(1)
        .says(&says);
    let missing = ["run", "more.ein", "--weights", "w.safetensors"];
    let more = "param tail: f32[2] = 7\nloss = sum[i,j] a[i,j]^2 + sum[j] (head[j] + tail[0])\n";
    let block = "train { loss: loss; steps: 1; optimizer: sgd(lr: 0.5) }\noutput tail\n";
    write("more.ein", &format!("{first}{more}{block}"));
    start(&missing)
        .fails_with(1)
        .says(&["E0706", "holds no param `tail`", "FILE::NAMES"]);
    start(&["run", "more.ein", "--weights", all]).success();
}
