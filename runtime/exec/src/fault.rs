//! What a kernel stumbled over, in the user's terms.
//!
//! Must not know how a kernel runs.
//!
//! ```text
//! E0720 position 7 is outside `x`, whose dimension 0 has positions 0 to 3; at i = 6
//! ```

use crate::error::{ErrorKind, RunError};
use ein_kernels::{Fault, KernelError, Problem};
use ein_plan::{Function, IndexId, JoinInput, Kernel, Plan};

/// The error of a step whose kernel stopped at a point; `inputs` are the relations that it reads.
pub(crate) fn fault(
    plan: &Plan,
    inputs: &[JoinInput],
    kernel: &Kernel,
    error: &KernelError,
) -> RunError {
    // Of a library operation, the whole result is missing: only which call it is matters.
    let own = kernel.library().map(|library| library.own);
    let own = own.unwrap_or_default();
    let point: Vec<String> = (0u32..)
        .zip(kernel.indices.iter().zip(&error.point))
        .filter(|(number, _)| !own.contains(&IndexId(*number)))
        .map(|(_, (index, value))| format!("{} = {value}", index.name))
        .collect();
    let at = if point.is_empty() {
        String::new()
    } else {
        format!("; at {}", point.join(", "))
    };
    let (code, message) = match &error.fault {
        Fault::OutOfRange {
            operand,
            dimension,
            position,
            extent,
        } => {
            let tensor = inputs
                .get(*operand as usize)
                .map_or("an operand", |i| plan.step(i.relation).tensor.as_str());
            let positions = match extent {
                0 => "is empty".to_owned(),
                1 => "has the position 0 only".to_owned(),
                n => format!("has positions 0 to {}", n - 1),
            };
            (
                "E0720",
                format!(
                    "position {position} is outside `{tensor}`, whose dimension {dimension} {positions}{at}"
                ),
            )
        }
        Fault::DivisionByZero => ("E0721", format!("an integer is divided by zero{at}")),
        Fault::NegativePower => (
            "E0722",
            format!("an integer is raised to a negative power{at}"),
        ),
        Fault::NothingToChoose => (
            "E0724",
            format!("`argmax` or `argmin` has nothing to choose from{at}"),
        ),
        Fault::Library { operation, problem } => {
            let (code, what) = library(plan, inputs, kernel, *operation, *problem);
            (code, format!("{what}{at}"))
        }
    };
    RunError::new(code, ErrorKind::Program, message)
}

/// What a library operation stumbled over, in the user's terms.
fn library(
    plan: &Plan,
    inputs: &[JoinInput],
    kernel: &Kernel,
    operation: Function,
    problem: Problem,
) -> (&'static str, String) {
    let call = kernel.library();
    let argument = |number: usize| {
        let argument = call.as_ref().and_then(|call| call.arguments.get(number));
        let input = argument.and_then(|a| inputs.get(a.operand as usize));
        let tensor = input.map_or("an operand", |i| plan.step(i.relation).tensor.as_str());
        let rank = argument.map_or(2, |a| a.whole.len());
        (tensor, rank)
    };
    let (first, name) = (argument(0).0, operation.name());
    match problem {
        Problem::Singular { pivot } => (
            "E0725",
            format!(
                "`{name}`: the matrix `{first}` is singular; elimination finds only zeros in column {pivot}"
            ),
        ),
        Problem::NotPositive { pivot } => (
            "E0725",
            format!(
                "`{name}`: the matrix `{first}` is not positive definite; pivot {pivot} is not positive"
            ),
        ),
        Problem::NegativeDeterminant => (
            "E0725",
            format!("`{name}`: the determinant of `{first}` is negative and has no logarithm"),
        ),
        Problem::NoConvergence => (
            "E0725",
            format!("`{name}` of `{first}` finds no end: its values are too far apart"),
        ),
        Problem::NotFinite {
            argument: number,
            row,
            column,
        } => {
            let (tensor, rank) = argument(number as usize);
            let place = match rank {
                1 => format!("position {row}"),
                _ => format!("row {row}, column {column}"),
            };
            (
                "E0726",
                format!("`{name}`: `{tensor}` holds NaN or infinity in {place}"),
            )
        }
    }
}
