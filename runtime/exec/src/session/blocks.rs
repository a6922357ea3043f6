//! Blocks of tensors whose dimensions are lists of neurons: how they go from the sites that have them to those that want them.
//!
//! A tensor rests *at home*, in pieces of its first dimension of neurons, one a site, or *dealt*, a block a part. Every site knows what
//! every other has and wants, so boxes go straight from one to the other. Must not know what is trained.
//!
//! ```text
//! W1 f32[64, 5], dim 1 dealt 0 2 3 | 1 4, then 0 1 2 | 3 4   ->   site 0 sends column 3, site 1 column 1
//! ```

use super::deal::Deal;
use crate::error::RunError;
use ein_array::Array;
use ein_comm::{ArrayKind, Communicator};
use ein_plan::{DType, relation::piece};
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

/// Positions along each dimension, ascending; `None`: all of them.
type Selection = Vec<Option<Arc<[u32]>>>;

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

/// What a site gets, from whom.
fn parcels(tensor: &Dealt, from: Rest<'_>, to: Rest<'_>, receiver: u32, sites: u32) -> Vec<Parcel> {
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
            let (mut left, mut right) = (vec![], vec![]);
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

/// Takes a tensor from where it rests to where it is wanted. `mine` is what this site has; `onto` what is there already where it is
/// wanted, if that is kept where nothing arrives. All sites call it.
pub(super) fn moved(
    tensor: &Dealt,
    (from, to): (Rest<'_>, Rest<'_>),
    mine: &Array,
    onto: Option<Array>,
    comm: &dyn Communicator,
) -> Result<Array, RunError> {
    let (me, sites) = (comm.site(), comm.sites());
    let mut outgoing: Vec<Vec<Arc<Array>>> = vec![];
    for receiver in 0..sites {
        let own = parcels(tensor, from, to, receiver, sites);
        let own = own.into_iter().filter(|parcel| parcel.sender == me);
        let boxes = own.map(|parcel| {
            let mut part = Array::zeros(tensor.dtype, &parcel.shape);
            let whole = vec![None; parcel.shape.len()];
            copy((&mut part, &whole), (mine, &parcel.from), &parcel.shape);
            Arc::new(part)
        });
        outgoing.push(boxes.collect());
    }
    let expected = parcels(tensor, from, to, me, sites);
    let mut incoming: Vec<Vec<ArrayKind>> = vec![vec![]; sites as usize];
    for parcel in &expected {
        incoming[parcel.sender as usize].push(ArrayKind {
            dtype: tensor.dtype,
            shape: parcel.shape.clone(),
        });
    }
    let mut arrived: Vec<_> = comm
        .exchange(outgoing, &incoming)?
        .into_iter()
        .map(Vec::into_iter)
        .collect();
    let mut block =
        onto.unwrap_or_else(|| Array::zeros(tensor.dtype, &tensor.block(to, me, sites)));
    for parcel in &expected {
        let part = arrived[parcel.sender as usize].next();
        let part = part.ok_or_else(|| RunError::internal("a box that was to come did not"))?;
        let whole = vec![None; parcel.shape.len()];
        copy((&mut block, &parcel.to), (&part, &whole), &parcel.shape);
    }
    Ok(block)
}

/// Copies a box of that shape between positions of two arrays of one type.
fn copy(to: (&mut Array, &Selection), from: (&Array, &Selection), shape: &[usize]) {
    let ((to, to_at), (from, from_at)) = (to, from);
    let (to_strides, from_strides) = (to.strides(), from.strides());
    // What is whole in both at the end makes one run.
    let mut inner = shape.len();
    let mut run = 1;
    while inner > 0 && to_at[inner - 1].is_none() && from_at[inner - 1].is_none() {
        inner -= 1;
        run *= shape[inner];
    }
    let size = to.dtype().size();
    let offsets = |at: &Selection, strides: &[usize]| -> Vec<Vec<usize>> {
        (0..inner)
            .map(|dim| match &at[dim] {
                Some(list) => list
                    .iter()
                    .map(|p| *p as usize * strides[dim] * size)
                    .collect(),
                None => (0..shape[dim]).map(|p| p * strides[dim] * size).collect(),
            })
            .collect()
    };
    let (to_offsets, from_offsets) = (offsets(to_at, &to_strides), offsets(from_at, &from_strides));
    let bytes = run * size;
    let (target, origin) = (to.data_mut().bytes_mut(), from.data().bytes());
    match bytes {
        4 => along::<4>(target, origin, &to_offsets, &from_offsets),
        8 => along::<8>(target, origin, &to_offsets, &from_offsets),
        _ => each(&to_offsets, &from_offsets, &mut |t, f| {
            target[t..t + bytes].copy_from_slice(&origin[f..f + bytes]);
        }),
    }
}

fn along<const N: usize>(target: &mut [u8], origin: &[u8], to: &[Vec<usize>], from: &[Vec<usize>]) {
    each(to, from, &mut |t, f| {
        target[t..t + N].copy_from_slice(&origin[f..f + N]);
    });
}

/// Calls with the sums of offsets of every point.
fn each(to: &[Vec<usize>], from: &[Vec<usize>], call: &mut impl FnMut(usize, usize)) {
    let (Some((to_last, to)), Some((from_last, from))) = (to.split_last(), from.split_last())
    else {
        call(0, 0);
        return;
    };
    let mut at = vec![0; to.len()];
    if to.iter().any(Vec::is_empty) {
        return;
    }
    loop {
        let base = |lists: &[Vec<usize>]| -> usize {
            lists.iter().zip(&at).map(|(list, at)| list[*at]).sum()
        };
        let (t, f) = (base(to), base(from));
        for (a, b) in to_last.iter().zip(from_last) {
            call(t + a, f + b);
        }
        let mut dim = at.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            at[dim] += 1;
            if at[dim] < to[dim].len() {
                break;
            }
            at[dim] = 0;
        }
    }
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
                .map(|round| Deal::of(layers, parts, "b", round, 3))
                .collect();
            std::thread::scope(|scope| {
                for comm in in_process(sites) {
                    let (tensor, whole, deals) = (&tensor, &whole, &deals);
                    scope.spawn(move || {
                        let me = comm.site();
                        let home = taken(whole, &tensor.at_home(me, sites));
                        let go = |from, to, mine: &Array, onto| {
                            moved(tensor, (from, to), mine, onto, &comm).expect("no site is lost")
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
        there_and_back(&[5, 2, 7, 3], &[(0, 1), (2, 0)], &layers);
    }
}
