//! A step of training, put together: the loss of a batch, its gradients, their norm, and every param's rule.
//!
//! Must not know how often or on what rows it is run.
//!
//! ```text
//! loss, params W b, sgd(lr: 0.1)   =>   outputs loss, W_next = W - 0.1 * grad.W, b_next = …
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::callee::Body,
    definitions::tensors::{Definition, Output, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    sizes::size::Size,
    train::block::Settings,
    train::patterns::matches,
    train::rules::{NORM, optimizer_name},
    train::schedules::Rule,
    train::training::{CarriedKind, SHARE, Task, UPDATE},
    train::update::successor_name,
};
use ein_plan::{DType, Function, Reduction, Scalar, Source};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::Argument;

impl<'a> Checker<'a> {
    /// Makes the outputs of the step that the mode asks for.
    pub(crate) fn assemble_step(&mut self) -> Option<()> {
        let (number, task) = self.task.mode.step?;
        let mut trains = self.trains().into_iter();
        let (_, train, span) = trains.find(|(at, ..)| *at == number)?;
        let settings = self.read_train(number, train, span)?;
        self.training.step.span = settings.head;
        let head = settings.head;
        let rule = self.rule(settings.optimizer, "optimizer", "std.optim", optimizer_name)?;
        self.training.step.optimizer = rule.name.to_owned();
        let loss = self.scalar_named(settings.loss.0, settings.loss.1)?;
        let dtype = self.built.tensors[loss.0 as usize].dtype;
        if !dtype.is_float() {
            self.report.push(
                Diagnostic::error("E0622", format!("the loss is {dtype}")).at(
                    settings.loss.1,
                    "only floating-point values are learned from",
                ),
            );
            return None;
        }
        let reached = self.reached(vec![loss]);
        let params: Vec<TensorRef> = (0..self.built.tensors.len() as u32)
            .map(TensorRef)
            .filter(|at| reached[at.0 as usize] && self.is_trained(*at))
            .collect();
        if params.is_empty() {
            self.report.push(
                Diagnostic::error(
                    "E0622",
                    format!("`{}` depends on no param", settings.loss.0),
                )
                .at(settings.loss.1, "nothing to train")
                .help("declare what is learned with `param`"),
            );
            return None;
        }
        self.check_data(&settings, &reached)?;
        let groups = self.groups(&settings, &params)?;
        if task != Task::Apply {
            self.built.outputs.push(Output::of(loss, settings.loss.1));
        }
        // Backwards: what only the gradients of late layers read is free behind them, and so is a gradient behind its update.
        if task == Task::Part {
            for param in params.iter().rev() {
                let gradient = self.gradient_of(loss, *param, head);
                self.accumulate(*param, gradient, head)?;
            }
        } else {
            let factor = self.factor(&settings)?;
            let update = self.counter(UPDATE, head);
            let total = settings.total_steps;
            let total = total.map_or_else(|| Size::dim("total_steps"), Size::number);
            let total = self.arena.whole(total);
            let mut numbers = self.numbers(&settings, update, total);
            let gradient = |c: &mut Self, param: TensorRef| match task {
                Task::Apply => c.accumulated(param, head),
                _ => c.gradient_of(loss, param, head),
            };
            let mut gradients = vec![];
            let norm = if settings.clip.is_some() || self.reads_norm(rule) {
                let all = params.iter().rev();
                gradients.extend(all.map(|param| gradient(self, *param)));
                gradients.reverse();
                if let Some(clip) = settings.clip {
                    gradients = self.clipped(&gradients, clip, head)?;
                }
                let norm = self.global_norm(&gradients, head)?;
                self.untyped(norm, false)
            } else {
                // Nobody reads it.
                self.arena.whole(Size::number(0))
            };
            numbers.push((NORM, norm));
            for (at, param) in params.iter().enumerate().rev() {
                let gradient = match gradients.get(at) {
                    Some(gradient) => *gradient,
                    None => gradient(self, *param),
                };
                self.update(rule, (*param, gradient), &groups[at], factor, &numbers)?;
            }
            if let Some(rate) = self.training.step.rate {
                self.built.outputs.push(Output::of(rate, head));
            }
        }
        if task != Task::Apply {
            self.module_states(&reached, head)?;
        }
        Some(())
    }

    /// Returns whether a rule names the norm of all gradients together.
    fn reads_norm(&self, rule: Rule<'a>) -> bool {
        let items = match rule.callable.body {
            Body::Block(items) => items,
            Body::Expression(_) => &[],
        };
        let defaults = rule
            .callable
            .formals
            .iter()
            .filter_map(|f| f.default.as_ref());
        let mut spans = items.iter().map(|i| i.span).chain(defaults.map(|d| d.span));
        spans.any(|span| self.names.text(span).contains(NORM))
    }

    fn is_trained(&self, at: TensorRef) -> bool {
        let tensor = &self.built.tensors[at.0 as usize];
        let source = matches!(tensor.definition, Definition::Source(_));
        let state = self.training.state_tensors.contains(&at);
        tensor.role == Role::Param && source && tensor.dtype.is_float() && !state
    }

    /// By param, what groups say of it; later ones win.
    fn groups(
        &mut self,
        settings: &Settings<'a>,
        params: &[TensorRef],
    ) -> Option<Vec<Vec<&'a Argument>>> {
        // No pattern tells the params of one array apart.
        let (mut names, mut shown) = (vec![], vec![]);
        for param in params {
            let stack = self.modules.stacks.get(param);
            let own = || self.built.tensors[param.0 as usize].name.clone();
            names.push(
                stack
                    .and_then(|s| s.parts().into_iter().next())
                    .unwrap_or_else(own),
            );
            shown.push(stack.map_or_else(own, |stack| stack.path().to_owned()));
        }
        let mut found: Vec<Vec<&'a Argument>> = vec![vec![]; params.len()];
        for group in &settings.groups {
            let texts = group.patterns.iter().map(|p| p.text.trim_matches('"'));
            let texts: Vec<&str> = texts.collect();
            let mut any = false;
            for (name, settings) in names.iter().zip(&mut found) {
                if texts.iter().any(|text| matches(text, name)) {
                    any = true;
                    settings.extend(group.settings);
                }
            }
            if !any {
                let what = format!("no param is called `{}`", texts.join("` or `"));
                self.report.push(
                    Diagnostic::error("E0624", what)
                        .at(group.span, "a group of nothing")
                        .help(format!("the loss depends on {}", shown.join(", "))),
                );
                return None;
            }
        }
        Some(found)
    }

    fn gradient_of(&mut self, loss: TensorRef, param: TensorRef, span: Span) -> TensorRef {
        let like = self.built.tensors[param.0 as usize].clone();
        self.add_tensor(Tensor {
            name: format!("grad.{}", like.name),
            dtype: like.dtype.compute(),
            shape: like.shape,
            role: Role::Hidden,
            definition: Definition::Gradient { loss, wrt: param },
            span,
        })
    }

    /// The sum of the gradients of a batch's parts.
    fn accumulated(&mut self, param: TensorRef, span: Span) -> TensorRef {
        let like = self.built.tensors[param.0 as usize].clone();
        let name = format!("{}.gradient", like.name);
        let begin = Source::Full(Scalar::Float(0.0));
        self.training
            .step
            .carried
            .push((name.clone(), CarriedKind::Gradient, begin));
        let (dtype, shape) = (like.dtype.compute(), like.shape);
        let tensor = self.fed(name, dtype, shape, Role::Param, span);
        self.training.state_tensors.push(tensor);
        tensor
    }

    fn accumulate(&mut self, param: TensorRef, gradient: TensorRef, span: Span) -> Option<()> {
        let sum = self.accumulated(param, span);
        let like = self.built.tensors[sum.0 as usize].clone();
        let share = match self.training.step.counters.get(SHARE) {
            Some(tensor) => *tensor,
            None => {
                let tensor = self.fed(SHARE.into(), DType::F64, vec![], Role::Input, span);
                self.training.step.counters.insert(SHARE, tensor);
                tensor
            }
        };
        let name = successor_name(&like.name);
        let next = self.pointwise(name, &like, span, |c, at| {
            let share = c.element(share, vec![], DType::F64);
            let share = c.converted(share, like.dtype);
            let (old, new) = (
                c.element(sum, at.to_vec(), like.dtype),
                c.element(gradient, at.to_vec(), like.dtype),
            );
            let part = c.apply(Function::Mul, vec![new, share], span)?;
            c.apply(Function::Add, vec![old, part], span)
        })?;
        self.carry_on(sum, next, span);
        Some(())
    }

    /// A tensor like another, with a value for each of its points.
    pub(crate) fn pointwise(
        &mut self,
        name: String,
        like: &Tensor,
        span: Span,
        value: impl FnOnce(&mut Self, &[ExprId]) -> Option<ExprId>,
    ) -> Option<TensorRef> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut vars = vec![];
        for (at, size) in like.shape.iter().enumerate() {
            vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        let at: Vec<ExprId> = vars.iter().map(|var| self.index(*var)).collect();
        let root = value(self, &at);
        self.close();
        let shape = like.shape.clone();
        Some(self.add_statement(name, root?, vars, shape, span, Role::Hidden))
    }

    pub(crate) fn element(
        &mut self,
        tensor: TensorRef,
        positions: Vec<ExprId>,
        dtype: DType,
    ) -> ExprId {
        let form = Form::Read {
            tensor,
            positions,
            otherwise: None,
        };
        self.arena.add(form, Ty::Typed(dtype))
    }

    pub(crate) fn converted(&mut self, id: ExprId, dtype: DType) -> ExprId {
        match self.arena.ty(id) == Ty::Typed(dtype) {
            true => id,
            false => self.arena.add(Form::Convert(id), Ty::Typed(dtype)),
        }
    }

    /// The norm of all gradients together, in f64.
    fn global_norm(&mut self, gradients: &[TensorRef], span: Span) -> Option<TensorRef> {
        let mut total = None;
        for gradient in gradients {
            let like = self.built.tensors[gradient.0 as usize].clone();
            self.indices
                .open
                .push(crate::sema::sizes::ranges::Open::default());
            let mut vars = vec![];
            for (at, size) in like.shape.iter().enumerate() {
                vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
            }
            let at = vars.iter().map(|var| self.index(*var)).collect();
            let value = self.element(*gradient, at, like.dtype);
            self.close();
            let square = self.apply(Function::Mul, vec![value, value], span)?;
            let mut root = square;
            if !vars.is_empty() {
                let form = Form::Reduce {
                    reduction: Reduction::Sum,
                    vars,
                    guard: None,
                    body: square,
                };
                root = self.arena.add(form, Ty::Typed(like.dtype));
            }
            let sum = self.scalar_statement(root, span);
            let sum = self.element(sum, vec![], like.dtype);
            let sum = self.converted(sum, DType::F64);
            total = Some(match total {
                None => sum,
                Some(total) => self.apply(Function::Add, vec![total, sum], span)?,
            });
        }
        let norm = self.apply(Function::Sqrt, vec![total?], span)?;
        Some(self.scalar_statement(norm, span))
    }

    /// Gradients scaled so that the norm of all of them together is at most `most`.
    fn clipped(
        &mut self,
        gradients: &[TensorRef],
        most: f64,
        span: Span,
    ) -> Option<Vec<TensorRef>> {
        let norm = self.global_norm(gradients, span)?;
        let norm = self.element(norm, vec![], DType::F64);
        let most = self.arena.real(most);
        let most = self.coerce(most, DType::F64, span)?;
        let one = self.arena.real(1.0);
        let one = self.coerce(one, DType::F64, span)?;
        let above = self.apply(Function::Gt, vec![norm, most], span)?;
        let ratio = self.apply(Function::Div, vec![most, norm], span)?;
        let factor = self.apply(Function::Select, vec![above, ratio, one], span)?;
        let factor = self.scalar_statement(factor, span);
        let mut clipped = vec![];
        for gradient in gradients {
            let like = self.built.tensors[gradient.0 as usize].clone();
            let name = format!("{}.clipped", like.name);
            clipped.push(self.pointwise(name, &like, span, |c, at| {
                let factor = c.element(factor, vec![], DType::F64);
                let factor = c.converted(factor, like.dtype);
                let value = c.element(*gradient, at.to_vec(), like.dtype);
                c.apply(Function::Mul, vec![value, factor], span)
            })?);
        }
        Some(clipped)
    }
}
