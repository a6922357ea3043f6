//! No text, however broken, stops the checker; nor does it take long.

use crate::{CUT, Case, files};
use std::time::{Duration, Instant};

/// A small generator, so that the test is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

#[test]
fn broken_texts_are_only_reported() {
    let mut blocks = vec![];
    for file in files("errors").into_iter().chain(files("programs")) {
        let text = std::fs::read_to_string(file).unwrap();
        blocks.extend(text.split(CUT).map(str::to_owned));
    }
    let words: Vec<String> = blocks
        .iter()
        .flat_map(|b| b.split_whitespace())
        .map(str::to_owned)
        .collect();
    let mut random = Random(7);
    for round in 0..500 {
        let block = &blocks[random.below(blocks.len())];
        let mut parts: Vec<String> = block
            .lines()
            .filter(|l| !l.starts_with("//"))
            .flat_map(|l| l.split(' ').map(str::to_owned).chain(["\n".to_owned()]))
            .collect();
        for _ in 0..=random.below(3) {
            let at = random.below(parts.len());
            match random.below(3) {
                0 => drop(parts.remove(at)),
                1 => parts.insert(at, words[random.below(words.len())].clone()),
                _ => parts[at] = words[random.below(words.len())].clone(),
            }
            if parts.is_empty() {
                parts.push("\n".into());
            }
        }
        let mut case = Case::new(&parts.join(" "));
        case.bindings.require_sizes = round % 2 == 0;
        let analysis = case.check();
        assert!(analysis.program.is_none() || analysis.diagnostics.iter().all(|d| !d.is_error()));
    }
}

/// Some of the words of training programs in other places, without some, or twice: what is wrong is told in the user's terms, and what is
/// right is a whole program. Only a defect of the checker gives E0999.
#[test]
fn broken_trainings_are_no_internal_errors() {
    let mut blocks = vec![];
    for file in files("errors").into_iter().chain(files("programs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let cases = text.split(CUT).map(str::to_owned);
        blocks.extend(cases.filter(|block| block.contains("\ntrain ")));
    }
    blocks.extend(TRAININGS.map(str::to_owned));
    let mut random = Random(11);
    let mut failures = std::collections::BTreeMap::new();
    for _ in 0..3000 {
        let block = &blocks[random.below(blocks.len())];
        let lines = block.lines().filter(|l| !l.starts_with("// ----"));
        let lines: Vec<&str> = lines.map(|l| l.split("//!").next().unwrap()).collect();
        let mut parts: Vec<String> = lines
            .iter()
            .flat_map(|l| l.split(' ').map(str::to_owned).chain(["\n".to_owned()]))
            .collect();
        for _ in 0..=random.below(3) {
            let (at, from) = (random.below(parts.len()), random.below(parts.len()));
            match random.below(3) {
                0 => drop(parts.remove(at)),
                1 => parts.insert(at, parts[from].clone()),
                _ => parts[at] = parts[from].clone(),
            }
        }
        let text = parts.join(" ").replace("\n ", "\n");
        let mut case = Case::new(&text);
        case.bindings.require_sizes = true;
        let analysis = case.check();
        if let Some(internal) = analysis.diagnostics.iter().find(|d| d.code == "E0999") {
            let same = format!("{} {:?}", internal.message, internal.notes);
            failures.entry(same).or_insert((0, text)).0 += 1;
        }
    }
    let told: Vec<String> = failures
        .iter()
        .map(|(message, (count, text))| format!("{count} times {message}\n{text}"))
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}

/// Behind a broken line, rounds with complex states are not complete.
#[test]
fn broken_lines_of_complex_rounds_are_no_internal_errors() {
    let text = "input z: c64[4] = normal(0, 1)
fn half(p[n]) -> q[n] { q[n] = p[n] * * 0.5 }
repeat t < 2 { state s = z; a = half(s); b = fft(a); next s = b; c[t,n] = abs(a[n]) }
output s; output c
";
    let case = Case::new(text);
    assert!(!case.parsed.is_empty());
    let found = case.check().diagnostics;
    assert!(found.iter().all(|d| d.code != "E0999"), "{found:?}");
}

/// Right trainings of each kind.
const TRAININGS: [&str; 4] = [
    "dim N = 8
input X: f32[N, 4] = normal(0, 1)
input y: f32[N] = ones
input Xv: f32[6, 4] = normal(0, 1)
input yv: f32[6] = ones
param w: f32[4] = zeros
param b: f32 = zeros
p[n] = X[n,d] * w[d] + b
loss = mean[n] (p[n] - y[n])^2
err = mean[n] abs(p[n] - y[n])
optimizer adam(lr, m = 0.9) for w[..], g[..] {
  state s[..] = zeros
  next s[..] = m * s[..] + (1 - m) * g[..]
  next w[..] = w[..] - lr * next s[..]
}
train {
  loss: loss
  data: (X, y) over N by 3
  epochs: 2
  optimizer: adam(lr: 0.1)
  validate: err on (Xv, yv) every 1 epochs
  clip: 1.0
  accumulate: 2
}
output loss
output p on (Xv)
",
    "input X: f32[6, 4] = normal(0, 1)
input t: i64[6] = 1
param W: f32[4, 5] = normal(0, 1)
param V: f32[5, 3] = normal(0, 1)
h[n,k] = relu(X[n,d] * W[d,k])
z[n,c] = h[n,k] * V[k,c]
top[n] = max[c] z[n,c]
loss = mean[n] (log(sum[c] exp(z[n,c] - top[n])) - (z[n,t[n]] - top[n]))
optimizer sgd(lr) for w[..], g[..] { next w[..] = w[..] - lr * g[..] }
train {
  loss: loss
  steps: 4
  optimizer: sgd(lr: 0.1)
  freeze: V
}
train {
  loss: loss
  steps: 4
  optimizer: sgd(lr: 0.1)
}
output W
output loss
",
    "dim N = 8
input X: f32[N, 4] = normal(0, 1)
module lin(D, H)(x[.., D]) -> y[.., H] {
  param w: f32[D, H] = normal(0, 0.02)
  param b: f32[H] = zeros
  state seen[h]: f32[H] = zeros
  next seen[h] = 0.9 * seen[h] + 0.1
  y[.., h] = x[.., d] * w[d, h] + b[h] + seen[h]
}
param enc: lin(4, 4)[2]
param head: lin(4, 1)
const scale = 2.0
u = enc[0](X)
v = enc[1](u)
q = head(v)
total = sum[n] X[n,0]
loss = mean[n,o] (q[n,o] * scale - total)^2
optimizer sgd(lr) for w[..], g[..] { next w[..] = w[..] - lr * g[..] }
train {
  loss: loss
  data: (X) over N by 4
  epochs: 1
  optimizer: sgd(lr: 0.1)
  strategy: local_sgd(steps: 2)
}
output enc.1.w
output loss
",
    "input x: f32[5] = iota
param a: f32 = 1
repeat t < 4 {
  state h[i] = x[i]
  next h[i] = a * h[i]
}
k[i] = sum[j] h[j] * x[i]
loss = sum[i] (k[i] - 1)^2
optimizer sgd(lr) for w[..], g[..] { next w[..] = w[..] - lr * g[..] }
train { loss: loss; steps: 3; optimizer: sgd(lr: 0.001) }
g = grad(loss, a)
output a
output g
output h
",
];

#[test]
fn nested_calls_do_not_double_the_work() {
    let mut text = String::from(
        "input x: f32[4]\nfn f(v) = v * v + v\nfn g(a[n]) -> b[n] { b[n] = a[n] * a[n] + a[n] }\n",
    );
    let deep = |name: &str, inner: &str, n: usize| {
        format!("{}{inner}{}", format!("{name}(").repeat(n), ")".repeat(n))
    };
    text += &format!("y[i] = {}\n", deep("f", "x[i]", 60));
    text += &format!("z = {}\noutput y\noutput z\n", deep("g", "x", 60));
    let mut chain = String::from("fn q0(v) = v + 1\n");
    for n in 1..60 {
        chain += &format!("fn q{n}(v) = q{}(v) * q{}(v)\n", n - 1, n - 1);
    }
    chain += "input x: f32[4]\ny[i] = q59(x[i])\nw[i < 2] = x[q59(i) - q59(i)]\noutput y\n";
    for text in [text, chain] {
        let begin = Instant::now();
        let case = Case::new(&text);
        let analysis = case.check();
        assert!(
            analysis
                .diagnostics
                .iter()
                .all(|d| d.code.starts_with("E05")),
            "{:?}",
            analysis.diagnostics
        );
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{:?}",
            begin.elapsed()
        );
    }
}

#[test]
fn deep_and_long_texts() {
    let cases = [
        format!("x = {}1{}", "(".repeat(250), ")".repeat(250)),
        format!("x = {}1", "-".repeat(50_000)),
        format!("x = {}true", "not ".repeat(5_000)),
        format!("x = 1{}", " + 1".repeat(20_000)),
        format!("x = 2{}", "^2".repeat(5_000)),
        format!("input a: f32[4]\nx = {}a[i]", "sum[i] ".repeat(3_000)),
        format!("dim N\ndim M = N{}\n", " * N".repeat(900)),
        (0..300)
            .map(|n| format!("dim N{} = N{n} / 2 + N{n} * N{n}\n", n + 1))
            .collect::<String>()
            + "dim N0\n",
        (0..5_000)
            .map(|n| format!("y{} = y{n} + 1\n", n + 1))
            .collect::<String>()
            + "y0 = 1.0\noutput y5000\n",
        (0..300)
            .map(|n| format!("fn q{}(x) = q{n}(x) + 1\n", n + 1))
            .collect::<String>()
            + "fn q0(x) = x\ny = q300(1.0)\noutput y\n",
    ];
    for text in cases {
        let begin = Instant::now();
        let case = Case::new(&text);
        let parse = begin.elapsed();
        case.check();
        let check = begin.elapsed() - parse;
        assert!(
            check < Duration::from_secs(60),
            "{check:?}: {}",
            &text[..60]
        );
    }
}

/// Conditions are known to products of complex numbers only where these read what need not be there.
#[test]
fn nested_choices_beside_complex_products_do_not_double_the_work() {
    let mut value = "z[0]".to_owned();
    for _ in 0..24 {
        value = format!("f({value}, z)");
    }
    let text = format!(
        "input z: c64[5]\nfn f(x, n[k]) = where(re(x) > 0, x * x + prod[i] (n[i] + 1), where(im(x) > 0, x / 2, x + 1))\n\
         a = {value}\noutput a"
    );
    assert!(Case::new(&text).check().program.is_some());
}

/// Both parts of a complex product are made of both parts of its factors; the work grows with the number of factors all the same.
#[test]
fn long_products_of_complex_numbers_do_not_double_the_work() {
    let factors = vec!["z[i]"; 100].join(" * ");
    let squares = |first: &str, line: &dyn Fn(u32) -> String| {
        let lines = (1..60).map(line).collect::<String>();
        format!("input z: c128[4] = normal(0, 1)\n{first}\n{lines}")
    };
    let cases = [
        format!("input z: c128[4] = normal(0, 1)\ny = sum[i] {factors}\noutput y\n"),
        squares("a0[i] = z[i]", &|n| {
            format!("a{n}[i] = a{}[i] * a{}[i]\n", n - 1, n - 1)
        }) + "y = sum[i] a59[i]\noutput y\n",
        // Of a constant that takes the width of what it meets.
        squares("const a0 = complex(0, 1)", &|n| {
            format!("const a{n} = a{} * a{}\n", n - 1, n - 1)
        }) + "y[i] = z[i] * a59\noutput y\n",
    ];
    for text in cases {
        let begin = Instant::now();
        let analysis = Case::new(&text).check();
        assert!(analysis.program.is_some(), "{:?}", analysis.diagnostics);
        assert!(begin.elapsed() < Duration::from_secs(10), "{}", &text[..60]);
    }
}

#[test]
fn a_thousand_lines_are_checked() {
    let mut text = String::from("dim N = 100\ninput x0: f32[N, N]\ninput w: f32[N, N]\n");
    for n in 0..997 {
        text += &format!(
            "x{}[i,j] = x{n}[i,k] * w[k,j] + relu(x{n}[i,j]) / sqrt(f32(N))\n",
            n + 1
        );
    }
    text += "output x997\n";
    let case = Case::new(&text);
    let begin = Instant::now();
    let analysis = case.check();
    assert!(analysis.program.is_some());
    // The bench `modules` has its speed; what grows with the square of the lines ends here.
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_is_not_understood_is_not_missing() {
    let case = Case::new(
        "fn cell(h[n], c[n]) -> a[n], b[n] { a[n] = h[n] + c[n]; b[n] = h[n] - c[n] }\n\
         input x: f64[3]\n\
         repeat k < 3 {\n  state h = x\n  state c = x\n  next h, next c = cell(h, c)\n}\n\
         output h\n",
    );
    let parsed: Vec<&str> = case.parsed.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(parsed, ["`next` stands once, in front of all names"]);
    let found = case.check().diagnostics;
    assert!(found.iter().all(|d| !d.is_error()), "{found:?}");
}

/// Names that a line of another form would have declared are there: who uses them is not to blame.
#[test]
fn what_a_broken_line_declares_is_not_missing() {
    for (line, use_of_it) in [
        (
            "module layer(A, B) { param w: f32[A, B] = zeros }",
            "param enc: layer(3, 3)[2]\nz = enc[1](x)",
        ),
        ("fn twice(x[n] = 2 * x[n]", "z = twice(x)"),
        ("param w f32[3] = zeros", "z[i] = w[i] * x[i]"),
        ("input y: f64[3", "z[i] = y[i]"),
        ("dim M 3", "z[m < M] = 1.0"),
        ("const c 3", "z[i] = c * x[i]"),
        ("y[i] x[i]", "z[i] = y[i]"),
        (
            "dim N 4\ninput X: f64[4, 3] = ones\nparam w: f64[3] = zeros",
            "z = mean[n] (X[n,i] * w[i])^2\ntrain { loss: z; data: (X) over N by 2; steps: 1; optimizer: sgd(lr: 0.1) }",
        ),
    ] {
        let case = Case::new(&format!("input x: f64[3]\n{line}\n{use_of_it}\noutput z\n"));
        assert_eq!(case.parsed.len(), 1, "{line}: {:?}", case.parsed);
        let found = case.check().diagnostics;
        assert!(found.iter().all(|d| !d.is_error()), "{line}: {found:?}");
    }
}
