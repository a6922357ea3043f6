//! The rule of an optimizer applied to one param, and what modules carry on: whatever a step leaves for the next one.
//!
//! Must not know the loss or its gradients.
//!
//! ```text
//! momentum(lr: 0.1) for W, grad.W, momentum.m.W   =>   W_next, momentum.m.W_next
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::callee::{Body, Callable},
    definitions::tensors::{Output, SourceForm},
    expressions::arena::{ExprId, TensorRef, VarId},
    expressions::scope::{Binding, Scope},
    modules::stack::Stack,
    sizes::size::Size,
    train::rules::state_name,
    train::schedules::{Rule, bind_numbers},
    train::training::CarriedKind,
};
use ein_plan::source::fed;
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Formal, Position};

/// The name of the tensor that takes the place of a carried one. Messages and plans show it; pairs are found by [`Output::replaces`].
pub(crate) fn successor_name(carried: &str) -> String {
    format!("{carried}_next")
}

/// The prefix of the names that a rule makes for a param: `lamb.v.u` is the state `v` of the param `u`, and not the rule's own `u` for a
/// param that is called `v`.
fn prefix_of(rule: Rule<'_>, name: &str, states: usize) -> String {
    let first = name.split('.').next();
    let mut own_states = rule.callable.formals[2..2 + states].iter();
    match own_states.any(|state| first == Some(state.name.text.as_str())) {
        true => format!("{name}.{}", rule.name),
        false => format!("{}.{name}", rule.name),
    }
}

impl<'a> Checker<'a> {
    /// The rule of an optimizer for one param.
    pub(crate) fn update(
        &mut self,
        rule: Rule<'a>,
        (param, gradient): (TensorRef, TensorRef),
        group: &[&'a Argument],
        factor: ExprId,
        numbers: &[(&'static str, ExprId)],
    ) -> Option<()> {
        let callable = rule.callable;
        let states = callable.results.len() - 1;
        let last = callable.formals.len() - numbers.len();
        let own: &'a [Formal] = &callable.formals[2 + states..last];
        let slots = self.rule_arguments(rule, own, group)?;
        let record = self.built.tensors[param.0 as usize].clone();
        let dtype = match record.dtype {
            DType::F64 => DType::F64,
            _ => DType::F32,
        };
        let (name, span) = (record.name.clone(), rule.span);
        let weight = match record.dtype == dtype {
            true => param,
            false => self.pointwise(format!("{name}.w"), &record, span, |c, at| {
                let value = c.element(param, at.to_vec(), record.dtype);
                Some(c.converted(value, dtype))
            })?,
        };
        // Params that are stored together have the rule applied to each.
        let stack = self.modules.stacks.get(&param).cloned();
        let leading = stack.as_ref().map_or(0, |stack| stack.leading);
        let outer = self.numbering(&record.shape[..leading], span);
        let each: Vec<ExprId> = outer.iter().map(|var| self.index(*var)).collect();
        let mut scope = Scope {
            depth: 1,
            captured: outer.clone(),
            ..Scope::file(self.names.entity(rule.entity).file)
        };
        bind_numbers(&mut scope, callable, numbers);
        let weight = Binding::Tensor(self.slice(weight, each.clone()));
        let gradient = Binding::Tensor(self.slice(gradient, each.clone()));
        scope.locals.insert(&callable.formals[0].name.text, weight);
        scope
            .locals
            .insert(&callable.formals[1].name.text, gradient);
        let places = vec![span; callable.formals.len()];
        self.unify_letters(&mut scope, callable, &places)?;
        for (formal, slot) in own.iter().zip(slots) {
            self.bind_setting(
                &mut scope,
                rule,
                formal,
                slot.map(|argument| &argument.value),
            )?;
        }
        self.scheduled(&mut scope, rule, factor, group.is_empty())?;
        // Where the param is stored in another type, the rule's result is not yet what is carried.
        let result = match record.dtype == dtype {
            true => successor_name(&name),
            false => format!("{name}.w.next"),
        };
        let mut hints = vec![(result, span)];
        let mut carried = vec![param];
        for formal in &callable.formals[2..2 + states] {
            let of = (name.as_str(), stack.as_ref());
            let counts = &record.shape[..leading];
            let state = self.optimizer_state(&scope, rule, formal, of, (dtype, counts))?;
            let view = Binding::Tensor(self.slice(state, each.clone()));
            scope.locals.insert(&formal.name.text, view);
            let like = self.built.tensors[state.0 as usize].clone();
            hints.push((successor_name(&like.name), span));
            carried.push(state);
        }
        let later = self.unify_letters(&mut scope, callable, &places)?;
        self.check_sizes(&scope, callable, later)?;
        let Body::Block(body) = callable.body else {
            return None;
        };
        let prefix = prefix_of(rule, &name, states);
        self.training.step.updating = true;
        let mark = self.report.mark();
        let results = self.body(rule.entity, &mut scope, callable, body, &prefix, &hints);
        self.report.called_from(mark, span, rule.name);
        self.training.step.updating = false;
        for (binding, old) in results?.iter().zip(carried) {
            let next = self.kept(*binding, old, &outer, span)?;
            self.carry_on(old, next, span);
        }
        Some(())
    }

    /// The arguments of a rule's own settings, by setting: those of a group win over the rule's.
    fn rule_arguments(
        &mut self,
        rule: Rule<'a>,
        own: &'a [Formal],
        group: &[&'a Argument],
    ) -> Option<Vec<Option<&'a Argument>>> {
        let shown = Callable {
            formals: own,
            ..rule.callable
        };
        let mut slots = self.match_arguments(shown, rule.arguments, rule.span)?;
        for argument in group {
            let Some(name) = &argument.name else {
                self.report.push(
                    Diagnostic::error("E0624", "a group's settings have names")
                        .at(argument.value.span, "as in `weight_decay: 0`"),
                );
                return None;
            };
            let Some(at) = own.iter().position(|f| f.name.text == name.text) else {
                let names: Vec<&str> = own.iter().map(|f| f.name.text.as_str()).collect();
                let what = format!("`{}` has no argument named `{}`", rule.name, name.text);
                self.report.push(
                    Diagnostic::error("E0624", what)
                        .at(name.span, "named here")
                        .help(format!("it has {}", names.join(", "))),
                );
                return None;
            };
            slots[at] = Some(argument);
        }
        Some(slots)
    }

    /// Indices that count the params that are stored together.
    fn numbering(&mut self, counts: &[Size], span: Span) -> Vec<VarId> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut outer: Vec<VarId> = vec![];
        for (at, size) in counts.iter().enumerate() {
            outer.push(self.fresh_var(format!("p{}", at + 1), size.clone(), span));
        }
        self.close();
        outer
    }

    /// Multiplies the rate of a rule by the schedule's factor, and tells the rate of the params that are in no group.
    fn scheduled(
        &mut self,
        scope: &mut Scope<'a>,
        rule: Rule<'a>,
        factor: ExprId,
        in_no_group: bool,
    ) -> Option<()> {
        let span = rule.span;
        if let Some(Binding::Scalar(rate)) = scope.locals.get("lr").copied() {
            let rate = self.apply(Function::Mul, vec![rate, factor], span)?;
            if in_no_group && self.training.step.rate.is_none() {
                let exact = self.coerce(rate, DType::F64, span)?;
                let name = fed::RATE.to_owned();
                let told = self.add_statement(name, exact, vec![], vec![], span, Role::Hidden);
                self.training.step.rate = Some(told);
            }
            scope.locals.insert("lr", Binding::Scalar(rate));
        } else if self.arena.as_size(factor).is_none() {
            self.report.push(
                Diagnostic::error("E0623", format!("`{}` has no rate `lr`", rule.name))
                    .at(span, "a schedule has nothing to act on"),
            );
            return None;
        }
        Some(())
    }

    /// A state of an optimizer for one param.
    fn optimizer_state(
        &mut self,
        scope: &Scope<'a>,
        rule: Rule<'a>,
        formal: &'a Formal,
        (param, stack): (&str, Option<&Stack>),
        (dtype, counts): (DType, &[Size]),
    ) -> Option<TensorRef> {
        let mut shape = vec![];
        for position in formal.shape.iter().flatten() {
            match position {
                Position::Rest(_) => shape.extend(scope.rest.clone().unwrap_or_default()),
                Position::Expr(expr) => {
                    let letter = match &*expr.kind {
                        einc_syntax::ast::ExprKind::Name(name) => scope.letters.get(name.as_str()),
                        _ => None,
                    };
                    match letter {
                        Some((size, _)) => shape.push(size.clone()),
                        None => shape.push(self.size(scope, expr, "a size")?),
                    }
                }
            }
        }
        let begin = formal.default.as_ref()?;
        let begin = match self.source(scope, begin, dtype, &shape)? {
            SourceForm::Ready(source) => source,
            _ => {
                self.report.push(
                    Diagnostic::error("E0207", "a state does not begin like a layer's weights")
                        .at(begin.span, "write a number or `normal(…)`"),
                );
                return None;
            }
        };
        let named = |param: &str| format!("{}.{}.{param}", rule.name, state_name(&formal.name));
        let name = named(param);
        let begin = match stack {
            Some(stack) => stack.source(&begin, named),
            None => begin,
        };
        shape.splice(0..0, counts.iter().cloned());
        self.training
            .step
            .carried
            .push((name.clone(), CarriedKind::State, begin));
        let tensor = self.fed(name, dtype, shape, Role::Param, formal.name.span);
        self.training.state_tensors.push(tensor);
        Some(tensor)
    }

    /// Gives the value that takes the place of a carried tensor the type and shape of that.
    fn kept(
        &mut self,
        binding: Binding,
        old: TensorRef,
        outer: &[VarId],
        span: Span,
    ) -> Option<TensorRef> {
        let like = self.built.tensors[old.0 as usize].clone();
        let (name, dtype) = (successor_name(&like.name), like.dtype);
        let each: Vec<ExprId> = outer.iter().map(|var| self.index(*var)).collect();
        let (value, from) = match binding {
            Binding::Tensor(view) => {
                let made = &self.built.tensors[view.tensor.0 as usize];
                let alike = made.name == name && made.dtype == dtype;
                if alike && *self.leading(view) == *each {
                    return Some(view.tensor);
                }
                let from = made.dtype;
                (Ok(view), from)
            }
            Binding::Scalar(id) => (Err(self.coerce(id, dtype, span)?), dtype),
            _ => return None,
        };
        if from != dtype && !from.is_float() {
            self.report.push(
                Diagnostic::error(
                    "E0512",
                    format!("`{name}` is {from}, and is kept as {dtype}"),
                )
                .at(span, "by this optimizer"),
            );
            return None;
        }
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut vars = outer.to_vec();
        for (at, size) in like.shape.iter().enumerate().skip(outer.len()) {
            vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let root = match value {
            Err(number) => number,
            Ok(view) => {
                let mut positions = self.leading(view).to_vec();
                positions.extend(vars[outer.len()..].iter().map(|var| self.index(*var)));
                let read = self.element(view.tensor, positions, from);
                self.converted(read, dtype)
            }
        };
        let shape = like.shape.clone();
        Some(self.add_statement(name, root, vars, shape, span, Role::Hidden))
    }

    /// Gives out a tensor that takes the place of a carried one after the step.
    pub(crate) fn carry_on(&mut self, old: TensorRef, next: TensorRef, span: Span) {
        self.built.outputs.push(Output {
            replaces: Some(old),
            ..Output::of(next, span)
        });
    }

    /// The `next` of the states of modules that the loss reaches.
    pub(crate) fn module_states(&mut self, reached: &[bool], span: Span) -> Option<()> {
        let nexts = std::mem::take(&mut self.training.next_states);
        let mut taken: Vec<(TensorRef, Span)> = vec![];
        for next in nexts {
            let Some((made, call)) = self.training.applications.get(&next.application).cloned()
            else {
                continue;
            };
            if !made
                .into_iter()
                .any(|at| reached.get(at).copied().unwrap_or(false))
            {
                continue;
            }
            if let Some((_, first)) = taken.iter().find(|(state, _)| *state == next.state) {
                let name = self.built.tensors[next.state.0 as usize].name.clone();
                self.report.push(
                    Diagnostic::error("E0512", format!("`{name}` has two values after a step"))
                        .at(call, "the loss reaches this application of its module")
                        .at(*first, "and this one")
                        .at(next.span, "each says what it is next")
                        .at(span, "in these steps")
                        .help("apply the module once in a step, or declare two instances"),
                );
                return None;
            }
            taken.push((next.state, call));
            let value = Binding::Tensor(next.value);
            let tensor = self.kept(value, next.state, &[], next.span)?;
            self.carry_on(next.state, tensor, next.span);
        }
        Some(())
    }
}
