//! Which part of an operand's dimension a kernel reads when some of its indices are cut.
//!
//! A dimension that is read by nothing but the bare name of a cut index over the whole extent is cut like the index. One that is read
//! at an affine position, or at the quotient of one, is wanted in a window around the piece of one cut index: its coefficient times the
//! index, from the least to the greatest of what the constant and the other indices add, all of it divided. Everything else is wanted
//! whole: positions that data decide, and windows that are most of the dimension anyway. Must not know relations.
//!
//! ```text
//! a0[2 * i + r - 1, i, j]   with i cut, r below 3   gives   windows 2*i-1..2*i+1 and i..i, and the whole
//! a0[i / 50, i % 50]        with i cut              gives   windows i/50..i/50, and the whole
//! ```

use ein_plan::{IndexId, Kernel, NodeId, Quotient, Window};

/// The part of a dimension that a joined tuple holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// All of it.
    Whole,
    /// The piece of an index, which has the dimension's extent.
    Piece(IndexId),
    /// The positions from `(scale · i + low) / divisor` to `(scale · i + high) / divisor` for every i of the piece of an index; without
    /// an index those from `low` to `high`.
    Window {
        /// The cut index that moves it.
        index: Option<IndexId>,
        /// Its coefficient; 0 without an index.
        scale: i64,
        /// The first position.
        low: i64,
        /// The last position.
        high: i64,
        /// The divisor of positions; 1 without an index.
        divisor: i64,
    },
}

impl Part {
    /// The index whose piece it depends on.
    pub fn index(&self) -> Option<IndexId> {
        match self {
            Part::Whole => None,
            Part::Piece(index) => Some(*index),
            Part::Window { index, .. } => *index,
        }
    }

    /// The piece's index, if it is one.
    pub fn piece(&self) -> Option<IndexId> {
        match self {
            Part::Piece(index) => Some(*index),
            _ => None,
        }
    }

    /// Returns whether it has all of another part, whatever the pieces are.
    pub fn holds(&self, other: &Part) -> bool {
        match (self.window(), other.window()) {
            _ if self == other => true,
            (Some(own), Some(other)) => {
                alike(&own, &other) && own.low <= other.low && other.high <= own.high
            }
            _ => false,
        }
    }

    /// The window that it is, moved by the number of its index; a piece is one, too.
    pub fn window(&self) -> Option<Window> {
        let (index, scale, low, high, divisor) = match *self {
            Part::Whole => return None,
            Part::Piece(index) => (Some(index), 1, 0, 0, 1),
            Part::Window {
                index,
                scale,
                low,
                high,
                divisor,
            } => (index, scale, low, high, divisor),
        };
        Some(Window {
            key: index.map(|index| index.0),
            scale,
            low,
            high,
            divisor,
        })
    }

    /// The smallest part that has all of two, if they move alike and hardly anything lies between them.
    pub fn with(&self, other: &Part) -> Option<Part> {
        if self == other {
            return Some(*self);
        }
        let (own, other) = (self.window()?, other.window()?);
        let (low, high) = (own.low.min(other.low), own.high.max(other.high));
        let near = NEAR.saturating_mul(own.divisor);
        let most = ((own.high - own.low) + (other.high - other.low)).saturating_add(near);
        (alike(&own, &other) && high - low <= most).then_some(Part::Window {
            index: self.index(),
            scale: own.scale,
            low,
            high,
            divisor: own.divisor,
        })
    }
}

/// Returns whether two windows move alike.
fn alike(one: &Window, other: &Window) -> bool {
    (one.key, one.scale, one.divisor) == (other.key, other.scale, other.divisor)
}

/// Windows of one operand become one if so many positions lie between them at most.
const NEAR: i64 = 64;

/// Which reads are wanted in windows.
#[derive(Clone, Copy, Debug)]
pub enum Windows<'a> {
    /// None: what is read otherwise than by an index's bare name is wanted whole.
    None,
    /// Those of some operands.
    Of {
        /// By operand of the kernel.
        operands: &'a [bool],
        /// By index: whether windows move with it.
        moving: &'a [bool],
    },
}

impl Windows<'_> {
    fn of(&self, operand: u32) -> Option<&[bool]> {
        match self {
            Windows::Of { operands, moving } if operands[operand as usize] => Some(moving),
            _ => None,
        }
    }
}

/// By dimension of an operand, the part that a read at these positions wants. A read with a window in some dimension has no window
/// that is moved by an index which cuts another dimension into pieces, so that parts are independent of how these are cut.
pub fn parts(
    kernel: &Kernel,
    operand: u32,
    positions: &[NodeId],
    pieces: &[u32],
    windows: &Windows<'_>,
) -> Vec<Part> {
    let shape = &kernel.operands[operand as usize].shape;
    let bare: Vec<Option<IndexId>> = positions
        .iter()
        .map(|position| kernel.graph.as_index(*position))
        .collect();
    let moving = windows.of(operand);
    let part = |(at, extent): (usize, &u64)| {
        let cut = bare[at].filter(|index| {
            pieces[index.0 as usize] > 1
                && kernel.indices[index.0 as usize].extent == *extent
                && bare.iter().filter(|other| **other == Some(*index)).count() == 1
        });
        match (cut, moving) {
            (Some(index), _) => Part::Piece(index),
            (None, Some(moving)) => window(kernel, positions[at], *extent, moving),
            (None, None) => Part::Whole,
        }
    };
    shape.iter().enumerate().map(part).collect()
}

/// The window of a dimension that is read at a position.
fn window(kernel: &Kernel, position: NodeId, extent: u64, moving: &[bool]) -> Part {
    let extent_of = |index: IndexId| kernel.indices[index.0 as usize].extent;
    let moving = |index: IndexId| moving[index.0 as usize];
    let quotient = kernel.graph.as_quotient(position);
    let part = quotient.and_then(|quotient| around(&quotient, extent_of, extent, &moving));
    part.unwrap_or(Part::Whole)
}

/// The window around a quotient; none if it is hardly less than the whole.
pub fn around(
    Quotient { form, divisor }: &Quotient,
    extent_of: impl Fn(IndexId) -> u64,
    extent: u64,
    moving: &dyn Fn(IndexId) -> bool,
) -> Option<Part> {
    let extent = i64::try_from(extent).ok()?;
    let far = |(index, coefficient): &(IndexId, i64)| {
        let last = extent_of(*index).saturating_sub(1);
        coefficient.unsigned_abs().saturating_mul(last)
    };
    let own = form.terms.iter().filter(|(index, _)| moving(*index));
    let by = own.max_by_key(|term| (far(term), std::cmp::Reverse(term.0)));
    let (index, scale) = by.map_or((None, 0), |(index, scale)| (Some(*index), *scale));
    let (mut low, mut high) = form.reach(extent_of, index)?;
    let mut divisor = *divisor;
    if index.is_none() {
        (low, high) = (low.div_euclid(divisor), high.div_euclid(divisor));
        divisor = 1;
        (low, high) = (low.clamp(0, extent), high.clamp(-1, extent - 1));
        if high < low {
            // Nothing of it is inside; the read faults or has another value.
            (low, high) = (0, 0);
        }
        if low == 0 && high >= extent - 1 {
            return None;
        }
    }
    // What is most of the dimension for every tuple is taken whole.
    let narrow = high.checked_sub(low)?.checked_mul(2)? / divisor < extent;
    narrow.then_some(Part::Window {
        index,
        scale,
        low,
        high,
        divisor,
    })
}

/// Adds the parts of an operand that a read wants to those that are there: to some that they can be one with, else by themselves.
pub fn merged(operands: &mut Vec<(u32, Vec<Part>)>, operand: u32, wanted: Vec<Part>) {
    let mut joint = wanted;
    // What has grown may meet others.
    while let Some((at, together)) = operands.iter().enumerate().find_map(|(at, (other, held))| {
        let both = held.iter().zip(&joint).map(|(held, part)| held.with(part));
        let both: Option<Vec<Part>> = both.collect();
        both.filter(|_| *other == operand).map(|both| (at, both))
    }) {
        if operands[at].1 == together {
            return;
        }
        operands.remove(at);
        joint = together;
    }
    operands.push((operand, joint));
}
