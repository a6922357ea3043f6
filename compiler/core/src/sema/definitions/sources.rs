//! Sources: files, fills and random numbers that stand for a whole tensor, at the top level or in a function.
//!
//! Must not know file formats or generators.
//!
//! ```text
//! normal(0, 0.02)   =>   Source::Normal { mean: 0, std: 0.02 }
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm, Target, Tensor},
    expressions::arena::{ExprId, Ty, VarId},
    expressions::builtins::{LISTED, SOURCES},
    expressions::scope::{Binding, Context, Scope},
    report::plural,
    sizes::size::Size,
};
use ein_plan::{DType, FileRef, Scalar, Source};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind, Position};

impl<'a> Checker<'a> {
    /// Returns the source that an expression names, unless the user has something of that name.
    pub(crate) fn source_name(&self, scope: &Scope<'a>, expr: &'a Expr) -> Option<&'a str> {
        let named = self.names.source_of(scope.file, expr)?;
        (!scope.locals.contains_key(named)).then_some(named)
    }

    /// Returns whether an expression is a plain number (of dims, consts and literals).
    pub(crate) fn is_number(&mut self, scope: &Scope<'a>, expr: &'a Expr) -> bool {
        let mark = self.report.mark();
        let value = self.constant(scope, expr);
        self.report.forget(mark);
        value.is_some_and(|value| {
            self.arena.as_number(value).is_some() || self.arena.as_truth(value).is_some()
        })
    }

    pub(crate) fn constant(&mut self, scope: &Scope<'a>, expr: &'a Expr) -> Option<ExprId> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let value = self.expr(&mut Context::new(scope), expr);
        self.indices.open.pop();
        value
    }

    /// The source of an input, param or definition of that type.
    pub(crate) fn source(
        &mut self,
        scope: &Scope<'a>,
        expr: &'a Expr,
        dtype: DType,
        shape: &[Size],
    ) -> Option<SourceForm> {
        let Some(name) = self.source_name(scope, expr) else {
            return self.number_source(scope, expr, dtype);
        };
        let arguments: &[Argument] = match &*expr.kind {
            ExprKind::Call { arguments, .. } => arguments,
            _ => &[],
        };
        let span = expr.span;
        let ready = |source| Some(SourceForm::Ready(source));
        match name {
            LISTED => self.list_source(scope, expr, dtype, shape),
            "load" => self.load(arguments, span).and_then(ready),
            "zeros" | "ones" => {
                self.source_arguments(scope, name, arguments, &[], span)?;
                let value = i64::from(name == "ones");
                ready(Source::Full(match dtype {
                    DType::Bool => Scalar::Bool(value != 0),
                    _ if dtype.is_integer() => Scalar::Int(value),
                    _ => Scalar::Float(value as f64),
                }))
            }
            "full" => match arguments {
                [Argument { value, .. }] => self.number_source(scope, value, dtype),
                _ => {
                    self.report.push(
                        Diagnostic::error("E0207", "`full` takes one number")
                            .at(span, "as in `full(-1)`"),
                    );
                    None
                }
            },
            "iota" => {
                self.source_arguments(scope, name, arguments, &[], span)?;
                if dtype == DType::Bool {
                    let needs = "makes numbers, not truth values";
                    return self.source_misplaced((name, arguments, span), needs, (dtype, shape));
                }
                ready(Source::Iota)
            }
            _ => self.random_source(scope, (name, arguments, span), dtype, shape),
        }
    }

    /// The source that draws random numbers; `written`: its name, arguments and place.
    fn random_source(
        &mut self,
        scope: &Scope<'a>,
        written: (&str, &'a [Argument], Span),
        dtype: DType,
        shape: &[Size],
    ) -> Option<SourceForm> {
        let (name, arguments, span) = written;
        let ready = |source| Some(SourceForm::Ready(source));
        let wrong =
            |checker: &mut Self, needs| checker.source_misplaced(written, needs, (dtype, shape));
        match name {
            "bernoulli" => {
                let p = self.source_arguments(scope, name, arguments, &["p"], span)?[0];
                if !(0.0..=1.0).contains(&p) {
                    self.report.push(
                        Diagnostic::error("E0207", format!("{p} is not a probability"))
                            .at(span, "it must be from 0 to 1"),
                    );
                    return None;
                }
                ready(Source::Bernoulli { p })
            }
            "permutation" => {
                self.source_arguments(scope, name, arguments, &[], span)?;
                if !dtype.is_integer() || shape.len() != 1 {
                    return wrong(self, "is for integers with one dimension");
                }
                ready(Source::Permutation)
            }
            "uniform" if dtype != DType::Bool => {
                let x = self.source_arguments(scope, name, arguments, &["lo", "hi"], span)?;
                if dtype.is_integer() {
                    self.whole_ends(dtype, (x[0], x[1]), span)?;
                }
                ready(Source::Uniform { lo: x[0], hi: x[1] })
            }
            _ if !dtype.is_float() => wrong(self, "makes floating-point numbers"),
            "normal" => {
                let x = self.source_arguments(scope, name, arguments, &["mean", "std"], span)?;
                ready(Source::Normal {
                    mean: x[0],
                    std: x[1],
                })
            }
            "gumbel" => {
                self.source_arguments(scope, name, arguments, &[], span)?;
                ready(Source::Gumbel)
            }
            _ => {
                let fan = if arguments.is_empty() {
                    None
                } else {
                    Some(self.source_arguments(scope, name, arguments, &["fan"], span)?[0])
                };
                if fan.is_some_and(|fan| fan.is_nan() || fan <= 0.0) {
                    self.report.push(
                        Diagnostic::error("E0207", "a fan must be above 0")
                            .at(span, "it divides the variance"),
                    );
                    return None;
                }
                Some(match name {
                    "he_normal" => SourceForm::HeNormal { fan },
                    _ => SourceForm::GlorotUniform { fan },
                })
            }
        }
    }

    /// Reports a source that cannot make a tensor of this type and shape.
    fn source_misplaced(
        &mut self,
        (name, _, span): (&str, &'a [Argument], Span),
        needs: &str,
        (dtype, shape): (DType, &[Size]),
    ) -> Option<SourceForm> {
        let dimensions = crate::sema::report::dimensions(shape.len());
        self.report.push(
            Diagnostic::error("E0207", format!("`{name}` {needs}"))
                .at(span, format!("this tensor is {dtype} with {dimensions}")),
        );
        None
    }

    /// Checks the ends of a uniform source of integers: from `lo` to one less than `hi`.
    fn whole_ends(&mut self, dtype: DType, (lo, hi): (f64, f64), span: Span) -> Option<()> {
        let (least, most) = dtype.whole_range().unwrap_or((i64::MIN, i64::MAX));
        // Beyond it f64, in which they are drawn, does not hold every whole number.
        let reach = (1i64 << 53) as f64;
        let low = (least as f64).max(-reach);
        let high = (most as f64 + 1.0).min(reach);
        let what = if lo.fract() != 0.0 || hi.fract() != 0.0 {
            "whole numbers lie between whole ends"
        } else if lo >= hi {
            "no whole number lies between these ends"
        } else if lo < low || hi > high || hi - lo > reach {
            "not every number between these ends can be drawn"
        } else {
            return Some(());
        };
        self.report.push(
            Diagnostic::error("E0207", format!("`uniform({lo}, {hi})` of {dtype}: {what}")).at(
                span,
                "gives numbers from the first to one less than the second",
            ),
        );
        None
    }

    fn number_source(
        &mut self,
        scope: &Scope<'a>,
        expr: &'a Expr,
        dtype: DType,
    ) -> Option<SourceForm> {
        let value = self.constant(scope, expr)?;
        let value = match self.arena.ty(value) {
            Ty::Number { .. } => self.coerce(value, dtype, expr.span)?,
            Ty::Typed(have) if have == dtype => value,
            Ty::Typed(_) => return self.not_a_source(expr),
        };
        let scalar = match dtype {
            DType::Bool => self.arena.as_truth(value).map(Scalar::Bool),
            _ if dtype.is_integer() => self.arena.as_number(value).map(|n| Scalar::Int(n as i64)),
            _ => self.arena.as_number(value).map(Scalar::Float),
        };
        match scalar {
            Some(scalar) => Some(SourceForm::Ready(Source::Full(scalar))),
            // A dim without a number yet.
            None if !self.depends_on_data(value) && !self.task.bindings.require_sizes => {
                self.built.open_source = true;
                Some(SourceForm::Ready(Source::Full(Scalar::Int(0))))
            }
            None => self.not_a_source(expr),
        }
    }

    fn not_a_source(&mut self, expr: &'a Expr) -> Option<SourceForm> {
        self.report.push(
            Diagnostic::error("E0207", "this is not a source")
                .at(expr.span, "neither a number nor one of the sources")
                .help(format!("the sources are a number, {}", SOURCES.join(", "))),
        );
        None
    }

    fn load(&mut self, arguments: &'a [Argument], span: Span) -> Option<Source> {
        let strings: Option<Vec<&String>> = arguments
            .iter()
            .map(|argument| match &*argument.value.kind {
                ExprKind::String(text) => Some(text),
                _ => None,
            })
            .collect();
        match strings.as_deref() {
            Some([path]) => Some(Source::Load(FileRef {
                path: (*path).clone(),
                key: None,
            })),
            Some([path, key]) => Some(Source::Load(FileRef {
                path: (*path).clone(),
                key: Some((*key).clone()),
            })),
            _ => {
                self.report.push(
                    Diagnostic::error("E0207", "`load` takes a file and, for archives, a key").at(
                        span,
                        "as in `load(\"x.npy\")` or `load(\"x.npz\", \"key\")`",
                    ),
                );
                None
            }
        }
    }

    /// The numbers that a source takes, by position or name.
    fn source_arguments(
        &mut self,
        scope: &Scope<'a>,
        name: &str,
        arguments: &'a [Argument],
        names: &[&str],
        span: Span,
    ) -> Option<Vec<f64>> {
        let mut values = vec![None; names.len()];
        for (at, argument) in arguments.iter().enumerate() {
            let slot = match &argument.name {
                Some(given) => names.iter().position(|n| *n == given.text),
                None => Some(at),
            };
            let value = self.constant(scope, &argument.value)?;
            let Some(value) = self.arena.as_number(value) else {
                self.report.push(
                    Diagnostic::error("E0207", format!("the numbers of `{name}` must be known"))
                        .at(argument.value.span, "this is not a known number")
                        .help("give dims that it is made of a number with `--dim`"),
                );
                return None;
            };
            match slot.and_then(|slot| values.get_mut(slot)) {
                Some(place @ None) => *place = Some(value),
                _ => {
                    self.source_usage(name, names, span);
                    return None;
                }
            }
        }
        let values: Option<Vec<f64>> = values.into_iter().collect();
        if values.is_none() {
            self.source_usage(name, names, span);
        }
        values
    }

    fn source_usage(&mut self, name: &str, names: &[&str], span: Span) {
        let usage = if names.is_empty() {
            format!("`{name}`")
        } else {
            format!("`{name}({})`", names.join(", "))
        };
        self.report.push(
            Diagnostic::error(
                "E0207",
                format!(
                    "`{name}` takes {} number{}",
                    names.len(),
                    plural(names.len())
                ),
            )
            .at(span, format!("write {usage}")),
        );
    }

    /// `u[v < V]: f32[V] = gumbel`.
    pub(crate) fn define_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        dtype: Option<DType>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Binding> {
        let span = target.target.span;
        let (dtype, open) = self.type_of_source(scope, target, dtype)?;
        let shape = match target.target.positions.is_some() {
            true => self.shape_of_source(scope, target, declared)?,
            false => match declared {
                Some(declared) => self.declared_sizes(scope, declared)?,
                None if self.source_name(scope, target.value) == Some(LISTED) => {
                    self.list_sizes(target.value)?
                }
                None => vec![],
            },
        };
        let real = dtype.part().unwrap_or(dtype);
        let mut source = self.source(scope, target.value, real, &shape)?;
        let outer = self.drawn_for(scope, &source, target.value.span)?;
        let shape: Vec<Size> = outer
            .iter()
            .map(|(_, size)| size.clone())
            .chain(shape)
            .collect();
        self.check_elements(&shape, span)?;
        let role = match (target.in_function, target.named) {
            (true, None) => Role::Hidden,
            _ => Role::Named,
        };
        let parts = self.parts_of_source(&mut source, (dtype, &shape), false, span)?;
        let raw = match parts.pairs {
            true => format!("{}.parts", target.name),
            false => parts.name(&target.name),
        };
        let tensor = self.add_tensor(Tensor {
            name: raw,
            dtype: parts.dtype,
            shape: parts.shape,
            role,
            definition: Definition::Source(source),
            span,
        });
        // The state of a module begins once, wherever it is applied.
        let begins = target.infer && target.guess.is_none();
        if let (Some(block), false) = (scope.block, begins) {
            self.built.drawn_in.insert(tensor, block);
        }
        if let Some(whole) = open {
            self.inference.untyped.insert(tensor, whole);
        }
        let tensor = match dtype.is_complex() {
            true => self.complex_over(&target.name, tensor, parts.pairs, span)?,
            false => tensor,
        };
        Some(Binding::Tensor(self.inner_view(tensor, &outer)))
    }

    /// The type of a tensor that a source makes. Where nothing says it, a type that later uses may change: whether it is one
    /// of whole numbers then stands beside it.
    fn type_of_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        dtype: Option<DType>,
    ) -> Option<(DType, Option<bool>)> {
        let is_list = self.source_name(scope, target.value) == Some(LISTED);
        let (dtype, open) = match (dtype, target.guess) {
            (None, Some(guess)) => {
                let (typical, whole) = self.typical_type(scope, target.value);
                self.inference.guessed = true;
                (
                    Some(guess.unwrap_or(typical)),
                    guess.is_none().then_some(whole),
                )
            }
            (None, None) if is_list => match self.listed_type(scope, target.value)? {
                Ty::Typed(dtype) => (Some(dtype), None),
                Ty::Number { whole } => {
                    let dtype = match (whole, target.constant) {
                        (true, _) => DType::I64,
                        (false, true) => DType::F64,
                        (false, false) => DType::F32,
                    };
                    (Some(dtype), target.constant.then_some(whole))
                }
            },
            (dtype, _) => (dtype.or(scope.floating), None),
        };
        if dtype.is_none() {
            let written = self.names.text(target.target.span);
            let help = match target.target.positions {
                Some(_) => format!("write it: `{written}: f32[…] = …`"),
                None => format!(
                    "write it: `{written}: f32 = …` for one number, `{written}: f32[…] = …` for a tensor"
                ),
            };
            self.report.push(
                Diagnostic::error("E0207", "a source needs the type of its tensor")
                    .at(target.target.name.span, "no type is written")
                    .help(help),
            );
        }
        Some((dtype?, open))
    }

    /// The sizes of a tensor that a source makes, from the indices on its left side.
    fn shape_of_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Vec<Size>> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut context = Context::new(scope);
        let vars = self.left_side(&mut context, target, declared);
        self.indices.open.pop();
        let own = match self.source_name(scope, target.value) == Some(LISTED) {
            true => self.list_sizes(target.value)?,
            false => vec![],
        };
        let mut shape = vec![];
        for (at, var) in vars?.into_iter().enumerate() {
            let var = &self.indices.vars[var.0 as usize];
            if let (None, Some(size)) = (&var.stated, own.get(at)) {
                shape.push(size.clone());
                continue;
            }
            if target.infer && var.stated.is_none() {
                let (name, place) = (var.name.clone(), var.span);
                shape.push(self.provisional_size(&target.name, (&name, place), None));
                continue;
            }
            let Some(stated) = &var.stated else {
                let (name, place) = (var.name.clone(), var.span);
                self.report.push(
                    Diagnostic::error("E0207", format!("a source needs the range of `{name}`"))
                        .at(place, format!("nothing says how far `{name}` runs"))
                        .help(format!("give it a bound: `{name} < n`")),
                );
                return None;
            };
            shape.push(stated.size.clone());
        }
        Some(shape)
    }

    /// The indices around a body for every value of which a source in it is drawn anew: all, if it is random. Notes that the
    /// calls around it differ from each other, however equal their arguments are.
    fn drawn_for(
        &mut self,
        scope: &Scope<'a>,
        source: &SourceForm,
        span: Span,
    ) -> Option<Vec<(VarId, Size)>> {
        match source {
            SourceForm::Ready(
                Source::Unbound
                | Source::Load(_)
                | Source::Full(_)
                | Source::Iota
                | Source::Numbers(_),
            ) => return Some(vec![]),
            SourceForm::Ready(Source::Permutation) if !scope.captured.is_empty() => {
                let index = self.indices.vars[scope.captured[0].0 as usize].name.clone();
                self.report.push(
                    Diagnostic::error(
                        "E0207",
                        format!("a permutation cannot be drawn for every `{index}`"),
                    )
                    .at(
                        span,
                        format!("in a function that is called for every `{index}`"),
                    )
                    .help("draw it outside, and pass it"),
                );
                return None;
            }
            _ => {}
        }
        self.calls.drew = true;
        let vars = scope.captured.iter();
        Some(
            vars.filter_map(|var| Some((*var, self.extent(*var)?)))
                .collect(),
        )
    }
}
