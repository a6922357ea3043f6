//! The arithmetic of steps, from kernels and types alone.
//!
//! A function counts as its row in the table of functions says, once for each round of the loops around the innermost index that its value
//! depends on: a row's scale is computed once a row. A factor of a product of matrices is computed once for each of its values, as it is
//! copied. Positions of reads count nothing. An index that the loops pass over
//! ([`Kernel::passed_over`]) counts as one value. Must not know what arithmetic costs.
//!
//! ```text
//! C[i,j] = sum_k A[i,k] B[k,j] of 100 x 100 x 100, i cut over two sites:   1000000 1000000
//! [v: 1000 | n: 50] sum a0[n] if a1[n] == v                                50
//! ```

use crate::amounts::Amounts;
use crate::function::Function;
use crate::kernel::{IndexId, Kernel, Node, NodeId};
use crate::mesh::Mesh;
use crate::plan::{Fold, Operation, Plan, Range, Step};
use crate::relation::{AxisRole, Placement, RelationType, piece};
use std::collections::BTreeMap;

/// Floating-point operations of a kernel at one point that its loops look at.
pub fn flops_per_point(kernel: &Kernel) -> u64 {
    if let Some(library) = kernel.library() {
        let extents = kernel.indices.iter().map(|index| index.extent as f64);
        let points = extents.product::<f64>().max(1.0);
        return (library.flops(kernel) / points).ceil() as u64;
    }
    by_indices(kernel).values().sum()
}

/// By set of indices, a bit each: the operations that are done once for all values of these and of no others.
fn by_indices(kernel: &Kernel) -> BTreeMap<u128, u64> {
    let all = u128::MAX;
    let depths = match kernel.is_product() {
        true => kernel.graph.dependencies(),
        false => loops_around(kernel),
    };
    let mut operations = BTreeMap::new();
    let mut add = |indices: u128, flops: u64| *operations.entry(indices).or_insert(0) += flops;
    for ((id, node, _), counted) in kernel.graph.iter().zip(evaluated(kernel)) {
        if let (Node::Apply(function, _), true) = (node, counted) {
            add(depths[id.0 as usize], Function::flops(*function));
        }
    }
    if kernel.reduction.is_some() {
        add(all, 1);
    }
    operations
}

/// By node: the indices whose loops its value is computed in, a bit each, the first ones up to the last that it depends on.
fn loops_around(kernel: &Kernel) -> Vec<u128> {
    let depends = kernel.graph.dependencies().into_iter();
    let around = depends.map(|indices| match indices {
        0 => 0,
        indices => u128::MAX >> indices.leading_zeros(),
    });
    around.collect()
}

/// By node: whether its value is computed at a point. A condition that gives an index a value is not, but the value is; neither is what
/// only says where something is read.
fn evaluated(kernel: &Kernel) -> Vec<bool> {
    let conjuncts = |id| crate::schedule::guard::conjuncts(&kernel.graph, id);
    let conditions = kernel.evaluated_conditions();
    let passes = !kernel.passed_over().is_empty();
    let mut counted = vec![false; kernel.graph.len()];
    let mut count = |id: NodeId| counted[id.0 as usize] = true;
    count(kernel.root);
    for condition in kernel.guard.map(conjuncts).unwrap_or_default() {
        match !passes || conditions.contains(&condition) {
            true => count(condition),
            false => kernel
                .graph
                .node(condition)
                .arguments()
                .for_each(&mut count),
        }
    }
    for at in (0..counted.len()).rev() {
        if !counted[at] {
            continue;
        }
        let needed: Vec<NodeId> = match kernel.graph.node(NodeId(at as u32)) {
            Node::Read { otherwise, .. } => otherwise.iter().copied().collect(),
            node => node.arguments().collect(),
        };
        needed
            .into_iter()
            .for_each(|argument| counted[argument.0 as usize] = true);
    }
    counted
}

/// By site of the mesh: floating-point operations of a join.
pub fn flops(
    kernel: &Kernel,
    ranges: &[Range],
    fold: Option<&Fold>,
    kind: &RelationType,
    mesh: &Mesh,
) -> Vec<u128> {
    // What is computed is the join's tuples, where the result's tuples are that they belong to.
    let keys = fold.map_or(&kind.keys, |fold| &fold.keys);
    let role = |role: &AxisRole| match (role, fold) {
        (AxisRole::Key(key), Some(fold)) => AxisRole::Key(fold.keep[*key as usize]),
        _ => *role,
    };
    let placement = Placement {
        roles: kind.placement.roles.iter().map(role).collect(),
    };
    // What is done at the points of some indices, and once for all values of the others in a tuple.
    let at_points = |per_point: u128, counts: &dyn Fn(usize) -> bool| {
        let indices = || {
            let indices = kernel.indices.iter().zip(ranges).enumerate();
            indices
                .filter(|(at, _)| counts(*at))
                .map(|(_, index)| index)
        };
        let whole = indices().filter(|(_, range)| **range == Range::Whole);
        let each = whole.fold(per_point, |n, (index, _)| {
            n.saturating_mul(index.extent.into())
        });
        let points = Amounts::new(keys, mesh, each, |key, coordinate| {
            let cut = indices().filter(|(_, range)| **range == Range::Key(key));
            cut.fold(1, |n: u128, (index, _)| {
                let (_, length) = piece(index.extent, keys[key as usize].pieces, coordinate);
                n.saturating_mul(length.into())
            })
        });
        points.at_sites(&[&placement])
    };
    let Some(library) = kernel.library() else {
        // A fixed index has at most one value at each site; the values that a scatter solves for are taken to be spread evenly.
        let fixed: Vec<IndexId> = kernel.fixed().into_iter().map(|(index, _)| index).collect();
        let mut total = vec![0u128; mesh.sites() as usize];
        for (indices, operations) in by_indices(kernel) {
            let points = at_points(u128::from(operations), &|at| {
                let within = indices >> at.min(127) & 1 == 1;
                within && fixed.iter().all(|index| index.0 as usize != at)
            });
            for (total, points) in total.iter_mut().zip(points) {
                *total = total.saturating_add(points);
            }
        }
        let spread = kernel.spread();
        return total.into_iter().map(|n| n.div_ceil(spread)).collect();
    };
    // Every tuple has its matrices factored, however few of the calls are made there.
    let (matrix, call) = library.flops_each(kernel);
    let is_in = |list: &[IndexId], at: usize| list.iter().any(|index| index.0 as usize == at);
    let factored = library.factored();
    let matrices = at_points(matrix as u128, &|at| is_in(&factored, at));
    let calls = at_points(call as u128, &|at| is_in(&library.batch, at));
    let sum = matrices.iter().zip(calls).map(|(a, b)| a.saturating_add(b));
    sum.collect()
}

/// Floating-point operations of a step at its busiest site, each time that it is taken.
pub fn of_step(plan: &Plan, step: &Step) -> u64 {
    let Operation::LocalJoin {
        kernel,
        ranges,
        fold,
        ..
    } = &step.operation
    else {
        return 0;
    };
    let kernel = &plan.kernels[kernel.0 as usize];
    let flops = flops(kernel, ranges, fold.as_ref(), &step.kind, &plan.mesh);
    let most = flops.into_iter().max().unwrap_or(0);
    u64::try_from(most).unwrap_or(u64::MAX)
}
