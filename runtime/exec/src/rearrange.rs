//! The local steps that put tuples together, cut them up or leave some out: aggregation, concatenation, tiling, filters.
//!
//! Must not know communication, nor kernels.
//!
//! ```text
//! concat dimension 0 of {i: 10/2} f32[i, j]   (0,) 5 x 4 and (1,) 5 x 4   ->   () 10 x 4
//! ```

use crate::error::RunError;
use crate::local::{Place, in_key_order, no_member};
use crate::store::{Tuple, Tuples};
use ein_device::BufferType;
use ein_plan::{DType, Reduction, RelationId, RelationType};
use rayon::prelude::*;
use std::collections::BTreeMap;

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

fn shape(kind: &RelationType, key: &[u32]) -> Vec<usize> {
    kind.ranges(key).iter().map(|(_, n)| *n as usize).collect()
}
