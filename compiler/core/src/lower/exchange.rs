//! Which movements of a plan go together, and beside which steps ([`ein_plan::Exchange`]).
//!
//! Small movements that stand one behind the other are one exchange. A larger one goes on beside the steps behind it, up to the
//! first that reads what arrives. Must not know costs.
//!
//! ```text
//! lo.one = shuffle lo; hi.one = shuffle hi; lo.sum = …lo.one      exchange lo.one, hi.one until hi.one
//! B.all = broadcast B; C = relu(A); D = C * B.all                  exchange B.all until C
//! ```

use ein_plan::lifetime::{Event, events};
use ein_plan::traffic::{Traffic, by_step};
use ein_plan::{Exchange, Operation, Placement, Plan, RelationId, Step};

/// Most bytes that a site receives in a movement that goes together with others: what is as small takes as long as a message without
/// anything in it.
pub(super) const SMALL: u64 = 1 << 16;

/// The exchanges of a plan that has none.
pub(super) fn exchanges(plan: &Plan) -> Vec<Exchange> {
    let traffic = by_step(plan);
    let mut exchanges = vec![];
    let mut stretch: Vec<usize> = vec![];
    for event in events(plan) {
        match event {
            Event::Step(step) => stretch.push(step),
            Event::Enter(_) | Event::Exit(_) => {
                exchanges.extend(of_stretch(plan, &stretch, &traffic));
                stretch.clear();
            }
        }
    }
    exchanges.extend(of_stretch(plan, &stretch, &traffic));
    exchanges
}

/// Those of steps in a row in which no loop begins or ends.
fn of_stretch(plan: &Plan, stretch: &[usize], traffic: &[Traffic]) -> Vec<Exchange> {
    let is_small = |step: usize| traffic[step].received_max.bytes <= SMALL;
    let step = |at: usize| &plan.steps[stretch[at]];
    let (mut found, mut at) = (vec![], 0);
    while at < stretch.len() {
        let first = at;
        at += 1;
        if !step(first).operation.moves() {
            continue;
        }
        let mut members = vec![step(first).result];
        while is_small(stretch[first])
            && at < stretch.len()
            && step(at).operation.moves()
            && is_small(stretch[at])
            && !reads(step(at), &members)
        {
            members.push(step(at).result);
            at += 1;
        }
        let until = match is_small(stretch[first]) {
            true => step(at - 1).result,
            false => last_beside(plan, &stretch[at..], &members).unwrap_or(members[0]),
        };
        if members.len() > 1 || until > members[0] {
            found.push(Exchange { members, until });
        }
    }
    found
}

/// The last of the steps behind a movement that is taken while it goes on; none if nothing is computed meanwhile.
fn last_beside(plan: &Plan, behind: &[usize], members: &[RelationId]) -> Option<RelationId> {
    // One site has all of it and gives it to all others: there is a better way than a message to each.
    let step = plan.step(members[0]);
    let inputs = step.operation.inputs();
    let from = plan.kind(*inputs.first()?);
    if from.placement == Placement::one(&plan.mesh) && step.kind.placement.is_all(&plan.mesh) {
        return None;
    }
    let sweeps = plan.sweeps_of_steps();
    let mut computes = false;
    let mut last = None;
    for number in behind {
        let step = &plan.steps[*number];
        // What is sent stays as it is.
        let changes = (plan.in_place(step)).is_some_and(|changed| inputs.contains(&changed));
        if reads(step, members) || changes {
            break;
        }
        computes |= !step.operation.moves() && !matches!(step.operation, Operation::Loop { .. });
        let whole = sweeps[*number].is_none_or(|sweep| plan.sweeps[sweep].last() == step.result);
        if computes && whole {
            last = Some(step.result);
        }
    }
    last
}

fn reads(step: &Step, members: &[RelationId]) -> bool {
    let inputs = step.operation.inputs();
    inputs.iter().any(|input| members.contains(input))
}
