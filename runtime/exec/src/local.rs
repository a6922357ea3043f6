//! The steps that no other site takes part in: joins, aggregations, concatenation, tiling, filters.
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
use ein_device::{
    Buffer, BufferType, Change, Device, Launch, Member, MemberOperand, Operand, Prepared, Span,
};
use ein_plan::{
    DType, Fold, JoinInput, Kernel, KeyDim, Operation, Plan, Range, Reduction, RelationId,
    RelationType, Step, Sweep, Update, piece,
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

    fn tuples(&self, relation: RelationId) -> Result<&'a Tuples, RunError> {
        self.store
            .get(relation)
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", relation.0)))
    }

    fn tuple(&self, relation: RelationId, key: &[u32]) -> Result<&'a Tuple, RunError> {
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

/// All results, or the error of the lowest key: which error a run ends with does not depend on threads.
pub(crate) fn in_key_order(
    results: impl IndexedParallelIterator<Item = Result<(Vec<u32>, Tuple), RunError>>,
) -> Result<Tuples, RunError> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect()
}

/// Σᴸ: the tuples that agree on the kept key dimensions, combined in key order. Takes the tuples, so that
/// the first one of a group is combined into in place where nobody else holds it.
pub(crate) fn aggregate(
    place: &Place<'_>,
    tuples: Tuples,
    input: &RelationType,
    keep: &[u32],
    reduction: Reduction,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let size: u64 = input
        .keys
        .iter()
        .enumerate()
        .filter(|(d, _)| !keep.contains(&(*d as u32)))
        .map(|(_, dim)| u64::from(dim.pieces))
        .product();
    let groups = grouped(place, tuples, kind, |key| {
        keep.iter().map(|d| key[*d as usize]).collect()
    });
    in_key_order(groups.into_par_iter().map(|(key, members)| {
        complete(&key, &members, size)?;
        let mut members = members.into_iter();
        let (_, first) = members.next().ok_or_else(|| no_member(&key))?;
        let mut sum = first;
        for (_, next) in members {
            sum = place.device.combine(reduction, sum, next);
        }
        Ok((key, sum))
    }))
}

/// Σᴸ with arrayConcat: the key dimension that cuts `array_dim` goes away.
pub(crate) fn concat(
    place: &Place<'_>,
    tuples: Tuples,
    input: &RelationType,
    array_dim: u32,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let dim = array_dim as usize;
    let Some(cut) = input.array.dims.get(dim).and_then(|d| d.cut) else {
        return Err(RunError::internal(format!(
            "dimension {array_dim} is put together, but it is not cut"
        )));
    };
    let pieces = u64::from(input.keys[cut as usize].pieces);
    let groups = grouped(place, tuples, kind, |key| {
        let mut rest = key.to_vec();
        rest.remove(cut as usize);
        rest
    });
    in_key_order(groups.into_par_iter().map(|(key, members)| {
        complete(&key, &members, pieces)?;
        let shape = shape(kind, &key);
        let columns = kind.array.columns.iter();
        let room = |dtype: &DType| {
            let wanted = BufferType::dense(*dtype, shape.clone());
            place.device.allocate(&wanted)
        };
        let mut columns: Tuple = columns.map(room).collect();
        for (from, member) in members {
            let mut start = vec![0; shape.len()];
            start[dim] = input.ranges(&from)[dim].0 as usize;
            for (column, part) in columns.iter_mut().zip(&member) {
                let origin = vec![0; shape.len()];
                place
                    .device
                    .copy_box(column, &start, part, &origin, part.shape());
            }
        }
        Ok((key, columns))
    }))
}

/// λᴸ with keyTile and arrayTile: `array_dim` is cut by a new, last key dimension.
pub(crate) fn tile(
    place: &Place<'_>,
    input: RelationId,
    array_dim: u32,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let dim = array_dim as usize;
    in_key_order(place.keys(kind).into_par_iter().map(|key| {
        let Some((_, from)) = key.split_last() else {
            return Err(RunError::internal("a tiled relation has a key dimension"));
        };
        let whole = place.tuple(input, from)?;
        let shape = shape(kind, &key);
        let mut start = vec![0; shape.len()];
        start[dim] = kind.ranges(&key)[dim].0 as usize;
        let columns = whole.iter().map(|column| {
            if column.shape() == shape {
                return column.clone();
            }
            let wanted = BufferType::dense(column.dtype(), shape.clone());
            let mut part = place.device.allocate(&wanted);
            let origin = vec![0; shape.len()];
            place
                .device
                .copy_box(&mut part, &origin, column, &start, &shape);
            part
        });
        let columns = columns.collect();
        Ok((key, columns))
    }))
}

/// σᴸ: the tuples whose coordinate on `key` is `value`. The result's key either lacks that dimension, or has
/// one piece there (its coordinate becomes 0), or is the input's.
pub(crate) fn filter(
    place: &Place<'_>,
    input: RelationId,
    key: u32,
    value: u32,
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let from = place.plan.kind(input);
    let at = key as usize;
    let mut kept = Tuples::new();
    for (old, tuple) in place.tuples(input)? {
        if old.get(at) != Some(&value) {
            continue;
        }
        let mut new = old.clone();
        if kind.keys.len() < from.keys.len() {
            new.remove(at);
        } else if kind.keys[at].pieces == 1 {
            new[at] = 0;
        }
        if kind.holds(&new, place.site, &place.plan.mesh) {
            kept.insert(new, tuple.clone());
        }
    }
    Ok(kept)
}

/// A key and the tuples, with their old keys, that become its tuple.
type Group = (Vec<u32>, Vec<(Vec<u32>, Tuple)>);

/// Tuples by the key that they become part of, in key order within a group; groups of other sites are left out.
fn grouped(
    place: &Place<'_>,
    tuples: Tuples,
    kind: &RelationType,
    target: impl Fn(&[u32]) -> Vec<u32>,
) -> Vec<Group> {
    let mut groups: BTreeMap<Vec<u32>, Vec<(Vec<u32>, Tuple)>> =
        place.keys(kind).into_iter().map(|k| (k, vec![])).collect();
    for (key, tuple) in tuples {
        if let Some(group) = groups.get_mut(&target(&key)) {
            group.push((key, tuple));
        }
    }
    groups.into_iter().collect()
}

fn complete(key: &[u32], members: &[(Vec<u32>, Tuple)], size: u64) -> Result<(), RunError> {
    if members.len() as u64 == size {
        return Ok(());
    }
    Err(RunError::internal(format!(
        "{} of the {size} tuples that make up {key:?} are here",
        members.len()
    )))
}

fn no_member(key: &[u32]) -> RunError {
    RunError::internal(format!("nothing makes up the tuple {key:?}"))
}

fn shape(kind: &RelationType, key: &[u32]) -> Vec<usize> {
    kind.ranges(key).iter().map(|(_, n)| *n as usize).collect()
}
