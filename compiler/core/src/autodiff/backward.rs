//! The reverse pass through the expression of one statement: from the adjoint of its value to those of its reads.
//!
//! An adjoint is a sum of terms, each with the path on which it holds: the conditions of the `where`s between the
//! value and the node, outermost first. An expression is only ever evaluated under its path, so that what an untaken
//! branch would read is not read, and no NaN comes out of it. Must not know tensors beyond the operand that is asked for.
//!
//! ```text
//! where(c, log(x[i]), 0) with adjoint A[i]   =>   x[i]: A[i] / x[i] on the path c
//! ```

use super::derivative::{At, rule};
use super::sketch::Sketch;
use ein_plan::{Function, Kernel, Node, NodeId, Reduction};

/// Conditions with whether they hold, outermost first.
pub(super) type Path = Vec<(NodeId, bool)>;

/// A part of an adjoint and where it holds.
pub(super) type Term = (Path, NodeId);

/// An adjoint has no more terms than this; more are put under one condition.
const MOST_TERMS: usize = 8;

/// The arguments of a node through which a derivative flows, each once.
pub(super) fn differentiable(sketch: &Sketch, id: NodeId) -> Vec<NodeId> {
    let mut flows = match sketch.graph.node(id) {
        Node::Constant(_) | Node::Index(_) => vec![],
        Node::Read { otherwise, .. } => otherwise.iter().copied().collect(),
        Node::Convert(argument) => vec![*argument],
        Node::Apply(Function::Select, arguments) => arguments[1..].to_vec(),
        Node::Apply(function, arguments) => arguments
            .iter()
            .enumerate()
            .filter(|(at, _)| rule(*function, *at).is_some())
            .map(|(_, argument)| *argument)
            .collect(),
    };
    flows.retain(|argument| sketch.graph.dtype(*argument).is_float());
    flows.sort();
    flows.dedup();
    flows
}

/// Through which operands a derivative flows.
pub(super) fn flowing(kernel: &Kernel, operands: usize) -> Vec<bool> {
    let mut flows = vec![false; operands];
    let stops = matches!(
        kernel.reduction,
        Some(Reduction::Any | Reduction::All | Reduction::ArgMax | Reduction::ArgMin)
    );
    if stops || !kernel.graph.dtype(kernel.root).is_float() {
        return flows;
    }
    if let Some(library) = kernel.library() {
        let arguments = library.arguments.iter();
        arguments.for_each(|argument| flows[argument.operand as usize] = true);
        return flows;
    }
    let sketch = Sketch::of_statement(kernel, &[]);
    let mut seen = vec![false; kernel.graph.len()];
    let mut open = vec![kernel.root];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        if let Node::Read { operand, .. } = kernel.graph.node(id) {
            flows[*operand as usize] = true;
        }
        open.extend(differentiable(&sketch, id));
    }
    flows
}

/// The adjoints of all reads of `operand`, given those of the root. `stored` is a node with the root's value that is
/// cheaper than the root.
pub(super) fn backward(
    sketch: &mut Sketch,
    root: NodeId,
    stored: NodeId,
    seed: Vec<Term>,
    operand: u32,
) -> Vec<(NodeId, Vec<Term>)> {
    let count = root.0 as usize + 1;
    let wanted = |sketch: &Sketch, id: NodeId| matches!(sketch.graph.node(id), Node::Read { operand: of, .. } if *of == operand);
    let mut leads = vec![false; count];
    for at in 0..count {
        let id = NodeId(at as u32);
        leads[at] = wanted(sketch, id)
            || differentiable(sketch, id)
                .iter()
                .any(|argument| leads[argument.0 as usize]);
    }
    let mut adjoints: Vec<Vec<Term>> = vec![vec![]; count];
    adjoints[count - 1] = seed;
    let mut reads = vec![];
    for at in (0..count).rev() {
        let id = NodeId(at as u32);
        let terms = std::mem::take(&mut adjoints[at]);
        if !leads[at] {
            continue;
        }
        let terms = merged(sketch, terms);
        if terms.is_empty() {
            continue;
        }
        let node = sketch.graph.node(id).clone();
        if wanted(sketch, id) {
            reads.push((id, terms.clone()));
        }
        for argument in differentiable(sketch, id) {
            if !leads[argument.0 as usize] {
                continue;
            }
            let flowing = match &node {
                Node::Convert(_) => {
                    let dtype = sketch.graph.dtype(argument);
                    let convert = |(path, v): &Term| (path.clone(), sketch.convert(*v, dtype));
                    terms.iter().map(convert).collect()
                }
                Node::Read {
                    operand, positions, ..
                } => {
                    let inside = sketch.inside(*operand, positions);
                    under(&terms, inside, false)
                }
                Node::Apply(Function::Select, arguments) => {
                    let mut flowing = vec![];
                    if arguments[1] == argument {
                        flowing.extend(under(&terms, arguments[0], true));
                    }
                    if arguments[2] == argument {
                        flowing.extend(under(&terms, arguments[0], false));
                    }
                    flowing
                }
                Node::Apply(function, arguments) => {
                    let y = if id == root { stored } else { id };
                    applied(sketch, (*function, arguments), argument, y, &terms)
                }
                Node::Constant(_) | Node::Index(_) => vec![],
            };
            adjoints[argument.0 as usize].extend(flowing);
        }
    }
    reads
}

/// The terms with one more condition.
fn under(terms: &[Term], condition: NodeId, holds: bool) -> Vec<Term> {
    let more = |(path, v): &Term| {
        let mut path = path.clone();
        if !path.contains(&(condition, holds)) {
            path.push((condition, holds));
        }
        (path, *v)
    };
    terms.iter().map(more).collect()
}

/// The adjoint of an argument of a function; it may be several of its arguments.
fn applied(
    sketch: &mut Sketch,
    (function, arguments): (Function, &[NodeId]),
    argument: NodeId,
    y: NodeId,
    terms: &[Term],
) -> Vec<Term> {
    let mut flowing = vec![];
    for (at, _) in arguments
        .iter()
        .enumerate()
        .filter(|(_, a)| **a == argument)
    {
        let Some(rule) = rule(function, at) else {
            continue;
        };
        for (path, v) in terms {
            let point = At {
                a: arguments[0],
                b: arguments[arguments.len() - 1],
                y,
                v: *v,
            };
            flowing.push((path.clone(), rule(sketch, point)));
        }
    }
    flowing
}

/// Fewer terms with the same sum: those of one path, of a path and a longer one, and of both sides of a condition.
fn merged(sketch: &mut Sketch, mut terms: Vec<Term>) -> Vec<Term> {
    terms.retain(|(_, v)| sketch.value(*v) != Some(0.0));
    'again: loop {
        for i in 0..terms.len() {
            for j in 0..terms.len() {
                if i == j {
                    continue;
                }
                let Some(both) = pair(sketch, &terms[i], &terms[j]) else {
                    continue;
                };
                terms[i] = both;
                terms.remove(j);
                continue 'again;
            }
        }
        break;
    }
    if terms.len() > MOST_TERMS {
        let mut some = sketch.truth(false);
        let mut sum: Option<NodeId> = None;
        for (path, v) in &terms {
            let always = sketch.truth(true);
            let never = sketch.truth(false);
            let holds = nested(sketch, path, always, never);
            some = sketch.select(holds, always, some);
            let part = on_path(sketch, path, *v);
            sum = Some(sum.map_or(part, |sum| sketch.add(sum, part)));
        }
        terms = sum
            .map(|sum| (vec![(some, true)], sum))
            .into_iter()
            .collect();
    }
    terms
}

/// Two terms as one, if the second path is the first, continues it, or is its other side.
fn pair(sketch: &mut Sketch, first: &Term, second: &Term) -> Option<Term> {
    let ((p, v), (q, w)) = (first, second);
    if q.starts_with(p) {
        let part = on_path(sketch, &q[p.len()..], *w);
        return Some((p.clone(), sketch.add(*v, part)));
    }
    let ((last, before), (other, start)) = (p.split_last()?, q.split_last()?);
    let sides = before == start && last.0 == other.0 && last.1 != other.1;
    sides.then(|| {
        let (holds, fails) = if last.1 { (*v, *w) } else { (*w, *v) };
        (before.to_vec(), sketch.select(last.0, holds, fails))
    })
}

/// The value on its path, 0 elsewhere.
pub(super) fn on_path(sketch: &mut Sketch, path: &[(NodeId, bool)], v: NodeId) -> NodeId {
    let zero = sketch.number(0.0, sketch.graph.dtype(v));
    nested(sketch, path, v, zero)
}

/// The sum of terms, each on its path; those that begin with one condition stand under it together.
pub(super) fn on_paths(sketch: &mut Sketch, terms: &[Term]) -> Option<NodeId> {
    let mut sum: Option<NodeId> = None;
    let mut conditions: Vec<NodeId> = vec![];
    for (path, v) in terms {
        let part = match path.first() {
            None => *v,
            Some((condition, _)) if conditions.contains(condition) => continue,
            Some((condition, _)) => {
                conditions.push(*condition);
                let mut side = |holds: bool| {
                    let tails: Vec<Term> = terms
                        .iter()
                        .filter(|(path, _)| path.first() == Some(&(*condition, holds)))
                        .map(|(path, v)| (path[1..].to_vec(), *v))
                        .collect();
                    let zero = sketch.number(0.0, sketch.graph.dtype(*v));
                    on_paths(sketch, &tails).unwrap_or(zero)
                };
                let (holds, fails) = (side(true), side(false));
                sketch.select(*condition, holds, fails)
            }
        };
        sum = Some(sum.map_or(part, |sum| sketch.add(sum, part)));
    }
    sum
}

/// `inner` on a path, `outer` elsewhere; a condition is only looked at where those before it hold.
fn nested(sketch: &mut Sketch, path: &[(NodeId, bool)], inner: NodeId, outer: NodeId) -> NodeId {
    path.iter()
        .rev()
        .fold(inner, |inner, (condition, holds)| match holds {
            true => sketch.select(*condition, inner, outer),
            false => sketch.select(*condition, outer, inner),
        })
}
