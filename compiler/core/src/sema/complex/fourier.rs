//! `fft(z)` and `ifft(z)` of complex tensors, by the run time's transform of a real and an imaginary part.
//!
//! The inverse exchanges the parts before and after, and divides by the length. Real tensors are transformed as complex ones. Must not know how
//! a transform is computed.
//!
//! ```text
//! w = fft(z)    =>   c, d = fft(re(z), im(z));  w = complex(c, d)
//! z = ifft(w)   =>   d, c = fft(im(w), re(w));  z = complex(c, d) / n
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::functions::Results,
    expressions::arena::{ComplexForm, ExprId, Form, Ty},
    expressions::scope::{Binding, View},
    library::operands::Call,
    library::operations::Operation,
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, FileId, Span};

impl Checker<'_> {
    /// The transform of a complex tensor along its last dimension.
    pub(crate) fn transform(&mut self, call: Call, hints: &[(String, Span)]) -> Option<Results> {
        let (name, place) = (call.operation.name, call.places[0]);
        let view = call.views[0];
        let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
        let Some(complex) = Some(dtype).filter(|d| d.is_complex()).or(dtype.complex()) else {
            let needs = format!("`{name}` needs complex, f32 or f64 values, not {dtype}");
            self.report.push(
                Diagnostic::error("E0403", needs)
                    .at(place, format!("this is {dtype}"))
                    .help("convert it first: `t[…] = c64(…)`"),
            );
            return None;
        };
        let Some(length) = self.view_shape(view).last().cloned() else {
            let text = self.view_text(view);
            self.report.push(
                Diagnostic::error("E0304", format!("`{name}` works on a dimension"))
                    .at(place, format!("this is {text}")),
            );
            return None;
        };
        let is_inverse = name == "ifft";
        let mut forms = [ComplexForm::Real, ComplexForm::Imaginary];
        if is_inverse {
            forms.reverse();
        }
        let part = complex.part()?;
        let mut views = vec![];
        for form in forms {
            views.push(
                self.over(&[view], (name, Role::Hidden), call.span, |c, of| {
                    let value = c.convert_to_complex(of[0], complex, place)?;
                    Some(
                        c.arena
                            .add(Form::Complex(form, vec![value]), Ty::Typed(part)),
                    )
                })?,
            );
        }
        let parts = Call {
            operation: Operation::taking("fft", 2)?,
            views,
            places: vec![place, place],
            count: None,
            span: call.span,
        };
        let sizes = self.library_sizes(&parts)?;
        let results = self.library_call(parts, sizes, &[])?;
        let mut given = vec![];
        for result in results.iter() {
            match result {
                Binding::Tensor(view) => given.push(*view),
                _ => return None,
            }
        }
        if is_inverse {
            given.reverse();
        }
        let named = hints.first().map(|(name, span)| (name.as_str(), *span));
        let outer = self.captured(&[Binding::Tensor(view)]);
        let (name, span, role) = match named.filter(|_| outer.is_empty()) {
            Some((name, span)) => (name, span, Role::Named),
            None => (name, call.span, Role::Hidden),
        };
        let joined = self.over(&given, (name, role), span, |c, of| {
            let pair = Form::Complex(ComplexForm::Pair, of.to_vec());
            let pair = c.arena.add(pair, Ty::Typed(complex));
            if !is_inverse {
                return Some(pair);
            }
            let length = c.arena.whole(length);
            let length = c.coerce(length, complex, span)?;
            c.apply(Function::Div, vec![pair, length], span)
        })?;
        Some([Binding::Tensor(joined)].into())
    }

    /// A tensor over the dimensions of tensors of one shape, and of the indices that their slices depend on, with a value for the elements at
    /// each point.
    pub(crate) fn over(
        &mut self,
        of: &[View],
        (name, role): (&str, Role),
        span: Span,
        value: impl FnOnce(&mut Self, &[ExprId]) -> Option<ExprId>,
    ) -> Option<View> {
        let bindings: Vec<Binding> = of.iter().map(|view| Binding::Tensor(*view)).collect();
        let outer = self.captured(&bindings);
        self.pin(&outer, span)?;
        let sizes = self.view_shape(*of.first()?);
        self.indices.open.push(Open::default());
        let mut own = vec![];
        for (at, size) in sizes.iter().enumerate() {
            own.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let mut elements = vec![];
        for view in of {
            let mut positions = self.leading(*view).to_vec();
            positions.extend(own.iter().map(|var| self.index(*var)));
            let dtype: DType = self.built.tensors[view.tensor.0 as usize].dtype;
            elements.push(self.element(view.tensor, positions, dtype));
        }
        let root = value(self, &elements)?;
        let mut around = vec![];
        for var in &outer {
            around.push((*var, self.extent(*var)?));
        }
        let shape: Vec<Size> = (around.iter().map(|(_, size)| size.clone()))
            .chain(sizes)
            .collect();
        self.check_elements(&shape, span)?;
        let name = match role {
            Role::Named => name.to_owned(),
            _ => self.instance_name(FileId(0), name),
        };
        let vars = [outer, own].concat();
        let tensor = self.add_statement(name, root, vars, shape, span, role);
        Some(self.inner_view(tensor, &around))
    }
}
