//! Prices of statements and programs on one site, to rank programs that compute the same.
//!
//! A value is computed once for each value of the indices that it depends on, but for those that the loops solve
//! instead of walking through them ([`Kernel::passed_over`]). A sum of products of two factors runs as
//! matrix products, other arithmetic several times slower. Must not know placements.
//!
//! ```text
//! [i: 4, j: 8 | k: 6] f32 sum a0[i, k] * a1[k, j]   384 operations, 416 bytes, score 800
//! ```

use crate::einsum::{Definition, Program};
use ein_plan::{Function, Graph, Kernel, Node, NodeId, Reduction};

/// How much slower arithmetic is that is not a matrix product.
const SLOWER: f64 = 4.0;

/// The work and the traffic of a statement or a program on one site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComputeCost {
    /// Operations.
    pub flops: f64,
    /// Operations, those outside matrix products weighted.
    pub weighted: f64,
    /// Bytes of operands and results.
    pub bytes: f64,
}

impl ComputeCost {
    /// One number: an operation of a matrix product and a byte are worth the same.
    pub fn score(&self) -> f64 {
        self.weighted + self.bytes
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: ComputeCost) -> ComputeCost {
        ComputeCost {
            flops: self.flops + other.flops,
            weighted: self.weighted + other.weighted,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Returns whether this is better: a lower score, and fewer operations or fewer bytes.
    pub fn beats(&self, other: &ComputeCost) -> bool {
        self.score() < other.score() * (1.0 - 1e-9)
            && (self.flops < other.flops || self.bytes < other.bytes)
    }
}

/// The price of a program: that of its statements.
pub fn program(program: &Program) -> ComputeCost {
    let statements = program.tensors.iter().map(|t| match &t.definition {
        Definition::Source(_) | Definition::Loop(_) => ComputeCost::default(),
        Definition::Statement { kernel, .. } => statement(kernel),
    });
    statements.fold(ComputeCost::default(), ComputeCost::plus)
}

/// The price of a statement. Its kernel has at most 128 indices; of more, the last ones count as always needed.
pub fn statement(kernel: &Kernel) -> ComputeCost {
    let extents: Vec<f64> = kernel.indices.iter().map(|i| i.extent as f64).collect();
    let passed = kernel.passed_over().into_iter();
    let passed = passed.filter(|index| index.0 < 127);
    let passed = passed.fold(0, |set, index| set | 1 << index.0);
    let all = mask(extents.len()) & !passed;
    let mut needs = kernel.graph.dependencies();
    needs.iter_mut().for_each(|indices| *indices &= !passed);
    let conditions = kernel.evaluated_conditions();
    let roots: Vec<NodeId> = [kernel.root].into_iter().chain(conditions).collect();
    let points = volume(&extents, all);
    let library = kernel.library();
    let (flops, fast) = match (product(kernel, &needs), library) {
        (Some(product), _) => (product.flops(kernel, &needs, &extents), true),
        (None, Some(library)) => (library.flops(kernel), true),
        (None, None) => {
            let reduced = if kernel.reduction.is_some() {
                points
            } else {
                0.0
            };
            (
                values(&kernel.graph, &roots, &needs, &extents) + reduced,
                false,
            )
        }
    };
    let elements = |shape: &[u64]| shape.iter().map(|e| *e as f64).product::<f64>();
    let read = kernel.operands.iter().map(|operand| {
        let size: usize = operand.columns.iter().map(|c| c.size()).sum();
        elements(&operand.shape) * size as f64
    });
    let written = volume(&extents, mask(kernel.output_rank as usize))
        * kernel.output.iter().map(|c| c.size() as f64).sum::<f64>();
    ComputeCost {
        flops,
        weighted: flops * if fast { 1.0 } else { SLOWER },
        bytes: read.sum::<f64>() + written,
    }
}

/// Returns whether the price is that of matrix products.
pub fn is_priced_as_product(kernel: &Kernel) -> bool {
    product(kernel, &kernel.graph.dependencies()).is_some()
}

fn mask(count: usize) -> u128 {
    match count {
        0..128 => (1 << count) - 1,
        _ => u128::MAX,
    }
}

fn volume(extents: &[f64], indices: u128) -> f64 {
    let of = |(at, extent): (usize, &f64)| match indices >> at.min(127) & 1 {
        1 => *extent,
        _ => 1.0,
    };
    extents.iter().enumerate().map(of).product()
}

/// Operations for the values of some nodes, positions of reads not counted.
fn values(graph: &Graph, roots: &[NodeId], needs: &[u128], extents: &[f64]) -> f64 {
    let mut needed = vec![false; graph.len()];
    roots.iter().for_each(|r| needed[r.0 as usize] = true);
    let mut flops = 0.0;
    for at in (0..graph.len()).rev() {
        if !needed[at] {
            continue;
        }
        match graph.node(NodeId(at as u32)) {
            Node::Read { otherwise, .. } => {
                otherwise.iter().for_each(|o| needed[o.0 as usize] = true);
            }
            node => {
                if let Node::Apply(function, _) = node {
                    flops += function.flops() as f64 * volume(extents, needs[at]);
                }
                node.arguments().for_each(|a| needed[a.0 as usize] = true);
            }
        }
    }
    flops
}

/// The factors of a sum of products that runs as matrix products.
struct Product {
    /// The two sides.
    sides: [u128; 2],
    /// All factors; what goes into a side is one of more than two.
    factors: Vec<NodeId>,
}

impl Product {
    fn flops(&self, kernel: &Kernel, needs: &[u128], extents: &[f64]) -> f64 {
        let all = mask(extents.len());
        let own = values(&kernel.graph, &self.factors, needs, extents);
        let mut taken = [false; 2];
        let into_sides = self.factors.iter().map(|factor| {
            let need = needs[factor.0 as usize];
            if need == 0 {
                return 0.0;
            }
            let side = self
                .sides
                .iter()
                .position(|side| need & !side == 0)
                .unwrap_or(0);
            if need == self.sides[side] && !taken[side] {
                taken[side] = true;
                return 0.0;
            }
            volume(extents, self.sides[side])
        });
        2.0 * volume(extents, all) + own + into_sides.sum::<f64>()
    }
}

fn product(kernel: &Kernel, needs: &[u128]) -> Option<Product> {
    let dtype = kernel.graph.dtype(kernel.root);
    let sum = kernel.reduction == Some(Reduction::Sum);
    if !sum || kernel.guard.is_some() || !dtype.is_float() {
        return None;
    }
    let (mut factors, mut over) = (vec![], vec![]);
    let mut stack = vec![(kernel.root, false)];
    while let Some((id, divides)) = stack.pop() {
        match kernel.graph.node(id) {
            Node::Apply(Function::Mul, a) => stack.extend([(a[0], divides), (a[1], divides)]),
            Node::Apply(Function::Div, a) => stack.extend([(a[0], divides), (a[1], !divides)]),
            Node::Apply(Function::Neg, a) => stack.push((a[0], divides)),
            _ => {
                factors.push(id);
                let need = needs[id.0 as usize];
                if need != 0 && !divides {
                    over.push(need);
                }
            }
        }
        if factors.len() + stack.len() > 16 {
            return None;
        }
    }
    let left = *over.iter().max_by_key(|m| m.count_ones())?;
    let first = over.iter().position(|m| *m == left)?;
    over.remove(first);
    let beyond = |m: &&u128| ((**m & !left).count_ones(), m.count_ones());
    let right = *over.iter().max_by_key(beyond)?;
    let inside = |id: &NodeId| {
        let need = needs[id.0 as usize];
        need & !left == 0 || need & !right == 0
    };
    factors.iter().all(inside).then_some(Product {
        sides: [left, right],
        factors,
    })
}
