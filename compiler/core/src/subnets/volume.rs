//! Sizes of blocks of params, and costs of a local step, layer by layer.
//!
//! Must not know how blocks are moved.
//!
//! ```text
//! W1: f32[64, 512], 4 parts   =>   4 blocks of 64 x 128; 2 * 2 * 32 * 64 * 128 flops a step and site (no gradient of X)
//! ```

use crate::einsum::{Definition, Program};
use ein_plan::{Function, Node, Reduction, relation::piece};
use std::collections::BTreeMap;

/// Elements of the block that a part has of a tensor whose dimensions `dims` count neurons.
pub fn block(shape: &[u64], dims: &[usize], parts: u32, part: u32) -> u64 {
    let extent = |(dim, extent): (usize, &u64)| match dims.contains(&dim) {
        true => piece(*extent, parts, part).1,
        false => *extent,
    };
    shape.iter().enumerate().map(extent).product()
}

/// Multiplications and additions of the products of a step with each weight, forward and backward, by param.
pub fn flops(step: &Program, params: &[String]) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for tensor in &step.tensors {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        let mut nodes = kernel.graph.iter();
        let product = nodes.any(|(_, node, _)| matches!(node, Node::Apply(Function::Mul, _)));
        if kernel.reduction != Some(Reduction::Sum) || !product {
            continue;
        }
        let own = |param: &&String| {
            let gradient = tensor.name.strip_prefix("grad.");
            let gradient = gradient.and_then(|name| name.strip_prefix(param.as_str()));
            gradient.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                || operands
                    .iter()
                    .any(|operand| step.tensor(*operand).name == **param)
        };
        if let Some(param) = params.iter().find(own) {
            let points: u64 = kernel.indices.iter().map(|index| index.extent).product();
            *found.entry(param.clone()).or_default() += 2 * points;
        }
    }
    found
}
