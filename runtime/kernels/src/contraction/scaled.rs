//! Factors of whole rows of a product: rows are multiplied or divided once they are there, not the terms that they are the sums of.
//!
//! Must not know how products are computed.
//!
//! ```text
//! [t, d | s] sum a0[t, s] * a1[s, d] / a2[t]   ->   a0 · a1, row t of it divided by a2[t]
//! ```

use super::factors::Factors;
use crate::Chunk;
use crate::pack::Factor;
use crate::packed::Packed;
use ein_plan::schedule::access::distances;

/// The rows of a block of a product, and what each is multiplied or divided by.
pub(super) struct Scaled<T> {
    /// By row: where it begins, counted from the first one.
    rows: Vec<usize>,
    /// Elements of a row.
    length: usize,
    /// For each factor, by row; whether it divides.
    factors: Vec<(Vec<T>, bool)>,
}

impl<T: Packed> Scaled<T> {
    /// The rows over these ranges of the output's indices, whose steps in the output these are; `None` if some factor is not in memory, or
    /// no ordinary number: what becomes of it depends on the terms.
    pub(super) fn of(
        factors: &Factors,
        operands: &[Chunk<'_>],
        ranges: &[(i64, i64)],
        strides: &[usize],
    ) -> Option<Scaled<T>> {
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let outer: Vec<usize> = (0..strides.len().checked_sub(1)?).collect();
        let of_rows = |(id, divides): &(_, bool)| {
            let Factor::Strided(factor) = Factor::<T>::of(&factors.graph, *id, operands, ranges)
            else {
                return None;
            };
            let places = distances(&outer, &lengths, &factor.steps).into_iter();
            let elements = &factor.data.slice()[factor.offset as usize..];
            let values: Vec<T> = places.map(|place| elements[place]).collect();
            let ordinary = values.iter().all(|x| x.to_f64().is_normal());
            ordinary.then_some((values, *divides))
        };
        let steps: Vec<i64> = strides.iter().map(|step| *step as i64).collect();
        Some(Scaled {
            rows: distances(&outer, &lengths, &steps),
            length: lengths[outer.len()],
            factors: factors.of_rows.iter().map(of_rows).collect::<Option<_>>()?,
        })
    }

    /// Multiplies and divides the rows, the first of which begins at element `first`.
    pub(super) fn scale(&self, output: &mut [T], first: usize) {
        for (values, divides) in &self.factors {
            for (row, x) in self.rows.iter().zip(values) {
                let row = &mut output[first + row..][..self.length];
                match divides {
                    true => row.iter_mut().for_each(|y| *y = *y / *x),
                    false => row.iter_mut().for_each(|y| *y = *y * *x),
                }
            }
        }
    }
}
