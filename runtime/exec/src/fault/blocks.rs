//! What an operation by blocks stumbled over, in terms of the operation that the program calls.
//!
//! Must not know how blocks are computed, only what each of them is of its matrix.
//!
//! ```text
//! `lu` of `S.blocks.column2`, column 7   =>   `solve`: the matrix `S` is singular; … in column 207
//! ```

use super::{JoinInput, Kernel, Plan, Problem, not_finite, not_positive, singular};
use ein_plan::{Function, blocks::read};

/// The code, the message, and the indices that it has no use for; `None`: no operation by blocks. `point`: the number of each of
/// the kernel's indices.
pub(super) fn message(
    plan: &Plan,
    inputs: &[JoinInput],
    kernel: &Kernel,
    operation: Function,
    problem: Problem,
    point: &[u64],
) -> Option<(&'static str, String, &'static [&'static str])> {
    let call = kernel.library()?;
    let argument = |number: usize| {
        let operand = call.arguments.get(number)?.operand as usize;
        let tensor = &plan.step(inputs.get(operand)?.relation).tensor;
        Some((tensor.as_str(), kernel.operands.get(operand)?.shape.last()))
    };
    let index = |name: &str| {
        let at = kernel.indices.iter().position(|index| index.name == name)?;
        point.get(at).copied()
    };
    let (first, size) = argument(0)?;
    let size = size.copied()?;
    let second = argument(1).and_then(|(name, _)| read(name));
    let own = read(first);
    let begin = own.map_or(0, |own| own.step * size);
    let (code, text) = match (operation, problem, own, second) {
        (Function::Lu, Problem::Singular { pivot }, Some(own), _) => {
            singular("solve", own.tensor, begin + pivot)
        }
        (Function::Lu, Problem::NotFinite { row, column, .. }, Some(own), _) => {
            // Behind the first step rows have changed places.
            let row = (own.step == 0).then(|| format!("row {row}, "));
            let place = format!("{}column {}", row.unwrap_or_default(), begin + column);
            not_finite("solve", own.tensor, &place)
        }
        (Function::Cholesky, Problem::NotPositive { pivot }, Some(own), _) => {
            not_positive("cholesky", own.tensor, begin + pivot)
        }
        (Function::Cholesky, Problem::NotFinite { row, column, .. }, Some(own), _) => {
            let place = format!("row {}, column {}", begin + row, begin + column);
            not_finite("cholesky", own.tensor, &place)
        }
        (Function::Solve, Problem::NotFinite { row, .. }, _, Some(side))
            if side.what == "panel" =>
        {
            let (block, at) = (index("I")?, index("i")?);
            let below = (side.step + 1 + block) * size + at;
            let place = format!("row {below}, column {}", side.step * size + row);
            not_finite("cholesky", side.tensor, &place)
        }
        (Function::Solve, Problem::NotFinite { .. }, _, Some(side)) if side.what == "top" => {
            let (block, at) = (index("J")?, index("j")?);
            let column = (side.step + 1 + block) * size + at;
            not_finite("solve", side.tensor, &format!("column {column}"))
        }
        (Function::Solve, Problem::NotFinite { .. }, _, Some(side)) if side.what == "head" => (
            "E0726",
            format!(
                "`solve`: the right side `{}` holds NaN or infinity",
                side.tensor
            ),
        ),
        (Function::Solve, Problem::NotFinite { .. }, _, Some(side)) if side.what == "reduced" => (
            "E0726",
            format!(
                "`solve`: the solution for `{}` grows to NaN or infinity",
                side.tensor
            ),
        ),
        (Function::Solve, problem, None, Some(side)) if side.what == "unit" => match problem {
            Problem::Singular { pivot } => singular("inv", first, pivot),
            Problem::NotFinite { row, column, .. } => {
                not_finite("inv", first, &format!("row {row}, column {column}"))
            }
            _ => return None,
        },
        _ => return None,
    };
    Some((code, text, &["I", "J", "i", "j", "c"]))
}
