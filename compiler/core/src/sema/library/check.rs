//! Checks of the arguments of a library operation: their element types, and the sizes of its result.
//!
//! Must not know statements.
//!
//! ```text
//! solve(A: f64[3, 5, 5], y: f64[3, 5])   =>   the result's own sizes: [5]
//! ```

use crate::sema::{
    Checker, expressions::scope::View, library::operands::Call, library::operations::Operation,
    report::dimensions, sizes::size::Size,
};
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, Span};

impl Checker<'_> {
    /// The views of a library operation, constant lists in the type of the others; without one, of numbers that it can take.
    pub(crate) fn typed_views(
        &mut self,
        operation: &Operation,
        views: Vec<View>,
        span: Span,
    ) -> Option<Vec<View>> {
        let of = |view: &View| self.built.tensors[view.tensor.0 as usize].dtype;
        let typed = views.iter().find(|view| !self.is_open_list(view.tensor));
        let whole = views.iter().all(|view| of(view).is_integer());
        let dtype = match typed {
            Some(view) => of(view).part().unwrap_or(of(view)),
            None if whole && operation.is_ordered() => DType::I64,
            None => DType::F32,
        };
        let views = views.into_iter();
        views.map(|view| self.view_in(view, dtype, span)).collect()
    }

    pub(crate) fn library_types(&mut self, call: &Call) -> Option<()> {
        let name = call.operation.name;
        let mut first: Option<(DType, Span)> = None;
        for (view, place) in call.views.iter().zip(&call.places) {
            if self.inference.untyped.contains_key(&view.tensor) {
                continue;
            }
            let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
            let (suits, needs, to) = match call.operation.is_ordered() {
                true => (
                    dtype != DType::Bool && !dtype.is_complex(),
                    "real numbers",
                    "i64",
                ),
                false => (
                    matches!(dtype, DType::F32 | DType::F64),
                    "f32 or f64 values",
                    "f32",
                ),
            };
            if !suits {
                let help = match dtype.is_complex() {
                    true => "take real numbers of it first: `t[…] = abs(…)`, `re(…)` or `im(…)`",
                    false => &format!("convert it first: `t[…] = {to}(…)`"),
                };
                self.report.push(
                    Diagnostic::error("E0403", format!("`{name}` needs {needs}, not {dtype}"))
                        .at(*place, format!("this is {dtype}"))
                        .help(help),
                );
                return None;
            }
            match first {
                Some((other, there)) if other != dtype => {
                    self.report.push(
                        Diagnostic::error("E0401", format!("`{name}` of {other} and {dtype}"))
                            .at(*place, format!("this is {dtype}"))
                            .at(there, format!("and this {other}")),
                    );
                    return None;
                }
                _ => first = Some((dtype, *place)),
            }
        }
        Some(())
    }

    /// The sizes of the result's own dimensions: the function's one tensor, with several results in its last dimension.
    pub(crate) fn library_sizes(&mut self, call: &Call) -> Option<Vec<Size>> {
        let name = call.operation.name;
        let shape = self.view_shape(call.views[0]);
        let leading = shape.len().checked_sub(call.operation.dimensions);
        let Some(leading) = leading else {
            let text = self.view_text(call.views[0]);
            self.report.push(
                Diagnostic::error(
                    "E0304",
                    format!(
                        "`{name}` works on {}, not on {}",
                        dimensions(call.operation.dimensions),
                        dimensions(shape.len())
                    ),
                )
                .at(call.places[0], format!("this is {text}")),
            );
            return None;
        };
        if call.operation.function == Function::Logdet && leading > 0 {
            self.report.push(
                Diagnostic::error("E0304", "`logdet` gives one value, so it takes one matrix")
                    .at(
                        call.places[0],
                        format!("this is {}", self.view_text(call.views[0])),
                    )
                    .help("call it for every matrix: `y[p] = logdet(A[p])`"),
            );
            return None;
        }
        if call.operation.is_ordered() {
            let own = shape[leading].clone();
            let Some(count) = call.count.clone() else {
                return Some(vec![own]);
            };
            if count.at_least_zero() == Some(false)
                || own.subtract(&count).ok()?.at_least_zero() == Some(false)
            {
                self.report.push(
                    Diagnostic::error("E0307", format!("`topk` chooses {count} of {own} values"))
                        .at(call.places[1], format!("this is {count}"))
                        .at(call.places[0], format!("the last dimension has {own}")),
                );
                return None;
            }
            return Some(vec![count]);
        }
        if call.operation.function == Function::Fft {
            return self.complex_size(call, &shape[leading]);
        }
        let (rows, columns) = (shape[leading].clone(), shape[leading + 1].clone());
        let square = !matches!(call.operation.function, Function::Qr | Function::Svd);
        if square && rows.differs(&columns) {
            self.report.push(
                Diagnostic::error(
                    "E0501",
                    format!("`{name}` needs a square matrix, not {rows} × {columns}"),
                )
                .at(
                    call.places[0],
                    format!("this is {}", self.view_text(call.views[0])),
                ),
            );
            return None;
        }
        let overflow = |size: Result<Size, _>| size.ok();
        let least = overflow(Size::apply(Function::Min, &rows, &columns))?;
        let both = |a: &Size, b: &Size| a.times(b).ok();
        let sum = |a: Size, b: Size| a.plus(&b).ok();
        Some(match call.operation.function {
            Function::Solve => self.right_side(call, &shape, leading)?,
            Function::Cholesky | Function::Inv => vec![rows, columns],
            Function::Logdet => vec![],
            Function::Eigh => vec![sum(rows.clone(), both(&rows, &columns)?)?],
            Function::Eig => {
                let part = sum(rows.clone(), both(&rows, &columns)?)?;
                vec![both(&part, &Size::number(2))?]
            }
            Function::Qr => vec![sum(both(&rows, &least)?, both(&least, &columns)?)?],
            _ => {
                let (u, v) = (both(&rows, &least)?, both(&least, &columns)?);
                vec![sum(sum(u, least)?, v)?]
            }
        })
    }

    /// The size of what `fft` gives of a vector: real and imaginary parts, whose tensors have one shape.
    fn complex_size(&mut self, call: &Call, length: &Size) -> Option<Vec<Size>> {
        let [re, im] = [0, 1].map(|at| self.view_shape(call.views[at]));
        if re.len() != im.len() || re.iter().zip(&im).any(|(r, i)| r.differs(i)) {
            let [re, im] = [0, 1].map(|at| self.view_text(call.views[at]));
            let what = "`fft` takes a real and an imaginary part of one shape".to_owned();
            self.report.push(
                Diagnostic::error("E0501", what)
                    .at(call.places[0], format!("the real part is {re}"))
                    .at(call.places[1], format!("the imaginary part is {im}"))
                    .help("of real numbers the imaginary part is 0: `use std.fft`, then `re, im = fft.rfft(x)`"),
            );
            return None;
        }
        Some(vec![length.times(&Size::number(2)).ok()?])
    }

    /// The sizes of `solve`'s result: those of its right side, which fits.
    fn right_side(&mut self, call: &Call, matrix: &[Size], leading: usize) -> Option<Vec<Size>> {
        let side = self.view_shape(call.views[1]);
        let (a, b) = (self.view_text(call.views[0]), self.view_text(call.views[1]));
        let report = |c: &mut Self, code, what: String, help: Option<&str>| {
            let mut error = Diagnostic::error(code, what)
                .at(call.places[0], format!("the matrix is {a}"))
                .at(call.places[1], format!("the right side is {b}"));
            if let Some(help) = help {
                error = error.help(help);
            }
            c.report.push(error);
            None
        };
        let own = side
            .len()
            .checked_sub(leading)
            .filter(|own| *own == 1 || *own == 2);
        let Some(own) = own else {
            let what =
                "the right side of `solve` is a vector or a matrix for each matrix".to_owned();
            let help = "where the matrix is one for several right sides, slice them: `x[p,i] = solve(A, y[p])[i]`";
            return report(self, "E0304", what, Some(help));
        };
        let pairs = side[..leading].iter().zip(matrix);
        if side[leading].differs(&matrix[leading]) || pairs.into_iter().any(|(s, m)| s.differs(m)) {
            let what = format!(
                "the right side of `solve` has {} rows, the matrix {}",
                side[leading], matrix[leading]
            );
            return report(self, "E0501", what, None);
        }
        Some(side[leading..leading + own].to_vec())
    }
}
