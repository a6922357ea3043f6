//! A GPU as a device: kernels by their generated texts, arrays in the GPU's memory.
//!
//! A kernel without a text, and a text that finds a point without a value, are run on the cores, with copies of the operands: the latter only to
//! name the point. Must not know how a machine works.
//!
//! ```text
//! prepare [i: 6, j: 4] f32 = a0[j, i]   run -> launch k0, 1 block   ->   f32[6, 4] in the GPU's memory
//! ```

use crate::helpers::{self, Copied};
use crate::machine::{Argument, Machine};
use crate::memory::{Elements, change, elements};
use crate::text::{Parameter, Reason, scheduled};
use crate::units::{Compiled, Units};
use ein_array::Array;
use ein_device::{
    Buffer, BufferType, Change, Device, Draw, Launch, Launched, Member, MemberOperand, MemorySpace,
    Operand, Prepared, Span, prepared_as,
};
use ein_device_cpu::Cpu;
use ein_plan::{Format, Kernel, KernelError, LoopKernel, Reduction, Update};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device over a machine.
#[derive(Debug)]
pub struct Gpu {
    machine: Arc<dyn Machine>,
    units: Units,
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

#[derive(Debug)]
struct GpuKernel {
    kernel: Kernel,
    compiled: Result<Arc<Compiled>, Reason>,
    on_cores: Box<dyn Prepared>,
}

impl Prepared for GpuKernel {}

impl Gpu {
    /// The device of a machine.
    pub fn new(machine: Arc<dyn Machine>) -> Gpu {
        Gpu {
            units: Units::new(Arc::clone(&machine)),
            machine,
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

    /// Runs a kernel by its text; `None` if some point has no value.
    fn run_text(
        &self,
        kernel: &Kernel,
        compiled: &Compiled,
        launch: &Launch<'_>,
    ) -> Option<Vec<Buffer>> {
        let shape = launch.ranges.iter().take(kernel.output_rank as usize);
        let shape: Vec<usize> = shape.map(|(_, length)| *length as usize).collect();
        let results = kernel.output.iter();
        let results: Vec<Elements> = results
            .map(|dtype| self.room(BufferType::dense(*dtype, shape.clone())))
            .collect();
        let flag = compiled.text.parameters.contains(&Parameter::Flag);
        let flag = flag.then(|| {
            let flag = self.room(BufferType::dense(ein_plan::DType::I32, vec![]));
            self.machine.clear(flag.address, 4);
            flag
        });
        let parameters = compiled.text.parameters.iter();
        let arguments: Vec<Argument> = parameters
            .map(|parameter| match *parameter {
                Parameter::Start(index) => Argument::Whole(launch.ranges[index].0 as i64),
                Parameter::Length(index) => Argument::Whole(launch.ranges[index].1 as i64),
                Parameter::OperandStart(operand, dim) => {
                    Argument::Whole(launch.operands[operand].start[dim] as i64)
                }
                Parameter::OperandLength(operand, dim) => {
                    let columns = launch.operands[operand].columns;
                    Argument::Whole(columns[0].shape()[dim] as i64)
                }
                Parameter::Column(operand, column, _) => {
                    elements(&launch.operands[operand].columns[column]).argument()
                }
                Parameter::Result(column, _) => results[column].argument(),
                Parameter::Flag => {
                    let flag = flag.as_ref();
                    flag.expect("it was made since the text has it").argument()
                }
                Parameter::Number(_) => unreachable!("the text of a kernel names no other numbers"),
            })
            .collect();
        self.launch(compiled, shape.iter().product(), &arguments);
        let mut failed = [0; 4];
        if let Some(flag) = &flag {
            self.machine.read(flag.address, &mut failed);
        }
        (failed == [0; 4]).then(|| results.into_iter().map(Buffer::from).collect())
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
        _rows: usize,
        over: BTreeMap<usize, Buffer>,
    ) -> Result<Vec<Option<Vec<Buffer>>>, (usize, KernelError)> {
        let mut made: Vec<Vec<Buffer>> = vec![];
        for (number, member) in members.iter().enumerate() {
            let launch = Launch {
                kernel: member.kernel,
                ranges: member.ranges.clone(),
                operands: (member.operands.iter())
                    .map(|operand| member_operand(operand, members, (&made, &over)))
                    .collect(),
            };
            let columns = self.run(&launch).map_err(|error| (number, error))?;
            made.push(columns);
        }
        let kept = members.iter().map(|member| member.kept);
        let results = made.into_iter().zip(kept);
        Ok(results.map(|(made, kept)| kept.then_some(made)).collect())
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
        self.adopt(Cpu.generate(draw, ranges))
    }

    fn staging(&self, dtype: ein_plan::DType, shape: &[usize]) -> Array {
        Cpu.staging(dtype, shape)
    }
}

/// An operand of a member: what is given, what an earlier member has made, or what lies where a member's result will be.
fn member_operand<'a>(
    operand: &MemberOperand<'a>,
    members: &[Member<'_>],
    (made, over): (&'a [Vec<Buffer>], &'a BTreeMap<usize, Buffer>),
) -> Operand<'a> {
    // The last two begin where the member's output does.
    let of_member = |columns: &'a [Buffer], member: usize| Operand {
        columns,
        start: (members[member].ranges.iter())
            .take(columns.first().map_or(0, |column| column.shape().len()))
            .map(|(start, _)| *start)
            .collect(),
    };
    match operand {
        MemberOperand::Given(given) => given.clone(),
        MemberOperand::Made(member) => of_member(&made[*member], *member),
        MemberOperand::Replaced(member) => of_member(std::slice::from_ref(&over[member]), *member),
    }
}
