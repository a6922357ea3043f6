//! Programs of the papers and of practice, as Einstein text, for the search's tests and benches.

use einc_core::einsum::{Program, parse::parse, verify::verify};
use std::fmt::Write;

/// A program from its text.
pub fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()));
    program
}

/// Lines of a program.
#[derive(Default)]
pub struct Text {
    pub lines: String,
}

impl Text {
    /// A line.
    pub fn line(&mut self, line: &str) {
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    /// `name = left · right`, of [rows, inner] and [inner, columns].
    pub fn matmul(&mut self, name: &str, left: &str, right: &str, size: [u64; 3]) {
        let [rows, inner, columns] = size;
        self.line(&format!(
            "{name}: f32[{rows}, {columns}] = [i: {rows}, j: {columns} | k: {inner}] sum {left}[i, k] * {right}[k, j]"
        ));
    }

    /// `name = left · transposed right`, of [rows, inner] and [columns, inner].
    pub fn matmul_right(&mut self, name: &str, left: &str, right: &str, size: [u64; 3]) {
        let [rows, inner, columns] = size;
        self.line(&format!(
            "{name}: f32[{rows}, {columns}] = [i: {rows}, j: {columns} | k: {inner}] sum {left}[i, k] * {right}[j, k]"
        ));
    }

    /// `name = transposed left · right`, of [inner, rows] and [inner, columns].
    pub fn matmul_left(&mut self, name: &str, left: &str, right: &str, size: [u64; 3]) {
        let [rows, inner, columns] = size;
        self.line(&format!(
            "{name}: f32[{rows}, {columns}] = [i: {rows}, j: {columns} | k: {inner}] sum {left}[k, i] * {right}[k, j]"
        ));
    }

    /// An element-wise statement over a matrix; `@` in the body stands for `[i, j]`.
    pub fn map(&mut self, name: &str, size: [u64; 2], body: &str) {
        let [rows, columns] = size;
        let body = body.replace('@', "[i, j]");
        self.line(&format!(
            "{name}: f32[{rows}, {columns}] = [i: {rows}, j: {columns}] {body}"
        ));
    }

    /// The step of a param against its gradient `d{name}`.
    pub fn update(&mut self, name: &str, size: [u64; 2]) {
        self.map(
            &format!("{name}_next"),
            size,
            &format!("{name}@ - 0.01 * d{name}@"),
        );
        self.line(&format!("output {name}_next replaces {name}"));
    }

    /// The program.
    pub fn program(self) -> Program {
        program(&self.lines)
    }
}

/// A[i, k] · B[k, j], both loaded.
pub fn matmul(i: u64, k: u64, j: u64) -> Program {
    let mut text = Text::default();
    text.line(&format!("input A: f32[{i}, {k}] = unbound"));
    text.line(&format!("input B: f32[{k}, {j}] = unbound"));
    text.matmul("C", "A", "B", [i, k, j]);
    text.line("output C");
    text.program()
}

/// The product of the thesis' nearest neighbour search (section 3.4.2): X[n, d] - x[d], times A[d, d].
pub fn nearest(n: u64, d: u64) -> Program {
    program(&format!(
        "input X: f32[{n}, {d}] = unbound\ninput x: f32[{d}] = unbound\ninput A: f32[{d}, {d}] = unbound\n\
         D: f32[{n}, {d}] = [i: {n}, j: {d}] X[i, j] - x[j]\n\
         P: f32[{n}, {d}] = [i: {n}, j: {d} | k: {d}] sum D[i, k] * A[k, j]\n\
         q: f32[{n}] = [i: {n} | j: {d}] sum P[i, j] * D[i, j]\n\
         best: i64[] = [| i: {n}] argmin q[i]\noutput best"
    ))
}

/// One training step of the thesis' two-layer network (section 3.4.3), gradients by hand.
pub fn ffnn(n: u64, d: u64, h: u64, l: u64) -> Program {
    let mut text = Text::default();
    text.line(&format!("input X: f32[{n}, {d}] = unbound"));
    text.line(&format!("input Y: f32[{n}, {l}] = unbound"));
    text.line(&format!("param W1: f32[{d}, {h}] = unbound"));
    text.line(&format!("param W2: f32[{h}, {l}] = unbound"));
    text.matmul("z1", "X", "W1", [n, d, h]);
    text.map("a1", [n, h], "max(z1@, 0.0)");
    text.matmul("z2", "a1", "W2", [n, h, l]);
    text.map("dz2", [n, l], "1.0 / (1.0 + exp(-z2@)) - Y@");
    text.matmul_left("dW2", "a1", "dz2", [h, n, l]);
    text.matmul_right("da1", "dz2", "W2", [n, l, h]);
    text.map("dz1", [n, h], "where(a1@ > 0.0, da1@, 0.0)");
    text.matmul_left("dW1", "X", "dz1", [d, n, h]);
    text.update("W1", [d, h]);
    text.update("W2", [h, l]);
    text.program()
}

/// A training step of a perceptron of square layers, gradients by hand.
pub fn perceptron(layers: usize, n: u64, width: u64) -> Program {
    let mut text = Text::default();
    let size = [n, width];
    text.line(&format!("input a0: f32[{n}, {width}] = unbound"));
    text.line(&format!("input Y: f32[{n}, {width}] = unbound"));
    for layer in 1..=layers {
        text.line(&format!("param W{layer}: f32[{width}, {width}] = unbound"));
    }
    for layer in 1..=layers {
        let before = layer - 1;
        text.matmul(
            &format!("z{layer}"),
            &format!("a{before}"),
            &format!("W{layer}"),
            [n, width, width],
        );
        text.map(&format!("a{layer}"), size, &format!("max(z{layer}@, 0.0)"));
    }
    text.map("back", size, &format!("a{layers}@ - Y@"));
    let mut back = "back".to_string();
    for layer in (1..=layers).rev() {
        let before = layer - 1;
        text.map(
            &format!("dz{layer}"),
            size,
            &format!("where(a{layer}@ > 0.0, {back}@, 0.0)"),
        );
        text.matmul_left(
            &format!("dW{layer}"),
            &format!("a{before}"),
            &format!("dz{layer}"),
            [width, n, width],
        );
        if layer > 1 {
            text.matmul_right(
                &format!("da{layer}"),
                &format!("dz{layer}"),
                &format!("W{layer}"),
                [n, width, width],
            );
            back = format!("da{layer}");
        }
        text.update(&format!("W{layer}"), [width, width]);
    }
    text.program()
}

/// Which of luo2021's computations (section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// `A` of the next is `O2`.
    Dag1,
    /// `A` of the next is `O2`, `C` is `O1`.
    Dag2,
    /// `O2 = O1 · F`, and `A` of the next is `O2`.
    Tree,
}

/// luo2021, section 8.4: products of square matrices, linked `scale` times.
pub fn luo(kind: Linked, scale: usize, side: u64) -> Program {
    let mut text = Text::default();
    let size = [side; 3];
    let (mut a, mut c) = (String::new(), String::new());
    for at in 1..=scale {
        let load = |text: &mut Text, name: &str| {
            text.line(&format!("input {name}{at}: f32[{side}, {side}] = unbound"));
            format!("{name}{at}")
        };
        if at == 1 {
            a = load(&mut text, "A");
        }
        if at == 1 || kind != Linked::Dag2 {
            c = load(&mut text, "C");
        }
        let (b, d, e) = (
            load(&mut text, "B"),
            load(&mut text, "D"),
            load(&mut text, "E"),
        );
        let [t1, t2, t, o1, o2] = ["T1_", "T2_", "T_", "O1_", "O2_"].map(|n| format!("{n}{at}"));
        text.matmul(&t1, &a, &b, size);
        text.matmul(&t2, &c, &d, size);
        text.matmul(&t, &t1, &t2, size);
        text.matmul(&o1, &t, &e, size);
        if kind == Linked::Tree {
            let f = load(&mut text, "F");
            text.matmul(&o2, &o1, &f, size);
        } else {
            text.matmul(&o2, &t, &o1, size);
        }
        (a, c) = (o2, o1);
    }
    text.line(&format!("output {a}"));
    text.program()
}

/// Sizes of a transformer.
#[derive(Clone, Copy, Debug)]
pub struct Transformer {
    pub layers: usize,
    pub batch: u64,
    pub sequence: u64,
    pub heads: u64,
    pub head: u64,
    pub hidden: u64,
}

impl Transformer {
    fn width(&self) -> u64 {
        self.heads * self.head
    }
}

/// Layers of attention and a two-layer network, 21 statements each; with `training` also the gradients of all weights
/// and their steps.
pub fn transformer(sizes: Transformer, training: bool) -> Program {
    let t = sizes;
    let (b, s, w, h, e, f) = (t.batch, t.sequence, t.width(), t.heads, t.head, t.hidden);
    let mut p = String::new();
    let source = if training { "param" } else { "input" };
    writeln!(p, "input x0: f32[{b}, {s}, {w}] = unbound").unwrap();
    if training {
        writeln!(p, "input Y: f32[{b}, {s}, {w}] = unbound").unwrap();
    }
    for l in 0..t.layers {
        for m in ["Q", "K", "V"] {
            writeln!(p, "{source} {m}w{l}: f32[{w}, {h}, {e}] = unbound").unwrap();
        }
        writeln!(p, "{source} Ow{l}: f32[{h}, {e}, {w}] = unbound").unwrap();
        writeln!(p, "{source} Aw{l}: f32[{w}, {f}] = unbound").unwrap();
        writeln!(p, "{source} Bw{l}: f32[{f}, {w}] = unbound").unwrap();
    }
    let bsw = format!("f32[{b}, {s}, {w}] = [b: {b}, s: {s}, w: {w}");
    let bshe = format!("f32[{b}, {s}, {h}, {e}] = [b: {b}, s: {s}, h: {h}, e: {e}");
    let bhst = format!("f32[{b}, {h}, {s}, {s}] = [b: {b}, h: {h}, s: {s}, t: {s}");
    let bhs = format!("f32[{b}, {h}, {s}] = [b: {b}, h: {h}, s: {s}");
    let bs = format!("f32[{b}, {s}] = [b: {b}, s: {s}");
    let bsf = format!("f32[{b}, {s}, {f}] = [b: {b}, s: {s}, f: {f}");
    let norm = |p: &mut String, name: &str, of: &str| {
        writeln!(p, "{name}m: {bs} | w: {w}] mean {of}[b, s, w]").unwrap();
        writeln!(p, "{name}v: {bs} | w: {w}] mean ({of}[b, s, w] - {name}m[b, s]) * ({of}[b, s, w] - {name}m[b, s])").unwrap();
        writeln!(
            p,
            "{name}: {bsw}] ({of}[b, s, w] - {name}m[b, s]) / sqrt({name}v[b, s] + 0.00001)"
        )
        .unwrap();
    };
    for l in 0..t.layers {
        let n = l + 1;
        norm(&mut p, &format!("n{l}"), &format!("x{l}"));
        for m in ["Q", "K", "V"] {
            writeln!(
                p,
                "{m}{l}: {bshe} | w: {w}] sum n{l}[b, s, w] * {m}w{l}[w, h, e]"
            )
            .unwrap();
        }
        writeln!(
            p,
            "S{l}: {bhst} | e: {e}] sum Q{l}[b, s, h, e] * K{l}[b, t, h, e]"
        )
        .unwrap();
        writeln!(p, "Sm{l}: {bhs} | t: {s}] max S{l}[b, h, s, t]").unwrap();
        writeln!(p, "Se{l}: {bhst}] exp(S{l}[b, h, s, t] - Sm{l}[b, h, s])").unwrap();
        writeln!(p, "Ss{l}: {bhs} | t: {s}] sum Se{l}[b, h, s, t]").unwrap();
        writeln!(p, "P{l}: {bhst}] Se{l}[b, h, s, t] / Ss{l}[b, h, s]").unwrap();
        writeln!(
            p,
            "C{l}: {bshe} | t: {s}] sum P{l}[b, h, s, t] * V{l}[b, t, h, e]"
        )
        .unwrap();
        writeln!(
            p,
            "O{l}: {bsw} | h: {h}, e: {e}] sum C{l}[b, s, h, e] * Ow{l}[h, e, w]"
        )
        .unwrap();
        writeln!(p, "y{l}: {bsw}] x{l}[b, s, w] + O{l}[b, s, w]").unwrap();
        norm(&mut p, &format!("k{l}"), &format!("y{l}"));
        writeln!(p, "F{l}: {bsf} | w: {w}] sum k{l}[b, s, w] * Aw{l}[w, f]").unwrap();
        writeln!(p, "G{l}: {bsf}] max(F{l}[b, s, f], 0.0)").unwrap();
        writeln!(p, "H{l}: {bsw} | f: {f}] sum G{l}[b, s, f] * Bw{l}[f, w]").unwrap();
        writeln!(p, "x{n}: {bsw}] y{l}[b, s, w] + H{l}[b, s, w]").unwrap();
    }
    if !training {
        writeln!(p, "output x{}", t.layers).unwrap();
        return program(&p);
    }
    writeln!(
        p,
        "dx{}: {bsw}] x{}[b, s, w] - Y[b, s, w]",
        t.layers, t.layers
    )
    .unwrap();
    // The gradient through a norm, up to the parts that do not change what is read and made.
    let norm_back = |p: &mut String, name: &str, of: &str, norm: &str, skip: &str| {
        writeln!(
            p,
            "{name}u: {bs} | w: {w}] mean {of}[b, s, w] * {norm}[b, s, w]"
        )
        .unwrap();
        writeln!(p, "{name}a: {bs} | w: {w}] mean {of}[b, s, w]").unwrap();
        writeln!(p, "{name}: {bsw}] {skip}[b, s, w] + ({of}[b, s, w] - {name}a[b, s] - {norm}[b, s, w] * {name}u[b, s]) / sqrt({norm}v[b, s] + 0.00001)").unwrap();
    };
    for l in (0..t.layers).rev() {
        let n = l + 1;
        let up = format!("dx{n}");
        writeln!(p, "dG{l}: {bsf} | w: {w}] sum {up}[b, s, w] * Bw{l}[f, w]").unwrap();
        writeln!(p, "dBw{l}: f32[{f}, {w}] = [f: {f}, w: {w} | b: {b}, s: {s}] sum G{l}[b, s, f] * {up}[b, s, w]").unwrap();
        writeln!(
            p,
            "dF{l}: {bsf}] where(F{l}[b, s, f] > 0.0, dG{l}[b, s, f], 0.0)"
        )
        .unwrap();
        writeln!(p, "dAw{l}: f32[{w}, {f}] = [w: {w}, f: {f} | b: {b}, s: {s}] sum k{l}[b, s, w] * dF{l}[b, s, f]").unwrap();
        writeln!(p, "dk{l}: {bsw} | f: {f}] sum dF{l}[b, s, f] * Aw{l}[w, f]").unwrap();
        norm_back(
            &mut p,
            &format!("dy{l}"),
            &format!("dk{l}"),
            &format!("k{l}"),
            &up,
        );
        writeln!(
            p,
            "dC{l}: {bshe} | w: {w}] sum dy{l}[b, s, w] * Ow{l}[h, e, w]"
        )
        .unwrap();
        writeln!(p, "dOw{l}: f32[{h}, {e}, {w}] = [h: {h}, e: {e}, w: {w} | b: {b}, s: {s}] sum C{l}[b, s, h, e] * dy{l}[b, s, w]").unwrap();
        writeln!(
            p,
            "dP{l}: {bhst} | e: {e}] sum dC{l}[b, s, h, e] * V{l}[b, t, h, e]"
        )
        .unwrap();
        writeln!(p, "dV{l}: f32[{b}, {s}, {h}, {e}] = [b: {b}, t: {s}, h: {h}, e: {e} | s: {s}] sum P{l}[b, h, s, t] * dC{l}[b, s, h, e]").unwrap();
        writeln!(
            p,
            "dr{l}: {bhs} | t: {s}] sum dP{l}[b, h, s, t] * P{l}[b, h, s, t]"
        )
        .unwrap();
        writeln!(
            p,
            "dS{l}: {bhst}] P{l}[b, h, s, t] * (dP{l}[b, h, s, t] - dr{l}[b, h, s])"
        )
        .unwrap();
        writeln!(
            p,
            "dQ{l}: {bshe} | t: {s}] sum dS{l}[b, h, s, t] * K{l}[b, t, h, e]"
        )
        .unwrap();
        writeln!(p, "dK{l}: f32[{b}, {s}, {h}, {e}] = [b: {b}, t: {s}, h: {h}, e: {e} | s: {s}] sum dS{l}[b, h, s, t] * Q{l}[b, s, h, e]").unwrap();
        for m in ["Q", "K", "V"] {
            writeln!(p, "d{m}w{l}: f32[{w}, {h}, {e}] = [w: {w}, h: {h}, e: {e} | b: {b}, s: {s}] sum n{l}[b, s, w] * d{m}{l}[b, s, h, e]").unwrap();
            if l > 0 {
                writeln!(
                    p,
                    "dn{m}{l}: {bsw} | h: {h}, e: {e}] sum d{m}{l}[b, s, h, e] * {m}w{l}[w, h, e]"
                )
                .unwrap();
            }
        }
        if l > 0 {
            writeln!(
                p,
                "dn{l}: {bsw}] dnQ{l}[b, s, w] + dnK{l}[b, s, w] + dnV{l}[b, s, w]"
            )
            .unwrap();
            norm_back(
                &mut p,
                &format!("dx{l}"),
                &format!("dn{l}"),
                &format!("n{l}"),
                &format!("dy{l}"),
            );
        }
    }
    let mut updates = vec![];
    for l in 0..t.layers {
        for m in ["Q", "K", "V"] {
            updates.push((
                format!("{m}w{l}"),
                format!("f32[{w}, {h}, {e}] = [w: {w}, h: {h}, e: {e}]"),
                "[w, h, e]",
            ));
        }
        updates.push((
            format!("Ow{l}"),
            format!("f32[{h}, {e}, {w}] = [h: {h}, e: {e}, w: {w}]"),
            "[h, e, w]",
        ));
        updates.push((
            format!("Aw{l}"),
            format!("f32[{w}, {f}] = [w: {w}, f: {f}]"),
            "[w, f]",
        ));
        updates.push((
            format!("Bw{l}"),
            format!("f32[{f}, {w}] = [f: {f}, w: {w}]"),
            "[f, w]",
        ));
    }
    for (name, head, at) in &updates {
        writeln!(p, "{name}_next: {head} {name}{at} - 0.01 * d{name}{at}").unwrap();
    }
    for (name, ..) in &updates {
        writeln!(p, "output {name}_next replaces {name}").unwrap();
    }
    program(&p)
}

/// A chain of matrices with these extents, multiplied from the left.
pub fn chain(extents: &[u64]) -> Program {
    let mut text = String::new();
    for (at, pair) in extents.windows(2).enumerate() {
        let _ = writeln!(text, "input M{at}: f32[{}, {}] = unbound", pair[0], pair[1]);
    }
    let first = extents[0];
    let mut left = "M0".to_string();
    for (at, pair) in extents.windows(2).enumerate().skip(1) {
        let [inner, columns] = [pair[0], pair[1]];
        let name = format!(
            "{}P{at}",
            if at + 2 < extents.len() {
                "hidden "
            } else {
                ""
            }
        );
        let _ = writeln!(
            text,
            "{name}: f32[{first}, {columns}] = [i: {first}, j: {columns} | k: {inner}] sum {left}[i, k] * M{at}[k, j]"
        );
        left = format!("P{at}");
    }
    let _ = writeln!(text, "output {left}");
    program(&text)
}
