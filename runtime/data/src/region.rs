//! The bytes of one stored array: reads the runs of a box into a row-major array.
//!
//! Nearby short runs are read together, long ones straight into the array. Must not know formats.
//!
//! ```text
//! bytes 128.. of x.npy, f32[1000, 64] in C order, little-endian
//! ```

use crate::error::{DAMAGED, DataError, Place, UNREADABLE};
use crate::header::Header;
use crate::layout::{Order, Run, runs};
use ein_plan::DType;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes read at once where runs are short.
const WINDOW: u64 = 1 << 20;
/// Runs that are at most so many bytes apart are read together: the disk reads whole pages anyway.
const GAP: u64 = 4096;
/// Runs of at least so many bytes are read straight into the array.
const DIRECT: usize = 64 << 10;

/// Where and how an array's elements are stored.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Element type and shape.
    pub header: Header,
    /// The first byte.
    pub offset: u64,
    /// The order of elements.
    pub order: Order,
    /// Whether the bytes of an element stand in the other order than the machine's.
    pub swapped: bool,
}

impl Region {
    /// Reads the box `ranges` (start and length by dimension) into the bytes of a row-major array, which is as long as the box.
    pub fn read_into(
        &self,
        file: &File,
        ranges: &[(u64, u64)],
        target: &mut [u8],
        place: &Place,
    ) -> Result<(), DataError> {
        let Header { dtype, shape } = self.header.stored();
        check_box(&shape, ranges).map_err(|why| place.error(UNREADABLE, why))?;
        let mut filler = Filler {
            file,
            offset: self.offset,
            size: dtype.size(),
            target,
            buffer: Vec::new(),
            pending: Vec::new(),
        };
        let order = match (self.order, self.header.dtype.is_complex()) {
            (Order::Fortran, true) => Order::FortranPairs,
            (order, _) => order,
        };
        runs(&shape, order, ranges, |run| filler.take(run))
            .and_then(|()| filler.flush())
            .map_err(|error| place.read_failed(&error))?;
        let target = filler.target;
        if self.swapped {
            swap(target, dtype.size());
        }
        if dtype == DType::Bool {
            for byte in target {
                *byte = u8::from(*byte != 0);
            }
        }
        Ok(())
    }

    /// Checks that the array ends where the file does, or `E0702`.
    pub fn expect_size(&self, total: u64, place: &Place) -> Result<(), DataError> {
        let bytes = self.header.bytes().unwrap_or(u64::MAX);
        let have = total.saturating_sub(self.offset);
        if bytes == have {
            return Ok(());
        }
        let header = &self.header;
        Err(if have < bytes {
            place
                .error(
                    DAMAGED,
                    format_args!(
                        "is truncated: its header says {header}, {bytes} bytes of data, but only {have} follow"
                    ),
                )
                .help("write or copy the file again")
        } else {
            place.error(
                DAMAGED,
                format_args!(
                    "is not what its header says: {header} is {bytes} bytes of data, but {have} follow"
                ),
            )
        })
    }
}

/// Reverses the bytes of each element.
pub(crate) fn swap(bytes: &mut [u8], size: usize) {
    if size > 1 {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

/// Checks that the box lies inside the shape; says why not.
pub(crate) fn check_box(shape: &[u64], ranges: &[(u64, u64)]) -> Result<(), String> {
    let inside = shape.len() == ranges.len()
        && shape.iter().zip(ranges).all(|(extent, (start, len))| {
            start.checked_add(*len).is_some_and(|end| end <= *extent)
        });
    if inside {
        Ok(())
    } else {
        Err(format!(
            "the box {ranges:?} (start, length) is not inside the shape {shape:?}"
        ))
    }
}

/// Fills the bytes of an array from runs that come in the order of the file.
struct Filler<'a> {
    file: &'a File,
    offset: u64,
    size: usize,
    target: &'a mut [u8],
    buffer: Vec<u8>,
    pending: Vec<Run>,
}

impl Filler<'_> {
    fn take(&mut self, run: Run) -> io::Result<()> {
        let bytes = run.len * self.size;
        if run.stride == 1 && bytes >= DIRECT {
            self.flush()?;
            let at = run.array * self.size;
            let from = self.offset + run.file * self.size as u64;
            return self
                .file
                .read_exact_at(&mut self.target[at..at + bytes], from);
        }
        let most = WINDOW as usize / self.size;
        let mut done = 0;
        while done < run.len {
            let len = most.min(run.len - done);
            self.queue(Run {
                file: run.file + done as u64,
                array: run.array + done * run.stride,
                stride: run.stride,
                len,
            })?;
            done += len;
        }
        Ok(())
    }

    fn queue(&mut self, run: Run) -> io::Result<()> {
        if let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) {
            let size = self.size as u64;
            let gap = (run.file - (last.file + last.len as u64)) * size;
            let span = (run.file + run.len as u64 - first.file) * size;
            if gap > GAP || span > WINDOW {
                self.flush()?;
            }
        }
        self.pending.push(run);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) else {
            return Ok(());
        };
        if let ([run], 1) = (self.pending.as_slice(), first.stride) {
            let (at, bytes) = (run.array * self.size, run.len * self.size);
            let from = self.offset + run.file * self.size as u64;
            self.file
                .read_exact_at(&mut self.target[at..at + bytes], from)?;
            self.pending.clear();
            return Ok(());
        }
        let begin = first.file;
        let span = (last.file + last.len as u64 - begin) as usize * self.size;
        self.buffer.resize(span, 0);
        self.file
            .read_exact_at(&mut self.buffer, self.offset + begin * self.size as u64)?;
        for run in self.pending.drain(..) {
            let from = (run.file - begin) as usize * self.size;
            let source = &self.buffer[from..from + run.len * self.size];
            if run.stride == 1 {
                let at = run.array * self.size;
                self.target[at..at + source.len()].copy_from_slice(source);
                continue;
            }
            match self.size {
                1 => scatter::<1>(self.target, source, &run),
                2 => scatter::<2>(self.target, source, &run),
                4 => scatter::<4>(self.target, source, &run),
                _ => scatter::<8>(self.target, source, &run),
            }
        }
        Ok(())
    }
}

/// Spreads elements of `N` bytes over the positions of a run.
fn scatter<const N: usize>(target: &mut [u8], source: &[u8], run: &Run) {
    for (k, element) in source.chunks_exact(N).enumerate() {
        let at = (run.array + k * run.stride) * N;
        target[at..at + N].copy_from_slice(element);
    }
}
