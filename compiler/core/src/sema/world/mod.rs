//! The outside of a program, as the compiler asks for it: texts by their import paths, headers of data by the names of inputs.
//!
//! The driver answers from a disk, tests and editors from memory. Must not know files on disk: a [`World`] does.
//!
//! ```text
//! model.ein: use "layers.ein", use std.nn; input X   ->   texts of layers.ein and std/nn.ein, header of X: f32[1437, 64]
//! ```

mod data;
mod files;
mod memory;

pub use data::{Input, file_of, headers, inputs};
pub use files::{Loaded, load};
pub use memory::Memory;

use ein_plan::DType;
use ein_plan::source::Listing;
use einc_diag::Diagnostic;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Facts about data that are known before the data are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// How many elements a file of a sparse tensor lists; `None`: it holds all.
    pub listed: Option<Listing>,
    /// True if the data say only how long the last dimension is at least.
    pub at_least: bool,
}

impl Header {
    /// Of data that hold all their elements.
    pub fn dense(dtype: DType, shape: Vec<u64>) -> Header {
        Header {
            dtype,
            shape,
            listed: None,
            at_least: false,
        }
    }

    /// Returns whether the data may be those of a dimension of `size` numbers.
    pub(crate) fn fits(&self, dimension: usize, size: u64) -> bool {
        let extent = self.shape.get(dimension).copied();
        let last = self.at_least && dimension + 1 == self.shape.len();
        extent == Some(size) || (last && extent < Some(size))
    }
}

/// Where a text is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name that messages show.
    pub name: String,
    /// How the world finds it. Imports of the text are relative to it.
    pub path: PathBuf,
    /// Equal for all paths that lead to one text, so that the text is read once.
    pub identity: PathBuf,
}

/// The outside of a program.
pub trait World {
    /// Returns the name for messages and the text of a library: of `std.nn`.
    fn library(&self, path: &str) -> Option<(String, String)>;

    /// Returns the paths of all libraries, for messages.
    fn libraries(&self) -> Vec<String>;

    /// Returns where the text is that `use "path"` of the text at `from` means. It need not exist.
    fn place(&self, from: &Place, path: &str) -> Place;

    /// Reads a text.
    ///
    /// # Errors
    /// E0190 or E0191 if it is not there, or is no text.
    fn text(&self, place: &Place) -> Result<String, Diagnostic>;

    /// Returns the names of the tensors to which data are bound from outside: an input `X`, or a param `head.w` of an instance.
    fn bound(&self) -> Vec<String>;

    /// Returns the header of the data of an input or param; `None` if it has no data that are there.
    ///
    /// # Errors
    /// E0701 to E0706 if the data cannot be read, E0710 if there are none and they are needed.
    fn header(&self, input: &Input) -> Result<Option<Header>, Diagnostic>;
}
