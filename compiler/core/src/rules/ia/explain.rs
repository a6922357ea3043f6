//! Proofs as text: the applications of rows, one a line, from egg's explanations.
//!
//! A step shows the two sides of the row where it was applied; relations of the programs below it are named, not spelled out. Must not
//! know how the proof was found.
//!
//! ```text
//! C: R2-1   SHUF(⟨0⟩)(BCAST(A)) = SHUF(⟨0⟩)(A)
//! ```

use super::graph::{Facts, Graph, applied};
use super::language::{Operator, Term};
use egg::{Explanation, Id, TreeExplanation, TreeTerm};
use std::collections::HashMap;
use std::rc::Rc;

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
    explanation: &Explanation<Term>,
    graph: &Graph,
    names: &HashMap<Id, (String, String)>,
    tensor: &str,
) -> Vec<ProofStep> {
    let mut walk = Walk {
        graph,
        names,
        firsts: HashMap::new(),
        steps: vec![],
    };
    walk.proof(&explanation.explanation_trees, tensor);
    walk.steps
}

/// A term, and its class, if the graph has it.
struct Spelled {
    operator: Operator,
    children: Vec<Rc<Spelled>>,
    class: Option<Id>,
}

/// Goes through the terms of a proof, each of which shares what it has in common with the one before.
struct Walk<'a> {
    graph: &'a Graph,
    names: &'a HashMap<Id, (String, String)>,
    /// The terms with which parts of the proof begin.
    firsts: HashMap<*const TreeTerm<Term>, Rc<Spelled>>,
    steps: Vec<ProofStep>,
}

impl Walk<'_> {
    /// Notes the steps of a proof, and returns the term with which it ends. `tensor` is the one of the terms around it.
    fn proof(&mut self, proof: &TreeExplanation<Term>, tensor: &str) -> Option<Rc<Spelled>> {
        let names = self.names;
        let mut last: Option<Rc<Spelled>> = None;
        for tree in proof {
            let first = self.first(tree);
            let own = first.class.and_then(|class| names.get(&class));
            let tensor = own.map_or(tensor, |(_, tensor)| tensor);
            if let (Some(rule), Some(before)) = (tree.forward_rule.or(tree.backward_rule), &last) {
                self.steps.push(ProofStep {
                    rule: rule.to_string(),
                    before: self.print(before, DEPTH),
                    after: self.print(&first, DEPTH),
                    tensor: tensor.into(),
                });
            }
            let proofs = tree.child_proofs.iter();
            let ends: Vec<Rc<Spelled>> = proofs
                .filter_map(|proof| self.proof(proof, tensor))
                .collect();
            let same =
                (ends.iter().zip(&first.children)).all(|(end, first)| Rc::ptr_eq(end, first));
            last = Some(match same {
                true => first,
                false => self.spelled(first.operator.clone(), ends),
            });
        }
        last
    }

    /// The term with which a part of a proof begins.
    fn first(&mut self, tree: &Rc<TreeTerm<Term>>) -> Rc<Spelled> {
        if let Some(known) = self.firsts.get(&Rc::as_ptr(tree)) {
            return Rc::clone(known);
        }
        let proofs = tree.child_proofs.iter();
        let children = proofs.filter_map(|proof| Some(self.first(proof.first()?)));
        let children = children.collect();
        let first = self.spelled(tree.node.operator.clone(), children);
        self.firsts.insert(Rc::as_ptr(tree), Rc::clone(&first));
        first
    }

    fn spelled(&self, operator: Operator, children: Vec<Rc<Spelled>>) -> Rc<Spelled> {
        let classes: Option<Vec<Id>> = children.iter().map(|child| child.class).collect();
        let class = classes.and_then(|children| {
            let operator = operator.clone();
            self.graph.lookup(Term { operator, children })
        });
        Rc::new(Spelled {
            operator,
            children,
            class,
        })
    }

    /// A term, spelled out to a depth; below it relations of the programs by name.
    fn print(&self, term: &Spelled, depth: usize) -> String {
        let facts: &Facts = &self.graph.analysis;
        let operator = facts.print(&term.operator);
        if depth < DEPTH
            && let Some((name, _)) = term.class.and_then(|class| self.names.get(&class))
        {
            return name.clone();
        }
        if depth == 0 && !term.children.is_empty() {
            return format!("{operator}(…)");
        }
        let children = term.children.iter();
        let children: Vec<String> = children
            .map(|child| self.print(child, depth.saturating_sub(1)))
            .collect();
        let children: Vec<&str> = children.iter().map(String::as_str).collect();
        applied(&operator, &children)
    }
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
