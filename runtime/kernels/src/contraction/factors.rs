//! A kernel's body as a product of two factors and a number.
//!
//! Must not know how factors are multiplied.
//!
//! ```text
//! a0[i, k] * a1[k, j] / sqrt(c)   ->   a0[i, k], a1[k, j], 1 / sqrt(c)
//! ```

use crate::Chunk;
use crate::leaves::leaves;
use crate::machine::Machine;
use crate::packed::Packed;
use crate::program::{Program, Request};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId};

/// The factors of the body, each with the indices that it depends on: those with indices, and the product of those without.
pub(super) struct Factors {
    pub graph: Graph,
    pub left: (NodeId, u128),
    pub right: (NodeId, u128),
    pub number: f64,
    /// Factors of whole rows of the result, and whether each divides.
    pub of_rows: Vec<(NodeId, bool)>,
}

/// Takes the body apart: a product of factors, some of them numbers. `by_rows`: whether factors that are the same in all terms of all
/// elements of a row may stay outside the sum.
pub(super) fn factors<T: Packed>(
    kernel: &Kernel,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
    by_rows: bool,
) -> Option<Factors> {
    let depends = dependences(&kernel.graph);
    let mask = |id: NodeId| depends[id.0 as usize];
    let leaves = leaves(&kernel.graph, kernel.root, |id| mask(id) == 0)?;
    let mut number = if leaves.negative { -1.0 } else { 1.0 };
    let (mut over, mut under) = (vec![], vec![]);
    for (id, divides) in leaves.factors {
        match (mask(id), divides) {
            (0, false) => number *= value_of(kernel, operands, ranges, id)?,
            (0, true) => number /= value_of(kernel, operands, ranges, id)?,
            (mask, false) => over.push((id, mask)),
            (mask, true) => under.push((id, mask)),
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
    let within_rows = !0 << kernel.output_rank.saturating_sub(1);
    let mut of_rows = vec![];
    for (list, function) in [(over, Function::Mul), (under, Function::Div)] {
        for (id, mask) in list {
            if by_rows && mask & within_rows == 0 {
                of_rows.push((id, function == Function::Div));
                continue;
            }
            let side = sides.iter_mut().find(|(_, own)| mask & !own == 0)?;
            side.0 = graph.add(Node::Apply(function, vec![side.0, id]), dtype);
        }
    }
    let [mut left, mut right] = sides;
    // The columns have the output's last index, so that both orders of writing a product are the same one.
    let output = (1u128 << kernel.output_rank) - 1;
    let many = |i: &usize| ranges[*i].1 > 1;
    let free = |(_, mask): (NodeId, u128), (_, other): (NodeId, u128)| {
        let own = mask & !other & output;
        (0..kernel.output_rank as usize)
            .filter(|i| own >> i & 1 == 1)
            .rfind(many)
    };
    if free(left, right) > free(right, left) {
        std::mem::swap(&mut left, &mut right);
    }
    Some(Factors {
        graph,
        left,
        right,
        number,
        of_rows,
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
        apart: false,
    });
    let start = ranges.iter().map(|(start, _)| *start).collect();
    let mut machine = Machine::new(&program, start, false);
    machine.execute(0);
    if machine.poison(program.root).is_some() {
        return None;
    }
    match program.value() {
        DType::F32 => Some(f64::from(machine.f32s(program.root)[0])),
        DType::F64 => Some(machine.f64s(program.root)[0]),
        _ => None,
    }
}
