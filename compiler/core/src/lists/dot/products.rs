//! Products of two lists that have a list themselves: each element of one meets a row of the other.
//!
//! There is a place for every term; terms are sorted by the number of their element, and those of one element are added. How many terms there may be is
//! known from how many elements the positions along the summed index list. Places without a term are the last element's, with the value 0. Must not know
//! which statements go over a list.
//!
//! ```text
//! C: f32[9, 9] = [i: 9, j: 9 | k: 9] sum A[i, k] * B[k, j]         with 5 elements of A and 6 of B listed, which meet 8 times at most
//!
//! C.upto: i64[5]      how many terms the elements of A have, up to each; C.first: i64[8]   the element of A whose terms begin here
//! C.one: i64[8]       the element of A of each term                C.other: i64[8]     that of B
//! C.key: i64[8]       the number of the element of C               C.product: f32[8]   the term
//! C.order: i64[8]     the order of the keys, which gives C.at, and the elements that they count, C.element
//! C.values: f32[8] = [e: 8 | p: 8] sum C.product[C.order[p]] if e == C.element[p]
//! ```

use super::sides::{Dot, Side};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::lists::statement::OverList;
use crate::lists::{List, Lists, Pattern, PatternId, SPARSE, fill, written};
use crate::rules::{may_fault, times};
use ein_plan::source::position_type;
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Origin, Reduction};

impl Lists {
    /// The list of a product of two matrices of which few elements are listed.
    pub(in crate::lists) fn multiplied(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
    ) -> Option<List> {
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.finish;
        let plain = is_sum && kernel.guard.is_none() && kernel.output == [dtype];
        if !plain || kernel.output_rank != 2 || kernel.indices.len() != 3 {
            return None;
        }
        let dot = self.dot(kernel, operands, IndexId(2))?;
        let Dot {
            sides: [first, second],
            fixed,
            conditions,
        } = dot;
        let conditions = [&conditions, &first.conditions, &second.conditions];
        if may_fault(kernel) || conditions.iter().any(|all| !all.is_empty()) {
            return None;
        }
        let row = |side: &Side| kernel.graph.as_index(side.row);
        let (left, right) = match (row(&first)?, row(&second)?) {
            (IndexId(0), IndexId(1)) => (first, second),
            (IndexId(1), IndexId(0)) => (second, first),
            _ => return None,
        };
        let right = right.turned();
        let extents: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
        let (ours, others) = (self.pattern(left.pattern), self.pattern(right.pattern));
        let [rows, columns, inner] = extents[..] else {
            return None;
        };
        let has_all = ours.shape[1 - left.along] == rows
            && ours.shape[left.along] == inner
            && others.shape[1 - right.along] == inner
            && others.shape[right.along] == columns;
        let places = i64::try_from(rows.checked_mul(columns)?).ok()?;
        let (own, other) = (ours.listing.as_ref()?, others.listing.as_ref()?);
        let terms = own.most_terms(left.along, other, 1 - right.along)?;
        if !has_all || terms.saturating_mul(SPARSE) > places as u64 || terms == 0 {
            return None;
        }
        let ours = ours.count;
        let [_, along] = self.rows(&left, origin);
        let row_numbers = self.row_of_each(&left, origin);
        let left = self.values_of_rows(&left, kernel, operands, origin);
        let [ends, across] = self.rows(&right, origin);
        let right = self.values_of_rows(&right, kernel, operands, origin);
        let mut made = |part: &str, text: &str, read: &[TensorId]| {
            let operands: Vec<String> = (read.iter())
                .map(|id| {
                    let tensor = self.rewriting.result().tensor(*id);
                    format!("{}[{}]", tensor.dtype.name(), tensor.shape[0])
                })
                .collect();
            let kernel = written(&format!("({}) {text}", operands.join(", ")));
            self.made(&format!("{name}.{part}"), statement(kernel, read), origin)
        };
        let last = places - 1;
        let stored = dtype.name();
        let zero = match dtype.compute() {
            DType::F64 => "0.0_f64",
            DType::I32 => "0_i32",
            computed if computed.is_float() => "0.0",
            _ => "0",
        };
        let meets = made(
            "meets",
            &format!("[e: {ours}] i64 = a0[a1[e]] - (a0[a1[e] - 1] else 0)"),
            &[ends, along],
        );
        let upto = made(
            "upto",
            &format!("[e: {ours} | y: {ours}] i64 = sum a0[y] if y <= e"),
            &[meets],
        );
        let first = made(
            "first",
            &format!("[p: {terms} | e: {ours}] i64 = max e if p == a0[e] - a1[e]"),
            &[upto, meets],
        );
        let one = made(
            "one",
            &format!("[p: {terms} | q: {terms}] i64 = max a0[q] if q <= p"),
            &[first],
        );
        let is_term = format!("p < a0[{}]", ours - 1);
        let other = made(
            "other",
            &format!("[p: {terms}] i64 = p + (a0[(a1[a2[p]] else 0)] else 0) - (a3[a2[p]] else 0)"),
            &[ends, along, one, upto],
        );
        let key = made(
            "key",
            &format!(
                "[p: {terms}] i64 = where({is_term}, (a1[a2[p]] else 0) * {columns} + (a3[a4[p]] else 0), {last})"
            ),
            &[upto, row_numbers, one, across, other],
        );
        let product = made(
            "product",
            &format!(
                "[p: {terms}] {stored} = where({is_term}, (a1[a2[p]] else {zero}) * (a3[a4[p]] else {zero}), {zero})"
            ),
            &[upto, left, one, right, other],
        );
        let order = made(
            "order",
            &format!("[p: {terms}] i64 = argsort(a0[:1], p)"),
            &[key],
        );
        let sorted = made(
            "sorted",
            &format!("[p: {terms}] i64 = a0[a1[p]] else 0"),
            &[key, order],
        );
        let begins = made(
            "begins",
            &format!("[p: {terms}] i64 = where(a0[p] == (a0[p - 1] else -1), 0, 1)"),
            &[sorted],
        );
        let number = made(
            "number",
            &format!("[p: {terms} | q: {terms}] i64 = sum a0[q] if q <= p"),
            &[begins],
        );
        let element = made(
            "element",
            &format!("[p: {terms}] i64 = a0[p] - 1"),
            &[number],
        );
        let values = made(
            "values",
            &format!(
                "[e: {terms} | p: {terms}] {stored} = sum (a0[a1[p]] else {zero}) if e == a2[p]"
            ),
            &[product, order, element],
        );
        let most = made(
            "most",
            &format!("[e: {terms} | p: {terms}] i64 = max a0[p] if e == a1[p]"),
            &[sorted, element],
        );
        let at = made(
            "at",
            &format!("[e: {terms}] i64 = where(a0[e] < 0, {last}, a0[e])"),
            &[most],
        );
        let [of_row, of_column] = [rows, columns].map(|extent| position_type(extent).name());
        let positions = vec![
            made(
                "at0",
                &format!("[e: {terms}] {of_row} = floordiv(a0[e], {columns})"),
                &[at],
            ),
            made(
                "at1",
                &format!("[e: {terms}] {of_column} = rem(a0[e], {columns})"),
                &[at],
            ),
        ];
        self.patterns.push(Pattern {
            count: terms,
            shape: vec![rows, columns],
            positions,
            tensor: TensorId::UNKNOWN,
            has_more: true,
            ascends: true,
            is_product: true,
            listing: None,
        });
        let pattern = PatternId(self.patterns.len() - 1);
        let values = self.beside(
            (name, origin),
            (kernel, operands),
            (pattern, values),
            &fixed,
        );
        Some(List {
            pattern,
            values,
            dims: vec![Some(0), Some(1)],
            fill: fill::zero(dtype),
        })
    }

    /// The values, by place, multiplied with factors that depend on the element alone.
    fn beside(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        (pattern, values): (PatternId, TensorId),
        fixed: &[NodeId],
    ) -> TensorId {
        if fixed.is_empty() {
            return values;
        }
        let dtype = kernel.output[0];
        let places = self.pattern(pattern);
        let mut over = OverList::vector("e", places.count, dtype);
        let positions = [0, 1].map(|dim| over.position(places, dim));
        let value = over.read(values, dtype, vec![places.count], vec![], None);
        let moved = over.moved((kernel, operands), |_, node| match node {
            Node::Index(IndexId(index)) => positions.get(*index as usize).copied(),
            _ => None,
        });
        let graph = &mut over.kernel.graph;
        let all: Vec<NodeId> = (fixed.iter().map(|id| moved[id.0 as usize]))
            .chain([value])
            .collect();
        let product = times(graph, &all, dtype);
        // Places without a term stay 0.
        let zero = graph.add(Node::Constant(fill::zero(dtype)), dtype);
        let is_term = graph.add(Node::Apply(Function::Ne, vec![value, zero]), DType::Bool);
        let chosen = Node::Apply(Function::Select, vec![is_term, product, zero]);
        over.kernel.root = graph.add(chosen, dtype);
        let all = statement(over.kernel, &over.operands);
        self.made(&format!("{name}.scaled"), all, origin)
    }

    /// The number of the row of each place of a side's list, by row.
    fn row_of_each(&mut self, side: &Side, origin: Origin) -> TensorId {
        let by = 1 - side.along;
        let pattern = self.pattern(side.pattern);
        let (numbers, stored) = (pattern.positions[by], pattern.position_type(by));
        let count = pattern.count;
        if self.order(side, origin).is_none() {
            return numbers;
        }
        let (mut over, place) = self.by_row(side, stored, origin);
        over.kernel.root = over.read_at((numbers, stored, vec![count]), vec![place], None);
        let sorted: Statement = statement(over.kernel, &over.operands);
        let name = format!("{}.row", self.name_of(side.pattern));
        self.made(&name, sorted, origin)
    }
}
