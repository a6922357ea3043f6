//! Messages about the results of a run, or about why it stopped, for people.
//!
//! Must not know how text reaches a terminal.
//!
//! ```text
//! accuracy = 0.98888886
//! error[E0720]: position 9 is outside `table`, …
//! ```

use ein_comm::CommError;
use ein_device::Device;
use ein_device_cpu::Cpu;
use ein_exec::{ErrorKind, Report, RunError, Session, Spilled};
use ein_plan::{Plan, Resting, memory, traffic};
use einc_diag::{Diagnostic, FileId, Span};
use std::collections::BTreeMap;

/// The printed outputs, in the order of the program.
pub fn results(report: &Report) -> String {
    report
        .printed
        .iter()
        .map(|printed| format!("{printed}\n"))
        .collect()
}

/// Prints the plan's figures beside those that were measured; `resident` is the process's peak beyond what it had before the run.
///
/// ```text
/// stats: site 0: stated peak 12.3 MB, held 12.1 MB
/// stats: model.ein:7: moved 800 floats, 3200 bytes (stated 800 floats, 3200 bytes)
/// stats: moved in all = 810 floats, 3240 bytes: 800 floats, 3200 bytes by steps, stated 800 floats, 3200 bytes; 10 floats, 40 bytes to print outputs
/// stats: stated peak bytes = 12300000
/// stats: measured peak bytes = 12400000
/// ```
pub fn figures(plan: &Plan, report: &Report, resident: Option<u64>) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str("stats: ");
        text.push_str(&words);
        text.push('\n');
    };
    let peaks = memory::peaks(plan);
    for (site, (stated, held)) in peaks.iter().zip(&report.peak_bytes).enumerate() {
        line(format!(
            "site {site}: stated peak {} bytes, held {held} bytes",
            stated.bytes
        ));
    }
    let spilled = resting(report, plan.resting);
    spilled.into_iter().for_each(&mut line);
    let mut stated: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    let times = plan.times_of_steps(&report.rounds);
    for ((step, traffic), times) in plan.steps.iter().zip(traffic::by_step(plan)).zip(times) {
        let traffic = traffic.times(times);
        let entry = stated
            .entry((step.origin.file, step.origin.line))
            .or_default();
        entry.0 += traffic.floats;
        entry.1 += traffic.bytes;
    }
    for ((file, number), moved) in report.traffic.by_line(plan) {
        let name = plan.files.get(file as usize).map_or("?", String::as_str);
        let (floats, bytes) = stated.get(&(file, number)).copied().unwrap_or_default();
        line(format!(
            "{name}:{number}: moved {} floats, {} bytes (stated {floats} floats, {bytes} bytes)",
            moved.floats, moved.bytes
        ));
    }
    let amount = |floats: u64, bytes: u64| format!("{floats} floats, {bytes} bytes");
    let total = report.traffic.total();
    let printed = report.traffic.outputs;
    let (floats, bytes) = stated.values().fold((0, 0), |(floats, bytes), stated| {
        (floats + stated.0, bytes + stated.1)
    });
    line(format!(
        "moved in all = {}: {} by steps, stated {}; {} to print outputs",
        amount(total.floats, total.bytes),
        amount(total.floats - printed.floats, total.bytes - printed.bytes),
        amount(floats, bytes),
        amount(printed.floats, printed.bytes),
    ));
    line(format!(
        "stated peak bytes = {}",
        peaks.iter().map(|peak| peak.bytes).sum::<u64>()
    ));
    in_devices(report).into_iter().for_each(&mut line);
    if let Some(resident) = resident {
        line(format!("measured peak bytes = {resident}"));
    }
    text
}

/// Prints the figures of a session: its plans are walked many times, so that memory is stated, and the exchanges of sites between rounds of their own.
pub fn session_figures(
    session: &Session,
    report: &Report,
    resident: Option<u64>,
    seed: u64,
) -> String {
    let stated = crate::training::peaks(session);
    let mut text = String::new();
    for (number, block) in session.blocks.iter().enumerate() {
        let Some(rounds) = &block.rounds else {
            continue;
        };
        let sites = report.peak_bytes.len() as u32;
        let from = match report.begun {
            (begun, step) if begun == number as u64 => step,
            _ => 0,
        };
        // Which neurons a site has is the same on every device.
        let drawn = (seed, &Cpu as &dyn Device);
        let expected = ein_exec::session::stated(session, block, rounds, sites, drawn, from);
        let own = report.exchanged.iter().filter(|(of, ..)| *of == number);
        for (_, name, found) in own {
            let expected = expected.get(name).copied().unwrap_or_default();
            let [fetched, sent] = [(found.handed, expected.handed), (found.sent, expected.sent)]
                .map(|(found, expected)| format!("{found} floats (stated {expected})"));
            text += &format!(
                "stats: {}: {name}: fetched {fetched}, sent {sent}",
                block.name
            );
            if found.gathered > 0 {
                text += &format!(", gathered to evaluate {} floats", found.gathered);
            }
            text.push('\n');
        }
    }
    for (site, (stated, held)) in stated.iter().zip(&report.peak_bytes).enumerate() {
        text += &format!("stats: site {site}: stated peak {stated} bytes, held {held} bytes\n");
    }
    let place = session.all_programs().map(|plan| plan.resting).max();
    for line in resting(report, place.unwrap_or_default()) {
        text += &format!("stats: {line}\n");
    }
    let sum: u64 = stated.iter().sum();
    text += &format!("stats: stated peak bytes = {sum}\n");
    for line in in_devices(report) {
        text += &format!("stats: {line}\n");
    }
    if let Some(resident) = resident {
        text += &format!("stats: measured peak bytes = {resident}\n");
    }
    text
}

/// A line for each site about the memory of its GPU.
fn in_devices(report: &Report) -> Vec<String> {
    let sites = report.device_bytes.iter().enumerate();
    let line = |(site, bytes)| {
        format!("site {site}: arrays took at most {bytes} bytes of its GPU's memory")
    };
    sites.map(line).collect()
}

/// A line for each site about values that rested between two uses.
fn resting(report: &Report, place: Resting) -> Vec<String> {
    let sites = report.spilled.iter().enumerate();
    let line = |(site, found): (usize, &Spilled)| {
        format!(
            "site {site}: wrote {} bytes to {place} and read {} in {:.3} s of {:.3} s: {:.2} times as long as without",
            found.written,
            found.read,
            found.time.as_secs_f64(),
            found.whole.as_secs_f64(),
            found.slowdown()
        )
    };
    sites.map(line).collect()
}

/// Why a run stopped, with the line that asked for what failed. `None` for a mistake of einc's own.
pub fn diagnostic(error: &RunError) -> Option<Diagnostic> {
    if error.kind == ErrorKind::Internal {
        return None;
    }
    let mut diagnostic = Diagnostic::error(error.code, error.message.clone());
    if let Some(origin) = error.origin {
        let span = Span {
            file: FileId(origin.file),
            start: origin.start,
            end: origin.end,
        };
        let label = match (&error.tensor, error.kind) {
            (Some(tensor), ErrorKind::Output) => format!("`{tensor}` was to be written"),
            (Some(tensor), ErrorKind::Data) => format!("`{tensor}` is read"),
            (Some(_), _) if error.code == "E0727" => "asserted here".into(),
            (Some(tensor), _) => format!("while `{tensor}` was computed"),
            (None, _) => String::new(),
        };
        diagnostic = diagnostic.at(span, label);
    }
    if let (Some(site), ErrorKind::Data | ErrorKind::Output | ErrorKind::Setup) =
        (error.site, error.kind)
    {
        diagnostic = diagnostic.note(format!("found by site {site}"));
    }
    Some(match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    })
}

/// Why a rank could not join its job.
pub fn not_connected(error: &CommError) -> Diagnostic {
    Diagnostic::error("E0732", error.to_string())
        .help("`einc doctor` shows which MPIs are supported here and what to install")
}

/// Why a rank lost its job before the run began.
pub fn lost(error: &CommError) -> Diagnostic {
    Diagnostic::error("E0730", error.to_string())
}
