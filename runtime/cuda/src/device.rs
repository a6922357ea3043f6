//! A GPU as a device: kernels by their generated texts, arrays in the GPU's memory.
//!
//! A kernel without a text, and a text that finds a point without a value, are run on the cores, with copies of the operands: the latter only to
//! name the point. Must not know how a machine works.
//!
//! ```text
//! prepare [i: 6, j: 4] f32 = a0[j, i]   run -> launch k0, 1 block   ->   f32[6, 4] in the GPU's memory
//! ```

use crate::groups::{self, Groups};
use crate::helpers::{self, Copied};
use crate::machine::{Argument, Machine};
use crate::memory::{Elements, change, elements};
use crate::sources;
use crate::text::{Meaning, Parameter, Reason, scheduled};
use crate::units::{Compiled, Units};
use ein_array::Array;
use ein_device::{
    Buffer, BufferType, Change, Device, Draw, Launch, Launched, Member, MemorySpace, Operand,
    Prepared, Span, prepared_as,
};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Format, Kernel, KernelError, LoopKernel, Reduction, Update};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device over a machine.
#[derive(Debug)]
pub struct Gpu {
    machine: Arc<dyn Machine>,
    pub(crate) units: Units,
    pub(crate) groups: Groups,
    launches: AtomicU64,
    on_cores: AtomicU64,
}

/// What a device has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Functions that were launched.
    pub launches: u64,
    /// Kernels that were run on the cores.
    pub on_cores: u64,
}

/// A kernel as a GPU runs it.
#[derive(Debug)]
pub(crate) struct GpuKernel {
    /// No other kernel of the device has it.
    pub number: u64,
    pub kernel: Kernel,
    pub compiled: Result<Arc<Compiled>, Reason>,
    on_cores: Box<dyn Prepared>,
}

impl Prepared for GpuKernel {}

impl Gpu {
    /// The device of a machine.
    pub fn new(machine: Arc<dyn Machine>) -> Gpu {
        Gpu {
            units: Units::new(Arc::clone(&machine)),
            machine,
            groups: Groups::default(),
            launches: AtomicU64::new(0),
            on_cores: AtomicU64::new(0),
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        Counts {
            launches: self.launches.load(Ordering::Relaxed),
            on_cores: self.on_cores.load(Ordering::Relaxed),
        }
    }

    fn launch(&self, compiled: &Compiled, points: usize, arguments: &[Argument]) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.units.launch(compiled, points as u64, arguments);
    }

    fn room(&self, kind: BufferType) -> Elements {
        Elements::room(&self.machine, kind)
    }

    /// Room for what a kernel makes at these ranges.
    pub(crate) fn results(&self, kernel: &Kernel, ranges: &[Span]) -> Vec<Elements> {
        let shape = ranges.iter().take(kernel.output_rank as usize);
        let shape: Vec<usize> = shape.map(|(_, length)| *length as usize).collect();
        let columns = kernel.output.iter();
        let columns = columns.map(|dtype| self.room(BufferType::dense(*dtype, shape.clone())));
        columns.collect()
    }

    /// Launches a text, whose parameters `argument` knows but for the flag; whether all points have a value.
    pub(crate) fn succeeds(
        &self,
        compiled: &Compiled,
        points: usize,
        argument: impl Fn(&Parameter) -> Argument,
    ) -> bool {
        let mut flag = None;
        let parameters = compiled.text.parameters.iter();
        let arguments: Vec<Argument> = parameters
            .map(|parameter| match parameter.meaning {
                Meaning::Flag => {
                    let made = self.room(BufferType::dense(DType::I32, vec![]));
                    self.machine.clear(made.address, 4);
                    flag.insert(made).argument()
                }
                _ => argument(parameter),
            })
            .collect();
        self.launch(compiled, points, &arguments);
        let mut failed = [0; 4];
        if let Some(flag) = &flag {
            self.machine.read(flag.address, &mut failed);
        }
        failed == [0; 4]
    }

    /// Runs a kernel by its text; `None` if some point has no value.
    fn run_text(
        &self,
        kernel: &Kernel,
        compiled: &Compiled,
        launch: &Launch<'_>,
    ) -> Option<Vec<Buffer>> {
        let results = self.results(kernel, &launch.ranges);
        let points = results.first().map_or(0, |column| column.kind.elements());
        let argument = |parameter: &Parameter| {
            let operand = |number: usize| &launch.operands[number];
            argument(parameter.meaning, &launch.ranges, operand, &results)
        };
        let succeeds = self.succeeds(compiled, points, argument);
        succeeds.then(|| results.into_iter().map(Buffer::from).collect())
    }

    /// Runs a kernel on the cores, with copies of its operands and results.
    fn run_on_cores(&self, own: &GpuKernel, launch: &Launch<'_>) -> Launched {
        self.on_cores.fetch_add(1, Ordering::Relaxed);
        let copies: Vec<Vec<Buffer>> = (launch.operands.iter())
            .map(|operand| operand.columns.iter().map(on_host).collect())
            .collect();
        let operands = launch.operands.iter().zip(&copies);
        let launch = Launch {
            kernel: &*own.on_cores,
            ranges: launch.ranges.clone(),
            operands: operands
                .map(|(operand, columns)| Operand {
                    columns,
                    start: operand.start.clone(),
                })
                .collect(),
        };
        let made = Cpu.run(&launch)?.into_iter();
        Ok(made.map(|buffer| self.adopt(buffer)).collect())
    }

    fn copy(&self, to: &mut Buffer, from: &Buffer, copied: &Copied<'_>) {
        let (to, from) = (change(to), elements(from));
        let text = helpers::copy_box(copied.extent.len(), to.kind.dtype.size());
        let mut arguments = copied.arguments();
        arguments.extend([from.argument(), to.argument()]);
        let compiled = self.units.announce(text);
        self.launch(&compiled, copied.extent.iter().product(), &arguments);
    }
}

/// What a parameter of a kernel is in a run: of its ranges, of the operands that it reads, of its results.
pub(crate) fn argument<'a>(
    meaning: Meaning,
    ranges: &[Span],
    operand: impl Fn(usize) -> &'a Operand<'a>,
    results: &[Elements],
) -> Argument {
    match meaning {
        Meaning::Start(index) => Argument::Whole(ranges[index].0 as i64),
        Meaning::Length(index) => Argument::Whole(ranges[index].1 as i64),
        Meaning::OperandStart(number, dim) => Argument::Whole(operand(number).start[dim] as i64),
        Meaning::OperandLength(number, dim) => {
            Argument::Whole(operand(number).columns[0].shape()[dim] as i64)
        }
        Meaning::Column(number, column, _) => elements(&operand(number).columns[column]).argument(),
        Meaning::Result(column, _) => results[column].argument(),
        Meaning::Flag | Meaning::Number(_) => {
            unreachable!("a kernel has no such parameter of its own")
        }
    }
}

/// A copy of a buffer in the host's memory.
fn on_host(buffer: &Buffer) -> Buffer {
    buffer.to_host().into()
}

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
        Box::new(GpuKernel {
            number: self.groups.number(),
            kernel: kernel.clone(),
            compiled: scheduled(kernel, loops).map(|text| self.units.announce(text)),
            on_cores: Cpu.prepare(kernel, loops, deterministic),
        })
    }

    fn run(&self, launch: &Launch<'_>) -> Launched {
        let own: &GpuKernel = prepared_as(launch.kernel);
        let Ok(compiled) = &own.compiled else {
            return self.run_on_cores(own, launch);
        };
        if let Some(results) = self.run_text(&own.kernel, compiled, launch) {
            return Ok(results);
        }
        match self.run_on_cores(own, launch) {
            Err(fault) => Err(fault),
            Ok(_) => panic!(
                "a generated kernel says that a point has no value, and all have one:\n{}",
                compiled.text.function("k")
            ),
        }
    }

    fn run_over(&self, launch: Launch<'_>, (operand, old): (usize, Buffer)) -> Launched {
        let mut launch = launch;
        launch.operands[operand].columns = std::slice::from_ref(&old);
        self.run(&launch)
    }

    fn accumulate(&self, launch: &Launch<'_>, reduction: Reduction, sum: Vec<Buffer>) -> Launched {
        let next = self.run(launch)?;
        Ok(self.combine(reduction, sum, next))
    }

    fn changes(&self, launch: &Launch<'_>, _update: &Update) -> Result<Vec<Change>, KernelError> {
        // All of the result is a box, too.
        let whole = self.run(launch)?.into_iter();
        Ok(whole.map(|all| (vec![0; all.shape().len()], all)).collect())
    }

    fn run_group(
        &self,
        members: &[Member<'_>],
        rows: usize,
        over: BTreeMap<usize, Buffer>,
    ) -> Result<Vec<Option<Vec<Buffer>>>, (usize, KernelError)> {
        groups::run(self, members, rows, &over)
    }

    fn combine(&self, reduction: Reduction, sum: Vec<Buffer>, next: Vec<Buffer>) -> Vec<Buffer> {
        let types: Vec<BufferType> = sum.iter().map(Buffer::buffer_type).collect();
        let columns: Vec<_> = types.iter().map(|kind| kind.dtype).collect();
        let points = types.first().map_or(0, BufferType::elements);
        let results: Vec<Elements> = types.into_iter().map(|kind| self.room(kind)).collect();
        let mut arguments = vec![Argument::Whole(points as i64)];
        arguments.extend(sum.iter().chain(&next).map(|b| elements(b).argument()));
        arguments.extend(results.iter().map(Elements::argument));
        let compiled = self.units.announce(helpers::combine(reduction, &columns));
        self.launch(&compiled, points, &arguments);
        results.into_iter().map(Buffer::from).collect()
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

    fn staging(&self, dtype: DType, shape: &[usize]) -> Array {
        Cpu.staging(dtype, shape)
    }
}
