//! What holds of sweeps. Steps and loops are verified before.
//!
//! Must not know why a sweep was made.
//!
//! ```text
//! sweeps: r3 reads r1 before the sweep of r1 is taken
//! ```

use crate::plan::Plan;
use crate::plan::Sweep;

/// All sweeps of a plan.
pub(super) fn sweeps(plan: &Plan) -> Result<(), String> {
    let blocks = plan.blocks_of_steps();
    let mut seen = vec![false; plan.steps.len()];
    for sweep in &plan.sweeps {
        let ascending = sweep.members.windows(2).all(|pair| pair[0] < pair[1]);
        let there = (sweep.last().0 as usize) < plan.steps.len();
        if !ascending || !there || sweep.members.len() < 2 {
            return Err("a sweep has two or more members, in order".into());
        }
        for member in &sweep.members {
            if std::mem::replace(&mut seen[member.0 as usize], true) {
                return Err(format!("{member} is in two sweeps"));
            }
        }
        let first = sweep.members[0];
        let mut made = Sweep {
            members: vec![first],
            rows: plan.kind(first).array.dims.len() as u32,
        };
        if !plan.may_sweep(plan.step(first)) {
            return Err(format!("{first} cannot be in a sweep"));
        }
        for member in &sweep.members[1..] {
            let rows = plan.rows_with(&made, plan.step(*member));
            made.rows =
                rows.ok_or_else(|| format!("{member} cannot be in the sweep of {first}"))?;
            made.members.push(*member);
        }
        if sweep.rows == 0 || sweep.rows > made.rows {
            return Err(format!(
                "the members of the sweep of {first} have {} dimensions of rows in common, not {}",
                made.rows, sweep.rows
            ));
        }
        let within = first.0 as usize..sweep.last().0 as usize + 1;
        if within
            .clone()
            .any(|step| blocks[step] != blocks[within.start])
        {
            return Err(format!("a loop begins or ends in the sweep of {first}"));
        }
        for step in &plan.steps[within] {
            let mut inputs = step.operation.inputs().into_iter();
            let early = inputs.find(|input| sweep.members.contains(input));
            if let Some(input) = early
                && !sweep.members.contains(&step.result)
            {
                return Err(format!(
                    "{} reads {input} before the sweep of {first} is taken",
                    step.result
                ));
            }
        }
    }
    // A member is made later than it stands; what another sweep's member reads must have been made by then.
    let of = plan.sweeps_of_steps();
    for sweep in &plan.sweeps {
        for member in &sweep.members {
            for input in plan.step(*member).operation.inputs() {
                let Some(other) = of[input.0 as usize] else {
                    continue;
                };
                let other = &plan.sweeps[other];
                if other != sweep && other.last() > sweep.last() {
                    return Err(format!("{member} reads {input} before its sweep is taken"));
                }
            }
        }
    }
    Ok(())
}
