//! Statements that read touched tensors: what they are in rows that are not touched, and how they go over the touched ones.
//!
//! Must not know how a sum comes to touch rows.
//!
//! ```text
//! 0.5 * grad[i, h]                   0 in other rows: touched itself
//! sum[i, h] grad[i, h] ^ 2           not changed by other rows: a sum over the touched ones
//! W[i, h] - 0.1 * grad[i, h]         W in other rows: W with the touched rows written
//! W[i, h] * 0.9 - grad[i, h]         needs every row
//! ```

use super::{PatternId, Statement, Touched, TouchedRows, over_points};
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::lists::fill;
use crate::lists::statement::OverList;
use crate::rules::{may_fault, neutral};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};
use std::collections::BTreeMap;

/// A statement over touched rows that gives the same tensor.
pub(super) struct Changed {
    pub statement: (Kernel, Vec<TensorId>),
    /// The rows, if the tensor is 0 in all others.
    pub touched: Option<Touched>,
}

/// How a statement reads touched tensors: those of one pattern, at the row that one of its indices counts.
struct Access {
    pattern: PatternId,
    index: IndexId,
    /// By node that reads one.
    reads: BTreeMap<NodeId, Touched>,
}

impl TouchedRows {
    /// The statement over the rows that are touched, if the others are known.
    pub(super) fn changed(&mut self, about: Statement<'_>) -> Option<Changed> {
        let (_, kernel, operands) = about;
        if kernel.library().is_some() || !kernel.finish || may_fault(kernel) {
            return None;
        }
        let access = self.access(about)?;
        let [dtype] = kernel.output[..] else {
            return None;
        };
        let known = fill::values(&kernel.graph, |id| {
            let is_read = access.reads.contains_key(&id);
            is_read.then(|| fill::zero(kernel.graph.dtype(id)))
        });
        let root = known[kernel.root.0 as usize];
        let is = |value: Scalar| root.is_some_and(|root| fill::is_same(root, value));
        let changes_nothing = match kernel.reduction {
            Some(reduction) => {
                let neutral = neutral(reduction, kernel.graph.dtype(kernel.root));
                neutral.is_some_and(is) && !reduction.is_arg()
            }
            None => kernel.guard.is_none(),
        };
        if !changes_nothing {
            return None;
        }
        if access.index.0 >= kernel.output_rank {
            let all = self.patterns[access.pattern.0].rows;
            let has_all = kernel.indices[access.index.0 as usize].extent == all;
            let over = has_all.then(|| self.over_touched(kernel, operands, &access))?;
            return Some(Changed {
                statement: statement(over.kernel, &over.operands),
                touched: None,
            });
        }
        let zero = is(fill::zero(dtype));
        let old = match zero {
            true => None,
            false => {
                let from = same(&kernel.graph, &known, kernel.root)?;
                Some(operands[kernel.own_element(from)? as usize])
            }
        };
        let rows = self.computed(about, &access);
        Some(Changed {
            statement: self.patched((kernel, dtype), old, &rows),
            touched: zero.then_some(rows),
        })
    }

    /// How a statement reads touched tensors, if it does: by the points of all of them together.
    fn access(&mut self, (tensor, kernel, operands): Statement<'_>) -> Option<Access> {
        let (mut index, mut pattern) = (None, None);
        let mut found = vec![];
        for (id, node, _) in kernel.graph.iter() {
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } = node
            else {
                continue;
            };
            let Some(touched) = self.tensors.get(&operands[*operand as usize]).copied() else {
                continue;
            };
            let at = |id: NodeId| kernel.graph.as_index(id);
            let Some(row) = at(positions[touched.dim]) else {
                continue;
            };
            let alone = positions.iter().filter(|id| at(**id) == Some(row)).count() == 1;
            if alone && *index.get_or_insert(row) == row {
                pattern = match pattern {
                    None => Some(touched.pattern),
                    Some(known) => Some(self.together(tensor, known, touched.pattern)?),
                };
                found.push((id, touched));
            }
        }
        let (index, pattern) = (index?, pattern?);
        let mut reads = BTreeMap::new();
        for (id, touched) in found {
            reads.insert(id, self.by_points_of(tensor, &touched, pattern)?);
        }
        Some(Access {
            pattern,
            index,
            reads,
        })
    }

    /// The touched rows of a tensor that is known in all others.
    fn computed(&mut self, (tensor, kernel, operands): Statement<'_>, access: &Access) -> Touched {
        let over = self.over_touched(kernel, operands, access);
        Touched {
            pattern: access.pattern,
            dim: access.index.0 as usize,
            values: self.hidden(tensor, "rows", over),
        }
    }

    /// The statement with points in the stead of rows. A row that is outside is read as zeros.
    fn over_touched(&self, kernel: &Kernel, operands: &[TensorId], access: &Access) -> OverList {
        let pattern = &self.patterns[access.pattern.0];
        let mut over = over_points(kernel, operands, (access.index, pattern.count));
        let point = over.index(access.index);
        let row = over.read_at(
            (pattern.row, DType::I64, vec![pattern.count]),
            vec![point],
            None,
        );
        let values: BTreeMap<NodeId, u32> = (access.reads.iter())
            .map(|(id, touched)| {
                let values = self.rewriting.result().tensor(touched.values);
                let operand = over.operand(touched.values, values.dtype, values.shape.clone());
                (*id, operand)
            })
            .collect();
        let depends = kernel.graph.dependencies();
        let by_row = |id: NodeId| depends[id.0 as usize] >> access.index.0.min(127) & 1 == 1;
        let moved = over
            .kernel
            .graph
            .append(&kernel.graph, |graph, id, node, dtype| {
                let node = match (node, access.reads.get(&id)) {
                    (Node::Index(own), _) if own == access.index => return row,
                    (
                        Node::Read {
                            column,
                            mut positions,
                            otherwise,
                            ..
                        },
                        Some(touched),
                    ) => {
                        positions[touched.dim] = point;
                        Node::Read {
                            operand: values[&id],
                            column,
                            positions,
                            otherwise,
                        }
                    }
                    (
                        Node::Read {
                            operand,
                            column,
                            positions,
                            otherwise: None,
                        },
                        None,
                    ) if by_row(id) => {
                        let zero = graph.add(Node::Constant(fill::zero(dtype)), dtype);
                        Node::Read {
                            operand,
                            column,
                            positions,
                            otherwise: Some(zero),
                        }
                    }
                    (node, _) => node,
                };
                graph.add(node, dtype)
            });
        over.kernel.root = moved[kernel.root.0 as usize];
        over.kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
        over
    }

    /// The tensor `old`, or zeros, with the touched rows in their places.
    fn patched(
        &self,
        (kernel, dtype): (&Kernel, DType),
        old: Option<TensorId>,
        rows: &Touched,
    ) -> (Kernel, Vec<TensorId>) {
        let pattern = &self.patterns[rows.pattern.0];
        let index = IndexId(rows.dim as u32);
        let rank = kernel.output_rank;
        let outer = kernel.indices[..rank as usize].to_vec();
        let mut shape: Vec<u64> = outer.iter().map(|index| index.extent).collect();
        let mut over = OverList::new(outer, rank, dtype, index);
        let own: Vec<NodeId> = (0..rank).map(|dim| over.index(IndexId(dim))).collect();
        let elsewhere = match old {
            Some(old) => over.read_at((old, dtype, shape.clone()), own.clone(), None),
            None => {
                let (zero, dtype) = (fill::zero(dtype), dtype.compute());
                over.kernel.graph.add(Node::Constant(zero), dtype)
            }
        };
        let at = over.index(index);
        let last = over.read_at(
            (pattern.last, DType::I64, vec![pattern.rows]),
            vec![at],
            None,
        );
        let mut positions = own;
        positions[rows.dim] = last;
        shape[rows.dim] = pattern.count;
        over.kernel.root = over.read_at((rows.values, dtype, shape), positions, Some(elsewhere));
        statement(over.kernel, &over.operands)
    }
}

/// The read that a node is the same as, where some nodes have known values.
fn same(graph: &Graph, known: &[Option<Scalar>], root: NodeId) -> Option<NodeId> {
    let is = |id: NodeId, number: f64| {
        known[id.0 as usize].is_some_and(|value| value.as_f64() == number)
    };
    let mut id = root;
    loop {
        id = match graph.node(id) {
            Node::Read { .. } => return Some(id),
            Node::Apply(Function::Add, sides) if is(sides[0], 0.0) => sides[1],
            Node::Apply(Function::Add | Function::Sub, sides) if is(sides[1], 0.0) => sides[0],
            Node::Apply(Function::Mul, sides) if is(sides[0], 1.0) => sides[1],
            Node::Apply(Function::Mul | Function::Div, sides) if is(sides[1], 1.0) => sides[0],
            Node::Apply(Function::Select, of) => match known[of[0].0 as usize] {
                Some(Scalar::Bool(true)) => of[1],
                Some(Scalar::Bool(false)) => of[2],
                _ => return None,
            },
            _ => return None,
        };
    }
}
