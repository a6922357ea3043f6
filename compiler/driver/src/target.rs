//! Files that are written beside a program's outputs: a trace, records, a plan, an executable. None takes the place of what is read.
//!
//! Must not know what is written into them.
//!
//! ```text
//! --profile model.ein   ->   E0705: `--profile` would write over model.ein, which is a program
//! ```

use ein_plan::FileRef;
use einc_diag::Diagnostic;
use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Looks whether `flag` may write to a path: it is no program, and not the data of any of `inputs`.
///
/// # Errors
/// E0705.
pub fn check(
    flag: &str,
    path: &Path,
    inputs: &BTreeMap<String, FileRef>,
) -> Result<(), Diagnostic> {
    let Ok(target) = fs::canonicalize(path) else {
        // Nothing is there.
        return Ok(());
    };
    let is_target = |file: &FileRef| fs::canonicalize(&file.path).is_ok_and(|file| file == target);
    let what = match inputs.iter().find(|(_, file)| is_target(file)) {
        Some((name, _)) => format!("the data of `{name}`"),
        None if std::env::current_exe().is_ok_and(|own| own == target) => "what is running".into(),
        None if target.extension().is_some_and(|ending| ending == "ein") => "a program".into(),
        None => return Ok(()),
    };
    let message = format!(
        "`{flag}` would write over {}, which is {what}",
        path.display()
    );
    Err(Diagnostic::error("E0705", message).help("name another file"))
}

/// Checks a file that is put in place as a whole: if something is there, it is a regular file. Returns its path, of a link the path of
/// what it leads to.
///
/// # Errors
/// E0705.
pub fn whole(
    flag: &str,
    path: &Path,
    inputs: &BTreeMap<String, FileRef>,
) -> Result<PathBuf, Diagnostic> {
    check(flag, path, inputs)?;
    let Ok(about) = fs::metadata(path) else {
        return Ok(path.to_owned());
    };
    // Folders have messages of their own, where they are written.
    if let Some(kind) = special(about.file_type()) {
        let message = format!("cannot write {}: it is {kind}, not a file", path.display());
        return Err(Diagnostic::error("E0705", message).help(format!("name a file: `{flag} FILE`")));
    }
    Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

fn special(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_read_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["p.ein", "a.npy", "old.json"] {
            fs::write(at(name), "text").unwrap();
        }
        std::os::unix::fs::symlink(at("p.ein"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("old.json"), at("other")).unwrap();
        let file = FileRef {
            path: at("a.npy").display().to_string(),
            key: None,
        };
        let inputs = BTreeMap::from([("A".to_owned(), file)]);
        let said = |name: &str| match whole("-o", &at(name), &inputs) {
            Ok(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
            Err(error) => error
                .message
                .replace(&folder.path().display().to_string(), "here"),
        };
        assert_eq!(
            said("p.ein"),
            "`-o` would write over here/p.ein, which is a program"
        );
        assert_eq!(
            said("link"),
            "`-o` would write over here/link, which is a program"
        );
        assert_eq!(
            said("a.npy"),
            "`-o` would write over here/a.npy, which is the data of `A`"
        );
        assert_eq!(said("other"), "old.json");
        assert_eq!(said("new.json"), "new.json");
        let device = whole("-o", Path::new("/dev/null"), &inputs).unwrap_err();
        assert_eq!(
            device.message,
            "cannot write /dev/null: it is a device, not a file"
        );
    }
}
