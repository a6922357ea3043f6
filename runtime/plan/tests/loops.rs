//! Loops in plans: text in, the same text out; what does not hold together is refused; memory and traffic of rounds.
#![allow(clippy::unwrap_used)]

use ein_plan::{Plan, encode, lifetime, memory, traffic, verify};

/// x' = A x until its sum is small; the rows of A are cut, x is gathered in every round.
const POWER: &str = r#"plan for 2 sites
files "model.ein"
kernel k0 (f32[10, 10], f32[10]) [i: 10 | j: 10] f32 = sum a0[i, j] * a1[j]
kernel k1 (f32[10]) [| i: 10] f32 = sum a0[i]
kernel k2 (f32[]) [] bool = a0[] < 1.0
r0 A: {i: 10/2} f32[i, 10] @ PART(i) = source A from load("a.npy")   // model.ein:1
r1 x.0: {i: 10/2} f32[i] @ PART(i) = source x.0 from full(1.0)   // model.ein:3
repeat b0 t < 50 until r8; state r1 next r5; collect r5 dim 1; free r1   // model.ein:2
  r2 x: {i: 10/2} f32[i] @ PART(i) = loop state b0.0   // model.ein:3
  r3 x: {i: 10/2} f32[i] @ ALL = broadcast r2; free r2   // model.ein:4
  r4 x: {} f32[10] @ ALL = concat r3 dim 0; free r3   // model.ein:4
  r5 y: {i: 10/2} f32[i] @ PART(i) = join k0(r0{i}, r4{}) over [i, _]   // model.ein:4
  r6 s: {} f32[] @ ALL = join k1(r4{}) over [_]; free r4   // model.ein:5
  repeat b1 u < r9; state r6 next r7; free r6
    r7 s: {} f32[] @ ALL = loop state b1.0
  end b1
  r8 stop: {} bool[] @ ALL = join k2(r6{}) over []; free r6   // model.ein:5
end b0; free r0
r9 x: {i: 10/2} f32[i] @ PART(i) = loop last b0.0   // model.ein:3
r10 t: {} i64[] @ ALL = loop rounds b0   // model.ein:2
r11 xs: {i: 10/2} f32[i, 50] @ PART(i) = loop collected b0.0   // model.ein:6
output x = r9: f32[10]
output t = r10: i64[]
output xs = r11: f32[10, 50]
"#;

/// Without the inner loop, which is there to be refused.
fn power() -> String {
    let inner: Vec<&str> = POWER.lines().filter(|l| !l.contains("b1")).collect();
    inner
        .join("\n")
        .replace("r8", "r7")
        .replace("r9", "r8")
        .replace("r10", "r9")
        .replace("r11", "r10")
        + "\n"
}

#[test]
fn loops_print_as_they_are_written() {
    let plan: Plan = power().parse().unwrap();
    assert_eq!(plan.to_string(), power());
    assert_eq!(verify::verify(&plan), Ok(()));
    assert_eq!(
        encode::decode(&encode::encode(&plan)).unwrap().to_string(),
        power()
    );
    assert_eq!(POWER.parse::<Plan>().unwrap().to_string(), POWER);
    assert_eq!(lifetime::ends(&plan).enters, [[ein_plan::RelationId(1)]]);
    assert_eq!(plan.expected_times(), [50]);
}

#[test]
fn garbage_in_place_of_a_loop_is_refused() {
    let plan: Plan = power().parse().unwrap();
    let bytes = encode::encode(&plan);
    for at in 6..bytes.len() {
        for change in [1, 2, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(plan) = encode::decode(&changed) {
                let _ = (
                    plan.to_string(),
                    memory::peaks(&plan),
                    traffic::total(&plan),
                );
            }
        }
    }
}

#[test]
fn rounds_are_counted_and_buffers_used_again() {
    let plan: Plan = power().parse().unwrap();
    // Every round each site gets the other's five numbers.
    assert_eq!(traffic::by_step(&plan)[3].floats, 10);
    assert_eq!(traffic::total(&plan).floats, 10 * 50);
    assert_eq!(traffic::total_of(&plan, &[7]).bytes, 10 * 4 * 7);
    assert_eq!(traffic::received(&plan)[0].floats, 5 * 50);
    // A's rows, the room for 50 columns; x is gone when it is gathered: x in pieces and x whole are the most.
    let peaks = memory::peaks(&plan);
    assert_eq!(peaks[0].bytes, 4 * (50 + 250 + 10 + 10));
    assert_eq!(peaks[0].step, 4);
}

#[test]
fn what_does_not_hold_together_is_refused() {
    let refused = |from: &str, to: &str| {
        let text = power();
        assert!(text.contains(from), "{from}");
        let plan: Plan = text.replacen(from, to, 1).parse().unwrap();
        verify::verify(&plan).unwrap_err().to_string()
    };
    assert_eq!(
        refused("next r5;", "next r4;"),
        "b0: the state 0 begins as {i: 10/2} f32[i] @ PART(i) and goes on as {} f32[10] @ ALL"
    );
    assert_eq!(
        refused("until r7", "until r6"),
        "b0: its condition r6 is {} f32[] @ ALL"
    );
    assert_eq!(
        refused("t < 50", "t < r0"),
        "r10: what is collected needs a bound that is a number"
    );
    assert_eq!(
        refused("state r1 next", "state r4 next"),
        "r2: it is no part of a state that begins as {} f32[10] @ ALL"
    );
    assert_eq!(
        refused("until r7", "until r9"),
        "b0: its rounds end with r9, which is not had then"
    );
    assert_eq!(
        refused("r4{}) over [_]; free r4", "r8{}) over [_]; free r4"),
        "r6: r8 does not stand before it"
    );
    assert_eq!(
        refused("; free r1   //", "   //"),
        "plan: not every relation is freed once"
    );
    assert_eq!(
        refused(
            "join k1(r4{}) over [_]; free r4",
            "join k1(r4{}) over [_]; free r4, r5"
        ),
        "r6: it frees r5, whose last use it is not"
    );
    assert_eq!(
        refused("end b0; free r0", "end b0; free r0, r1"),
        "b0: it frees r1, whose last use it is not"
    );
    assert_eq!(
        refused("output x = r8: f32[10]", "output x = r5: f32[10]"),
        "output x: r5 is inside a loop"
    );
    assert_eq!(
        refused("r8 x: {i: 10/2} f32[i]", "r8 x: {i: 10/5} f32[i]"),
        "r8: it is no part of a state that begins as {i: 10/2} f32[i] @ PART(i)"
    );
    assert_eq!(
        refused("f32[i, 50]", "f32[i, 51]"),
        "r10: its type should be {i: 10/2} f32[i, 50] @ PART(i)"
    );
    assert_eq!(
        refused("loop rounds b0", "loop counter b0"),
        "r9: it does not stand where b0 has that value"
    );
    assert_eq!(
        refused("loop rounds b0", "loop rounds b7"),
        "r9: there is no loop b7"
    );
    assert_eq!(
        refused(
            "r5 y: {i: 10/2} f32[i] @ PART(i) = join k0(r0{i}, r4{}) over [i, _]",
            "r5 y: {i: 10/2} f32[i] @ PART(i) = source y from load(\"y\")"
        ),
        "r5: a source that is read stands outside all loops"
    );
    let inner: Plan = POWER.parse().unwrap();
    assert_eq!(
        verify::verify(&inner).unwrap_err().to_string(),
        "b1: it begins with r9, which is not had then"
    );
    let unread = power()
        .replace("free r0, r1", "free r0")
        .replace("r8{}", "r5{i}");
    let unread = unread.replace(
        "output x = r8",
        "r11 z: {i: 10/2} f32[i] @ PART(i) = shuffle r5; free r11\noutput x = r8",
    );
    let plan: Plan = unread.parse().unwrap();
    assert_eq!(
        verify::verify(&plan).unwrap_err().to_string(),
        "r11: it reads r5 from inside a loop that it is outside of"
    );
}

#[test]
fn wrong_lines_have_a_place() {
    let wrong = |from: &str, to: &str| {
        let text = power();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
            .parse::<Plan>()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(wrong("end b0; free r0\n", ""), "20:1: a loop does not end");
    assert_eq!(
        wrong("end b0", "end b1"),
        "15:5: this loop is not the one to end"
    );
    assert_eq!(
        wrong("repeat b0", "repeat b1"),
        "8:74: loops are numbered from b0 up"
    );
    assert_eq!(
        wrong("loop state b0.0", "loop begin b0.0"),
        "9:43: a value of a loop is `counter`, `state`, `last`, `rounds` or `collected`"
    );
    assert_eq!(
        wrong("loop state b0.0", "loop state b0"),
        "9:49: expected `b0.0` or the like, found `b0`"
    );
}
