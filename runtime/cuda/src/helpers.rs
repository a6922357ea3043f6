//! Texts that belong to no kernel: boxes that are copied, carriers that are combined.
//!
//! Must not know how a text is compiled.
//!
//! ```text
//! combine sum of f32: to0[at] = Sum::merge(to0[at], a0_0[at])
//! ```

use crate::function::value_type;
use crate::machine::Argument;
use crate::text::{Meaning, Meeting, Parameter, Text};
use crate::writer::rule_name;
use ein_plan::{DType, Reduction};
use std::fmt::Write;

/// The text that adds a carrier of a reduction to another one, column by column of these types: the next one, and the sum, which is changed; the
/// number of elements comes first.
pub(crate) fn combine(reduction: Reduction, columns: &[DType]) -> Text {
    let mut parameters = vec![Meaning::Number(0).alone()];
    let all = columns.iter().enumerate();
    parameters.extend(all.map(|(column, dtype)| Meaning::Column(0, column, *dtype).alone()));
    let all = columns.iter().enumerate();
    parameters.extend(all.map(|(column, dtype)| Meaning::Result(column, *dtype).alone()));
    let carrier = |array: &str| {
        let values = (0..columns.len()).map(|c| format!("ein::value({array}{c}[at])"));
        values.collect::<Vec<String>>().join(", ")
    };
    let mut body = String::new();
    let _ = writeln!(
        body,
        "    const ein::bits at = blockIdx.x * (ein::bits)256 + threadIdx.x;\n    \
         if (at >= (ein::bits)n0) return;\n    \
         typedef ein::{}<{}> Rule;\n    \
         const Rule::Carrier sum = {{{}}}, next = {{{}}};\n    \
         const Rule::Carrier both = Rule::merge(sum, next);",
        rule_name(reduction),
        value_type(columns[0]),
        carrier("to"),
        carrier("a0_")
    );
    for (column, field) in (0..columns.len()).zip(["first", "second"]) {
        let _ = writeln!(body, "    ein::store(to{column}[at], both.{field});");
    }
    Text {
        parameters,
        body,
        meeting: Meeting::Thread,
    }
}

/// The text that copies a box of so many dimensions of elements of so many bytes. In front of the two arrays stand, for each dimension, the
/// box's extent and the distances between neighbours in both, and then the first elements.
pub(crate) fn copy_box(rank: usize, bytes: usize) -> Text {
    let raw = match bytes {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::I64,
    };
    let mut parameters: Vec<Parameter> = (0..3 * rank + 2)
        .map(|n| Meaning::Number(n).alone())
        .collect();
    parameters.extend([
        Meaning::Column(0, 0, raw).alone(),
        Meaning::Result(0, raw).alone(),
    ]);
    let extents: Vec<String> = (0..rank).map(|d| format!("n{}", 3 * d)).collect();
    let all = match rank {
        0 => "1".into(),
        _ => extents.join(" * "),
    };
    let mut body = String::new();
    let _ = writeln!(
        body,
        "    ein::whole rest = blockIdx.x * (ein::whole)256 + threadIdx.x;\n    \
         if (rest >= {all}) return;\n    \
         ein::whole to = n{}, from = n{};",
        3 * rank,
        3 * rank + 1
    );
    for dim in (0..rank).rev() {
        let _ = writeln!(
            body,
            "    to += rest % n{0} * n{1}; from += rest % n{0} * n{2}; rest /= n{0};",
            3 * dim,
            3 * dim + 1,
            3 * dim + 2
        );
    }
    body += "    to0[to] = a0_0[from];\n";
    Text {
        parameters,
        body,
        meeting: Meeting::Thread,
    }
}

/// A box that is copied: its extents, and where it begins in two arrays.
pub(crate) struct Copied<'a> {
    pub extent: &'a [usize],
    /// Shape of the array that is copied to, and the box's first place there.
    pub to: (&'a [usize], &'a [usize]),
    /// Shape of the array that is copied from, and the box's first place there.
    pub from: (&'a [usize], &'a [usize]),
}

impl Copied<'_> {
    /// The numbers that [`copy_box`] takes.
    pub fn arguments(&self) -> Vec<Argument> {
        let (to, from) = (strides(self.to.0), strides(self.from.0));
        let mut all = vec![];
        for (dim, extent) in self.extent.iter().enumerate() {
            all.extend([*extent, to[dim], from[dim]]);
        }
        let first = |strides: &[usize], start: &[usize]| -> usize {
            start
                .iter()
                .zip(strides)
                .map(|(at, stride)| at * stride)
                .sum()
        };
        all.extend([first(&to, self.to.1), first(&from, self.from.1)]);
        let all = all.into_iter();
        all.map(|number| Argument::Whole(number as i64)).collect()
    }
}

/// Row-major distances between neighbours.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}
