//! Rounds for the interpreters of both algebras: what a loop does to values of whatever kind.
//!
//! Loops really loop; a state is a value that is handed on. Must not know operators, sites or chunks.
//!
//! ```text
//! repeat b0 t < 2; state x.0 next x.1   x := x.0; x.1 := f(x); x := x.1; x.1 := f(x); x.last := x.1
//! ```

use super::blocks::{BlockPosition, events};
use super::chunk::{Chunk, Content, Stop};
use ein_plan::lifetime::Event;
use ein_plan::{Block, BlockId, Bound, LoopValue, RelationId, Scalar};
use std::collections::HashMap;

/// The operations of an interpreter on its values.
pub(crate) trait Values {
    /// The value of a relation.
    type Value: Clone;

    /// Computes the result of an operator from the values of the relations so far.
    fn operator(&self, at: usize, values: &[Option<Self::Value>]) -> Result<Self::Value, Stop>;

    /// A number as the relation `at` holds it.
    fn number(&self, at: usize, number: u64) -> Self::Value;

    /// The number that a scalar is; a truth value is 0 or 1.
    fn read(&self, value: &Self::Value) -> Option<i64>;

    /// The values of all rounds as relation `at`, with zeros for rounds that are not there.
    fn collected(&self, at: usize, dim: u32, parts: &[Self::Value]) -> Self::Value;
}

/// The values of a loop between its rounds and behind them.
struct Loop<V> {
    states: Vec<V>,
    parts: Vec<Vec<V>>,
    rounds: u64,
}

struct Rounds<'a, I: Values> {
    interpreter: &'a I,
    blocks: &'a [Block],
    places: &'a [BlockPosition],
    values: Vec<Option<I::Value>>,
    loops: HashMap<BlockId, Loop<I::Value>>,
}

/// The values of all relations after a program with these loops was run; those of a loop's body are gone or of its last
/// round.
pub(crate) fn run<I: Values>(
    interpreter: &I,
    blocks: &[Block],
    places: &[BlockPosition],
) -> Result<Vec<Option<I::Value>>, Stop> {
    let events = events(blocks, places.iter().copied()).map_err(Stop::Absent)?;
    let mut rounds = Rounds {
        interpreter,
        blocks,
        places,
        values: vec![None; places.len()],
        loops: HashMap::new(),
    };
    rounds.walk(&events)?;
    Ok(rounds.values)
}

impl<I: Values> Rounds<'_, I> {
    fn walk(&mut self, events: &[Event]) -> Result<(), Stop> {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            match *event {
                Event::Step(step) => self.values[step] = Some(self.step(step)?),
                Event::Exit(_) => {}
                Event::Enter(block) => {
                    let length = events[at..].iter().position(|e| *e == Event::Exit(block));
                    let body = &events[at..at + length.unwrap_or(0)];
                    at += body.len();
                    self.repeat(block, body)?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, relation: RelationId) -> Result<&I::Value, Stop> {
        let value = self.values[relation.0 as usize].as_ref();
        value.ok_or_else(|| Stop::Absent(format!("{relation} is not made")))
    }

    fn number(&self, relation: RelationId) -> Result<i64, Stop> {
        let number = self.interpreter.read(self.value(relation)?);
        number.ok_or_else(|| Stop::Absent(format!("{relation} is no number")))
    }

    fn repeat(&mut self, id: BlockId, body: &[Event]) -> Result<(), Stop> {
        let block = &self.blocks[id.0 as usize];
        let most = match block.bound {
            Bound::Rounds(rounds) => rounds,
            Bound::Unbounded => u64::MAX,
            Bound::Value(bound) => u64::try_from(self.number(bound)?).unwrap_or(0),
        };
        let states = block
            .states
            .iter()
            .map(|state| self.value(state.initial).cloned());
        let begun = Loop {
            states: states.collect::<Result<_, _>>()?,
            parts: vec![vec![]; block.collected.len()],
            rounds: 0,
        };
        self.loops.insert(id, begun);
        for round in 0..most {
            self.walk(body)?;
            let next = block
                .states
                .iter()
                .map(|state| self.value(state.next).cloned());
            let next = next.collect::<Result<Vec<_>, _>>()?;
            let parts = block
                .collected
                .iter()
                .map(|kept| self.value(kept.value).cloned());
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let last = match block.until {
                Some(until) => self.number(until)? != 0,
                None => false,
            };
            if let Some(now) = self.loops.get_mut(&id) {
                now.states = next;
                now.rounds = round + 1;
                now.parts
                    .iter_mut()
                    .zip(parts)
                    .for_each(|(all, part)| all.push(part));
            }
            if last {
                break;
            }
        }
        Ok(())
    }

    fn step(&self, at: usize) -> Result<I::Value, Stop> {
        let Some(value) = self.places[at].1 else {
            return self.interpreter.operator(at, &self.values);
        };
        let absent = || Stop::Absent(format!("`{value}` is not there"));
        let of = self.loops.get(&value.block()).ok_or_else(absent)?;
        match value {
            LoopValue::Counter(_) | LoopValue::Rounds(_) => {
                Ok(self.interpreter.number(at, of.rounds))
            }
            LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                let state = of.states.get(number as usize);
                state.cloned().ok_or_else(absent)
            }
            LoopValue::Collected(block, number) => {
                let kept = self.blocks[block.0 as usize].collected.get(number as usize);
                let parts = of.parts.get(number as usize);
                let (kept, parts) = kept.zip(parts).ok_or_else(absent)?;
                Ok(self.interpreter.collected(at, kept.dim, parts))
            }
        }
    }
}

/// A number as a scalar's content at these keys.
pub(crate) fn scalar(number: u64, keys: impl Iterator<Item = Vec<u32>>) -> Content {
    let chunk = Chunk {
        shape: vec![],
        columns: vec![vec![Scalar::Int(number as i64)]],
    };
    keys.map(|key| (key, chunk.clone())).collect()
}

/// The number that a scalar's content is.
pub(crate) fn read(content: &Content) -> Option<i64> {
    let scalar = content.values().next()?.columns.first()?.first()?;
    Some(match scalar {
        Scalar::Int(number) => *number,
        Scalar::Bool(truth) => i64::from(*truth),
        Scalar::Float(_) => return None,
    })
}

/// The chunks of all rounds put together along a new dimension; `zero` fills the rounds that are not there.
pub(crate) fn collected(
    parts: &[&Content],
    shape: &dyn Fn(&[u32]) -> Vec<u64>,
    keys: impl Iterator<Item = Vec<u32>>,
    dim: u32,
    zero: Scalar,
) -> Content {
    keys.map(|key| {
        let shape = shape(&key);
        let total: u64 = shape.iter().product();
        let mut column = vec![zero; total as usize];
        for (round, part) in (0u64..).zip(parts) {
            let Some(part) = part.get(&key) else { continue };
            for (from, mut at) in super::chunk::positions(&part.shape).enumerate() {
                at.insert(dim as usize, round);
                column[super::chunk::offset(&shape, &at)] = part.columns[0][from];
            }
        }
        let columns = vec![column];
        (key, Chunk { shape, columns })
    })
    .collect()
}

/// The zero of a type.
pub(crate) fn zero(dtype: ein_plan::DType) -> Scalar {
    match dtype {
        ein_plan::DType::Bool => Scalar::Bool(false),
        other if other.is_float() => Scalar::Float(0.0),
        _ => Scalar::Int(0),
    }
}
