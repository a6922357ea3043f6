//! Reads that a condition or an `else` leaves out, as reads that take place at every point.
//!
//! Such a read takes the first row where it did not take place, and what chose it goes on doing so: a position outside of the dimension
//! stops the run where it did, and nowhere else. Must not know what becomes of the reads.
//!
//! ```text
//! [n: 64] where(tok[n] > 5, x[tok[n]], 0.0)   =>   [n: 64] where(tok[n] > 5, x[where(tok[n] > 5, tok[n], 0)], 0.0)
//! ```

use crate::rules::may_fault_in;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};

/// Conditions that all hold: nodes that are true, or not.
pub(super) type Conditions = Vec<(NodeId, bool)>;

/// A read, and the conditions under which it takes place.
pub(super) struct Candidate {
    pub(super) read: NodeId,
    pub(super) conditions: Conditions,
}

impl Candidate {
    /// Returns the condition that the read takes place: all conditions hold, and so does `inside`, which is asked under them. What may stop the
    /// run is looked at only where the conditions in front of it hold, as it was.
    fn all(
        &self,
        kernel: &Kernel,
        graph: &mut Graph,
        (kept, inside): (&[NodeId], Option<NodeId>),
    ) -> Option<NodeId> {
        let mut positions = kernel.graph.node(self.read).arguments();
        let mut may_stop = positions.any(|position| may_fault_in(kernel, position));
        let mut all = inside;
        for (condition, holds) in self.conditions.iter().rev() {
            let own = kept[condition.0 as usize];
            let own = match holds {
                true => own,
                false => graph.add(Node::Apply(Function::Not, vec![own]), DType::Bool),
            };
            all = Some(match all {
                None => own,
                Some(inner) if may_stop => {
                    let no = graph.add(Node::Constant(Scalar::Bool(false)), DType::Bool);
                    graph.add(
                        Node::Apply(Function::Select, vec![own, inner, no]),
                        DType::Bool,
                    )
                }
                Some(inner) => both(graph, own, inner),
            });
            may_stop |= may_fault_in(kernel, *condition);
        }
        all
    }
}

/// Where a node is evaluated.
#[derive(Clone, PartialEq)]
enum Evaluated {
    Nowhere,
    Under(Conditions),
    /// Where one of several conditions holds.
    UnderSome,
}

impl Evaluated {
    /// Here, and also where another node needs it.
    fn also(&mut self, other: Evaluated) {
        let everywhere = Evaluated::Under(vec![]);
        *self = match (&*self, other) {
            (Evaluated::Nowhere, other) => other,
            (own, other) if *own == everywhere || other == everywhere => everywhere,
            (own, other) if *own == other => other,
            _ => Evaluated::UnderSome,
        };
    }

    /// Where a condition holds, too.
    fn and(&self, condition: NodeId, holds: bool) -> Evaluated {
        match self {
            Evaluated::Under(all) => {
                let all = all.iter().copied().chain([(condition, holds)]);
                Evaluated::Under(all.collect())
            }
            other => other.clone(),
        }
    }
}

/// By node: the conditions under which it is evaluated, at points of the output and of what is reduced; nothing if one of several will do. A value
/// is not where a guard fails, nor is the branch of a select that is not taken.
pub(super) fn conditions(kernel: &Kernel) -> Vec<Option<Conditions>> {
    let mut all = vec![Evaluated::Nowhere; kernel.graph.len()];
    let everywhere = Evaluated::Under(vec![]);
    let root = match kernel.guard {
        Some(guard) => {
            all[guard.0 as usize] = everywhere.clone();
            everywhere.and(guard, true)
        }
        None => everywhere,
    };
    all[kernel.root.0 as usize].also(root);
    for at in (0..all.len()).rev() {
        let own = all[at].clone();
        let mut needs = |node: NodeId, there: Evaluated| all[node.0 as usize].also(there);
        match kernel.graph.node(NodeId(at as u32)) {
            _ if own == Evaluated::Nowhere => {}
            Node::Apply(Function::Select, arguments) => {
                needs(arguments[0], own.clone());
                needs(arguments[1], own.and(arguments[0], true));
                needs(arguments[2], own.and(arguments[0], false));
            }
            Node::Read { positions, .. } => {
                positions.iter().for_each(|p| needs(*p, own.clone()));
            }
            node => node.arguments().for_each(|a| needs(a, own.clone())),
        }
    }
    let all = all.into_iter().map(|evaluated| match evaluated {
        Evaluated::Under(conditions) => Some(conditions),
        _ => None,
    });
    all.collect()
}

/// The kernel in which these reads take place at every point, at the first element where they did not, and where they are.
pub(super) fn everywhere(kernel: &Kernel, candidates: &[Candidate]) -> (Kernel, Vec<NodeId>) {
    let mut graph = Graph::default();
    let kept = graph.append(&kernel.graph, |graph, _, node, dtype| {
        graph.add(node, dtype)
    });
    let mut reads = vec![];
    let moved = graph.append(&kernel.graph, |graph, id, node, dtype| {
        let candidate = candidates.iter().find(|candidate| candidate.read == id);
        let (
            Some(candidate),
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            },
        ) = (candidate, node.clone())
        else {
            return graph.add(node, dtype);
        };
        let shape = &kernel.operands[operand as usize].shape;
        let mut inside = vec![];
        for (position, extent) in positions.iter().zip(shape) {
            if otherwise.is_some() && !is_inside(kernel, graph, *position, *extent) {
                for (function, end) in [(Function::Ge, 0), (Function::Lt, *extent as i64)] {
                    let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
                    inside
                        .push(graph.add(Node::Apply(function, vec![*position, end]), DType::Bool));
                }
            }
        }
        let inside = inside.into_iter().reduce(|a, b| both(graph, a, b));
        let all = candidate.all(kernel, graph, (&kept, inside));
        let zero = graph.add(Node::Constant(Scalar::Int(0)), DType::I64);
        let positions = positions
            .iter()
            .zip(shape)
            .map(|(position, extent)| match all {
                Some(all) if !is_inside(kernel, graph, *position, *extent) => {
                    let chosen = Node::Apply(Function::Select, vec![all, *position, zero]);
                    graph.add(chosen, DType::I64)
                }
                _ => *position,
            });
        let read = Node::Read {
            operand,
            column,
            positions: positions.collect(),
            otherwise: None,
        };
        let read = graph.add(read, dtype);
        reads.push(read);
        match (inside, otherwise) {
            (Some(inside), Some(other)) => {
                let chosen = Node::Apply(Function::Select, vec![inside, read, other]);
                graph.add(chosen, dtype)
            }
            _ => read,
        }
    });
    let place = |id: NodeId| moved[id.0 as usize];
    let everywhere = Kernel {
        root: place(kernel.root),
        guard: kernel.guard.map(place),
        graph,
        ..kernel.clone()
    };
    (everywhere, reads)
}

fn both(graph: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    graph.add(Node::Apply(Function::And, vec![a, b]), DType::Bool)
}

/// True if a position is inside of a dimension at every point.
fn is_inside(kernel: &Kernel, graph: &Graph, position: NodeId, extent: u64) -> bool {
    let of = |index: IndexId| kernel.indices[index.0 as usize].extent;
    let reach = graph
        .as_affine(position)
        .and_then(|form| form.reach(of, None));
    reach.is_some_and(|(low, high)| low >= 0 && u64::try_from(high).is_ok_and(|high| high < extent))
}
