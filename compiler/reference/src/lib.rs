//! The reference device: every kernel point by point, by the definitions that the interpreters use.
//!
//! It shares no loop, no arithmetic and no memory with the processor's device: elements are numbers in memory of its own, which the host sees only as
//! copies that it asks for. So a program that gives the same on both has no mistake in a kernel, and whatever reads
//! elements without asking stops. Slow on purpose, thousands of times slower than the processor's loops. Must not know plans, keys or sites.
//!
//! ```text
//! einc run --device reference matmul.ein
//! ```

mod draw;
mod memory;

use ein_array::Array;
use ein_device::{
    Buffer, BufferType, Device, Draw, Launch, Launched, MemorySpace, Prepared, Span, prepared_as,
};
use ein_plan::{Format, Kernel, LoopKernel, Reduction, Scalar};
use einc_core::einsum::scalar::stored;
use einc_core::tra::chunk::Chunk;
use einc_core::tra::evaluate::{self, combine, evaluate};
use memory::{Numbers, SPACE, change, numbers};
use std::sync::Arc;

/// The device that computes by definition.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// The reference device, as what walks plans takes it.
pub fn device() -> Arc<dyn Device> {
    Arc::new(Reference)
}

#[derive(Debug)]
struct ReferenceKernel(Kernel);

impl Prepared for ReferenceKernel {}

impl Device for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn space(&self) -> MemorySpace {
        SPACE
    }

    fn allocate(&self, wanted: &BufferType) -> Buffer {
        self.zeros(wanted)
    }

    fn zeros(&self, wanted: &BufferType) -> Buffer {
        match wanted.format {
            Format::Dense => self.adopt(Array::zeros(wanted.dtype, &wanted.shape).into()),
        }
    }

    fn adopt(&self, buffer: Buffer) -> Buffer {
        match buffer.space() == SPACE {
            true => buffer,
            false => Numbers::of(&buffer.to_host()).into(),
        }
    }

    fn unshare(&self, buffer: &mut Buffer) {
        change(buffer);
    }

    fn copy_box(
        &self,
        to: &mut Buffer,
        start: &[usize],
        from: &Buffer,
        from_start: &[usize],
        extent: &[usize],
    ) {
        let from = numbers(from);
        let to = change(to);
        for at in memory::places(extent) {
            let source = from.offset(at.iter().zip(from_start).map(|(at, start)| at + start));
            let target = to.offset(at.iter().zip(start).map(|(at, start)| at + start));
            to.values[target] = from.values[source];
        }
    }

    fn copy_slice(&self, to: &mut Buffer, dim: usize, at: usize, from: &Buffer) {
        let from = numbers(from);
        let to = change(to);
        for (number, mut place) in memory::places(&from.kind.shape).enumerate() {
            place.insert(dim, at);
            let target = to.offset(place.into_iter());
            to.values[target] = from.values[number];
        }
    }

    fn prepare(
        &self,
        kernel: &Kernel,
        _loops: &LoopKernel,
        _deterministic: bool,
    ) -> Box<dyn Prepared> {
        Box::new(ReferenceKernel(kernel.clone()))
    }

    fn run(&self, launch: &Launch<'_>) -> Launched {
        let ReferenceKernel(kernel) = prepared_as(launch.kernel);
        let chunks: Vec<Chunk> = launch.operands.iter().map(|o| chunk(o.columns)).collect();
        let operands = chunks.iter().zip(&launch.operands);
        let operands: Vec<_> = operands
            .map(|(chunk, operand)| evaluate::Operand {
                chunk,
                start: operand.start.clone(),
            })
            .collect();
        Ok(buffers(
            kernel,
            evaluate(kernel, &launch.ranges, &operands)?,
        ))
    }

    fn combine(&self, reduction: Reduction, sum: Vec<Buffer>, next: Vec<Buffer>) -> Vec<Buffer> {
        let types: Vec<BufferType> = sum.iter().map(Buffer::buffer_type).collect();
        let compute: Vec<_> = types.iter().map(|kind| kind.dtype.compute()).collect();
        let (sum, next) = (chunk(&sum), chunk(&next));
        let columns = combine(reduction, &compute, &sum.columns, &next.columns);
        let columns = columns.into_iter().zip(types);
        columns
            .map(|(values, kind)| stored_as(kind, values))
            .collect()
    }

    fn generate(&self, draw: &Draw<'_>, ranges: &[Span]) -> Buffer {
        let shape = ranges.iter().map(|(_, length)| *length as usize).collect();
        stored_as(
            BufferType::dense(draw.dtype, shape),
            draw::values(draw, ranges),
        )
    }
}

/// The columns of a tuple as the interpreters have them.
fn chunk(columns: &[Buffer]) -> Chunk {
    let all = columns.iter().map(numbers);
    Chunk {
        shape: (columns.first().map_or(&[][..], Buffer::shape).iter())
            .map(|extent| *extent as u64)
            .collect(),
        columns: all.map(|column| column.values.clone()).collect(),
    }
}

fn buffers(kernel: &Kernel, made: Chunk) -> Vec<Buffer> {
    let shape: Vec<usize> = made.shape.iter().map(|extent| *extent as usize).collect();
    let columns = made.columns.into_iter().zip(&kernel.output);
    columns
        .map(|(values, dtype)| stored_as(BufferType::dense(*dtype, shape.clone()), values))
        .collect()
}

/// A buffer of values, rounded as the type stores them.
fn stored_as(kind: BufferType, values: Vec<Scalar>) -> Buffer {
    let dtype = kind.dtype;
    let values = values.into_iter().map(|value| stored(value, dtype));
    let values = values.collect();
    Numbers { kind, values }.into()
}
