//! Reads of strips: from a chunk of any stored type into lanes of the compute type.
//!
//! Must not know graphs.
//!
//! ```text
//! offset 3, lanes (2 of stride 8, 3 of stride 1)  ->  elements 3 4 5 11 12 13
//! ```
#![allow(unsafe_code)]

mod columns;
mod short;

use crate::stream;
use crate::strided::Plain;
use crate::wide::{self, Job};
use columns::Columns;
use ein_array::Data;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Rows at places that data say are fetched so many rows before they are read.
const ROWS_AHEAD: usize = 4;

/// The shape of a strip: how many values of each of its indices; the lanes are in row-major order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    /// Number along each dimension.
    pub sizes: Vec<usize>,
}

impl Extents {
    /// Number of lanes.
    pub(crate) fn lanes(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Whether lanes with these steps are neighbours in memory. A strip without dimensions is not.
    pub(crate) fn is_run(&self, steps: &[i64]) -> bool {
        let Some(inner) = self.sizes.len().checked_sub(1) else {
            return false;
        };
        let follows = |d: usize| steps[d] == steps[d + 1] * self.sizes[d + 1] as i64;
        steps[inner] == 1 && (0..inner).all(follows)
    }

    /// Number of lanes that are neighbours along the last dimension.
    pub(crate) fn run(&self) -> usize {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// Calls `f(first lane, coordinates of the run)` for each run along the last dimension, in order.
    #[inline(always)]
    pub(crate) fn runs(&self, mut f: impl FnMut(usize, &[usize])) {
        let outer = self.sizes.len().saturating_sub(1);
        let run = self.run();
        if self.lanes() == 0 {
            return;
        }
        let mut at = [0usize; 8];
        let outer = outer.min(at.len());
        let mut lane = 0;
        loop {
            f(lane, &at[..outer]);
            lane += run;
            let mut d = outer;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                at[d] += 1;
                if at[d] < self.sizes[d] {
                    break;
                }
                at[d] = 0;
            }
        }
    }
}

/// Σ step · coordinate over the outer dimensions of a run.
#[inline(always)]
pub(crate) fn along(steps: &[i64], at: &[usize]) -> i64 {
    steps.iter().zip(at).fold(0i64, |sum, (s, a)| {
        sum.wrapping_add(s.wrapping_mul(*a as i64))
    })
}

/// One run: `to[l] = f(from[offset + l · step])`.
#[inline(always)]
fn run_of<S: Copy, T: Copy>(to: &mut [T], from: &[S], offset: i64, step: i64, f: impl Fn(S) -> T) {
    let Some(last) = to.len().checked_sub(1) else {
        return;
    };
    let begin = offset as usize;
    match step {
        0 => to.fill(f(from[begin])),
        1 => {
            for (to, from) in to.iter_mut().zip(&from[begin..=begin + last]) {
                *to = f(*from);
            }
        }
        2.. => {
            let step = step as usize;
            for (to, from) in to.iter_mut().zip(from[begin..].iter().step_by(step)) {
                *to = f(*from);
            }
        }
        -1 => {
            let backward = from[begin - last..=begin].iter().rev();
            for (to, from) in to.iter_mut().zip(backward) {
                *to = f(*from);
            }
        }
        _ => {
            for (l, to) in to.iter_mut().enumerate() {
                *to = f(from[(offset + l as i64 * step) as usize]);
            }
        }
    }
}

/// A whole strip whose elements all exist.
#[inline(always)]
fn strip_of<S: Copy, T: Copy>(
    to: &mut [T],
    from: &[S],
    offset: i64,
    steps: &[i64],
    extents: &Extents,
    f: impl Fn(S) -> T + Copy,
) {
    let sizes = &extents.sizes;
    let Some(inner) = sizes.len().checked_sub(1) else {
        to[0] = f(from[offset as usize]);
        return;
    };
    // A strip of one piece of memory is one run.
    let whole = (0..inner).all(|d| steps[d] == steps[d + 1] * sizes[d + 1] as i64);
    if whole {
        return run_of(&mut to[..extents.lanes()], from, offset, steps[inner], f);
    }
    let run = sizes[inner];
    if let Some(columns) = Columns::of(offset, steps, extents) {
        return columns.read(to, from, f);
    }
    if short::read(to, from, offset, (steps, extents), f) {
        return;
    }
    extents.runs(|lane, at| {
        let begin = offset + along(steps, at);
        run_of(&mut to[lane..lane + run], from, begin, steps[inner], f);
    });
}

/// Runs that take turns: `to[l] = from[offsets[l % n] + l / n · step]` for `n` offsets.
#[inline(always)]
fn turns_of<S: Copy, T: Copy>(
    to: &mut [T],
    from: &[S],
    offsets: &[i64],
    step: i64,
    f: impl Fn(S) -> T,
) {
    if let ([one, other], 1) = (offsets, step) {
        let (pairs, last) = to.as_chunks_mut::<2>();
        let one = &from[*one as usize..][..pairs.len() + last.len()];
        let other = &from[*other as usize..][..pairs.len()];
        for ((pair, one), other) in pairs.iter_mut().zip(one).zip(other) {
            *pair = [f(*one), f(*other)];
        }
        if let ([last], Some(one)) = (last, one.get(pairs.len())) {
            *last = f(*one);
        }
        return;
    }
    for (first, offset) in offsets.iter().enumerate().take(to.len()) {
        let turns = to[first..].iter_mut().step_by(offsets.len());
        for (turn, to) in (0..).zip(turns) {
            *to = f(from[(offset + turn * step) as usize]);
        }
    }
}

/// Rows of so many lanes each: `to[row · length + l] = from[offsets[row] + l · step]`.
#[inline(always)]
fn rows_of<S: Copy, T: Copy>(
    to: &mut [T],
    from: &[S],
    offsets: &[i64],
    (length, step): (usize, i64),
    f: impl Fn(S) -> T + Copy,
) {
    for (row, to) in to.chunks_exact_mut(length).enumerate() {
        if let (Some(next), 1) = (offsets.get(row + ROWS_AHEAD), step) {
            stream::ahead(from, *next as usize..*next as usize + length);
        }
        run_of(to, from, offsets[row], step, f);
    }
}

/// Chosen elements: `to[l] = from[offsets[l]]` where the offset is not negative; other lanes are left.
#[inline(always)]
fn chosen_of<S: Copy, T: Copy>(to: &mut [T], from: &[S], offsets: &[i64], f: impl Fn(S) -> T) {
    for (to, offset) in to.iter_mut().zip(offsets) {
        if *offset >= 0 {
            *to = f(from[*offset as usize]);
        }
    }
}

/// Elements at `base` and these distances from it.
struct There<'a, S, T, F> {
    to: &'a mut [T],
    from: &'a [S],
    base: i64,
    offsets: &'a [i64],
    f: F,
}

impl<S: Copy, T: Copy, F: Fn(S) -> T> Job for There<'_, S, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        let There {
            to,
            from,
            base,
            offsets,
            f,
        } = self;
        let at = |offset: i64| base.wrapping_add(offset) as usize;
        let farthest = offsets.iter().fold(0, |far, offset| at(*offset).max(far));
        assert!(farthest < from.len(), "every position is inside");
        for (to, offset) in to.iter_mut().zip(offsets) {
            // SAFETY: no element is farther than `farthest`, which is there.
            *to = f(unsafe { *from.get_unchecked(at(*offset)) });
        }
    }
}

/// How the elements of a strip are found.
pub(crate) enum Pattern<'a> {
    /// Evenly spaced, all inside.
    Strip {
        offset: i64,
        steps: &'a [i64],
        extents: &'a Extents,
    },
    /// One run, all inside.
    Run { offset: i64, step: i64 },
    /// One run that goes round these, which are `step` further each time.
    Turns { offsets: &'a [i64], step: i64 },
    /// Rows of so many lanes each, which begin here, all inside.
    Rows {
        offsets: &'a [i64],
        length: usize,
        step: i64,
    },
    /// At these distances from one, all inside.
    There { base: i64, offsets: &'a [i64] },
    /// Anywhere; negative where there is nothing to read.
    Chosen(&'a [i64]),
}

impl Pattern<'_> {
    /// Where the elements begin, if they are neighbours.
    fn neighbours(&self) -> Option<usize> {
        match self {
            Pattern::Strip {
                offset,
                steps,
                extents,
            } => extents.is_run(steps).then_some(*offset as usize),
            Pattern::Run { offset, step: 1 } => Some(*offset as usize),
            _ => None,
        }
    }
}

/// A bfloat16 in single precision, without a branch.
#[inline(always)]
fn widened(x: bf16) -> f32 {
    let bits = x.to_bits();
    let quiet = if bits & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    f32::from_bits(u32::from(bits | quiet) << 16)
}

/// A compute type that strips can be read into.
pub(crate) trait Lane: Copy {
    /// The elements themselves, if they are stored in this type.
    fn elements(from: &Data) -> Option<&[Self]>;
    /// Reads neighbouring halves by the processor's own conversion; whether it was that.
    fn read_halves(_to: &mut [Self], _from: &Data, _pattern: &Pattern<'_>) -> bool {
        false
    }
    /// Reads a strip whose neighbours in memory lie along its first dimension, of elements that are stored in this type, by squares; whether
    /// it was that.
    fn read_squares(_to: &mut [Self], _from: &Data, _pattern: &Pattern<'_>) -> bool {
        false
    }
    /// Reads elements of a chunk whose stored type is computed in `Self`.
    fn read(to: &mut [Self], from: &Data, pattern: &Pattern<'_>);
}

#[inline(always)]
fn by_pattern<S: Copy, T: Copy>(
    to: &mut [T],
    from: &[S],
    pattern: &Pattern<'_>,
    f: impl Fn(S) -> T + Copy,
) {
    match pattern {
        Pattern::Strip {
            offset,
            steps,
            extents,
        } => strip_of(to, from, *offset, steps, extents, f),
        Pattern::Run { offset, step } => run_of(to, from, *offset, *step, f),
        Pattern::Turns { offsets, step } => turns_of(to, from, offsets, *step, f),
        Pattern::Rows {
            offsets,
            length,
            step,
        } => rows_of(to, from, offsets, (*length, *step), f),
        Pattern::There { base, offsets } => {
            let base = *base;
            wide::run(There {
                to,
                from,
                base,
                offsets,
                f,
            });
        }
        Pattern::Chosen(offsets) => chosen_of(to, from, offsets, f),
    }
}

macro_rules! lane {
    ($t:ty, $own:ident: $($stored:ident $f:expr),* $(; $by:item)*) => {
        impl Lane for $t {
            $($by)*
            fn elements(from: &Data) -> Option<&[Self]> {
                match from {
                    Data::$own(v) => Some(v),
                    _ => None,
                }
            }
            fn read(to: &mut [Self], from: &Data, pattern: &Pattern<'_>) {
                if Self::read_halves(to, from, pattern) || Self::read_squares(to, from, pattern) {
                    return;
                }
                match from {
                    $(Data::$stored(v) => by_pattern(to, v, pattern, $f),)*
                    other => unreachable!("a column of {} is not computed so", other.dtype()),
                }
            }
        }
    };
}

/// [`Lane::read_squares`] of plain numbers.
fn by_squares<T: Lane + Plain>(to: &mut [T], from: &Data, pattern: &Pattern<'_>) -> bool {
    let (
        Some(from),
        &Pattern::Strip {
            offset,
            steps,
            extents,
        },
    ) = (T::elements(from), pattern)
    else {
        return false;
    };
    match Columns::of(offset, steps, extents) {
        Some(columns) => columns.read_squares(to, from),
        None => false,
    }
}

lane!(f32, F32: F32 |x: f32| x, F16 |x: f16| x.to_f32(), BF16 |x: bf16| widened(x);
    fn read_halves(to: &mut [f32], from: &Data, pattern: &Pattern<'_>) -> bool {
        let (Data::F16(v), Some(begin)) = (from, pattern.neighbours()) else {
            return false;
        };
        v[begin..begin + to.len()].convert_to_f32_slice(to);
        true
    };
    fn read_squares(to: &mut [Self], from: &Data, pattern: &Pattern<'_>) -> bool {
        by_squares(to, from, pattern)
    }
);
lane!(f64, F64: F64 |x: f64| x;
    fn read_squares(to: &mut [Self], from: &Data, pattern: &Pattern<'_>) -> bool {
        by_squares(to, from, pattern)
    }
);
lane!(i32, I32: I32 |x: i32| x, U8 |x: u8| i32::from(x), U16 |x: u16| i32::from(x), I8 |x: i8| i32::from(x), I16 |x: i16| i32::from(x);
    fn read_squares(to: &mut [Self], from: &Data, pattern: &Pattern<'_>) -> bool {
        by_squares(to, from, pattern)
    }
);
lane!(i64, I64: I64 |x: i64| x, U32 |x: u32| i64::from(x), U64 |x: u64| x as i64;
    fn read_squares(to: &mut [Self], from: &Data, pattern: &Pattern<'_>) -> bool {
        by_squares(to, from, pattern)
    }
);
lane!(u8, Bool: Bool |x: u8| x);
