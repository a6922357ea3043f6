//! How texts are read: precedence, the traps of the grammar, layout, names and literals.

#![allow(clippy::unwrap_used)]

use einc_diag::FileId;
use einc_syntax::{ast::*, parse};

fn items(text: &str) -> Vec<Item> {
    let parsed = parse(FileId(0), text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.ast.items
}

fn value(text: &str) -> Expr {
    match items(&format!("y = {text}")).remove(0).kind {
        ItemKind::Statement(Statement::Definition { value, .. }) => value,
        other => panic!("{other:?}"),
    }
}

/// An expression with every operation in its own `⟨⟩`; brackets of the text stay.
fn show(e: &Expr) -> String {
    let list = |items: &[Expr]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match &*e.kind {
        ExprKind::Integer(n) => n.to_string(),
        ExprKind::Float(x) => format!("{x:?}"),
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::String(s) => format!("{s:?}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Next(name) => format!("⟨next {}⟩", name.text),
        ExprKind::Access { base, positions } => format!("{}[{}]", show(base), places(positions)),
        ExprKind::Call { callee, arguments } => {
            let arguments: Vec<_> = arguments
                .iter()
                .map(|a| match &a.name {
                    Some(name) => format!("{}: {}", name.text, show(&a.value)),
                    None => show(&a.value),
                })
                .collect();
            format!("{}({})", show(callee), arguments.join(", "))
        }
        ExprKind::Else { value, fallback } => format!("⟨{} else {}⟩", show(value), show(fallback)),
        ExprKind::Negate(a) => format!("⟨-{}⟩", show(a)),
        ExprKind::Not(a) => format!("⟨not {}⟩", show(a)),
        ExprKind::Binary {
            operator,
            left,
            right,
            ..
        } => {
            format!("⟨{} {} {}⟩", show(left), sign(*operator), show(right))
        }
        ExprKind::Chain { first, rest } => {
            let rest: Vec<_> = rest
                .iter()
                .map(|(o, e)| format!(" {} {}", sign(*o), show(e)))
                .collect();
            format!("⟨{}{}⟩", show(first), rest.concat())
        }
        ExprKind::Reduce {
            reduction,
            indices,
            body,
            ..
        } => {
            format!("⟨{}[{}] {}⟩", reduction.name(), places(indices), show(body))
        }
        ExprKind::Bracket(a) => format!("({})", show(a)),
        ExprKind::Tuple(items) => format!("tuple({})", list(items)),
        ExprKind::List(items) => format!("list[{}]", list(items)),
        ExprKind::Error => "error".to_owned(),
    }
}

fn places(positions: &[Position]) -> String {
    let show = |p: &Position| match p {
        Position::Expr(e) => show(e),
        Position::Rest(_) => "..".to_owned(),
    };
    positions.iter().map(show).collect::<Vec<_>>().join(",")
}

fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::Power => "^",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterEqual => ">=",
        Binary::BitAnd => "&",
        Binary::BitOr => "|",
        Binary::BitXor => "xor",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::And => "and",
        Binary::Or => "or",
    }
}

/// Every line `text => reading`.
fn read(table: &str) {
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let (text, reading) = line.split_once("=>").unwrap();
        assert_eq!(show(&value(text.trim())), reading.trim(), "{text}");
    }
}

#[test]
fn precedence() {
    read(
        "
        a + b * c            => ⟨a + ⟨b * c⟩⟩
        a - b - c            => ⟨⟨a - b⟩ - c⟩
        a / b * c % d        => ⟨⟨⟨a / b⟩ * c⟩ % d⟩
        a^b^c                => ⟨a ^ ⟨b ^ c⟩⟩
        2^-1                 => ⟨2 ^ ⟨-1⟩⟩
        -x^2                 => ⟨-⟨x ^ 2⟩⟩
        -x * y               => ⟨⟨-x⟩ * y⟩
        a - -b               => ⟨a - ⟨-b⟩⟩
        a * -b               => ⟨a * ⟨-b⟩⟩
        0 <= a < C           => ⟨0 <= a < C⟩
        a == b               => ⟨a == b⟩
        not a or b and c     => ⟨⟨not a⟩ or ⟨b and c⟩⟩
        not a == b           => ⟨not ⟨a == b⟩⟩
        a + 1 < b or c       => ⟨⟨⟨a + 1⟩ < b⟩ or c⟩
        (a + b) * c          => ⟨(⟨a + b⟩) * c⟩
        next x[i] - x[i]     => ⟨⟨next x⟩[i] - x[i]⟩
    ",
    );
}

#[test]
fn postfix() {
    read(
        "
        enc[l](h, len)       => enc[l](h, len)
        pool(act(x))[n,h]    => pool(act(x))[n,h]
        f(a)(b)              => f(a)(b)
        solve(A[p], y[p])[i] => solve(A[p], y[p])[i]
        x[i + k] else 0      => ⟨x[⟨i + k⟩] else 0⟩
        x[i] else -inf * b   => ⟨⟨x[i] else ⟨-inf⟩⟩ * b⟩
        x[i] else (a + b)    => ⟨x[i] else (⟨a + b⟩)⟩
        x[i] else c ^ 2      => ⟨⟨x[i] else c⟩ ^ 2⟩
        f(lr: 1, x)          => f(lr: 1, x)
        f32(x)               => f32(x)
        max(a, b)            => max(a, b)
        norm                 => norm
        decay(at: [10, 15])  => decay(at: list[10, 15])
        x[.., d]             => x[..,d]
        z[n, t, lab[n,t]]    => z[n,t,lab[n,t]]
        over + by            => ⟨over + by⟩
        (a, b)               => tuple(a, b)
        f(a, b,)             => f(a, b)
    ",
    );
}

#[test]
fn reductions() {
    read(
        "
        sum[i] a[i]*b[i] + c     => ⟨⟨sum[i] ⟨a[i] * b[i]⟩⟩ + c⟩
        a * sum[i] b * c         => ⟨a * ⟨sum[i] ⟨b * c⟩⟩⟩
        a / sum[i] b             => ⟨a / ⟨sum[i] b⟩⟩
        a / sum[i] b + c         => ⟨⟨a / ⟨sum[i] b⟩⟩ + c⟩
        w[i] / norm[j] w[j]^2    => ⟨w[i] / ⟨norm[j] ⟨w[j] ^ 2⟩⟩⟩
        sum[i] a / sum[j] b      => ⟨sum[i] ⟨a / ⟨sum[j] b⟩⟩⟩
        -sum[i] x[i]             => ⟨-⟨sum[i] x[i]⟩⟩
        a * -sum[i] x            => ⟨a * ⟨-⟨sum[i] x⟩⟩⟩
        mean[n,l] -(a + b)       => ⟨mean[n,l] ⟨-(⟨a + b⟩)⟩⟩
        sum[s <= t] x[s]         => ⟨sum[⟨s <= t⟩] x[s]⟩
        max[r < 2, s < 2] I[r]   => ⟨max[⟨r < 2⟩,⟨s < 2⟩] I[r]⟩
        norm[..] w[..]           => ⟨norm[..] w[..]⟩
        f32(argmax[c] z[v,c] == yv[v]) => f32(⟨⟨argmax[c] z[v,c]⟩ == yv[v]⟩)
        b + argmax[r] viol[r]    => ⟨b + ⟨argmax[r] viol[r]⟩⟩
        sum[i] prod[j] a         => ⟨sum[i] ⟨prod[j] a⟩⟩
        max[i] max(a, b)         => ⟨max[i] max(a, b)⟩
    ",
    );
}

#[test]
fn literals_and_names() {
    read(
        "
        1_000                => 1000
        18446744073709551615 => 18446744073709551615
        1e-5                 => 1e-5
        2_0.5E+1             => 205.0
        \"a\\\"b\\\\\"       => \"a\\\"b\\\\\"
        pi                   => pi
        x'                   => x'
        α₁ * größe           => ⟨α₁ * größe⟩
        e\u{301}             => é
    ",
    );
}

#[test]
fn layout() {
    let count = |text: &str| items(text).len();
    assert_eq!(count(""), 0);
    assert_eq!(count("\u{feff}\r\n// only a comment\r\n\r\n"), 0);
    assert_eq!(count("a = 1\nb = 2; c = 3;;\n\n"), 3);
    assert_eq!(count("a = 1 +\n  2\n  * 3\nb = f(1,\n 2)\n"), 2);
    assert_eq!(count("a =\n  1 // c\n  // c\n  + 2\nb = x\n  else 0"), 2);
    assert_eq!(count("a,\nb = f(x)"), 1);
    assert_eq!(count("a = 1\r\nb\t= 2\r\n"), 2);
    assert_eq!(count("fn f(x)\n  -> y\n{ y = x }\nz = 1"), 2);
    assert_eq!(
        count("then = 1\nover = 2\nby = 3\ngroup = 4\nfor = 5\nkeep = then"),
        6
    );
    assert_eq!(count("max = 3\nmin = max\nsum = 1"), 3);
    assert_eq!(count("fn f(a,\n  b = 1\n) = a"), 1);
}

#[test]
fn statements() {
    let text = "next h, c = cell(xt, h, c)\nG[tok[n,t], d]: f32[V, D] += dE[n,t,d]\nm[k[n]] max= x[n]\nm[k[n]] min = x[n]\ny[28*r + c] = x[r,c]
        repeat k < N + 1 until a < b { state x[i] = 0; next x[i] = 1 }";
    let items = items(text);
    let statement = |at: usize| match &items[at].kind {
        ItemKind::Statement(statement) => statement.clone(),
        other => panic!("{other:?}"),
    };
    assert!(
        matches!(statement(0), Statement::Definition { role: Role::Next, targets, .. } if targets.len() == 2)
    );
    assert!(matches!(
        statement(1),
        Statement::Scatter {
            combine: Combine::Add,
            ty: Some(_),
            ..
        }
    ));
    assert!(matches!(
        statement(2),
        Statement::Scatter {
            combine: Combine::Max,
            ..
        }
    ));
    assert!(matches!(
        statement(3),
        Statement::Scatter {
            combine: Combine::Min,
            ..
        }
    ));
    assert!(matches!(
        statement(4),
        Statement::Scatter {
            combine: Combine::Once,
            ..
        }
    ));
    assert!(
        matches!(statement(5), Statement::Repeat { until: Some(_), body, .. } if body.len() == 2)
    );
}

#[test]
fn documentation_belongs_to_the_next_item() {
    let items = items(
        "/// One.\n///\n///   Two.\n\ndim N = 3 /// not this\ndim M\n//// nor this\nfn f(x) -> y {\n  /// Inner.\n  y = x\n}",
    );
    assert_eq!(items[0].doc.as_deref(), Some("One.\n\n  Two."));
    assert_eq!(items[1].doc, None);
    assert_eq!(items[2].doc, None);
    let ItemKind::Function(Function {
        body: FunctionBody::Block { body, .. },
        ..
    }) = &items[2].kind
    else {
        panic!();
    };
    assert_eq!(body[0].doc.as_deref(), Some("Inner."));
}

#[test]
fn training() {
    let items = items(
        "train {\n  loss: loss\n  data: over N by 32 shuffle\n  data: (X, y) over N by 2 * B\n  schedule: warmup(epochs: 5)\n    then poly(power: 2) then cosine\n\
         validate: score on (Xv, yv) every 1 epoch\n  checkpoint: \"run/ckpt\" every 1 epoch keep 3\n\
         group *.b, norm.*, enc.3.att.wq { weight_decay: 0,\n adapt: false }\n}",
    );
    let ItemKind::Train(train) = &items[0].kind else {
        panic!()
    };
    let shown: Vec<String> = train
        .entries
        .iter()
        .map(|entry| match entry {
            TrainEntry::Setting {
                key,
                value,
                then,
                suffixes,
                ..
            } => format!(
                "{}: {} then {} with {}",
                key.text,
                value.as_ref().map_or("-".to_owned(), show),
                then.len(),
                suffixes.len()
            ),
            TrainEntry::Group {
                patterns, settings, ..
            } => {
                let patterns: Vec<_> = patterns.iter().map(|p| p.text.as_str()).collect();
                format!("group {} with {}", patterns.join(" "), settings.len())
            }
        })
        .collect();
    assert_eq!(
        shown.join("\n"),
        "loss: loss then 0 with 0\ndata: - then 0 with 3\ndata: tuple(X, y) then 0 with 2\n\
         schedule: warmup(epochs: 5) then 2 with 0\nvalidate: score then 0 with 2\n\
         checkpoint: \"run/ckpt\" then 0 with 2\ngroup *.b norm.* enc.3.att.wq with 2"
    );
}

#[test]
fn spans_cover_what_they_name() {
    let text = "input  q: f32[D] = load(\"q.npy\")\ny[i]  = a + sum[j] b[j]*c";
    let items = items(text);
    let at = |span: einc_diag::Span| &text[span.start as usize..span.end as usize];
    assert_eq!(at(items[0].span), "input  q: f32[D] = load(\"q.npy\")");
    let ItemKind::Statement(Statement::Definition { targets, value, .. }) = &items[1].kind else {
        panic!();
    };
    assert_eq!(at(targets[0].span), "y[i]");
    let ExprKind::Binary {
        operator_span,
        right,
        ..
    } = &*value.kind
    else {
        panic!()
    };
    assert_eq!((at(*operator_span), at(right.span)), ("+", "sum[j] b[j]*c"));
    let ExprKind::Reduce { reduction_span, .. } = &*right.kind else {
        panic!()
    };
    assert_eq!(at(*reduction_span), "sum");
}
