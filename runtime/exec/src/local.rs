//! The steps that no other site takes part in and that compute: joins, folds, sweeps. Those that only put tuples together or cut them up are in
//! `rearrange`.
//!
//! A site makes the tuples that the result's placement gives it. That their inputs are here is the plan's
//! promise; where it does not hold, the run stops with an internal error. All of this runs on the current
//! thread pool, tuples in parallel. Must not know communication.
//!
//! ```text
//! join k0 (A, B) at (1, 0): A(1,) B(0,) over i 5..10, j 0..4, k 0..6
//! ```

use crate::error::RunError;
use crate::fault::fault;
use crate::schedule::Kernels;
use crate::store::{Store, Tuple, Tuples};
use ein_device::{Buffer, Change, Device, Launch, Member, MemberOperand, Operand, Prepared, Span};
use ein_plan::{
    Fold, JoinInput, Kernel, KeyDim, Operation, Plan, Range, RelationId, RelationType, Step, Sweep,
    Update, piece,
};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What every local step needs to know.
pub(crate) struct Place<'a> {
    pub plan: &'a Plan,
    pub site: u32,
    pub store: &'a Store,
    pub device: &'a dyn Device,
}

impl<'a> Place<'a> {
    pub fn keys(&self, kind: &RelationType) -> Vec<Vec<u32>> {
        kind.keys_at(self.site, &self.plan.mesh).collect()
    }

    pub fn tuples(&self, relation: RelationId) -> Result<&'a Tuples, RunError> {
        self.store
            .get(relation)
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", relation.0)))
    }

    pub fn tuple(&self, relation: RelationId, key: &[u32]) -> Result<&'a Tuple, RunError> {
        self.tuples(relation)?
            .get(key)
            .ok_or_else(|| absent(relation, key))
    }
}

pub(crate) fn absent(relation: RelationId, key: &[u32]) -> RunError {
    RunError::internal(format!(
        "the tuple {key:?} of r{} is needed where it is not",
        relation.0
    ))
}

/// What is computed of each joined tuple.
pub(crate) struct Join<'a> {
    pub inputs: &'a [JoinInput],
    pub kernel: &'a Kernel,
    pub ranges: &'a [Range],
    /// The kernel as the device runs it.
    pub prepared: &'a dyn Prepared,
}

impl<'a> Join<'a> {
    /// The join of a step, if it is one; `prepared` has the kernels of all steps.
    pub fn of(plan: &'a Plan, prepared: &'a Kernels, step: &'a Step) -> Option<Join<'a>> {
        let Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            ..
        } = &step.operation
        else {
            return None;
        };
        Some(Join {
            inputs,
            kernel: &plan.kernels[kernel.0 as usize],
            ranges,
            prepared: prepared.of(step.result)?,
        })
    }
}

/// ⋈ᴸ: the kernel of the input tuples that belong to each key.
pub(crate) fn join(
    place: &Place<'_>,
    join: &Join<'_>,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let one = |key: Vec<u32>| {
        let columns = joined(place, join, &kind.keys, &key)?;
        Ok((key, columns))
    };
    let mut keys = place.keys(kind);
    if keys.len() < 2 {
        // Most often; threads have nothing to divide.
        let mut made = Tuples::new();
        if let Some(key) = keys.pop() {
            let (key, tuple) = one(key)?;
            made.insert(key, tuple);
        }
        return Ok(made);
    }
    in_key_order(keys.into_par_iter().map(one))
}

/// What members of a sweep are written over where nobody else holds it: of each the relation, and its tuples.
pub(crate) type Old = Vec<(RelationId, RelationId, Tuples)>;

/// The joins of a sweep, tuple by tuple; what is not kept is made in passing. An error comes with the number of its member.
pub(crate) fn sweep(
    place: &Place<'_>,
    sweep: &Sweep,
    kept: &[bool],
    mut old: Old,
    prepared: &Kernels,
) -> Result<Vec<Option<Tuples>>, (usize, RunError)> {
    let plan = place.plan;
    let mut joins = vec![];
    for member in &sweep.members {
        let join = Join::of(plan, prepared, plan.step(*member));
        joins.push(join.ok_or_else(|| (0, RunError::internal("a sweep is of joins")))?);
    }
    let mut made: Vec<Option<Tuples>> = kept.iter().map(|kept| kept.then(Tuples::new)).collect();
    let mut worst = None;
    let position = |relation: RelationId| sweep.members.iter().position(|m| *m == relation);
    for key in place.keys(plan.kind(sweep.last())) {
        let (mut members, mut over) = (vec![], BTreeMap::new());
        for (member, relation, tuples) in &mut old {
            let buffer = tuples.remove(&key).and_then(|mut tuple| tuple.pop());
            let buffer = buffer.ok_or_else(|| (0, absent(*relation, &key)))?;
            let member = position(*member)
                .ok_or_else(|| (0, RunError::internal("what is written over is no member's")))?;
            over.insert(member, buffer);
        }
        let replaced = |relation: RelationId| {
            let (member, ..) = old.iter().find(|(_, old, _)| *old == relation)?;
            position(*member)
        };
        for (number, join) in joins.iter().enumerate() {
            let kind = plan.kind(sweep.members[number]);
            let operand =
                |input: &JoinInput| match (position(input.relation), replaced(input.relation)) {
                    (Some(made), _) => Ok(MemberOperand::Made(made)),
                    (None, Some(member)) => Ok(MemberOperand::Replaced(member)),
                    (None, None) => self::operand(place, input, &key).map(MemberOperand::Given),
                };
            let operands = join.inputs.iter().map(operand).collect::<Result<_, _>>();
            members.push(Member {
                kernel: join.prepared,
                ranges: ranges_at(join, &kind.keys, &key),
                operands: operands.map_err(|error| (number, error))?,
                kept: kept[number],
            });
        }
        let columns = match place.device.run_group(&members, sweep.rows as usize, over) {
            Ok(columns) => columns,
            Err((number, error)) => {
                // That of the first member counts, as if they were taken one after another.
                if worst.as_ref().is_none_or(|(worst, _)| number < *worst) {
                    let join = &joins[number];
                    worst = Some((number, fault(plan, join.inputs, join.kernel, &error)));
                }
                continue;
            }
        };
        for (tuples, columns) in made.iter_mut().zip(columns) {
            if let (Some(tuples), Some(columns)) = (tuples, columns) {
                tuples.insert(key.clone(), columns);
            }
        }
    }
    match worst {
        None => Ok(made),
        Some(error) => Err(error),
    }
}

/// Σᴸ after ⋈ᴸ: the joined tuples of a group are combined as they are made, in key order; no more than one of
/// them is held beside the result, and none of a product of matrices that is added to it as it is computed.
pub(crate) fn fold(
    place: &Place<'_>,
    join: &Join<'_>,
    fold: &Fold,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let one = |key: Vec<u32>| {
        let mut members = fold.members(&kind.keys, &key, &place.plan.mesh).into_iter();
        let first = members.next().ok_or_else(|| no_member(&key))?;
        let mut sum = joined(place, join, &fold.keys, &first)?;
        for member in members {
            let operands = read(place, join, &member)?;
            let ranges = ranges_at(join, &fold.keys, &member);
            sum = added(place, join, sum, ranges, operands)?;
        }
        Ok((key, sum))
    };
    in_key_order(place.keys(kind).into_par_iter().map(one))
}

/// The combination of joined tuples with one more, of these operands.
pub(crate) fn added(
    place: &Place<'_>,
    join: &Join<'_>,
    sum: Tuple,
    ranges: Vec<Span>,
    operands: Vec<Operand<'_>>,
) -> Result<Tuple, RunError> {
    let reduction = join.kernel.reduction;
    let reduction = reduction.ok_or_else(|| RunError::internal("a fold is of a reduction"))?;
    let launch = launch(join, ranges, operands);
    let sum = place.device.accumulate(&launch, reduction, sum);
    sum.map_err(|error| fault(place.plan, join.inputs, join.kernel, &error))
}

/// The columns of the joined tuple with a key of these dimensions.
fn joined(
    place: &Place<'_>,
    join: &Join<'_>,
    keys: &[KeyDim],
    key: &[u32],
) -> Result<Tuple, RunError> {
    let operands = read(place, join, key)?;
    evaluated(place, join, ranges_at(join, keys, key), operands)
}

/// What a join reads at a key.
fn read<'a>(place: &Place<'a>, join: &Join<'_>, key: &[u32]) -> Result<Vec<Operand<'a>>, RunError> {
    let operands = join.inputs.iter().map(|input| operand(place, input, key));
    operands.collect()
}

/// The columns of a joined tuple, of these operands.
pub(crate) fn evaluated(
    place: &Place<'_>,
    join: &Join<'_>,
    ranges: Vec<Span>,
    operands: Vec<Operand<'_>>,
) -> Result<Tuple, RunError> {
    let made = place.device.run(&launch(join, ranges, operands));
    made.map_err(|error| fault(place.plan, join.inputs, join.kernel, &error))
}

/// A run of a join's kernel.
pub(crate) fn launch<'a>(
    join: &Join<'a>,
    ranges: Vec<Span>,
    operands: Vec<Operand<'a>>,
) -> Launch<'a> {
    Launch {
        kernel: join.prepared,
        ranges,
        operands,
    }
}

/// What a join reads of an input at a key.
pub(crate) fn operand<'a>(
    place: &Place<'a>,
    input: &JoinInput,
    key: &[u32],
) -> Result<Operand<'a>, RunError> {
    let input_key = input.key_of(key);
    let tuple = place.tuple(input.relation, &input_key)?;
    Ok(operand_of(
        place.plan.kind(input.relation),
        &input_key,
        tuple,
    ))
}

/// The operand that the tuple with a key of a relation is.
pub(crate) fn operand_of<'a>(
    kind: &RelationType,
    key: &[u32],
    columns: &'a [Buffer],
) -> Operand<'a> {
    let ranges = kind.ranges(key);
    Operand {
        columns,
        start: ranges.iter().map(|(start, _)| *start).collect(),
    }
}

/// By tuple: the boxes of it that change.
pub(crate) type Changes = Vec<(Vec<u32>, Vec<Change>)>;

/// What an update ([`Plan::in_place`]) changes of the tuples that it gives back.
pub(crate) fn changes(
    place: &Place<'_>,
    join: &Join<'_>,
    update: &Update,
    kind: &RelationType,
) -> Result<Changes, RunError> {
    let keys = place.keys(kind).into_iter();
    let changes = keys.map(|key| {
        let operands = read(place, join, &key)?;
        let launch = launch(join, ranges_at(join, &kind.keys, &key), operands);
        let boxes = place.device.changes(&launch, update);
        let boxes = boxes.map_err(|error| fault(place.plan, join.inputs, join.kernel, &error))?;
        Ok((key, boxes))
    });
    changes.collect()
}

/// Writes changes into the tuples; what somebody else holds too is copied first.
pub(crate) fn change(
    device: &dyn Device,
    tuples: &mut Tuples,
    changes: Changes,
) -> Result<(), RunError> {
    for (key, boxes) in changes {
        for (start, part) in boxes {
            let column = tuples.get_mut(&key).and_then(|tuple| tuple.first_mut());
            let column = column.ok_or_else(|| {
                RunError::internal(format!("the tuple {key:?} is changed where it is not"))
            })?;
            let origin = vec![0; start.len()];
            device.copy_box(column, &start, &part, &origin, part.shape());
        }
    }
    Ok(())
}

/// The range of each of the kernel's indices at a key.
pub(crate) fn ranges_at(join: &Join<'_>, keys: &[KeyDim], key: &[u32]) -> Vec<Span> {
    join.ranges
        .iter()
        .zip(&join.kernel.indices)
        .map(|(range, index)| match range {
            Range::Whole => (0, index.extent),
            Range::Key(k) => {
                let k = *k as usize;
                piece(index.extent, keys[k].pieces, key[k])
            }
        })
        .collect()
}

pub(crate) fn no_member(key: &[u32]) -> RunError {
    RunError::internal(format!("nothing makes up the tuple {key:?}"))
}

/// All results, or the error of the lowest key: which error a run ends with does not depend on threads.
pub(crate) fn in_key_order(
    results: impl IndexedParallelIterator<Item = Result<(Vec<u32>, Tuple), RunError>>,
) -> Result<Tuples, RunError> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect()
}
