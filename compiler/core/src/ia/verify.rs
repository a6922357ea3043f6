//! The verifier of IA programs. Invariants:
//!
//! - names are unique; inputs stand before their users; types are well formed and are those that the operators
//!   give ([`crate::tra::typing`]), kernels read no more than the part at hand;
//! - the mesh is one of the sites; a placement has a role for each axis, key dimensions on axes that number their
//!   blocks;
//! - loops nest, and their values have the types and placements of what they are of;
//! - every input is where its operator requires it ([`super::placement`]); BCAST gives copies along an axis where
//!   there were none, and SHUF does not.
//!
//! Must not know how programs come about.
//!
//! ```text
//! relation `C`: it requires `B` at ALL, which is at PART(k)
//! ```

use super::{Operation, Program, Relation, content, placement};
use crate::tra::{Type, typing, verify::verify_kernel};
use ein_plan::{Fold, JoinInput, Kernel, Mesh, Range, RelationId};

/// The first broken invariant, if there is one.
pub fn verify(program: &Program) -> Result<(), String> {
    if program.sites == 0 {
        return Err("there is no site".into());
    }
    ein_plan::verify::mesh(&program.mesh, program.sites)?;
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
        let checked = verify_type(program, relation)
            .and_then(|()| ein_plan::verify::key_dims(&relation.kind.keys, &program.mesh))
            .and_then(|()| ein_plan::verify::placement(&relation.kind, &program.mesh))
            .and_then(|()| placement::check(program, relation));
        if let Err(what) = checked {
            return fail(what);
        }
    }
    let places: Vec<_> = program.places().collect();
    let kinds: Vec<_> = program.relations.iter().map(|r| r.kind.clone()).collect();
    let inputs: Vec<_> = program
        .relations
        .iter()
        .map(|r| r.operation.inputs())
        .collect();
    crate::tra::blocks::verify(&program.blocks, &places, &kinds, &inputs, &program.mesh)?;
    for output in &program.outputs {
        match program.relations.get(output.relation.0 as usize) {
            Some(relation) if relation.block.is_some() => {
                return Err(format!("output `{}` is inside a loop", output.name));
            }
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
    let grows = |input: &RelationId| {
        let input = &program.relation(*input).kind.placement;
        input.grows_to(&relation.kind.placement)
    };
    let expected = match &relation.operation {
        Operation::Source { .. } => {
            if kind.array.columns.len() != 1 {
                return Err("a source has one column".into());
            }
            kind.clone()
        }
        Operation::Broadcast { input } if !grows(input) => {
            return Err("a broadcast gives copies along an axis".into());
        }
        Operation::Shuffle { input } if grows(input) => {
            return Err("a shuffle gives no copies".into());
        }
        Operation::Broadcast { input } | Operation::Shuffle { input } => kind_of(input),
        Operation::Window { input } => typing::window(&kind_of(input), &kind)?,
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let kinds: Vec<Type> = inputs.iter().map(|i| kind_of(&i.relation)).collect();
            let fold = fold.as_ref().map(|fold| (fold, &program.mesh));
            join(&kinds, inputs, kernel, ranges, fold, &kind)?
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
                    join(&[moved], &[same], kernel, ranges, None, &kind)?
                }
            }
        }
        Operation::LocalTile { input, array_dim } => match kind.keys.last() {
            Some(key) => typing::tile(&kind_of(input), *array_dim, key)?,
            None => return Err("a tiled relation has a key dimension".into()),
        },
        Operation::LocalConcat { input, array_dim } => typing::concat(&kind_of(input), *array_dim)?,
        Operation::Loop { .. } => kind.clone(),
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
    fold: Option<(&Fold, &Mesh)>,
    result: &Type,
) -> Result<Type, String> {
    let pairs: Vec<(&Type, &JoinInput)> = kinds.iter().zip(inputs).collect();
    let keys = fold.map_or(&result.keys, |(fold, _)| &fold.keys);
    let mut expected = typing::join(&pairs, kernel, ranges, keys)?;
    if let Some((fold, mesh)) = fold {
        ein_plan::verify::key_dims(&fold.keys, mesh)?;
        expected = typing::fold(&expected, fold, kernel, ranges, &result.keys, mesh)?;
    }
    let maps: Vec<(&Type, Vec<u32>)> = kinds
        .iter()
        .zip(inputs)
        .map(|(kind, input)| (kind, input.keys.clone()))
        .collect();
    verify_kernel(kernel, ranges, &maps)?;
    Ok(expected)
}
