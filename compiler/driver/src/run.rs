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
    machine::{self, Resident},
    program::Program,
    report, session,
    settings::Settings,
};
use ein_comm::{
    Communicator,
    mpi::{self, Launcher, Shim},
};
use ein_exec::{Options, RunError};
use einc_diag::Diagnostic;
use std::{sync::Arc, thread, time::Duration};

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
    let planned = match session::plan(&program, settings, sites, Purpose::Run, ready) {
        Ok((planned, warnings)) => {
            exit::show(warnings, &program.texts(), format);
            planned
        }
        Err(failure) => return exit::fail(failure, &program, format),
    };
    let before = Resident::now();
    match ein_exec::run_in_process(&planned.plan, &options(&program, settings, 1)) {
        Ok(found) => {
            exit::say(&report::results(&found));
            if settings.stats {
                let resident = Resident::now()
                    .zip(before)
                    .map(|(now, then)| now.beyond(&then));
                exit::complain(&report::figures(&planned.plan, &found, resident));
            }
            0
        }
        Err(error) => stopped(&error, &program, format, true),
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

fn options(program: &Program, settings: &Settings, neighbours: usize) -> Options {
    Options {
        seed: settings.seed,
        threads: settings
            .threads
            .unwrap_or_else(|| machine::threads(neighbours)),
        base: program.base.clone(),
        inputs: settings.inputs.clone(),
        saves: settings.saves.clone(),
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
    let Ok((program, planned, warnings)) = prepared else {
        return 1;
    };
    if first {
        exit::show(warnings, &program.texts(), format);
    }
    let options = options(&program, settings, machine::local_ranks());
    match ein_exec::run_site(&planned.plan, site, &options) {
        Ok(found) => {
            if first {
                exit::say(&report::results(&found));
                if settings.stats {
                    exit::complain(&report::figures(&planned.plan, &found, None));
                }
            }
            0
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

type Prepared = (Program, Planned, Vec<Diagnostic>);

/// The program and its plan, or the exit status and what to print.
fn prepare(
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    sites: u32,
    format: Format,
) -> Result<Prepared, (i32, String)> {
    let (program, ready) = load().map_err(|failure| {
        (
            failure.status,
            exit::drawn(failure.diagnostics, &[], format),
        )
    })?;
    match session::plan(&program, settings, sites, Purpose::Run, ready) {
        Ok((planned, warnings)) => Ok((program, planned, warnings)),
        Err(failure) => Err((
            failure.status,
            exit::drawn(failure.diagnostics, &program.texts(), format),
        )),
    }
}
