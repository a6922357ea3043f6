//! How the members of a sweep are taken in each block of rows: the text of a plan, then the loops that it gets.
#![allow(clippy::unwrap_used)]

use ein_plan::print::WithLoops;
use ein_plan::verify::verify;
use ein_plan::{Plan, encode};

/// A plan with what is freed, and loops.
fn scheduled(text: &str) -> Plan {
    let mut plan: Plan = text.parse().unwrap();
    let ends = ein_plan::lifetime::ends(&plan);
    for (step, frees) in plan.steps.iter_mut().zip(ends.steps) {
        step.frees = frees;
    }
    plan.schedule();
    plan
}

fn lines(plan: &Plan) -> String {
    let printed = WithLoops(plan).to_string();
    let lines = printed.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("loops")).collect();
    lines.join("\n")
}

/// The loops of a plan that are chosen, and that its text and its bytes say the same.
#[track_caller]
fn loops(text: &str, expected: &str) -> Plan {
    let plan = scheduled(text);
    verify(&plan).unwrap();
    assert_eq!(lines(&plan), expected);
    assert_eq!(WithLoops(&plan).to_string().parse::<Plan>().unwrap(), plan);
    assert_eq!(encode::decode(&encode::encode(&plan)).unwrap(), plan);
    plan
}

/// The verifier's message for the plan with other loops.
#[track_caller]
fn refused(plan: &Plan, loops: (&str, &str), message: &str) {
    let text = WithLoops(plan).to_string();
    assert!(text.contains(loops.0), "{text}");
    let other: Plan = text.replace(loops.0, loops.1).parse().unwrap();
    assert_eq!(verify(&other).unwrap_err().to_string(), message);
}

const ATTENTION: &str = "plan for 1 sites
kernel k0 (f32[512, 64], f32[512, 64]) [t: 512, s: 512 | d: 64] f32 = sum a0[t, d] * a1[s, d] / 8.0
kernel k1 (f32[512, 512]) [t: 512, s: 512] f32 = where(and(s <= t, s > t - 300), a0[t, s], -inf)
kernel k2 (f32[512, 512]) [t: 512 | s: 512] f32 = max a0[t, s]
kernel k3 (f32[512, 512], f32[512]) [t: 512, s: 512] f32 = exp(a0[t, s] - a1[t])
kernel k4 (f32[512, 512]) [t: 512 | s: 512] f32 = sum a0[t, s]
kernel k5 (f32[512, 512], f32[512, 64], f32[512]) [t: 512, d: 64 | s: 512] f32 = sum a0[t, s] * a1[s, d] / a2[t]
r0 q: {} f32[512, 64] @ ALL = source q from unbound
r1 k: {} f32[512, 64] @ ALL = source k from unbound
r2 v: {} f32[512, 64] @ ALL = source v from unbound
r3 p: {} f32[512, 512] @ ALL = join k0(r0{}, r1{}) over [_, _, _]
r4 c: {} f32[512, 512] @ ALL = join k1(r3{}) over [_, _]
r5 m: {} f32[512] @ ALL = join k2(r4{}) over [_, _]
r6 e: {} f32[512, 512] @ ALL = join k3(r4{}, r5{}) over [_, _]
r7 z: {} f32[512] @ ALL = join k4(r6{}) over [_, _]
r8 o: {} f32[512, 64] @ ALL = join k5(r6{}, r2{}, r7{}) over [_, _, _]
sweep r3, r4, r5, r6, r7, r8 rows 1
output o = r8: f32[512, 64]
";

#[test]
fn only_what_a_mask_chooses_is_computed() {
    let plan = loops(
        ATTENTION,
        "loops r3: matmul rows [t] columns [s] inner [d] within m1
loops r4: elementwise where s >= t - 299 and s < t + 1 else -inf over m0
loops r5: row_reduction
loops r6: elementwise where s >= t - 299 and s < t + 1
loops r7: row_reduction
loops r8: matmul rows [t] columns [d] inner [s] skips zeros of m3 along s",
    );
    let message = "r4: its rows are not one number outside these columns";
    refused(&plan, ("s < t + 1 else", "s < t + 2 else"), message);
    refused(&plan, ("else -inf", "else 0.0"), message);
    refused(
        &plan,
        ("within m1", "within m3"),
        "r3: the mask of this member does not choose all that is wanted of it",
    );
    refused(
        &plan,
        ("over m0", "over m2"),
        "r4: it cannot take the memory of this member",
    );
    refused(
        &plan,
        ("zeros of m3", "zeros of m1"),
        "r8: these terms are no zeros of this member",
    );
    refused(
        &plan,
        (
            "loops r5: row_reduction",
            "loops r5: row_reduction within m3",
        ),
        "r5: the mask of this member does not choose all that is wanted of it",
    );
    // Without the mask of one member, nothing may lean on it.
    let whole = "loops r4: elementwise\n";
    refused(
        &plan,
        (
            "loops r4: elementwise where s >= t - 299 and s < t + 1 else -inf over m0\n",
            whole,
        ),
        "r3: the mask of this member does not choose all that is wanted of it",
    );
}

#[test]
fn rows_of_few_columns_are_computed_whole() {
    loops(
        &ATTENTION.replace("512", "128"),
        "loops r3: matmul rows [t] columns [s] inner [d]
loops r4: elementwise
loops r5: row_reduction
loops r6: elementwise
loops r7: row_reduction
loops r8: matmul rows [t] columns [d] inner [s]",
    );
}

#[test]
fn one_loop_computes_element_wise_members_and_gathers_their_terms() {
    let text = "plan for 1 sites
kernel k0 (f32[512, 64], f32[512, 64]) [i: 512, j: 64] f32 = a0[i, j] * 0.9 + a1[i, j] * 0.1
kernel k1 (f32[512, 64]) [ | i: 512, j: 64] f32 = norm a0[i, j]
kernel k2 (f32[512, 64], f32[512, 64]) [i: 512, j: 64] f32 = a1[i, j] - a0[i, j] * 0.5
kernel k3 (f32[512, 64]) [i: 512 | j: 64] f32 = max a0[i, j]
kernel k4 (f32[512, 64], f32[512]) [i: 512, j: 64] f32 = a0[i, j] * a1[i]
r0 m: {} f32[512, 64] @ ALL = source m from unbound
r1 g: {} f32[512, 64] @ ALL = source g from unbound
r2 a: {} f32[512, 64] @ ALL = join k0(r0{}, r1{}) over [_, _]
r3 n: {} f32[] @ ALL = join k1(r2{}) over [_, _]
r4 b: {} f32[512, 64] @ ALL = join k2(r2{}, r1{}) over [_, _]
r5 x: {} f32[512] @ ALL = join k3(r4{}) over [_, _]
r6 y: {} f32[512, 64] @ ALL = join k4(r4{}, r5{}) over [_, _]
sweep r2, r3, r4, r5, r6 rows 1
output n = r3: f32[]
output y = r6: f32[512, 64]
";
    let plan = loops(
        text,
        "loops r2: elementwise
loops r3: strips
loops r4: elementwise together [m0, m1, m2]
loops r5: row_reduction
loops r6: elementwise",
    );
    for other in ["[m0, m2]", "[m0, m1]", "[m0, m1, m2, m4]"] {
        refused(
            &plan,
            ("together [m0, m1, m2]", &format!("together {other}")),
            "r4: one loop does not compute these members",
        );
    }
}
