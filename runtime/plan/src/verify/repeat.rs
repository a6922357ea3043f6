//! The verifier's part about loops and lifetimes. Invariants:
//!
//! - loops have distinct names, stand in the order in which they begin, and their bodies are nested as `parent` says;
//! - a step, and what a loop begins and ends with, reads only what stands before it, in the loops around it;
//! - a state has one type and placement in the loop and behind it, and its initial value and its next one are of that type
//!   and at least there; the bound is a scalar i64 and the condition a scalar bool, both at every site of the mesh;
//! - values of a loop from behind it stand right behind it, each once; collected values need a bound that is a
//!   number; sources that are read stand outside all loops, and so does what is given out;
//! - a relation is freed where it is used last ([`crate::lifetime`]).
//!
//! Must not know how a round is walked.
//!
//! ```text
//! b0: the state 1 begins as {i: 10/2} f32[i] @ PART(i) and goes on as {i: 10/2} f32[i] @ ALL
//! ```

use super::VerifyError;
use crate::dtype::DType;
use crate::ids::RelationId;
use crate::lifetime::{Ends, ends};
use crate::loops::{BlockId, Bound, LoopValue};
use crate::plan::{Operation, Plan, Step};
use crate::relation::RelationType;
use crate::repeat::{alike, collected, includes, is_known, scalar};
use std::collections::HashSet;

/// Whether the loops of a plan are nested in its steps, so that everything else may be asked of them.
pub(super) fn nesting(plan: &Plan) -> Result<(), VerifyError> {
    let mut names = HashSet::new();
    let mut before: Option<usize> = None;
    for (number, repeat) in plan.repeats.iter().enumerate() {
        let fail = |message: &str| {
            Err(VerifyError {
                place: format!("b{number}"),
                message: message.into(),
            })
        };
        if !names.insert(&repeat.block.name) {
            return fail("its name is used twice");
        }
        if repeat.first > repeat.end || repeat.end as usize > plan.steps.len() {
            return fail("its body is no part of the plan");
        }
        // The loop before this one ends before it begins, or holds it, and so do the loops around that.
        let mut around = before;
        while let Some(other) = around {
            if Some(BlockId(other as u32)) == repeat.block.parent {
                break;
            }
            if plan.repeats[other].end > repeat.first {
                return fail("it is not in the loop around it");
            }
            around = plan.repeats[other].block.parent.map(|b| b.0 as usize);
        }
        match (repeat.block.parent, around) {
            (None, None) => {}
            (Some(parent), Some(_)) => {
                let outer = plan.repeat(parent);
                if repeat.first < outer.first || repeat.end > outer.end {
                    return fail("it is not in the loop around it");
                }
            }
            _ => return fail("the loop around it does not stand before it"),
        }
        if before.is_some_and(|before| plan.repeats[before].first > repeat.first) {
            return fail("it does not begin behind the loop before it");
        }
        before = Some(number);
    }
    Ok(())
}

/// Whether a relation may be read in a loop: it is of that loop or of one around it.
fn is_visible(
    plan: &Plan,
    blocks: &[Option<BlockId>],
    relation: RelationId,
    from: Option<BlockId>,
) -> bool {
    let Some(of) = blocks.get(relation.0 as usize) else {
        return false;
    };
    let mut around = from;
    loop {
        if around == *of {
            return true;
        }
        match around {
            None => return false,
            Some(block) => around = plan.repeat(block).block.parent,
        }
    }
}

/// Every loop by itself. Steps are verified.
pub(super) fn loops(plan: &Plan) -> Result<(), VerifyError> {
    let blocks = plan.blocks_of_steps();
    for (number, step) in plan.steps.iter().enumerate() {
        let inputs = step.operation.inputs();
        let hidden = inputs
            .iter()
            .find(|input| !is_visible(plan, &blocks, **input, blocks[number]));
        let read = matches!(&step.operation, Operation::Source { source, .. } if !source.is_free());
        let message = match hidden {
            Some(input) => format!("it reads {input} from inside a loop that it is outside of"),
            None if read && blocks[number].is_some() => {
                "a source that is read stands outside all loops".into()
            }
            None => continue,
        };
        return Err(VerifyError {
            place: step.result.to_string(),
            message,
        });
    }
    for output in &plan.outputs {
        if blocks[output.relation.0 as usize].is_some() {
            return Err(VerifyError {
                place: format!("output {}", output.name),
                message: format!("{} is inside a loop", output.relation),
            });
        }
    }
    for number in 0..plan.repeats.len() {
        let id = BlockId(number as u32);
        one(plan, &blocks, id).map_err(|message| VerifyError {
            place: format!("b{number}"),
            message,
        })?;
    }
    Ok(())
}

fn one(plan: &Plan, blocks: &[Option<BlockId>], id: BlockId) -> Result<(), String> {
    let repeat = plan.repeat(id);
    let block = &repeat.block;
    for relation in block.begins_with() {
        let stands = relation.0 < repeat.first;
        if !stands || !is_visible(plan, blocks, relation, block.parent) {
            return Err(format!("it begins with {relation}, which is not had then"));
        }
    }
    for relation in block.ends_with() {
        let stands = relation.0 < repeat.end;
        if !stands || !is_visible(plan, blocks, relation, Some(id)) {
            return Err(format!(
                "its rounds end with {relation}, which is not had then"
            ));
        }
    }
    for (number, state) in (0u32..).zip(&block.states) {
        let (initial, next) = (plan.kind(state.initial), plan.kind(state.next));
        let has = |kind| {
            plan.state_kind(id, number)
                .is_some_and(|s| includes(kind, s, &plan.mesh))
        };
        if !has(initial) || !has(next) {
            return Err(format!(
                "the state {number} begins as {initial} and goes on as {next}"
            ));
        }
    }
    let known = |relation: RelationId, dtype: DType, what: &str| {
        let kind = plan.kind(relation);
        match is_known(kind, dtype, &plan.mesh) {
            true => Ok(()),
            false => Err(format!("its {what} {relation} is {kind}")),
        }
    };
    if let Bound::Value(relation) = block.bound {
        known(relation, DType::I64, "bound")?;
    }
    if let Some(until) = block.until {
        known(until, DType::Bool, "condition")?;
    }
    let mut seen = HashSet::new();
    if !plan.behind(id).all(|(_, value)| seen.insert(value)) {
        return Err("a value of it stands twice behind it".into());
    }
    Ok(())
}

/// Whether a step that is a loop's value stands where it may and has the type of the value. Inputs of other steps
/// are not looked at.
pub(super) fn value(plan: &Plan, step: &Step, value: LoopValue) -> Result<(), String> {
    let id = value.block();
    let Some(repeat) = plan.repeats.get(id.0 as usize) else {
        return Err(format!("there is no loop b{}", id.0));
    };
    let blocks = plan.blocks_of_steps();
    let number = step.result.0 as usize;
    let in_place = match value.is_behind() {
        false => blocks[number] == Some(id),
        true => plan
            .behind(id)
            .any(|(other, _)| other.result == step.result),
    };
    if !in_place {
        return Err(format!("it does not stand where b{} has that value", id.0));
    }
    let of = |relation: RelationId| -> Result<&RelationType, String> {
        let made = plan.steps.get(relation.0 as usize);
        made.map(|step| &step.kind)
            .ok_or_else(|| format!("there is no {relation}"))
    };
    let state = |number: u32| {
        let state = repeat.block.states.get(number as usize);
        of(state.ok_or("there is no such state")?.initial)
    };
    let expected = match value {
        LoopValue::Counter(_) | LoopValue::Rounds(_) => scalar(DType::I64, &plan.mesh),
        LoopValue::State(_, number) | LoopValue::Last(_, number) => {
            let other = plan.state_kind(id, number);
            let same = other.is_some_and(|other| {
                alike(other, &step.kind) && other.placement == step.kind.placement
            });
            let initial = state(number)?;
            if !same || !includes(initial, &step.kind, &plan.mesh) {
                return Err(format!("it is no part of a state that begins as {initial}"));
            }
            return Ok(());
        }
        LoopValue::Collected(_, number) => {
            let part = repeat.block.collected.get(number as usize);
            let part = part.ok_or("there is no such collected value")?;
            let Bound::Rounds(rounds) = repeat.block.bound else {
                return Err("what is collected needs a bound that is a number".into());
            };
            let kind = of(part.value)?;
            if part.dim as usize > kind.array.dims.len() {
                return Err(format!(
                    "there is no dimension {} to collect along",
                    part.dim
                ));
            }
            collected(kind, part.dim, rounds)
        }
    };
    match includes(&expected, &step.kind, &plan.mesh) {
        true => Ok(()),
        false => Err(format!("its type should be {expected}")),
    }
}

/// Every relation is freed where it is used last.
pub(super) fn lifetimes(plan: &Plan) -> Result<(), VerifyError> {
    let expected = ends(plan);
    let sorted = |list: &[RelationId]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    let stated = Ends {
        steps: plan.steps.iter().map(|s| sorted(&s.frees)).collect(),
        enters: plan.repeats.iter().map(|r| sorted(&r.enters)).collect(),
        exits: plan.repeats.iter().map(|r| sorted(&r.frees)).collect(),
    };
    let lists = [
        (&stated.steps, &expected.steps),
        (&stated.enters, &expected.enters),
        (&stated.exits, &expected.exits),
    ];
    for (kind, (stated, expected)) in lists.into_iter().enumerate() {
        for (number, (stated, expected)) in stated.iter().zip(expected).enumerate() {
            let wrong = stated.iter().find(|freed| !expected.contains(freed));
            let message = match wrong {
                Some(freed) => format!("it frees {freed}, whose last use it is not"),
                None if stated != expected => "not every relation is freed once".into(),
                None => continue,
            };
            let place = match (kind, wrong) {
                (_, None) => "plan".into(),
                (0, _) => format!("r{number}"),
                _ => format!("b{number}"),
            };
            return Err(VerifyError { place, message });
        }
    }
    Ok(())
}
