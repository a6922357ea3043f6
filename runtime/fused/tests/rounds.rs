//! Loops of small steps as one program, and their code.
#![allow(clippy::unwrap_used, missing_docs)]

use cranelift_codegen::settings;
use ein_fused::rounds::{Calls, function};
use ein_plan::{BlockId, Plan, SmallRounds};

/// A loop over `x` whose step has this expression of `a0` (the state) and `a1` (given).
fn rounds(expression: &str, rounds: &str) -> Result<SmallRounds, String> {
    let text = format!(
        "plan for 1 sites
kernel k0 (f64[], f64[4]) [] f64 = {expression}
r0 x: {{}} f64[] @ ALL = source x from full(64.0)
r1 w: {{}} f64[4] @ ALL = source w from fed
repeat b0 t < {rounds}; state r0 next r3; free r0
  r2 x: {{}} f64[] @ ALL = loop state b0.0
  r3 x: {{}} f64[] @ ALL = join k0(r2{{}}, r1{{}}) over []; free r2
end b0; free r1
r4 x: {{}} f64[] @ ALL = loop last b0.0
output x = r4: f64[]
"
    );
    let plan: Plan = text.parse().unwrap_or_else(|error| panic!("{text}{error}"));
    plan.small_rounds(BlockId(0))
}

fn code(rounds: &SmallRounds) -> String {
    let calls = Calls {
        f32s: 1,
        f64s: 2,
        i32s: 3,
        i64s: 4,
        powers_f32: 5,
        powers_f64: 6,
        steps: 7,
    };
    let isa = cranelift_native::builder().unwrap();
    let isa = isa
        .finish(settings::Flags::new(settings::builder()))
        .unwrap();
    function(rounds, &calls, isa.frontend_config()).to_string()
}

#[test]
fn a_loop_is_one_program() {
    let found = rounds("a0[] * a1[2]", "100").unwrap();
    assert_eq!((found.steps.len(), found.points()), (1, 1));
    // The state, what is given, and what the step makes.
    assert_eq!(found.places.len(), 3);
    assert_eq!(
        (found.body.states[0].place, found.body.states[0].next),
        (0, 2)
    );
    assert_eq!(rounds("a0[]", "31").unwrap_err(), "it makes 31 rounds");
}

/// Positions that are known to be inside are not tested: the only branches are those of the rounds.
#[test]
fn code_tests_and_calls_what_it_must() {
    let plain = code(&rounds("a0[] * a1[2] + 1.0_f64", "100").unwrap());
    assert!(!plain.contains("call"), "{plain}");
    assert_eq!(plain.matches("brif ").count(), 1, "{plain}");
    let called = code(&rounds("exp(a0[]) + a1[2]", "100").unwrap());
    assert_eq!(called.matches("call_indirect ").count(), 1, "{called}");
    // A position that may be outside leads out of the rounds.
    let tested = code(&rounds("a0[] + a1[i64(a0[])]", "100").unwrap());
    assert_eq!(tested.matches("brif ").count(), 2, "{tested}");
    assert!(
        tested.contains("icmp_imm") || tested.contains("icmp ult"),
        "{tested}"
    );
}
