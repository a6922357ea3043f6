//! What a kernel stumbled over, in the user's terms.
//!
//! Must not know how a kernel runs.
//!
//! ```text
//! E0720 position 7 is outside `x`, whose dimension 1 has positions 0 to 3; at i = 6
//! ```

mod blocks;

use crate::error::{ErrorKind, RunError};
use ein_plan::{
    Fault, Function, IndexId, JoinInput, Kernel, KernelError, Operation, Plan, Problem, RelationId,
    Source,
};

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
    let checked = match &error.fault {
        Fault::NotWithin { check, .. } => kernel.checked(*check),
        _ => None,
    };
    let read = match &error.fault {
        Fault::OutOfRange {
            operand, dimension, ..
        } => Some((*operand, *dimension)),
        _ => checked.map(|(_, operand, dimension)| (operand, dimension)),
    };
    let place = read.map(|(operand, dimension)| place(plan, inputs, operand, dimension));
    let in_blocks = match error.fault {
        Fault::Library { operation, problem } => {
            blocks::message(plan, inputs, kernel, operation, problem, &error.point)
        }
        _ => None,
    };
    let hidden = in_blocks.as_ref().map_or(&[][..], |found| found.2);
    // Of a scatter, the point that is written is what was looked for.
    let written = place.as_ref().is_some_and(|place| place.written);
    let point: Vec<String> = (0u32..)
        .zip(kernel.indices.iter().zip(&error.point))
        .filter(|(number, _)| !own.contains(&IndexId(*number)))
        .filter(|(_, (index, _))| !hidden.contains(&index.name.as_str()))
        // A look-up has the index of the dimension that it looks at for itself.
        .filter(|(number, _)| checked.is_none_or(|(index, ..)| index != IndexId(*number)))
        .filter(|(number, (index, _))| !(written && index.name == format!("p{}", number + 1)))
        .map(|(_, (index, value))| format!("{} = {value}", index.name))
        .collect();
    let at = if point.is_empty() {
        String::new()
    } else {
        format!("; at {}", point.join(", "))
    };
    let (code, message) = match &error.fault {
        Fault::OutOfRange {
            position, extent, ..
        } => {
            let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
            ("E0720", outside(place.as_ref(), *position, extent, &at))
        }
        Fault::NotWithin {
            position, extent, ..
        } => ("E0720", outside(place.as_ref(), *position, *extent, &at)),
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
            let (code, what) = match in_blocks {
                Some((code, what, _)) => (code, what),
                None => library(plan, inputs, kernel, *operation, *problem),
            };
            (code, format!("{what}{at}"))
        }
    };
    RunError::new(code, ErrorKind::Program, message)
}

/// The message about a position that is not among those of a dimension.
fn outside(place: Option<&Place>, position: i64, extent: i64, at: &str) -> String {
    let positions = match extent {
        0 => "is empty".to_owned(),
        1 => "has the position 0 only".to_owned(),
        n => format!("has positions 0 to {}", n.wrapping_sub(1)),
    };
    match place {
        Some(Place { tensor, dim, .. }) => format!(
            "position {position} is outside `{tensor}`, whose dimension {dim} {positions}{at}"
        ),
        None => format!("position {position} is outside a dimension that {positions}{at}"),
    }
}

/// A dimension of a tensor, as the user knows it.
struct Place {
    tensor: String,
    /// Counted from 1, with the name of its index if the tensor is defined with indices.
    dim: String,
    /// Whether a scatter was to write there.
    written: bool,
}

fn place(plan: &Plan, inputs: &[JoinInput], operand: u32, dimension: u32) -> Place {
    let Some(input) = inputs.get(operand as usize) else {
        return Place {
            tensor: "an operand".into(),
            dim: (dimension + 1).to_string(),
            written: false,
        };
    };
    let step = plan.step(input.relation);
    // The places of a scatter are looked up in a list of them, one for each dimension that data choose.
    if let (Operation::Source { source, .. }, Some((tensor, number))) =
        (&step.operation, step.tensor.rsplit_once(".target"))
        && *source == Source::Iota
        && (number.is_empty() || number.parse::<u32>().is_ok())
    {
        return Place {
            tensor: tensor.to_owned(),
            dim: if number.is_empty() { "1" } else { number }.to_owned(),
            written: true,
        };
    }
    let number = dimension + 1;
    Place {
        tensor: step.tensor.clone(),
        dim: match index(plan, input.relation, dimension) {
            Some(index) => format!("{number} (`{index}`)"),
            None => number.to_string(),
        },
        written: false,
    }
}

/// The index that a relation's tensor is defined with at a dimension.
fn index(plan: &Plan, relation: RelationId, dimension: u32) -> Option<&str> {
    match &plan.step(relation).operation {
        Operation::LocalJoin { kernel, .. } => {
            let kernel = &plan.kernels[kernel.0 as usize];
            let written = dimension < kernel.output_rank && kernel.library().is_none();
            written.then(|| kernel.indices[dimension as usize].name.as_str())
        }
        Operation::Broadcast { input }
        | Operation::Shuffle { input }
        | Operation::Window { input }
        | Operation::LocalConcat { input, .. } => index(plan, *input, dimension),
        _ => None,
    }
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
        Problem::Singular { pivot } => singular(name, first, pivot),
        Problem::NotPositive { pivot } => not_positive(name, first, pivot),
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
            not_finite(name, tensor, &place)
        }
    }
}

fn singular(operation: &str, matrix: &str, column: u64) -> (&'static str, String) {
    let text = format!(
        "`{operation}`: the matrix `{matrix}` is singular; elimination finds only zeros in column {column}"
    );
    ("E0725", text)
}

fn not_positive(operation: &str, matrix: &str, pivot: u64) -> (&'static str, String) {
    let text = format!(
        "`{operation}`: the matrix `{matrix}` is not positive definite; pivot {pivot} is not positive"
    );
    ("E0725", text)
}

fn not_finite(operation: &str, tensor: &str, place: &str) -> (&'static str, String) {
    let text = format!("`{operation}`: `{tensor}` holds NaN or infinity in {place}");
    ("E0726", text)
}
