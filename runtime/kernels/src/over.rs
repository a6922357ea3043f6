//! Results in the memory of an operand that nobody reads afterwards.
//!
//! A program that goes from memory to memory reads each element before it writes the one at its place, and one of strips reads a strip before
//! it writes that, so neither needs room of its own, and nothing is read that is only written. Must not know who owns the operand.
//!
//! ```text
//! where(a0[i, j] > 0, a1[i, j], 0) over a1:   two streams read, one of them written
//! ```

use crate::drive::Driver;
use crate::memo::{self, Lying, Memo, Ready};
use crate::program::{Place, Request};
use crate::segment::Segment;
use crate::{Chunk, Options, direct};
use ein_array::Array;
use ein_plan::{DType, Kernel};

/// The result in the memory of the operand `over`, which is `old`; gives that back where it may fault, and then wants its operands for the
/// message.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    (over, mut old): (usize, Array),
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Array, Array> {
    let starts = ranges.iter().map(|range| range.0);
    let lengths = ranges.iter().map(|range| range.1 as usize);
    let same = operands[over].start.iter().copied().eq(starts)
        && lengths.eq(old.shape().iter().copied())
        && kernel.output == [old.dtype()];
    let dtype = old.dtype();
    let known = matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64);
    if !same
        || !known
        || kernel.graph.dtype(kernel.root) != dtype
        || !kernel.may_overwrite(over as u32)
    {
        return Err(old);
    }
    let place = |(number, chunk): (usize, &Chunk<'_>)| match number == over {
        true => Place::new(ranges),
        false => Place::of(chunk),
    };
    let places: Vec<Place> = operands.iter().enumerate().map(place).collect();
    // Another program than where the result has room of its own: that may go past the caches.
    let mut key = ranges.to_vec();
    key.push((over as u64, 0));
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
    let ready = memo::program(memo, &key, Lying::At(&places), make);
    if !ready.program.direct && !ready.program.may_be_over(over) {
        return Err(old);
    }
    let driver = Driver::new(&ready.program, &signed, &[], kernel.finish)
        .reading(operands)
        .over(over);
    // Neither kind of program can fault.
    let _none = driver.run(vec![Segment::of(old.data_mut())]);
    Ok(old)
}
