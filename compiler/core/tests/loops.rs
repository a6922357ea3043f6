//! Loops from the Einstein IR to a plan: any layout of them keeps their meaning, what is stated of plans holds, plans are
//! proved, what does not change is moved once.
#![allow(clippy::unwrap_used)]

use ein_plan::{Mesh, Operation, Plan, Scalar, traffic};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Program, Tensor, parse::parse, verify::verify};
use einc_core::ia::from_layout::place;
use einc_core::ia::layout::Layout;
use einc_core::pipeline::{Options, compile, describe};
use einc_core::tra::chunk::Chunk;
use einc_core::{ia, lower, tra};

/// Power iteration: rows of A are read in every round, x goes round; every x is kept.
const POWER: &str = "input A: f64[7, 7] = unbound
input x.0: f64[7] = unbound
repeat t < 6 until small {
  carry x.0 -> x.1
  collect y at 1
  x: f64[7] = state 0 of t
  y: f64[7] = [i: 7 | j: 7] sum A[i, j] * x[j]
  n: f64[] = [| i: 7] norm y[i]
  x.1: f64[7] = [i: 7] y[i] / n[]
  d: f64[] = [| i: 7] sum abs(x.1[i] - x[i])
  small: bool[] = [] d[] < 0.001_f64
}
x.last: f64[7] = last 0 of t
t.rounds: i64[] = rounds of t
ys: f64[7, 6] = collected 0 of t
z: f64[7] = [i: 7] x.last[i] * 2.0_f64
output z
output t.rounds
output ys
";

/// States that are handed on, a loop in a loop with a bound that is counted, a state that nothing in its loop reads.
const NESTED: &str = "input a.0: f64[5, 6] = unbound
input b.0: f64[5, 6] = unbound
c.0: i64[] = full(0)
repeat t < 4 {
  carry a.0 -> b
  carry b.0 -> e.last
  carry b.0 -> a
  carry c.0 -> c.1
  a: f64[5, 6] = state 0 of t
  b: f64[5, 6] = state 1 of t
  t: i64[] = counter of t
  c: i64[] = state 3 of t
  w: f64[6] = [j: 6 | i: 5] sum a[i, j] * b[i, j]
  repeat u < t {
    carry b -> e.1
    collect e.1 at 0
    e: f64[5, 6] = state 0 of u
    u: i64[] = counter of u
    e.1: f64[5, 6] = [i: 5, j: 6] e[i, j] * 0.5_f64 + a[i, j] + w[j] * f64(u[])
  }
  e.last: f64[5, 6] = last 0 of u
  u.rounds: i64[] = rounds of u
  c.1: i64[] = [] c[] + u.rounds[]
}
a.last: f64[5, 6] = last 0 of t
b.last: f64[5, 6] = last 1 of t
d.last: f64[5, 6] = last 2 of t
c.last: i64[] = last 3 of t
output a.last
output b.last
output d.last
output c.last
";

/// No round at all; a bound that is read; a next value from outside; nothing in the body.
const EDGES: &str = "input x.0: f64[3] = unbound
input y: f64[3] = unbound
n: i64[] = full(2)
repeat t < 0 {
  carry x.0 -> x.1
  collect x.1 at 0
  x: f64[3] = state 0 of t
  x.1: f64[3] = [i: 3] x[i] + 1.0_f64
}
x.last: f64[3] = last 0 of t
xs: f64[0, 3] = collected 0 of t
repeat u < n {
  carry x.last -> y
}
v: f64[3] = last 0 of u
repeat w < n {
  carry v -> z.1
  z: f64[3] = state 0 of w
  z.1: f64[3] = [i: 3] z[i] + y[i]
}
z.last: f64[3] = last 0 of w
output z.last
output xs
output v
";

fn programs() -> Vec<Program> {
    let texts = [
        POWER.to_string(),
        NESTED.replace("    collect e.1 at 0\n", ""),
        EDGES.to_string(),
    ];
    let programs = texts.iter().map(|text| {
        let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(verify(&program), Ok(()), "{text}");
        program
    });
    programs.collect()
}

fn input(name: &str, shape: &[u64]) -> Values {
    let total: u64 = shape.iter().product();
    let first = name.bytes().map(u64::from).sum::<u64>();
    let value = |n: u64| Scalar::Float(((first + 7 * n) % 11) as f64 / 4.0 - 1.0);
    Values {
        shape: shape.to_vec(),
        data: (0..total).map(value).collect(),
    }
}

fn near(expected: &Values, found: &Values) -> Result<(), String> {
    if expected.shape != found.shape {
        return Err(format!("{:?} instead of {:?}", found.shape, expected.shape));
    }
    for (at, (a, b)) in expected.data.iter().zip(&found.data).enumerate() {
        let (a, b) = (a.as_f64(), b.as_f64());
        if (a - b).abs() > 1e-9 * (1.0 + a.abs()) {
            return Err(format!("{b} instead of {a} at {at}"));
        }
    }
    Ok(())
}

/// Both algebras' interpreters give what the Einstein program does.
fn check(program: &Program, tra: &tra::Program, ia: &ia::Program, plan: &Plan) {
    let expected = interpret(program, &|tensor: &Tensor| {
        input(&tensor.name, &tensor.shape)
    })
    .unwrap();
    let shape_of = |name: &str| {
        let mut tensors = program.tensors.iter();
        tensors.find(|t| t.name == name).unwrap().shape.clone()
    };
    let inputs = |name: &str| {
        let Values { shape, data } = input(name, &shape_of(name));
        let columns = vec![data];
        Chunk { shape, columns }
    };
    tra::verify::verify(tra).unwrap_or_else(|error| panic!("{error}\n{tra}"));
    ia::verify::verify(ia).unwrap_or_else(|error| panic!("{error}\n{ia}"));
    ein_plan::verify::verify(plan).unwrap_or_else(|error| panic!("{error}\n{plan}"));
    let again = tra::parse::parse(&tra.to_string()).unwrap_or_else(|e| panic!("{e}\n{tra}"));
    assert_eq!(again.to_string(), tra.to_string());
    let again = ia::parse::parse(&ia.to_string()).unwrap_or_else(|e| panic!("{e}\n{ia}"));
    assert_eq!(again.to_string(), ia.to_string());
    let again: Plan = plan
        .to_string()
        .parse()
        .unwrap_or_else(|e| panic!("{e}\n{plan}"));
    assert_eq!(again.to_string(), plan.to_string());
    let by_tra = tra::interpret::interpret(tra, &inputs).unwrap_or_else(|e| panic!("{e:?}\n{tra}"));
    let by_ia = ia::interpret::interpret(ia, &inputs).unwrap_or_else(|e| panic!("{e:?}\n{ia}"));
    for (found, text) in [(by_tra, tra.to_string()), (by_ia, ia.to_string())] {
        assert_eq!(found.len(), expected.len());
        for (expected, mut found) in expected.iter().zip(found) {
            let found = Values {
                shape: found.shape,
                data: found.columns.remove(0),
            };
            near(expected, &found).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}

fn carried_out(program: &Program, layout: &Layout, sites: u32, deterministic: bool) {
    let placed = place(program, layout, sites, deterministic)
        .unwrap_or_else(|error| panic!("{error}\n{layout:?}\n{program}"));
    let plan = lower::lower(&placed.ia, deterministic).unwrap();
    check(program, &placed.tra, &placed.ia, &plan);
}

#[test]
fn any_layout_keeps_the_meaning_of_loops() {
    for program in programs() {
        for seed in 0..60 {
            let sites = 1 + (seed % 8) as u32;
            let layout = ia::random::layout(&program, sites, seed);
            carried_out(&program, &layout, sites, seed % 3 == 0);
        }
    }
}

#[test]
fn chosen_plans_are_right_and_proved() {
    for program in programs() {
        for sites in 1..=5 {
            for deterministic in [false, true] {
                let options = Options {
                    deterministic,
                    ..Options::new(sites)
                };
                let mut compiled = compile(&program, &options, &|| false)
                    .unwrap_or_else(|errors| panic!("{errors:?}\n{program}"));
                check(
                    &compiled.program,
                    &compiled.tra,
                    &compiled.ia,
                    &compiled.plan,
                );
                let total = traffic::total(&compiled.plan);
                assert_eq!(u128::from(total.transfer), compiled.cost.transfer);
                compiled.prove(&options, false, &|| false);
                let proof = compiled.proof.as_ref().unwrap();
                assert!(
                    proof.proved,
                    "{:?}\n{}\n{}",
                    proof.stopped, compiled.tra, compiled.ia
                );
            }
        }
    }
}

#[test]
fn the_layout_of_a_state_is_settled_with_everything_in_its_rounds() {
    let program = parse(&POWER.replace('7', "700")).unwrap();
    let options = Options::new(4);
    let compiled = compile(&program, &options, &|| false).unwrap();
    let plan = &compiled.plan;
    // A is read cut and stays where it is: no step in the loop moves more than a few numbers and one vector.
    let times = plan.times_of_steps(&plan.expected_times());
    for ((step, sent), times) in plan.steps.iter().zip(traffic::by_step(plan)).zip(times) {
        assert!(times == 1 || times == 6);
        assert!(sent.floats <= 700 * 4, "{}", plan.step_text(step));
        assert!(step.tensor != "A" || times == 1);
    }
    let report = describe(&compiled, &options, &[]);
    assert_eq!(report.steps.len(), plan.steps.len());
    // The search and the plan may count what is moved once, before or behind the loop, otherwise; not the rounds.
    let difference = compiled.chosen.price.transfer - compiled.cost.transfer as f64;
    assert!(difference.abs() <= 700.0 && compiled.cost.transfer > 6 * 700);
}

#[test]
fn a_state_is_summed_in_parts_behind_its_loop() {
    // Every round broadcasts the state; behind the loop, the sums of its parts are enough.
    let text = "input A: f64[700, 700] = unbound
input x.0: f64[700] = unbound
repeat t < 9 {
  carry x.0 -> x.1
  x: f64[700] = state 0 of t
  x.1: f64[700] = [i: 700 | j: 700] sum A[i, j] * x[j]
}
x.last: f64[700] = last 0 of t
s: f64[] = [| i: 700] sum x.last[i]
output s
";
    let program = parse(text).unwrap();
    let compiled = compile(&program, &Options::new(4), &|| false).unwrap();
    let plan = &compiled.plan;
    let moved = traffic::by_step(plan)
        .into_iter()
        .zip(plan.blocks_of_steps());
    let behind: u64 = moved
        .filter_map(|(sent, block)| block.is_none().then_some(sent.floats))
        .sum();
    assert!(behind <= 4, "{plan}");
    assert_eq!(
        compiled.chosen.price.transfer,
        compiled.cost.transfer as f64
    );
}

#[test]
fn what_does_not_change_is_moved_once() {
    // B is wanted whole by every round; its broadcast stands outside.
    let text = "input A: f64[64, 64] = unbound
input B: f64[64, 64] = unbound
repeat t < 9 {
  carry A -> c
  a: f64[64, 64] = state 0 of t
  c: f64[64, 64] = [i: 64, j: 64 | k: 64] sum a[i, k] * B[k, j]
}
last: f64[64, 64] = last 0 of t
output last
";
    let program = parse(text).unwrap();
    let compiled = compile(&program, &Options::new(4), &|| false).unwrap();
    let plan = &compiled.plan;
    let blocks = plan.blocks_of_steps();
    let mut moved = plan.steps.iter().zip(&blocks).filter(|(step, _)| {
        matches!(
            step.operation,
            Operation::Broadcast { .. } | Operation::Shuffle { .. }
        )
    });
    assert!(moved.clone().count() > 0);
    assert!(
        moved.all(|(step, block)| step.tensor == "B" && block.is_none()),
        "{plan}"
    );
    assert_eq!(compiled.plan.mesh, Mesh::row(4));
}
