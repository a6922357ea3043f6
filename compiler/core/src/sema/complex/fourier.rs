//! `fft(z)`, `ifft(z)`, `rfft(x)` and `irfft(w, n)`, by the run time's transform of a real and an imaginary part.
//!
//! The inverse exchanges the parts before and after, and divides by the length. Real tensors are transformed as complex ones; of what they are
//! transformed to, the second half is the conjugate of the first, which `rfft` leaves out and `irfft` puts back. Must not know how a transform
//! is computed.
//!
//! ```text
//! w = fft(z)        =>   c, d = fft(re(z), im(z));  w = complex(c, d)
//! z = ifft(w)       =>   d, c = fft(im(w), re(w));  z = complex(c, d) / n
//! w = rfft(x)       =>   c, d = fft(x, 0);  w[k < n/2 + 1] = complex(c[k], d[k])
//! x = irfft(w, n)   =>   f[k < n] = where(k <= n/2, w[k], conj(w[n - k]));  x = re(ifft(f))
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::functions::Results,
    expressions::arena::{ComplexForm, ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, View},
    library::operands::Call,
    library::operations::Operation,
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, FileId, Span};

/// The element of a tensor at a point.
pub(crate) struct Element {
    tensor: TensorRef,
    positions: Vec<ExprId>,
    dtype: DType,
}

impl Element {
    pub(crate) fn read(&self, checker: &mut Checker<'_>) -> ExprId {
        checker.element(self.tensor, self.positions.clone(), self.dtype)
    }

    /// The element at another position of the last dimension.
    fn read_at(&self, checker: &mut Checker<'_>, last: ExprId) -> ExprId {
        let mut positions = self.positions.clone();
        positions.pop();
        positions.push(last);
        checker.element(self.tensor, positions, self.dtype)
    }
}

/// Which transform, along a dimension of which length; `given`: how many values there are of it.
struct Transform {
    name: &'static str,
    complex: DType,
    length: Size,
    given: Size,
}

impl Transform {
    fn is_inverse(&self) -> bool {
        matches!(self.name, "ifft" | "irfft")
    }
}

impl Checker<'_> {
    /// The transform of a tensor along its last dimension.
    pub(crate) fn transform(&mut self, call: Call, hints: &[(String, Span)]) -> Option<Results> {
        let place = call.places[0];
        let view = call.views[0];
        let transform = self.transform_of(&call)?;
        let mut forms = [ComplexForm::Real, ComplexForm::Imaginary];
        if transform.is_inverse() {
            forms.reverse();
        }
        let mut views = vec![];
        for form in forms {
            views.push(self.transformed(view, &transform, form, place, call.span)?);
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
        if transform.is_inverse() {
            given.reverse();
        }
        let named = hints.first().map(|(name, span)| (name.as_str(), *span));
        let outer = self.captured(&[Binding::Tensor(view)]);
        let (name, span, role) = match named.filter(|_| outer.is_empty()) {
            Some((name, span)) => (name, span, Role::Named),
            None => (transform.name, call.span, Role::Hidden),
        };
        let joined = self.joined(&given, &transform, (name, role), span)?;
        Some([Binding::Tensor(joined)].into())
    }

    /// Checks what is transformed, and how many values there are before and after.
    fn transform_of(&mut self, call: &Call) -> Option<Transform> {
        let (name, place, view) = (call.operation.name, call.places[0], call.views[0]);
        let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
        let (suits, needs) = match name {
            "rfft" => (!dtype.is_complex(), "f32 or f64"),
            _ => (true, "complex, f32 or f64"),
        };
        let complex = Some(dtype).filter(|d| d.is_complex()).or(dtype.complex());
        let Some(complex) = complex.filter(|_| suits) else {
            let help = match dtype.is_complex() {
                true => "of complex numbers write `fft(…)`",
                false if name == "rfft" => "convert it first: `t[…] = f32(…)`",
                false => "convert it first: `t[…] = c64(…)`",
            };
            let needs = format!("`{name}` needs {needs} values, not {dtype}");
            self.report.push(
                Diagnostic::error("E0403", needs)
                    .at(place, format!("this is {dtype}"))
                    .help(help),
            );
            return None;
        };
        let Some(given) = self.view_shape(view).last().cloned() else {
            let text = self.view_text(view);
            self.report.push(
                Diagnostic::error("E0304", format!("`{name}` works on a dimension"))
                    .at(place, format!("this is {text}")),
            );
            return None;
        };
        let length = match (&call.count, name) {
            (Some(count), _) => count.clone(),
            (None, "irfft") => {
                let less = given.subtract(&Size::number(1)).ok()?;
                less.times(&Size::number(2)).ok()?
            }
            _ => given.clone(),
        };
        let is_empty = |size: &Size| {
            let less = size.subtract(&Size::number(1)).ok();
            less.and_then(|less| less.at_least_zero()) == Some(false)
        };
        if matches!(name, "rfft" | "irfft") && (is_empty(&given) || is_empty(&length)) {
            let what = match is_empty(&given) {
                true => format!("`{name}` of {given} values"),
                false => format!("`{name}` gives {length} values"),
            };
            let mut error = Diagnostic::error("E0307", what)
                .at(place, format!("the last dimension has {given}"));
            if name == "irfft" && call.count.is_none() && !is_empty(&given) {
                error = error.help("say how many there are to be: `irfft(w, n)`");
            }
            self.report.push(error);
            return None;
        }
        Some(Transform {
            name,
            complex,
            length,
            given,
        })
    }

    /// A part of what the run time's transform is given.
    fn transformed(
        &mut self,
        view: View,
        transform: &Transform,
        form: ComplexForm,
        place: Span,
        span: Span,
    ) -> Option<View> {
        let (complex, part) = (transform.complex, transform.complex.part()?);
        let name = (transform.name, Role::Hidden);
        let take = move |c: &mut Self, value: ExprId| {
            let value = c.convert_to_complex(value, complex, place)?;
            let form = Form::Complex(form, vec![value]);
            Some(c.arena.add(form, Ty::Typed(part)))
        };
        if transform.name != "irfft" {
            return self.over(&[view], (name, span), None, |c, of| {
                let value = of[0].read(c);
                take(c, value)
            });
        }
        let length = &transform.length;
        let half = Size::apply(Function::FloorDiv, length, &Size::number(2)).ok()?;
        let needed = half.plus(&Size::number(1)).ok()?;
        let rest = transform.given.subtract(&needed).ok()?;
        let are_there = rest.at_least_zero() == Some(true);
        self.over(&[view], (name, span), Some(length.clone()), |c, of| {
            let here = *of[0].positions.last()?;
            let number = |c: &mut Self, size: &Size| {
                let size = c.arena.whole(size.clone());
                c.coerce(size, DType::I64, span)
            };
            let (length, half) = (number(c, length)?, number(c, &half)?);
            let given = number(c, &transform.given)?;
            let opposite = c.apply(Function::Sub, vec![length, here], span)?;
            let mut sides = vec![];
            for (at, is_opposite) in [(here, false), (opposite, true)] {
                let value = of[0].read_at(c, at);
                let mut value = take(c, value)?;
                if is_opposite && form == ComplexForm::Imaginary {
                    value = c.apply(Function::Neg, vec![value], span)?;
                }
                if !are_there {
                    let zero = c.arena.whole(Size::number(0));
                    let zero = c.coerce(zero, part, span)?;
                    let is_there = c.apply(Function::Lt, vec![at, given], span)?;
                    value = c.apply(Function::Select, vec![is_there, value, zero], span)?;
                }
                sides.push(value);
            }
            let is_low = c.apply(Function::Le, vec![here, half], span)?;
            c.apply(Function::Select, vec![is_low, sides[0], sides[1]], span)
        })
    }

    /// The result, of the parts that the run time's transform gives.
    fn joined(
        &mut self,
        given: &[View],
        transform: &Transform,
        name: (&str, Role),
        span: Span,
    ) -> Option<View> {
        let (complex, length) = (transform.complex, &transform.length);
        let part = complex.part()?;
        let over_length = |c: &mut Self, value: ExprId, dtype: DType| {
            let length = c.arena.whole(length.clone());
            let length = c.coerce(length, dtype, span)?;
            c.apply(Function::Div, vec![value, length], span)
        };
        if transform.name == "irfft" {
            return self.over(&given[..1], (name, span), None, |c, of| {
                let value = of[0].read(c);
                over_length(c, value, part)
            });
        }
        let last = match transform.name {
            "rfft" => {
                let half = Size::apply(Function::FloorDiv, length, &Size::number(2)).ok()?;
                Some(half.plus(&Size::number(1)).ok()?)
            }
            _ => None,
        };
        self.over(given, (name, span), last, |c, of| {
            let parts = of.iter().map(|of| of.read(c)).collect();
            let pair = Form::Complex(ComplexForm::Pair, parts);
            let pair = c.arena.add(pair, Ty::Typed(complex));
            match transform.is_inverse() {
                true => over_length(c, pair, complex),
                false => Some(pair),
            }
        })
    }

    /// A tensor over the dimensions of tensors of one shape, and of the indices that their slices depend on, with a value for the elements at
    /// each point. `last`: the size of its last dimension, where it is another one.
    pub(crate) fn over(
        &mut self,
        of: &[View],
        ((name, role), span): ((&str, Role), Span),
        last: Option<Size>,
        value: impl FnOnce(&mut Self, &[Element]) -> Option<ExprId>,
    ) -> Option<View> {
        let bindings: Vec<Binding> = of.iter().map(|view| Binding::Tensor(*view)).collect();
        let outer = self.captured(&bindings);
        self.pin(&outer, span)?;
        let mut sizes = self.view_shape(*of.first()?);
        if let (Some(last), Some(size)) = (last, sizes.last_mut()) {
            *size = last;
        }
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
            let tensor = view.tensor;
            let dtype = self.built.tensors[tensor.0 as usize].dtype;
            elements.push(Element {
                tensor,
                positions,
                dtype,
            });
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
