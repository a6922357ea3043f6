//! Inputs, params and sources of complex numbers: each is a real tensor first, of pairs or of real parts alone.
//!
//! Files and random numbers give pairs, in a last dimension of 2; so does what a param begins with, so that all that trains, saves and reads
//! params sees a real tensor. Other sources give real numbers. Must not know how expressions are computed.
//!
//! ```text
//! param z: c64[N] = normal(0, 1)   =>   param z: f32[N, 2];  z[i] = complex(z[i, 0], z[i, 1])
//! input o: c64[N] = 1              =>   input o.real: f32[N];  o[i] = c64(o.real[i])
//! ```

use crate::sema::{
    Checker,
    definitions::tensors::{SourceForm, Tensor},
    expressions::arena::{ComplexForm, Form, TensorRef, Ty},
    sizes::size::Size,
};
use ein_plan::{DType, Scalar, Source};
use einc_diag::{Diagnostic, Span};

/// The real tensor behind a source of complex numbers.
pub(crate) struct Parts {
    /// The type of its elements.
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<Size>,
    /// True if its last dimension holds both parts.
    pub(crate) pairs: bool,
    /// True if a complex tensor stands over it.
    pub(crate) of_complex: bool,
}

impl Parts {
    /// The name of the real tensor behind one of that name.
    pub(crate) fn name(&self, complex: &str) -> String {
        match self.of_complex && !self.pairs {
            true => format!("{complex}.real"),
            false => complex.to_owned(),
        }
    }
}

/// The most elements of a complex param that begins with one number.
const MOST_NUMBERS: usize = 4096;

/// Number of elements, if it is known and small.
fn count(shape: &[Size]) -> Option<usize> {
    let mut count = 1usize;
    for size in shape {
        count = count.checked_mul(usize::try_from(size.known()?).ok()?)?;
    }
    (1..=MOST_NUMBERS).contains(&count).then_some(count)
}

/// The pairs of numbers without imaginary parts.
fn with_zeros(values: &[Scalar]) -> Vec<Scalar> {
    values
        .iter()
        .flat_map(|value| [*value, Scalar::Float(0.0)])
        .collect()
}

impl Checker<'_> {
    /// The real tensor for a source of that type and shape; an error if no such source gives complex numbers. Of real types it is the
    /// tensor itself. A param that begins with a few real numbers begins with their pairs.
    pub(crate) fn parts_of_source(
        &mut self,
        form: &mut SourceForm,
        (dtype, shape): (DType, &[Size]),
        param: bool,
        span: Span,
    ) -> Option<Parts> {
        let mut parts = Parts {
            dtype,
            shape: shape.to_vec(),
            pairs: false,
            of_complex: dtype.is_complex(),
        };
        let Some(part) = dtype.part() else {
            return Some(parts);
        };
        let wrong = |c: &mut Self, what: &str| {
            c.report.push(
                Diagnostic::error("E0207", what)
                    .at(span, format!("of {dtype}"))
                    .help("`zeros`, `normal`, `uniform` and files give complex numbers"),
            );
            None
        };
        parts.dtype = part;
        parts.pairs = match form {
            SourceForm::HeNormal { fan: None } | SourceForm::GlorotUniform { fan: None } => {
                return wrong(self, "the fan of a complex param must be written: `fan: n`");
            }
            SourceForm::Ready(
                Source::Full(_)
                | Source::Iota
                | Source::Numbers(_)
                | Source::Permutation
                | Source::Bernoulli { .. },
            ) if !param => false,
            SourceForm::Ready(Source::Full(value)) if value.as_f64() == 0.0 => true,
            SourceForm::Ready(Source::Full(value)) => match count(shape) {
                Some(count) => {
                    let values = vec![*value; count];
                    *form = SourceForm::Ready(Source::Numbers(with_zeros(&values)));
                    true
                }
                None => return wrong(self, "so large a complex param begins with `zeros`"),
            },
            SourceForm::Ready(Source::Numbers(values)) => {
                *form = SourceForm::Ready(Source::Numbers(with_zeros(values)));
                true
            }
            SourceForm::Ready(Source::Iota | Source::Permutation | Source::Bernoulli { .. }) => {
                return wrong(self, "a complex param cannot begin with such numbers");
            }
            SourceForm::HeNormal { .. }
            | SourceForm::GlorotUniform { .. }
            | SourceForm::Ready(_) => true,
        };
        if parts.pairs {
            parts.shape.push(Size::number(2));
        }
        Some(parts)
    }

    /// The complex tensor of a name over the real tensor that holds its parts.
    pub(crate) fn complex_over(
        &mut self,
        name: &str,
        raw: TensorRef,
        pairs: bool,
        span: Span,
    ) -> Option<TensorRef> {
        let mut like: Tensor = self.built.tensors[raw.0 as usize].clone();
        let dtype = like.dtype;
        if pairs {
            like.shape.pop();
        }
        let to = Ty::Typed(dtype.complex()?);
        let complex = self.pointwise(name.to_owned(), &like, span, |c, at| {
            if !pairs {
                let real = c.element(raw, at.to_vec(), dtype);
                return Some(c.arena.add(Form::Convert(real), to));
            }
            let parts = [0, 1].map(|number| {
                let part = Form::Constant(Scalar::Int(number));
                let part = c.arena.add(part, Ty::Typed(DType::I64));
                c.element(raw, [at, &[part]].concat(), dtype)
            });
            Some(
                c.arena
                    .add(Form::Complex(ComplexForm::Pair, parts.to_vec()), to),
            )
        })?;
        if pairs {
            self.complex.pairs.insert(complex, raw);
        }
        Some(complex)
    }
}
