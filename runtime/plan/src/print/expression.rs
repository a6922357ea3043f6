//! The text of a kernel's indices and expressions; the Einstein IR prints its statements with it too.
//!
//! Infix operators for `+ - * /` and comparisons, function names otherwise. What is used more than once and is
//! more than a number, an index or a plain read is named (`$0`) and printed once; so is what would nest deeper
//! than [`MAX_HEIGHT`], so that the text is never longer than a small multiple of the graph and can be read
//! without deep recursion. A number without a suffix is `i64`, or `f32` if it has a point. Must not know what operands are.
//!
//! ```text
//! [i: 4 | k: 6] sum let $0 = exp(A[i, k]) in $0 / ($0 + 1.0) if k <= i
//! ```

use super::{Name, list, reference};
use crate::dtype::{DType, Scalar};
use crate::function::Function;
use crate::kernel::{Graph, Index, IndexId, Kernel, Node, NodeId};
use crate::library;
use std::fmt::Write;

/// Deepest nesting of a printed expression; deeper ones are named.
pub const MAX_HEIGHT: u32 = 40;
/// A position of at most this many parts is printed again rather than named.
const SMALL_POSITION: u32 = 5;

/// `[i: 4, j: 8 | k: 6]`.
pub fn indices(kernel: &Kernel) -> String {
    let one = |index: &Index| format!("{}: {}", Name(&index.name), index.extent);
    let rank = (kernel.output_rank as usize).min(kernel.indices.len());
    let (output, reduced) = kernel.indices.split_at(rank);
    let mut text = format!("[{}", list(output.iter().map(one)));
    if !reduced.is_empty() {
        let bar = if output.is_empty() { "| " } else { " | " };
        text = format!("{text}{bar}{}", list(reduced.iter().map(one)));
    }
    text + "]"
}

/// What stands after the indices: `partial sum let $0 = … in … if …`. `operand` names an operand.
pub fn body(kernel: &Kernel, operand: &dyn Fn(u32) -> String) -> String {
    let mut text = String::new();
    if let Some(reduction) = kernel.reduction {
        if !kernel.finish {
            text.push_str("partial ");
        }
        text.push_str(reduction.name());
        text.push(' ');
    }
    let roots: Vec<NodeId> = [kernel.root].into_iter().chain(kernel.guard).collect();
    let printer = Printer::new(&kernel.graph, &kernel.indices, operand, &roots);
    for (number, node) in printer.shared.iter().enumerate() {
        let start = if number == 0 { "let " } else { ", " };
        let _ = write!(text, "{start}${number} = ");
        printer.write(&mut text, *node, Level::Comparison, true);
    }
    if !printer.shared.is_empty() {
        text.push_str(" in ");
    }
    printer.write(&mut text, kernel.root, Level::Comparison, false);
    if let Some(guard) = kernel.guard {
        text.push_str(" if ");
        printer.write(&mut text, guard, Level::Comparison, false);
    }
    text
}

/// A number; of a compute type, or (`None`) of the type that its form says.
pub fn number(value: Scalar, dtype: Option<DType>) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => match dtype {
            None | Some(DType::I64) => value.to_string(),
            Some(other) => format!("{value}_{other}"),
        },
        Scalar::Float(value) => {
            let suffix = match dtype {
                None | Some(DType::F32) => String::new(),
                Some(other) => format!("_{other}"),
            };
            if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
                format!("nan{suffix}({:#x})", value.to_bits())
            } else if value.is_nan() {
                format!("nan{suffix}")
            } else {
                format!("{value:?}{suffix}")
            }
        }
    }
}

/// How tightly the text around an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Sum,
    Product,
    Sign,
    Atom,
}

/// The infix operator of a function, its level, and the level of its left operand (that of the right one is
/// the next tighter level).
pub(crate) fn infix(function: Function) -> Option<&'static str> {
    Some(match function {
        Function::Add => "+",
        Function::Sub => "-",
        Function::Mul => "*",
        Function::Div => "/",
        Function::Eq => "==",
        Function::Ne => "!=",
        Function::Lt => "<",
        Function::Le => "<=",
        Function::Gt => ">",
        Function::Ge => ">=",
        _ => return None,
    })
}

/// The name under which a function is called in the text.
pub(crate) fn call_name(function: Function) -> &'static str {
    match function {
        Function::Select => "where",
        other => other.name(),
    }
}

struct Printer<'a> {
    graph: &'a Graph,
    indices: &'a [Index],
    operand: &'a dyn Fn(u32) -> String,
    /// Named nodes in the order of their numbers.
    shared: Vec<NodeId>,
    /// The number of a named node.
    names: Vec<Option<u32>>,
}

impl<'a> Printer<'a> {
    fn new(
        graph: &'a Graph,
        indices: &'a [Index],
        operand: &'a dyn Fn(u32) -> String,
        roots: &[NodeId],
    ) -> Printer<'a> {
        let mut uses = vec![0u32; graph.len()];
        for root in roots {
            uses[root.0 as usize] += 1;
        }
        // Users stand after their arguments, so going backwards meets every use of a node before the node.
        for (id, node, _) in graph.iter().collect::<Vec<_>>().into_iter().rev() {
            if uses[id.0 as usize] > 0 {
                for argument in node.arguments() {
                    uses[argument.0 as usize] += 1;
                }
            }
        }
        let mut printer = Printer {
            graph,
            indices,
            operand,
            shared: vec![],
            names: vec![None; graph.len()],
        };
        let mut heights = vec![0u32; graph.len()];
        let mut parts = vec![0u32; graph.len()];
        for (id, node, _) in graph.iter() {
            let at = id.0 as usize;
            if uses[at] == 0 {
                continue;
            }
            heights[at] = node
                .arguments()
                .map(|a| heights[a.0 as usize] + 1)
                .max()
                .unwrap_or(0);
            parts[at] = printer.parts(node, &parts);
            let repeated = uses[at] > 1 && !printer.is_short(node, parts[at]);
            if repeated || heights[at] >= MAX_HEIGHT {
                printer.names[at] = Some(printer.shared.len() as u32);
                printer.shared.push(id);
                heights[at] = 0;
            }
        }
        printer
    }

    /// Number of parts of an affine form of numbers and indices; large for anything else.
    fn parts(&self, node: &Node, parts: &[u32]) -> u32 {
        match node {
            Node::Index(_) | Node::Constant(Scalar::Int(_)) => 1,
            Node::Apply(
                Function::Add | Function::Sub | Function::Mul | Function::Neg,
                arguments,
            ) => arguments
                .iter()
                .map(|a| parts[a.0 as usize])
                .fold(1, u32::saturating_add),
            _ => u32::MAX,
        }
    }

    /// Whether a node is printed again where it is used again.
    fn is_short(&self, node: &Node, parts: u32) -> bool {
        match node {
            Node::Constant(_) | Node::Index(_) => true,
            Node::Read {
                positions,
                otherwise,
                ..
            } => {
                let leaf = |id: &NodeId| {
                    matches!(self.graph.node(*id), Node::Constant(_) | Node::Index(_))
                };
                positions.iter().all(leaf) && otherwise.as_ref().is_none_or(leaf)
            }
            _ => parts <= SMALL_POSITION,
        }
    }

    fn index(&self, index: IndexId) -> String {
        reference(self.indices.iter().map(|i| i.name.as_str()), index.0)
    }

    /// Writes a node where the text around it binds as tightly as `around`; `whole` writes a named node's
    /// expression rather than its name. The depth of the recursion is at most [`MAX_HEIGHT`].
    fn write(&self, text: &mut String, id: NodeId, around: Level, whole: bool) {
        if let Some(number) = self.names[id.0 as usize].filter(|_| !whole) {
            let _ = write!(text, "${number}");
            return;
        }
        let level = self.level(id);
        if level < around {
            text.push('(');
        }
        self.write_bare(text, id);
        if level < around {
            text.push(')');
        }
    }

    fn level(&self, id: NodeId) -> Level {
        match self.graph.node(id) {
            Node::Constant(value) => match value {
                Scalar::Int(x) if *x < 0 => Level::Sign,
                Scalar::Float(x) if !x.is_nan() && x.is_sign_negative() => Level::Sign,
                _ => Level::Atom,
            },
            Node::Apply(function, _) => match function {
                Function::Add | Function::Sub => Level::Sum,
                Function::Mul | Function::Div => Level::Product,
                Function::Neg => Level::Sign,
                other if infix(*other).is_some() => Level::Comparison,
                _ => Level::Atom,
            },
            _ => Level::Atom,
        }
    }

    fn write_bare(&self, text: &mut String, id: NodeId) {
        let dtype = self.graph.dtype(id);
        match self.graph.node(id) {
            Node::Constant(value) => text.push_str(&number(*value, Some(dtype))),
            Node::Index(index) => text.push_str(&self.index(*index)),
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => {
                text.push_str(&(self.operand)(*operand));
                if *column != 0 {
                    let _ = write!(text, "#{column}");
                }
                text.push('[');
                self.write_list(text, positions);
                text.push(']');
                if let Some(otherwise) = otherwise {
                    text.push_str(" else ");
                    // A number, negative or not, needs no bracket; neither does a name.
                    let number = matches!(self.graph.node(*otherwise), Node::Constant(_));
                    let around = if number { Level::Sign } else { Level::Atom };
                    let named = self.names[otherwise.0 as usize].is_some();
                    let bracket = !number && !named;
                    text.push_str(if bracket { "(" } else { "" });
                    let around = if bracket { Level::Comparison } else { around };
                    self.write(text, *otherwise, around, false);
                    text.push_str(if bracket { ")" } else { "" });
                }
            }
            Node::Convert(argument) => {
                let _ = write!(text, "{dtype}(");
                self.write(text, *argument, Level::Comparison, false);
                text.push(')');
            }
            Node::Apply(function, arguments) => self.write_apply(text, *function, arguments),
        }
    }

    fn write_apply(&self, text: &mut String, function: Function, arguments: &[NodeId]) {
        match (function, infix(function), arguments) {
            (_, Some(operator), [left, right]) => {
                let (first, second) = match operator {
                    "+" | "-" => (Level::Sum, Level::Product),
                    "*" | "/" => (Level::Product, Level::Sign),
                    _ => (Level::Sum, Level::Sum),
                };
                self.write(text, *left, first, false);
                let _ = write!(text, " {operator} ");
                self.write(text, *right, second, false);
            }
            (Function::Neg, _, [argument]) => {
                text.push('-');
                // `-2.0` is a number, so the negation of a number has a bracket.
                let number = matches!(self.graph.node(*argument), Node::Constant(_));
                text.push_str(if number { "(" } else { "" });
                let around = if number {
                    Level::Comparison
                } else {
                    Level::Sign
                };
                self.write(text, *argument, around, false);
                text.push_str(if number { ")" } else { "" });
            }
            _ => {
                text.push_str(call_name(function));
                text.push('(');
                match function.is_library() {
                    true => self.write_whole(text, arguments),
                    false => self.write_list(text, arguments),
                }
                text.push(')');
            }
        }
    }

    /// The arguments of a library operation: `A[p, :1, :2]` is read whole along its last two dimensions.
    fn write_whole(&self, text: &mut String, arguments: &[NodeId]) {
        for (number, argument) in arguments.iter().enumerate() {
            text.push_str(if number > 0 { ", " } else { "" });
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                column: 0,
            } = self.graph.node(*argument)
            else {
                self.write(text, *argument, Level::Comparison, false);
                continue;
            };
            text.push_str(&(self.operand)(*operand));
            text.push('[');
            for (number, position) in positions.iter().enumerate() {
                text.push_str(if number > 0 { ", " } else { "" });
                match library::whole_dimension(self.graph, *position) {
                    Some(dimension) => {
                        let _ = write!(text, ":{dimension}");
                    }
                    None => self.write(text, *position, Level::Comparison, false),
                }
            }
            text.push(']');
        }
    }

    fn write_list(&self, text: &mut String, nodes: &[NodeId]) {
        for (number, node) in nodes.iter().enumerate() {
            if number > 0 {
                text.push_str(", ");
            }
            self.write(text, *node, Level::Comparison, false);
        }
    }
}
