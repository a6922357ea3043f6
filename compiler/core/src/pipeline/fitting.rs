//! The plan of a program within the memory of a site that there is.
//!
//! Values computed again instead of kept, products in panels, and values that rest between two uses are looked at in turn. Must not know how a layout is found.
//!
//! ```text
//! 100 MB: no layout fits, nor one for 200 MB with values computed again   ->   products in panels of 25 MB
//! ```

use super::closest::closest;
use super::{Compiled, Deadlines, Options, Stop, panels, planned, stream, text};
use crate::cost::{self, Machine};
use crate::einsum::{Program, TensorId};
use crate::lower;
use crate::search::share::Shared;
use ein_plan::{Plan, RelationId, Resting, memory};
use einc_diag::Diagnostic;
use std::collections::BTreeSet;

/// The end of the message about a plan that does not fit.
const AGAIN: &str = "also with values computed again instead of kept";

/// A refusal: no plan fits in memory.
pub(super) struct Short {
    /// The message for the user, of what misses least: what one statement takes by itself may be more than what a plan comes to.
    refusal: Diagnostic,
    /// How many bytes are missing.
    missing: u64,
    /// The tensor for which most of them are, where no layout fits.
    most: Option<Box<(Program, TensorId)>>,
    /// Plans that do not fit.
    large: Vec<Compiled>,
}

/// The program's plan for the sites that are asked for, within the memory that is, without a disk.
pub(super) fn in_memory(
    shared: &Shared,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<Result<Compiled, Short>, Stop> {
    let limit = options.criteria.memory;
    let mut large: Vec<Compiled> = vec![];
    let mut most = None;
    let (mut refusal, mut missing) = match closest(shared, options, deadline) {
        Err(Stop::NoPlan(refusal, bytes)) => (*refusal, bytes),
        Err(Stop::NoLayout(refusal, bytes, what)) => {
            most = Some(what);
            (*refusal, bytes)
        }
        Err(Stop::TooLarge(refusal, bytes, compiled)) => {
            large.push(*compiled);
            (refusal.note(AGAIN), bytes)
        }
        other => return other.map(Ok),
    };
    // A layout for more memory may fit where values are computed again instead of kept.
    let more = limit.map(|limit| [Some(limit.saturating_mul(2)), None]);
    for memory in more.into_iter().flatten() {
        match planned(shared, options, memory, deadline) {
            Err(Stop::NoPlan(..) | Stop::NoLayout(..)) => {}
            Err(Stop::TooLarge(other, bytes, compiled)) => {
                large.push(*compiled);
                if bytes < missing {
                    let help = std::mem::take(&mut refusal.help);
                    refusal = Diagnostic {
                        help,
                        ..other.note(AGAIN)
                    };
                    missing = bytes;
                }
            }
            other => return other.map(Ok),
        }
    }
    Ok(match panels::of_products(shared, options, deadline)? {
        Some(compiled) => Ok(compiled),
        None => Err(Short {
            refusal,
            missing,
            most,
            large,
        }),
    })
}

/// The program's plan for the sites that are asked for, within the memory that is, and with values at rest if that may be.
pub(super) fn fitting(
    shared: &Shared,
    options: &Options,
    (deadline, soon): Deadlines<'_>,
) -> Result<Compiled, Stop> {
    let Short {
        refusal,
        missing,
        most,
        large,
    } = match in_memory(shared, options, deadline)? {
        Ok(compiled) => return Ok(compiled),
        Err(short) => short,
    };
    // Where that is not asked for, it is looked for to tell of it only.
    let may_rest = options.criteria.may_rest();
    let enough = match may_rest {
        true => deadline,
        false => soon,
    };
    let least = least_missing(&large, options);
    let mut on_disk = resting(&large, options)?;
    for compiled in &large {
        if on_disk.is_none() {
            on_disk = stream::streamed(compiled, shared, options, enough)?;
        }
    }
    let refusal = match (on_disk, may_rest) {
        (Some(compiled), true) => {
            let resting = resting_place(&compiled.plan, options)?;
            let plan = Plan {
                resting,
                ..compiled.plan
            };
            return Ok(Compiled { plan, ..compiled });
        }
        (None, true) => match least {
            Some(note) => refusal.note(note),
            None => refusal,
        },
        (None, false) => refusal,
        (Some(compiled), false) => {
            let volume = compiled.plan.spilled();
            refusal.help(format!(
                "or let values rest on disk between two uses, `--spill`: it fits, with {} written and {} read at a site",
                text::scaled(volume.written, "B"),
                text::scaled(volume.read, "B")
            ))
        }
    };
    Err(match most {
        Some(most) => Stop::NoLayout(Box::new(refusal), missing, most),
        None => Stop::NoPlan(Box::new(refusal), missing),
    })
}

/// Returns where the values of a plan rest: in the host's memory if kernels compute elsewhere and there is room, else on disk.
fn resting_place(plan: &Plan, options: &Options) -> Result<Resting, Stop> {
    let Some(limits) = &options.criteria.gpu_memory else {
        return Ok(Resting::Disk);
    };
    let bytes = plan.at_rest().into_iter().max().unwrap_or(0);
    match limits.host {
        Some(most) if bytes > most && options.criteria.spill => Ok(Resting::Disk),
        Some(most) if bytes > most => {
            let message = format!(
                "values that rest in the host's memory between two uses take {} at a site, of which `--memory` allows {}",
                text::scaled(bytes, "B"),
                text::scaled(most, "B")
            );
            let refusal = Diagnostic::error("E0996", message)
                .help("let them rest on disk, `--spill`, or allow more memory, `--memory`");
            Err(Stop::NoPlan(Box::new(refusal), bytes - most))
        }
        _ => Ok(Resting::HostMemory),
    }
}

/// Returns a description of the memory that is missing, also with everything at rest between two uses, at the plan that misses least.
fn least_missing(large: &[Compiled], options: &Options) -> Option<String> {
    let limit = options.criteria.memory?;
    let rested = large.iter().map(|compiled| lower::rested(&compiled.plan));
    let peaks = rested.filter_map(|plan| {
        let peak = memory::peaks(&plan)
            .into_iter()
            .max_by_key(|peak| peak.bytes)?;
        Some((peak, plan))
    });
    let (peak, plan) = peaks.min_by_key(|(peak, _)| peak.bytes)?;
    let missing = text::scaled(peak.bytes.saturating_sub(limit), "B");
    let tensor = &plan.steps[peak.step].tensor;
    let used = plan.steps[peak.step].operation.inputs();
    let outputs: BTreeSet<RelationId> = plan.outputs.iter().map(|output| output.relation).collect();
    let waiting: u64 = (outputs.into_iter())
        .filter(|output| (output.0 as usize) < peak.step && !used.contains(output))
        .map(|output| memory::of(&plan, plan.kind(output)))
        .sum();
    let outputs = match waiting {
        0 => String::new(),
        bytes => format!(
            ", beside {} of outputs that are held to the end",
            text::scaled(bytes, "B")
        ),
    };
    Some(format!(
        "also with values that rest between two uses, {missing} are missing while `{tensor}` is computed{outputs}"
    ))
}

/// Of plans that do not fit, the one that does with the least to write and read if values may rest between two uses.
fn resting(large: &[Compiled], options: &Options) -> Result<Option<Compiled>, String> {
    let Some(limit) = options.criteria.memory else {
        return Ok(None);
    };
    let fitting = large.iter().filter_map(|compiled| {
        let plan = lower::spilled(&compiled.plan, limit)?;
        Some(Compiled {
            plan,
            ..compiled.clone()
        })
    });
    let least = fitting.min_by_key(|compiled| {
        let volume = compiled.plan.spilled();
        volume.written.saturating_add(volume.read)
    });
    let Some(mut compiled) = least else {
        return Ok(None);
    };
    ein_plan::verify::verify(&compiled.plan).map_err(|what| format!("plan: {what}"))?;
    let machine = Machine {
        sites: options.sites,
    };
    compiled.cost = cost::of_plan(&compiled.ia, &compiled.plan, &machine);
    Ok(Some(compiled))
}
