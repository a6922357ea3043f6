//! Times of a run's steps, for `--profile` and `--stats`: each step by its line and tensor, with the plan's figures of it.
//!
//! Must not know how steps are timed, nor the form of a trace.
//!
//! ```text
//! stats: step 3 distance (model.ein:11): 1 time, 12.1 ms of 24.0 ms, 50.0 Mflop (4.1 Gflop/s), holds 1.3 MB (stated 1.3 MB)
//! ```

use crate::planned::Prepared;
use ein_exec::{Profile, Total};
use ein_plan::{IndexId, Node, Operation, Plan, RelationId, memory, traffic, work};
use ein_records::{RecordError, Slice, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// The facts that are known of a step before the run.
struct Known {
    /// `distance · model.ein:11`.
    name: String,
    operation: &'static str,
    /// Operations at the busiest site, each time.
    flops: u64,
    /// Bytes that change site, each time.
    moved: u64,
    /// Bytes that the step reads and makes at the site that has most of them; of an operand what its positions can name.
    touched: u64,
    /// Bytes that the plan states for the time of the step, at the site that has most.
    held: u64,
}

/// By plan and step.
fn known(plans: &[&Plan]) -> Vec<Vec<Known>> {
    plans.iter().map(|plan| of_plan(plan)).collect()
}

fn of_plan(plan: &Plan) -> Vec<Known> {
    let (traffic, held) = (traffic::by_step(plan), memory::by_step(plan));
    let (of, exchanges) = (plan.sweeps_of_steps(), plan.exchanges_of_steps());
    let steps = plan.steps.iter().enumerate().map(|(number, step)| {
        // A sweep or an exchange is one slice: all its members' work.
        let members = match (of[number], exchanges[number]) {
            (Some(sweep), _) => plan.sweeps[sweep].members.clone(),
            (_, Some(exchange)) => plan.exchanges[exchange].members.clone(),
            _ => vec![step.result],
        };
        // What goes on beside other steps is measured when it has arrived.
        let until = exchanges[number].map_or(number, |e| plan.exchanges[e].until.0 as usize);
        let tensors: Vec<&str> = members
            .iter()
            .map(|m| plan.step(*m).tensor.as_str())
            .collect();
        let file = plan.files.get(step.origin.file as usize);
        let line = file.map_or(String::new(), |file| {
            format!(" · {file}:{}", step.origin.line)
        });
        Known {
            name: format!("{}{line}", tensors.join(", ")),
            operation: operation(plan, members.len(), number),
            flops: members
                .iter()
                .map(|m| work::of_step(plan, plan.step(*m)))
                .sum(),
            moved: members.iter().map(|m| traffic[m.0 as usize].bytes).sum(),
            touched: touched(plan, &members),
            held: held[number..=until]
                .iter()
                .flatten()
                .copied()
                .max()
                .unwrap_or(0),
        }
    });
    steps.collect()
}

fn operation(plan: &Plan, members: usize, number: usize) -> &'static str {
    match plan.steps[number].operation {
        Operation::Broadcast { .. } | Operation::Shuffle { .. } | Operation::Window { .. }
            if members > 1 =>
        {
            "exchange"
        }
        _ if members > 1 => "sweep",
        Operation::Source { .. } => "source",
        Operation::Broadcast { .. } => "broadcast",
        Operation::Shuffle { .. } => "shuffle",
        Operation::Window { .. } => "window",
        Operation::LocalJoin { .. } => "local join",
        Operation::LocalAggregate { .. } => "local aggregate",
        Operation::LocalConcat { .. } => "local concat",
        Operation::LocalTile { .. } => "local tile",
        Operation::LocalFilter { .. } => "local filter",
        Operation::Loop { .. } => "loop",
    }
}

/// Bytes of what steps read from outside and of what they make that is held.
fn touched(plan: &Plan, members: &[RelationId]) -> u64 {
    let passing = plan.passing();
    let mut parts: BTreeMap<RelationId, f64> = BTreeMap::new();
    for member in members {
        let step = plan.step(*member);
        let inputs = step.operation.inputs();
        for (number, input) in inputs.iter().enumerate() {
            if !members.contains(input) {
                let part = parts.entry(*input).or_default();
                *part = part.max(part_read(plan, &step.operation, number));
            }
        }
        if !passing[member.0 as usize] {
            parts.insert(*member, 1.0);
        }
    }
    let bytes = |(relation, part): (RelationId, f64)| {
        (memory::of(plan, plan.kind(relation)) as f64 * part) as u64
    };
    parts.into_iter().map(bytes).sum()
}

/// Returns the largest part of an operand that a step reads: of `A[i,0]` one column. By the indices that its positions name.
fn part_read(plan: &Plan, operation: &Operation, operand: usize) -> f64 {
    let Operation::LocalJoin { kernel, .. } = operation else {
        return 1.0;
    };
    let kernel = &plan.kernels[kernel.0 as usize];
    if kernel.library().is_some() {
        return 1.0;
    }
    let all: f64 = kernel.operands[operand]
        .shape
        .iter()
        .map(|n| *n as f64)
        .product();
    // Arguments stand before what is made of them.
    let mut indices: Vec<BTreeSet<IndexId>> = vec![];
    for (_, node, _) in kernel.graph.iter() {
        let below = node
            .arguments()
            .flat_map(|argument| &indices[argument.0 as usize]);
        let mut own: BTreeSet<IndexId> = below.copied().collect();
        if let Node::Index(index) = node {
            own.insert(*index);
        }
        indices.push(own);
    }
    let reads = kernel
        .graph
        .reads()
        .filter(|(of, _)| *of as usize == operand);
    let places = reads.map(|(_, positions)| -> f64 {
        let named: BTreeSet<IndexId> = (positions.iter())
            .flat_map(|position| &indices[position.0 as usize])
            .copied()
            .collect();
        let extents = named
            .iter()
            .map(|index| kernel.indices[index.0 as usize].extent as f64);
        extents.product()
    });
    let places: f64 = places.sum();
    if places < all { places / all } else { 1.0 }
}

/// Writes the trace of a run.
///
/// # Errors
/// The file cannot be written.
pub fn write(trace: Trace, prepared: &Prepared, profile: &Profile) -> Result<(), RecordError> {
    let plans = prepared.plans();
    let known = known(&plans);
    let args: Vec<Vec<BTreeMap<&'static str, serde_json::Value>>> = (known.iter())
        .map(|steps| steps.iter().enumerate().map(arguments).collect())
        .collect();
    let program = plans.first().and_then(|plan| plan.files.first());
    let left_out = profile.iter().map(|site| site.left_out).sum();
    let slices = profile.iter().enumerate().flat_map(|(site, own)| {
        let (known, args) = (&known, &args);
        own.slices.iter().filter_map(move |slice| {
            let (plan, step) = (slice.plan as usize, slice.step as usize);
            let step_known = known.get(plan)?.get(step)?;
            Some(Slice {
                name: &step_known.name,
                category: step_known.operation,
                site,
                start: slice.start as f64 / 1e3,
                length: slice.length as f64 / 1e3,
                args: args.get(plan)?.get(step)?,
            })
        })
    });
    let program = program.map_or("", String::as_str);
    trace.write(program, profile.len(), left_out, slices)
}

fn arguments((number, step): (usize, &Known)) -> BTreeMap<&'static str, serde_json::Value> {
    let mut args = BTreeMap::from([
        ("step", serde_json::json!(number)),
        ("bytes read and made", serde_json::json!(step.touched)),
    ]);
    if step.flops > 0 {
        args.insert("flops", serde_json::json!(step.flops));
    }
    if step.moved > 0 {
        args.insert("bytes moved", serde_json::json!(step.moved));
    }
    args
}

/// Every step in a line: what was stated and what was measured, at the site where it took longest.
pub fn figures(prepared: &Prepared, profile: &Profile) -> String {
    let plans = prepared.plans();
    let known = known(&plans);
    let mut worst: BTreeMap<(u32, u32), Total> = BTreeMap::new();
    for site in profile {
        for (step, total) in &site.totals {
            let so_far = worst.entry(*step).or_default();
            so_far.times = so_far.times.max(total.times);
            so_far.length = so_far.length.max(total.length);
            so_far.held = so_far.held.max(total.held);
        }
    }
    let mut text = String::new();
    for ((plan, step), total) in worst {
        let Some(known) = known
            .get(plan as usize)
            .and_then(|steps| steps.get(step as usize))
        else {
            continue;
        };
        let which = match plans.len() {
            1 => String::new(),
            _ => format!("plan {plan} "),
        };
        let seconds = total.length as f64 / 1e9;
        text += &format!(
            "stats: {which}step {step} {}: {} times, {:.3} ms",
            known.name,
            total.times,
            seconds * 1e3
        );
        let rate = |amount: u64| amount as f64 * total.times as f64 / seconds.max(1e-9) / 1e9;
        if known.flops > 0 {
            text += &format!(
                ", stated {} flops, {:.2} Gflop/s",
                known.flops,
                rate(known.flops)
            );
        }
        if known.moved > 0 {
            text += &format!(
                ", stated {} bytes moved, {:.2} GB/s",
                known.moved,
                rate(known.moved)
            );
        } else {
            text += &format!(
                ", {} bytes read and made, {:.2} GB/s",
                known.touched,
                rate(known.touched)
            );
        }
        text += &format!(", held {} bytes (stated {})\n", total.held, known.held);
    }
    text
}
