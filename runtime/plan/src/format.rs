//! Physical formats of arrays: how elements lie in memory, and how many bytes that takes.
//!
//! Plans state memory and traffic by it, devices allocate by it and communicators count by it, so that a new format changes all of them in
//! one place. Must not know where an array is.
//!
//! ```text
//! f32[2, 3] dense   ->   24 bytes
//! ```

use crate::dtype::DType;

/// How the elements of an array lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Every element, in row-major order.
    #[default]
    Dense,
}

impl Format {
    /// Bytes of an array of so many elements. Saturates where they do not fit.
    pub fn bytes(self, dtype: DType, elements: u64) -> u64 {
        match self {
            Format::Dense => elements.saturating_mul(dtype.size() as u64),
        }
    }

    /// Bytes of an array of that shape. Saturates where they do not fit.
    pub fn bytes_of(self, dtype: DType, shape: &[u64]) -> u64 {
        let elements = (shape.iter()).fold(1u64, |n, extent| n.saturating_mul(*extent));
        // An extent of 0 wins over others that do not fit.
        match shape.contains(&0) {
            true => 0,
            false => self.bytes(dtype, elements),
        }
    }
}
