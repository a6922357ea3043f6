//! The texts of a plan, step by step: what a GPU runs, and what is left to the cores, with the reason.
//!
//! The only file here that knows plans. Must not know how a text is compiled.
//!
//! ```text
//! // r2 score: on the cores: a matrix product
//! // r4 top: (f32[8, 512]) [t: 8 | s: 512] f32 = max a0[t, s]
//! extern "C" __global__ void r4(ein::whole i0_start, …) { … }
//! ```

use crate::text::scheduled;
use ein_plan::{Operation, Plan};
use std::collections::HashMap;
use std::fmt::Write;

/// What computes each step of a plan that computes something.
pub fn listing(plan: &Plan) -> String {
    let mut all = String::new();
    // By the text of its function, the first step that has it.
    let mut known: HashMap<String, u32> = HashMap::new();
    for step in &plan.steps {
        let (number, tensor) = (step.result.0, &step.tensor);
        let mut line = |what: &str| {
            let _ = writeln!(all, "// r{number} {tensor}: {what}");
        };
        match &step.operation {
            Operation::Source { source, .. } if source.is_free() => {
                line("on the cores: a source that is made");
            }
            Operation::LocalJoin { kernel, .. } => {
                let kernel = &plan.kernels[kernel.0 as usize];
                let text = match plan.loops_of(step.result) {
                    Some(loops) => scheduled(kernel, loops),
                    None => crate::text(kernel),
                };
                match text {
                    Err(why) => line(&format!("on the cores: {why}")),
                    Ok(text) => {
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
            _ => {}
        }
    }
    all
}
