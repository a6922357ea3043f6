//! How a chosen term came about: the shortest chain of rule steps in its class.
//!
//! Must not know what a rule does, only what it looked at and what it derived.
//!
//! ```text
//! join-sums: p + q = sum_k (a + b);  factor: sum_k (a + b) = sum_k x * (y + z)
//! ```

use super::extract::Search;
use super::term::{Head, Term};
use egg::Id;
use std::collections::{HashMap, VecDeque};

/// The steps of rules, by class.
pub(super) struct Steps {
    /// What a class was first made of.
    first: HashMap<Id, Term>,
    steps: HashMap<Id, Vec<Step>>,
}

struct Step {
    rule: &'static str,
    before: Term,
    after: Term,
}

impl Steps {
    /// All steps, over the classes as they are now.
    pub fn new(search: &Search<'_>) -> Steps {
        let graph = search.bound.graph;
        let mut first = HashMap::new();
        for (class, term) in &graph.first {
            let entry = first.entry(graph.egraph.find(*class));
            entry.or_insert_with(|| search.current(term));
        }
        let mut steps: HashMap<Id, Vec<Step>> = HashMap::new();
        for step in &graph.history {
            let of_class = steps.entry(graph.egraph.find(step.class)).or_default();
            of_class.push(Step {
                rule: step.rule,
                before: search.current(&step.before),
                after: search.current(&step.term),
            });
        }
        Steps { first, steps }
    }

    /// The shortest way to a term from what its class was first made of.
    pub fn chain<'s>(
        &'s self,
        class: Id,
        term: &'s Term,
    ) -> Vec<(&'static str, &'s Term, &'s Term)> {
        let (Some(first), Some(steps)) = (self.first.get(&class), self.steps.get(&class)) else {
            return vec![];
        };
        if matches!(term.head, Head::Whole(..)) {
            return vec![];
        }
        let mut from: HashMap<&Term, (&'static str, &Term)> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(now) = queue.pop_front() {
            for step in steps {
                let next = match (*now == step.before, *now == step.after) {
                    (true, _) => &step.after,
                    (_, true) => &step.before,
                    _ => continue,
                };
                if next != first && !from.contains_key(next) {
                    from.insert(next, (step.rule, now));
                    queue.push_back(next);
                }
            }
        }
        let mut chain = vec![];
        let mut at = term;
        while let Some((rule, before)) = from.get(at) {
            chain.push((*rule, *before, at));
            at = before;
        }
        chain.reverse();
        chain
    }
}
