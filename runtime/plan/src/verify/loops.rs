//! Verifies the loops of a plan: every local join has loops that compute its kernel, and nothing else has.
//!
//! Loops that are slower than others pass. Steps are verified before. Must not know how a loop is carried out.
//!
//! ```text
//! r2: loops of kind matmul: its terms are no product of two factors
//! ```

use super::VerifyError;
use crate::plan::Plan;
use crate::schedule::choose::fits;

/// The loops of all steps.
pub(super) fn loops(plan: &Plan) -> Result<(), VerifyError> {
    let of = plan.sweeps_of_steps();
    for step in &plan.steps {
        let at = |message| VerifyError {
            place: step.result.to_string(),
            message,
        };
        match (plan.facts(step), plan.loops_of(step.result)) {
            (None, None) => {}
            (None, Some(_)) => return Err(at("it has loops but computes nothing".into())),
            (Some(_), None) => return Err(at("it has no loops".into())),
            (Some(facts), Some(loops)) => {
                if loops.fixed != facts.kernel.fixed() {
                    return Err(at("its loops run over other points than the guard's".into()));
                }
                // The members of a sweep are looked at together.
                if of[step.result.0 as usize].is_some() {
                    continue;
                }
                if loops.fused.is_some() {
                    return Err(at("it computes others, but is in no sweep".into()));
                }
                if !loops.rows.is_plain() {
                    return Err(at(
                        "it is taken by blocks of rows, but is in no sweep".into()
                    ));
                }
                let kind = loops.kind.name();
                fits(&facts, &loops.kind)
                    .map_err(|why| at(format!("loops of kind {kind}: {why}")))?;
            }
        }
    }
    let passing = plan.passing();
    for sweep in &plan.sweeps {
        plan.fits_rows(sweep, &passing)
            .map_err(|(member, message)| VerifyError {
                place: member.to_string(),
                message,
            })?;
    }
    let there = |relation: &crate::RelationId| (relation.0 as usize) < plan.steps.len();
    match plan.loops.keys().find(|relation| !there(relation)) {
        None => Ok(()),
        Some(relation) => Err(VerifyError {
            place: relation.to_string(),
            message: "there are loops of a step that does not exist".into(),
        }),
    }
}
