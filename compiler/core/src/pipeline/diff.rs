//! Differences between two plans of one program.
//!
//! Steps are matched by name. Must not know plans, only reports.
//!
//! ```text
//! cost.transfer       67108864 -> 8388608   (-87.5 %)
//! - B.all   broadcast B   67108864 floats
//! + B.by.k  shuffle B     4194304 floats
//! ```

use super::report::{PlanReport, PlanStep};

/// The differences, a line each; says so if there is none.
pub fn diff(old: &PlanReport, new: &PlanReport) -> String {
    let mut text = String::new();
    let mut field = |name: &str, old: String, new: String| {
        if old != new {
            text.push_str(&format!("{name:<34} {old} -> {new}\n"));
        }
    };
    field("program", old.program.clone(), new.program.clone());
    field("sites", old.sites.to_string(), new.sites.to_string());
    field("mesh", mesh(old), mesh(new));
    field("objective", old.objective.clone(), new.objective.clone());
    field(
        "proved_optimal",
        old.proved_optimal.to_string(),
        new.proved_optimal.to_string(),
    );
    let mut figure = |name: &str, old: u64, new: u64| {
        if old != new {
            let change = match old {
                0 => String::new(),
                _ => format!("   ({:+.1} %)", (new as f64 / old as f64 - 1.0) * 100.0),
            };
            text.push_str(&format!("{name:<34} {old} -> {new}{change}\n"));
        }
    };
    let (was, is) = (&old.cost, &new.cost);
    figure("cost.transfer", was.transfer, is.transfer);
    figure("cost.bytes", was.bytes, is.bytes);
    figure(
        "cost.bytes_per_site_max",
        was.bytes_per_site_max,
        is.bytes_per_site_max,
    );
    figure(
        "cost.flops_per_site_max",
        was.flops_per_site_max,
        is.flops_per_site_max,
    );
    figure(
        "cost.peak_memory_per_site_max",
        was.peak_memory_per_site_max,
        is.peak_memory_per_site_max,
    );
    let find = |report: &PlanReport, name: &str| -> Option<PlanStep> {
        report.steps.iter().find(|step| step.name == name).cloned()
    };
    for step in &old.steps {
        match find(new, &step.name) {
            Some(other) if same(step, &other) => {}
            Some(other) => text.push_str(&format!("- {}\n+ {}\n", line(step), line(&other))),
            None => text.push_str(&format!("- {}\n", line(step))),
        }
    }
    for step in &new.steps {
        if find(old, &step.name).is_none() {
            text.push_str(&format!("+ {}\n", line(step)));
        }
    }
    if text.is_empty() {
        text.push_str("the plans are the same\n");
    }
    text
}

/// Returns whether two steps of one name do the same; where they stand does not matter.
fn same(one: &PlanStep, other: &PlanStep) -> bool {
    (&one.text, &one.kind, one.transfer, one.bytes, one.flops)
        == (
            &other.text,
            &other.kind,
            other.transfer,
            other.bytes,
            other.flops,
        )
}

fn line(step: &PlanStep) -> String {
    let moved = match step.transfer {
        0 => String::new(),
        floats => format!("   {floats} floats"),
    };
    format!("{}   {}   = {}{moved}", step.name, step.kind, step.text)
}

fn mesh(report: &PlanReport) -> String {
    let axes: Vec<String> = report.mesh.iter().map(u32::to_string).collect();
    axes.join("x")
}
