//! The verifier of IA programs. Invariants:
//!
//! - names are unique; inputs stand before their users; types are well formed and are those that the operators
//!   give ([`crate::tra::typing`]), kernels read no more than the piece at hand;
//! - placements name key dimensions in ascending order;
//! - every input is where its operator requires it ([`super::placement`]); BCAST gives ALL and SHUF gives PART.
//!
//! Must not know how programs come about.
//!
//! ```text
//! relation `C`: it requires `B` at All, which is at Part([0])
//! ```

use super::{Operation, Program, Relation, content, placement, well_placed};
use crate::tra::{Type, typing, verify::verify_kernel};
use ein_plan::{JoinInput, Kernel, Placement, Range, RelationId};

/// The first broken invariant, if there is one.
pub fn verify(program: &Program) -> Result<(), String> {
    if program.sites == 0 {
        return Err("there is no site".into());
    }
    let mut names = std::collections::HashSet::new();
    for (at, relation) in program.relations.iter().enumerate() {
        let fail = |what: String| Err(format!("relation `{}`: {what}", relation.name));
        if !names.insert(&relation.name) {
            return fail("the name is used twice".into());
        }
        if relation
            .operation
            .inputs()
            .iter()
            .any(|input| input.0 as usize >= at)
        {
            return fail("an input does not stand before it".into());
        }
        if !well_placed(&relation.kind.placement, relation.kind.keys.len()) {
            return fail("its placement names no key dimensions in ascending order".into());
        }
        let checked =
            verify_type(program, relation).and_then(|()| placement::check(program, relation));
        if let Err(what) = checked {
            return fail(what);
        }
    }
    for output in &program.outputs {
        match program.relations.get(output.relation.0 as usize) {
            Some(relation) if relation.kind.array.columns.len() == 1 => {}
            Some(_) => return Err(format!("output `{}` is a carrier", output.name)),
            None => return Err(format!("output `{}` is no relation", output.name)),
        }
    }
    Ok(())
}

fn verify_type(program: &Program, relation: &Relation) -> Result<(), String> {
    let kind_of = |id: &RelationId| content(&program.relation(*id).kind);
    let kind = content(&relation.kind);
    typing::check(&kind)?;
    let part = matches!(relation.kind.placement, Placement::Part(_));
    let expected = match &relation.operation {
        Operation::Source { .. } => {
            if kind.array.columns.len() != 1 {
                return Err("a source has one column".into());
            }
            kind.clone()
        }
        Operation::Broadcast { .. } if part => return Err("a broadcast gives ALL".into()),
        Operation::Shuffle { .. } if !part => return Err("a shuffle gives PART".into()),
        Operation::Broadcast { input } | Operation::Shuffle { input } => kind_of(input),
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
        } => {
            let kinds: Vec<Type> = inputs.iter().map(|i| kind_of(&i.relation)).collect();
            join(&kinds, inputs, kernel, ranges, &kind)?
        }
        Operation::LocalAggregate {
            input,
            keep,
            reduction,
        } => typing::aggregate(&kind_of(input), keep, *reduction)?,
        Operation::LocalFilter { input, key, value } => {
            typing::filter(&kind_of(input), *key, *value)?
        }
        Operation::LocalMap { input, keys, map } => {
            let moved = typing::rekey(&kind_of(input), keys)?;
            match map {
                None => moved,
                Some((kernel, ranges)) => {
                    let same = JoinInput {
                        relation: *input,
                        keys: (0..keys.len() as u32).collect(),
                    };
                    if moved.keys != kind.keys {
                        return Err("its keys are not those of its key map".into());
                    }
                    join(&[moved], &[same], kernel, ranges, &kind)?
                }
            }
        }
        Operation::LocalTile { input, array_dim } => match kind.keys.last() {
            Some(key) => typing::tile(&kind_of(input), *array_dim, key)?,
            None => return Err("a tiled relation has a key dimension".into()),
        },
        Operation::LocalConcat { input, array_dim } => typing::concat(&kind_of(input), *array_dim)?,
    };
    if expected == kind {
        Ok(())
    } else {
        Err(format!(
            "its type is {kind:?} but its operator gives {expected:?}"
        ))
    }
}

fn join(
    kinds: &[Type],
    inputs: &[JoinInput],
    kernel: &Kernel,
    ranges: &[Range],
    result: &Type,
) -> Result<Type, String> {
    let pairs: Vec<(&Type, &JoinInput)> = kinds.iter().zip(inputs).collect();
    let expected = typing::join(&pairs, kernel, ranges, &result.keys)?;
    let maps: Vec<(&Type, Vec<u32>)> = kinds
        .iter()
        .zip(inputs)
        .map(|(kind, input)| (kind, input.keys.clone()))
        .collect();
    verify_kernel(kernel, ranges, &maps)?;
    Ok(expected)
}
