//! Wrong programs: every expected error at its line, and no other.

use crate::{CUT, Case, files};

#[test]
fn errors_stand_where_they_belong() {
    let mut failures = String::new();
    for file in files("errors") {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, block) in text.split(CUT).enumerate() {
            if let Err(failure) = case(block) {
                failures += &format!("\n{} case {}\n{block}{failure}", file.display(), number + 1);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn case(block: &str) -> Result<(), String> {
    let case = Case::new(block);
    if !case.parsed.is_empty() {
        return Err(format!("{:?}", case.parsed));
    }
    let mut expected = vec![];
    for (number, file) in case.sources.files.iter().enumerate() {
        for (line, text) in file.text.lines().enumerate() {
            expected.extend(
                text.split("//! ")
                    .skip(1)
                    .map(|e| (number, line + 1, e.trim().to_owned())),
            );
        }
    }
    let analysis = case.check();
    let mut found: Vec<_> = analysis
        .diagnostics
        .iter()
        .filter(|d| d.is_error())
        .map(|d| case.place(d))
        .collect();
    for diagnostic in &analysis.diagnostics {
        for label in &diagnostic.labels {
            let text = &case.sources.files[label.span.file.0 as usize].text;
            assert!(
                text.get(label.span.start as usize..label.span.end as usize)
                    .is_some()
            );
        }
    }
    let mut wrong = String::new();
    for want in &expected {
        match found
            .iter()
            .position(|f| f.0 == want.0 && f.1 == want.1 && f.2.starts_with(&want.2))
        {
            Some(at) => drop(found.remove(at)),
            None => wrong += &format!("missing at line {}: {}\n", want.1, want.2),
        }
    }
    for (file, line, message) in found {
        wrong += &format!("not expected in file {file} at line {line}: {message}\n");
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// An optimizer of the program that has the name of one of the library's is told once.
#[test]
fn known_names_stand_once() {
    let rule = |name: &str| {
        format!("optimizer {name}(lr) for w[..], g[..] {{ next w[..] = w[..] - lr * g[..] }}\n")
    };
    let text = format!(
        "input X: f32[8, 4]\nparam w: f32[4] = zeros\nloss = mean[n] (X[n,d] * w[d])^2\n{}train {{ loss: loss; epochs: 1; optimizer: zzzzzzz }}\n// file \"optim.ein\"\n{}{}",
        rule("sgd"),
        rule("sgd"),
        rule("adam"),
    );
    let errors = Case::new(&text).check().diagnostics;
    assert_eq!(errors[0].help, ["there are adam, sgd"], "{errors:?}");
}

#[test]
fn twenty_errors_are_enough() {
    let text: String = (0..50)
        .map(|n| format!("y{n} = missing{n} + 1\n"))
        .collect();
    let mut errors = Case::new(&text).check().diagnostics;
    errors.retain(|d| d.is_error());
    assert_eq!(errors.len(), 20);
    assert!(errors[0].message.contains("missing0"));
}

/// Warnings at their places, with what to write instead.
#[test]
fn warnings_say_what_is_meant() {
    let warned = |text: &str| {
        let analysis = Case::new(text).check();
        let told = analysis.diagnostics.iter().map(|d| {
            assert!(!d.is_error(), "{d:?}");
            format!("{}: {} / {}", d.code, d.message, d.help.join(" / "))
        });
        told.collect::<Vec<_>>()
    };
    let scalar = warned(
        "input A: f32[3, 4]\ninput B: f32[4, 2]\nconst k = 1\nC[i,j] = A[i,k] * B[k,j]\noutput C\n",
    );
    assert_eq!(
        scalar,
        [
            "E0205: `k` is a scalar here, not an index that is summed / if the scalar is meant, write `(k)` in the positions / if an index is meant, give it a name that nothing else has"
        ]
    );
    for silent in [
        "A[i,(k)] * B[(k),j]",
        "A[i,k] + B[k,j]",
        "A[i,k] * 2 + 0 * B[0,j]",
    ] {
        let text = format!(
            "input A: f32[3, 4]\ninput B: f32[4, 2]\nconst k = 1\nC[i,j] = {silent}\noutput C\n"
        );
        assert_eq!(warned(&text), [""; 0], "{silent}");
    }
    let quotient = warned("input x: i64[4]\ny[i] = x[i] / 1\noutput y\n");
    assert_eq!(quotient.len(), 1, "{quotient:?}");
    assert!(quotient[0].starts_with("E0402: `/` makes f32 of i64 here"));
    for silent in [
        "f64(x[i]) / 3",
        "div(x[i], 3)",
        "y0 * (x[i] / 3)",
        "i64(x[i] / 3 <= 0.1)",
    ] {
        let text = format!("input x: i64[4]\ninput y0: f64\ny[i] = {silent}\noutput y\n");
        assert_eq!(warned(&text), [""; 0], "{silent}");
    }
}

/// What an unknown name may have meant.
#[test]
fn guesses_are_near_and_hints_say_what_to_write() {
    let helped = |line: &str| {
        let text = format!("input A: f32[3, 4]\ninput query: f32[3]\n{line}\noutput r\n");
        let found = Case::new(&text).check().diagnostics;
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        found[0].help.join(" / ")
    };
    for (line, help) in [
        ("r[i] = q[i]", ""),
        ("r[i] = qeury[i]", "did you mean `query`?"),
        (
            "r = sum(A)",
            "`sum` is a reduction, which says over which indices: `sum[i,j] A[i,j]`",
        ),
        (
            "r = nn.gelu(A)",
            "it may be in a library: write `use std.nn`",
        ),
        (
            "r = linalg.inv(A)",
            "`inv` needs no library: write `inv(…)` in place of `linalg.inv(…)`",
        ),
        (
            "r = softmax(A)",
            "it is in a library: write `use std.nn`, then `nn.softmax(…)`",
        ),
        (
            "r = np.transpose(A)",
            "exchange the indices: `y[j,i] = x[i,j]`",
        ),
        ("r = A.T", "exchange the indices: `y[j,i] = x[i,j]`"),
        ("r = A'", "exchange the indices: `y[j,i] = x[i,j]`"),
        (
            "r = A.sum()",
            "`sum` is a reduction, which says over which indices: `sum[i,j] A[i,j]`",
        ),
        (
            "r = A.shape",
            "the number of values of an index is `size(i)`",
        ),
        (
            "repeat k < 9 until z[i] < 1 { state z[i] = query[i]; next z[i] = z[i] / 2 }\nr = 1",
            "all rounds end together: write `until all[i] (…)`, and keep what is done by `where` in the round",
        ),
        (
            "r = sort(query[i] * 2)",
            "`sort` takes a whole tensor: name it first, `t[…] = query[i] * 2`, and pass `t`",
        ),
        (
            "fn f(x[n], k) -> y[n] { y[n] = k * x[n] }\nr = f(k: 2, x: query[i] > 1)",
            "`f` takes a whole tensor: name it first, `t[…] = query[i] > 1`, and pass `t`",
        ),
        (
            "fn f(x[n], k) -> y[n] { y[n] = k * x[n] }\nr = f(query, query[i] + 1)",
            "to sum over it, write `sum[i] query[i]`",
        ),
        (
            "fn f(x[.., n]) -> y[.., n] { repeat k < 9 until all[..] (y[.., 0] < 1) { state y[.., n] = x[.., n]; next y[.., n] = y[.., n] / 2 } }\nr[p,i] = f(A[p])[i]",
            "`..` in its signature stands for `p` as well: pass the whole tensor, `f(A)[p, …]` in place of `f(A[p])[…]` / all calls make their rounds together: let the number not depend on what is passed",
        ),
        (
            "r[n, ..] = A[n, ..] / (sum[..] A[n, ..])",
            "write an index for each of these dimensions",
        ),
    ] {
        assert_eq!(helped(line), help, "{line}");
    }
}
