//! The factor on a rate, looked at before the run: one that is not finite would make every param NaN, far from the argument that did it.
//!
//! An argument that a schedule divides by is not 0 where it does. A branch that is not taken is not looked at, and what a list decides is
//! left to the run. Must not know params or gradients.
//!
//! ```text
//! schedule: step(every: 0)   =>   E0623: `step` divides by `every`, which is 0
//! ```

use crate::einsum::scalar;
use crate::sema::{
    Checker,
    definitions::tensors::Definition,
    expressions::arena::{ExprId, Form, Ty},
    train::block::Settings,
    train::schedules::Rated,
    train::training::{EPOCH, STEP},
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{Diagnostic, Span};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// At how many steps of a block the factor is computed, beside the first two and the last.
const LOOKS: i64 = 256;

impl<'a> Rated<'a> {
    /// The argument that is this expression.
    fn argument(&self, value: ExprId) -> Option<(&'a str, Span)> {
        let found = self.arguments.iter().find(|(_, own, _)| *own == value);
        found.map(|(name, _, span)| (*name, *span))
    }
}

/// A step of a block.
struct Moment<'r, 'a> {
    step: i64,
    epoch: i64,
    known: FxHashMap<ExprId, Option<Scalar>>,
    rated: &'r [Rated<'a>],
    /// The schedule whose value is computed.
    within: Option<&'r Rated<'a>>,
    /// The first one whose value is not finite, and that divides by one of its arguments that is 0.
    wrong: Option<&'r Rated<'a>>,
    divides: Option<(&'r Rated<'a>, &'a str, Span)>,
}

impl<'a> Checker<'a> {
    /// Reports a factor that is not finite in some step of the block.
    pub(crate) fn check_factor(
        &mut self,
        settings: &Settings<'a>,
        factor: ExprId,
        rated: &[Rated<'a>],
    ) -> Option<()> {
        let (Some(total), Some(per_epoch)) = (settings.total_steps, settings.steps_per_epoch)
        else {
            return Some(());
        };
        let spread = (0..LOOKS).map(|n| i128::from(total) * i128::from(n) / i128::from(LOOKS));
        let steps: BTreeSet<i64> = spread
            .map(|step| step as i64)
            .chain([1, total - 1])
            .filter(|step| (0..total).contains(step))
            .collect();
        for step in steps {
            let mut moment = Moment {
                step,
                epoch: step / per_epoch.max(1),
                known: FxHashMap::default(),
                rated,
                within: None,
                wrong: None,
                divides: None,
            };
            let value = self.at_moment(factor, &mut moment);
            if let Some((of, argument, span)) = moment.divides {
                let what = format!("`{}` divides by `{argument}`, which is 0", of.rule.name);
                self.report.push(
                    Diagnostic::error("E0623", what)
                        .at(span, "a number other than 0 is needed here")
                        .at(of.rule.callable.name.span, "the schedule"),
                );
                return None;
            }
            let Some(Scalar::Float(value)) = value else {
                // Made of something that is known in the run, in every step.
                return Some(());
            };
            if let (false, Some(of)) = (value.is_finite(), moment.wrong) {
                let name = of.rule.name;
                let what = format!("the factor of `{name}` is {value} in step {step}");
                self.report.push(
                    Diagnostic::error("E0623", what)
                        .at(of.rule.span, "with these arguments")
                        .help("steps are counted from 0; a rate that is not finite leaves no param finite"),
                );
                return None;
            }
        }
        Some(())
    }

    /// The value of an expression of the numbers of a step, truth values apart in f64; `None`: it is made of something else.
    fn at_moment<'r>(&self, id: ExprId, moment: &mut Moment<'r, 'a>) -> Option<Scalar> {
        if let Some(known) = moment.known.get(&id) {
            return *known;
        }
        let around = moment.within;
        let of = moment.rated.iter().find(|rated| rated.value == id);
        moment.within = of.or(around);
        let value = self.computed_at(id, moment);
        moment.within = around;
        if let (Some(Scalar::Float(number)), Some(of)) = (value, of)
            && !number.is_finite()
        {
            moment.wrong.get_or_insert(of);
        }
        moment.known.insert(id, value);
        value
    }

    fn computed_at<'r>(&self, id: ExprId, moment: &mut Moment<'r, 'a>) -> Option<Scalar> {
        let float = |value: Scalar| match value {
            Scalar::Bool(_) => value,
            other => Scalar::Float(other.as_f64()),
        };
        match &*self.arena.form(id) {
            Form::Constant(value) => Some(float(*value)),
            Form::Whole(size) => size.known().map(|size| Scalar::Float(size as f64)),
            Form::Read { tensor, .. } => {
                let counts = |name| self.training.step.counters.get(name) == Some(tensor);
                if counts(STEP) {
                    return Some(Scalar::Float(moment.step as f64));
                }
                if counts(EPOCH) {
                    return Some(Scalar::Float(moment.epoch as f64));
                }
                match &self.built.tensors[tensor.0 as usize].definition {
                    Definition::Statement { vars, root } if vars.is_empty() => {
                        self.at_moment(*root, moment)
                    }
                    _ => None,
                }
            }
            Form::Apply(Function::Select, arguments) => {
                let condition = scalar::truth(self.at_moment(arguments[0], moment)?);
                self.at_moment(arguments[if condition { 1 } else { 2 }], moment)
            }
            Form::Apply(function, arguments) => {
                let values = arguments.iter().map(|a| self.at_moment(*a, moment));
                let values: Vec<Scalar> = values.collect::<Option<_>>()?;
                if let (Function::Div, [_, Scalar::Float(0.0)]) = (function, &*values)
                    && let Some(of) = moment.within
                    && let Some((name, span)) = of.argument(arguments[1])
                {
                    moment.divides.get_or_insert((of, name, span));
                }
                if !function.is_of_bits() {
                    return scalar::apply(*function, &values, DType::F64).ok();
                }
                let whole = |value: &Scalar| Scalar::Int(value.as_f64() as i64);
                let values: Vec<Scalar> = values.iter().map(whole).collect();
                let dtype = self.settled_type(arguments[0]).compute();
                scalar::apply(*function, &values, dtype).ok().map(float)
            }
            Form::Convert(argument) => match self.arena.ty(id) {
                Ty::Typed(dtype) => {
                    let value = self.at_moment(*argument, moment)?;
                    Some(float(scalar::convert(value, dtype)))
                }
                Ty::Number { .. } => None,
            },
            Form::Computed(argument) => match self.arena.ty(id) {
                Ty::Typed(dtype) => {
                    let value = self.at_moment(*argument, moment)?;
                    Some(float(scalar::convert(value, dtype.compute())))
                }
                Ty::Number { .. } => None,
            },
            Form::Index(_) | Form::SizeOf(_) | Form::Complex(..) | Form::Reduce { .. } => None,
        }
    }
}
