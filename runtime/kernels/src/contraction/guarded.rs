//! Products of matrices whose terms a guard chooses.
//!
//! Must not know what a guard says: the plan has the factors in which its conditions are asked, and the index that it bounds.
//!
//! ```text
//! [i: 300, j | k: 300] sum a0[i, k] * a1[k, j] if k <= i   ->   rows 0..256 of k 0..256, 256..300 of k 0..300
//! ```

use super::{Block, Fresh, Inside, Kept, Which, computed};
use crate::{Chunk, Fusion, drive, parallel, signed};
use ein_array::{Array, Data};
use ein_plan::schedule::bounded::{Bounded, SIDE};
use ein_plan::schedule::factors::factors;
use ein_plan::schedule::mask::Mask;
use ein_plan::schedule::matmul::Matmul;
use ein_plan::{DType, Kernel, NodeId};

/// Numbers that are worth a task of their own.
const TASK: usize = 1 << 16;

/// The product, if no point of it faults, and what a factor with zeros in it is multiplied by is finite.
pub(super) fn run(
    kernel: &Kernel,
    form: &Matmul,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Array> {
    let found = factors(kernel, false)?;
    if !found
        .finite
        .iter()
        .all(|at| is_finite(&operands[*at as usize]))
    {
        return None;
    }
    let parts =
        (form.bounded.as_ref()).filter(|_| kernel.output[0] == kernel.graph.dtype(kernel.root));
    let mut result = match parts {
        None => {
            let fresh = Fresh { kernel, room: None };
            computed(kernel, ranges, operands, Which::Whole(form), fresh)?
        }
        Some(bounded) => in_parts(kernel, (form, bounded), ranges, operands)?,
    };
    if let Some(of_result) = wanted(kernel, found.of_result) {
        let ranges = &ranges[..of_result.indices.len()];
        let kept = drive::run(
            &of_result,
            (ranges, ranges),
            operands,
            Fusion::default(),
            None,
        );
        clear(&mut result, kept.ok()?.first()?.data());
    }
    Some(result)
}

/// A kernel that tells of each element of the result whether these conditions hold, if there are any.
fn wanted(kernel: &Kernel, conditions: Vec<NodeId>) -> Option<Kernel> {
    let mut wanted = Kernel {
        guard: None,
        reduction: None,
        output: vec![DType::Bool],
        ..kernel.clone()
    };
    conditions.into_iter().for_each(|id| wanted.restrict(id));
    wanted.root = wanted.guard.take()?;
    wanted = wanted.canonical();
    wanted.indices.truncate(kernel.output_rank as usize);
    Some(wanted)
}

/// The product block by block of the indices that bound another one.
fn in_parts(
    kernel: &Kernel,
    (form, bounded): (&Matmul, &Bounded),
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Array> {
    let mask = Mask::of_guard(kernel, bounded.index);
    let at = bounded.index.0 as usize;
    let shape = ranges[..kernel.output_rank as usize].iter();
    let shape: Vec<usize> = shape.map(|(_, n)| *n as usize).collect();
    let mut result = Array::zeros(kernel.output[0], &shape);
    let kept = Kept::new(bounded.by.iter().map(|index| index.0 as usize));
    let mut blocks = vec![ranges.to_vec()];
    for index in &bounded.by {
        let index = index.0 as usize;
        let cut = |block: Vec<(u64, u64)>| {
            pieces(block[index]).map(move |piece| {
                let mut block = block.clone();
                block[index] = piece;
                block
            })
        };
        blocks = blocks.into_iter().flat_map(cut).collect();
    }
    for mut part in blocks {
        let own = mask.hull(&signed(&part), signed(ranges)[at]);
        part[at] = (own.start as u64, (own.end - own.start) as u64);
        if own.is_empty() {
            continue;
        }
        let block = Block {
            whole: ranges,
            part: &part,
            form,
            kept: &kept,
        };
        computed(
            kernel,
            &part,
            operands,
            Which::Part(&block),
            Inside(&mut result),
        )?;
    }
    Some(result)
}

/// A range, cut at the multiples of [`SIDE`]: so a point is in the same block wherever the range begins.
fn pieces((start, length): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let end = start + length;
    let first = start / SIDE;
    (first..end.div_ceil(SIDE)).map(move |piece| {
        let from = start.max(piece * SIDE);
        (from, end.min((piece + 1) * SIDE) - from)
    })
}

/// Returns whether all elements of an operand are finite numbers.
fn is_finite(chunk: &Chunk<'_>) -> bool {
    fn all<T: Copy + Sync>(values: &[T], finite: impl Fn(T) -> bool + Sync) -> bool {
        let parts = values.len().div_ceil(TASK);
        parallel::all(parts, |part| {
            let values = &values[part * TASK..values.len().min((part + 1) * TASK)];
            // No value ends the loop, so that several are looked at together.
            values.iter().fold(true, |so_far, x| so_far & finite(*x))
        })
    }
    chunk.columns.iter().all(|column| match column.data() {
        Data::F32(values) => all(values, f32::is_finite),
        Data::F64(values) => all(values, f64::is_finite),
        other => (0..other.len()).all(|at| other.get(at).as_f64().is_finite()),
    })
}

/// Makes 0 of the elements that are not kept.
fn clear(result: &mut Array, kept: &Data) {
    let Data::Bool(kept) = kept else {
        return;
    };
    let size = result.dtype().size();
    parallel::chunks_mut(result.data_mut().bytes_mut(), TASK * size, |task, bytes| {
        let kept = &kept[task * TASK..];
        for (element, kept) in bytes.chunks_exact_mut(size).zip(kept) {
            if *kept == 0 {
                element.fill(0);
            }
        }
    });
}
