//! The graph of a kernel as statements of CUDA C++, one a node.
//!
//! A thread evaluates every node, also where only an untaken branch needs it, and remembers of each that may have no value (a read outside
//! its operand, a division by zero) whether it has: `x7` beside `v7`. Only what a taken branch needs counts in the end. Reads are made inside
//! their operands whatever the positions are. Must not know which threads evaluate which points.
//!
//! ```text
//! where(a0[i] > 0, a1[i - 1], 0)   ->   const bool x5 = !(p >= 0 && p < a1_length0); … const bool x7 = v3 ? x5 : false;
//! ```

use crate::function::{call, literal, no_value, value_type};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId};
use std::fmt::Write;

/// An operand that an earlier member of a group makes, read at the reader's own row by bare indices.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// The prefix of the names of that member.
    pub prefix: String,
    /// How many of its dimensions are the row's.
    pub rows: usize,
    /// The memory that has it, and the first element of the row there.
    pub row: (String, String),
}

/// The statements of a kernel's nodes.
pub(crate) struct Expressions<'a> {
    kernel: &'a Kernel,
    /// The prefix of the names of parameters.
    prefix: String,
    /// By operand.
    made: Vec<Option<Made>>,
    /// Of each node, if it may have no value.
    may_fail: Vec<bool>,
}

impl<'a> Expressions<'a> {
    /// Of a kernel that is no library operation; `made`, by operand, may be shorter than they are.
    pub fn new(kernel: &'a Kernel, prefix: String, made: Vec<Option<Made>>) -> Expressions<'a> {
        let mut all = Expressions {
            kernel,
            prefix,
            made,
            may_fail: Vec::with_capacity(kernel.graph.len()),
        };
        for (_, node, _) in kernel.graph.iter() {
            let own = match node {
                Node::Read {
                    operand,
                    positions,
                    otherwise,
                    ..
                } => {
                    let shape = &kernel.operands[*operand as usize].shape;
                    let mut dims = positions.iter().zip(shape);
                    otherwise.is_none() && !dims.all(|(at, n)| is_inside(kernel, *at, *n))
                }
                Node::Apply(function, arguments) => all.no_value(*function, arguments).is_some(),
                Node::Constant(_) | Node::Index(_) | Node::Convert(_) => false,
            };
            let inherited = node.arguments().any(|id| all.may_fail(id));
            all.may_fail.push(own || inherited);
        }
        all
    }

    /// Returns whether an earlier member of the group makes an operand.
    pub fn made(&self, operand: usize) -> bool {
        matches!(self.made.get(operand), Some(Some(_)))
    }

    /// Returns whether a node may have no value.
    pub fn may_fail(&self, id: NodeId) -> bool {
        self.may_fail[id.0 as usize]
    }

    /// The value of a node, where its statements have been made.
    pub fn value(&self, id: NodeId) -> String {
        let graph = &self.kernel.graph;
        match graph.node(id) {
            Node::Constant(value) => literal(*value, graph.dtype(id)),
            Node::Index(index) => format!("i{}", index.0),
            _ => format!("v{}", id.0),
        }
    }

    /// Returns the condition that a node has no value, to stand behind its statements.
    pub fn failed(&self, id: NodeId) -> String {
        match self.may_fail(id) {
            true => format!("x{}", id.0),
            false => "false".into(),
        }
    }

    /// The statements of one node; what it is made of has been made before.
    pub fn statements(&self, id: NodeId, indent: &str, to: &mut String) {
        let graph = &self.kernel.graph;
        let (number, kind) = (id.0, value_type(graph.dtype(id)));
        let mut line = |text: String| {
            let _ = writeln!(to, "{indent}{text}");
        };
        let (value, failed) = match graph.node(id) {
            Node::Constant(_) | Node::Index(_) => return,
            Node::Convert(argument) => {
                let from = self.value(*argument);
                let value = match graph.dtype(id) {
                    DType::Bool => format!("{from} != 0"),
                    DType::I32 => format!("ein::to_i32({from})"),
                    DType::I64 => format!("ein::to_i64({from})"),
                    _ => format!("({kind}){from}"),
                };
                (value, self.any_failed(&[*argument]))
            }
            Node::Apply(function, arguments) => {
                let texts: Vec<String> = arguments.iter().map(|a| self.value(*a)).collect();
                let dtype = arguments.first().map_or(DType::Bool, |a| graph.dtype(*a));
                let value = call(*function, dtype, &texts);
                let value = value.expect("a library operation is computed on the cores");
                let failed = match (function, &arguments[..]) {
                    (Function::Select, [condition, yes, no]) => {
                        let branch = match (self.may_fail(*yes), self.may_fail(*no)) {
                            (false, false) => vec![],
                            _ => vec![format!(
                                "({} ? {} : {})",
                                texts[0],
                                self.failed(*yes),
                                self.failed(*no)
                            )],
                        };
                        [self.any_failed(&[*condition]), branch].concat()
                    }
                    _ => {
                        let own = self.no_value(*function, arguments);
                        let own = own.map(|condition| format!("({condition})"));
                        [self.any_failed(arguments), own.into_iter().collect()].concat()
                    }
                };
                (value, failed)
            }
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => {
                let (inside, element) = self.element(*operand, *column, positions);
                let mut failed = self.any_failed(positions);
                let value = match inside {
                    None => element,
                    Some(inside) => {
                        line(format!("const bool inside{number} = {inside};"));
                        let else_value = match otherwise {
                            Some(otherwise) => {
                                if self.may_fail(*otherwise) {
                                    failed.push(format!("(!inside{number} && x{})", otherwise.0));
                                }
                                self.value(*otherwise)
                            }
                            None => {
                                failed.push(format!("!inside{number}"));
                                format!("({kind})0")
                            }
                        };
                        format!("inside{number} ? {element} : {else_value}")
                    }
                };
                (value, failed)
            }
        };
        line(format!("const {kind} v{number} = {value};"));
        if self.may_fail(id) {
            let failed = match failed.is_empty() {
                true => "false".into(),
                false => failed.join(" || "),
            };
            line(format!("const bool x{number} = {failed};"));
        }
    }

    /// The flags of those that may have no value.
    fn any_failed(&self, ids: &[NodeId]) -> Vec<String> {
        let may_fail = ids.iter().filter(|id| self.may_fail(**id));
        may_fail.map(|id| self.failed(*id)).collect()
    }

    fn no_value(&self, function: Function, arguments: &[NodeId]) -> Option<String> {
        let graph = &self.kernel.graph;
        let texts: Vec<String> = arguments.iter().map(|a| self.value(*a)).collect();
        let constant = match graph.node(*arguments.get(1)?) {
            Node::Constant(value) => Some(*value),
            _ => None,
        };
        no_value(function, graph.dtype(arguments[0]), &texts, constant)
    }

    /// The condition that positions lie in the operand's part (`None`: they do), and the value of the element there.
    fn element(&self, operand: u32, column: u32, positions: &[NodeId]) -> (Option<String>, String) {
        if let Some(Some(made)) = self.made.get(operand as usize) {
            return (None, self.made_element(made, positions));
        }
        let shape = &self.kernel.operands[operand as usize].shape;
        let own = format!("{}a{operand}", self.prefix);
        let (mut inside, mut dims) = (vec![], vec![]);
        for (dim, (position, extent)) in positions.iter().zip(shape).enumerate() {
            let local = format!("({} - {own}_start{dim})", self.value(*position));
            if !is_inside(self.kernel, *position, *extent) {
                inside.push(format!("(ein::bits){local} < (ein::bits){own}_length{dim}"));
            }
            dims.push((local, format!("{own}_length{dim}")));
        }
        let element = format!("ein::value({own}_{column}[{}])", row_major(dims));
        let inside = (!inside.is_empty()).then(|| inside.join(" && "));
        (inside, element)
    }

    fn made_element(&self, made: &Made, positions: &[NodeId]) -> String {
        let own = &made.prefix;
        let dims = positions.iter().enumerate().skip(made.rows);
        let dims = dims.map(|(dim, position)| {
            let local = format!("({} - {own}i{dim}_start)", self.value(*position));
            (local, format!("{own}i{dim}_length"))
        });
        let (memory, first) = &made.row;
        format!("ein::value({memory}[{first}{}])", row_major(dims.collect()))
    }
}

/// The row-major number of a place: by dimension, the place and the length.
fn row_major(dims: Vec<(String, String)>) -> String {
    let number = dims
        .into_iter()
        .fold(None, |before: Option<String>, (at, length)| {
            Some(match before {
                None => at,
                Some(before) => format!("({before} * {length} + {at})"),
            })
        });
    number.unwrap_or_else(|| "0".into())
}

/// Returns whether a position lies in a dimension of so many elements for all values of the indices.
fn is_inside(kernel: &Kernel, position: NodeId, extent: u64) -> bool {
    let reach = |graph: &Graph| {
        let form = graph.as_affine(position)?;
        form.reach(|index| kernel.indices[index.0 as usize].extent, None)
    };
    reach(&kernel.graph).is_some_and(|(low, high)| low >= 0 && (high as u64) < extent)
}
