//! The `einc` command as a user meets it: what it prints, where, and its exit status.
//!
//! Values that programs compute are tested elsewhere; here the programs are as small as they can be.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

struct Said {
    status: i32,
    out: String,
    err: String,
}

impl Said {
    #[track_caller]
    fn status(self, status: i32) -> Said {
        assert_eq!(
            self.status, status,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    #[track_caller]
    fn err(self, parts: &[&str]) -> Said {
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in:\n{}", self.err);
        }
        self
    }

    #[track_caller]
    fn out(self, parts: &[&str]) -> Said {
        for part in parts {
            assert!(self.out.contains(part), "no {part:?} in:\n{}", self.out);
        }
        self
    }
}

/// Runs a command to its end. A program that this process has just written cannot start while the child of another test, forked a moment
/// ago, still holds the file open for writing (until its own `exec`): such a start is tried again.
fn finish(command: &mut Command) -> Said {
    let mut tries = 0..100;
    let output = loop {
        match command.output() {
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy && tries.next().is_some() => {
                std::thread::sleep(Duration::from_millis(20));
            }
            output => break output.unwrap(),
        }
    };
    Said {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn with(name: &str, text: &str) -> Desk {
        let desk = Desk::new();
        desk.file(name, text);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, program: impl AsRef<Path>, words: &str) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .args(words.split_whitespace())
            .current_dir(self.0.path());
        command
    }

    fn einc(&self, words: &str) -> Said {
        finish(&mut self.command(env!("CARGO_BIN_EXE_einc"), words))
    }
}

const ADD: &str = "\
/// Adds one.
dim N = 3
input x: f32[N] = iota
const step = 1
y[i] = x[i] + step
output y
";

#[test]
fn help_has_examples_and_no_verb_is_usage() {
    let desk = Desk::new();
    desk.einc("--help")
        .status(0)
        .out(&["einc run model.ein", "Exit status", "check", "doctor"]);
    desk.einc("").status(2);
    desk.einc("run").status(2).err(&["FILE.ein"]);
    desk.einc("chek x.ein").status(2).err(&["'check'"]);
    desk.einc("run --help")
        .status(0)
        .out(&["--sites", "--deterministic", "mpirun"]);
}

#[test]
fn check_is_silent_on_what_is_right_and_names_the_place_of_what_is_wrong() {
    let desk = Desk::with("add.ein", ADD);
    let said = desk.einc("check add.ein").status(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    desk.file("bad.ein", "input x: f32[3]\ny[i] = x[i] + z[i]\noutput y\n");
    let said = desk
        .einc("check bad.ein")
        .status(1)
        .err(&["bad.ein:2:15", "`z`", "^"]);
    assert_eq!(said.out, "");
    assert!(!said.err.contains('\x1b'), "colours in a pipe");
}

#[test]
fn json_is_one_object_a_line() {
    let desk = Desk::with(
        "bad.ein",
        "input x: f32[3]\ny[i] = x[i] + z[i]\nw[i] = x[i] + v[i]\noutput y\n",
    );
    let said = desk.einc("check bad.ein --format json").status(1);
    let lines: Vec<serde_json::Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["severity"], "error");
    assert_eq!(lines[0]["labels"][0]["line"], 2);
    assert_eq!(lines[1]["labels"][0]["line"], 3);
    assert!(lines[0]["code"].as_str().unwrap().starts_with('E'));
    assert_eq!(said.err, "");
}

#[test]
fn files_that_cannot_be_read() {
    let desk = Desk::with("matmul.ein", ADD);
    desk.einc("check matmu.ein")
        .status(1)
        .err(&["matmu.ein", "did you mean matmul.ein?"]);
    desk.einc("check matmul")
        .status(1)
        .err(&["did you mean matmul.ein?"]);
    desk.einc("run nowhere/x.ein")
        .status(1)
        .err(&["nowhere/x.ein"]);
    fs::write(desk.path("latin.ein"), b"// caf\xe9\n").unwrap();
    desk.einc("check latin.ein")
        .status(1)
        .err(&["E0191", "line 1, byte 6"]);
    desk.einc("check .").status(1).err(&["E0190"]);
}

#[test]
fn imports() {
    let desk = Desk::with(
        "main.ein",
        "use \"lib/a.ein\"\ninput x: f32[2] = ones\ny[i] = a.f(x[i])\noutput y\n",
    );
    fs::create_dir(desk.path("lib")).unwrap();
    desk.file("lib/a.ein", "use \"b.ein\"\nfn f(x) = b.g(x) + 1\n");
    desk.file("lib/b.ein", "fn g(x) = 2 * x\n");
    desk.einc("check main.ein").status(0);
    desk.file("lib/b.ein", "use \"../lib/a.ein\"\nfn g(x) = 2 * x\n");
    desk.einc("check main.ein")
        .status(1)
        .err(&["E0591", "lib/a.ein", "lib/b.ein"]);
    desk.file("lib/b.ein", "use \"c.ein\"\nfn g(x) = 2 * x\n");
    desk.einc("check main.ein")
        .status(1)
        .err(&["E0590", "lib/b.ein:1:5", "c.ein"]);
    desk.file("lib/b.ein", "use std.mm\nfn g(x) = 2 * x\n");
    desk.einc("check main.ein")
        .status(1)
        .err(&["E0592", "std.mm", "std.nn"]);
}

#[test]
fn names_on_the_command_line_are_looked_up() {
    let desk = Desk::with("add.ein", ADD);
    desk.einc("check add.ein --dim M=4")
        .status(2)
        .err(&["E0711", "it has: N"]);
    desk.einc("check add.ein --set stop=4")
        .status(2)
        .err(&["did you mean `--set step=…`?"]);
    desk.einc("check add.ein --input q=4.npy")
        .status(2)
        .err(&["input `q`"]);
    desk.einc("run add.ein --save q=4.npy")
        .status(2)
        .err(&["definition `q`"]);
    desk.einc("check add.ein --dim N=x")
        .status(2)
        .err(&["`x` is not a whole number"]);
    desk.einc("run add.ein --sites 0").status(2);
}

#[test]
fn run_prints_and_takes_values() {
    let desk = Desk::with("add.ein", ADD);
    desk.einc("run add.ein")
        .status(0)
        .out(&["y", "1", "2", "3"]);
    desk.einc("run add.ein --set step=10 --dim N=2 --sites 3")
        .status(0)
        .out(&["10", "11"]);
    desk.einc("run add.ein --save y=y.npy").status(0);
    let saved = fs::read(desk.path("y.npy")).unwrap();
    assert!(saved.starts_with(b"\x93NUMPY"));
    assert!(saved.ends_with(&[1.0f32, 2.0, 3.0].map(f32::to_le_bytes).concat()));
    desk.file(
        "sum.ein",
        "dim N\ninput x: f32[N]\ns = sum[i] x[i]\noutput s\n",
    );
    desk.einc("run sum.ein")
        .status(1)
        .err(&["E0710", "--input x=FILE", "sum.ein:2:7"]);
    desk.einc("run sum.ein --input x=y.npy")
        .status(0)
        .out(&["s = 6"]);
    desk.einc("run sum.ein --input x=none.npy")
        .status(1)
        .err(&["none.npy"]);
}

#[test]
fn build_makes_a_program_of_its_own() {
    let desk = Desk::with("add.ein", ADD);
    let said = desk.einc("build add.ein").status(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    fs::remove_file(desk.path("add.ein")).unwrap();
    let program = desk.path("add");
    let run = |words: &str| finish(&mut desk.command(&program, words));
    run("").status(0).out(&["1", "2", "3"]);
    run("--sites 2 --dim N=4 --set step=0")
        .status(0)
        .out(&["0", "3"]);
    run("--help")
        .status(0)
        .out(&["Adds one.", "x: f32[N] = iota", "N = 3", "--sites"]);
    run("--dim M=3").status(2).err(&["it has: N"]);
    run("--frobnicate").status(2);
    run("--save y=/proc/nowhere/y.npy")
        .status(1)
        .err(&["/proc/nowhere"]);
    let left: Vec<_> = fs::read_dir(desk.0.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["add"], "nothing else is left behind");
}

#[test]
fn build_needs_a_writable_output() {
    let desk = Desk::with("add.ein", ADD);
    desk.einc("build add.ein -o nowhere/add")
        .status(1)
        .err(&["E0903", "nowhere/add"]);
    desk.einc("build add.ein -o .")
        .status(1)
        .err(&["E0903", "folder"]);
    assert!(!desk.path("add").exists());
}

#[test]
fn a_built_program_needs_no_other_program_and_says_if_it_is_damaged() {
    let desk = Desk::with("add.ein", ADD);
    let mut build = desk.command(env!("CARGO_BIN_EXE_einc"), "build add.ein");
    finish(build.env("PATH", "/nowhere")).status(0);
    let program = desk.path("add");
    let run = |name: &str, words: &str| finish(&mut desk.command(desk.path(name), words));
    // It is the program under any name, and has none of einc's verbs.
    fs::copy(&program, desk.path("einc")).unwrap();
    run("einc", "").status(0).out(&["1", "2", "3"]);
    run("einc", "doctor").status(2);
    let bytes = fs::read(&program).unwrap();
    let damaged = |name: &str, bytes: &[u8]| {
        fs::copy(&program, desk.path(name)).unwrap();
        fs::write(desk.path(name), bytes).unwrap();
        run(name, "").status(1).out(&[])
    };
    damaged("cut", &bytes[..bytes.len() - 1]).err(&["E0905", "bytes", "einc build"]);
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    damaged("changed", &changed).err(&["E0905", "checksum"]);
}

#[test]
fn plan_prints_steps_and_cost() {
    let desk = Desk::with("add.ein", ADD);
    desk.einc("plan add.ein --sites 2")
        .status(0)
        .out(&["add.ein:5"]);
    desk.file(
        "sum.ein",
        "dim N\ninput x: f32[N]\ns = sum[i] x[i]\noutput s\n",
    );
    desk.einc("plan sum.ein").status(1).err(&["`N`"]);
    desk.einc("plan sum.ein --dim N=10").status(0);
}

#[test]
fn fmt_formats_files_and_standard_input() {
    let desk = Desk::with("add.ein", "y[i]=x[i]+1   // one more\n");
    let said = desk.einc("fmt --check add.ein").status(1);
    assert_eq!(said.out, "add.ein\n");
    desk.einc("fmt add.ein").status(0);
    let text = fs::read_to_string(desk.path("add.ein")).unwrap();
    assert!(
        text.starts_with("y[i] = x[i] + 1") && text.contains("// one more"),
        "{text}"
    );
    desk.einc("fmt --check add.ein").status(0);
    let mut child = desk
        .command(env!("CARGO_BIN_EXE_einc"), "fmt")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"y[i]=x[i]+1\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "y[i] = x[i] + 1\n"
    );
    desk.file("bad.ein", "y[i = \n");
    desk.einc("fmt bad.ein").status(1).err(&["bad.ein:1"]);
    assert_eq!(
        fs::read_to_string(desk.path("bad.ein")).unwrap(),
        "y[i = \n"
    );
}

/// Programs of an older version: a scalar in positions of a product, an integer quotient that is f32. The name of a type stays a name.
#[test]
fn fmt_says_what_an_older_version_meant() {
    let old = "input A: f32[3, 3]\ninput u32: i64[3] // u32 here\nconst k = 1\nC[i,j] = A[i,k] * A[k,j]\nhalf[i] = u32[i] / 2 + 1\n\
               output C\noutput half\n";
    let new = "input A: f32[3, 3]\ninput u32: i64[3] // u32 here\nconst k = 1\nC[i,j] = A[i,(k)] * A[(k),j]\nhalf[i] = f32(u32[i] / 2 + 1)\n\
               output C\noutput half\n";
    let desk = Desk::with("old.ein", old);
    desk.einc("check old.ein")
        .status(0)
        .err(&["E0205", "E0402"]);
    desk.einc("fmt --migrate --check old.ein")
        .status(1)
        .out(&["old.ein"]);
    assert_eq!(fs::read_to_string(desk.path("old.ein")).unwrap(), old);
    desk.einc("fmt --migrate old.ein").status(0);
    let text = fs::read_to_string(desk.path("old.ein")).unwrap();
    // The formatter lines up columns.
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plain(&text), plain(new));
    let said = desk.einc("check old.ein").status(0);
    assert_eq!(said.err, "");
    desk.einc("fmt --migrate old.ein").status(0);
    assert_eq!(fs::read_to_string(desk.path("old.ein")).unwrap(), text);
    desk.file("bad.ein", "input u32: f32[3]\ny[i = u32[i]\n");
    desk.einc("fmt --migrate bad.ein")
        .status(1)
        .err(&["bad.ein:2"]);
    assert!(
        fs::read_to_string(desk.path("bad.ein"))
            .unwrap()
            .contains("y[i = u32")
    );
    desk.einc("fmt --migrate").status(2).err(&["FILE.ein"]);
}

#[test]
fn new_makes_a_program_that_runs_and_is_formatted() {
    let desk = Desk::new();
    desk.einc("new knn")
        .status(0)
        .out(&["einc run knn/knn.ein"]);
    desk.einc("fmt --check knn/knn.ein").status(0);
    desk.einc("run knn/knn.ein --dim N=20")
        .status(0)
        .out(&["nearest", "far"]);
    desk.einc("new knn").status(1).err(&["exists already"]);
    desk.einc("new no/where").status(1);
}

/// Tasks of a Slurm step that no MPI connects would all do the same; one of them says so.
#[test]
fn slurms_tasks_need_an_mpi() {
    let desk = Desk::with("add.ein", ADD);
    let task = |number: &str| {
        let mut command = desk.command(env!("CARGO_BIN_EXE_einc"), "run add.ein");
        command.env("SLURM_STEP_NUM_TASKS", "4");
        finish(command.env("SLURM_PROCID", number)).status(1)
    };
    task("0").err(&["E0732", "4 tasks", "srun --mpi=pmix"]);
    let other = task("3");
    assert_eq!((other.out.as_str(), other.err.as_str()), ("", ""));
}

/// Sizes that are legal and larger than any machine's memory.
#[test]
fn memory_that_is_not_there_is_an_error_at_its_statement() {
    let desk = Desk::with("large.ein", "x[i < 100_000_000_000_000] = 1.0\noutput x\n");
    for sites in ["1", "3"] {
        desk.einc(&format!("run large.ein --sites {sites}"))
            .status(1)
            .err(&["E0717", "not enough memory", "large.ein:1:1", "--memory"]);
    }
    desk.file(
        "large.ein",
        "dim N = 1_000_000\ninput A: f64[N, N] = ones\ns = sum[i,j] A[i,j] * A[j,i]\noutput s\n",
    );
    desk.einc("run large.ein")
        .status(1)
        .err(&["E0717", "large.ein:2:7"]);
}

/// A limit on a process's memory, wherever it is met: for a tensor, for what a transform works in, or for a few bytes.
#[test]
fn a_limit_on_memory_ends_with_an_error() {
    let desk = Desk::with(
        "waves.ein",
        "input x: f64[3000017] = uniform(0, 1)\nz = fft(x)\nt = sum[k] re(z[k])\noutput t\n",
    );
    let mut named = 0;
    for limit in (200_000..1_000_000).step_by(50_000) {
        let mut command = desk.command("sh", "");
        let limited = format!("ulimit -v {limit}; exec \"$0\" run waves.ein");
        let finished = finish(command.args(["-c", &limited, env!("CARGO_BIN_EXE_einc")]));
        let finished = finished
            .status(1)
            .err(&["E0717", "not enough memory", "--memory"]);
        named += usize::from(finished.err.contains("waves.ein:2:5"));
    }
    assert!(named > 0, "no limit is met by the transform");
}

#[test]
fn explain_and_doctor_and_completions() {
    let desk = Desk::new();
    desk.einc("explain E0301").status(0).out(&["# E0301"]);
    desk.einc("explain 902").status(0).out(&["# E0902"]);
    desk.einc("explain").status(0).out(&["E0301: ", "E0902: "]);
    desk.einc("explain E9999")
        .status(2)
        .err(&["E9999", "einc explain list"]);
    desk.einc("doctor")
        .status(0)
        .out(&["cores", "memory", "openmpi", "mpich", "GPU"]);
    desk.einc("completions bash").status(0).out(&["einc"]);
    desk.einc("completions tcsh").status(2);
}
