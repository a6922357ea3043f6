//! Terms as text, for people who ask which rules were used.
//!
//! Tensors have their names; what has none is written out, to some depth. Must not know rules.
//!
//! ```text
//! [i, j | k] sum A[i, k] * (B[k, j] + C[k, j])
//! ```

use super::bound::Bound;
use super::laws;
use super::term::{Head, Term, scalar};
use egg::Id;
use ein_plan::{Function, Scalar};

/// Deepest nesting.
const DEEPEST: usize = 5;
const LETTERS: [&str; 12] = ["i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "t", "u"];

/// A term.
pub(super) fn term(bound: &Bound<'_>, term: &Term) -> String {
    let mut names = vec![];
    let dimensions: Vec<String> = (0..term.rank).map(|_| fresh(&mut names)).collect();
    let (head, body) = body(bound, term, &dimensions, &mut names, 0);
    match head.is_empty() {
        true => format!("[{}] {body}", dimensions.join(", ")),
        false => format!("[{}] {head} {body}", dimensions.join(", ")),
    }
}

fn fresh(names: &mut Vec<String>) -> String {
    let at = names.len();
    let letter = LETTERS[at % LETTERS.len()];
    let name = match at / LETTERS.len() {
        0 => letter.to_string(),
        more => format!("{letter}{more}"),
    };
    names.push(name.clone());
    name
}

/// Prints the reduction and the expression under it.
fn body(
    bound: &Bound<'_>,
    term: &Term,
    dimensions: &[String],
    names: &mut Vec<String>,
    depth: usize,
) -> (String, String) {
    let mut indices = dimensions.to_vec();
    let mut reduced = vec![];
    for _ in &term.extents[term.rank as usize..] {
        let name = fresh(names);
        reduced.push(name.clone());
        indices.push(name);
    }
    let head = term.reduction.map_or(String::new(), |reduction| {
        format!("{}_{{{}}}", reduction.name(), reduced.join(", "))
    });
    if let Head::Whole(..) = term.head {
        let name = |child: &Id| match bound.tensor(*child) {
            Some((tensor, _)) => bound.program.tensors[tensor].name.clone(),
            None => "…".to_string(),
        };
        let read: Vec<String> = term.children.iter().map(name).collect();
        let at = dimensions.join(", ");
        return (head, format!("kernel({})[{at}]", read.join(", ")));
    }
    let mut arguments: Vec<(bool, String)> = vec![];
    for (read, child) in term.reads.iter().zip(&term.children) {
        let at: Vec<String> = read
            .indices
            .iter()
            .map(|i| indices[*i as usize].clone())
            .collect();
        arguments.push((read.turned, argument(bound, *child, &at, names, depth + 1)));
    }
    let plain: Vec<String> = arguments.iter().map(|(_, text)| text.clone()).collect();
    let list = plain.join(", ");
    let text = match term.head {
        Head::Source(tensor) => bound.program.tensors[tensor as usize].name.clone(),
        Head::Constant(bits, _) => number(scalar(bits)),
        Head::Fold(Function::Add) => joined(&arguments, [" + ", " - "], "-"),
        Head::Fold(Function::Mul) => joined(&arguments, [" * ", " / "], "1 / "),
        Head::Fold(function) | Head::Apply(function) => format!("{}({list})", function.name()),
        Head::Convert(dtype) | Head::Store(dtype) => format!("{dtype}({list})"),
        Head::Copy | Head::Whole(..) => list,
    };
    (head, text)
}

fn joined(arguments: &[(bool, String)], signs: [&str; 2], alone: &str) -> String {
    let mut text = String::new();
    for (at, (turned, argument)) in arguments.iter().enumerate() {
        match (at, turned) {
            (0, false) => {}
            (0, true) => text += alone,
            (_, turned) => text += signs[usize::from(*turned)],
        }
        text += argument;
    }
    text
}

fn number(value: Scalar) -> String {
    match value {
        Scalar::Float(x) => format!("{x:?}"),
        Scalar::Int(x) => x.to_string(),
        Scalar::Bool(x) => x.to_string(),
    }
}

fn argument(
    bound: &Bound<'_>,
    class: Id,
    at: &[String],
    names: &mut Vec<String>,
    depth: usize,
) -> String {
    if let Some((tensor, order)) = bound.tensor(class) {
        let name = &bound.program.tensors[tensor].name;
        let at: Vec<&str> = order.iter().map(|d| at[*d as usize].as_str()).collect();
        return match at.is_empty() {
            true => name.clone(),
            false => format!("{name}[{}]", at.join(", ")),
        };
    }
    // The simplest form says enough.
    let terms = &bound.graph.egraph[class].nodes;
    let simplest = terms
        .iter()
        .min_by_key(|t| (t.children.len(), t.extents.len(), *t));
    match simplest {
        Some(simplest) if depth <= DEEPEST => {
            let open = simplest.children.len() > 1
                && matches!(simplest.head, Head::Fold(f) if laws::repeated(f).is_some());
            let (head, text) = body(bound, simplest, at, names, depth);
            match (head.is_empty(), open) {
                (true, false) => text,
                (true, true) => format!("({text})"),
                (false, _) => format!("({head} {text})"),
            }
        }
        _ => "…".to_string(),
    }
}
