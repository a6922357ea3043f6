//! Whatever the text: no panic, spans within it, messages in order; formatting keeps the tokens and is idempotent.

#![allow(clippy::unwrap_used)]

use einc_diag::FileId;
use einc_syntax::{ast, format, parse};
use proptest::prelude::*;

/// Parses and checks what holds for every result.
fn check(text: &str) -> bool {
    let parsed = parse(FileId(0), text);
    let mut last = 0;
    for diagnostic in &parsed.diagnostics {
        assert!(
            diagnostic
                .labels
                .first()
                .is_none_or(|l| l.span.start >= last)
        );
        last = diagnostic.labels.first().map_or(last, |l| l.span.start);
        for label in &diagnostic.labels {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            assert!(start <= end && text.get(start..end).is_some());
        }
    }
    parsed.diagnostics.is_empty()
}

/// A tree without its places.
fn shape(file: &ast::File) -> String {
    let mut value = serde_json::to_value(file).unwrap();
    strip(&mut value);
    value.to_string()
}

fn strip(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            let is_span = map.len() == 3 && map.contains_key("start") && map.contains_key("end");
            if is_span {
                map.clear();
            }
            map.values_mut().for_each(strip);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

fn check_format(text: &str) {
    let Ok(once) = format(text) else {
        return;
    };
    assert_eq!(
        shape(&parse(FileId(0), text).ast),
        shape(&parse(FileId(0), &once).ast),
        "{text:?} became {once:?}"
    );
    assert_eq!(words(text), words(&once), "{text:?} became {once:?}");
    assert_eq!(format(&once).as_deref(), Ok(once.as_str()), "{text:?}");
    assert!(!once.contains("\n\n\n") && !once.starts_with('\n') && !once.contains(" \n"));
}

/// The text without blanks and newlines: what formatting may not touch.
fn words(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{feff}')
        .collect()
}

const WORDS: &[&str] = &[
    "x",
    "y",
    "i",
    "n",
    "N",
    "sum",
    "max",
    "min",
    "mean",
    "norm",
    "f",
    "nn.relu",
    "3",
    "1_000",
    "2.5",
    "1e-5",
    "\"s\"",
    "f32",
    "i64",
    "inf",
    "true",
    "dim",
    "input",
    "param",
    "const",
    "output",
    "use",
    "assert",
    "fn",
    "module",
    "optimizer",
    "schedule",
    "train",
    "repeat",
    "until",
    "state",
    "next",
    "and",
    "or",
    "not",
    "else",
    "over",
    "by",
    "shuffle",
    "every",
    "keep",
    "on",
    "then",
    "group",
    "for",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "=",
    "+=",
    ":",
    ",",
    ".",
    "..",
    "->",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    "\n",
    "\n",
    "// c\n",
    "/// d\n",
    "[i]",
    "[i,j]",
    "(x)",
    "@",
    "\"",
    "'",
    "é",
    "\t",
    "  ",
];

/// Lines that parse, most of them, with blanks and breaks in odd places.
const LINES: &[&str] = &[
    "dim N = 3",
    "input X:f32[N,D]=load( \"x.npy\" )",
    "y[i , j]   =  -x[i]*-w[ j ]^-2 else 0   // c",
    "G[t[n],d] :f32[V, D]   max =  e[n]",
    "a,b=f( x,\n  y: 2 ,\n)",
    "z = mean[n] -(x[n]-y) * sum[i<3] max(a,b)",
    "z = (a +\n      b)\n  - c\n\n\n\n// own line",
    "fn f(x[..,d],k=2)->y[..],z{\ny[..]=x[..,d]*w[d];z=1}",
    "repeat k<10 until a<1e-6{ state x[i]=zeros\n   next  x[i]=next x[i]+2*y[2*i+1, i / 2]\n}",
    "train {\n loss:  a\n data:(X,y) over N by 5 shuffle\n\tgroup *.b,norm.*, \"e.*\" { lr:0 ,adapt : false }\n}",
    "/// doc\noutput y on(a,b)->\"y.npy\";output z",
    "module m(D)(x[n])->y[n]{ param w:f32[D]=he_normal // w\n y[n]=enc[l](x)[n] }",
    "ok = not a or 0<=b<c and (d)",
    "y = where(i == 0,\n          1,\n   2)",
    "schedule s(a = [1,2]) for a*2 = (step+1)/a",
    "t :f32  =3",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        check(&text);
        check_format(&text);
    }

    #[test]
    fn any_characters(text in proptest::collection::vec(any::<char>(), 0..60)) {
        let text: String = text.into_iter().collect();
        check(&text);
        check_format(&text);
    }

    #[test]
    fn any_tokens(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60), blanks in any::<u64>()) {
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            text.push_str(word);
            if blanks >> (at % 64) & 1 == 0 {
                text.push(' ');
            }
        }
        check(&text);
        check_format(&text);
    }

    #[test]
    fn lines(lines in proptest::collection::vec(proptest::sample::select(LINES), 0..12)) {
        let text = lines.join("\n");
        prop_assert!(check(&text));
        check_format(&text);
    }

    #[test]
    fn damaged_lines(
        lines in proptest::collection::vec(proptest::sample::select(LINES), 1..6),
        at in any::<prop::sample::Index>(),
        word in proptest::sample::select(WORDS),
        cut in 0usize..3,
    ) {
        let mut characters: Vec<char> = lines.join("\n").chars().collect();
        let at = at.index(characters.len());
        let end = (at + cut).min(characters.len());
        characters.splice(at..end, word.chars());
        let text: String = characters.into_iter().collect();
        check(&text);
        check_format(&text);
    }
}

#[test]
fn deep_and_long_texts() {
    let many = |text: &str, n: usize| text.repeat(n);
    let codes = |text: &str| -> Vec<&'static str> {
        check(text);
        parse(FileId(0), text)
            .diagnostics
            .iter()
            .map(|d| d.code)
            .collect()
    };
    for (open, close) in [
        ("(", ")"),
        ("f(", ")"),
        ("x[", "]"),
        ("1 + (", ")"),
        ("-(", ")"),
        ("[", "]"),
    ] {
        let nested = |n: usize| format!("y = {}x{}", many(open, n), many(close, n));
        assert_eq!(codes(&nested(250)), [""; 0], "{open}");
        assert_eq!(codes(&nested(300)), ["E0115"], "{open}");
        assert_eq!(codes(&nested(20_000)), ["E0115"], "{open}");
        check(&format!("y = {}x", many(open, 20_000)));
    }
    for chain in [
        "1 + ",
        "x * ",
        "-",
        "not ",
        "2 ^ ",
        "sum[i] ",
        "a or ",
        "- sum[i] ",
        "x / ",
    ] {
        assert_eq!(
            codes(&format!("y = {}x", many(chain, 100))),
            [""; 0],
            "{chain}"
        );
        assert_eq!(
            codes(&format!("y = {}x", many(chain, 20_000))),
            ["E0115"],
            "{chain}"
        );
    }
    for postfix in ["[i]", "(i)", " else 0"] {
        assert_eq!(
            codes(&format!("y = x{}", many(postfix, 20_000))),
            ["E0115"],
            "{postfix}"
        );
    }
    assert_eq!(codes(&format!("y = x{}", many(" < x", 20_000))), [""; 0]);
    let blocks = |n: usize| format!("{}x = 1{}", many("repeat k < 3 {\n", n), many("\n}", n));
    assert_eq!(codes(&blocks(250)), [""; 0]);
    assert_eq!(codes(&blocks(1_000)), ["E0115"]);
    check(&blocks(20_000));
    for text in [
        "[",
        "]",
        "{",
        "}",
        "(]",
        "[)",
        "(\n",
        "{\n",
        "a +\n",
        "a\n(",
        ";",
        "= ;",
        "§",
        "\"\n",
        "{ x = (",
        "\n",
        "a = 1\n b +\n\n\n",
    ] {
        check(&many(text, 20_000));
    }
    check(&format!("y = ({}", many("\n", 200_000)));
    check(&format!("y = a +{}", many("\n// c\n", 20_000)));
    check(&format!("{} = 3", many("x", 1_000_000)));
    check(&format!("y = {}", many("9", 1_000_000)));
}
