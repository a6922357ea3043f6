//! Compiled units on disk, in the user's cache folder: `einc/kernels` in `$XDG_CACHE_HOME`, which is `~/.cache` if it is not set.
//!
//! A file is named by a hash, and holds the text and the compiler that its image is of, which are compared whole, and a checksum. A file that
//! is damaged, of another text or another compiler counts as none; one that cannot be written is not there the next time. Must not know
//! how a unit is compiled.
//!
//! ```text
//! 5f2c….unit: "einc kernels 1", compiler NVRTC 12.9 for sm_90, text, image, checksum
//! ```

use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// First bytes of a file. The number changes with its layout.
const HEADER: &[u8] = b"einc kernels 1\n";
/// The most files that are kept; the oldest are removed.
const MOST: usize = 2000;
/// Bytes of a checksum.
const CHECKSUM: usize = 32;

/// A unit: the compiler, its version and the architecture in words, and the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit<'a> {
    pub compiler: &'a str,
    pub text: &'a str,
}

/// A folder of compiled units.
#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

impl Cache {
    /// The user's; `None` if the environment names no folder of the user's.
    pub fn of_user() -> Option<Cache> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let folder = match set("XDG_CACHE_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(&set("HOME")?).join(".cache"),
        };
        Some(Cache(folder.join("einc/kernels")))
    }

    /// The image of a unit, if there is a good one.
    pub fn get(&self, unit: Unit<'_>) -> Option<Vec<u8>> {
        let all = fs::read(self.path(unit)).ok()?;
        let (body, checksum) = all.split_at_checked(all.len().checked_sub(CHECKSUM)?)?;
        let image = body.strip_prefix(&unit.head()[..])?;
        (Sha256::digest(body)[..] == *checksum).then(|| image.to_vec())
    }

    /// Keeps the image of a unit.
    pub fn put(&self, unit: Unit<'_>, image: &[u8]) {
        // Another process may write the same file: the last one to be done wins, and both are good.
        let written = || -> std::io::Result<()> {
            fs::create_dir_all(&self.0)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            let body = [&unit.head(), image].concat();
            file.write_all(&body)?;
            file.write_all(&Sha256::digest(&body))?;
            file.persist(self.path(unit))?;
            self.remove_oldest()
        };
        // Without the file the unit is compiled again the next time.
        let _ = written();
    }

    fn path(&self, unit: Unit<'_>) -> PathBuf {
        let hash = Sha256::digest(unit.head());
        let name: String = hash
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.0.join(name + ".unit")
    }

    fn remove_oldest(&self) -> std::io::Result<()> {
        let mut files = vec![];
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
        files.sort();
        let surplus = files.len().saturating_sub(MOST);
        files
            .into_iter()
            .take(surplus)
            .try_for_each(|(_, path)| fs::remove_file(path))
    }
}

impl Unit<'_> {
    /// The bytes in front of the image, which tell the unit from all others.
    fn head(&self) -> Vec<u8> {
        let length = |text: &str| (text.len() as u64).to_le_bytes();
        let (compiler, text) = (self.compiler, self.text);
        [
            HEADER,
            &length(compiler),
            compiler.as_bytes(),
            &length(text),
            text.as_bytes(),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const UNIT: Unit<'_> = Unit {
        compiler: "NVRTC 12.9 for sm_90",
        text: "void k0() {}",
    };

    #[test]
    fn an_image_is_found_again_for_its_own_unit_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache(folder.path().join("new"));
        assert_eq!(cache.get(UNIT), None);
        cache.put(UNIT, b"image");
        assert_eq!(cache.get(UNIT).unwrap(), b"image");
        let others = [
            Unit {
                compiler: "NVRTC 13.0 for sm_90",
                ..UNIT
            },
            Unit {
                text: "void k1() {}",
                ..UNIT
            },
        ];
        for other in others {
            assert_eq!(cache.get(other), None);
            // Not even under its own name.
            fs::copy(cache.path(UNIT), cache.path(other)).unwrap();
            assert_eq!(cache.get(other), None);
        }
    }

    #[test]
    fn a_damaged_file_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache(folder.path().to_owned());
        cache.put(UNIT, b"image");
        let all = fs::read(cache.path(UNIT)).unwrap();
        for at in 0..all.len() {
            let mut damaged = all.clone();
            damaged[at] ^= 1;
            fs::write(cache.path(UNIT), &damaged).unwrap();
            assert_eq!(cache.get(UNIT), None, "byte {at}");
            fs::write(cache.path(UNIT), &all[..at]).unwrap();
            assert_eq!(cache.get(UNIT), None, "cut at {at}");
        }
        // It is replaced.
        cache.put(UNIT, b"other");
        assert_eq!(cache.get(UNIT).unwrap(), b"other");
    }

    #[test]
    fn the_oldest_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache(folder.path().to_owned());
        let old = std::time::SystemTime::UNIX_EPOCH;
        for number in 0..MOST {
            let file = fs::File::create(folder.path().join(format!("{number}.unit"))).unwrap();
            file.set_modified(old + std::time::Duration::from_secs(number as u64))
                .unwrap();
        }
        cache.put(UNIT, b"image");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST);
        assert!(!folder.path().join("0.unit").exists() && folder.path().join("1.unit").exists());
        assert!(cache.get(UNIT).is_some());
    }
}
