//! `repeat`: states, the statements of a round, when it ends, and what is seen after it.
//!
//! A state is a tensor that a round begins with; it has the type and shape of what it began with, where that says them, else
//! of its `next`. Where a call says by the counter which instance it applies, and the instances are not stored together, the rounds
//! are written one after the other. Must not know kernels.
//!
//! ```text
//! repeat t < 9 { state x = 1.0; next x = x / 2 }
//!   =>   block t: t.x.initial, t.x = its state 0, t.x.next;  x = its last value
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Target, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, Context, Scope, View},
    resolve::counted::applies_by_counter,
    resolve::names::EntityKind,
    rounds::block::{Block, Rounds},
    rounds::desugar::state_of,
    sizes::ranges::{Open, StatedBy},
    sizes::size::Size,
};
use ein_plan::DType;
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{self, Expr, ExprKind, Item, ItemKind, Name, Statement, Type};
use std::collections::BTreeMap;

/// Where a block stands.
pub(crate) struct Place<'p, 'a> {
    pub(crate) scope: &'p Scope<'a>,
    /// The prefix of the names of its tensors; empty in the program itself.
    pub(crate) prefix: &'p str,
}

/// A state while its block is read.
#[derive(Clone, Copy)]
pub(crate) struct StateInfo {
    /// The value with which the round begins.
    pub(crate) view: View,
    /// Where it is declared.
    pub(crate) span: Span,
    /// True if its type is to follow from its `next`.
    pub(crate) open: bool,
}

/// A block that is being read.
pub(crate) struct Frame<'a> {
    pub(crate) repeat: &'a Statement,
    pub(crate) name: String,
    /// Equal in all rounds, also where they are written out.
    pub(crate) type_name: String,
    pub(crate) states: BTreeMap<&'a str, StateInfo>,
    pub(crate) counter: &'a Name,
    pub(crate) body: &'a [Item],
    pub(crate) until: Option<&'a Expr>,
    pub(crate) span: Span,
}

impl<'a> Frame<'a> {
    pub(crate) fn add_state(&mut self, name: &'a str, view: View, span: Span, open: bool) {
        let info = StateInfo { view, span, open };
        self.states.insert(name, info);
    }
}

/// Names with what they stand for after a block.
pub(crate) type After<'a> = Vec<(&'a str, Option<Binding>)>;

impl<'a> Checker<'a> {
    /// Checks a block; what its visible names stand for after it.
    pub(crate) fn define_repeat(
        &mut self,
        place: &Place<'_, 'a>,
        repeat: &'a Statement,
    ) -> After<'a> {
        let failed = |c: &Self| {
            let names = c.names.visible_names(repeat).into_iter();
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
            "" => self.name_of_block(place.scope.file, counter),
            prefix => {
                let key = std::ptr::from_ref(repeat) as usize;
                let before = self.readings.before.get(&key).copied();
                format!("{prefix}.{}", numbered(counter, before.unwrap_or(0)))
            }
        };
        let mut frame = Frame {
            repeat,
            type_name: name.clone(),
            name,
            states: BTreeMap::new(),
            counter,
            body,
            until: until.as_ref(),
            span: self.names.head(*span),
        };
        if applies_by_counter(body, &counter.text)
            && !self.applies_stacks(place.scope, body, &counter.text)
        {
            return self.unrolled(place, &mut frame, bound);
        }
        let place_of_bound = bound.span;
        let bound = self.bound_of(place, &frame, bound);
        if let (Some(Rounds::Unbounded), None) = (&bound, frame.until) {
            self.report.push(
                Diagnostic::error(
                    "E0514",
                    format!("the rounds of `{}` never end", counter.text),
                )
                .at(place_of_bound, "no bound, and no `until`")
                .help(format!(
                    "say when they end: `repeat {} < inf until …`",
                    counter.text
                )),
            );
            return None;
        }
        let mut initial = vec![];
        for (target, ty, value) in states_of(body) {
            initial.push(self.initial(place, &frame, target, ty, value));
        }
        let bound = bound?;
        let id = BlockId(self.built.blocks.len() as u32);
        self.built.blocks.push(Block {
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
            self.built.blocks[id.0 as usize].until = until;
        }
        if !ok {
            return None;
        }
        self.end_assertions(id, place.prefix.is_empty());
        self.after(place, &frame, &scope, id)
    }

    /// Returns the name of a block at the top level: its counter, with a number if earlier blocks have the same counter.
    fn name_of_block(&self, file: FileId, counter: &Name) -> String {
        let before = self.names.entities.iter().filter(|entity| {
            matches!(entity.kind, EntityKind::Repeat(_))
                && entity.file == file
                && entity.name.text == counter.text
                && entity.name.span.start < counter.span.start
        });
        numbered(counter, before.count())
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
        self.for_every(place.scope, value, bound.span, "the number of rounds")?;
        let name = format!("{}.bound", frame.name);
        let role = Role::Hidden;
        let tensor = self.add_statement(name, value, vec![], vec![], bound.span, role);
        Some(Rounds::Value(tensor))
    }

    /// An error where a value that ends the rounds is another for every value of an index around.
    fn for_every(
        &mut self,
        scope: &Scope<'a>,
        value: ExprId,
        span: Span,
        what: &str,
    ) -> Option<()> {
        let Some(var) = self.arena.free(value).first().copied() else {
            return Some(());
        };
        let index = self.indices.vars[var.0 as usize].name.clone();
        let mut error =
            Diagnostic::error("E0514", format!("{what} is another for every `{index}`")).at(
                span,
                format!("in a function that is called for every `{index}`"),
            );
        if scope.rest.is_some() {
            error = error.help(format!(
                "`..` in its signature stands for `{index}` as well: pass the whole tensor, `f(A)[{index}, …]` in place of `f(A[{index}])[…]`"
            ));
        }
        self.report.push(error.help(
            "all calls make their rounds together: let the number not depend on what is passed",
        ));
        None
    }

    /// A number of rounds as a value.
    pub(crate) fn counting(&mut self, frame: &Frame<'a>, value: LoopValue) -> Binding {
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

    /// The statements of one round, in the order of their uses.
    pub(crate) fn round(&mut self, frame: &Frame<'a>, scope: &mut Scope<'a>) -> Option<()> {
        let key = std::ptr::from_ref(frame.repeat) as usize;
        let mut ok = true;
        for number in self.readings.rounds.get(&key).cloned()? {
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
            ItemKind::Assert { condition, message } => {
                self.assert_in_body(scope, (condition, message.as_ref()));
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
                drops,
                value,
                ..
            }) => {
                let local = Target::local(target, ty.as_ref(), value, &frame.name);
                let binding = self.define_scatter(scope, local, (*combine, *drops));
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
                let dtype = self.built.tensors[state.view.tensor.0 as usize].dtype;
                local.guess = Some((!state.open).then_some(dtype));
                if target.positions.is_some() {
                    let sizes = self.view_shape(state.view).into_iter().map(Some).collect();
                    local.stated = Some((sizes, state.span, StatedBy::State));
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

    /// Reads the condition that ends the rounds.
    fn until(
        &mut self,
        scope: &Scope<'a>,
        frame: &Frame<'a>,
        until: &'a Expr,
    ) -> Option<TensorRef> {
        self.indices.open.push(Open::default());
        let value = self.expr(&mut Context::new(scope), until);
        let solved = self.close_behind(value.is_none());
        let value = value.filter(|_| solved)?;
        let value = self.condition("`until`", (value, until.span))?;
        self.for_every(scope, value, until.span, "`until`")?;
        let name = format!("{}.until", frame.name);
        Some(self.add_statement(name, value, vec![], vec![], until.span, Role::Hidden))
    }
}

/// The states of a body.
pub(crate) fn states_of(
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

/// The name of a block: its counter, with a number if earlier blocks have the same counter.
fn numbered(counter: &Name, before: usize) -> String {
    match before {
        0 => counter.text.clone(),
        others => format!("{}.{}", counter.text, others + 1),
    }
}
