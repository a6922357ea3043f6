//! BCAST and SHUF: which tuples go where.
//!
//! Both sides know from types and placements what is sent, in key order, so only elements travel. Must not
//! know transports.
//!
//! ```text
//! {i: 9/3} @ PART(i) on 2 sites, to ALL:   0 -> 1: (0,), (1,)   1 -> 0: (2,)
//! ```

use crate::error::RunError;
use crate::store::{Tuple, Tuples, keys_at};
use ein_comm::{ArrayKind, Communicator};
use ein_plan::{Placement, RelationType};

/// Every tuple to every site.
pub(crate) fn broadcast(
    comm: &dyn Communicator,
    from: &RelationType,
    tuples: &Tuples,
) -> Result<Tuples, RunError> {
    if from.placement == Placement::All || comm.sites() == 1 {
        return Ok(tuples.clone());
    }
    let sites = comm.sites();
    let keys: Vec<Vec<Vec<u32>>> = (0..sites)
        .map(|site| keys_at(from, site, sites).collect())
        .collect();
    let mine = keys[comm.site() as usize]
        .iter()
        .map(|key| tuple(tuples, key))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let incoming: Vec<Vec<ArrayKind>> = keys.iter().map(|keys| kinds(from, keys)).collect();
    let arrived = comm.share(mine, &incoming)?;
    Ok(together(from, keys, arrived))
}

/// Every tuple to the site that the result's placement names.
pub(crate) fn shuffle(
    comm: &dyn Communicator,
    from: &RelationType,
    to: &RelationType,
    tuples: &Tuples,
) -> Result<Tuples, RunError> {
    let (me, sites) = (comm.site(), comm.sites());
    if to.placement == Placement::All {
        return broadcast(comm, from, tuples);
    }
    let mut outgoing = vec![vec![]; sites as usize];
    let mut keys = vec![vec![]; sites as usize];
    for key in from.all_keys() {
        let target = to.site(&key, sites).unwrap_or(me);
        // A tuple that every site holds only has to be kept.
        let source = from.site(&key, sites).unwrap_or(target);
        if source == me {
            outgoing[target as usize].extend(tuple(tuples, &key)?);
        }
        if target == me {
            keys[source as usize].push(key);
        }
    }
    if from.placement == Placement::All {
        return Ok(together(from, keys, outgoing));
    }
    let incoming: Vec<Vec<ArrayKind>> = keys.iter().map(|keys| kinds(from, keys)).collect();
    let arrived = comm.exchange(outgoing, &incoming)?;
    Ok(together(from, keys, arrived))
}

fn tuple(tuples: &Tuples, key: &[u32]) -> Result<Tuple, RunError> {
    tuples.get(key).cloned().ok_or_else(|| {
        RunError::internal(format!(
            "the tuple {key:?} to be sent is not where its placement says"
        ))
    })
}

/// What the tuples with these keys hold, columns of a tuple one after the other.
fn kinds(relation: &RelationType, keys: &[Vec<u32>]) -> Vec<ArrayKind> {
    keys.iter()
        .flat_map(|key| {
            let shape: Vec<usize> = relation
                .ranges(key)
                .iter()
                .map(|(_, n)| *n as usize)
                .collect();
            relation.array.columns.iter().map(move |dtype| ArrayKind {
                dtype: *dtype,
                shape: shape.clone(),
            })
        })
        .collect()
}

/// Tuples from each site's keys and arrays, which go together in order.
fn together(relation: &RelationType, keys: Vec<Vec<Vec<u32>>>, arrays: Vec<Tuple>) -> Tuples {
    let columns = relation.array.columns.len();
    keys.into_iter()
        .zip(arrays)
        .flat_map(|(keys, arrays)| {
            let mut arrays = arrays.into_iter();
            keys.into_iter()
                .map(|key| (key, arrays.by_ref().take(columns).collect()))
                .collect::<Vec<_>>()
        })
        .collect()
}
