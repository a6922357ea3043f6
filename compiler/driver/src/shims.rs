//! The MPI shims that a process may open, in the order in which they are tried, and the folder where the user's lie.
//!
//! 1. The user's, which `einc doctor --fix` built on this machine for the MPI that is installed here.
//! 2. The ones that a built program carries: those that its builder had in that folder.
//! 3. The ones that einc was built with.
//!
//! Must not know how a shim is built or what it does.
//!
//! ```text
//! openmpi: ~/.local/share/einc/mpi-3/openmpi.so, then the program's, then einc's own
//! ```

use ein_comm::mpi::{SHIM_VERSION, Shim};
use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

/// A shim that einc was built with: its name and the bytes of its library.
pub type EmbeddedShim = (&'static str, &'static [u8]);

/// Shims by name, with the bytes of their libraries.
pub type ShimsByName = BTreeMap<String, Vec<u8>>;

/// Returns the folder of the user's shims: `einc/mpi-3` in `$XDG_DATA_HOME`, which is `~/.local/share` if it is not set. The number is
/// the version of the interface, so an einc never opens a shim that was built for another one. `None` if there is no home.
pub fn folder() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty());
    let data = data.map(PathBuf::from).or_else(home)?;
    Some(data.join("einc").join(format!("mpi-{SHIM_VERSION}")))
}

/// Reads the shims of the user's folder. A folder or file that cannot be read counts as missing.
pub fn of_user() -> ShimsByName {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten().flatten().map(|e| e.path());
    let shims = paths.filter(|path| path.extension().is_some_and(|ending| ending == "so"));
    let named = shims.filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        Some((name, fs::read(&path).ok()?))
    });
    named.collect()
}

/// Writes a shim to the user's folder and returns its path. An old one of that name is replaced in one go.
///
/// # Errors
/// There is no such folder and none can be made, or the file cannot be written.
pub fn install(name: &str, library: &[u8]) -> io::Result<PathBuf> {
    let none = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            "neither HOME nor XDG_DATA_HOME is set",
        )
    };
    let folder = folder().ok_or_else(none)?;
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.so"));
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&beside, library).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // What is left of a failed attempt helps nobody; the error that counts is the first one.
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| path)
}

/// Returns the shims in the order in which they are tried.
pub(crate) fn in_order<'a>(
    user: &'a ShimsByName,
    carried: &'a ShimsByName,
    embedded: &'a [EmbeddedShim],
) -> Vec<Shim<'a>> {
    let folder = folder().unwrap_or_default();
    let user = user.iter().map(|(name, library)| Shim {
        name: name.clone(),
        origin: folder.join(format!("{name}.so")).display().to_string(),
        library,
    });
    let carried = carried.iter().map(|(name, library)| Shim {
        name: name.clone(),
        origin: "the one in this program".into(),
        library,
    });
    let embedded = embedded.iter().map(|(name, library)| Shim {
        name: (*name).into(),
        origin: "einc's own".into(),
        library,
    });
    user.chain(carried).chain(embedded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_shim_is_tried_first_and_eincs_own_last() {
        let named = |name: &str, bytes: &[u8]| ShimsByName::from([(name.into(), bytes.to_vec())]);
        let (user, carried) = (named("openmpi", b"user"), named("openmpi", b"carried"));
        let embedded: [EmbeddedShim; 2] = [("mpich", b"own"), ("openmpi", b"own")];
        let order = in_order(&user, &carried, &embedded);
        let order: Vec<_> = order.iter().map(|s| (s.name.as_str(), s.library)).collect();
        let expected: [(&str, &[u8]); 4] = [
            ("openmpi", b"user"),
            ("openmpi", b"carried"),
            ("mpich", b"own"),
            ("openmpi", b"own"),
        ];
        assert_eq!(order, expected);
    }
}
