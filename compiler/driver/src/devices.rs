//! Devices: the one that a run computes on, by its kind, and the GPUs of this machine.
//!
//! Must not know what they compute.
//!
//! ```text
//! gpu, local rank 5 of a machine with 4 GPUs   ->   GPU 1
//! ```

use crate::arguments::DeviceKind;
use crate::exit;
use crate::failure::Failure;
use crate::planned::{Planned, Prepared};
pub use ein_cuda::{Architecture, Images};
use ein_device::Device;
use ein_plan::Plan;
use einc_core::pipeline::report::PlanReport;
use einc_diag::Diagnostic;
use std::{env, sync::Arc};

/// A device, and further ones.
pub type Devices = (Arc<dyn Device>, Vec<Arc<dyn Device>>);

/// Opens a device of a kind.
///
/// # Errors
/// `E0718` if this machine has none.
pub fn open(kind: DeviceKind) -> Result<Arc<dyn Device>, Failure> {
    open_for(kind, 1, &Arc::default()).map(|(device, _)| device)
}

/// Opens the devices of a kind for so many sites of this process: one that they share, or as many GPUs as there are, with images of kernels that
/// these need not compile. The first one, and the others.
///
/// # Errors
/// `E0718` if this machine has none.
pub fn open_for(kind: DeviceKind, sites: u32, images: &Arc<Images>) -> Result<Devices, Failure> {
    let one = |device| Ok((device, vec![]));
    match kind {
        DeviceKind::Cpu => one(ein_device_cpu::device()),
        DeviceKind::Reference => one(einc_reference::device()),
        DeviceKind::Gpu => open_gpus(sites as usize, images).map_err(|why| {
            let message = format!("there is no GPU to compute on: {why}");
            Failure::wrong(vec![Diagnostic::error("E0718", message).help(
                "`einc doctor` shows what it finds; without `--device` the processor computes",
            )])
        }),
        DeviceKind::Emulated => {
            let device = ein_cuda::emulated().map_err(|why| {
                let message = format!("there is no emulated GPU here: {why}");
                Failure::wrong(vec![
                    Diagnostic::error("E0718", message)
                        .help("install a C++ compiler, or name one in CXX"),
                ])
            });
            one(device?)
        }
    }
}

/// The GPUs that this process may use.
///
/// # Errors
/// There is no driver, or it says why it does not work.
pub fn gpus() -> Result<Vec<ein_cuda::Properties>, String> {
    ein_cuda::nvidia_gpus()
}

/// The libraries that a GPU needs besides its driver and that are missing, in words.
pub fn gpu_libraries_missing() -> Vec<String> {
    ein_cuda::nvidia_missing()
}

/// The variables in which launchers say which of its machine's ranks a process is.
const LOCAL_RANK: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
    "MV2_COMM_WORLD_LOCAL_RANK",
];

/// This process's GPUs: several sites of one process have as many as there are, and ranks of one machine take them in turn.
fn open_gpus(sites: usize, images: &Arc<Images>) -> Result<Devices, String> {
    let local = LOCAL_RANK.iter().find_map(|name| env::var(name).ok());
    let local: usize = local.and_then(|text| text.parse().ok()).unwrap_or(0);
    let count = gpus()?.len().max(1);
    let open = |number: usize| -> Result<Arc<dyn Device>, String> {
        let (gpu, lacks) = ein_cuda::nvidia((local + number) % count, images)?;
        if let Some(lacks) = lacks.filter(|_| local + number == 0) {
            exit::complain(&format!(
                "{lacks}: generated kernels multiply matrices, which takes longer\n"
            ));
        }
        Ok(Arc::new(gpu))
    };
    let further = (1..sites.clamp(1, count)).map(open);
    Ok((open(0)?, further.collect::<Result<_, _>>()?))
}

/// Compiles all kernels of plans for GPUs of some architectures.
///
/// # Errors
/// `E0738` if this machine cannot.
pub fn images(planned: &Planned, architectures: &[Architecture]) -> Result<Images, Failure> {
    let prepared = &planned.prepared;
    // Made beside the plans: inputs of batches, and what params and states begin with.
    let beside = match prepared {
        Prepared::Plan(_) => vec![],
        Prepared::Session(session) => {
            let inputs = session.blocks.iter().flat_map(|block| &block.inputs);
            let inputs = inputs.map(|input| (&input.source, input.dtype, input.shape.len()));
            let carried = session.carried.values();
            let carried = carried.map(|own| (&own.begin, own.dtype, own.shape.len()));
            inputs.chain(carried).collect()
        }
    };
    Images::of(&prepared.plans(), &beside, architectures).map_err(|why| {
        let message = format!("the kernels cannot be compiled for GPUs: {why}");
        Failure::wrong(vec![Diagnostic::error("E0738", message)])
    })
}

/// The functions that a GPU runs of a plan, and what is left to the cores.
pub fn kernels_of_gpu(report: &PlanReport) -> String {
    let plan: Plan = (report.kernels.parse()).expect("the text of a plan reads back");
    ein_cuda::listing(&plan)
}
