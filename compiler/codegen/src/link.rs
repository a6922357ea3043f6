//! Linking: the object and the launcher become an executable.
//!
//! Works in a temporary folder beside the output, which is replaced in one go at the end. Must not know what
//! is linked.
//!
//! ```text
//! cc program.o launch.o -ldl … -Wl,--gc-sections -s -o .einc-a1b2c3/model && mv … ./model
//! ```

use einc_diag::Diagnostic;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// What the Rust standard library in the launcher needs of the system, and what keeps the result small.
const FLAGS: [&str; 9] = [
    "-ldl",
    "-lgcc_s",
    "-lutil",
    "-lrt",
    "-lpthread",
    "-lm",
    "-lc",
    "-Wl,--gc-sections",
    "-s",
];

/// Links with the C compiler of the variable `CC`, else `cc`.
///
/// # Errors
/// E0901 no C compiler; E0902 the link failed; E0903 the output cannot be written; E0904 no space left.
pub fn executable(object: &[u8], launcher: &[u8], output: &Path) -> Result<(), Diagnostic> {
    if output.is_dir() {
        return Err(Diagnostic::error(
            "E0903",
            format!("cannot write {}: it is a folder", output.display()),
        )
        .help("name the result with `-o FILE`"));
    }
    let name = output.file_name().ok_or_else(|| {
        Diagnostic::error(
            "E0903",
            format!("`{}` does not name a file", output.display()),
        )
    })?;
    let folder = match output.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    // That something can be written there is known before the link.
    let beside = || {
        tempfile::Builder::new()
            .prefix(".einc-")
            .tempdir_in(&folder)
            .map_err(|error| unwritable(output, &error))
    };
    drop(beside()?);
    let scratch = tempfile::Builder::new()
        .prefix("einc-")
        .tempdir()
        .map_err(|error| unwritable(&std::env::temp_dir(), &error))?;
    let inputs = [("program.o", object), ("launch.o", launcher)];
    for (name, bytes) in inputs {
        let path = scratch.path().join(name);
        fs::write(&path, bytes).map_err(|error| unwritable(&path, &error))?;
    }
    let linked = scratch.path().join("linked");
    let compiler = std::env::var_os("CC")
        .filter(|name| !name.is_empty())
        .unwrap_or("cc".into());
    let result = Command::new(&compiler)
        .args(inputs.map(|(name, _)| scratch.path().join(name)))
        .args(FLAGS)
        .arg("-o")
        .arg(&linked)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| no_compiler(&compiler.to_string_lossy(), &error))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        if said.contains("No space left") {
            return Err(full(output));
        }
        return Err(Diagnostic::error(
            "E0902",
            format!(
                "`{}` could not link the program",
                compiler.to_string_lossy()
            ),
        )
        .note(said.trim()));
    }
    let beside = beside()?;
    let whole = beside.path().join(name);
    fs::copy(&linked, &whole)
        .and_then(|_| fs::rename(&whole, output))
        .map_err(|error| unwritable(output, &error))
}

fn no_compiler(compiler: &str, error: &io::Error) -> Diagnostic {
    let diagnostic = if error.kind() == io::ErrorKind::NotFound {
        Diagnostic::error(
            "E0901",
            format!("there is no C compiler `{compiler}` to link with"),
        )
    } else {
        Diagnostic::error(
            "E0901",
            format!("the C compiler `{compiler}` cannot be started: {error}"),
        )
    };
    diagnostic
        .help("install one: `apt-get install gcc` (Debian, Ubuntu), `dnf install gcc` (Fedora)")
        .help("or run the program without building it: `einc run`")
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(path),
        io::ErrorKind::NotFound => Diagnostic::error(
            "E0903",
            format!("cannot write {}: its folder does not exist", path.display()),
        ),
        _ => Diagnostic::error("E0903", format!("cannot write {}: {error}", path.display())),
    }
}

fn full(path: &Path) -> Diagnostic {
    Diagnostic::error(
        "E0904",
        format!("no space is left on the disk for {}", path.display()),
    )
    .help("free some space; nothing was replaced")
    .help("the variable TMPDIR says where temporary files go")
}
