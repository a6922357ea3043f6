//! A GPU over a machine: its memory, the functions that it has compiled, and how it launches them.
//!
//! A kernel without a text, and a text that finds a point without a value, are run on the cores, with copies of the operands: the latter only to
//! name the point. Must not know how a machine works.
//!
//! ```text
//! run [i: 6, j: 4] f32 = a0[j, i]   ->   launch k0, 1 block   ->   f32[6, 4] in the GPU's memory
//! ```

use crate::helpers::{self, Copied};
use crate::machine::{Argument, Machine};
use crate::memory::{Elements, change, elements};
use crate::text::{Meaning, Parameter, Reason};
use crate::units::{Compiled, Units};
use ein_device::{Buffer, BufferType, Device, Launch, Launched, Operand, Prepared, Span};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Kernel};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A device over a machine.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) units: Units,
    pub(crate) groups: Groups,
    launches: AtomicU64,
    on_cores: AtomicU64,
}

/// Counts of the work that a device has done.
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
    pub on_cores: Box<dyn Prepared>,
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

    /// Returns the counts since the device was made.
    pub fn counts(&self) -> Counts {
        Counts {
            launches: self.launches.load(Ordering::Relaxed),
            on_cores: self.on_cores.load(Ordering::Relaxed),
        }
    }

    /// Launches a text over so many output points.
    pub(crate) fn launch(&self, compiled: &Compiled, points: usize, arguments: &[Argument]) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.units.launch(compiled, points as u64, arguments);
    }

    /// Memory of the GPU with any values.
    pub(crate) fn room(&self, kind: BufferType) -> Elements {
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
    pub(crate) fn run_text(
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
    pub(crate) fn run_on_cores(&self, own: &GpuKernel, launch: &Launch<'_>) -> Launched {
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

    /// Copies a box from one array to another.
    pub(crate) fn copy(&self, to: &mut Buffer, from: &Buffer, copied: &Copied<'_>) {
        let (to, from) = (change(to), elements(from));
        let text = helpers::copy_box(copied.extent.len(), to.kind.dtype.size());
        let mut arguments = copied.arguments();
        arguments.extend([from.argument(), to.argument()]);
        let compiled = self.units.announce(text);
        self.launch(&compiled, copied.extent.iter().product(), &arguments);
    }
}

/// Returns the argument that a kernel's parameter gets in a run, from its ranges, the operands that it reads and its results.
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

/// The identity of a group: by member, the kernel's number, who makes each operand, and whether the result is needed behind it; and its rows.
pub(crate) type GroupKey = (Vec<(u64, Vec<Option<usize>>, bool)>, usize);

/// A group's function, and by member, whether its result is in memory.
pub(crate) type Grouped = Option<Arc<(Arc<Compiled>, Vec<bool>)>>;

/// The groups that a device has made functions of.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    numbers: AtomicU64,
    pub known: Mutex<HashMap<GroupKey, Grouped>>,
}

impl Groups {
    /// The number of a new kernel.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// A copy of a buffer in the host's memory.
fn on_host(buffer: &Buffer) -> Buffer {
    buffer.to_host().into()
}
