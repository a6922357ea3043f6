//! Steps that go through relations at rest tuple by tuple ([`ein_plan::stream`]). Must not know where they rest.
//!
//! ```text
//! r2 = join k0(r0{i}, r1{}), r0 and r2 streamed:   read r0 (0,), write r2 (0,), read r0 (1,), write r2 (1,), …
//! ```

use crate::error::RunError;
use crate::local::{self, Join, Place, ranges_at};
use crate::source;
use crate::store::{Tuple, Tuples};
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_device::Buffer;
use ein_plan::{JoinInput, Operation, Reduction, RelationId, Step};

/// A tuple of a streamed operand, with its key.
type Hand = Option<(Vec<u32>, Tuple)>;

impl Walker<'_> {
    /// Takes a step that makes or reads a streamed relation; its tuples, if they are to be held.
    pub fn stream(&mut self, step: &Step) -> Result<Option<Tuples>, RunError> {
        let plan = self.plan;
        let streamed = plan.is_streamed(step.result);
        if streamed {
            self.at_rest.open(step.result)?;
        }
        let rounds: Vec<u64> = self.rounds.iter().map(|(_, round)| *round).collect();
        let maker = match &step.operation {
            Operation::Source { name, source } => {
                let names = (name.as_str(), name.as_str());
                Some(source::maker(
                    names,
                    source,
                    &step.kind,
                    &rounds,
                    self.options,
                )?)
            }
            _ => None,
        };
        let mut hands: Vec<Hand> = vec![];
        let (mut held, mut made) = (0, Tuples::new());
        let mut visits = plan.visits(step, self.comm.site()).peekable();
        while let Some(visit) = visits.next() {
            let next = visits.peek().and_then(|next| next.members.first());
            let tuple: Tuple = match (&maker, &step.operation) {
                (Some(maker), _) => maker(visit.key.clone())?.1,
                (None, Operation::LocalAggregate { reduction, .. }) => {
                    self.combined((step, *reduction), (&visit.members, next), held)?
                }
                (None, _) => self.joined(step, (&visit.members, next), &mut hands, held)?,
            };
            let bytes = bytes_of(&tuple);
            self.store.beside(held + bytes + in_hand(&hands));
            let one = Tuples::from([(visit.key, tuple)]);
            self.examined(step.result.0 as usize, step, &one)?;
            if streamed {
                for (key, tuple) in one {
                    self.at_rest.put(step.result, key, &tuple)?;
                }
            } else {
                held += bytes;
                made.extend(one);
            }
        }
        Ok((!streamed).then_some(made))
    }

    /// The columns of a result's tuple, of joined tuples that are combined as they are made, and behind which `next` is joined; `held` bytes of
    /// others are there.
    fn joined(
        &mut self,
        step: &Step,
        (members, next): (&[Vec<u32>], Option<&Vec<u32>>),
        hands: &mut Vec<Hand>,
        held: u64,
    ) -> Result<Tuple, RunError> {
        let plan = self.plan;
        let schedule = self.schedule;
        let join = Join::of(plan, &schedule.kernels, step);
        let join = join.ok_or_else(|| RunError::internal("this step is not a join"))?;
        let fold = match &step.operation {
            Operation::LocalJoin { fold, .. } => fold.as_ref(),
            _ => None,
        };
        let keys = fold.map_or(&step.kind.keys, |fold| &fold.keys);
        hands.resize_with(join.inputs.len(), || None);
        let mut sum: Option<Tuple> = None;
        for (number, member) in members.iter().enumerate() {
            for (input, hand) in join.inputs.iter().zip(hands.iter_mut()) {
                if plan.is_streamed(input.relation) {
                    self.take_up(input.relation, input.key_of(member), hand)?;
                }
            }
            if let Some(next) = members.get(number + 1).or(next) {
                self.expect(join.inputs, next, hands);
            }
            let place = Place {
                plan,
                site: self.comm.site(),
                store: &self.store,
                device: &*self.options.device,
            };
            let mut operands = vec![];
            for (input, hand) in join.inputs.iter().zip(hands.iter()) {
                operands.push(match hand {
                    None => local::operand(&place, input, member)?,
                    Some((key, tuple)) => local::operand_of(plan.kind(input.relation), key, tuple),
                });
            }
            let ranges = ranges_at(&join, keys, member);
            let before = sum.as_deref().map_or(0, bytes_of);
            sum = Some(match sum {
                None => local::evaluated(&place, &join, ranges, operands)?,
                Some(sum) => local::added(&place, &join, sum, ranges, operands)?,
            });
            self.store.beside(held + before + in_hand(hands));
        }
        sum.ok_or_else(|| RunError::internal("nothing makes up a tuple"))
    }

    /// The combination of tuples of an aggregation's input, behind which `next` is read; `held` bytes of others are there.
    fn combined(
        &mut self,
        (step, reduction): (&Step, Reduction),
        (members, next): (&[Vec<u32>], Option<&Vec<u32>>),
        held: u64,
    ) -> Result<Tuple, RunError> {
        let inputs = self.plan.read_in(step);
        let input = inputs.first().map(|input| input.relation);
        let input = input.ok_or_else(|| RunError::internal("an aggregation has an input"))?;
        let mut sum: Option<Tuple> = None;
        for (number, member) in members.iter().enumerate() {
            let one = self.tuple_of(input, member)?;
            if let Some(next) = members.get(number + 1).or(next) {
                self.expect(&inputs, next, &[None]);
            }
            let before = sum.as_deref().map_or(0, bytes_of);
            let read = match self.plan.is_streamed(input) {
                true => bytes_of(&one),
                false => 0,
            };
            sum = Some(match sum {
                None => one,
                Some(sum) => self.options.device.combine(reduction, sum, one),
            });
            self.store.beside(held + before + read);
        }
        sum.ok_or_else(|| RunError::internal("nothing makes up a tuple"))
    }

    /// A tuple of a relation that is here, in memory or at rest.
    pub fn tuple_of(&mut self, relation: RelationId, key: &[u32]) -> Result<Tuple, RunError> {
        match self.plan.is_streamed(relation) {
            true => self.at_rest.get(relation, self.plan.kind(relation), key),
            false => self.place().tuple(relation, key).cloned(),
        }
    }

    /// Has the tuples fetched that are read next, meanwhile.
    fn expect(&self, inputs: &[JoinInput], next: &[u32], hands: &[Hand]) {
        for (input, hand) in inputs.iter().zip(hands) {
            let key = input.key_of(next);
            if self.plan.is_streamed(input.relation)
                && hand.as_ref().is_none_or(|(held, _)| *held != key)
            {
                let kind = self.plan.kind(input.relation);
                self.at_rest.expect(input.relation, kind, &key);
            }
        }
    }

    /// Has the tuple with a key in hand.
    fn take_up(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        hand: &mut Hand,
    ) -> Result<(), RunError> {
        if hand.as_ref().is_some_and(|(held, _)| *held == key) {
            return Ok(());
        }
        // The last one goes first.
        *hand = None;
        let tuple = self.at_rest.get(relation, self.plan.kind(relation), &key)?;
        *hand = Some((key, tuple));
        Ok(())
    }
}

fn in_hand(hands: &[Hand]) -> u64 {
    let tuples = hands.iter().flatten();
    tuples.map(|(_, tuple)| bytes_of(tuple)).sum()
}

pub(crate) fn bytes_of(columns: &[Buffer]) -> u64 {
    columns.iter().map(Buffer::bytes).sum()
}
