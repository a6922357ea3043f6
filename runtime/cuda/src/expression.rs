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

/// The statements of a kernel's nodes.
pub(crate) struct Expressions<'a> {
    kernel: &'a Kernel,
    /// Of each node, if it may have no value.
    may_fail: Vec<bool>,
}

impl<'a> Expressions<'a> {
    /// Of a kernel that is no library operation.
    pub fn new(kernel: &'a Kernel) -> Expressions<'a> {
        let mut all = Expressions {
            kernel,
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

    /// Whether a node may have no value.
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

    /// Whether a node has no value, where its statements have been made.
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
                let (inside, place) = self.place(*operand, positions);
                let element = format!("ein::value(a{operand}_{column}[{place}])");
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

    /// The condition that positions lie in the operand's part (`None`: they do), and the number of the element there.
    fn place(&self, operand: u32, positions: &[NodeId]) -> (Option<String>, String) {
        let shape = &self.kernel.operands[operand as usize].shape;
        let (mut inside, mut place) = (vec![], String::new());
        for (dim, (position, extent)) in positions.iter().zip(shape).enumerate() {
            let local = format!("({} - a{operand}_start{dim})", self.value(*position));
            if !is_inside(self.kernel, *position, *extent) {
                inside.push(format!(
                    "(ein::bits){local} < (ein::bits)a{operand}_length{dim}"
                ));
            }
            place = match place.is_empty() {
                true => local,
                false => format!("({place} * a{operand}_length{dim} + {local})"),
            };
        }
        if place.is_empty() {
            place = "0".into();
        }
        let inside = (!inside.is_empty()).then(|| inside.join(" && "));
        (inside, place)
    }
}

/// Returns whether a position lies in a dimension of so many elements for all values of the indices.
fn is_inside(kernel: &Kernel, position: NodeId, extent: u64) -> bool {
    let reach = |graph: &Graph| {
        let form = graph.as_affine(position)?;
        form.reach(|index| kernel.indices[index.0 as usize].extent, None)
    };
    reach(&kernel.graph).is_some_and(|(low, high)| low >= 0 && (high as u64) < extent)
}
