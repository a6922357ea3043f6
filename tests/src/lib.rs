//! What the end-to-end tests share: running `einc` and built programs, and small tensors in files.
//!
//! Must not know the compiler's or the run time's insides: the tests see what a user sees. Tensors are read
//! and written with `npyz` and compared in `f64`.
//!
//! ```text
//! einc(&["run", "examples/matmul.ein", "--sites", "3"]).success().stdout
//! ```

pub mod everywhere;
pub mod front_end;

use std::io::{BufReader, BufWriter};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is in the root")
        .to_path_buf()
}

/// What a finished process said.
#[derive(Debug)]
pub struct Finished {
    /// The command line, for messages.
    pub command: String,
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Asserts exit status 0.
    #[track_caller]
    pub fn success(self) -> Finished {
        self.fails_with(0)
    }

    /// Asserts an exit status.
    #[track_caller]
    pub fn fails_with(self, status: i32) -> Finished {
        assert_eq!(self.status, Some(status), "{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
        self
    }

    /// Asserts that standard error has every one of these texts.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Finished {
        for text in texts {
            assert!(self.stderr.contains(text), "expected {text:?} in:\n{self}");
        }
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "$ {}\nstatus {:?}\n--- stdout\n{}--- stderr\n{}",
            self.command, self.status, self.stdout, self.stderr
        )
    }
}

/// How long a command of a test may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a command to its end. One that does not come to it in ten minutes is killed, with what it started, and fails the test.
pub fn run(command: &mut Command) -> Finished {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let group = format!("-{}", child.id());
    let (ended, waits) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            let mut kill = Command::new("kill");
            kill.args(["-KILL", "--", &group])
                .status()
                .expect("`kill` is part of every system");
        }
        late
    });
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("a child that was started");
    drop(ended);
    let finished = Finished {
        command: format!("{command:?}"),
        status: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    };
    let late = watch.join().expect("the watch does not panic");
    assert!(!late, "killed after {PATIENCE:?}:\n{finished}");
    finished
}

/// The `einc` that was built together with these tests.
pub fn einc_path() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("target/<profile>/deps/<test>");
    let einc = folder.join("einc");
    assert!(
        einc.exists(),
        "{} is missing: run `cargo test --workspace`",
        einc.display()
    );
    einc
}

/// `einc` with arguments, in the repository's root.
pub fn einc_command<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(einc_path());
    command
        .args(arguments)
        .current_dir(root())
        .env("NO_COLOR", "1");
    command
}

/// Runs `einc` with arguments, in the repository's root.
pub fn einc<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Finished {
    run(&mut einc_command(arguments))
}

/// The MPI launchers on this machine. With `EINC_TEST_MPI=1` both Open MPI and MPICH must be there.
pub fn launchers() -> Vec<&'static str> {
    let found: Vec<_> = ["mpirun.openmpi", "mpirun.mpich"]
        .into_iter()
        .filter(|name| Command::new(name).arg("--version").output().is_ok())
        .collect();
    if std::env::var("EINC_TEST_MPI").is_ok_and(|v| v == "1") {
        assert_eq!(found.len(), 2, "EINC_TEST_MPI=1 and only {found:?} found");
    }
    if found.is_empty() {
        eprintln!("no mpirun here: the MPI half of this test did not run");
    }
    found
}

/// `launcher -n ranks program arguments…`, more ranks than cores allowed.
pub fn mpirun(launcher: &str, ranks: u32, program: &Path) -> Command {
    let mut command = Command::new(launcher);
    command
        .envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
            ("NO_COLOR", "1"),
        ])
        .args(["-n", &ranks.to_string()])
        .arg(program);
    command
}

/// A small tensor in `f64`, whatever it is in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Extents.
    pub shape: Vec<usize>,
    /// Row-major elements.
    pub data: Vec<f64>,
}

impl Tensor {
    /// A tensor made by a function of the row-major number.
    pub fn from_fn(shape: &[usize], f: impl FnMut(usize) -> f64) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: (0..shape.iter().product()).map(f).collect(),
        }
    }

    /// Reproducible values in [-1, 1), rounded to `f32` so that files hold them exactly.
    pub fn noise(shape: &[usize], seed: u64) -> Tensor {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Tensor::from_fn(shape, |_| {
            // A linear congruential step is random enough for test inputs.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(((state >> 40) as f64 / (1u64 << 23) as f64 - 1.0) as f32)
        })
    }

    /// The element at these coordinates.
    pub fn at(&self, position: &[usize]) -> f64 {
        assert_eq!(position.len(), self.shape.len());
        let mut number = 0;
        for (p, n) in position.iter().zip(&self.shape) {
            assert!(p < n);
            number = number * n + p;
        }
        self.data[number]
    }

    /// Writes `f32` elements.
    pub fn write_f32(&self, path: &Path) {
        write_npy(path, &self.shape, self.data.iter().map(|x| *x as f32));
    }

    /// Writes `f64` elements.
    pub fn write_f64(&self, path: &Path) {
        write_npy(path, &self.shape, self.data.iter().copied());
    }

    /// Writes `i64` elements.
    pub fn write_i64(&self, path: &Path) {
        write_npy(path, &self.shape, self.data.iter().map(|x| *x as i64));
    }

    /// Reads an .npy file of `f32`, `f64`, `u8`, `i32` or `i64`.
    #[track_caller]
    pub fn read(path: &Path) -> Tensor {
        let open = || {
            let file =
                std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            npyz::NpyFile::new(BufReader::new(file))
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let shape = open().shape().iter().map(|n| *n as usize).collect();
        let data = if let Ok(v) = open().into_vec::<f32>() {
            v.into_iter().map(f64::from).collect()
        } else if let Ok(v) = open().into_vec::<f64>() {
            v
        } else if let Ok(v) = open().into_vec::<i32>() {
            v.into_iter().map(f64::from).collect()
        } else if let Ok(v) = open().into_vec::<u8>() {
            v.into_iter().map(f64::from).collect()
        } else {
            open()
                .into_vec::<i64>()
                .expect("f32, f64, u8, i32 or i64")
                .into_iter()
                .map(|x| x as f64)
                .collect()
        };
        Tensor { shape, data }
    }

    /// Asserts equal shapes, and elements within `tolerance` relative to the larger of 1 and the expected one.
    #[track_caller]
    pub fn assert_close(&self, expected: &Tensor, tolerance: f64, what: &str) {
        assert_eq!(self.shape, expected.shape, "{what}: shapes");
        for (n, (x, y)) in self.data.iter().zip(&expected.data).enumerate() {
            let close = (x.is_nan() && y.is_nan())
                || x == y
                || (x - y).abs() <= tolerance * y.abs().max(1.0);
            assert!(close, "{what}: element {n} is {x}, expected {y}");
        }
    }
}

fn write_npy<T: npyz::Serialize + npyz::AutoSerialize>(
    path: &Path,
    shape: &[usize],
    values: impl Iterator<Item = T>,
) {
    use npyz::WriterBuilder;
    let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
    let file = BufWriter::new(std::fs::File::create(path).expect("a temporary folder takes files"));
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&shape)
        .writer(file)
        .begin_nd()
        .expect("a header is written");
    writer.extend(values).expect("elements are written");
    writer.finish().expect("the file is finished");
}
