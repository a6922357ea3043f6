//! The lines of a text file, with their numbers.
//!
//! Must not know formats.
//!
//! ```text
//! "1 2\n3 4\n"   ->   line 1: `1 2`, line 2: `3 4`
//! ```

use crate::error::{DAMAGED, DataError, Place};
use std::fmt::Display;
use std::io::{self, BufRead};

/// A longer line is no line of a text file.
const LONGEST: u64 = 1 << 28;

/// Reads a text line by line.
pub(crate) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    place: &'a Place,
    line: Vec<u8>,
    /// Number of the line that was read last, from 1.
    pub number: u64,
}

impl<'a> Lines<'a> {
    /// From the beginning of a text.
    pub fn of(input: &'a mut dyn BufRead, place: &'a Place) -> Lines<'a> {
        Lines {
            input,
            place,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line without its end; `None` behind the last.
    pub fn next(&mut self) -> Result<Option<&str>, DataError> {
        self.line.clear();
        let mut limited = io::Read::take(&mut *self.input, LONGEST);
        let read = limited.read_until(b'\n', &mut self.line);
        self.number += 1;
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if is_damage(&error) => {
                let what = format_args!("is damaged: {error}");
                return Err(self.place.error(DAMAGED, what));
            }
            Err(error) => return Err(self.place.read_failed(&error)),
        }
        if self.line.len() as u64 == LONGEST {
            return Err(self.wrong("is too long for a line of text"));
        }
        let number = self.number;
        let not_text = || {
            let what = format_args!("line {number} is not text (UTF-8)");
            self.place.error(DAMAGED, what)
        };
        let text = std::str::from_utf8(&self.line).map_err(|_| not_text())?;
        Ok(Some(text.trim_end_matches(['\n', '\r'])))
    }

    /// An error about the line that was read last.
    pub fn wrong(&self, what: impl Display) -> DataError {
        wrong(self.place, self.number, what)
    }
}

/// An error about a line.
pub(crate) fn wrong(place: &Place, number: u64, what: impl Display) -> DataError {
    place.error(DAMAGED, format_args!("line {number}: {what}"))
}

/// True if a decoder found wrong bytes, not the system.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}
