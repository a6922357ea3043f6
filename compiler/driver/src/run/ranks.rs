//! A run on the ranks of a launcher: this process is one site, and all end alike. Must not know how a plan is walked.
//!
//! ```text
//! connect -> every rank loads and plans -> agree -> run -> rank 0 tells
//! ```

use super::begin::{Beginning, beginning, crowded, options};
use super::end::{ended, recorded, stated, stopped, trace, traced, unwritten};
use crate::{
    arguments::Format,
    exit,
    failure::Failure,
    machine::{self, RankPlace},
    planned::{Planned, Prepared},
    program::Program,
    purpose::Purpose,
    report, session,
    settings::Settings,
};
use ein_comm::{
    Communicator,
    mpi::{self, Launcher, Shim},
};
use ein_exec::Report;
use ein_exec::session::Watch;
use einc_diag::Diagnostic;
use std::{sync::Arc, thread, time::Duration};

/// This process is one rank of a job.
pub(super) fn run(
    launcher: &Launcher,
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    shims: &[Shim<'_>],
    format: Format,
) -> i32 {
    let site = match mpi::connect(shims) {
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

/// Runs as one rank of a connected job. An error is drawn where it happens and printed by rank 0.
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
        beginning,
        warnings,
    } = ready;
    if first {
        exit::show(warnings, &program.texts(), format);
    }
    let here = RankPlace::here();
    let mine = [here.machine as i64, here.cores as i64, here.threads as i64];
    let places: Vec<RankPlace> = match ein_exec::share_numbers(site, mine.to_vec()) {
        Ok(all) => all.iter().map(|told| place(told)).collect(),
        Err(error) => return stopped(&error, &program, format, first),
    };
    let threads = here.share(&places);
    if first {
        let there = (here.sharing(&places), here.threads);
        exit::show(crowded(settings, threads, there), &program.texts(), format);
    }
    let threads = settings.threads.unwrap_or(threads);
    let cores = machine::kept(threads, here.among(&places, site.site() as usize));
    let options = options(&program, settings, beginning, (threads, cores));
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
            match &found.unexported {
                Some(error) => stopped(error, &program, format, first).max(recorded),
                None => recorded,
            }
        }
        Err(error) => stopped(&error, &program, format, first),
    }
}

/// Where a rank is, by what it told.
fn place(told: &[i64]) -> RankPlace {
    let number = |at: usize| told.get(at).copied().unwrap_or(0);
    RankPlace {
        machine: number(0) as u64,
        cores: number(1) as u64,
        threads: number(2) as usize,
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
    beginning: Beginning,
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
    let kept = planned.and_then(|(planned, warnings)| {
        let beginning = beginning(&program, &planned, settings, 1)?;
        Ok((planned, beginning, warnings))
    });
    match kept {
        Ok((planned, beginning, warnings)) => Ok(Ready {
            program,
            planned,
            beginning,
            warnings,
        }),
        Err(failure) => Err((
            failure.status,
            exit::drawn(failure.diagnostics, &program.texts(), format),
        )),
    }
}
