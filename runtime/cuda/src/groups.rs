//! Groups of kernels as a GPU runs them: as far as may be, one function for several members.
//!
//! Neighbouring members that have texts, and run over the rows, are one function; the others are run one by one. Where a point of a group has no
//! value, its members are run one by one to find the first. Must not know how a text is written.
//!
//! ```text
//! m0 on the cores, m1 m2 m3 texts, m4 a sum of all rows   ->   run m0; one launch for m1, m2, m3; run m4
//! ```

use crate::gpu::{Gpu, Grouped, argument};
use crate::group::{Part, group, joins, stretches};
use crate::memory::Elements;
use crate::prepared::{GpuKernel, Work};
use crate::text::Parameter;
use ein_device::{Buffer, Device, Member, MemberOperand, Operand, prepared_as};
use ein_plan::KernelError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// By member, the columns that it has made; none before it is run, or if they are not in memory.
pub(crate) type Results = Vec<Vec<Buffer>>;

/// Runs some members of a group, and drops what nobody needs behind them.
///
/// # Errors
/// The first member that faults, and its fault.
pub(crate) fn run(
    gpu: &Gpu,
    members: &[Member<'_>],
    (part, rows): (&Range<usize>, usize),
    (made, over): (&mut Results, &BTreeMap<usize, Buffer>),
) -> Result<(), (usize, KernelError)> {
    for run in runs(members, part, rows) {
        let together = run.len() > 1 && run_together(gpu, members, (&run, rows), (made, over));
        if !together {
            for number in run.clone() {
                let launch = members[number].launch(members, (made, over));
                made[number] = gpu.run(&launch).map_err(|error| (number, error))?;
            }
        }
        for (number, columns) in made[..run.end].iter_mut().enumerate() {
            if !is_wanted(members, number, run.end) {
                columns.clear();
            }
        }
    }
    Ok(())
}

/// By member of a part, whether its result would lie in the GPU's memory.
pub(crate) fn in_memory(
    gpu: &Gpu,
    members: &[Member<'_>],
    part: &Range<usize>,
    rows: usize,
) -> Vec<bool> {
    let runs = runs(members, part, rows).into_iter();
    let lists = runs.map(|run| {
        let together = (run.len() > 1)
            .then(|| grouped(gpu, members, &run, rows))
            .flatten();
        together.map_or(vec![true; run.len()], |grouped| grouped.1.clone())
    });
    lists.collect::<Vec<_>>().concat()
}

/// Says whether members from `end` on, or the caller, want what a member makes.
pub(crate) fn is_wanted(members: &[Member<'_>], number: usize, end: usize) -> bool {
    let reads = |operand: &MemberOperand<'_>| matches!(operand, MemberOperand::Made(maker) if *maker == number);
    let mut behind = members[end..].iter().flat_map(|member| &member.operands);
    members[number].kept || behind.any(reads)
}

/// Some members of a group, in stretches that may be one function.
fn runs(members: &[Member<'_>], part: &Range<usize>, rows: usize) -> Vec<Range<usize>> {
    let own = stretches(members[part.clone()].iter().map(|member| {
        let own: &GpuKernel = prepared_as(member.kernel);
        matches!(own.work, Work::Text(_)) && joins(&own.kernel, rows)
    }));
    let all = own.into_iter();
    all.map(|run| part.start + run.start..part.start + run.end)
        .collect()
}

/// Runs members as one function; false, with nothing made, if there is none, or some point has no value.
fn run_together(
    gpu: &Gpu,
    members: &[Member<'_>],
    (run, rows): (&Range<usize>, usize),
    (made, over): (&mut Results, &BTreeMap<usize, Buffer>),
) -> bool {
    let Some(grouped) = grouped(gpu, members, run, rows) else {
        return false;
    };
    let (compiled, in_memory) = &*grouped;
    let results: Vec<Vec<Elements>> = (members[run.clone()].iter().zip(in_memory))
        .map(|(member, in_memory)| match in_memory {
            true => {
                let own: &GpuKernel = prepared_as(member.kernel);
                gpu.results(&own.kernel, &member.ranges)
            }
            false => vec![],
        })
        .collect();
    // By member, what it reads; nothing where another one of this function makes it.
    let within = |operand: &MemberOperand<'_>| match operand {
        MemberOperand::Made(maker) => run.contains(maker),
        _ => false,
    };
    let operands: Vec<Vec<Option<Operand<'_>>>> = (members[run.clone()].iter())
        .map(|member| {
            let operands = member.operands.iter();
            let given = operands.map(|operand| {
                (!within(operand)).then(|| operand.operand(members, (&*made, over)))
            });
            given.collect()
        })
        .collect();
    let argument = |parameter: &Parameter| {
        let number = parameter.member.expect("all but the flag is a member's");
        let operand = |operand: usize| {
            let given = operands[number][operand].as_ref();
            given.expect("what this function makes is no parameter")
        };
        let ranges = &members[run.start + number].ranges;
        argument(parameter.meaning, ranges, operand, &results[number])
    };
    let lengths = members[run.start].ranges[..rows].iter();
    let points = lengths.map(|(_, length)| *length as usize).product();
    if !gpu.succeeds(compiled, points, argument) {
        return false;
    }
    for (number, columns) in run.clone().zip(results) {
        made[number] = columns.into_iter().map(Buffer::from).collect();
    }
    true
}

/// The function of members, made when they are first seen.
fn grouped(gpu: &Gpu, members: &[Member<'_>], run: &Range<usize>, rows: usize) -> Grouped {
    let own: Vec<&GpuKernel> = (members[run.clone()].iter())
        .map(|member| prepared_as(member.kernel))
        .collect();
    let parts: Vec<Part<'_>> = (run.clone().zip(&own))
        .map(|(number, own)| {
            let made = members[number]
                .operands
                .iter()
                .map(|operand| match operand {
                    MemberOperand::Made(maker) if run.contains(maker) => Some(maker - run.start),
                    _ => None,
                });
            Part {
                kernel: &own.kernel,
                made: made.collect(),
                kept: is_wanted(members, number, run.end),
            }
        })
        .collect();
    let key = parts.iter().zip(&own);
    let key = key.map(|(part, own)| (own.number, part.made.clone(), part.kept));
    let key = (key.collect(), rows);
    let mut known = gpu
        .groups
        .known
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let grouped = known.entry(key).or_insert_with(|| {
        let (text, in_memory) = group(&parts, rows)?;
        Some(Arc::new((gpu.units.announce(text), in_memory)))
    });
    grouped.clone()
}
