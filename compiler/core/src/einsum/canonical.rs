//! One form for statements that print alike.
//!
//! The graph is in canonical order (`Kernel::canonical`), and the operands are distinct, all read, and numbered in
//! the order in which the graph first reads them. Must not change what a statement means.
//!
//! ```text
//! operands (B, A, A), a2[i] * a0[i] + a1[i]   gives   operands (A, B), a0[i] * a1[i] + a0[i]
//! ```

use super::{Definition, Program, TensorId};
use ein_plan::{Kernel, Node};

impl Program {
    /// Brings every statement into canonical form.
    #[must_use]
    pub fn canonical(mut self) -> Program {
        for tensor in &mut self.tensors {
            if let Definition::Statement { kernel, operands } = &mut tensor.definition {
                (*kernel, *operands) = statement(kernel.clone(), operands);
            }
        }
        self
    }
}

/// A statement in canonical form. Every operand that is read is there.
#[must_use]
pub fn statement(kernel: Kernel, operands: &[TensorId]) -> (Kernel, Vec<TensorId>) {
    let first = |operand: u32| -> u32 {
        let tensor = operands[operand as usize];
        let same = operands.iter().position(|other| *other == tensor);
        same.map_or(operand, |at| at as u32)
    };
    let mut kernel = renumbered(kernel, first).canonical();
    let mut order: Vec<u32> = vec![];
    for (operand, _) in kernel.graph.reads() {
        if !order.contains(&operand) {
            order.push(operand);
        }
    }
    let place = |operand: u32| order.iter().position(|o| *o == operand);
    kernel = renumbered(kernel, |operand| {
        place(operand).map_or(operand, |at| at as u32)
    });
    let all = std::mem::take(&mut kernel.operands);
    kernel.operands = order.iter().map(|o| all[*o as usize].clone()).collect();
    let tensors = order.iter().map(|o| operands[*o as usize]).collect();
    (kernel, tensors)
}

/// Renumbers the operands that a kernel reads.
fn renumbered(kernel: Kernel, number: impl Fn(u32) -> u32) -> Kernel {
    kernel.rewritten(|graph, _, mut node, dtype| {
        if let Node::Read { operand, .. } = &mut node {
            *operand = number(*operand);
        }
        graph.add(node, dtype)
    })
}
