//! How a chosen term came about: the shortest chain of rule steps in its class.
//!
//! Must not know what a rule does, only what it looked at and what it derived.
//!
//! ```text
//! join-sums: p + q = sum_k (a + b);  factor: sum_k (a + b) = sum_k x * (y + z)
//! ```

use super::graph::Graph;
use super::term::{Head, Term};
use egg::Id;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The steps of rules, by class.
pub(super) struct Steps<'a> {
    graph: &'a Graph,
    /// By class: the places of its steps in the history.
    steps: FxHashMap<Id, Vec<usize>>,
    /// By class: the place of the term that it was first made of.
    first: FxHashMap<Id, usize>,
}

/// A step: the rule, the term that it looked at, and the one that it derived.
pub(super) type Step = (&'static str, Term, Term);

/// The steps from a term: each one's rule, and the term that it leads to.
type Edges = Vec<(&'static str, usize)>;

/// The terms of a class, and the steps between them.
#[derive(Default)]
struct TermGraph {
    terms: Vec<Term>,
    numbers: FxHashMap<Term, usize>,
    /// By term, in the order in which the steps were taken.
    edges: Vec<Edges>,
}

impl TermGraph {
    fn number(&mut self, term: Term) -> usize {
        let next = self.terms.len();
        let number = *self.numbers.entry(term.clone()).or_insert(next);
        if number == next {
            self.terms.push(term);
            self.edges.push(vec![]);
        }
        number
    }

    /// By term: the rule by which it came about, and of which term, on the shortest way from the first one.
    fn from(&self, first: usize) -> Vec<Option<(&'static str, usize)>> {
        let mut from = vec![None; self.terms.len()];
        let mut queue = VecDeque::from([first]);
        while let Some(now) = queue.pop_front() {
            for (rule, next) in &self.edges[now] {
                if *next != first && from[*next].is_none() {
                    from[*next] = Some((*rule, now));
                    queue.push_back(*next);
                }
            }
        }
        from
    }
}

impl<'a> Steps<'a> {
    /// All steps, over the classes as they are now.
    pub fn new(graph: &'a Graph) -> Steps<'a> {
        let mut steps: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
        for (at, step) in graph.history.iter().enumerate() {
            let class = graph.egraph.find(step.class);
            steps.entry(class).or_default().push(at);
        }
        let mut first = FxHashMap::default();
        for (at, (class, _)) in graph.first.iter().enumerate() {
            first.entry(graph.egraph.find(*class)).or_insert(at);
        }
        Steps {
            graph,
            steps,
            first,
        }
    }

    /// The shortest way to a term from what its class was first made of.
    pub fn chain(&self, class: Id, term: &Term) -> Vec<Step> {
        let whole = matches!(term.head, Head::Whole(..));
        let (Some(steps), Some(first), false) =
            (self.steps.get(&class), self.first.get(&class), whole)
        else {
            return vec![];
        };
        let mut ways = TermGraph::default();
        for step in steps.iter().map(|at| &self.graph.history[*at]) {
            let before = ways.number(self.graph.current(&step.before));
            let after = ways.number(self.graph.current(&step.term));
            ways.edges[before].push((step.rule, after));
            ways.edges[after].push((step.rule, before));
        }
        let first = self.graph.current(&self.graph.first[*first].1);
        let Some(first) = ways.numbers.get(&first) else {
            return vec![];
        };
        let from = ways.from(*first);
        let mut chain = vec![];
        let mut at = ways.numbers.get(term).copied();
        while let Some(now) = at
            && let Some((rule, before)) = from[now]
        {
            chain.push((rule, ways.terms[before].clone(), ways.terms[now].clone()));
            at = Some(before);
        }
        chain.reverse();
        chain
    }
}
