//! `einc doctor`: what einc sees of this machine, and what to install for what is missing.
//!
//! Must not know what the parts are used for; it only looks.
//!
//! ```text
//! $ einc doctor
//! cores       2
//! openmpi     mpirun.openmpi: mpirun (Open MPI) 4.1.4
//! ```

use clap::Args;
use einc_driver::{arguments::Format, exit, machine};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// Show what einc finds on this machine, and what to install for what is missing
#[derive(Args)]
pub struct Arguments {}

/// The launchers of the MPIs that shims are built for: name of the shim, commands, Debian's packages.
const MPIS: [(&str, &[&str], &str); 2] = [
    (
        "openmpi",
        &["mpirun.openmpi", "mpirun"],
        "openmpi-bin libopenmpi-dev",
    ),
    ("mpich", &["mpirun.mpich", "mpirun"], "mpich libmpich-dev"),
];

pub fn perform(_: Arguments) -> i32 {
    super::look_at_variables(Format::Text);
    let mut report = format!("einc        {}\n", env!("CARGO_PKG_VERSION"));
    report += &format!("cores       {}\n", cores());
    report += &format!("memory      {}\n", memory());
    for (name, commands, packages) in MPIS {
        report += &mpi(name, commands, packages);
    }
    report += &blas();
    report += &gpu();
    exit::say(&report);
    0
}

fn line(title: &str, text: &str) -> String {
    format!("{title:<11} {text}\n")
}

fn hint(text: &str) -> String {
    line("", &format!("→ {text}"))
}

fn cores() -> String {
    let mine = thread::available_parallelism().map_or(1, usize::from);
    let all = einc_driver::machine::cores();
    if all > mine {
        format!("{all}, of which this process may use {mine}")
    } else {
        mine.to_string()
    }
}

fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gib = |field: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / (1024.0 * 1024.0))
    };
    match (gib("MemTotal:"), gib("MemAvailable:")) {
        (Some(total), Some(free)) => format!("{total:.1} GiB, {free:.1} GiB of it free"),
        _ => "unknown (no /proc/meminfo)".into(),
    }
}

fn mpi(name: &str, commands: &[&str], packages: &str) -> String {
    // Both call themselves mpirun; what it prints says whose it is.
    let found = commands.iter().find_map(|command| {
        let version = version(command)?;
        let open = version.to_lowercase().contains("open mpi") || version.contains("OpenRTE");
        (open == (name == "openmpi")).then_some((*command, version))
    });
    let shim = einc_codegen::shims().iter().any(|(shim, _)| *shim == name);
    match (found, shim) {
        (Some((command, version)), true) => line(name, &format!("{command}: {version}")),
        (Some((command, version)), false) => {
            line(
                name,
                &format!("{command}: {version}; einc was built without support for it"),
            ) + &hint(&format!(
                "apt-get install {packages} libclang-dev, then install einc again"
            ))
        }
        (None, true) => {
            line(
                name,
                "no launcher here; built programs run under one elsewhere",
            ) + &hint(&format!("apt-get install {packages}"))
        }
        (None, false) => {
            line(name, "not installed; needed only for mpirun")
                + &hint(&format!(
                    "apt-get install {packages} libclang-dev, then install einc again"
                ))
        }
    }
}

fn blas() -> String {
    let wanted = env::var(machine::BLAS).unwrap_or_default();
    match (machine::blas(), ein_kernels::blas_in_use()) {
        (Ok(()), Some(name)) => line("BLAS", &format!("{name}, by {}={wanted}", machine::BLAS)),
        (Ok(()), None) => line(
            "BLAS",
            &format!(
                "the built-in one; {}=openblas, blis, mkl or a path chooses a library",
                machine::BLAS
            ),
        ),
        (Err(failure), _) => {
            let why = failure.diagnostics.first().map(|d| d.message.as_str());
            line("BLAS", why.unwrap_or("none"))
                + &hint("apt-get install libopenblas0    (dnf install openblas)")
        }
    }
}

fn gpu() -> String {
    match library("libcuda.so.1") {
        Some(path) => line(
            "GPU",
            &format!(
                "CUDA driver at {}; programs run on the cores",
                path.display()
            ),
        ),
        None => line("GPU", "no CUDA driver; programs run on the cores"),
    }
}

/// A shared library in the usual folders.
fn library(name: &str) -> Option<PathBuf> {
    let listed = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/cuda/lib64",
        "/usr/local/nvidia/lib64",
        "/usr/lib/wsl/lib",
    ];
    env::split_paths(&listed)
        .chain(usual.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| Path::exists(path))
}

/// The first line that `command --version` prints.
fn version(command: &str) -> Option<String> {
    let output = Command::new(command)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    // MPICH's first line is a title; its version stands in the second.
    let second = lines.next().and_then(|line| line.strip_prefix("Version:"));
    Some(second.map_or(first.to_string(), |version| {
        format!("MPICH {}", version.trim())
    }))
}
