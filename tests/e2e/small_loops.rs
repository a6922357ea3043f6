//! Loops whose rounds are compiled whole, against arrays, plain loops and rounds that are made step by step.

use einc_tests::everywhere::SITES;
use einc_tests::{Tensor, einc};
use std::path::Path;

/// Runs a program with these options.
fn run(folder: &Path, text: &str, options: &[&str]) -> einc_tests::Finished {
    let program = folder.join("p.ein");
    std::fs::write(&program, text).unwrap();
    let mut arguments = vec!["run", program.to_str().unwrap()];
    arguments.extend(options);
    einc(&arguments)
}

/// The line about the rounds of a program's loop in its plan on one site.
fn rounds(text: &str) -> String {
    rounds_on("1", text)
}

fn rounds_on(sites: &str, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein");
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    let plan = einc(&["plan", "--kernels", "--sites", sites, program]).success();
    let mut lines = plan.stdout.lines();
    let line = lines.find(|line| line.contains("// rounds are"));
    line.unwrap_or_else(|| panic!("{plan}")).trim().to_owned()
}

/// An output of a program.
fn output(text: &str, name: &str, options: &[&str]) -> Tensor {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.npy");
    let save = format!("{name}={}", file.to_str().unwrap());
    let options = [options, &["--save", &save]].concat();
    run(folder.path(), text, &options).success();
    Tensor::read(&file)
}

const REAL: [&str; 40] = [
    "x[#] + w[#]",
    "x[#] - w[#]",
    "x[#] * w[#]",
    "x[#] / w[#]",
    "div(x[#], w[#])",
    "x[#] % w[#]",
    "w[#]^x[#]",
    "w[#]^2.3",
    "x[#]^3",
    "w[#]^(-2)",
    "w[#]^0.5",
    "w[#]^(-1.5)",
    "min(x[#], w[#])",
    "max(x[#], w[#])",
    "-x[#]",
    "exp(x[#])",
    "log(x[#])",
    "log1p(x[#])",
    "expm1(x[#])",
    "sqrt(x[#])",
    "rsqrt(w[#])",
    "tanh(x[#])",
    "sigmoid(x[#])",
    "relu(x[#])",
    "gelu(x[#])",
    "erf(x[#])",
    "sin(9 * x[#])",
    "cos(9 * x[#])",
    "atan2(x[#], w[#])",
    "asinh(x[#])",
    "cbrt(x[#])",
    "hypot(x[#], w[#])",
    "lgamma(w[#])",
    "abs(x[#])",
    "sign(x[#])",
    "floor(3 * x[#])",
    "round(3 * x[#])",
    "where(x[#] > 0, x[#], w[#])",
    "where(x[#] <= w[#] and not (x[#] == w[#]), 1 / x[#], w[#])",
    "nextafter(x[#], w[#])",
];

const WHOLE: [&str; 22] = [
    "m[#] + k[#]",
    "m[#] - k[#]",
    "m[#] * k[#]",
    "div(m[#], k[#])",
    "m[#] % k[#]",
    "min(m[#], k[#])",
    "max(m[#], k[#])",
    "-m[#]",
    "abs(m[#])",
    "sign(m[#])",
    "m[#] & k[#]",
    "m[#] | k[#]",
    "m[#] xor k[#]",
    "m[#] << abs(k[#])",
    "m[#] >> abs(k[#])",
    "popcount(m[#])",
    "k[#]^2",
    "i32(100 * x[#])",
    "i64(1e30 * x[#])",
    "i64(x[#] > w[#])",
    "i64(f32(m[#]))",
    "i64(where(m[#] % 3 == 0, m[#], k[#]))",
];

/// Every function gives the same bits element by element in compiled rounds, and over whole arrays.
#[test]
fn functions_in_rounds_are_those_of_arrays() {
    for (real, whole) in [("f64", "i64"), ("f32", "i32")] {
        let mut text = format!(
            "dim N = 61
             input x: {real}[N] = uniform(-1.5, 1.5)
             input w: {real}[N] = uniform(0.1, 2)
             input m: {whole}[N] = uniform(-1000, 1000)
             input k0: {whole}[N] = uniform(1, 12)
             k[n] = where(n % 2 == 0, k0[n], -k0[n])\n"
        );
        let mut inside = String::new();
        let mut same = vec![];
        for (number, expression) in REAL.iter().chain(&WHOLE).enumerate() {
            let at = |index: &str| expression.replace('#', index);
            text += &format!("a{number}[n] = {}\n", at("n"));
            let kind = match expression {
                e if e.starts_with("i32(") => "i32",
                e if e.starts_with("i64(") => "i64",
                e if WHOLE.contains(e) => whole,
                _ => real,
            };
            inside += &format!("b{number}[t]: {kind}[N] = {}\n", at("t"));
            same.push(format!(
                "d{number} = sum[n] i64(not (a{number}[n] == b{number}[n] or (isnan(f64(a{number}[n])) and isnan(f64(b{number}[n])))))\noutput d{number}\n"
            ));
        }
        text += &format!(
            "repeat t < N {{\nstate c = 0\nnext c = c + 1\n{inside}}}\n{}",
            same.concat()
        );
        assert!(
            rounds(&text).contains("compiled whole"),
            "{}",
            rounds(&text)
        );
        let folder = tempfile::tempdir().unwrap();
        let found = run(folder.path(), &text, &[]).success();
        for (number, expression) in REAL.iter().chain(&WHOLE).enumerate() {
            let none = format!("d{number} = 0\n");
            assert!(
                found.stdout.contains(&none),
                "{real}: {expression}: {found}"
            );
        }
    }
}

/// A table that is filled cell by cell: elements of a state change where they lie.
#[test]
fn cells_of_a_table_are_those_of_plain_loops() {
    let text = "dim N = 23
        input x: f64[N]
        input y: f64[N]
        repeat p < N * N {
          state D[i<N, j<N] = 0.0
          i0 = div(p, N)
          j0 = p % N
          up   = where(i0 > 0, (D[i0-1, j0] else inf), inf)
          left = where(j0 > 0, (D[i0, j0-1] else inf), inf)
          diagonal = where(i0 > 0 and j0 > 0, (D[i0-1, j0-1] else inf), inf)
          best = where(p == 0, 0.0, min(up, min(left, diagonal)))
          next D[i,j] = where(i == i0 and j == j0, abs(x[i0] - y[j0]) + best, D[i,j])
        }
        output D";
    assert_eq!(
        rounds(text),
        "// rounds are compiled whole; steps: 7, points of a round: 7"
    );
    let n = 23;
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = (Tensor::noise(&[n], 1), Tensor::noise(&[n], 2));
    let [one, two] = ["x", "y"].map(|name| folder.path().join(format!("{name}.npy")));
    x.write_f64(&one);
    y.write_f64(&two);
    let mut wanted = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            let near = |di: usize, dj: usize| match (i.checked_sub(di), j.checked_sub(dj)) {
                (Some(i), Some(j)) => wanted[i * n + j],
                _ => f64::INFINITY,
            };
            let best = match i + j {
                0 => 0.0,
                _ => near(1, 0).min(near(0, 1)).min(near(1, 1)),
            };
            wanted[i * n + j] = (x.at(&[i]) - y.at(&[j])).abs() + best;
        }
    }
    let wanted = Tensor::from_fn(&[n, n], |at| wanted[at]);
    let inputs =
        [("x", &one), ("y", &two)].map(|(name, file)| format!("{name}={}", file.display()));
    for sites in SITES {
        let options = [
            "--sites", sites, "--input", &inputs[0], "--input", &inputs[1],
        ];
        output(text, "D", &options).assert_close(&wanted, 1e-12, sites);
    }
}

/// Reductions, guards, values of all rounds, states that take each other's place, an end by a condition: as rounds step by step.
#[test]
fn rounds_are_those_that_are_made_step_by_step() {
    let text = "dim R = 400
        input s: f64[9] = uniform(0, 1)
        input q: f32[9] = uniform(0, 1)
        repeat t < R until biggest < 1e-9 {
          state x[i] = s[i]
          state y[i] = q[i]
          state k = 7
          state flag = false
          state a = 0.0
          state b = 1.0
          at = argmax[i] x[i]
          low = argmin[i] y[i]
          biggest = max[i] x[i]
          least = min[i] where(i > 2, y[i], 2)
          average = mean[i] y[i]
          product = prod[i] (1 + 0.01 * x[i])
          some = any[i] (x[i] > 0.9)
          every = all[i] (y[i] < 0.9)
          above[i] = sum[j < 9] where(j <= i, x[j], 0)
          next x[i] = where(i == at, 0.5 * x[i], x[i] * 0.99) + 1e-13 * (x[i-1] else 0)
          next y[i] = where(i == low, y[i] + 0.1, 0.9 * y[i]) * f32(product)
          next k = (k * 31 + at * low) % 1009
          next flag = (some and every) or not flag
          next a = a + 0.1 * b
          next b = b - 0.1 * (next a)
          trace[t]: f64[R] = biggest + f64(average) + f64(least)
          last[t, i]: f64[R, 9] = above[i]
        }
        flags = i64(flag)
        output x; output y; output k; output flags; output a; output b; output trace; output last; output t";
    let said = rounds(text);
    assert!(said.contains("compiled whole"), "{said}");
    for name in ["x", "y", "k", "flags", "a", "b", "trace", "last", "t"] {
        let wanted = output(text, name, &["--deterministic"]);
        for sites in SITES {
            let found = output(text, name, &["--sites", sites]);
            found.assert_close(&wanted, 1e-5, &format!("{name} on {sites} sites"));
        }
    }
}

/// Checksums over bytes and words of 16 and 32 bits, a loop in a loop: those of zlib over "123456789", eight times.
#[test]
fn checksums_are_those_of_zlib() {
    let text = "dim N = 72
        letters[v < N] = u8(49 + v % 9)
        repeat v < N {
          state crc = u32(4294967295)
          state low = u16(1)
          state high = u16(0)
          begun = u32(i64(crc) xor i64(letters[v]))
          repeat bit < 8 {
            state e = begun
            next e = u32(where(i64(e) & 1 == 1, (i64(e) >> 1) xor 3988292384, i64(e) >> 1))
          }
          next crc = e
          next low = u16((i64(low) + i64(letters[v])) % 65521)
          next high = u16((i64(high) + i64(next low)) % 65521)
        }
        check = i64(crc) xor 4294967295
        adler = i64(high) * 65536 + i64(low)
        output check; output adler";
    let said = rounds(text);
    assert!(
        said.contains("compiled whole, with the loops in them; steps: 6"),
        "{said}"
    );
    for sites in SITES {
        for (name, wanted) in [("check", 2_282_857_536.0), ("adler", 513_412_841.0)] {
            let found = output(text, name, &["--sites", sites]);
            assert_eq!(found.at(&[]), wanted, "{name} on {sites} sites");
        }
    }
}

/// Loops in loops: bounds that a round computes, ends by a condition, values of all rounds, states in place, three deep. Rounds of the inner
/// ones are counted in what a run reports.
#[test]
fn loops_in_rounds_are_those_that_are_made_step_by_step() {
    let text = "dim N = 7
        input x: i16[N] = uniform(-300, 300)
        input y: f64[N] = uniform(0, 1)
        repeat t < 50 {
          state a[i] = x[i]
          state b[i] = y[i]
          state c: i64 = 3
          most = abs(c) % 5
          repeat p < most {
            state u[i] = a[i]
            state n = u8(250)
            next u[i] = where(i == p, i16(u[i] * 300 + t), u[i])
            next n = u8(n + 3)
          }
          repeat q < 6 until total > 4.0 {
            state v[i] = b[i]
            repeat r < N {
              state w = v[0]
              next w = 0.5 * w + v[r]
            }
            total = w
            next v[i] = 0.9 * v[(i + 1) % N] + 0.05 * w
            kept[q]: f64[6] = total
          }
          next a[i] = u[i]
          next b[i] = where(v[i] > 1, v[i] - 1, v[i]) + 0.001 * (sum[q] kept[q])
          next c = c + i64(n) + q + p
        }
        short[i] = f64(a[i])
        output short; output b; output c";
    let said = rounds(text);
    assert!(
        said.contains("compiled whole, with the loops in them"),
        "{said}"
    );
    for name in ["short", "b", "c"] {
        let wanted = output(text, name, &["--deterministic"]);
        for sites in SITES {
            let found = output(text, name, &["--sites", sites]);
            found.assert_close(&wanted, 1e-12, &format!("{name} on {sites} sites"));
        }
    }
}

/// Operations on whole arrays and reductions that the code of a loop calls for: a Kalman filter, Newton's method, the forward algorithm.
#[test]
fn rounds_call_for_what_is_no_code_of_theirs() {
    let text = "dim R = 60
        input F: f64[4, 4] = uniform(-0.3, 0.3)
        input H: f64[2, 4] = uniform(-1, 1)
        input z: f64[R, 2] = normal(0, 1)
        input A: f32[5, 5] = uniform(0, 1)
        input b: f32[R, 5] = uniform(0, 1)
        repeat t < R {
          state x: f64[4] = zeros
          state P[i<4, j<4]: f64[4, 4] = where(i == j, 1, 0)
          state a[s<5] = f32(0)
          state far = 0
          p[i,j] = F[i,k] * P[k,l] * F[j,l] + where(i == j, 0.1, 0)
          S[m,n] = H[m,i] * p[i,j] * H[n,j] + where(m == n, 1, 0)
          u[m,i] = H[m,j] * p[j,i]
          K = solve(S, u)
          L = cholesky(S)
          r[m] = z[t,m] - H[m,i] * F[i,j] * x[j]
          next x[i] = (sum[j] F[i,j] * x[j]) + K[m,i] * r[m]
          next P[i,j] = p[i,j] - K[m,i] * u[m,j]
          next a[s] = (logsumexp[q] (a[q] + log(A[q,s]))) + log(b[t,s])
          next far = far + (argmax[i,j] (next P[i,j])^2)
          size[t]: f64[R] = norm[i] next x[i]
          spread[t]: f64[R] = logdet(p) + L[1,1]
        }
        output x; output a; output far; output size; output spread";
    assert!(rounds(text).contains("compiled whole"), "{}", rounds(text));
    for name in ["x", "a", "far", "size", "spread"] {
        let wanted = output(text, name, &["--deterministic"]);
        for sites in SITES {
            let found = output(text, name, &["--sites", sites]);
            found.assert_close(&wanted, 1e-5, &format!("{name} on {sites} sites"));
        }
    }
}

/// A round with a mistake is told as it is without compiled rounds, and in the same round.
#[test]
fn mistakes_are_told_alike() {
    let cases = [
        (
            "next s = s + div(a[t % 10], 100 - t)",
            "divided by zero; in the round t = 100",
        ),
        ("next s = s + a[s]", "position 16 is outside `a`"),
        ("next s = s + 2^(50 - t)", "in the round t = 51"),
        ("next s = s + (argmax[i] where(i > 40 - t, b[i], b[i]))", ""),
        (
            "M[i<3, j<3] = where(i == j, f32(70 - t), 0)\nI = inv(M)\nnext s = s + i64(I[0, 1])",
            "in the round t = 70",
        ),
    ];
    for (statement, message) in cases {
        let text = format!(
            "input a: i64[10] = iota\ninput b: f32[5] = iota\nrepeat t < 200 {{\n  state s = 1\n  {statement}\n}}\noutput s\n"
        );
        let said = rounds(&text);
        assert!(said.contains("compiled whole"), "{statement}: {said}");
        let folder = tempfile::tempdir().unwrap();
        let wanted = run(folder.path(), &text, &["--deterministic"]);
        for sites in SITES {
            let found = run(folder.path(), &text, &["--sites", sites]);
            let said = |of: &einc_tests::Finished| (of.stdout.clone(), of.stderr.clone());
            assert_eq!(said(&found), said(&wanted), "{statement} on {sites} sites");
            assert!(found.stderr.contains(message), "{found}");
        }
    }
}

/// Rounds of up to 4,096 operations are not shared out over sites, so that they are compiled whole there, too; longer ones are.
#[test]
fn small_rounds_are_made_at_one_site() {
    let text = |n: usize, rounds: usize| {
        format!(
            "input A: f64[{n}, {n}] = uniform(0, 0.1)
             repeat t < {rounds} {{
               state x[i<{n}] = f64(1)
               next x[i] = A[i,j] * x[j] + 0.5
             }}
             output x"
        )
    };
    for sites in &SITES[1..] {
        let said = rounds_on(sites, &text(20, 100));
        assert!(said.contains("compiled whole"), "{sites}: {said}");
        let said = rounds_on(sites, &text(50, 100));
        assert!(said.contains("is not whole at a site"), "{sites}: {said}");
    }
}

/// A chain that every site computes says when the loop ends, and one site has the rest: all make the same rounds, step by step.
#[test]
fn sites_that_have_parts_of_a_loop_make_its_rounds_alike() {
    let text = "param b: f64[20] = 1
        repeat t < 5000 until e < 1e-13 {
          state x[i] = b[i]
          state y[j<20] = 1/f64(j+3)
          e = norm[j] y[j]
          s = sum[j] y[j]*exp(-0.1*j)
          next y[j] = 0.99*y[j] + 1e-15*s
          next x[i] = 0.99*x[i] + 0.01*b[i]
        }
        output x; output t";
    assert!(rounds(text).contains("compiled whole"), "{}", rounds(text));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.npy");
    Tensor::noise(&[20], 3).write_f64(&file);
    let text = text.replace("param b: f64[20] = 1", "input b: f64[20]");
    let input = format!("b={}", file.display());
    let wanted = output(&text, "t", &["--input", &input]);
    for sites in &SITES[1..] {
        let found = output(&text, "t", &["--sites", sites, "--input", &input]);
        found.assert_close(&wanted, 0.0, sites);
    }
}

/// Rounds that are few, or too large, are made step by step, and the plan says why.
#[test]
fn plans_say_why_rounds_are_made_step_by_step() {
    let cases = [
        (
            "state s = f16(1)\nnext s = f16(0.5 * f32(s))",
            100,
            "is f16",
        ),
        ("state s = 1.0\nnext s = 0.5 * s", 20, "it makes 20 rounds"),
        (
            "state s[i<3000] = 1.0\nnext s[i] = 0.5 * s[i]",
            100,
            "a round has 6000 points",
        ),
        (
            "state s[i<3] = 1.0\nu[i<3]: f32[3] = uniform(0, 1)\nnext s[i] = s[i] + u[i]",
            100,
            "is drawn in every round",
        ),
        (
            "state x = 1.0\nstate y = 2.0\nnext x = y\nnext y = x",
            100,
            "",
        ),
    ];
    for (body, rounds_made, why) in cases {
        let text = format!(
            "input b: f32[5] = iota\nrepeat t < {rounds_made} {{\n{body}\n}}\noutput {}\n",
            if body.contains("state s") { "s" } else { "x" }
        );
        let said = rounds(&text);
        assert!(said.contains(why), "{body}: {said}");
    }
}

/// A state whose first value is computed in parts rests whole at the site of the loop.
#[test]
fn swaps_are_compiled_on_several_sites() {
    let text = "dim N = 3000
        input J: f64[N]
        repeat t < N {
          state a[i < N] = i
          j = i64(J[t])
          u = a[t]
          v = a[j]
          next a[i] = where(i == t, v, where(i == j, u, a[i]))
        }
        output a";
    let other = |t: usize| (t * 7919) % (t + 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("J.npy");
    Tensor::from_fn(&[3000], |t| other(t) as f64).write_f64(&file);
    let mut wanted: Vec<f64> = (0..3000).map(f64::from).collect();
    (0..3000).for_each(|t| wanted.swap(t, other(t)));
    let wanted = Tensor::from_fn(&[3000], |at| wanted[at]);
    let input = format!("J={}", file.display());
    for sites in SITES {
        let said = rounds_on(sites, text);
        assert!(said.contains("compiled whole"), "{sites} sites: {said}");
        let found = output(text, "a", &["--sites", sites, "--input", &input]);
        found.assert_close(&wanted, 0.0, sites);
    }
}
