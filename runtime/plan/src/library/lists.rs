//! Library operations on matrices that are lists of rows: where each row ends in the list, positions, ascending in a row, and values.
//!
//! Must not know how they are computed.
//!
//! ```text
//! (i64[9], u32[50], f32[50], i64[7], u32[40], f32[40]) [i: 9, j: 8] f32
//!     = listed_product(a0[:1], a1[:1], a2[:1], a3[:1], a4[:1], a5[:1], j)
//! ```

use super::Library;
use crate::dtype::DType;
use crate::function::Function;
use crate::kernel::Kernel;

/// Returns whether an operation is one of those.
pub(super) fn is_of_lists(operation: Function) -> bool {
    columns(operation).is_some()
}

/// Returns whether the number of positions that a row may have stands behind the arguments.
pub(super) fn counts_positions(operation: Function) -> bool {
    is_of_lists(operation) && operation != Function::ListedProduct
}

/// Returns whether products of numbers of a type are summed by these operations.
pub const fn is_summed(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64)
}

/// For both lists: which arguments are the ends of rows, the positions and the values.
fn columns(operation: Function) -> Option<[(usize, usize, Option<usize>); 2]> {
    match operation {
        Function::ListedDot | Function::ListedProduct | Function::ListedSums => {
            Some([(0, 1, Some(2)), (3, 4, Some(5))])
        }
        Function::ListedPlaces => Some([(0, 1, None), (2, 3, None)]),
        _ => None,
    }
}

/// Returns whether an argument may have this type, where the result has those.
pub(super) fn suits(operation: Function, number: usize, stored: DType, output: &[DType]) -> bool {
    let lists = columns(operation).into_iter().flatten();
    match lists
        .map(|(_, _, values)| values)
        .any(|values| values == Some(number))
    {
        true => output == [stored.compute()] && is_summed(stored.compute()),
        false => stored.compute() == DType::I64,
    }
}

/// Operations of a call. The rows of a list are taken to be equally long.
pub(super) fn flops(kernel: &Kernel, library: &Library) -> f64 {
    let Some(lists) = columns(library.operation) else {
        return 0.0;
    };
    let length = |argument: usize| library.matrix(kernel, argument).0 as f64;
    let [of_row, of_other] = lists.map(|(ends, at, _)| length(at) / length(ends).max(1.0));
    let elements = length(lists[0].1);
    match library.operation {
        Function::ListedDot => 2.0 * (of_row + of_other).max(1.0),
        Function::ListedProduct => 2.0 * of_row * of_other,
        Function::ListedSums => 2.0 * elements * of_other,
        _ => elements * of_other,
    }
}

/// The first way in which the lists break the form of these operations.
pub(super) fn verify(kernel: &Kernel, library: &Library) -> Result<(), String> {
    let (operation, name) = (library.operation, library.operation.name());
    let length = |argument: usize| library.matrix(kernel, argument).0;
    for (_, positions, values) in columns(operation).into_iter().flatten() {
        if values.is_some_and(|values| length(values) != length(positions)) {
            return Err(format!("a list of `{name}` has columns of several lengths"));
        }
    }
    if counts_positions(operation) && library.positions.is_none() {
        return Err(format!("it is not said how many positions `{name}` has"));
    }
    let calls: Vec<u64> = (library.batch.iter())
        .map(|index| kernel.indices[index.0 as usize].extent)
        .collect();
    match operation {
        Function::ListedProduct if calls != [length(0)] => {
            Err(format!("`{name}` of {} rows for {calls:?}", length(0)))
        }
        Function::ListedPlaces | Function::ListedSums if !calls.is_empty() => {
            Err(format!("`{name}` is called once"))
        }
        _ => Ok(()),
    }
}
