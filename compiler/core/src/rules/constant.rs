//! Numbers: identities, products of numbers, and reductions over what does not change.
//!
//! There is no rule for x * 0: it is not 0 where x is infinite or NaN. Must not know what numbers mean.
//!
//! ```text
//! x[i] * 1.0 = x[i]      sum_k x[i] = 6.0 * x[i]  (k: 6)      max_k x[i] = x[i]
//! ```

use super::RuleInfo;
use super::graph::Graph;
use super::laws;
use super::saturate::Row;
use super::term::{Argument, Head, Operation, Term};
use crate::einsum::scalar;
use egg::Id;
use ein_plan::{DType, Function, Reduction, Scalar};

/// The rules of this family.
pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str, left, right, conditions, note, apply| Row {
        info: RuleInfo {
            name,
            family: "constant",
            paper: "classical",
            left,
            right,
            conditions,
            note,
        },
        loose: name == "unused-index",
        depth: u32::MAX,
        apply,
    };
    vec![
        row(
            "identity-element",
            "x * 1, x + 0, x / 1, x - 0, max(x, -inf), x and true",
            "x",
            &[
                "the number changes nothing",
                "floats: it is not all that others are subtracted from",
            ],
            "x * 0 = 0 is not a rule: inf * 0 and NaN * 0 are NaN.",
            identity,
        ),
        row(
            "fold-constants",
            "x * 2 * 3",
            "x * 6",
            &[
                "both are numbers",
                "neither is subtracted or divided by",
                "floats: the result is no less a number of the type than they are",
            ],
            "",
            fold,
        ),
        row(
            "unused-index",
            "sum_k x[i], max_k x[i]",
            "n * x[i] (n: the extent of k), x[i]",
            &[
                "nothing that is reduced depends on k",
                "it is sum, max, min, any or all",
                "no index is empty",
            ],
            "The sum of a constant among them. Integers wrap on both sides.",
            unused,
        ),
    ]
}

fn value(graph: &Graph, argument: &Argument) -> Option<(Scalar, DType)> {
    let data = graph.data(argument.class);
    Some((data.constant?, data.dtype))
}

fn identity(graph: &mut Graph, class: Id, term: &Term) {
    let Head::Fold(function) = term.head else {
        return;
    };
    let neutral = |argument: &Argument| {
        let found = value(graph, argument);
        found.is_some_and(|(x, dtype)| laws::identity(function, dtype) == Some(x))
    };
    let mut arguments = term.arguments();
    let Some(at) = arguments.iter().position(neutral) else {
        return;
    };
    if arguments.len() < 2 {
        return;
    }
    let added = arguments.remove(at);
    // 0 - x is 0, and not -0, where x is 0.
    let floats = graph.data(added.class).dtype.is_float();
    if floats && function == Function::Add && arguments.iter().all(|a| a.turned) {
        return;
    }
    let operation = Operation::fold(function, arguments).reduce(term.reduction, term.reduced());
    graph.unite("identity-element", class, term, operation, &term.extents);
}

fn fold(graph: &mut Graph, class: Id, term: &Term) {
    let Head::Fold(function) = term.head else {
        return;
    };
    let mut arguments = term.arguments();
    let number = |a: &Argument| !a.turned && value(graph, a).is_some();
    let numbers: Vec<usize> = (0..arguments.len())
        .filter(|at| number(&arguments[*at]))
        .collect();
    let [first, second, ..] = numbers[..] else {
        return;
    };
    let (Some((a, dtype)), Some((b, _))) = (
        value(graph, &arguments[first]),
        value(graph, &arguments[second]),
    ) else {
        return;
    };
    let Ok(folded) = scalar::apply(function, &[a, b], dtype) else {
        return;
    };
    let folded = scalar::stored(folded, dtype);
    if dtype.is_float() && !is_plain(folded, &[a, b], dtype) {
        return;
    }
    arguments.remove(second);
    arguments[first] = graph.constant(folded, dtype);
    let operation = Operation::fold(function, arguments).reduce(term.reduction, term.reduced());
    graph.unite("fold-constants", class, term, operation, &term.extents);
}

/// Returns whether what numbers are folded into has neither overflowed nor lost digits to underflow, where they had not: x * 1e200 * 1e200 is 0 for
/// x = 0, and x * inf is NaN.
fn is_plain(folded: Scalar, of: &[Scalar], dtype: DType) -> bool {
    let (least, greatest) = match dtype {
        DType::F16 => (2f64.powi(-14), 65504.0),
        DType::BF16 | DType::F32 => (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        _ => (f64::MIN_POSITIVE, f64::MAX),
    };
    let normal = |x: Scalar| (least..=greatest).contains(&x.as_f64().abs());
    let special = |x: &Scalar| x.as_f64() == 0.0 || !x.as_f64().is_finite();
    normal(folded) || of.iter().any(special)
}

fn unused(graph: &mut Graph, class: Id, term: &Term) {
    let read: Vec<u32> = term.reads.iter().flat_map(|r| r.indices.clone()).collect();
    let (kept, unused): (Vec<u32>, Vec<u32>) =
        term.reduced().into_iter().partition(|i| read.contains(i));
    if unused.is_empty() {
        return;
    }
    let Some(reduction) = term.reduction else {
        return;
    };
    let rest = Operation {
        head: term.head,
        reduction: None,
        reduced: vec![],
        arguments: term.arguments(),
    }
    .reduce(Some(reduction), kept);
    let operation = match reduction {
        Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All => rest,
        Reduction::Sum => {
            let extents = unused.iter().map(|i| term.extents[*i as usize]);
            let rest = graph.fresh(rest, &[], &term.extents);
            let dtype = graph.compute(rest.class);
            let times = match dtype.is_float() {
                true => Scalar::Float(extents.map(|extent| extent as f64).product()),
                false => Scalar::Int(extents.fold(1, |n, e| n.wrapping_mul(e as i64))),
            };
            let times = scalar::convert(times, dtype);
            let times = graph.constant(times, dtype);
            Operation::fold(Function::Mul, vec![times, rest])
        }
        _ => return,
    };
    graph.unite("unused-index", class, term, operation, &term.extents);
}
