//! Where the lanes of a loop's results go: to their place, past the caches, or into one number.
//!
//! What goes into a number is added up in the strips of the strip machine, so that it has its bits, however many lanes the loop takes at once.
//! Must not know programs.
//!
//! ```text
//! rows of 1200 lanes, norm, 1024 lanes at once:   strips 400 400 | 224 held;  + 1024:   400 400 400 | 48 held
//! ```

use crate::accumulate::Accumulator;
use crate::carrier::{Carrier, Rule};
use crate::element::Element;
use crate::nest::{Nest, WIDTH};
use crate::segment::Segment;
use crate::stream;
use crate::wide::{self, Job};
use ein_array::Array;
use std::ops::Range;

/// Most lanes of a result that go by way of a buffer at once.
pub(crate) const MOST_LANES: usize = 1024;

/// Most lanes of a line.
const LINE: usize = 16;

/// Where the lanes of a result go.
pub(crate) enum Column<'s> {
    /// To these elements.
    There(Segment<'s>),
    /// To these elements, past the caches.
    Past(Segment<'s>),
    /// Into a number.
    Gathered(Gathering),
}

impl<'s> Column<'s> {
    /// The elements, of which there are some.
    pub(crate) fn segment(&mut self) -> Option<&mut Segment<'s>> {
        match self {
            Column::There(segment) | Column::Past(segment) => Some(segment),
            Column::Gathered(_) => None,
        }
    }

    /// What its lanes are gathered by, if they are.
    pub(crate) fn gathering(&self) -> Option<&Gathering> {
        match self {
            Column::Gathered(gathering) => Some(gathering),
            Column::There(_) | Column::Past(_) => None,
        }
    }

    /// Whether lanes are where they belong once a loop has made them.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, Column::There(_))
    }
}

/// Lanes of a result on their way past the caches, in whole lines.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Passing<T> {
    lanes: [T; MOST_LANES + LINE],
    /// Lanes of the line that is not complete, the first of `lanes`.
    held: usize,
}

impl<T: Element> Passing<T> {
    pub(crate) fn new() -> Passing<T> {
        Passing {
            lanes: [T::default(); MOST_LANES + LINE],
            held: 0,
        }
    }

    /// Where the next lanes are made.
    pub(crate) fn room(&mut self) -> *mut T {
        self.lanes[self.held..].as_mut_ptr()
    }

    /// Passes the lanes on that were made for these elements, all of them if they are the `last`.
    pub(crate) fn pass(&mut self, elements: &mut [T], made: Range<usize>, last: bool) {
        let to = &mut elements[made.start - self.held..made.end];
        let held = if last { 0 } else { stream::behind_line(to) };
        let whole = to.len() - held;
        stream::copy(&mut to[..whole], &self.lanes[..whole], true);
        self.lanes.copy_within(whole..whole + held, 0);
        self.held = held;
    }
}

/// Room for the lanes that pass, by type.
#[derive(Default)]
pub(crate) struct Passage {
    pub single: Vec<Passing<f32>>,
    pub double: Vec<Passing<f64>>,
}

/// The strips that points are reduced in, which lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strips {
    /// Points of a strip.
    each: usize,
    /// Points after which strips begin anew.
    row: usize,
}

impl Strips {
    /// Those of a reduction of all indices, over these ranges.
    pub(crate) fn of(nest: &Nest, ranges: &[(i64, i64)]) -> Strips {
        let each = nest.tiles.iter().product();
        let (first, rest) = (nest.strip.first(), nest.tiles.iter().skip(1));
        let length = first.map_or(1, |index| ranges[*index].1 as usize);
        Strips {
            each,
            row: length * rest.product::<usize>(),
        }
    }

    /// How many points there are from `at` to the end of its strip.
    fn left(&self, at: usize) -> usize {
        let within = at % self.row;
        (self.each - within % self.each).min(self.row - within)
    }
}

/// Lanes on their way into a number.
pub(crate) struct Gathering {
    accumulator: Accumulator,
    strips: Strips,
    /// Points that are added.
    added: usize,
    /// Lanes of the strip that is not complete, the first of `lanes`.
    held: usize,
    lanes: Array,
}

impl Gathering {
    pub(crate) fn new(rule: Rule, strips: Strips) -> Gathering {
        let mut accumulator = Accumulator::folding(rule);
        accumulator.reset(1);
        Gathering {
            accumulator,
            strips,
            added: 0,
            held: 0,
            lanes: Array::zeros(rule.value, &[MOST_LANES + WIDTH]),
        }
    }

    /// The most lanes, of so many, that are complete strips where rows are; all if a strip has more.
    pub(crate) fn whole_strips(&self, lanes: usize) -> usize {
        let each = self.strips.each.max(1);
        if each > lanes {
            lanes
        } else {
            lanes - lanes % each
        }
    }

    /// Room for the next lanes, at most `MOST_LANES`.
    pub(crate) fn room<T: Element>(&mut self, lanes: usize) -> *mut T {
        let held = self.held;
        let mut all = Segment::of(self.lanes.data_mut());
        T::elements(&mut all)[held..held + lanes].as_mut_ptr()
    }

    /// Takes the next lanes from the room that they were given.
    pub(crate) fn take<T: Element>(&mut self, lanes: usize) {
        let mut all = Segment::of(self.lanes.data_mut());
        let all = T::elements(&mut all);
        self.held += lanes;
        let done = wide::run(Add {
            accumulator: &mut self.accumulator,
            strips: self.strips,
            lanes: &all[..self.held],
            added: self.added,
        });
        all.copy_within(done..self.held, 0);
        self.held -= done;
        self.added += done;
    }

    /// Takes the next lanes, at most `MOST_LANES`, from where they lie.
    pub(crate) fn take_from<T: Element>(&mut self, mut lanes: &[T]) {
        if self.held == 0 {
            let done = wide::run(Add {
                accumulator: &mut self.accumulator,
                strips: self.strips,
                lanes,
                added: self.added,
            });
            self.added += done;
            lanes = &lanes[done..];
        }
        if !lanes.is_empty() {
            let held = self.held;
            let mut all = Segment::of(self.lanes.data_mut());
            T::elements(&mut all)[held..held + lanes.len()].copy_from_slice(lanes);
            self.take::<T>(lanes.len());
        }
    }

    /// What all lanes come to.
    pub(crate) fn carrier(&self) -> Carrier {
        debug_assert_eq!(self.held, 0, "the last strip is complete");
        self.accumulator.carrier(0)
    }
}

/// What is gathered of lanes that a loop reads, or makes for somebody else.
pub(crate) struct SideReduction {
    /// What the lanes are.
    pub node: u32,
    pub gathering: Gathering,
}

/// Adds whole strips of lanes; how many lanes these are comes of it.
struct Add<'l, T> {
    accumulator: &'l mut Accumulator,
    strips: Strips,
    lanes: &'l [T],
    added: usize,
}

impl<T: Element> Job for Add<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run<const BYTES: usize>(self) -> usize {
        let mut done = 0;
        loop {
            let next = self.strips.left(self.added + done);
            let Some(strip) = self.lanes.get(done..done + next) else {
                return done;
            };
            if strip.is_empty() {
                return done;
            }
            // Numbers of points are for reductions to places, which are not gathered so.
            self.accumulator.add_floats(strip, None, |_| 0);
            done += next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Passing;

    #[test]
    fn lanes_pass_to_where_they_were_made_for() {
        let cases: [(usize, &[usize]); 3] = [
            (0, &[1024, 1024, 7]),
            (13, &[3, 1, 900, 1024, 40]),
            (2200, &[1, 1]),
        ];
        for (first, parts) in cases {
            let mut elements = vec![-1.0f32; 5000];
            let mut passing = Passing::<f32>::new();
            let end = first + parts.iter().sum::<usize>();
            let mut at = first;
            for part in parts {
                let held = passing.held;
                for (lane, e) in passing.lanes[held..held + part].iter_mut().zip(at..) {
                    *lane = e as f32;
                }
                passing.pass(&mut elements, at..at + part, at + part == end);
                at += part;
            }
            for (e, x) in elements.iter().enumerate() {
                let made = (first..end).contains(&e);
                assert_eq!(*x, if made { e as f32 } else { -1.0 }, "{e} from {first}");
            }
        }
    }
}
