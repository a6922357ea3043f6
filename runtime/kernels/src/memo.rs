//! Programs of a kernel that is run again and again, kept from run to run.
//!
//! A program depends on what its [`Key`] says, not on what operands hold. In a loop, or in the steps of a training, that is the same every
//! time, and a small kernel takes less time than making its program. Keys are compared whole. Must not know what a program does.
//!
//! ```text
//! run 1: [i: 64] a0[i] + a1[i] over 0..64   made      run 2: the same ranges and places   kept
//! ```

use crate::Chunk;
use crate::program::{Program, is_place_of, place_of};
use ein_plan::schedule::access::Place;
use ein_plan::{Kernel, NodeId};
use std::sync::{Arc, Mutex, PoisonError};

/// Most programs that are kept: one for each tuple of a site, as long as these are few.
const MOST: usize = 8;

/// What is kept of one kernel, which is always run with the same options.
#[derive(Default)]
pub struct Memo(Mutex<Vec<Known>>);

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memo")
    }
}

/// A program to run.
pub(crate) struct Ready {
    pub program: Program<'static>,
    /// Into how many parts each reduction is cut, if that is decided.
    pub parts: Option<u64>,
    /// Whether no group is left that may be compiled later.
    pub complete: bool,
}

/// All that a program is made from, besides the options.
pub(crate) struct Key<'k> {
    /// The kernel, if it is not always the memo's own.
    pub kernel: Option<&'k Kernel>,
    /// Start and length of each index.
    pub ranges: &'k [(u64, u64)],
    /// The use that the program is for.
    pub purpose: Purpose,
    /// Where the operands lie.
    pub layout: OperandLayout<'k>,
}

/// The use that a program is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// All points at once, the result in memory of its own.
    Whole,
    /// So many points of each index, anywhere in its range.
    Some(Vec<u64>),
    /// All points at once, the result in the memory of this operand.
    Over(usize),
    /// Blocks of rows of which this is the first one; of several results, their nodes.
    Blocks {
        first: Vec<(i64, i64)>,
        results: Vec<NodeId>,
    },
    /// The same, each row apart from the others.
    Rows { first: Vec<(i64, i64)> },
}

/// Where operands lie.
#[derive(Clone, Copy)]
pub(crate) enum OperandLayout<'a> {
    At(&'a [Place]),
    As(&'a [Chunk<'a>]),
}

impl OperandLayout<'_> {
    fn is(&self, known: &[Place]) -> bool {
        match self {
            OperandLayout::At(places) => *places == known,
            OperandLayout::As(chunks) => {
                let same = |(place, chunk): (&Place, &Chunk<'_>)| is_place_of(place, chunk);
                chunks.len() == known.len() && known.iter().zip(*chunks).all(same)
            }
        }
    }

    fn places(&self) -> Vec<Place> {
        match self {
            OperandLayout::At(places) => places.to_vec(),
            OperandLayout::As(chunks) => chunks.iter().map(place_of).collect(),
        }
    }
}

/// A program, and what it was made for.
struct Known {
    kernel: Option<Kernel>,
    ranges: Vec<(u64, u64)>,
    purpose: Purpose,
    places: Vec<Place>,
    ready: Arc<Ready>,
    /// How often it was asked for.
    runs: u64,
    /// The run at which it is made again, because by then there may be code for more of it.
    again: Option<u64>,
}

/// The program of a key, kept if there is a memo; `make` makes it, for so many runs since it was made last.
pub(crate) fn program(
    memo: Option<&Memo>,
    key: Key<'_>,
    make: impl FnOnce(u64) -> Ready,
) -> Arc<Ready> {
    match memo {
        Some(memo) => memo.program(key, make),
        None => Arc::new(make(1)),
    }
}

impl Known {
    fn is_of(&self, key: &Key<'_>) -> bool {
        self.ranges == key.ranges
            && self.purpose == key.purpose
            && self.kernel.as_ref() == key.kernel
            && key.layout.is(&self.places)
    }
}

impl Memo {
    fn program(&self, key: Key<'_>, make: impl FnOnce(u64) -> Ready) -> Arc<Ready> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| known.is_of(&key));
        let mut times = 1;
        if let Some(kept) = at.map(|at| &mut known[at]) {
            kept.runs += 1;
            match kept.again {
                Some(run) if run <= kept.runs => times = kept.runs / 2,
                _ => return Arc::clone(&kept.ready),
            }
        }
        let ready = Arc::new(make(times));
        match at {
            Some(at) => {
                let kept = &mut known[at];
                kept.ready = Arc::clone(&ready);
                kept.again = (!ready.complete).then_some(2 * kept.runs);
            }
            None if known.len() < MOST => known.push(Known {
                kernel: key.kernel.cloned(),
                ranges: key.ranges.to_vec(),
                places: key.layout.places(),
                purpose: key.purpose,
                ready: Arc::clone(&ready),
                runs: 1,
                again: (!ready.complete).then_some(2),
            }),
            None => {}
        }
        ready
    }
}
