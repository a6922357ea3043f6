//! Reductions of sums, of sums of reductions, and of filters.
//!
//! All hold exactly up to rounding, at infinities and NaN too, wherever no index is empty. Must not know costs.
//!
//! ```text
//! (sum_k a[i, k]) + (sum_k b[i, k])   =   sum_k a[i, k] + b[i, k]
//! ```

use super::RuleInfo;
use super::contraction::MOST_INDICES;
use super::graph::Graph;
use super::laws;
use super::saturate::Row;
use super::term::{Argument, Head, Operation, Term};
use egg::Id;
use ein_plan::Function;

/// Longest sums that are looked at.
const MOST_TERMS: usize = 6;

/// The rules of this family.
pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str, left, right, conditions, note, apply| Row {
        info: RuleInfo {
            name,
            family: "reduction",
            paper: "algebra.md, section 3 (beyond the papers)",
            left,
            right,
            conditions,
            note,
        },
        loose: false,
        depth: if name == "join-sums" { 0 } else { 2 },
        apply,
    };
    vec![
        row(
            "split-sum",
            "sum_k (a ⊕ b)",
            "(sum_k a) ⊕ (sum_k b)",
            &[
                "the reduction repeats ⊕",
                "floats: where a part is subtracted, each is a product",
                "no index is empty",
            ],
            "sum and +, prod and *, max and max, min and min, any and or, all and and; a subtracted term stays subtracted, except under prod.",
            split,
        ),
        row(
            "join-sums",
            "(sum_k a) ⊕ (sum_l b)",
            "sum_k (a ⊕ b)",
            &[
                "the reduction repeats ⊕",
                "k and l have equal extents",
                "no index is empty",
            ],
            "Delayed reduction: the logical half of ar(x) + ar(y) = ar(x + y).",
            join,
        ),
        row(
            "nested-reductions",
            "max_k max_l a",
            "max_kl a",
            &[
                "both reductions are the same",
                "it is sum, prod, max, min, any or all",
                "no index is empty",
            ],
            "",
            nested,
        ),
        row(
            "reduce-filter",
            "sum_k where(c, a, b)",
            "where(c, sum_k a, sum_k b)",
            &[
                "c does not depend on k",
                "it is sum, prod, max, min, any or all",
                "no index is empty",
            ],
            "A guard is where(c, a, 0), or whatever leaves the reduction as it is.",
            filter,
        ),
    ]
}

fn split(graph: &mut Graph, class: Id, term: &Term) {
    let Some((reduction, sum)) = term.reduction.and_then(|r| Some((r, laws::step(r)?))) else {
        return;
    };
    let mut sums: Vec<(Vec<Argument>, Vec<u64>)> = vec![];
    match term.head {
        Head::Fold(function) if function == sum => {
            sums.push((term.arguments(), term.extents.clone()));
        }
        Head::Copy => {
            for inner in graph.terms(term.children[0]) {
                if inner.head == Head::Fold(sum) && inner.reduction.is_none() {
                    let mut extents = term.extents.clone();
                    let (arguments, _) = inner.instance(&term.reads[0].indices, &mut extents);
                    sums.push((arguments, extents));
                }
            }
        }
        _ => {}
    }
    for (arguments, extents) in sums {
        let turned = arguments.iter().any(|a| a.turned);
        if !(2..=MOST_TERMS).contains(&arguments.len()) || turned && sum != Function::Add {
            continue;
        }
        let product = |argument: &Argument| {
            let mut terms = graph.terms(argument.class).into_iter();
            terms.any(|term| term.head == Head::Fold(Function::Mul) && term.reads.len() > 1)
        };
        if turned && graph.data(class).dtype.is_float() && !arguments.iter().all(product) {
            continue;
        }
        let parts = arguments.into_iter().map(|argument| {
            let turned = argument.turned;
            let part = Operation {
                head: Head::Copy,
                reduction: None,
                reduced: vec![],
                arguments: vec![Argument {
                    turned: false,
                    ..argument
                }],
            };
            let part = part.reduce(Some(reduction), term.reduced());
            Argument {
                turned,
                ..graph.fresh(part, &[], &extents)
            }
        });
        let operation = Operation::fold(sum, parts.collect());
        graph.unite("split-sum", class, term, operation, &extents);
    }
}

fn join(graph: &mut Graph, class: Id, term: &Term) {
    let Head::Fold(sum) = term.head else {
        return;
    };
    let Some(reduction) = laws::repeated(sum) else {
        return;
    };
    let count = term.children.len();
    if term.reduction.is_some() || !(2..=MOST_TERMS).contains(&count) {
        return;
    }
    let arguments = term.arguments();
    for p in 0..count {
        for q in p + 1..count {
            if (arguments[p].turned || arguments[q].turned) && sum != Function::Add {
                continue;
            }
            for a in graph.terms(arguments[p].class) {
                for b in graph.terms(arguments[q].class) {
                    if a.reduction != Some(reduction) || b.reduction != Some(reduction) {
                        continue;
                    }
                    let Some(pairs) = matching(&a, &b) else {
                        continue;
                    };
                    let mut extents = term.extents.clone();
                    let (left, reduced) = a.instance(&arguments[p].indices, &mut extents);
                    let (mut right, other) = b.instance(&arguments[q].indices, &mut extents);
                    for index in right.iter_mut().flat_map(|x| &mut x.indices) {
                        if let Some(at) = other.iter().position(|o| o == index) {
                            *index = reduced[pairs[at]];
                        }
                    }
                    let body = |graph: &mut Graph, head, arguments, turned| {
                        let body = Operation {
                            head,
                            reduction: None,
                            reduced: vec![],
                            arguments,
                        };
                        Argument {
                            turned,
                            ..graph.fresh(body, &[], &extents)
                        }
                    };
                    let left = body(graph, a.head, left, arguments[p].turned);
                    let right = body(graph, b.head, right, arguments[q].turned);
                    let joined = Operation::fold(sum, vec![left, right]);
                    let joined = joined.reduce(Some(reduction), reduced);
                    let mut others = arguments.clone();
                    others.remove(q);
                    others.remove(p);
                    let operation = match others.is_empty() {
                        true => joined,
                        false => {
                            others.push(graph.fresh(joined, &[], &extents));
                            Operation::fold(sum, others)
                        }
                    };
                    graph.unite("join-sums", class, term, operation, &extents);
                }
            }
        }
    }
}

/// For each reduced index of the second term one of the first with the same extent, all different.
fn matching(a: &Term, b: &Term) -> Option<Vec<usize>> {
    let (a, b) = (&a.extents[a.rank as usize..], &b.extents[b.rank as usize..]);
    let mut free: Vec<usize> = (0..a.len()).collect();
    let mut pairs = vec![];
    for extent in b {
        let at = free.iter().position(|i| a[*i] == *extent)?;
        pairs.push(free.remove(at));
    }
    free.is_empty().then_some(pairs)
}

fn nested(graph: &mut Graph, class: Id, term: &Term) {
    let step = term.reduction.and_then(laws::step);
    if step.is_none() || term.head != Head::Copy {
        return;
    }
    for inner in graph.terms(term.children[0]) {
        let few = term.extents.len() + inner.extents.len() <= MOST_INDICES;
        if inner.reduction == term.reduction && few {
            let mut extents = term.extents.clone();
            let (arguments, more) = inner.instance(&term.reads[0].indices, &mut extents);
            let operation = Operation {
                head: inner.head,
                reduction: None,
                reduced: vec![],
                arguments,
            };
            let reduced = term.reduced().into_iter().chain(more).collect();
            let operation = operation.reduce(term.reduction, reduced);
            graph.unite("nested-reductions", class, term, operation, &extents);
        }
    }
}

fn filter(graph: &mut Graph, class: Id, term: &Term) {
    let Some(reduction) = term.reduction.filter(|r| laws::step(*r).is_some()) else {
        return;
    };
    if term.head != Head::Copy {
        return;
    }
    for inner in graph.terms(term.children[0]) {
        if inner.head != Head::Apply(Function::Select) || inner.reduction.is_some() {
            continue;
        }
        let mut extents = term.extents.clone();
        let (mut arguments, _) = inner.instance(&term.reads[0].indices, &mut extents);
        let condition = arguments.remove(0);
        let (outside, inside): (Vec<u32>, Vec<u32>) = term
            .reduced()
            .into_iter()
            .partition(|i| !condition.indices.contains(i));
        if outside.is_empty() {
            continue;
        }
        let mut select = vec![condition];
        for argument in arguments {
            let part = Operation {
                head: Head::Copy,
                reduction: None,
                reduced: vec![],
                arguments: vec![argument],
            };
            let part = part.reduce(Some(reduction), outside.clone());
            select.push(graph.fresh(part, &[], &extents));
        }
        let select = Operation {
            head: Head::Apply(Function::Select),
            reduction: None,
            reduced: vec![],
            arguments: select,
        };
        let operation = match inside.is_empty() {
            true => select,
            false => Operation {
                head: Head::Copy,
                reduction: None,
                reduced: vec![],
                arguments: vec![graph.fresh(select, &[], &extents)],
            }
            .reduce(Some(reduction), inside),
        };
        graph.unite("reduce-filter", class, term, operation, &extents);
    }
}
