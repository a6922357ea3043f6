//! Blocks of tensors whose dimensions are lists of neurons: how they go from the sites that have them to those that want them.
//!
//! A tensor rests *at home*, in pieces of its first dimension of neurons, one a site, or *dealt*, a block a part. Every site knows what
//! every other has and wants, so boxes go straight from one to the other. Must not know what is trained.
//!
//! ```text
//! W1 f32[64, 5], dim 1 dealt 0 2 3 | 1 4, then 0 1 2 | 3 4   ->   site 0 sends column 3, site 1 column 1
//! ```

use super::boxes::{Selection, copy};
use super::deal::Deal;
use crate::error::RunError;
use ein_array::Array;
use ein_comm::Communicator;
use ein_device::{Buffer, BufferType, Device};
use ein_plan::{DType, Format, relation::piece};
use std::sync::Arc;

/// A tensor with dimensions that count neurons.
#[derive(Clone, Debug)]
pub(super) struct Dealt {
    /// Element type.
    pub dtype: DType,
    /// Extents of all of it.
    pub shape: Vec<u64>,
    /// The dimensions that count neurons, with the layer.
    pub dims: Vec<(usize, usize)>,
}

/// Where a tensor is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest<'a> {
    /// In pieces along its first dimension of neurons.
    Home,
    /// In the blocks of a partition.
    Dealt(&'a Deal),
}

impl Dealt {
    /// The piece of the first dimension of neurons that is a site's home.
    pub fn home(&self, site: u32, sites: u32) -> (u64, u64) {
        let (dim, _) = self.dims[0];
        piece(self.shape[dim], sites, site)
    }

    fn at_home(&self, site: u32, sites: u32) -> Selection {
        let (start, length) = self.home(site, sites);
        let mut selection = vec![None; self.shape.len()];
        selection[self.dims[0].0] = Some((start as u32..(start + length) as u32).collect());
        selection
    }

    fn of_part(&self, deal: &Deal, part: u32) -> Selection {
        let mut selection = vec![None; self.shape.len()];
        for (dim, layer) in &self.dims {
            selection[*dim] = Some(deal.neurons(*layer, part));
        }
        selection
    }

    fn selection(&self, rest: Rest<'_>, site: u32, sites: u32) -> Selection {
        match rest {
            Rest::Home => self.at_home(site, sites),
            Rest::Dealt(deal) => self.of_part(deal, deal.part_of(site)),
        }
    }

    fn extents(&self, selection: &Selection) -> Vec<usize> {
        let pairs = selection.iter().zip(&self.shape);
        pairs
            .map(|(list, extent)| list.as_ref().map_or(*extent as usize, |list| list.len()))
            .collect()
    }

    /// In how many slabs it moves, the same at every site.
    fn slabs(&self, (from, to): (Rest<'_>, Rest<'_>), sites: u32) -> u32 {
        let bytes = |rest, site| -> u64 {
            let extents = self.block(rest, site, sites);
            Format::default().bytes(self.dtype, extents.iter().product::<usize>() as u64)
        };
        let most = (0..sites).map(|site| bytes(from, site).max(bytes(to, site)));
        let most = most.max().unwrap_or(0);
        most.div_ceil(slab(most).max(1)).max(1) as u32
    }

    /// Extents of a site's block.
    pub fn block(&self, rest: Rest<'_>, site: u32, sites: u32) -> Vec<usize> {
        self.extents(&self.selection(rest, site, sites))
    }
}

/// A box that goes from one site to another: where it is in what the one has, and in what the other wants.
struct Parcel {
    sender: u32,
    from: Selection,
    to: Selection,
    shape: Vec<usize>,
}

impl Parcel {
    /// One of so many pieces of it, along the first dimension that is long enough; `None` if that is empty.
    fn piece(&self, count: u32, number: u32) -> Option<Parcel> {
        let long = |extent: &usize| *extent >= LONG * count as usize;
        let longest = (0..self.shape.len()).max_by_key(|dim| self.shape[*dim]);
        let dim = self.shape.iter().position(long).or(longest)?;
        let (start, length) = piece(self.shape[dim] as u64, count, number);
        let range = start as usize..(start + length) as usize;
        let cut = |selection: &Selection| {
            let mut selection = selection.clone();
            if count > 1 {
                selection[dim] = Some(match &selection[dim] {
                    Some(list) => list[range.clone()].into(),
                    None => (range.start as u32..range.end as u32).collect(),
                });
            }
            selection
        };
        let mut shape = self.shape.clone();
        shape[dim] = range.len();
        (!range.is_empty()).then(|| Parcel {
            sender: self.sender,
            from: cut(&self.from),
            to: cut(&self.to),
            shape,
        })
    }
}

/// Bytes of a block that are always sent in one go.
const SLAB: u64 = 4 << 20;
/// Positions of a dimension, for each slab, that are enough to cut it evenly.
const LONG: usize = 16;

/// The most bytes that a site sends, or gets, in one go of a block of so many bytes: a quarter, so that what is on its way is
/// little beside the block.
pub fn slab(block: u64) -> u64 {
    block.min(SLAB.max(block.div_ceil(4)))
}

/// What `receiver` gets, from whom, if it or the sender is site `me`.
fn parcels(
    tensor: &Dealt,
    (from, to): (Rest<'_>, Rest<'_>),
    (receiver, me): (u32, u32),
    sites: u32,
) -> Vec<Parcel> {
    let wanted = tensor.selection(to, receiver, sites);
    let holders: Vec<(u32, Selection)> = match from {
        Rest::Home => (0..sites)
            .map(|site| (site, tensor.at_home(site, sites)))
            .collect(),
        Rest::Dealt(deal) => (0..deal.parts())
            .map(|part| {
                // Of the sites that have a part the receiver itself, else each serves as many as the others.
                let all = deal.sites_of(part, sites);
                let sender = match deal.part_of(receiver) == part {
                    true => receiver,
                    false => all[(receiver / deal.parts()) as usize % all.len()],
                };
                (sender, tensor.of_part(deal, part))
            })
            .collect(),
    };
    let mut found = vec![];
    for (sender, have) in holders {
        if me != sender && me != receiver {
            continue;
        }
        let (mut from, mut to) = (vec![], vec![]);
        for (have, wanted) in have.iter().zip(&wanted) {
            let [a, b] = common(have.as_deref(), wanted.as_deref());
            from.push(a);
            to.push(b);
        }
        let lists = from.iter().zip(&tensor.shape);
        let extent = |(list, extent): (&Option<Arc<[u32]>>, &u64)| {
            list.as_ref().map_or(*extent as usize, |l| l.len())
        };
        let shape: Vec<usize> = lists.map(extent).collect();
        if !shape.contains(&0) {
            found.push(Parcel {
                sender,
                from,
                to,
                shape,
            });
        }
    }
    found
}

/// Where what two ascending lists have in common stands in each.
fn common(a: Option<&[u32]>, b: Option<&[u32]>) -> [Option<Arc<[u32]>>; 2] {
    match (a, b) {
        (None, None) => [None, None],
        // Of all positions, each stands at its own number.
        (Some(a), None) => [Some((0..a.len() as u32).collect()), Some(a.into())],
        (None, Some(b)) => [Some(b.into()), Some((0..b.len() as u32).collect())],
        (Some(a), Some(b)) => {
            let room = a.len().min(b.len());
            let (mut left, mut right) = (Vec::with_capacity(room), Vec::with_capacity(room));
            let (mut i, mut j) = (0, 0);
            while i < a.len() && j < b.len() {
                match a[i].cmp(&b[j]) {
                    std::cmp::Ordering::Less => i += 1,
                    std::cmp::Ordering::Greater => j += 1,
                    std::cmp::Ordering::Equal => {
                        left.push(i as u32);
                        right.push(j as u32);
                        i += 1;
                        j += 1;
                    }
                }
            }
            [Some(left.into()), Some(right.into())]
        }
    }
}

/// Takes a tensor from where it rests to where it is wanted, slab by slab. `mine` is what this site has; `onto` what is there already
/// where it is wanted, if that is kept where nothing arrives. All sites call it.
pub(super) fn moved(
    tensor: &Dealt,
    (from, to): (Rest<'_>, Rest<'_>),
    mine: &Array,
    onto: Option<Array>,
    (comm, device): (&dyn Communicator, &dyn Device),
) -> Result<Array, RunError> {
    let (me, sites) = (comm.site(), comm.sites());
    // Every element arrives from somewhere, or was there.
    let mut block =
        onto.unwrap_or_else(|| device.staging(tensor.dtype, &tensor.block(to, me, sites)));
    let all: Vec<Vec<Parcel>> = (0..sites)
        .map(|receiver| parcels(tensor, (from, to), (receiver, me), sites))
        .collect();
    for parcel in all[me as usize].iter().filter(|p| p.sender == me) {
        copy(
            (&mut block, &parcel.to),
            (mine, &parcel.from),
            &parcel.shape,
        );
    }
    let slabs = tensor.slabs((from, to), sites);
    for slab in 0..slabs {
        let between = |receiver: u32| {
            let own = all[receiver as usize].iter();
            let own = own.filter(move |parcel| parcel.sender != receiver);
            own.filter_map(move |parcel| parcel.piece(slabs, slab))
        };
        let mut outgoing: Vec<Vec<Buffer>> = vec![];
        for receiver in 0..sites {
            let own = between(receiver).filter(|parcel| parcel.sender == me);
            let boxes = own.map(|parcel| {
                let mut part = Array::room(tensor.dtype, &parcel.shape);
                let whole = vec![None; parcel.shape.len()];
                copy((&mut part, &whole), (mine, &parcel.from), &parcel.shape);
                Buffer::from(part)
            });
            outgoing.push(boxes.collect());
        }
        let expected: Vec<Parcel> = between(me).collect();
        let mut incoming: Vec<Vec<BufferType>> = vec![vec![]; sites as usize];
        for parcel in &expected {
            let promised = BufferType::dense(tensor.dtype, parcel.shape.clone());
            incoming[parcel.sender as usize].push(promised);
        }
        let mut arrived: Vec<_> = comm
            .exchange(outgoing, &incoming)?
            .into_iter()
            .map(Vec::into_iter)
            .collect();
        for parcel in &expected {
            let part = arrived[parcel.sender as usize].next();
            let part = part.ok_or_else(|| RunError::internal("a box that was to come did not"))?;
            let whole = vec![None; parcel.shape.len()];
            copy(
                (&mut block, &parcel.to),
                (&part.to_host(), &whole),
                &parcel.shape,
            );
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ein_array::Data;
    use ein_comm::in_process;

    fn numbered(shape: &[u64]) -> Array {
        let count: u64 = shape.iter().product();
        let shape = shape.iter().map(|n| *n as usize).collect();
        Array::new(shape, Data::I64((0..count as i64).collect()))
            .expect("as many elements as the shape says")
    }

    /// The box of a selection, element by element.
    fn taken(whole: &Array, selection: &Selection) -> Array {
        let lists: Vec<Vec<usize>> = selection
            .iter()
            .zip(whole.shape())
            .map(|(list, extent)| match list {
                Some(list) => list.iter().map(|p| *p as usize).collect(),
                None => (0..*extent).collect(),
            })
            .collect();
        let shape: Vec<usize> = lists.iter().map(Vec::len).collect();
        let mut values = vec![];
        for number in 0..shape.iter().product::<usize>() {
            let (mut rest, mut at) = (number, 0);
            let strides = whole.strides();
            for (dim, list) in lists.iter().enumerate().rev() {
                at += list[rest % list.len()] * strides[dim];
                rest /= list.len();
            }
            values.push(whole.data().get(at).as_f64() as i64);
        }
        Array::new(shape, Data::I64(values)).expect("as many elements as the shape says")
    }

    /// On every number of sites and parts: from home to a deal, to another, and home again.
    fn there_and_back(shape: &[u64], dims: &[(usize, usize)], layers: &[(String, u64)]) {
        let whole = numbered(shape);
        let tensor = Dealt {
            dtype: DType::I64,
            shape: shape.to_vec(),
            dims: dims.to_vec(),
        };
        for (sites, parts) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 2), (4, 1)] {
            let deals: Vec<Deal> = (0..2)
                .map(|round| Deal::of(layers, parts, ("b", round), (3, &ein_device_cpu::Cpu)))
                .collect();
            std::thread::scope(|scope| {
                for comm in in_process(sites) {
                    let (tensor, whole, deals) = (&tensor, &whole, &deals);
                    scope.spawn(move || {
                        let me = comm.site();
                        let home = taken(whole, &tensor.at_home(me, sites));
                        let go = |from, to, mine: &Array, onto| {
                            moved(
                                tensor,
                                (from, to),
                                mine,
                                onto,
                                (&comm, &ein_device_cpu::Cpu),
                            )
                            .expect("no site is lost")
                        };
                        let (first, second) = (Rest::Dealt(&deals[0]), Rest::Dealt(&deals[1]));
                        let block = go(Rest::Home, first, &home, None);
                        assert_eq!(block, taken(whole, &tensor.of_part(&deals[0], me % parts)));
                        if tensor.dims.len() == 1 {
                            let next = go(first, second, &block, None);
                            assert_eq!(next, taken(whole, &tensor.of_part(&deals[1], me % parts)));
                        }
                        // What nobody has changed is put back as it was, and what nobody had stays.
                        assert_eq!(go(first, Rest::Home, &block, Some(home.clone())), home);
                    });
                }
            });
        }
    }

    #[test]
    fn blocks_go_where_they_are_wanted_and_back() {
        let layers = [("a".to_owned(), 7), ("b".to_owned(), 5)];
        there_and_back(&[3, 7], &[(1, 0)], &layers);
        there_and_back(&[7, 3, 2], &[(0, 0)], &layers);
        there_and_back(&[7], &[(0, 0)], &layers);
        there_and_back(&[7, 5], &[(0, 0), (1, 1)], &layers);
        // More than one slab.
        there_and_back(&[7, 160_000], &[(0, 0)], &layers);
        there_and_back(&[70_001, 7, 2], &[(1, 0)], &layers);
        there_and_back(&[5, 2, 7, 3], &[(0, 1), (2, 0)], &layers);
    }
}
