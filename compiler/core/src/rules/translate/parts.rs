//! Translation of a kernel to an operation on classes; parts that are not looked into are tensors of their own.
//!
//! Must not know statements, nor which classes are shared.
//!
//! ```text
//! [i, j | k] sum A[i, k] * (B[k, j] * 2.0)   ->   sum mul A[0, 2] B[2, 1] 2.0
//! ```

use super::{MOST_FACTORS, Translator};
use crate::einsum::TensorId;
use crate::rules::kernel::{indices_of, may_fault, neutral, renamed};
use crate::rules::laws;
use crate::rules::term::{Argument, Head, Operation};
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId};
use std::collections::HashMap;

/// Larger kernels are not looked into.
const MOST_NODES: usize = 400;

/// A value on the way: an argument, or several under one function.
#[derive(Clone, Debug)]
enum Value {
    One(Argument),
    Many(Function, Vec<Argument>),
}

impl Translator<'_> {
    /// Translates a kernel to an operation over its indices, if no point of it can fault.
    pub(super) fn parts(
        &mut self,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<(Operation, Vec<u64>)> {
        let size = kernel.graph.len() <= MOST_NODES;
        if !size || kernel.indices.iter().any(|i| i.extent == 0) || may_fault(kernel) {
            return None;
        }
        let mut needed = vec![false; kernel.graph.len()];
        for root in [kernel.root].into_iter().chain(kernel.guard) {
            needed[root.0 as usize] = true;
        }
        for at in (0..kernel.graph.len()).rev() {
            let node = kernel.graph.node(NodeId(at as u32));
            if needed[at] && matches!(node, Node::Apply(..) | Node::Convert(_)) {
                node.arguments().for_each(|a| needed[a.0 as usize] = true);
            }
        }
        let extents: Vec<u64> = kernel.indices.iter().map(|i| i.extent).collect();
        let merged = merged(kernel);
        let mut values: Vec<Option<Value>> = vec![None; kernel.graph.len()];
        for (id, node, dtype) in kernel.graph.iter() {
            if needed[id.0 as usize] {
                let merges = merged[id.0 as usize];
                let node = (id, node, dtype, merges);
                let value = self.value(kernel, operands, node, &values, &extents)?;
                values[id.0 as usize] = Some(value);
            }
        }
        let mut root = values[kernel.root.0 as usize].clone()?;
        if let Some(guard) = kernel.guard {
            let dtype = kernel.graph.dtype(kernel.root);
            let neutral = neutral(kernel.reduction?, dtype)?;
            let guard = self.argument(values[guard.0 as usize].clone()?, &extents);
            let value = self.argument(root, &extents);
            let neutral = self.to.graph.constant(neutral, dtype);
            let select = Operation {
                head: Head::Apply(Function::Select),
                reduction: None,
                reduced: vec![],
                arguments: vec![guard, value, neutral],
            };
            root = Value::One(self.to.graph.fresh(select, &[], &extents));
        }
        let plain = kernel.reduction.is_none_or(|r| laws::step(r).is_some());
        let operation = match root {
            Value::Many(function, arguments) if plain => Operation::fold(function, arguments),
            value => Operation {
                head: Head::Copy,
                reduction: None,
                reduced: vec![],
                arguments: vec![self.argument(value, &extents)],
            },
        };
        let reduced: Vec<u32> = (kernel.output_rank..kernel.indices.len() as u32).collect();
        Some((operation.reduce(kernel.reduction, reduced), extents))
    }

    fn argument(&mut self, value: Value, extents: &[u64]) -> Argument {
        match value {
            Value::One(argument) => argument,
            Value::Many(function, arguments) => {
                let fold = Operation::fold(function, arguments);
                self.to.graph.fresh(fold, &[], extents)
            }
        }
    }

    fn value(
        &mut self,
        kernel: &Kernel,
        operands: &[TensorId],
        (id, node, dtype, merges): (NodeId, &Node, DType, bool),
        values: &[Option<Value>],
        extents: &[u64],
    ) -> Option<Value> {
        let of = |id: &NodeId| values[id.0 as usize].clone();
        match node {
            Node::Constant(value) => Some(Value::One(self.to.graph.constant(*value, dtype))),
            Node::Index(_) => self.fragment(kernel, operands, id),
            Node::Read {
                operand, positions, ..
            } => {
                let shape = &kernel.operands[*operand as usize].shape;
                let indices: Option<Vec<u32>> = positions
                    .iter()
                    .zip(shape)
                    .map(|(position, extent)| {
                        let index = kernel.graph.as_index(*position)?.0;
                        (extents[index as usize] == *extent).then_some(index)
                    })
                    .collect();
                let Some(indices) = indices else {
                    return self.fragment(kernel, operands, id);
                };
                let place = &self.to.places[operands[*operand as usize].0 as usize];
                let mut turned = vec![0; indices.len()];
                for (d, index) in indices.iter().enumerate() {
                    turned[place.order[d] as usize] = *index;
                }
                let class = place.class;
                for (d, index) in (0..).zip(&turned) {
                    let name = kernel.indices[*index as usize].name.clone();
                    self.to.names.entry((class, d)).or_insert(name);
                }
                Some(Value::One(Argument {
                    turned: false,
                    class,
                    indices: turned,
                }))
            }
            Node::Convert(a) => {
                let argument = self.argument(of(a)?, extents);
                let convert = Operation {
                    head: Head::Convert(dtype),
                    reduction: None,
                    reduced: vec![],
                    arguments: vec![argument],
                };
                Some(Value::One(self.to.graph.fresh(convert, &[], extents)))
            }
            Node::Apply(function, arguments) => {
                let arguments: Option<Vec<Value>> = arguments.iter().map(of).collect();
                let arguments = arguments?;
                let (fold, last_turned) = match folded(*function) {
                    Some(folded) => folded,
                    None => {
                        let arguments = arguments
                            .into_iter()
                            .map(|a| self.argument(a, extents))
                            .collect();
                        let apply = Operation {
                            head: Head::Apply(*function),
                            reduction: None,
                            reduced: vec![],
                            arguments,
                        };
                        return Some(Value::One(self.to.graph.fresh(apply, &[], extents)));
                    }
                };
                let last = arguments.len() - 1;
                let mut all: Vec<Argument> = vec![];
                for (at, value) in arguments.into_iter().enumerate() {
                    let turn = last_turned && at == last;
                    let list = match value {
                        Value::Many(f, list) if f == fold && merges => list,
                        value => vec![self.argument(value, extents)],
                    };
                    all.extend(list.into_iter().map(|mut a| {
                        a.turned ^= turn;
                        a
                    }));
                }
                (all.len() <= MOST_FACTORS).then_some(Value::Many(fold, all))
            }
        }
    }

    /// Part of a kernel that is not looked into, as a tensor over the indices that it needs.
    fn fragment(&mut self, kernel: &Kernel, operands: &[TensorId], root: NodeId) -> Option<Value> {
        let indices = indices_of(&kernel.graph, &[root]);
        let mut part = kernel.clone();
        part.root = root;
        part.guard = None;
        part.reduction = None;
        part.output = vec![kernel.graph.dtype(root)];
        part.output_rank = indices.len() as u32;
        part.indices = indices
            .iter()
            .map(|i| kernel.indices[i.0 as usize].clone())
            .collect();
        let number: HashMap<IndexId, u32> = indices.iter().copied().zip(0..).collect();
        part = renamed(part, &|index| {
            IndexId(number.get(&index).copied().unwrap_or(0))
        });
        let order: Vec<u32> = (0..indices.len() as u32).collect();
        let term = self.whole(&part.canonical(), operands, &order, 0);
        Some(Value::One(Argument {
            turned: false,
            class: self.to.graph.egraph.add(term),
            indices: indices.iter().map(|i| i.0).collect(),
        }))
    }
}

/// The function that gathers what this one is applied to, and whether its last argument is turned: subtracted, or divided by.
fn folded(function: Function) -> Option<(Function, bool)> {
    match function {
        Function::Add | Function::Mul | Function::Min | Function::Max => Some((function, false)),
        Function::And | Function::Or => Some((function, false)),
        Function::Sub | Function::Neg => Some((Function::Add, true)),
        Function::Div => Some((Function::Mul, true)),
        _ => None,
    }
}

/// By node: whether it takes in the arguments of an argument with the same function. Of sums and products of floats only those do whose results
/// are reduced: in another order they may overflow or lose their digits.
fn merged(kernel: &Kernel) -> Vec<bool> {
    let graph = &kernel.graph;
    let of = |id: NodeId| match graph.node(id) {
        Node::Apply(function, _) => folded(*function).map(|(function, _)| function),
        _ => None,
    };
    let keeps_order = |id: NodeId| {
        graph.dtype(id).is_float() && matches!(of(id), Some(Function::Add | Function::Mul))
    };
    let mut merged: Vec<bool> = graph.iter().map(|(id, ..)| !keeps_order(id)).collect();
    let mut open = match kernel.reduction {
        Some(_) => vec![kernel.root],
        None => vec![],
    };
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut merged[id.0 as usize], true) {
            let arguments = graph.node(id).arguments();
            open.extend(arguments.filter(|argument| of(*argument) == of(id)));
        }
    }
    merged
}
