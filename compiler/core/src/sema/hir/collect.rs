//! The tables of [`Hir`], made of the notes of the walk and of all that a pass of the checker found.
//!
//! Must not know how names are resolved or types are found.
//!
//! ```text
//! notes: d at 1:10 is an index; v3 at 1:10 runs over 4; e7 at 1:8 is f32   =>   a definition with its extent, an expression
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, TensorRef, Ty},
    expressions::scope::Binding,
    hir::{Definition, DefinitionId, Extent, Hir, Kind, Type, order},
    resolve::names::EntityKind,
    sizes::size::Size,
};
use einc_diag::Span;
use std::collections::{BTreeMap, HashMap, HashSet};

impl Checker<'_> {
    /// Makes the tables of the program as far as this pass has checked it.
    pub(crate) fn hir(&self) -> Hir {
        let mut definitions = self.definitions();
        definitions.sort_by_key(|definition| order(definition.span));
        let by_place: HashMap<Span, DefinitionId> = definitions
            .iter()
            .enumerate()
            .map(|(at, definition)| (definition.span, DefinitionId(at as u32)))
            .collect();
        let used = self.readings.notes.uses.iter();
        let used = used.filter_map(|(at, of)| Some((*at, *by_place.get(of)?)));
        let own = by_place.iter().map(|(at, id)| (*at, *id));
        let mut names: Vec<(Span, DefinitionId)> = own.chain(used).collect();
        names.sort_by_key(|(at, id)| (order(*at), *id));
        names.dedup();
        let noted = self.built.expressions.iter();
        let mut expressions: Vec<(Span, Type)> = noted
            .map(|(at, value)| (*at, self.type_of_value(*value)))
            .collect();
        expressions.sort_by_key(|(at, _)| order(*at));
        let mut distinct: Vec<(Span, Type)> = vec![];
        for (at, ty) in expressions {
            let mut same = distinct.iter().rev().take_while(|(other, _)| *other == at);
            if !same.any(|(_, known)| *known == ty) {
                distinct.push((at, ty));
            }
        }
        Hir {
            definitions,
            names,
            expressions: distinct,
        }
    }

    /// All definitions with what is known of them.
    fn definitions(&self) -> Vec<Definition> {
        let mut found: BTreeMap<Span, Definition> = BTreeMap::new();
        let mut add = |span: Span, kind: Kind| {
            found.entry(span).or_insert_with(|| Definition {
                name: self.names.text(span).to_owned(),
                kind,
                span,
                types: vec![],
                extents: vec![],
            });
        };
        for entity in &self.names.entities {
            let written = self.names.text(entity.name.span) == entity.name.text;
            if let (Some(kind), true) = (kind_of(&entity.kind), written) {
                add(entity.name.span, kind);
            }
        }
        for (span, kind) in &self.readings.notes.definitions {
            add(*span, *kind);
        }
        let numbered = (0..).map(TensorRef).zip(&self.built.tensors);
        // The pairs of complex numbers are no tensor of the text.
        let pairs: HashSet<&TensorRef> = self.complex.pairs.values().collect();
        for (_, tensor) in numbered.filter(|(id, _)| !pairs.contains(id)) {
            let ty = Type {
                element: Some(tensor.dtype),
                shape: tensor.shape.iter().map(extent_of).collect(),
            };
            // A tensor stands at its left side, which begins with the name.
            if let Some(definition) = beginning(&mut found, tensor.span)
                && !definition.types.contains(&ty)
            {
                definition.types.push(ty);
            }
        }
        for var in &self.indices.vars {
            let Some(extent) = var.extent.as_ref().map(extent_of) else {
                continue;
            };
            // The index of an implicit sum stands somewhere in the product at which it is summed.
            let last = Span {
                start: var.span.end,
                ..var.span
            };
            let indices = found.range_mut(var.span..=last).map(|(_, found)| found);
            let mut indices = indices.filter(|found| found.kind == Kind::Index);
            if let Some(definition) = indices.find(|found| found.name == var.name)
                && !definition.extents.contains(&extent)
            {
                definition.extents.push(extent);
            }
        }
        for (id, binding) in &self.entities.values {
            let (entity, Binding::Scalar(value)) = (self.names.entity(*id), binding) else {
                continue;
            };
            let Some(definition) = found.get_mut(&entity.name.span) else {
                continue;
            };
            if definition.types.is_empty() {
                definition.types.push(self.type_of_value(*value));
            }
            definition
                .extents
                .extend(self.arena.as_size(*value).map(|size| extent_of(&size)));
        }
        found.into_values().collect()
    }

    fn type_of_value(&self, value: ExprId) -> Type {
        let element = match self.arena.ty(value) {
            Ty::Typed(element) => Some(element),
            Ty::Number { .. } => None,
        };
        Type {
            element,
            shape: vec![],
        }
    }
}

fn extent_of(size: &Size) -> Extent {
    let plain = size.plain();
    Extent {
        text: plain.to_string(),
        number: plain.known(),
    }
}

/// The definition whose name stands where a left side begins.
fn beginning(found: &mut BTreeMap<Span, Definition>, place: Span) -> Option<&mut Definition> {
    let first = Span {
        end: place.start,
        ..place
    };
    let (span, definition) = found.range_mut(first..).next()?;
    (span.file == place.file && span.start == place.start).then_some(definition)
}

/// The kind of a definition at the top level of a file; `None` for a name that is defined by other lines.
fn kind_of(kind: &EntityKind<'_>) -> Option<Kind> {
    Some(match kind {
        EntityKind::Dim(_) => Kind::Dim,
        EntityKind::Input { param: false, .. } => Kind::Input,
        EntityKind::Input { param: true, .. } => Kind::Param,
        EntityKind::Definition { constant: true, .. } => Kind::Const,
        EntityKind::Definition { .. } | EntityKind::Part { .. } | EntityKind::Scatter { .. } => {
            Kind::Value
        }
        EntityKind::Function(_) => Kind::Function,
        EntityKind::Module(_) => Kind::Module,
        EntityKind::Instance(_) => Kind::Instance,
        EntityKind::Repeat(_) => Kind::Counter,
        EntityKind::OfRepeat { visible, .. } => visible.kind(),
        EntityKind::Poison => return None,
    })
}
