//! Kernels, types and plans: text in, the same text out; wrong text is an error with a place.

#![allow(clippy::unwrap_used)]

use ein_plan::{Kernel, Plan, RelationType, Source, encode, memory, traffic, verify};

/// A product over a cut index: partial sums are shuffled to where they are added.
const SPLIT_K: &str = r#"plan for 2 sites, deterministic
files "model.ein"
kernel k0 (f32[10, 6], f32[6, 8]) [i: 10, j: 8 | k: 6] f32 = partial sum a0[i, k] * a1[k, j]
kernel k1 (f32[10, 8], f16[]) [i: 10, j: 8] f16 = a0[i, j] / (1.0 + a1[])
r0 A: {i: 10/2, k: 6/3} f32[i, k] @ PART(k) = source A from load("a.npy")   // model.ein:1
r1 B: {k: 6/3} f32[k, 8] @ PART(k) = source B from load("b.npz", "weights")   // model.ein:2
r2 C.partial: {i: 10/2, k: 6/3} f32[i, 8] @ PART(k) = join k0(r0{i, k}, r1{k}) over [i, _, k]; free r0, r1   // model.ein:4
r3 C.partial: {i: 10/2, k: 6/3} f32[i, 8] @ PART(i) = shuffle r2; free r2   // model.ein:4
r4 C: {i: 10/2} f32[i, 8] @ PART(i) = aggregate sum r3 keep {i}; free r3   // model.ein:4
r5 s: {} f16[] @ ALL = source s from full(1.0)
r6 D: {i: 10/2} f16[i, 8] @ PART(i) = join k1(r4{i}, r5{}) over [i, _]; free r4, r5
r7 D: {i: 10/2} f16[i, 8] @ ALL = broadcast r6; free r6
r8 D: {} f16[10, 8] @ ALL = concat r7 dim 0
r9 D: {j: 8/4} f16[10, j] @ ALL = tile r8 dim 1
r10 D: {} f16[10, 2] @ ALL = filter r9 where j = 2; free r9
output D = r7: f16[10, 8] -> "d.npy"   // model.ein:6
output whole = r8: f16[10, 8]
output part = r10: f16[10, 2]
"#;

/// A product on a grid: rows and columns are gathered, the pieces of k are folded.
const GRID: &str = r#"plan for 5 sites mesh 2x2
kernel k0 (f32[8, 6], f32[6, 4]) [i: 8, j: 4 | k: 6] f32 = partial sum a0[i, k] * a1[k, j]
r0 A: {i: 8/2, k: 6/4@xy} f32[i, k] @ GRID(i, k) = source A from load("a.npy")
r1 B: {k: 6/4@xy, j: 4/2@y} f32[k, j] @ GRID(k, j) = source B from load("b.npy")
r2 A: {i: 8/2, k: 6/4@xy} f32[i, k] @ GRID(i, *) = broadcast r0; free r0
r3 B: {k: 6/4@xy, j: 4/2@y} f32[k, j] @ GRID(*, j) = broadcast r1; free r1
r4 C: {i: 8/2, j: 4/2@y} f32[i, j] @ GRID(i, j) = fold {i: 8/2, j: 4/2@y, k: 6/4@xy} keep {i, j} k0(r2{i, k}, r3{k, j}) over [i, j, k]; free r2, r3
r5 C.partial: {i: 8/2, k: 6/2} f32[i, 4] @ GRID(k, .) = source C.partial from full(1.0); free r5
output C = r4: f32[8, 4]
"#;

#[test]
fn plans_on_grids() {
    let plan: Plan = GRID.parse().unwrap();
    assert_eq!(plan.to_string(), GRID);
    assert_eq!(verify::verify(&plan), Ok(()));
    assert_eq!(encode::decode(&encode::encode(&plan)), Ok(plan.clone()));
    // A's pieces of k are 2, 2, 1, 1 long: site 0 has the first and the third of 4 rows and receives the others.
    // Of B it has two pieces, 4 of 6 rows, of 2 columns.
    let moved = traffic::by_step(&plan);
    let of = |step: usize| (moved[step].transfer, moved[step].floats);
    assert_eq!((of(2), of(3)), ((96, 48), (48, 24)));
    assert_eq!(moved[2].received_max.floats, 12);
    assert_eq!(moved[3].received_max.floats, 8);
    assert_eq!(traffic::received(&plan)[4], traffic::Received::default());
    // Site 0: 12 + 8 values of its own, 12 + 4 received, 8 of C, when C is made.
    let peaks = memory::peaks(&plan);
    assert_eq!((peaks[0].bytes, peaks[0].step), (4 * (24 + 12 + 8), 4));
    assert_eq!(peaks[4].bytes, 0);
    let refused = |from: &str, to: &str| {
        assert!(GRID.contains(from), "{from}");
        let plan: Plan = GRID.replace(from, to).parse().unwrap();
        verify::verify(&plan).unwrap_err().to_string()
    };
    assert_eq!(
        refused("mesh 2x2", "mesh 2x3"),
        "plan: there is no mesh 2x3 of 5 sites"
    );
    assert_eq!(
        refused("@ GRID(k, .)", "@ GRID(., k)"),
        "r5: it is placed by `k` on an axis that does not number its blocks"
    );
    assert_eq!(
        refused("@ GRID(i, *) = broadcast r0", "@ GRID(i, *) = shuffle r0"),
        "r2: a shuffle gives no copies"
    );
    assert_eq!(
        refused(
            "k0(r2{i, k}, r3{k, j}) over [i, j, k]; free r2, r3",
            "k0(r0{i, k}, r3{k, j}) over [i, j, k]; free r0, r3"
        ),
        "r4: it needs r0 where its own tuples are, {i: 8/2, j: 4/2@y} f32[i, j] @ GRID(i, j); \
         but r0 is {i: 8/2, k: 6/4@xy} f32[i, k] @ GRID(i, k)"
    );
    // Kept along one axis, the addends of k are as many as its coordinates.
    let kept = GRID
        .replace(
            "r4 C: {i: 8/2, j: 4/2@y} f32[i, j]",
            "r4 C: {i: 8/2, j: 4/2@y, k: 6/2} f32[i, j]",
        )
        .replace("keep {i, j}", "keep {i, j, k}")
        .replace("output C = r4: f32[8, 4]", "output C = r0: f32[8, 6]")
        .replace("broadcast r0; free r0", "broadcast r0")
        .replace("free r2, r3", "free r2, r3, r4");
    let kept: Plan = kept.parse().unwrap();
    assert_eq!(verify::verify(&kept), Ok(()));
    let three = kept
        .to_string()
        .replace("k: 6/2} f32[i, j]", "k: 6/3} f32[i, j]");
    let error = verify::verify(&three.parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "r4: it cannot keep `k` as k: 6/3");
}

fn split_k() -> Plan {
    SPLIT_K.parse().unwrap()
}

#[test]
fn plans_print_as_they_are_written() {
    let plan = split_k();
    assert_eq!(plan.to_string(), SPLIT_K);
    assert_eq!(verify::verify(&plan), Ok(()));
}

/// A step: what it carries is given, and replaced by outputs.
const STEP: &str = r#"plan for 1 sites
kernel k0 (f32[4]) [i: 4] f32 = 0.5 * a0[i]
r0 w: {} f32[4] @ ALL = source w from fed
r1 smaller: {} f32[4] @ ALL = join k0(r0{}) over [_]
r2 read: {} f32[5] @ ALL = source read from fed
output smaller = r1: f32[4] replaces w
output again = r1: f32[4] replaces "model 2.w" -> "w.npy"
output read = r2: f32[5]
"#;

#[test]
fn an_output_replaces_what_is_carried() {
    let plan: Plan = STEP.parse().unwrap();
    assert_eq!(plan.to_string(), STEP);
    assert_eq!(verify::verify(&plan), Ok(()));
    assert_eq!(encode::decode(&encode::encode(&plan)), Ok(plan.clone()));
    let pairs: Vec<_> = plan.carried_on().collect();
    assert_eq!(pairs, [(plan.steps[0].result, plan.steps[1].result)]);
    let refused = |from: &str, to: &str| {
        let plan: Plan = STEP.replace(from, to).parse().unwrap();
        verify::verify(&plan).unwrap_err().to_string()
    };
    assert_eq!(
        refused("\"model 2.w\"", "w"),
        "output smaller: it is not the only one that replaces `w`"
    );
    assert_eq!(
        refused("\"model 2.w\"", "read"),
        "output again: it replaces `read`, which is {} f32[5] @ ALL"
    );
}

#[test]
fn plans_survive_encoding_and_garbage_does_not() {
    let plan = split_k();
    let bytes = encode::encode(&plan);
    assert_eq!(encode::decode(&bytes), Ok(plan));
    assert_eq!(
        encode::decode(b"garbage"),
        Err(encode::DecodeError::NotAPlan)
    );
    assert_eq!(
        encode::decode(b"einp\xff\0"),
        Err(encode::DecodeError::Version(255))
    );
    for length in 0..bytes.len() {
        assert!(encode::decode(&bytes[..length]).is_err());
    }
    // A changed byte gives an error or another plan that holds together.
    for at in 6..bytes.len() {
        for change in [1, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(plan) = encode::decode(&changed) {
                let text = plan.to_string();
                let again: Plan = text
                    .parse()
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(without_bytes(again), without_bytes(plan));
            }
        }
    }
}

/// Of an origin only file and line are printed, of a float no more than the value.
fn without_bytes(mut plan: Plan) -> String {
    for origin in plan.steps.iter_mut().map(|s| &mut s.origin) {
        (origin.start, origin.end) = (0, 0);
    }
    for origin in plan.outputs.iter_mut().map(|o| &mut o.origin) {
        (origin.start, origin.end) = (0, 0);
    }
    format!("{plan:?}")
}

#[test]
fn traffic_is_what_leaves_a_site() {
    let text: Vec<String> = traffic::by_step(&split_k())
        .iter()
        .enumerate()
        .filter(|(_, t)| t.transfer > 0)
        .map(|(step, t)| {
            format!(
                "r{step}: transfer {}, sent {} floats, {} bytes",
                t.transfer, t.floats, t.bytes
            )
        })
        .collect();
    // r2 is six tuples of 40 floats; k 0 and 1 are at site 0, k 2 at site 1. Two leave for i 1 at site 1, and one
    // for i 0 at site 0.
    assert_eq!(
        text,
        [
            "r3: transfer 240, sent 120 floats, 480 bytes",
            "r7: transfer 160, sent 80 floats, 160 bytes",
        ]
    );
    assert_eq!(traffic::total(&split_k()).bytes, 640);
}

#[test]
fn peaks_count_a_result_beside_its_inputs() {
    let peaks = memory::peaks(&split_k());
    // Site 0 at r2: 2/3 of A (160) and of B (128) and of the partial sums (640).
    // Site 1 at r2: 80, 64 and 320; at r3, kept tuples counted once: 320 + 480 - 160; at r4 480 + 160.
    assert_eq!(
        peaks[0],
        memory::Peak {
            bytes: 928,
            step: 2
        }
    );
    assert_eq!(
        peaks[1],
        memory::Peak {
            bytes: 640,
            step: 3
        }
    );
}

#[test]
fn peaks_count_the_windows_of_an_exchange() {
    let plan: Plan = "plan for 2 sites
kernel k0 (f64[12], f64[12]) [i: 10] f64 = a0[i + 2] + a1[i + 1]
r0 x: {i: 12/2} f64[i] @ PART(i) = source x from iota
r1 x: {i: 10/2} f64[i+2..i+2 of 12] @ PART(i) = window r0
r2 x: {i: 10/2} f64[i+1..i+1 of 12] @ PART(i) = window r0; free r0
r3 y: {i: 10/2} f64[i] @ PART(i) = join k0(r1{i}, r2{i}) over [i]; free r1, r2
exchange r1, r2 until r2
output y = r3: f64[10]
"
    .parse()
    .unwrap();
    verify::verify(&plan).unwrap();
    // Six elements of x and five in each window.
    let peak = memory::Peak {
        bytes: 8 * (6 + 5 + 5),
        step: 2,
    };
    assert_eq!(memory::peaks(&plan), [peak, peak]);
}

/// Replaces a part of the plan and gives the verifier's answer.
fn broken(from: &str, to: &str) -> String {
    assert!(SPLIT_K.contains(from), "{from}");
    let plan: Plan = SPLIT_K.replace(from, to).parse().unwrap();
    verify::verify(&plan).unwrap_err().to_string()
}

#[test]
fn inputs_must_be_where_they_are_needed() {
    assert_eq!(
        broken(
            "r1 B: {k: 6/3} f32[k, 8] @ PART(k)",
            "r1 B: {k: 6/3} f32[k, 8] @ ONE"
        ),
        "r2: it needs r1 where its own tuples are, {i: 10/2, k: 6/3} f32[i, 8] @ PART(k); \
         but r1 is {k: 6/3} f32[k, 8] @ ONE"
    );
    assert_eq!(
        broken("@ PART(i) = aggregate", "@ ALL = aggregate"),
        "r4: it needs r3 where its own tuples are, {i: 10/2} f32[i, 8] @ ALL; \
         but r3 is {i: 10/2, k: 6/3} f32[i, 8] @ PART(i)"
    );
    // On one site everything is where it is needed; so it is where both mappings agree on every tuple.
    let alone = SPLIT_K
        .replace("2 sites", "1 sites")
        .replace("PART(k)", "PART(i)");
    let alone = alone.replace("f32[k, 8] @ PART(i)", "f32[k, 8] @ ONE");
    assert_eq!(verify::verify(&alone.parse().unwrap()), Ok(()));
    let same = SPLIT_K.replace("s: {} f16[] @ ALL", "s: {} f16[] @ ONE");
    let same = same
        .replace("i: 10/2", "i: 10/1")
        .replace("PART(k)", "PART(i)");
    let same = same.replace("f32[k, 8] @ PART(i)", "f32[k, 8] @ ONE");
    assert_eq!(verify::verify(&same.parse().unwrap()), Ok(()));
}

#[test]
fn types_lifetimes_and_outputs_are_verified() {
    assert_eq!(
        broken("f32[i, 8] @ PART(k) = join", "f32[i, 7] @ PART(k) = join"),
        "r2: its type should be {i: 10/2, k: 6/3} f32[i, 8] @ PART(k)"
    );
    assert_eq!(
        broken("= partial sum", "= sum"),
        "r2: `k` is cut but the reduction is finished"
    );
    assert_eq!(
        broken("a0[i, k] * a1[k, j]", "a0[i, 0] * a1[k, j]"),
        "r2: dimension 1 of r0 is cut, but read beyond the part at hand"
    );
    assert_eq!(
        broken("aggregate sum", "aggregate mean"),
        "r4: its input holds no carriers of mean"
    );
    assert_eq!(broken("r5 s:", "r6 s:"), "r6: it is made by step 5");
    assert_eq!(
        broken("; free r4, r5", "; free r4"),
        "plan: not every relation is freed once"
    );
    assert_eq!(
        broken("; free r9", "; free r8, r9"),
        "r10: it frees r8, whose last use it is not"
    );
    assert_eq!(
        broken("part = r10: f16[10, 2]", "part = r10: f16[10, 3]"),
        "output part: r10 is {} f16[10, 2] @ ALL"
    );
}

#[test]
fn kernels_of_every_form() {
    for text in [
        "(f32[10, 14], bool[10]) [n: 10, y: 7 | r: 3] f32 = \
         sum where(a1[n], a0[n, 2 * y + r - 1] else 0.0, 0.0)",
        "(f32[4]) [i: 4, j: 4] f32 = let $0 = exp(a0[i]), $1 = $0 + a0[j] in $1 * ($0 - $1) / $1",
        "(f32[4]) [| k: 4] (f32, i64) = partial argmax a0[k]",
        "((f32, i64)[4]) [k: 4] f32 = a0[k] / f32(a0#1[k])",
        "(i64[]) [| t: 5] i64 = sum -t * -3 if t <= a0[]",
        "() [i: 3] f64 = 1e-7_f64 - -inf_f64 * nan_f64",
        "() [] i32 = -(-7_i32) - (1_i32 - -2147483648_i32)",
        "() [] bool = (1.0 < 2.0) == (not(true) != false)",
        "(u8[3]) [i: 3] u8 = min(a0[i], a0[i + 1] else 255_i32) - a0[i] else (a0[0] + 1_i32)",
        "() [\"inf\": 2, \"a b\": 3, x.1': 4] i64 = \"inf\" + \"a b\" * x.1'",
        "() [] f32 = nan(0xfff8000000000000)",
    ] {
        let kernel: Kernel = text
            .parse()
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(kernel.to_string(), text);
        assert_eq!(verify::kernel::kernel(&kernel), Ok(()), "{text}");
    }
}

#[test]
fn long_and_shared_expressions_stay_short_and_shallow() {
    let sum = vec!["a0[i]"; 5000].join(" + ");
    let kernel: Kernel = format!("(f32[4]) [i: 4] f32 = {sum}").parse().unwrap();
    let text = kernel.to_string();
    assert!(text.len() < 60_000);
    assert_eq!(text.parse(), Ok(kernel));
    let doubled: String = (1..200)
        .map(|n| format!(", ${n} = ${0} * ${0}", n - 1))
        .collect();
    let text = format!("(f32[4]) [i: 4] f32 = let $0 = exp(a0[i]){doubled} in $199 + $199");
    assert_eq!(text.parse::<Kernel>().unwrap().to_string(), text);
    let deep = "(".repeat(100_000);
    let error = format!("() [] f32 = {deep}").parse::<Kernel>().unwrap_err();
    assert_eq!(error.message, "nested too deeply");
    let deep = "-".repeat(100_000);
    let error = format!("() [] f32 = {deep}1.0")
        .parse::<Kernel>()
        .unwrap_err();
    assert_eq!(error.message, "nested too deeply");
}

#[test]
fn types_and_sources() {
    for text in [
        "{} f32[] @ ALL",
        "{i: 10/1, j: 8/2} (f32, i64)[j, 5, i] @ PART(j)",
        "{\"_\": 3/2, x': 1/1} bool[\"_\"] @ ONE",
        "{i: 10/4@xy, j: 8/2@z, k: 6/2@_} f32[i, j, k] @ GRID(i, *, j)",
        "{} f32[] @ GRID(., *)",
    ] {
        assert_eq!(text.parse::<RelationType>().unwrap().to_string(), text);
    }
    for text in [
        "load(\"a \\\"b\\\".npz\", \"k\\n\")",
        "unbound",
        "full(-3)",
        "full(0.5)",
        "full(true)",
        "iota",
        "uniform(-1.0, 1.0)",
        "normal(0.0, 0.02)",
        "bernoulli(0.5)",
        "gumbel",
        "permutation",
        "stacked(1)",
        "stacked(2, \"enc.0.w\" normal(0.0, 0.02), \"enc.1.w\" load(\"w.npz\", \"w\"))",
    ] {
        assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
    }
}

#[test]
fn errors_have_places() {
    let error = |text: &str| text.parse::<Plan>().unwrap_err().to_string();
    assert_eq!(error(""), "1:1: expected `plan for … sites`");
    assert_eq!(
        error(&SPLIT_K.replace("a1[k, j]", "a1[k; j]")),
        "3:89: expected `,`, found `;`"
    );
    assert_eq!(
        error(&SPLIT_K.replace("a1[k, j]", "a7[k, j]")),
        "3:85: expected a tensor or operand that is known here"
    );
    assert_eq!(
        error(&SPLIT_K.replace("1.0 + a1[]", "1 + a1[]")),
        "4:70: expected 2 values of one type for `add`, found (i64, f32)"
    );
    assert_eq!(
        error(&SPLIT_K.replace("shuffle r2", "shuffel r2")),
        "8:55: expected an operation such as `join` or `broadcast`"
    );
}

#[test]
fn no_text_panics() {
    // Every prefix, and every plan with one character replaced.
    for (at, _) in SPLIT_K.char_indices() {
        let _ = SPLIT_K[..at].parse::<Plan>();
    }
    for (number, (at, c)) in SPLIT_K.char_indices().enumerate() {
        let other = ["{", "]", "\"", "#", "9", "é", "$", "-", "//", " "][number % 10];
        let text = format!("{}{other}{}", &SPLIT_K[..at], &SPLIT_K[at + c.len_utf8()..]);
        if let Ok(plan) = text.parse::<Plan>() {
            let _ = verify::verify(&plan).map(|()| (traffic::total(&plan), memory::peaks(&plan)));
        }
    }
}
