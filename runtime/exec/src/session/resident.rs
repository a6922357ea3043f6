//! Relations that stay at the sites between plans, and how they get from where one plan leaves them to where the next reads them.
//!
//! Must not know what they mean.
//!
//! ```text
//! W {i: 10/2} @ PART(i), read next as {j: 8/2} @ PART(j)   ->   every site sends the boxes that the others lack
//! ```

use crate::error::RunError;
use crate::store::Tuples;
use ein_comm::Communicator;
use ein_device::{Buffer, BufferType, Device};
use ein_plan::{ArrayDim, ArrayType, DType, Mesh, Operation, Placement, Plan, RelationType};
use std::collections::{BTreeMap, BTreeSet};

/// A relation with one column, as a site holds it.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    /// Type and placement.
    pub kind: RelationType,
    /// What the placement speaks of.
    pub mesh: Mesh,
    /// This site's tuples.
    pub tuples: Tuples,
}

/// All of them, by name.
#[derive(Default)]
pub(crate) struct Residents(BTreeMap<String, Resident>);

impl Residents {
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn get(&self, name: &str) -> Option<&Resident> {
        self.0.get(name)
    }

    pub fn insert(&mut self, name: String, resident: Resident) {
        self.0.insert(name, resident);
    }

    pub fn remove(&mut self, name: &str) -> Option<Resident> {
        self.0.remove(name)
    }

    /// The tuples of a relation, for good: arrays that somebody else holds too are copied. What is left knows where they lay.
    pub fn hand_over(&mut self, name: &str, device: &dyn Device) -> Option<(Resident, Tuples)> {
        let mut resident = self.0.remove(name)?;
        let mut tuples = std::mem::take(&mut resident.tuples);
        for buffer in tuples.values_mut().flatten() {
            // Others may read theirs while this one is written.
            device.unshare(buffer);
        }
        Some((resident, tuples))
    }

    /// Bytes that this site holds.
    pub fn bytes(&self) -> u64 {
        let arrays = self
            .0
            .values()
            .flat_map(|resident| resident.tuples.values().flatten());
        arrays.map(Buffer::bytes).sum()
    }

    /// Bytes that this site holds of what a plan does not read.
    pub fn bytes_beside(&self, plan: &Plan) -> u64 {
        let read: BTreeSet<&str> = plan
            .steps
            .iter()
            .filter_map(|step| match &step.operation {
                Operation::Source { name, source } if source.is_given() => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let beside = self
            .0
            .iter()
            .filter(|(name, _)| !read.contains(name.as_str()));
        let arrays = beside.flat_map(|(_, resident)| resident.tuples.values().flatten());
        arrays.map(Buffer::bytes).sum()
    }

    /// Brings a relation to where it is read. Every site calls it.
    pub fn place(
        &mut self,
        name: &str,
        kind: &RelationType,
        mesh: &Mesh,
        places: (&dyn Communicator, &dyn Device),
    ) -> Result<(), RunError> {
        let Some(resident) = self.0.get_mut(name) else {
            return Ok(());
        };
        if !alike(resident, kind, mesh) {
            resident.tuples = moved(resident, kind, mesh, places)?;
            resident.mesh = mesh.clone();
        }
        if resident.kind != *kind {
            resident.kind = kind.clone();
        }
        Ok(())
    }

    /// All of a relation, at every site.
    pub fn whole(
        &self,
        name: &str,
        (comm, device): (&dyn Communicator, &dyn Device),
    ) -> Result<Option<Buffer>, RunError> {
        let Some(resident) = self.0.get(name) else {
            return Ok(None);
        };
        let mut kind = resident.kind.clone();
        kind.keys.clear();
        kind.array.dims.iter_mut().for_each(|dim| dim.cut = None);
        // Sites outside of the mesh of the relation take part as well.
        let all = Mesh::row(comm.sites());
        kind.placement = ein_plan::Placement::all(&all);
        let tuples = moved(resident, &kind, &all, (comm, device))?;
        Ok(tuples.into_values().flatten().next())
    }
}

/// Whether a relation is there already, whatever its key dimensions are called.
fn alike(resident: &Resident, kind: &RelationType, mesh: &Mesh) -> bool {
    let have = &resident.kind;
    resident.mesh == *mesh
        && have.array == kind.array
        && have.placement == kind.placement
        && have.keys.len() == kind.keys.len()
        && have
            .keys
            .iter()
            .zip(&kind.keys)
            .all(|(a, b)| (a.extent, a.pieces, &a.axes) == (b.extent, b.pieces, &b.axes))
}

/// A box that goes from one site to another.
struct Parcel {
    from_key: Vec<u32>,
    to_key: Vec<u32>,
    /// Start and length of each dimension, in the whole tensor.
    part: Vec<(u64, u64)>,
}

/// What `receiver` gets from each site: for each of its boxes the parts of the boxes that it is made of. A part comes from the
/// receiver itself, if it has it, else from the first holder.
fn parcels(
    resident: &Resident,
    kind: &RelationType,
    mesh: &Mesh,
    receiver: u32,
    sites: u32,
) -> Vec<Vec<Parcel>> {
    let mut found: Vec<Vec<Parcel>> = (0..sites).map(|_| vec![]).collect();
    let sources: Vec<_> = resident
        .kind
        .all_keys()
        .map(|key| {
            let ranges = resident.kind.ranges(&key);
            (key, ranges)
        })
        .collect();
    for to_key in kind.keys_at(receiver, mesh) {
        let wanted = kind.ranges(&to_key);
        for (from_key, have) in &sources {
            let part: Vec<(u64, u64)> = wanted
                .iter()
                .zip(have)
                .map(|((a, n), (b, m))| {
                    let start = *a.max(b);
                    (start, (a + n).min(b + m).saturating_sub(start))
                })
                .collect();
            if part.iter().any(|(_, length)| *length == 0) {
                continue;
            }
            let holders = resident.kind.holders(from_key, &resident.mesh);
            let sender = match holders.contains(&receiver) {
                true => receiver,
                false => holders.first().copied().unwrap_or(0),
            };
            if let Some(list) = found.get_mut(sender as usize) {
                list.push(Parcel {
                    from_key: from_key.clone(),
                    to_key: to_key.clone(),
                    part,
                });
            }
        }
    }
    found
}

fn offset(part: &[(u64, u64)], ranges: &[(u64, u64)]) -> Vec<usize> {
    let pairs = part.iter().zip(ranges);
    pairs.map(|((a, _), (b, _))| (a - b) as usize).collect()
}

fn lengths(part: &[(u64, u64)]) -> Vec<usize> {
    part.iter().map(|(_, length)| *length as usize).collect()
}

fn moved(
    resident: &Resident,
    kind: &RelationType,
    mesh: &Mesh,
    (comm, device): (&dyn Communicator, &dyn Device),
) -> Result<Tuples, RunError> {
    let (me, sites) = (comm.site(), comm.sites());
    let [dtype] = kind.array.columns.as_slice() else {
        return Err(RunError::internal("what is carried has one column"));
    };
    let typed = |part: &[(u64, u64)]| BufferType::dense(*dtype, lengths(part));
    let mut outgoing: Vec<Vec<Buffer>> = vec![];
    for receiver in 0..sites {
        let mut arrays = vec![];
        let mut all = parcels(resident, kind, mesh, receiver, sites);
        for parcel in std::mem::take(&mut all[me as usize]) {
            let tuple = resident.tuples.get(&parcel.from_key);
            let array = tuple.and_then(|tuple| tuple.first()).ok_or_else(|| {
                RunError::internal("a carried tuple is not where its placement says")
            })?;
            let wanted = typed(&parcel.part);
            let mut cut = device.allocate(&wanted);
            let from = offset(&parcel.part, &resident.kind.ranges(&parcel.from_key));
            let origin = vec![0; from.len()];
            device.copy_box(&mut cut, &origin, array, &from, &wanted.shape);
            arrays.push(cut);
        }
        outgoing.push(arrays);
    }
    let expected = parcels(resident, kind, mesh, me, sites);
    let incoming: Vec<Vec<BufferType>> = expected
        .iter()
        .map(|list| list.iter().map(|parcel| typed(&parcel.part)).collect())
        .collect();
    let arrived = comm.exchange(outgoing, &incoming)?;
    let mut arrays: BTreeMap<Vec<u32>, Buffer> = kind
        .keys_at(me, mesh)
        .map(|key| {
            let zeros = device.zeros(&typed(&kind.ranges(&key)));
            (key, zeros)
        })
        .collect();
    let arrived = arrived.into_iter().flatten();
    for (parcel, part) in expected.iter().flatten().zip(arrived) {
        let at = offset(&parcel.part, &kind.ranges(&parcel.to_key));
        if let Some(array) = arrays.get_mut(&parcel.to_key) {
            let (part, origin) = (device.adopt(part), vec![0; at.len()]);
            device.copy_box(array, &at, &part, &origin, part.shape());
        }
    }
    let tuples = arrays.into_iter();
    Ok(tuples.map(|(key, array)| (key, vec![array])).collect())
}

/// A relation that every site of a mesh has whole.
pub(super) fn whole_kind(shape: &[u64], dtype: DType, mesh: &Mesh) -> RelationType {
    let dims = shape.iter().map(|extent| ArrayDim::whole(*extent));
    RelationType {
        keys: vec![],
        array: ArrayType {
            dims: dims.collect(),
            columns: vec![dtype],
        },
        placement: Placement::all(mesh),
    }
}
