//! A long plan on one screen: a box for each phase of each part of the program, which opens its steps by a click.
//!
//! Sections that are closed are hidden by the style of the page and shown as the target of a link, so that no script is needed. Parts
//! that are too many for one row stand together in one box, which opens a row of its own. Must not know what belongs together.
//!
//! ```text
//! sources     [model] [loss]
//! forward     [model]→[loss]       a click on a box opens <section class="open" id="s2">
//! gradients   [model]←[loss]
//! ```

use super::fold::{Folded, Phase, fold};
use super::steps::{graphs, shortened};
use super::{escaped, number};
use crate::pipeline::report::PlanReport;
use std::collections::BTreeSet;

/// Width of the page, of the names of phases, and the space around boxes, in pixels.
const WIDTH: usize = 1200;
const NAMES: usize = 90;
const SPACE: (usize, usize) = (22, 36);
/// Height and largest width of a box.
const BOX: (usize, usize) = (72, 240);
/// How many boxes stand in a row.
const MOST: usize = 7;
/// Width of a character of a label, in pixels.
const CHARACTER: f64 = 7.3;
/// A plan of at most so many steps is drawn as it is.
pub(super) const SHORT: usize = 12;

/// The plan: its steps where they are few, else an overview, and the sections that its boxes open.
pub(super) fn overview(report: &PlanReport) -> String {
    let all: Vec<usize> = (0..report.steps.len()).collect();
    if all.len() <= SHORT {
        return graphs(report, &all, None);
    }
    let folded = fold(report);
    let mut page = Page {
        report,
        has_gradients: folded.phase.contains(&Phase::Gradient),
        folded,
        sections: vec![],
    };
    let parts: Vec<usize> = (0..page.folded.parts.len()).collect();
    let first = page.rows(&parts);
    format!(
        "<p class=\"hint\">{} steps. A click on a box opens its steps; orange boxes move something.</p>\n{first}{}",
        all.len(),
        page.sections.concat()
    )
}

struct Page<'a> {
    report: &'a PlanReport,
    folded: Folded,
    has_gradients: bool,
    /// The sections that links open.
    sections: Vec<String>,
}

/// A box: steps of one phase of a part, or of several parts that stand together.
struct Cell {
    phase: Phase,
    column: usize,
    title: String,
    steps: Vec<usize>,
    /// The number of the section that it opens.
    section: usize,
}

impl Page<'_> {
    /// A row of boxes for each phase of some parts.
    fn rows(&mut self, parts: &[usize]) -> String {
        let together = parts.len().div_ceil(MOST);
        let columns: Vec<&[usize]> = parts.chunks(together.max(1)).collect();
        let mut cells: Vec<Cell> = vec![];
        for (column, parts) in columns.iter().enumerate() {
            let inner = match parts {
                [_] => None,
                _ => Some(self.inner(parts)),
            };
            for phase in Phase::ALL {
                let is_here = |at: &usize| {
                    self.folded.phase[*at] == phase && parts.contains(&self.folded.part[*at])
                };
                let steps: Vec<usize> = (0..self.report.steps.len()).filter(is_here).collect();
                if steps.is_empty() {
                    continue;
                }
                let title = self.title(parts);
                let section = inner.unwrap_or_else(|| self.section(&title, phase, &steps));
                cells.push(Cell {
                    phase,
                    column,
                    title,
                    steps,
                    section,
                });
            }
        }
        self.drawn(&cells, columns.len())
    }

    fn title(&self, parts: &[usize]) -> String {
        let name = |part: Option<&usize>| part.map_or("", |part| self.folded.parts[*part].as_str());
        match parts {
            [one] => name(Some(one)).to_owned(),
            _ => format!("{} … {}", name(parts.first()), name(parts.last())),
        }
    }

    /// The section of several parts: a row of their own.
    fn inner(&mut self, parts: &[usize]) -> usize {
        let rows = self.rows(parts);
        let title = escaped(&self.title(parts));
        self.add(&format!("<h3>{title}</h3>\n{rows}"))
    }

    /// The section of steps of one part.
    fn section(&mut self, title: &str, phase: Phase, steps: &[usize]) -> usize {
        let text = format!(
            "<h3>{}: {}</h3>\n<p>{} steps, {} floats transferred{}.</p>\n{}",
            escaped(title),
            phase.name(self.has_gradients),
            steps.len(),
            number(self.moved(steps)),
            self.read_from(steps),
            graphs(self.report, steps, None)
        );
        self.add(&text)
    }

    /// Floats that some steps transfer, in all the rounds that they are taken.
    fn moved(&self, steps: &[usize]) -> u64 {
        let steps = steps.iter().map(|at| &self.report.steps[*at]);
        let moved = steps.map(|step| step.transfer.saturating_mul(step.times));
        moved.fold(0, u64::saturating_add)
    }

    /// `; reads model: forward, W`.
    fn read_from(&self, steps: &[usize]) -> String {
        let Folded {
            parts, phase, part, ..
        } = &self.folded;
        // All of them are of one phase of one part.
        let own = steps.first().map(|at| (phase[*at], part[*at]));
        let mut read: Vec<(Phase, usize)> = vec![];
        for from in steps.iter().flat_map(|at| &self.folded.reads[*at]) {
            let from = (phase[*from], part[*from]);
            if Some(from) != own && !read.contains(&from) {
                read.push(from);
            }
        }
        let names = read.into_iter();
        let names = names.map(|(phase, part)| {
            let phase = phase.name(self.has_gradients);
            format!("{}: {phase}", parts[part])
        });
        let names: Vec<String> = names.collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; reads {}", escaped(&names.join(", "))),
        }
    }

    fn add(&mut self, text: &str) -> usize {
        let section = self.sections.len();
        self.sections.push(format!(
            "<section class=\"open\" id=\"s{section}\">\n{text}<p><a href=\"#plan\">close</a></p>\n</section>\n"
        ));
        section
    }

    fn drawn(&self, cells: &[Cell], columns: usize) -> String {
        let phases: Vec<Phase> = (Phase::ALL.into_iter())
            .filter(|phase| cells.iter().any(|cell| cell.phase == *phase))
            .collect();
        let step = ((WIDTH - NAMES) / columns.max(1)).min(BOX.1 + SPACE.0);
        let (width, height) = (
            NAMES + columns * step,
            phases.len() * (BOX.0 + SPACE.1) + SPACE.1 / 2,
        );
        let place = |cell: &Cell| {
            let row = phases.iter().position(|phase| *phase == cell.phase);
            (
                NAMES + cell.column * step,
                SPACE.1 / 2 + row.unwrap_or(0) * (BOX.0 + SPACE.1),
            )
        };
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n"
        );
        for (row, phase) in phases.iter().enumerate() {
            let top = SPACE.1 / 2 + row * (BOX.0 + SPACE.1) + BOX.0 / 2 + 4;
            let name = phase.name(self.has_gradients);
            svg.push_str(&format!("<text x=\"0\" y=\"{top}\">{name}</text>\n"));
        }
        let across = step - SPACE.0;
        for (from, to) in self.edges(cells) {
            let (from, to) = (&cells[from], &cells[to]);
            svg.push_str(&edge((place(from), from), (place(to), to), across));
        }
        for cell in cells {
            svg.push_str(&self.boxed(cell, place(cell), across));
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns which box is read by which, in its own row or the one above.
    fn edges(&self, cells: &[Cell]) -> BTreeSet<(usize, usize)> {
        let mut cell_of = vec![None; self.report.steps.len()];
        for (number, cell) in cells.iter().enumerate() {
            cell.steps.iter().for_each(|at| cell_of[*at] = Some(number));
        }
        let mut edges = BTreeSet::new();
        for (to, cell) in cells.iter().enumerate() {
            let read = cell.steps.iter().flat_map(|at| &self.folded.reads[*at]);
            for from in read.filter_map(|at| cell_of[*at]) {
                let other = &cells[from];
                let is_beside = other.phase == cell.phase && from != to;
                if is_beside || other.phase as usize + 1 == cell.phase as usize {
                    edges.insert((from, to));
                }
            }
        }
        edges
    }

    fn boxed(&self, cell: &Cell, (x, y): (usize, usize), width: usize) -> String {
        let moved = self.moved(&cell.steps);
        let steps = cell.steps.iter().map(|at| &self.report.steps[*at]);
        let work: f64 = steps
            .map(|step| step.flops as f64 * step.times as f64)
            .sum();
        let plural = if cell.steps.len() == 1 { "" } else { "s" };
        let lines = [
            cell.title.clone(),
            format!("{} step{plural}", cell.steps.len()),
            format!("{} flops", rounded(work)),
            match moved {
                0 => "moves nothing".into(),
                _ => format!("moves {}", rounded(moved as f64)),
            },
        ];
        let longest = ((width - 14) as f64 / CHARACTER) as usize;
        let texts: String = (lines.iter().enumerate())
            .map(|(number, line)| {
                let (left, top) = (x + 8, y + 16 + number * 16);
                let line = escaped(&shortened(line, longest));
                format!("<text x=\"{left}\" y=\"{top}\">{line}</text>\n")
            })
            .collect();
        let class = if moved > 0 { " class=\"move\"" } else { "" };
        let phase = cell.phase.name(self.has_gradients);
        let hint = escaped(&format!("{} ({phase})", lines.join(", ")));
        format!(
            "<a href=\"#s{}\"><title>{hint}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"4\"{class}/>\n{texts}</a>\n",
            cell.section, BOX.0
        )
    }
}

/// A line between two boxes: straight to a neighbour, over the boxes between in the same row, or down to the next one.
fn edge(
    (from, source): ((usize, usize), &Cell),
    (to, target): ((usize, usize), &Cell),
    width: usize,
) -> String {
    let middle = from.1 + BOX.0 / 2;
    if source.phase != target.phase {
        let (x, bottom) = (from.0 + width / 2, from.1 + BOX.0);
        let end = to.0 + width / 2;
        return format!(
            "<path d=\"M{x} {bottom} C{x} {} {end} {} {end} {}\"/>\n",
            bottom + SPACE.1 / 2,
            to.1 - SPACE.1 / 2,
            to.1
        );
    }
    match target.column as i64 - source.column as i64 {
        1 => format!("<path d=\"M{} {middle} H{}\"/>\n", from.0 + width, to.0),
        -1 => format!("<path d=\"M{} {middle} H{}\"/>\n", from.0, to.0 + width),
        _ => {
            let (x, end, above) = (from.0 + width / 2, to.0 + width / 2, from.1 - SPACE.1 / 3);
            format!(
                "<path d=\"M{x} {} C{x} {above} {end} {above} {end} {}\"/>\n",
                from.1, to.1
            )
        }
    }
}

/// A number in three digits and a unit: 1.23 M.
fn rounded(value: f64) -> String {
    let units = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(size, _)| value >= *size) {
        Some((size, unit)) => {
            let value = value / size;
            let digits = if value < 10.0 {
                2
            } else {
                usize::from(value < 100.0)
            };
            format!("{value:.digits$} {unit}")
        }
        None => format!("{value}"),
    }
}
