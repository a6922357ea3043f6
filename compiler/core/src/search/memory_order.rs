//! The pass by which reductions go through their points in the order of memory, which `rules::memory_order` gives. Must not know placements.
//!
//! ```text
//! y: f64[] = [| j: 4, i: 9] sum abs(A[i, j])   ->   y: f64[] = [| i: 9, j: 4] sum abs(A[i, j])
//! ```

use crate::einsum::{Definition, Program, canonical};
use crate::rules;

/// The program whose reductions go through memory in order.
pub fn in_memory_order(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(ordered) = rules::in_memory_order(kernel)
        {
            (*kernel, *operands) = canonical::statement(ordered, operands);
        }
    }
    program
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    #[test]
    fn the_closest_index_comes_last() {
        for (written, expected) in [
            (
                "[| j: 4, i: 9] sum abs(A[i, j])",
                "[| i: 9, j: 4] sum abs(A[i, j])",
            ),
            ("[| i: 9, j: 4] max A[i, j]", "[| i: 9, j: 4] max A[i, j]"),
            (
                "[| j: 4, i: 9] argmax A[i, j]",
                "[| j: 4, i: 9] argmax A[i, j]",
            ),
        ] {
            let dtype = if written.contains("arg") {
                "i64"
            } else {
                "f64"
            };
            let text = format!("input A: f64[9, 4] = unbound\ny: {dtype}[] = {written}\noutput y");
            let program = in_memory_order(&parse(&text).unwrap());
            let y = program.tensor_text(&program.tensors[1]);
            assert_eq!(y, format!("y: {dtype}[] = {expected}"));
        }
    }
}
