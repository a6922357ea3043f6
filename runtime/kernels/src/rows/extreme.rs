//! The largest or least element of a row, and where it stands.
//!
//! NaN comes before everything; of equal elements (zeros of either sign are equal) the first one is it. So the result does not
//! depend on how many lanes the processor has. Must not know kernels.
//!
//! ```text
//! least of 3 1 2 1   ->   1 at 1        largest of 0 -0 -1   ->   0 at 0        least of 5 NaN 1   ->   NaN at 1
//! ```

use crate::element::Element;
use crate::stream::Ahead;

/// Elements that are looked through at once: those that hold the extreme are looked through again for its place, in the
/// first cache.
const BLOCK: usize = 512;
/// Lanes of a row that is long enough, and of a shorter one.
const LANES: usize = 16;
const FEW: usize = 4;

/// Whether `x` comes before `s`.
#[inline(always)]
fn before<T: Element, const LARGEST: bool>(x: T, s: T) -> bool {
    if LARGEST { x > s } else { x < s }
}

#[inline(always)]
fn chosen<T: Element, const LARGEST: bool>(s: T, x: T) -> T {
    if before::<T, LARGEST>(x, s) { x } else { s }
}

/// The extreme of a row that has elements, and its place. If the place is not `wanted`, any may be given. Meanwhile memory is asked for.
#[inline(always)]
pub(crate) fn of_row<T: Element, const LARGEST: bool>(
    x: &[T],
    wanted: bool,
    ahead: Ahead<'_>,
) -> (T, usize) {
    if x.len() >= LANES {
        of_lanes::<T, LARGEST, LANES>(x, wanted, ahead)
    } else if x.len() >= FEW {
        of_lanes::<T, LARGEST, FEW>(x, wanted, ahead)
    } else {
        let mut found = (x[0], 0);
        for (at, x) in x.iter().enumerate().skip(1) {
            let takes = before::<T, LARGEST>(*x, found.0) | x.nan();
            if takes & !found.0.nan() {
                found = (*x, at);
            }
        }
        found
    }
}

/// The same of a row of `L` elements or more.
#[inline(always)]
fn of_lanes<T: Element, const LARGEST: bool, const L: usize>(
    x: &[T],
    wanted: bool,
    ahead: Ahead<'_>,
) -> (T, usize) {
    let (mut best, mut first) = (x[0], 0);
    let mut from = 0;
    while from < x.len() {
        // No block is shorter than `L`: the last one takes what would be left over.
        let to = if x.len() - from >= BLOCK + L {
            from + BLOCK
        } else {
            x.len()
        };
        ahead.ask(&x[from..to]);
        let (value, nan) = extreme::<T, LARGEST, L>(&x[from..to]);
        if nan {
            let at = x[from..].iter().position(|x| x.nan()).unwrap_or(0);
            return (x[from + at], from + at);
        }
        if before::<T, LARGEST>(value, best) || from == 0 {
            (best, first) = (value, from);
        }
        from = to;
    }
    // Zeros of both signs are equal: the first one has the sign.
    if wanted || best == T::default() {
        let block = &x[first..(first + BLOCK + L).min(x.len())];
        let at = first + place::<T, L>(block, best);
        (x[at], at)
    } else {
        (best, first)
    }
}

/// The extreme of `L` or more elements, and whether one is NaN.
#[inline(always)]
fn extreme<T: Element, const LARGEST: bool, const L: usize>(x: &[T]) -> (T, bool) {
    let (mut even, mut odd) = ([x[0]; L], [x[0]; L]);
    let mut nans = [0u32; L];
    let mut pairs = x.chunks_exact(2 * L);
    for pair in &mut pairs {
        let (a, b) = pair.split_at(L);
        for l in 0..L {
            even[l] = chosen::<T, LARGEST>(even[l], a[l]);
            odd[l] = chosen::<T, LARGEST>(odd[l], b[l]);
            nans[l] |= u32::from(a[l].nan() | b[l].nan());
        }
    }
    let rest = pairs.remainder().len();
    // Elements that were looked at already change nothing.
    if rest > 0 {
        let last = &x[x.len() - L..];
        let before_last = if rest > L {
            &x[x.len() - rest..][..L]
        } else {
            last
        };
        for l in 0..L {
            even[l] = chosen::<T, LARGEST>(even[l], before_last[l]);
            odd[l] = chosen::<T, LARGEST>(odd[l], last[l]);
            nans[l] |= u32::from(before_last[l].nan() | last[l].nan());
        }
    }
    for l in 0..L {
        even[l] = chosen::<T, LARGEST>(even[l], odd[l]);
    }
    let mut half = L / 2;
    while half > 0 {
        for l in 0..half {
            even[l] = chosen::<T, LARGEST>(even[l], even[l + half]);
            nans[l] |= nans[l + half];
        }
        half /= 2;
    }
    (even[0], nans[0] != 0)
}

/// The first place of a value among `L` or more elements that hold it.
#[inline(always)]
fn place<T: Element, const L: usize>(x: &[T], value: T) -> usize {
    let mut least = [u32::MAX; L];
    let (parts, rest) = x.as_chunks::<L>();
    for (number, part) in parts.iter().enumerate() {
        least = places(least, part, number * L, value);
    }
    if let (Some(last), false) = (x.last_chunk::<L>(), rest.is_empty()) {
        least = places(least, last, x.len() - L, value);
    }
    let mut half = L / 2;
    while half > 0 {
        for l in 0..half {
            least[l] = least[l].min(least[l + half]);
        }
        half /= 2;
    }
    least[0] as usize
}

/// The least place of the value in each lane, with those of a part that begins at `first`.
#[inline(always)]
fn places<T: Element, const L: usize>(
    least: [u32; L],
    part: &[T; L],
    first: usize,
    value: T,
) -> [u32; L] {
    let mut next = least;
    for l in 0..L {
        let at = (first + l) as u32;
        let here = if part[l] == value { at } else { u32::MAX };
        next[l] = least[l].min(here);
    }
    next
}
