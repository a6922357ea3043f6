//! A program that only evaluates: what one of its definitions needs, without training, with params that it is given.
//!
//! Must not know what definitions mean: what an item needs is whatever its text names.
//!
//! ```text
//! digits.ein, `logits`   ->   dims, X, W1, b1, W2, b2, model, logits; output logits
//! ```

use crate::program::Program;
use einc_core::sema::SourceFile;
use einc_diag::{Diagnostic, Span, did_you_mean};
use einc_syntax::ast::{Formal, FunctionBody, Item, ItemKind, Name, Statement};
use std::collections::BTreeSet;

/// Leaves in a program what the `wanted` definitions need, and makes them the only outputs, in this order.
///
/// # Errors
/// `E0711` if the program does not define one of them.
pub fn reduce(program: &mut Program, wanted: &[String]) -> Result<(), Diagnostic> {
    let Some(file) = program.sources.files.first_mut() else {
        return Ok(());
    };
    let items = &file.ast.items;
    let defined: Vec<&str> = items
        .iter()
        .filter(|item| matches!(item.kind, ItemKind::Statement(_)))
        .flat_map(|item| declared(item))
        .collect();
    if let Some(wanted) = wanted.iter().find(|name| !defined.contains(&name.as_str())) {
        let message = format!("`--infer {wanted}`: the program has no definition `{wanted}`");
        let error = Diagnostic::error("E0711", message);
        return Err(match did_you_mean(wanted, defined.iter().copied()) {
            Some(near) => error.help(format!("did you mean `--infer {near}`?")),
            None => error.help(format!("it has: {}", defined.join(", "))),
        });
    }
    let (needed, mut kept) = needed(file, wanted.iter().map(String::as_str).collect());
    let text = |item: &Item| text(file, item.span);
    for (item, kept) in items.iter().zip(&mut kept) {
        *kept |= match &item.kind {
            ItemKind::UseLibrary { .. } | ItemKind::UseFile { .. } => true,
            // A condition on what is left still holds.
            ItemKind::Assert { .. } => {
                let all: BTreeSet<&str> = items.iter().flat_map(|item| declared(item)).collect();
                let mut named = words(text(item)).filter(|word| all.contains(word));
                named.all(|word| needed.contains(word))
            }
            _ => false,
        };
    }
    let mut outputs: Vec<Item> = vec![];
    for (at, text) in wanted.iter().enumerate() {
        let item = items
            .iter()
            .find(|item| declared(item).contains(&text.as_str()));
        if let Some(span) = item.map(|item| item.span)
            && !wanted[..at].contains(text)
        {
            outputs.push(Item {
                kind: ItemKind::Output {
                    name: Name {
                        text: text.clone(),
                        span,
                    },
                    on: None,
                    file: None,
                },
                span,
                doc: None,
            });
        }
    }
    let mut keep = kept.iter();
    file.ast.items.retain(|_| *keep.next().unwrap_or(&false));
    file.ast.items.extend(outputs);
    Ok(())
}

/// Returns for every item of a file whether an output, a training, an assertion or an item that one of them needs names it. The test
/// is on the text, so it may keep too much, and never too little.
pub(crate) fn used(file: &SourceFile) -> Vec<bool> {
    let ends = file.ast.items.iter().filter(|item| {
        matches!(
            item.kind,
            ItemKind::Output { .. } | ItemKind::Train(_) | ItemKind::Assert { .. }
        )
    });
    let roots = ends.flat_map(|item| words(text(file, item.span))).collect();
    needed(file, roots).1
}

/// The names that the items with some names need, these included, and which items define them.
fn needed<'f>(
    file: &'f SourceFile,
    mut needed: BTreeSet<&'f str>,
) -> (BTreeSet<&'f str>, Vec<bool>) {
    let items = &file.ast.items;
    let mut kept = vec![false; items.len()];
    loop {
        let mut grew = false;
        for (item, kept) in items.iter().zip(&mut kept) {
            if !*kept && declared(item).iter().any(|name| needed.contains(name)) {
                (*kept, grew) = (true, true);
                needed.extend(named(file, item));
            }
        }
        if !grew {
            return (needed, kept);
        }
    }
}

/// The names in an item that may be those of other items. What a function or a module names itself hides them in it, but for the defaults
/// of its arguments.
fn named<'f>(file: &'f SourceFile, item: &'f Item) -> Vec<&'f str> {
    let (formals, results, body): (Vec<&Formal>, &[Formal], &[Item]) = match &item.kind {
        ItemKind::Function(function) => match &function.body {
            FunctionBody::Expression(_) => (function.formals.iter().collect(), &[], &[]),
            FunctionBody::Block { results, body } => {
                (function.formals.iter().collect(), results, body)
            }
        },
        ItemKind::Module(module) => {
            let formals = module.options.iter().chain(&module.formals);
            (formals.collect(), &module.results, &module.body)
        }
        _ => return words(text(file, item.span)).collect(),
    };
    let is_block =
        |item: &&Item| matches!(item.kind, ItemKind::Statement(Statement::Repeat { .. }));
    let own: BTreeSet<&str> = (formals.iter().copied().chain(results))
        .map(|formal| formal.name.text.as_str())
        .chain(
            body.iter()
                .filter(|item| !is_block(item))
                .flat_map(declared),
        )
        .collect();
    let defaults = formals.iter().filter_map(|formal| formal.default.as_ref());
    let defaults = defaults.flat_map(|default| words(text(file, default.span)));
    words(text(file, item.span))
        .filter(|word| !own.contains(word))
        .chain(defaults)
        .collect()
}

/// The text of a place in a file.
pub(crate) fn text(file: &SourceFile, span: Span) -> &str {
    let range = span.start as usize..span.end as usize;
    file.text.get(range).unwrap_or_default()
}

/// The names that an item gives something to.
pub(crate) fn declared(item: &Item) -> Vec<&str> {
    match &item.kind {
        ItemKind::Dim { name, .. }
        | ItemKind::Input { name, .. }
        | ItemKind::Param { name, .. } => vec![&name.text],
        ItemKind::Const { target, .. } => vec![&target.name.text],
        ItemKind::Function(function) => vec![&function.name.text],
        ItemKind::Module(module) => vec![&module.name.text],
        ItemKind::Statement(Statement::Definition { targets, .. }) => targets
            .iter()
            .map(|target| target.name.text.as_str())
            .collect(),
        ItemKind::Statement(Statement::Scatter { target, .. }) => vec![&target.name.text],
        ItemKind::Statement(Statement::Repeat { body, counter, .. }) => {
            let inside = body.iter().flat_map(declared);
            inside.chain([counter.text.as_str()]).collect()
        }
        _ => vec![],
    }
}

/// Every name in a text, and parts of dotted ones.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '\''))
        .filter(|word| !word.is_empty())
}
