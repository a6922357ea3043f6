//! The programs of a member's blocks, kept for the next time.
//!
//! Must not know what else a member is computed by.
//!
//! ```text
//! [n] sum m1[n, d], 512 rows in blocks of 32:   a program for 32 rows, in the order of summation of all 512
//! ```

use super::Member;
use crate::boxes::Boxes;
use crate::drive::Driver;
use crate::memo::{self, Key, OperandLayout, Purpose, Ready};
use crate::program::{Program, Request};
use crate::{Fusion, direct};
use ein_plan::Kernel;
use ein_plan::schedule::access::Place;
use std::sync::Arc;

/// The facts that a member's programs are made of.
pub(super) struct Programs<'p> {
    pub member: &'p Member<'p>,
    pub ranges: &'p [(i64, i64)],
    /// Of the reduced indices.
    pub extents: &'p [i64],
    /// Where its operands lie.
    pub places: &'p [Place],
    pub blocks: &'p Boxes<'p>,
    pub fusion: Fusion,
}

impl Programs<'_> {
    /// The program of a kernel with the member's indices; `apart`: a strip holds neighbours along the last output index only.
    pub(super) fn ready(&self, kernel: &Kernel, apart: bool) -> Arc<Ready> {
        let first = self.blocks.ranges(0);
        let key = Key {
            kernel: Some(kernel),
            ranges: &self.member.ranges,
            purpose: match apart {
                true => Purpose::Rows { first },
                false => Purpose::Blocks {
                    first,
                    results: vec![],
                },
            },
            layout: OperandLayout::At(self.places),
        };
        memo::program(self.member.memo, key, |times| {
            self.make(kernel, apart, times)
        })
    }

    fn make(&self, kernel: &Kernel, apart: bool, times: u64) -> Ready {
        let (ranges, places) = (self.ranges, self.places);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let rank = kernel.output_rank as usize;
        let (output, reduced): (Vec<usize>, Vec<usize>) =
            ((0..rank).collect(), (rank..ranges.len()).collect());
        let axes = (output.as_slice(), reduced.as_slice());
        let request = |lengths, lanes| Request {
            lanes,
            apart,
            ..Request::of_kernel(kernel, &[], axes, ranges, lengths)
        };
        // What a reduction's order depends on is the whole's.
        let (parts, lanes) = match kernel.reduction {
            None => (1, (true, 1)),
            Some(_) => {
                let whole = Program::at(&request(&lengths, None), places);
                let driver = Driver::new(&whole, ranges, self.extents, kernel.finish);
                let lanes = (whole.nest.output_lanes, whole.nest.most_rows());
                (driver.parts(), lanes)
            }
        };
        let mut inner = lengths.clone();
        for (length, range) in inner.iter_mut().zip(self.blocks.ranges(0)) {
            *length = range.1 as usize;
        }
        let lengths = lengths.iter().map(|length| *length as u64);
        let points = lengths.fold(1u64, u64::saturating_mul);
        let request = request(&inner, Some(lanes));
        let runs = (points, times);
        let (program, complete) = direct::program(&request, places, kernel, runs, self.fusion);
        Ready {
            program,
            parts: Some(parts),
            complete,
        }
    }
}
