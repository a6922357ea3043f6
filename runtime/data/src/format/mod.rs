//! The table of formats: one file and one row a format.
//!
//! Must not know boxes: a format says where an array's bytes are and what surrounds them.
//!
//! ```text
//! npy  npz  safetensors  mtx  mtx.gz  svm
//! ```

pub(crate) mod matrix_market;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod safetensors;
pub(crate) mod scipy;
pub(crate) mod svmlight;

use crate::error::{DataError, NO_KEY, Place, UNREADABLE, UNWRITABLE, WRONG_SHAPE};
use crate::header::Header;
use crate::in_order::InOrder;
use crate::listed::Unread;
use ein_plan::DType;
use std::fs::File;
use std::path::Path;

/// Makes what stands before the elements of an array with a key.
type Head = fn(&str, &Header, &Place) -> Result<Vec<u8>, DataError>;

/// A format.
pub(crate) struct Format {
    /// The file extension, in lower case. A name may have several that fit: the longest counts.
    pub extension: &'static str,
    /// Finds the wanted array in a file of that many bytes; sets the place's key.
    pub open: fn(&File, u64, &Wanted<'_>, &mut Place) -> Result<Opened, DataError>,
    /// What stands before the elements, which follow in C order and little-endian; `None` if such files are only read.
    pub head: Option<Head>,
    /// The step that turns head and elements into the finished file, if they are not that already.
    pub pack: Option<Pack>,
}

/// An array that becomes a part of a finished file: its file of head and elements, its key, and its bytes.
pub(crate) type Packed<'a> = (&'a File, &'a str, u64);

/// How a finished file is made from head and elements.
#[derive(Debug)]
pub(crate) struct Pack {
    /// Bytes of the finished file that come on top, for a key. Where the elements decide how long the file is, this is an estimate, and a
    /// disk may be found full at the end.
    pub overhead: fn(&str) -> u64,
    /// Writes the finished file.
    pub run: Run,
}

/// Writes a finished file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// From the first file, of one array, into the second.
    One(fn(&File, &File, &str, u64) -> std::io::Result<()>),
    /// From any number of arrays into one file.
    Several(fn(&[Packed<'_>], &File) -> std::io::Result<()>),
}

/// Which array of a file is wanted, and as what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Its key; none: the only array.
    pub key: Option<&'a str>,
    /// The element type that a program declares. Numbers in text files have it; elsewhere the file says the type.
    pub dtype: Option<DType>,
    /// The shape that a program has for it. Of a file that says only how large a dimension is at least, it is the shape of the array.
    pub shape: Option<&'a [u64]>,
}

/// Where an array is.
pub(crate) enum Opened {
    /// One behind the other.
    InOrder(InOrder),
    /// In a list of some elements with their places.
    Listed(Unread),
}

const FORMATS: &[Format] = &[
    Format {
        extension: "npy",
        open: npy::open,
        head: Some(|_, header, place| npy::head(header, place)),
        pack: None,
    },
    Format {
        extension: "npz",
        open: scipy::open,
        head: Some(|_, header, place| npy::head(header, place)),
        pack: Some(Pack {
            overhead: npz::overhead,
            run: Run::Several(npz::pack),
        }),
    },
    Format {
        extension: "csr.npz",
        open: scipy::open,
        head: Some(|_, header, place| scipy::head(header, place)),
        pack: Some(Pack {
            overhead: npz::overhead,
            run: Run::One(scipy::pack),
        }),
    },
    Format {
        extension: "safetensors",
        open: safetensors::open,
        head: Some(safetensors::head),
        pack: None,
    },
    Format {
        extension: "mtx",
        open: matrix_market::open,
        head: Some(|_, header, place| matrix_market::head(header, place)),
        pack: Some(Pack {
            overhead: |_| 0,
            run: Run::One(matrix_market::pack),
        }),
    },
    Format {
        extension: "mtx.gz",
        open: matrix_market::open_compressed,
        head: None,
        pack: None,
    },
    Format {
        extension: "svm",
        open: svmlight::open,
        head: None,
        pack: None,
    },
    Format {
        extension: "libsvm",
        open: svmlight::open,
        head: None,
        pack: None,
    },
];

/// The formats of a message on a file that is to be read (true) or written.
fn known(reading: bool) -> &'static str {
    match reading {
        true => "the formats are .npy, .npz, .safetensors, .mtx, .mtx.gz and .svm",
        false => "the formats are .npy, .npz, .safetensors, .csr.npz and .mtx",
    }
}

impl Format {
    /// Returns whether a file of this format may be written with several arrays in it.
    pub fn holds_several(&self) -> bool {
        let run = self.pack.as_ref().map(|pack| pack.run);
        matches!(run, Some(Run::Several(_)))
    }

    /// Returns whether a file of this format may be written with complex numbers.
    pub fn holds_complex(&self) -> bool {
        matches!(self.extension, "npy" | "npz" | "safetensors")
    }

    /// The format of a file, by the end of its name in any case.
    pub fn of(path: &Path, reading: bool) -> Result<&'static Format, DataError> {
        let place = Place {
            file: path.display().to_string(),
            key: None,
        };
        let code = if reading { UNREADABLE } else { UNWRITABLE };
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
        let Some(extension) = path.extension() else {
            return Err(place
                .error(code, "has no extension, so its format is unknown")
                .help(known(reading)));
        };
        let extension = extension.to_string_lossy().to_lowercase();
        let ends = |format: &&Format| {
            let stem = name.strip_suffix(format.extension);
            stem.is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'))
        };
        let fitting = FORMATS
            .iter()
            .filter(ends)
            .max_by_key(|format| format.extension.len());
        // A name such as `.npy` is all extension.
        let format =
            fitting.or_else(|| FORMATS.iter().find(|format| format.extension == extension));
        let Some(format) = format else {
            let help = match extension.as_str() {
                "csv" | "txt" | "tsv" if reading => {
                    "convert it first: numpy.save(\"x.npy\", numpy.loadtxt(\"x.csv\", delimiter=\",\"))"
                }
                "pt" | "pth" | "bin" if reading => {
                    "convert it first: safetensors.torch.save_file(tensors, \"x.safetensors\")"
                }
                _ => known(reading),
            };
            return Err(place
                .error(
                    code,
                    format_args!("the extension .{extension} is not a known format"),
                )
                .help(help));
        };
        if format.head.is_none() && !reading {
            let what = format_args!(".{} files are read, not written", format.extension);
            return Err(place.error(code, what).help(known(reading)));
        }
        Ok(format)
    }
}

/// Checks that an array can be written as a matrix.
fn expect_matrix(header: &Header, extension: &str, place: &Place) -> Result<(), DataError> {
    if header.shape.len() == 2 {
        return Ok(());
    }
    let what = format_args!(
        "cannot hold {header}: a {extension} file holds a matrix, with two dimensions"
    );
    Err(place
        .error(WRONG_SHAPE, what)
        .help("write it as .npy or .npz"))
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
            let what = format_args!("holds {} arrays; say which: {}", keys.len(), listed());
            let error = place.error(NO_KEY, what);
            Err(DataError {
                keys: keys.to_vec(),
                ..error.help(format!("load(\"{}\", \"{}\")", place.file, keys[0]))
            })
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
