//! The text of one kernel.
//!
//! The ranges of a tuple are parameters. Where a point has no value, a flag is set and nothing else is said: the cores find the first such point.
//! Must not know how a text is compiled.
//!
//! ```text
//! [i: 6 | k: 9] f32 = sum a0[i, k]   ->   for (unsigned point = 0; point < points; point += 1) { … carrier = Rule::merge(carrier, …); }
//! ```

use crate::text::{Meaning, Reason, Text};
use crate::writer::Writer;
use ein_plan::Kernel;

/// The text of a kernel.
///
/// # Errors
/// Why it has none.
pub fn text(kernel: &Kernel) -> Result<Text, Reason> {
    let writer = Writer::new(kernel, None)?;
    let mut body = String::new();
    writer.begins(&mut body);
    if writer.may_fail() {
        body += "    bool wrong = false;\n";
    }
    writer.point(&mut body);
    if writer.may_fail() {
        body += "    if (wrong) flag[0] = 1;\n";
    }
    let mut parameters = writer.parameters();
    let results = kernel.output.iter().enumerate();
    parameters.extend(results.map(|(column, dtype)| Meaning::Result(column, *dtype).alone()));
    if writer.may_fail() {
        parameters.push(Meaning::Flag.alone());
    }
    Ok(Text {
        parameters,
        meeting: writer.meeting,
        body,
    })
}
