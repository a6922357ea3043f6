//! Sums of products as matrix products.
//!
//! A sum whose body is a product of two factors (and numbers) becomes blocks of matrix products: indices of
//! both factors that are not summed are looped over, those of one are rows or columns. What would not gain
//! from it, or faults, is left to the strips. Must not know plans.
//!
//! ```text
//! [b, h, t, s | d]  a0[b, h, t, d] * a1[b, h, s, d] / sqrt(c)   b, h: loops   t: rows   s: columns   d: inner
//! ```

use crate::machine::Machine;
use crate::pack::{BLOCK, Evaluated, InPlace, Packed, in_place};
use crate::product::{Matrix, Tiling, multiply};
use crate::program::{Program, Request};
use crate::segment::Segment;
use crate::{Chunk, wide};
use ein_array::{Array, Data};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewest rows and columns of a block that a matrix product is worth.
const LEAST_SIDE: usize = 4;
/// Fewest multiplications.
const LEAST_WORK: usize = 4096;
/// Multiplications that are worth a block of their own.
const BLOCK_WORK: u64 = 1 << 27;
/// Blocks that are enough.
const BLOCKS: usize = 32;

/// The product, if the kernel is one that matrix products compute, and no point of it faults.
pub(crate) fn run(kernel: &Kernel, ranges: &[(u64, u64)], operands: &[Chunk<'_>]) -> Option<Array> {
    if kernel.reduction != Some(Reduction::Sum) || kernel.guard.is_some() {
        return None;
    }
    if ranges.iter().any(|(_, n)| *n == 0) || ranges.len() > 127 {
        return None;
    }
    match kernel.graph.dtype(kernel.root) {
        DType::F32 => typed::<f32>(kernel, ranges, operands),
        DType::F64 => typed::<f64>(kernel, ranges, operands),
        _ => None,
    }
}

/// The factors of the body: those with indices, and the product of those without.
struct Factors {
    graph: Graph,
    left: (NodeId, u128),
    right: (NodeId, u128),
    number: f64,
}

/// A side of the product.
enum Side<'a, T> {
    InPlace(InPlace<'a, T>),
    Evaluated(Evaluated<'a>),
}

fn typed<T: Packed>(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Array> {
    let ranges: Vec<(i64, i64)> = ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect();
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let rank = kernel.output_rank as usize;
    let factors = factors::<T>(kernel, operands, &ranges)?;
    let (left, right) = (factors.left.1, factors.right.1);
    let has = |mask: u128, i: usize| mask >> i & 1 == 1;

    // Rows: the longest run of neighbouring output indices that only the left factor has; columns likewise.
    let only = |mine: u128, other: u128| {
        let own = move |i: usize| has(mine, i) && !has(other, i);
        longest_run(&lengths[..rank], own)
    };
    let (rows, columns) = (only(left, right), only(right, left));
    for (i, n) in lengths.iter().enumerate() {
        let (l, r) = (has(left, i), has(right, i));
        // An output index that neither has would repeat the work, a summed one of one factor only as well.
        let fits = if i < rank { l || r } else { l && r };
        if !fits && *n > 1 {
            return None;
        }
    }
    let inner: Vec<usize> = (rank..lengths.len()).filter(|i| lengths[*i] > 1).collect();
    let total = |indices: &mut dyn Iterator<Item = usize>| -> usize {
        indices.map(|i| lengths[i]).product()
    };
    let (m, n) = (total(&mut rows.clone()), total(&mut columns.clone()));
    let k = total(&mut inner.iter().copied());
    if m < LEAST_SIDE || n < LEAST_SIDE || m.saturating_mul(n).saturating_mul(k) < LEAST_WORK {
        return None;
    }

    let (row_list, column_list): (Vec<usize>, Vec<usize>) =
        (rows.clone().collect(), columns.clone().collect());
    let stands = |node: NodeId, side: &[usize]| {
        in_place::<T>(&factors.graph, node, operands, &ranges)
            .filter(|place| place.merged(side, &lengths).is_some())
            .filter(|place| place.merged(&order_of(place, &inner), &lengths).is_some())
    };
    let mut a = stands(factors.left.0, &row_list);
    let mut b = stands(factors.right.0, &column_list);
    // Both sides count the summed indices in one order; if they stand in different ones, the smaller is packed.
    if let (Some(x), Some(y)) = (&a, &b) {
        let (p, q) = (order_of(x, &inner), order_of(y, &inner));
        if y.merged(&p, &lengths).is_none() && x.merged(&q, &lengths).is_none() {
            if m < n {
                a = None;
            } else {
                b = None;
            }
        } else if y.merged(&p, &lengths).is_none() {
            // The right side's order serves both.
            return finish(
                kernel,
                &factors,
                operands,
                &ranges,
                &lengths,
                (rows, columns),
                q,
                (a, b),
            );
        }
    }
    let order = match (&a, &b) {
        (Some(x), _) | (_, Some(x)) => order_of(x, &inner),
        _ => inner,
    };
    finish(
        kernel,
        &factors,
        operands,
        &ranges,
        &lengths,
        (rows, columns),
        order,
        (a, b),
    )
}

/// The order in which a factor's own strides fall.
fn order_of<T>(place: &InPlace<'_, T>, inner: &[usize]) -> Vec<usize> {
    let mut order = inner.to_vec();
    order.sort_by_key(|i| std::cmp::Reverse(place.steps[*i]));
    order
}

/// The longest run of neighbouring indices with a property; indices of length 1 do not matter.
fn longest_run(lengths: &[usize], own: impl Fn(usize) -> bool) -> Range<usize> {
    let (mut best, mut best_size) = (0..0, 0);
    let mut i = 0;
    while i < lengths.len() {
        let start = i;
        let mut size = 1usize;
        while i < lengths.len() && own(i) {
            size *= lengths[i];
            i += 1;
        }
        if i > start && size > best_size {
            (best, best_size) = (start..i, size);
        }
        i += usize::from(i == start);
    }
    best
}

/// Tiles of at most `most` points: whole inner indices, a part of one, one value of the outer ones.
fn tiles_of(indices: &[usize], lengths: &[usize], most: usize) -> Vec<usize> {
    let mut left = most.max(1);
    let mut tiles = vec![1; indices.len()];
    for (tile, index) in tiles.iter_mut().zip(indices).rev() {
        let n = lengths[*index];
        if n <= left {
            *tile = n;
            left /= n;
        } else {
            // Equal parts.
            *tile = n.div_ceil(n.div_ceil(left));
            break;
        }
    }
    tiles
}

#[allow(clippy::too_many_arguments)]
fn finish<T: Packed>(
    kernel: &Kernel,
    factors: &Factors,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
    lengths: &[usize],
    (rows, columns): (Range<usize>, Range<usize>),
    order: Vec<usize>,
    (a, b): (Option<InPlace<'_, T>>, Option<InPlace<'_, T>>),
) -> Option<Array> {
    let rank = kernel.output_rank as usize;
    let (row_list, column_list): (Vec<usize>, Vec<usize>) =
        (rows.clone().collect(), columns.clone().collect());
    let size = |indices: &[usize]| -> usize { indices.iter().map(|i| lengths[*i]).product() };
    let (m, n, k) = (size(&row_list), size(&column_list), size(&order));

    // Sizes of blocks: from the shape alone.
    let both_stand = a.is_some() && b.is_some();
    let inner_tile = if both_stand { k } else { k.min(512) };
    let inner_tiles = tiles_of(&order, lengths, inner_tile);
    let inner_size: usize = inner_tiles.iter().product();
    let others: usize = (0..rank)
        .filter(|i| !rows.contains(i) && !columns.contains(i))
        .map(|i| lengths[i])
        .product();
    let (mut mb, mut nb) = (m, n);
    if a.is_none() {
        mb = mb.min((BLOCK / inner_size).max(1));
    }
    if b.is_none() {
        nb = nb.min((BLOCK / inner_size).max(1));
    }
    let work = |mb: usize, nb: usize| mb as u64 * nb as u64 * k as u64;
    let count = |mb: usize, nb: usize| m.div_ceil(mb) * n.div_ceil(nb) * others;
    // A product in place is left whole: the gemm crate shares it out better than blocks would. Packed sides are cut.
    while !both_stand && count(mb, nb) < BLOCKS && work(mb, nb) > BLOCK_WORK {
        // Cutting along one side repeats the packing of the other.
        let cut_rows = match (a.is_some(), b.is_some()) {
            (false, true) => mb > 128,
            (true, false) => nb <= 128,
            _ => mb >= nb,
        };
        if cut_rows {
            mb = mb.div_ceil(2);
        } else {
            nb = nb.div_ceil(2);
        }
    }
    let shared = both_stand && others < BLOCKS;
    let mut tiles = vec![1; rank];
    for (list, most) in [(&row_list, mb), (&column_list, nb)] {
        for (i, tile) in list.iter().zip(tiles_of(list, lengths, most)) {
            tiles[*i] = tile;
        }
    }
    let tiling = Tiling {
        lengths: lengths[..rank].to_vec(),
        tiles: tiles.clone(),
        rows,
        columns,
    };

    // Usual numbers of each index in one packed block.
    let mut usual = vec![1; lengths.len()];
    usual[..rank].copy_from_slice(&tiles);
    for (i, tile) in order.iter().zip(&inner_tiles) {
        usual[*i] = *tile;
    }
    let side = |place: Option<_>, node: NodeId, own: &[usize], is_left: bool| match place {
        Some(place) => Side::InPlace(place),
        None => {
            let (r, c) = if is_left {
                (own, &order[..])
            } else {
                (&order[..], own)
            };
            let graph = &factors.graph;
            Side::Evaluated(Evaluated::new(graph, node, operands, ranges, &usual, r, c))
        }
    };
    let a: Side<'_, T> = side(a, factors.left.0, &row_list, true);
    let b: Side<'_, T> = side(b, factors.right.0, &column_list, false);

    let inner_blocks: usize = order
        .iter()
        .zip(&inner_tiles)
        .map(|(i, t)| lengths[*i].div_ceil(*t))
        .product();
    let faulty = AtomicBool::new(false);
    let mut result = vec![T::default(); lengths[..rank].iter().product()];
    multiply::<T, (Vec<T>, Vec<T>)>(
        &mut result,
        &tiling,
        T::from_f64(factors.number),
        shared,
        |block, (pa, pb), product| {
            for inner in 0..inner_blocks {
                if faulty.load(Ordering::Relaxed) {
                    return;
                }
                // The part of each index: the block's, then this tile of the summed ones.
                let mut from = vec![0usize; lengths.len()];
                let mut part = vec![1usize; lengths.len()];
                from[..rank].copy_from_slice(&block.start);
                part[..rank].copy_from_slice(&block.size);
                let mut number = inner;
                for (i, tile) in order.iter().zip(&inner_tiles).rev() {
                    let count = lengths[*i].div_ceil(*tile);
                    from[*i] = number % count * tile;
                    part[*i] = (*tile).min(lengths[*i] - from[*i]);
                    number /= count;
                }
                let terms: usize = order.iter().map(|i| part[*i]).product();
                let here: Vec<(i64, i64)> = (0..lengths.len())
                    .map(|i| (ranges[i].0 + from[i] as i64, part[i] as i64))
                    .collect();
                let (m, n) = (block.row_count(), block.column_count());
                let left = match &a {
                    Side::InPlace(place) => place.matrix(&from, &row_list, &order, lengths),
                    Side::Evaluated(side) => side.block(&here, (m, terms), pa),
                };
                let right = match &b {
                    Side::InPlace(place) => place.matrix(&from, &order, &column_list, lengths),
                    Side::Evaluated(side) => side.block(&here, (terms, n), pb),
                };
                match (left, right) {
                    (Some(left), Some(right)) => product(terms, left, right),
                    _ => faulty.store(true, Ordering::Relaxed),
                }
            }
        },
    );
    if faulty.into_inner() {
        return None;
    }
    Some(stored(kernel.output[0], lengths[..rank].to_vec(), result))
}

impl<T: Packed> InPlace<'_, T> {
    /// The matrix of these rows and columns whose first point lies `from` past the starts.
    fn matrix(
        &self,
        from: &[usize],
        rows: &[usize],
        columns: &[usize],
        lengths: &[usize],
    ) -> Option<Matrix<'_, T>> {
        Some(Matrix {
            data: self.data,
            offset: self.offset(from),
            row: self.merged(rows, lengths)?,
            column: self.merged(columns, lengths)?,
        })
    }
}

fn stored<T: Packed>(dtype: DType, shape: Vec<usize>, result: Vec<T>) -> Array {
    let data = match T::owned(result, dtype) {
        Ok(data) => data,
        Err(result) => {
            let mut data = Data::zeros(dtype, result.len());
            let mut segment = Segment::of(&mut data);
            for (at, x) in result.iter().enumerate() {
                segment.set_float(at, x.to_f64());
            }
            data
        }
    };
    Array::new(shape, data).expect("one element an output point")
}

/// Takes the body apart: a product of factors, some of them numbers.
fn factors<T: Packed>(
    kernel: &Kernel,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
) -> Option<Factors> {
    let depends = dependences(&kernel.graph);
    let (mut number, mut over, mut under) = (1.0, Vec::new(), Vec::new());
    // Nodes still to be taken apart, and whether they divide.
    let mut stack = vec![(kernel.root, false)];
    while let Some((id, divides)) = stack.pop() {
        let mask = depends[id.0 as usize];
        if mask == 0 {
            let value = value_of(kernel, operands, ranges, id)?;
            number = if divides {
                number / value
            } else {
                number * value
            };
            continue;
        }
        match kernel.graph.node(id) {
            Node::Apply(Function::Mul, a) => stack.extend([(a[1], divides), (a[0], divides)]),
            Node::Apply(Function::Div, a) => stack.extend([(a[1], !divides), (a[0], divides)]),
            Node::Apply(Function::Neg, a) => {
                number = -number;
                stack.push((a[0], divides));
            }
            _ if divides => under.push((id, mask)),
            _ => over.push((id, mask)),
        }
        if over.len() + under.len() + stack.len() > 16 {
            return None;
        }
    }
    // A number that is not an ordinary one could hide overflow or make it: leave that to the strips.
    if !number.is_normal() || !T::from_f64(number).to_f64().is_normal() || over.len() < 2 {
        return None;
    }
    let mut graph = kernel.graph.clone();
    let dtype = kernel.graph.dtype(kernel.root);
    let left = over.remove(largest(&over, 0));
    let mut sides = [left, over.remove(largest(&over, left.1))];
    for (list, function) in [(over, Function::Mul), (under, Function::Div)] {
        for (id, mask) in list {
            let side = sides.iter_mut().find(|(_, own)| mask & !own == 0)?;
            side.0 = graph.add(Node::Apply(function, vec![side.0, id]), dtype);
        }
    }
    let [left, right] = sides;
    // Rows of the output come before its columns, so that both orders of writing a product are the same one.
    let first = |(_, mask): (NodeId, u128), other: u128| (mask & !other).trailing_zeros();
    let (left, right) = if first(left, right.1) <= first(right, left.1) {
        (left, right)
    } else {
        (right, left)
    };
    Some(Factors {
        graph,
        left,
        right,
        number,
    })
}

/// The factor with the most indices beyond those of `besides`.
fn largest(list: &[(NodeId, u128)], besides: u128) -> usize {
    let mut best = 0;
    for (at, (_, mask)) in list.iter().enumerate() {
        let beyond = |mask: u128| ((mask & !besides).count_ones(), mask.count_ones());
        if beyond(*mask) > beyond(list[best].1) {
            best = at;
        }
    }
    best
}

/// For each node the indices that it depends on.
fn dependences(graph: &Graph) -> Vec<u128> {
    let mut depends: Vec<u128> = Vec::with_capacity(graph.len());
    for (_, node, _) in graph.iter() {
        let own = match node {
            Node::Index(IndexId(i)) => 1u128 << i,
            _ => 0,
        };
        let all = node
            .arguments()
            .fold(own, |mask, a| mask | depends[a.0 as usize]);
        depends.push(all);
    }
    depends
}

/// The value of a node without indices; `None` if it faults.
fn value_of(
    kernel: &Kernel,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
    id: NodeId,
) -> Option<f64> {
    let lengths = vec![1; ranges.len()];
    let program = Program::new(&Request {
        graph: &kernel.graph,
        operands,
        root: id,
        guard: None,
        reduction: None,
        output: &[],
        reduced: &[],
        ranges,
        lengths: &lengths,
        lanes: None,
    });
    let start = ranges.iter().map(|(start, _)| *start).collect();
    let mut machine = Machine::new(&program, start, false);
    wide::execute(&mut machine, 0);
    if machine.poison(program.root).is_some() {
        return None;
    }
    match program.value() {
        DType::F32 => Some(f64::from(machine.f32s(program.root)[0])),
        DType::F64 => Some(machine.f64s(program.root)[0]),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
