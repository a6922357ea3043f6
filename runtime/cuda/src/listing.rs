//! The texts of a plan, step by step: what a GPU runs, and what is left to the cores, with the reason.
//!
//! The only file here that knows plans. Must not know how a text is compiled.
//!
//! ```text
//! // r2 score: (f32[8, 64], f32[512, 64]) [t: 8, s: 512 | d: 64] f32 = sum a0[t, d] * a1[s, d]
//! // r2 by the matrix library: rows t, columns s, inner d; a0 and a1 as they lie
//! // r4 top: (f32[8, 512]) [t: 8 | s: 512] f32 = max a0[t, s]
//! extern "C" __global__ void r4(ein::whole i0_start, …) { … }
//! ```

use crate::group::{Part, group, joins, stretches};
use crate::kernel::text;
use crate::product::Product;
use crate::text::{Reason, Text};
use ein_plan::{JoinInput, Kernel, LoopKind, Operation, Plan, RelationId, Source, Step, Sweep};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Returns, for each step of a plan that computes something, its function or the reason why the cores compute it.
pub fn listing(plan: &Plan) -> String {
    let mut all = String::new();
    // By the text of its function, the first step that has it.
    let mut known: HashMap<String, u32> = HashMap::new();
    let together: BTreeMap<RelationId, (RelationId, Text)> = (plan.sweeps.iter())
        .flat_map(|sweep| groups(plan, sweep))
        .collect();
    for step in &plan.steps {
        let (number, tensor) = (step.result.0, &step.tensor);
        let mut line = |what: &str| {
            let _ = writeln!(all, "// r{number} {tensor}: {what}");
        };
        if let Operation::Source { source, .. } = &step.operation
            && source.is_free()
        {
            match source {
                Source::Permutation => line("on the cores: a permutation is sorted"),
                Source::Numbers(_) => line("on the cores: a list of numbers"),
                _ => line(&source.to_string()),
            }
        }
        let Some((kernel, _)) = join(plan, step) else {
            continue;
        };
        let work = match (together.get(&step.result), own(plan, step)) {
            (Some((last, _)), _) if *last != step.result => {
                line(&format!("{kernel}; in the function of r{}", last.0));
                continue;
            }
            (Some((_, text)), _) => Own::Text(text.clone()),
            (None, work) => work,
        };
        match work {
            Own::OnCores(why) => line(&format!("on the cores: {why}")),
            Own::Product(product) => {
                line(&kernel.to_string());
                let _ = writeln!(
                    all,
                    "// r{number} by the matrix library: {}",
                    product.says(kernel)
                );
                for (name, text) in product.texts() {
                    all += &text.function(&format!("r{number}_{name}"));
                }
            }
            Own::Text(text) => {
                let same = known.entry(text.function("k")).or_insert(number);
                if *same == number {
                    line(&kernel.to_string());
                    all += &text.function(&format!("r{number}"));
                } else {
                    let same = format!("as r{same}");
                    line(&same);
                }
            }
        }
    }
    all
}

/// The kernel of a step, and what it reads, if it is a join.
fn join<'a>(plan: &'a Plan, step: &'a Step) -> Option<(&'a Kernel, &'a [JoinInput])> {
    match &step.operation {
        Operation::LocalJoin { kernel, inputs, .. } => {
            Some((&plan.kernels[kernel.0 as usize], inputs))
        }
        _ => None,
    }
}

/// The way in which a step alone is computed.
enum Own {
    Text(Text),
    Product(Box<Product>),
    OnCores(Reason),
}

fn own(plan: &Plan, step: &Step) -> Own {
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
