//! A run in one process: all sites are its threads. Must not know MPI.
//!
//! ```text
//! load -> plan for 4 sites -> run in process -> results, figures
//! ```

use super::begin::{beginning, crowded, options};
use super::end::{ended, recorded, stated, stopped, trace, traced, unwritten};
use crate::{
    arguments::Format,
    exit,
    failure::Failure,
    machine::{self, RankPlace, Resident},
    planned::{Planned, Prepared},
    program::Program,
    purpose::Purpose,
    report, session,
    settings::Settings,
};
use ein_exec::Report;
use ein_exec::session::Watch;

/// All sites are threads of this process.
pub(super) fn run(
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
    let beginning = match beginning(&program, &planned, settings, sites) {
        Ok(beginning) => beginning,
        Err(failure) => return exit::fail(failure, &program, format),
    };
    let before = Resident::now();
    let threads = RankPlace::here().threads;
    exit::show(
        crowded(settings, threads, (1, threads)),
        &program.texts(),
        format,
    );
    let threads = settings.threads.unwrap_or(threads);
    let each = (threads / sites.max(1) as usize).max(1);
    let cores = machine::kept(each * sites.max(1) as usize, (0, 1));
    let options = options(&program, settings, beginning, (threads, cores));
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
            match &found.unexported {
                Some(error) => stopped(error, &program, format, true).max(recorded),
                None => recorded,
            }
        }
        Err(error) => stopped(&error, &program, format, true),
    }
}
