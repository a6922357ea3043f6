//! The text of a group of kernels: a block of threads computes all of them at a row, one kernel after the other.
//!
//! The part of a row that a kernel makes and later ones read lies in the block's shared memory where there is room, else in the result's. Each kernel takes
//! its terms in the order in which it takes them alone, so that the bits are the same. Must not know how a text is compiled.
//!
//! ```text
//! m0: max of a row   m1: exp(a0 - m0)   m2: sum of m1   m3: m1 / m2   ->   one function, of which each block reads a row and writes one
//! ```

use crate::expression::Made;
use crate::function::stored_type;
use crate::text::{Meaning, Meeting, Parameter, Text};
use crate::writer::Writer;
use ein_plan::Kernel;
use std::fmt::Write;
use std::ops::Range;

/// Bytes of shared memory that a group takes at most; a GPU has 48 KiB for each block without being asked.
const SHARED: u64 = 40 << 10;
/// A GPU takes 4 KiB of parameters.
const MOST_PARAMETERS: usize = 440;

/// A kernel of a group. It has no guard, and its reduction is finished.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub kernel: &'a Kernel,
    /// By operand: the earlier part that makes it.
    pub made: Vec<Option<usize>>,
    /// True if its result is needed behind the group.
    pub kept: bool,
}

/// Returns whether a kernel that has a text may be a part of a group at so many rows.
pub(crate) fn joins(kernel: &Kernel, rows: usize) -> bool {
    rows > 0
        && kernel.output_rank as usize >= rows
        && kernel.guard.is_none()
        && kernel.output.len() == 1
        && (kernel.reduction.is_none() || kernel.finish)
}

/// Members in stretches that may be groups, of those that may join one; one that may not is a stretch of its own.
pub(crate) fn stretches(join: impl Iterator<Item = bool>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = vec![];
    let mut open = false;
    for (number, joins) in join.enumerate() {
        match all.last_mut() {
            Some(last) if open && joins => last.end = number + 1,
            _ => all.push(number..number + 1),
        }
        open = joins;
    }
    all
}

/// The text of a group at its first `rows` output indices, a block a row; and of each part, whether its result is in memory. `None` if it is too
/// large, or a part has no text.
pub(crate) fn group(parts: &[Part<'_>], rows: usize) -> Option<(Text, Vec<bool>)> {
    let places = places(parts, rows);
    let (mut parameters, mut body) = (vec![], row(rows));
    let mut may_fail = false;
    for (number, part) in parts.iter().enumerate() {
        let made = part
            .made
            .iter()
            .map(|made| made.map(|at| places[at].read(rows)));
        let mut writer = Writer::reading(part.kernel, Some(number), made.collect()).ok()?;
        let place = &places[number];
        writer.targets = vec![place.targets()];
        may_fail |= writer.may_fail();
        parameters.extend(writer.parameters());
        if place.in_memory {
            parameters.push(Parameter {
                member: Some(number),
                meaning: Meaning::Result(0, part.kernel.output[0]),
            });
        }
        place.declare(part.kernel, rows, &mut body);
        let _ = writeln!(body, "    {}", writer.loop_of_row());
        let mut statements = String::new();
        writer.begins_in_row(rows, &mut statements);
        writer.point(&mut statements);
        for line in statements.lines() {
            let _ = writeln!(body, "    {line}");
        }
        body += "    }\n    __syncthreads();\n";
    }
    if may_fail {
        body = format!("    bool wrong = false;\n{body}    if (wrong) flag[0] = 1;\n");
        parameters.push(Meaning::Flag.alone());
    }
    let text = Text {
        parameters,
        body,
        meeting: Meeting::Block,
    };
    let in_memory = places.iter().map(|place| place.in_memory).collect();
    (text.parameters.len() <= MOST_PARAMETERS).then_some((text, in_memory))
}

/// The row that a block works at: how far each of its indices is from its first value.
fn row(rows: usize) -> String {
    let mut text = String::from("    ein::bits row = blockIdx.x;\n");
    for index in (1..rows).rev() {
        let _ = writeln!(
            text,
            "    const ein::whole r{index} = (ein::whole)(row % (ein::bits)m0_i{index}_length);\n    \
             row /= (ein::bits)m0_i{index}_length;"
        );
    }
    text + "    const ein::whole r0 = (ein::whole)row;\n"
}

/// Where what a part makes lies.
struct Place {
    number: usize,
    /// Elements of a row in shared memory, if it is there.
    shared: Option<u64>,
    in_memory: bool,
}

/// Where everything lies.
fn places(parts: &[Part<'_>], rows: usize) -> Vec<Place> {
    let mut left = SHARED;
    let all = parts.iter().enumerate().map(|(number, part)| {
        let later = &parts[number + 1..];
        let read = later.iter().any(|part| part.made.contains(&Some(number)));
        let rank = part.kernel.output_rank as usize;
        let extents = part.kernel.indices[rows..rank].iter();
        let columns = extents
            .map(|index| index.extent)
            .fold(1, u64::saturating_mul);
        let bytes = columns.saturating_mul(part.kernel.output[0].size() as u64);
        let is_shared = read && bytes <= left;
        if is_shared {
            left -= bytes;
        }
        Place {
            number,
            shared: is_shared.then_some(columns.max(1)),
            in_memory: part.kept || !is_shared,
        }
    });
    all.collect()
}

impl Place {
    /// The memory, and the first element of the row there.
    fn row(&self) -> String {
        let own = self.number;
        format!("blockIdx.x * m{own}_columns + ")
    }

    /// Where it is stored.
    fn targets(&self) -> Vec<String> {
        let own = self.number;
        let shared = self.shared.map(|_| format!("s{own}[column]"));
        let memory = (self.in_memory).then(|| format!("m{own}_to0[{}column]", self.row()));
        shared.into_iter().chain(memory).collect()
    }

    /// How a later part reads it.
    fn read(&self, rows: usize) -> Made {
        let own = self.number;
        Made {
            prefix: format!("m{own}_"),
            rows,
            row: match self.shared {
                Some(_) => (format!("s{own}"), String::new()),
                None => (format!("m{own}_to0"), self.row()),
            },
        }
    }

    /// The declarations that stand in front of the part.
    fn declare(&self, kernel: &Kernel, rows: usize, to: &mut String) {
        let own = self.number;
        let dims = rows..kernel.output_rank as usize;
        let lengths: Vec<String> = dims
            .map(|i| format!("(ein::bits)m{own}_i{i}_length"))
            .collect();
        let columns = match lengths.is_empty() {
            true => "1".into(),
            false => lengths.join(" * "),
        };
        let _ = writeln!(to, "    const ein::bits m{own}_columns = {columns};");
        if let Some(elements) = self.shared {
            let kind = stored_type(kernel.output[0]);
            let _ = writeln!(to, "    __shared__ {kind} s{own}[{elements}];");
        }
    }
}
