//! What becomes of the lanes of a strip in each reduction.
//!
//! Must not know which results lanes belong to.
//!
//! ```text
//! sums of x0 .. x9 into 8 slots:   x0 + x8, x1 + x9, x2, …
//! ```

use super::{FOLD, HELD};
use crate::math::{exp_f32, exp_f64};

/// A floating-point lane.
pub(crate) trait Float: Copy + Into<f64> + PartialOrd {
    /// A value that came from a lane.
    fn from_wide(x: f64) -> Self;
    /// |x|.
    fn magnitude(self) -> Self;
    /// e^x for x that is a difference of lanes.
    fn exp(x: f64) -> f64;
    /// e^(x - top) for a `top` that came from a lane.
    fn exp_beside(self, top: f64) -> f64;
    /// Whether it is NaN.
    fn nan(self) -> bool;
}
impl Float for f32 {
    #[inline(always)]
    fn nan(self) -> bool {
        self.is_nan()
    }
    #[inline(always)]
    fn from_wide(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn magnitude(self) -> f32 {
        self.abs()
    }
    #[inline(always)]
    fn exp(x: f64) -> f64 {
        f64::from(exp_f32(x as f32))
    }
    #[inline(always)]
    fn exp_beside(self, top: f64) -> f64 {
        // In single precision throughout, and with the same bits: a difference of f64 that is rounded again is that of f32.
        f64::from(exp_f32(self - top as f32))
    }
}
impl Float for f64 {
    #[inline(always)]
    fn nan(self) -> bool {
        self.is_nan()
    }
    #[inline(always)]
    fn from_wide(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn magnitude(self) -> f64 {
        self.abs()
    }
    #[inline(always)]
    fn exp(x: f64) -> f64 {
        exp_f64(x)
    }
    #[inline(always)]
    fn exp_beside(self, top: f64) -> f64 {
        exp_f64(self - top)
    }
}

/// Calls `f(slot, lane, value)` for each lane that the mask lets through.
#[inline(always)]
pub(super) fn each<T: Copy>(
    folds: bool,
    x: &[T],
    mask: Option<&[u8]>,
    mut f: impl FnMut(usize, usize, T),
) {
    let slot = |l: usize| if folds { l % FOLD } else { l };
    match mask {
        None => x.iter().enumerate().for_each(|(l, x)| f(slot(l), l, *x)),
        Some(mask) => {
            for (l, (x, m)) in x.iter().zip(mask).enumerate() {
                if *m != 0 {
                    f(slot(l), l, *x);
                }
            }
        }
    }
}

/// `to[slot] = f(to[slot], x)` for each lane.
#[inline(always)]
pub(super) fn update<A: Copy, T: Copy>(
    folds: bool,
    to: &mut [A],
    x: &[T],
    mask: Option<&[u8]>,
    f: impl Fn(A, T) -> A,
) {
    // Without branches, so that lanes go together where a mask lets some through.
    let masked = |to: A, x: T, m: u8| {
        let next = f(to, x);
        if m != 0 { next } else { to }
    };
    if !folds {
        match mask {
            None => {
                for (to, x) in to.iter_mut().zip(x) {
                    *to = f(*to, *x);
                }
            }
            Some(mask) => {
                for ((to, x), m) in to.iter_mut().zip(x).zip(mask) {
                    *to = masked(*to, *x, *m);
                }
            }
        }
        return;
    }
    let Some(to) = to.first_chunk_mut::<FOLD>() else {
        return;
    };
    let mut sums = *to;
    let (chunks, rest) = x.as_chunks::<FOLD>();
    match mask {
        None => {
            for chunk in chunks {
                for (sum, x) in sums.iter_mut().zip(chunk) {
                    *sum = f(*sum, *x);
                }
            }
            for (sum, x) in sums.iter_mut().zip(rest) {
                *sum = f(*sum, *x);
            }
        }
        Some(mask) => {
            let (masks, last) = mask.as_chunks::<FOLD>();
            for (chunk, mask) in chunks.iter().zip(masks) {
                for ((sum, x), m) in sums.iter_mut().zip(chunk).zip(mask) {
                    *sum = masked(*sum, *x, *m);
                }
            }
            for ((sum, x), m) in sums.iter_mut().zip(rest).zip(last) {
                *sum = masked(*sum, *x, *m);
            }
        }
    }
    *to = sums;
}

/// `to[l] = f(f(to[l], first[l]), second[l])`, and so on with all strips. Between `from` and `into` results are of another type.
#[inline(always)]
pub(super) fn updates<S: Copy, T: Copy>(
    to: &mut [f64],
    strips: &[&[T]; HELD],
    from: impl Fn(f64) -> S,
    into: impl Fn(S) -> f64,
    f: impl Fn(S, T) -> S,
) {
    let n = strips.iter().fold(to.len(), |n, strip| n.min(strip.len()));
    let strips = strips.map(|strip| &strip[..n]);
    for (l, to) in to[..n].iter_mut().enumerate() {
        let mut s = from(*to);
        for strip in strips {
            s = f(s, strip[l]);
        }
        *to = into(s);
    }
}

/// [`extreme`] of strips whose lanes are results, one after another.
#[inline(always)]
pub(super) fn extremes<T: Float>(
    to: &mut [f64],
    strips: &[&[T]; HELD],
    before: impl Fn(T, T) -> bool,
) {
    let choose = |s: T, x: T| {
        let takes = before(x, s) | x.nan();
        if takes & !s.nan() { x } else { s }
    };
    updates(to, strips, T::from_wide, T::into, choose);
}

/// Lanes that extremes are looked for in.
pub(super) const SIDES: usize = 16;

/// The value of all lanes that comes first in the order that `before` is of; none if there is no lane, or a NaN.
#[inline(always)]
pub(super) fn extreme_of<T: Float>(
    x: &[T],
    before: impl Fn(T, T) -> bool,
    of: impl Fn(T) -> T,
) -> Option<T> {
    let start = of(*x.first()?);
    let choose = |s: T, x: T| if before(x, s) { x } else { s };
    let (mut best, mut nans) = ([start; SIDES], [0u32; SIDES]);
    let (chunks, rest) = x.as_chunks::<SIDES>();
    // Each in a loop of its own, which is one vector of lanes.
    for chunk in chunks {
        for (best, x) in best.iter_mut().zip(chunk) {
            *best = choose(*best, of(*x));
        }
        for (nans, x) in nans.iter_mut().zip(chunk) {
            *nans |= u32::from(x.nan());
        }
    }
    for ((best, nans), x) in best.iter_mut().zip(&mut nans).zip(rest) {
        *best = choose(*best, of(*x));
        *nans |= u32::from(x.nan());
    }
    let mut half = SIDES / 2;
    while half > 0 {
        for l in 0..half {
            best[l] = choose(best[l], best[l + half]);
            nans[l] |= nans[l + half];
        }
        half /= 2;
    }
    (nans[0] == 0).then_some(best[0])
}

/// The first lane that has a value.
#[inline(always)]
pub(super) fn first_lane<T: Float>(x: &[T], value: T) -> Option<usize> {
    let (chunks, rest) = x.as_chunks::<SIDES>();
    for (number, chunk) in chunks.iter().enumerate() {
        let mut found = 0u32;
        for (l, x) in chunk.iter().enumerate() {
            found |= u32::from(*x == value) << l;
        }
        if found != 0 {
            return Some(number * SIDES + found.trailing_zeros() as usize);
        }
    }
    let lane = rest.iter().position(|x| *x == value)?;
    Some(chunks.len() * SIDES + lane)
}

/// Keeps `s` or takes `of(x)` if it is `before` it, in each lane's own precision: what is compared came from lanes. NaN if
/// either is, the first one if both are.
#[inline(always)]
pub(super) fn extreme<T: Float>(
    folds: bool,
    to: &mut [f64],
    x: &[T],
    mask: Option<&[u8]>,
    before: impl Fn(T, T) -> bool,
    of: impl Fn(T) -> T,
) {
    let choose = |s: T, x: T| {
        let takes = before(x, s) | x.nan();
        if takes & !s.nan() { x } else { s }
    };
    if folds
        && mask.is_none()
        && let Some(best) = extreme_of(x, &before, &of)
    {
        to[0] = choose(T::from_wide(to[0]), best).into();
        return;
    }
    update(folds, to, x, mask, |s, x| {
        choose(T::from_wide(s), of(x)).into()
    });
}

/// Of each of several results, the value that comes first in the order that `before` is of, and its number, which is the same for all lanes:
/// without branches, so that lanes are compared together. A negative number says that there is no value yet.
#[inline(always)]
pub(super) fn firsts<A: Copy, T: Copy + Into<A>>(
    (values, numbers): (&mut [A], &mut [i64]),
    x: &[T],
    number: i64,
    before: impl Fn(A, A) -> bool,
) {
    for ((value, at), x) in values.iter_mut().zip(numbers).zip(x) {
        let x = (*x).into();
        let takes = before(x, *value) | (*at < 0);
        *value = if takes { x } else { *value };
        *at = if takes { number } else { *at };
    }
}

/// `add(sum, of(lane))` of each lane, all lanes into one result: several slots for each of the result's, so that sums need not wait for
/// each other.
#[inline(always)]
pub(super) fn sums<T: Float>(
    to: &mut [f64],
    x: &[T],
    of: impl Fn(T) -> f64,
    add: impl Fn(f64, f64) -> f64,
) {
    let Some(to) = to.first_chunk_mut::<FOLD>() else {
        return;
    };
    let mut slots = [[0.0; FOLD]; 4];
    let (chunks, rest) = x.as_chunks::<{ 4 * FOLD }>();
    for chunk in chunks {
        // Converted as a whole, so that vectors are.
        let mut wide = [0.0; 4 * FOLD];
        for l in 0..4 * FOLD {
            wide[l] = of(chunk[l]);
        }
        for k in 0..4 {
            for l in 0..FOLD {
                slots[k][l] = add(slots[k][l], wide[k * FOLD + l]);
            }
        }
    }
    for (l, x) in rest.iter().enumerate() {
        let slot = &mut slots[l / FOLD][l % FOLD];
        *slot = add(*slot, of(*x));
    }
    let mut sums = *to;
    for s in 0..FOLD {
        let first = slots[0][s] + slots[1][s];
        sums[s] += first + (slots[2][s] + slots[3][s]);
    }
    *to = sums;
}

/// One value more in a stable log-sum-exp.
#[inline(always)]
pub(super) fn log_sum_exp<T: Float>(top: &mut f64, sum: &mut f64, x: f64) {
    if x == f64::NEG_INFINITY {
        return;
    }
    if x == *top {
        *sum += 1.0;
    } else if x < *top {
        *sum += T::exp(x - *top);
    } else if x > *top {
        *sum = if x == f64::INFINITY {
            1.0
        } else {
            *sum * T::exp(*top - x) + 1.0
        };
        *top = x;
    } else {
        (*top, *sum) = (f64::NAN, f64::NAN);
    }
}

/// One finite value more in each of several results, as [`log_sum_exp`] adds it, without branches: one exponential a lane is enough, of
/// the smaller less the larger one.
#[inline(always)]
pub(super) fn log_sums_exp<T: Float>(
    tops: &mut [f64],
    sums: &mut [f64],
    x: &[T],
    mask: Option<&[u8]>,
) {
    let add = |top: &mut f64, sum: &mut f64, x: f64, takes: bool| {
        let is_larger = x > *top;
        let power = T::exp(if is_larger { *top - x } else { x - *top });
        let more = if is_larger {
            *sum * power + 1.0
        } else {
            *sum + power
        };
        *sum = if takes { more } else { *sum };
        *top = if is_larger & takes { x } else { *top };
    };
    let slots = tops.iter_mut().zip(sums).zip(x);
    match mask {
        None => {
            for ((top, sum), x) in slots {
                add(top, sum, (*x).into(), true);
            }
        }
        Some(mask) => {
            for (((top, sum), x), takes) in slots.zip(mask) {
                add(top, sum, (*x).into(), *takes != 0);
            }
        }
    }
}

/// One absolute value more in a norm that does not overflow.
#[inline(always)]
pub(super) fn norm(scale: &mut f64, sum: &mut f64, x: f64) {
    if x > *scale {
        let ratio = *scale / x;
        *sum = 1.0 + *sum * ratio * ratio;
        *scale = x;
    } else if x <= *scale {
        if x > 0.0 && *scale < f64::INFINITY {
            *sum += (x / *scale) * (x / *scale);
        }
    } else {
        *scale = f64::NAN;
    }
}
