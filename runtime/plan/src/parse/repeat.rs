//! Reads the lines of loops: where one begins, where it ends, and its values.
//!
//! Must not know whether the loops make sense.
//!
//! ```text
//! repeat b0 k < 100 until r7; state r0 next r4; collect r5 dim 0; free r0   // model.ein:3
//! ```

use super::line::{Line, Result};
use crate::ids::RelationId;
use crate::loops::{Block, BlockId, Bound, Collected, LoopValue, Repeat, State};
use crate::plan::Plan;

/// The loops that have begun and not ended, while a plan is read.
#[derive(Default)]
pub(super) struct Open(Vec<BlockId>);

impl Open {
    /// Reads a line if it begins or ends a loop; whether it does.
    pub fn read(&mut self, line: &mut Line<'_>, plan: &mut Plan) -> Result<bool> {
        if line.at_words("repeat") {
            let (id, block, enters) = line.begin(plan, self.0.last().copied())?;
            line.require(
                id.0 as usize == plan.repeats.len(),
                "loops are numbered from b0 up",
            )?;
            let first = plan.steps.len() as u32;
            plan.repeats.push(Repeat {
                block,
                first,
                end: first,
                enters,
                frees: vec![],
            });
            self.0.push(id);
            return Ok(true);
        }
        if line.at_words("end") {
            line.expect_word("end")?;
            let id = line.numbered('b').map(BlockId)?;
            line.require(self.0.pop() == Some(id), "this loop is not the one to end")?;
            let end = plan.steps.len() as u32;
            let frees = match line.eat(";") {
                true => line.freed()?,
                false => vec![],
            };
            line.end()?;
            let repeat = &mut plan.repeats[id.0 as usize];
            (repeat.end, repeat.frees) = (end, frees);
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether every loop has ended.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Line<'_> {
    fn begin(
        &mut self,
        plan: &Plan,
        parent: Option<BlockId>,
    ) -> Result<(BlockId, Block, Vec<RelationId>)> {
        self.expect_word("repeat")?;
        let id = self.numbered('b').map(BlockId)?;
        let name = self.name()?;
        self.expect("<")?;
        let bound = if self.eat_word("inf") {
            Bound::Unbounded
        } else if self.at_number() {
            Bound::Rounds(self.integer()?)
        } else {
            Bound::Value(self.relation()?)
        };
        let until = match self.eat_word("until") {
            true => Some(self.relation()?),
            false => None,
        };
        let (mut states, mut collected, mut enters) = (vec![], vec![], vec![]);
        while self.eat(";") {
            if self.eat_word("state") {
                let initial = self.relation()?;
                self.expect_word("next")?;
                let next = self.relation()?;
                states.push(State { initial, next });
            } else if self.eat_word("collect") {
                let value = self.relation()?;
                self.expect_word("dim")?;
                let dim = self.integer()?;
                collected.push(Collected { value, dim });
            } else {
                enters = self.freed()?;
            }
        }
        let block = Block {
            name,
            parent,
            bound,
            until,
            states,
            collected,
            origin: self.origin(&plan.files)?,
        };
        Ok((id, block, enters))
    }

    /// `free r1, r2`.
    pub fn freed(&mut self) -> Result<Vec<RelationId>> {
        self.expect_word("free")?;
        self.relations()
    }

    /// `r1, r2`.
    pub fn relations(&mut self) -> Result<Vec<RelationId>> {
        let mut relations = vec![self.relation()?];
        while self.eat(",") {
            relations.push(self.relation()?);
        }
        Ok(relations)
    }

    /// `counter b0`, `state b0.1`, `last b0.1`, `rounds b0`, `collected b0.0`.
    pub fn loop_value(&mut self) -> Result<LoopValue> {
        let what = self.word()?;
        let named = matches!(what, "counter" | "state" | "last" | "rounds" | "collected");
        self.require(
            named,
            "a value of a loop is `counter`, `state`, `last`, `rounds` or `collected`",
        )?;
        if matches!(what, "counter" | "rounds") {
            let block = self.numbered('b').map(BlockId)?;
            return Ok(match what {
                "counter" => LoopValue::Counter(block),
                _ => LoopValue::Rounds(block),
            });
        }
        let error = self.error("`b0.0` or the like");
        let parts = self
            .word()?
            .strip_prefix('b')
            .and_then(|w| w.split_once('.'));
        let numbers = parts.and_then(|(b, n)| Some((b.parse().ok()?, n.parse().ok()?)));
        let (block, number) = numbers.ok_or(error)?;
        let block = BlockId(block);
        Ok(match what {
            "state" => LoopValue::State(block, number),
            "last" => LoopValue::Last(block, number),
            _ => LoopValue::Collected(block, number),
        })
    }
}
