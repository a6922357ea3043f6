//! Groups of kernels in strips of rows, where what members make for each other would take too much memory.
//!
//! Members in a row that run over the rows make one strip after the other; of what is wanted behind them, the parts are put together. Must not
//! know how members are run.
//!
//! ```text
//! m0 = scores, m1 = their softmax, m2 = m1 . values; 16384 rows of 64 KiB   ->   4 strips of 4096 rows
//! ```

use crate::gpu::Gpu;
use crate::group::{joins, stretches};
use crate::groups::{self, Results, in_memory, is_wanted};
use crate::prepared::GpuKernel;
use ein_device::{
    Buffer, BufferType, Device, GroupLaunched, Member, MemberOperand, Span, kept, prepared_as,
};
use ein_plan::KernelError;
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs the members of a group.
pub(crate) fn run(
    gpu: &Gpu,
    members: &[Member<'_>],
    rows: usize,
    over: &BTreeMap<usize, Buffer>,
) -> GroupLaunched {
    let mut made: Results = vec![vec![]; members.len()];
    for stretch in over_rows(members, rows) {
        run_stretch(gpu, members, (&stretch, rows), (&mut made, over))?;
    }
    Ok(kept(members, made))
}

/// Runs some members of a group, in strips if what they make for each other would take too much memory.
///
/// # Errors
/// The first member that faults, and its fault at the first point.
fn run_stretch(
    gpu: &Gpu,
    members: &[Member<'_>],
    (stretch, rows): (&Range<usize>, usize),
    results: (&mut Results, &BTreeMap<usize, Buffer>),
) -> Result<(), (usize, KernelError)> {
    match strip(gpu, members, stretch, rows) {
        Some(strip) => in_strips(gpu, members, (stretch, rows), strip, results),
        None => groups::run(gpu, members, (stretch, rows), results),
    }
}

/// Members that run over the same rows, and those that do not, each by itself.
fn over_rows(members: &[Member<'_>], rows: usize) -> Vec<Range<usize>> {
    stretches(members.iter().map(|member| {
        let own: &GpuKernel = prepared_as(member.kernel);
        joins(&own.kernel, rows)
    }))
}

/// The index of the rows that is cut, and its values in a strip, if members are to be run in strips.
fn strip(
    gpu: &Gpu,
    members: &[Member<'_>],
    stretch: &Range<usize>,
    rows: usize,
) -> Option<(usize, u64)> {
    let in_memory = in_memory(gpu, members, stretch, rows);
    let passing = stretch.clone().zip(in_memory);
    let passing = passing.filter(|(number, is)| *is && !is_wanted(members, *number, stretch.end));
    let bytes: u64 = passing.map(|(number, _)| bytes_of(&members[number])).sum();
    let strips = bytes.div_ceil(gpu.working_space);
    let lengths = members[stretch.start].ranges[..rows].iter();
    let (longest, (_, length)) = lengths.enumerate().max_by_key(|(_, span)| span.1)?;
    (strips > 1 && *length > 1).then(|| (longest, length.div_ceil(strips).max(1)))
}

/// Runs members that run over the rows strip by strip, each in strips of another index if it is still too large, and adds what is wanted behind them
/// to what is made.
///
/// # Errors
/// The first member that faults, and its fault at the first point.
fn in_strips(
    gpu: &Gpu,
    members: &[Member<'_>],
    (stretch, rows): (&Range<usize>, usize),
    (index, most): (usize, u64),
    (made, over): (&mut Results, &BTreeMap<usize, Buffer>),
) -> Result<(), (usize, KernelError)> {
    let mut whole: Results = vec![vec![]; stretch.len()];
    let mut fault: Option<(usize, KernelError)> = None;
    let (first, length) = members[stretch.start].ranges[index];
    for from in (0..length).step_by(most as usize) {
        let span = (first + from, most.min(length - from));
        let mut strip = cut(members, stretch, (index, span), (made, over));
        // Behind a fault, only an earlier one is looked for.
        strip.truncate(fault.as_ref().map_or(strip.len(), |(number, _)| number + 1));
        let mut parts: Results = vec![vec![]; strip.len()];
        let all = 0..strip.len();
        match run_stretch(gpu, &strip, (&all, rows), (&mut parts, &BTreeMap::new())) {
            Err(found) => {
                let earlier = |known: &(usize, KernelError)| {
                    (found.0, &found.1.point) < (known.0, &known.1.point)
                };
                if fault.as_ref().is_none_or(earlier) {
                    fault = Some(found);
                }
            }
            Ok(()) if fault.is_some() => {}
            Ok(()) => {
                for (number, columns) in parts.iter().enumerate() {
                    let member = &members[stretch.start + number];
                    put(gpu, member, &mut whole[number], (index, from), columns);
                }
            }
        }
    }
    if let Some((number, fault)) = fault {
        return Err((stretch.start + number, fault));
    }
    for (number, columns) in stretch.clone().zip(whole) {
        made[number] = columns;
    }
    Ok(())
}

/// Puts what a member has made in a strip, which begins at this value of an index, into its whole result.
fn put(
    gpu: &Gpu,
    member: &Member<'_>,
    whole: &mut Vec<Buffer>,
    (index, from): (usize, u64),
    columns: &[Buffer],
) {
    if whole.is_empty() {
        let shape = shape_of(member);
        let types = columns
            .iter()
            .map(|column| BufferType::dense(column.dtype(), shape.clone()));
        whole.extend(types.map(|kind| Buffer::from(gpu.room(kind))));
    }
    for (to, part) in whole.iter_mut().zip(columns) {
        let extent = part.shape();
        let (mut start, zeros) = (vec![0; extent.len()], vec![0; extent.len()]);
        start[index] = from as usize;
        gpu.copy_box(to, &start, part, &zeros, extent);
    }
}

/// Members by themselves, at these values of an index of their rows.
fn cut<'a>(
    members: &[Member<'a>],
    stretch: &Range<usize>,
    (index, span): (usize, Span),
    (made, over): (&'a Results, &'a BTreeMap<usize, Buffer>),
) -> Vec<Member<'a>> {
    let own = stretch.clone().map(|number| {
        let mut member = members[number].clone();
        member.ranges[index] = span;
        member.kept = is_wanted(members, number, stretch.end);
        for operand in &mut member.operands {
            match operand {
                MemberOperand::Made(maker) if stretch.contains(maker) => *maker -= stretch.start,
                _ => *operand = MemberOperand::Given(operand.operand(members, (made, over))),
            }
        }
        member
    });
    own.collect()
}

fn shape_of(member: &Member<'_>) -> Vec<usize> {
    let own: &GpuKernel = prepared_as(member.kernel);
    let outputs = member.ranges.iter().take(own.kernel.output_rank as usize);
    outputs.map(|(_, length)| *length as usize).collect()
}

fn bytes_of(member: &Member<'_>) -> u64 {
    let own: &GpuKernel = prepared_as(member.kernel);
    let points: u64 = shape_of(member)
        .iter()
        .map(|extent| *extent as u64)
        .product();
    points.saturating_mul(own.kernel.output[0].size() as u64)
}
