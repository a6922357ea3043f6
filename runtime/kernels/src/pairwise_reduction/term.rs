//! What is done with two elements, and lines of them.
//!
//! Lanes add up to [`RUN`] terms in the elements' own type, what comes of them is added up in double precision. Must not know
//! kernels.
//!
//! ```text
//! sum of squares of x = 1 2 3, y = 1 1 1   ->   5
//! ```

use crate::packed::Packed;
use crate::stream;
use crate::wide::Job;
use ein_plan::schedule::pairwise::Term;
use std::ops::{Add, Mul, Sub};

/// Terms that are added up in the elements' own type.
pub(super) const RUN: usize = 64;
/// Terms of a part of a line.
pub(super) const LINE: usize = 1 << 16;
/// Lines of fewer terms have fewer lanes.
const SHORT: usize = 256;

/// An element.
pub(crate) trait Number:
    Packed + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// Whether sums are kept in this type.
    const WIDE: bool;
    /// `self · a + b`, rounded once.
    fn fused(self, a: Self, b: Self) -> Self;
    /// |self|.
    fn magnitude(self) -> Self;
    /// Whether it is NaN.
    fn nan(self) -> bool;
    /// Part of a line of `terms` terms.
    fn line<R: Rule>(rule: R, terms: usize, far: bool, x: &[Self], y: &[Self]) -> f64;
}

macro_rules! number {
    ($t:ty, $wide:literal, $panel:literal, $narrow:literal) => {
        impl Number for $t {
            const WIDE: bool = $wide;
            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn nan(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn line<R: Rule>(rule: R, terms: usize, far: bool, x: &[Self], y: &[Self]) -> f64 {
                if terms < SHORT {
                    part::<$t, R, $narrow>(rule, far, x, y)
                } else {
                    part::<$t, R, $panel>(rule, far, x, y)
                }
            }
        }
    };
}

number!(f32, false, 64, 16);
number!(f64, true, 32, 8);

/// One row of the table of terms.
pub(crate) trait Rule: Copy {
    /// What no term gives.
    fn start<T: Number>(self) -> T;
    /// One term more.
    fn add<T: Number>(self, s: T, x: T, y: T) -> T;
    /// Two results as one.
    fn join(self, a: f64, b: f64) -> f64;
}

/// Keeps `s` or takes `x`: NaN if either is, the first one if both are.
#[inline(always)]
fn chosen<T: Number>(keeps: bool, s: T, x: T) -> T {
    if keeps | s.nan() { s } else { x }
}

macro_rules! rules {
    ($($name:ident: $start:expr, |$s:ident, $x:ident, $y:ident| $add:expr, |$a:ident, $b:ident| $join:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name;
            impl Rule for $name {
                #[inline(always)]
                fn start<T: Number>(self) -> T {
                    T::from_f64($start)
                }
                #[inline(always)]
                fn add<T: Number>(self, $s: T, $x: T, $y: T) -> T {
                    $add
                }
                #[inline(always)]
                fn join(self, $a: f64, $b: f64) -> f64 {
                    $join
                }
            }
        )*
        /// Calls a function with a term's rule.
        macro_rules! with_rule {
            ($term:expr, $rule:ident => $body:expr) => {
                match $term {
                    $(Term::$name => {
                        let $rule = $name;
                        $body
                    })*
                }
            };
        }
    };
}

rules! {
    SumOfSquares: 0.0, |s, x, y| { let d = x - y; d.fused(d, s) }, |a, b| a + b;
    SumOfDistances: 0.0, |s, x, y| s + (x - y).magnitude(), |a, b| a + b;
    SumOfProducts: 0.0, |s, x, y| x.fused(y, s), |a, b| a + b;
    LargestDistance: f64::NEG_INFINITY, |s, x, y| { let d = (x - y).magnitude(); chosen(s >= d, s, d) }, |a, b| chosen(a >= b, a, b);
    LargestSum: f64::NEG_INFINITY, |s, x, y| { let d = x + y; chosen(s >= d, s, d) }, |a, b| chosen(a >= b, a, b);
    LeastSum: f64::INFINITY, |s, x, y| { let d = x + y; chosen(s <= d, s, d) }, |a, b| chosen(a <= b, a, b);
}

/// Two results as one.
pub(super) fn joined(term: Term, a: f64, b: f64) -> f64 {
    with_rule!(term, rule => rule.join(a, b))
}

/// A function of a rule.
pub(super) trait OfRule {
    /// Its value.
    type Output;
    /// Calls it.
    fn call<R: Rule>(self, rule: R) -> Self::Output;
}

/// Calls a function with the rule of a term.
#[inline(always)]
pub(super) fn of_rule<F: OfRule>(term: Term, function: F) -> F::Output {
    with_rule!(term, rule => function.call(rule))
}

/// The second elements of a line.
#[derive(Clone, Copy)]
pub(super) enum Seconds<'t, T> {
    /// As many as there are first ones.
    Each(&'t [T]),
    /// One for all of them.
    One(T),
}

/// A rule whose second element is one number, whatever it is told.
#[derive(Clone, Copy)]
struct Against<R>(R, f64);

impl<R: Rule> Rule for Against<R> {
    #[inline(always)]
    fn start<T: Number>(self) -> T {
        self.0.start()
    }
    #[inline(always)]
    fn add<T: Number>(self, s: T, x: T, _: T) -> T {
        self.0.add(s, x, T::from_f64(self.1))
    }
    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        self.0.join(a, b)
    }
}

struct Part<'t, T> {
    term: Term,
    terms: usize,
    x: &'t [T],
    y: Seconds<'t, T>,
}

/// A part, of at most [`LINE`] terms, of a line of `terms` terms, which lies in no cache of the core's own.
pub(super) fn part_of_line<'t, T: Number>(
    term: Term,
    terms: usize,
    x: &'t [T],
    y: Seconds<'t, T>,
) -> impl Job<Output = f64> + 't {
    Part { term, terms, x, y }
}

impl<T: Number> Job for Part<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<const BYTES: usize>(self) -> f64 {
        let Part { x, terms, .. } = self;
        with_rule!(self.term, rule => match self.y {
            Seconds::Each(y) => T::line(rule, terms, true, x, y),
            Seconds::One(y) => T::line(Against(rule, y.to_f64()), terms, true, x, x),
        })
    }
}

/// A whole line; `far`: of arrays that lie in no cache of the core's own.
#[inline(always)]
pub(super) fn line<T: Number, R: Rule>(rule: R, far: bool, x: &[T], y: Seconds<'_, T>) -> f64 {
    match y {
        Seconds::Each(y) => parts(rule, far, x, y),
        Seconds::One(y) => parts(Against(rule, y.to_f64()), far, x, x),
    }
}

#[inline(always)]
fn parts<T: Number, R: Rule>(rule: R, far: bool, x: &[T], y: &[T]) -> f64 {
    let terms = x.len();
    let mut total: Option<f64> = None;
    // No `fold`: where that is not inlined, its closure is compiled for any processor.
    for (x, y) in x.chunks(LINE).zip(y.chunks(LINE)) {
        let next = T::line(rule, terms, far, x, y);
        total = Some(match total {
            None => next,
            Some(total) => rule.join(total, next),
        });
    }
    total.unwrap_or(rule.start())
}

#[inline(always)]
fn part<T: Number, R: Rule, const L: usize>(rule: R, far: bool, x: &[T], y: &[T]) -> f64 {
    let near = L * RUN;
    let mut total: Option<f64> = None;
    for (x, y) in x.chunks(near).zip(y.chunks(near)) {
        let lanes = match far {
            true => lanes::<T, R, L, true>(rule, x, y),
            false => lanes::<T, R, L, false>(rule, x, y),
        };
        let next = folded(rule, &lanes);
        total = Some(match total {
            None => next,
            Some(total) => rule.join(total, next),
        });
    }
    total.unwrap_or(rule.start())
}

/// What each lane makes of the terms whose number it has modulo `L`. What comes next is asked for meanwhile if it is `FAR`.
#[inline(always)]
fn lanes<T: Number, R: Rule, const L: usize, const FAR: bool>(rule: R, x: &[T], y: &[T]) -> [T; L] {
    let mut lanes = [rule.start::<T>(); L];
    let ((xs, x), (ys, y)) = (x.as_chunks::<L>(), y.as_chunks::<L>());
    for (x, y) in xs.iter().zip(ys) {
        if FAR {
            stream::next(x.as_ptr().cast(), size_of_val(x));
            stream::next(y.as_ptr().cast(), size_of_val(y));
        }
        for l in 0..L {
            lanes[l] = rule.add(lanes[l], x[l], y[l]);
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
        *lane = rule.add(*lane, *x, *y);
    }
    lanes
}

/// All lanes as one: halves are joined.
#[inline(always)]
fn folded<T: Number, R: Rule, const L: usize>(rule: R, lanes: &[T; L]) -> f64 {
    let mut wide = [0.0; L];
    for l in 0..L {
        wide[l] = lanes[l].to_f64();
    }
    let mut half = L / 2;
    while half > 0 {
        for l in 0..half {
            wide[l] = rule.join(wide[l], wide[l + half]);
        }
        half /= 2;
    }
    wide[0]
}
