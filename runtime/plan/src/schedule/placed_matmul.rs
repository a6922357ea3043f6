//! Sums of products in which data say where a factor is read, or where a term is added, at fewer places than there are points: the layers of a
//! mixture of experts, and their gradients.
//!
//! The points of one place make one product of matrices. Must not know how points are told apart, nor how matrices are multiplied.
//!
//! ```text
//! [n: 2048, f: 512 | d: 256] sum a0[n, d] * a1[a2[n], d, f]               gathered_matmul; of one place, a3 the points and a4 the place:
//! [n: 2048, f: 512 | d: 256] sum a0[a3[n], d] * a1[a4[], d, f]
//! [e: 8, d: 256, f: 512 | n: 2048] sum a0[n, d] * a1[n, f] if a2[n] == e   scattered_matmul; of one place:
//! [d: 256, f: 512 | n: 2048] sum a0[a3[n], d] * a1[a3[n], f]
//! ```

use super::factors::factors;
use super::facts::{Facts, MOST_INDICES};
use super::guard;
use super::leaves::{leaves, value};
use super::matmul::LEAST_SIDE;
use super::reason::Reason;
use crate::{DType, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction};

/// Most points whose product is computed at once.
pub const ROWS: usize = 1024;
/// Fewest points of a place, on average.
const LEAST_POINTS: usize = 2;
/// Fewest multiplications of a place, on average, where a matrix is read: fewer take less time than it takes to begin a product.
const LEAST_GATHERED: usize = 1 << 17;
/// Fewest multiplications of a place, on average, where a matrix is added, which takes longer by itself.
const LEAST_SCATTERED: usize = 1 << 15;

/// A kernel as products of matrices, one for each place.
#[derive(Clone, Debug)]
pub struct PlacedMatmul {
    /// The indices that tell points apart. Of the output, they are the first ones.
    pub points: Vec<IndexId>,
    /// The positions that say the place of a point, each a kernel over the points, and the extent that it is below.
    pub positions: Vec<(Kernel, u64)>,
    /// True if the positions say where a term is added: at the first indices of the output. Otherwise they say where a factor is read.
    pub scatters: bool,
    /// The product of the points of one place, which its first index counts, or, where it scatters, its first reduced one. Behind the operands of
    /// the kernel it has, for each index of the points, its value at each of them, and for each position, its value.
    pub product: Kernel,
}

/// The places of a kernel.
pub(super) struct Places {
    /// The indices that tell points apart, as a mask.
    points: u128,
    /// The positions that say the place of a point, each with the extent of its dimension.
    positions: Vec<(NodeId, u64)>,
    scatters: bool,
    /// The indices of both factors.
    factors: [u128; 2],
}

impl Places {
    /// How many of the first indices of the output the positions give a value.
    fn added(&self) -> usize {
        match self.scatters {
            true => self.positions.len(),
            false => 0,
        }
    }

    /// The sizes of the products, by the lengths of the indices.
    fn counts(&self, lengths: &[usize]) -> Counts {
        let count = |mask: u128| {
            let own = (0..lengths.len()).filter(|i| mask >> i & 1 == 1);
            own.fold(1, |n: usize, i| n.saturating_mul(lengths[i]))
        };
        let [left, right] = self.factors.map(|mask| mask & !self.points);
        let extents = self.positions.iter().map(|(_, extent)| *extent as usize);
        Counts {
            points: count(self.points),
            places: extents.fold(1, usize::saturating_mul),
            side: count(left & !right).min(count(right & !left)),
            each: count(left | right),
        }
    }
}

struct Counts {
    points: usize,
    places: usize,
    /// Values of the indices, besides points, that one factor alone has: of the factor that has fewer.
    side: usize,
    /// Multiplications of a point.
    each: usize,
}

/// Returns the products that a kernel consists of; `None` if it does not.
pub fn placed_matmul(kernel: &Kernel) -> Option<PlacedMatmul> {
    let places = gathered(kernel).or_else(|| scattered(kernel))?;
    let all = (0..kernel.indices.len() as u32).map(IndexId);
    let points: Vec<IndexId> = all.filter(|i| places.points >> i.0 & 1 == 1).collect();
    let of_position =
        |(position, extent): &(NodeId, u64)| (kernel.of_points(*position, &points), *extent);
    Some(PlacedMatmul {
        positions: places.positions.iter().map(of_position).collect(),
        product: product(kernel, &places, &points),
        scatters: places.scatters,
        points,
    })
}

fn product(kernel: &Kernel, places: &Places, points: &[IndexId]) -> Kernel {
    let extents = points.iter().map(|i| kernel.indices[i.0 as usize].extent);
    let rows = Index {
        name: kernel.indices[points[0].0 as usize].name.clone(),
        extent: extents.fold(1, u64::saturating_mul),
    };
    let rank = kernel.output_rank as usize;
    let stays = |i: &usize| places.points >> i & 1 == 0;
    let outputs: Vec<usize> = (places.added()..rank).filter(stays).collect();
    let inner: Vec<usize> = (rank..kernel.indices.len()).filter(stays).collect();
    // None: the points.
    let (mut left, mut right): (Vec<Option<usize>>, Vec<Option<usize>>) = (
        outputs.into_iter().map(Some).collect(),
        inner.into_iter().map(Some).collect(),
    );
    let with_points = if places.scatters {
        &mut right
    } else {
        &mut left
    };
    with_points.insert(0, None);
    let order: Vec<Option<usize>> = [&left[..], &right].concat();
    let place = |index: Option<usize>| {
        let found = order.iter().position(|own| *own == index);
        Node::Index(IndexId(found.unwrap_or(0) as u32))
    };

    let mut product = Kernel {
        indices: (order.iter())
            .map(|index| index.map_or_else(|| rows.clone(), |i| kernel.indices[i].clone()))
            .collect(),
        output_rank: left.len() as u32,
        guard: None,
        output: vec![kernel.graph.dtype(kernel.root)],
        ..kernel.clone()
    };
    let first = product.operands.len();
    let of_points = points.iter().map(|_| (DType::I64, vec![rows.extent]));
    let of_place = places.positions.iter();
    let of_place = of_place.map(|(id, _)| (kernel.graph.dtype(*id), vec![]));
    let more = of_points.chain(of_place).map(|(dtype, shape)| Operand {
        columns: vec![dtype],
        shape,
    });
    product.operands.extend(more);
    let read = |operand: usize, positions: Vec<NodeId>| Node::Read {
        operand: operand as u32,
        column: 0,
        positions,
        otherwise: None,
    };
    product
        .rewritten(|graph, id, node, dtype| {
            let mut positions = places.positions.iter();
            if let Some(number) = positions.position(|(position, _)| *position == id) {
                return graph.add(read(first + points.len() + number, vec![]), dtype);
            }
            let node = match node {
                Node::Index(index) => match points.iter().position(|point| *point == index) {
                    Some(number) => {
                        let row = graph.add(place(None), DType::I64);
                        read(first + number, vec![row])
                    }
                    None => place(Some(index.0 as usize)),
                },
                node => node,
            };
            graph.add(node, dtype)
        })
        .canonical()
}

/// Returns whether a kernel is a sum of floats, and its output the sum.
fn sums_floats(kernel: &Kernel) -> bool {
    let dtype = kernel.graph.dtype(kernel.root);
    kernel.reduction == Some(Reduction::Sum)
        && matches!(dtype, DType::F32 | DType::F64)
        && kernel.output == [dtype]
        && kernel.indices.len() <= MOST_INDICES
}

/// The places at which a factor is read, if it is a matrix at each of them and the other one has rows for points.
pub(super) fn gathered(kernel: &Kernel) -> Option<Places> {
    if !sums_floats(kernel) || kernel.guard.is_some() {
        return None;
    }
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let mask = |id: NodeId| depends[id.0 as usize];
    let found = leaves(graph, kernel.root, |id| mask(id) == 0)?.factors;
    let outputs = !(!0u128 << kernel.output_rank);
    let reduced = !(!0u128 << kernel.indices.len()) & !outputs;
    found
        .iter()
        .enumerate()
        .find_map(|(number, (id, divides))| {
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } = graph.node(value(graph, Some(*id).filter(|_| !divides)?))
            else {
                return None;
            };
            let shape = &kernel.operands[*operand as usize].shape;
            let all = positions.iter().copied().zip(shape.iter().copied());
            let (told, others): (Vec<_>, Vec<_>) =
                all.partition(|(position, _)| graph.as_affine(*position).is_none());
            let of = |list: &[(NodeId, u64)]| list.iter().fold(0, |all, (id, _)| all | mask(*id));
            let (points, matrix) = (of(&told), of(&others));
            let besides = found.iter().enumerate().filter(|(at, _)| *at != number);
            let besides = besides.fold(0, |all, (_, (id, _))| all | mask(*id));
            let rows = points & outputs;
            let is_first = rows != 0 && rows == !(!0u128 << rows.count_ones());
            let columns = outputs & !rows;
            let fits = points & matrix == 0
                && matrix & columns == columns
                && besides & columns == 0
                && columns != 0
                && (points | matrix) & besides & reduced == reduced
                && reduced & !points != 0;
            (is_first && fits).then_some(Places {
                points,
                positions: told,
                scatters: false,
                factors: [matrix, besides],
            })
        })
}

/// The places to which terms are added, if these are products of a row and a column of each point.
pub(super) fn scattered(kernel: &Kernel) -> Option<Places> {
    if !sums_floats(kernel) || kernel.guard.is_none() {
        return None;
    }
    let mut indices = kernel.scattered();
    indices.sort();
    let solved = guard::solved(kernel, &indices);
    let is_first = indices.iter().enumerate().all(|(at, i)| at == i.0 as usize);
    if indices.is_empty() || !is_first || !solved.rest.is_empty() {
        return None;
    }
    let found = factors(
        &Kernel {
            guard: None,
            ..kernel.clone()
        },
        false,
    )?;
    let depends = kernel.graph.dependencies();
    let places = solved.places.iter().map(|(index, place)| {
        let index = &kernel.indices[*index];
        (*place, index.extent)
    });
    let positions: Vec<(NodeId, u64)> = places.collect();
    let masks = positions.iter().map(|(place, _)| depends[place.0 as usize]);
    let points = masks.fold(0, |all, mask| all | mask);
    let outputs = !(!0u128 << kernel.output_rank);
    let added = !(!0u128 << indices.len());
    let (left, right) = (found.left.1, found.right.1);
    let fits = positions.len() == indices.len()
        && points != 0
        && points & outputs == 0
        && (left | right) & added == 0
        && left & right & outputs == 0
        && (left | right | added) & outputs == outputs
        && points & !(left | right) == 0;
    fits.then_some(Places {
        points,
        positions,
        scatters: true,
        factors: [left, right],
    })
}

/// Nothing but that the loops fit, and why they are not worth it, if they are not.
pub(super) fn of_facts(
    facts: &Facts<'_>,
    places: Option<Places>,
) -> Result<((), Option<Reason>), Reason> {
    if facts.is_empty() {
        return Err(Reason::of("there is no point"));
    }
    let places = places.ok_or(Reason::of(
        "data say neither where a matrix is read nor where one is added",
    ))?;
    Ok(((), few(&places, &facts.lengths)))
}

/// Why products of points are not worth it, if they are not.
fn few(places: &Places, lengths: &[usize]) -> Option<Reason> {
    let counts = places.counts(lengths);
    let points = counts.points / counts.places.max(1);
    let work = points.saturating_mul(counts.each);
    let least = match places.scatters {
        true => LEAST_SCATTERED,
        false => LEAST_GATHERED,
    };
    if points < LEAST_POINTS {
        Some(Reason::few("points of a place", points, LEAST_POINTS))
    } else if places.scatters && counts.side < LEAST_SIDE {
        Some(Reason::few("rows or columns", counts.side, LEAST_SIDE))
    } else if work < least {
        Some(Reason::few("multiplications of a place", work, least))
    } else {
        None
    }
}

/// The memory that the products work in, in bytes: by point, its positions, its place and itself among the points of that; the factors of the
/// points that are multiplied at once, and their product.
pub(crate) fn working_space(kernel: &Kernel, lengths: &[usize]) -> Option<u64> {
    let places = gathered(kernel).or_else(|| scattered(kernel))?;
    let counts = places.counts(lengths);
    let rows = counts.points.min(ROWS) as u64;
    let elements = |mask: u128| {
        let own = (0..lengths.len()).filter(|i| mask & !places.points & 1 << i != 0);
        let own = own.fold(1, |n: u64, i| n.saturating_mul(lengths[i] as u64));
        let of_points = mask & places.points != 0;
        own.saturating_mul(if of_points { rows } else { 1 })
    };
    let result = !(!0u128 << kernel.output_rank) & (!0u128 << places.added());
    let all = [places.factors[0], places.factors[1], result];
    let elements = all.into_iter().map(elements).fold(0, u64::saturating_add);
    let numbers = (counts.points as u64).saturating_mul(3 + places.positions.len() as u64);
    let size = kernel.graph.dtype(kernel.root).size() as u64;
    let of_rows = rows * places.points.count_ones() as u64;
    let numbers = numbers.saturating_add(of_rows).saturating_mul(8);
    Some(elements.saturating_mul(size).saturating_add(numbers))
}
