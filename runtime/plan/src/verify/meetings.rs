//! The rule that every input of a step is where the step needs it.
//!
//! Must not know types: they are verified.
//!
//! ```text
//! r3: it needs r1 where its own tuples are, …; but r1 is …
//! ```

use super::location::{Actual, Coordinate, Required, satisfies};
use crate::ids::RelationId;
use crate::plan::{Operation, Plan, Step};
use crate::relation::RelationType;

/// An input of a step, and which coordinates its keys and the result's have in common.
struct Meeting {
    input: RelationId,
    input_keys: Vec<u32>,
    result_keys: Vec<u32>,
    coordinates: Vec<Coordinate>,
}

/// Every input is where the step needs it. Types are verified.
pub fn locations(plan: &Plan, step: &Step) -> Result<(), String> {
    for meeting in meetings(plan, step) {
        let input = meeting.input;
        let actual = Actual {
            kind: plan.kind(input),
            keys: meeting.input_keys,
        };
        let required = Required {
            result: &step.kind,
            keys: meeting.result_keys,
            coordinates: meeting.coordinates,
        };
        if !satisfies(&actual, &required, &plan.mesh) {
            return Err(format!(
                "it needs {input} where its own tuples are, {}; but {input} is {}",
                required.result, actual.kind
            ));
        }
    }
    Ok(())
}

fn meetings(plan: &Plan, step: &Step) -> Vec<Meeting> {
    let all = |kind: &RelationType| -> Vec<u32> { (0..kind.keys.len() as u32).collect() };
    let below = |kind: &RelationType| -> Vec<Coordinate> {
        let pieces = kind.keys.iter().map(|k| Coordinate::Below(k.pieces));
        pieces.collect()
    };
    // The result's key dimensions are the coordinates.
    let in_result = |input: RelationId, input_keys: Vec<u32>| Meeting {
        input,
        input_keys,
        result_keys: all(&step.kind),
        coordinates: below(&step.kind),
    };
    // The input's key dimensions are the coordinates.
    let in_input = |input: RelationId, result_keys: Vec<u32>| Meeting {
        input,
        input_keys: all(plan.kind(input)),
        result_keys,
        coordinates: below(plan.kind(input)),
    };
    let without = |input: RelationId, gone: Option<u32>| -> Vec<u32> {
        let keys = all(plan.kind(input)).into_iter();
        keys.filter(|key| Some(*key) != gone).collect()
    };
    match &step.operation {
        Operation::Source { .. }
        | Operation::Broadcast { .. }
        | Operation::Shuffle { .. }
        | Operation::Window { .. }
        | Operation::Loop { .. } => {
            vec![]
        }
        Operation::LocalJoin { inputs, fold, .. } => inputs
            .iter()
            .map(|input| {
                let mut meeting = in_result(input.relation, input.keys.clone());
                if let Some(fold) = fold {
                    // The join's key dimensions are the coordinates.
                    meeting.result_keys.clone_from(&fold.keep);
                    let pieces = fold.keys.iter().map(|key| Coordinate::Below(key.pieces));
                    meeting.coordinates = pieces.collect();
                }
                meeting
            })
            .collect(),
        Operation::LocalTile { input, .. } => vec![in_result(*input, all(plan.kind(*input)))],
        Operation::LocalAggregate { input, keep, .. } => vec![in_input(*input, keep.clone())],
        Operation::LocalConcat { input, array_dim } => {
            let gone = plan.kind(*input).array.dims[*array_dim as usize].cut;
            vec![in_input(*input, without(*input, gone))]
        }
        Operation::LocalFilter { input, key, value } => {
            let mut meeting = in_input(*input, without(*input, Some(*key)));
            meeting.coordinates[*key as usize] = Coordinate::Only(*value);
            vec![meeting]
        }
    }
}
