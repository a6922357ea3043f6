//! Arrays of equal instances that rounds go through: each param of all of them is one tensor, and a round reads its slice.
//!
//! To everything outside of the program, and to optimizers, each instance's param is a tensor of its own, by its own path.
//! Instances are stored so where every application says by a counter alone which one it is, and no instance carries a state.
//! Must not know what a body computes.
//!
//! ```text
//! param enc: linear(8, 8)[3]; repeat l < 3 { … enc[l](h) … }
//!   =>   enc.w: f32[3, 8, 8], parts enc.0.w, enc.1.w, enc.2.w;  enc.l.w[i1, i2] = enc.w[l, i1, i2]
//! ```

use crate::einsum::{LoopValue, Role};
use crate::sema::{
    Checker,
    definitions::tensors::Definition,
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, Scope, View},
    modules::instances::{Element, Instances},
    resolve::counted::{Uses, arrays_by_counter},
    resolve::names::{EntityId, InstanceId},
    rounds::block::Rounds,
    sizes::ranges::Open,
    sizes::size::Size,
};
use einc_diag::{Diagnostic, FileId};
use einc_syntax::ast::{self, Expr, ExprKind, Item, ItemKind, Statement, TrainEntry};
use std::{collections::BTreeMap, rc::Rc};

impl<'a> Checker<'a> {
    /// Returns whether an array of instances is stored together.
    pub(crate) fn is_stacked(
        &self,
        file: FileId,
        path: &str,
        module: EntityId,
        counts: &[Size],
    ) -> bool {
        let name = path.rsplit('.').next().unwrap_or(path);
        let items = self.names.sources.files.get(file.0 as usize);
        let items = items.map_or(&[][..], |file| &file.ast.items);
        let mut uses = Uses::default();
        uses.items(items, name, &mut vec![]);
        counts.len() == 1
            && uses.by_counter
            && !uses.otherwise
            && !self.keeps_apart(module, 0)
            && !self.groups_by_number()
    }

    /// Returns whether instances of a module have something that is not a param of fixed shape.
    fn keeps_apart(&self, module: EntityId, depth: usize) -> bool {
        let crate::sema::resolve::names::EntityKind::Module(body) = self.names.entity(module).kind
        else {
            return true;
        };
        let file = self.names.entity(module).file;
        depth > 100
            || body.body.iter().any(|item| match &item.kind {
                ItemKind::Statement(Statement::Definition { role, .. }) => {
                    *role == ast::Role::State
                }
                ItemKind::Const { target, .. } => target.positions.is_some(),
                ItemKind::Param { ty, .. } => match crate::sema::resolve::names::Declared::of(ty) {
                    Some(declared) => self
                        .names
                        .module(file, &declared.module.text)
                        .is_none_or(|(inner, _)| self.keeps_apart(inner, depth + 1)),
                    None => false,
                },
                _ => false,
            })
    }

    /// Returns whether a group of a `train` block tells instances apart.
    fn groups_by_number(&self) -> bool {
        let numbered = |pattern: &str| {
            let segments = pattern.trim_matches('"').split('.');
            segments
                .map(|segment| segment.trim_matches('*'))
                .any(|segment| {
                    !segment.is_empty() && segment.chars().all(|letter| letter.is_ascii_digit())
                })
        };
        self.trains().iter().any(|(_, train, _)| {
            train.entries.iter().any(|entry| match entry {
                TrainEntry::Group { patterns, .. } => patterns.iter().any(|p| numbered(&p.text)),
                TrainEntry::Setting { .. } => false,
            })
        })
    }

    /// The instance of an array that is stored together: what it owns are slices.
    pub(crate) fn applied_stacked(
        &mut self,
        scope: &Scope<'a>,
        id: InstanceId,
        expr: &'a Expr,
    ) -> Option<((InstanceId, usize), Element<'a>)> {
        let (at, label) = self.instance_number(scope, id, expr)?;
        let derived = self.slice_of_instances(id, at, &label);
        let instances = self.instances_of(derived);
        let element = instances.elements.first()?.clone();
        Some(((derived, 0), element))
    }

    /// The position of an instance, proved to be one, and how names say it.
    fn instance_number(
        &mut self,
        scope: &Scope<'a>,
        id: InstanceId,
        expr: &'a Expr,
    ) -> Option<(ExprId, String)> {
        let count = self.instances_of(id).counts[0].clone();
        let name = self.instances_of(id).elements.first()?.path.clone();
        let name = name.strip_suffix(".*").unwrap_or(&name).to_owned();
        let counter = match &*expr.kind {
            ExprKind::Name(counter) => Some(counter),
            _ => None,
        };
        if let Some(counter) = counter
            && let Some(Binding::Scalar(value)) = scope.locals.get(counter.as_str()).copied()
            && let Some(block) = self.counted_by(value)
        {
            let Rounds::Size(rounds) = self.built.blocks[block.0 as usize].bound.clone() else {
                self.report.push(
                    Diagnostic::error(
                        "E0511",
                        format!(
                            "how many instances of `{name}` are applied is not known before the run"
                        ),
                    )
                    .at(
                        expr.span,
                        format!("`{counter}` goes on until data end the rounds"),
                    )
                    .help("give the `repeat` a bound of numbers, dims and consts"),
                );
                return None;
            };
            if let (Some(rounds), Some(count)) = (rounds.known(), count.known())
                && rounds > count
            {
                self.report.push(
                    Diagnostic::error("E0511", format!("`{name}` has no instance {count}"))
                        .at(expr.span, format!("`{counter}` runs to {}", rounds - 1))
                        .help(format!("there are {count}, counted from 0")),
                );
                return None;
            }
            let at = self.position_value(value, expr.span)?;
            return Some((at, counter.clone()));
        }
        let at = self.size(scope, expr, "the number of an instance")?;
        if let Some(number) = at.known()
            && (number < 0 || count.known().is_some_and(|count| number >= count))
        {
            self.report.push(
                Diagnostic::error("E0511", format!("`{name}` has no instance {number}"))
                    .at(expr.span, format!("this is {number}"))
                    .help(format!("there are {count}, counted from 0")),
            );
            return None;
        }
        let label = at.to_string();
        let at = self.arena.whole(at);
        Some((self.position_value(at, expr.span)?, label))
    }

    /// The block whose rounds a value counts.
    fn counted_by(&self, value: ExprId) -> Option<crate::einsum::BlockId> {
        let Form::Read { tensor, .. } = &*self.arena.form(value) else {
            return None;
        };
        match self.built.tensors[tensor.0 as usize].definition {
            Definition::Loop(LoopValue::Counter(block)) => Some(block),
            _ => None,
        }
    }

    /// Instances with what they own at one more leading position.
    fn slice_of_instances(&mut self, id: InstanceId, at: ExprId, label: &str) -> InstanceId {
        if let Some(known) = self.modules.instance_slices.get(&(id, at)) {
            return *known;
        }
        let whole = self.instances_of(id);
        let (module, stacked) = (whole.module, whole.stacked);
        let counts = whole.counts.clone();
        let mut elements = vec![];
        for element in whole.elements.clone() {
            let mut members = BTreeMap::new();
            for (name, binding) in element.members.iter() {
                members.insert(*name, self.sliced(*binding, at, label));
            }
            elements.push(Element {
                path: element.path.replacen('*', label, 1),
                members: Rc::new(members),
            });
        }
        let slice = self.add_instances(Instances {
            module,
            counts,
            stacked,
            elements,
        });
        self.modules.instance_slices.insert((id, at), slice);
        slice
    }

    fn sliced(&mut self, binding: Binding, at: ExprId, label: &str) -> Binding {
        match binding {
            Binding::Tensor(view) if self.modules.stacks.contains_key(&view.tensor) => {
                Binding::Tensor(View::of(self.stack_slice(view.tensor, at, label)))
            }
            Binding::Instance(id) => Binding::Instance(self.slice_of_instances(id, at, label)),
            other => other,
        }
    }

    /// The slice of a stacked tensor at one position of its first dimension.
    fn stack_slice(&mut self, tensor: TensorRef, at: ExprId, label: &str) -> TensorRef {
        if let Some(known) = self.modules.stack_slices.get(&(tensor, at)) {
            return *known;
        }
        let record = self.built.tensors[tensor.0 as usize].clone();
        let mut stack = self.modules.stacks[&tensor].clone();
        stack.inside(label);
        let own = record.shape[1..].to_vec();
        self.indices.open.push(Open::default());
        let mut vars = vec![];
        for (at, size) in own.iter().enumerate() {
            vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), record.span));
        }
        self.close();
        let indices: Vec<ExprId> = vars.iter().map(|var| self.index(*var)).collect();
        let form = Form::Read {
            tensor,
            positions: [&[at], indices.as_slice()].concat(),
            otherwise: None,
        };
        let root = self.arena.add(form, Ty::Typed(record.dtype));
        let name = self.numbered(stack.name());
        let slice = self.add_statement(name, root, vars, own, record.span, Role::Hidden);
        if stack.leading > 0 {
            self.modules.stacks.insert(slice, stack);
        }
        self.modules.stack_slices.insert((tensor, at), slice);
        slice
    }

    /// The tensors whose uses say the fan-in of a param: for a stacked one those of single instances.
    pub(crate) fn used_as(&self, tensor: TensorRef) -> Vec<TensorRef> {
        if !self.modules.stacks.contains_key(&tensor) {
            return vec![tensor];
        }
        let slices = self.modules.stack_slices.iter();
        let own = slices.filter(|((of, _), _)| *of == tensor);
        let mut used: Vec<TensorRef> = own.flat_map(|(_, slice)| self.used_as(*slice)).collect();
        used.sort();
        used
    }

    /// How a block's counter stands to the instances that are applied by it: whether its rounds may stay a block.
    pub(crate) fn applies_stacks(
        &mut self,
        scope: &Scope<'a>,
        items: &'a [Item],
        counter: &str,
    ) -> bool {
        let mut applied = vec![];
        arrays_by_counter(items, counter, &mut applied);
        applied
            .into_iter()
            .all(|name| match self.binding(scope, name) {
                Some(Binding::Instance(id)) => self.instances_of(id).stacked,
                _ => false,
            })
    }
}
