//! BCAST and SHUF: which tuples go where.
//!
//! Both sides know from types and placements what is sent, in key order, so only elements travel. A site keeps
//! what it has; what it lacks comes from the holder that agrees with it on as many coordinates as possible, so
//! that replicas serve themselves. Must not know transports.
//!
//! ```text
//! {i: 9/3} @ PART(i) on 3 sites, to ALL:   0 -> 1, 2: (0,)   1 -> 0, 2: (1,)   2 -> 0, 1: (2,)
//! ```

use crate::error::RunError;
use crate::store::{Tuple, Tuples, tuple};
use crate::windows;
use ein_comm::{Communicator, Ticket};
use ein_device::{BufferType, Device};
use ein_plan::relation::{sender, sends, sites_at};
use ein_plan::{Mesh, RelationType};
use std::collections::BTreeSet;
use std::time::Instant;

/// An exchange that has begun.
pub(crate) struct Begun {
    /// Its number in the plan.
    pub number: usize,
    pub ticket: Ticket,
    /// By member: how many arrays come from each site, and where they belong.
    pub members: Vec<(Vec<usize>, Place)>,
    /// When it began, if that is noted.
    pub began: Option<Instant>,
}

/// The tuples that `to` gives this site, of a relation that is at `from`.
pub(crate) fn movement(
    (comm, device): (&dyn Communicator, &dyn Device),
    mesh: &Mesh,
    from: &RelationType,
    to: &RelationType,
    tuples: &Tuples,
) -> Result<Tuples, RunError> {
    let one_to_all = from.placement.copies(mesh) == 1 && to.placement.is_all(mesh);
    if one_to_all && mesh.sites() == comm.sites() && comm.sites() > 1 {
        return gather((comm, device), mesh, from, tuples);
    }
    exchanged((comm, device), mesh, (from, false), to, tuples)
}

/// The tuples that `to` gives this site, each part from the site that has it; the flag says that they are windows of `from`.
pub(crate) fn exchanged(
    (comm, device): (&dyn Communicator, &dyn Device),
    mesh: &Mesh,
    (from, windows): (&RelationType, bool),
    to: &RelationType,
    tuples: &Tuples,
) -> Result<Tuples, RunError> {
    let parcels = match windows {
        true => Parcels::of_windows((comm, device), mesh, from, to, tuples)?,
        false => parcels(comm, mesh, from, to, tuples)?,
    };
    let arrived = comm.exchange(parcels.outgoing, &parcels.incoming)?;
    Ok(parcels.place.filled(to, arrived, device))
}

/// What a site sends and gets in a movement.
pub(crate) struct Parcels {
    /// By site: what goes to it.
    pub outgoing: Vec<Tuple>,
    /// By site: what comes from it.
    pub incoming: Vec<Vec<BufferType>>,
    /// Where that belongs.
    pub place: Place,
}

impl Parcels {
    /// Parts of tuples at `from` that the windows `to` are put together of.
    pub fn of_windows(
        devices: (&dyn Communicator, &dyn Device),
        mesh: &Mesh,
        from: &RelationType,
        to: &RelationType,
        tuples: &Tuples,
    ) -> Result<Parcels, RunError> {
        let (outgoing, parts) = windows::parts_of(devices, mesh, from, to, tuples)?;
        Ok(Parcels {
            outgoing,
            incoming: parts.incoming(from),
            place: Place::Windows(parts),
        })
    }
}

/// Where what arrives belongs.
pub(crate) enum Place {
    /// It is whole tuples.
    Tuples {
        /// What is here already.
        kept: Tuples,
        /// By site: the keys of what comes from it.
        keys: Vec<Vec<Vec<u32>>>,
    },
    /// It is parts of windows.
    Windows(windows::Parts),
}

impl Place {
    /// The result, which is of type `to`: what is kept, and what has arrived.
    pub fn filled(self, to: &RelationType, arrived: Vec<Tuple>, device: &dyn Device) -> Tuples {
        match self {
            Place::Tuples { kept, keys } => {
                let mut tuples = kept;
                tuples.extend(together(to, keys, arrived, device));
                tuples
            }
            Place::Windows(parts) => parts.filled(to, arrived, device),
        }
    }
}

/// What this site sends and gets when tuples go from one placement to another.
pub(crate) fn parcels(
    comm: &dyn Communicator,
    mesh: &Mesh,
    from: &RelationType,
    to: &RelationType,
    tuples: &Tuples,
) -> Result<Parcels, RunError> {
    let (me, sites) = (comm.site(), comm.sites() as usize);
    let mut kept = Tuples::new();
    let mut keys = vec![vec![]; sites];
    for key in to.keys_at(me, mesh) {
        if from.holds(&key, me, mesh) {
            let here = tuple(tuples, &key)?;
            kept.insert(key, here);
        } else {
            let source = sender(&from.coordinates(&key, mesh), me, mesh);
            keys[source as usize].push(key);
        }
    }
    let mut outgoing = vec![vec![]; sites];
    for key in from.keys_at(me, mesh) {
        for receiver in receivers(mesh, from, to, &key, me) {
            outgoing[receiver as usize].extend(tuple(tuples, &key)?);
        }
    }
    Ok(Parcels {
        outgoing,
        incoming: keys.iter().map(|keys| kinds(from, keys)).collect(),
        place: Place::Tuples { kept, keys },
    })
}

/// Every tuple, of which there is one copy, to every site.
fn gather(
    (comm, device): (&dyn Communicator, &dyn Device),
    mesh: &Mesh,
    from: &RelationType,
    tuples: &Tuples,
) -> Result<Tuples, RunError> {
    let keys: Vec<Vec<Vec<u32>>> = (0..comm.sites())
        .map(|site| from.keys_at(site, mesh).collect())
        .collect();
    let mine = keys[comm.site() as usize]
        .iter()
        .map(|key| tuple(tuples, key))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let incoming: Vec<Vec<BufferType>> = keys.iter().map(|keys| kinds(from, keys)).collect();
    let arrived = comm.share(mine, &incoming)?;
    Ok(together(from, keys, arrived, device))
}

/// The sites that get a tuple from `me`, which holds it: of those that `to` names and that do not hold it, the ones
/// that agree with `me` along every axis where holders are at all coordinates.
pub(crate) fn receivers(
    mesh: &Mesh,
    from: &RelationType,
    to: &RelationType,
    key: &[u32],
    me: u32,
) -> BTreeSet<u32> {
    if !sends(from, to, key, (me, mesh)) {
        return BTreeSet::new();
    }
    let held = from.coordinates(key, mesh);
    let axes = held.iter().zip(to.coordinates(key, mesh)).enumerate();
    let coordinates: Vec<Option<u32>> = axes
        .map(|(axis, (held, wanted))| match held {
            None => Some(mesh.coordinate(me, axis)),
            Some(_) => wanted,
        })
        .collect();
    let mut sites: BTreeSet<u32> = sites_at(&coordinates, mesh).into_iter().collect();
    sites.remove(&me);
    sites
}

/// What the tuples with these keys hold, columns of a tuple one after the other.
pub(crate) fn kinds(relation: &RelationType, keys: &[Vec<u32>]) -> Vec<BufferType> {
    keys.iter()
        .flat_map(|key| {
            let shape: Vec<usize> = relation
                .ranges(key)
                .iter()
                .map(|(_, n)| *n as usize)
                .collect();
            let columns = relation.array.columns.iter();
            columns.map(move |dtype| BufferType::dense(*dtype, shape.clone()))
        })
        .collect()
}

/// Tuples from each site's keys and buffers, which go together in order, in the device's memory.
pub(crate) fn together(
    relation: &RelationType,
    keys: Vec<Vec<Vec<u32>>>,
    buffers: Vec<Tuple>,
    device: &dyn Device,
) -> Tuples {
    let columns = relation.array.columns.len();
    keys.into_iter()
        .zip(buffers)
        .flat_map(|(keys, buffers)| {
            let mut buffers = buffers.into_iter().map(|buffer| device.adopt(buffer));
            keys.into_iter()
                .map(|key| (key, buffers.by_ref().take(columns).collect()))
                .collect::<Vec<_>>()
        })
        .collect()
}
