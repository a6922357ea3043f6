//! The MPI shims: those that were built with this compiler, and the means to build one later.
//!
//! The sources of the shim travel in einc, so that `einc doctor --fix` needs no copy of the repository. Must not know where a
//! shim is kept or who opens it.
//!
//! ```text
//! embedded() -> [("openmpi", 412 kB)]      build("mpich", "mpicc.mpich", folder) -> 405 kB
//! ```

mod compile;

pub use compile::installed;

use std::{fs, io, path::Path};

/// The name of a shim and the bytes of its shared library.
type Embedded = (&'static str, &'static [u8]);

/// `SHIMS: &[Embedded]` and `MANIFEST: &str`, the manifest of a workspace that holds the shim's crate alone.
mod generated {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The files that the shim's crate is compiled of, at the places that they have in the repository.
const SOURCES: [(&str, &str); 6] = [
    ("Cargo.toml", generated::MANIFEST),
    ("Cargo.lock", include_str!("../../../../Cargo.lock")),
    (
        "runtime/comm/mpi/Cargo.toml",
        include_str!("../../../../runtime/comm/mpi/Cargo.toml"),
    ),
    (
        "runtime/comm/mpi/src/lib.rs",
        include_str!("../../../../runtime/comm/mpi/src/lib.rs"),
    ),
    (
        "runtime/comm/mpi/src/patient.rs",
        include_str!("../../../../runtime/comm/mpi/src/patient.rs"),
    ),
    (
        "runtime/comm/src/mpi/table.rs",
        include_str!("../../../../runtime/comm/src/mpi/table.rs"),
    ),
];

/// Returns the shims that were built with this compiler.
pub fn embedded() -> &'static [Embedded] {
    generated::SHIMS
}

/// Builds the shim for the MPI of a compiler wrapper in a temporary folder and returns the bytes of its library. What cargo
/// compiles goes to `target`, or to that temporary folder too.
///
/// # Errors
/// The failure, as cargo or the system describes it.
pub fn build(wrapper: &str, target: Option<&Path>) -> Result<Vec<u8>, String> {
    let folder = tempfile::Builder::new()
        .prefix("einc-mpi-")
        .tempdir()
        .map_err(|error| format!("there is no place for a temporary folder: {error}"))?;
    let root = folder.path();
    write_sources(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let beside = root.join("target");
    let library = compile::compile(root, wrapper, target.unwrap_or(&beside), &[])?;
    fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))
}

fn write_sources(root: &Path) -> io::Result<()> {
    for (path, text) in SOURCES {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
