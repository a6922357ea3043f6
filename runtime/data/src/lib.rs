//! Reads and writes .npy, .npz, .safetensors and files of sparse matrices, a chunk at a time.
//!
//! A [`Reader`] looks at a file's header when it is opened and reads only the boxes that it is asked for. Writers
//! of all sites write their boxes in place into one temporary file beside the target, which replaces it
//! atomically at the end, so a reader of the target never sees part of a result. A [`SetWriter`] does so for several arrays in one
//! file, and a [`checkpoint`] is such a file with a manifest. Must not know plans, sites or the language's programs.
//!
//! ```text
//! x.npy  f32[1000, 64]  read [(500, 250), (0, 64)] → f32[250, 64]
//! ```

mod archive;
pub mod checkpoint;
mod error;
mod file_state;
mod format;
mod header;
mod in_order;
mod layout;
mod lines;
mod listed;
mod number;
mod reader;
mod region;
mod set;
mod temporary;
mod writer;

pub use error::DataError;
pub use header::Header;
pub use reader::Reader;
pub use set::{Named, SetWriter, keys};
pub use writer::{Writer, supported};
