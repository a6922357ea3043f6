//! The rules, one row each, and their saturation.
//!
//! Must not know programs.
//!
//! ```text
//! R2-2   σᴸ(p)(SHUF(D)(R)) ≡ SHUF(D)(σᴸ(p)(R))
//! ```

use super::graph::{Graph, Kind, View};
use super::row::{Find, Row, Sides};
use super::{collective, compose, matmul, moves, table};
use crate::rules::RuleInfo;
use egg::Id;
use std::collections::HashSet;

/// The families, in the order in which proofs try them.
pub const FAMILIES: [&str; 5] = [
    "re-partition",
    "table 3.1",
    "collectives",
    "kernel composition",
    "matrix multiplication",
];

/// Every row.
pub fn rows() -> Vec<Row> {
    let groups = [
        compose::ROWS,
        moves::ROWS,
        table::ROWS,
        matmul::ROWS,
        collective::ROWS,
    ];
    groups.concat()
}

/// Every rule.
pub fn all() -> Vec<RuleInfo> {
    rows().into_iter().map(|row| row.info).collect()
}

/// Why a saturation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing new can be found.
    Saturated,
    /// The goal was found.
    Found,
    /// The graph has as many nodes as it may.
    Nodes,
    /// The time is over.
    Time,
}

/// The limits of a saturation.
pub struct Bounds<'a> {
    /// Most nodes.
    pub nodes: usize,
    /// True if the time is over.
    pub deadline: &'a dyn Fn() -> bool,
}

/// A way of applying a row, with the row's name.
pub type Way = (&'static str, Find);

/// The ways of applying rows of some families that are not disabled.
pub fn ways(families: &[&str], expand: bool, disabled: &[String]) -> Vec<Way> {
    rows()
        .iter()
        .filter(|row| families.contains(&row.info.family))
        .filter(|row| disabled.iter().all(|name| name != row.info.name))
        .flat_map(|row| {
            let away = row.expand.filter(|_| expand);
            let found = row.simplify.into_iter().chain(away);
            found.map(|find| (row.info.name, find))
        })
        .collect()
}

/// Applies rows until nothing is new, or `done`, or out of bounds. The graph is rebuilt afterwards.
pub fn saturate(
    graph: &mut Graph,
    ways: &[Way],
    bounds: &Bounds<'_>,
    done: &mut dyn FnMut(&Graph) -> bool,
) -> Ended {
    let mut applied: HashSet<(&str, Sides)> = HashSet::new();
    loop {
        graph.rebuild();
        if done(graph) {
            return Ended::Found;
        }
        let found = matches(graph, ways);
        let mut new = false;
        for (count, (name, sides)) in found.into_iter().enumerate() {
            if !applied.insert((name, sides.clone())) {
                continue;
            }
            if graph.total_number_of_nodes() >= bounds.nodes {
                graph.rebuild();
                return match done(graph) {
                    true => Ended::Found,
                    false => Ended::Nodes,
                };
            }
            if count % 64 == 0 && (bounds.deadline)() {
                graph.rebuild();
                return Ended::Time;
            }
            new |= apply(graph, name, &sides);
        }
        if !new {
            return Ended::Saturated;
        }
    }
}

/// Every application of rows in a rebuilt graph, in a fixed order.
pub fn matches(graph: &Graph, ways: &[Way]) -> Vec<(&'static str, Sides)> {
    let view = View::new(graph);
    let mut ids: Vec<Id> = graph.classes().map(|class| class.id).collect();
    ids.sort_unstable();
    let mut found = vec![];
    let mut sides = vec![];
    for id in ids {
        for term in &graph[id].nodes {
            for (name, find) in ways {
                find(&view, id, term, &mut sides);
                found.extend(sides.drain(..).map(|sides| (*name, sides)));
            }
        }
    }
    found
}

/// Makes both sides one class; whether that was new. A side that is no relation is left alone.
pub fn apply(graph: &mut Graph, name: &str, sides: &Sides) -> bool {
    let before = graph.total_size();
    let (left, right) = (sides.0.add(graph), sides.1.add(graph));
    let nothing = |id: Id| graph[graph.find(id)].data == Kind::Nothing;
    let grown = graph.total_size() != before;
    if nothing(left) || nothing(right) {
        return grown;
    }
    let same = graph.find(left) == graph.find(right);
    if !same {
        graph.union_trusted(left, right, name);
    }
    grown || !same
}
