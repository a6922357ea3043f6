//! Before which movements sites have to agree that none of them has failed.
//!
//! Most steps cannot fail: they read where their operands are, divide no integers, load nothing. Between two movements with
//! nothing but such steps there is nothing to agree on. Must not know how a step is carried out.
//!
//! ```text
//! source A from load, broadcast A (agree), join A[i, k] * B[k, j], broadcast C (no need)
//! ```

use ein_plan::lifetime::{Event, events};
use ein_plan::{DType, Function, IndexId, Kernel, Node, Operation, Plan, Scalar, Source, Step};

/// By step: whether it may stop the run by what the data are.
pub(crate) fn fallible(plan: &Plan) -> Vec<bool> {
    let mut fallible: Vec<bool> = plan.steps.iter().map(|step| may_fail(plan, step)).collect();
    for sweep in &plan.sweeps {
        // All of them are taken where the last one stands.
        let any = sweep
            .members
            .iter()
            .any(|member| fallible[member.0 as usize]);
        fallible[sweep.last().0 as usize] |= any;
    }
    fallible
}

/// By step: whether it moves tuples after something that may fail since the sites agreed last.
pub(crate) fn checks(plan: &Plan) -> Vec<bool> {
    let mut checking = Checking {
        plan,
        fallible: fallible(plan),
        checks: vec![false; plan.steps.len()],
        rests: plan.rests(),
    };
    checking.walk(&events(plan), false);
    checking.checks
}

struct Checking<'a> {
    plan: &'a Plan,
    fallible: Vec<bool>,
    checks: Vec<bool>,
    /// By step: whether something goes to disk in front of it or comes back, for which there may be no room.
    rests: Vec<bool>,
}

impl Checking<'_> {
    /// Walks events; `open`: whether something may have failed before them that nobody knows of. The same behind them.
    fn walk(&mut self, events: &[Event], mut open: bool) -> bool {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            match *event {
                Event::Step(step) => {
                    open |= self.rests[step];
                    match self.plan.steps[step].operation {
                        Operation::Broadcast { .. }
                        | Operation::Shuffle { .. }
                        | Operation::Window { .. } => {
                            self.checks[step] |= open;
                            open &= !self.checks[step];
                        }
                        _ => open |= self.fallible[step],
                    }
                }
                Event::Exit(_) => {}
                Event::Enter(block) => {
                    let length = events[at..].iter().position(|e| *e == Event::Exit(block));
                    let body = &events[at..at + length.unwrap_or(0)];
                    at += body.len();
                    // There may be no round, one, or more.
                    let behind = self.walk(body, open) || open;
                    open = self.walk(body, behind) || behind;
                }
            }
        }
        open
    }
}

/// Whether a step may stop the run by what the data are, or because the disk has no room.
fn may_fail(plan: &Plan, step: &Step) -> bool {
    if plan.is_visited(step) {
        return true;
    }
    match &step.operation {
        Operation::Source { source, .. } => {
            matches!(
                source,
                Source::Load(_) | Source::Unbound | Source::Listed { .. }
            ) || source.is_given()
        }
        Operation::LocalJoin { kernel, .. } => kernel_may_fail(&plan.kernels[kernel.0 as usize]),
        _ => false,
    }
}

fn kernel_may_fail(kernel: &Kernel) -> bool {
    let reduced = &kernel.indices[kernel.output_rank as usize..];
    let may_be_empty = kernel.guard.is_some() || reduced.iter().any(|index| index.extent == 0);
    let chooses = kernel.finish && kernel.reduction.is_some_and(|r| r.is_arg());
    (chooses && may_be_empty)
        || kernel.library().is_some()
        || kernel.graph.iter().any(|(_, node, dtype)| match node {
            Node::Apply(Function::FloorDiv | Function::Rem, arguments) => {
                let divisor = kernel.graph.node(arguments[1]);
                let whole = matches!(dtype, DType::I32 | DType::I64);
                whole && !matches!(divisor, Node::Constant(Scalar::Int(by)) if *by != 0)
            }
            Node::Apply(Function::Pow, _) => matches!(dtype, DType::I32 | DType::I64),
            Node::Apply(Function::Within, _) => true,
            Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } => {
                let shape = &kernel.operands[*operand as usize].shape;
                let mut dims = positions.iter().zip(shape);
                !dims.all(|(position, extent)| is_inside(kernel, *position, *extent))
            }
            _ => false,
        })
}

/// Whether a position is inside a dimension at every point.
fn is_inside(kernel: &Kernel, position: ein_plan::NodeId, extent: u64) -> bool {
    let Some(form) = kernel.graph.as_affine(position) else {
        return false;
    };
    let (mut low, mut high) = (i128::from(form.constant), i128::from(form.constant));
    for (IndexId(index), by) in &form.terms {
        let last = i128::from(kernel.indices[*index as usize].extent).saturating_sub(1);
        let far = i128::from(*by).saturating_mul(last.max(0));
        low = low.saturating_add(far.min(0));
        high = high.saturating_add(far.max(0));
    }
    low >= 0 && high < i128::from(extent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_may_fail_is_agreed_on() {
        let text = "plan for 2 sites
kernel k0 (f64[8]) [i: 8] f64 = a0[i] * 0.5_f64
kernel k1 (f64[8], i64[]) [i: 8] f64 = a0[i] + a0[a1[]]
r0 x: {i: 8/2} f64[i] @ PART(i) = source x from load(\"x.npy\")
r1 s: {} i64[] @ ALL = source s from full(3)
repeat b0 t < 3; state r0 next r4; free r0
  r2 x: {i: 8/2} f64[i] @ PART(i) = loop state b0.0
  r3 x: {i: 8/2} f64[i] @ ALL = broadcast r2; free r2
  r4 x: {i: 8/2} f64[i] @ PART(i) = join k0(r3{i}) over [i]; free r3
end b0
r5 x: {i: 8/2} f64[i] @ PART(i) = loop last b0.0
r6 x: {i: 8/2} f64[i] @ ALL = broadcast r5; free r5
r7 x: {} f64[8] @ ALL = concat r6 dim 0; free r6
r8 y: {} f64[8] @ ONE = join k1(r7{}, r1{}) over [_]; free r7, r1
r9 y: {} f64[8] @ ALL = broadcast r8; free r8
r10 z: {} f64[8] @ ONE = join k0(r9{}) over [_]; free r9
r11 z: {} f64[8] @ ALL = broadcast r10; free r10
output z = r11: f64[8]
";
        let plan: Plan = text.parse().unwrap();
        ein_plan::verify::verify(&plan).unwrap();
        let checked = checks(&plan);
        let steps: Vec<usize> = (0..plan.steps.len()).filter(|at| checked[*at]).collect();
        // The source is agreed on in the first round, or behind the loop if there is none.
        assert_eq!(steps, [3, 6, 9]);
    }
}
