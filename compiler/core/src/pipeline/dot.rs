//! A plan as a graph in the DOT language of Graphviz.
//!
//! Boxes are local steps, ellipses are collectives; edges carry what moves. A loop is a cluster; dashed edges go from what
//! a round ends with to what the next one begins with. Must not know plans, only reports.
//!
//! ```text
//! digraph plan { s2 [shape=ellipse, label="broadcast B\n6.7e7 floats"]; s1 -> s2; … }
//! ```

use super::report::{PlanReport, PlanStep};

/// The graph.
pub fn dot(report: &PlanReport) -> String {
    let mut text = format!(
        "digraph plan {{\n  label={};\n  node [fontname=\"monospace\"];\n",
        quoted(&format!(
            "{} on {} sites: {} floats",
            report.program, report.sites, report.cost.transfer
        ))
    );
    let loops = report.loops_of_steps();
    let mut open: Vec<usize> = vec![];
    for (step, within) in report.steps.iter().zip(loops) {
        let path = path(report, within);
        let common = open.iter().zip(&path).take_while(|(a, b)| a == b).count();
        text.push_str(&"  }\n".repeat(open.len() - common));
        for number in &path[common..] {
            let label = &report.loops[*number];
            let label = format!("repeat {}\n{} rounds expected", label.text, label.rounds);
            text.push_str(&format!(
                "  subgraph cluster_{number} {{\n  label={};\n",
                quoted(&label)
            ));
        }
        open = path;
        text.push_str(&node(step));
    }
    text.push_str(&"  }\n".repeat(open.len()));
    for step in &report.steps {
        for input in &step.inputs {
            text.push_str(&format!("  s{input} -> s{};\n", step.step));
        }
    }
    for state in report.loops.iter().flat_map(|of| &of.states) {
        for value in &state.values {
            // What is behind the loop is the value of its last round; the next round goes against the flow.
            let back = match *value > state.next {
                true => "",
                false => ", constraint=false",
            };
            text.push_str(&format!(
                "  s{} -> s{value};\n  s{} -> s{value} [style=dashed{back}];\n",
                state.initial, state.next
            ));
        }
    }
    for (number, output) in report.outputs.iter().enumerate() {
        let name = quoted(&format!("output {}", output.name));
        text.push_str(&format!(
            "  o{number} [shape=plaintext, label={name}];\n  s{} -> o{number};\n",
            output.step
        ));
    }
    text.push_str("}\n");
    text
}

/// A loop and those around it, the outermost first.
fn path(report: &PlanReport, within: Option<usize>) -> Vec<usize> {
    let parent = |number: &usize| report.loops[*number].parent;
    let mut path: Vec<usize> = std::iter::successors(within, parent).collect();
    path.reverse();
    path
}

fn node(step: &PlanStep) -> String {
    let shape = if step.moves() { "ellipse" } else { "box" };
    let mut label = format!("{}\n{}\n{}", step.name, step.text, step.kind);
    if step.transfer > 0 {
        label.push_str(&format!("\n{} floats", step.transfer));
    }
    let label = quoted(&label);
    format!("  s{} [shape={shape}, label={label}];\n", step.step)
}

/// A DOT string: quotes and backslashes escaped, line breaks as `\n`.
fn quoted(text: &str) -> String {
    let inner: String = text
        .chars()
        .map(|c| match c {
            '"' => "\\\"".into(),
            '\\' => "\\\\".into(),
            '\n' => "\\n".into(),
            other => String::from(other),
        })
        .collect();
    format!("\"{inner}\"")
}
