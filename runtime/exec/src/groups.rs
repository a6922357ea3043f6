//! The groups of operations that walking a plan compiles: for code that is made before there are data.
//!
//! Those of the first tuple of each step stand for all, as tuples nearly always lie alike. Must not know data.
//!
//! ```text
//! r2 = join k0, r3 = join k1, sweep r2, r3   ->   f32 (v, v, u) v3 = mul v0 v2; v4 = add v3 v1 -> v3, v4
//! ```

use crate::local::{Join, ranges_at};
use ein_fused::Group;
use ein_kernels::{Origin, Outline};
use ein_plan::{JoinInput, KeyDim, Operation, Plan, RelationId, Sweep};

/// The groups of a plan, each once.
pub(crate) fn groups(plan: &Plan) -> Vec<Group> {
    let mut found: Vec<Group> = vec![];
    let steps = plan
        .steps
        .iter()
        .flat_map(|step| of_step(plan, step.result));
    let sweeps = plan.sweeps.iter().flat_map(|sweep| of_sweep(plan, sweep));
    for group in steps.chain(sweeps) {
        if !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// A join, and the dimensions of the keys that it runs over.
fn join(plan: &Plan, result: RelationId) -> Option<(Join<'_>, &[KeyDim])> {
    let step = plan.step(result);
    let join = Join::of(plan, step)?;
    let keys = match &step.operation {
        Operation::LocalJoin {
            fold: Some(fold), ..
        } => &fold.keys,
        _ => &step.kind.keys,
    };
    Some((join, keys))
}

/// The range of each dimension of an input's part in the first tuple.
fn place(plan: &Plan, input: &JoinInput) -> Vec<(u64, u64)> {
    let first = vec![0; input.keys.len()];
    plan.kind(input.relation).ranges(&first)
}

fn of_step(plan: &Plan, result: RelationId) -> Vec<Group> {
    let Some((join, keys)) = join(plan, result) else {
        return vec![];
    };
    if join.kernel.library().is_some() {
        return vec![];
    }
    let places: Vec<_> = join.inputs.iter().map(|input| place(plan, input)).collect();
    let ranges = ranges_at(&join, keys, &vec![0; keys.len()]);
    ein_kernels::groups(join.kernel, &ranges, &places)
}

fn of_sweep(plan: &Plan, sweep: &Sweep) -> Vec<Group> {
    let (passing, over) = (plan.passing(), plan.overwrites_in(sweep));
    let mut given: Vec<JoinInput> = vec![];
    let (mut members, mut places) = (vec![], vec![]);
    for member in &sweep.members {
        let Some((join, keys)) = join(plan, *member) else {
            return vec![];
        };
        let origin =
            |input: &JoinInput| match sweep.members.iter().position(|m| *m == input.relation) {
                Some(made) => Origin::Made(made),
                None => {
                    let known = given.iter().position(|known| known == input);
                    Origin::Given(known.unwrap_or_else(|| {
                        given.push(input.clone());
                        given.len() - 1
                    }))
                }
            };
        let operands = join.inputs.iter().map(origin).collect();
        places.push(join.inputs.iter().map(|input| place(plan, input)).collect());
        members.push(Outline {
            kernel: join.kernel,
            ranges: ranges_at(&join, keys, &vec![0; keys.len()]),
            operands,
            kept: !passing[member.0 as usize],
            over: over.iter().any(|(result, _)| result == member),
        });
    }
    ein_kernels::groups_of_sweep(&members, sweep.rows as usize, &places)
}
