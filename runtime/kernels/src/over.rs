//! Results in the memory of an operand that nobody reads afterwards.
//!
//! A program that goes from memory to memory reads each element before it writes the one at its place, so it needs no room of its own, and
//! nothing is read that is only written. Must not know who owns the operand.
//!
//! ```text
//! where(a0[i, j] > 0, a1[i, j], 0) over a1:   two streams read, one of them written
//! ```

use crate::drive::Driver;
use crate::memo::{Lying, Memo, Ready};
use crate::program::{Place, Request};
use crate::segment::Segment;
use crate::{Chunk, Options, direct};
use ein_array::Array;
use ein_plan::Kernel;
use std::sync::Arc;

/// The result in the memory of the operand `over`, which is `old`; gives that back where there is no code for it.
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
    if !same || !kernel.may_overwrite(over as u32) {
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
    let signed: Vec<(i64, i64)> = ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect();
    let make = |times| {
        let lengths: Vec<usize> = signed.iter().map(|(_, n)| *n as usize).collect();
        let output: Vec<usize> = (0..signed.len()).collect();
        let request = Request::of_kernel(kernel, &[], (&output, &[]), &signed, &lengths);
        let points = lengths
            .iter()
            .fold(1u64, |n, l| n.saturating_mul(*l as u64));
        let results = [kernel.root];
        let (program, complete) = direct::several(
            &request,
            &places,
            (kernel, &results),
            (points, times),
            options.fusion,
        );
        Ready {
            program,
            parts: None,
            complete,
        }
    };
    let ready = match memo {
        Some(memo) => memo.program(&key, Lying::At(&places), make),
        None => Arc::new(make(1)),
    };
    if !ready.program.direct {
        return Err(old);
    }
    let driver = Driver::new(&ready.program, &signed, &[], kernel.finish)
        .reading(operands)
        .over(over);
    // Nothing that is read from memory to memory can fault.
    let _none = driver.run(vec![Segment::of(old.data_mut())]);
    Ok(old)
}
