//! Check and plan: what `einc` and every built program do with a program and its settings.
//!
//! Must not know command lines or terminals.
//!
//! ```text
//! check(program, settings) -> diagnostics, einsum::Program
//! plan(program, settings, 4) -> Plan for 4 sites
//! ```

use crate::{
    bind,
    failure::Failure,
    forms,
    planned::{Configuration, Planned, Prepared},
    program::Program,
    purpose::Purpose,
    requests,
    settings::Settings,
    training,
};
use ein_plan::source::Listing;
use einc_core::{
    einsum,
    hoist::hoisted,
    lists::FormChoice,
    pipeline::{self, report::PlanReport},
    rules,
    sema::{self, Analysis},
};
use einc_diag::{Diagnostic, did_you_mean};
use std::{
    cell::OnceCell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A checked program.
#[derive(Debug)]
pub struct Checked {
    /// Errors and warnings in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The program, if there is no error and all sizes are known.
    pub program: Option<einsum::Program>,
    /// The training that comes before the program.
    pub training: Option<sema::training::Training>,
    /// The forms of inputs whose data list elements.
    forms: Vec<FormChoice>,
    /// The configuration that it was checked for.
    configuration: Configuration,
}

/// Checks a program.
///
/// # Errors
/// Usage, when the settings name what the program does not have.
pub fn check(program: &Program, settings: &Settings, purpose: Purpose) -> Result<Checked, Failure> {
    check_for(program, settings, purpose, settings.sites)
}

/// Checks a program for a number of sites, if that is known.
///
/// # Errors
/// As [`check`].
pub fn check_for(
    program: &Program,
    settings: &Settings,
    purpose: Purpose,
    sites: Option<u32>,
) -> Result<Checked, Failure> {
    let asked = requests::applied(program, settings, purpose);
    let mut diagnostics = asked.diagnostics.clone();
    let parsed = !diagnostics.iter().any(Diagnostic::is_error);
    if parsed {
        let unknown = bind::unknown(&asked, settings);
        if !unknown.is_empty() {
            return Err(Failure::usage(unknown));
        }
    }
    let headers = match bind::headers(&asked, settings, purpose) {
        Ok(headers) => headers,
        Err(errors) => {
            diagnostics.extend(errors);
            BTreeMap::new()
        }
    };
    // Without the data, or with a part of the text missing, sizes that are not known are no news.
    let purpose = if diagnostics.iter().any(Diagnostic::is_error) {
        Purpose::Look
    } else {
        purpose
    };
    let bindings = sema::Bindings {
        sites,
        ..bind::bindings(settings, headers.clone(), purpose)
    };
    let Analysis {
        diagnostics: found,
        program: mut checked,
        mut training,
        ..
    } = sema::check(&asked.sources, &bindings);
    diagnostics.extend(
        found
            .into_iter()
            .map(|d| bind::with_files(d, &asked, settings)),
    );
    in_source_order(&mut diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        (checked, training) = (None, None);
    }
    let criteria = &settings.criteria;
    let ((mut checked, mut training), forms) = pipeline::with_forms(
        (checked, training),
        &listed(&headers),
        &criteria.formats,
        &criteria.objective,
    );
    let impossible = forms::impossible(settings, &headers, &forms, purpose);
    if !impossible.is_empty() {
        (checked, training) = (None, None);
        diagnostics.extend(impossible);
    }
    let training = training.map(hoisted);
    Ok(Checked {
        diagnostics,
        program: checked,
        training,
        forms,
        configuration: configuration(program, settings, headers, 0),
    })
}

/// Returns how many elements the data list, of inputs whose data list some.
fn listed(headers: &bind::Headers) -> BTreeMap<String, Listing> {
    let counts = headers
        .iter()
        .filter_map(|(name, header)| Some((name.clone(), header.listed.clone()?)));
    counts.collect()
}

/// Returns all that a plan of a program depends on besides its text.
fn configuration(
    program: &Program,
    settings: &Settings,
    headers: bind::Headers,
    sites: u32,
) -> Configuration {
    Configuration {
        dims: settings.dims.clone(),
        constants: settings.constants.clone(),
        numbers: settings.numbers.clone(),
        more_outputs: requests::more_outputs(program, settings),
        headers,
        sites,
        deterministic: settings.deterministic,
        criteria: settings.criteria.clone(),
    }
}

/// By file and place; what has no place comes first.
fn in_source_order(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|d| {
        d.labels
            .first()
            .map(|label| (label.span.file, label.span.start))
    });
    diagnostics.dedup();
}

/// Checks a program and compiles it for a number of sites. `ready` is what was made before: it is taken if
/// it was made for the same. Also returns warnings.
///
/// # Errors
/// The program, its data, its sizes or the settings are wrong.
pub fn plan(
    program: &Program,
    settings: &Settings,
    sites: u32,
    purpose: Purpose,
    ready: Option<Planned>,
) -> Result<(Prepared, Vec<Diagnostic>), Failure> {
    let asked = requests::applied(program, settings, purpose);
    if let Some(ready) = ready
        && let Ok(headers) = bind::headers_of_inputs(&asked, settings, purpose)
        && bind::unknown(&asked, settings).is_empty()
        && ready.configuration == configuration(program, settings, headers, sites)
    {
        return Ok((ready.prepared, vec![]));
    }
    let checked = check_for(program, settings, purpose, Some(sites))?;
    let (planned, warnings) = prepare(checked, sites, settings.time_limit)?;
    Ok((planned.prepared, warnings))
}

/// Plans a program that was checked for a number of sites; all sizes are known. Also returns warnings.
///
/// # Errors
/// The errors of the check; else unknown sizes, or what the compiler found on its way down.
pub fn prepare(
    mut checked: Checked,
    sites: u32,
    time_limit: Option<f64>,
) -> Result<(Planned, Vec<Diagnostic>), Failure> {
    if let Some(training) = checked.training.take() {
        let configuration = Configuration {
            sites,
            ..checked.configuration
        };
        let options = checked_options(&configuration, sites)?;
        let compile = |program: &einsum::Program, options: &pipeline::Options| {
            Ok(compiled(program, options, time_limit)?.plan)
        };
        let session = training::plan(training, &options, &compile)?;
        let prepared = Prepared::Session(session);
        let planned = Planned {
            configuration,
            prepared,
        };
        return Ok((planned, checked.diagnostics));
    }
    let (compiled, configuration, warnings) = compile(checked, sites, time_limit)?;
    let prepared = Prepared::Plan(compiled.plan);
    let planned = Planned {
        configuration,
        prepared,
    };
    Ok((planned, warnings))
}

/// The options of a compilation, if no rule is to be left out that does not exist.
fn checked_options(
    configuration: &Configuration,
    sites: u32,
) -> Result<pipeline::Options, Failure> {
    let unknown = unknown_rules(&configuration.criteria);
    if unknown.is_empty() {
        Ok(options(configuration, sites))
    } else {
        Err(Failure::usage(unknown))
    }
}

/// Compiles a program; each has the time limit for itself.
fn compiled(
    program: &einsum::Program,
    options: &pipeline::Options,
    time_limit: Option<f64>,
) -> Result<pipeline::Compiled, Failure> {
    let deadline = deadline(time_limit);
    let began = OnceCell::new();
    let soon = || deadline() || began.get_or_init(Instant::now).elapsed() > ADVICE;
    pipeline::compile_advised(program, options, (&deadline, &soon)).map_err(Failure::of_compiler)
}

/// A report on a plan, warnings, and, of a program that trains, which of its plans it is.
pub type PlanSummary = (PlanReport, Vec<Diagnostic>, Option<String>);

/// The parts of a plan that are to be reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportOptions {
    /// Other plans beside it.
    pub others: bool,
    /// The rewrites by which it was found and proved.
    pub rewrites: bool,
}

/// Compiles a checked program for a number of sites and tells about its plan.
///
/// # Errors
/// As [`compile`].
pub fn report(
    mut checked: Checked,
    program: &Program,
    sites: u32,
    telling: ReportOptions,
    time_limit: Option<f64>,
) -> Result<PlanSummary, Failure> {
    let (mut shown, mut rounds, mut sites) = (None, None, sites);
    let forms = std::mem::take(&mut checked.forms);
    if let Some(training) = checked.training.take() {
        rounds = training
            .blocks
            .first()
            .and_then(|block| pipeline::rounds(&training, block));
        if rounds.is_some() {
            let alone = training::alone(&options(&checked.configuration, sites));
            checked.configuration.deterministic = alone.deterministic;
            sites = alone.sites;
        }
        let (text, program) = step_of(training)?;
        (shown, checked.program) = (Some(text), Some(program));
    }
    let (mut compiled, configuration, warnings) = compile(checked, sites, time_limit)?;
    let options = options(&configuration, sites);
    let texts: Vec<&str> = program
        .sources
        .files
        .iter()
        .map(|f| f.text.as_str())
        .collect();
    let deadline = deadline(time_limit);
    compiled.prove(&options, telling.rewrites, &deadline);
    let mut report = pipeline::describe(&compiled, &options, &texts);
    report.forms = forms;
    report.rounds = rounds;
    if telling.others {
        report.alternatives = pipeline::compare(&compiled, &options, &deadline);
    }
    Ok((report, warnings, shown))
}

/// The program whose plan is shown of a program that trains: a step of its first block.
fn step_of(training: sema::training::Training) -> Result<(String, einsum::Program), Failure> {
    let of_block = |mut block: sema::training::Block| {
        let own = block
            .rounds
            .take()
            .and_then(|rounds| rounds.subnets.into_iter().next());
        let alone = own.is_some();
        let mut steps = own.map_or(block.step, |subnet| subnet.step);
        let (rows, program) = steps.pop_last()?;
        let what = match (alone, block.parts) {
            (true, _) => "a step of one site",
            (_, 1) => "a step",
            _ => "the gradients of a part",
        };
        let text = match block.inputs.is_empty() {
            true => format!("{what} of `{}`", block.name),
            false => format!("{what} of `{}`, {rows} rows of {}", block.name, block.rows),
        };
        Some((text, program))
    };
    let first = training.blocks.into_iter().next().and_then(of_block);
    first.ok_or_else(|| Failure::internal("the program trains, and its step has no program"))
}

/// True if a number of seconds from now has passed.
/// Longest that is looked for what would help where no plan fits in memory.
const ADVICE: Duration = Duration::from_secs(8);

fn deadline(seconds: Option<f64>) -> impl Fn() -> bool {
    let start = Instant::now();
    move || seconds.is_some_and(|seconds| start.elapsed().as_secs_f64() >= seconds)
}

fn options(configuration: &Configuration, sites: u32) -> pipeline::Options {
    pipeline::Options {
        sites,
        deterministic: configuration.deterministic,
        criteria: configuration.criteria.clone(),
    }
}

/// Rules that are to be left out and do not exist.
fn unknown_rules(criteria: &pipeline::Criteria) -> Vec<Diagnostic> {
    let known = rules::all();
    let names = || known.iter().map(|rule| rule.name);
    let unknown = criteria.disabled_rules.iter();
    let unknown = unknown.filter(|name| names().all(|known| known != name.as_str()));
    let said = unknown.map(|name| {
        let diagnostic = Diagnostic::error("E0997", format!("there is no rule `{name}`"));
        match did_you_mean(name, names()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help("`einc rules` lists them all"),
        }
    });
    said.collect()
}

/// Compiles a checked program for a number of sites. Also returns warnings.
///
/// # Errors
/// The errors of the check; else unknown sizes, or what the compiler found on its way down.
pub fn compile(
    checked: Checked,
    sites: u32,
    time_limit: Option<f64>,
) -> Result<(pipeline::Compiled, Configuration, Vec<Diagnostic>), Failure> {
    let Some(program) = checked.program else {
        return Err(Failure::wrong(checked.diagnostics));
    };
    let options = checked_options(&checked.configuration, sites)?;
    let compiled = compiled(&program, &options, time_limit)?;
    let configuration = Configuration {
        sites,
        ..checked.configuration
    };
    Ok((compiled, configuration, checked.diagnostics))
}
