//! From an encoded bundle to an executable: an object file, linked with the embedded launcher.
//!
//! No rustc and no cargo is needed for this, only a C compiler as linker. Must not know what a bundle holds.
//!
//! ```text
//! bundle.bin -> object with `main` -> cc object launch.o -> ./model
//! ```

pub mod link;
pub mod object;

use ein_fused::Group;
use einc_diag::Diagnostic;
use flate2::read::ZlibDecoder;
use std::{io::Read, path::Path};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The MPI shims that were built with this compiler: name of the MPI, bytes of the shared library.
pub fn shims() -> &'static [(&'static str, &'static [u8])] {
    embedded::SHIMS
}

/// Writes an executable that hands `bundle` and the code of `groups` to the launcher; an existing file of that name is replaced only when
/// the new one is complete.
///
/// # Errors
/// E09xx: no C compiler, a failed link, an output that cannot be written, a full disk.
pub fn build(bundle: &[u8], groups: &[Group], output: &Path) -> Result<(), Diagnostic> {
    let shims = postcard::to_stdvec(embedded::SHIMS)
        .map_err(|error| Diagnostic::error("E0902", format!("encoding failed: {error}")))?;
    let object = object::main(bundle, &shims, groups)?;
    let mut launcher = vec![];
    ZlibDecoder::new(embedded::LAUNCHER)
        .read_to_end(&mut launcher)
        .map_err(|error| Diagnostic::error("E0902", format!("unpacking failed: {error}")))?;
    link::executable(&object, &launcher, output)
}
