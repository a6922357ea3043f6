//! A statement costs the same however it is cut into lines: stated work of random programs whose sub-expressions are written where they are used, all
//! of them named, or some.
//!
//! Reads at places that data say are with `else`: what may stop the run is not looked into by the rules, so that it stops under its own name. Times are
//! no matter of tests; `tests/peers/lines.py` measures those of programs of this kind.
//!
//! ```text
//! y[i < Ni] = (sum[k < Nk] (tanh(u[i]) * A[i, k]))
//! t0[i < Ni] = tanh(u[i]);  t1[i < Ni, k < Nk] = (t0[i] * A[i, k]);  y[i < Ni] = (sum[k < Nk] (t1[i, k]))
//! ```

use einc_core::pipeline::report::PlanReport;
use einc_tests::einc;
use std::collections::BTreeSet;

/// The indices with their sizes.
const SIZES: [(char, u32); 4] = [('i', 400), ('j', 300), ('k', 240), ('l', 160)];

/// The inputs with their indices.
const INPUTS: [(&str, &str); 11] = [
    ("A", "ik"),
    ("B", "kj"),
    ("C", "ij"),
    ("D", "kl"),
    ("E", "jl"),
    ("F", "ij"),
    ("G", "ik"),
    ("u", "i"),
    ("v", "j"),
    ("w", "k"),
    ("z", "l"),
];

/// A sequence of numbers that a seed decides (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn percent(&mut self, part: usize) -> bool {
        self.below(100) < part
    }
}

/// An expression: text between its parts, which may be named, and the indices that it is over.
struct Expression {
    texts: Vec<String>,
    parts: Vec<Expression>,
    over: BTreeSet<char>,
}

impl Expression {
    fn leaf(text: String, over: BTreeSet<char>) -> Expression {
        Expression {
            texts: vec![text],
            parts: vec![],
            over,
        }
    }

    fn of(texts: &[&str], parts: Vec<Expression>) -> Expression {
        let over = parts.iter().flat_map(|part| part.over.iter().copied());
        Expression {
            texts: texts.iter().map(|text| (*text).to_string()).collect(),
            over: over.collect(),
            parts,
        }
    }

    /// A read of an input whose indices are in scope.
    fn read(numbers: &mut Numbers, scope: &BTreeSet<char>) -> Expression {
        let within = |(_, indices): &&(&str, &str)| indices.chars().all(|i| scope.contains(&i));
        let inputs: Vec<_> = INPUTS.iter().filter(within).collect();
        if inputs.is_empty() {
            return Expression::leaf("0.5".into(), BTreeSet::new());
        }
        let (name, indices) = **numbers.pick(&inputs);
        let mut over: BTreeSet<char> = indices.chars().collect();
        let mut places: Vec<String> = indices.chars().map(String::from).collect();
        let form = numbers.below(100);
        let mut otherwise = false;
        if form < 15 {
            let at = numbers.below(places.len());
            places[at] += *numbers.pick(&[" + 1", " - 1"]);
            otherwise = true;
        } else if form < 23 && scope.contains(&'i') && over.remove(&'j') {
            let at = places.iter().position(|place| place == "j").unwrap();
            places[at] = "tok[i]".into();
            over.insert('i');
            otherwise = true;
        }
        let read = format!("{name}[{}]", places.join(", "));
        let text = match otherwise {
            true => format!("({read} else 0)"),
            false => read,
        };
        Expression::leaf(text, over)
    }

    fn random(numbers: &mut Numbers, scope: &BTreeSet<char>, depth: usize) -> Expression {
        if depth == 0 || numbers.percent(10) {
            return Expression::read(numbers, scope);
        }
        let part = |numbers: &mut Numbers| Expression::random(numbers, scope, depth - 1);
        let form = numbers.below(100);
        if form < 22 {
            let part = part(numbers);
            return match numbers.below(6) {
                0 => Expression::of(&["(-", ")"], vec![part]),
                1 => Expression::of(&["sqrt(abs(", "))"], vec![part]),
                other => {
                    let front = ["tanh(", "exp(", "abs(", "sigmoid("][other - 2];
                    Expression::of(&[front, ")"], vec![part])
                }
            };
        }
        if form < 62 {
            let parts = vec![part(numbers), part(numbers)];
            return match numbers.below(5) {
                0 => Expression::of(&["(", " / (1 + abs(", ")))"], parts),
                1 => Expression::of(&["(", " + ", ")"], parts),
                2 => Expression::of(&["(", " - ", ")"], parts),
                _ => Expression::of(&["(", " * ", ")"], parts),
            };
        }
        if form < 70 {
            let parts = vec![part(numbers), part(numbers), part(numbers)];
            return Expression::of(&["where(", " > ", ", ", ", 0.0)"], parts);
        }
        Expression::reduction(numbers, scope, depth)
    }

    fn reduction(numbers: &mut Numbers, scope: &BTreeSet<char>, depth: usize) -> Expression {
        let mut free: Vec<char> = SIZES.map(|(index, _)| index).to_vec();
        free.retain(|index| !scope.contains(index));
        let count = numbers.pick(&[1, 1, 2]).min(&free.len()).to_owned();
        let own: Vec<char> = (0..count)
            .map(|_| free.remove(numbers.below(free.len())))
            .collect();
        let inner: BTreeSet<char> = scope.iter().chain(&own).copied().collect();
        let part = Expression::random(numbers, &inner, depth - 1);
        let own: Vec<char> = own
            .into_iter()
            .filter(|index| part.over.contains(index))
            .collect();
        if own.is_empty() {
            return part;
        }
        let name = numbers.pick(&["sum", "sum", "sum", "max", "mean", "logsumexp"]);
        let front = format!("({name}[{}] (", bounds(own.iter()));
        let mut reduction = Expression::of(&[&front, "))"], vec![part]);
        reduction.over.retain(|index| !own.contains(index));
        reduction
    }

    /// The text, of which the parts that `named` chooses are lines of their own.
    fn text(&self, named: &mut dyn FnMut() -> bool, lines: &mut Vec<String>) -> String {
        let mut text = self.texts[0].clone();
        for (part, behind) in self.parts.iter().zip(&self.texts[1..]) {
            let inner = part.text(named, lines);
            if !part.parts.is_empty() && named() {
                let name = format!("t{}", lines.len());
                lines.push(format!("{} = {inner}", part.left(&name, true)));
                text += &part.left(&name, false);
            } else {
                text += &inner;
            }
            text += behind;
        }
        text
    }

    /// A name with the expression's indices, and with their bounds.
    fn left(&self, name: &str, bound: bool) -> String {
        let places = match bound {
            true => bounds(self.over.iter()),
            false => self
                .over
                .iter()
                .map(char::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        match self.over.is_empty() {
            true => name.to_string(),
            false => format!("{name}[{places}]"),
        }
    }
}

fn bounds<'a>(indices: impl Iterator<Item = &'a char>) -> String {
    let bounds: Vec<String> = indices.map(|index| format!("{index} < N{index}")).collect();
    bounds.join(", ")
}

/// The program of an expression.
fn program(expression: &Expression, named: &mut dyn FnMut() -> bool) -> String {
    let mut text = String::new();
    for (index, size) in SIZES {
        text += &format!("dim N{index} = {size}\n");
    }
    for (name, indices) in INPUTS {
        let sizes: Vec<String> = indices.chars().map(|index| format!("N{index}")).collect();
        text += &format!(
            "input {name}: f32[{}] = uniform(0.1, 0.9)\n",
            sizes.join(", ")
        );
    }
    text += "input tok: i64[Ni] = uniform(0, 300)\n";
    let mut lines = vec![];
    let value = expression.text(named, &mut lines);
    lines.push(format!("{} = {value}", expression.left("y", true)));
    text + &lines.join("\n") + "\noutput y\n"
}

fn stated_work(folder: &std::path::Path, text: &str) -> u64 {
    let file = folder.join("lines.ein");
    std::fs::write(&file, text).unwrap();
    let plan = einc(&["plan", file.to_str().unwrap(), "--format", "json"]).success();
    let report: PlanReport = serde_json::from_str(&plan.stdout).unwrap();
    report.cost.flops_per_site_max
}

/// Random programs, and how many of them may differ by more than a tenth: those in which the search over equal programs, which is bounded, begins
/// elsewhere and ends elsewhere.
const PROGRAMS: u64 = 80;
const MOST_APART: usize = 12;

#[test]
fn stated_work_is_the_same_however_a_statement_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut apart = vec![];
    for seed in 0..PROGRAMS {
        let mut numbers = Numbers(seed);
        let scope = numbers
            .pick(&["", "i", "j", "ij", "ik", "k"])
            .chars()
            .collect();
        let expression = Expression::random(&mut numbers, &scope, 5);
        let forms = [
            program(&expression, &mut || false),
            program(&expression, &mut || true),
            program(&expression, &mut || numbers.percent(40)),
        ];
        let work = forms
            .each_ref()
            .map(|text| stated_work(folder.path(), text));
        let (least, most) = (work.iter().min().unwrap(), work.iter().max().unwrap());
        if *most as f64 > *least as f64 * 1.1 {
            apart.push((seed, work));
        }
    }
    assert!(apart.len() <= MOST_APART, "{}: {apart:?}", apart.len());
}

/// Sub-expressions that repeat, or that a reduction goes across, one by one.
#[test]
fn values_that_repeat_are_computed_once_in_any_form() {
    let folder = tempfile::tempdir().unwrap();
    for (inlined, named) in [
        (
            "y = mean[j < Nj, l < Nl] (v[j] * (sqrt(abs(z[l])) * exp(0.5 * (v[j + 1] else 0))))",
            "a[l] = sqrt(abs(z[l]))\nb[j < Nj] = exp(0.5 * (v[j + 1] else 0))\ny = mean[j, l] (v[j] * (a[l] * b[j]))",
        ),
        (
            "y[i, j] = logsumexp[k] (G[i, k] * B[k, j] * (tanh(w[k]) - exp(u[i])) * u[i])",
            "a[k] = tanh(w[k])\nb[i, k] = a[k] - exp(u[i])\nt[i, j, k] = G[i, k] * B[k, j]\n\
             y[i, j] = logsumexp[k] (t[i, j, k] * b[i, k] * u[i])",
        ),
        (
            "y[k] = sum[l, i] abs(tanh(u[i]) - A[i, k] * D[k, l])",
            "t[i, k, l] = A[i, k] * D[k, l]\ns[i, k, l] = tanh(u[i]) - t[i, k, l]\ny[k] = sum[l, i] abs(s[i, k, l])",
        ),
    ] {
        let head = program(
            &Expression::leaf("0.5".into(), BTreeSet::new()),
            &mut || false,
        );
        let (head, _) = head.split_once("y = ").unwrap();
        let work = [inlined, named]
            .map(|text| stated_work(folder.path(), &format!("{head}{text}\noutput y\n")));
        let ratio = work[0] as f64 / work[1] as f64;
        assert!((0.9..1.1).contains(&ratio), "{work:?}: {inlined}");
    }
}
