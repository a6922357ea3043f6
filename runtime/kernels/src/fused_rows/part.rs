//! A member of a sweep that is taken by itself, ready to run.
//!
//! Must not know blocks other than its own.
//!
//! ```text
//! [n] sum m1[n, d]   by its strips      [n, k] sum (a0[n, d] - a1[k, d])^2   as pairs, without a program
//! ```

use super::form::Form;
use super::programs::Programs;
use super::zeros::Zeros;
use super::{Member, Operand, Taken};
use crate::boxes::Boxes;
use crate::carrier::Rule;
use crate::contraction::Kept;
use crate::memo::Ready;
use crate::pairwise_reduction::Boxed;
use crate::program::place_of;
use crate::rows::Rows;
use crate::segment::Segment;
use crate::{Chunk, Options, contraction, signed, stream};
use ein_array::Array;
use ein_plan::schedule::Matmul;
use ein_plan::schedule::access::Place;
use ein_plan::schedule::mask::Mask;
use ein_plan::work::flops_per_point;
use ein_plan::{Kernel, Scalar};
use std::ops::Range;
use std::sync::Arc;

/// Where a member's operands lie.
pub(super) fn places(members: &[Member<'_>], member: &Member<'_>) -> Vec<Place> {
    let operands = member.operands.iter();
    let place = |operand: &Operand<'_>| match operand {
        Operand::Given(chunk) => place_of(chunk),
        Operand::Made(other) | Operand::Old(other) => {
            let other = &members[*other];
            Place::new(&other.ranges[..other.kernel.output_rank as usize])
        }
    };
    operands.map(place).collect()
}

/// How many operations take as long as reading and writing a point does.
const MOVED: f64 = 2.0;

/// Loops that need no program, ready for blocks.
pub(super) enum Direct {
    Pairwise(Boxed),
    Rows(Rows),
}

/// Rows that are one number but for a range of columns.
pub(super) struct Within {
    pub mask: Mask,
    /// The number, if it is known.
    pub outside: Option<f64>,
    /// The member that it is elsewhere, if nobody else reads that.
    pub taken: Option<usize>,
}

/// A member, ready to run.
pub(super) struct Part<'a> {
    pub member: &'a Member<'a>,
    /// Instead of the program, if it has such a form.
    pub form: Option<Direct>,
    /// Its program, unless it is taken together with others.
    pub ready: Option<Arc<Ready>>,
    pub ranges: Vec<(i64, i64)>,
    pub extents: Vec<i64>,
    /// Elements of a row of its result.
    pub row: usize,
    /// Whether its result is written past the caches.
    pub streams: bool,
    /// Whether a later member reads it that is not taken together with it.
    pub read: bool,
    /// The matrix product that its blocks are, and what they share.
    pub product: Option<(Matmul, Kept)>,
    /// What its rows are one number but for, if it is computed so.
    pub within: Option<Within>,
    /// The columns that are wanted of it, if it is a product.
    pub wanted: Option<Mask>,
    /// Which of its terms may be 0, if it is a product.
    pub zeros: Option<Zeros>,
    /// How blocks become one number, if that is what it makes.
    pub gathers: Option<Rule>,
    /// About how long all of it takes; only comparisons mean something.
    pub work: f64,
}

impl<'a> Part<'a> {
    /// `alone`: whether it is not taken together with others.
    pub(super) fn new(
        members: &'a [Member<'a>],
        (number, form, alone): (usize, Option<Form>, bool),
        loops: &[Taken<'_>],
        blocks: &Boxes<'_>,
        options: &Options,
    ) -> Part<'a> {
        let member = &members[number];
        let kernel = member.kernel;
        let rank = kernel.output_rank as usize;
        let ranges = signed(&member.ranges);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let places = places(members, member);
        let given: Vec<Option<&Chunk<'_>>> = (member.operands.iter())
            .map(|operand| match operand {
                Operand::Given(chunk) => Some(chunk),
                Operand::Made(_) | Operand::Old(_) => None,
            })
            .collect();
        let extents: Vec<i64> = kernel.indices[rank..]
            .iter()
            .map(|i| i.extent as i64)
            .collect();
        let rows = blocks.extents.len();
        let programs = Programs {
            member,
            ranges: &ranges,
            extents: &extents,
            places: &places,
            blocks,
            fusion: options.fusion,
        };
        let decided = &loops[number].rows;
        let within = decided.masked.as_ref().filter(|_| alone).and_then(|own| {
            let root = own.root(kernel);
            let inside = Kernel {
                root,
                ..kernel.clone()
            };
            let ready = programs.ready(&inside, true);
            let within = Within {
                mask: own.mask.clone(),
                outside: own.outside.map(Scalar::as_f64),
                taken: own.over.map(|product| product as usize),
            };
            let faults = ready.program.registers[root.0 as usize].poison.is_some();
            (!faults).then_some((ready, within))
        });
        let (ready, within) = match within {
            Some((ready, within)) => (Some(ready), Some(within)),
            None => (alone.then(|| programs.ready(kernel, false)), None),
        };
        let elements: usize = lengths[..rank].iter().product();
        let bytes = elements
            * kernel
                .output
                .iter()
                .map(|dtype| dtype.size())
                .sum::<usize>();
        Part {
            member,
            form: form.map(|form| match form {
                Form::Pairwise(pairs) => Direct::Pairwise(Boxed::new(pairs, &ranges, &given)),
                Form::Rows(rows) => Direct::Rows(rows),
            }),
            ready,
            extents,
            streams: member.kept && bytes >= stream::FAR,
            row: lengths[rows.min(rank)..rank].iter().product(),
            read: false,
            ranges,
            product: loops[number].product().map(|product| {
                let (first, all) = (blocks.ranges(0), blocks.extents.iter());
                let cut = first.into_iter().zip(all).enumerate();
                let cut = cut.filter(|(_, (own, all))| own != *all).map(|cut| cut.0);
                (product.clone(), Kept::new(cut))
            }),
            within,
            wanted: decided.within.and_then(|reader| {
                let reader = loops[reader as usize].rows.masked.as_ref();
                reader.map(|masked| masked.mask.clone())
            }),
            zeros: (decided.zeros.as_ref()).and_then(|zeros| Zeros::of(member, zeros)),
            gathers: gathers(member),
            work: lengths.iter().map(|length| *length as f64).product::<f64>()
                * (MOVED + flops_per_point(kernel) as f64),
        }
    }

    /// Its result in a block, if it is a product of matrices: of the part of it that is wanted, and from these terms. The rest is any numbers.
    pub(super) fn product(
        &self,
        block: &[(i64, i64)],
        terms: Option<(usize, Range<i64>)>,
        operands: &[Chunk<'_>],
        room: Option<Array>,
    ) -> Option<Array> {
        let (form, kept) = self.product.as_ref()?;
        let rank = self.member.kernel.output_rank as usize;
        let block: Vec<(u64, u64)> = unsigned(block);
        let mut part = block.clone();
        if let Some(mask) = &self.wanted {
            let columns = mask.of_rows(&signed(&block[..rank]));
            part[rank - 1] = (columns.start as u64, (columns.end - columns.start) as u64);
        }
        if let Some((index, terms)) = terms {
            part[index] = (terms.start as u64, (terms.end - terms.start) as u64);
        }
        let of = contraction::Block {
            whole: &block,
            part: &part,
            form,
            kept,
        };
        contraction::run_block(self.member.kernel, &of, operands, room)
    }

    /// Copies what is made of a block to its columns, if it is kept.
    pub(super) fn hand_on(&self, made: &[Array], columns: &mut [Segment<'_>]) {
        for (column, made) in columns.iter_mut().zip(made) {
            column.copy(made.data(), self.streams);
        }
        stream::fence(self.streams);
    }

    /// Its ranges in a block.
    pub(super) fn block(&self, rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut own = self.ranges.clone();
        own[..rows.len()].copy_from_slice(rows);
        own
    }
}

fn unsigned(ranges: &[(i64, i64)]) -> Vec<(u64, u64)> {
    ranges.iter().map(|(s, n)| (*s as u64, *n as u64)).collect()
}

/// How blocks become one number, if that is what a member makes.
pub(super) fn gathers(member: &Member<'_>) -> Option<Rule> {
    let kernel = member.kernel;
    let reduction = kernel.reduction.filter(|_| kernel.output_rank == 0);
    reduction.map(|reduction| Rule {
        reduction,
        value: kernel.graph.dtype(kernel.root),
    })
}
