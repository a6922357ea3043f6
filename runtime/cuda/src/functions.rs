//! The functions that a GPU needs for a plan.
//!
//! Must not know how a text is compiled.
//!
//! ```text
//! r2 a product of packed factors, r3 and r4 one function, r5 uniform random numbers   ->   texts: factor, r2 without a library, r3 with r4, r5, boxes
//! ```

use crate::group::{Part, group, joins, stretches};
use crate::helpers;
use crate::kernel::text;
use crate::product::Product;
use crate::sources;
use crate::text::{Reason, Text};
use ein_device::Draw;
use ein_plan::{
    DType, JoinInput, Kernel, LoopKind, Operation, Plan, RelationId, Source, Step, Sweep,
};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the texts of all functions that a device may launch for a plan: those of its kernels, alone and in groups, of its sources, and of arrays
/// that are combined and copied. A text may be in it twice.
pub(crate) fn texts(plan: &Plan) -> Vec<Text> {
    let mut all = vec![];
    for step in &plan.steps {
        match &step.operation {
            Operation::Source { source, .. } => {
                let rank = step.kind.array.dims.len();
                all.extend(sources_of(source, step.kind.array.columns[0], rank));
            }
            Operation::LocalAggregate { reduction, .. } => {
                all.push(helpers::combine(*reduction, &step.kind.array.columns));
            }
            Operation::LocalJoin { kernel, fold, .. } => {
                let kernel = &plan.kernels[kernel.0 as usize];
                if let Own::Product(product) = own(plan, step) {
                    all.extend(product.all_texts().map(Text::clone));
                }
                // A product, too: without the library its text computes it.
                all.extend(text(kernel).ok());
                if let (Some(_), Some(reduction)) = (fold, &kernel.reduction) {
                    all.push(helpers::combine(*reduction, &step.kind.array.columns));
                }
            }
            _ => {}
        }
    }
    all.extend(grouped(plan).into_values().map(|(_, text)| text));
    all.extend(boxes(plan));
    all
}

/// Returns the texts that make a source of a type and rank, and its parts.
pub(crate) fn sources_of(source: &Source, dtype: DType, rank: usize) -> Vec<Text> {
    if let Source::Stacked { leading, parts } = source {
        let rank = rank - *leading as usize;
        let parts = parts.iter();
        return parts
            .flat_map(|part| sources_of(&part.source, dtype, rank))
            .collect();
    }
    // The text says nothing of the extents.
    let draw = Draw {
        source,
        dtype,
        stream: "",
        seed: 0,
        rounds: &[],
        shape: &vec![1; rank],
    };
    let text = sources::source(&draw, &vec![(0, 1); rank]);
    text.map(|(text, _)| text).into_iter().collect()
}

/// The texts that copy boxes of a plan's arrays.
fn boxes(plan: &Plan) -> impl Iterator<Item = Text> {
    let arrays = plan.steps.iter().map(|step| &step.kind.array);
    let kinds: BTreeSet<(usize, usize)> = arrays
        .flat_map(|array| {
            let columns = array.columns.iter();
            columns.map(|column| (array.dims.len(), column.size()))
        })
        .collect();
    kinds
        .into_iter()
        .map(|(rank, bytes)| helpers::copy_box(rank, bytes))
}

/// Returns, for each step that is computed together with others, the last of them and their function.
pub(crate) fn grouped(plan: &Plan) -> BTreeMap<RelationId, (RelationId, Text)> {
    let sweeps = plan.sweeps.iter();
    sweeps.flat_map(|sweep| groups(plan, sweep)).collect()
}

/// The kernel of a step, and what it reads, if it is a join.
pub(crate) fn join<'a>(plan: &'a Plan, step: &'a Step) -> Option<(&'a Kernel, &'a [JoinInput])> {
    match &step.operation {
        Operation::LocalJoin { kernel, inputs, .. } => {
            Some((&plan.kernels[kernel.0 as usize], inputs))
        }
        _ => None,
    }
}

/// The way in which a step alone is computed.
pub(crate) enum Own {
    Text(Text),
    Product(Box<Product>),
    OnCores(Reason),
}

/// Returns the way in which a step alone is computed.
pub(crate) fn own(plan: &Plan, step: &Step) -> Own {
    let Some((kernel, _)) = join(plan, step) else {
        return Own::OnCores(Reason::Library);
    };
    if let Some(LoopKind::Matmul(form)) = plan.loops_of(step.result).map(|loops| &loops.kind)
        && kernel.guard.is_none()
        && let Ok(product) = Product::new(kernel, form)
    {
        return Own::Product(Box::new(product));
    }
    text(kernel).map_or_else(Own::OnCores, Own::Text)
}

/// By step of a plan, whether a GPU leaves it to the cores.
pub fn on_cores(plan: &Plan) -> Vec<bool> {
    let steps = plan.steps.iter().map(|step| match &step.operation {
        Operation::LocalJoin { .. } => matches!(own(plan, step), Own::OnCores(_)),
        Operation::Source { source, .. } => {
            matches!(source, Source::Permutation | Source::Numbers(_))
        }
        _ => false,
    });
    steps.collect()
}

/// Of the members of a sweep that are computed by one function: the last of them, and the function.
fn groups(plan: &Plan, sweep: &Sweep) -> Vec<(RelationId, (RelationId, Text))> {
    let rows = sweep.rows as usize;
    let steps: Vec<&Step> = (sweep.members.iter())
        .filter_map(|member| plan.steps.iter().find(|step| step.result == *member))
        .collect();
    let kernels: Vec<(&Kernel, &[JoinInput])> =
        steps.iter().filter_map(|step| join(plan, step)).collect();
    let passing = plan.passing();
    let fits = |(step, (kernel, _)): (&&Step, &(&Kernel, _))| {
        matches!(own(plan, step), Own::Text(_)) && joins(kernel, rows)
    };
    let mut all = vec![];
    for run in stretches(steps.iter().zip(&kernels).map(fits)) {
        let maker = |input: &JoinInput| {
            let place = sweep
                .members
                .iter()
                .position(|member| *member == input.relation);
            place
                .filter(|place| run.contains(place))
                .map(|place| place - run.start)
        };
        let parts = run.clone().map(|number| {
            let behind = kernels[run.end..].iter();
            let mut behind = behind.flat_map(|(_, inputs)| inputs.iter());
            let result = steps[number].result;
            Part {
                kernel: kernels[number].0,
                made: kernels[number].1.iter().map(maker).collect(),
                kept: !passing[result.0 as usize] || behind.any(|input| input.relation == result),
            }
        });
        let parts: Vec<Part<'_>> = parts.collect();
        if parts.len() < 2 {
            continue;
        }
        if let Some((text, _)) = group(&parts, rows) {
            let last = steps[run.end - 1].result;
            all.extend(run.map(|number| (steps[number].result, (last, text.clone()))));
        }
    }
    all
}
