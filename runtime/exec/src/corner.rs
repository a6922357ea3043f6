//! Which elements of a large tensor are shown: the first and last few along each long dimension.
//!
//! Each site cuts what is shown out of its own chunks, so that a tensor is never gathered. Must not know
//! sites or how numbers are written.
//!
//! ```text
//! [2000, 5], edge 3: rows 0 1 2 1997 1998 1999; of the chunk of rows 1000..1998: row 1997, shown as row 3
//! ```

use ein_array::Array;

/// Elements up to which a tensor is shown whole.
const WHOLE: u64 = 1000;
/// Elements up to which corners are shown with three elements a side.
const CORNERS: u64 = 10_000;

/// Which elements of a tensor are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corner {
    extents: Vec<u64>,
    edge: u64,
}

impl Corner {
    /// The choice for a tensor of this shape; an `edge` of 0 stands for the whole tensor. Of complex numbers the last dimension, that of
    /// their parts, does not count.
    pub fn of(shape: &[u64], complex: bool) -> Corner {
        let counted = &shape[..shape.len() - usize::from(complex)];
        let count = |extents: &mut dyn Iterator<Item = u64>| -> u64 {
            extents.fold(1u64, |n, extent| n.saturating_mul(extent))
        };
        let with = |edge| Corner {
            extents: shape.to_vec(),
            edge,
        };
        if count(&mut counted.iter().copied()) <= WHOLE {
            return with(0);
        }
        let fits = |edge: &u64| count(&mut counted.iter().map(|n| (*n).min(2 * edge))) <= CORNERS;
        with([3, 2].into_iter().find(fits).unwrap_or(1))
    }

    /// How many elements are shown at either end of a long dimension.
    pub fn edge(&self) -> usize {
        self.edge as usize
    }

    /// Extents of what is shown.
    pub fn shape(&self) -> Vec<usize> {
        self.extents
            .iter()
            .map(|extent| self.before(*extent, *extent))
            .collect()
    }

    /// How many positions below `position` are shown.
    fn before(&self, extent: u64, position: u64) -> usize {
        let shown = if self.edge == 0 || extent <= 2 * self.edge {
            position
        } else {
            position.min(self.edge) + (position + self.edge).saturating_sub(extent)
        };
        shown as usize
    }

    /// Where what is shown of a box stands in what is shown of the tensor: start and extents.
    pub fn part(&self, ranges: &[(u64, u64)]) -> (Vec<usize>, Vec<usize>) {
        ranges
            .iter()
            .zip(&self.extents)
            .map(|((start, len), extent)| {
                let first = self.before(*extent, *start);
                (first, self.before(*extent, start + len) - first)
            })
            .unzip()
    }

    /// What is shown of the array that holds a box.
    pub fn cut(&self, array: &Array, ranges: &[(u64, u64)]) -> Array {
        let (_, shape) = self.part(ranges);
        let mut shown = Array::zeros(array.dtype(), &shape);
        // Runs of shown positions along each dimension: (start in the array, start in `shown`, length).
        let runs: Vec<Vec<(usize, usize, usize)>> = ranges
            .iter()
            .zip(&self.extents)
            .map(|((start, len), extent)| {
                let mut runs = vec![];
                let mut to = 0;
                let sides = if self.edge == 0 || *extent <= 2 * self.edge {
                    vec![(0, *extent)]
                } else {
                    vec![(0, self.edge), (extent - self.edge, *extent)]
                };
                for (from, end) in sides {
                    let (from, end) = (from.max(*start), end.min(start + len));
                    if from < end {
                        runs.push(((from - start) as usize, to, (end - from) as usize));
                        to += (end - from) as usize;
                    }
                }
                runs
            })
            .collect();
        let boxes: usize = runs.iter().map(Vec::len).product();
        for number in 0..boxes {
            let mut rest = number;
            let run: Vec<(usize, usize, usize)> = runs
                .iter()
                .map(|runs| {
                    let run = runs[rest % runs.len()];
                    rest /= runs.len();
                    run
                })
                .collect();
            let pick =
                |f: fn(&(usize, usize, usize)) -> usize| run.iter().map(f).collect::<Vec<_>>();
            shown.copy_box(&pick(|r| r.1), array, &pick(|r| r.0), &pick(|r| r.2));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::Data;

    #[test]
    fn corners_are_the_same_from_pieces() {
        let shape = [37u64, 41];
        let values: Vec<i64> = (0..37 * 41).collect();
        let whole = Array::new(vec![37, 41], Data::I64(values)).unwrap();
        let corner = Corner::of(&shape, false);
        let expected = corner.cut(&whole, &[(0, 37), (0, 41)]);
        for pieces in [1, 2, 5, 40] {
            let mut got = Array::zeros(whole.dtype(), &corner.shape());
            for p in 0..pieces {
                let (start, len) = ein_plan::piece(37, pieces, p);
                let ranges = [(start, len), (0, 41)];
                let mut part = Array::zeros(whole.dtype(), &[len as usize, 41]);
                part.copy_box(&[0, 0], &whole, &[start as usize, 0], &[len as usize, 41]);
                let (to, extents) = corner.part(&ranges);
                let cut = corner.cut(&part, &ranges);
                assert_eq!(cut.shape(), extents);
                got.copy_box(&to, &cut, &[0, 0], &extents);
            }
            assert_eq!(got, expected);
        }
    }
}
