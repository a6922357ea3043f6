//! Builds the MPI shims that are embedded: one for each MPI found on this machine.
//!
//! Each is built by a nested run of cargo in a target folder of its own, shared by all profiles, so that it is built once.
//! A shim that cannot be built is a warning: programs then run without that MPI.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The files that a shim is built from.
const INPUTS: [&str; 4] = [
    "Cargo.toml",
    "Cargo.lock",
    "compiler/codegen/build.rs",
    "runtime/comm/mpi",
];

/// The compiler wrappers of the MPIs that are looked for; the last only if there is none of the others.
const WRAPPERS: [(&str, &str); 3] = [
    ("openmpi", "mpicc.openmpi"),
    ("mpich", "mpicc.mpich"),
    ("mpi", "mpicc"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("../..")
        .canonicalize()?;
    for input in INPUTS {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    println!("cargo::rerun-if-env-changed=PATH");
    // An MPI that is installed later puts its wrapper beside the C compiler.
    if let Some(folder) = find("cc").as_deref().and_then(Path::parent) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    let target = out
        .ancestors()
        .nth(4)
        .ok_or("OUT_DIR is not inside a target folder")?;

    let mut table = String::new();
    table.push_str("pub(crate) const SHIMS: &[(&str, &[u8])] = &[\n");
    let mut found = 0;
    for (name, wrapper) in WRAPPERS {
        if find(wrapper).is_none() || (name == "mpi" && found > 0) {
            continue;
        }
        found += 1;
        let folder = target.join(format!("ein-mpi-{name}"));
        let shim = cargo(
            &root,
            &folder,
            &["build", "-p", "ein-mpi"],
            &[("MPICC", wrapper)],
        )
        .and_then(|built| {
            let library = built.join("libein_mpi.so");
            let bytes = fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
            embed(bytes, &out.join(format!("{name}.so")))
        });
        match shim {
            Ok(path) => writeln!(table, "    ({name:?}, include_bytes!({path:?})),")?,
            Err(error) => {
                println!(
                    "cargo::warning=no support for the MPI of {wrapper}: its shim does not build"
                );
                println!("cargo::warning=  {}", error.to_string().replace('\n', " "));
            }
        }
    }
    table.push_str("];\n");
    fs::write(out.join("embedded.rs"), table)?;
    Ok(())
}

/// The first file of that name in the folders of PATH.
fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Runs cargo in release mode with a target folder of its own and returns the folder of what was built.
fn cargo(
    root: &Path,
    target: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<PathBuf, Box<dyn Error>> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    // What the outer cargo says about this package, profile and wrappers does not hold for the inner one.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let kept = name.starts_with("CARGO_NET")
            || name.starts_with("CARGO_HTTP")
            || name.starts_with("CARGO_REGISTR")
            || name.starts_with("CARGO_SOURCE")
            || ["CARGO_HOME", "CARGO_MAKEFLAGS"].contains(&name.as_str());
        let outer = name.starts_with("CARGO")
            || name.starts_with("DEP_")
            || name.starts_with("RUSTFLAGS")
            || name.starts_with("RUSTDOCFLAGS")
            || name.starts_with("RUSTC_")
            || ["CLIPPY_ARGS", "MPICC", "OPT_LEVEL", "PROFILE", "DEBUG"].contains(&name.as_str());
        if outer && !kept {
            command.env_remove(&name);
        }
    }
    command
        .args(arguments)
        .args(["--release", "--locked", "--target-dir"])
        .arg(target)
        .current_dir(root)
        .envs(variables.iter().copied());
    let (host, triple) = (env::var("HOST")?, env::var("TARGET")?);
    let mut built = target.to_path_buf();
    if host != triple {
        command.args(["--target", &triple]);
        built.push(triple);
    }
    let output = command.output()?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        let errors: Vec<_> = String::from_utf8_lossy(&output.stderr)
            .lines()
            .filter(|line| line.starts_with("error"))
            .map(str::to_string)
            .collect();
        return Err(format!("cargo {}: {}", arguments.join(" "), errors.join("; ")).into());
    }
    Ok(built.join("release"))
}

/// Writes a file for `include_bytes!`, only if it differs, so that an unchanged one does not cause a build.
fn embed(new: Vec<u8>, to: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if fs::read(to).ok().as_ref() != Some(&new) {
        fs::write(to, new)?;
    }
    Ok(to.to_path_buf())
}
