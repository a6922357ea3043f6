//! Products of more than two factors, one of them a list: what the list has no index of is summed first.
//!
//! A statement over a list goes through all its terms for each element, so that a matrix behind the list's neighbour would be multiplied once
//! for each element, not once for each row. Two lists in one product would also make one of them dense. Must not know how a statement goes
//! over a list.
//!
//! ```text
//! y: f32[9, 4] = [i: 9, h: 4 | j: 9, d: 5] sum A[i, j] * x[j, d] * W[d, h]      with elements of A listed
//! y.factor: f32[9, 4] = [j: 9, h: 4 | d: 5] sum x[j, d] * W[d, h]
//! y: f32[9, 4] = [i: 9, h: 4 | j: 9] sum A[i, j] * y.factor[j, h]
//! ```

use crate::einsum::{Definition, Program, Rewriting, Rewritten, canonical};
use crate::rules::{element, factors, over, times};
use ein_plan::source::Listing;
use ein_plan::{DType, Kernel, Node, NodeId, Reduction};
use std::collections::BTreeMap;

/// How many times as many points a product has as its parts, at least.
const FEWER: u64 = 2;

/// Returns the program in which such products are taken in parts.
pub(super) fn parted(program: &Program, listed: &BTreeMap<String, Listing>) -> Program {
    let mut all = program.clone();
    loop {
        let next = Rewriting::of_statements(&all, |mut statement| {
            let product = Product::of(&statement, listed)?;
            let reduced = 0..product.kernel.indices.len();
            let reduced = reduced.filter(|at| *at >= product.kernel.output_rank as usize);
            let parts = reduced.filter_map(|index| product.part(index));
            let (part, _) = parts.min_by_key(|(_, points)| *points)?;
            let dtype = product.kernel.graph.dtype(product.kernel.root);
            let first = canonical::statement(product.first(&part, dtype), statement.operands);
            let first = statement.add("factor", first);
            let rest = product.rest(&part, dtype);
            Some(canonical::statement(rest, &statement.operands_and(first)))
        });
        if next.tensors.len() == all.tensors.len() {
            return next;
        }
        all = next;
    }
}

/// A factor: an element at places that are indices.
struct Factor {
    node: NodeId,
    indices: Vec<usize>,
    /// How many elements are listed.
    listed: Option<u64>,
}

/// A sum of products of at least three factors, some of them lists.
struct Product<'a> {
    kernel: &'a Kernel,
    factors: Vec<Factor>,
}

/// Factors that are summed first, over these indices, for the others that they have.
struct Part {
    factors: Vec<usize>,
    summed: Vec<usize>,
    left: Vec<usize>,
}

impl<'a> Product<'a> {
    fn of(statement: &Rewritten<'a>, listed: &BTreeMap<String, Listing>) -> Option<Product<'a>> {
        let kernel = statement.kernel;
        let graph = &kernel.graph;
        let dtype = graph.dtype(kernel.root);
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.guard.is_none();
        let is_float = matches!(dtype, DType::F32 | DType::F64);
        if !is_sum || !is_float || !kernel.finish || kernel.output != [dtype] {
            return None;
        }
        let factor = |node: NodeId| {
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } = graph.node(node)
            else {
                return None;
            };
            let own = positions.iter().map(|position| graph.as_index(*position));
            let own = own.map(|index| index.map(|index| index.0 as usize));
            let tensor = statement.operand(*operand);
            let is_input = matches!(tensor.definition, Definition::Source(_));
            let list = listed.get(&tensor.name).filter(|_| is_input);
            Some(Factor {
                node,
                indices: own.collect::<Option<_>>()?,
                listed: list.map(|list| list.count),
            })
        };
        let factors = factors(graph, kernel.root).into_iter().map(factor);
        let factors: Vec<Factor> = factors.collect::<Option<_>>()?;
        let lists = factors.iter().any(|factor| factor.listed.is_some());
        (lists && factors.len() > 2).then_some(Product { kernel, factors })
    }

    /// The part that is summed over an index, and the points of both sums; nothing where they are no fewer.
    fn part(&self, index: usize) -> Option<(Part, u64)> {
        let all = || 0..self.factors.len();
        let has = |at: &usize, index: usize| self.factors[*at].indices.contains(&index);
        let (own, others): (Vec<usize>, Vec<usize>) = all().partition(|at| has(at, index));
        let lists = |of: &[usize]| {
            of.iter()
                .filter(|at| self.factors[**at].listed.is_some())
                .count()
        };
        if own.len() < 2 || lists(&own) > 1 || lists(&others) == 0 {
            return None;
        }
        let rank = self.kernel.output_rank as usize;
        let indices = 0..self.kernel.indices.len();
        let indices = indices.filter(|index| own.iter().any(|at| has(at, *index)));
        let alone = |index: &usize| *index >= rank && !others.iter().any(|at| has(at, *index));
        let (summed, mut left): (Vec<usize>, Vec<usize>) = indices.partition(alone);
        // Rows that the list names lie together.
        left.sort_by_key(|index| *index < rank);
        let first = self.points(&own, &[&summed[..], &left].concat());
        let everywhere = |of: &[usize]| -> Vec<usize> {
            let all = 0..self.kernel.indices.len();
            all.filter(|index| !of.contains(index)).collect()
        };
        let before = self.points(&all().collect::<Vec<_>>(), &everywhere(&[]));
        let after = first.saturating_add(self.points(&others, &everywhere(&summed)));
        let fewer = after.saturating_mul(FEWER) <= before;
        let part = Part {
            factors: own,
            summed,
            left,
        };
        fewer.then_some((part, after))
    }

    /// The points of a product of some factors over some indices: of the shortest list there are its elements.
    fn points(&self, factors: &[usize], indices: &[usize]) -> u64 {
        let extents = |of: &mut dyn Iterator<Item = &usize>| {
            of.map(|index| self.kernel.indices[*index].extent)
                .fold(1, u64::saturating_mul)
        };
        let lists = factors.iter().filter_map(|at| {
            let factor = &self.factors[*at];
            let rest = &mut indices
                .iter()
                .filter(|index| !factor.indices.contains(index));
            Some(factor.listed?.saturating_mul(extents(rest)))
        });
        lists.min().unwrap_or_else(|| extents(&mut indices.iter()))
    }

    /// The sum that comes first.
    fn first(&self, part: &Part, dtype: DType) -> Kernel {
        let nodes: Vec<NodeId> = part
            .factors
            .iter()
            .map(|at| self.factors[*at].node)
            .collect();
        let mut first = self.kernel.clone();
        first.root = times(&mut first.graph, &nodes, dtype);
        first.output_rank = part.left.len() as u32;
        over(first, self.kernel, &[&part.left[..], &part.summed].concat())
    }

    /// The product in which that sum is a factor, read as the last operand.
    fn rest(&self, part: &Part, dtype: DType) -> Kernel {
        let mut rest = self.kernel.clone();
        let (graph, operands) = (&mut rest.graph, &mut rest.operands);
        let read = element((graph, operands), self.kernel, &part.left, dtype);
        let others = (0..self.factors.len()).filter(|at| !part.factors.contains(at));
        let others = others.map(|at| self.factors[at].node);
        let nodes: Vec<NodeId> = others.chain([read]).collect();
        rest.root = times(&mut rest.graph, &nodes, dtype);
        let left: Vec<usize> = (0..self.kernel.indices.len())
            .filter(|index| !part.summed.contains(index))
            .collect();
        let is_sum = left.len() > self.kernel.output_rank as usize;
        rest.reduction = rest.reduction.filter(|_| is_sum);
        over(rest, self.kernel, &left)
    }
}
