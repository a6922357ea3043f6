//! Reading at other indices instead of making tensors.
//!
//! Equal tensors, and tensors that are equal up to the order of their dimensions, meet when the program is translated;
//! a read at repeated indices goes through the statement that it reads. Must not know costs.
//!
//! ```text
//! z[i, j] = X[i, j] + Y[i, j];  d[i] = z[i, i]   gives   d[i] = X[i, i] + Y[i, i]
//! ```

use super::RuleInfo;
use super::graph::Graph;
use super::saturate::Row;
use super::term::{Argument, Head, Operation, Term};
use egg::Id;

/// The rules of this family.
pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str, paper, left, right, conditions, note, apply| Row {
        info: RuleInfo {
            name,
            family: "reindex",
            paper,
            left,
            right,
            conditions,
            note,
        },
        loose: false,
        depth: 4,
        apply,
    };
    let at_translation: fn(&mut Graph, Id, &Term) = |_, _, _| {};
    vec![
        row(
            "common-subexpression",
            "classical",
            "t = f(x);  u = f(x)",
            "t = f(x);  u is t",
            &[
                "neither is a source that is read or drawn",
                "element types are equal",
            ],
            "Terms are hash-consed; outputs keep their names.",
            at_translation,
        ),
        row(
            "transpose-read",
            "algebra.md, section 3 (re-indexing)",
            "t[j, i] = x[i, j];  … t[a, b] …",
            "… x[b, a] …",
            &["element types are equal", "nothing can fault"],
            "Also for two tensors with equal definitions up to the order of dimensions; a double transpose is none.",
            at_translation,
        ),
        row(
            "read-through",
            "thesis, end of \"Simple Equivalence Rules\": diag(X + Y)",
            "z[i, j] = f(x[i, j], y[j]);  … z[i, i] …",
            "… f(x[i, i], y[i]) …",
            &[
                "an index is repeated in the read",
                "no element of z is compared for equality",
                "nothing can fault",
                "no index is empty",
            ],
            "Also through reductions: the diagonal of a product needs no product.",
            read_through,
        ),
    ]
}

fn read_through(graph: &mut Graph, class: Id, term: &Term) {
    for (at, read) in term.reads.iter().enumerate() {
        let repeated =
            (1..read.indices.len()).any(|d| read.indices[..d].contains(&read.indices[d]));
        if !repeated || graph.is_compared(term.children[at]) {
            continue;
        }
        for inner in graph.terms(term.children[at]) {
            // A stored value is rounded where it is stored, and that stays.
            if matches!(inner.head, Head::Store(_)) {
                continue;
            }
            let mut extents = term.extents.clone();
            let (arguments, reduced) = inner.instance(&read.indices, &mut extents);
            let diagonal = Operation {
                head: inner.head,
                reduction: None,
                reduced: vec![],
                arguments,
            };
            let diagonal = diagonal.reduce(inner.reduction, reduced);
            let mut others = read.indices.clone();
            others.dedup();
            let diagonal = graph.fresh(diagonal, &others, &extents);
            let mut arguments = term.arguments();
            arguments[at] = Argument {
                turned: read.turned,
                ..diagonal
            };
            let operation = Operation {
                head: term.head,
                reduction: None,
                reduced: vec![],
                arguments,
            };
            let operation = operation.reduce(term.reduction, term.reduced());
            graph.unite("read-through", class, term, operation, &extents);
        }
    }
}
