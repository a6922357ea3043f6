//! The table of formats: one file and one row a format.
//!
//! Must not know boxes: a format says where an array's bytes are and what surrounds them.
//!
//! ```text
//! npy  npz  safetensors
//! ```

pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod safetensors;

use crate::error::{DataError, NO_KEY, Place, UNREADABLE, UNWRITABLE};
use crate::header::Header;
use crate::region::Region;
use std::fs::File;
use std::path::Path;

/// A format.
pub(crate) struct Format {
    /// The file extension, in lower case.
    pub extension: &'static str,
    /// Finds the array with a key (or the only one) in a file of that many bytes; sets the place's key.
    pub open: fn(&File, u64, Option<&str>, &mut Place) -> Result<Opened, DataError>,
    /// What stands before the elements, which follow in C order and little-endian.
    pub head: fn(&str, &Header, &Place) -> Result<Vec<u8>, DataError>,
    /// The step that turns head and elements into the finished file, if they are not that already.
    pub pack: Option<Pack>,
}

/// How a finished file is made from head and elements.
#[derive(Debug)]
pub(crate) struct Pack {
    /// Bytes of the finished file that come on top, for a key; never less than needed.
    pub overhead: fn(&str) -> u64,
    /// Writes the finished file from the first file into the second.
    pub run: fn(&File, &File, &str, u64) -> std::io::Result<()>,
}

/// Where an array is.
pub(crate) enum Opened {
    /// In the file itself.
    InPlace(Region),
    /// In the file itself, with a checksum of its own.
    Stored(Region, npz::Stored),
    /// In a compressed entry that must be inflated before it can be read in boxes.
    Compressed(Region, npz::Compressed),
}

const FORMATS: &[Format] = &[
    Format {
        extension: "npy",
        open: npy::open,
        head: |_, header, place| npy::head(header, place),
        pack: None,
    },
    Format {
        extension: "npz",
        open: npz::open,
        head: |_, header, place| npy::head(header, place),
        pack: Some(Pack {
            overhead: npz::overhead,
            run: npz::pack,
        }),
    },
    Format {
        extension: "safetensors",
        open: safetensors::open,
        head: safetensors::head,
        pack: None,
    },
];

impl Format {
    /// The format of a file, by its extension in any case.
    pub fn of(path: &Path, reading: bool) -> Result<&'static Format, DataError> {
        let place = Place {
            file: path.display().to_string(),
            key: None,
        };
        let code = if reading { UNREADABLE } else { UNWRITABLE };
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy().to_lowercase());
        let Some(extension) = extension else {
            return Err(place
                .error(code, "has no extension, so its format is unknown")
                .help("the formats are .npy, .npz and .safetensors"));
        };
        FORMATS
            .iter()
            .find(|format| format.extension == extension)
            .ok_or_else(|| {
                let help = match extension.as_str() {
                    "csv" | "txt" | "tsv" if reading => {
                        "convert it first: numpy.save(\"x.npy\", numpy.loadtxt(\"x.csv\", delimiter=\",\"))"
                    }
                    "pt" | "pth" | "bin" if reading => {
                        "convert it first: safetensors.torch.save_file(tensors, \"x.safetensors\")"
                    }
                    _ => "the formats are .npy, .npz and .safetensors",
                };
                place
                    .error(code, format_args!("the extension .{extension} is not a known format"))
                    .help(help)
            })
    }
}

/// The wanted key if it is there, or the only one if none is wanted.
pub(crate) fn choose(
    keys: &[String],
    wanted: Option<&str>,
    place: &Place,
) -> Result<usize, DataError> {
    let listed = || {
        const MOST: usize = 20;
        let mut text: Vec<_> = keys.iter().take(MOST).map(|k| format!("`{k}`")).collect();
        if keys.len() > MOST {
            text.push(format!("and {} more", keys.len() - MOST));
        }
        text.join(", ")
    };
    if keys.is_empty() {
        return Err(place.error(NO_KEY, "holds no arrays"));
    }
    let Some(wanted) = wanted else {
        return if keys.len() == 1 {
            Ok(0)
        } else {
            Err(place
                .error(
                    NO_KEY,
                    format_args!("holds {} arrays; say which: {}", keys.len(), listed()),
                )
                .help(format!("load(\"{}\", \"{}\")", place.file, keys[0])))
        };
    };
    if let Some(at) = keys.iter().position(|key| key == wanted) {
        return Ok(at);
    }
    let error = place.error(
        NO_KEY,
        format_args!("holds no array `{wanted}`; it holds {}", listed()),
    );
    let near = keys
        .iter()
        .map(|key| (strsim::damerau_levenshtein(key, wanted), key))
        .min()
        .filter(|(distance, _)| *distance <= wanted.chars().count().div_ceil(3));
    Err(match near {
        Some((_, key)) => error.help(format!("did you mean `{key}`?")),
        None => error,
    })
}
