//! The rules, round after round, until nothing new comes or a limit is reached.
//!
//! Terms are visited in a fixed order and every rule sees every term of a round once, so that results do not depend
//! on chance or time. Must not know any one rule.
//!
//! ```text
//! round 1: 12 changes   round 2: 3 changes   round 3: 0 changes, saturated
//! ```

use super::graph::Graph;
use super::term::Term;
use super::{Explored, LogicOptions, RuleInfo, Stop};
use egg::Id;
use std::collections::BTreeMap;

/// Most rounds.
const ROUNDS: usize = 6;
/// Terms of a class that a round looks at.
const MOST_TERMS: usize = 12;

/// A rule: how it is listed, and what it says about a term of a class.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// As it is listed.
    pub info: RuleInfo,
    /// True if it is for terms that repeat something over an index that is not read, and for no others.
    pub loose: bool,
    /// How many rules in a row may have led to what it looks at: rules that undo each other, or that make more work
    /// now so that another can save some, are not for long chains.
    pub depth: u32,
    /// Adds what the rule derives from the term, which is of that class.
    pub apply: fn(&mut Graph, Id, &Term),
}

/// Uses the rules up to the limits.
pub fn saturate(graph: &mut Graph, rows: &[Row], options: &LogicOptions<'_>) -> Explored {
    let mut iterations = 0;
    let stop = loop {
        if options.node_limit == 0 {
            break Stop::NodeLimit;
        }
        if iterations == ROUNDS {
            break Stop::IterationLimit;
        }
        let before = graph.changes;
        if let Some(stop) = round(graph, rows, options) {
            break stop;
        }
        iterations += 1;
        if graph.changes == before {
            break Stop::Saturated;
        }
    };
    graph.egraph.rebuild();
    let mut fired = BTreeMap::new();
    for step in &graph.history {
        *fired.entry(step.rule).or_default() += 1;
    }
    Explored {
        nodes: graph.egraph.total_number_of_nodes(),
        classes: graph.egraph.number_of_classes(),
        iterations,
        stop,
        fired,
    }
}

fn round(graph: &mut Graph, rows: &[Row], options: &LogicOptions<'_>) -> Option<Stop> {
    graph.refresh();
    let mut classes: Vec<Id> = graph.egraph.classes().map(|class| class.id).collect();
    classes.sort();
    let nodes = Nodes::counted_in(graph);
    for class in classes {
        if (options.deadline)() {
            return Some(Stop::Deadline);
        }
        let terms = (graph.terms(class), graph.loose(class));
        for row in rows {
            let terms = if row.loose { &terms.1 } else { &terms.0 };
            for term in terms.iter().take(MOST_TERMS) {
                if nodes.now(graph) >= options.node_limit {
                    return Some(Stop::NodeLimit);
                }
                let steps = graph.steps.get(term).copied().unwrap_or(0);
                if steps <= row.depth {
                    graph.step = steps + 1;
                    (row.apply)(graph, class, term);
                }
            }
        }
    }
    graph.egraph.rebuild();
    None
}

/// How many terms the classes of a graph hold. Counting them goes through all classes; within a round, where nothing is
/// rebuilt, every term that was added since is one more.
struct Nodes {
    added: usize,
    count: usize,
}

impl Nodes {
    fn counted_in(graph: &Graph) -> Nodes {
        Nodes {
            added: graph.egraph.total_size(),
            count: graph.egraph.total_number_of_nodes(),
        }
    }

    fn now(&self, graph: &Graph) -> usize {
        self.count + graph.egraph.total_size() - self.added
    }
}
