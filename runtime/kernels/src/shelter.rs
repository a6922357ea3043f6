//! Reads that a condition keeps inside: of such a read no value counts where it is outside, so it need not be checked.
//!
//! A node is only looked at where the conditions of the selects around it, and the guard, say so. Each comparison of affine forms
//! among them is a form that is not negative there, and a position less such a form may be inside where the position alone is not
//! known to be. Must not know what is read.
//!
//! ```text
//! where(i > 0, a0[i - 1], 0)   ->   i - 1 >= 0 where it is read, so a0[i - 1] is inside
//! ```

use crate::program::Request;
use ein_plan::schedule::access::Place;
use ein_plan::schedule::forms::{Form64, number};
use ein_plan::{Function, Graph, Node, NodeId};

/// A condition with whether it holds.
type Fact = (NodeId, bool);

/// For each node whether it is a read of which no value counts where it is outside. `wanted`: the nodes that count everywhere (the root: where
/// the guard holds); `needed`: the nodes that count at all, `forms`:
/// the affine forms; `inside`: for each read the positions that are known to be inside.
pub(crate) fn sheltered(
    request: &Request<'_, '_>,
    wanted: &[u32],
    (needed, forms): (&[bool], &[Option<Form64>]),
    inside: &[Vec<bool>],
    places: &[Place],
) -> Vec<bool> {
    let graph = request.graph;
    let exposed = |id: usize| {
        let node = graph.node(NodeId(id as u32));
        needed[id]
            && inside[id].contains(&false)
            && matches!(
                node,
                Node::Read {
                    otherwise: None,
                    ..
                }
            )
    };
    let mut found = vec![false; graph.len()];
    if !(0..graph.len()).any(exposed) {
        return found;
    }
    let facts = facts(request, wanted, needed);
    for id in (0..graph.len()).filter(|id| exposed(*id)) {
        let Node::Read {
            operand, positions, ..
        } = graph.node(NodeId(id as u32))
        else {
            continue;
        };
        let mut known = vec![];
        for (condition, holds) in &facts[id] {
            told(
                graph,
                (forms, request.ranges),
                (*condition, *holds),
                &mut known,
            );
        }
        let place = &places[*operand as usize];
        let is_known = |form: &Form64| {
            form.low >= 0
                || known.iter().any(|of| {
                    let rest = form.plus(of, -1, request.ranges);
                    rest.is_some_and(|rest| rest.low >= 0)
                })
        };
        found[id] = positions.iter().enumerate().all(|(d, position)| {
            let within = || {
                let form = forms[position.0 as usize].as_ref()?;
                let (start, end) = (place.start[d], place.start[d] + place.shape[d] - 1);
                let (start, end) = (number(start, request.ranges)?, number(end, request.ranges)?);
                let low = form.plus(&start, -1, request.ranges)?;
                let high = end.plus(form, -1, request.ranges)?;
                Some(is_known(&low) && is_known(&high))
            };
            inside[id][d] || within().unwrap_or(false)
        });
    }
    found
}

/// For each node what holds wherever its value counts.
fn facts(request: &Request<'_, '_>, wanted: &[u32], needed: &[bool]) -> Vec<Vec<Fact>> {
    let graph = request.graph;
    // `None` until a user is seen.
    let mut facts: Vec<Option<Vec<Fact>>> = vec![None; graph.len()];
    for node in wanted {
        let guarded = request.guard.filter(|_| *node == request.root.0);
        facts[*node as usize] = Some(guarded.map(|guard| (guard, true)).into_iter().collect());
    }
    for id in (0..graph.len()).rev().filter(|id| needed[*id]) {
        let own = facts[id].clone().unwrap_or_default();
        let mut meet = |argument: NodeId, with: &[Fact]| match &mut facts[argument.0 as usize] {
            Some(old) => old.retain(|fact| with.contains(fact)),
            empty => *empty = Some(with.to_vec()),
        };
        match graph.node(NodeId(id as u32)) {
            Node::Apply(Function::Select, sides) => {
                meet(sides[0], &own);
                for (side, holds) in [(sides[1], true), (sides[2], false)] {
                    meet(side, &[&own[..], &[(sides[0], holds)]].concat());
                }
            }
            node => node.arguments().for_each(|argument| meet(argument, &own)),
        }
    }
    facts.into_iter().map(Option::unwrap_or_default).collect()
}

/// Adds the forms that are not negative where a condition holds, or does not.
fn told(
    graph: &Graph,
    (forms, ranges): (&[Option<Form64>], &[(i64, i64)]),
    (condition, holds): Fact,
    known: &mut Vec<Form64>,
) {
    let Node::Apply(function, sides) = graph.node(condition) else {
        return;
    };
    let mut both = |holds: bool| {
        for side in sides {
            told(graph, (forms, ranges), (*side, holds), known);
        }
    };
    match (function, holds) {
        (Function::And, true) => return both(true),
        (Function::Or, false) => return both(false),
        (Function::Not, _) => return both(!holds),
        _ => {}
    }
    let form = |side: NodeId| forms[side.0 as usize].as_ref();
    let mut less = |small: NodeId, large: NodeId, by: i64| {
        let difference = form(large).zip(form(small));
        let difference = difference.and_then(|(large, small)| large.plus(small, -1, ranges));
        let by = number(by, ranges);
        known.extend(
            difference
                .zip(by)
                .and_then(|(form, by)| form.plus(&by, -1, ranges)),
        );
    };
    let (a, b) = match sides[..] {
        [a, b] => (a, b),
        _ => return,
    };
    match (function, holds) {
        (Function::Lt, true) | (Function::Ge, false) => less(a, b, 1),
        (Function::Le, true) | (Function::Gt, false) => less(a, b, 0),
        (Function::Gt, true) | (Function::Le, false) => less(b, a, 1),
        (Function::Ge, true) | (Function::Lt, false) => less(b, a, 0),
        (Function::Eq, true) | (Function::Ne, false) => {
            less(a, b, 0);
            less(b, a, 0);
        }
        (Function::Ne, true) | (Function::Eq, false) => {
            // At one end of what they can be apart, unequal numbers are apart by 1.
            let difference = form(a)
                .zip(form(b))
                .and_then(|(a, b)| a.plus(b, -1, ranges));
            match difference.map(|form| (form.low, form.high)) {
                Some((0, _)) => less(b, a, 1),
                Some((_, 0)) => less(a, b, 1),
                _ => {}
            }
        }
        _ => {}
    }
}
