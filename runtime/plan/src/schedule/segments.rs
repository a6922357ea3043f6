//! Reductions of segments: of neighbouring values of an index, from where to where data say for each output point.
//!
//! The rows of a matrix in compressed form and packed sequences are written so. The loops go through the points between the two ends of each
//! segment. Must not know how a loop is carried out.
//!
//! ```text
//! [i: 90 | e: 900] sum a1[e] * a2[a3[e]] if and(a0[i] <= e, e < a0[i + 1])   ->   segments e by [i]
//! ```

use super::facts::{Facts, MOST_INDICES};
use super::guard::{conjuncts, ordered};
use super::reason::Reason;
use crate::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction};
use serde::{Deserialize, Serialize};

/// So few points are looked at by every output point sooner than the ends of its segment.
const FEW: u64 = 64;

/// A reduction of segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segments {
    /// The reduced index that runs through a segment.
    pub reduced: IndexId,
    /// The output indices that the ends of a segment depend on.
    pub by: Vec<IndexId>,
}

/// The parts of a guard that bounds segments.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// A segment begins at the largest of these expressions, each with a number that is added to it.
    pub starts: Vec<(NodeId, i64)>,
    /// A segment ends before the smallest of these.
    pub ends: Vec<(NodeId, i64)>,
    /// The other conditions.
    pub rest: Vec<NodeId>,
}

impl Ends {
    /// The expressions that are compared with the index.
    fn all(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.starts.iter().chain(&self.ends).map(|(side, _)| *side)
    }
}

/// Returns the segments that the guard of a kernel bounds, and the guard's parts; `None` if it bounds none at both ends, or the terms are a product of
/// matrices, one of which has a row for each segment: of that, blocks are skipped.
pub fn segments(kernel: &Kernel) -> Option<(Segments, Ends)> {
    let guard = kernel.guard?;
    kernel.reduction?;
    if kernel.indices.len() > MOST_INDICES {
        return None;
    }
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let outputs = (1u128 << kernel.output_rank) - 1;
    let conditions = conjuncts(graph, guard);
    let reduced = kernel.output_rank..kernel.indices.len() as u32;
    reduced.map(IndexId).find_map(|index| {
        if kernel.indices[index.0 as usize].extent <= FEW {
            return None;
        }
        let mut found = Ends::default();
        for condition in &conditions {
            match end(kernel, *condition, index) {
                Some((side, more, is_start)) if depends[side.0 as usize] & !outputs == 0 => {
                    let ends = if is_start {
                        &mut found.starts
                    } else {
                        &mut found.ends
                    };
                    ends.push((side, more));
                }
                _ => found.rest.push(*condition),
            }
        }
        let by = found
            .all()
            .fold(0, |by, side| by | depends[side.0 as usize]);
        let is_found = found.all().any(|side| graph.as_affine(side).is_none());
        let bounded = !found.starts.is_empty() && !found.ends.is_empty();
        let of_value = depends[kernel.root.0 as usize] & outputs;
        if of_value & by != 0 && of_value & !by != 0 && kernel.is_product() {
            return None;
        }
        let by = (0..kernel.output_rank).filter(|i| by >> i & 1 == 1);
        let by: Vec<IndexId> = by.map(IndexId).collect();
        let segments = Segments { reduced: index, by };
        (bounded && is_found && !segments.by.is_empty()).then_some((segments, found))
    })
}

/// The expression that a condition compares with an index, what is added to it to make the first value of the index, or the first one behind the last,
/// and whether it is the first.
fn end(kernel: &Kernel, condition: NodeId, index: IndexId) -> Option<(NodeId, i64, bool)> {
    let graph = &kernel.graph;
    let (small, large, inclusive) = ordered(graph, condition)?;
    if graph.dtype(small) != DType::I64 || graph.dtype(large) != DType::I64 {
        return None;
    }
    let is = |side| graph.as_index(side) == Some(index);
    match (is(small), is(large)) {
        (true, false) => Some((large, i64::from(inclusive), false)),
        (false, true) => Some((small, i64::from(!inclusive), true)),
        _ => None,
    }
}

/// The segments of a kernel, or why it has none.
pub(super) fn of_facts(facts: &Facts<'_>) -> Result<Segments, Reason> {
    let (segments, _) = segments(facts.kernel)
        .ok_or(Reason::of("the guard bounds no segments of enough points"))?;
    let leads = (segments.by.iter().zip(0..)).all(|(index, at)| index.0 == at);
    match leads {
        true => Ok(segments),
        false => Err(Reason::of(
            "the ends of a segment depend on an index of a row",
        )),
    }
}

/// The scatter that goes through the points of segments that follow each other: an operand behind the others says of each point which segment it is
/// in, as a number of 64 bits. `None` if a scatter adds no such values, or the ends depend on several indices.
pub fn expanded(kernel: &Kernel, segments: &Segments, ends: &Ends) -> Option<Kernel> {
    use Reduction as R;
    let [of_segment] = segments.by[..] else {
        return None;
    };
    let adds = matches!(kernel.reduction?, R::Sum | R::Prod | R::Max | R::Min);
    if !adds || kernel.graph.dtype(kernel.root) == DType::Bool {
        return None;
    }
    let mut own = kernel.clone();
    own.guard = None;
    ends.rest
        .iter()
        .for_each(|condition| own.restrict(*condition));
    let list = own.operands.len() as u32;
    own.operands.push(Operand {
        shape: vec![own.indices[segments.reduced.0 as usize].extent],
        columns: vec![DType::I64],
    });
    let read = |graph: &mut Graph| {
        let point = graph.add(Node::Index(segments.reduced), DType::I64);
        let read = Node::Read {
            operand: list,
            column: 0,
            positions: vec![point],
            otherwise: None,
        };
        graph.add(read, DType::I64)
    };
    let mut own = own
        .canonical()
        .rewritten(|graph, _, node, dtype| match node {
            Node::Index(index) if index == of_segment => read(graph),
            node => graph.add(node, dtype),
        });
    let row = own.graph.add(Node::Index(of_segment), DType::I64);
    let place = read(&mut own.graph);
    let condition = Node::Apply(Function::Eq, vec![row, place]);
    let condition = own.graph.add(condition, DType::Bool);
    own.restrict(condition);
    Some(own)
}
