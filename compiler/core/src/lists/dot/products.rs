//! Products of two lists: each element of one meets a row of the other.
//!
//! A row of such a product is computed whole. If few elements of the product are not 0, it has a list itself, as far as it is known from how many
//! elements the positions along the summed index list: the places at which terms meet, each once, and the sums there. Places without a term are the last
//! element's, with the value 0. Must not know which statements go over a list.
//!
//! ```text
//! C: f32[9, 9] = [i: 9, j: 9 | k: 9] sum A[i, k] * B[k, j]         with 5 elements of A and 6 of B listed, which meet 8 times at most
//!
//! C: f32[9, 9] = [i: 9, j: 9] listed_product(A.ends[:1], A.at1[:1], A.values[:1], B.ends[:1], B.at1[:1], B.values[:1], j)
//!
//! C.places: i64[8] = [p: 8] listed_places(A.ends[:1], A.at1[:1], B.ends[:1], B.at1[:1], 9, p)
//! C.values: f32[8] = [e: 8] listed_sums(A.ends[:1], A.at1[:1], A.values[:1], B.ends[:1], B.at1[:1], B.values[:1], C.places[:1], 9, e)
//! ```

use super::MOST_POSITIONS;
use super::sides::{Dot, Side};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::lists::statement::OverList;
use crate::lists::{List, Lists, Pattern, PatternId, fill, written};
use crate::rules::{may_fault, times};
use ein_plan::library::is_summed;
use ein_plan::source::position_type;
use ein_plan::{DType, Function, Index, IndexId, Kernel, Node, NodeId, Origin, Reduction};

/// A product has a list if it has at least so many elements for each term. The list of a term takes three times the bytes of an element, and what
/// reads it gathers.
const FEW: u64 = 8;
/// A term of two lists takes the time in which a listed element is multiplied with so many elements of a row that has all of them.
const DENSE: u64 = 8;

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

impl Product {
    /// Returns whether few elements are not 0.
    fn is_list(&self) -> bool {
        let [rows, columns] = self.shape;
        self.terms.saturating_mul(FEW) <= rows.saturating_mul(columns)
    }
}

impl Lists {
    /// The list of a product of two matrices of which few elements are listed.
    pub(in crate::lists) fn multiplied(
        &mut self,
        about: (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
    ) -> Option<List> {
        let product = self.product(kernel, operands)?;
        if !product.is_list() {
            return None;
        }
        let (pattern, values) = self.listed_product(about, (kernel, operands), &product);
        let values = self.beside(about, (kernel, operands), (pattern, values), &product.fixed);
        Some(List {
            pattern,
            values,
            dims: vec![Some(0), Some(1)],
            fill: fill::zero(kernel.output[0]),
        })
    }

    /// All elements of a product of two lists, if there are fewer terms than elements of one list times those of a row of the other matrix.
    pub(in crate::lists) fn rows_of_product(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        let product = self.product(kernel, operands)?;
        let count = |side: &Side| self.pattern(side.pattern).count;
        let [rows, columns] = product.shape;
        let (by_left, by_right) = (
            count(&product.left).saturating_mul(columns),
            count(&product.right).saturating_mul(rows),
        );
        let is_fewer = product.terms.saturating_mul(DENSE) <= by_left.min(by_right);
        if !is_fewer && !product.is_list() {
            return None;
        }
        let columns = self.columns(&product, (kernel, operands), origin);
        let arguments: Vec<_> = columns.iter().map(|column| (*column, None)).collect();
        let own = &[IndexId(1)][..];
        let call = (Function::ListedProduct, &arguments[..], None, own);
        let call = self.call_of(&kernel.indices[..2], kernel.output[0], call);
        let beside = (&product.fixed[..], &[][..]);
        Some(self.with_factors((name, "product", origin), (kernel, operands), call, beside))
    }

    /// A statement as a product of two lists.
    fn product(&self, kernel: &Kernel, operands: &[TensorId]) -> Option<Product> {
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.finish;
        let plain = is_sum && kernel.guard.is_none() && kernel.output == [dtype];
        let is_of_rank_two = kernel.output_rank == 2 && kernel.indices.len() == 3;
        if !plain || !is_of_rank_two || !is_summed(dtype) {
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
        let is_short = [inner, columns]
            .iter()
            .all(|extent| *extent < MOST_POSITIONS);
        i64::try_from(rows.checked_mul(columns)?).ok()?;
        let (own, other) = (own.listing.as_ref()?, other.listing.as_ref()?);
        let terms = own.most_terms(left.along, other, 1 - right.along)?;
        (has_all && is_short && terms > 0).then_some(Product {
            left,
            right,
            fixed,
            shape: [rows, columns],
            terms,
        })
    }

    /// Where the rows of both sides end, their positions and their values.
    fn columns(
        &mut self,
        Product { left, right, .. }: &Product,
        (kernel, operands): (&Kernel, &[TensorId]),
        origin: Origin,
    ) -> Vec<TensorId> {
        let mut columns = vec![];
        for side in [left, right] {
            columns.extend(self.rows(side, origin));
            columns.push(self.values_of_rows(side, kernel, operands, origin));
        }
        columns
    }

    /// The places of a product, each once, and the sums of their terms.
    fn listed_product(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        product: &Product,
    ) -> (PatternId, TensorId) {
        let (terms, [_, columns]) = (product.terms, product.shape);
        let read = self.columns(product, (kernel, operands), origin);
        let place = |name: &str| Index {
            name: name.into(),
            extent: terms,
        };
        let own = &[IndexId(0)][..];
        let lists = [0, 1, 3, 4].map(|column: usize| (read[column], None));
        let call = (Function::ListedPlaces, &lists[..], Some(columns), own);
        let places = self.call_of(&[place("p")], DType::I64, call);
        let places = self.made(&format!("{name}.places"), places, origin);
        let lists: Vec<_> = (read.into_iter().chain([places]))
            .map(|column| (column, None))
            .collect();
        let call = (Function::ListedSums, &lists[..], Some(columns), own);
        let values = self.call_of(&[place("e")], kernel.output[0], call);
        let values = self.made(&format!("{name}.values"), values, origin);
        let positions = ["floordiv", "rem"]
            .into_iter()
            .zip(product.shape)
            .enumerate();
        let positions = positions.map(|(dim, (function, extent))| {
            let position = position_type(extent).name();
            let kernel = written(&format!(
                "(i64[{terms}]) [e: {terms}] {position} = {function}(a0[e], {columns})"
            ));
            self.made(
                &format!("{name}.at{dim}"),
                statement(kernel, &[places]),
                origin,
            )
        });
        let positions = positions.collect();
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
}
