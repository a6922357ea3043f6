//! Reads in windows: what a statement needs of an operand that it reads at affine positions, and what getting it there moves.
//!
//! Which part of a dimension a site needs follows from the affine forms of the reads and from the indices that the statement cuts
//! ([`crate::tra::reads`]); a site's part is a box, so what it lacks is one box less another. Prices are exact where every class of
//! indices is cut along the axes at hand alone. Must not know programs or layouts of whole programs.
//!
//! ```text
//! y[i] = x[i - 1] + x[i + 1] on 4 sites, i cut, x at (Cut(0)): each site lacks an element on either side, 6 in all
//! ```

use super::machine::Levels;
use super::mesh::AXES;
use super::transfer::{Counts, Far, Move, ReadWindows, Roles, TransferItem};
use crate::ia::layout::{StatementRole, TensorRole, WindowAxis, WindowRead};
use crate::tra::operands::split_operands;
use crate::tra::reads::{Part, Windows, around};
use ein_plan::{IndexId, Kernel, Quotient, piece};

/// A read of an operand: which, the parts that it wants if every index is cut, and its windows, if some of these are windows, with the
/// kernel's index of each of theirs.
pub type OperandRead = (u32, Vec<Part>, Option<(WindowRead, Vec<IndexId>)>);

/// The reads of a kernel. New windows are added to those that are known. What `free` says can be made anywhere is wanted whole.
pub fn reads(
    kernel: &Kernel,
    free: &dyn Fn(usize) -> bool,
    known: &mut Vec<ReadWindows>,
) -> Vec<OperandRead> {
    // A library operation reads whole matrices.
    let may = kernel.library().is_none();
    let operands = 0..kernel.operands.len();
    let windowed: Vec<bool> = operands.map(|operand| may && !free(operand)).collect();
    let count = kernel.indices.len();
    let windows = Windows::Of {
        operands: &windowed,
        moving: &vec![true; count],
    };
    let (split, operands) = split_operands(kernel, &vec![2; count], &windows);
    let with_windows = (0u32..).zip(operands).map(|(number, (operand, parts))| {
        if !parts.iter().any(|part| matches!(part, Part::Window { .. })) {
            return (operand, parts, None);
        }
        let mut indices: Vec<IndexId> = vec![];
        let dims = parts.iter().enumerate().map(|(dim, part)| {
            let mut forms: Vec<Quotient> = match part {
                Part::Whole => vec![],
                _ => {
                    let reads = split.graph.reads();
                    let own = reads.filter(|(read, _)| *read == number);
                    own.filter_map(|(_, at)| split.graph.as_quotient(at[dim]))
                        .collect()
                }
            };
            for (index, _) in forms.iter_mut().flat_map(|of| &mut of.form.terms) {
                let at = indices.iter().position(|other| other == index);
                let at = at.unwrap_or_else(|| {
                    indices.push(*index);
                    indices.len() - 1
                });
                *index = IndexId(at as u32);
            }
            forms.dedup();
            forms
        });
        let dims: Vec<Vec<Quotient>> = dims.collect();
        let extent = |index: &IndexId| kernel.indices[index.0 as usize].extent;
        let windows = ReadWindows {
            extents: indices.iter().map(extent).collect(),
            dims,
        };
        let at = known.iter().position(|other| *other == windows);
        let at = at.unwrap_or_else(|| {
            known.push(windows);
            known.len() - 1
        });
        (operand, parts, Some((WindowRead(at as u32), indices)))
    });
    with_windows.collect()
}

/// Returns the windows of an operand that a statement needs at these roles of the axes; `None` if it has none. `indices` are the
/// statement's, of those of the windows.
pub fn needed(
    windows: &[ReadWindows],
    shape: &[u64],
    (read, indices): &(WindowRead, Vec<IndexId>),
    run: [StatementRole; AXES],
    counts: Counts,
) -> Option<Roles> {
    let axis = |role: StatementRole, count: u32| match role {
        _ if count == 1 => WindowAxis::Every,
        StatementRole::Every => WindowAxis::Every,
        StatementRole::First => WindowAxis::First,
        StatementRole::Index(index) => {
            let own = indices.iter().position(|other| *other == index);
            own.map_or(WindowAxis::Every, |at| {
                WindowAxis::Index(IndexId(at as u32))
            })
        }
    };
    let mut axes = [WindowAxis::Every; AXES];
    for (slot, (role, count)) in axes.iter_mut().zip(run.into_iter().zip(counts)) {
        *slot = axis(role, count);
    }
    let parts = parts(&windows[read.0 as usize], shape, axes);
    parts
        .iter()
        .any(|part| matches!(part, Part::Window { .. }))
        .then(|| axes.map(|axis| TensorRole::Window(*read, axis)))
}

/// By dimension: the part that is needed if these axes move the windows.
fn parts(windows: &ReadWindows, shape: &[u64], axes: [WindowAxis; AXES]) -> Vec<Part> {
    let moving = |index: IndexId| axes.contains(&WindowAxis::Index(index));
    let extent_of = |index: IndexId| windows.extents[index.0 as usize];
    let part = |(forms, extent): (&Vec<Quotient>, &u64)| {
        let mut parts = forms
            .iter()
            .map(|form| match around(form, extent_of, *extent, &moving) {
                Some(part) => part,
                None => Part::Whole,
            });
        let first = parts.next().unwrap_or(Part::Whole);
        parts.fold(first, |joint, part| {
            joint.with(&part).unwrap_or(Part::Whole)
        })
    };
    windows.dims.iter().zip(shape).map(part).collect()
}

/// The box of a tensor that each site needs or holds.
#[derive(Debug)]
pub struct SiteBoxes {
    /// Start and length along each dimension, one site after the other; all lengths are 0 where a site has none of it.
    ranges: Vec<(u64, u64)>,
    /// By dimension, of what is held: into how many pieces it is cut, and the length of the longest.
    cuts: Vec<(u64, u64)>,
}

impl SiteBoxes {
    /// Returns the boxes that sites need where a tensor is wanted in windows.
    pub fn needed(goods: TransferItem<'_>, counts: Counts, to: Roles) -> SiteBoxes {
        let boxes = Boxes::new(goods, counts, to);
        let none = || vec![(0, 0); goods.shape.len()];
        let ranges = sites(counts).flat_map(|site| boxes.at(site).unwrap_or_else(none));
        SiteBoxes {
            ranges: ranges.collect(),
            cuts: vec![],
        }
    }

    /// Returns the boxes that sites hold at a placement that is not partial.
    pub fn held(shape: &[u64], counts: Counts, from: Roles) -> SiteBoxes {
        let none = || vec![(0, 0); shape.len()];
        let ranges =
            sites(counts).flat_map(|site| held(shape, counts, from, site).unwrap_or_else(none));
        let dims = (0u32..).zip(shape);
        let cuts = dims.map(|(dim, extent)| {
            let pieces = super::transfer::pieces(counts, from, dim);
            (pieces, extent.div_ceil(pieces).max(1))
        });
        SiteBoxes {
            ranges: ranges.collect(),
            cuts: cuts.collect(),
        }
    }
}

/// Elements of the largest box that a site needs, as far from the edges of the tensor as there are sites there.
pub fn share(goods: TransferItem<'_>, counts: Counts, to: Roles) -> f64 {
    let boxes = Boxes::new(goods, counts, to);
    let longest = |index: IndexId| {
        let extent = boxes.windows.map_or(1, |w| w.extents[index.0 as usize]);
        let by = boxes.axes.map(|axis| axis == WindowAxis::Index(index));
        let (pieces, _) = numbered(counts, [0; AXES], by);
        extent.div_ceil(u64::from(pieces))
    };
    let lengths = boxes.parts.iter().zip(goods.shape);
    let lengths = lengths.map(|(part, extent)| match *part {
        Part::Whole => *extent,
        Part::Piece(index) => longest(index),
        Part::Window { index, .. } => {
            let longest = index.map_or(1, longest);
            part.window()
                .map_or(*extent, |window| window.most(longest).min(*extent))
        }
    });
    lengths.map(|length| length as f64).product()
}

/// The cost of taking a tensor from a placement to windows; `None` where there is none, that is from a partial placement.
pub fn convert(goods: TransferItem<'_>, counts: Counts, from: Roles, to: Roles) -> Option<Move> {
    if from.contains(&TensorRole::Partial) {
        return None;
    }
    let (held, needed) = (
        SiteBoxes::held(goods.shape, counts, from),
        SiteBoxes::needed(goods, counts, to),
    );
    Some(between(&held, &needed))
}

/// The cost of giving sites what they need, of a tensor of at least one dimension.
pub fn between(held: &SiteBoxes, needed: &SiteBoxes) -> Move {
    let mut cost = Move::default();
    let rank = held.cuts.len().max(1);
    let sites = held.ranges.chunks_exact(rank);
    for (own, wanted) in sites.zip(needed.ranges.chunks_exact(rank)) {
        let common = common(own, wanted);
        let lacks = volume(wanted) - common;
        if lacks <= 0.0 {
            continue;
        }
        cost.transfer += lacks;
        cost.words = cost.words.max(lacks);
        let peers = senders(&held.cuts, wanted) - f64::from(common > 0.0);
        cost.messages = cost.messages.max(peers.max(1.0));
    }
    cost
}

/// Returns what comes from other nodes in giving sites what they need: no site of their own node holds it.
pub fn far(held: &SiteBoxes, needed: &SiteBoxes, levels: &Levels) -> Far {
    let mut far = Far::default();
    let rank = held.cuts.len().max(1);
    let sites_of_node = levels.sites as usize * rank;
    let nodes = held.ranges.chunks(sites_of_node);
    for (there, wanted) in nodes.zip(needed.ranges.chunks(sites_of_node)) {
        let mut boxes: Vec<&[(u64, u64)]> = there.chunks_exact(rank).collect();
        boxes.sort_unstable();
        boxes.dedup();
        let mut of_node = 0.0;
        for wanted in wanted.chunks_exact(rank) {
            let near = boxes.iter().map(|held| common(held, wanted));
            let near: Vec<f64> = near.filter(|common| *common > 0.0).collect();
            let lacks = volume(wanted) - near.iter().sum::<f64>();
            if lacks <= 0.0 {
                continue;
            }
            of_node += lacks;
            far.words = far.words.max(lacks);
            let senders = senders(&held.cuts, wanted) - near.len() as f64;
            far.messages = far.messages.max(senders.max(1.0));
        }
        far.words_of_node = far.words_of_node.max(of_node);
    }
    far
}

/// Elements that two boxes have in common.
fn common(own: &[(u64, u64)], wanted: &[(u64, u64)]) -> f64 {
    let pairs = own.iter().zip(wanted).map(|((a, n), (b, m))| {
        let start = *a.max(b);
        (a + n).min(b + m).saturating_sub(start) as f64
    });
    pairs.product()
}

/// How many sites hold pieces that meet a box.
fn senders(cuts: &[(u64, u64)], wanted: &[(u64, u64)]) -> f64 {
    let dims = cuts.iter().zip(wanted);
    let pieces = dims.map(|((pieces, longest), (_, length))| match pieces {
        1 => 1.0,
        _ => (length.div_ceil(*longest) + 1).min(*pieces) as f64,
    });
    pieces.product()
}

/// The boxes that sites need.
struct Boxes<'a> {
    windows: Option<&'a ReadWindows>,
    shape: &'a [u64],
    parts: Vec<Part>,
    axes: [WindowAxis; AXES],
    counts: Counts,
}

impl<'a> Boxes<'a> {
    fn new(goods: TransferItem<'a>, counts: Counts, to: Roles) -> Boxes<'a> {
        let mut axes = [WindowAxis::Every; AXES];
        let mut windows = None;
        for (slot, role) in axes.iter_mut().zip(to) {
            if let TensorRole::Window(read, axis) = role {
                *slot = axis;
                windows = goods.windows.get(read.0 as usize);
            }
        }
        let parts = windows.map(|windows| parts(windows, goods.shape, axes));
        Boxes {
            windows,
            shape: goods.shape,
            parts: parts.unwrap_or_else(|| vec![Part::Whole; goods.shape.len()]),
            axes,
            counts,
        }
    }

    /// The box that a site needs: of each dimension start and length.
    fn at(&self, site: Counts) -> Option<Vec<(u64, u64)>> {
        let mut axes = self.axes.iter().zip(site);
        if axes.any(|(axis, at)| *axis == WindowAxis::First && at > 0) {
            return None;
        }
        let of_index = |index: IndexId| {
            let extent = self.windows.map_or(1, |w| w.extents[index.0 as usize]);
            let by = self.axes.map(|axis| axis == WindowAxis::Index(index));
            let (pieces, number) = numbered(self.counts, site, by);
            piece(extent, pieces, number)
        };
        let dims = self.parts.iter().zip(self.shape);
        let range = |(part, extent): (&Part, &u64)| match *part {
            Part::Whole => (0, *extent),
            Part::Piece(index) => of_index(index),
            Part::Window { index, .. } => {
                let piece = index.map_or((0, 0), of_index);
                part.window()
                    .map_or((0, *extent), |window| window.range(*extent, piece))
            }
        };
        Some(dims.map(range).collect())
    }
}

/// The box that a site holds at a placement.
fn held(shape: &[u64], counts: Counts, roles: Roles, site: Counts) -> Option<Vec<(u64, u64)>> {
    let mut axes = roles.iter().zip(site);
    if axes.any(|(role, at)| *role == TensorRole::First && at > 0) {
        return None;
    }
    let range = |(dim, extent): (u32, &u64)| {
        let by = roles.map(|role| role == TensorRole::Cut(dim));
        let (pieces, number) = numbered(counts, site, by);
        piece(*extent, pieces, number)
    };
    Some((0u32..).zip(shape).map(range).collect())
}

/// Into how many pieces these axes cut, and which one a site has.
fn numbered(counts: Counts, site: Counts, by: [bool; AXES]) -> (u32, u32) {
    let axes = counts.into_iter().zip(site).zip(by).filter(|(_, by)| *by);
    axes.fold((1, 0), |(pieces, number), ((count, at), _)| {
        (pieces * count, number * count + at)
    })
}

/// The coordinates of every site.
fn sites(counts: Counts) -> impl Iterator<Item = Counts> {
    let total: u32 = counts.iter().product();
    (0..total).map(move |mut number| {
        let mut site = [0; AXES];
        for (at, count) in site.iter_mut().zip(counts).rev() {
            *at = number % count;
            number /= count;
        }
        site
    })
}

fn volume(ranges: &[(u64, u64)]) -> f64 {
    ranges.iter().map(|(_, length)| *length as f64).product()
}
