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
use crate::rules::renamed;
use ein_plan::source::Listing;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction};
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
            let first = canonical::statement(product.first(&part), statement.operands);
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
        let (mut factors, mut open) = (vec![], vec![kernel.root]);
        while let Some(node) = open.pop() {
            match graph.node(node) {
                Node::Apply(Function::Mul, sides) => open.extend([sides[1], sides[0]]),
                Node::Read {
                    operand,
                    positions,
                    otherwise: None,
                    ..
                } => {
                    let own = positions.iter().map(|position| graph.as_index(*position));
                    let own = own.map(|index| index.map(|index| index.0 as usize));
                    let indices = own.collect::<Option<Vec<usize>>>()?;
                    let tensor = statement.operand(*operand);
                    let is_input = matches!(tensor.definition, Definition::Source(_));
                    let list = listed.get(&tensor.name).filter(|_| is_input);
                    factors.push(Factor {
                        node,
                        indices,
                        listed: list.map(|list| list.count),
                    });
                }
                _ => return None,
            }
        }
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
    fn first(&self, part: &Part) -> Kernel {
        let nodes: Vec<NodeId> = part
            .factors
            .iter()
            .map(|at| self.factors[*at].node)
            .collect();
        let mut first = self.kernel.clone();
        first.root = product(&mut first.graph, &nodes);
        first.output_rank = part.left.len() as u32;
        over(first, &[&part.left[..], &part.summed].concat())
    }

    /// The product in which that sum is a factor, read as the last operand.
    fn rest(&self, part: &Part, dtype: DType) -> Kernel {
        let mut rest = self.kernel.clone();
        let graph = &mut rest.graph;
        let positions = part.left.iter();
        let positions =
            positions.map(|index| graph.add(Node::Index(IndexId(*index as u32)), DType::I64));
        let read = Node::Read {
            operand: rest.operands.len() as u32,
            column: 0,
            positions: positions.collect(),
            otherwise: None,
        };
        let read = graph.add(read, dtype);
        let shape = part
            .left
            .iter()
            .map(|index| self.kernel.indices[*index].extent);
        rest.operands.push(Operand {
            columns: vec![dtype],
            shape: shape.collect(),
        });
        let others = (0..self.factors.len()).filter(|at| !part.factors.contains(at));
        let others = others.map(|at| self.factors[at].node);
        let nodes: Vec<NodeId> = others.chain([read]).collect();
        rest.root = product(&mut rest.graph, &nodes);
        let left: Vec<usize> = (0..self.kernel.indices.len())
            .filter(|index| !part.summed.contains(index))
            .collect();
        let is_sum = left.len() > self.kernel.output_rank as usize;
        rest.reduction = rest.reduction.filter(|_| is_sum);
        over(rest, &left)
    }
}

/// The product of some factors.
fn product(graph: &mut Graph, factors: &[NodeId]) -> NodeId {
    let dtype = graph.dtype(factors[0]);
    let all = factors.iter().copied();
    let all = all.reduce(|a, b| graph.add(Node::Apply(Function::Mul, vec![a, b]), dtype));
    all.expect("a part of a product has factors")
}

/// The kernel over these of its indices, in this order.
fn over(mut kernel: Kernel, indices: &[usize]) -> Kernel {
    kernel.indices = indices
        .iter()
        .map(|index| kernel.indices[*index].clone())
        .collect();
    renamed(kernel, &|index| {
        let at = indices.iter().position(|own| *own == index.0 as usize);
        at.map_or(index, |at| IndexId(at as u32))
    })
}
