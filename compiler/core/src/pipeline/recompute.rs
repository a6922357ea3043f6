//! Values computed again instead of kept, where a plan does not fit `--memory`.
//!
//! At the step where a site holds most, a relation that is kept for a later step is made anew in front of that step: by the same
//! local operators of the same tuples at the same sites, so results are the same bit for bit. Of all such relations, that which
//! frees the most bytes for the arithmetic that it takes comes first, until the plan fits. Nothing that moves data, no source
//! and nothing in a loop is repeated. Must not know how layouts are found.
//!
//! ```text
//! h2 = relu(h1 W2), …, grad.W3 reads h2, over the limit while h9 is computed
//!   =>   h2 = relu(h1 W2), …, h2.again = relu(h1 W2), grad.W3 reads h2.again
//! ```

use super::Options;
use crate::{cost, ia, lower};
use ein_plan::amounts::Amounts;
use ein_plan::{Plan, RelationId, memory};
use std::collections::BTreeSet;

/// Plans that are looked at for one program.
const MOST_PLANS: usize = 400;

/// Ends the names of relations that are made anew.
const AGAIN: &str = ".again";

/// Relations that are made anew for one.
const MOST_STEPS: usize = 12;

/// The most that a site holds: how much, at which step, which site.
struct Most {
    bytes: u64,
    step: usize,
    site: usize,
}

fn most(plan: &Plan) -> Most {
    let peaks = memory::peaks(plan).into_iter().enumerate();
    let peak = peaks.max_by_key(|(site, peak)| (peak.bytes, std::cmp::Reverse(*site)));
    peak.map_or(
        Most {
            bytes: 0,
            step: 0,
            site: 0,
        },
        |(site, peak)| Most {
            bytes: peak.bytes,
            step: peak.step,
            site,
        },
    )
}

/// The name of a relation that is made at a step, or of that which it is made like.
fn original(program: &ia::Program, step: usize) -> &str {
    let name = program.relations.get(step).map_or("", |r| &r.name);
    name.trim_end_matches('\'').trim_end_matches(AGAIN)
}

/// The plan of a program, with relations made anew as long as that brings it nearer to the limit on memory.
pub(super) fn fitted(
    mut program: ia::Program,
    options: &Options,
) -> Result<(ia::Program, Plan), String> {
    let Some(limit) = options.criteria.memory else {
        let plan = lower::lower(&program, options.deterministic)?;
        return Ok((program, plan));
    };
    let lowered = |program: &ia::Program| -> Result<Plan, String> {
        let mut plan = lower::lower(program, options.deterministic)?;
        lower::within(&mut plan, limit);
        Ok(plan)
    };
    let mut plan = lowered(&program)?;
    let mut tries = 0;
    let mut least = u64::MAX;
    let mut full = BTreeSet::new();
    loop {
        let before = most(&plan);
        if before.bytes < least {
            (least, full) = (before.bytes, BTreeSet::new());
        }
        full.insert(original(&program, before.step).to_owned());
        if before.bytes <= limit || tries >= MOST_PLANS {
            return Ok((program, plan));
        }
        let mut better = None;
        for repeat in repeats(&program, &plan, &before) {
            tries += 1;
            let next = repeat.in_program(&program);
            let planned = lowered(&next)?;
            let after = most(&planned);
            // As much at a step that has not held as much yet: steps alike are relieved one after the other.
            let elsewhere =
                after.bytes == before.bytes && !full.contains(original(&next, after.step));
            if after.bytes < before.bytes || elsewhere {
                better = Some((next, planned));
            }
            if better.is_some() || tries >= MOST_PLANS {
                break;
            }
        }
        match better {
            Some((next, planned)) => {
                ia::verify::verify(&next).map_err(|what| format!("recomputation: {what}"))?;
                (program, plan) = (next, planned);
            }
            None => return Ok((program, plan)),
        }
    }
}

/// A relation that is made anew.
struct Repeat {
    /// The relations that are made, in order; the relation itself is the last.
    made: Vec<usize>,
    /// The relation in front of which it is made.
    before: usize,
    /// Bytes that are not held meanwhile.
    bytes: u64,
    flops: u128,
}

/// Lists the relations that can be made anew so that less is held at a step, the best first.
fn repeats(program: &ia::Program, plan: &Plan, most: &Most) -> Vec<Repeat> {
    let count = program.relations.len();
    let mut uses: Vec<Vec<usize>> = vec![vec![]; count];
    for (user, relation) in program.relations.iter().enumerate() {
        for input in relation.operation.inputs() {
            uses[input.0 as usize].push(user);
        }
    }
    let mut lasting: BTreeSet<usize> = BTreeSet::new();
    lasting.extend(program.outputs.iter().map(|o| o.relation.0 as usize));
    for block in &program.blocks {
        let named = block.begins_with().chain(block.ends_with());
        lasting.extend(named.map(|id| id.0 as usize));
    }
    let last = |id: usize| match lasting.contains(&id) {
        true => count,
        false => uses[id].last().copied().unwrap_or(id),
    };
    let flops = |id: &usize| -> u128 {
        let all = cost::flops(&program.relations[*id], &program.mesh);
        all.into_iter().max().unwrap_or(0)
    };
    let mut found = vec![];
    for (id, users) in uses.iter().enumerate().take(most.step) {
        let used_here = users.contains(&most.step);
        let Some(before) = users.iter().copied().find(|user| *user > most.step) else {
            continue;
        };
        let alone = |user: &usize| program.relations[*user].block.is_none();
        let free = users.iter().filter(|user| **user > most.step).all(alone);
        let place = &program.relations[before];
        let behind = matches!(place.operation, ia::Operation::Loop { .. });
        if used_here || !free || behind || lasting.contains(&id) {
            continue;
        }
        let mut made = vec![];
        if !recipe(program, &last, id, before, &mut made) {
            continue;
        }
        let kind = &program.relations[id].kind;
        let held = Amounts::bytes(kind, &plan.mesh).at_any(&[&kind.placement]);
        let bytes = held.get(most.site).copied().unwrap_or(0);
        if bytes > 0 {
            found.push(Repeat {
                flops: made.iter().map(flops).sum(),
                bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
                made,
                before,
            });
        }
    }
    // By bytes for an operation; of equal ones the earlier.
    found.sort_by(|a, b| {
        let of = |x: &Repeat, y: &Repeat| u128::from(x.bytes).saturating_mul(y.flops.max(1));
        of(b, a).cmp(&of(a, b))
    });
    found
}

/// Adds to `made` what has to be made to have a relation again in front of another: itself, behind those of its inputs that are not held
/// until then. Returns whether that can be done.
fn recipe(
    program: &ia::Program,
    last: &dyn Fn(usize) -> usize,
    id: usize,
    before: usize,
    made: &mut Vec<usize>,
) -> bool {
    let relation = &program.relations[id];
    let local = !matches!(
        relation.operation,
        ia::Operation::Source { .. }
            | ia::Operation::Loop { .. }
            | ia::Operation::Broadcast { .. }
            | ia::Operation::Shuffle { .. }
            | ia::Operation::Window { .. }
    );
    if !local || relation.block.is_some() || made.len() >= MOST_STEPS {
        return false;
    }
    for input in relation.operation.inputs() {
        let input = input.0 as usize;
        let held = last(input) >= before || made.contains(&input);
        if !held && !recipe(program, last, input, before, made) {
            return false;
        }
    }
    made.push(id);
    true
}

impl Repeat {
    /// The program in which it is made anew.
    fn in_program(&self, program: &ia::Program) -> ia::Program {
        let added = self.made.len();
        let moved = |id: RelationId| match (id.0 as usize) < self.before {
            true => id,
            false => RelationId(id.0 + added as u32),
        };
        let anew = |id: RelationId| {
            let at = self.made.iter().position(|made| *made == id.0 as usize);
            at.map(|at| RelationId((self.before + at) as u32))
        };
        let again = self.made.last().map(|id| RelationId(*id as u32));
        let mut next = program.clone();
        for relation in &mut next.relations[..] {
            relation.operation.rename(moved);
        }
        let later = program.relations.iter().enumerate().skip(self.before);
        for (at, relation) in later {
            next.relations[at].operation = relation.operation.clone();
            next.relations[at]
                .operation
                .rename(|id| match Some(id) == again {
                    true => anew(id).unwrap_or(id),
                    false => moved(id),
                });
        }
        let mut names: BTreeSet<String> =
            (program.relations.iter()).map(|r| r.name.clone()).collect();
        let copies: Vec<ia::Relation> = (self.made.iter())
            .map(|id| {
                let mut copy = program.relations[*id].clone();
                copy.name.push_str(AGAIN);
                while !names.insert(copy.name.clone()) {
                    copy.name.push('\'');
                }
                copy.operation.rename(|id| anew(id).unwrap_or(id));
                copy
            })
            .collect();
        next.relations.splice(self.before..self.before, copies);
        for output in &mut next.outputs {
            output.relation = moved(output.relation);
        }
        for block in &mut next.blocks {
            block.rename(moved);
        }
        next
    }
}
