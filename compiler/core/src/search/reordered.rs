//! A program with a product multiplied in another order.
//!
//! The intermediates of the old order go, those of the new one are hidden tensors named after the product. Must not know why
//! an order is better.
//!
//! ```text
//! A[i, k], B[k, l], x[l] as (A (B x)):   y.1[k] = sum B[k, l] * x[l];  y[i] = sum A[i, k] * y.1[k]
//! ```

use super::product::Product;
use crate::einsum::{Definition, Program, Role, Tensor, TensorId, canonical};
use crate::rules::order::Order;
use ein_plan::{DType, Graph, Index, IndexId, Kernel, Node, NodeId, Operand};
use std::collections::HashSet;

impl Product {
    /// The program that multiplies in another order.
    pub fn reordered(&self, program: &Program, order: &Order) -> Option<Program> {
        let mut build = Build {
            product: self,
            program,
            root: program.tensor(self.root),
            made: vec![],
            taken: program.tensors.iter().map(|t| t.name.as_str()).collect(),
            next: 1,
        };
        let root = build.whole(order)?;
        let made = build.made;
        let mut result = program.clone();
        result.tensors[self.root.0 as usize] = root;
        result.tensors.extend(made);
        Some(result.arranged()?.needed().canonical())
    }

    /// An order in words: `((A B) x)`.
    pub fn text(&self, program: &Program, order: &Order) -> String {
        match order {
            Order::Factor(at) => program.tensor(self.factors[*at].tensor).name.clone(),
            Order::Pair(left, right) => {
                let (left, right) = (self.text(program, left), self.text(program, right));
                format!("({left} {right})")
            }
        }
    }
}

/// Makes the statements of an order.
struct Build<'a> {
    product: &'a Product,
    program: &'a Program,
    root: &'a Tensor,
    /// New tensors, numbered from the program's count on.
    made: Vec<Tensor>,
    taken: HashSet<&'a str>,
    next: usize,
}

/// A tensor read by indices of the product.
type Part = (TensorId, Vec<u32>);

impl Build<'_> {
    /// Makes the tensor that takes the root's place.
    fn whole(&mut self, order: &Order) -> Option<Tensor> {
        let Order::Pair(left, right) = order else {
            return None;
        };
        let network = &self.product.network;
        let (a, b) = (network.indices(left), network.indices(right));
        let parts = [self.part(left, b), self.part(right, a)];
        Some(self.tensor(&parts, &self.product.dimensions, true))
    }

    /// Makes the tensor of an order; `outside` are the indices of all other factors.
    fn part(&mut self, order: &Order, outside: u128) -> Part {
        let network = &self.product.network;
        let (parts, indices) = match order {
            Order::Factor(at) => {
                let factor = &self.product.factors[*at];
                let part = (factor.tensor, factor.indices.clone());
                (vec![part], network.factors[*at])
            }
            Order::Pair(left, right) => {
                let (a, b) = (network.indices(left), network.indices(right));
                let parts = vec![self.part(left, outside | b), self.part(right, outside | a)];
                (parts, a | b)
            }
        };
        let remaining = network.remaining(indices, outside);
        if let ([part], true) = (parts.as_slice(), remaining == indices) {
            return part.clone();
        }
        let mut dimensions: Vec<u32> = vec![];
        for index in parts.iter().flat_map(|(_, indices)| indices) {
            if remaining >> index & 1 == 1 && !dimensions.contains(index) {
                dimensions.push(*index);
            }
        }
        let tensor = self.tensor(&parts, &dimensions, false);
        let id = TensorId((self.program.tensors.len() + self.made.len()) as u32);
        self.made.push(tensor);
        (id, dimensions)
    }

    fn shape(&self, id: TensorId) -> Vec<u64> {
        let count = self.program.tensors.len();
        match (id.0 as usize).checked_sub(count) {
            Some(at) => self.made[at].shape.clone(),
            None => self.program.tensor(id).shape.clone(),
        }
    }

    fn tensor(&mut self, parts: &[Part], dimensions: &[u32], last: bool) -> Tensor {
        let Product {
            network,
            law,
            dtype,
            ..
        } = self.product;
        let mut indices = dimensions.to_vec();
        for index in parts.iter().flat_map(|(_, indices)| indices) {
            if !indices.contains(index) {
                indices.push(*index);
            }
        }
        let mut graph = Graph::default();
        let mut values = vec![];
        for (operand, (_, read)) in (0u32..).zip(parts) {
            let positions = read.iter().map(|index| {
                let at = indices.iter().position(|i| i == index);
                graph.add(Node::Index(IndexId(at.unwrap_or(0) as u32)), DType::I64)
            });
            let positions = positions.collect();
            let node = Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            };
            values.push(graph.add(node, *dtype));
        }
        let root: NodeId = match values[..] {
            [only] => only,
            _ => graph.add(Node::Apply(law.product, values), *dtype),
        };
        let operands: Vec<TensorId> = parts.iter().map(|(id, _)| *id).collect();
        let kernel = Kernel {
            indices: self.named(&indices),
            output_rank: dimensions.len() as u32,
            operands: operands
                .iter()
                .map(|id| Operand {
                    columns: vec![*dtype],
                    shape: self.shape(*id),
                })
                .collect(),
            graph,
            root,
            guard: None,
            reduction: (indices.len() > dimensions.len()).then_some(law.reduction),
            finish: true,
            output: vec![*dtype],
        };
        let (kernel, operands) = canonical::statement(kernel, &operands);
        let name = match last {
            true => self.root.name.clone(),
            false => self.fresh(),
        };
        Tensor {
            name,
            dtype: *dtype,
            shape: dimensions
                .iter()
                .map(|i| network.extents[*i as usize])
                .collect(),
            role: if last { self.root.role } else { Role::Hidden },
            definition: Definition::Statement { kernel, operands },
            block: self.root.block,
            origin: self.root.origin,
        }
    }

    /// The indices with names that differ.
    fn named(&self, indices: &[u32]) -> Vec<Index> {
        let mut names: HashSet<String> = HashSet::new();
        let product = self.product;
        let named = indices.iter().map(|index| {
            let own = &product.names[*index as usize];
            let mut name = own.clone();
            let mut number = 1;
            while !names.insert(name.clone()) {
                number += 1;
                name = format!("{own}{number}");
            }
            Index {
                name,
                extent: product.network.extents[*index as usize],
            }
        });
        named.collect()
    }

    fn fresh(&mut self) -> String {
        loop {
            let name = format!("{}.{}", self.root.name, self.next);
            self.next += 1;
            if !self.taken.contains(name.as_str()) {
                return name;
            }
        }
    }
}
