//! Loops on sites: a state has one placement, to which its initial value is taken once and its next one in every round.
//!
//! The condition and the bound of a loop are at every site. A relation from outside is moved outside, whoever in the loop
//! asks for it, so it is moved once. Must not know chunkings, nor plans.
//!
//! ```text
//! repeat b0 t < 9; state x.0 next x.1.by.i { x @ PART(i) = loop state b0.0; x.1 @ ONE = …; x.1.by.i @ PART(i) = shuffle x.1 }
//! ```

use super::{Required, Translation, spread};
use crate::tra;
use crate::tra::blocks::Move;
use ein_plan::{BlockId, Bound, LoopValue, Placement, RelationId};

/// The loop that a relation is left by, if it is a value behind one.
pub(super) fn left_by(program: &tra::Program, relation: RelationId) -> Option<BlockId> {
    let relation = program.relations.get(relation.0 as usize)?;
    let value = relation.operation.loop_value()?;
    value.is_behind().then(|| value.block())
}

impl Translation<'_> {
    /// Ends and begins loops, so that a relation can be made.
    pub(super) fn go_to(&mut self, id: RelationId) -> Result<(), String> {
        let block = self.program.relation(id).block;
        let path = tra::blocks::path(&self.program.blocks, block);
        let moves = self.nesting.go_to(&path, left_by(self.program, id));
        self.moves(moves)
    }

    /// Ends and begins loops.
    pub(super) fn moves(&mut self, moves: Vec<Move>) -> Result<(), String> {
        moves.into_iter().try_for_each(|of| match of {
            Move::Begin(block) => self.begin(block),
            Move::End(block) => self.ends(block, true),
        })
    }

    /// Adds the relations that a loop begins with, and those that its rounds end with but do not compute.
    fn begin(&mut self, block: BlockId) -> Result<(), String> {
        let of = self.program.blocks[block.0 as usize].clone();
        for (number, state) in of.states.iter().enumerate() {
            let at = self.place_state(block, number as u32);
            let initial = self.realize(state.initial, &Required::At(at))?;
            self.blocks[block.0 as usize].states[number].initial = initial;
        }
        if let Bound::Value(bound) = of.bound {
            let bound = self.everywhere(bound)?;
            self.blocks[block.0 as usize].bound = Bound::Value(bound);
        }
        self.ends(block, false)
    }

    /// Takes what the rounds of a loop end with to where it is to be: all of it, or what is outside the loop.
    fn ends(&mut self, block: BlockId, all: bool) -> Result<(), String> {
        let of = self.program.blocks[block.0 as usize].clone();
        let program = self.program;
        let wanted = |relation: RelationId| {
            let place = program.relation(relation).block;
            all || !tra::blocks::path(&program.blocks, place).contains(&block)
        };
        for (number, state) in of.states.iter().enumerate().filter(|(_, s)| wanted(s.next)) {
            let at = self.place_state(block, number as u32);
            let next = self.realize(state.next, &Required::At(at))?;
            self.blocks[block.0 as usize].states[number].next = next;
        }
        for (number, kept) in of
            .collected
            .iter()
            .enumerate()
            .filter(|(_, c)| wanted(c.value))
        {
            let at = self.place_collected(block, number as u32);
            let value = self.realize(kept.value, &Required::At(at))?;
            self.blocks[block.0 as usize].collected[number].value = value;
        }
        if let Some(until) = of.until.filter(|until| wanted(*until)) {
            let until = self.everywhere(until)?;
            self.blocks[block.0 as usize].until = Some(until);
        }
        Ok(())
    }

    fn everywhere(&mut self, id: RelationId) -> Result<RelationId, String> {
        let everywhere = Placement::all(&self.places.mesh);
        self.realize(id, &Required::At(everywhere))
    }

    /// Where a loop's value is.
    pub(super) fn place_value(&self, id: RelationId, value: LoopValue) -> Placement {
        match value {
            LoopValue::Counter(_) | LoopValue::Rounds(_) => Placement::all(&self.places.mesh),
            LoopValue::State(block, number) | LoopValue::Last(block, number) => {
                self.place_state(block, number)
            }
            LoopValue::Collected(..) => self.prescribed(id),
        }
    }

    /// Where a state rests between rounds: as its relation in the loop is prescribed, else as that behind the loop.
    fn place_state(&self, block: BlockId, number: u32) -> Placement {
        let values = [
            LoopValue::State(block, number),
            LoopValue::Last(block, number),
        ];
        let found = values.into_iter().find_map(|value| self.relation_of(value));
        let initial = self.program.blocks[block.0 as usize].states[number as usize].initial;
        self.prescribed(found.unwrap_or(initial))
    }

    /// Where what a loop collects rests while it does.
    fn place_collected(&self, block: BlockId, number: u32) -> Placement {
        let found = self.relation_of(LoopValue::Collected(block, number));
        let value = self.program.blocks[block.0 as usize].collected[number as usize].value;
        self.prescribed(found.unwrap_or(value))
    }

    fn relation_of(&self, value: LoopValue) -> Option<RelationId> {
        let mut numbered = (0u32..).zip(&self.program.relations);
        let found = numbered.find(|(_, r)| r.operation.loop_value() == Some(value));
        found.map(|(number, _)| RelationId(number))
    }

    /// Where a relation is prescribed to be made, or by its keys; without keys everywhere.
    fn prescribed(&self, id: RelationId) -> Placement {
        let keys = &self.program.relation(id).kind.keys;
        match self.places.made.get(&id) {
            Some(placement) => placement.clone(),
            None if keys.is_empty() => Placement::all(&self.places.mesh),
            None => spread(keys, &self.places.mesh),
        }
    }
}
