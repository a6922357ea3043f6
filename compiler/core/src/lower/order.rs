//! Orders of a program's relations: one in which small movements stand together, so that they become one message, one in which what is
//! made of a sum of many rows stands late, so that the rows can be gone through with others, and one in which the columns of a list stand together,
//! so that its file is read once.
//!
//! In a stretch without loops, a small movement waits until nothing can be computed that does not depend on it; then all that wait
//! go. Large ones stay where they are. A number waits for the first that reads it. The columns of a list follow the first of them. Must not know
//! costs, nor what a plan makes of it.
//!
//! ```text
//! lo.one = shuffle lo; lo.sum = f(lo.one); hi = …; hi.one = shuffle hi; …
//!   =>   hi = …; lo.one = shuffle lo; hi.one = shuffle hi; lo.sum = f(lo.one); …
//! ```

use super::exchange::SMALL;
use crate::ia::{Operation, Program, Relation};
use crate::tra::blocks;
use ein_plan::RelationId;
use ein_plan::amounts::Amounts;
use ein_plan::lifetime::Event;
use std::collections::BTreeSet;

/// The same program with small movements together; none if that is how it is.
pub fn gathered(program: &Program) -> Result<Option<Program>, String> {
    ordered(program, of_stretch)
}

/// The same program with numbers as late as they can be; none if that is how it is.
pub fn postponed(program: &Program) -> Result<Option<Program>, String> {
    ordered(program, late)
}

/// Returns the program with the columns of each list together; none if that is how it is.
pub fn read_once(program: &Program) -> Result<Option<Program>, String> {
    ordered(program, with_columns)
}

/// The same program with its stretches without loops in another order, if that is one.
fn ordered(
    program: &Program,
    stretched: impl Fn(&Program, &[usize]) -> Vec<usize>,
) -> Result<Option<Program>, String> {
    let mut order: Vec<usize> = vec![];
    let mut stretch: Vec<usize> = vec![];
    for event in blocks::events(&program.blocks, program.places())? {
        match event {
            Event::Step(step) => stretch.push(step),
            Event::Enter(_) | Event::Exit(_) => {
                order.extend(stretched(program, &stretch));
                stretch.clear();
            }
        }
    }
    order.extend(stretched(program, &stretch));
    if order.iter().copied().eq(0..program.relations.len()) {
        return Ok(None);
    }
    let mut moved = vec![RelationId(0); order.len()];
    for (new, old) in (0u32..).zip(&order) {
        moved[*old] = RelationId(new);
    }
    let to = |id: RelationId| moved[id.0 as usize];
    let mut next = program.clone();
    next.relations = (order.iter())
        .map(|old| program.relations[*old].clone())
        .collect();
    for relation in &mut next.relations {
        relation.operation.rename(to);
    }
    for block in &mut next.blocks {
        block.rename(to);
    }
    for output in &mut next.outputs {
        output.relation = to(output.relation);
    }
    Ok(Some(next))
}

/// The relations of a stretch, those that are one number made of others as late as they can be.
fn late(program: &Program, stretch: &[usize]) -> Vec<usize> {
    let inputs = |id: usize| program.relations[id].operation.inputs();
    let is_number =
        |relation: &Relation| relation.kind.keys.is_empty() && relation.kind.array.dims.is_empty();
    // What sums up an array does not wait: it is gone through with others that read the array.
    let waits = |id: usize| {
        let (relation, inputs) = (&program.relations[id], inputs(id));
        matches!(relation.operation, Operation::LocalJoin { .. })
            && is_number(relation)
            && !inputs.is_empty()
            && inputs
                .iter()
                .all(|input| is_number(program.relation(*input)))
    };
    // From the last one on: whoever reads a number is there already.
    let mut order: Vec<usize> = vec![];
    for id in stretch.iter().rev() {
        let reads = |other: &usize| inputs(*other).contains(&RelationId(*id as u32));
        let at = match waits(*id) {
            true => order.iter().rposition(reads).map_or(0, |reader| reader + 1),
            false => order.len(),
        };
        order.insert(at, *id);
    }
    order.reverse();
    order
}

/// The relations of a stretch, the columns of a list behind the first of them.
fn with_columns(program: &Program, stretch: &[usize]) -> Vec<usize> {
    let list = |id: &usize| match &program.relations[*id].operation {
        Operation::Source { source, .. } => source.list(),
        _ => None,
    };
    let mut order: Vec<usize> = vec![];
    let mut read: BTreeSet<&str> = BTreeSet::new();
    for (at, id) in stretch.iter().enumerate() {
        match list(id) {
            None => order.push(*id),
            Some(own) if read.insert(own) => {
                order.extend(
                    stretch[at..]
                        .iter()
                        .filter(|other| list(other) == Some(own)),
                );
            }
            Some(_) => {}
        }
    }
    order
}

/// The relations of a stretch in their new order.
fn of_stretch(program: &Program, stretch: &[usize]) -> Vec<usize> {
    // Values of loops stand in front.
    let (mut order, mut left): (Vec<usize>, Vec<usize>) = stretch
        .iter()
        .partition(|id| program.relations[**id].operation.loop_value().is_some());
    let small: BTreeSet<usize> = (left.iter().copied())
        .filter(|id| is_small(program, &program.relations[*id]))
        .collect();
    if small.len() < 2 {
        return stretch.to_vec();
    }
    while !left.is_empty() {
        // What reads, also through others, what waits.
        let mut behind: BTreeSet<usize> = BTreeSet::new();
        let mut going: Vec<usize> = vec![];
        for id in &left {
            let inputs = program.relations[*id].operation.inputs();
            let mut inputs = inputs.iter().map(|input| input.0 as usize);
            if inputs.any(|input| behind.contains(&input) || going.contains(&input)) {
                behind.insert(*id);
            } else if small.contains(id) {
                going.push(*id);
            }
        }
        let Some(last) = going.last().copied() else {
            order.append(&mut left);
            break;
        };
        // What stands behind the last one that goes is not taken before it.
        let now = |id: &usize| *id <= last && !behind.contains(id);
        let (taken, rest): (Vec<usize>, Vec<usize>) = left.into_iter().partition(now);
        order.extend(taken.iter().filter(|id| !small.contains(id)));
        order.append(&mut going);
        left = rest;
    }
    order
}

/// Whether a relation is a small movement.
fn is_small(program: &Program, relation: &Relation) -> bool {
    let moves = matches!(
        relation.operation,
        Operation::Broadcast { .. } | Operation::Shuffle { .. } | Operation::Window { .. }
    );
    let held = || {
        let amounts = Amounts::bytes(&relation.kind, &program.mesh);
        amounts.at_sites(&[&relation.kind.placement])
    };
    moves && held().into_iter().all(|bytes| bytes <= SMALL.into())
}
