//! Arguments of optimizers and schedules: numbers, truth values and lists of numbers that are known before the run.
//!
//! The default of an argument says its kind, and a given value must be of that kind. Must not know what the rules do with them.
//!
//! ```text
//! decay(at: [30, 60])   =>   factor: 0.1, at: train.list: i64[2]
//! decay(at: 3)          =>   E0502: `at` of `decay` is a list of numbers
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Ty},
    expressions::scope::{Binding, Context, Scope, View},
    sizes::size::Size,
    train::schedules::Rule,
};
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Binary, Expr, ExprKind, Formal};

/// The kind of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Truth,
    List,
}

impl Kind {
    /// In messages.
    fn words(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::Truth => "true or false",
            Kind::List => "a list of numbers",
        }
    }

    /// Of a default, where its form says it.
    fn of(default: &Expr) -> Option<Kind> {
        match &*default.kind {
            ExprKind::List(_) => Some(Kind::List),
            ExprKind::Bool(_) | ExprKind::Not(_) | ExprKind::Chain { .. } => Some(Kind::Truth),
            ExprKind::Integer(_) | ExprKind::Float(_) | ExprKind::Negate(_) => Some(Kind::Number),
            ExprKind::Name(name) if matches!(name.as_str(), "inf" | "nan" | "pi") => {
                Some(Kind::Number)
            }
            ExprKind::Bracket(inner) => Kind::of(inner),
            ExprKind::Binary { operator, .. } => Some(match operator {
                Binary::Add
                | Binary::Subtract
                | Binary::Multiply
                | Binary::Divide
                | Binary::Remainder
                | Binary::BitAnd
                | Binary::BitOr
                | Binary::BitXor
                | Binary::ShiftLeft
                | Binary::ShiftRight
                | Binary::Power => Kind::Number,
                _ => Kind::Truth,
            }),
            _ => None,
        }
    }
}

impl<'a> Checker<'a> {
    /// Gives an argument of an optimizer or schedule its value: what the text gives, else the default.
    pub(crate) fn bind_setting(
        &mut self,
        scope: &mut Scope<'a>,
        rule: Rule<'a>,
        formal: &'a Formal,
        given: Option<&'a Expr>,
    ) -> Option<()> {
        let binding = match (given, &formal.default) {
            (Some(expr), _) => {
                let outside = Scope::file(FileId(0));
                let binding = self.setting(&outside, expr)?;
                self.check_kind(rule, formal, expr, binding)?;
                if let Binding::Scalar(value) = binding
                    && self.depends_on_data(value)
                {
                    self.report.push(
                        Diagnostic::error("E0208", "this must be known before the run")
                            .at(expr.span, "this depends on data")
                            .help("it is made of numbers, dims and consts"),
                    );
                    return None;
                }
                binding
            }
            (None, Some(default)) => self.setting(scope, default)?,
            (None, None) => return None,
        };
        scope.locals.insert(&formal.name.text, binding);
        Some(())
    }

    fn setting(&mut self, from: &Scope<'a>, expr: &'a Expr) -> Option<Binding> {
        if let ExprKind::List(items) = &*expr.kind {
            return self.listed(from, items, expr.span);
        }
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let value = self.expr(&mut Context::new(from), expr);
        let solved = self.close();
        Some(Binding::Scalar(value.filter(|_| solved)?))
    }

    /// Refuses what is of another kind than the default; a rate is a number, whether or not it has one.
    fn check_kind(
        &mut self,
        rule: Rule<'a>,
        formal: &'a Formal,
        given: &'a Expr,
        binding: Binding,
    ) -> Option<()> {
        let wants = match &formal.default {
            Some(default) => Kind::of(default),
            None => (formal.name.text == "lr").then_some(Kind::Number),
        };
        let is = match binding {
            Binding::Scalar(value) => self.kind_of(value),
            _ => Kind::List,
        };
        let Some(wants) = wants.filter(|wants| *wants != is) else {
            return Some(());
        };
        let what = format!(
            "`{}` of `{}` is {}",
            formal.name.text,
            rule.name,
            wants.words()
        );
        let error = Diagnostic::error("E0502", what)
            .at(given.span, format!("this is {}", is.words()))
            .at(formal.name.span, "the argument");
        self.report.push(match (&formal.default, wants, is) {
            (_, Kind::List, Kind::Number) => {
                let text = self.names.text(given.span);
                error.help(format!("a list of one is `[{text}]`"))
            }
            (Some(default), ..) => {
                let text = self.names.text(default.span);
                error.help(format!("left out, it is `{text}`"))
            }
            _ => error,
        });
        None
    }

    fn kind_of(&self, value: ExprId) -> Kind {
        match self.arena.ty(value) {
            Ty::Typed(DType::Bool) => Kind::Truth,
            _ => Kind::Number,
        }
    }

    /// `[10, 15]` as a tensor with one dimension.
    fn listed(&mut self, scope: &Scope<'a>, items: &'a [Expr], span: Span) -> Option<Binding> {
        let mut values = vec![];
        for item in items {
            let value = self.closed(scope, item)?;
            let Some(number) = self.arena.as_number(value) else {
                self.report.push(
                    Diagnostic::error("E0208", "the numbers of a list must be known")
                        .at(item.span, "this is not a known number"),
                );
                return None;
            };
            values.push(number);
        }
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let dtype = if whole { DType::I64 } else { DType::F64 };
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let length = Size::number(values.len() as i64);
        let var = self.fresh_var("k".into(), length.clone(), span);
        let at = self.index(var);
        let mut root = None;
        for (number, value) in values.iter().enumerate().rev() {
            let value = match whole {
                true => self.arena.whole(Size::number(*value as i64)),
                false => self.arena.real(*value),
            };
            let value = self.coerce(value, dtype, span)?;
            root = Some(match root {
                None => value,
                Some(rest) => {
                    let number = self.arena.whole(Size::number(number as i64));
                    let number = self.coerce(number, DType::I64, span)?;
                    let here = self.apply(Function::Eq, vec![at, number], span)?;
                    self.apply(Function::Select, vec![here, value, rest], span)?
                }
            });
        }
        self.close();
        let nothing = self.arena.whole(Size::number(0));
        let nothing = self.coerce(nothing, dtype, span)?;
        let name = self.instance_name(FileId(0), "train.list");
        let root = root.unwrap_or(nothing);
        let tensor = self.add_statement(name, root, vec![var], vec![length], span, Role::Hidden);
        // Its elements take the type of what they meet, as numbers do.
        self.inference.untyped.insert(tensor, whole);
        Some(Binding::Tensor(View::of(tensor)))
    }
}
