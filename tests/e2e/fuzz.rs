//! A bounded run of the fuzz targets: broken and spliced texts of real programs never panic the front end.

use einc_tests::{front_end, root};

/// Every program of the repository, and texts that are nearly programs.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = vec![b"".to_vec(), b"a = 1\noutput a\n".to_vec()];
    for folder in ["examples", "stdlib", "stdlib/tests"] {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else {
            continue;
        };
        let mut paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        corpus.extend(
            paths
                .iter()
                .filter(|p| p.extension().is_some_and(|e| e == "ein"))
                .map(|p| std::fs::read(p).unwrap()),
        );
    }
    corpus
}

/// A small reproducible generator: what is fuzzed must be the same in every run of the tests.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "..",
    ",",
    ";",
    "\n",
    "=",
    "+=",
    "max=",
    "<",
    "else",
    "sum[i]",
    "argmax[i, j < 3]",
    "next ",
    "state ",
    "repeat k < 3 {",
    "fn f(x[.., d]) -> y[..] {",
    "dim N",
    "input X: f32[N]",
    "param ",
    "use std.nn",
    "1e999",
    "18446744073709551616",
    "0",
    "-1",
    "1/0",
    "%0",
    "^",
    "é",
    "\u{0}",
    "\"",
    "//",
    "///",
    "where(",
    "inf",
    "f16",
    "nn.softmax(X)",
    "grad(",
    "i < i",
    "x[x[x[0]]]",
    "4611686018427387904",
    "dim D = D",
    "assert 1 == 2",
    "output a -> \"x\"",
    "train {",
    "not ",
    " and ",
    "[n,n]",
    "size(i)",
];

fn mutate(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut text = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(text.len() + 1);
        match dice.below(5) {
            0 => text.truncate(at),
            1 => {
                let end = (at + dice.below(20)).min(text.len());
                text.drain(at..end);
            }
            2 => {
                let piece = PIECES[dice.below(PIECES.len())].as_bytes();
                text.splice(at..at, piece.iter().copied());
            }
            3 => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len() + 1);
                let to = (from + dice.below(80)).min(other.len());
                text.splice(at..at, other[from..to].iter().copied());
            }
            _ if at < text.len() => text[at] = dice.below(256) as u8,
            _ => {}
        }
    }
    text
}

#[test]
fn broken_programs_never_panic_the_front_end() {
    let corpus = corpus();
    let mut dice = Dice(0x5EED_1234_ABCD_0001);
    for round in 0..4000 {
        let text = mutate(&mut dice, &corpus);
        let attempt = std::panic::catch_unwind(|| {
            front_end::parse(&text);
            front_end::format(&text);
            front_end::check(&text);
        });
        assert!(
            attempt.is_ok(),
            "round {round}:\n{}",
            String::from_utf8_lossy(&text)
        );
    }
}
