//! The walk over a `repeat`: what its names are, which of them are seen outside, and the order in which a round is checked.
//!
//! Must not know sizes or types.
//!
//! ```text
//! repeat t < T { state h[n] = zeros; next h[n] = h[n] + m; m = max[n] h[n]; hs[t,n] = next h[n] }
//!   =>   h, m, next h, each hs;   outside: t, h, hs
//! ```

use crate::sema::{
    hir::Kind,
    resolve::Resolver,
    resolve::body_names::kind_in,
    resolve::cycles::sort,
    resolve::names::Shape,
    resolve::static_scope::{Counters, Local, StaticScope, Unit},
    resolve::walk::Walk,
    rounds::desugar::state_of,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{FunctionBody, Item, ItemKind, Name, Role, Statement, Target};
use std::collections::BTreeMap;

impl<'a> Resolver<'a> {
    /// Notes the names that are known in the rounds of blocks only, for messages.
    pub(crate) fn note_inner_names(&mut self, file: FileId, items: &'a [Item]) {
        for item in items {
            match &item.kind {
                ItemKind::Function(function) => {
                    if let FunctionBody::Block { body, .. } = &function.body {
                        self.note_inner_names(file, body);
                    }
                }
                ItemKind::Module(module) => self.note_inner_names(file, &module.body),
                ItemKind::Statement(Statement::Repeat { body, .. }) => {
                    for item in body {
                        let targets: &[Target] = match &item.kind {
                            ItemKind::Statement(Statement::Definition { targets, .. }) => targets,
                            ItemKind::Statement(Statement::Scatter { target, .. }) => {
                                std::slice::from_ref(target)
                            }
                            _ => &[],
                        };
                        for target in targets {
                            let name = &target.name;
                            self.names.inner.insert((file, &name.text), name.span);
                        }
                    }
                    self.note_inner_names(file, body);
                }
                _ => {}
            }
        }
    }

    /// Walks a block. Items of the body around are those below `base`; those of the block are numbered from there.
    pub(crate) fn walk_repeat(
        &mut self,
        scope: &StaticScope<'a>,
        repeat: &'a Statement,
        base: usize,
    ) -> Unit {
        let mut unit = Unit::default();
        let Statement::Repeat {
            counter,
            bound,
            until,
            body,
            ..
        } = repeat
        else {
            return unit;
        };
        let mut walk = Walk::new(self, scope);
        walk.closed(bound);
        merge_all(&mut unit, walk.unit);
        unit.failed |= !self.check_states(body, "round");
        let mut inner = scope.clone();
        unit.failed |= !self.block_names(&mut inner, counter, body, base);
        let mut edges = vec![vec![]; body.len()];
        for (number, item) in body.iter().enumerate() {
            let of_item = self.walk_block_item(scope, &inner, item, base + body.len());
            let own = of_item.items.iter().filter(|(item, _)| *item >= base);
            edges[number] = own.map(|(item, span)| (item - base, *span)).collect();
            merge_all(&mut unit, of_item);
        }
        if let Some(until) = until {
            let mut walk = Walk::new(self, &inner);
            walk.ends = true;
            walk.value(until);
            merge_all(&mut unit, walk.unit);
        }
        unit.items.retain(|(item, _)| *item < base);
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            self.report_cycle(body, &cycle);
            unit.failed = true;
        }
        self.readings
            .rounds
            .insert(std::ptr::from_ref(repeat) as usize, order);
        unit
    }

    fn walk_block_item(
        &mut self,
        outer: &StaticScope<'a>,
        inner: &StaticScope<'a>,
        item: &'a Item,
        next: usize,
    ) -> Unit {
        match &item.kind {
            ItemKind::Dim { value, .. } => {
                let mut walk = Walk::new(self, inner);
                if let Some(value) = value {
                    walk.closed(value);
                }
                walk.unit
            }
            ItemKind::Const { target, ty, value } => {
                self.walk_definition(inner, target, ty.as_ref(), value)
            }
            ItemKind::Assert { condition, .. } => {
                let mut walk = Walk::new(self, inner);
                walk.closed(condition);
                walk.unit
            }
            ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) => {
                let scope = match role {
                    Role::State => outer,
                    Role::Plain | Role::Next => inner,
                };
                match targets.as_slice() {
                    [target] => self.walk_definition(scope, target, ty.as_ref(), value),
                    several => self.walk_several(scope, several, ty.as_ref(), value),
                }
            }
            ItemKind::Statement(Statement::Scatter {
                target, ty, value, ..
            }) => self.walk_scatter(inner, target, ty.as_ref(), value),
            ItemKind::Statement(repeat @ Statement::Repeat { .. }) => {
                self.walk_repeat(inner, repeat, next)
            }
            _ => Unit::default(),
        }
    }

    /// The names that an item of a block defines, with their shapes; `None` if it defines none.
    fn shapes_of_item(
        &self,
        outer: &StaticScope<'a>,
        item: &'a Item,
    ) -> Option<Vec<(&'a Name, Shape)>> {
        let file = outer.file;
        Some(match &item.kind {
            ItemKind::Dim { name, .. } => vec![(name, Shape::Scalar)],
            ItemKind::Const { target, ty, value } => {
                let shape = self
                    .names
                    .shape_in(Some(outer), file, target, ty.as_ref(), value);
                vec![(&target.name, shape)]
            }
            ItemKind::Statement(Statement::Scatter { target, .. }) => {
                vec![(&target.name, Shape::Tensor)]
            }
            ItemKind::Statement(Statement::Definition {
                targets, ty, value, ..
            }) => {
                let shape = |(at, target): (usize, &'a Target)| {
                    let state = state_of(&target.name.text);
                    let shape = match (state, targets.len()) {
                        (Some(state), _) => match outer.locals.get(state) {
                            Some(Local::Item(_, shape)) => *shape,
                            _ => Shape::Scalar,
                        },
                        (None, 1) => {
                            self.names
                                .shape_in(Some(outer), file, target, ty.as_ref(), value)
                        }
                        _ => self.names.part_shape(file, &outer.inner, at, value),
                    };
                    (&target.name, shape)
                };
                targets.iter().enumerate().map(shape).collect()
            }
            ItemKind::Statement(repeat @ Statement::Repeat { .. }) => self
                .names
                .visible_names(repeat)
                .into_iter()
                .map(|v| (v.name(), self.names.visible_shape(Some(outer), file, v)))
                .collect(),
            _ => return None,
        })
    }

    /// Adds the names of a block to what is known around it. Whether they are all right.
    fn block_names(
        &mut self,
        inner: &mut StaticScope<'a>,
        counter: &'a Name,
        body: &'a [Item],
        base: usize,
    ) -> bool {
        let mut ok = true;
        self.define_local(inner, counter, Kind::Counter);
        let mut first: BTreeMap<&'a str, Span> =
            BTreeMap::from([(counter.text.as_str(), counter.span)]);
        let mut counters = Counters::new();
        // A name may be another's, further down: shapes are looked at until they stay.
        let mut known: Vec<(&'a str, Local)> = vec![];
        for round in 0..64 {
            let outer = inner.clone();
            let mut shapes = vec![(counter.text.as_str(), Local::Scalar)];
            for (number, item) in body.iter().enumerate() {
                let Some(item_shapes) = self.shapes_of_item(&outer, item) else {
                    ok &= matches!(item.kind, ItemKind::Assert { .. });
                    if round == 0 && misplaced(item) {
                        let span = self.names.head(item.span);
                        self.report.push(
                            Diagnostic::error("E0513", "this cannot stand in a `repeat`")
                                .at(span, "not made anew in every round")
                                .help("write it outside of the block"),
                        );
                    }
                    continue;
                };
                for (name, shape) in item_shapes {
                    let again = round == 0 && self.counts_again(&mut counters, item, name);
                    if round == 0
                        && let Some(first) = first.insert(&name.text, name.span)
                        && state_of(&name.text).is_none()
                        && !again
                    {
                        self.report.push(
                            Diagnostic::error("E0202", format!("`{}` is defined twice", name.text))
                                .at(name.span, "defined again here")
                                .at(first, "first defined here")
                                .help("a name has one definition; give one of them another name"),
                        );
                        ok = false;
                    }
                    if round == 0 {
                        match state_of(&name.text).and_then(|state| inner.places.get(state)) {
                            Some(place) => self.refer(&name.text, name.span, *place),
                            None => self.define_local(inner, name, kind_in(item, name)),
                        }
                    }
                    let local = match counters.contains_key(name.text.as_str()) {
                        true => Local::Counter(base + number),
                        false => Local::Item(base + number, shape),
                    };
                    shapes.push((&name.text, local));
                }
            }
            inner.locals.extend(shapes.iter().copied());
            if shapes == known {
                break;
            }
            known = shapes;
        }
        inner.counters.extend(counters);
        ok
    }
}

/// Returns whether an item is none that a block may have.
fn misplaced(item: &Item) -> bool {
    !matches!(
        item.kind,
        ItemKind::Dim { .. }
            | ItemKind::Const { .. }
            | ItemKind::Assert { .. }
            | ItemKind::Statement(_)
            | ItemKind::Error(_)
    )
}

fn merge_all(unit: &mut Unit, other: Unit) {
    unit.items.extend(other.items.iter().copied());
    unit.merge(other);
}
