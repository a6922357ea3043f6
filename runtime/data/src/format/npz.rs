//! The .npz format: a zip archive of .npy files, stored or deflated.
//!
//! Must not know boxes, nor archives that hold a sparse matrix.
//!
//! ```text
//! x.npz: a.npy (stored), b.npy (deflated)
//! ```

use crate::archive::{Compressed, Stored, archive, entry_options, zip_failed};
use crate::error::{DAMAGED, DataError, Place};
use crate::format::{Opened, Packed, Wanted, choose, npy};
use crate::in_order::InOrder;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Finds an array.
pub(crate) fn open(
    file: &File,
    total: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    let mut archive = archive(file, place)?;
    let (keys, entries) = arrays(&archive);
    let key = (wanted.key).map(|key| key.strip_suffix(".npy").unwrap_or(key));
    let at = choose(&keys, key, place)?;
    place.key = Some(keys[at].clone());
    let mut entry = archive
        .by_index(entries[at])
        .map_err(|error| zip_failed(&error, place))?;
    let size = entry.size();
    let method = entry.compression();
    let start = entry.data_start();
    let stored = entry.compressed_size();
    let mut region = npy::parse(&mut entry, size, place)?;
    if method != CompressionMethod::Stored {
        let entry = Compressed { entry: entries[at] };
        return Ok(Opened::InOrder(InOrder::compressed(region, entry)));
    }
    let end = start.and_then(|start| start.checked_add(size));
    match (start, end) {
        (Some(start), Some(end)) if stored == size && end <= total => {
            region.offset += start;
            let entry = Stored { entry: entries[at] };
            Ok(Opened::InOrder(InOrder::stored(region, entry)))
        }
        _ => Err(place.error(
            DAMAGED,
            format_args!(
                "is not what the archive says: {size} bytes, {stored} stored, in a file of {total}"
            ),
        )),
    }
}

/// The keys of an archive's arrays, and the numbers of their entries.
pub(crate) fn arrays(archive: &ZipArchive<BufReader<&File>>) -> (Vec<String>, Vec<usize>) {
    let named = (0..archive.len()).filter_map(|entry| {
        let name = archive.name_for_index(entry)?.ok()?;
        Some((name.strip_suffix(".npy")?.to_owned(), entry))
    });
    named.unzip()
}

/// At least what a zip archive with one stored entry needs besides the entry.
pub(crate) fn overhead(key: &str) -> u64 {
    // Local header, central header, zip64 fields and both end records come to about 260 bytes and two names.
    1024 + 2 * key.len() as u64
}

/// Writes complete .npy files, with their keys and bytes, as the entries of an archive.
pub(crate) fn pack(files: &[Packed<'_>], to: &File) -> io::Result<()> {
    let mut target = to;
    target.rewind()?;
    let mut archive = ZipWriter::new(BufWriter::with_capacity(1 << 20, target));
    for (from, key, size) in files {
        add(&mut archive, from, key, *size)?;
    }
    let mut output = archive.finish()?;
    output.flush()?;
    let end = output.stream_position()?;
    to.set_len(end)
}

/// Writes one entry.
fn add(
    archive: &mut ZipWriter<BufWriter<&File>>,
    from: &File,
    key: &str,
    size: u64,
) -> io::Result<()> {
    let mut input = from;
    input.rewind()?;
    archive.start_file(format!("{key}.npy"), entry_options(size))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        archive.write_all(&buffer[..n])?;
    }
    Ok(())
}
