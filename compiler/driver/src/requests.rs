//! Requests of a command line beyond the text of a program: numbers as data, more outputs, and no data for inputs that nothing needs.
//!
//! Each request changes the items of the syntax tree, so every later pass sees an ordinary program. Must not know what
//! definitions mean.
//!
//! ```text
//! input lr: f32; h[i] = lr * x[i]; output y    with --input lr=0.5 --show h
//!   ->   input lr: f32 = 0.5; h[i] = lr * x[i]; output y; output h
//! ```

use crate::{
    bind::{is_instance, known},
    infer::{self, declared},
    program::Program,
    purpose::Purpose,
    settings::Settings,
};
use ein_plan::Scalar;
use einc_core::sema::world::file_of;
use einc_diag::Span;
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Name, StringLiteral, output_name};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// Returns the program with what the settings ask of it; for a run, without inputs that have no data and that nothing needs. Names
/// that the program does not have are passed over: [`crate::bind::unknown`] reports them.
pub fn applied<'p>(
    program: &'p Program,
    settings: &Settings,
    purpose: Purpose,
) -> Cow<'p, Program> {
    let more = outputs(program, settings);
    let mut program = Cow::Borrowed(program);
    if (!settings.numbers.is_empty() || !more.is_empty())
        && let Some(file) = program.to_mut().sources.files.first_mut()
    {
        let items = &mut file.ast.items;
        (items.iter_mut()).for_each(|item| fill(item, &settings.numbers));
        items.extend(more);
    }
    if purpose == Purpose::Run
        && let Some(mut kept) = needed(&program, settings).map(Vec::into_iter)
        && let Some(file) = program.to_mut().sources.files.first_mut()
    {
        file.ast.items.retain(|_| kept.next().unwrap_or(true));
    }
    program
}

/// Returns which items of the program's own file a run keeps; `None`: all. Without an input that has no data, or whose file is not there,
/// and that what the program gives does not depend on, a run also does without the definitions and the dims that nothing else needs. A file
/// that is there may say sizes, so its input stays.
fn needed(program: &Program, settings: &Settings) -> Option<Vec<bool>> {
    let file = program.sources.files.first()?;
    let used = infer::used(file);
    let lacks_data = |item: &Item| match &item.kind {
        ItemKind::Input { name, source, .. } => {
            let there = |source: &Expr| match file_of(source) {
                Some(file) => program.base.join(file.path).exists(),
                None => true,
            };
            !source.as_ref().is_some_and(there) && !settings.inputs.contains_key(&name.text)
        }
        _ => false,
    };
    let items = || file.ast.items.iter().zip(&used);
    if !items().any(|(item, used)| lacks_data(item) && !used) {
        return None;
    }
    let is_definition = |item: &Item| {
        matches!(
            item.kind,
            ItemKind::Statement(_) | ItemKind::Function(_) | ItemKind::Module(_)
        )
    };
    let kept = |(item, used): (&Item, &bool)| *used || !(lacks_data(item) || is_definition(item));
    let is_dim = |item: &Item| matches!(item.kind, ItemKind::Dim { value: None, .. });
    let named: BTreeSet<&str> = items()
        .filter(|(item, used)| !is_dim(item) && kept((item, used)))
        .flat_map(|(item, _)| infer::words(infer::text(file, item.span)))
        .collect();
    let kept = items().map(|(item, used)| match &item.kind {
        ItemKind::Dim { name, value: None } => named.contains(name.text.as_str()),
        _ => kept((item, used)),
    });
    Some(kept.collect())
}

/// Returns the names of outputs that the settings ask for and the program does not have, in the order of their names.
pub fn more_outputs(program: &Program, settings: &Settings) -> Vec<String> {
    let names = outputs(program, settings)
        .into_iter()
        .filter_map(|item| match item.kind {
            ItemKind::Output { name, .. } => Some(name.text),
            _ => None,
        });
    names.collect()
}

/// Makes a number the source of an input or param that has this name.
fn fill(item: &mut Item, numbers: &BTreeMap<String, Scalar>) {
    if let ItemKind::Input { name, source, .. } | ItemKind::Param { name, source, .. } =
        &mut item.kind
        && let Some(number) = numbers.get(&name.text)
    {
        *source = Some(literal(*number, name.span));
    }
}

/// Returns a number as it would be written in the text.
fn literal(number: Scalar, span: Span) -> Expr {
    let expr = |kind| Expr {
        kind: Box::new(kind),
        span,
    };
    let negated = |negative: bool, kind| match negative {
        true => expr(ExprKind::Negate(expr(kind))),
        false => expr(kind),
    };
    match number {
        Scalar::Int(whole) => negated(whole < 0, ExprKind::Integer(whole.unsigned_abs())),
        Scalar::Bool(truth) => expr(ExprKind::Bool(truth)),
        Scalar::Float(real) if real.is_nan() => expr(ExprKind::Name("nan".into())),
        Scalar::Float(real) if real.is_infinite() => {
            negated(real < 0.0, ExprKind::Name("inf".into()))
        }
        Scalar::Float(real) => negated(real.is_sign_negative(), ExprKind::Float(real.abs())),
    }
}

/// Returns an output item for each definition, input or param that `--show` or `--save` names and that is no output yet. One that
/// is only saved is not printed.
fn outputs(program: &Program, settings: &Settings) -> Vec<Item> {
    let Some(file) = program.sources.files.first() else {
        return vec![];
    };
    let items = &file.ast.items;
    let is_output = |wanted: &str| {
        items.iter().any(|item| match &item.kind {
            ItemKind::Output { name, on, .. } => output_name(name, on.as_deref()) == wanted,
            _ => false,
        })
    };
    let mut wanted: BTreeMap<&String, Option<&PathBuf>> = BTreeMap::new();
    wanted.extend((settings.saves.iter()).map(|(name, path)| (name, Some(path))));
    wanted.extend(settings.shows.iter().map(|name| (name, None)));
    wanted.retain(|name, _| !is_output(name));
    let make = |(name, path): (&String, Option<&PathBuf>)| {
        let item = items.iter().find(|item| match name.split_once('.') {
            Some((owner, _)) => is_instance(item) && declared(item).contains(&owner),
            None => !is_instance(item) && known(item).contains(&name.as_str()),
        })?;
        let file = path.map(|path| StringLiteral {
            text: path.to_string_lossy().into_owned(),
            span: item.span,
        });
        let kind = ItemKind::Output {
            name: Name {
                text: name.clone(),
                span: item.span,
            },
            on: None,
            file,
        };
        Some(Item {
            kind,
            span: item.span,
            doc: None,
        })
    };
    wanted.into_iter().filter_map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_text;

    /// The items of a program with requests, as they would be written.
    fn check(text: &str, (settings, purpose): (&Settings, Purpose), expected: &[&str]) {
        let program = load_text("p", "p.ein", text.into(), None, PathBuf::from("/"));
        let applied = applied(&program, settings, purpose);
        let said: Vec<String> = (applied.sources.files[0].ast.items.iter())
            .filter_map(|item| match &item.kind {
                ItemKind::Dim { name, .. } => Some(name.text.clone()),
                ItemKind::Input { name, source, .. } => {
                    let source = source.as_ref().map(|source| format!("{:?}", source.kind));
                    Some(format!("{} = {}", name.text, source.unwrap_or_default()))
                }
                ItemKind::Output { name, file, .. } => Some(match file {
                    Some(file) => format!("{} -> {}", name.text, file.text),
                    None => name.text.clone(),
                }),
                _ => None,
            })
            .collect();
        assert_eq!(said, expected);
    }

    const TEXT: &str = "input lr: f32\nh[i < 3] = lr * i\ny = sum[i] h[i]\noutput y";

    #[test]
    fn numbers_are_sources() {
        let of = |number| Settings {
            numbers: [("lr".to_owned(), number)].into(),
            ..Settings::default()
        };
        let half = of(Scalar::Float(0.5));
        check(TEXT, (&half, Purpose::Plan), &["lr = Float(0.5)", "y"]);
        check(
            TEXT,
            (&of(Scalar::Int(7)), Purpose::Run),
            &["lr = Integer(7)", "y"],
        );
        check(TEXT, (&Settings::default(), Purpose::Run), &["lr = ", "y"]);
    }

    #[test]
    fn a_run_does_without_inputs_that_nothing_needs() {
        let text =
            "dim M\ndim K\ninput a: f32[M, K]\ninput b: f32[K]\nc[i] = a[0, i] + b[i]\noutput b";
        let none = Settings::default();
        check(text, (&none, Purpose::Run), &["K", "b = ", "b"]);
        check(
            text,
            (&none, Purpose::Plan),
            &["M", "K", "a = ", "b = ", "b"],
        );
        let shown = Settings {
            shows: vec!["c".into()],
            ..Settings::default()
        };
        check(
            text,
            (&shown, Purpose::Run),
            &["M", "K", "a = ", "b = ", "b", "c"],
        );
    }

    #[test]
    fn a_run_does_without_files_that_are_not_there_and_that_nothing_needs() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("there.npy"), "").expect("a file");
        let text = "dim M\ninput a: f32[M] = load(\"there.npy\")\ninput b: f32 = load(\"gone.npy\")\ninput c: f32 = load(\"gone.npy\")\n\
                    d = 2 * b\noutput c";
        let kept = |purpose| {
            let program = load_text("p", "p.ein", text.into(), None, folder.path().into());
            let applied = applied(&program, &Settings::default(), purpose);
            let items = applied.sources.files[0].ast.items.iter();
            items
                .flat_map(declared)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        // `a` may say how long `M` is.
        assert_eq!(kept(Purpose::Run), ["M", "a", "c"]);
        assert_eq!(kept(Purpose::Plan), ["M", "a", "b", "c", "d"]);
    }

    #[test]
    fn definitions_become_outputs_once() {
        let settings = Settings {
            shows: vec!["h".into(), "y".into(), "nothing".into()],
            saves: [
                ("lr".to_owned(), "/lr.npy".into()),
                ("y".to_owned(), "/y.npy".into()),
            ]
            .into(),
            ..Settings::default()
        };
        let expected = ["lr = ", "y", "h", "lr -> /lr.npy"];
        check(TEXT, (&settings, Purpose::Run), &expected);
    }
}
