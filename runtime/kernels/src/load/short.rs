//! Strips whose runs are short: all rows of runs that are evenly spaced are read in one loop.
//!
//! Must not know how strips of other forms are read.
//!
//! ```text
//! offset 3, lanes (4 of stride 64, 32 of stride 2, 2 of stride 0)  ->  4 rows of 32 runs:  elements 3 3 5 5 7 7 …
//! ```

use super::Extents;

/// Most lanes of a short run.
const SHORT: usize = 16;
/// Most dimensions of a strip.
const DIMENSIONS: usize = 8;

/// A dimension: how many values, and how far neighbours lie apart.
type Axis = (usize, i64);

/// Dimensions that are not one with the next one, outermost first, and their number; none if they are too many.
fn merged(steps: &[i64], extents: &Extents) -> Option<([Axis; DIMENSIONS], usize)> {
    let (mut axes, mut count) = ([(1, 0); DIMENSIONS], 0);
    for (size, step) in extents.sizes.iter().zip(steps) {
        match axes[..count].last_mut() {
            _ if *size == 1 => {}
            Some(last) if last.1 == step * *size as i64 => *last = (last.0 * size, *step),
            _ => {
                *axes.get_mut(count)? = (*size, *step);
                count += 1;
            }
        }
    }
    Some((axes, count))
}

/// Reads a strip, all of whose elements exist, if it has this form; whether it has.
#[inline(always)]
pub(super) fn read<S: Copy, T: Copy>(
    to: &mut [T],
    from: &[S],
    offset: i64,
    (steps, extents): (&[i64], &Extents),
    f: impl Fn(S) -> T + Copy,
) -> bool {
    let Some((axes, count)) = merged(steps, extents) else {
        return false;
    };
    let [outer @ .., rows, run] = &axes[..count] else {
        return false;
    };
    if run.0 > SHORT {
        return false;
    }
    for (number, to) in to[..extents.lanes()].chunks_mut(rows.0 * run.0).enumerate() {
        let (mut begin, mut left) = (offset, number);
        for (size, step) in outer.iter().rev() {
            begin += (left % size) as i64 * step;
            left /= size;
        }
        // Of pairs the length is known beforehand.
        match run.0 {
            2 => {
                let pairs = to.as_chunks_mut::<2>().0.iter_mut();
                rows_of(
                    pairs.map(|pair| &mut pair[..]),
                    from,
                    begin,
                    (*rows, *run),
                    f,
                );
            }
            n => rows_of(to.chunks_mut(n), from, begin, (*rows, *run), f),
        }
    }
    true
}

/// Reads evenly spaced runs, the first of which begins at `begin`.
#[inline(always)]
fn rows_of<'t, S: Copy, T: 't>(
    to: impl Iterator<Item = &'t mut [T]>,
    from: &[S],
    begin: i64,
    (rows, run): (Axis, Axis),
    f: impl Fn(S) -> T,
) {
    let far = [rows, run].map(|(count, step)| (count as i64 - 1) * step);
    let low = begin + far[0].min(0) + far[1].min(0);
    let high = begin + far[0].max(0) + far[1].max(0);
    assert!(
        low >= 0 && (high as usize) < from.len(),
        "every position is inside"
    );
    for (row, to) in (0..rows.0 as i64).zip(to) {
        let first = begin + row * rows.1;
        for (lane, to) in (0..run.0 as i64).zip(to) {
            // SAFETY: the place is not below the lowest or above the highest one, which are inside.
            *to = f(unsafe { *from.get_unchecked((first + lane * run.1) as usize) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Extents, read};

    #[test]
    fn lanes_are_where_their_steps_lead() {
        let from: Vec<i32> = (0..5000).collect();
        let strips: [(&[usize], &[i64], i64, bool); 8] = [
            (&[4, 32, 2], &[64, 2, 0], 3, true),
            (&[4, 32, 2], &[70, 3, 1], 3, true),
            (&[3, 5, 3], &[0, -7, 40], 100, true),
            (&[2, 3, 4, 2], &[900, 50, 7, -3], 9, true),
            (&[7, 1, 16], &[300, 4000, 0], 0, true),
            (&[7, 17], &[300, 0], 0, false),
            (&[6, 2], &[2, 1], 0, false),
            (&[2], &[-1], 1, false),
        ];
        for (sizes, steps, offset, is_short) in strips {
            let extents = Extents {
                sizes: sizes.to_vec(),
            };
            let mut to = vec![-1i64; extents.lanes()];
            let was = read(&mut to, &from, offset, (steps, &extents), i64::from);
            assert_eq!(was, is_short, "{sizes:?} {steps:?}");
            for (lane, got) in to.into_iter().enumerate().filter(|_| was) {
                let (mut place, mut left) = (offset, lane);
                for (size, step) in sizes.iter().zip(steps).rev() {
                    place += (left % size) as i64 * step;
                    left /= size;
                }
                assert_eq!(got, place, "lane {lane} of {sizes:?} {steps:?}");
            }
        }
    }
}
