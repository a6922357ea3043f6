//! Reductions of the points that have the key of an output point: `sum[m] x[m] if segment[m] == segment[n]`.
//!
//! Where a guard says that a value of the reduced points equals a value of the output point, the points are reduced key by key, and each output point
//! looks at what its key has come to: at the end, or, where the guard also compares a reduced with an output index, so far. Must not know how keys are found.
//!
//! ```text
//! [n: 90 | m: 90] sum a0[m] if a1[m] == a1[n]               ->   grouped [n]
//! [n: 90 | m: 90] sum a0[m] if and(a1[m] == a1[n], m <= n)  ->   grouped [n] scan m along n inclusive
//! ```

use super::Scan;
use super::facts::{Facts, MOST_INDICES};
use super::guard::{comparison, conjuncts};
use super::reason::Reason;
use crate::{Function, IndexId, Kernel, Node, NodeId, Reduction};
use serde::{Deserialize, Serialize};

/// So few reduced points are looked at by every output point sooner than they are grouped.
const FEW: u64 = 16;

/// A reduction key by key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grouped {
    /// The output indices of which only the key of the output point depends, and what it takes in.
    pub passed: Vec<IndexId>,
    /// The scan along which points are taken in; without one, all are.
    pub scan: Option<Scan>,
}

/// The parts of a guard that groups.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key of a reduced point.
    pub of_point: NodeId,
    /// The key of an output point.
    pub of_output: NodeId,
    /// The other conditions.
    pub rest: Vec<NodeId>,
}

/// Returns the groups that the guard of a kernel makes, and the guard's parts; `None` if it makes none.
pub fn grouping(kernel: &Kernel) -> Option<(Grouped, Keys)> {
    let rank = kernel.output_rank as usize;
    let reduced = kernel.indices[rank..].iter();
    let points = reduced.fold(1u64, |n, index| n.saturating_mul(index.extent));
    let chooses = kernel.reduction.is_none_or(Reduction::is_arg);
    if chooses || kernel.indices.len() > MOST_INDICES || points <= FEW {
        return None;
    }
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let all = conjuncts(graph, kernel.guard?);
    let of = |id: NodeId| depends[id.0 as usize];
    let outputs = (1u128 << rank) - 1;
    let pairs = all
        .iter()
        .enumerate()
        .filter_map(|(at, id)| match graph.node(*id) {
            Node::Apply(Function::Eq, sides) => Some((at, sides[0], sides[1])),
            _ => None,
        });
    let both = pairs.flat_map(|(at, a, b)| [(at, a, b), (at, b, a)]);
    let mut keys =
        both.filter(|(_, point, output)| of(*point) & !outputs != 0 && of(*output) & !outputs == 0);
    keys.find_map(|(at, of_point, of_output)| {
        let mut rest = all.clone();
        rest.remove(at);
        let fits = |rest: &[NodeId], scan: Option<Scan>| {
            let held = rest
                .iter()
                .fold(of(kernel.root) | of(of_point), |held, id| held | of(*id));
            let passed = outputs & !held;
            let scanned = scan.is_none_or(|scan| passed >> scan.output.0 & 1 == 1);
            (scanned && passed & of(of_output) != 0).then(|| Grouped {
                passed: (0..kernel.output_rank)
                    .filter(|i| passed >> i & 1 == 1)
                    .map(IndexId)
                    .collect(),
                scan,
            })
        };
        let scans = (0..rest.len()).find_map(|place| {
            let scan = comparison(kernel, rest[place])?;
            let mut others = rest.clone();
            others.remove(place);
            Some((fits(&others, Some(scan))?, others))
        });
        let (grouped, rest) = match scans {
            Some(scans) => scans,
            None => (fits(&rest, None)?, rest),
        };
        Some((
            grouped,
            Keys {
                of_point,
                of_output,
                rest,
            },
        ))
    })
}

/// The groups that a guard makes.
pub(super) fn grouped(facts: &Facts<'_>) -> Result<Grouped, Reason> {
    let found = grouping(facts.kernel).map(|(grouped, _)| grouped);
    found.ok_or(Reason::of(
        "the guard equates no value of many reduced points with one of an output point",
    ))
}
