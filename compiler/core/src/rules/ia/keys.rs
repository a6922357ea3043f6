//! A key dimension as the placed rules see it. Must not know relations.
//!
//! ```text
//! k: 8/2 along axis 0   ->   8/2 [0]
//! ```

/// A key dimension without its name: a range cut into balanced pieces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyRange {
    /// Length of the range.
    pub extent: u64,
    /// Number of pieces, from 1.
    pub pieces: u32,
    /// The axes of the mesh that can cut it by themselves, the most significant first.
    pub axes: Vec<u8>,
}

impl From<&ein_plan::KeyDim> for KeyRange {
    fn from(key: &ein_plan::KeyDim) -> KeyRange {
        KeyRange {
            extent: key.extent,
            pieces: key.pieces,
            axes: key.axes.clone(),
        }
    }
}
