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

use super::report::{Alternative, PlanLoop, PlanReport, PlanStep, Rewrite};
use super::text::{count, figure, scaled, seconds, table};
use crate::lists::{Form, FormChoice};
use ein_plan::print::{assertion, destination};

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
        rows.extend(resting(report, step));
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
                match step.looked_up.as_str() {
                    "" => format!("= {}", step.text),
                    by => format!("= {} ({by})", step.text),
                },
                moved,
                place,
            ]
        });
    }
    text.push_str(&table(&rows, &[true, false, false, false, true, false]));
    for output in &report.outputs {
        let to = destination(None, output.file.as_deref());
        let to = to + &assertion(output.asserts.as_deref());
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

/// The line of what goes to rest in front of a step and of what is back.
fn resting(report: &PlanReport, step: &PlanStep) -> Option<Vec<String>> {
    let place = report.resting?;
    let named = |steps: &[usize], way: &str| {
        let names: Vec<&str> = (steps.iter())
            .filter_map(|step| report.steps.get(*step))
            .map(|step| step.name.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{way} {place}: {}", names.join(", ")))
    };
    let out = named(&step.spills, "to");
    let back = named(&step.restores, "from");
    let text: Vec<String> = out.into_iter().chain(back).collect();
    (!text.is_empty()).then(|| {
        let mut row = vec![String::new(); 6];
        row[3] = text.join("; ");
        row
    })
}

fn header(report: &PlanReport) -> String {
    let cost = &report.cost;
    let mesh = mesh(report);
    let peak = match report.steps.get(cost.peak_step) {
        Some(step) => format!(" at step {} ({})", step.step, step.name),
        None => String::new(),
    };
    let proved = match (report.deterministic, report.proved_optimal) {
        (true, _) => String::new(),
        (false, true) => format!("; proved optimal{}", space(report)),
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
    if let Some(place) = report.resting {
        text.push_str(&format!(
            "rests {}: {} written, {} read at a site, {} at one time\n",
            place.located(),
            scaled(cost.spill_written, "B"),
            scaled(cost.spill_read, "B"),
            scaled(cost.rests_per_site_max, "B")
        ));
    }
    if let Some(estimate) = cost.seconds {
        text.push_str(&format!("estimated time: {}\n", seconds(estimate)));
    }
    for left_out in &report.search.not_explored {
        text.push_str(&format!("not explored: {left_out}\n"));
    }
    for form in &report.forms {
        text.push_str(&format!("{}: {}\n", form.input, reason_of(form)));
    }
    text.push('\n');
    text
}

/// The form of an input in words: `a list of 1200 of 60000 elements (2.13 ms at one site; dense 4.20 ms)`.
pub(super) fn reason_of(form: &FormChoice) -> String {
    let [list, dense] = form.seconds.map(seconds);
    let elements = format!("{} of {} elements", form.listed, form.elements);
    let asked = match form.pinned && !form.is_needless() {
        true => ", as asked for",
        false => "",
    };
    match form.form {
        Form::List => format!("a list of {elements}{asked} ({list} at one site; dense {dense})"),
        Form::Dense if form.is_needless() => {
            format!("dense, with {elements} listed; no statement can read them alone")
        }
        Form::Dense => {
            format!("dense{asked}, with {elements} listed ({dense} at one site; as a list {list})")
        }
    }
}

/// The mesh, unless it is all sites in a row, and how it lies over nodes.
fn mesh(report: &PlanReport) -> String {
    let axes: Vec<String> = report.mesh.iter().map(u32::to_string).collect();
    let axes = axes.join("x");
    match (&report.mesh[..], &report.mesh_inside) {
        ([], _) => String::new(),
        ([sites], None) if *sites == report.sites => String::new(),
        (_, None) => format!(", mesh {axes}"),
        (counts, Some(inside)) => {
            let axes_over = counts.iter().zip(inside).zip(["x", "y", "z"]);
            let over: Vec<String> = axes_over
                .map(|((count, inside), axis)| match inside {
                    1 => format!("{axis} over nodes"),
                    _ if inside == count => format!("{axis} inside"),
                    _ => format!("{axis} over nodes, {inside} inside each"),
                })
                .collect();
            format!(", mesh {axes} ({})", over.join(", "))
        }
    }
}

/// The space in which a plan is the cheapest, where a cheaper one leaves sites idle: in all it moves less since there are fewer sites,
/// to each of them no less.
fn space(report: &PlanReport) -> String {
    let sites = |mesh: &str| {
        mesh.split('x')
            .filter_map(|n| n.parse::<u32>().ok())
            .product::<u32>()
    };
    let cheapest = |idle: bool| {
        let meshes = report.search.meshes.iter();
        let own = meshes.filter(|(mesh, _)| (sites(mesh) < report.sites) == idle);
        own.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let uses_all = report.mesh.iter().product::<u32>() == report.sites;
    match (cheapest(true), cheapest(false)) {
        (Some((mesh, fewer)), Some((_, all))) if uses_all && fewer < all => format!(
            " of plans that use all {} sites; on mesh {mesh} less would move in all, but no less to each site",
            report.sites,
        ),
        _ => String::new(),
    }
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
