//! A GPU over a machine: its memory, the functions that it has compiled, and how it launches them.
//!
//! Must not know how a machine works, nor which way a kernel takes.
//!
//! ```text
//! run [i: 6, j: 4] f32 = a0[j, i]   ->   launch k0, 1 block   ->   f32[6, 4] in the GPU's memory
//! ```

use crate::helpers::{self, Copied};
use crate::machine::{Argument, Machine, Matrices};
use crate::memory::{Elements, change, elements};
use crate::text::{Meaning, Parameter};
use crate::units::{Compiled, Units};
use ein_device::{Buffer, BufferType, Launch, Operand, Span};
use ein_plan::{DType, Kernel};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The working space of a device that is not told another one, in bytes: enough to fill a GPU.
pub const WORKING_SPACE: u64 = 256 << 20;

/// A device over a machine.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) units: Units,
    pub(crate) groups: Groups,
    /// Bytes of a factor of a product that is packed at once, and of what members of a group make for each other.
    pub(crate) working_space: u64,
    launches: AtomicU64,
    products: AtomicU64,
    on_cores: AtomicU64,
}

/// Counts of the work that a device has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Functions that were launched.
    pub launches: u64,
    /// Calls of the library for products of matrices.
    pub products: u64,
    /// Kernels that were run on the cores.
    pub on_cores: u64,
}

impl Gpu {
    /// The device of a machine.
    pub fn new(machine: Arc<dyn Machine>) -> Gpu {
        Gpu {
            units: Units::new(Arc::clone(&machine)),
            machine,
            groups: Groups::default(),
            working_space: WORKING_SPACE,
            launches: AtomicU64::new(0),
            products: AtomicU64::new(0),
            on_cores: AtomicU64::new(0),
        }
    }

    /// The device, with so many bytes of working space, at least one.
    #[must_use]
    pub fn working_in(mut self, bytes: u64) -> Gpu {
        self.working_space = bytes.max(1);
        self
    }

    /// Returns the counts since the device was made.
    pub fn counts(&self) -> Counts {
        Counts {
            launches: self.launches.load(Ordering::Relaxed),
            products: self.products.load(Ordering::Relaxed),
            on_cores: self.on_cores.load(Ordering::Relaxed),
        }
    }

    /// Launches a text over so many output points.
    pub(crate) fn launch(&self, compiled: &Compiled, points: usize, arguments: &[Argument]) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.units.launch(compiled, points as u64, arguments);
    }

    /// Multiplies matrices.
    pub(crate) fn multiply(&self, matrices: &Matrices) {
        self.products.fetch_add(1, Ordering::Relaxed);
        self.machine.multiply(matrices);
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

    /// Counts a kernel that the cores run.
    pub(crate) fn count_on_cores(&self) {
        self.on_cores.fetch_add(1, Ordering::Relaxed);
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
