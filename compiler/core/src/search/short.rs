//! Short windows, written out: a reduction over a few neighbours as one expression.
//!
//! The values of nine neighbours are added up faster than a loop over them begins, and an element-wise statement can be taken together with
//! others. So is a reduction that chooses by its own index, as the gradient of `where(p == 0, …)` does: each value is one of its branches. Sums of products
//! in which each factor has indices of its own stay: they are products of matrices. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: f32[8] = [i: 8 | r: 2] max x[2 * i + r]   ->   y: f32[8] = [i: 8] max(x[2 * i], x[2 * i + 1])
//! ```

use crate::einsum::{Definition, Program, canonical};
use crate::rules::short_window::over_window;

/// Returns the program in which reductions over short windows are expressions.
pub fn written(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(written) = over_window(kernel)
        {
            (*kernel, *operands) = canonical::statement(written, operands);
        }
    }
    program
}
