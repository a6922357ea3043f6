//! Signatures: the sizes that their letters stand for in a call, and what they say of the result.
//!
//! Must not know what is passed beyond its sizes.
//!
//! ```text
//! fn f(x[.., d], w[d, h]) with x: f32[8, 4], w: f32[4, 3]   =>   `..`: 8, d: 4, h: 3
//! ```

use crate::sema::{
    Checker,
    calls::callee::Callable,
    expressions::scope::{Binding, Scope, View},
    report::dimensions,
    resolve::forms::{bare_name, formal_shape},
    sizes::size::Size,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, Formal, Position};

impl<'a> Checker<'a> {
    /// Gives the letters of a signature their sizes; returns the sizes that are more than a letter.
    pub(crate) fn unify_letters(
        &mut self,
        scope: &mut Scope<'a>,
        function: Callable<'a>,
        places: &[Span],
    ) -> Option<Vec<(&'a Expr, Size, Span)>> {
        let name = &function.name.text;
        let letters = self.names.letters(scope.file, function);
        let mut rest: Option<(Vec<Size>, Span)> = None;
        let (mut failed, mut later) = (false, vec![]);
        for (formal, place) in function.formals.iter().zip(places) {
            let (Some(shape), Some(Binding::Tensor(view))) = (
                formal_shape(formal),
                scope.locals.get(formal.name.text.as_str()).copied(),
            ) else {
                continue;
            };
            let sizes = self.view_shape(view);
            let rank = sizes.len();
            let dots = shape
                .iter()
                .filter(|p| matches!(p, Position::Rest(_)))
                .count();
            let fixed = shape.len() - dots;
            if dots > 1 || sizes.len() < fixed || (dots == 0 && sizes.len() != fixed) {
                self.wrong_rank(function, formal, (dots, fixed), (view, *place));
                failed = true;
                continue;
            }
            let mut sizes = sizes.into_iter();
            for position in shape {
                let Position::Expr(expr) = position else {
                    let these: Vec<Size> = sizes.by_ref().take(rank - fixed).collect();
                    match &rest {
                        None => rest = Some((these, *place)),
                        Some(first) => failed |= !self.same_rest(name, first, (&these, *place)),
                    }
                    continue;
                };
                let Some(size) = sizes.next() else {
                    continue;
                };
                match bare_name(position).filter(|(letter, _)| letters.contains(letter)) {
                    Some((letter, _)) => match scope.letters.get(letter) {
                        Some((first, there)) if first.differs(&size) => {
                            self.report.push(
                                Diagnostic::error(
                                    "E0501",
                                    format!(
                                        "size `{letter}` of `{name}` is both {first} and {size}"
                                    ),
                                )
                                .at(*place, format!("`{letter}` is {size} here"))
                                .at(*there, format!("and {first} here"))
                                .at(expr.span, "in the signature"),
                            );
                            failed = true;
                        }
                        Some((first, _)) if first.known().is_some() || size.known().is_none() => {}
                        _ => {
                            scope.letters.insert(letter, (size, *place));
                        }
                    },
                    None => later.push((expr, size, *place)),
                }
            }
        }
        let signature_rest = rest.is_some()
            || function
                .formals
                .iter()
                .filter_map(formal_shape)
                .flatten()
                .any(|p| matches!(p, Position::Rest(_)));
        if signature_rest {
            scope.rest = Some(rest.map(|(sizes, _)| sizes).unwrap_or_default());
        }
        (!failed).then_some(later)
    }

    /// Reports an argument with other dimensions than its formal has; `dots`: how many `..` it has beside the `fixed` ones.
    fn wrong_rank(
        &mut self,
        function: Callable<'a>,
        formal: &'a Formal,
        (dots, fixed): (usize, usize),
        (view, place): (View, Span),
    ) {
        let at_least = if dots > 0 { "at least " } else { "" };
        let what = format!(
            "`{}` of `{}` has {at_least}{}, not {}",
            formal.name.text,
            function.name.text,
            dimensions(fixed),
            self.view_shape(view).len()
        );
        self.report.push(
            Diagnostic::error("E0501", what)
                .at(place, format!("this is {}", self.view_text(view)))
                .at(
                    formal.name.span,
                    format!("declared with {at_least}{} here", dimensions(fixed)),
                ),
        );
    }

    /// Returns whether `..` stands for the same sizes in two arguments, and reports if not.
    fn same_rest(
        &mut self,
        name: &str,
        (first, there): &(Vec<Size>, Span),
        (these, place): (&[Size], Span),
    ) -> bool {
        let mut pairs = first.iter().zip(these);
        let same = first.len() == these.len() && pairs.all(|(a, b)| !a.differs(b));
        if !same {
            self.report.push(
                Diagnostic::error("E0501", format!("`..` of `{name}` has two shapes"))
                    .at(place, format!("`..` is [{}] here", list(these)))
                    .at(*there, format!("and [{}] here", list(first))),
            );
        }
        same
    }

    /// Compares the sizes that are more than a letter.
    pub(crate) fn check_sizes(
        &mut self,
        scope: &Scope<'a>,
        function: Callable<'a>,
        sizes: Vec<(&'a Expr, Size, Span)>,
    ) -> Option<()> {
        let mut failed = false;
        for (expr, size, place) in sizes {
            let Some(needed) = self.size(scope, expr, "a size") else {
                failed = true;
                continue;
            };
            if needed.differs(&size) {
                let name = &function.name.text;
                self.report.push(
                    Diagnostic::error(
                        "E0501",
                        format!("a size of `{name}` is {needed}, not {size}"),
                    )
                    .at(place, format!("this has {size}"))
                    .at(expr.span, format!("{needed} in the signature")),
                );
                failed = true;
            }
        }
        (!failed).then_some(())
    }

    /// The sizes that a signature says of a result; `None` where the body decides.
    #[allow(clippy::type_complexity)]
    pub(crate) fn result_shape(
        &mut self,
        scope: &Scope<'a>,
        function: Callable<'a>,
        result: &'a Formal,
    ) -> Option<Option<(Vec<Option<Size>>, Span)>> {
        let Some(shape) = formal_shape(result) else {
            return Some(None);
        };
        let letters = self.names.letters(scope.file, function);
        let mut sizes = vec![];
        for position in shape {
            match position {
                Position::Rest(_) => {
                    sizes.extend(scope.rest.clone().unwrap_or_default().into_iter().map(Some))
                }
                Position::Expr(expr) => {
                    // The body decides a letter of the result's own, whatever else has its name, but for a size of the body.
                    let fresh = bare_name(position).is_some_and(|(name, _)| {
                        letters.contains(&name)
                            && !scope.letters.contains_key(name)
                            && !matches!(scope.locals.get(name), Some(Binding::Scalar(_)))
                    });
                    sizes.push(if fresh {
                        None
                    } else {
                        Some(self.size(scope, expr, "a size")?)
                    });
                }
            }
        }
        Some(Some((sizes, result.name.span)))
    }
}

fn list(sizes: &[Size]) -> String {
    sizes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
