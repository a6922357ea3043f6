//! Loops in lists of relations, of this algebra and of the one below: how they nest, their text, what holds of them.
//!
//! Every relation says which block's rounds compute it; those of a block, and of blocks in it, stand together, and the
//! values that it leaves stand behind it. Must not know operators.
//!
//! ```text
//! repeat b0 t < 100 until small; state x.0 next x.1   // model.ein:7
//!   x: {i: 8/2} f32[i] = loop state b0.0   // model.ein:8
//!   …
//! end b0
//! x.last of x: {i: 8/2} f32[i] = loop last b0.0
//! ```

use ein_plan::lifetime::Event;
use ein_plan::parse::{Line, ParseError, Result as Parsed};
use ein_plan::print::{Name, list, origin};
use ein_plan::repeat::{alike, collected, includes, is_known};
use ein_plan::{
    Block, BlockId, Bound, Collected, DType, LoopValue, Mesh, RelationId, RelationType, State,
};
use std::collections::HashMap;

/// The place of a relation in the nest of blocks: the block that it is in, and the value of a loop that it is.
pub(crate) type BlockPosition = (Option<BlockId>, Option<LoopValue>);

/// A block and those around it, the outermost first.
pub(crate) fn path(blocks: &[Block], block: Option<BlockId>) -> Vec<BlockId> {
    let parent = |block: &BlockId| blocks[block.0 as usize].parent;
    let mut path: Vec<BlockId> = std::iter::successors(block, parent).collect();
    path.reverse();
    path
}

/// A loop begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Begin(BlockId),
    End(BlockId),
}

/// Where a pass through a list of relations is among the loops.
pub(crate) struct Nesting {
    /// The loops that are open, outermost first.
    open: Vec<BlockId>,
    /// By loop: whether it has begun.
    begun: Vec<bool>,
}

impl Nesting {
    /// Before everything, with so many loops.
    pub(crate) fn new(loops: usize) -> Nesting {
        Nesting {
            open: vec![],
            begun: vec![false; loops],
        }
    }

    /// Lists the blocks that end and begin so that these loops are open, outermost first, and that one has ended, in order. One without
    /// relations begins and ends at once.
    pub(crate) fn go_to(&mut self, path: &[BlockId], ended: Option<BlockId>) -> Vec<Move> {
        let pairs = self.open.iter().zip(path);
        let common = pairs.take_while(|(a, b)| a == b).count();
        let mut moves = self.leave(common);
        for block in &path[common..] {
            self.begun[block.0 as usize] = true;
            self.open.push(*block);
            moves.push(Move::Begin(*block));
        }
        if let Some(block) = ended
            && !std::mem::replace(&mut self.begun[block.0 as usize], true)
        {
            moves.extend([Move::Begin(block), Move::End(block)]);
        }
        moves
    }

    /// Lists the blocks that end if so many loops are to be left open.
    pub(crate) fn leave(&mut self, left: usize) -> Vec<Move> {
        let ended = self.open.split_off(left.min(self.open.len()));
        ended.into_iter().rev().map(Move::End).collect()
    }
}

/// Lists the events, in order, if every loop makes one round. An empty block begins and ends before its first value behind
/// it. An error if a block's relations do not stand together.
pub(crate) fn events(
    blocks: &[Block],
    places: impl Iterator<Item = BlockPosition>,
) -> Result<Vec<Event>, String> {
    let mut events = vec![];
    let mut nesting = Nesting::new(blocks.len());
    let event = |of: Move| match of {
        Move::Begin(block) => Event::Enter(block),
        Move::End(block) => Event::Exit(block),
    };
    for (step, (block, value)) in places.enumerate() {
        let behind = value.filter(LoopValue::is_behind);
        let moves = nesting.go_to(&path(blocks, block), behind.map(|value| value.block()));
        for event in moves.into_iter().map(event) {
            if let Event::Enter(block) = event
                && events.contains(&event)
            {
                let name = &blocks[block.0 as usize].name;
                return Err(format!(
                    "what is of the loop `{name}` does not stand together"
                ));
            }
            events.push(event);
        }
        events.push(Event::Step(step));
    }
    events.extend(nesting.leave(0).into_iter().map(event));
    Ok(events)
}

/// An order, by old numbers, in which blocks stand together: what is outside a block but stands among its relations
/// comes before it, and its values behind it come right behind it. Nothing else changes places.
pub(crate) fn arranged(blocks: &[Block], places: &[BlockPosition]) -> Vec<usize> {
    let mut last: Vec<Option<usize>> = vec![None; blocks.len()];
    let mut behind: Vec<Vec<usize>> = vec![vec![]; blocks.len()];
    for (number, (block, value)) in places.iter().enumerate() {
        for block in path(blocks, *block) {
            last[block.0 as usize] = Some(number);
        }
        if let Some(value) = value.filter(LoopValue::is_behind) {
            behind[value.block().0 as usize].push(number);
        }
    }
    // What stands in each block so far; the last list is what is outside all.
    let mut lists: Vec<Vec<usize>> = vec![vec![]; blocks.len() + 1];
    let list = |block: Option<BlockId>| block.map_or(blocks.len(), |block| block.0 as usize);
    for (number, (block, value)) in places.iter().enumerate() {
        match value.filter(LoopValue::is_behind) {
            None => lists[list(*block)].push(number),
            // Of a block without relations; those of others are there already.
            Some(value) => {
                let values = std::mem::take(&mut behind[value.block().0 as usize]);
                lists[list(*block)].extend(values);
            }
        }
        let mut around = *block;
        while let Some(block) = around {
            let at = block.0 as usize;
            around = blocks[at].parent;
            if last[at] == Some(number) {
                let mut done = std::mem::take(&mut lists[at]);
                done.append(&mut behind[at]);
                lists[list(around)].extend(done);
            }
        }
    }
    lists.pop().unwrap_or_default()
}

/// The line that begins a block.
pub(crate) fn begin_text(
    blocks: &[Block],
    id: BlockId,
    name: &dyn Fn(RelationId) -> String,
    files: &[String],
) -> String {
    let block = &blocks[id.0 as usize];
    let name = |relation: RelationId| Name(&name(relation)).to_string();
    let bound = match block.bound {
        Bound::Rounds(rounds) => rounds.to_string(),
        Bound::Value(relation) => name(relation),
        Bound::Unbounded => "inf".into(),
    };
    let until = block.until.map(|until| format!(" until {}", name(until)));
    let states = block.states.iter();
    let states = states.map(|s| format!("; state {} next {}", name(s.initial), name(s.next)));
    let kept = block.collected.iter();
    let kept = kept.map(|c| format!("; collect {} dim {}", name(c.value), c.dim));
    let parts: Vec<String> = states.chain(kept).collect();
    format!(
        "repeat {id} {} < {bound}{}{}{}",
        Name(&block.name),
        until.unwrap_or_default(),
        parts.concat(),
        origin(block.origin, files)
    )
}

/// The lines of a program with its loops: `line` gives that of a relation.
pub(crate) fn lines(
    blocks: &[Block],
    places: impl ExactSizeIterator<Item = BlockPosition> + Clone,
    line: &dyn Fn(usize) -> String,
    begin: &dyn Fn(BlockId) -> String,
) -> String {
    // What does not nest is not verified; it is still shown, flat.
    let flat = || (0..places.len()).map(Event::Step).collect();
    let events = events(blocks, places.clone()).unwrap_or_else(|_| flat());
    let mut depth = 0;
    let mut lines = vec![];
    for event in events {
        let text = match event {
            Event::Enter(block) => begin(block),
            Event::Step(step) => line(step),
            Event::Exit(block) => format!("end {block}"),
        };
        depth -= usize::from(matches!(event, Event::Exit(_)));
        lines.push(format!("{:1$}{text}\n", "", 2 * depth));
        depth += usize::from(matches!(event, Event::Enter(_)));
    }
    lines.concat()
}

/// The relations above, by name.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, RelationId>);

impl Names {
    pub(crate) fn add(&mut self, name: &str) {
        let number = RelationId(self.0.len() as u32);
        self.0.insert(name.to_string(), number);
    }

    /// The relation of that name.
    pub(crate) fn find(&self, name: &str) -> Option<RelationId> {
        self.0.get(name).copied()
    }

    /// Reads the name of one of them.
    pub(crate) fn read(&self, line: &mut Line<'_>) -> Parsed<RelationId> {
        let error = line.error("a relation that stands above");
        self.0.get(&line.name()?).copied().ok_or(error)
    }
}

/// Blocks while a program is read: what they end with is only named until all of it is.
#[derive(Default)]
pub(crate) struct Reading {
    /// The blocks so far.
    blocks: Vec<(Block, Vec<(String, ParseError)>)>,
    open: Vec<BlockId>,
}

impl Reading {
    /// The innermost block that is open.
    pub(crate) fn innermost(&self) -> Option<BlockId> {
        self.open.last().copied()
    }

    /// Reads a line if it begins or ends a block; whether it does.
    pub(crate) fn read(
        &mut self,
        line: &mut Line<'_>,
        names: &Names,
        files: &[String],
    ) -> Parsed<bool> {
        if line.at_words("end") {
            line.expect_word("end")?;
            let id = line.numbered('b').map(BlockId)?;
            line.require(
                self.open.pop() == Some(id),
                "this loop is not the one to end",
            )?;
            line.end()?;
            return Ok(true);
        }
        if !line.at_words("repeat") {
            return Ok(false);
        }
        line.expect_word("repeat")?;
        let id = line.numbered('b').map(BlockId)?;
        line.require(
            id.0 as usize == self.blocks.len(),
            "loops are numbered from b0 up",
        )?;
        let name = line.name()?;
        line.expect("<")?;
        let bound = if line.eat_word("inf") {
            Bound::Unbounded
        } else if line.at_number() {
            Bound::Rounds(line.integer()?)
        } else {
            Bound::Value(names.read(line)?)
        };
        let mut later = vec![];
        let mut named = |line: &mut Line<'_>| -> Parsed<RelationId> {
            let error = line.error("a relation");
            later.push((line.name()?, error));
            Ok(RelationId(later.len() as u32 - 1))
        };
        let until = match line.eat_word("until") {
            true => Some(named(line)?),
            false => None,
        };
        let (mut states, mut collected) = (vec![], vec![]);
        while line.eat(";") {
            if line.eat_word("state") {
                let initial = names.read(line)?;
                line.expect_word("next")?;
                let next = named(line)?;
                states.push(State { initial, next });
            } else {
                line.expect_word("collect")?;
                let value = named(line)?;
                line.expect_word("dim")?;
                let dim = line.integer()?;
                collected.push(Collected { value, dim });
            }
        }
        let block = Block {
            name,
            parent: self.innermost(),
            bound,
            until,
            states,
            collected,
            origin: line.origin(files)?,
        };
        self.blocks.push((block, later));
        self.open.push(id);
        Ok(true)
    }

    /// All blocks, once every relation has its name.
    pub(crate) fn finish(self, names: &Names) -> Parsed<Vec<Block>> {
        let blocks = self.blocks.into_iter().map(|(mut block, later)| {
            let found = later
                .into_iter()
                .map(|(name, error)| names.find(&name).ok_or(error));
            let found: Vec<RelationId> = found.collect::<Parsed<_>>()?;
            let is = |named: RelationId| found[named.0 as usize];
            block.until = block.until.map(is);
            block
                .states
                .iter_mut()
                .for_each(|state| state.next = is(state.next));
            block
                .collected
                .iter_mut()
                .for_each(|kept| kept.value = is(kept.value));
            Ok(block)
        });
        blocks.collect()
    }
}

/// Returns whether a program's blocks nest, read only what they may, and their values have the right types. `kinds` are the
/// types of the relations, `inputs` what each reads; on a mesh, scalars that a loop needs are at every site of it.
pub(crate) fn verify(
    blocks: &[Block],
    places: &[BlockPosition],
    kinds: &[RelationType],
    inputs: &[Vec<RelationId>],
    mesh: &Mesh,
) -> Result<(), String> {
    let events = events(blocks, places.iter().copied())?;
    let at = |event: Event| events.iter().position(|other| *other == event);
    let encloses = |relation: RelationId, user: Option<BlockId>| {
        let place = places.get(relation.0 as usize);
        place.is_some_and(|(of, _)| of.is_none_or(|of| path(blocks, user).contains(&of)))
    };
    let stands = |relation: RelationId, before: Option<usize>| {
        at(Event::Step(relation.0 as usize)).is_some_and(|at| before.is_some_and(|b| at < b))
    };
    for (number, (block, value)) in places.iter().enumerate() {
        if inputs[number].iter().any(|input| !encloses(*input, *block)) {
            return Err("it reads what is inside a loop that it is outside of".into());
        }
        let Some(value) = value else { continue };
        let id = value.block();
        let Some(of) = blocks.get(id.0 as usize) else {
            return Err(format!("there is no loop {id}"));
        };
        let right = match value.is_behind() {
            true => *block == of.parent,
            false => *block == Some(id),
        };
        let behind = at(Event::Exit(id)) < at(Event::Step(number));
        if !right || value.is_behind() != behind {
            return Err(format!(
                "`{value}` does not stand where {id} has that value"
            ));
        }
        let own = &kinds[number];
        let has = |relation: RelationId| includes(&kinds[relation.0 as usize], own, mesh);
        let fits = match value {
            LoopValue::Counter(_) | LoopValue::Rounds(_) => is_known(own, DType::I64, mesh),
            LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                let state = of.states.get(*number as usize);
                state.is_some_and(|state| has(state.initial) && has(state.next))
            }
            LoopValue::Collected(_, number) => match (of.collected.get(*number as usize), of.bound)
            {
                (Some(kept), Bound::Rounds(rounds)) => {
                    let all = collected(&kinds[kept.value.0 as usize], kept.dim, rounds);
                    if !includes(&all, own, mesh) {
                        return Err(format!("`{value}` is {all}, not {own}"));
                    }
                    true
                }
                _ => false,
            },
        };
        if !fits {
            return Err(format!("`{value}` is not {own}"));
        }
    }
    for (number, block) in (0u32..).zip(blocks) {
        let id = BlockId(number);
        let (enter, exit) = (at(Event::Enter(id)), at(Event::Exit(id)));
        let mut begins = block.begins_with();
        let mut ends = block.ends_with();
        let fits = begins.all(|r| encloses(r, block.parent) && stands(r, enter))
            && ends.all(|r| encloses(r, Some(id)) && stands(r, exit));
        let kind = |relation: RelationId| &kinds[relation.0 as usize];
        let same = |state: &State| alike(kind(state.initial), kind(state.next));
        let known = |relation, dtype| is_known(kind(relation), dtype, mesh);
        let scalars = block.until.is_none_or(|until| known(until, DType::Bool))
            && match block.bound {
                Bound::Value(bound) => known(bound, DType::I64),
                _ => true,
            };
        if enter.is_some() && !(fits && block.states.iter().all(same) && scalars) {
            let names = block.begins_with().chain(block.ends_with());
            let names = list(names.map(|relation| relation.to_string()));
            return Err(format!(
                "loop `{}`: {names} do not fit together",
                block.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(parent: Option<u32>) -> Block {
        Block {
            name: format!("b{parent:?}"),
            parent: parent.map(BlockId),
            bound: Bound::Unbounded,
            until: None,
            states: vec![],
            collected: vec![],
            origin: ein_plan::Origin::default(),
        }
    }

    #[test]
    fn what_is_left_of_a_loop_comes_right_behind_it() {
        let blocks = [block(None), block(None)];
        let last = |block: u32| Some(LoopValue::Last(BlockId(block), 0));
        let rounds = |block: u32| Some(LoopValue::Rounds(BlockId(block)));
        // The second block has no relations.
        let places = [
            (Some(BlockId(0)), None),
            (None, last(0)),
            (None, None),
            (None, rounds(0)),
            (None, last(1)),
            (None, None),
            (None, rounds(1)),
        ];
        assert_eq!(arranged(&blocks, &places), [0, 1, 3, 2, 4, 6, 5]);
    }

    #[test]
    fn what_is_outside_comes_before() {
        let blocks = [block(None), block(Some(0))];
        let at = |block: Option<u32>| (block.map(BlockId), None);
        let places = [
            None,
            Some(0),
            Some(1),
            Some(0),
            Some(1),
            None,
            Some(0),
            None,
        ]
        .map(at);
        // The third of block 0 stands between the relations of block 1, the sixth between those of both.
        assert_eq!(arranged(&blocks, &places), [0, 5, 1, 3, 2, 4, 6, 7]);
        let nested = [0, 5, 1, 3, 2, 4, 6, 7].map(|at: usize| places[at]);
        assert!(events(&blocks, places.into_iter()).is_err());
        let events = events(&blocks, nested.into_iter()).unwrap_or_default();
        let steps = |event: &Event| match event {
            Event::Enter(block) => -1 - i64::from(block.0),
            Event::Step(step) => *step as i64,
            Event::Exit(block) => 100 + i64::from(block.0),
        };
        let found: Vec<i64> = events.iter().map(steps).collect();
        assert_eq!(found, [0, 1, -1, 2, 3, -2, 4, 5, 101, 6, 100, 7]);
    }
}
