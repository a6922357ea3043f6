//! A plan as one self-contained page: the plan as a graph, cost by step, and each collective with the line of the
//! program that causes it. No script and nothing loaded from elsewhere.
//!
//! Must not know plans, only reports.
//!
//! ```text
//! <!DOCTYPE html> … <h1>model.ein on 5 sites</h1> … <svg> … <table> …
//! ```

use super::report::{PlanReport, PlanStep};

/// Size of a box of the graph and the space between two, in pixels.
const BOX: (usize, usize) = (250, 56);
const SPACE: (usize, usize) = (24, 44);
/// A label longer than this is cut.
const LONGEST: usize = 34;

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 78em; padding: 0 1em; color: #1b1f24; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25em .7em; border-bottom: 1px solid #d8dee4; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code, svg text { font-family: ui-monospace, monospace; font-size: 12px } pre { background: #f6f8fa; padding: .7em; overflow-x: auto }
.scroll { overflow-x: auto } .bar { background: #d97706; height: .7em; min-width: 1px } .move { background: #fff7ed }
.loop { border: 1px solid #8c959f; border-radius: 6px; padding: 0 1em 1em; margin: 1em 0 }
svg rect { fill: #f6f8fa; stroke: #8c959f } svg rect.move { fill: #ffedd5; stroke: #d97706 } svg path { stroke: #8c959f; fill: none }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } pre, .move { background: #161b22 } th, td { border-color: #30363d }
  svg text { fill: #e6edf3 } svg rect { fill: #161b22 } svg rect.move { fill: #3b2300 } }";

/// The page.
pub fn html(report: &PlanReport) -> String {
    let title = format!("{} on {} sites", escaped(&report.program), report.sites);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    page.push_str(&summary(report));
    page.push_str("<h2>The plan</h2>\n");
    page.push_str(&graphs(report, None));
    page.push_str("<h2>Movements and their reasons</h2>\n");
    page.push_str(&collectives(report));
    page.push_str("<h2>Cost by step</h2>\n");
    page.push_str(&costs(report));
    page.push_str("<h2>Kernels</h2>\n");
    page.push_str(&kernels(report));
    if !report.alternatives.is_empty() {
        page.push_str("<h2>Other plans</h2>\n");
        page.push_str(&alternatives(report));
    }
    if !report.rewrites.is_empty() {
        page.push_str("<h2>Rewrites</h2>\n");
        page.push_str(&rewrites(report));
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn summary(report: &PlanReport) -> String {
    let mesh: Vec<String> = report.mesh.iter().map(u32::to_string).collect();
    let proved = if report.proved_optimal {
        "yes".into()
    } else {
        format!("no; a plan could be cheaper by at most {:.3e}", report.gap)
    };
    let rows = [
        ("mesh", mesh.join(" × ")),
        ("minimised", report.objective.clone()),
        ("floats transferred", number(report.cost.transfer)),
        ("bytes that change site", number(report.cost.bytes)),
        (
            "bytes received by the busiest site",
            number(report.cost.bytes_per_site_max),
        ),
        (
            "flops of the busiest site",
            number(report.cost.flops_per_site_max),
        ),
        (
            "peak memory of a site, bytes",
            number(report.cost.peak_memory_per_site_max),
        ),
        ("proved optimal", proved),
    ];
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(value)))
        .collect();
    format!("<table>\n{rows}</table>\n")
}

/// The plan's own text, a click away.
fn kernels(report: &PlanReport) -> String {
    format!(
        "<details>\n<summary>The kernels, the loops of each, and why these</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&report.kernels)
    )
}

/// The steps of a loop, or outside all, and then those of each loop in it.
fn graphs(report: &PlanReport, within: Option<usize>) -> String {
    let mut text = graph(report, within);
    for (at, of) in report.loops.iter().enumerate() {
        if of.parent == within {
            text.push_str(&format!(
                "<section class=\"loop\">\n<h3><code>repeat {}</code></h3>\n<p>{} rounds expected, {} floats in each{}</p>\n{}</section>\n",
                escaped(&of.text),
                number(of.rounds),
                number(of.transfer_per_round),
                carried(report, at),
                graphs(report, Some(at))
            ));
        }
    }
    text
}

/// `; carried: x (from x.0, then x.1)`.
fn carried(report: &PlanReport, of: usize) -> String {
    let name = |step: usize| report.steps.get(step).map_or("", |step| step.name.as_str());
    let states = report.loops[of].states.iter().map(|state| {
        let value = state.values.first().map_or(state.next, |value| *value);
        let (value, initial, next) = (name(value), name(state.initial), name(state.next));
        escaped(&format!("{value} (from {initial}, then {next})"))
    });
    let states: Vec<String> = states.collect();
    match states.is_empty() {
        true => String::new(),
        false => format!("; carried: {}", states.join(", ")),
    }
}

/// The steps of a loop, or outside all, in layers: a step stands below everything that it reads.
fn graph(report: &PlanReport, within: Option<usize>) -> String {
    let loops = report.loops_of_steps();
    let is_here = |at: &usize| loops[*at] == within;
    let mut layer = vec![0usize; report.steps.len()];
    let mut rows: Vec<Vec<usize>> = vec![];
    for (at, step) in report.steps.iter().enumerate() {
        if !is_here(&at) {
            continue;
        }
        let above = step
            .inputs
            .iter()
            .filter(|input| **input < at && is_here(input));
        layer[at] = above.map(|input| layer[*input] + 1).max().unwrap_or(0);
        if rows.len() <= layer[at] {
            rows.resize(layer[at] + 1, vec![]);
        }
        rows[layer[at]].push(at);
    }
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) = (
        widest * (BOX.0 + SPACE.0) + SPACE.0,
        rows.len() * (BOX.1 + SPACE.1) + SPACE.1,
    );
    let mut place = vec![(0, 0); report.steps.len()];
    for (y, row) in rows.iter().enumerate() {
        let left = (width - row.len() * (BOX.0 + SPACE.0)) / 2;
        for (x, at) in row.iter().enumerate() {
            place[*at] = (
                left + x * (BOX.0 + SPACE.0),
                SPACE.1 / 2 + y * (BOX.1 + SPACE.1),
            );
        }
    }
    let mut svg = format!(
        "<div class=\"scroll\"><svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n"
    );
    let here = || {
        report
            .steps
            .iter()
            .enumerate()
            .filter(|(at, _)| is_here(at))
    };
    for (at, step) in here() {
        let (x, y) = (place[at].0 + BOX.0 / 2, place[at].1);
        let inputs = step.inputs.iter();
        for input in inputs.filter(|input| **input < at && is_here(input)) {
            let (from, bottom) = (place[*input].0 + BOX.0 / 2, place[*input].1 + BOX.1);
            svg.push_str(&format!(
                "<path d=\"M{from} {bottom} C{from} {} {x} {} {x} {y}\"/>\n",
                bottom + SPACE.1 / 2,
                y.saturating_sub(SPACE.1 / 2)
            ));
        }
    }
    for (at, step) in here() {
        svg.push_str(&boxed(step, place[at]));
    }
    svg.push_str("</svg></div>\n");
    svg
}

fn boxed(step: &PlanStep, (x, y): (usize, usize)) -> String {
    let (class, moved) = match step.moves() {
        true => (
            " class=\"move\"",
            format!(" · {} floats", number(step.transfer)),
        ),
        false => ("", String::new()),
    };
    let lines = [
        format!("{}{moved}", step.name),
        step.text.clone(),
        format!("{} {}", step.placement, step.source.label()),
    ];
    let texts: String = lines
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let shown: String = match line.chars().count() > LONGEST {
                true => line.chars().take(LONGEST - 1).chain(['…']).collect(),
                false => line.clone(),
            };
            let (left, top) = (x + 8, y + 16 + number * 16);
            format!(
                "<text x=\"{left}\" y=\"{top}\">{}</text>\n",
                escaped(&shown)
            )
        })
        .collect();
    let (width, height) = BOX;
    format!(
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\"{class}/>\n{texts}</g>\n",
        escaped(&format!("{}: {} = {}", step.name, step.kind, step.text))
    )
}

fn collectives(report: &PlanReport) -> String {
    let moving: Vec<&PlanStep> = report.steps.iter().filter(|step| step.moves()).collect();
    if moving.is_empty() {
        return "<p>Nothing changes site.</p>\n".into();
    }
    let rows: String = moving
        .iter()
        .map(|step| {
            format!(
                "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}<pre>{}</pre></td></tr>\n",
                escaped(&step.text),
                number(step.transfer),
                number(step.bytes),
                escaped(&step.because),
                escaped(&step.source.label()),
                escaped(&step.source.text)
            )
        })
        .collect();
    format!(
        "<table>\n<tr><th>collective</th><th class=\"n\">floats</th><th class=\"n\">bytes that change site</th><th>because</th><th>line</th></tr>\n{rows}</table>\n"
    )
}

fn costs(report: &PlanReport) -> String {
    let most =
        |of: &dyn Fn(&PlanStep) -> u64| report.steps.iter().map(of).max().unwrap_or(0).max(1);
    let (moved, worked) = (most(&|step| step.bytes), most(&|step| step.flops));
    let bar = |value: u64, most: u64| {
        let share = value as f64 / most as f64 * 100.0;
        match value {
            0 => String::new(),
            _ => format!("<div class=\"bar\" style=\"width:{share:.1}%\"></div>"),
        }
    };
    let rows: String = report
        .steps
        .iter()
        .map(|step| {
            let class = if step.moves() { " class=\"move\"" } else { "" };
            format!(
                "<tr{class}><td class=\"n\">{}</td><td><code>{}</code></td><td><code>{}</code></td><td class=\"n\">{}{}</td><td class=\"n\">{}{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                step.step,
                escaped(&step.name),
                escaped(&step.text),
                number(step.bytes),
                bar(step.bytes, moved),
                number(step.flops),
                bar(step.flops, worked),
                number(step.memory),
                escaped(&step.source.label())
            )
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<tr><th></th><th>relation</th><th>operation</th><th class=\"n\">bytes moved</th><th class=\"n\">flops, busiest site</th><th class=\"n\">bytes held</th><th>line</th></tr>\n{rows}</table></div>\n"
    )
}

fn alternatives(report: &PlanReport) -> String {
    let rows: String = report
        .alternatives
        .iter()
        .map(|other| {
            format!(
                "<tr><td>{}</td><td class=\"n\">{:.4e}</td><td class=\"n\">{:.4e}</td><td class=\"n\">{:.4e}</td><td>{}</td></tr>\n",
                escaped(&other.name),
                other.transfer,
                other.words_per_site_max,
                other.flops_per_site_max,
                escaped(&other.lost)
            )
        })
        .collect();
    format!(
        "<table>\n<tr><th>plan</th><th class=\"n\">floats transferred</th><th class=\"n\">words, busiest site</th><th class=\"n\">flops, busiest site</th><th>why not</th></tr>\n{rows}</table>\n"
    )
}

fn rewrites(report: &PlanReport) -> String {
    let rows: String = report
        .rewrites
        .iter()
        .map(|rewrite| {
            format!(
                "<tr><td>{}</td><td><code>{}</code></td><td><pre>{}</pre></td><td><pre>{}</pre></td></tr>\n",
                escaped(&rewrite.rule),
                escaped(&rewrite.tensor),
                escaped(&rewrite.before),
                escaped(&rewrite.after)
            )
        })
        .collect();
    format!(
        "<table>\n<tr><th>rule</th><th>tensor</th><th>before</th><th>after</th></tr>\n{rows}</table>\n"
    )
}

/// A number with thin spaces between groups of three digits.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// Text in which nothing is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
