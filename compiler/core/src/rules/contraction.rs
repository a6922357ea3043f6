//! Products of many factors: merged into one, and multiplied in the best order.
//!
//! Holds for every row of [`super::laws`], not for sums of products alone. Must not know which order is best where
//! data has to move.
//!
//! ```text
//! T[i, l] = sum A[i, k] * B[k, l];  y[i] = sum T[i, l] * x[l]
//! gives   y[i] = sum A[i, k] * B[k, l] * x[l]   and that   t[k] = sum B[k, l] * x[l];  y[i] = sum A[i, k] * t[k]
//! ```

use super::RuleInfo;
use super::graph::{Graph, law_of};
use super::laws;
use super::order::{Network, Order, orders};
use super::saturate::Row;
use super::term::{Argument, Head, Operation, Term};
use egg::Id;

/// Most factors that a rule merges to; wider products come from the program itself.
const MOST_MERGED: usize = 8;

/// Most indices of what a rule merges, those of the inner term counted twice.
pub(super) const MOST_INDICES: usize = 32;

/// The rules of this family.
pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str, left, right, conditions, note, apply| Row {
        info: RuleInfo {
            name,
            family: "contraction",
            paper: "optimizer: n-ary nodes; generalised distributive law (Aji and McEliece 2000)",
            left,
            right,
            conditions,
            note,
        },
        loose: false,
        depth: if name == "merge-products" {
            2
        } else {
            u32::MAX
        },
        apply,
    };
    vec![
        row(
            "merge-products",
            "sum_k (sum_l a ⊗ b) ⊗ c",
            "sum_kl a ⊗ b ⊗ c",
            &[
                "⊗ distributes over the reduction",
                "no index is empty",
                "the inner one is not divided by",
            ],
            "Both forms stay; an element-wise tensor with several uses is not merged; chains whose intermediates have one use are merged as a whole.",
            merge,
        ),
        row(
            "contraction-order",
            "sum_kl a[i, k] ⊗ b[k, l] ⊗ c[l, j]",
            "sum_k a[i, k] ⊗ (sum_l b[k, l] ⊗ c[l, j])",
            &[
                "⊗ distributes over the reduction",
                "no index is empty",
                "three factors or more",
            ],
            "The order with the least arithmetic, and others within twice of it.",
            |graph, class, term| order(graph, class, term, "contraction-order"),
        ),
        row(
            "pull-factor",
            "sum_k x[i] ⊗ y[k]",
            "x[i] ⊗ sum_k y[k]",
            &[
                "⊗ distributes over the reduction",
                "no index is empty",
                "a factor lacks a reduced index",
            ],
            "Also max_k (x + y[k]) = x + max_k y[k] and the like; integers only where wrapping allows it.",
            |graph, class, term| order(graph, class, term, "pull-factor"),
        ),
    ]
}

/// The term in which `outer` reads through its argument number `at`, a class of `inner`; none unless that is sound and
/// one of them reduces.
pub(super) fn absorb(graph: &Graph, outer: &Term, at: usize, inner: &Term) -> Option<Term> {
    let dimensions = outer.dimensions();
    let (operation, extents) = absorbed(graph, outer, at, inner)?;
    Some(graph.term(operation, &dimensions, &extents))
}

fn absorbed(graph: &Graph, outer: &Term, at: usize, inner: &Term) -> Option<(Operation, Vec<u64>)> {
    let head = match (outer.head, inner.head) {
        (Head::Fold(f), Head::Fold(g)) if f == g => Head::Fold(f),
        (Head::Fold(f), Head::Copy) | (Head::Copy, Head::Fold(f)) => Head::Fold(f),
        (Head::Copy, Head::Copy) => Head::Copy,
        _ => return None,
    };
    if outer.extents.contains(&0) || inner.extents.contains(&0) {
        return None;
    }
    let dtype = graph.compute(outer.children[at]);
    let reduction = match (outer.reduction, inner.reduction) {
        (Some(a), Some(b)) if a == b => a,
        (Some(a), None) | (None, Some(a)) => a,
        _ => return None,
    };
    // Of two reductions with nothing between them only the kind matters.
    let nested = outer.head == Head::Copy
        && outer.reduction == inner.reduction
        && laws::step(reduction).is_some();
    let lawful = |f| laws::of_reduction(reduction, f, dtype).is_some();
    let sound = match head {
        Head::Fold(f) => {
            nested || lawful(f) && (outer.head != Head::Copy || inner.reduction.is_none())
        }
        _ => nested,
    };
    let mut extents = outer.extents.clone();
    let mut arguments = outer.arguments();
    let read = arguments.remove(at);
    if !sound || read.turned && inner.reduction.is_some() {
        return None;
    }
    let (mut inside, more) = inner.instance(&read.indices, &mut extents);
    for argument in &mut inside {
        argument.turned ^= read.turned;
    }
    arguments.extend(inside);
    let operation = Operation {
        head,
        reduction: None,
        reduced: vec![],
        arguments,
    };
    let reduced = outer.reduced().into_iter().chain(more).collect();
    Some((operation.reduce(Some(reduction), reduced), extents))
}

fn merge(graph: &mut Graph, class: Id, term: &Term) {
    if !matches!(term.head, Head::Fold(_) | Head::Copy) {
        return;
    }
    for at in 0..term.children.len() {
        let child = graph.egraph.find(term.children[at]);
        if graph.absorbed.contains(&child) {
            continue;
        }
        let shared = graph.shared.contains(&child);
        let fits = |inner: &Term| {
            let wide = term.children.len() + inner.children.len() > MOST_MERGED + 1;
            // To compute an element-wise tensor again in every reader is fusion, and not decided here.
            let again = inner.reduction.is_none() && shared;
            !wide && !again && matches!(inner.head, Head::Fold(_) | Head::Copy)
        };
        for inner in graph.terms_where(child, fits) {
            if let Some((operation, extents)) = absorbed(graph, term, at, &inner)
                && extents.len() <= MOST_INDICES
            {
                graph.unite("merge-products", class, term, operation, &extents);
            }
        }
    }
}

fn order(graph: &mut Graph, class: Id, term: &Term, rule: &'static str) {
    let many = term.children.len() > 2;
    if many != (rule == "contraction-order") || term.extents.len() > 128 {
        return;
    }
    let Some(law) = law_of(graph, term) else {
        return;
    };
    if !graph.ordered.insert(term.clone()) {
        return;
    }
    let arguments = term.arguments();
    let set = |indices: &[u32]| indices.iter().fold(0u128, |set, i| set | 1 << i);
    let network = Network {
        extents: term.extents.clone(),
        factors: arguments.iter().map(|a| set(&a.indices)).collect(),
        kept: set(&term.dimensions()),
    };
    let read = network.factors.iter().fold(0, |all, f| all | f);
    if set(&term.reduced()) & !read != 0 {
        return;
    }
    for (tree, _) in orders(&network) {
        let mut builder = Builder {
            graph,
            network: &network,
            arguments: &arguments,
            law,
            extents: &term.extents,
        };
        let root = builder.operation(&tree, 0);
        graph.unite(rule, class, term, root, &term.extents);
    }
}

/// Builds the tensors of a tree of products.
struct Builder<'a> {
    graph: &'a mut Graph,
    network: &'a Network,
    arguments: &'a [Argument],
    law: &'static laws::Law,
    extents: &'a [u64],
}

impl Builder<'_> {
    /// The operation at the top of a tree; `outside` are the indices of all factors that are not in it.
    fn operation(&mut self, tree: &Order, outside: u128) -> Operation {
        let (arguments, indices) = match tree {
            Order::Factor(at) => (vec![self.arguments[*at].clone()], self.network.factors[*at]),
            Order::Pair(left, right) => {
                let (a, b) = (self.network.indices(left), self.network.indices(right));
                let left = self.argument(left, outside | b);
                let right = self.argument(right, outside | a);
                let set = |x: &Argument| x.indices.iter().fold(0u128, |set, i| set | 1 << i);
                let indices = set(&left) | set(&right);
                (vec![left, right], indices)
            }
        };
        let gone = indices & !self.network.remaining(indices, outside);
        let reduced = (0..128).filter(|i| gone >> i & 1 == 1).collect();
        Operation::fold(self.law.product, arguments).reduce(Some(self.law.reduction), reduced)
    }

    fn argument(&mut self, tree: &Order, outside: u128) -> Argument {
        let operation = self.operation(tree, outside);
        match (tree, operation.reduction, &operation.arguments[..]) {
            (Order::Factor(_), None, [only]) => only.clone(),
            _ => {
                let known = self.graph.first.len();
                let result = self.graph.fresh(operation, &[], self.extents);
                if self.graph.first.len() > known {
                    // Its order is known; merging it again would only lead back here.
                    self.graph.absorbed.insert(result.class);
                }
                result
            }
        }
    }
}
