//! Bands: a reduction over the points of an index that lie near another one, as a reduction over a window.
//!
//! A condition such as `i - 2 <= j and j <= i`, or `abs(i - j) <= 2`, leaves a few values of `j` at each `i`, but the loop goes over all. Their
//! number is known, so that a window counts them: `j = i - 2 + j'`. What is read outside then is left out. Rows of a tensor that the program computes stay
//! as they are: a sweep computes the columns of a row that a mask chooses. Must not know placements.
//!
//! ```text
//! r: f64[9] = [i: 9 | j: 9] sum where(and(i - 2 <= j, j <= i), x[j], 0.0)   ->   r: f64[9] = [i: 9 | j: 3] sum x[i + j - 2] else 0.0
//! ```

use crate::einsum::{Definition, Program, TensorId, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{may_fault, neutral, restrict_to, with_value};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::schedule::mask::Mask;
use ein_plan::{Affine, IndexId, Kernel, Node, NodeId};

/// How many times as many values an index has as the window that takes its place, at least.
const NARROWER: u64 = 2;

/// Returns the program in which reductions over bands are reductions over windows.
pub fn windowed(program: &Program) -> Program {
    let mut result = program.clone();
    for tensor in &mut result.tensors {
        let Definition::Statement { kernel, operands } = &mut tensor.definition else {
            continue;
        };
        let is_made = |operand: TensorId| {
            let definition = &program.tensors[operand.0 as usize].definition;
            matches!(definition, Definition::Statement { .. })
        };
        let made: Vec<bool> = operands.iter().map(|operand| is_made(*operand)).collect();
        let first = Band::of(kernel, &made).map(Band::window);
        let windows =
            std::iter::successors(first, |window| Band::of(window, &made).map(Band::window));
        if let Some(window) = windows.last() {
            (*kernel, *operands) = canonical::statement(window, operands);
        }
    }
    result
}

/// A reduction over the values of an index that lie from one affine form of others on.
struct Band {
    /// The reduction, with its other conditions as its guard.
    kernel: Kernel,
    index: IndexId,
    /// The first value.
    first: Affine,
    /// The number of values.
    width: u64,
}

impl Band {
    /// A band of a kernel; `made`: which of its operands the program computes.
    fn of(kernel: &Kernel, made: &[bool]) -> Option<Band> {
        let plain = kernel.finish && kernel.library().is_none() && kernel.scattered().is_empty();
        if !plain || kernel.reduction?.is_arg() || kernel.indices.len() >= 128 {
            return None;
        }
        let kernel = guarded(kernel)?;
        let conditions = conjuncts(&kernel.graph, kernel.guard?);
        if may_fault(&kernel) {
            return None;
        }
        let passed = kernel.passed_over();
        let reduced = kernel.output_rank..kernel.indices.len() as u32;
        let mut reduced = reduced.map(IndexId).filter(|i| !passed.contains(i));
        reduced.find_map(|index| {
            let masks = conditions.iter();
            let masks: Vec<Mask> = masks
                .map(|id| Mask::of_condition(&kernel, *id, index).unwrap_or_default())
                .collect();
            let (first, width) = bounds(&masks)?;
            let extent = kernel.indices[index.0 as usize].extent;
            let fits = width > 0 && width.saturating_mul(NARROWER) <= extent;
            let moves = first
                .terms
                .iter()
                .map(|(other, _)| *other)
                .collect::<Vec<_>>();
            if !fits || moves.is_empty() || reads_rows(&kernel, index, &moves, made) {
                return None;
            }
            let mut band = kernel.clone();
            band.guard = None;
            for (condition, mask) in conditions.iter().zip(&masks) {
                let mut all = mask.from.iter().chain(&mask.below).peekable();
                let is_bound = all.peek().is_some() && all.all(|form| form.terms == first.terms);
                if !is_bound {
                    band.restrict(*condition);
                }
            }
            Some(Band {
                kernel: band,
                index,
                first,
                width,
            })
        })
    }

    /// The reduction over the window.
    fn window(self) -> Kernel {
        let Band {
            mut kernel,
            index,
            mut first,
            width,
        } = self;
        let is_alone = is_alone(&kernel, index);
        if is_alone {
            leave_out(&mut kernel);
        }
        let extent = std::mem::replace(&mut kernel.indices[index.0 as usize].extent, width);
        first.terms.push((index, 1));
        first.terms.sort_unstable();
        let place = kernel.graph.add_affine(&first);
        let (graph, kept, moved) = with_value(&kernel.graph, index, place);
        kernel.root = moved[kernel.root.0 as usize];
        kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
        kernel.graph = graph;
        if !is_alone {
            let of = |index: IndexId| kernel.indices[index.0 as usize].extent;
            let (low, high) = first.reach(of, None).unwrap_or((i64::MIN, i64::MAX));
            let extent = extent as i64;
            let ends = [low < 0, high >= extent];
            restrict_to(&mut kernel, kept[place.0 as usize], extent, ends);
        }
        kernel
    }
}

/// The first value of a band and how many values it has, if some bounds from below and from above differ by a number.
fn bounds(masks: &[Mask]) -> Option<(Affine, u64)> {
    let below = || masks.iter().flat_map(|mask| &mask.below);
    let from = masks.iter().flat_map(|mask| &mask.from);
    let pairs = from.flat_map(|from| {
        let alike = below().filter(move |below| below.terms == from.terms);
        let width = |below: &Affine| below.constant.checked_sub(from.constant);
        alike.filter_map(width).map(move |width| (from, width))
    });
    let (first, width) = pairs.min_by_key(|(_, width)| *width)?;
    Some((first.clone(), u64::try_from(width).ok()?))
}

/// Returns true if the reduction is over elements at one place each, which give it nothing just where the index is outside of its range.
fn is_alone(kernel: &Kernel, index: IndexId) -> bool {
    let graph = &kernel.graph;
    let Node::Read {
        operand,
        positions,
        otherwise,
        ..
    } = graph.node(kernel.root)
    else {
        return false;
    };
    let reduction = kernel.reduction;
    let nothing = reduction.and_then(|of| neutral(of, graph.dtype(kernel.root)));
    let leaves_out = match otherwise {
        None => nothing.is_some(),
        Some(other) => {
            nothing.is_some_and(|nothing| *graph.node(*other) == Node::Constant(nothing))
        }
    };
    let own = |id: &NodeId| graph.as_index(*id);
    let shape = &kernel.operands[*operand as usize].shape;
    let mut inside = positions.iter().zip(shape).map(|(position, extent)| {
        let whole = |own: IndexId| kernel.indices[own.0 as usize].extent == *extent;
        own(position).map_or(otherwise.is_some(), |own| {
            whole(own) || own != index && otherwise.is_some()
        })
    });
    let once = positions.iter().filter(|p| own(p) == Some(index)).count() == 1;
    let depends = graph.dependencies();
    let free = |id: NodeId| depends[id.0 as usize] >> index.0 & 1 == 0;
    let others = positions.iter().filter(|p| own(p) != Some(index));
    once && leaves_out
        && others.copied().all(free)
        && kernel.guard.is_none_or(free)
        && inside.all(|inside| inside)
}

/// Has the element that is reduced give nothing outside of its operand.
fn leave_out(kernel: &mut Kernel) {
    let dtype = kernel.graph.dtype(kernel.root);
    let nothing = kernel.reduction.and_then(|of| neutral(of, dtype));
    let mut read = kernel.graph.node(kernel.root).clone();
    if let (Node::Read { otherwise, .. }, Some(nothing)) = (&mut read, nothing) {
        *otherwise = Some(kernel.graph.add(Node::Constant(nothing), dtype));
    }
    kernel.root = kernel.graph.add(read, dtype);
}

/// Returns true if a tensor that the program computes is read in rows: at the index beside one that the band moves with.
fn reads_rows(kernel: &Kernel, index: IndexId, moves: &[IndexId], made: &[bool]) -> bool {
    let graph = &kernel.graph;
    let mut reads = graph.reads();
    reads.any(|(operand, positions)| {
        let has = |index: IndexId| positions.iter().any(|p| graph.as_index(*p) == Some(index));
        made[operand as usize] && has(index) && moves.iter().any(|other| has(*other))
    })
}
