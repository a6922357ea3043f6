//! Parts of a statement over a list that are computed once for each place.
//!
//! A sum over places and further indices is a sum of sums, one a place, if no condition binds them together. What stands beside further
//! indices and depends on the place alone becomes a tensor, too. Must not know why a statement goes over a list.
//!
//! ```text
//! s: f32[9] = [i: 9 | e: 5, h: 4] sum w[e] / z[A.at0[e]] * U[A.at0[e], h] * V[A.at1[e], h] if i == A.at0[e]
//!
//! s.place: f32[5] = [e: 5 | h: 4] sum U[A.at0[e], h] * V[A.at1[e], h]
//! s: f32[9] = [i: 9 | e: 5] sum w[e] / z[A.at0[e]] * s.place[e] if i == A.at0[e]
//! ```

use super::Lists;
use super::statement::OverList;
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::rules::{renamed, summed};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Origin, Reduction};

/// Points beside a place for which what depends on the place alone is worth a tensor.
const LEAST_USES: u64 = 8;

impl Lists {
    /// The statement that reads what is the same for all points of a place. No point of it may stop the run, since all places are computed.
    pub(super) fn split(&mut self, name: &str, over: OverList, origin: Origin) -> OverList {
        let factors = (over.kernel.reduction == Some(Reduction::Sum))
            .then(|| Factors::of(&over))
            .flatten();
        let over = match factors {
            Some(factors) => self.sum_of_sums(name, over, &factors, origin),
            None => over,
        };
        self.once_a_place(name, over, origin)
    }

    /// The sum over places in which the rest of the sum is one number a place.
    fn sum_of_sums(
        &mut self,
        name: &str,
        mut over: OverList,
        factors: &Factors,
        origin: Origin,
    ) -> OverList {
        let (kernel, entry) = (&mut over.kernel, over.entry.0 as usize);
        let dtype = kernel.graph.dtype(kernel.root);
        let product = |graph: &mut Graph, of: &[NodeId]| {
            let both = |a, b| graph.add(Node::Apply(Function::Mul, vec![a, b]), dtype);
            of.iter().copied().reduce(both)
        };
        let Some(rest) = product(&mut kernel.graph, &factors.rest) else {
            return over;
        };
        let indices = kernel.indices[entry..].to_vec();
        let inner = Kernel {
            indices,
            output_rank: 1,
            root: rest,
            guard: None,
            output: vec![dtype],
            ..kernel.clone()
        };
        let inner = renamed(inner.canonical(), &|index| IndexId(index.0 - entry as u32));
        let inner = statement(inner, &over.operands);
        let dotted = self.dotted((name, origin), &inner.0, &inner.1);
        let inner = dotted.unwrap_or(inner);
        let inner = self.made(&format!("{name}.place"), inner, origin);
        over.kernel.indices.truncate(entry + 1);
        let shape = vec![over.kernel.indices[entry].extent];
        let mut root = over.read(inner, dtype, shape, vec![], None);
        let graph = &mut over.kernel.graph;
        if let Some(over) = product(graph, &factors.over) {
            root = graph.add(Node::Apply(Function::Mul, vec![over, root]), dtype);
        }
        if let Some(under) = product(graph, &factors.under) {
            root = graph.add(Node::Apply(Function::Div, vec![root, under]), dtype);
        }
        if factors.negative {
            root = graph.add(Node::Apply(Function::Neg, vec![root]), dtype);
        }
        over.kernel.root = root;
        if over.kernel.output_rank as usize > entry {
            over.kernel = summed(over.kernel);
        }
        over.canonical()
    }

    /// The statement in which the largest parts that depend on the place alone are tensors.
    fn once_a_place(&mut self, name: &str, over: OverList, origin: Origin) -> OverList {
        let OverList {
            kernel,
            operands,
            entry,
        } = &over;
        let own = 1u128 << entry.0.min(127);
        let depends = kernel.graph.dependencies();
        let others = depends[kernel.root.0 as usize] & !own;
        let points = (0u32..)
            .zip(&kernel.indices)
            .filter(|(number, _)| others >> number & 1 == 1)
            .fold(1u64, |n, (_, index)| n.saturating_mul(index.extent));
        if kernel.indices.len() > 127 || points < LEAST_USES {
            return over;
        }
        let mut found = vec![];
        let mut open = vec![kernel.root];
        while let Some(id) = open.pop() {
            let is_number = matches!(kernel.graph.dtype(id), DType::F32 | DType::F64);
            let applied = matches!(kernel.graph.node(id), Node::Apply(..));
            match depends[id.0 as usize] == own && is_number && applied {
                true if !found.contains(&id) => found.push(id),
                true => {}
                false => open.extend(kernel.graph.node(id).arguments()),
            }
        }
        let made: Vec<_> = (found.iter())
            .map(|id| {
                let dtype = kernel.graph.dtype(*id);
                let table = Kernel {
                    indices: vec![kernel.indices[entry.0 as usize].clone()],
                    output_rank: 1,
                    root: *id,
                    guard: None,
                    reduction: None,
                    output: vec![dtype],
                    ..kernel.clone()
                };
                let table = renamed(table.canonical(), &|_| IndexId(0));
                let table = statement(table, operands);
                (
                    *id,
                    self.made(&format!("{name}.factor"), table, origin),
                    dtype,
                )
            })
            .collect();
        reading(over, &made)
    }
}

/// The statement that reads tensors by place in the stead of some nodes.
fn reading(over: OverList, made: &[(NodeId, TensorId, DType)]) -> OverList {
    let OverList {
        kernel,
        operands,
        entry,
    } = over;
    let mut result = OverList {
        kernel: Kernel {
            graph: Graph::default(),
            ..kernel.clone()
        },
        operands,
        entry,
    };
    let shape = vec![kernel.indices[entry.0 as usize].extent];
    let mut moved: Vec<NodeId> = vec![];
    for (id, node, dtype) in kernel.graph.iter() {
        let known = made.iter().find(|(own, ..)| *own == id);
        moved.push(match known {
            Some((_, tensor, stored)) => result.read(*tensor, *stored, shape.clone(), vec![], None),
            None => {
                let node = node.map(|argument| moved[argument.0 as usize]);
                result.kernel.graph.add(node, dtype)
            }
        });
    }
    result.kernel.root = moved[kernel.root.0 as usize];
    result.kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
    result.canonical()
}

impl OverList {
    /// Brings the statement into canonical form.
    fn canonical(self) -> OverList {
        let (kernel, operands) = statement(self.kernel, &self.operands);
        OverList {
            kernel,
            operands,
            ..self
        }
    }
}

/// The terms of a sum as products: `negative`, what is multiplied with and divided by that depends on no reduced index but the place, and the
/// rest.
#[derive(Default)]
struct Factors {
    negative: bool,
    over: Vec<NodeId>,
    under: Vec<NodeId>,
    rest: Vec<NodeId>,
}

impl Factors {
    /// The factors of a sum over further indices, if neither outputs are needed for the rest, nor further indices for the condition.
    fn of(over: &OverList) -> Option<Factors> {
        let kernel = &over.kernel;
        if kernel.indices.len() > 127 {
            return None;
        }
        let own = 1u128 << over.entry.0;
        let first = kernel.output_rank.max(over.entry.0 + 1);
        // Only the place may be given out beside what is reduced.
        let further =
            (first..kernel.indices.len() as u32).fold(0, |set, index| set | 1u128 << index);
        let depends = kernel.graph.dependencies();
        let of = |id: NodeId| depends[id.0 as usize];
        let is_bound = kernel.guard.is_some_and(|guard| of(guard) & further != 0);
        let gives_more = over.entry.0 + 1 < kernel.output_rank;
        if further == 0 || is_bound || gives_more {
            return None;
        }
        let mut factors = Factors::default();
        factors.separate(&kernel.graph, &depends, further, kernel.root);
        let alone = factors
            .rest
            .iter()
            .all(|id| of(*id) & !(own | further) == 0);
        let splits = over.entry.0 >= kernel.output_rank || !factors.is_rest();
        (alone && splits && !factors.rest.is_empty()).then_some(factors)
    }

    /// Returns whether all is rest.
    fn is_rest(&self) -> bool {
        self.over.is_empty() && self.under.is_empty() && !self.negative
    }

    /// Takes a term apart, in the order in which it is written. A product may be long, so factors that wait stand in a list.
    fn separate(&mut self, graph: &Graph, depends: &[u128], further: u128, term: NodeId) {
        let is_fixed = |id: NodeId| depends[id.0 as usize] & further == 0;
        let mut open = vec![term];
        while let Some(id) = open.pop() {
            match graph.node(id) {
                _ if is_fixed(id) => self.over.push(id),
                Node::Apply(Function::Mul, of) => open.extend([of[1], of[0]]),
                Node::Apply(Function::Div, of) if is_fixed(of[1]) => {
                    self.under.push(of[1]);
                    open.push(of[0]);
                }
                Node::Apply(Function::Neg, of) => {
                    self.negative = !self.negative;
                    open.push(of[0]);
                }
                _ => self.rest.push(id),
            }
        }
    }
}
