//! `repeat`: states, the statements of a round, when it ends, and what is seen after it.
//!
//! A state is a tensor that a round begins with; it has the type and shape of what it began with, where that says them, else
//! of its `next`. Where a call says by the counter which instance it applies, the rounds are written one after the
//! other. Must not know kernels.
//!
//! ```text
//! repeat t < 9 { state x = 1.0; next x = x / 2 }
//!   =>   block t: t.x.initial, t.x = its state 0, t.x.next;  x = its last value
//! ```

use super::{
    Checker,
    arena::{ExprId, Form, TensorRef, Ty, VarId},
    desugar::{next_name, state_of},
    expr::{Binding, Context, Scope},
    ranges::Open,
    size::Size,
    slices::View,
    statement::{Definition, Target, Tensor},
    walk_repeat::{Visible, applies_by_counter},
};
use crate::einsum::{BlockId, LoopValue, Role};
use ein_plan::DType;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{self, Expr, ExprKind, Item, ItemKind, Name, Statement, Type};
use std::collections::BTreeMap;

/// How many rounds a block makes at most.
#[derive(Clone, Debug)]
pub(super) enum Rounds {
    /// A size.
    Size(Size),
    /// A scalar i64.
    Value(TensorRef),
    Unbounded,
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) parent: Option<BlockId>,
    pub(super) bound: Rounds,
    pub(super) until: Option<TensorRef>,
    /// What each state begins with, and its `next`.
    pub(super) states: Vec<(TensorRef, Option<TensorRef>)>,
    /// What is collected, and which dimension of the whole counts the rounds.
    pub(super) collected: Vec<(TensorRef, usize)>,
    pub(super) span: Span,
}

/// Where a block stands.
pub(super) struct Place<'p, 'a> {
    pub(super) scope: &'p Scope<'a>,
    /// What is before the names of its tensors; empty in the program itself.
    pub(super) prefix: &'p str,
}

/// A state while its block is read.
#[derive(Clone, Copy)]
pub(super) struct StateInfo {
    /// What the round begins with.
    view: View,
    /// Where it is declared.
    span: Span,
    /// Whether its type is to follow from its `next`.
    open: bool,
}

/// A block that is being read.
pub(super) struct Frame<'a> {
    pub(super) repeat: &'a Statement,
    pub(super) name: String,
    /// The same in all rounds, also where they are written out.
    pub(super) type_name: String,
    pub(super) states: BTreeMap<&'a str, StateInfo>,
    pub(super) counter: &'a Name,
    pub(super) body: &'a [Item],
    pub(super) until: Option<&'a Expr>,
    pub(super) span: Span,
}

impl<'a> Frame<'a> {
    pub(super) fn add_state(&mut self, name: &'a str, view: View, span: Span, open: bool) {
        let info = StateInfo { view, span, open };
        self.states.insert(name, info);
    }
}

/// Names with what they stand for after a block.
pub(super) type After<'a> = Vec<(&'a str, Option<Binding>)>;

impl<'a> Checker<'a> {
    /// Checks a block; what its visible names stand for after it.
    pub(super) fn define_repeat(
        &mut self,
        place: &Place<'_, 'a>,
        repeat: &'a Statement,
    ) -> After<'a> {
        let failed = |c: &Self| {
            let names = c.visible_names(repeat).into_iter();
            names.map(|v| (v.name().text.as_str(), None)).collect()
        };
        self.repeat(place, repeat).unwrap_or_else(|| failed(self))
    }

    fn repeat(&mut self, place: &Place<'_, 'a>, repeat: &'a Statement) -> Option<After<'a>> {
        let Statement::Repeat {
            counter,
            bound,
            until,
            body,
            span,
        } = repeat
        else {
            return None;
        };
        let name = match place.prefix {
            "" => counter.text.clone(),
            prefix => format!("{prefix}.{}", counter.text),
        };
        let mut frame = Frame {
            repeat,
            type_name: name.clone(),
            name,
            states: BTreeMap::new(),
            counter,
            body,
            until: until.as_ref(),
            span: self.head(*span),
        };
        if applies_by_counter(body, &counter.text) {
            return self.unrolled(place, &mut frame, bound);
        }
        let bound = self.bound_of(place, &frame, bound);
        let mut initial = vec![];
        for (target, ty, value) in states_of(body) {
            initial.push(self.initial(place, &frame, target, ty, value));
        }
        let bound = bound?;
        let id = BlockId(self.blocks.len() as u32);
        self.blocks.push(Block {
            name: frame.name.clone(),
            parent: place.scope.block,
            bound,
            until: None,
            states: vec![],
            collected: vec![],
            span: frame.span,
        });
        let mut scope = place.scope.clone();
        scope.block = Some(id);
        let count = self.counting(&frame, LoopValue::Counter(id));
        scope.locals.insert(&counter.text, count);
        let mut ok = true;
        for ((target, ..), initial) in states_of(body).zip(initial) {
            let name = target.name.text.as_str();
            let Some((view, open)) = initial else {
                scope.locals.insert(name, Binding::Poison);
                ok = false;
                continue;
            };
            let view = self.begin(place, &frame, id, (name, target.span), view, open);
            frame.add_state(name, view, target.span, open);
            scope.locals.insert(name, Binding::Tensor(view));
        }
        ok &= self.round(&frame, &mut scope).is_some();
        if let Some(until) = frame.until.filter(|_| ok) {
            let until = self.until(&scope, &frame, until);
            ok &= until.is_some();
            self.blocks[id.0 as usize].until = until;
        }
        if !ok {
            return None;
        }
        self.after(place, &frame, &scope, id)
    }

    /// How many rounds, evaluated once, before the first.
    fn bound_of(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        bound: &'a Expr,
    ) -> Option<Rounds> {
        let is_inf = matches!(&*bound.kind, ExprKind::Name(name) if name == "inf");
        if is_inf && !place.scope.locals.contains_key("inf") {
            return Some(Rounds::Unbounded);
        }
        let value = self.closed(place.scope, bound)?;
        let value = self.integer(value, bound.span, "the number of rounds")?;
        if let Some(size) = self
            .arena
            .as_size(value)
            .or_else(|| self.typed_whole(value))
        {
            return Some(Rounds::Size(match size.at_least_zero() {
                Some(false) => Size::number(0),
                _ => size,
            }));
        }
        let value = self.position_value(value, bound.span)?;
        self.for_every(value, bound.span, "the number of rounds")?;
        let name = format!("{}.bound", frame.name);
        let role = Role::Hidden;
        let tensor = self.add_statement(name, value, vec![], vec![], bound.span, role);
        Some(Rounds::Value(tensor))
    }

    /// An error where a value that ends the rounds is another for every value of an index around.
    fn for_every(&mut self, value: ExprId, span: Span, what: &str) -> Option<()> {
        let Some(var) = self.arena.free(value).first().copied() else {
            return Some(());
        };
        let index = self.vars[var.0 as usize].name.clone();
        self.report.push(
            Diagnostic::error("E0514", format!("{what} is another for every `{index}`"))
                .at(span, format!("in a function that is called for every `{index}`"))
                .help("all calls make their rounds together: let the number not depend on what is passed"),
        );
        None
    }

    /// A number of rounds as a value.
    fn counting(&mut self, frame: &Frame<'a>, value: LoopValue) -> Binding {
        let suffix = match value.is_result() {
            true => "rounds",
            false => "counter",
        };
        let tensor = self.add_tensor(Tensor {
            name: format!("{}.{suffix}", frame.name),
            dtype: DType::I64,
            shape: vec![],
            role: Role::Hidden,
            definition: Definition::Loop(value),
            span: frame.counter.span,
        });
        let form = Form::Read {
            tensor,
            positions: vec![],
            otherwise: None,
        };
        Binding::Scalar(self.arena.add(form, Ty::Number { whole: true }))
    }

    /// What a state begins with, and whether its type is to follow from its `next`.
    pub(super) fn initial(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Option<(View, bool)> {
        let mut local = Target::local(target, ty, value, "");
        local.name = format!("{}.{}.initial", frame.name, target.name.text);
        local.infer = true;
        let known = self.inferred_types.get(&local.name).copied();
        local.guess = Some(known);
        self.guessed = false;
        let name = local.name.clone();
        let binding = self.define(place.scope, local)?;
        let open = std::mem::take(&mut self.guessed) && known.is_none();
        let view = match binding {
            Binding::Tensor(view) => view,
            Binding::Scalar(value) => {
                let value = self.settle(value, target.span)?;
                let role = Role::Hidden;
                View::of(self.add_statement(name, value, vec![], vec![], target.span, role))
            }
            Binding::Instance(_) | Binding::Poison => return None,
        };
        Some((view, open))
    }

    /// A state of a block; what a round sees of it.
    fn begin(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        block: BlockId,
        (name, span): (&'a str, Span),
        initial: View,
        open: bool,
    ) -> View {
        let full = format!("{}.{name}", frame.name);
        let whole = open && self.untyped.get(&initial.tensor).copied().unwrap_or(false);
        let initial = self.spread(place.scope, initial, format!("{full}.initial.all"), span);
        let number = self.blocks[block.0 as usize].states.len() as u32;
        self.blocks[block.0 as usize].states.push((initial, None));
        let like = self.tensors[initial.0 as usize].clone();
        let tensor = self.add_tensor(Tensor {
            name: full,
            role: Role::Hidden,
            definition: Definition::Loop(LoopValue::State(block, number)),
            span,
            ..like
        });
        if open {
            self.untyped.insert(tensor, whole);
        }
        self.inner(place.scope, tensor)
    }

    /// The indices around, with their extents.
    fn around(&self, scope: &Scope<'a>) -> Vec<(VarId, Size)> {
        let vars = scope.captured.iter();
        vars.filter_map(|var| Some((*var, self.extent(*var)?)))
            .collect()
    }

    /// What a body sees of a tensor that has the indices around as its first dimensions.
    pub(super) fn inner(&mut self, scope: &Scope<'a>, tensor: TensorRef) -> View {
        let around = self.around(scope);
        self.inner_view(tensor, &around)
    }

    /// A tensor with the indices around as its first dimensions that is this view at them.
    fn spread(&mut self, scope: &Scope<'a>, view: View, name: String, span: Span) -> TensorRef {
        if self.inner(scope, view.tensor) == view {
            return view.tensor;
        }
        let around = self.around(scope);
        self.copy(view, &around, (name, Role::Hidden, span))
    }

    /// A tensor that is this view, at the indices around before its own.
    pub(super) fn copy(
        &mut self,
        view: View,
        around: &[(VarId, Size)],
        (name, role, span): (String, Role, Span),
    ) -> TensorRef {
        let shape = self.view_shape(view);
        self.open.push(Open::default());
        let mut own = vec![];
        for (at, size) in shape.iter().enumerate() {
            own.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let mut positions = self.leading(view).to_vec();
        positions.extend(own.iter().map(|var| self.index(*var)));
        let dtype = self.tensors[view.tensor.0 as usize].dtype;
        let form = Form::Read {
            tensor: view.tensor,
            positions,
            otherwise: None,
        };
        let root = self.arena.add(form, Ty::Typed(dtype));
        let sizes = around.iter().map(|(_, size)| size.clone());
        let sizes = sizes.chain(shape).collect();
        let vars = around.iter().map(|(var, _)| *var).chain(own).collect();
        self.add_statement(name, root, vars, sizes, span, role)
    }

    /// The statements of one round, in the order of their uses.
    pub(super) fn round(&mut self, frame: &Frame<'a>, scope: &mut Scope<'a>) -> Option<()> {
        let key = std::ptr::from_ref(frame.repeat) as usize;
        let mut ok = true;
        for number in self.rounds.get(&key).cloned()? {
            ok &= self.round_item(frame, scope, &frame.body[number]).is_some();
        }
        ok.then_some(())
    }

    fn round_item(
        &mut self,
        frame: &Frame<'a>,
        scope: &mut Scope<'a>,
        item: &'a Item,
    ) -> Option<()> {
        match &item.kind {
            ItemKind::Dim { name, value } => {
                let size = self.size(scope, value.as_ref()?, "a size");
                let size = size.map(|size| Binding::Scalar(self.arena.whole(size)));
                scope
                    .locals
                    .insert(&name.text, size.unwrap_or(Binding::Poison));
                size.map(|_| ())
            }
            ItemKind::Assert { condition } => {
                self.assert(scope, condition);
                Some(())
            }
            ItemKind::Const { target, ty, value } => {
                let mut target = Target::local(target, ty.as_ref(), value, &frame.name);
                target.constant = true;
                self.define_local(scope, target)
            }
            ItemKind::Statement(Statement::Scatter {
                target,
                ty,
                combine,
                value,
                ..
            }) => {
                let local = Target::local(target, ty.as_ref(), value, &frame.name);
                let binding = self.define_scatter(scope, local, *combine);
                let name = target.name.text.as_str();
                scope
                    .locals
                    .insert(name, binding.unwrap_or(Binding::Poison));
                binding.map(|_| ())
            }
            ItemKind::Statement(repeat @ Statement::Repeat { .. }) => {
                let place = Place {
                    scope,
                    prefix: &frame.name,
                };
                let after = self.define_repeat(&place, repeat);
                let ok = after.iter().all(|(_, binding)| binding.is_some());
                let after = after.into_iter();
                let after = after.map(|(name, binding)| (name, binding.unwrap_or(Binding::Poison)));
                scope.locals.extend(after);
                ok.then_some(())
            }
            ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) => match role {
                ast::Role::State => Some(()),
                ast::Role::Plain | ast::Role::Next => {
                    self.round_definition(frame, scope, targets, ty.as_ref(), value)
                }
            },
            _ => None,
        }
    }

    fn round_definition(
        &mut self,
        frame: &Frame<'a>,
        scope: &mut Scope<'a>,
        targets: &'a [ast::Target],
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Option<()> {
        let mut several = vec![];
        for target in targets {
            let mut local = Target::local(target, ty, value, &frame.name);
            local.name = local.name.replace("each ", "");
            if let Some(name) = state_of(&target.name.text) {
                let Some(state) = frame.states.get(name).copied() else {
                    scope.locals.insert(&target.name.text, Binding::Poison);
                    return None;
                };
                local.name = format!("{}.{name}.next", frame.name);
                let dtype = self.tensors[state.view.tensor.0 as usize].dtype;
                local.guess = Some((!state.open).then_some(dtype));
                if target.positions.is_some() {
                    let sizes = self.view_shape(state.view).into_iter().map(Some).collect();
                    local.stated = Some((sizes, state.span));
                }
            }
            several.push(local);
        }
        let bindings = match <[Target<'a>; 1]>::try_from(several) {
            Ok([target]) => {
                let name = target.target.name.text.as_str();
                vec![(name, self.define(scope, target))]
            }
            Err(several) => self.define_several(scope, several, value),
        };
        let mut ok = true;
        for ((name, binding), target) in bindings.into_iter().zip(targets) {
            let binding = match (binding, state_of(name).and_then(|s| frame.states.get(s))) {
                (Some(binding), Some(state)) => self
                    .next_fits(frame, *state, binding, target)
                    .map(|_| binding),
                (binding, _) => binding,
            };
            ok &= binding.is_some();
            scope
                .locals
                .insert(name, binding.unwrap_or(Binding::Poison));
        }
        ok.then_some(())
    }

    /// Whether a `next` has the type and shape of its state; a state without a type takes its.
    fn next_fits(
        &mut self,
        frame: &Frame<'a>,
        state: StateInfo,
        next: Binding,
        target: &'a ast::Target,
    ) -> Option<()> {
        let Binding::Tensor(view) = next else {
            return None;
        };
        let name = state_of(&target.name.text)?;
        let (begins, becomes) = (self.view_shape(state.view), self.view_shape(view));
        let pairs = || begins.iter().zip(&becomes);
        for (a, b) in pairs() {
            self.infer(a, b);
            self.infer(b, a);
        }
        if begins.len() != becomes.len() || pairs().any(|(a, b)| a.differs(b)) {
            let (is, was) = (self.view_text(view), self.view_text(state.view));
            self.report.push(
                Diagnostic::error("E0513", format!("the state `{name}` changes its shape"))
                    .at(target.span, format!("a round ends with {is}"))
                    .at(state.span, format!("and begins with {was}"))
                    .help("a state has one shape in all rounds"),
            );
            return None;
        }
        let have = self.tensors[view.tensor.0 as usize].dtype;
        let dtype = self.tensors[state.view.tensor.0 as usize].dtype;
        if state.open {
            let key = format!("{}.{name}.initial", frame.type_name);
            // What meets nothing in this state either is left for last.
            let found = match self.untyped.contains_key(&view.tensor) {
                true => &mut self.settled_types,
                false => &mut self.found_types,
            };
            found.entry(key).or_insert(have);
        } else if have != dtype && !self.untyped.contains_key(&view.tensor) {
            self.report.push(
                Diagnostic::error(
                    "E0513",
                    format!("the state `{name}` is {dtype}, its `next` {have}"),
                )
                .at(target.span, format!("a round ends with {have}"))
                .at(state.span, format!("it begins with {dtype}"))
                .help("write the type where it begins, or convert the value"),
            );
            return None;
        }
        Some(())
    }

    /// What ends the rounds.
    fn until(
        &mut self,
        scope: &Scope<'a>,
        frame: &Frame<'a>,
        until: &'a Expr,
    ) -> Option<TensorRef> {
        self.open.push(Open::default());
        let value = self.expr(&mut Context::new(scope), until);
        let solved = self.close();
        let value = value.filter(|_| solved)?;
        let value = self.condition("`until`", (value, until.span))?;
        self.for_every(value, until.span, "`until`")?;
        let name = format!("{}.until", frame.name);
        Some(self.add_statement(name, value, vec![], vec![], until.span, Role::Hidden))
    }

    /// What is seen after a block.
    fn after(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        scope: &Scope<'a>,
        id: BlockId,
    ) -> Option<After<'a>> {
        let at = id.0 as usize;
        let mut after: After<'a> = vec![];
        let mut number = 0;
        for visible in self.visible_names(frame.repeat) {
            let name = visible.name();
            let (role, full) = match place.prefix {
                "" => (Role::Named, name.text.clone()),
                prefix => (Role::Hidden, format!("{prefix}.{}", name.text)),
            };
            let binding = match visible {
                Visible::Counter(_) => self.counting(frame, LoopValue::Rounds(id)),
                Visible::State(target, ..) => {
                    let next = scope.locals.get(next_name(&name.text).as_str()).copied();
                    let Some(Binding::Tensor(next)) = next else {
                        return None;
                    };
                    let spread = format!("{}.{}.next.all", frame.name, name.text);
                    let next = self.spread(place.scope, next, spread, target.span);
                    self.blocks[at].states[number].1 = Some(next);
                    let like = self.blocks[at].states[number].0;
                    let like = self.tensors[like.0 as usize].clone();
                    let tensor = self.add_tensor(Tensor {
                        name: full,
                        role,
                        definition: Definition::Loop(LoopValue::Last(id, number as u32)),
                        span: target.span,
                        ..like
                    });
                    number += 1;
                    if frame.states.get(name.text.as_str()).is_some_and(|s| s.open) {
                        self.untyped.insert(tensor, false);
                    }
                    Binding::Tensor(self.inner(place.scope, tensor))
                }
                Visible::Collected(_) => {
                    let value = self.collected(place, frame, scope, name)?;
                    self.collect(place, id, (full, role, name.span), value)?
                }
            };
            after.push((&name.text, Some(binding)));
        }
        Some(after)
    }

    /// What one round gives to what is collected, with the dimension that counts the rounds and its place.
    pub(super) fn collected(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        scope: &Scope<'a>,
        name: &'a Name,
    ) -> Option<(TensorRef, usize, Option<&'a Expr>)> {
        let collections = self.collections;
        let found = collections.values().find(|c| c.name.span == name.span)?;
        let local = format!("each {}", name.text);
        let Some(Binding::Tensor(view)) = scope.locals.get(local.as_str()).copied() else {
            return None;
        };
        let spread = format!("{}.{}.all", frame.name, name.text);
        let tensor = self.spread(place.scope, view, spread, name.span);
        let dim = place.scope.captured.len() + found.dim;
        Some((tensor, dim, found.size.as_ref()))
    }

    /// All that is collected.
    fn collect(
        &mut self,
        place: &Place<'_, 'a>,
        id: BlockId,
        (full, role, span): (String, Role, Span),
        (value, dim, size): (TensorRef, usize, Option<&'a Expr>),
    ) -> Option<Binding> {
        let block = &mut self.blocks[id.0 as usize];
        let Rounds::Size(rounds) = block.bound.clone() else {
            let counter = block.name.clone();
            let place = block.span;
            self.report.push(
                Diagnostic::error("E0515", format!("nobody knows how many slices `{counter}` counts"))
                    .at(span, format!("`{counter}` on the left: one slice a round"))
                    .at(place, "the number of rounds is not known before the run")
                    .help(format!("give the rounds a bound of numbers, dims and consts: `repeat {counter} < N until …`")),
            );
            return None;
        };
        let number = block.collected.len() as u32;
        block.collected.push((value, dim));
        self.declared_rounds(place, size, &rounds)?;
        let mut like = self.tensors[value.0 as usize].clone();
        like.shape.insert(dim, rounds);
        self.check_elements(&like.shape, like.dtype, span)?;
        let tensor = self.add_tensor(Tensor {
            name: full,
            role,
            definition: Definition::Loop(LoopValue::Collected(id, number)),
            span,
            ..like
        });
        Some(Binding::Tensor(self.inner(place.scope, tensor)))
    }

    /// The size that a type says of the dimension that counts rounds must be their number.
    pub(super) fn declared_rounds(
        &mut self,
        place: &Place<'_, 'a>,
        size: Option<&'a Expr>,
        rounds: &Size,
    ) -> Option<()> {
        let Some(expr) = size else {
            return Some(());
        };
        let size = self.size(place.scope, expr, "a size")?;
        if !size.differs(rounds) {
            return Some(());
        }
        self.report.push(
            Diagnostic::error("E0301", format!("{size} slices of {rounds} rounds"))
                .at(expr.span, format!("this is {size}"))
                .help("there is one slice a round"),
        );
        None
    }
}

/// The states of a body.
pub(super) fn states_of(
    body: &[Item],
) -> impl Iterator<Item = (&ast::Target, Option<&Type>, &Expr)> {
    body.iter().filter_map(|item| match &item.kind {
        ItemKind::Statement(Statement::Definition {
            role: ast::Role::State,
            targets,
            ty,
            value,
            ..
        }) => Some((targets.first()?, ty.as_ref(), value)),
        _ => None,
    })
}
