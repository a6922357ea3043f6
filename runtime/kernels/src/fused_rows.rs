//! Several kernels in one pass over memory: block of rows by block of rows, all of them on each.
//!
//! Members read each other at their own row only, so what one makes of a block is all that the next ones need of it, and
//! is still in a cache. Results have the bits that [`crate::run`] gives member by member: what decides the order of a
//! reduction is decided by the whole. Must not know plans.
//!
//! ```text
//! [n] max a0[n, d]; [n, d] exp(a0[n, d] - m0[n]); [n] sum m1[n, d]; [n, d] m1[n, d] / m2[n]   rows 4 5 6 7, rows 8 9 10 11, …
//! ```

mod bundle;
mod form;
mod outside;
mod part;
mod pass;
mod programs;
mod read;
mod results;
mod turns;
mod view;
mod zeros;

use crate::boxes::Boxes;
use crate::cores;
use crate::memo::Memo;
use crate::parallel;
use crate::{Chunk, KernelError, Options, signed};
use ein_array::Array;
use ein_plan::schedule::merging::{Merged, merge};
use ein_plan::schedule::outline::Outline;
use ein_plan::schedule::{self, Matmul, RowLoops};
use ein_plan::{Kernel, LoopKernel, LoopKind};
use form::Form;
use part::{Part, gathers, places};
use pass::{Pass, Scratch, State};
use read::{Making, aside, far, is_read, row_bytes};
use results::{join, rooms, shared_out, without_rows};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use turns::{Turn, turns};

/// Where an operand of a member comes from.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// It is there.
    Given(Chunk<'a>),
    /// An earlier member makes it; it is read at the reader's own row, by bare indices.
    Made(usize),
    /// What a member's result takes the memory of; it lies as the result does, and is read like what is made.
    Old(usize),
}

/// A kernel of a sweep.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// What is computed; it has no guard, is no library operation, and its reduction is finished. Without output indices it is a reduction
    /// whose first indices are the rows, and nobody reads it.
    pub kernel: &'a Kernel,
    /// Start and length of each index.
    pub ranges: Vec<(u64, u64)>,
    /// What it reads.
    pub operands: Vec<Operand<'a>>,
    /// Whether its result is wanted whole.
    pub kept: bool,
    /// What is kept of its runs in this sweep.
    pub memo: Option<&'a Memo>,
}

/// [`fused_rows_over`] of members none of which takes the memory of an operand.
///
/// # Errors
/// Those of [`execute_rows`].
pub fn fused_rows<'a>(
    members: &'a [Member<'a>],
    rows: usize,
    options: &Options,
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    fused_rows_over(members, rows, BTreeMap::new(), options)
}

/// [`execute_rows`] of members that belong to no plan.
///
/// # Errors
/// Those of [`execute_rows`].
pub fn fused_rows_over<'a>(
    members: &'a [Member<'a>],
    rows: usize,
    over: BTreeMap<usize, Array>,
    options: &Options,
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    let overwritten: Vec<bool> = (0..members.len()).map(|n| over.contains_key(&n)).collect();
    let outlines = bundle::outlines(members, &overwritten);
    let loops = schedule::fused_rows(&outlines, rows, &|number| places(members, &members[number]));
    let loops: Vec<&LoopKernel> = loops.iter().collect();
    execute_rows((members, &loops), rows, over, options)
}

/// Runs members with their loops, whose first `rows` output indices are the same; of each that is kept, its columns. Some results take the memory
/// of arrays: `over` has them by member. They are of the result's shape and type, and members read them as [`Operand::Old`]; such a member is kept, and
/// has one column.
///
/// # Errors
/// The first member that faults, and its first faulty point; the arrays of `over` are lost then.
pub fn execute_rows(
    (members, loops): (&[Member<'_>], &[&LoopKernel]),
    rows: usize,
    over: BTreeMap<usize, Array>,
    options: &Options,
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    let left: Vec<usize> = (0..members.len())
        .filter(|number| loops[*number].kind != LoopKind::Inlined)
        .collect();
    if left.len() == members.len() {
        let own = loops.iter().map(|loops| Taken {
            kind: &loops.kind,
            rows: loops.rows.clone(),
        });
        return taken((members, &own.collect::<Vec<_>>()), rows, (over, options));
    }
    // By member: its place among those that are left, if it is.
    let mut moved = vec![0; members.len()];
    for (place, number) in left.iter().enumerate() {
        moved[*number] = place;
    }
    let run = left
        .iter()
        .map(|number| as_run(members, *number, loops, &moved));
    let run: Vec<Member<'_>> = run.collect();
    let own = left.iter().map(|number| {
        let loops = loops[*number];
        let rows = loops
            .rows
            .renumbered(|member| moved[member as usize] as u32);
        Taken {
            kind: &loops.kind,
            rows,
        }
    });
    let own: Vec<Taken<'_>> = own.collect();
    let over = over.into_iter().map(|(number, old)| (moved[number], old));
    let made = taken((&run, &own), rows, (over.collect(), options));
    let made = made.map_err(|(place, error)| (left[place], error))?;
    let mut results = vec![None; members.len()];
    for (number, made) in left.into_iter().zip(made) {
        results[number] = made;
    }
    Ok(results)
}

/// A member as it is run beside others that are left, at the places where they `moved` to: with the kernel of its loops.
fn as_run<'m>(
    members: &'m [Member<'m>],
    number: usize,
    loops: &[&'m LoopKernel],
    moved: &[usize],
) -> Member<'m> {
    let member = &members[number];
    let operand = |operand: &Operand<'m>| match operand {
        Operand::Given(chunk) => Operand::Given(chunk.clone()),
        Operand::Made(other) => Operand::Made(moved[*other]),
        Operand::Old(other) => Operand::Old(moved[*other]),
    };
    let of = |(member, at): &(u32, u32)| operand(&members[*member as usize].operands[*at as usize]);
    let (kernel, operands) = match loops[number].fused.as_deref() {
        None => (member.kernel, member.operands.iter().map(operand).collect()),
        Some(fused) => (&fused.kernel, fused.operands.iter().map(of).collect()),
    };
    Member {
        kernel,
        operands,
        ranges: member.ranges.clone(),
        kept: member.kept,
        memo: member.memo,
    }
}

/// The loops of a member that is run.
struct Taken<'l> {
    kind: &'l LoopKind,
    /// How it is taken in each block, with the numbers of members that are run.
    rows: RowLoops,
}

impl<'l> Taken<'l> {
    /// The matrix product that its blocks are, where they are large enough.
    fn product(&self) -> Option<&'l Matmul> {
        match self.kind {
            LoopKind::Matmul(matmul) => Some(matmul),
            LoopKind::Pairwise(pairwise) => pairwise.product.as_deref(),
            _ => None,
        }
    }
}

/// Runs members each of which has loops of its own.
fn taken<'a>(
    (members, loops): (&'a [Member<'a>], &[Taken<'_>]),
    rows: usize,
    (over, options): (BTreeMap<usize, Array>, &Options),
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    let Some(first) = members.first() else {
        return Ok(vec![]);
    };
    let overwritten: Vec<bool> = (0..members.len()).map(|n| over.contains_key(&n)).collect();
    let outlines = &bundle::outlines(members, &overwritten)[..];
    members
        .iter()
        .for_each(|member| cores::large(&member.ranges));
    let extents: Vec<(i64, i64)> = signed(&first.ranges[..rows]);
    let mut results = rooms(members, over);
    if extents.iter().any(|extent| extent.1 == 0) {
        without_rows(members, &mut results);
        return Ok(results);
    }
    let forms = forms(members, loops);
    let least = forms.iter().flatten().filter_map(|form| match form {
        Form::Pairwise(pairs) => Some(pairs.least_rows()),
        Form::Rows(_) => None,
    });
    let least = least.max();
    let merged = merged(loops, outlines);
    let bytes = row_bytes(members, &merged, &extents);
    let products = loops.iter().any(|loops| loops.product().is_some());
    let making = Making::of(members.len(), &merged, products);
    let block = making.block_bytes(bytes, &extents);
    let wanted = (block / bytes.max(1)).max(least.unwrap_or(1));
    let blocks = Boxes::new(&extents, wanted);
    let bundles = bundle::bundles(members, (merged, outlines), &blocks, options);
    let turns = turns(members, &bundles);
    let alone = |number| turns.contains(&Turn::Alone(number));
    let mut parts: Vec<Part<'_>> = (forms.into_iter().enumerate())
        .map(|(number, form)| {
            let of = (number, form, alone(number));
            Part::new(members, of, loops, &blocks, options)
        })
        .collect();
    for (number, part) in parts.iter_mut().enumerate() {
        part.read = is_read(members, &bundles, number);
        part.streams &= !outlines[number].over;
    }
    let over: Vec<Vec<(usize, usize)>> = (bundles.iter())
        .map(|bundle| bundle.over(members, |number| !parts[number].read))
        .collect();
    let pass = Pass {
        parts: &parts,
        bundles: &bundles,
        turns: &turns,
        blocks: &blocks,
        aside: &aside(members, (&bundles, &turns), &over),
        far: &far(members, &extents),
        work: parts.iter().map(|part| part.work).sum(),
        over: &over,
    };
    let tasks = shared_out(&mut results, &parts, &blocks);
    let state = State {
        faulty: AtomicUsize::new(usize::MAX),
        found: Mutex::new(None),
    };
    let scratch = || Scratch::new(parts.len());
    let gathered = parallel::map_with(tasks, scratch, |scratch, _, (block, columns)| {
        pass.block(block, columns, scratch, &state)
    });
    if let Ok(Some((member, _, error))) = state.found.into_inner() {
        return Err((member, error));
    }
    join(&parts, &gathered, &mut results);
    Ok(results)
}

/// The loops of each member that needs no program.
fn forms(members: &[Member<'_>], loops: &[Taken<'_>]) -> Vec<Option<Form>> {
    let form = |(member, loops): (&Member<'_>, &Taken<'_>)| {
        if gathers(member).is_some() {
            return None;
        }
        let ranges = signed(&member.ranges);
        Form::of(loops.kind, member.kernel, &ranges, &places(members, member))
    };
    members.iter().zip(loops).map(form).collect()
}

/// The kernels of members that one loop computes.
fn merged(loops: &[Taken<'_>], outlines: &[Outline<'_>]) -> Vec<Merged> {
    let together = loops.iter().map(|loops| &loops.rows.together);
    let together = together.filter(|members| !members.is_empty());
    let merged = together.map(|members| {
        let members = members.iter().map(|member| *member as usize);
        merge(outlines, members.collect())
    });
    merged.collect()
}

fn shape(ranges: &[(u64, u64)], kernel: &Kernel) -> Vec<usize> {
    let output = &ranges[..kernel.output_rank as usize];
    output.iter().map(|(_, n)| *n as usize).collect()
}
