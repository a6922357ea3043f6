//! The arithmetic of steps, from kernels and types alone.
//!
//! A function counts as its row in the table of functions says. Must not know what arithmetic costs.
//!
//! ```text
//! C[i,j] = sum_k A[i,k] B[k,j] of 100 x 100 x 100, i cut over two sites:   1000000 1000000
//! ```

use crate::amounts::Amounts;
use crate::function::Function;
use crate::kernel::{Kernel, Node};
use crate::mesh::Mesh;
use crate::plan::{Fold, Operation, Plan, Range, Step};
use crate::relation::{AxisRole, Placement, RelationType, piece};

/// Floating-point operations of a kernel at one point.
pub fn flops_per_point(kernel: &Kernel) -> u64 {
    if let Some(library) = kernel.library() {
        let extents = kernel.indices.iter().map(|index| index.extent as f64);
        let points = extents.product::<f64>().max(1.0);
        return (library.flops(kernel) / points).ceil() as u64;
    }
    let functions = kernel.graph.iter().map(|(_, node, _)| match node {
        Node::Apply(function, _) => Function::flops(*function),
        _ => 0,
    });
    functions.sum::<u64>() + u64::from(kernel.reduction.is_some())
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
    let indices = || kernel.indices.iter().zip(ranges);
    let whole = indices().filter(|(_, range)| **range == Range::Whole);
    let each = whole.fold(u128::from(flops_per_point(kernel)), |n, (index, _)| {
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
