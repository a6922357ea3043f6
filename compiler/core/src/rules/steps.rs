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
use std::collections::{HashMap, VecDeque};

/// The steps of rules, by class.
pub(super) struct Steps(HashMap<Id, TermGraph>);

/// The terms of a class, and how each came about.
#[derive(Default)]
struct TermGraph {
    terms: Vec<Term>,
    numbers: HashMap<Term, usize>,
    /// By term: the rule by which it came about, and of which term, on the shortest way from what the class was first made of.
    from: Vec<Option<(&'static str, usize)>>,
}

impl TermGraph {
    fn number(&mut self, term: Term) -> usize {
        let next = self.terms.len();
        let number = *self.numbers.entry(term.clone()).or_insert(next);
        if number == next {
            self.terms.push(term);
        }
        number
    }

    /// Goes from the first term through all steps; `edges` are those of each term, in the order in which they were taken.
    fn go(&mut self, first: usize, edges: &[Edges]) {
        self.from = vec![None; self.terms.len()];
        let mut queue = VecDeque::from([first]);
        while let Some(now) = queue.pop_front() {
            for (rule, next) in &edges[now] {
                if *next != first && self.from[*next].is_none() {
                    self.from[*next] = Some((rule, now));
                    queue.push_back(*next);
                }
            }
        }
    }
}

/// The steps from a term: each one's rule, and the term that it leads to.
type Edges = Vec<(&'static str, usize)>;

impl Steps {
    /// All steps, over the classes as they are now.
    pub fn new(graph: &Graph) -> Steps {
        let mut found: HashMap<Id, (TermGraph, Vec<Edges>)> = HashMap::new();
        for step in &graph.history {
            let (ways, edges) = found.entry(graph.egraph.find(step.class)).or_default();
            let before = ways.number(graph.current(&step.before));
            let after = ways.number(graph.current(&step.term));
            edges.resize(ways.terms.len(), vec![]);
            edges[before].push((step.rule, after));
            edges[after].push((step.rule, before));
        }
        let mut first: HashMap<Id, Term> = HashMap::new();
        for (class, term) in &graph.first {
            let entry = first.entry(graph.egraph.find(*class));
            entry.or_insert_with(|| graph.current(term));
        }
        let gone = found.into_iter().filter_map(|(class, (mut ways, edges))| {
            let first = *ways.numbers.get(first.get(&class)?)?;
            ways.go(first, &edges);
            Some((class, ways))
        });
        Steps(gone.collect())
    }

    /// The shortest way to a term from what its class was first made of.
    pub fn chain(&self, class: Id, term: &Term) -> Vec<(&'static str, &Term, &Term)> {
        let Some(ways) = self.0.get(&class) else {
            return vec![];
        };
        let mut chain = vec![];
        let mut at = match term.head {
            Head::Whole(..) => None,
            _ => ways.numbers.get(term).copied(),
        };
        while let Some(now) = at
            && let Some((rule, before)) = ways.from[now]
        {
            chain.push((rule, &ways.terms[before], &ways.terms[now]));
            at = Some(before);
        }
        chain.reverse();
        chain
    }
}
