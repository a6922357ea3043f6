//! Products over sums, both ways.
//!
//! Factoring finds a factor that two terms of a sum share, also under reductions; distributing multiplies a reduced
//! product out, which pays where a summand is a product of small factors. Must not know costs.
//!
//! ```text
//! (sum_k A[i, k] * B[k, j]) + (sum_k A[i, k] * C[k, j])   =   sum_k A[i, k] * (B[k, j] + C[k, j])
//! ```

use super::RuleInfo;
use super::graph::{Graph, law_of};
use super::laws::{self, Law};
use super::saturate::Row;
use super::term::{Argument, Head, Operation, Term};
use egg::Id;
use ein_plan::{Function, Reduction};

/// Longest sums whose terms are compared.
const MOST_TERMS: usize = 8;
/// Most forms of one summand that are compared.
const MOST_VIEWS: usize = 4;
/// Widest products and sums that are multiplied out.
const MOST_DISTRIBUTED: usize = 4;

/// The rules of this family.
pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str, left, right, conditions, note, apply| Row {
        info: RuleInfo {
            name,
            family: "distribute",
            paper: "classical; the distributive law of a semiring",
            left,
            right,
            conditions,
            note,
        },
        loose: false,
        depth: if name == "factor" { 2 } else { 1 },
        apply,
    };
    vec![
        row(
            "factor",
            "(sum_k a ⊗ b) ⊕ (sum_k a ⊗ c)",
            "sum_k a ⊗ (b ⊕ c)",
            &[
                "⊗ distributes over ⊕",
                "no index is empty",
                "a is read at the same indices",
                "floats: something is reduced",
            ],
            "Indices that a lacks are reduced inside; a subtracted term keeps its sign; a ⊕ (a ⊗ c) takes b = 1. Element by element, b ⊕ c may be infinite where no term is.",
            factor,
        ),
        row(
            "distribute",
            "sum_k a ⊗ (b ⊕ c)",
            "(sum_k a ⊗ b) ⊕ (sum_k a ⊗ c)",
            &[
                "⊗ distributes over ⊕",
                "no index is empty",
                "something is reduced",
                "b ⊕ c is not divided by",
                "floats: b ⊕ c is no difference and stands once in the product",
            ],
            "Pays for sums of low-rank products: (U V + D) x. Multiplied out, (x - y)² can be negative.",
            distribute,
        ),
    ]
}

/// A summand as a product.
struct View {
    factors: Vec<Argument>,
    reduced: Vec<u32>,
}

/// The forms of a summand as products of a law.
fn views(graph: &Graph, argument: &Argument, law: &Law, extents: &mut Vec<u64>) -> Vec<View> {
    let plain = Argument {
        turned: false,
        ..argument.clone()
    };
    let mut views = vec![View {
        factors: vec![plain],
        reduced: vec![],
    }];
    for term in graph.terms(argument.class) {
        let product = term.head == Head::Fold(law.product)
            || term.head == Head::Copy && term.reduction.is_some();
        let reduction = term.reduction.is_none_or(|r| r == law.reduction);
        if product && reduction && views.len() < MOST_VIEWS {
            let (factors, reduced) = term.instance(&argument.indices, extents);
            views.push(View { factors, reduced });
        }
    }
    views
}

fn factor(graph: &mut Graph, class: Id, term: &Term) {
    let Head::Fold(sum) = term.head else {
        return;
    };
    let count = term.children.len();
    if !(2..=MOST_TERMS).contains(&count) {
        return;
    }
    let dtype = graph.compute(term.children[0]);
    let laws: Vec<&'static Law> = laws::of_sum(sum, dtype)
        .filter(|law| term.reduction.is_none_or(|r| r == law.reduction))
        .collect();
    let arguments = term.arguments();
    for law in laws {
        for p in 0..count {
            for q in p + 1..count {
                let mut extents = term.extents.clone();
                let left = views(graph, &arguments[p], law, &mut extents);
                let right = views(graph, &arguments[q], law, &mut extents);
                for (l, r) in left.iter().flat_map(|l| right.iter().map(move |r| (l, r))) {
                    let is_reduced = [l, r].iter().any(|view| !view.reduced.is_empty());
                    if dtype.is_float() && !is_reduced && term.reduction.is_none() {
                        continue;
                    }
                    let pair = Pair {
                        law,
                        sum,
                        turned: (arguments[p].turned, arguments[q].turned),
                        left: l,
                        right: r,
                    };
                    pair.factor(graph, (class, term), (p, q), &extents);
                }
            }
        }
    }
}

struct Pair<'a> {
    law: &'static Law,
    sum: Function,
    turned: (bool, bool),
    left: &'a View,
    right: &'a View,
}

impl Pair<'_> {
    fn factor(
        &self,
        graph: &mut Graph,
        (class, term): (Id, &Term),
        (p, q): (usize, usize),
        extents: &[u64],
    ) {
        for (at, a) in self.left.factors.iter().enumerate() {
            for (other, b) in self.right.factors.iter().enumerate() {
                let Some(map) = self.same(graph, a, b) else {
                    continue;
                };
                let common: Vec<u32> = self
                    .left
                    .reduced
                    .iter()
                    .copied()
                    .filter(|i| a.indices.contains(i))
                    .collect();
                let renamed = |i: &u32| {
                    map.iter()
                        .find(|(from, _)| from == i)
                        .map_or(*i, |(_, to)| *to)
                };
                let rest = |factors: &[Argument], skip: usize| -> Vec<Argument> {
                    let kept = factors.iter().enumerate().filter(|(n, _)| *n != skip);
                    kept.map(|(_, f)| Argument {
                        indices: f.indices.iter().map(renamed).collect(),
                        ..f.clone()
                    })
                    .collect()
                };
                let (left, right) = (
                    rest(&self.left.factors, at),
                    rest(&self.right.factors, other),
                );
                let own = |reduced: &[u32]| -> Vec<u32> {
                    let reduced = reduced.iter().map(renamed);
                    reduced.filter(|i| !common.contains(i)).collect()
                };
                let (own_left, own_right) = (own(&self.left.reduced), own(&self.right.reduced));
                let left = self.rest(graph, left, own_left, extents);
                let right = self.rest(graph, right, own_right, extents);
                let (Some(mut left), Some(mut right)) = (left, right) else {
                    continue;
                };
                left.turned = self.turned.0;
                right.turned = self.turned.1;
                let inner = graph.fresh(Operation::fold(self.sum, vec![left, right]), &[], extents);
                let product = Operation::fold(self.law.product, vec![a.clone(), inner]);
                let mut others = term.arguments();
                others.remove(q);
                others.remove(p);
                let operation = if others.is_empty() {
                    let reduced = term.reduced().into_iter().chain(common).collect();
                    product.reduce(Some(self.law.reduction), reduced)
                } else {
                    let product = product.reduce(Some(self.law.reduction), common);
                    others.push(graph.fresh(product, &[], extents));
                    Operation::fold(self.sum, others).reduce(term.reduction, term.reduced())
                };
                graph.unite("factor", class, term, operation, extents);
            }
        }
    }

    /// Which indices of the right summand are which of the left one's, if both factors are the same then.
    fn same(&self, graph: &Graph, a: &Argument, b: &Argument) -> Option<Vec<(u32, u32)>> {
        let number = graph.data(a.class).constant.is_some();
        let same = graph.egraph.find(a.class) == graph.egraph.find(b.class);
        if number || !same || a.turned != b.turned {
            return None;
        }
        let mut map: Vec<(u32, u32)> = vec![];
        for (i, j) in a.indices.iter().zip(&b.indices) {
            let (inside, other) = (
                self.left.reduced.contains(i),
                self.right.reduced.contains(j),
            );
            let fits = match (inside, other) {
                (false, false) => i == j,
                (true, true) => map.iter().all(|(from, to)| (from == j) == (to == i)),
                _ => false,
            };
            if !fits {
                return None;
            }
            if inside && !map.contains(&(*j, *i)) {
                map.push((*j, *i));
            }
        }
        Some(map)
    }

    /// The product of what is left of a summand; 1 if that is nothing.
    fn rest(
        &self,
        graph: &mut Graph,
        factors: Vec<Argument>,
        mut reduced: Vec<u32>,
        extents: &[u64],
    ) -> Option<Argument> {
        if factors.is_empty() {
            reduced.clear();
            let dtype = graph.compute(self.left.factors[0].class);
            let one = laws::identity(self.law.product, dtype)?;
            return Some(graph.constant(one, dtype));
        }
        let product = Operation::fold(self.law.product, factors);
        Some(graph.fresh(
            product.reduce(Some(self.law.reduction), reduced),
            &[],
            extents,
        ))
    }
}

fn distribute(graph: &mut Graph, class: Id, term: &Term) {
    let Some(law) = law_of(graph, term) else {
        return;
    };
    if term.children.len() > MOST_DISTRIBUTED {
        return;
    }
    let reduction: Option<Reduction> = term.reduction;
    for (at, child) in term.children.iter().enumerate() {
        if term.reads[at].turned {
            continue;
        }
        for inner in graph.terms(*child) {
            let plain = inner.head == Head::Fold(law.sum) && inner.reduction.is_none();
            if !plain || inner.children.len() > MOST_DISTRIBUTED {
                continue;
            }
            // (x - y)² is never negative, x² - 2xy + y² can be: what cancels exactly must not be torn apart.
            let cancels = inner.reads.iter().any(|read| read.turned)
                || term.children.iter().filter(|other| *other == child).count() > 1;
            if cancels && graph.compute(*child).is_float() {
                continue;
            }
            let mut extents = term.extents.clone();
            let (summands, _) = inner.instance(&term.reads[at].indices, &mut extents);
            let summands = summands.into_iter().map(|summand| {
                let turned = summand.turned;
                let mut factors = term.arguments();
                factors[at] = Argument {
                    turned: false,
                    ..summand
                };
                let product = Operation::fold(law.product, factors);
                let product = product.reduce(reduction, term.reduced());
                Argument {
                    turned,
                    ..graph.fresh(product, &[], &extents)
                }
            });
            let sum = Operation::fold(law.sum, summands.collect());
            graph.unite("distribute", class, term, sum, &extents);
        }
    }
}
