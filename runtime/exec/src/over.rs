//! Joins whose result takes the memory of an operand that ends with them.
//!
//! Must not know why it ends.
//!
//! ```text
//! r5 = join k0 (r3, r4); free r4     ->   r5 lies where r4 lay, unless somebody else holds r4's arrays
//! ```

use crate::error::RunError;
use crate::fault::fault;
use crate::local::{Join, Place, absent, chunk, evaluated, in_key_order, options, ranges_at};
use crate::store::Tuples;
use ein_kernels::Chunk;
use ein_plan::{JoinInput, RelationType};
use rayon::prelude::*;
use std::sync::Arc;

/// ⋈ᴸ whose result takes the memory of an operand's tuples where nobody else holds them.
pub(crate) fn join(
    place: &Place<'_>,
    join: &Join<'_>,
    (operand, mut tuples): (usize, Tuples),
    kind: &RelationType,
) -> Result<Tuples, RunError> {
    let relation = join.inputs[operand].relation;
    let owned = place.keys(kind).into_iter().map(|key| {
        let tuple = tuples.remove(&key).and_then(|mut tuple| tuple.pop());
        let array = tuple.ok_or_else(|| absent(relation, &key))?;
        Ok((key, array))
    });
    let owned = owned.collect::<Result<Vec<_>, RunError>>()?;
    in_key_order(owned.into_par_iter().map(|(key, array)| {
        let own = |input: &JoinInput| match input.relation == relation {
            true => {
                let ranges = place.plan.kind(relation).ranges(&key);
                Ok(Chunk {
                    columns: vec![],
                    start: ranges.iter().map(|(start, _)| *start).collect(),
                })
            }
            false => chunk(place, input, &key),
        };
        let operands = join.inputs.iter().map(own);
        let mut operands = operands.collect::<Result<Vec<_>, RunError>>()?;
        let ranges = ranges_at(join, &kind.keys, &key);
        let columns = match Arc::try_unwrap(array) {
            Ok(array) => {
                let (kernel, options) = (join.kernel, options(place.plan));
                let over = (operand, array);
                ein_kernels::run_over(kernel, &ranges, &operands, over, &options, join.memo)
                    .map_err(|error| fault(place.plan, join.inputs, kernel, &error))?
            }
            Err(array) => {
                operands[operand].columns = vec![&array];
                evaluated(place, join, &ranges, &operands)?
            }
        };
        Ok((key, columns.into_iter().map(Arc::new).collect()))
    }))
}
