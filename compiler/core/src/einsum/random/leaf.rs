//! The leaves of random expressions: numbers, indices, and elements of tensors at random positions.
//!
//! Must not know what is built of them.
//!
//! ```text
//! 1.5    k    x0[i, j]    x1[2 * k + i - 1] else 0.0    x2[rem(i64(x0[i, 0]), 5)]
//! ```

use super::Quality;
use super::expression::{Builder, Term, exact};
use ein_plan::{DType, Function, IndexId, Node, NodeId};

impl Builder<'_> {
    pub(super) fn leaf(&mut self, dtype: DType, depth: u32) -> Term {
        match self.numbers.between(0, 5) {
            0 if !self.indices.is_empty() => {
                let index = self.numbers.between(0, self.indices.len() as i64 - 1) as u32;
                let index = self.index(index);
                self.convert(index, dtype)
            }
            1 => self.small_constant(dtype),
            _ => match self.read(dtype, depth, true) {
                Some(read) => read,
                None => self.small_constant(dtype),
            },
        }
    }

    pub(super) fn leaf_exact(&mut self, dtype: DType) -> Term {
        let leaf = self.leaf(dtype, 0);
        if leaf.quality.exact {
            leaf
        } else {
            self.small_constant(dtype)
        }
    }

    fn small_constant(&mut self, dtype: DType) -> Term {
        let value = self.numbers.value(dtype, false);
        self.constant(value, dtype)
    }

    fn index(&mut self, number: u32) -> Term {
        let node = self.graph.add(Node::Index(IndexId(number)), DType::I64);
        let bound = self.indices[number as usize].extent as f64;
        Term {
            node,
            dtype: DType::I64,
            quality: exact(bound, 0),
        }
    }

    /// An element of a tensor, converted; `usable`: of one with finite values. `None` if there is no such tensor.
    pub(super) fn read(&mut self, dtype: DType, depth: u32, usable: bool) -> Option<Term> {
        let fits = |at: &usize| {
            let quality = self.qualities[*at];
            let same = self.operands[*at].columns[0].compute() == dtype;
            if usable {
                quality.usable
            } else {
                !quality.usable && same
            }
        };
        let tensors: Vec<usize> = (0..self.operands.len()).filter(fits).collect();
        if tensors.is_empty() {
            return None;
        }
        let at = *self.numbers.pick(&tensors);
        let (quality, operand) = (self.qualities[at], self.operands[at].clone());
        let computed = operand.columns[0].compute();
        if !quality.exact && !dtype.is_float() {
            return None;
        }
        let mut may_leave = false;
        let mut positions = vec![];
        for extent in &operand.shape {
            let (position, leaves) = self.position(*extent, depth);
            positions.push(position);
            may_leave |= leaves;
        }
        let otherwise = (may_leave || self.numbers.one_in(12)).then(|| {
            let number = self.numbers.between(0, 1);
            self.number(number, computed).node
        });
        let read = Node::Read {
            operand: at as u32,
            column: 0,
            positions,
            otherwise,
        };
        let term = Term {
            node: self.graph.add(read, computed),
            dtype: computed,
            quality: Quality {
                bound: quality.bound.max(1.0),
                ..quality
            },
        };
        let term = self.convert(term, dtype);
        Some(if usable {
            self.within(term, 64.0)
        } else {
            term
        })
    }

    /// A position in a dimension, and whether it may be outside.
    fn position(&mut self, extent: u64, depth: u32) -> (NodeId, bool) {
        let same: Vec<u32> = (0..)
            .zip(self.indices)
            .filter(|(_, index)| index.extent == extent)
            .map(|(number, _)| number)
            .collect();
        if !same.is_empty() && !self.numbers.one_in(4) {
            let number = *self.numbers.pick(&same);
            return (self.index(number).node, false);
        }
        match self.numbers.between(0, 2) {
            // A gather: some whole number, brought into range where there is one.
            0 if extent > 0 && depth > 0 => {
                let value = self.exact_term(DType::I64, depth - 1);
                let size = self.number(extent as i64, DType::I64);
                let arguments = vec![value.node, size.node];
                let position = Node::Apply(Function::Rem, arguments);
                (self.graph.add(position, DType::I64), false)
            }
            1 if !self.indices.is_empty() => {
                let most = self.indices.len() as i64 - 1;
                let first = self.numbers.between(0, most) as u32;
                let first = self.index(first);
                let factor = *self.numbers.pick(&[1, 1, 2, -1]);
                let factor = self.number(factor, DType::I64);
                let scaled = self.apply(Function::Mul, &[factor, first]);
                let second = self.numbers.between(0, most) as u32;
                let second = self.index(second);
                let sum = self.apply(Function::Add, &[scaled, second]);
                let shift = self.numbers.between(-2, 3);
                let shift = self.number(shift, DType::I64);
                (self.apply(Function::Add, &[sum, shift]).node, true)
            }
            _ => {
                let number = self.numbers.between(0, extent.max(1) as i64 - 1);
                (self.number(number, DType::I64).node, extent == 0)
            }
        }
    }
}
