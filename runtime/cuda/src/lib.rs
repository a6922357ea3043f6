//! Kernels of plans as CUDA C++, and a device that runs them on an emulated GPU.
//!
//! [`text()`] writes the kernel of a local step as a function of CUDA C++. A [`Machine`] compiles such texts and launches them on memory of its own.
//! There is one so far, [`Emulated`]: the system's C++ compiler against a header that defines the threads of a block, their barriers and
//! shuffles, and memory of which every access is checked. So what a GPU would be given is run and compared on machines that have none; no real
//! GPU is driven yet. What has no text (library operations, matrix products, permutations) is computed on the cores, with copies.
//! [`listing()`] shows both for the steps of a plan. The rest must not know plans, keys or sites.
//!
//! ```text
//! [i: 6, j: 4] f32 = a0[j, i]   ->   extern "C" __global__ void k0(ein::whole i0_start, …)   ->   results in the emulated GPU's memory
//! ```

mod device;
mod emulated;
mod expression;
mod function;
mod gpu;
mod group;
mod groups;
mod helpers;
mod kernel;
mod listing;
mod machine;
mod memory;
mod sources;
mod text;
mod units;
mod writer;

pub use emulated::Emulated;
pub use gpu::{Counts, Gpu};
pub use kernel::{scheduled, text};
pub use listing::listing;
pub use machine::{Address, Argument, Machine, Module};
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
