//! Named conditions, written where loops make use of them.
//!
//! `M[n, g] = k[n] == g` says which points are in a group, and so does the one-hot matrix `f32(k[n] == g)`. A reduction that reads such a tensor
//! looks at all of it; with the condition in its place, the reduction goes through the points of each group alone, or through the part
//! of a row that a comparison leaves. Must not know placements.
//!
//! ```text
//! M: bool[900, 70] = [n: 900, g: 70] k[n] == g;  y: f32[70] = [g: 70 | n: 900] sum where(M[n, g], x[n], 0)
//! y: f32[70] = [g: 70 | n: 900] sum where(k[n] == g, x[n], 0)
//! ```

use super::one_hot::is_of_truths;
use super::written_in::{element_wise, is_read_plainly, with};
use crate::einsum::{Program, Rewriting, Tensor, TensorId};
use crate::rules::conditions::guarded;
use ein_plan::{DType, Function, Kernel, Node};

/// The most nodes of a condition that is written where it is read.
const MOST_NODES: usize = 32;

/// Returns the program with named conditions in the reductions that make use of them.
pub fn written(program: &Program) -> Program {
    let written = Rewriting::of_statements(program, |statement| {
        let kernel = statement.kernel;
        kernel.reduction.filter(|_| kernel.library().is_none())?;
        let mut whole = (kernel.clone(), statement.operands.to_vec());
        // Operands that a condition brings along stand behind the others, so each operand of the statement is looked at once.
        for id in statement.operands {
            let tensor = statement.tensor(*id);
            let number = whole.1.iter().position(|of| of == id);
            if let Some((inner, read)) = condition(tensor)
                && let Some(number) = number
                && is_read_plainly(&whole.0, number as u32, |_| true)
            {
                let inner = (inner.clone(), read.to_vec());
                whole = with(&whole.0, &whole.1, number as u32, inner);
            }
        }
        (whole.0 != *kernel && is_used(&whole.0, kernel)).then_some(whole)
    });
    written.needed()
}

/// The statement of a tensor of truths, or of values that are chosen by one.
fn condition(tensor: &Tensor) -> Option<(&Kernel, &[TensorId])> {
    let (kernel, operands) = element_wise(tensor)?;
    let graph = &kernel.graph;
    let is_condition = match graph.node(kernel.root) {
        Node::Convert(of) => graph.dtype(*of) == DType::Bool,
        // A value that data say is named where it is NaN.
        Node::Apply(Function::Select, parts) => {
            let mut values = parts[1..].iter();
            values.all(|value| matches!(graph.node(*value), Node::Constant(_)))
        }
        _ => tensor.dtype == DType::Bool,
    };
    (is_condition && graph.len() <= MOST_NODES).then_some((kernel, operands))
}

/// Returns whether the loops of a reduction pass over more points than those of the reduction that reads conditions.
fn is_used(kernel: &Kernel, before: &Kernel) -> bool {
    let passes_over = |kernel: &Kernel| Some(guarded(kernel)?.passed_over().len());
    passes_over(kernel) > passes_over(before) || is_of_truths(kernel)
}
