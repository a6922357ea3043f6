//! Kernels of plans as CUDA C++, and a device that runs them on a GPU.
//!
//! [`text()`] writes the kernel of a local step as a function of CUDA C++. A [`Machine`] compiles such texts and launches them on memory of its own,
//! and multiplies matrices by a library. There are two: an NVIDIA GPU, by its driver and what belongs to it, and [`Emulated`]: the system's
//! C++ compiler against a header that defines the threads of a block, their barriers and shuffles, and memory of which every access is checked.
//! So what a GPU is given is run and compared on machines that have none. What has no text (library operations, permutations) is computed on
//! the cores, with copies. [`listing()`] shows both for the steps of a plan. The rest must not know plans, keys or sites.
//!
//! ```text
//! [i: 6, j: 4] f32 = a0[j, i]   ->   extern "C" __global__ void k0(ein::whole i0_start, …)   ->   results in the emulated GPU's memory
//! ```

mod cache;
mod device;
mod emulated;
mod expression;
mod function;
mod functions;
mod gpu;
mod group;
mod groups;
mod helpers;
mod images;
mod kernel;
mod listing;
mod machine;
mod memory;
mod nvidia;
mod prepared;
mod product;
mod sources;
mod strips;
mod text;
mod unit;
mod units;
mod writer;

pub use ein_nvidia::{
    Architecture, Properties, list as nvidia_gpus, missing as nvidia_missing,
    present as nvidia_compiler,
};
pub use emulated::Emulated;
pub use functions::on_cores;
pub use gpu::{Counts, Gpu, WORKING_SPACE};
pub use images::Images;
pub use kernel::text;
pub use listing::listing;
pub use machine::{Address, Argument, Element, Machine, Matrices, Matrix, Module};
pub use text::{Meaning, Meeting, Parameter, Reason, Text, prelude};

use ein_device::Device;
use std::sync::{Arc, OnceLock};

/// The emulated GPU of this process, as what walks plans takes it. It keeps what it has compiled.
///
/// # Errors
/// There is no C++ compiler.
pub fn emulated() -> Result<Arc<dyn Device>, String> {
    static DEVICE: OnceLock<Result<Arc<Gpu>, String>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| Ok(Arc::new(Gpu::new(Arc::new(Emulated::new()?)))));
    let device = device.clone()?;
    Ok(device)
}

/// An emulated GPU with so many bytes of working space.
///
/// # Errors
/// There is no C++ compiler.
pub fn emulated_working_in(bytes: u64) -> Result<Arc<dyn Device>, String> {
    let gpu = Gpu::new(Arc::new(Emulated::new()?));
    Ok(Arc::new(gpu.working_in(bytes)))
}

/// A GPU of this machine, by its number, with images of kernels that it need not compile; and what it lacks, if that makes it slow.
///
/// # Errors
/// Why it cannot be used.
pub fn nvidia(number: usize, images: &Arc<Images>) -> Result<(Gpu, Option<String>), String> {
    let driven = nvidia::Driven::open(number, images)?;
    let lacks = driven.lacks();
    Ok((Gpu::new(Arc::new(driven)), lacks))
}
