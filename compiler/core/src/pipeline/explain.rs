//! The text of `einc plan`: a header, one line a step, and on request other plans and rewrites.
//!
//! Must not know plans, only reports.
//!
//! ```text
//! plan for 4 sites, mesh 2x2: transfer 67108864 floats (201.3 MB change site), 34.4 Gflop at the busiest site
//! peak memory of a site: 134.2 MB at step 5 (C); proved optimal
//!
//! 2  B.all  {} f32[4096, 4096] @ ALL  = broadcast B  67108864 floats  // matmul.ein:10
//! ```

use super::report::{Alternative, PlanLoop, PlanReport, Rewrite};

/// Columns are aligned up to this many characters.
const WIDEST: usize = 60;

/// The plan in words, with its cost.
pub fn explain(report: &PlanReport) -> String {
    let mut text = report
        .rounds
        .as_ref()
        .map(super::rounds::table)
        .unwrap_or_default();
    text.push_str(&header(report));
    let mut rows: Vec<Vec<String>> = vec![];
    for step in &report.steps {
        rows.extend(beginning(report, step.step));
        rows.push({
            let place = match step.source.line {
                0 => String::new(),
                _ => format!("// {}", step.source.label()),
            };
            let kind = match step.placement.as_str() {
                "" => step.kind.clone(),
                placement => format!("{} @ {placement}", step.kind),
            };
            let moved = match (step.transfer, step.times) {
                (0, _) => String::new(),
                (floats, 1) => count(floats, "float"),
                (floats, times) => format!("{} x {times}", count(floats, "float")),
            };
            let around = report.loops.iter();
            let depth = around
                .filter(|l| (l.first..l.end).contains(&step.step))
                .count();
            vec![
                step.step.to_string(),
                format!("{:1$}{2}", "", 2 * depth, step.name),
                kind,
                format!("= {}", step.text),
                moved,
                place,
            ]
        });
    }
    text.push_str(&table(&rows, &[true, false, false, false, true, false]));
    for output in &report.outputs {
        let to = match &output.file {
            Some(file) => format!(" -> {file:?}"),
            None => String::new(),
        };
        let name = &report.steps[output.step].name;
        text.push_str(&format!("output {} = {name}{to}\n", output.name));
    }
    if !report.alternatives.is_empty() {
        text.push_str("\nother plans:\n");
        text.push_str(&alternatives(&report.alternatives));
    }
    if !report.rewrites.is_empty() {
        text.push_str("\nrewrites:\n");
        text.push_str(&rewrites(&report.rewrites));
    }
    text
}

/// The lines of the loops that begin before a step.
fn beginning(report: &PlanReport, step: usize) -> impl Iterator<Item = Vec<String>> + '_ {
    let parent = |of: &&PlanLoop| of.parent.and_then(|parent| report.loops.get(parent));
    let begin = report.loops.iter().filter(move |l| l.first == step);
    begin.map(move |of| {
        let depth = std::iter::successors(parent(&of), parent).count();
        let name = format!("{:1$}repeat {2}", "", 2 * depth, of.text);
        let rounds = format!("= {} expected", count(of.rounds, "round"));
        let moved = match of.transfer_per_round {
            0 => String::new(),
            floats => format!("{} a round", count(floats, "float")),
        };
        vec![
            String::new(),
            name,
            String::new(),
            rounds,
            moved,
            String::new(),
        ]
    })
}

/// A time in the unit that suits it: `2.61 ms`.
pub(super) fn seconds(seconds: f64) -> String {
    let (factor, unit) = match seconds.abs() {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "us"),
    };
    format!("{:.2} {unit}", seconds * factor)
}

fn header(report: &PlanReport) -> String {
    let cost = &report.cost;
    let mesh: Vec<String> = report.mesh.iter().map(u32::to_string).collect();
    let mesh = match report.mesh[..] {
        [] => String::new(),
        [sites] if sites == report.sites => String::new(),
        _ => format!(", mesh {}", mesh.join("x")),
    };
    let peak = match report.steps.get(cost.peak_step) {
        Some(step) => format!(" at step {} ({})", step.step, step.name),
        None => String::new(),
    };
    let proved = match (report.deterministic, report.proved_optimal) {
        (true, _) => String::new(),
        (false, true) => "; proved optimal".into(),
        (false, false) => format!(
            "; not proved optimal: a plan could {}",
            match report.objective.as_str() {
                "time" => format!("take {} less", seconds(report.gap)),
                "bytes" => format!(
                    "have {} fewer words at the busiest site",
                    scaled(report.gap.max(0.0) as u64, "")
                ),
                _ => format!(
                    "have {} fewer floats",
                    scaled(report.gap.max(0.0) as u64, "")
                ),
            }
        ),
    };
    let mut text = format!(
        "plan for {}{mesh}{}: transfer {} floats ({} change site), {} at the busiest site\n\
         peak memory of a site: {}{peak}{proved}\n",
        count(u64::from(report.sites), "site"),
        if report.deterministic {
            ", deterministic"
        } else {
            ""
        },
        cost.transfer,
        scaled(cost.bytes, "B"),
        scaled(cost.flops_per_site_max, "flop"),
        scaled(cost.peak_memory_per_site_max, "B"),
    );
    if let Some(estimate) = cost.seconds {
        text.push_str(&format!("estimated time: {}\n", seconds(estimate)));
    }
    for left_out in &report.search.not_explored {
        text.push_str(&format!("not explored: {left_out}\n"));
    }
    text.push('\n');
    text
}

fn alternatives(plans: &[Alternative]) -> String {
    let mut rows = vec![vec![
        "  plan".to_string(),
        "floats".into(),
        "words/site".into(),
        "flops/site".into(),
        String::new(),
    ]];
    rows.extend(plans.iter().map(|plan| {
        vec![
            format!("  {}", plan.name),
            figure(plan.transfer),
            figure(plan.words_per_site_max),
            figure(plan.flops_per_site_max),
            plan.lost.clone(),
        ]
    }));
    table(&rows, &[false, true, true, true, false])
}

fn rewrites(rewrites: &[Rewrite]) -> String {
    rewrites
        .iter()
        .map(|rewrite| {
            format!(
                "  {} ({})\n    {}\n    => {}\n",
                rewrite.rule, rewrite.tensor, rewrite.before, rewrite.after
            )
        })
        .collect()
}

/// Columns of text, each aligned to the right or to the left.
pub(super) fn table(rows: &[Vec<String>], right: &[bool]) -> String {
    let width = |column: usize| {
        let longest = rows.iter().map(|row| row[column].chars().count()).max();
        longest.unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let space = widths[column].saturating_sub(cell.chars().count());
            let space = " ".repeat(space);
            if column > 0 {
                line.push_str("  ");
            }
            match right[column] {
                true => line.push_str(&format!("{space}{cell}")),
                false => line.push_str(&format!("{cell}{space}")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A whole number as it is up to seven digits, else in scientific notation.
fn figure(value: f64) -> String {
    match value < 1e7 {
        true => format!("{value:.0}"),
        false => format!("{value:.3e}"),
    }
}

/// A number with a decimal prefix: 201326592 bytes are `201.3 MB`.
pub(super) fn scaled(number: u64, unit: &str) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 999.95 {
            return match prefix.is_empty() {
                true => format!("{number} {unit}").trim_end().into(),
                false => format!("{value:.1} {prefix}{unit}"),
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} E{unit}")
}
