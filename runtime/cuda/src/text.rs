//! The text of a kernel: a function of CUDA C++ that computes an output point by a thread, a warp or a block.
//!
//! A thread takes the terms of an output point alone where there are fewer than [`WARP`], 32 threads do where there are fewer than [`BLOCK`],
//! else 256. That, and so the order of a reduction and its bits, follows from the kernel alone. The ranges of a tuple are parameters. Where a
//! point has no value, a flag is set and nothing else is said: the cores find the first such point. Must not know how a text is compiled.
//!
//! ```text
//! [i: 6 | k: 9] f32 = sum a0[i, k]   ->   for (unsigned point = 0; point < points; point += 1) { … carrier = Rule::merge(carrier, …); }
//! ```

use crate::expression::Expressions;
use crate::function::{stored_type, value_type};
use ein_plan::{DType, Kernel, LoopKernel, LoopKind, Node, NodeId, Reduction};
use std::fmt::{self, Write};

/// From so many terms on, a warp computes an output point.
const WARP: u64 = 32;
/// From so many terms on, a block does.
const BLOCK: u64 = 2048;

/// The most characters of a line of parameters.
const WIDTH: usize = 140;

/// Why a kernel is computed on the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is a library operation.
    Library,
    /// It is a matrix product, which a library is better at.
    Product,
    /// It has an index of which nothing can be counted in 64 bits, or too many indices.
    TooLarge,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Library => "a library operation",
            Reason::Product => "a matrix product",
            Reason::TooLarge => "it has too many indices or points",
        })
    }
}

/// A parameter of a kernel's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The first global number of an index.
    Start(usize),
    /// How many values an index has.
    Length(usize),
    /// The global number at which a dimension of an operand begins.
    OperandStart(usize, usize),
    /// Elements of a dimension of an operand.
    OperandLength(usize, usize),
    /// A column of an operand.
    Column(usize, usize, DType),
    /// A column of the result.
    Result(usize, DType),
    /// The flag that is set where a point has no value.
    Flag,
    /// A number that the text names itself.
    Number(usize),
}

impl Parameter {
    /// Its name in the text.
    pub fn name(&self) -> String {
        match self {
            Parameter::Start(i) => format!("i{i}_start"),
            Parameter::Length(i) => format!("i{i}_length"),
            Parameter::OperandStart(o, d) => format!("a{o}_start{d}"),
            Parameter::OperandLength(o, d) => format!("a{o}_length{d}"),
            Parameter::Column(o, c, _) => format!("a{o}_{c}"),
            Parameter::Result(c, _) => format!("to{c}"),
            Parameter::Flag => "flag".into(),
            Parameter::Number(n) => format!("n{n}"),
        }
    }

    /// Its type in the text.
    pub fn kind(&self) -> String {
        match self {
            Parameter::Column(_, _, dtype) => format!("ein::In<{}>", stored_type(*dtype)),
            Parameter::Result(_, dtype) => format!("ein::Out<{}>", stored_type(*dtype)),
            Parameter::Flag => "ein::Out<int>".into(),
            _ => "ein::whole".into(),
        }
    }

    /// The type of its elements, if it is memory.
    pub fn elements(&self) -> Option<&'static str> {
        match self {
            Parameter::Column(_, _, dtype) | Parameter::Result(_, dtype) => {
                Some(stored_type(*dtype))
            }
            Parameter::Flag => Some("int"),
            _ => None,
        }
    }
}

/// The threads that compute an output point together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// One.
    Thread,
    /// The 32 of a warp.
    Warp,
    /// The 256 of a block.
    Block,
}

impl Meeting {
    fn of(terms: u64) -> Meeting {
        match terms {
            0..WARP => Meeting::Thread,
            WARP..BLOCK => Meeting::Warp,
            _ => Meeting::Block,
        }
    }

    /// The threads of a block, and how many output points it computes.
    pub fn block(self) -> (u32, u64) {
        match self {
            Meeting::Thread => (256, 256),
            Meeting::Warp => (128, 4),
            Meeting::Block => (256, 1),
        }
    }
}

/// A function of CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Its statements.
    pub body: String,
    /// The threads that work together.
    pub meeting: Meeting,
}

impl Text {
    /// The function under a name.
    pub fn function(&self, name: &str) -> String {
        let mut all = format!("extern \"C\" __global__ void {name}(");
        let mut length = all.len();
        for (number, parameter) in self.parameters.iter().enumerate() {
            let text = format!("{} {}", parameter.kind(), parameter.name());
            let comma = if number > 0 { "," } else { "" };
            all += comma;
            if length + text.len() > WIDTH {
                all += "\n    ";
                length = 4;
            } else if number > 0 {
                all.push(' ');
            }
            length += text.len() + 2;
            all += &text;
        }
        all + ") {\n" + &self.body + "}\n"
    }
}

/// What stands in front of all functions: the part that is the same for every compiler.
pub fn prelude() -> &'static str {
    include_str!("prelude.cuh")
}

/// The text of a kernel of a plan, unless something else than generated loops computes it.
///
/// # Errors
/// Why it has none.
pub fn scheduled(kernel: &Kernel, loops: &LoopKernel) -> Result<Text, Reason> {
    match loops.kind {
        LoopKind::Matmul(_) => Err(Reason::Product),
        _ => text(kernel),
    }
}

/// The text of a kernel.
///
/// # Errors
/// Why it has none.
pub fn text(kernel: &Kernel) -> Result<Text, Reason> {
    if kernel.library().is_some() {
        return Err(Reason::Library);
    }
    let rank = kernel.output_rank as usize;
    let count = |indices: &[ein_plan::Index]| {
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
    let writer = Writer {
        kernel,
        expressions: Expressions::new(kernel),
        depends: kernel.graph.dependencies(),
        rank,
        outputs: counter(outputs),
        terms: counter(terms),
        meeting: Meeting::of(if kernel.reduction.is_some() { terms } else { 1 }),
    };
    Ok(Text {
        parameters: writer.parameters(),
        meeting: writer.meeting,
        body: writer.body(),
    })
}

/// The type in which so many points, and a stride more, are counted.
fn counter(points: u64) -> &'static str {
    match points < 1 << 31 {
        true => "unsigned",
        false => "ein::bits",
    }
}

struct Writer<'a> {
    kernel: &'a Kernel,
    expressions: Expressions<'a>,
    depends: Vec<u128>,
    rank: usize,
    outputs: &'static str,
    terms: &'static str,
    meeting: Meeting,
}

impl Writer<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        let mut all = vec![];
        for index in 0..self.kernel.indices.len() {
            all.extend([Parameter::Start(index), Parameter::Length(index)]);
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
            if columns.is_empty() {
                continue;
            }
            for dim in 0..operand.shape.len() {
                all.push(Parameter::OperandStart(number, dim));
                all.push(Parameter::OperandLength(number, dim));
            }
            let columns = columns.into_iter();
            all.extend(columns.map(|c| Parameter::Column(number, c, operand.columns[c])));
        }
        let results = self.kernel.output.iter().enumerate();
        all.extend(results.map(|(column, dtype)| Parameter::Result(column, *dtype)));
        if self.may_fail() {
            all.push(Parameter::Flag);
        }
        all
    }

    /// Whether some point may have no value.
    fn may_fail(&self) -> bool {
        let roots = self.kernel.guard.into_iter().chain([self.kernel.root]);
        self.chooses() || roots.into_iter().any(|id| self.expressions.may_fail(id))
    }

    /// Whether it has to choose a number, and may have nothing to choose from.
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

    fn body(&self) -> String {
        let mut text = String::new();
        self.place(&mut text);
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
        if self.may_fail() {
            text += "    bool wrong = false;\n";
        }
        // What only the value needs of an element-wise kernel stands behind its guard.
        let first = |at: usize| {
            once(at) && (of_guard[at] || (self.kernel.reduction.is_some() && of_root[at]))
        };
        nodes(&mut text, "    ", &first);
        let indent = match self.kernel.reduction {
            Some(_) => {
                self.loop_begins(&mut text);
                "        "
            }
            None => {
                let kind = value_type(self.kernel.graph.dtype(root));
                let _ = writeln!(text, "    {kind} value = 0;");
                "    "
            }
        };
        nodes(&mut text, indent, &|at| !once(at) && of_guard[at]);
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
        nodes(&mut text, within, &|at| {
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
        self.results(&mut text);
        text
    }

    /// The output point that a thread works at, and the values of its indices.
    fn place(&self, to: &mut String) {
        let count = self.outputs;
        let number = match self.meeting {
            Meeting::Thread => format!("blockIdx.x * ({count})256 + threadIdx.x"),
            Meeting::Warp => format!("blockIdx.x * ({count})4 + threadIdx.x / 32"),
            Meeting::Block => "blockIdx.x".into(),
        };
        let lengths: Vec<String> = (0..self.rank)
            .map(|i| format!("({count})i{i}_length"))
            .collect();
        let all = match lengths.is_empty() {
            true => "1".into(),
            false => lengths.join(" * "),
        };
        let _ = writeln!(to, "    const {count} at = {number};");
        let _ = writeln!(to, "    if (at >= {all}) return;");
        indices(to, "    ", ("at", count), 0..self.rank);
    }

    fn loop_begins(&self, to: &mut String) {
        let count = self.terms;
        let rule = rule(self.kernel);
        let _ = writeln!(to, "    typedef {rule} Rule;");
        let lengths =
            (self.rank..self.kernel.indices.len()).map(|i| format!("({count})i{i}_length"));
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
        indices(
            to,
            "        ",
            ("point", count),
            self.rank..self.kernel.indices.len(),
        );
    }

    /// What a thread does when it has all its terms.
    fn results(&self, to: &mut String) {
        if self.kernel.reduction.is_none() {
            *to += "    ein::store(to0[at], value);\n";
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
                let _ = writeln!(to, "{indent}ein::store(to0[at], Rule::finish(carrier));");
                if self.chooses() {
                    let _ = writeln!(to, "{indent}wrong |= carrier.second < 0;");
                }
            } else {
                for (column, field) in (0..self.kernel.output.len()).zip(["first", "second"]) {
                    let _ = writeln!(to, "{indent}ein::store(to{column}[at], carrier.{field});");
                }
            }
            if is_first.is_some() {
                *to += "    }\n";
            }
        }
        if self.may_fail() {
            *to += "    if (wrong) flag[0] = 1;\n";
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

/// The values of some indices at a point whose row-major number is known.
fn indices(
    to: &mut String,
    indent: &str,
    (number, count): (&str, &str),
    of: std::ops::Range<usize>,
) {
    if of.is_empty() {
        return;
    }
    let first = of.start;
    if of.len() == 1 {
        let _ = writeln!(
            to,
            "{indent}const ein::whole i{first} = i{first}_start + (ein::whole){number};"
        );
        return;
    }
    let rest = format!("{number}_rest");
    let _ = writeln!(to, "{indent}{count} {rest} = {number};");
    for index in of.rev() {
        if index == first {
            let _ = writeln!(
                to,
                "{indent}const ein::whole i{index} = i{index}_start + (ein::whole){rest};"
            );
        } else {
            let length = format!("({count})i{index}_length");
            let _ = writeln!(
                to,
                "{indent}const ein::whole i{index} = i{index}_start + (ein::whole)({rest} % {length});"
            );
            let _ = writeln!(to, "{indent}{rest} /= {length};");
        }
    }
}
