//! The order of a program's relations in which small movements stand together, so that they become one message.
//!
//! In a stretch without loops, a small movement waits until nothing can be computed that does not depend on it; then all that wait
//! go. Large ones stay where they are. Must not know costs, nor what a plan makes of it.
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
    let mut order: Vec<usize> = vec![];
    let mut stretch: Vec<usize> = vec![];
    for event in blocks::events(&program.blocks, program.places())? {
        match event {
            Event::Step(step) => stretch.push(step),
            Event::Enter(_) | Event::Exit(_) => {
                order.extend(of_stretch(program, &stretch));
                stretch.clear();
            }
        }
    }
    order.extend(of_stretch(program, &stretch));
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
        Operation::Broadcast { .. } | Operation::Shuffle { .. }
    );
    let held = || {
        let amounts = Amounts::bytes(&relation.kind, &program.mesh);
        amounts.at_sites(&[&relation.kind.placement])
    };
    moves && held().into_iter().all(|bytes| bytes <= SMALL.into())
}
