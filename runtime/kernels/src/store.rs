//! Writes of strips: from lanes of the compute type to elements of any stored type.
//!
//! Must not know loops or programs' operations.
//!
//! ```text
//! lanes 1 2.5 3 of f32, to bf16 from element 6 on   ->   elements 6 7 8 are 1 2.5 3
//! ```

use crate::machine::Machine;
use crate::segment::Segment;
use crate::stream;
use ein_plan::DType;
use half::{bf16, slice::HalfFloatSliceExt};
use std::ops::Range;

/// The nearest bfloat16, ties to even, without a branch.
#[inline(always)]
fn narrowed(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16)
}

/// The values of a kernel without reduction, from element `at` on; `streams`: past the caches.
pub(crate) fn store_values(
    machine: &Machine<'_, '_>,
    to: &mut Segment<'_>,
    at: usize,
    streams: bool,
) {
    store_lanes(machine, 0..machine.extents.lanes(), (to, at), streams);
}

/// Some lanes of the values of a kernel without reduction, from element `at` on; `streams`: past the caches.
pub(crate) fn store_lanes(
    machine: &Machine<'_, '_>,
    lanes: Range<usize>,
    (to, at): (&mut Segment<'_>, usize),
    streams: bool,
) {
    let streams = streams && machine.program.guard.is_none();
    let program = machine.program;
    let n = lanes.len();
    let root = program.root;
    match (program.value(), &mut *to) {
        (DType::F32, Segment::F32(v)) => stream::copy(
            &mut v[at..at + n],
            &machine.f32s(root)[lanes.clone()],
            streams,
        ),
        (DType::F64, Segment::F64(v)) => stream::copy(
            &mut v[at..at + n],
            &machine.f64s(root)[lanes.clone()],
            streams,
        ),
        (DType::I32, Segment::I32(v)) => stream::copy(
            &mut v[at..at + n],
            &machine.i32s(root)[lanes.clone()],
            streams,
        ),
        (DType::I64, Segment::I64(v)) => stream::copy(
            &mut v[at..at + n],
            &machine.i64s(root)[lanes.clone()],
            streams,
        ),
        (DType::Bool, Segment::Bool(v)) => {
            v[at..at + n].copy_from_slice(&machine.truths(root)[lanes.clone()])
        }
        (DType::F32, Segment::F16(v)) => {
            v[at..at + n].convert_from_f32_slice(&machine.f32s(root)[lanes.clone()])
        }
        (DType::F32, Segment::BF16(v)) => {
            for (to, x) in v[at..at + n]
                .iter_mut()
                .zip(&machine.f32s(root)[lanes.clone()])
            {
                *to = narrowed(*x);
            }
        }
        (DType::F32, to) => {
            let values = machine.f32s(root)[lanes.clone()].iter().enumerate();
            values.for_each(|(l, x)| to.set_float(at + l, f64::from(*x)));
        }
        (DType::F64, to) => {
            let values = machine.f64s(root)[lanes.clone()].iter().enumerate();
            values.for_each(|(l, x)| to.set_float(at + l, *x));
        }
        (DType::I32, to) => {
            let values = machine.i32s(root)[lanes.clone()].iter().enumerate();
            values.for_each(|(l, x)| to.set_integer(at + l, i64::from(*x)));
        }
        (DType::I64, to) => {
            let values = machine.i64s(root)[lanes.clone()].iter().enumerate();
            values.for_each(|(l, x)| to.set_integer(at + l, *x));
        }
        (_, to) => {
            let values = machine.truths(root)[lanes.clone()].iter().enumerate();
            values.for_each(|(l, x)| to.set_integer(at + l, i64::from(*x)));
        }
    }
    if let Some(guard) = program.guard {
        for (l, holds) in machine.truths(guard)[lanes.clone()].iter().enumerate() {
            if *holds == 0 {
                to.set_integer(at + l, 0);
            }
        }
    }
}
