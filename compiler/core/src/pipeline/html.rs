//! A plan as one self-contained page: the plan as a graph, cost by step, and each collective with the line of the
//! program that causes it. No script and nothing loaded from elsewhere.
//!
//! The first screen of 1280 × 800 pixels has the figures of the whole plan and an overview of it; steps and long tables open by a click.
//! Must not know plans, only reports.
//!
//! | file | subject |
//! |---|---|
//! | `fold` | which steps of a long plan belong together |
//! | `overview` | boxes of such steps, and the sections that they open |
//! | `steps` | steps as boxes in layers |
//!
//! ```text
//! <!DOCTYPE html> … <h1>model.ein on 5 sites</h1> … <svg> … <table> …
//! ```

mod fold;
mod overview;
mod steps;

use super::explain::reason_of;
use super::report::{PlanReport, PlanStep};

const STYLE: &str = "\
body { font: 15px/1.5 system-ui, sans-serif; margin: 1em auto; max-width: 1200px; padding: 0 1em; color: #1b1f24; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin: 1.2em 0 .3em }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25em .7em; border-bottom: 1px solid #d8dee4; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code, svg text { font-family: ui-monospace, monospace; font-size: 12px } pre { background: #f6f8fa; padding: .4em .7em; margin: .3em 0; overflow-x: auto; white-space: pre-wrap }
.facts { display: flex; flex-wrap: wrap; gap: .3em 2.2em; margin: 0 } .facts dt { color: #59636e; font-size: 12px } .facts dd { margin: 0; font-weight: 600 }
.open { display: none } .open:target { display: block } .hint { color: #59636e; margin: .3em 0 } svg a:hover rect { stroke-width: 2 } summary { cursor: pointer }
.scroll { overflow-x: auto } .bar { background: #d97706; height: .7em; min-width: 1px } .move { background: #fff7ed }
.loop { border: 1px solid #8c959f; border-radius: 6px; padding: 0 1em 1em; margin: 1em 0 }
svg rect { fill: #f6f8fa; stroke: #8c959f } svg rect.move { fill: #ffedd5; stroke: #d97706 } svg path { stroke: #8c959f; fill: none }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } pre, .move { background: #161b22 } th, td { border-color: #30363d }
  svg text { fill: #e6edf3 } .hint, .facts dt { color: #9198a1 } a { color: #4493f8 } svg rect { fill: #161b22 } svg rect.move { fill: #3b2300 } }";

/// The page.
pub fn html(report: &PlanReport) -> String {
    let plural = if report.sites == 1 { "" } else { "s" };
    let program = escaped(file_name(&report.program));
    let title = format!("{program} on {} site{plural}", report.sites);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    page.push_str(&summary(report));
    page.push_str("<h2 id=\"plan\">The plan</h2>\n");
    page.push_str(&overview::overview(report));
    page.push_str("<h2>Movements and their reasons</h2>\n");
    page.push_str(&collectives(report));
    page.push_str("<h2>Cost by step</h2>\n");
    page.push_str(&folded(report.steps.len(), "steps", costs(report)));
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
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    let forms = report.forms.iter();
    let forms = forms.map(|form| (format!("form of {}", form.input), reason_of(form)));
    let rows: String = (rows.into_iter().chain(forms))
        .map(|(name, value)| {
            let name = escaped(&name);
            let value = escaped(&value);
            format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n")
        })
        .collect();
    format!("<dl class=\"facts\">\n{rows}</dl>\n")
}

/// A table, a click away where it is long.
fn folded(rows: usize, what: &str, table: String) -> String {
    match rows > overview::SHORT {
        true => format!("<details>\n<summary>All {rows} {what}</summary>\n{table}</details>\n"),
        false => table,
    }
}

/// The plan's own text, a click away.
fn kernels(report: &PlanReport) -> String {
    format!(
        "<details>\n<summary>The kernels, the loops of each, and why these</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&report.kernels)
    )
}

fn collectives(report: &PlanReport) -> String {
    let mut moving: Vec<&PlanStep> = report.steps.iter().filter(|step| step.moves()).collect();
    moving.sort_by_key(|step| std::cmp::Reverse(step.transfer.saturating_mul(step.times)));
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
                escaped(&step.because.replace(&report.program, file_name(&report.program))),
                escaped(file_name(&step.source.label())),
                escaped(&step.source.text)
            )
        })
        .collect();
    let table = format!(
        "<div class=\"scroll\"><table>\n<tr><th>collective</th><th class=\"n\">floats</th><th class=\"n\">bytes</th><th>because</th><th>line</th></tr>\n{rows}</table></div>\n"
    );
    folded(moving.len(), "movements, the largest first", table)
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
                escaped(file_name(&step.source.label()))
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

/// A path, or a place in a file, without the folders before it.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Text in which nothing is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
