//! The start of a run besides its plans: where its params begin, what it keeps, with how many threads.
//!
//! Must not know how a run ends.
//!
//! ```text
//! --weights w.safetensors   ->   W1 begins with w.safetensors:W1
//! ```

use crate::devices::{self, Devices};
use crate::{
    arguments::DeviceKind, calibration, exit, failure::Failure, interrupt::Interrupt,
    machine::RankPlace, planned::Prepared, program::Program, settings::Settings, target, weights,
};
use ein_exec::session::{Begin, Keeping};
use ein_exec::{Note, Options};
use ein_plan::{FileRef, Operation, Plan, Source};
use einc_diag::Diagnostic;
use einc_syntax::ast::ItemKind;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// How a run begins, besides its plans.
pub(super) struct Beginning {
    /// The devices that compute the kernels.
    pub devices: Devices,
    /// The files of params that begin with weights.
    pub weights: BTreeMap<String, FileRef>,
    /// What a session keeps on disk.
    pub keeping: Keeping,
}

/// Looks at the settings of a run besides its plans; this process is so many of its sites.
pub(super) fn beginning(
    program: &Program,
    planned: &Prepared,
    settings: &Settings,
    sites: u32,
) -> Result<Beginning, Failure> {
    targets(settings).map_err(|error| Failure::usage(vec![error]))?;
    let devices = devices(planned, settings, sites)?;
    let files = weights::files(&settings.weights);
    let weights = files.map_err(|error| Failure::wrong(vec![error]))?;
    let mut keeping = Keeping::default();
    match planned {
        Prepared::Session(session) => {
            let params = session
                .carried
                .iter()
                .filter(|(_, carried)| carried.kind.is_model());
            let params = params.flat_map(|(name, carried)| carried.names(name));
            let params: Vec<&str> = params.collect();
            weights::complete(&settings.weights, &params)
                .and_then(|()| weights::used(&settings.weights, &params))
                .map_err(|error| Failure::wrong(vec![error]))?;
            let folders = session.blocks.iter().filter_map(|b| b.checkpoints.as_ref());
            let within = |path: &Path, folder: &Path| {
                let whole = [path, folder].map(std::fs::canonicalize);
                matches!(whole, [Ok(path), Ok(folder)] if path.starts_with(&folder))
            };
            let removed = |own: &&PathBuf| {
                let mut files = settings.weights.iter();
                files.any(|weights| within(&weights.path, own))
            };
            if settings.begin == Begin::Restart
                && let Some(own) = folders.map(|c| &c.folder).find(removed)
            {
                let message = format!(
                    "`--restart` removes the checkpoints in `{}`, and the weights are in one of them",
                    own.display()
                );
                return Err(Failure::wrong(vec![
                    Diagnostic::error("E0709", message).help("copy the file of weights first"),
                ]));
            }
            let saves = session
                .blocks
                .iter()
                .any(|block| block.checkpoints.is_some());
            // Without checkpoints a signal ends the process at once, as ever.
            let interrupt = match saves.then(Interrupt::listen) {
                None => Interrupt::default(),
                Some(Ok(interrupt)) => interrupt,
                Some(Err(error)) => {
                    exit::complain(&format!("signals cannot be listened to: {error}\n"));
                    Interrupt::default()
                }
            };
            keeping = Keeping {
                begin: settings.begin,
                export: settings.export.clone(),
                signal: interrupt.flag(),
            };
        }
        Prepared::Plan(plan) => {
            let names = sources(plan).into_iter().map(|(name, _)| name);
            let params: Vec<&str> = names.filter(|name| !is_input(program, name)).collect();
            weights::used(&settings.weights, &params)
                .map_err(|error| Failure::wrong(vec![error]))?;
            if settings.inference
                && let Some(param) = without_data(plan, program, (settings, &weights))
            {
                return Err(Failure::wrong(vec![match settings.weights.first() {
                    Some(file) => weights::lacking(&file.path, param, &weights),
                    None => Diagnostic::error("E0710", format!("the param `{param}` has no data"))
                        .help(
                            "give it params that a training exported: `--weights model.safetensors`",
                        ),
                }]));
            }
            let asked = [
                (settings.begin == Begin::Resume, "--resume"),
                (settings.begin == Begin::Restart, "--restart"),
                (settings.export.is_some(), "--export"),
                (settings.records.json_lines.is_some(), "--json-lines"),
                (settings.records.csv.is_some(), "--csv"),
                (settings.records.tensorboard.is_some(), "--tensorboard"),
                (settings.records.curves.is_some(), "--curves"),
            ];
            if let Some((_, flag)) = asked.iter().find(|(asked, _)| *asked) {
                return Err(Failure::usage(vec![
                    Diagnostic::error("E0709", format!("`{flag}`, but the program trains nothing"))
                        .help("it has no `train` block"),
                ]));
            }
        }
    }
    Ok(Beginning {
        devices,
        weights,
        keeping,
    })
}

/// Opens the devices that compute the kernels, in whose memory the plans fit.
fn devices(planned: &Prepared, settings: &Settings, sites: u32) -> Result<Devices, Failure> {
    let limit = settings.criteria.gpu_memory.map(|limits| limits.limit);
    let kind = match settings.device {
        DeviceKind::Auto => {
            let figures = calibration::read(settings.machine.as_deref()).ok();
            let threads = settings.threads.unwrap_or(RankPlace::here().threads);
            let cores = (threads / sites.max(1) as usize).max(1);
            devices::automatic(&planned.with_outputs(), figures.as_ref(), cores)
        }
        kind => kind,
    };
    let devices = devices::open_for(kind, sites, &settings.images, limit)?;
    match devices::has_room(&devices, &planned.peaks(), sites) {
        Err(_) if settings.device == DeviceKind::Auto => {
            devices::open_for(DeviceKind::Cpu, sites, &settings.images, limit)
        }
        fits => fits.map(|()| devices),
    }
}

/// Looks whether the files that are written beside outputs may be.
fn targets(settings: &Settings) -> Result<(), Diagnostic> {
    let mut read = settings.inputs.clone();
    read.extend(settings.weights.iter().map(|weights| {
        let path = weights.path.display().to_string();
        (format!("--weights {path}"), FileRef { path, key: None })
    }));
    if let Some(path) = &settings.profile {
        target::whole("--profile", path, &read)?;
    }
    let records = &settings.records;
    let lines = [
        ("--json-lines", &records.json_lines),
        ("--csv", &records.csv),
        ("--curves", &records.curves),
    ];
    for (flag, path) in lines {
        if let Some(path) = path {
            target::check(flag, path, &read)?;
        }
    }
    Ok(())
}

/// A param that the command line gives nothing, of a program that only evaluates.
fn without_data<'p>(
    plan: &'p Plan,
    program: &Program,
    (settings, weights): (&Settings, &BTreeMap<String, FileRef>),
) -> Option<&'p str> {
    let unbound = sources(plan).into_iter();
    let mut unbound = unbound.filter(|(_, source)| matches!(source, Source::Unbound));
    let given = |name: &str| settings.inputs.contains_key(name) || weights.contains_key(name);
    let (name, _) = unbound.find(|(name, _)| !given(name) && !is_input(program, name))?;
    Some(name)
}

/// Returns true if a program declares an input of this name.
fn is_input(program: &Program, name: &str) -> bool {
    let items = program.sources.files.first().map(|file| &file.ast.items);
    let mut items = items.into_iter().flatten();
    items.any(|item| matches!(&item.kind, ItemKind::Input { name: own, .. } if own.text == name))
}

/// The tensors that a plan begins with, by full name.
fn sources(plan: &Plan) -> Vec<(&str, &Source)> {
    let sources = plan.steps.iter().filter_map(|step| match &step.operation {
        Operation::Source { name, source } => Some((name, source)),
        _ => None,
    });
    let parts = sources.flat_map(|(name, source)| match source {
        Source::Stacked { parts, .. } => {
            let parts = parts.iter().map(|part| (part.name.as_str(), &part.source));
            parts.collect()
        }
        source => vec![(name.as_str(), source)],
    });
    parts.collect()
}

/// The options of a run.
pub(super) fn options(
    program: &Program,
    settings: &Settings,
    beginning: Beginning,
    (threads, cores): (usize, Vec<usize>),
) -> Options {
    let (device, further) = beginning.devices;
    // What is named by itself wins.
    let mut inputs = beginning.weights;
    inputs.extend(settings.inputs.clone());
    Options {
        device,
        further,
        seed: settings.seed,
        threads,
        cores,
        base: program.base.clone(),
        inputs,
        saves: settings.saves.clone(),
        archive: settings.archive.clone(),
        check_nan: settings.check_nan,
        patience: settings.patience,
        keeping: beginning.keeping,
        spill: (settings.spill.clone()).unwrap_or_else(|| PathBuf::from("/var/tmp")),
        note: match (&settings.profile, settings.stats) {
            (Some(_), _) => Note::Steps,
            (None, true) => Note::Totals,
            (None, false) => Note::Nothing,
        },
    }
}

/// A warning if a process is given more threads than it has cores to itself, or if the ranks that may use the same cores are more than these.
pub(super) fn crowded(
    settings: &Settings,
    own: usize,
    (ranks, cores): (usize, usize),
) -> Vec<Diagnostic> {
    let (message, help) = match settings.threads {
        Some(asked) if asked > own => (
            format!("{asked} threads, but this process has {own} of the machine's cores to itself"),
            "leave `--threads` and EIN_THREADS out: each process then takes its share of the cores",
        ),
        _ if ranks > cores => (
            format!("{ranks} ranks share {cores} of the machine's cores, and wait for each other"),
            "start no more ranks than there are cores; `--sites` has any number in one process",
        ),
        _ => return vec![],
    };
    vec![Diagnostic::warning("E0733", message).help(help)]
}
