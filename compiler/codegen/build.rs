//! Builds the MPI shims that are embedded: one for each MPI whose development files are found on this machine.
//!
//! Each is built by a nested run of cargo in a target folder of its own, shared by all profiles, so that it is built once.
//! A shim that cannot be built is a warning: einc then lacks that MPI until `einc doctor --fix` builds it.

#[path = "src/shim/compile.rs"]
mod compile;

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The files that a shim is built from, and that `einc doctor --fix` brings along.
const INPUTS: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    "compiler/codegen/build.rs",
    "compiler/codegen/src/shim/compile.rs",
    "runtime/comm/mpi",
    "runtime/comm/src/mpi/table.rs",
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
    if let Some(folder) = compile::in_path("cc").as_deref().and_then(Path::parent) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    let target = out
        .ancestors()
        .nth(4)
        .ok_or("OUT_DIR is not inside a target folder")?;
    let (host, triple) = (env::var("HOST")?, env::var("TARGET")?);
    let mut arguments = vec!["--locked"];
    if host != triple {
        arguments.extend(["--target", &triple]);
    }

    let mut table = String::new();
    table.push_str("pub(super) const SHIMS: &[super::Embedded] = &[\n");
    for (name, wrapper) in compile::installed() {
        let folder = target.join(format!("ein-mpi-{name}"));
        match compile::compile(&root, wrapper, &folder, &arguments) {
            Ok(library) => {
                let bytes =
                    fs::read(&library).map_err(|e| format!("{}: {e}", library.display()))?;
                let path = embed(bytes, &out.join(format!("{name}.so")))?;
                writeln!(table, "    ({name:?}, include_bytes!({path:?})),")?;
            }
            Err(error) => {
                println!(
                    "cargo::warning=no support for the MPI of {wrapper}: its shim does not build; `einc doctor --fix` can build it later"
                );
                println!("cargo::warning=  {}", error.replace('\n', " "));
            }
        }
    }
    table.push_str("];\n");
    let manifest = manifest(&fs::read_to_string(root.join("Cargo.toml"))?)?;
    writeln!(table, "pub(super) const MANIFEST: &str = {manifest:?};")?;
    fs::write(out.join("embedded.rs"), table)?;
    Ok(())
}

/// Returns the manifest of a workspace that holds the shim's crate alone: the sections of the root's manifest that the crate
/// inherits from, with the dependencies that it has.
fn manifest(root: &str) -> Result<String, String> {
    let section = |header: &str| {
        let (_, behind) = root
            .split_once(&format!("\n{header}\n"))
            .ok_or_else(|| format!("the root's Cargo.toml has no {header}"))?;
        let lines = behind.lines().take_while(|line| !line.starts_with('['));
        Ok::<_, String>(lines.map(|line| format!("{line}\n")).collect::<String>())
    };
    let mpi = section("[workspace.dependencies]")?;
    let mpi = mpi
        .lines()
        .find(|line| line.starts_with("mpi = "))
        .ok_or("the root's Cargo.toml does not name the crate mpi")?;
    let inherited = ["[workspace.package]", "[workspace.lints.rust]"];
    let inherited = inherited
        .iter()
        .map(|header| Ok(format!("{header}\n{}", section(header)?)))
        .collect::<Result<String, String>>()?;
    Ok(format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"runtime/comm/mpi\"]\n\n{inherited}\
         [workspace.dependencies]\n{mpi}\n\n[profile.release]\nstrip = \"debuginfo\"\n"
    ))
}

/// Writes a file for `include_bytes!`, only if it differs, so that an unchanged one does not cause a build.
fn embed(new: Vec<u8>, to: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if fs::read(to).ok().as_ref() != Some(&new) {
        fs::write(to, new)?;
    }
    Ok(to.to_path_buf())
}
