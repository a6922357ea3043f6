//! Kernels as a GPU runs them: by their texts, by the matrix library, or on the cores.
//!
//! A kernel without a text, and a text that finds a point without a value, are run on the cores, with copies of the operands: the latter only to
//! name the point. Must not know how a machine works.
//!
//! ```text
//! [i: 64, j: 64 | k: 64] f32 = sum a0[i, k] * a1[k, j]   ->   a product;   solve(a0, a1)   ->   on the cores
//! ```

use crate::gpu::Gpu;
use crate::kernel::text;
use crate::product::Product;
use crate::units::Compiled;
use ein_device::{Buffer, Device, Launch, Launched, Operand, Prepared};
use ein_device_cpu::Cpu;
use ein_plan::{Kernel, LoopKernel, LoopKind};
use std::sync::{Arc, OnceLock};

/// A kernel as a GPU runs it.
#[derive(Debug)]
pub(crate) struct GpuKernel {
    /// No other kernel of the device has it.
    pub number: u64,
    pub kernel: Kernel,
    pub work: Work,
    on_cores: OnCores,
}

/// A kernel as the cores run it, prepared when they first do.
#[derive(Debug)]
struct OnCores {
    loops: LoopKernel,
    deterministic: bool,
    prepared: OnceLock<Box<dyn Prepared>>,
}

/// The way in which a GPU computes a kernel.
#[derive(Debug)]
pub(crate) enum Work {
    /// By its text.
    Text(Arc<Compiled>),
    /// By the machine's library.
    Product(Box<Product>),
    /// It does not.
    OnCores,
}

impl Prepared for GpuKernel {}

impl GpuKernel {
    /// Prepares a kernel for a GPU.
    pub fn new(gpu: &Gpu, kernel: &Kernel, loops: &LoopKernel, deterministic: bool) -> GpuKernel {
        GpuKernel {
            number: gpu.groups.number(),
            kernel: kernel.clone(),
            work: work(gpu, kernel, loops, deterministic),
            on_cores: OnCores {
                loops: loops.clone(),
                deterministic,
                prepared: OnceLock::new(),
            },
        }
    }

    /// Runs a kernel on the cores, with copies of its operands and results.
    pub fn run_on_cores(&self, gpu: &Gpu, launch: &Launch<'_>) -> Launched {
        gpu.count_on_cores();
        let copies: Vec<Vec<Buffer>> = (launch.operands.iter())
            .map(|operand| operand.columns.iter().map(on_host).collect())
            .collect();
        let operands = launch.operands.iter().zip(&copies);
        let OnCores {
            loops,
            deterministic,
            prepared,
        } = &self.on_cores;
        let prepared = prepared.get_or_init(|| Cpu.prepare(&self.kernel, loops, *deterministic));
        let launch = Launch {
            kernel: &**prepared,
            ranges: launch.ranges.clone(),
            operands: operands
                .map(|(operand, columns)| Operand {
                    columns,
                    start: operand.start.clone(),
                })
                .collect(),
        };
        let made = Cpu.run(&launch)?.into_iter();
        Ok(made.map(|buffer| gpu.adopt(buffer)).collect())
    }
}

/// Chooses how a kernel is computed. Where results must be the same bits on any number of sites, a text takes the terms in their own order.
fn work(gpu: &Gpu, kernel: &Kernel, loops: &LoopKernel, deterministic: bool) -> Work {
    if let LoopKind::Matmul(form) = &loops.kind
        && !deterministic
        && kernel.guard.is_none()
        && gpu.machine.multiplies()
        && let Ok(product) = Product::new(kernel, form)
    {
        return Work::Product(Box::new(product));
    }
    match text(kernel) {
        Ok(text) => Work::Text(gpu.units.announce(text)),
        Err(_) => Work::OnCores,
    }
}

/// A copy of a buffer in the host's memory.
fn on_host(buffer: &Buffer) -> Buffer {
    buffer.to_host().into()
}
