//! Checks on the tuples that a step made: their types and shapes, and NaN.
//!
//! Must not know how they were made.
//!
//! ```text
//! y[n] = log(x[n]), x[3] = -1   ->   `y[3]` is NaN
//! ```

use crate::error::{ErrorKind, RunError};
use crate::store::Tuples;
use ein_plan::Step;

/// The error that names the first NaN among the tuples of a step, if there is one.
pub(crate) fn not_a_number(step: &Step, tuples: &Tuples) -> Option<RunError> {
    for (key, tuple) in tuples {
        for buffer in tuple.iter().filter(|buffer| buffer.dtype().is_float()) {
            let array = buffer.to_host();
            let data = array.data();
            let Some(mut at) = (0..data.len()).find(|at| data.get(*at).as_f64().is_nan()) else {
                continue;
            };
            let ranges = step.kind.ranges(key);
            let mut place = vec![0; ranges.len()];
            for (place, (start, count)) in place.iter_mut().zip(&ranges).rev() {
                *place = start + at as u64 % count;
                at /= *count as usize;
            }
            let places: Vec<String> = place.iter().map(u64::to_string).collect();
            let name = &step.tensor;
            let element = match places.is_empty() {
                true => format!("`{name}`"),
                false => format!("`{name}[{}]`", places.join(", ")),
            };
            let message = format!("{element} is NaN");
            return Some(RunError::new("E0728", ErrorKind::Program, message));
        }
    }
    None
}

/// Fails if the tuples are not what the step's type says.
pub(crate) fn fits(step: &Step, tuples: &Tuples) -> Result<(), RunError> {
    for (key, tuple) in tuples {
        let ranges = step.kind.ranges(key);
        let shape = || ranges.iter().map(|(_, n)| *n as usize);
        let right = tuple.len() == step.kind.array.columns.len()
            && tuple
                .iter()
                .zip(&step.kind.array.columns)
                .all(|(array, dtype)| {
                    array.dtype() == *dtype && array.shape().iter().copied().eq(shape())
                });
        if !right {
            let found: Vec<String> = tuple
                .iter()
                .map(|buffer| buffer.buffer_type().to_string())
                .collect();
            return Err(RunError::internal(format!(
                "the tuple {key:?} of r{} is [{}], but its type says {:?}{:?}",
                step.result.0,
                found.join(", "),
                step.kind.array.columns,
                shape().collect::<Vec<_>>(),
            )));
        }
    }
    Ok(())
}
