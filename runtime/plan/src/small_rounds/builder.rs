//! Steps of a plan as places, steps and rounds of one program.
//!
//! Must not know what makes a loop worth compiling.
//!
//! ```text
//! r4 a: f64[] = join k0(r3)   ->   step 0: k0, operands [place of r3], result a new place
//! ```

use super::{
    InnerBound, InnerRounds, RoundBody, RoundItem, RoundPlace, RoundState, RoundStep, SmallRounds,
};
use crate::dtype::DType;
use crate::ids::RelationId;
use crate::kernel::{Kernel, Node, Operand};
use crate::loops::{BlockId, Bound, LoopValue};
use crate::plan::{Operation, Plan, Step};
use crate::points::{Point, Update};
use crate::reduction::Reduction;
use crate::relation::{AxisRole, RelationType};
use crate::schedule::{LoopKernel, choose};
use std::collections::BTreeMap;

/// The program of a loop, or why it has none.
pub(super) fn rounds(plan: &Plan, block: BlockId) -> Result<SmallRounds, String> {
    let mut builder = Builder {
        plan,
        rounds: SmallRounds {
            places: vec![],
            given: vec![],
            steps: vec![],
            body: RoundBody::default(),
            inner: vec![],
        },
        known: BTreeMap::new(),
        sites: None,
    };
    builder.rounds.body = builder.body(block)?;
    Ok(builder.rounds)
}

struct Builder<'p> {
    plan: &'p Plan,
    rounds: SmallRounds,
    /// The places of relations.
    known: BTreeMap<RelationId, usize>,
    /// Which sites have what rounds make.
    sites: Option<Vec<AxisRole>>,
}

impl Builder<'_> {
    /// The rounds of a loop.
    fn body(&mut self, block: BlockId) -> Result<RoundBody, String> {
        let repeat = self.plan.repeat(block);
        let mut body = RoundBody::default();
        for (number, state) in (0u32..).zip(&repeat.block.states) {
            let kind = self.plan.state_kind(block, number);
            let kind = kind.ok_or("a state has no type")?;
            let place = self.made(kind, &self.plan.step(state.next).tensor)?;
            body.states.push(RoundState { place, next: place });
        }
        let mut at = repeat.first;
        while at < repeat.end {
            let item = match self.inner_at(block, at) {
                Some(inner) => {
                    at = self.plan.repeat(inner).end;
                    Some(RoundItem::Loop(self.inner(inner)?))
                }
                None => {
                    let step = &self.plan.steps[at as usize];
                    at += 1;
                    self.step(step, block, &mut body)?
                }
            };
            body.items.extend(item);
        }
        self.ends(block, &mut body)?;
        Ok(body)
    }

    /// The loop right in a loop that begins with a step.
    fn inner_at(&self, block: BlockId, step: u32) -> Option<BlockId> {
        let begins = |id: &BlockId| {
            let repeat = self.plan.repeat(*id);
            repeat.block.parent == Some(block) && repeat.first == step && repeat.end > step
        };
        (0..self.plan.repeats.len() as u32)
            .map(BlockId)
            .find(begins)
    }

    /// A loop in a round, with the places of what it leaves behind.
    fn inner(&mut self, block: BlockId) -> Result<InnerRounds, String> {
        let repeat = &self.plan.repeat(block).block;
        let most = match repeat.bound {
            Bound::Rounds(rounds) => InnerBound::Rounds(rounds),
            Bound::Unbounded => InnerBound::Rounds(u64::MAX),
            Bound::Value(relation) => {
                let place = self.operand(relation)?;
                let kind = &self.rounds.places[place];
                if kind.dtype != DType::I64 || !kind.shape.is_empty() {
                    return Err("the rounds of a loop in it are counted by no whole number".into());
                }
                InnerBound::Place(place)
            }
        };
        let initial = repeat
            .states
            .iter()
            .map(|state| self.operand(state.initial));
        let initial = initial.collect::<Result<Vec<usize>, String>>()?;
        let body = self.body(block)?;
        for (state, initial) in body.states.iter().zip(&initial) {
            if self.rounds.places[state.place] != self.rounds.places[*initial] {
                return Err("a state changes its type".into());
            }
        }
        let [made, total] = [(); 2].map(|()| {
            self.rounds.places.push(RoundPlace {
                dtype: DType::I64,
                shape: vec![],
            });
            self.rounds.places.len() - 1
        });
        self.rounds.inner.push((block, total));
        for (step, value) in self.plan.behind(block) {
            let place = match value {
                LoopValue::Last(_, number) => body.states[number as usize].place,
                LoopValue::Rounds(_) => made,
                // Of what is collected, `body` has those that are wanted, in order.
                LoopValue::Collected(_, number) => {
                    let before =
                        (0..number).filter(|n| self.plan.collected_kind(block, *n).is_some());
                    body.collected[before.count()].1
                }
                LoopValue::Counter(_) | LoopValue::State(..) => continue,
            };
            self.known.insert(step.result, place);
        }
        Ok(InnerRounds {
            most,
            initial,
            made,
            total,
            body,
        })
    }

    /// A place for a relation of this type.
    fn place(&mut self, kind: &RelationType, name: &str) -> Result<usize, String> {
        // A site has all of it or nothing.
        if !kind.keys.is_empty() {
            return Err(format!("`{name}` is not whole at a site"));
        }
        let [dtype] = kind.array.columns[..] else {
            return Err(format!("`{name}` has several columns"));
        };
        if !is_held(dtype) {
            return Err(format!("`{name}` is {dtype}"));
        }
        let dims = kind.array.dims.iter();
        let shape: Option<Vec<u64>> = dims
            .map(|dim| dim.cut.is_none().then_some(dim.extent))
            .collect();
        let shape = shape.filter(|_| kind.array.dims.iter().all(|dim| dim.window.is_none()));
        let shape = shape.ok_or_else(|| format!("`{name}` is a part of a tensor"))?;
        self.rounds.places.push(RoundPlace { dtype, shape });
        Ok(self.rounds.places.len() - 1)
    }

    /// A place for a relation that rounds make, or carry. All are at the same sites: one that had some of them alone would make its rounds step by
    /// step, with sums in another order, and might not end with the others.
    fn made(&mut self, kind: &RelationType, name: &str) -> Result<usize, String> {
        let axes = kind.placement.roles.iter().zip(&self.plan.mesh.axes);
        let roles = axes.filter(|(_, count)| **count > 1);
        let sites: Vec<AxisRole> = roles.map(|(role, _)| *role).collect();
        if *self.sites.get_or_insert_with(|| sites.clone()) != sites {
            return Err(format!("`{name}` is at other sites than others"));
        }
        self.place(kind, name)
    }

    /// The place of what a step reads: made in the round, or given.
    fn operand(&mut self, relation: RelationId) -> Result<usize, String> {
        if let Some(known) = self.known.get(&relation) {
            return Ok(*known);
        }
        let step = self.plan.step(relation);
        let place = self.place(&step.kind, &step.tensor)?;
        self.rounds.given.push((relation, place));
        self.known.insert(relation, place);
        Ok(place)
    }

    /// A step of a loop's round; none if it names what the loop has.
    fn step(
        &mut self,
        step: &Step,
        block: BlockId,
        body: &mut RoundBody,
    ) -> Result<Option<RoundItem>, String> {
        let name = &step.tensor;
        match &step.operation {
            Operation::Loop { value } => match *value {
                LoopValue::State(of, number) if of == block => {
                    let place = body.states[number as usize].place;
                    self.known.insert(step.result, place);
                }
                LoopValue::Counter(of) if of == block => {
                    let place = self.place(&step.kind, name)?;
                    body.counter = Some(place);
                    self.known.insert(step.result, place);
                }
                _ if self.known.contains_key(&step.result) => {}
                _ => return Err("there is a loop without steps in it".into()),
            },
            Operation::LocalJoin {
                inputs,
                kernel,
                fold: None,
                ..
            } => {
                let kernel = &self.plan.kernels[kernel.0 as usize];
                if let Some(why) = unfit(kernel) {
                    return Err(format!("`{name}` {why}"));
                }
                let called = match is_called(kernel) {
                    true => Some(self.loops(step)?),
                    false => None,
                };
                let operands = inputs.iter().map(|input| self.operand(input.relation));
                let operands = operands.collect::<Result<Vec<usize>, String>>()?;
                let points = self.points(step, kernel, (block, body));
                let result = match &points {
                    Some((place, _)) => *place,
                    None => self.made(&step.kind, name)?,
                };
                self.known.insert(step.result, result);
                self.rounds.steps.push(RoundStep {
                    kernel: kernel.clone(),
                    operands,
                    result,
                    called,
                    points: points.map(|(_, points)| points),
                });
                return Ok(Some(RoundItem::Step(self.rounds.steps.len() - 1)));
            }
            Operation::LocalJoin { .. } => return Err(format!("`{name}` is folded")),
            Operation::Source { .. } => return Err(format!("`{name}` is drawn in every round")),
            operation if operation.moves() => return Err(format!("`{name}` moves")),
            _ => return Err(format!("`{name}` is made in parts")),
        }
        Ok(None)
    }

    /// The loops of a step that is taken by itself.
    fn loops(&self, step: &Step) -> Result<LoopKernel, String> {
        let facts = self.plan.facts(step);
        let facts = facts.ok_or_else(|| format!("`{}` has no loops", step.tensor))?;
        Ok(choose(&facts))
    }

    /// The state that a step changes in place, and at which elements, if nobody else reads the result in the round.
    fn points(
        &self,
        step: &Step,
        kernel: &Kernel,
        (block, body): (BlockId, &RoundBody),
    ) -> Option<(usize, Vec<Point>)> {
        let old = self.plan.in_place(step)?;
        let Update { points, .. } = kernel.update()?;
        let single = |point: &Point| {
            let named = |at: u32| point.iter().any(|(index, _)| index.0 == at);
            point.len() == kernel.output_rank as usize && (0..kernel.output_rank).all(named)
        };
        let repeat = self.plan.repeat(block);
        let block = &repeat.block;
        let number = block
            .states
            .iter()
            .position(|state| state.next == step.result)?;
        let place = body.states[number].place;
        let once = block.ends_with().filter(|end| *end == step.result).count() == 1;
        let steps = &self.plan.steps[repeat.first as usize..repeat.end as usize];
        let read = steps
            .iter()
            .any(|other| other.operation.inputs().contains(&step.result));
        let begins = self.plan.repeats.iter();
        let read = read
            || begins
                .flat_map(|repeat| repeat.block.begins_with())
                .any(|relation| relation == step.result);
        let own = self.known.get(&old) == Some(&place);
        (own && once && !read && points.iter().all(single)).then_some((place, points))
    }

    /// Notes what a round ends with.
    fn ends(&mut self, id: BlockId, body: &mut RoundBody) -> Result<(), String> {
        let block = &self.plan.repeat(id).block;
        for (number, state) in block.states.iter().enumerate() {
            let next = self.operand(state.next)?;
            let mut others = body.states.iter().enumerate();
            if others.any(|(other, state)| other != number && state.place == next) {
                return Err("states are exchanged".into());
            }
            let place = body.states[number].place;
            if self.rounds.places[place] != self.rounds.places[next] {
                return Err("a state changes its type".into());
            }
            body.states[number].next = next;
        }
        for (number, collected) in (0u32..).zip(&block.collected) {
            // A value that nobody wants is not kept.
            let Some(kind) = self.plan.collected_kind(id, number) else {
                continue;
            };
            if collected.dim != 0 {
                return Err("the values of the rounds do not lie one behind the other".into());
            }
            let value = self.operand(collected.value)?;
            let all = self.made(kind, &block.name)?;
            body.collected.push((value, all));
        }
        body.until = block.until.map(|until| self.operand(until)).transpose()?;
        Ok(())
    }
}

/// Returns true if the code calls for a kernel: an operation on whole arrays, or a reduction that keeps several numbers of a result.
fn is_called(kernel: &Kernel) -> bool {
    let reduced = kernel.indices.len() - kernel.output_rank as usize;
    match kernel.reduction {
        _ if kernel.library().is_some() => true,
        Some(Reduction::LogSumExp | Reduction::Norm) => true,
        Some(reduction) => reduction.is_arg() && reduced != 1,
        None => false,
    }
}

/// Why a kernel is no part of such a program.
fn unfit(kernel: &Kernel) -> Option<String> {
    if kernel.output.len() != 1 || !kernel.finish {
        return Some("has several columns".into());
    }
    if kernel.library().is_some() {
        return None;
    }
    let value = kernel.graph.dtype(kernel.root);
    let result = kernel
        .reduction
        .map_or(value, |reduction| reduction.result(value));
    if kernel.output[0] != result && kernel.output[0].compute() != result.compute() {
        return Some("is converted where it is stored".into());
    }
    let held = |operand: &Operand| operand.columns.iter().all(|dtype| is_held(*dtype));
    if !kernel.operands.iter().all(held) {
        return Some("reads floats of few bits".into());
    }
    let mut nodes = kernel.graph.iter();
    let several = nodes.any(|(_, node, _)| matches!(node, Node::Read { column: 1.., .. }));
    several.then(|| "reads several columns".into())
}

/// Returns true if a place may have elements of this type: it is what they are computed in, or an integer, which wraps where it is stored.
fn is_held(dtype: DType) -> bool {
    dtype == dtype.compute() || dtype.is_integer()
}
