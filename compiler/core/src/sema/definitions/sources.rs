//! Sources: files, fills and random numbers that stand for a whole tensor, at the top level or in a function.
//!
//! Must not know file formats or generators.
//!
//! ```text
//! normal(0, 0.02)   =>   Source::Normal { mean: 0, std: 0.02 }
//! ```

use crate::sema::{
    Checker,
    definitions::tensors::SourceForm,
    expressions::arena::{ExprId, Ty},
    expressions::builtins::{LISTED, SOURCES},
    expressions::scope::{Context, Scope},
    report::plural,
    sizes::size::Size,
};
use ein_plan::{DType, FileRef, Scalar, Source};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind};

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
                } else if !(x[1] - x[0]).is_finite() {
                    let message =
                        "the ends of `uniform`, and their difference, must be finite numbers";
                    let here = format!("from {:e} to {:e}", x[0], x[1]);
                    (self.report).push(Diagnostic::error("E0207", message).at(span, here));
                    return None;
                } else if x[1] < x[0] {
                    let message = format!(
                        "`uniform({}, {})` has its ends the wrong way round",
                        x[0], x[1]
                    );
                    let lower = "the lower end stands first";
                    self.report
                        .push(Diagnostic::error("E0207", message).at(span, lower));
                    return None;
                }
                ready(Source::Uniform { lo: x[0], hi: x[1] })
            }
            _ if !dtype.is_float() => wrong(self, "makes floating-point numbers"),
            "normal" => {
                let x = self.source_arguments(scope, name, arguments, &["mean", "std"], span)?;
                if x[0].is_nan() {
                    let diagnostic = Diagnostic::error("E0207", "NaN is not a mean");
                    (self.report).push(diagnostic.at(span, "it must be a number"));
                    return None;
                }
                if x[1].is_nan() || x[1] < 0.0 {
                    let message = format!("{} is not a standard deviation", x[1]);
                    let diagnostic = Diagnostic::error("E0207", message);
                    self.report
                        .push(diagnostic.at(span, "it must be 0 or more"));
                    return None;
                }
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
        let what = if !(hi - lo).is_finite() || lo.fract() != 0.0 || hi.fract() != 0.0 {
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
        let scalar = self.arena.as_scalar(value).map(|scalar| match scalar {
            Scalar::Int(number) if dtype.is_float() => Scalar::Float(number as f64),
            scalar => scalar,
        });
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
}
