//! Programs of a kernel that is run again and again, kept from run to run.
//!
//! A program depends on the kernel, its ranges and where its operands lie, not on what they hold. In a loop, or in the steps of a
//! training, these are the same every time, and a small kernel takes less time than making its program. Must not know what a
//! program does.
//!
//! ```text
//! run 1: [i: 64] a0[i] + a1[i] over 0..64   made      run 2: the same ranges and places   kept
//! ```

use crate::program::Program;
use crate::{Chunk, Fusion, drive};
use ein_plan::Kernel;
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

/// A program, and what it was made for.
struct Known {
    ranges: Vec<(u64, u64)>,
    /// Of each operand, where its part begins and its shape.
    places: Vec<(Vec<u64>, Vec<usize>)>,
    program: Arc<Program<'static>>,
    /// How often it was asked for.
    runs: u64,
    /// The run at which it is made again, because by then there may be code for more of it.
    again: Option<u64>,
}

impl Known {
    fn is_of(&self, ranges: &[(u64, u64)], operands: &[Chunk<'_>]) -> bool {
        self.ranges == ranges
            && self.places.len() == operands.len()
            && (self.places.iter().zip(operands)).all(|((start, shape), chunk)| {
                *start == chunk.start && *shape == chunk.columns[0].shape()
            })
    }
}

impl Memo {
    /// The program of a kernel over ranges, of operands that lie where these do.
    pub(crate) fn program(
        &self,
        kernel: &Kernel,
        ranges: &[(u64, u64)],
        operands: &[Chunk<'_>],
        fusion: Fusion,
    ) -> Arc<Program<'static>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|k| k.is_of(ranges, operands));
        let mut times = 1;
        if let Some(kept) = at.map(|at| &mut known[at]) {
            kept.runs += 1;
            match kept.again {
                Some(run) if run <= kept.runs => times = kept.runs / 2,
                _ => return Arc::clone(&kept.program),
            }
        }
        let (program, complete) = drive::program(kernel, ranges, operands, fusion, times);
        let program = Arc::new(program);
        match at {
            Some(at) => {
                let kept = &mut known[at];
                kept.program = Arc::clone(&program);
                kept.again = (!complete).then_some(2 * kept.runs);
            }
            None if known.len() < MOST => known.push(Known {
                ranges: ranges.to_vec(),
                places: (operands.iter())
                    .map(|chunk| (chunk.start.clone(), chunk.columns[0].shape().to_vec()))
                    .collect(),
                program: Arc::clone(&program),
                runs: 1,
                again: (!complete).then_some(2),
            }),
            None => {}
        }
        program
    }
}
