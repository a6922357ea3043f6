//! Windows: what a site sends of its tuples for the windows of others, and how its own are put together.
//!
//! Both sides know from types and placements which parts are sent, in the order of the receiver's keys, so only elements travel. A
//! window that is a whole tuple of the input is that tuple. Must not know transports.
//!
//! ```text
//! x[i] in pieces 0..4 and 4..8, windows i-1..i+1:   0 -> 1: element 3   1 -> 0: element 4
//! ```

use crate::error::RunError;
use crate::store::{Tuple, Tuples, tuple};
use ein_comm::Communicator;
use ein_device::{Buffer, BufferType, Device};
use ein_plan::window::{Origin, WindowPart, origin, parts};
use ein_plan::{Mesh, RelationType};
use std::collections::BTreeMap;

/// The parts that a site's windows are put together of.
pub(crate) struct Parts {
    /// Those of tuples that are here: of which window, where the tuple begins, and the tuple.
    here: Vec<(Vec<u32>, WindowPart, Vec<u64>, Tuple)>,
    /// By site: those that come from it, and of which windows.
    sent: Vec<Vec<(Vec<u32>, WindowPart)>>,
    /// The windows of this site.
    keys: Vec<Vec<u32>>,
}

/// Takes windows `to` of the tuples at `from`: by site, what goes to it; and the parts of this site's own windows.
pub(crate) fn parts_of(
    (comm, device): (&dyn Communicator, &dyn Device),
    mesh: &Mesh,
    from: &RelationType,
    to: &RelationType,
    tuples: &Tuples,
) -> Result<(Vec<Tuple>, Parts), RunError> {
    let (me, sites) = (comm.site(), comm.sites() as usize);
    let keys: Vec<Vec<u32>> = to.keys_at(me, mesh).collect();
    let (mut here, mut sent) = (vec![], vec![vec![]; sites]);
    for key in &keys {
        for part in parts(from, to, key) {
            match origin(from, &part, me, mesh) {
                Origin::Here => {
                    let begins = starts(from, &part.from);
                    let tuple = tuple(tuples, &part.from)?;
                    here.push((key.clone(), part, begins, tuple));
                }
                Origin::Site(source) => sent[source as usize].push((key.clone(), part)),
            }
        }
    }
    let mut outgoing = vec![vec![]; sites];
    for receiver in (0..mesh.sites()).filter(|site| *site != me) {
        for key in to.keys_at(receiver, mesh) {
            for part in parts(from, to, &key) {
                if origin(from, &part, receiver, mesh) == Origin::Site(me) {
                    let whole = tuple(tuples, &part.from)?;
                    let begins = starts(from, &part.from);
                    let columns = whole
                        .iter()
                        .map(|column| cut(device, column, &begins, &part));
                    outgoing[receiver as usize].extend(columns);
                }
            }
        }
    }
    Ok((outgoing, Parts { here, sent, keys }))
}

impl Parts {
    /// By site: the types of what comes from it, of tuples at `from`.
    pub fn incoming(&self, from: &RelationType) -> Vec<Vec<BufferType>> {
        let kinds = |parts: &Vec<(Vec<u32>, WindowPart)>| -> Vec<BufferType> {
            let kinds = parts.iter().flat_map(|(_, part)| {
                let columns = from.array.columns.iter();
                columns.map(|dtype| BufferType::dense(*dtype, extents(&part.lengths)))
            });
            kinds.collect()
        };
        self.sent.iter().map(kinds).collect()
    }

    /// The windows, of type `to`; `arrived` is what has come from each site.
    pub fn filled(self, to: &RelationType, arrived: Vec<Tuple>, device: &dyn Device) -> Tuples {
        let mut made = Windows {
            to,
            device,
            tuples: BTreeMap::new(),
        };
        for (key, part, begins, tuple) in self.here {
            made.take(key, &part, &begins, tuple);
        }
        let columns = to.array.columns.len();
        for (parts, buffers) in self.sent.into_iter().zip(arrived) {
            let mut buffers = buffers.into_iter().map(|buffer| device.adopt(buffer));
            for (key, part) in parts {
                let tuple: Tuple = buffers.by_ref().take(columns).collect();
                let begins = part.start.clone();
                made.take(key, &part, &begins, tuple);
            }
        }
        // Windows without elements have no parts.
        for key in self.keys {
            made.room(key);
        }
        made.tuples
    }
}

/// Windows that are being put together.
struct Windows<'a> {
    to: &'a RelationType,
    device: &'a dyn Device,
    tuples: Tuples,
}

impl Windows<'_> {
    /// Puts a part of a tuple that begins somewhere in the whole tensor where it belongs.
    fn take(&mut self, key: Vec<u32>, part: &WindowPart, begins: &[u64], tuple: Tuple) {
        let ranges = self.to.ranges(&key);
        let all = ranges.iter().map(|(_, length)| *length);
        if all.eq(part.lengths.iter().copied())
            && tuple
                .iter()
                .all(|column| column.shape() == extents(&part.lengths))
        {
            self.tuples.insert(key, tuple);
            return;
        }
        let own: Vec<u64> = ranges.iter().map(|(start, _)| *start).collect();
        let device = self.device;
        let columns = self.room(key);
        let at = offset(&part.start, &own);
        let from = offset(&part.start, begins);
        for (column, source) in columns.iter_mut().zip(&tuple) {
            device.copy_box(column, &at, source, &from, &extents(&part.lengths));
        }
    }

    /// The columns of a window; new memory if there is none yet.
    fn room(&mut self, key: Vec<u32>) -> &mut Tuple {
        let (to, device) = (self.to, self.device);
        let shape: Vec<usize> = to.ranges(&key).iter().map(|(_, n)| *n as usize).collect();
        self.tuples.entry(key).or_insert_with(|| {
            let columns = to.array.columns.iter();
            let room = |dtype: &ein_plan::DType| {
                device.allocate(&BufferType::dense(*dtype, shape.clone()))
            };
            columns.map(room).collect()
        })
    }
}

/// A part of a column that begins somewhere in the whole tensor, by itself.
fn cut(device: &dyn Device, column: &Buffer, begins: &[u64], part: &WindowPart) -> Buffer {
    let shape = extents(&part.lengths);
    if column.shape() == shape {
        return column.clone();
    }
    let mut made = device.allocate(&BufferType::dense(column.dtype(), shape.clone()));
    let origin = vec![0; shape.len()];
    device.copy_box(
        &mut made,
        &origin,
        column,
        &offset(&part.start, begins),
        &shape,
    );
    made
}

/// Where the tuple of a relation begins in the whole tensor.
fn starts(kind: &RelationType, key: &[u32]) -> Vec<u64> {
    kind.ranges(key).iter().map(|(start, _)| *start).collect()
}

fn offset(position: &[u64], begins: &[u64]) -> Vec<usize> {
    let pairs = position.iter().zip(begins);
    pairs
        .map(|(position, begin)| (position - begin) as usize)
        .collect()
}

fn extents(lengths: &[u64]) -> Vec<usize> {
    lengths.iter().map(|length| *length as usize).collect()
}
