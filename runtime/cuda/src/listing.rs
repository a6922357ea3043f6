//! The texts of a plan, step by step: what a GPU runs, and what is left to the cores, with the reason.
//!
//! Must not know how a text is compiled.
//!
//! ```text
//! // r2 score: (f32[8, 64], f32[512, 64]) [t: 8, s: 512 | d: 64] f32 = sum a0[t, d] * a1[s, d]
//! // r2 by the matrix library: rows t, columns s, inner d; a0 and a1 as they lie
//! // r4 top: (f32[8, 512]) [t: 8 | s: 512] f32 = max a0[t, s]
//! extern "C" __global__ void r4(ein::whole i0_start, …) { … }
//! ```

use crate::functions::{Own, grouped, join, own};
use ein_plan::{Operation, Plan, Source};
use std::collections::HashMap;
use std::fmt::Write;

/// Returns, for each step of a plan that computes something, its function or the reason why the cores compute it.
pub fn listing(plan: &Plan) -> String {
    let mut all = String::new();
    // By the text of its function, the first step that has it.
    let mut known: HashMap<String, u32> = HashMap::new();
    let together = grouped(plan);
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
