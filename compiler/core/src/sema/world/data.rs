//! The tensors of a program that take data from outside, and the headers of these data.
//!
//! Must not know how sizes follow from headers.
//!
//! ```text
//! input X: f32[N, D] = load("x.npy")   ->   X, default file x.npy   ->   f32[1437, 64]
//! ```

use super::{Header, World};
use crate::sema::Sources;
use ein_plan::{DType, FileRef};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, ItemKind, Name, Type};
use std::collections::BTreeMap;

/// A tensor that takes data from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name; of a param in an instance, its path.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// The element type that it is declared with; `None`: an instance's module says it.
    pub dtype: Option<DType>,
    /// Its default file, with the path as written.
    pub file: Option<FileRef>,
    /// True if it has no source at all.
    pub unbound: bool,
}

/// Returns the inputs of a program's own file, then its params.
pub fn inputs(sources: &Sources) -> Vec<Input> {
    let (mut inputs, mut params) = (vec![], vec![]);
    let input = |name: &Name, ty: &Type, source: &Option<Expr>, unbound| Input {
        name: name.text.clone(),
        span: name.span,
        dtype: match ty {
            Type::Tensor { dtype, .. } => Some(*dtype),
            Type::Module { .. } => None,
        },
        file: source.as_ref().and_then(file_of),
        unbound,
    };
    for item in sources.files.iter().take(1).flat_map(|f| &f.ast.items) {
        match &item.kind {
            ItemKind::Input { name, ty, source } => {
                inputs.push(input(name, ty, source, source.is_none()));
            }
            ItemKind::Param { name, ty, source } => params.push(input(name, ty, source, false)),
            _ => {}
        }
    }
    inputs.extend(params);
    inputs
}

/// The file of `load("file")` or `load("file", "key")`.
pub fn file_of(source: &Expr) -> Option<FileRef> {
    let ExprKind::Call { callee, arguments } = &*source.kind else {
        return None;
    };
    let mut strings = arguments
        .iter()
        .map(|argument| match &*argument.value.kind {
            ExprKind::String(text) => Some(text.clone()),
            _ => None,
        });
    match &*callee.kind {
        ExprKind::Name(name) if name == "load" => Some(FileRef {
            path: strings.next()??,
            key: strings.next().flatten(),
        }),
        _ => None,
    }
}

/// Asks the world for the headers of all data of a program.
///
/// # Errors
/// All errors of the world.
pub fn headers(
    world: &dyn World,
    sources: &Sources,
) -> Result<BTreeMap<String, Header>, Vec<Diagnostic>> {
    let inputs = inputs(sources);
    // Which params an instance owns is known once it is made.
    let members = world.bound().into_iter().filter_map(|path| {
        let (owner, _) = path.split_once('.')?;
        let declared = inputs.iter().find(|input| input.name == owner)?;
        Some(Input {
            name: path.clone(),
            span: declared.span,
            dtype: None,
            file: None,
            unbound: false,
        })
    });
    let (mut headers, mut errors) = (BTreeMap::new(), vec![]);
    for input in members.chain(inputs.iter().cloned()) {
        match world.header(&input) {
            Ok(header) => headers.extend(header.map(|header| (input.name, header))),
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(headers),
        false => Err(errors),
    }
}
