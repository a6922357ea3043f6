//! Whole programs: random ones, chains, the DAGs of the papers.

use crate::support::{Kind, difference, program, rewrite, values};
use einc_core::einsum::{Program, Tensor, interpret::interpret, random, verify::verify};
use einc_core::rules::{self, LogicOptions, Stop};
use std::fmt::Write;

/// Every alternative must be sound and mean what the original means. Returns how many others there are.
fn check(program: &Program, seed: u64, kind: Kind) -> usize {
    let logic = rewrite(program);
    assert!(logic.alternatives.iter().any(|a| a.program == *program));
    for alternative in &logic.alternatives {
        assert_eq!(
            verify(&alternative.program),
            Ok(()),
            "{program}\n{}",
            alternative.program
        );
        let found = difference(program, &alternative.program, seed, kind, false);
        assert_eq!(
            found, None,
            "seed {seed}\n{program}\n{}",
            alternative.program
        );
    }
    logic.alternatives.len() - 1
}

#[test]
fn random_programs_keep_their_meaning() {
    for seed in 0..600 {
        let case = random::case(seed);
        let logic = rewrite(&case.program);
        for alternative in &logic.alternatives {
            let other = &alternative.program;
            assert_eq!(verify(other), Ok(()), "{}\n{other}", case.program);
            let input = |t: &Tensor| case.input(t);
            let expected = interpret(&case.program, &input).unwrap();
            let found = interpret(other, &input)
                .unwrap_or_else(|fault| panic!("{fault:?}\n{}\n{other}", case.program));
            for (at, (x, y)) in expected.iter().zip(&found).enumerate() {
                let same = case.compare(at, x, y).is_ok() || near(x, y);
                assert!(
                    same,
                    "seed {seed}, output {at}: {x:?} {y:?}\n{}\n{other}",
                    case.program
                );
            }
        }
    }
}

fn near(
    x: &einc_core::einsum::interpret::Values,
    y: &einc_core::einsum::interpret::Values,
) -> bool {
    x.shape == y.shape
        && x.data.iter().zip(&y.data).all(|(a, b)| {
            let (a, b) = (a.as_f64(), b.as_f64());
            (a - b).abs() <= 1e-2 * (1.0 + a.abs()) || !a.is_finite() && !b.is_finite()
        })
}

/// Random straight-line programs of products, sums, maxima, filters and diagonals over few indices, so that rules have
/// much to do with each other.
fn dense(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % n
    };
    let extents = [[1, 2, 3], [5, 5, 2], [3, 7, 1], [2, 2, 2]][below(4) as usize];
    let dtype = ["f64", "f64", "i32", "i64"][below(4) as usize];
    let names = ["i", "j", "k"];
    let mut text = String::new();
    let mut tensors: Vec<(String, Vec<usize>)> = vec![];
    for at in 0..3 {
        let rank = 1 + below(2);
        let dims: Vec<usize> = (0..rank).map(|_| below(3) as usize).collect();
        let shape: Vec<String> = dims.iter().map(|d| extents[*d].to_string()).collect();
        let _ = writeln!(text, "x{at}: {dtype}[{}] = unbound", shape.join(", "));
        tensors.push((format!("x{at}"), dims));
    }
    let zero = if dtype == "f64" {
        "0.0_f64"
    } else if dtype == "i32" {
        "0_i32"
    } else {
        "0"
    };
    let two = match dtype {
        "f64" => "2.0_f64",
        "i32" => "2_i32",
        _ => "2",
    };
    for at in 0..5 {
        let reads: Vec<String> = (0..1 + below(3))
            .map(|_| {
                let (name, dims) = &tensors[below(tensors.len() as u64) as usize];
                let at: Vec<&str> = dims.iter().map(|d| names[*d]).collect();
                // Sometimes another index of the same extent: a transpose or a diagonal.
                let at: Vec<&str> = at
                    .iter()
                    .map(|n| {
                        let own = names.iter().position(|x| x == n).unwrap();
                        let other = below(3) as usize;
                        if extents[own] == extents[other] && below(2) == 0 {
                            names[other]
                        } else {
                            n
                        }
                    })
                    .collect();
                format!("{name}[{}]", at.join(", "))
            })
            .collect();
        let operators = [" * ", " * ", " + ", " - "];
        let mut body = reads[0].clone();
        for read in &reads[1..] {
            body = format!("{body}{}{read}", operators[below(4) as usize]);
        }
        match below(8) {
            0 => body = format!("where(k == {}, {body}, {zero})", below(2)),
            1 => body = format!("{two} * ({body})"),
            2 => body = format!("max({body}, {})", reads[0]),
            3 => body = format!("{zero} + ({body})"),
            _ => {}
        }
        let used: Vec<usize> = (0..3).filter(|_| below(2) == 0).collect();
        let out: Vec<usize> = used.into_iter().take(2).collect();
        let reduced: Vec<usize> = (0..3).filter(|d| !out.contains(d)).collect();
        let list = |dims: &[usize]| -> String {
            let dims: Vec<String> = dims
                .iter()
                .map(|d| format!("{}: {}", names[*d], extents[*d]))
                .collect();
            dims.join(", ")
        };
        let reduction = ["sum", "sum", "sum", "max", "min", "prod"][below(6) as usize];
        let indices = match (out.is_empty(), reduced.is_empty()) {
            (true, _) => format!("[| {}] {reduction}", list(&reduced)),
            (false, true) => format!("[{}]", list(&out)),
            (false, false) => format!("[{} | {}] {reduction}", list(&out), list(&reduced)),
        };
        let shape: Vec<String> = out.iter().map(|d| extents[*d].to_string()).collect();
        let _ = writeln!(
            text,
            "y{at}: {dtype}[{}] = {indices} {body}",
            shape.join(", ")
        );
        tensors.push((format!("y{at}"), out));
    }
    text
}

#[test]
fn dense_programs_keep_their_meaning() {
    let mut rewritten = 0;
    for seed in 0..40 {
        let text = dense(seed);
        for last in [vec![4 - seed as usize % 2], vec![3, 4]] {
            let mut text = text.clone();
            for at in last {
                let _ = writeln!(text, "output y{at}");
            }
            let Ok(program) = einc_core::einsum::parse::parse(&text) else {
                panic!("{text}");
            };
            // What no output needs must go first.
            let program = einc_core::search::share::share(&program).program;
            assert_eq!(verify(&program), Ok(()), "{text}");
            rewritten += check(&program, seed, Kind::Finite);
        }
    }
    assert!(rewritten > 40, "only {rewritten}");
}

/// `A0 … An-1` multiplied from the left, one product a statement.
fn chain(extents: &[u64], nested: bool) -> String {
    let mut text = String::new();
    for at in 0..extents.len() - 1 {
        let _ = writeln!(
            text,
            "A{at}: f64[{}, {}] = unbound",
            extents[at],
            extents[at + 1]
        );
    }
    let last = extents.len() - 1;
    if nested {
        let mut before = "A0".to_string();
        for at in 1..last {
            let (n, k, m) = (extents[0], extents[at], extents[at + 1]);
            let _ = writeln!(
                text,
                "T{at}: f64[{n}, {m}] = [i: {n}, j: {m} | k: {k}] sum {before}[i, k] * A{at}[k, j]"
            );
            before = format!("T{at}");
        }
        let _ = writeln!(text, "output {before}");
    } else {
        let factors: Vec<String> = (0..last)
            .map(|at| format!("A{at}[i{at}, i{}]", at + 1))
            .collect();
        let inner: Vec<String> = (1..last)
            .map(|at| format!("i{at}: {}", extents[at]))
            .collect();
        let (n, m) = (extents[0], extents[last]);
        let _ = writeln!(
            text,
            "C: f64[{n}, {m}] = [i0: {n}, i{last}: {m} | {}] sum {}",
            inner.join(", "),
            factors.join(" * ")
        );
        let _ = writeln!(text, "output C");
    }
    text
}

/// The least number of multiplications and additions of a chain: the textbook recurrence.
fn textbook(extents: &[u64]) -> f64 {
    let n = extents.len() - 1;
    let mut best = vec![vec![0.0f64; n]; n];
    for length in 2..=n {
        for from in 0..=n - length {
            let to = from + length - 1;
            best[from][to] = (from..to)
                .map(|m| {
                    let own = 2.0 * (extents[from] * extents[m + 1] * extents[to + 1]) as f64;
                    best[from][m] + best[m + 1][to] + own
                })
                .fold(f64::INFINITY, f64::min);
        }
    }
    best[0][n - 1]
}

#[test]
fn chains_are_multiplied_in_the_best_order() {
    for (count, nested) in [
        (4, true),
        (12, true),
        (12, false),
        (100, true),
        (100, false),
    ] {
        let extents: Vec<u64> = (0..=count)
            .map(|i| 2 + (i * i * 37 + 11 * i) % 50)
            .collect();
        let program = program(&chain(&extents, nested));
        let start = std::time::Instant::now();
        let logic = rewrite(&program);
        let seconds = start.elapsed().as_secs_f64();
        // A guard against growth: the search has no limit of time of its own here.
        assert!(cfg!(debug_assertions) || seconds < 20.0, "{seconds} s");
        let best = &logic.alternatives[0];
        assert_eq!(verify(&best.program), Ok(()));
        assert_eq!(
            best.flops,
            textbook(&extents),
            "{count} {nested}\n{}",
            best.program
        );
        assert!(logic.explored.nodes < 20_000, "{:?}", logic.explored);
        if count == 4 {
            check(&program, 1, Kind::Finite);
        }
    }
}

#[test]
fn limits_hold() {
    let extents: Vec<u64> = (0..=40).map(|i| 2 + i % 5).collect();
    let program = program(&chain(&extents, true));
    let with = |node_limit, deadline: &dyn Fn() -> bool| {
        rules::rewrite(
            &program,
            &LogicOptions {
                disabled: &[],
                node_limit,
                candidates: 3,
                deadline,
            },
        )
    };
    let logic = with(0, &|| false);
    assert_eq!(logic.explored.stop, Stop::NodeLimit);
    assert_eq!(logic.alternatives.len(), 1);
    assert_eq!(logic.alternatives[0].program, program);
    let logic = with(50_000, &|| true);
    assert_eq!(logic.explored.stop, Stop::Deadline);
    assert!(logic.alternatives.iter().any(|a| a.program == program));
    // A little room: what was found is sound.
    let logic = with(150, &|| false);
    assert!(logic.explored.nodes < 400, "{:?}", logic.explored);
    for alternative in &logic.alternatives {
        let found = difference(&program, &alternative.program, 3, Kind::Finite, false);
        assert_eq!(found, None);
    }
    // Values depend on the names of sources alone.
    assert_eq!(
        values(&program.tensors[0], 1, Kind::Finite),
        values(&program.tensors[0], 1, Kind::Finite)
    );
}

#[test]
fn a_program_without_anything_to_do_comes_back() {
    for text in [
        "A: f32[4, 6] = unbound\nB: f32[6, 8] = unbound\nC: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]\n\
         D: f32[4, 8] = [a: 4, b: 8] relu(C[a, b])\noutput D\n",
        "x: f32[4, 6] = unbound\nm: f32[4] = [i: 4 | j: 6] max x[i, j]\n\
         e: f32[4, 6] = [i: 4, j: 6] exp(x[i, j] - m[i])\ns: f32[4] = [i: 4 | j: 6] sum e[i, j]\n\
         y: f32[4, 6] = [i: 4, j: 6] e[i, j] / s[i]\noutput y\n",
        "x: f32[4] = unbound\nc: i64[3] = unbound\ny: f32[3] = [i: 3] x[c[i]]\noutput y\noutput x\n",
    ] {
        let program = program(text);
        let logic = rewrite(&program);
        assert_eq!(
            logic.alternatives[0].program, program,
            "{}",
            logic.alternatives[0].program
        );
        assert!(logic.alternatives[0].rules.is_empty());
    }
}

/// What was rounded and is wanted in a wider type is no other name of the rounded tensor.
#[test]
fn a_rounded_tensor_is_copied_into_a_wider_type() {
    for (narrow, wide) in [("bf16", "f32"), ("f16", "f32"), ("u8", "i32")] {
        let text = format!(
            "x: {wide}[4] = unbound\nhidden r: {narrow}[4] = [i: 4] x[i]\ny: {wide}[4] = [i: 4] r[i]\noutput y\n"
        );
        let program = program(&text);
        assert_eq!(verify(&program), Ok(()), "{program}");
        for alternative in rewrite(&program).alternatives {
            let found = alternative.program;
            assert_eq!(verify(&found), Ok(()), "{found}");
            let output = found.tensor(found.outputs[0].tensor);
            assert_eq!(output.dtype.name(), wide, "{found}");
        }
    }
}

/// The Schur complement form of a block inverse (luo2021, section 8): products and sums of four blocks, shared.
#[test]
fn the_block_inverse_shares_what_it_repeats() {
    let n = 6;
    let mut text = String::new();
    for name in ["Ai", "B", "C", "Si"] {
        let _ = writeln!(text, "{name}: f64[{n}, {n}] = unbound");
    }
    let mut product = |name: &str, a: &str, b: &str| {
        let _ = writeln!(
            text,
            "{name}: f64[{n}, {n}] = [i: {n}, j: {n} | k: {n}] sum {a}[i, k] * {b}[k, j]"
        );
    };
    product("T1", "Ai", "B");
    product("T2", "T1", "Si");
    product("T3", "C", "Ai");
    product("T4", "T2", "T3");
    product("U1", "Ai", "B");
    product("U2", "U1", "Si");
    product("V1", "C", "Ai");
    product("V2", "Si", "V1");
    let _ = writeln!(
        text,
        "A11: f64[{n}, {n}] = [i: {n}, j: {n}] Ai[i, j] + T4[i, j]"
    );
    let _ = writeln!(text, "output A11\noutput U2\noutput V2");
    let program = program(&text);
    assert_eq!(check(&program, 5, Kind::Finite).min(1), 1);
    let logic = rewrite(&program);
    let products = |p: &Program| p.to_string().matches("sum ").count();
    assert_eq!(products(&program), 8);
    // Ai B, C Ai, Ai B Si, Si C Ai and one more for the corner.
    assert_eq!(products(&logic.alternatives[0].program), 5);
}

/// A transformer's forward pass, one sequence: `layers` of attention and a perceptron, each with its residual.
fn transformer(layers: usize) -> String {
    let (t, d, h, e, f) = (64, 96, 4, 24, 384);
    let mut text = format!("x0: f32[{t}, {d}] = unbound\n");
    for l in 0..layers {
        for (name, shape) in [
            ("q", format!("{d}, {h}, {e}")),
            ("k", format!("{d}, {h}, {e}")),
            ("v", format!("{d}, {h}, {e}")),
            ("o", format!("{h}, {e}, {d}")),
            ("a", format!("{d}, {f}")),
            ("b", format!("{f}, {d}")),
        ] {
            let _ = writeln!(text, "W{name}{l}: f32[{shape}] = unbound");
        }
        let x = format!("x{l}");
        let _ = writeln!(text, "mu{l}: f32[{t}] = [t: {t} | d: {d}] mean {x}[t, d]");
        let _ = writeln!(
            text,
            "va{l}: f32[{t}] = [t: {t} | d: {d}] mean ({x}[t, d] - mu{l}[t]) * ({x}[t, d] - mu{l}[t])"
        );
        let _ = writeln!(
            text,
            "n{l}: f32[{t}, {d}] = [t: {t}, d: {d}] ({x}[t, d] - mu{l}[t]) * rsqrt(va{l}[t] + 0.00001)"
        );
        for name in ["q", "k", "v"] {
            let _ = writeln!(
                text,
                "{name}{l}: f32[{t}, {h}, {e}] = [t: {t}, h: {h}, e: {e} | d: {d}] sum n{l}[t, d] * W{name}{l}[d, h, e]"
            );
        }
        let _ = writeln!(
            text,
            "s{l}: f32[{h}, {t}, {t}] = [h: {h}, t: {t}, u: {t} | e: {e}] sum q{l}[t, h, e] * k{l}[u, h, e]"
        );
        let _ = writeln!(
            text,
            "c{l}: f32[{h}, {t}, {t}] = [h: {h}, t: {t}, u: {t}] where(u <= t, s{l}[h, t, u] * 0.2, -inf)"
        );
        let _ = writeln!(
            text,
            "m{l}: f32[{h}, {t}] = [h: {h}, t: {t} | u: {t}] max c{l}[h, t, u]"
        );
        let _ = writeln!(
            text,
            "p{l}: f32[{h}, {t}, {t}] = [h: {h}, t: {t}, u: {t}] exp(c{l}[h, t, u] - m{l}[h, t])"
        );
        let _ = writeln!(
            text,
            "z{l}: f32[{h}, {t}] = [h: {h}, t: {t} | u: {t}] sum p{l}[h, t, u]"
        );
        let _ = writeln!(
            text,
            "w{l}: f32[{h}, {t}, {t}] = [h: {h}, t: {t}, u: {t}] p{l}[h, t, u] / z{l}[h, t]"
        );
        let _ = writeln!(
            text,
            "y{l}: f32[{t}, {h}, {e}] = [t: {t}, h: {h}, e: {e} | u: {t}] sum w{l}[h, t, u] * v{l}[u, h, e]"
        );
        let _ = writeln!(
            text,
            "r{l}: f32[{t}, {d}] = [t: {t}, d: {d} | h: {h}, e: {e}] sum y{l}[t, h, e] * Wo{l}[h, e, d]"
        );
        let _ = writeln!(
            text,
            "g{l}: f32[{t}, {d}] = [t: {t}, d: {d}] {x}[t, d] + r{l}[t, d]"
        );
        let _ = writeln!(
            text,
            "i{l}: f32[{t}, {f}] = [t: {t}, f: {f} | d: {d}] sum g{l}[t, d] * Wa{l}[d, f]"
        );
        let _ = writeln!(
            text,
            "j{l}: f32[{t}, {f}] = [t: {t}, f: {f}] gelu(i{l}[t, f])"
        );
        let _ = writeln!(
            text,
            "l{l}: f32[{t}, {d}] = [t: {t}, d: {d} | f: {f}] sum j{l}[t, f] * Wb{l}[f, d]"
        );
        let _ = writeln!(
            text,
            "x{}: f32[{t}, {d}] = [t: {t}, d: {d}] g{l}[t, d] + l{l}[t, d]",
            l + 1
        );
    }
    let _ = writeln!(text, "output x{layers}");
    text
}

#[test]
fn a_transformer_is_rewritten_in_time_and_gets_no_worse() {
    let layers = if cfg!(debug_assertions) { 1 } else { 12 };
    let program = program(&transformer(layers));
    let start = std::time::Instant::now();
    let logic = rewrite(&program);
    let seconds = start.elapsed().as_secs_f64();
    assert!(
        cfg!(debug_assertions) || seconds < 60.0,
        "{seconds} s, {:?}",
        logic.explored
    );
    let own = rules::price::program(&program);
    for alternative in &logic.alternatives {
        assert_eq!(verify(&alternative.program), Ok(()));
    }
    assert!(logic.alternatives[0].work <= own.score());
}

#[test]
fn reductions_of_rewritten_programs_go_through_memory_in_order() {
    let text = "A: f32[40, 40] = unbound\nq: f32[] = unbound\n\
                z: f32[40, 40] = [i: 40, j: 40 | k: 40] sum A[i, k] + q[] if k <= j\n\
                m: f32[] = [| i: 40, j: 40] max z[i, j]\noutput m";
    let logic = rewrite(&program(text));
    for alternative in &logic.alternatives {
        let text = alternative.program.to_string();
        assert!(text.contains("[| i: 40, j: 40] max z[i, j]"), "{text}");
    }
}
