//! `einc doctor`: shows what einc finds on this machine and what to install for what is missing, and builds missing MPI shims.
//!
//! Must not know what the parts are used for.
//!
//! ```text
//! $ einc doctor
//! cores       2
//! openmpi     mpirun.openmpi: mpirun (Open MPI) 4.1.4
//! $ einc doctor --fix
//! openmpi     built ~/.local/share/einc/mpi-3/openmpi.so
//! ```

use clap::Args;
use einc_codegen::shim;
use einc_driver::{arguments::Format, devices, exit, machine, shims};
use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

/// Show what einc finds on this machine, and what to install for what is missing
///
/// With `--fix`, einc builds the shims that connect programs to an MPI, where its development files are installed and the shim is missing.
/// That takes cargo, libclang and a minute. A shim goes to `einc/mpi-3` in `$XDG_DATA_HOME` (`~/.local/share`), where `einc` and built
/// programs look first; `einc build` puts it into what it builds.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc doctor
  einc doctor --fix            builds the shims that are missing
  einc doctor --fix openmpi    builds that one, even if there is one")]
pub struct Arguments {
    /// Build the MPI shims that are missing, or the one of this name
    #[arg(long, value_name = "SHIM", num_args = 0..=1, value_parser = ["openmpi", "mpich", "mpi"])]
    fix: Option<Option<String>>,
}

/// The launchers of the MPIs that shims are built for: name of the shim, commands, Debian's packages.
const MPIS: [(&str, &[&str], &str); 2] = [
    (
        "openmpi",
        &["mpirun.openmpi", "mpirun"],
        "openmpi-bin libopenmpi-dev",
    ),
    ("mpich", &["mpirun.mpich", "mpirun"], "mpich libmpich-dev"),
];

pub fn perform(arguments: Arguments) -> i32 {
    super::look_at_variables(Format::Text);
    match arguments.fix {
        Some(wanted) => fix(wanted.as_deref()),
        None => show(),
    }
}

/// Builds the shims that are missing, or the wanted one, and returns the exit status.
fn fix(wanted: Option<&str>) -> i32 {
    let installed = shim::installed();
    let (mut fixed, mut status) = (vec![], 0);
    for (name, wrapper) in &installed {
        if wanted.map_or(has_shim(name), |wanted| wanted != *name) {
            continue;
        }
        fixed.push(*name);
        exit::complain(&line(name, &format!("building its shim with {wrapper}")));
        let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built = shim::build(wrapper, target.as_deref())
            .and_then(|library| shims::install(name, &library).map_err(|why| why.to_string()));
        match built {
            Ok(path) => exit::say(&line(name, &format!("built {}", path.display()))),
            Err(why) => {
                exit::complain(&(line(name, "its shim does not build:") + &why + "\n" + &needed()));
                status = 1;
            }
        }
    }
    for (name, _, packages) in MPIS {
        let installed = installed
            .iter()
            .any(|(found, _)| [name, "mpi"].contains(found));
        if wanted == Some(name) && !installed {
            exit::complain(
                &(line(name, "its development files are not installed") + &install(packages)),
            );
            status = 1;
        } else if wanted.is_none() && !fixed.contains(&name) && has_shim(name) {
            exit::say(&line(name, "its shim is there"));
        } else if wanted.is_none() && !installed {
            exit::say(&(line(name, "not installed; needed only for mpirun") + &install(packages)));
        }
    }
    status
}

/// Returns whether a shim for that MPI is there: its own, or the one for the only MPI of a machine.
fn has_shim(name: &str) -> bool {
    let user = shims::of_user();
    let embedded = shim::embedded().iter().map(|(shim, _)| *shim);
    let mut shims = embedded.chain(user.keys().map(String::as_str));
    shims.any(|shim| shim == name || shim == "mpi")
}

/// Says which tools build a shim.
fn needed() -> String {
    hint(
        "it takes cargo (https://rustup.rs), libclang (apt-get install libclang-dev) and the crates of crates.io",
    )
}

/// Says how an MPI and its shim come here.
fn install(packages: &str) -> String {
    hint(&format!(
        "apt-get install {packages} libclang-dev, then einc doctor --fix"
    ))
}

/// Prints what einc finds on this machine and returns the exit status.
fn show() -> i32 {
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
    match (found, has_shim(name)) {
        (Some((command, version)), true) => line(name, &format!("{command}: {version}")),
        (Some((command, version)), false) => {
            line(
                name,
                &format!("{command}: {version}; there is no shim for it"),
            ) + &install(packages)
        }
        (None, true) => {
            line(
                name,
                "no launcher here; built programs run under one elsewhere",
            ) + &hint(&format!("apt-get install {packages}"))
        }
        (None, false) => line(name, "not installed; needed only for mpirun") + &install(packages),
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

/// Names the GPUs that `--device gpu` can use, and the libraries that it would miss.
fn gpu() -> String {
    let gpus = match devices::gpus() {
        Err(why) => return line("GPU", &format!("{why}; programs run on the cores")),
        Ok(gpus) => gpus,
    };
    if gpus.is_empty() {
        return line(
            "GPU",
            "the CUDA driver finds none; programs run on the cores",
        );
    }
    let mut all: String = gpus
        .iter()
        .map(|gpu| line("GPU", &gpu.to_string()))
        .collect();
    for missing in devices::gpu_libraries_missing() {
        all += &line("", &missing);
        all += &hint("install the CUDA toolkit, or add the library's folder to LD_LIBRARY_PATH");
    }
    all
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
