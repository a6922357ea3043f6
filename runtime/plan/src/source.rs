//! Where a tensor's values come from when no statement computes them.
//!
//! Must not know file formats or generators.
//!
//! ```text
//! normal(0, 0.02)    load("x.npy")    full(1)    numbers(1, 2, 1)    fed    kept    stacked(1, "enc.0.w" normal(0, 1), "enc.1.w" normal(0, 1))
//! listed("A", f32, values, load("a.mtx"))    listed("A", f32, 0 by 1, unbound)    listed("A", f32, starts, unbound)
//! ```

use crate::dtype::{DType, Scalar};
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
    Full(Scalar),
    /// 0, 1, 2, … in row-major order.
    Iota,
    /// These numbers, in row-major order.
    Numbers(Vec<Scalar>),
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
    /// Given, when the plan is walked, by the session that walks it: rows of a batch, a tensor carried from an earlier plan, a
    /// number of the step.
    Fed,
    /// The same, of what no step changes: the session keeps it wherever its plan takes it, also where that is at several sites.
    Kept,
    /// A column of the list of the elements of a tensor that are not 0, in ascending order of their places along one dimension; those of one place
    /// there are in row-major order.
    Listed {
        /// Full name of the tensor; `--input` at run time may replace its file.
        tensor: String,
        /// Its default file.
        file: Option<FileRef>,
        /// Its element type.
        dtype: DType,
        /// Which column.
        column: ListColumn,
        /// The dimension along which places ascend.
        by: u32,
    },
    /// Tensors of one shape behind each other.
    Stacked {
        /// How many leading dimensions count them.
        leading: u32,
        /// The tensors, in row-major order of these dimensions.
        parts: Vec<Part>,
    },
}

/// A column of a list of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListColumn {
    /// The elements.
    Values,
    /// Their positions along this dimension of the tensor, of the type that [`position_type`] says.
    Positions(u32),
    /// For each position along the dimension by which the list ascends, and one behind the last: the number of elements before those at it, of the type
    /// that [`position_type`] says for one more than there are elements.
    Starts,
}

/// The stored type of positions along a dimension, the smallest of two that holds them all: sums over a list read little else.
pub const fn position_type(extent: u64) -> DType {
    match extent <= 1 << 32 {
        true => DType::U32,
        false => DType::I64,
    }
}

/// One of the tensors that are stored behind each other: to everything outside of a plan a tensor of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its full name.
    pub name: String,
    /// Where its values come from; not itself stacked.
    pub source: Source,
}

/// Names of what a session feeds beside tensors of the program.
pub mod fed {
    /// The number of a step within its block, from 0: i64.
    pub const STEP: &str = "train.step";
    /// The epoch, from 0: i64.
    pub const EPOCH: &str = "train.epoch";
    /// How many steps the optimizer's states have seen: i64.
    pub const UPDATE: &str = "train.update";
    /// The numbers, in the data, of the rows of a batch: i64, one dimension.
    pub const ROWS: &str = "train.rows";
    /// The share of its batch that a part has: f64.
    pub const SHARE: &str = "train.share";
    /// What a step gives back beside the loss and what is carried: the rate, with the schedule's factor: f64.
    pub const RATE: &str = "train.rate";
}

/// How many elements a file of a sparse tensor lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Of all.
    pub count: u64,
    /// By dimension, as far as it was counted: of the 2^k positions that list most, for every k up to the number of positions that list something.
    pub of_dims: Vec<Vec<u64>>,
}

impl Listing {
    /// Counts elements, with how many each position along each dimension lists.
    pub fn of(dims: Vec<Vec<u64>>) -> Listing {
        let count = dims.first().map_or(0, |counts| counts.iter().sum());
        let most = |mut counts: Vec<u64>| {
            counts.retain(|listed| *listed > 0);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let mut of_most = vec![];
            let (mut sum, mut next) = (0, 1);
            for (number, listed) in (1..).zip(&counts) {
                sum += listed;
                if number == next {
                    of_most.push(sum);
                    next *= 2;
                }
            }
            of_most
        };
        Listing {
            count,
            of_dims: dims.into_iter().map(most).collect(),
        }
    }

    /// No product of two matrices, along a dimension of each, has more terms of listed elements than this; `None` if one was not counted.
    ///
    /// There are most terms where the positions that list most in one matrix list most in the other: of 2^k such positions none lists more than the
    /// 2^(k-1) before them on average.
    pub fn most_terms(&self, dim: usize, other: &Listing, other_dim: usize) -> Option<u64> {
        let parts = |listing: &Listing, dim: usize| -> Option<Vec<u64>> {
            let sums = listing.of_dims.get(dim)?;
            let ends = sums.iter().skip(1).chain([&listing.count]);
            let rest = sums.iter().zip(ends).map(|(sum, end)| end - sum);
            Some(sums.first().copied().into_iter().chain(rest).collect())
        };
        let (own, others) = (parts(self, dim)?, parts(other, other_dim)?);
        let mut terms = 0u64;
        for (part, (own_sum, other_sum)) in own.iter().zip(&others).enumerate() {
            let largest = |parts: &[u64]| match part {
                0 => parts[0],
                1 => parts[0],
                _ => parts[part - 1].div_ceil(1 << (part - 2)),
            };
            let one = largest(&own).saturating_mul(*other_sum);
            let another = largest(&others).saturating_mul(*own_sum);
            terms = terms.saturating_add(one.min(another));
        }
        Some(terms)
    }

    /// No number of rows lists more elements than this: as many as the fullest rows, or a little more.
    pub fn most(&self, rows: u64) -> u64 {
        let Some(power) = rows.checked_ilog2() else {
            return 0;
        };
        let rows_listed: &[u64] = self.of_dims.first().map_or(&[], Vec::as_slice);
        let next = rows_listed.get(power as usize + 1);
        let next = next.map_or(self.count, |next| *next);
        // The fullest rows come first, so further ones list no more on average.
        let scaled = rows_listed.get(power as usize).map(|listed| {
            let listed = u128::from(*listed) * u128::from(rows);
            u64::try_from(listed.div_ceil(1 << power)).unwrap_or(u64::MAX)
        });
        scaled.map_or(next, |scaled| scaled.min(next))
    }
}

impl Source {
    /// The sparse tensor of whose list it is a column, if it is one.
    pub fn list(&self) -> Option<&str> {
        match self {
            Source::Listed { tensor, .. } => Some(tensor),
            _ => None,
        }
    }

    /// Whether every site can make any part of it without reading anything.
    pub fn is_free(&self) -> bool {
        match self {
            Source::Load(_)
            | Source::Unbound
            | Source::Listed { .. }
            | Source::Fed
            | Source::Kept => false,
            Source::Stacked { parts, .. } => parts.iter().all(|part| part.source.is_free()),
            _ => true,
        }
    }

    /// Whether a session gives it when the plan is walked.
    pub fn is_given(&self) -> bool {
        matches!(self, Source::Fed | Source::Kept)
    }

    /// Whether the values depend on the seed, and in a loop on the round.
    pub fn is_random(&self) -> bool {
        match self {
            Source::Load(_)
            | Source::Unbound
            | Source::Listed { .. }
            | Source::Full(_)
            | Source::Iota
            | Source::Numbers(_)
            | Source::Fed
            | Source::Kept => false,
            Source::Uniform { .. }
            | Source::Normal { .. }
            | Source::Bernoulli { .. }
            | Source::Gumbel
            | Source::Permutation => true,
            Source::Stacked { parts, .. } => parts.iter().any(|part| part.source.is_random()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_rows_are_never_fuller_than_told() {
        let rows = vec![0, 7, 1, 1, 30, 2, 2, 2, 0, 5, 1];
        let listing = Listing::of(vec![rows.clone()]);
        assert_eq!(listing.count, 51);
        assert_eq!(listing.of_dims, [[30, 37, 44, 50]]);
        let mut fullest = rows;
        fullest.sort_unstable_by(|a, b| b.cmp(a));
        for count in 0..=fullest.len() {
            let most = listing.most(count as u64);
            let fullest: u64 = fullest[..count].iter().sum();
            assert!(
                most >= fullest && most <= 2 * fullest,
                "{count}: {most}, {fullest}"
            );
        }
        assert_eq!(listing.most(1000), 51);
        assert_eq!(Listing::of(vec![vec![]]).most(3), 0);
        // Rows that are all alike leave nothing to spare.
        assert_eq!(Listing::of(vec![vec![3; 100]]).most(25), 75);
    }

    #[test]
    fn products_have_no_more_terms_than_told() {
        let one = vec![3, 0, 10, 4, 4, 1, 0, 2, 9, 6, 6, 5];
        let other = vec![1, 2, 40, 3, 0, 0, 1, 2, 8, 7, 7, 7];
        let listing = |counts: &[u64]| Listing::of(vec![counts.to_vec(); 2]);
        let told = listing(&one).most_terms(1, &listing(&other), 0);
        let terms: u64 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        let told = told.expect("both are counted");
        assert!(terms <= told && told <= 2 * terms, "{terms}, {told}");
        assert_eq!(listing(&[]).most_terms(0, &listing(&one), 0), Some(0));
        assert_eq!(Listing::default().most_terms(0, &listing(&one), 0), None);
        // Positions that are all alike leave nothing to spare.
        let alike = listing(&[4; 64]);
        assert_eq!(alike.most_terms(0, &alike, 0), Some(1024));
    }
}
