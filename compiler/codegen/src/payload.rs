//! The mark: bytes inside an executable that tell whether a payload follows its end, and where.
//!
//! The mark is a constant of the executable. Its first half is a name that stands nowhere else in the file; its second half says
//! where the payload begins, how long it is, and what its checksum is, all 0 if there is none. A copy of the executable gets its
//! payload by writing over the second half. A tool that takes the payload away (`strip`) leaves the mark, so the loss is noticed.
//! Must not know what a payload means.
//!
//! ```text
//! … "einc: a bundle follows the file." start 34 102 272, length 5310, CRC-32C 0x8a1f… …  end of the file, 5310 bytes
//! ```

use einc_diag::Diagnostic;
use std::{
    fs::File,
    hint::black_box,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Length of the name, in bytes.
const NAME: usize = 32;
/// Length of the three numbers, in bytes: each has eight, the lowest first.
const NUMBERS: usize = 24;

/// The mark of this executable. Everything that looks for the name takes it from here, so that the file has it once.
#[used]
static MARK: [u8; NAME + NUMBERS] = *b"einc: a bundle follows the file.\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The place of a payload in a file, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The offset of its first byte; 0: there is no payload.
    pub start: u64,
    /// Its bytes.
    pub length: u64,
    /// Its CRC-32C.
    pub checksum: u32,
}

impl Extent {
    /// Returns the second half of a mark.
    pub fn numbers(self) -> [u8; NUMBERS] {
        let mut bytes = [0; NUMBERS];
        let numbers = [self.start, self.length, u64::from(self.checksum)];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_numbers(numbers: &[u8]) -> Extent {
        let number = |at: usize| {
            let bytes = numbers[8 * at..][..8].iter().rev();
            bytes.fold(0u64, |number, byte| (number << 8) | u64::from(*byte))
        };
        Extent {
            start: number(0),
            length: number(1),
            checksum: number(2) as u32,
        }
    }
}

/// Finds the mark in the bytes of an executable and returns the offset of its numbers; `None` if there is no mark, or more than one.
pub(crate) fn numbers_in(executable: &[u8]) -> Option<usize> {
    let name = &black_box(&MARK)[..NAME];
    let mut found = (0..executable.len().saturating_sub(MARK.len() - 1))
        .filter(|at| executable[*at] == name[0] && executable[*at..].starts_with(name));
    let at = found.next()?;
    found.next().is_none().then_some(at + NAME)
}

/// Reads the bytes that [`crate::build`] put behind this executable; `None` if this process is `einc` itself.
///
/// # Errors
/// E0905: the file of this process is not as it was built: cut off, stripped, or changed.
pub fn own_payload() -> Option<Result<Vec<u8>, Diagnostic>> {
    // Without the black box, the compiler would take the numbers for the zeros that it was told.
    let extent = Extent::from_numbers(&black_box(&MARK)[NAME..]);
    (extent.start != 0).then(|| read(&own_file(), extent))
}

/// Returns a path that opens the executable of this process, even after the file was removed or replaced.
pub(crate) fn own_file() -> PathBuf {
    let link = Path::new("/proc/self/exe");
    match link.exists() {
        true => link.to_path_buf(),
        false => std::env::current_exe().unwrap_or_else(|_| link.to_path_buf()),
    }
}

fn read(path: &Path, extent: Extent) -> Result<Vec<u8>, Diagnostic> {
    let bytes = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(extent.start))?;
        let mut bytes = vec![];
        file.take(extent.length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let damaged = |why: String| {
        Diagnostic::error("E0905", format!("this program's file is damaged: {why}"))
            .help("build it again with `einc build`, and copy it whole, without `strip`")
    };
    let bytes = bytes().map_err(|error| damaged(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 != extent.length {
        let (found, length) = (bytes.len(), extent.length);
        return Err(damaged(format!(
            "{found} of the {length} bytes of its bundle are there"
        )));
    }
    if crc32c::crc32c(&bytes) != extent.checksum {
        return Err(damaged("the checksum of its bundle is wrong".into()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let extent = Extent {
            start: 34_102_272,
            length: 5310,
            checksum: 0x8a1f_0001,
        };
        assert_eq!(Extent::from_numbers(&extent.numbers()), extent);
        assert_eq!(own_payload().map(|_| ()), None, "a test has no payload");
    }

    #[test]
    fn an_executable_has_one_mark() {
        let own = std::fs::read(own_file()).unwrap();
        let at = numbers_in(&own).unwrap();
        assert_eq!(own[at..][..NUMBERS], [0; NUMBERS]);
        assert_eq!(numbers_in(&[own.as_slice(), &MARK].concat()), None, "two");
        assert_eq!(numbers_in(&own[..at - 1]), None, "half of one");
    }

    #[test]
    fn a_damaged_payload_is_noticed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"head, payload").unwrap();
        let checksum = crc32c::crc32c(b"payload");
        let read = |start, length, checksum| {
            let extent = Extent {
                start,
                length,
                checksum,
            };
            read(file.path(), extent).map_err(|diagnostic| diagnostic.message)
        };
        assert_eq!(read(6, 7, checksum).unwrap(), b"payload");
        let short = read(6, 9, checksum).unwrap_err();
        assert!(short.contains("7 of the 9 bytes"), "{short}");
        let other = read(5, 7, checksum).unwrap_err();
        assert!(other.contains("checksum"), "{other}");
    }
}
