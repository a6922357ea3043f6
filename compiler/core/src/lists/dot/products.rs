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
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::lists::statement::OverList;
use crate::lists::{List, Lists, Pattern, PatternId, SPARSE, fill, written};
use crate::rules::{may_fault, times};
use ein_plan::source::position_type;
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Origin, Reduction};

/// A product of two lists.
struct Product {
    /// By row of the result.
    left: Side,
    /// By position along the summed index.
    right: Side,
    /// Factors that depend on the element of the result alone.
    fixed: Vec<NodeId>,
    /// The shape of the result.
    shape: [u64; 2],
    /// How many terms there may be.
    terms: u64,
}

impl Lists {
    /// The list of a product of two matrices of which few elements are listed.
    pub(in crate::lists) fn multiplied(
        &mut self,
        about: (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
    ) -> Option<List> {
        let product = self.product(kernel, operands)?;
        let terms = self.terms_of(about, (kernel, operands), &product);
        let (pattern, values) = self.added(about, &product, terms);
        let values = self.beside(about, (kernel, operands), (pattern, values), &product.fixed);
        Some(List {
            pattern,
            values,
            dims: vec![Some(0), Some(1)],
            fill: fill::zero(kernel.output[0]),
        })
    }

    /// A statement as a product of two lists that has few elements.
    fn product(&self, kernel: &Kernel, operands: &[TensorId]) -> Option<Product> {
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.finish;
        let plain = is_sum && kernel.guard.is_none() && kernel.output == [dtype];
        if !plain || kernel.output_rank != 2 || kernel.indices.len() != 3 {
            return None;
        }
        let Dot {
            sides: [first, second],
            fixed,
            conditions,
        } = self.dot(kernel, operands, IndexId(2))?;
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
        let [rows, columns, inner] = extents[..] else {
            return None;
        };
        let (own, other) = (self.pattern(left.pattern), self.pattern(right.pattern));
        let has_all = own.shape[1 - left.along] == rows
            && own.shape[left.along] == inner
            && other.shape[1 - right.along] == inner
            && other.shape[right.along] == columns;
        let places = i64::try_from(rows.checked_mul(columns)?).ok()?;
        let (own, other) = (own.listing.as_ref()?, other.listing.as_ref()?);
        let terms = own.most_terms(left.along, other, 1 - right.along)?;
        let few = terms.saturating_mul(SPARSE) <= places.unsigned_abs();
        (has_all && few && terms > 0).then_some(Product {
            left,
            right,
            fixed,
            shape: [rows, columns],
            terms,
        })
    }

    /// The number of the element of each term, and the term. Behind the last term they are those of the last element and 0.
    fn terms_of(
        &mut self,
        about: (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        product: &Product,
    ) -> [TensorId; 2] {
        let (origin, dtype) = (about.1, kernel.output[0]);
        let Product { left, right, .. } = product;
        let (terms, [rows, columns]) = (product.terms, product.shape);
        let count = self.pattern(left.pattern).count;
        let [_, along] = self.rows(left, origin);
        let row = self.row_of_each(left, origin);
        let own = self.values_of_rows(left, kernel, operands, origin);
        let [ends, across] = self.rows(right, origin);
        let others = self.values_of_rows(right, kernel, operands, origin);
        let mut made =
            |part: &str, read: &[TensorId], text: String| self.made_of(about, part, read, &text);
        let meets = made(
            "meets",
            &[ends, along],
            format!("[e: {count}] i64 = a0[a1[e]] - (a0[a1[e] - 1] else 0)"),
        );
        let upto = made(
            "upto",
            &[meets],
            format!("[e: {count} | y: {count}] i64 = sum a0[y] if y <= e"),
        );
        let first = made(
            "first",
            &[upto, meets],
            format!("[p: {terms} | e: {count}] i64 = max e if p == a0[e] - a1[e]"),
        );
        let one = made(
            "one",
            &[first],
            format!("[p: {terms} | q: {terms}] i64 = max a0[q] if q <= p"),
        );
        let other = made(
            "other",
            &[ends, along, one, upto],
            format!("[p: {terms}] i64 = p + (a0[(a1[a2[p]] else 0)] else 0) - (a3[a2[p]] else 0)"),
        );
        let is_term = format!("p < a0[{}]", count - 1);
        let last = rows * columns - 1;
        let key = made(
            "key",
            &[upto, row, one, across, other],
            format!(
                "[p: {terms}] i64 = where({is_term}, (a1[a2[p]] else 0) * {columns} + (a3[a4[p]] else 0), {last})"
            ),
        );
        let (stored, zero) = (dtype.name(), zero(dtype));
        let term = made(
            "product",
            &[upto, own, one, others, other],
            format!(
                "[p: {terms}] {stored} = where({is_term}, (a1[a2[p]] else {zero}) * (a3[a4[p]] else {zero}), {zero})"
            ),
        );
        [key, term]
    }

    /// The places of a product, each once, and the sums of their terms.
    fn added(
        &mut self,
        about: (&str, Origin),
        product: &Product,
        [key, term]: [TensorId; 2],
    ) -> (PatternId, TensorId) {
        let (terms, [rows, columns]) = (product.terms, product.shape);
        let dtype = self.rewriting.result().tensor(term).dtype;
        let mut made =
            |part: &str, read: &[TensorId], text: String| self.made_of(about, part, read, &text);
        let order = made(
            "order",
            &[key],
            format!("[p: {terms}] i64 = argsort(a0[:1], p)"),
        );
        let sorted = made(
            "sorted",
            &[key, order],
            format!("[p: {terms}] i64 = a0[a1[p]] else 0"),
        );
        let begins = made(
            "begins",
            &[sorted],
            format!("[p: {terms}] i64 = where(a0[p] == (a0[p - 1] else -1), 0, 1)"),
        );
        let number = made(
            "number",
            &[begins],
            format!("[p: {terms} | q: {terms}] i64 = sum a0[q] if q <= p"),
        );
        let element = made(
            "element",
            &[number],
            format!("[p: {terms}] i64 = a0[p] - 1"),
        );
        let (stored, zero) = (dtype.name(), zero(dtype));
        let values = made(
            "values",
            &[term, order, element],
            format!(
                "[e: {terms} | p: {terms}] {stored} = sum (a0[a1[p]] else {zero}) if e == a2[p]"
            ),
        );
        let most = made(
            "most",
            &[sorted, element],
            format!("[e: {terms} | p: {terms}] i64 = max a0[p] if e == a1[p]"),
        );
        let last = rows * columns - 1;
        let at = made(
            "at",
            &[most],
            format!("[e: {terms}] i64 = where(a0[e] < 0, {last}, a0[e])"),
        );
        let [of_row, of_column] = product.shape.map(|extent| position_type(extent).name());
        let positions = vec![
            made(
                "at0",
                &[at],
                format!("[e: {terms}] {of_row} = floordiv(a0[e], {columns})"),
            ),
            made(
                "at1",
                &[at],
                format!("[e: {terms}] {of_column} = rem(a0[e], {columns})"),
            ),
        ];
        self.patterns.push(Pattern {
            count: terms,
            shape: product.shape.to_vec(),
            positions,
            tensor: TensorId::UNKNOWN,
            has_more: true,
            has_gaps: true,
            ascends: true,
            is_product: true,
            listing: None,
        });
        (PatternId(self.patterns.len() - 1), values)
    }

    /// A statement over vectors, from the text of its kernel without its operands.
    fn made_of(
        &mut self,
        (name, origin): (&str, Origin),
        part: &str,
        read: &[TensorId],
        text: &str,
    ) -> TensorId {
        let operand = |id: &TensorId| {
            let tensor = self.rewriting.result().tensor(*id);
            format!("{}[{}]", tensor.dtype.name(), tensor.shape[0])
        };
        let operands: Vec<String> = read.iter().map(operand).collect();
        let kernel = written(&format!("({}) {text}", operands.join(", ")));
        self.made(&format!("{name}.{part}"), statement(kernel, read), origin)
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
        let sorted = statement(over.kernel, &over.operands);
        let name = format!("{}.row", self.name_of(side.pattern));
        self.made(&name, sorted, origin)
    }
}

/// The text of the zero of the type in which a stored type is computed.
fn zero(dtype: DType) -> &'static str {
    match dtype.compute() {
        DType::F64 => "0.0_f64",
        DType::I32 => "0_i32",
        computed if computed.is_float() => "0.0",
        _ => "0",
    }
}
