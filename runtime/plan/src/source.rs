//! Where a tensor's values come from when no statement computes them.
//!
//! Must not know file formats or generators.
//!
//! ```text
//! normal(0, 0.02)    load("x.npy")    full(1)
//! ```

use serde::{Deserialize, Serialize};

/// A tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// Path, already resolved against the `.ein` file's folder or the working directory.
    pub path: String,
    /// Key inside an `.npz` or `.safetensors` file.
    pub key: Option<String>,
}

/// A source. Random ones are counter-based: an element's value depends on the run's seed, `stream`
/// (the tensor's full name) and the element's global row-major number, and on nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// Read from a file; `--input` at run time may replace the file.
    Load(FileRef),
    /// Bound when run; no default.
    Unbound,
    /// Every element the same.
    Full(crate::dtype::Scalar),
    /// 0, 1, 2, … in row-major order.
    Iota,
    /// Uniform in [lo, hi).
    Uniform {
        /// Lower end.
        lo: f64,
        /// Upper end.
        hi: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// 1 (true) with probability p, else 0.
    Bernoulli {
        /// Probability.
        p: f64,
    },
    /// Standard Gumbel.
    Gumbel,
    /// A random order of 0..n; rank 1.
    Permutation,
}

impl Source {
    /// Whether every site can make any part of it without reading anything.
    pub fn is_free(&self) -> bool {
        !matches!(self, Source::Load(_) | Source::Unbound)
    }

    /// Whether the values depend on the seed, and in a loop on the round.
    pub fn is_random(&self) -> bool {
        match self {
            Source::Load(_) | Source::Unbound | Source::Full(_) | Source::Iota => false,
            Source::Uniform { .. }
            | Source::Normal { .. }
            | Source::Bernoulli { .. }
            | Source::Gumbel
            | Source::Permutation => true,
        }
    }
}
