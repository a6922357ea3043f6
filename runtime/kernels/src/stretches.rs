//! Stretches of equal neighbours in a list, such as the elements of a row of a sparse matrix.
//!
//! Neighbours are compared many at once, and nothing is asked per element, so that no guess of the processor fails. Must not know what is equal.
//!
//! ```text
//! 4 4 4 7 7 9   ->   ends 3 5 6
//! ```

/// Neighbours that are compared at once.
const TOGETHER: usize = 32;
/// Most elements of a list: all are compared with the next one, but for the last.
pub(crate) const MOST: usize = 16 * TOGETHER + 1;

/// Writes down where the stretches of a list of at least one and at most [`MOST`] elements end, and returns how many there are.
#[inline(always)]
pub(crate) fn ends<T: Copy + PartialEq>(all: &[T], to: &mut [u16; MOST]) -> usize {
    let (left, right) = (&all[..all.len() - 1], &all[1..]);
    let (many_left, rest) = left.as_chunks::<TOGETHER>();
    let (many_right, rest_right) = right.as_chunks::<TOGETHER>();
    let mut count = 0;
    let mut note = |at: usize| {
        to[count] = at as u16;
        count += 1;
    };
    for (group, (left, right)) in many_left.iter().zip(many_right).enumerate() {
        let mut differ = 0u32;
        for number in 0..TOGETHER {
            differ |= u32::from(left[number] != right[number]) << number;
        }
        while differ != 0 {
            note(group * TOGETHER + differ.trailing_zeros() as usize + 1);
            differ &= differ - 1;
        }
    }
    let compared = many_left.len() * TOGETHER;
    for (number, (left, right)) in rest.iter().zip(rest_right).enumerate() {
        if left != right {
            note(compared + number + 1);
        }
    }
    note(all.len());
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_end_where_neighbours_differ() {
        let mut state = 1u32;
        for length in (1..200).chain([MOST - 1, MOST]) {
            for of in [1, 2, 9, 1 << 20] {
                let mut next = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) % of
                };
                let mut list: Vec<u32> = (0..length).map(|_| next()).collect();
                list.sort_unstable();
                let expected: Vec<u16> = (1..=list.len())
                    .filter(|at| list.get(*at) != list.get(at - 1))
                    .map(|at| at as u16)
                    .collect();
                let mut found = [0; MOST];
                let count = ends(&list, &mut found);
                assert_eq!(found[..count], expected, "{list:?}");
            }
        }
    }
}
