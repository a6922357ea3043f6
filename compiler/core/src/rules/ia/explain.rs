//! Proofs as text: the applications of rows, one a line, from egg's explanations.
//!
//! A step shows the two sides of the row where it was applied; relations of the programs below it are named, not spelled out. Must not
//! know how the proof was found.
//!
//! ```text
//! C: R2-1   SHUF(⟨0⟩)(BCAST(A)) = SHUF(⟨0⟩)(A)
//! ```

use super::graph::{Facts, Graph, applied};
use super::language::Term;
use egg::{Explanation, FlatTerm, Id, Symbol};
use std::collections::HashMap;

/// One application of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofStep {
    /// The row's name.
    pub rule: String,
    /// The text before the step.
    pub before: String,
    /// The text after the step.
    pub after: String,
    /// The tensor that the changed relation belongs to.
    pub tensor: String,
}

/// Operators that are spelled out below a changed one.
const DEPTH: usize = 3;

/// The steps of an explanation. `names` gives the relation and tensor of classes that are relations of a program; `tensor` is the one
/// that the proof is about.
pub fn steps(
    mut explanation: Explanation<Term>,
    graph: &Graph,
    names: &HashMap<Id, (String, String)>,
    tensor: &str,
) -> Vec<ProofStep> {
    let terms = explanation.make_flat_explanation();
    let mut steps = vec![];
    for pair in terms.windows(2) {
        collect(&pair[0], &pair[1], graph, names, tensor, &mut steps);
    }
    steps
}

/// The class of a flat term, if the graph has it.
fn class(term: &FlatTerm<Term>, graph: &Graph) -> Option<Id> {
    let children = term.children.iter().map(|child| class(child, graph));
    let node = Term {
        operator: term.node.operator.clone(),
        children: children.collect::<Option<_>>()?,
    };
    graph.lookup(node)
}

fn collect(
    before: &FlatTerm<Term>,
    after: &FlatTerm<Term>,
    graph: &Graph,
    names: &HashMap<Id, (String, String)>,
    tensor: &str,
    steps: &mut Vec<ProofStep>,
) {
    let rule: Option<Symbol> = after.forward_rule.or(after.backward_rule);
    if let Some(rule) = rule {
        let own = class(after, graph).and_then(|id| names.get(&id));
        steps.push(ProofStep {
            rule: rule.to_string(),
            before: print(before, graph, names, DEPTH),
            after: print(after, graph, names, DEPTH),
            tensor: own.map_or(tensor, |(_, tensor)| tensor).into(),
        });
        return;
    }
    let inner = after.children.iter().any(changed);
    if inner && before.children.len() == after.children.len() {
        let own = class(after, graph).and_then(|id| names.get(&id));
        let tensor = own.map_or(tensor, |(_, tensor)| tensor);
        for (before, after) in before.children.iter().zip(&after.children) {
            collect(before, after, graph, names, tensor, steps);
        }
    }
}

fn changed(term: &FlatTerm<Term>) -> bool {
    term.has_rewrite_forward() || term.has_rewrite_backward()
}

/// A flat term, spelled out to a depth; below it relations of the programs by name.
fn print(
    term: &FlatTerm<Term>,
    graph: &Graph,
    names: &HashMap<Id, (String, String)>,
    depth: usize,
) -> String {
    let facts: &Facts = &graph.analysis;
    let operator = facts.print(&term.node.operator);
    if depth < DEPTH
        && let Some((name, _)) = class(term, graph).and_then(|id| names.get(&id))
    {
        return name.clone();
    }
    if depth == 0 && !term.children.is_empty() {
        return format!("{operator}(…)");
    }
    let children: Vec<String> = term
        .children
        .iter()
        .map(|child| print(child, graph, names, depth.saturating_sub(1)))
        .collect();
    let children: Vec<&str> = children.iter().map(String::as_str).collect();
    applied(&operator, &children)
}

impl std::fmt::Display for ProofStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ProofStep {
            rule,
            before,
            after,
            tensor,
        } = self;
        write!(f, "{tensor}: {rule}   {before} = {after}")
    }
}
