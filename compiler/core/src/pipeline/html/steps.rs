//! Steps as boxes in layers, by the loop that they are in.
//!
//! A box stands below everything that it reads; no row is wider than the page. Must not know how steps were chosen.
//!
//! ```text
//! X   W          <svg> … <rect …/> … </svg>
//!  \ /
//!   Z
//! ```

use super::{escaped, file_name, number};
use crate::pipeline::report::{PlanReport, PlanStep};

/// Size of a box and the space between two, in pixels.
const BOX: (usize, usize) = (264, 56);
const SPACE: (usize, usize) = (24, 44);
/// How many boxes fit on the page beside each other.
const MOST: usize = 4;
/// A label longer than this is cut.
const LONGEST: usize = 34;

/// Some of the steps outside of all loops, or in one, and then those of each loop in it.
pub(super) fn graphs(report: &PlanReport, steps: &[usize], within: Option<usize>) -> String {
    let loops = report.loops_of_steps();
    let here: Vec<usize> = (steps.iter().copied())
        .filter(|at| loops[*at] == within)
        .collect();
    let mut text = match here.is_empty() {
        true => String::new(),
        false => graph(report, &here),
    };
    for (at, of) in report.loops.iter().enumerate() {
        if of.parent == within && steps.iter().any(|step| (of.first..of.end).contains(step)) {
            text.push_str(&format!(
                "<section class=\"loop\">\n<h3><code>repeat {}</code></h3>\n<p>{} rounds expected, {} floats in each{}</p>\n{}</section>\n",
                escaped(&of.text),
                number(of.rounds),
                number(of.transfer_per_round),
                carried(report, at),
                graphs(report, steps, Some(at))
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

/// Steps in layers.
fn graph(report: &PlanReport, here: &[usize]) -> String {
    let mut is_here = vec![false; report.steps.len()];
    here.iter().for_each(|at| is_here[*at] = true);
    let is_here = &is_here;
    let inputs = |at: usize| {
        let inputs = report.steps[at].inputs.iter().copied();
        inputs.filter(move |input| *input < at && is_here[*input])
    };
    let mut layer = vec![0usize; report.steps.len()];
    let mut layers: Vec<Vec<usize>> = vec![];
    for at in here {
        layer[*at] = inputs(*at).map(|input| layer[input] + 1).max().unwrap_or(0);
        if layers.len() <= layer[*at] {
            layers.resize(layer[*at] + 1, vec![]);
        }
        layers[layer[*at]].push(*at);
    }
    let rows: Vec<&[usize]> = layers.iter().flat_map(|layer| layer.chunks(MOST)).collect();
    let widest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
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
    let mut svg =
        format!("<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n");
    for at in here {
        let (x, y) = (place[*at].0 + BOX.0 / 2, place[*at].1);
        for input in inputs(*at) {
            let (from, bottom) = (place[input].0 + BOX.0 / 2, place[input].1 + BOX.1);
            svg.push_str(&format!(
                "<path d=\"M{from} {bottom} C{from} {} {x} {} {x} {y}\"/>\n",
                bottom + SPACE.1 / 2,
                y.saturating_sub(SPACE.1 / 2)
            ));
        }
    }
    for at in here {
        svg.push_str(&boxed(&report.steps[*at], place[*at]));
    }
    svg.push_str("</svg>\n");
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
        format!("{} {}", step.placement, file_name(&step.source.label())),
    ];
    let texts: String = lines
        .iter()
        .enumerate()
        .map(|(number, line)| {
            let (left, top) = (x + 8, y + 16 + number * 16);
            let line = escaped(&shortened(line, LONGEST));
            format!("<text x=\"{left}\" y=\"{top}\">{line}</text>\n")
        })
        .collect();
    let (width, height) = BOX;
    format!(
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\"{class}/>\n{texts}</g>\n",
        escaped(&format!("{}: {} = {}", step.name, step.kind, step.text))
    )
}

/// A label of at most so many characters.
pub(super) fn shortened(line: &str, longest: usize) -> String {
    match line.chars().count() > longest {
        true => line.chars().take(longest - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}
