//! Devices: the one that a run computes on, by its kind, and the GPUs of this machine.
//!
//! Must not know what they compute.
//!
//! ```text
//! gpu, local rank 5 of a machine with 4 GPUs   ->   GPU 1
//! ```

use crate::arguments::DeviceKind;
use crate::calibration;
use crate::exit;
use crate::failure::Failure;
use crate::machine_file::{self, Figures};
use crate::planned::{Planned, Prepared};
use crate::prediction::{self, Outputs};
use bytesize::ByteSize;
pub use ein_cuda::{Architecture, Images};
use ein_device::Device;
use ein_plan::Plan;
use einc_core::pipeline::{count, report::PlanReport, scaled, seconds};
use einc_diag::Diagnostic;
use std::{env, path::Path, sync::Arc};

/// A device, and further ones.
pub type Devices = (Arc<dyn Device>, Vec<Arc<dyn Device>>);

/// Opens a device of a kind.
///
/// # Errors
/// `E0718` if this machine has none.
pub fn open(kind: DeviceKind) -> Result<Arc<dyn Device>, Failure> {
    open_for(kind, 1, &Arc::default(), None).map(|(device, _)| device)
}

/// Says whether this machine has a GPU, and a compiler of its kernels unless these come as images.
pub fn has_gpu(images: &Images) -> bool {
    let found = gpus().is_ok_and(|gpus| !gpus.is_empty());
    found && (!images.is_empty() || ein_cuda::nvidia_compiler().is_ok())
}

/// Chooses the device for plans on a machine with a GPU, of which each site of this process has so many cores: a GPU where its figures say that it is
/// faster, or where there are none.
pub fn automatic(
    plans: &[(&Plan, Outputs)],
    figures: Option<&Figures>,
    cores: usize,
) -> DeviceKind {
    match figures.map(|figures| prediction::seconds(plans, figures, cores)) {
        Some((on_cores, Some(on_gpu))) if on_cores < on_gpu => DeviceKind::Cpu,
        _ => DeviceKind::Gpu,
    }
}

/// The part of the limit on a GPU's memory that its kernels may work in, for a factor, and for what members of a group make for each other.
const WORKING_PART: u64 = 16;

/// Opens the devices of a kind for so many sites of this process: one that they share, or as many GPUs as there are, with images of kernels that
/// these need not compile, and with the working space that a limit on their memory leaves. The first one, and the others.
///
/// # Errors
/// `E0718` if this machine has none.
pub fn open_for(
    kind: DeviceKind,
    sites: u32,
    images: &Arc<Images>,
    limit: Option<u64>,
) -> Result<Devices, Failure> {
    let working = limit.map(|limit| working_space(limit).0);
    let one = |device| Ok((device, vec![]));
    match kind {
        DeviceKind::Cpu | DeviceKind::Auto => one(ein_device_cpu::device()),
        DeviceKind::Reference => one(einc_reference::device()),
        DeviceKind::Gpu => open_gpus(sites as usize, images, working).map_err(|why| {
            let message = format!("there is no GPU to compute on: {why}");
            Failure::wrong(vec![Diagnostic::error("E0718", message).help(
                "`einc doctor` shows what it finds; without `--device` the processor computes",
            )])
        }),
        DeviceKind::Emulated => {
            let device = match working {
                Some(bytes) => ein_cuda::emulated_working_in(bytes),
                None => ein_cuda::emulated(),
            };
            let device = device.map_err(|why| {
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

/// Returns the working space at once of a GPU whose memory has a limit, and what is left for a plan: kernels may take four times that space, two
/// packed factors, a result that is copied, and what a group makes, at one time.
pub fn working_space(limit: u64) -> (u64, u64) {
    let at_once = (limit / WORKING_PART).min(ein_cuda::WORKING_SPACE);
    (at_once, limit - 4 * at_once)
}

/// Looks whether plans that hold so many bytes at each site fit in what is free of the devices' own memory; this process is so many of their sites.
///
/// # Errors
/// `E0717` if they do not.
pub fn has_room((first, others): &Devices, peaks: &[u64], sites: u32) -> Result<(), Failure> {
    let all = std::iter::once(first).chain(others);
    // A rank alone may be any site.
    let most = peaks.iter().copied().max().unwrap_or(0);
    for (number, device) in all.enumerate() {
        let Some(free) = device.own_memory().and_then(|memory| memory.free) else {
            continue;
        };
        let own = (number..sites as usize).step_by(1 + others.len());
        let needed: u64 = match sites {
            1 => most,
            _ => own.clone().filter_map(|site| peaks.get(site)).sum(),
        };
        if needed > free {
            let each = free / own.count().max(1) as u64;
            let [needed, free] = [needed, free].map(|bytes| ByteSize(bytes).display().si());
            let message = format!(
                "the plan holds {needed} in the memory of {}, of which {free} are free",
                device.space()
            );
            return Err(Failure::wrong(vec![
                Diagnostic::error("E0717", message)
                    .help(format!(
                        "let values rest in the host's memory between two uses, `--gpu-memory {each}`"
                    ))
                    .help("run on more GPUs; or leave it to the cores, `--device cpu`"),
            ]));
        }
    }
    Ok(())
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
fn open_gpus(sites: usize, images: &Arc<Images>, working: Option<u64>) -> Result<Devices, String> {
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
        Ok(Arc::new(match working {
            Some(bytes) => gpu.working_in(bytes),
            None => gpu,
        }))
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

/// Returns a line about the device that is predicted to be faster for a plan, whose sites have so many cores each.
///
/// # Errors
/// E0193: the machine's figures cannot be read, or lack those of a GPU.
pub fn predicted(
    report: &PlanReport,
    outputs: Outputs,
    (machine, cores): (Option<&Path>, usize),
) -> Result<String, Diagnostic> {
    let figures = calibration::read(machine)?;
    let plan = plan_of(report);
    let plans = [(&plan, outputs)];
    let (on_cores, Some(on_gpu)) = prediction::seconds(&plans, &figures, cores) else {
        return Err(machine_file::no_gpu());
    };
    let faster = match automatic(&plans, Some(&figures), cores) {
        DeviceKind::Gpu => "gpu",
        _ => "cpu",
    };
    let cores = count(cores as u64, "core");
    let [on_gpu, on_cores] = [on_gpu, on_cores].map(seconds);
    Ok(format!(
        "device: {faster}; {on_gpu} on a GPU, {on_cores} on {cores} a site\n"
    ))
}

/// Returns a line about what a plan copies between the host's memory and a GPU's, and what it leaves to the cores.
pub fn copied(report: &PlanReport, outputs: Outputs) -> String {
    let plan = plan_of(report);
    let copies = prediction::copies(&plan, outputs);
    let [there, back] = [copies.there, copies.back].map(|bytes| scaled(bytes as u64, "B"));
    let steps = plan.steps.iter().zip(&copies.on_cores);
    let names = steps.filter(|(_, on_cores)| **on_cores);
    let names: Vec<&str> = names.map(|(step, _)| step.tensor.as_str()).collect();
    let left = match names.is_empty() {
        true => String::new(),
        false => format!("; the cores compute {}", names.join(", ")),
    };
    format!("on a GPU: {there} copied to it at a site, {back} back{left}\n")
}

fn plan_of(report: &PlanReport) -> Plan {
    (report.kernels.parse()).expect("the text of a plan reads back")
}

/// The functions that a GPU runs of a plan, and what is left to the cores.
pub fn kernels_of_gpu(report: &PlanReport) -> String {
    ein_cuda::listing(&plan_of(report))
}
