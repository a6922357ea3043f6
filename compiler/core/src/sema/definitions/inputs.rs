//! Inputs and params: their types, and the headers of the data that are bound to them.
//!
//! Must not know the forms of expressions, nor read data.
//!
//! ```text
//! X: f32[N, D], header f32[1437, 64]   =>   N = 1437, D = 64
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker, InputInfo,
    complex::data::Parts,
    definitions::lists::sizes_of_list,
    definitions::tensors::{Definition, SourceForm, Tensor},
    expressions::scope::{Binding, Scope, View},
    modules::stack::Stack,
    report::dimensions,
    resolve::names::Found,
    sizes::size::Size,
    world::Header,
};
use ein_plan::{DType, Source};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Expr, Name, Position, Type};

impl<'a> Checker<'a> {
    /// An input or param, with its full name.
    pub(crate) fn input(
        &mut self,
        scope: &Scope<'a>,
        (name, full): (&'a Name, String),
        ty: &'a Type,
        source: Option<&'a Expr>,
        param: bool,
    ) -> Option<Binding> {
        let Type::Tensor { dtype, shape, span } = ty else {
            return None;
        };
        let positions = shape.as_deref().unwrap_or_default();
        let sizes = self.declared_sizes(scope, positions);
        let form = match source {
            Some(_) if param && self.task.bindings.params_given => {
                Some(SourceForm::Ready(Source::Unbound))
            }
            None if param => {
                self.report.push(
                    Diagnostic::error("E0207", format!("`{}` has no source", name.text))
                        .at(name.span, "a param begins with something")
                        .help(format!("write one: `param {}: … = zeros`", name.text)),
                );
                None
            }
            None => Some(SourceForm::Ready(Source::Unbound)),
            Some(expr) => {
                let shape = sizes
                    .clone()
                    .unwrap_or_else(|| vec![Size::number(0); positions.len()]);
                self.source_of_input(scope, (expr, &full), dtype.part().unwrap_or(*dtype), &shape)
            }
        };
        let (sizes, mut form) = (sizes?, form?);
        self.check_elements(&sizes, name.span)?;
        if let Some(view) = self.replacement(&full, *dtype, &sizes, name.span)? {
            return Some(Binding::Tensor(view));
        }
        let place = name.span.to(*span);
        let parts = self.parts_of_source(&mut form, (*dtype, &sizes), param, place)?;
        let stack =
            (!self.modules.stacked.is_empty()).then(|| Stack::new(&full, &self.modules.stacked));
        let (own, mut names) = (sizes, vec![full.clone()]);
        let (mut full, mut sizes) = (full, parts.shape.clone());
        if let Some(stack) = &stack {
            full = stack.name();
            sizes.splice(0..0, self.modules.stacked.iter().cloned());
            names = stack.parts();
        }
        self.check_elements(&sizes, name.span)?;
        let raw = parts.name(&full);
        if let Some(fed) = self.fed_input((&raw, place), parts.dtype, &sizes, &form, param) {
            self.note_stack(fed, &stack);
            return self.input_over(&full, fed?, (&parts, *dtype), &stack, place);
        }
        for name in names {
            if let Some(header) = self.task.bindings.headers.get(&name) {
                let (mut have, mut shape) = (header.dtype, header.shape.as_slice());
                // Files of params hold c128 as pairs: see `exported` of the run time.
                if let (true, DType::C128, DType::F64, Some((2, own))) =
                    (param, *dtype, have, shape.split_last())
                {
                    (have, shape) = (*dtype, own);
                }
                let header = Header {
                    dtype: have,
                    shape: shape.to_vec(),
                    ..header.clone()
                };
                self.check_header(&name, *span, positions, &own, *dtype, &header)?;
            }
            self.built.inputs.push(InputInfo {
                name,
                dtype: *dtype,
                shape: own
                    .iter()
                    .map(|s| s.known().and_then(|n| u64::try_from(n).ok()))
                    .collect(),
                source: match &form {
                    SourceForm::Ready(source) => source.clone(),
                    _ => Source::Unbound,
                },
            });
        }
        let tensor = self.add_tensor(Tensor {
            name: raw,
            dtype: parts.dtype,
            shape: sizes,
            role: if param { Role::Param } else { Role::Input },
            definition: Definition::Source(form),
            span: place,
        });
        let binding = Binding::Tensor(View::of(tensor));
        self.note_stack(Some(binding), &stack);
        self.input_over(&full, binding, (&parts, *dtype), &stack, place)
    }

    /// The source of an input or param of that type. Data in the place of a list need not have its sizes.
    fn source_of_input(
        &mut self,
        scope: &Scope<'a>,
        (expr, full): (&'a Expr, &str),
        dtype: DType,
        shape: &[Size],
    ) -> Option<SourceForm> {
        let is_bound = self.task.bindings.headers.contains_key(full);
        match sizes_of_list(expr).filter(|own| is_bound && own.len() == shape.len()) {
            None => self.source(scope, expr, dtype, shape),
            Some(own) => {
                let own: Vec<Size> = own.iter().map(|n| Size::number(*n as i64)).collect();
                self.source(scope, expr, dtype, &own)?;
                Some(SourceForm::Ready(Source::Unbound))
            }
        }
    }

    /// The input that a tensor of data is: of complex numbers, a tensor over it.
    fn input_over(
        &mut self,
        name: &str,
        raw: Binding,
        (parts, dtype): (&Parts, DType),
        stack: &Option<Stack>,
        span: Span,
    ) -> Option<Binding> {
        let Binding::Tensor(view) = raw else {
            return Some(raw);
        };
        if !dtype.is_complex() {
            return Some(raw);
        }
        let complex = self.complex_over(name, view.tensor, parts.pairs, span)?;
        let binding = Binding::Tensor(View::of(complex));
        self.note_stack(Some(binding), stack);
        Some(binding)
    }

    fn note_stack(&mut self, binding: Option<Binding>, stack: &Option<Stack>) {
        if let (Some(Binding::Tensor(view)), Some(stack)) = (binding, stack) {
            self.modules.stacks.insert(view.tensor, stack.clone());
        }
    }

    /// Compares the data bound to an input with its declaration.
    fn check_header(
        &mut self,
        name: &str,
        span: Span,
        positions: &[Position],
        sizes: &[Size],
        declared: DType,
        data: &Header,
    ) -> Option<()> {
        let (have, header) = (data.dtype, data.shape.as_slice());
        if declared != have {
            self.report.push(
                Diagnostic::error(
                    "E0703",
                    format!("`{}` is declared {declared}, but its data is {have}", name),
                )
                .at(span, format!("declared {declared} here"))
                .help(format!("declare it {have}, or convert the file")),
            );
            return None;
        }
        if sizes.len() != header.len() {
            let shape: Vec<String> = header.iter().map(ToString::to_string).collect();
            self.report.push(
                Diagnostic::error(
                    "E0704",
                    format!(
                        "`{}` is declared with {}, but its data has {}: [{}]",
                        name,
                        dimensions(sizes.len()),
                        header.len(),
                        shape.join(", ")
                    ),
                )
                .at(
                    span,
                    format!("declared with {} here", dimensions(sizes.len())),
                ),
            );
            return None;
        }
        for (at, ((position, size), number)) in positions.iter().zip(sizes).zip(header).enumerate()
        {
            let Position::Expr(expr) = position else {
                continue;
            };
            let fits = |known| u64::try_from(known).is_ok_and(|size| data.fits(at, size));
            if size.known().is_none_or(fits) {
                continue;
            }
            let text = self.names.text(expr.span);
            let other = self
                .entities
                .bound_dims
                .get(text)
                .filter(|(_, input, _)| *input != name)
                .cloned();
            let mut error = match &other {
                Some((value, input, _)) => Diagnostic::error(
                    "E0713",
                    format!("`{text}` is {value} in the data of `{input}` and {number} in the data of `{}`", name),
                ),
                None => Diagnostic::error(
                    "E0713",
                    match text.parse::<u64>() {
                        Ok(_) => format!("`{name}` is declared with {size}, but its data has {number} there"),
                        Err(_) => format!("`{text}` is {size}, but the data of `{name}` has {number} there"),
                    },
                ),
            }
            .at(expr.span, format!("{number} in the data of `{}`", name));
            if let Some((value, input, place)) = other {
                error = error.at(place, format!("{value} in the data of `{input}`"));
            } else if let Found::Entity(id) = self.names.find(FileId(0), text) {
                error = error.at(self.names.entity(id).name.span, format!("{size} here"));
            }
            self.report
                .push(error.help("bind data whose sizes agree, or set the dim with `--dim`"));
            return None;
        }
        Some(())
    }
}
