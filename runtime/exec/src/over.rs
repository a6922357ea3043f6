//! Joins whose result takes the memory of an operand that ends with them.
//!
//! Must not know why it ends.
//!
//! ```text
//! r5 = join k0 (r3, r4); free r4     ->   r5 lies where r4 lay, unless somebody else holds r4's arrays
//! ```

use crate::error::RunError;
use crate::fault::fault;
use crate::local::{self, Join, Place, absent, in_key_order, launch, operand_of, ranges_at};
use crate::store::Tuples;
use ein_plan::{JoinInput, RelationType};
use rayon::prelude::*;

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
        let buffer = tuple.ok_or_else(|| absent(relation, &key))?;
        Ok((key, buffer))
    });
    let owned = owned.collect::<Result<Vec<_>, RunError>>()?;
    in_key_order(owned.into_par_iter().map(|(key, buffer)| {
        let own = |input: &JoinInput| match input.relation == relation {
            true => Ok(operand_of(place.plan.kind(relation), &key, &[])),
            false => local::operand(place, input, &key),
        };
        let operands = join.inputs.iter().map(own);
        let operands = operands.collect::<Result<Vec<_>, RunError>>()?;
        let launch = launch(join, ranges_at(join, &kind.keys, &key), operands);
        let columns = place.device.run_over(launch, (operand, buffer));
        let columns =
            columns.map_err(|error| fault(place.plan, join.inputs, join.kernel, &error))?;
        Ok((key, columns))
    }))
}
