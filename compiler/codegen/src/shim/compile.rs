//! Compiles the MPI shim with cargo: in einc's own build, and for `einc doctor --fix`.
//!
//! einc's build script contains this file too, so it uses the standard library alone. Must not know where a shim is kept
//! or who opens it.
//!
//! ```text
//! compile(root, mpicc.openmpi, target/ein-mpi-openmpi) -> target/ein-mpi-openmpi/release/libein_mpi.so
//! ```

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// The MPIs that a shim can be built for: the name of the shim and the compiler wrapper of the MPI's development files.
/// The last one is for a machine that has neither of the others.
const WRAPPERS: [(&str, &str); 3] = [
    ("openmpi", "mpicc.openmpi"),
    ("mpich", "mpicc.mpich"),
    ("mpi", "mpicc"),
];

/// The library that cargo makes of the shim's crate.
const LIBRARY: &str = "libein_mpi.so";

/// Returns the MPIs whose development files are installed here: the names of their shims, and their compiler wrappers.
pub fn installed() -> Vec<(&'static str, &'static str)> {
    let mut found = WRAPPERS.to_vec();
    found.retain(|(_, wrapper)| in_path(wrapper).is_some());
    if found.len() > 1 {
        found.retain(|(name, _)| *name != "mpi");
    }
    found
}

/// Returns the first file of that name in the folders of PATH.
pub fn in_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Compiles the package `ein-mpi` of the workspace in `root` for the MPI of `wrapper`, in the folder `target`, and returns the
/// path of the library. `arguments` are further ones for cargo.
///
/// # Errors
/// The lines of cargo's output that say what failed.
pub fn compile(
    root: &Path,
    wrapper: &str,
    target: &Path,
    arguments: &[&str],
) -> Result<PathBuf, String> {
    let mut command = Command::new(cargo());
    for (name, _) in env::vars_os() {
        if of_an_outer_build(&name.to_string_lossy()) {
            command.env_remove(&name);
        }
    }
    command
        .args(["build", "--release", "-p", "ein-mpi"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(arguments)
        .arg("--target-dir")
        .arg(target)
        .current_dir(root)
        .env("MPICC", wrapper);
    let output = command
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let (messages, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if !output.status.success() {
        return Err(what_failed(&errors));
    }
    library_in(&messages).ok_or_else(|| format!("cargo made no {LIBRARY}"))
}

/// Returns the cargo of the build that this process is part of, else that of PATH.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Says of a variable whether it describes a build that this process is part of: its package, profile and wrappers are not the shim's.
fn of_an_outer_build(name: &str) -> bool {
    let kept = [
        "CARGO_NET",
        "CARGO_HTTP",
        "CARGO_REGISTR",
        "CARGO_SOURCE",
        "CARGO_HOME",
        "CARGO_MAKEFLAGS",
    ];
    let outer = ["CARGO", "DEP_", "RUSTFLAGS", "RUSTDOCFLAGS", "RUSTC_"];
    let exact = ["CLIPPY_ARGS", "MPICC", "OPT_LEVEL", "PROFILE", "DEBUG"];
    let begins = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
    (begins(&outer) && !begins(&kept)) || exact.contains(&name)
}

/// Returns the path of the library in cargo's messages. A path with a quotation mark or a backslash is not found.
fn library_in(messages: &str) -> Option<PathBuf> {
    let end = messages.find(&format!("{LIBRARY}\""))? + LIBRARY.len();
    let start = messages[..end].rfind('"')? + 1;
    Some(PathBuf::from(&messages[start..end]))
}

/// Returns the lines of cargo's output that begin with `error`, with the causes and the messages of build scripts behind them.
fn what_failed(errors: &str) -> String {
    let cause = |line: &str| {
        let line = line.trim_start();
        line.starts_with("error")
            || line.starts_with("Caused by")
            || line.contains("panicked at")
            || line.contains("Unable to find libclang")
    };
    let lines: Vec<&str> = errors.lines().filter(|line| cause(line)).collect();
    match lines.is_empty() {
        true => errors.trim().to_owned(),
        false => lines.join("\n"),
    }
}
