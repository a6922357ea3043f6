//! Loops in hand-written plans on 1 to 5 sites against plain loops: states, conditions, bounds, collected values, loops
//! in loops, draws of every round, what moves, what is held, and where a mistake happened.
#![allow(clippy::unwrap_used)]

use ein_array::Data;
use ein_device::{Device, Draw};
use ein_device_cpu::Cpu;
use ein_exec::{ErrorKind, Options, Report, run_in_process};
use ein_plan::{Plan, memory, traffic, verify};

fn plan(text: &str) -> Plan {
    let plan: Plan = text
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify::verify(&plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan.clone()));
    plan
}

fn run(plan: &Plan) -> Report {
    let options = Options {
        threads: 4,
        seed: 3,
        ..Options::on(ein_device_cpu::device())
    };
    let report = run_in_process(plan, &options).unwrap_or_else(|error| panic!("{error}"));
    let stated = traffic::total_of(plan, &report.rounds);
    let moved = report
        .traffic
        .steps
        .iter()
        .fold((0, 0), |(floats, bytes), step| {
            (floats + step.floats, bytes + step.bytes)
        });
    assert_eq!(moved, (stated.floats, stated.bytes));
    let steps = traffic::by_step(plan).into_iter();
    let times = plan.times_of_steps(&report.rounds);
    for ((step, times), counted) in steps.zip(times).zip(&report.traffic.steps) {
        assert_eq!(step.times(times).bytes, counted.bytes);
    }
    for (peak, held) in memory::peaks(plan).iter().zip(&report.peak_bytes) {
        assert!(
            *held <= peak.bytes,
            "{} held, {} planned\n{plan}",
            held,
            peak.bytes
        );
    }
    report
}

fn numbers(report: &Report, name: &str) -> Vec<f64> {
    let printed = report.printed.iter().find(|p| p.name == name).unwrap();
    let data = printed.values.data();
    (0..data.len()).map(|at| data.get(at).as_f64()).collect()
}

/// x' = A x / 40 until the sum of x is below `stop`; every round's x is kept in columns.
fn power(sites: u32, rounds: u64, stop: f64) -> Plan {
    plan(&format!(
        "plan for {sites} sites, deterministic
kernel k0 (f64[7, 7], f64[7]) [i: 7 | j: 7] f64 = sum a0[i, j] * a1[j] / 40.0_f64
kernel k1 (f64[7]) [ | i: 7] f64 = sum a0[i]
kernel k2 (f64[]) [] bool = a0[] < {stop:?}_f64
r0 A: {{i: 7/3}} f64[i, 7] @ PART(i) = source A from iota
r1 x: {{i: 7/3}} f64[i] @ PART(i) = source x from full(1.0)
repeat b0 t < {rounds} until r9; state r1 next r5; collect r5 dim 1; free r1
  r2 x: {{i: 7/3}} f64[i] @ PART(i) = loop state b0.0
  r3 x: {{i: 7/3}} f64[i] @ ALL = broadcast r2; free r2
  r4 x: {{}} f64[7] @ ALL = concat r3 dim 0; free r3
  r5 y: {{i: 7/3}} f64[i] @ PART(i) = join k0(r0{{i}}, r4{{}}) over [i, _]; free r4
  r6 y: {{i: 7/3}} f64[i] @ ALL = broadcast r5
  r7 y: {{}} f64[7] @ ALL = concat r6 dim 0; free r6
  r8 s: {{}} f64[] @ ALL = join k1(r7{{}}) over [_]; free r7
  r9 stop: {{}} bool[] @ ALL = join k2(r8{{}}) over []; free r8
end b0; free r0
r10 x: {{i: 7/3}} f64[i] @ PART(i) = loop last b0.0
r11 t: {{}} i64[] @ ALL = loop rounds b0
r12 xs: {{i: 7/3}} f64[i, {rounds}] @ PART(i) = loop collected b0.0
output x = r10: f64[7]
output t = r11: i64[]
output xs = r12: f64[7, {rounds}]
"
    ))
}

#[test]
fn a_condition_ends_the_rounds_of_all_sites() {
    // The largest eigenvalue of the numbers 0 to 48 in a square, over 40, is about 4: sums fall only by the divisor.
    let rounds_of = |stop: f64, most: usize| {
        let mut x = vec![1.0; 7];
        let mut kept = vec![];
        while kept.len() < most {
            let of = |i: usize| {
                (0..7)
                    .map(|j| (7 * i + j) as f64 * x[j] / 40.0)
                    .sum::<f64>()
            };
            x = (0..7).map(of).collect();
            kept.push(x.clone());
            if x.iter().sum::<f64>() < stop {
                break;
            }
        }
        (x, kept)
    };
    for (most, stop) in [(5, 0.0), (4, 1e9), (0, 1.0), (1, 0.0), (3, 1000.0)] {
        let (x, kept) = rounds_of(stop, most);
        for sites in 1..=5 {
            let report = run(&power(sites, most as u64, stop));
            assert_eq!(numbers(&report, "t"), [kept.len() as f64]);
            assert_eq!(report.rounds, [kept.len() as u64]);
            let near = |a: &[f64], b: &[f64]| {
                assert_eq!(a.len(), b.len());
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
                }
            };
            near(&numbers(&report, "x"), &x);
            let all: Vec<f64> = (0..7 * most)
                .map(|at| kept.get(at % most).map_or(0.0, |x| x[at / most]))
                .collect();
            near(&numbers(&report, "xs"), &all);
        }
    }
}

#[test]
fn states_are_handed_on_all_at_once() {
    // Fibonacci: next a = b, next b = a + b; a third state is b of two rounds ago, a fourth never changes.
    for sites in 1..=5 {
        let plan = plan(&format!(
            "plan for {sites} sites
kernel k0 (i64[], i64[]) [] i64 = a0[] + a1[]
r0 zero: {{}} i64[] @ ALL = source zero from full(0)
r1 one: {{}} i64[] @ ALL = source one from full(1)
r2 n: {{}} i64[] @ ALL = source n from full(9)
repeat b0 t < r2; state r0 next r4; state r1 next r6; state r0 next r3; state r1 next r5; free r0, r1, r2
  r3 a: {{}} i64[] @ ALL = loop state b0.0
  r4 b: {{}} i64[] @ ALL = loop state b0.1
  r5 d: {{}} i64[] @ ALL = loop state b0.3
  r6 s: {{}} i64[] @ ALL = join k0(r3{{}}, r4{{}}) over []
end b0
r7 a: {{}} i64[] @ ALL = loop last b0.0
r8 b: {{}} i64[] @ ALL = loop last b0.1
r9 c: {{}} i64[] @ ALL = loop last b0.2
r10 d: {{}} i64[] @ ALL = loop last b0.3
output a = r7: i64[]
output b = r8: i64[]
output c = r9: i64[]
output d = r10: i64[]
"
        ));
        let report = run(&plan);
        let found = ["a", "b", "c", "d"].map(|name| numbers(&report, name)[0]);
        assert_eq!(found, [34.0, 55.0, 21.0, 1.0]);
    }
}

/// Rounds in rounds: draws of every round, summed up; the inner loop makes as many rounds as the outer's number says.
fn nested(sites: u32, mesh: &str) -> Plan {
    let text = format!(
        "plan for {sites} sites{mesh}
kernel k0 (f64[5], f64[5]) [i: 5] f64 = a0[i] + a1[i]
r0 x: {{}} f64[5] @ ALL = source x from full(0.0)
repeat b0 t < 3; state r0 next r7; collect r7 dim 0; free r0
  r1 x: {{}} f64[5] @ ALL = loop state b0.0
  r2 t: {{}} i64[] @ ALL = loop counter b0
  repeat b1 u < r2; state r1 next r5; free r1, r2
    r3 z: {{}} f64[5] @ ALL = source u.z from uniform(0.0, 1.0)
    r4 z: {{}} f64[5] @ ALL = loop state b1.0
    r5 z: {{}} f64[5] @ ALL = join k0(r3{{}}, r4{{}}) over [_]; free r3, r4
  end b1
  r6 x: {{}} f64[5] @ ALL = loop last b1.0
  r7 x: {{}} f64[5] @ ALL = join k0(r6{{}}, r6{{}}) over [_]; free r6
end b0
r8 x: {{}} f64[5] @ ALL = loop last b0.0
r9 xs: {{}} f64[3, 5] @ ALL = loop collected b0.0
output x = r8: f64[5]
output xs = r9: f64[3, 5]
"
    );
    // On a grid, at every site is `GRID(*, *)`.
    plan(&match mesh.contains('x') {
        true => text.replace("@ ALL", "@ GRID(*, *)"),
        false => text,
    })
}

#[test]
fn loops_in_loops_begin_afresh_and_draw_anew() {
    let draw = |rounds: &[u64]| {
        let uniform = ein_plan::Source::Uniform { lo: 0.0, hi: 1.0 };
        let draw = Draw {
            source: &uniform,
            dtype: ein_plan::DType::F64,
            stream: "u.z",
            seed: 3,
            rounds,
            shape: &[5],
        };
        let drawn = Cpu.generate(&draw, &[(0, 5)]).to_host();
        match drawn.data() {
            Data::F64(values) => values.clone(),
            other => panic!("{other:?}"),
        }
    };
    let mut x = vec![0.0; 5];
    let mut all = vec![];
    for t in 0..3 {
        for u in 0..t {
            let drawn = draw(&[t, u]);
            x.iter_mut().zip(drawn).for_each(|(x, z)| *x += z);
        }
        x.iter_mut().for_each(|x| *x += *x);
        all.extend(x.clone());
    }
    for (sites, mesh) in [(1, ""), (2, ""), (3, ""), (4, " mesh 2x2"), (5, " mesh 2")] {
        let report = run(&nested(sites, mesh));
        assert_eq!(numbers(&report, "x"), x, "{sites}");
        assert_eq!(numbers(&report, "xs"), all);
        assert_eq!(report.rounds, [3, 3]);
    }
}

#[test]
fn a_mistake_in_a_round_names_it_and_ends_the_run_everywhere() {
    let text = "plan for SITES sites
kernel k0 (f64[9], i64[]) [i: 9] f64 = a0[i + a1[] * 2]
kernel k1 (f64[9]) [] bool = a0[0] < 0.0_f64
r0 x: {i: 9/4} f64[i] @ PART(i) = source x from full(1.0)
repeat b0 t < 1000000 until r6; state r0 next r5; free r0
  r1 x: {i: 9/4} f64[i] @ PART(i) = loop state b0.0
  r2 t: {} i64[] @ ALL = loop counter b0
  r3 x: {i: 9/4} f64[i] @ ALL = broadcast r1; free r1
  r4 x: {} f64[9] @ ALL = concat r3 dim 0; free r3
  r5 y: {i: 9/4} f64[i] @ PART(i) = join k0(r4{}, r2{}) over [i]; free r2
  r6 stop: {} bool[] @ ALL = join k1(r4{}) over []; free r4
end b0
r7 x: {i: 9/4} f64[i] @ PART(i) = loop last b0.0
output x = r7: f64[9]
";
    let without = text.replace(" until r6", "").replace(
        "join k0(r4{}, r2{}) over [i]; free r2",
        "join k0(r4{}, r2{}) over [i]; free r2, r4",
    );
    let without: String = without
        .lines()
        .filter(|line| !line.contains("stop"))
        .map(|line| format!("{line}\n"))
        .collect();
    let without = without.replace("r7", "r6");
    for sites in 1..=5 {
        for text in [text, &without] {
            let plan = plan(&text.replace("SITES", &sites.to_string()));
            let error = run_in_process(&plan, &Options::on(ein_device_cpu::device())).unwrap_err();
            assert_eq!((error.kind, error.code), (ErrorKind::Program, "E0720"));
            assert_eq!(
                error.message,
                "position 9 is outside `x`, whose dimension 1 has positions 0 to 8; at i = 7; in the round t = 1"
            );
        }
    }
}

/// No site talks in the rounds, and only the one with the last rows fails: the others would go on for minutes.
#[test]
fn a_mistake_in_rounds_in_which_no_site_talks_is_told_soon() {
    let text = "plan for SITES sites
kernel k0 (f64[9], f64[9], i64[]) [i: 9] f64 = a0[i] + a1[i + a2[] * 2]
r0 x: {i: 9/4} f64[i] @ PART(i) = source x from full(1.0)
r1 w: {} f64[9] @ ALL = source w from full(1.0)
repeat b0 t < 1000000000; state r0 next r4; free r0
  r2 x: {i: 9/4} f64[i] @ PART(i) = loop state b0.0
  r3 t: {} i64[] @ ALL = loop counter b0
  r4 y: {i: 9/4} f64[i] @ PART(i) = join k0(r2{i}, r1{}, r3{}) over [i]; free r2, r3
end b0; free r1
r5 x: {i: 9/4} f64[i] @ PART(i) = loop last b0.0
output x = r5: f64[9]
";
    for sites in 1..=5 {
        let plan = plan(&text.replace("SITES", &sites.to_string()));
        let error = run_in_process(&plan, &Options::on(ein_device_cpu::device())).unwrap_err();
        assert_eq!(
            error.message,
            "position 9 is outside `w`, whose dimension 1 has positions 0 to 8; at i = 7; in the round t = 1"
        );
    }
}
