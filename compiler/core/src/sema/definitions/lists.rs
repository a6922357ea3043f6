//! Lists of numbers as tensors: `const w = [1, 2, 1]`, `const K = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]`.
//!
//! A list is a source: its elements are numbers that are known before the run, and its sizes those of its brackets. Must not know
//! statements.
//!
//! ```text
//! [[1, 2, 3], [4, 5, 6]] as f32   =>   numbers(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), sizes [2, 3]
//! ```

use crate::sema::{
    Checker, definitions::tensors::SourceForm, expressions::arena::Ty, expressions::scope::Scope,
    sizes::size::Size,
};
use ein_plan::{DType, Scalar, Source};
use einc_diag::Diagnostic;
use einc_syntax::ast::{Expr, ExprKind};

/// The elements of a list and its sizes.
struct Elements<'a> {
    elements: Vec<&'a Expr>,
    sizes: Vec<usize>,
}

impl<'a> Checker<'a> {
    /// The sizes of a list; an error if its rows have different lengths.
    pub(crate) fn list_sizes(&mut self, list: &'a Expr) -> Option<Vec<Size>> {
        let Elements { sizes, .. } = self.elements(list)?;
        let sizes = sizes.into_iter().map(|size| Size::number(size as i64));
        Some(sizes.collect())
    }

    /// The type of a list's elements; an untyped number if none of them has a type.
    pub(crate) fn listed_type(&mut self, scope: &Scope<'a>, list: &'a Expr) -> Option<Ty> {
        let mark = self.report.mark();
        let elements = self.elements(list).map(|list| list.elements);
        let mut all = Ty::Number { whole: true };
        for element in elements.into_iter().flatten() {
            let value = self.constant(scope, element)?;
            match (self.arena.ty(value), all) {
                (typed @ Ty::Typed(_), Ty::Number { .. }) => all = typed,
                (Ty::Number { whole: false }, Ty::Number { .. }) => {
                    all = Ty::Number { whole: false };
                }
                _ => {}
            }
        }
        // What is wrong is told when the values are read.
        self.report.forget(mark);
        Some(all)
    }

    /// The list as the source of a tensor of that type and shape.
    pub(crate) fn list_source(
        &mut self,
        scope: &Scope<'a>,
        list: &'a Expr,
        dtype: DType,
        shape: &[Size],
    ) -> Option<SourceForm> {
        let Elements { elements, sizes } = self.elements(list)?;
        let own = sizes.iter().map(|size| Size::number(*size as i64));
        if sizes.len() != shape.len() || own.zip(shape).any(|(own, size)| own.differs(size)) {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            let wanted: Vec<String> = shape.iter().map(ToString::to_string).collect();
            let message = "the list does not have the sizes of its tensor";
            self.report.push(
                Diagnostic::error("E0301", message)
                    .at(list.span, format!("it is [{}]", sizes.join(", ")))
                    .note(format!("the tensor is [{}]", wanted.join(", "))),
            );
            return None;
        }
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.constant(scope, element)?;
            let value = self.coerce(value, dtype, element.span)?;
            let scalar = self.arena.as_scalar(value);
            let open = !self.depends_on_data(value) && !self.task.bindings.require_sizes;
            match scalar {
                Some(Scalar::Int(number)) if dtype.is_float() => {
                    values.push(Scalar::Float(number as f64));
                }
                Some(scalar) => values.push(scalar),
                // A dim without a number yet.
                None if open => {
                    self.built.open_source = true;
                    return Some(SourceForm::Ready(Source::Full(Scalar::Int(0))));
                }
                None => {
                    let message = "the numbers of a list must be known before the run";
                    self.report.push(
                        Diagnostic::error("E0207", message)
                            .at(element.span, "this depends on data")
                            .help("for computed values write a statement: `w[i] = where(i == 0, a, b)`"),
                    );
                    return None;
                }
            }
        }
        Some(SourceForm::Ready(Source::Numbers(values)))
    }

    /// The elements of a list in row-major order.
    fn elements(&mut self, list: &'a Expr) -> Option<Elements<'a>> {
        let ExprKind::List(items) = &*list.kind else {
            return Some(Elements {
                elements: vec![list],
                sizes: vec![],
            });
        };
        let mut all: Option<Elements<'a>> = None;
        for item in items {
            let part = self.elements(item)?;
            match &mut all {
                None => all = Some(part),
                Some(first) if first.sizes == part.sizes => first.elements.extend(part.elements),
                Some(first) => {
                    let words = |sizes: &[usize]| match sizes {
                        [] => "a number".to_owned(),
                        [one] => format!("a list of {one}"),
                        more => format!("a list of {} rows", more[0]),
                    };
                    let (one, other) = (words(&first.sizes), words(&part.sizes));
                    self.report.push(
                        Diagnostic::error("E0301", "the rows of a list differ in length")
                            .at(item.span, format!("this is {other}"))
                            .at(items[0].span, format!("the first is {one}")),
                    );
                    return None;
                }
            }
        }
        let mut all = all?;
        all.sizes.insert(0, items.len());
        Some(all)
    }
}

/// The sizes of a list, by its first elements; `None` if it is none.
pub(crate) fn sizes_of_list(list: &Expr) -> Option<Vec<u64>> {
    let ExprKind::List(items) = &*list.kind else {
        return None;
    };
    let inner = items.first().and_then(sizes_of_list).unwrap_or_default();
    Some(std::iter::once(items.len() as u64).chain(inner).collect())
}
