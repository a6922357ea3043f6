//! Loops: rounds of a body until a bound or a condition ends them.
//!
//! Between rounds a loop's states are held under names of their own; a round takes them at once, so that each is gone
//! as soon as nothing in the round reads it any more. All sites end a loop in the same round: those of one process that
//! all take part find the same by themselves, else site 0 says when. Must not know what a step computes.
//!
//! ```text
//! repeat b0 k < 3; state r0 next r2   r0 -> state 0;  round 0: state 0 -> r1, r2 -> state 0;  …;  state 0 -> r3
//! ```

use crate::error::RunError;
use crate::meet::{agree, share_numbers};
use crate::schedule::Item;
use crate::store::{Name, Tuples};
use crate::walk::Walker;
use ein_array::{Array, Data};
use ein_comm::Communicator;
use ein_device::BufferType;
use ein_plan::{BlockId, Bound, Collected, DType, LoopValue, RelationId, Step};
use rayon::ThreadPool;

impl Walker<'_> {
    /// Walks a loop. `told`: whether sites may talk here; then all of them leave it after the same round.
    pub fn repeat(
        &mut self,
        block: BlockId,
        told: bool,
        mut body: impl FnMut(&mut Self) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let told = told && self.schedule.agree;
        let most = self.most(block, told)?;
        self.enter_loop(block);
        let mut made = 0;
        self.some_rounds(block, told, most, &mut made, &mut body)?;
        self.leave(block, made);
        Ok(())
    }

    /// Walks a loop in which no site talks. After 1, 2, 4, … rounds, and after the last, sites agree that none has failed: a
    /// mistake is told before twice the rounds are made that it took, in the same round whatever the timing.
    pub fn repeat_alone(
        &mut self,
        block: BlockId,
        body: &[Item],
        pool: &ThreadPool,
    ) -> Result<(), RunError> {
        if let Some(error) = self.failure.take() {
            return agree(*self.comm.inner(), Some(error));
        }
        let most = self.most(block, false)?;
        self.enter_loop(block);
        let (mut made, mut next) = (0, 1u64);
        loop {
            let ended = pool.install(|| {
                self.some_rounds(block, false, most.min(next), &mut made, &mut |walker| {
                    walker.quiet(body);
                    Ok(())
                })
            })?;
            self.in_rounds(block);
            agree(*self.comm.inner(), self.failure.take())?;
            if ended || made >= most {
                break;
            }
            next = next.saturating_mul(2);
        }
        self.leave(block, made);
        Ok(())
    }

    /// Says in what this site waits for others.
    fn in_rounds(&self, block: BlockId) {
        let patience = self.patience();
        if patience.is_some() {
            let name = &self.plan.repeat(block).block.name;
            self.comm.doing(format!("the rounds of `{name}`"), patience);
        }
    }

    fn enter_loop(&mut self, block: BlockId) {
        self.begin(block);
        self.rounds.push((block, 0));
    }

    /// Makes rounds until there are `most`; whether the loop has ended before.
    fn some_rounds(
        &mut self,
        block: BlockId,
        told: bool,
        most: u64,
        made: &mut u64,
        body: &mut impl FnMut(&mut Self) -> Result<(), RunError>,
    ) -> Result<bool, RunError> {
        let talks = told && self.schedule.loops[block.0 as usize].talks;
        if !talks && self.whole_rounds(block, most, made)? {
            return Ok(true);
        }
        if !talks && self.is_idle(block) {
            *made = most;
        }
        while *made < most {
            if let Some((_, round)) = self.rounds.last_mut() {
                *round = *made;
            }
            body(self)?;
            if self.failure.is_some() && !talks {
                return Ok(true);
            }
            *made += 1;
            if self.end_round(block, told)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if no site talks in a loop, and this one has no tuple of what its rounds make or look at: they are nothing to it.
    fn is_idle(&self, block: BlockId) -> bool {
        let plan = self.plan;
        let (site, mesh) = (self.comm.inner().site(), &plan.mesh);
        let repeat = plan.repeat(block);
        let ends = repeat.block.ends_with().map(|end| plan.step(end));
        let body = &plan.steps[repeat.first as usize..repeat.end as usize];
        let is_elsewhere =
            |step: &Step| !step.operation.moves() && step.kind.keys_at(site, mesh).next().is_none();
        body.iter().chain(ends).all(is_elsewhere)
    }

    fn leave(&mut self, block: BlockId, made: u64) {
        self.rounds.pop();
        self.made[block.0 as usize] += made;
        self.counts[block.0 as usize] = made;
        let known = &self.schedule.loops[block.0 as usize];
        for relation in &self.plan.repeat(block).frees {
            self.store.free((*relation).into());
        }
        for number in &known.lost {
            self.store.free(Name::State(block, *number));
        }
    }

    /// The most rounds that it may make.
    fn most(&mut self, block: BlockId, told: bool) -> Result<u64, RunError> {
        match self.plan.repeat(block).block.bound {
            Bound::Rounds(rounds) => Ok(rounds),
            Bound::Unbounded => Ok(u64::MAX),
            Bound::Value(relation) => {
                let value = self.number(relation, told)?;
                Ok(u64::try_from(value).unwrap_or(0))
            }
        }
    }

    /// The value of a scalar that every site of the mesh has; if sites may talk, it is site 0's, and a mistake of any of
    /// them ends the run.
    fn number(&mut self, relation: RelationId, told: bool) -> Result<i64, RunError> {
        let mut here = 0;
        if self.failure.is_none() {
            let scalar = self.tuples(relation)?.values().flatten().next();
            here = scalar.map_or(0, |scalar| match scalar.to_host().data() {
                Data::I64(values) => values[0],
                Data::Bool(values) => i64::from(values[0]),
                _ => 0,
            });
        }
        if !told {
            return Ok(here);
        }
        let mine = vec![i64::from(self.failure.is_some()), here];
        let all = share_numbers(*self.comm.inner(), mine)?;
        if all.iter().any(|site| site[0] != 0) {
            agree(*self.comm.inner(), self.failure.take())?;
        }
        Ok(all[0][1])
    }

    /// Gives the states their initial values, and room to what is collected.
    fn begin(&mut self, block: BlockId) {
        if self.failure.is_some() {
            return;
        }
        let plan = self.plan;
        let repeat = plan.repeat(block);
        let known = &self.schedule.loops[block.0 as usize];
        for (number, state) in (0u32..).zip(&repeat.block.states) {
            let same = repeat.block.begins_with().filter(|r| *r == state.initial);
            let there = &plan.kind(state.initial).placement;
            let alone = repeat.enters.contains(&state.initial)
                && *there == known.states[number as usize].placement
                && same.count() == 1;
            self.hand_on(state.initial, (block, number), alone);
        }
        for (number, kind) in (0u32..).zip(&known.collected) {
            let Some(kind) = kind else { continue };
            let keys = kind.keys_at(self.comm.inner().site(), &plan.mesh);
            let zeros = keys.map(|key| {
                let shape: Vec<usize> = kind.ranges(&key).iter().map(|r| r.1 as usize).collect();
                let columns = kind.array.columns.iter();
                let zeros = |dtype: &DType| {
                    let wanted = BufferType::dense(*dtype, shape.clone());
                    self.options.device.zeros(&wanted)
                };
                (key, columns.map(zeros).collect())
            });
            self.store
                .insert(Name::Collected(block, number), zeros.collect());
        }
        for relation in &repeat.enters {
            self.store.free((*relation).into());
        }
    }

    /// Gives a relation's tuples to a state: for good, or copies of the references, those that the state has here.
    fn hand_on(&mut self, relation: RelationId, (block, number): (BlockId, u32), alone: bool) {
        let name = Name::State(block, number);
        let there = match alone {
            true => self.store.rename(relation.into(), name),
            false => match self.store.get(relation).cloned() {
                Some(mut tuples) => {
                    let kind = &self.schedule.loops[block.0 as usize].states[number as usize];
                    let (site, mesh) = (self.comm.inner().site(), &self.plan.mesh);
                    tuples.retain(|key, _| kind.holds(key, site, mesh));
                    self.store.insert(name, tuples);
                    true
                }
                None => false,
            },
        };
        if !there {
            let what = format!("r{} is handed on after its end", relation.0);
            self.failure = Some(RunError::internal(what));
        }
    }

    /// Keeps what a round collects and ends with; whether it was the last.
    fn end_round(&mut self, block: BlockId, told: bool) -> Result<bool, RunError> {
        let plan = self.plan;
        let repeat = plan.repeat(block);
        let known = &self.schedule.loops[block.0 as usize];
        let last = match repeat.block.until {
            Some(until) => self.number(until, told)? != 0,
            None => false,
        };
        if self.failure.is_some() {
            return Ok(last);
        }
        let round = self.rounds.last().map_or(0, |(_, round)| *round);
        for (number, part) in (0u32..).zip(&repeat.block.collected) {
            if known.collected[number as usize].is_some() {
                self.collect(Name::Collected(block, number), part, round)?;
            }
        }
        for number in 0..repeat.block.states.len() as u32 {
            self.store.free(Name::State(block, number));
        }
        // What is shared first: a move takes the name away.
        for moved in [false, true] {
            for (number, state) in (0u32..).zip(&repeat.block.states) {
                if known.moves[number as usize] == moved {
                    self.hand_on(state.next, (block, number), moved);
                }
            }
        }
        for relation in &known.round {
            self.store.free((*relation).into());
        }
        Ok(last)
    }

    /// Puts a round's value into its place among those of all rounds.
    fn collect(&mut self, name: Name, part: &Collected, round: u64) -> Result<(), RunError> {
        let value = self.tuples(part.value)?.clone();
        let whole = self.store.get_mut(name);
        let whole = whole.ok_or_else(|| RunError::internal("what is collected has no room"))?;
        for (key, tuple) in value {
            let room = whole.get_mut(&key).into_iter().flatten();
            for (column, room) in tuple.iter().zip(room) {
                let device = &self.options.device;
                device.copy_slice(room, part.dim as usize, round as usize, column);
            }
        }
        Ok(())
    }

    /// A step that names what a loop has; nothing is made if it was held under another name.
    pub fn loop_value(
        &mut self,
        step: &Step,
        value: LoopValue,
    ) -> Result<Option<Tuples>, RunError> {
        let number = match value {
            LoopValue::Counter(block) => {
                let mut rounds = self.rounds.iter();
                rounds
                    .find(|(other, _)| *other == block)
                    .map_or(0, |(_, round)| *round)
            }
            LoopValue::Rounds(block) => self.counts[block.0 as usize],
            LoopValue::State(block, number) | LoopValue::Last(block, number) => {
                return self.take(Name::State(block, number), step);
            }
            LoopValue::Collected(block, number) => {
                return self.take(Name::Collected(block, number), step);
            }
        };
        let keys = step.kind.keys_at(self.comm.inner().site(), &self.plan.mesh);
        let scalar = |key| {
            let array = Array::new(vec![], Data::I64(vec![number as i64]));
            let array = array.ok_or_else(|| RunError::internal("a scalar is one number"))?;
            Ok((key, vec![self.options.device.adopt(array.into())]))
        };
        keys.map(scalar).collect::<Result<Tuples, _>>().map(Some)
    }

    fn take(&mut self, name: Name, step: &Step) -> Result<Option<Tuples>, RunError> {
        match self.store.rename(name, step.result.into()) {
            true => Ok(None),
            false => Err(RunError::internal(
                "a loop does not have what it is asked for",
            )),
        }
    }
}
