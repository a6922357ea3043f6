//! A plan as a graph in the DOT language of Graphviz.
//!
//! Boxes are local steps, ellipses are collectives; edges carry what moves. Must not know plans, only reports.
//!
//! ```text
//! digraph plan { s2 [shape=ellipse, label="broadcast B\n6.7e7 floats"]; s1 -> s2; … }
//! ```

use super::report::PlanReport;

/// The graph.
pub fn dot(report: &PlanReport) -> String {
    let mut text = format!(
        "digraph plan {{\n  label={};\n  node [fontname=\"monospace\"];\n",
        quoted(&format!(
            "{} on {} sites: {} floats",
            report.program, report.sites, report.cost.transfer
        ))
    );
    for step in &report.steps {
        let shape = if step.moves() { "ellipse" } else { "box" };
        let mut label = format!("{}\n{}\n{}", step.name, step.text, step.kind);
        if step.transfer > 0 {
            label.push_str(&format!("\n{} floats", step.transfer));
        }
        text.push_str(&format!(
            "  s{} [shape={shape}, label={}];\n",
            step.step,
            quoted(&label)
        ));
        for input in &step.inputs {
            text.push_str(&format!("  s{input} -> s{};\n", step.step));
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
