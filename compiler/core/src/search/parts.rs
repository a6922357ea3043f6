//! Indices that are read in two parts, as two indices: what goes around every `k` values, and how often it has.
//!
//! A value whose place speaks of `i / k` and `i % k`, as the gradient of a pixel shuffle does, is at the place of two digits. With an index for each of
//! them, [`super::digits`] reads the place. Must not know places.
//!
//! ```text
//! [p: 28, m: 2 | i: 56] sum x[i] if i / 2 == p and i % 2 == m    ->    [p: 28, m: 2 | i: 28, i_2: 2] sum x[2 * i + i_2] if i == p and i_2 == m
//! ```

use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Scalar};

/// Returns the kernel with two indices for each of those that it reduces and reads in two parts; none if there is no such index.
pub(super) fn apart(kernel: &Kernel) -> Option<Kernel> {
    let rank = kernel.output_rank;
    let reduced = (rank..kernel.indices.len() as u32).map(IndexId);
    let split: Vec<(IndexId, u64)> = reduced
        .filter_map(|index| Some((index, divisor(kernel, index)?)))
        .collect();
    if split.is_empty() {
        return None;
    }
    let mut apart = kernel.clone();
    for (index, by) in split {
        apart = halved(&apart, index, by)?.canonical();
    }
    Some(apart)
}

/// The number by which an index is divided wherever it is divided, if that leaves nothing of its values.
pub(super) fn divisor(kernel: &Kernel, index: IndexId) -> Option<u64> {
    let graph = &kernel.graph;
    let mut by = None;
    for (_, node, _) in graph.iter() {
        let Node::Apply(Function::FloorDiv | Function::Rem, sides) = node else {
            continue;
        };
        if graph.as_index(sides[0]) != Some(index) {
            continue;
        }
        let Node::Constant(Scalar::Int(divisor)) = graph.node(sides[1]) else {
            return None;
        };
        let divisor = u64::try_from(*divisor).ok()?;
        if by.is_some_and(|by| by != divisor) {
            return None;
        }
        by = Some(divisor);
    }
    let extent = kernel.indices[index.0 as usize].extent;
    by.filter(|by| (2..extent).contains(by) && extent.is_multiple_of(*by))
}

/// The kernel with `by * i + rest` in the place of an index; `rest` is the last index.
pub(super) fn halved(kernel: &Kernel, index: IndexId, by: u64) -> Option<Kernel> {
    let rest = IndexId(kernel.indices.len() as u32);
    let weight = i64::try_from(by).ok()?;
    let mut graph = Graph::default();
    let mut halves: Option<[NodeId; 3]> = None;
    let moved = graph.append(&kernel.graph, |graph, _, node, dtype| {
        if node == Node::Index(index) {
            let [whole, rest] =
                [index, rest].map(|index| graph.add(Node::Index(index), DType::I64));
            let weight = graph.add(Node::Constant(Scalar::Int(weight)), DType::I64);
            let times = Node::Apply(Function::Mul, vec![weight, whole]);
            let times = graph.add(times, DType::I64);
            let sum = graph.add(Node::Apply(Function::Add, vec![times, rest]), DType::I64);
            halves = Some([sum, whole, rest]);
            return sum;
        }
        match (&node, halves) {
            (Node::Apply(Function::FloorDiv, sides), Some([sum, whole, _])) if sides[0] == sum => {
                whole
            }
            (Node::Apply(Function::Rem, sides), Some([sum, _, rest])) if sides[0] == sum => rest,
            _ => graph.add(node, dtype),
        }
    });
    let mut halved = Kernel {
        graph,
        root: moved[kernel.root.0 as usize],
        guard: kernel.guard.map(|guard| moved[guard.0 as usize]),
        ..kernel.clone()
    };
    let own = &kernel.indices[index.0 as usize];
    let taken = |name: &String| kernel.indices.iter().any(|index| index.name == *name);
    let name = (2..)
        .map(|number| format!("{}_{number}", own.name))
        .find(|name| !taken(name))?;
    halved.indices[index.0 as usize].extent = own.extent / by;
    halved.indices.push(Index { name, extent: by });
    Some(halved)
}
