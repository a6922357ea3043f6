//! Results in the memory of an operand that nobody reads afterwards.
//!
//! A program that goes from memory to memory reads each element before it writes the one at its place, and one of strips reads a strip before
//! it writes that, so neither needs room of its own, and nothing is read that is only written. Where a point may fault, the kernel is a sweep
//! of its own, whose blocks are copied before they are written over. Must not know who owns the operand.
//!
//! ```text
//! where(a0[i, j] > 0, a1[i, j], 0) over a1:   two streams read, one of them written
//! ```

use crate::drive::Driver;
use crate::fused_rows::{Member, Operand, fused_rows_over};
use crate::memo::{self, Key, Memo, OperandLayout, Purpose, Ready};
use crate::program::{Request, place_of};
use crate::segment::Segment;
use crate::{Chunk, KernelError, Options, direct};
use ein_array::Array;
use ein_plan::schedule::access::Place;
use ein_plan::{DType, Kernel};
use std::collections::BTreeMap;

/// The result in the memory of the operand `over`, which is `old`; where it cannot lie there, that is given back.
///
/// # Errors
/// The first faulty point.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    (over, old): (usize, Array),
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Result<Array, Array>, KernelError> {
    let starts = ranges.iter().map(|range| range.0);
    let lengths = ranges.iter().map(|range| range.1 as usize);
    let same = operands[over].start.iter().copied().eq(starts)
        && lengths.eq(old.shape().iter().copied())
        && kernel.output == [old.dtype()];
    if !same || ranges.is_empty() || !kernel.may_overwrite(over as u32) {
        return Ok(Err(old));
    }
    let old = match at_once(kernel, ranges, operands, (over, old), options, memo) {
        Ok(made) => return Ok(Ok(made)),
        Err(old) => old,
    };
    let all = operands.iter().cloned().map(Operand::Given);
    let mut all: Vec<Operand<'_>> = all.collect();
    all[over] = Operand::Old(0);
    let members = [Member {
        kernel,
        ranges: ranges.to_vec(),
        operands: all,
        kept: true,
        memo,
    }];
    let old = BTreeMap::from([(0, old)]);
    let made = fused_rows_over(&members, ranges.len(), old, options).map_err(|(_, error)| error)?;
    let made = made.into_iter().flatten().flatten().next();
    Ok(Ok(made.expect("the member is kept")))
}

/// The same by one loop from memory to memory, or strip by strip; gives the operand back where there is neither.
fn at_once(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    (over, mut old): (usize, Array),
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Array, Array> {
    let dtype = old.dtype();
    let known = matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64);
    if !known || kernel.graph.dtype(kernel.root) != dtype {
        return Err(old);
    }
    let place = |(number, chunk): (usize, &Chunk<'_>)| match number == over {
        true => Place::new(ranges),
        false => place_of(chunk),
    };
    let places: Vec<Place> = operands.iter().enumerate().map(place).collect();
    let signed = crate::signed(ranges);
    let lengths = old.shape().to_vec();
    let output: Vec<usize> = (0..lengths.len()).collect();
    let points = lengths.iter().map(|n| *n as u64).product();
    let make = |times| {
        let request = Request::of_kernel(kernel, &[], (&output, &[]), &signed, &lengths);
        let runs = (points, times);
        let (program, complete) = direct::program(&request, &places, kernel, runs, options.fusion);
        Ready {
            program,
            parts: None,
            complete,
        }
    };
    // Another program than where the result has room of its own: that may go past the caches.
    let key = Key {
        kernel: None,
        ranges,
        purpose: Purpose::Over(over),
        layout: OperandLayout::At(&places),
    };
    let ready = memo::program(memo, key, make);
    if !ready.program.direct && !ready.program.may_be_over(over) {
        return Err(old);
    }
    let column = [(over, 0)];
    let driver = Driver::new(&ready.program, &signed, &[], kernel.finish)
        .reading(operands)
        .over(&column);
    // Neither kind of program can fault.
    let _none = driver.run(vec![Segment::of(old.data_mut())]);
    Ok(old)
}
