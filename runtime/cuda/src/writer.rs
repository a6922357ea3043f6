//! The statements of a kernel's function: an output point's indices, its terms, and what becomes of them.
//!
//! Must not know what else a function computes.
//!
//! ```text
//! const unsigned at = …; const ein::whole i0 = …;   for (unsigned point = 0; …) { … }   ein::store(to0[at], Rule::finish(carrier));
//! ```

use crate::expression::{Expressions, Made};
use crate::function::value_type;
use crate::text::{Meaning, Meeting, Parameter, Reason, prefix};
use ein_plan::schedule::segments::segments;
use ein_plan::{Index, IndexId, Kernel, Node, NodeId, Reduction};
use std::fmt::Write;

/// The type in which so many points, and a stride more, are counted.
fn counter(points: u64) -> &'static str {
    match points < 1 << 31 {
        true => "unsigned",
        false => "ein::bits",
    }
}

/// The writer of one kernel's statements.
pub(crate) struct Writer<'a> {
    kernel: &'a Kernel,
    expressions: Expressions<'a>,
    depends: Vec<u128>,
    rank: usize,
    /// The types in which output points and terms are counted.
    outputs: &'static str,
    terms: &'static str,
    /// The threads that compute an output point.
    pub meeting: Meeting,
    /// The member of a group that the kernel is.
    member: Option<usize>,
    /// The reduced index that runs from the one end of a segment to the other.
    segment: Option<IndexId>,
    /// The places that a result's columns are stored to.
    pub targets: Vec<Vec<String>>,
}

impl<'a> Writer<'a> {
    /// Of a kernel alone, or as a member of a group; there, with what earlier members have made of its operands.
    ///
    /// # Errors
    /// Why it has no text.
    pub fn new(kernel: &'a Kernel, member: Option<usize>) -> Result<Writer<'a>, Reason> {
        Writer::reading(kernel, member, vec![])
    }

    /// Of a member of a group of which earlier members have made some operands.
    pub fn reading(
        kernel: &'a Kernel,
        member: Option<usize>,
        made: Vec<Option<Made>>,
    ) -> Result<Writer<'a>, Reason> {
        if kernel.library().is_some() {
            return Err(Reason::Library);
        }
        let rank = kernel.output_rank as usize;
        let count = |indices: &[Index]| {
            let mut extents = indices.iter().map(|index| index.extent);
            let all = extents.try_fold(1u64, u64::checked_mul);
            all.filter(|all| *all < 1 << 62)
        };
        let (outputs, terms) = kernel.indices.split_at(rank);
        let (Some(outputs), Some(terms)) = (count(outputs), count(terms)) else {
            return Err(Reason::TooLarge);
        };
        if kernel.indices.len() > 127 {
            return Err(Reason::TooLarge);
        }
        let expressions = Expressions::new(kernel, prefix(member), made);
        let segment = segments(kernel).filter(|(_, ends)| {
            let mut sides = ends.starts.iter().chain(&ends.ends);
            !sides.any(|(side, _)| expressions.may_fail(*side))
        });
        // Of segments that follow each other, so many terms are one point's.
        let each = match segment {
            Some(_) => terms / outputs.max(1),
            None => terms,
        };
        let targets = (0..kernel.output.len()).map(|column| vec![format!("to{column}[at]")]);
        Ok(Writer {
            expressions,
            segment: segment.map(|(segments, _)| segments.reduced),
            depends: kernel.graph.dependencies(),
            rank,
            outputs: counter(outputs),
            terms: counter(terms),
            meeting: Meeting::of(if kernel.reduction.is_some() { each } else { 1 }),
            member,
            targets: targets.collect(),
            kernel,
        })
    }
}

impl Writer<'_> {
    /// Returns the parameters that it reads: the ranges of its indices, and the operands that no other member has made.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut all = vec![];
        for index in 0..self.kernel.indices.len() {
            all.extend([Meaning::Start(index), Meaning::Length(index)]);
        }
        let needed = self.needed(self.kernel.guard.into_iter().chain([self.kernel.root]));
        for (number, operand) in self.kernel.operands.iter().enumerate() {
            let mut columns = vec![];
            for (id, node, _) in self.kernel.graph.iter() {
                match node {
                    Node::Read {
                        operand, column, ..
                    } if *operand as usize == number && needed[id.0 as usize] => {
                        columns.push(*column as usize);
                    }
                    _ => {}
                }
            }
            columns.sort_unstable();
            columns.dedup();
            if columns.is_empty() || self.expressions.made(number) {
                continue;
            }
            for dim in 0..operand.shape.len() {
                all.push(Meaning::OperandStart(number, dim));
                all.push(Meaning::OperandLength(number, dim));
            }
            let columns = columns.into_iter();
            all.extend(columns.map(|c| Meaning::Column(number, c, operand.columns[c])));
        }
        let all = all.into_iter();
        let of_member = |meaning| Parameter {
            member: self.member,
            meaning,
        };
        all.map(of_member).collect()
    }

    /// True if some point may have no value.
    pub fn may_fail(&self) -> bool {
        let roots = self.kernel.guard.into_iter().chain([self.kernel.root]);
        self.chooses() || roots.into_iter().any(|id| self.expressions.may_fail(id))
    }

    /// True if it has to choose a number, and may have nothing to choose from.
    fn chooses(&self) -> bool {
        self.kernel.finish && self.kernel.reduction.is_some_and(Reduction::is_arg)
    }

    /// The nodes that some are made of, themselves among them.
    fn needed(&self, roots: impl Iterator<Item = NodeId>) -> Vec<bool> {
        let graph = &self.kernel.graph;
        let mut needed = vec![false; graph.len()];
        roots.for_each(|root| needed[root.0 as usize] = true);
        for at in (0..graph.len()).rev() {
            if needed[at] {
                let node = graph.node(NodeId(at as u32));
                node.arguments().for_each(|a| needed[a.0 as usize] = true);
            }
        }
        needed
    }

    /// All that is done at an output point, whose indices are known.
    pub fn point(&self, text: &mut String) {
        let (guard, root) = (self.kernel.guard, self.kernel.root);
        let of_guard = self.needed(guard.into_iter());
        let of_root = self.needed([root].into_iter());
        let reduced = !0u128 << self.rank;
        let once = |at: usize| self.kernel.reduction.is_none() || self.depends[at] & reduced == 0;
        let nodes = |to: &mut String, indent: &str, wanted: &dyn Fn(usize) -> bool| {
            for at in (0..self.kernel.graph.len()).filter(|at| wanted(*at)) {
                let id = NodeId(at as u32);
                self.expressions.statements(id, indent, to);
            }
        };
        // What only the value needs of an element-wise kernel stands behind its guard.
        let first = |at: usize| {
            once(at) && (of_guard[at] || (self.kernel.reduction.is_some() && of_root[at]))
        };
        nodes(text, "    ", &first);
        let indent = match self.kernel.reduction {
            Some(_) => {
                self.segment(text);
                self.loop_begins(text);
                "        "
            }
            None => {
                let kind = value_type(self.kernel.graph.dtype(root));
                let _ = writeln!(text, "    {kind} value = 0;");
                "    "
            }
        };
        nodes(text, indent, &|at| !once(at) && of_guard[at]);
        let inner = format!("{indent}    ");
        let within: &str = match guard {
            Some(guard) => {
                if self.expressions.may_fail(guard) {
                    let _ = writeln!(text, "{indent}wrong |= {};", self.expressions.failed(guard));
                }
                let _ = writeln!(text, "{indent}if ({}) {{", self.expressions.value(guard));
                &inner
            }
            None => indent,
        };
        let rest = |at: usize| of_root[at] && !of_guard[at];
        nodes(text, within, &|at| {
            rest(at) && (!once(at) || self.kernel.reduction.is_none())
        });
        if self.expressions.may_fail(root) {
            let _ = writeln!(text, "{within}wrong |= {};", self.expressions.failed(root));
        }
        let value = self.expressions.value(root);
        let _ = match self.kernel.reduction {
            Some(_) => writeln!(
                text,
                "{within}carrier = Rule::merge(carrier, Rule::single({value}, i{}));",
                self.rank
            ),
            None => writeln!(text, "{within}value = {value};"),
        };
        if guard.is_some() {
            let _ = writeln!(text, "{indent}}}");
        }
        self.results(text);
    }

    /// The output point that a thread works at, and the values of its indices.
    pub fn begins(&self, to: &mut String) {
        let count = self.outputs;
        let number = match self.meeting {
            Meeting::Thread => format!("blockIdx.x * ({count})256 + threadIdx.x"),
            Meeting::Warp => format!("blockIdx.x * ({count})4 + threadIdx.x / 32"),
            Meeting::Block => "blockIdx.x".into(),
        };
        let lengths: Vec<String> = (0..self.rank)
            .map(|i| format!("({count}){}", self.length(i)))
            .collect();
        let all = match lengths.is_empty() {
            true => "1".into(),
            false => lengths.join(" * "),
        };
        let _ = writeln!(to, "    const {count} at = {number};");
        let _ = writeln!(to, "    if (at >= {all}) return;");
        self.indices(to, "    ", ("at", count), 0..self.rank);
    }

    /// The loop over the output points of a row, of which a member of a group has so many as its `columns` say.
    pub fn loop_of_row(&self) -> String {
        let (first, step) = match self.meeting {
            Meeting::Thread => ("threadIdx.x", 256),
            Meeting::Warp => ("threadIdx.x / 32", 8),
            Meeting::Block => ("0", 1),
        };
        let (count, own) = (self.outputs, prefix(self.member));
        format!("for ({count} column = {first}; column < {own}columns; column += {step}) {{")
    }

    /// The indices of an output point of a row: those of the row are as far from their first values as `r0`, `r1`, … say, and the number of the
    /// others together is `column`.
    pub fn begins_in_row(&self, rows: usize, to: &mut String) {
        let (count, own) = (self.outputs, prefix(self.member));
        for index in 0..rows {
            let _ = writeln!(
                to,
                "    const ein::whole i{index} = {own}i{index}_start + r{index};"
            );
        }
        self.indices(to, "    ", ("column", count), rows..self.rank);
    }

    /// How many values an index has: a parameter says it, or the ends of a segment.
    fn length(&self, index: usize) -> String {
        match self.segment {
            Some(IndexId(reduced)) if reduced as usize == index => format!("i{index}_count"),
            _ => prefix(self.member) + &Meaning::Length(index).name(),
        }
    }

    /// The first value of an index.
    fn start(&self, index: usize) -> String {
        match self.segment {
            Some(IndexId(reduced)) if reduced as usize == index => format!("i{index}_from"),
            _ => format!("{}i{index}_start", prefix(self.member)),
        }
    }

    /// The ends of the segment that the terms of an output point are in, within the range of the index that runs through it.
    fn segment(&self, to: &mut String) {
        let Some((segments, ends)) = segments(self.kernel).filter(|_| self.segment.is_some())
        else {
            return;
        };
        let index = segments.reduced.0;
        let own = prefix(self.member);
        let (from, until) = (format!("i{index}_from"), format!("i{index}_until"));
        let mut line = |text: String| {
            let _ = writeln!(to, "    {text}");
        };
        line(format!("ein::whole {from} = {own}i{index}_start;"));
        line(format!(
            "ein::whole {until} = {from} + {own}i{index}_length;"
        ));
        // A number is added to one that is less than the range's end, so that nothing overflows.
        for (side, more) in &ends.starts {
            let x = self.expressions.value(*side);
            line(format!(
                "{from} = {x} >= {until} ? {until} : {x} + {more} > {from} ? {x} + {more} : {from};"
            ));
        }
        for (side, more) in &ends.ends {
            let x = self.expressions.value(*side);
            line(format!("{until} = {x} < {until} ? {x} + {more} : {until};"));
        }
        line(format!(
            "const ein::whole i{index}_count = {until} > {from} ? {until} - {from} : 0;"
        ));
    }

    fn loop_begins(&self, to: &mut String) {
        let count = self.terms;
        let rule = rule(self.kernel);
        let _ = writeln!(to, "    typedef {rule} Rule;");
        let lengths =
            (self.rank..self.kernel.indices.len()).map(|i| format!("({count}){}", self.length(i)));
        let lengths: Vec<String> = lengths.collect();
        let _ = writeln!(to, "    const {count} points = {};", lengths.join(" * "));
        let (first, step) = match self.meeting {
            Meeting::Thread => ("0", "1"),
            Meeting::Warp => ("threadIdx.x % 32", "32"),
            Meeting::Block => ("threadIdx.x", "256"),
        };
        let _ = writeln!(to, "    Rule::Carrier carrier = Rule::neutral();");
        let _ = writeln!(
            to,
            "    for ({count} point = {first}; point < points; point += {step}) {{"
        );
        self.indices(
            to,
            "        ",
            ("point", count),
            self.rank..self.kernel.indices.len(),
        );
    }

    /// Writes the statements of a thread that has all its terms.
    fn results(&self, to: &mut String) {
        if self.kernel.reduction.is_none() {
            self.store(to, "    ", 0, "value");
        } else {
            *to += "    }\n";
            let (merged, is_first) = match self.meeting {
                Meeting::Thread => (None, None),
                Meeting::Warp => (Some("over_warp"), Some("threadIdx.x % 32 == 0")),
                Meeting::Block => (Some("over_block"), Some("threadIdx.x == 0")),
            };
            if let Some(merged) = merged {
                let _ = writeln!(to, "    carrier = ein::{merged}<Rule>(carrier);");
            }
            let indent = match is_first {
                Some(condition) => {
                    let _ = writeln!(to, "    if ({condition}) {{");
                    "        "
                }
                None => "    ",
            };
            if self.kernel.finish {
                self.store(to, indent, 0, "Rule::finish(carrier)");
                if self.chooses() {
                    let _ = writeln!(to, "{indent}wrong |= carrier.second < 0;");
                }
            } else {
                for (column, field) in (0..self.kernel.output.len()).zip(["first", "second"]) {
                    self.store(to, indent, column, &format!("carrier.{field}"));
                }
            }
            if is_first.is_some() {
                *to += "    }\n";
            }
        }
    }

    fn store(&self, to: &mut String, indent: &str, column: usize, value: &str) {
        for target in &self.targets[column] {
            let _ = writeln!(to, "{indent}ein::store({target}, {value});");
        }
    }

    /// The values of some indices at a point whose row-major number among them is known.
    fn indices(
        &self,
        to: &mut String,
        indent: &str,
        (number, count): (&str, &str),
        of: std::ops::Range<usize>,
    ) {
        let mut line = |text: String| {
            let _ = writeln!(to, "{indent}{text}");
        };
        let first = of.start;
        if of.len() > 1 {
            line(format!("{count} {number}_rest = {number};"));
        }
        for index in of.clone().rev() {
            let rest = match of.len() {
                1 => number.to_string(),
                _ => format!("{number}_rest"),
            };
            let begin = format!(
                "const ein::whole i{index} = {} + (ein::whole)",
                self.start(index)
            );
            if index == first {
                line(format!("{begin}{rest};"));
            } else {
                let length = format!("({count}){}", self.length(index));
                line(format!("{begin}({rest} % {length});"));
                line(format!("{rest} /= {length};"));
            }
        }
    }
}

/// The rule of a reduction in the prelude.
fn rule(kernel: &Kernel) -> String {
    let value = value_type(kernel.graph.dtype(kernel.root));
    let name = match kernel.reduction {
        Some(reduction) => rule_name(reduction),
        None => unreachable!("a kernel without a reduction merges nothing"),
    };
    format!("ein::{name}<{value}>")
}

/// The name of a reduction's rule in the prelude.
pub(crate) fn rule_name(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "Sum",
        Reduction::Prod => "Prod",
        Reduction::Max => "Max",
        Reduction::Min => "Min",
        Reduction::Mean => "Mean",
        Reduction::Any => "Any",
        Reduction::All => "All",
        Reduction::ArgMax => "ArgMax",
        Reduction::ArgMin => "ArgMin",
        Reduction::LogSumExp => "LogSumExp",
        Reduction::Norm => "Norm",
        Reduction::Norm1 => "Norm1",
        Reduction::NormInf => "NormInf",
    }
}
