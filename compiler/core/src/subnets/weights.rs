//! Weights: tensors that are made of params alone. Of which ones, and by which of them a weight can be multiplied by a number.
//!
//! Must not know neurons.
//!
//! ```text
//! U[k,d] = 2 * W[d,k]             =>   of W; U is c times as large where W is
//! V[k] = g * w[k] * rsqrt(s)      =>   of g, w; c times as large where g is, not where w is, if s = sum[k] w[k]^2
//! ```

use crate::einsum::{Definition, Program, TensorId};
use ein_plan::{Function, Kernel, Node, NodeId, Reduction};
use std::collections::BTreeSet;

/// The params that the tensors of a program are made of.
pub(super) struct Weights {
    /// By tensor: the params that it is made of, if it is made of params alone.
    params: Vec<BTreeSet<TensorId>>,
    /// By tensor: whether it depends on something else.
    data: Vec<bool>,
}

impl Weights {
    /// Looks through a program; `trained`: by tensor, whether it is a param.
    pub fn of_program(program: &Program, trained: &[bool]) -> Weights {
        let mut weights = Weights {
            params: vec![],
            data: vec![],
        };
        for ((at, tensor), own) in (0..).zip(&program.tensors).zip(trained) {
            let (mut params, mut data) = (BTreeSet::new(), false);
            if *own {
                params.insert(TensorId(at));
            }
            match &tensor.definition {
                Definition::Source(_) => data = !own,
                Definition::Loop(_) => data = true,
                Definition::Statement { operands, .. } => {
                    for operand in operands {
                        params.extend(&weights.params[operand.0 as usize]);
                        data |= weights.data[operand.0 as usize];
                    }
                }
            }
            weights.params.push(params);
            weights.data.push(data);
        }
        weights
    }

    /// Returns whether a tensor depends on anything but params.
    pub fn on_data(&self, tensor: TensorId) -> bool {
        self.data[tensor.0 as usize]
    }

    /// Returns whether a tensor is made of params alone.
    pub fn is_weight(&self, tensor: TensorId) -> bool {
        !self.on_data(tensor) && !self.params(tensor).is_empty()
    }

    /// The params that a weight is made of.
    pub fn params(&self, tensor: TensorId) -> &BTreeSet<TensorId> {
        &self.params[tensor.0 as usize]
    }

    /// Returns whether a weight is c times as large where a param is.
    pub fn scales_with(&self, program: &Program, tensor: TensorId, param: TensorId) -> bool {
        if tensor == param {
            return true;
        }
        match &program.tensor(tensor).definition {
            Definition::Statement { kernel, operands } => {
                let sums = matches!(
                    kernel.reduction,
                    None | Some(Reduction::Sum | Reduction::Mean)
                );
                let degree = Degree {
                    weights: self,
                    program,
                    kernel,
                    operands,
                    param,
                };
                sums && degree.of_node(kernel.root) == Some(1)
                    && kernel
                        .guard
                        .is_none_or(|guard| degree.of_node(guard) == Some(0))
            }
            _ => false,
        }
    }
}

/// With which power of a number the nodes of a kernel grow where a param grows with it.
struct Degree<'a> {
    weights: &'a Weights,
    program: &'a Program,
    kernel: &'a Kernel,
    operands: &'a [TensorId],
    param: TensorId,
}

impl Degree<'_> {
    /// 0 or 1; `None` if it is neither.
    fn of_node(&self, node: NodeId) -> Option<u32> {
        match self.kernel.graph.node(node) {
            Node::Constant(_) | Node::Index(_) => Some(0),
            Node::Convert(argument) => self.of_node(*argument),
            Node::Read {
                operand, otherwise, ..
            } => {
                let read = self.operands[*operand as usize];
                let degree = match self.weights.params(read).contains(&self.param) {
                    false => 0,
                    true if self.weights.scales_with(self.program, read, self.param) => 1,
                    true => return None,
                };
                let zero = |node: NodeId| {
                    let node = self.kernel.graph.node(node);
                    matches!(node, Node::Constant(value) if value.as_f64() == 0.0)
                };
                let same = otherwise.is_none_or(|node| degree == 0 || zero(node));
                same.then_some(degree)
            }
            Node::Apply(function, arguments) => {
                let degrees = arguments.iter().map(|node| self.of_node(*node));
                let degrees: Vec<u32> = degrees.collect::<Option<_>>()?;
                match (function, degrees.as_slice()) {
                    (Function::Neg, [a]) => Some(*a),
                    (Function::Mul, [a, b]) => Some(a + b).filter(|degree| *degree <= 1),
                    (Function::Div, [a, 0]) => Some(*a),
                    (Function::Add | Function::Sub, [a, b]) if a == b => Some(*a),
                    (Function::Select, [0, a, b]) if a == b => Some(*a),
                    (_, degrees) => degrees.iter().all(|degree| *degree == 0).then_some(0),
                }
            }
        }
    }
}
