//! A GPU as a device.
//!
//! Must not know how a machine works, nor how a text is written.
//!
//! ```text
//! prepare [i: 6, j: 4] f32 = a0[j, i]   ->   its text, to be compiled before the first launch
//! ```

use crate::gpu::Gpu;
use crate::helpers::{self, Copied};
use crate::machine::Argument;
use crate::memory::{Elements, change, elements};
use crate::prepared::{GpuKernel, Work};
use crate::sources;
use crate::strips;
use ein_array::Array;
use ein_device::{
    Buffer, BufferType, Device, Draw, GroupLaunched, Launch, Launched, Member, MemorySpace,
    OwnMemory, Prepared, Span, prepared_as,
};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Format, Kernel, LoopKernel, Reduction};
use std::collections::BTreeMap;

impl Device for Gpu {
    fn name(&self) -> &'static str {
        match self.machine.space() {
            MemorySpace::Device { name, .. } => name,
            MemorySpace::Host => "gpu",
        }
    }

    fn space(&self) -> MemorySpace {
        self.machine.space()
    }

    fn allocate(&self, wanted: &BufferType) -> Buffer {
        match wanted.format {
            Format::Dense => self.room(wanted.clone()).into(),
        }
    }

    fn zeros(&self, wanted: &BufferType) -> Buffer {
        let elements = match wanted.format {
            Format::Dense => self.room(wanted.clone()),
        };
        let bytes = wanted.bytes() as usize;
        self.machine.clear(elements.address, bytes);
        elements.into()
    }

    fn own_memory(&self) -> Option<OwnMemory> {
        Some(OwnMemory {
            free: self.machine.free_bytes(),
            most: self.machine.usage().most(),
        })
    }

    fn adopt(&self, buffer: Buffer) -> Buffer {
        match buffer.space() == self.space() {
            true => buffer,
            false => Elements::of(&self.machine, &buffer.to_host()).into(),
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
        let shape = to.shape().to_vec();
        let copied = Copied {
            extent,
            to: (&shape, start),
            from: (from.shape(), from_start),
        };
        self.copy(to, from, &copied);
    }

    fn copy_slice(&self, to: &mut Buffer, dim: usize, at: usize, from: &Buffer) {
        // The slice as a box that is one thick.
        let shape = to.shape().to_vec();
        let mut extent = from.shape().to_vec();
        extent.insert(dim, 1);
        let (mut start, first) = (vec![0; extent.len()], vec![0; extent.len()]);
        start[dim] = at;
        let copied = Copied {
            extent: &extent,
            to: (&shape, &start),
            from: (&extent, &first),
        };
        self.copy(to, from, &copied);
    }

    fn prepare(
        &self,
        kernel: &Kernel,
        loops: &LoopKernel,
        deterministic: bool,
    ) -> Box<dyn Prepared> {
        Box::new(GpuKernel::new(self, kernel, loops, deterministic))
    }

    fn run(&self, launch: &Launch<'_>) -> Launched {
        let own: &GpuKernel = prepared_as(launch.kernel);
        let results = match &own.work {
            Work::OnCores => return own.run_on_cores(self, launch),
            Work::Text(compiled) => self.run_text(&own.kernel, compiled, launch),
            Work::Product(product) => product.run(self, &own.kernel, launch),
        };
        if let Some(results) = results {
            return Ok(results);
        }
        match own.run_on_cores(self, launch) {
            Err(fault) => Err(fault),
            Ok(_) => panic!(
                "a generated kernel says that a point has no value, and all have one: {}",
                own.kernel
            ),
        }
    }

    fn run_group(
        &self,
        members: &[Member<'_>],
        rows: usize,
        over: BTreeMap<usize, Buffer>,
    ) -> GroupLaunched {
        strips::run(self, members, rows, &over)
    }

    fn combine(
        &self,
        reduction: Reduction,
        mut sum: Vec<Buffer>,
        next: Vec<Buffer>,
    ) -> Vec<Buffer> {
        let columns: Vec<_> = sum.iter().map(Buffer::dtype).collect();
        let points = sum.first().map_or(0, Buffer::elements);
        let mut arguments = vec![Argument::Whole(points as i64)];
        arguments.extend(next.iter().map(|b| elements(b).argument()));
        arguments.extend(sum.iter_mut().map(|b| change(b).argument()));
        let compiled = self.units.announce(helpers::combine(reduction, &columns));
        self.launch(&compiled, points, &arguments);
        sum
    }

    fn generate(&self, draw: &Draw<'_>, ranges: &[Span]) -> Buffer {
        let Some((text, mut arguments)) = sources::source(draw, ranges) else {
            return self.adopt(Cpu.generate(draw, ranges));
        };
        let shape = ranges.iter().map(|(_, length)| *length as usize).collect();
        let made = self.room(BufferType::dense(draw.dtype, shape));
        arguments.push(made.argument());
        let compiled = self.units.announce(text);
        self.launch(&compiled, made.kind.elements(), &arguments);
        made.into()
    }

    fn synchronize(&self) {
        self.machine.synchronize();
    }

    fn staging(&self, dtype: DType, shape: &[usize]) -> Array {
        Cpu.staging(dtype, shape)
    }
}
