//! Walks a plan on one site, or on several sites of this process.
//!
//! Every site walks the same steps; which tuples it makes, holds and sends follows from the placements
//! alone. Must not know compilers, formats or transports.
//!
//! ```text
//! plan for 3 sites + options -> site 0: printed outputs, saved files, floats and bytes moved, peak bytes
//! ```

#![allow(
    clippy::result_large_err,
    reason = "a run has one error, and it ends the run"
)]

mod checks;
mod corner;
mod disk;
mod error;
mod exchange;
mod fault;
mod host_memory;
mod local;
mod made;
mod meet;
mod moved;
mod movement;
mod number;
mod output;
mod over;
pub mod print;
mod profile;
mod rearrange;
mod repeat;
mod resting;
mod resting_place;
mod schedule;
pub mod session;
mod source;
mod spill;
mod step;
mod store;
mod stream;
mod stream_movement;
mod succession;
mod walk;
mod whole;
mod windows;

pub use error::{ErrorKind, RunError};
pub use meet::share_numbers;
pub use print::Printed;
pub use profile::{Note, Profile, SiteProfile, Slice, Total};
pub use resting::Spilled;
pub use session::{Event, Session, Watch};

use ein_comm::{Communicator, Moved, in_process};
use ein_device::{Device, DeviceFault, Workers};
use ein_plan::{FileRef, Plan};
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What a run is given besides the plan; equal at all sites of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device that computes at this site and holds its arrays.
    pub device: Arc<dyn Device>,
    /// Further devices of this process. Its sites take `device` and these in turn.
    pub further: Vec<Arc<dyn Device>>,
    /// Seed of the random sources.
    pub seed: u64,
    /// Threads of all sites of this process together; at least one a site is used.
    pub threads: usize,
    /// The cores that the threads of this process keep to, thread by thread, site by site; empty: the system places them.
    pub cores: Vec<usize>,
    /// Folder of the `.ein` file: the paths of default sources are relative to it.
    pub base: PathBuf,
    /// Files bound to inputs and params, by full name; they replace the program's sources. Relative paths
    /// are relative to the working directory.
    pub inputs: BTreeMap<String, FileRef>,
    /// Files for outputs, by name; they replace the program's.
    pub saves: BTreeMap<String, PathBuf>,
    /// An archive for all outputs that have no file of their own.
    pub archive: Option<PathBuf>,
    /// Whether the run stops at the first statement that gives NaN.
    pub check_nan: bool,
    /// What is noted of every step.
    pub note: Note,
    /// Folder for what rests on disk, if the plan says so.
    pub spill: PathBuf,
    /// After how long a site that waits for others says so; none: never.
    pub patience: Option<Duration>,
    /// What a session keeps on disk, and how it begins.
    pub keeping: session::Keeping,
}

impl Options {
    /// Nothing but a device.
    pub fn on(device: Arc<dyn Device>) -> Options {
        Options {
            device,
            further: vec![],
            seed: 0,
            threads: 0,
            cores: vec![],
            base: PathBuf::new(),
            inputs: BTreeMap::new(),
            saves: BTreeMap::new(),
            archive: None,
            check_nan: false,
            note: Note::default(),
            spill: PathBuf::new(),
            patience: None,
            keeping: session::Keeping::default(),
        }
    }

    /// The options of a site of this process, with its own device.
    fn at(&self, site: u32) -> Options {
        let all = std::iter::once(&self.device).chain(&self.further);
        let own = all.cycle().nth(site as usize % (1 + self.further.len()));
        Options {
            device: Arc::clone(own.unwrap_or(&self.device)),
            ..self.clone()
        }
    }

    /// The threads of a site. The thread of a site of this process is one of them, since nothing has to be kept going while it computes: a step begins
    /// without waking another.
    fn pool(&self, comm: &dyn Communicator) -> Result<ThreadPool, RunError> {
        let workers = Workers {
            threads: self.threads.max(1),
            cores: &self.cores_of(comm),
            alone: comm.sites() == 1 || comm.is_one_process(),
        };
        self.device.workers(&workers).map_err(|error| {
            RunError::internal(format!(
                "the threads of the site cannot be started: {error}"
            ))
        })
    }

    /// The cores of this site's threads, of which there are `threads` now; none if the system places them.
    fn cores_of(&self, comm: &dyn Communicator) -> Vec<usize> {
        let before = match comm.is_one_process() {
            true => comm.site() as usize,
            false => 0,
        };
        let cores = self.cores.chunks_exact(self.threads.max(1)).nth(before);
        cores.unwrap_or_default().to_vec()
    }
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Outputs without a file of the program's, in its order: whole if small, else their corners. Site 0 only.
    pub printed: Vec<Printed>,
    /// Outputs written, and where to.
    pub saved: Vec<(String, PathBuf)>,
    /// What went from site to site.
    pub traffic: Traffic,
    /// The most bytes of arrays that each site held at once.
    pub peak_bytes: Vec<u64>,
    /// By site: the most bytes that arrays took of its device's own memory, for all sites that share the device; empty if it has none.
    pub device_bytes: Vec<u64>,
    /// By site: what rested on disk, or in the host's memory; empty if the plan lets nothing rest.
    pub spilled: Vec<Spilled>,
    /// By loop of the plan: the rounds that were made, over all rounds of the loops around it.
    pub rounds: Vec<u64>,
    /// By block of a session, from 0, and tensor: what sites exchanged between rounds of steps of their own.
    pub exchanged: Vec<(usize, String, session::Exchanged)>,
    /// Where a session began: the block, from 0, and its step.
    pub begun: (u64, u64),
    /// What every step took, by site, if that was noted. Site 0 only.
    pub profile: Option<Profile>,
    /// The signal that ended a session early, after it was saved, and the steps that had been made.
    pub stopped: Option<(usize, u64)>,
    /// Why a session's params were not exported, where everything else was done.
    pub unexported: Option<RunError>,
}

/// What went from site to site, over all sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// By step of the plan, every time that it was walked.
    pub steps: Vec<Moved>,
    /// For printing outputs at site 0.
    pub outputs: Moved,
}

impl Traffic {
    /// Everything together.
    pub fn total(&self) -> Moved {
        let mut total = self.outputs;
        self.steps.iter().for_each(|step| total += *step);
        total
    }

    /// By line of the program: `(file, line)` to what the steps of that line moved. Lines that moved
    /// nothing are absent.
    pub fn by_line(&self, plan: &Plan) -> BTreeMap<(u32, u32), Moved> {
        let mut lines: BTreeMap<(u32, u32), Moved> = BTreeMap::new();
        for (step, moved) in plan.steps.iter().zip(&self.steps) {
            if *moved != Moved::default() {
                *lines
                    .entry((step.origin.file, step.origin.line))
                    .or_default() += *moved;
            }
        }
        lines
    }
}

/// Runs a plan on `plan.sites` threads. An error is that of the lowest site that has one.
pub fn run_in_process(plan: &Plan, options: &Options) -> Result<Report, RunError> {
    let sites = plan.sites.max(1);
    let options = Options {
        threads: options.threads / sites as usize,
        ..options.clone()
    };
    on_threads(sites, |end| run_site(plan, end, &options.at(end.site())))
}

/// Runs a session on `sites` threads, as [`run_in_process`] does a plan; `watch` is told at site 0.
pub fn train_in_process(
    session: &Session,
    sites: u32,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Report, RunError> {
    let sites = sites.max(1);
    let options = Options {
        threads: options.threads / sites as usize,
        ..options.clone()
    };
    on_threads(sites, |end| {
        train_site(session, end, &options.at(end.site()), watch)
    })
}

/// Runs a session as one site of a communicator, as [`run_site`] does a plan.
pub fn train_site(
    session: &Session,
    comm: &dyn Communicator,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Report, RunError> {
    caught(comm, None, |step| {
        session::session(session, comm, options, watch, step)
    })
}

/// One thread a site. An error is that of the lowest site that has one.
fn on_threads(
    sites: u32,
    body: impl Fn(&dyn Communicator) -> Result<Report, RunError> + Sync,
) -> Result<Report, RunError> {
    let results: Vec<Result<Report, RunError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = in_process(sites)
            .into_iter()
            .map(|end| {
                let body = &body;
                std::thread::Builder::new()
                    .name(format!("site {}", end.site()))
                    .spawn_scoped(scope, move || body(&end))
            })
            .collect();
        threads
            .into_iter()
            .enumerate()
            .map(|(site, thread)| match thread.map(|t| t.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(RunError::internal("the site's thread ended").at(site as u32)),
                Err(error) => Err(RunError::internal(format!(
                    "a thread for the site cannot be started: {error}"
                ))
                .at(site as u32)),
            })
            .collect()
    });
    // A site that panicked says more than those that only know that it is lost.
    let worst = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .min_by_key(|error| (error.kind == ErrorKind::Lost, error.site));
    if let Some(error) = worst {
        return Err(error.clone());
    }
    results
        .into_iter()
        .next()
        .unwrap_or_else(|| Err(RunError::internal("a run has at least one site")))
}

/// Runs a plan as one site of a communicator; every site of it calls this with the same plan and options.
/// All sites return the same error, wherever it happened. A panic here ends the run everywhere.
pub fn run_site(
    plan: &Plan,
    comm: &dyn Communicator,
    options: &Options,
) -> Result<Report, RunError> {
    caught(comm, Some(plan), |step| {
        walk::walk(plan, comm, options, step)
    })
}

/// What `body` gives; a panic in it ends the run everywhere, with the step that it was in.
fn caught(
    comm: &dyn Communicator,
    plan: Option<&Plan>,
    body: impl FnOnce(&AtomicUsize) -> Result<Report, RunError>,
) -> Result<Report, RunError> {
    let step = AtomicUsize::new(usize::MAX);
    let walked = catch_unwind(AssertUnwindSafe(|| body(&step)));
    ein_array::release();
    walked.unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "of an unknown reason".to_owned());
        let refused = panic.downcast_ref::<ein_array::NoMemory>();
        let error = match (refused, panic.downcast_ref::<DeviceFault>()) {
            (Some(refused), _) => RunError::no_memory(refused.bytes),
            (None, Some(fault)) => RunError::device(fault),
            (None, None) => RunError::internal(format!("panicked: {reason}")),
        };
        let mut error = error.at(comm.site());
        if let Some(plan) = plan
            && plan.steps.get(step.load(Ordering::Relaxed)).is_some()
        {
            error = error.in_step(plan, step.load(Ordering::Relaxed));
        }
        comm.abort(&error.message);
        Err(error)
    })
}
