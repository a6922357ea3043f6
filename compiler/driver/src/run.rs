//! Runs a program: in this process, or as one rank of an MPI job.
//!
//! Of a job, rank 0 alone speaks, and all ranks end with the same status. Must not know what the steps of a
//! plan are.
//!
//! ```text
//! mpirun -n 3 ./model   ->   connect, plan for 3 sites, agree that all could, run, rank 0 reports
//! ```

use crate::{
    arguments::Format,
    bind::Purpose,
    bundle::Planned,
    exit,
    interrupt::{Interrupt, Signal},
    machine::{self, Place, Resident},
    profile,
    program::Program,
    records::Records,
    report,
    session::{self, Prepared},
    settings::Settings,
};
use ein_comm::{
    Communicator,
    mpi::{self, Launcher, Shim},
};
use ein_exec::session::{Begin, Event, Keeping, Session, Watch};
use ein_exec::{Note, Options, Report, RunError};
use ein_plan::FileRef;
use ein_records::{RecordError, Trace};
use einc_diag::Diagnostic;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, thread, time::Duration};

pub use crate::session::Failure;

/// A shared library that connects to one MPI: its name and its bytes.
pub type EmbeddedShim = (&'static str, &'static [u8]);

/// Loads, plans and runs a program, prints its results and returns the exit status. `load` gives the program
/// and, if there is one, a plan that was made before.
pub fn run(
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    shims: &[EmbeddedShim],
    format: Format,
) -> i32 {
    // Before there are threads.
    let blas = machine::blas();
    let load = || blas.and_then(|()| load());
    match mpi::launched() {
        Some(launcher) => on_ranks(&launcher, load, settings, shims, format),
        None => here(load, settings, format),
    }
}

/// All sites are threads of this process.
fn here(
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    format: Format,
) -> i32 {
    let (program, ready) = match load() {
        Ok(loaded) => loaded,
        Err(failure) => {
            exit::show(failure.diagnostics, &[], format);
            return failure.status;
        }
    };
    let sites = settings.sites.unwrap_or(1);
    let mut planned = match session::plan(&program, settings, sites, Purpose::Run, ready) {
        Ok((planned, warnings)) => {
            exit::show(warnings, &program.texts(), format);
            planned
        }
        Err(failure) => return exit::fail(failure, &program, format),
    };
    let weights = match keep(&mut planned, settings) {
        Ok(weights) => weights,
        Err(failure) => return exit::fail(failure, &program, format),
    };
    let before = Resident::now();
    let threads = Place::here().threads;
    exit::show(crowded(settings, threads), &program.texts(), format);
    let options = options(&program, settings, weights, threads);
    let trace = match trace(settings, true) {
        Ok(trace) => trace,
        Err(error) => return unwritten(&error, format),
    };
    let (found, recorded) = match &planned {
        Prepared::Plan(plan) => (ein_exec::run_in_process(plan, &options), 0),
        Prepared::Session(session) => {
            let walk =
                |watch: &Watch<'_>| ein_exec::train_in_process(session, sites, &options, watch);
            recorded(session, settings, format, walk)
        }
    };
    let profiled = traced(trace, &planned, &found, format);
    let recorded = recorded.max(profiled);
    match found {
        Ok(Report {
            stopped: Some((signal, steps)),
            ..
        }) => ended(signal, steps, true),
        Ok(found) => {
            exit::say(&report::results(&found));
            if settings.stats {
                let resident = Resident::now()
                    .zip(before)
                    .map(|(now, then)| now.beyond(&then));
                exit::complain(&stated(&planned, &found, resident, settings.seed));
            }
            recorded
        }
        Err(error) => stopped(&error, &program, format, true),
    }
}

/// Runs a session with records of its steps. Also returns the exit status that these call for.
fn recorded(
    session: &Session,
    settings: &Settings,
    format: Format,
    walk: impl FnOnce(&Watch<'_>) -> Result<Report, RunError>,
) -> (Result<Report, RunError>, i32) {
    let records = Records::new(session, settings);
    let watch = |event: &Event| records.tell(event);
    let found = walk(&watch);
    let status = match records.finish() {
        Ok(()) => 0,
        Err(error) => unwritten(&error, format),
    };
    (found, status)
}

/// Says that a record cannot be written, and returns the exit status.
fn unwritten(error: &RecordError, format: Format) -> i32 {
    let code = if error.full { "E0707" } else { "E0705" };
    exit::show(
        vec![Diagnostic::error(code, error.to_string())],
        &[],
        format,
    );
    1
}

/// The trace that is asked for, of the process that writes it.
fn trace(settings: &Settings, first: bool) -> Result<Option<Trace>, RecordError> {
    let path = settings.profile.as_ref().filter(|_| first);
    path.map(|path| Trace::new(path)).transpose()
}

/// Writes the trace of a run; the exit status that this calls for.
fn traced(
    trace: Option<Trace>,
    planned: &Prepared,
    found: &Result<Report, RunError>,
    format: Format,
) -> i32 {
    let profile = found.as_ref().ok().and_then(|found| found.profile.as_ref());
    let written = trace
        .zip(profile)
        .map(|(trace, profile)| profile::write(trace, planned, profile));
    match written {
        Some(Err(error)) => unwritten(&error, format),
        _ => 0,
    }
}

/// Says that a session ended early, if this process is to speak, and returns the exit status.
fn ended(signal: usize, steps: u64, speak: bool) -> i32 {
    let signal = Signal::of(signal);
    if speak {
        exit::complain(&format!(
            "{} after step {steps}: saved; `--resume` continues\n",
            signal.name()
        ));
    }
    signal.status()
}

/// What is asked of a run besides its plans. Returns the files of params that begin with weights.
fn keep(planned: &mut Prepared, settings: &Settings) -> Result<BTreeMap<String, FileRef>, Failure> {
    let weights = weights(settings)?;
    match planned {
        Prepared::Session(session) => {
            let params = session.carried.iter().filter(|(_, carried)| carried.model);
            let mut params = params.flat_map(|(name, carried)| carried.names(name));
            if let Some(path) = &settings.weights
                && let Some(missing) = params.find(|name| !weights.contains_key(*name))
            {
                let message = format!("{}: holds no param `{missing}`", path.display());
                let names: Vec<&str> = weights.keys().map(String::as_str).collect();
                return Err(Failure::wrong(vec![
                    Diagnostic::error("E0706", message)
                        .help(format!("it holds {}", names.join(", "))),
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
            session.keeping = Keeping {
                begin: settings.begin,
                export: settings.export.clone(),
                signal: interrupt.flag(),
            };
        }
        Prepared::Plan(_) => {
            let asked = [
                (settings.begin == Begin::Resume, "--resume"),
                (settings.begin == Begin::Restart, "--restart"),
                (settings.export.is_some(), "--export"),
            ];
            if let Some((_, flag)) = asked.iter().find(|(asked, _)| *asked) {
                return Err(Failure::usage(vec![
                    Diagnostic::error("E0709", format!("`{flag}`, but the program trains nothing"))
                        .help("it has no `train` block"),
                ]));
            }
        }
    }
    Ok(weights)
}

/// Where each array of the file of weights is.
fn weights(settings: &Settings) -> Result<BTreeMap<String, FileRef>, Failure> {
    let Some(path) = &settings.weights else {
        return Ok(BTreeMap::new());
    };
    let keys = ein_data::keys(path).map_err(|error| {
        let message = format!("{}: {}", error.file, error.message);
        let diagnostic = Diagnostic::error(error.code, message);
        Failure::wrong(vec![match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }])
    })?;
    let file = |key: &String| FileRef {
        path: path.display().to_string(),
        key: Some(key.clone()),
    };
    Ok(keys.iter().map(|key| (key.clone(), file(key))).collect())
}

/// What was stated and measured.
fn stated(planned: &Prepared, found: &Report, resident: Option<u64>, seed: u64) -> String {
    let steps = found.profile.as_ref();
    let steps = steps.map_or(String::new(), |steps| profile::figures(planned, steps));
    steps
        + &match planned {
            Prepared::Plan(plan) => report::figures(plan, found, resident),
            Prepared::Session(session) => report::session_figures(session, found, resident, seed),
        }
}

/// Prints why a run stopped, if this process is to speak, and returns the exit status.
fn stopped(error: &RunError, program: &Program, format: Format, speak: bool) -> i32 {
    match report::diagnostic(error) {
        None if speak => exit::internal(&error.to_string()),
        None => exit::INTERNAL,
        Some(diagnostic) => {
            if speak {
                exit::show(vec![diagnostic], &program.texts(), format);
            }
            1
        }
    }
}

/// A warning if a process is given more threads than it has cores to itself.
fn crowded(settings: &Settings, own: usize) -> Vec<Diagnostic> {
    let asked = settings.threads.filter(|asked| *asked > own);
    let warning = asked.map(|asked| {
        let message =
            format!("{asked} threads, but this process has {own} of the machine's cores to itself");
        Diagnostic::warning("E0733", message).help(
            "leave `--threads` and EIN_THREADS out: each process then takes its share of the cores",
        )
    });
    warning.into_iter().collect()
}

/// Where a rank is, by what it told.
fn place(told: &[i64]) -> Place {
    let number = |at: usize| told.get(at).copied().unwrap_or(0);
    Place {
        machine: number(0) as u64,
        cores: number(1) as u64,
        threads: number(2) as usize,
    }
}

fn options(
    program: &Program,
    settings: &Settings,
    weights: BTreeMap<String, FileRef>,
    threads: usize,
) -> Options {
    // What is named by itself wins.
    let mut inputs = weights;
    inputs.extend(settings.inputs.clone());
    Options {
        seed: settings.seed,
        threads: settings.threads.unwrap_or(threads),
        base: program.base.clone(),
        inputs,
        saves: settings.saves.clone(),
        patience: settings.patience,
        spill: (settings.spill.clone()).unwrap_or_else(|| PathBuf::from("/var/tmp")),
        note: match (&settings.profile, settings.stats) {
            (Some(_), _) => Note::Steps,
            (None, true) => Note::Totals,
            (None, false) => Note::Nothing,
        },
    }
}

/// This process is one rank of a job.
fn on_ranks(
    launcher: &Launcher,
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    shims: &[EmbeddedShim],
    format: Format,
) -> i32 {
    let shims: Vec<_> = shims
        .iter()
        .map(|(name, library)| Shim {
            name: (*name).into(),
            library,
        })
        .collect();
    let site = match mpi::connect(&shims) {
        Ok(site) => Arc::new(site),
        Err(error) => {
            if launcher.rank == 0 {
                exit::show(vec![report::not_connected(&error)], &[], format);
            } else {
                // A launcher ends the job at the first rank that fails: rank 0 has to have spoken.
                thread::sleep(Duration::from_secs(1));
            }
            return 1;
        }
    };
    if let Some(status) = other_number(settings, &*site, format) {
        return status;
    }
    if let Some(status) = limited(settings, &*site, format) {
        return status;
    }
    let aborting = Arc::clone(&site);
    exit::on_internal_error(Some(Box::new(move |message| aborting.abort(message))));
    let status = as_site(&*site, load, settings, format);
    exit::on_internal_error(None);
    status
}

/// A usage error if another number of sites was asked for than there are ranks.
fn other_number(settings: &Settings, site: &dyn Communicator, format: Format) -> Option<i32> {
    let ranks = site.sites();
    let sites = settings.sites.filter(|sites| *sites != ranks)?;
    if site.site() == 0 {
        let diagnostic = Diagnostic::error(
            "E0712",
            format!("`--sites {sites}`, but the launcher started {ranks} ranks"),
        )
        .help(format!(
            "one rank is one site: leave `--sites` out, or start `mpirun -n {sites}`"
        ));
        exit::show(vec![diagnostic], &[], format);
    }
    Some(2)
}

/// A usage error if planning is limited in time: each rank plans for itself, and all must come to one plan.
fn limited(settings: &Settings, site: &dyn Communicator, format: Format) -> Option<i32> {
    settings.time_limit.filter(|_| site.sites() > 1)?;
    if site.site() == 0 {
        let diagnostic = Diagnostic::error(
            "E0715",
            "`--time-limit` on ranks: they would come to different plans",
        )
        .help(format!(
            "give it to `einc build --sites {}`: the executable then brings its plan along",
            site.sites()
        ));
        exit::show(vec![diagnostic], &[], format);
    }
    Some(2)
}

/// What a rank does once it is connected. An error is drawn where it happens and printed by rank 0.
fn as_site(
    site: &dyn Communicator,
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    format: Format,
) -> i32 {
    let first = site.site() == 0;
    let prepared = prepare(load, settings, site.sites(), format);
    let failed = prepared
        .as_ref()
        .err()
        .map(|(status, text)| format!("{status}\n{text}"));
    match site.agree(failed) {
        Ok(None) => {}
        Ok(Some((rank, failure))) => {
            let (status, text) = failure.split_once('\n').unwrap_or(("1", failure.as_str()));
            if first {
                let found = if rank == 0 {
                    String::new()
                } else {
                    format!("on rank {rank}:\n")
                };
                print(&format!("{found}{text}"), format);
            }
            return status.parse().unwrap_or(1);
        }
        Err(error) => {
            print(
                &exit::drawn(vec![report::lost(&error)], &[], format),
                format,
            );
            return 1;
        }
    }
    let Ok(ready) = prepared else {
        return 1;
    };
    let Ready {
        program,
        planned,
        weights,
        warnings,
    } = ready;
    if first {
        exit::show(warnings, &program.texts(), format);
    }
    let here = Place::here();
    let mine = [here.machine as i64, here.cores as i64, here.threads as i64];
    let threads = match ein_exec::share_numbers(site, mine.to_vec()) {
        Ok(all) => here.share(&all.iter().map(|told| place(told)).collect::<Vec<_>>()),
        Err(error) => return stopped(&error, &program, format, first),
    };
    if first {
        exit::show(crowded(settings, threads), &program.texts(), format);
    }
    let options = options(&program, settings, weights, threads);
    let trace = trace(settings, first);
    let unwritable = trace.as_ref().err().map(ToString::to_string);
    match (site.agree(unwritable), &trace) {
        (Ok(None), _) => {}
        (_, Err(error)) => return unwritten(error, format),
        _ => return 1,
    }
    let (found, recorded) = match &planned {
        Prepared::Plan(plan) => (ein_exec::run_site(plan, site, &options), 0),
        Prepared::Session(session) => {
            let walk = |watch: &Watch<'_>| ein_exec::train_site(session, site, &options, watch);
            recorded(session, settings, format, walk)
        }
    };
    let profiled = traced(trace.ok().flatten(), &planned, &found, format);
    let recorded = recorded.max(profiled);
    match found {
        Ok(Report {
            stopped: Some((signal, steps)),
            ..
        }) => ended(signal, steps, first),
        Ok(found) => {
            if first {
                exit::say(&report::results(&found));
                if settings.stats {
                    exit::complain(&stated(&planned, &found, None, settings.seed));
                }
            }
            recorded
        }
        Err(error) => stopped(&error, &program, format, first),
    }
}

fn print(text: &str, format: Format) {
    match format {
        Format::Text => exit::complain(text),
        Format::Json => exit::say(text),
    }
}

/// A program that can be run.
struct Ready {
    program: Program,
    planned: Prepared,
    /// Files of params.
    weights: BTreeMap<String, FileRef>,
    warnings: Vec<Diagnostic>,
}

/// The program and its plan, or the exit status and what to print.
fn prepare(
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    sites: u32,
    format: Format,
) -> Result<Ready, (i32, String)> {
    let (program, ready) = load().map_err(|failure| {
        (
            failure.status,
            exit::drawn(failure.diagnostics, &[], format),
        )
    })?;
    let planned = session::plan(&program, settings, sites, Purpose::Run, ready);
    let kept = planned.and_then(|(mut planned, warnings)| {
        let weights = keep(&mut planned, settings)?;
        Ok((planned, weights, warnings))
    });
    match kept {
        Ok((planned, weights, warnings)) => Ok(Ready {
            program,
            planned,
            weights,
            warnings,
        }),
        Err(failure) => Err((
            failure.status,
            exit::drawn(failure.diagnostics, &program.texts(), format),
        )),
    }
}
