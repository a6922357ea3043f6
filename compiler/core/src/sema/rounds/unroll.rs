//! Rounds that are written one after the other: those of a block whose counter says which instance of a module is applied.
//!
//! Must not know modules.
//!
//! ```text
//! repeat l < 2 { state h = x; next h = enc[l](h) }   =>   h.0 = enc[0](x), h.1 = enc[1](h.0)
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, View},
    resolve::names::Visible,
    rounds::desugar::next_name,
    rounds::repeat::{After, Frame, Place, states_of},
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::Expr;
use std::collections::BTreeMap;

/// A collected tensor: the dimension that counts rounds, the size that its type says of it, and one tensor a round.
type Slices<'a> = (usize, Option<&'a Expr>, Vec<TensorRef>);

impl<'a> Checker<'a> {
    /// A block whose rounds are written out.
    pub(crate) fn unrolled(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &mut Frame<'a>,
        bound: &'a Expr,
    ) -> Option<After<'a>> {
        if let Some(until) = frame.until {
            self.report.push(
                Diagnostic::error(
                    "E0514",
                    "`until` where the counter says which instance is applied",
                )
                .at(until.span, "the number of rounds must be known")
                .at(frame.span, "these rounds are written out one by one")
                .help("leave `until` out"),
            );
            return None;
        }
        let rounds = self.size(place.scope, bound, "the number of rounds")?;
        // Not known yet: one round stands for all.
        let count = rounds.known().map_or(1, |n| n.max(0));
        let mut scope = place.scope.clone();
        for (target, ty, value) in states_of(frame.body) {
            let (view, open) = self.initial(place, frame, target, ty, value)?;
            frame.add_state(&target.name.text, view, target.span, open);
            scope
                .locals
                .insert(&target.name.text, Binding::Tensor(view));
        }
        let visible = self.names.visible_names(frame.repeat);
        let mut slices: BTreeMap<&'a str, Slices<'a>> = BTreeMap::new();
        let whole = frame.name.clone();
        for number in 0..count {
            let counter = self.arena.whole(Size::number(number));
            let counter = Binding::Scalar(counter);
            scope.locals.insert(&frame.counter.text, counter);
            frame.name = format!("{whole}.{number}");
            frame.type_name.clone_from(&whole);
            self.round(frame, &mut scope)?;
            for name in visible.iter().map(|v| v.name()) {
                match scope.locals.get(next_name(&name.text).as_str()).copied() {
                    Some(next) => drop(scope.locals.insert(&name.text, next)),
                    None if name.text == frame.counter.text => {}
                    None => {
                        let (value, dim, size) = self.collected(place, frame, &scope, name)?;
                        let known = slices.entry(&name.text);
                        known.or_insert_with(|| (dim, size, vec![])).2.push(value);
                    }
                }
            }
        }
        frame.name = whole;
        let mut after: After<'a> = vec![];
        for visible in visible {
            let name = visible.name();
            let (role, full) = match place.prefix {
                "" => (Role::Named, name.text.clone()),
                prefix => (Role::Hidden, format!("{prefix}.{}", name.text)),
            };
            let binding = match visible {
                Visible::Counter(_) => {
                    let rounds = match rounds.known() {
                        Some(_) => Size::number(count),
                        None => rounds.clone(),
                    };
                    Binding::Scalar(self.arena.whole(rounds))
                }
                Visible::State(..) => {
                    match (scope.locals.get(name.text.as_str()).copied()?, role) {
                        (Binding::Tensor(view), Role::Named) => {
                            let named = (full, role, name.span);
                            Binding::Tensor(View::of(self.copy(view, &[], named)))
                        }
                        (binding, _) => binding,
                    }
                }
                Visible::Collected(_) => {
                    let Some((dim, size, values)) = slices.get(name.text.as_str()).cloned() else {
                        self.report.push(
                            Diagnostic::error(
                                "E0515",
                                format!("`{}` collects of no round", name.text),
                            )
                            .at(name.span, "there is no round that says its shape"),
                        );
                        return None;
                    };
                    self.declared_rounds(place, size, &rounds)?;
                    let stacked = (dim, values.as_slice(), &rounds);
                    let tensor = self.stacked(stacked, (full, role, name.span))?;
                    Binding::Tensor(self.inner(place.scope, tensor))
                }
            };
            after.push((&name.text, Some(binding)));
        }
        Some(after)
    }

    /// Tensors of one shape along a new dimension.
    fn stacked(
        &mut self,
        (dim, values, rounds): (usize, &[TensorRef], &Size),
        (name, role, span): (String, Role, Span),
    ) -> Option<TensorRef> {
        let like = self.built.tensors[values.first()?.0 as usize].clone();
        let mut shape = like.shape.clone();
        shape.insert(dim, rounds.clone());
        self.check_elements(&shape, span)?;
        self.indices.open.push(Open::default());
        let mut vars = vec![];
        for (at, size) in shape.iter().enumerate() {
            vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let counter = self.index(vars[dim]);
        let read = |c: &mut Self, tensor: TensorRef| -> ExprId {
            let mut own = vars.clone();
            own.remove(dim);
            let positions = own.iter().map(|var| c.index(*var)).collect();
            let form = Form::Read {
                tensor,
                positions,
                otherwise: None,
            };
            c.arena.add(form, Ty::Typed(like.dtype))
        };
        let (last, before) = values.split_last()?;
        let mut root = read(self, *last);
        for (number, value) in before.iter().enumerate().rev() {
            let this = Form::Constant(Scalar::Int(number as i64));
            let this = self.arena.add(this, Ty::Typed(DType::I64));
            let is_this = self.apply(Function::Eq, vec![counter, this], span)?;
            let value = read(self, *value);
            let select = Form::Apply(Function::Select, vec![is_this, value, root]);
            root = self.arena.add(select, Ty::Typed(like.dtype));
        }
        Some(self.add_statement(name, root, vars, shape, span, role))
    }
}
