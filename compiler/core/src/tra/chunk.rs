//! Values of relations in the interpreters: chunks of elements by key, and how they are parts of a whole.
//!
//! Naive: loops over elements. Must not know kernels, operators or sites.
//!
//! ```text
//! f32[5] in two pieces   {(0): [1 2 3], (1): [4 5]}
//! ```

use super::Type;
use ein_plan::Scalar;
use std::collections::BTreeMap;

/// The chunks of one tuple, one a column: all of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Extents.
    pub shape: Vec<u64>,
    /// By column: elements in row-major order.
    pub columns: Vec<Vec<Scalar>>,
}

/// A relation's content.
pub type Content = BTreeMap<Vec<u32>, Chunk>;

/// Why a program cannot be interpreted.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// A kernel stopped, as a run would; why.
    Fault(String),
    /// A chunk is needed that is not there: the program is wrong.
    Absent(String),
}

/// All positions below `shape`, in row-major order.
pub fn positions(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> + use<> {
    let shape = shape.to_vec();
    let total: u64 = shape.iter().product();
    (0..total).map(move |mut n| {
        let mut at = vec![0; shape.len()];
        for (slot, extent) in at.iter_mut().zip(&shape).rev() {
            *slot = n % extent;
            n /= extent;
        }
        at
    })
}

/// The number of a position in row-major order.
pub fn offset(shape: &[u64], at: &[u64]) -> usize {
    let number = shape
        .iter()
        .zip(at)
        .fold(0, |n, (extent, x)| n * extent + x);
    number as usize
}

impl Chunk {
    /// The box of these ranges (start, length).
    pub fn part(&self, ranges: &[(u64, u64)]) -> Chunk {
        let shape: Vec<u64> = ranges.iter().map(|(_, n)| *n).collect();
        let from: Vec<usize> = positions(&shape)
            .map(|at| {
                let at: Vec<u64> = at.iter().zip(ranges).map(|(x, (s, _))| x + s).collect();
                offset(&self.shape, &at)
            })
            .collect();
        Chunk {
            columns: self
                .columns
                .iter()
                .map(|column| from.iter().map(|at| column[*at]).collect())
                .collect(),
            shape,
        }
    }

    /// A chunk of that shape, put together from boxes at these starts; the boxes cover it.
    pub fn together(shape: &[u64], columns: usize, parts: &[(Vec<u64>, &Chunk)]) -> Chunk {
        let total: u64 = shape.iter().product();
        let mut whole = Chunk {
            shape: shape.to_vec(),
            columns: vec![vec![Scalar::Int(0); total as usize]; columns],
        };
        for (start, part) in parts {
            for (from, at) in positions(&part.shape).enumerate() {
                let at: Vec<u64> = at.iter().zip(start).map(|(x, s)| x + s).collect();
                let to = offset(shape, &at);
                for (column, source) in whole.columns.iter_mut().zip(&part.columns) {
                    column[to] = source[from];
                }
            }
        }
        whole
    }
}

/// A whole tensor cut as a type says: the tuples of those keys.
pub fn cut(whole: &Chunk, kind: &Type, keys: &[Vec<u32>]) -> Content {
    let kind = kind.anywhere();
    keys.iter()
        .map(|key| (key.clone(), whole.part(&kind.ranges(key))))
        .collect()
}

/// A relation whose every key dimension cuts an array dimension as a whole tensor.
pub fn whole(content: &Content, kind: &Type) -> Chunk {
    let shape: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
    let placed = kind.anywhere();
    let parts: Vec<(Vec<u64>, &Chunk)> = content
        .iter()
        .map(|(key, chunk)| {
            let start = placed.ranges(key).iter().map(|(start, _)| *start).collect();
            (start, chunk)
        })
        .collect();
    Chunk::together(&shape, kind.array.columns.len(), &parts)
}
