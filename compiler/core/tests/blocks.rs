//! Blocks of the Einstein IR: text, verifier, interpreter, what is needed, order, sharing.
#![allow(clippy::unwrap_used)]

use ein_plan::Scalar;
use einc_core::einsum::interpret::{Values, interpret, interpret_rounds};
use einc_core::einsum::{Program, Tensor, parse::parse, verify::verify};
use einc_core::search::share::share;

fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()), "{text}");
    program
}

/// Halves `x` until it is below 1, sums all it was, in an inner block adds `t` to `s` as often as the outer is old.
const NESTED: &str = r#"files "a.ein"
x.0: f32[2] = full(8.0)
s.0: i64[] = full(0)
repeat t < 10 until small {   // a.ein:3
  carry x.0 -> x.1
  carry s.0 -> s.2
  collect x.1 at 1
  x: f32[2] = state 0 of t
  hidden t: i64[] = counter of t
  s: i64[] = state 1 of t
  x.1: f32[2] = [i: 2] x[i] * 0.5
  small: bool[] = [| i: 2] any x.1[i] < 1.0
  repeat u < t until done {
    carry s -> s.1
    s.in: i64[] = state 0 of u
    s.1: i64[] = [] s.in[] + t[]
    done: bool[] = [] s.1[] > 100
  }
  s.2: i64[] = last 0 of u
}
x.last: f32[2] = last 0 of t
s.last: i64[] = last 1 of t
t.rounds: i64[] = rounds of t
xs: f32[2, 10] = collected 0 of t
output x.last
output s.last
output t.rounds
output xs
"#;

fn run(program: &Program) -> String {
    let none = |tensor: &Tensor| panic!("{} has no values", tensor.name);
    let values = interpret(program, &none).unwrap();
    let lines: Vec<String> = values.iter().map(line).collect();
    lines.join("\n")
}

fn line(values: &Values) -> String {
    let one = |value: &Scalar| match value {
        Scalar::Float(x) => x.to_string(),
        Scalar::Int(x) => x.to_string(),
        Scalar::Bool(x) => x.to_string(),
    };
    values.data.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn blocks_print_as_they_are_written() {
    assert_eq!(program(NESTED).to_string(), NESTED);
    for text in [
        // Nothing stands in the block; bounds that are not numbers.
        "a: f32[] = full(1.0)\nb: f32[] = full(2.0)\nn: i64[] = full(3)\n\
         repeat \"a b\" < n {\n  carry a -> b\n}\nlast: f32[] = last 0 of \"a b\"\noutput last\n",
        "a: f32[] = full(1.0)\nrepeat t < inf until done {\n  carry a -> next\n  x: f32[] = state 0 of t\n  \
         param noise: f32[] = normal(0.0, 1.0)\n  next: f32[] = [] x[] + noise[]\n  \
         done: bool[] = [] next[] > 1.0\n}\nt.n: i64[] = rounds of t\nlast: f32[] = last 0 of t\noutput t.n\noutput last\n",
    ] {
        assert_eq!(program(text).to_string(), text);
    }
}

#[test]
fn rounds_are_made_one_after_the_other() {
    // 8, 4, 2, 1, 0.5: four rounds. s: 0, +1, +2·2, +3·3.
    assert_eq!(
        run(&program(NESTED)),
        "0.5 0.5\n14\n4\n4 2 1 0.5 0 0 0 0 0 0 4 2 1 0.5 0 0 0 0 0 0"
    );
    // States change at once: Fibonacci, by the state of another as `next`.
    let fibonacci = "a.0: i64[] = full(0)\nb.0: i64[] = full(1)\nrepeat t < 10 {\n  carry a.0 -> b\n  carry b.0 -> c\n  \
        a: i64[] = state 0 of t\n  b: i64[] = state 1 of t\n  c: i64[] = [] a[] + b[]\n}\nf: i64[] = last 0 of t\noutput f";
    assert_eq!(run(&program(fibonacci)), "55");
    // No round at all.
    for bound in ["0", "n"] {
        let text = format!(
            "n: i64[] = full(-2)\nx.0: f32[] = full(7.0)\nrepeat t < {bound} {{\n  carry x.0 -> y\n  x: f32[] = state 0 of t\n  \
             y: f32[] = [] x[] + 1.0\n}}\nlast: f32[] = last 0 of t\nt.n: i64[] = rounds of t\noutput last\noutput t.n\noutput n"
        );
        assert_eq!(run(&program(&text)), "7\n0\n-2");
    }
}

#[test]
fn random_sources_are_told_their_rounds() {
    let text = "s.0: f64[] = full(0.0)\nrepeat t < 2 {\n  carry s.0 -> s.1\n  s: f64[] = state 0 of t\n  repeat u < 3 {\n    \
        carry s -> s.3\n    s.2: f64[] = state 0 of u\n    g: f64[] = gumbel\n    s.3: f64[] = [] s.2[] * 10.0_f64 + g[]\n  }\n  \
        s.1: f64[] = last 0 of u\n}\nlast: f64[] = last 0 of t\noutput last";
    let drawn = |tensor: &Tensor, rounds: &[u64]| {
        assert_eq!(tensor.name, "g");
        Values {
            shape: vec![],
            data: vec![Scalar::Float((3 * rounds[0] + rounds[1]) as f64)],
        }
    };
    let all = interpret_rounds(&program(text), &drawn).unwrap();
    assert_eq!(line(all.last().unwrap()), "12345");
}

#[test]
fn what_is_not_needed_goes() {
    let less = NESTED
        .replace("output s.last\n", "")
        .replace("output xs\n", "");
    let less = parse(&less).unwrap();
    assert_eq!(
        verify(&less).unwrap_err(),
        "tensor `s.0`: no output needs it"
    );
    let less = less.needed();
    assert_eq!(verify(&less), Ok(()));
    assert_eq!(
        less.to_string(),
        r#"files "a.ein"
x.0: f32[2] = full(8.0)
repeat t < 10 until small {   // a.ein:3
  carry x.0 -> x.1
  x: f32[2] = state 0 of t
  x.1: f32[2] = [i: 2] x[i] * 0.5
  small: bool[] = [| i: 2] any x.1[i] < 1.0
}
x.last: f32[2] = last 0 of t
t.rounds: i64[] = rounds of t
output x.last
output t.rounds
"#
    );
    // Where only the sum is asked for, the halving still ends it.
    let sum = NESTED.replace("output x.last\n", "");
    let sum = parse(&sum.replace("output t.rounds\noutput xs\n", "")).unwrap();
    let sum = sum.needed();
    assert_eq!(verify(&sum), Ok(()));
    assert_eq!(run(&sum), "14");
}

#[test]
fn an_order_is_found() {
    let whole = program(NESTED);
    assert_eq!(whole.clone().arranged(), Some(whole.clone()));
    // All results first, and the rest backwards.
    let mut mixed = whole.clone();
    mixed.tensors.reverse();
    let last = whole.tensors.len() as u32 - 1;
    let text = format!("{mixed:?}");
    for tensor in &mut mixed.tensors {
        if let einc_core::einsum::Definition::Statement { operands, .. } = &mut tensor.definition {
            operands.iter_mut().for_each(|o| o.0 = last - o.0);
        }
    }
    for block in &mut mixed.blocks {
        block.until.iter_mut().for_each(|o| o.0 = last - o.0);
        if let einc_core::einsum::Bound::Value(bound) = &mut block.bound {
            bound.0 = last - bound.0;
        }
        for state in &mut block.states {
            state.initial.0 = last - state.initial.0;
            state.next.0 = last - state.next.0;
        }
        block
            .collected
            .iter_mut()
            .for_each(|c| c.value.0 = last - c.value.0);
    }
    mixed
        .outputs
        .iter_mut()
        .for_each(|o| o.tensor.0 = last - o.tensor.0);
    assert!(verify(&mixed).is_err(), "{text}");
    let arranged = mixed.arranged().unwrap();
    assert_eq!(verify(&arranged), Ok(()), "{arranged}");
    assert_eq!(run(&arranged), run(&whole));
    // What needs itself has none.
    let text = "x: f32[] = [] x2[] + 1.0\nx2: f32[] = full(1.0)\noutput x".replace("x2", "y");
    assert!(parse(&text).is_err());
}

#[test]
fn equal_tensors_of_a_block_are_one() {
    let text = "x.0: f32[4] = full(1.0)\nrepeat t < 3 {\n  carry x.0 -> b\n  x: f32[4] = state 0 of t\n  a: f32[4] = [i: 4] x[i] + 1.0\n  \
        a2: f32[4] = [k: 4] x[k] + 1.0\n  b: f32[4] = [i: 4] a[i] * a2[i]\n}\nlast: f32[4] = last 0 of t\noutput last\n";
    let shared = share(&program(text)).program;
    assert_eq!(verify(&shared), Ok(()));
    assert_eq!(
        shared.to_string(),
        "x.0: f32[4] = full(1.0)\nrepeat t < 3 {\n  carry x.0 -> b\n  x: f32[4] = state 0 of t\n  a: f32[4] = [i: 4] x[i] + 1.0\n  \
         b: f32[4] = [i: 4] a[i] * a[i]\n}\nlast: f32[4] = last 0 of t\noutput last\n"
    );
}

/// A run may bind a file to each.
#[test]
fn inputs_and_params_that_begin_alike_are_not_one() {
    let text = "param a: f32[4] = full(0.0)\nparam b: f32[4] = full(0.0)\ninput p: i64[] = full(1)\ninput q: i64[] = full(1)\n\
                c: f32[4] = full(0.0)\nd: f32[4] = full(0.0)\n\
                s: f32[4] = [i: 4] a[i] + b[i] * c[i] + d[i] + f32(p[] - q[])\noutput s\n";
    let shared = share(&program(text)).program;
    assert_eq!(
        shared.to_string(),
        text.replace("d: f32[4] = full(0.0)\n", "")
            .replace("d[i]", "c[i]")
    );
}

#[test]
fn wrong_blocks_are_named() {
    let says = |text: &str| match parse(text) {
        Ok(program) => verify(&program).expect_err(text),
        Err(error) => error.to_string(),
    };
    let with = |from: &str, to: &str| {
        assert!(NESTED.contains(from), "{from}");
        says(&NESTED.replacen(from, to, 1))
    };
    for (message, is) in [
        (
            with("carry x.0 -> x.1", "carry x.0 -> s.2"),
            "block `t`: `s.2`, what state 0 becomes, is i64[] instead of f32[2]",
        ),
        (
            with("carry s.0 -> s.2", "carry s.0 -> s.1"),
            "block `t`: state 1 becomes `s.1`, which is not of it",
        ),
        (
            with("carry s -> s.1", "carry s.2 -> s.1"),
            "14:11: expected a tensor that stands above, found `s.2`",
        ),
        (
            with("until small", "until s.2"),
            "block `t`: `s.2`, what ends it, is i64[] instead of bool[]",
        ),
        (
            with("until small", "until nothing"),
            "4:21: expected a tensor of the program, found `nothing`",
        ),
        (
            with("at 1", "at 2"),
            "block `t`: it collects 0 at dimension 2",
        ),
        (
            with("t < 10", "t < inf"),
            "block `t`: it collects, but its bound is no number",
        ),
        (
            with("t < 10", "t < 11"),
            "tensor `xs`: it should be f32[2, 11]",
        ),
        (
            says(&NESTED.replace("u < t", "t < t").replace(" of u", " of t")),
            "block `t`: the name is used twice",
        ),
        (
            with("u < t", "u < x"),
            "block `u`: `x`, its bound, is f32[2] instead of i64[]",
        ),
        (
            with("collected 0 of t", "collected 1 of t"),
            "block `t`: what it collects as 0: nothing needs it",
        ),
        (
            with("last 1 of t", "last 0 of t"),
            "tensor `s.last`: another tensor is the same",
        ),
        (
            with("= last 1 of t", "= rounds of t"),
            "tensor `t.rounds`: another tensor is the same",
        ),
        (
            with("hidden t: i64[]", "hidden t: i64[2]"),
            "block `u`: `t`, its bound, is i64[2] instead of i64[]",
        ),
        (
            with("s.in[] + t[]", "3 + 4"),
            "tensor `s.1`: it reads nothing of the innermost block that it is in",
        ),
        (
            with("x[i] * 0.5", "x.in[i] * 0.5"),
            "11:24: expected a tensor or operand that is known here",
        ),
        (
            with("}\nx.last", "}\n}\nx.last"),
            "21:1: expected a name, found `}`",
        ),
        (with("}\nx.last", "x.last"), "27:1: a block has no end"),
        (
            with("s.last: i64[] = last 1 of t", "s.last: i64[] = [] s.2[]"),
            "tensor `s.last`: an operand is of a block that is not around it",
        ),
        (
            with("hidden t: i64[] = counter of t", "hidden t: i64[] = iota"),
            "tensor `t`: `iota` does not depend on the round",
        ),
        (
            with(
                "small: bool[] = [| i: 2] any x.1[i] < 1.0",
                "small: bool[] = bernoulli(0.5)\n  q: f32[2] = last 0 of t",
            ),
            "tensor `x.last`: another tensor is the same",
        ),
    ] {
        assert_eq!(message, is);
    }
}
