//! Sums of products for blocks of an output index: `x[n, 16 * (f / 16) + c]`, as the grouped layers of a network read.
//!
//! Where a position adds the block of an output index to a reduced one, the operand is no matrix. With an index for the block and one for the
//! place in it, the sum is a product of matrices for each block, and the output reads that. Must not know placements.
//!
//! ```text
//! y: f32[9, 64] = [n: 9, f: 64 | c: 16] sum x[n, 16 * (f / 16) + c] * w[f, c]
//! y.blocks: f32[9, 4, 16] = [n: 9, f: 4, f_2: 16 | c: 16] sum x[n, 16 * f + c] * w[16 * f + f_2, c];  y: f32[9, 64] = [n: 9, f: 64] y.blocks[n, f / 16, f % 16]
//! ```

use super::parts::{divisor, halved};
use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::over;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar};

/// Returns the program in which such sums have an index for the block.
pub fn by_block(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (kernel, operands) = (statement.kernel, statement.operands);
        let (blocks, index, by) = blocks(kernel)?;
        let described = Operand {
            columns: blocks.output.clone(),
            shape: (blocks.indices.iter().take(blocks.output_rank as usize))
                .map(|index| index.extent)
                .collect(),
        };
        let blocks = statement.add("blocks", canonical::statement(blocks, operands));
        Some((joined(kernel, described, (index, by)), vec![blocks]))
    })
}

/// The sum with two indices for one of its output, which one, and the size of a block; none if that makes no product of matrices of it.
fn blocks(kernel: &Kernel) -> Option<(Kernel, IndexId, u64)> {
    let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.output.len() == 1;
    if !is_sum || kernel.library().is_some() || kernel.indices.len() > 100 {
        return None;
    }
    (0..kernel.output_rank).map(IndexId).find_map(|index| {
        let by = divisor(kernel, index)?;
        let halved = halved(kernel, index, by)?;
        let rest = kernel.indices.len();
        let mut order: Vec<usize> = (0..rest).collect();
        order.insert(index.0 as usize + 1, rest);
        let mut blocks = over(halved.clone(), &halved, &order);
        blocks.output_rank += 1;
        let blocks = blocks.canonical();
        let depends = blocks.graph.dependencies()[blocks.root.0 as usize];
        let is_used = depends >> (index.0 + 1) & 1 == 1;
        let hides =
            |kernel: &Kernel| positions(kernel).any(|at| kernel.graph.as_quotient(at).is_none());
        let plain = positions(&blocks).all(|at| blocks.graph.as_affine(at).is_some());
        (is_used && plain && hides(kernel) && blocks.is_product()).then_some((blocks, index, by))
    })
}

/// The positions of a kernel's reads.
fn positions(kernel: &Kernel) -> impl Iterator<Item = NodeId> + '_ {
    kernel.graph.iter().flat_map(|(_, node, _)| match node {
        Node::Read { positions, .. } => positions.clone(),
        _ => vec![],
    })
}

/// The output of a statement, an element of its blocks for each.
fn joined(kernel: &Kernel, blocks: Operand, (index, by): (IndexId, u64)) -> Kernel {
    let mut graph = Graph::default();
    let mut at = vec![];
    for number in (0..kernel.output_rank).map(IndexId) {
        let own = graph.add(Node::Index(number), DType::I64);
        if number != index {
            at.push(own);
            continue;
        }
        let by = graph.add(Node::Constant(Scalar::Int(by as i64)), DType::I64);
        for part in [Function::FloorDiv, Function::Rem] {
            at.push(graph.add(Node::Apply(part, vec![own, by]), DType::I64));
        }
    }
    let read = Node::Read {
        operand: 0,
        column: 0,
        positions: at,
        otherwise: None,
    };
    Kernel {
        indices: kernel.indices[..kernel.output_rank as usize].to_vec(),
        output_rank: kernel.output_rank,
        root: graph.add(read, blocks.columns[0].compute()),
        operands: vec![blocks],
        graph,
        guard: None,
        reduction: None,
        finish: true,
        output: kernel.output.clone(),
    }
}
