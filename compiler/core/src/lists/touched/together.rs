//! Points of several sums together, where a statement reads what each of them touches.
//!
//! The points of one pattern follow those of the other; rows that both touch have one point that stands for them. Must not know which statements
//! read touched tensors.
//!
//! ```text
//! grad: f32[9000, 4] = [i: 9000, h: 4] one[i, h] + other[i, h]       one touched by 5 points, other by 7
//!
//! one.row.1: i64[12] = [e: 12] (one.row[e] else (other.row[e - 5] else 0))
//! other.rows.1: f32[12, 4] = [e: 12, h: 4 | e1: 7] sum other.rows[e1, h] if e == one.of.1[e1 + 5]
//! ```

use super::{FEW, Pattern, PatternId, Touched, TouchedRows};
use crate::einsum::Tensor;
use crate::einsum::canonical::statement;
use crate::lists::statement::OverList;
use crate::lists::written;
use crate::rules::free_index;
use ein_plan::{DType, Function, Index, IndexId, Node, Reduction, Scalar};

impl TouchedRows {
    /// The pattern of the points of both, if they are still few.
    pub(super) fn together(
        &mut self,
        tensor: &Tensor,
        one: PatternId,
        other: PatternId,
    ) -> Option<PatternId> {
        let [first, second] = [one, other].map(|id| &self.patterns[id.0]);
        let has = |pattern: &Pattern, id| pattern.parts.iter().any(|part| part.0 == id);
        if has(first, other) {
            return Some(one);
        }
        if has(second, one) {
            return Some(other);
        }
        let (before, after) = (first.count, second.count);
        let (count, rows) = (before.checked_add(after)?, first.rows);
        if rows != second.rows || count.saturating_mul(FEW) > rows {
            return None;
        }
        let shifted = second.parts.iter().map(|(part, at)| (*part, at + before));
        let parts = first.parts.iter().copied().chain(shifted).collect();
        let text = format!(
            "(i64[{before}], i64[{after}]) [e: {count}] i64 = (a0[e] else (a1[e - {before}] else 0))"
        );
        let (kernel, operands) = statement(written(&text), &[first.row, second.row]);
        let row = OverList {
            kernel,
            operands,
            entry: IndexId(0),
        };
        Some(self.pattern_of(tensor, row, (count, rows), parts))
    }

    /// A touched tensor by the points of a pattern of which its own is a part.
    pub(super) fn by_points_of(
        &mut self,
        tensor: &Tensor,
        touched: &Touched,
        pattern: PatternId,
    ) -> Option<Touched> {
        if touched.pattern == pattern {
            return Some(*touched);
        }
        let known = self.moved.get(&(touched.values, pattern));
        if let Some(values) = known {
            return Some(Touched {
                pattern,
                values: *values,
                ..*touched
            });
        }
        let to = &self.patterns[pattern.0];
        let (_, offset) = *to.parts.iter().find(|part| part.0 == touched.pattern)?;
        let (count, of, own) = (to.count, to.of, self.patterns[touched.pattern.0].count);
        let values = self.rewriting.result().tensor(touched.values);
        let (dtype, shape) = (values.dtype, values.shape.clone());
        if dtype == DType::Bool {
            return None;
        }
        let mut over = OverList::vector("e", count, dtype);
        let indices = &mut over.kernel.indices;
        indices.clear();
        for (dim, extent) in shape.iter().enumerate() {
            let (name, extent) = match dim == touched.dim {
                true => (free_index(indices), count),
                false => (format!("d{dim}"), *extent),
            };
            indices.push(Index { name, extent });
        }
        let name = free_index(indices);
        let rank = indices.len() as u32;
        indices.push(Index { name, extent: own });
        over.kernel.output_rank = rank;
        over.kernel.reduction = Some(Reduction::Sum);
        let mut positions: Vec<_> = (0..rank).map(|dim| over.index(IndexId(dim))).collect();
        let point = over.index(IndexId(rank));
        let here = std::mem::replace(&mut positions[touched.dim], point);
        over.kernel.root = over.read_at((touched.values, dtype, shape), positions, None);
        let graph = &mut over.kernel.graph;
        let point = match offset {
            0 => point,
            offset => {
                let offset = graph.add(Node::Constant(Scalar::Int(offset as i64)), DType::I64);
                graph.add(Node::Apply(Function::Add, vec![point, offset]), DType::I64)
            }
        };
        let of = over.read_at((of, DType::I64, vec![count]), vec![point], None);
        let equal = Node::Apply(Function::Eq, vec![here, of]);
        over.kernel.guard = Some(over.kernel.graph.add(equal, DType::Bool));
        let values = self.hidden(tensor, "rows", over);
        self.moved.insert((touched.values, pattern), values);
        Some(Touched {
            pattern,
            values,
            ..*touched
        })
    }
}
