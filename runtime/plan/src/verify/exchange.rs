//! What holds of exchanges. Steps, loops and sweeps are verified before.
//!
//! Must not know why movements go together.
//!
//! ```text
//! exchanges: r5 reads r3 before the exchange of r3 has come
//! ```

use crate::plan::Plan;

/// All exchanges of a plan.
pub(super) fn exchanges(plan: &Plan) -> Result<(), String> {
    let (blocks, sweeps) = (plan.blocks_of_steps(), plan.sweeps_of_steps());
    let mut before = None;
    for exchange in &plan.exchanges {
        let (Some(first), last) = (exchange.members.first(), exchange.last()) else {
            return Err("an exchange has members".into());
        };
        let adjacent = exchange
            .members
            .windows(2)
            .all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
        if !adjacent || (exchange.until.0 as usize) >= plan.steps.len() || exchange.until < last {
            return Err(format!(
                "the members of the exchange of {first} stand one behind the other, and it ends behind them"
            ));
        }
        if before.is_some_and(|before| *first <= before) {
            return Err(format!(
                "the exchange of {first} stands behind a later one, or shares members with it"
            ));
        }
        before = Some(last);
        if exchange.members.len() == 1 && exchange.until == last {
            return Err(format!("the exchange of {first} is nothing but a step"));
        }
        if let Some(member) = (exchange.members.iter()).find(|m| !plan.step(**m).operation.moves())
        {
            return Err(format!("{member} moves nothing"));
        }
        let within = first.0 as usize..exchange.until.0 as usize + 1;
        if within
            .clone()
            .any(|step| blocks[step] != blocks[within.start])
        {
            return Err(format!("a loop begins or ends in the exchange of {first}"));
        }
        if let Some(sweep) = sweeps[exchange.until.0 as usize]
            && plan.sweeps[sweep].last() != exchange.until
        {
            return Err(format!(
                "the exchange of {first} ends within a sweep, at {}",
                exchange.until
            ));
        }
        for step in &plan.steps[within] {
            let inputs = step.operation.inputs();
            if let Some(input) = inputs.iter().find(|i| exchange.members.contains(i)) {
                return Err(format!(
                    "{} reads {input} before the exchange of {first} has come",
                    step.result
                ));
            }
        }
        // A sweep that began before takes its members where its last one stands.
        for member in &exchange.members {
            for input in plan.step(*member).operation.inputs() {
                let late = sweeps[input.0 as usize]
                    .is_some_and(|sweep| plan.sweeps[sweep].last() > *member);
                if late {
                    return Err(format!("{member} moves {input} before its sweep is taken"));
                }
            }
        }
    }
    Ok(())
}
