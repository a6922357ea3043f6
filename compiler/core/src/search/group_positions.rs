//! The positions of the greatest and least values of groups, by scatters.
//!
//! Where data say which group a point is in, `argmax` of each group would look at every point for every group. The greatest value of each group is
//! a scatter, and so is the least position of those points of it that have this value. A group of no point has position 0, as all points are equal
//! to it. Must not know placements.
//!
//! ```text
//! y: i64[70] = [k: 70 | n: 900] argmax where(at[n] == k, x[n], -inf)
//! y.best: f32[70] = [k: 70 | n: 900] max x[n] if at[n] == k
//! y.position: i64[70] = [k: 70 | n: 900] min n if and(at[n] == k, or(x[n] == (y.best[at[n]] else 0.0), x[n] != x[n]))
//! y: i64[70] = [k: 70] where(y.best[k] == -inf, 0, y.position[k])
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, may_fault, neutral};
use ein_plan::schedule::guard::solved;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar};

/// Fewest places: points are looked at for fewer.
const LEAST: u64 = 8;

/// Returns the program in which extremes of groups are found by scatters.
pub fn scattered(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let best = best(statement.kernel)?;
        let position = position(&best)?;
        let chosen = chosen(statement.kernel, &best);
        let first = statement.add("best", canonical::statement(best, statement.operands));
        let position = canonical::statement(position, &statement.operands_and(first));
        let second = statement.add("position", position);
        Some(canonical::statement(chosen, &[first, second]))
    })
}

/// The scatter of the greatest values of the places whose positions a kernel gives.
fn best(kernel: &Kernel) -> Option<Kernel> {
    let reduction = match kernel.reduction? {
        Reduction::ArgMax => Reduction::Max,
        Reduction::ArgMin => Reduction::Min,
        _ => return None,
    };
    let rank = kernel.output_rank as usize;
    let points = kernel
        .indices
        .get(rank..)
        .filter(|reduced| reduced.len() == 1)?;
    if kernel.guard.is_some() || !kernel.finish || points[0].extent == 0 || may_fault(kernel) {
        return None;
    }
    let best = guarded(&Kernel {
        reduction: Some(reduction),
        output: vec![kernel.graph.dtype(kernel.root)],
        ..kernel.clone()
    })?;
    let places = best.scattered().into_iter();
    let places = places.map(|index| kernel.indices[index.0 as usize].extent);
    (places.fold(1, u64::saturating_mul) >= LEAST).then_some(best)
}

/// The scatter of the least position at which a place has its greatest value, which is read behind the other operands.
fn position(best: &Kernel) -> Option<Kernel> {
    let mut position = best.clone();
    let dtype = best.graph.dtype(best.root);
    let solved = solved(best, &best.scattered());
    let operand = best.operands.len() as u32;
    let output = &best.indices[..best.output_rank as usize];
    position.operands.push(Operand {
        columns: vec![dtype],
        shape: output.iter().map(|index| index.extent).collect(),
    });
    let graph = &mut position.graph;
    let positions = (0..best.output_rank).map(|i| {
        let found = solved.places.iter().find(|(at, _)| *at == i as usize);
        found.map_or_else(
            || graph.add(Node::Index(IndexId(i)), DType::I64),
            |(_, place)| *place,
        )
    });
    let positions: Vec<NodeId> = positions.collect();
    // Outside is no place of the result, so whatever is read there is of no point. The values are floats: a choice between integers is no guard.
    let outside = graph.add(Node::Constant(Scalar::Float(0.0)), dtype);
    let greatest = Node::Read {
        operand,
        column: 0,
        positions,
        otherwise: Some(outside),
    };
    let greatest = graph.add(greatest, dtype);
    let mut compare = |function, a, b| graph.add(Node::Apply(function, vec![a, b]), DType::Bool);
    let is_it = compare(Function::Eq, best.root, greatest);
    // The greatest value is NaN if one is.
    let is_nan = compare(Function::Ne, best.root, best.root);
    let is_it = compare(Function::Or, is_it, is_nan);
    position.root = graph.add(Node::Index(IndexId(best.output_rank)), DType::I64);
    position.reduction = Some(Reduction::Min);
    position.output = vec![DType::I64];
    position.restrict(is_it);
    (position.scattered() == best.scattered()).then_some(position)
}

/// The kernel of the positions, of the greatest values and the positions where there are some.
fn chosen(kernel: &Kernel, best: &Kernel) -> Kernel {
    let mut chosen = Kernel {
        reduction: None,
        guard: None,
        graph: Graph::default(),
        operands: vec![],
        ..kernel.clone()
    };
    let rank = kernel.output_rank as usize;
    let all: Vec<usize> = (0..rank).collect();
    let dtype = best.graph.dtype(best.root);
    let Kernel {
        graph, operands, ..
    } = &mut chosen;
    let greatest = element((&mut *graph, &mut *operands), kernel, &all, dtype);
    let position = element((&mut *graph, &mut *operands), kernel, &all, DType::I64);
    let nothing = best
        .reduction
        .and_then(|reduction| neutral(reduction, dtype));
    let nothing = nothing.expect("extremes have a value over nothing");
    let nothing = graph.add(Node::Constant(nothing), dtype);
    let zero = graph.add(Node::Constant(Scalar::Int(0)), DType::I64);
    let is_empty = Node::Apply(Function::Eq, vec![greatest, nothing]);
    let is_empty = graph.add(is_empty, DType::Bool);
    let choice = Node::Apply(Function::Select, vec![is_empty, zero, position]);
    chosen.root = graph.add(choice, DType::I64);
    chosen.indices.truncate(rank);
    chosen
}
