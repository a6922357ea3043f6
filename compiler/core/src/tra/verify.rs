//! The verifier of TRA programs. Invariants:
//!
//! - relation names are unique; inputs stand before their users;
//! - types are well formed ([`super::typing::check`]): key names unique, at least one piece a key dimension, a
//!   cut array dimension has the extent of the key dimension that cuts it;
//! - every relation's type is the one that its operator gives ([`super::typing`]), so keys are unique and there
//!   are no holes below the frontier;
//! - kernels keep the invariants of `ein_plan::verify::kernel`; a cut reduced index leaves the reduction unfinished,
//!   which gives carriers, and only such are aggregated; where an operand is cut, it is read by nothing but the
//!   index with the same pieces, and where it is a window, at no position outside of it;
//! - loops nest, and their values have the types of what they are of (`blocks`);
//! - outputs have one column.
//!
//! Must not know how programs come about.
//!
//! ```text
//! relation `C`: the arrays are no carriers of `sum`
//! ```

use super::{Operation, Program, Relation, Type, typing};
use ein_plan::{Kernel, Mesh, Range, RelationId};

/// The first broken invariant, if there is one.
pub fn verify(program: &Program) -> Result<(), String> {
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
        if let Err(what) = verify_relation(program, relation) {
            return fail(what);
        }
    }
    let places: Vec<_> = program.places().collect();
    let kinds: Vec<_> = program
        .relations
        .iter()
        .map(|r| r.kind.anywhere())
        .collect();
    let inputs: Vec<_> = program
        .relations
        .iter()
        .map(|r| r.operation.inputs())
        .collect();
    super::blocks::verify(
        &program.blocks,
        &places,
        &kinds,
        &inputs,
        &Mesh { axes: vec![] },
    )?;
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

fn verify_relation(program: &Program, relation: &Relation) -> Result<(), String> {
    let kind_of = |id: RelationId| &program.relation(id).kind;
    let kind = &relation.kind;
    typing::check(kind)?;
    let expected = match &relation.operation {
        Operation::Source { .. } => {
            if kind.array.columns.len() != 1 {
                return Err("a source has one column".into());
            }
            kind.clone()
        }
        Operation::Join {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let kinds: Vec<_> = inputs
                .iter()
                .map(|input| (kind_of(input.relation), input))
                .collect();
            let keys = fold.as_ref().map_or(&kind.keys, |fold| &fold.keys);
            let mut expected = typing::join(&kinds, kernel, ranges, keys)?;
            if let Some(fold) = fold {
                let mesh = &program.mesh;
                expected = typing::fold(&expected, fold, kernel, ranges, &kind.keys, mesh)?;
            }
            let maps: Vec<_> = kinds
                .iter()
                .map(|(kind, input)| (*kind, input.keys.clone()))
                .collect();
            verify_kernel(kernel, ranges, &maps)?;
            expected
        }
        Operation::Transform {
            input,
            kernel,
            ranges,
        } => {
            let kind_in = kind_of(*input);
            let keys: Vec<u32> = (0..kind_in.keys.len() as u32).collect();
            let join = ein_plan::JoinInput {
                relation: *input,
                keys: keys.clone(),
            };
            let expected = typing::join(&[(kind_in, &join)], kernel, ranges, &kind_in.keys)?;
            verify_kernel(kernel, ranges, &[(kind_in, keys)])?;
            expected
        }
        Operation::Aggregate {
            input,
            group_by,
            reduction,
        } => typing::aggregate(kind_of(*input), group_by, *reduction)?,
        Operation::Rekey { input, keys } => typing::rekey(kind_of(*input), keys)?,
        Operation::Filter { input, key, value } => typing::filter(kind_of(*input), *key, *value)?,
        Operation::Tile { input, array_dim } => match kind.keys.last() {
            Some(key) => typing::tile(kind_of(*input), *array_dim, key)?,
            None => return Err("a tiled relation has a key dimension".into()),
        },
        Operation::Concat { input, array_dim } => typing::concat(kind_of(*input), *array_dim)?,
        Operation::Window { input } => typing::window(kind_of(*input), kind)?,
        Operation::Loop { .. } => kind.clone(),
    };
    if expected == *kind {
        Ok(())
    } else {
        Err(format!(
            "its type is {kind:?} but its operator gives {expected:?}"
        ))
    }
}

/// Verifies that running a kernel on chunks is running it on the whole: `inputs` are the operands'
/// types with the output key dimension of each of their key dimensions.
pub fn verify_kernel(
    kernel: &Kernel,
    ranges: &[Range],
    inputs: &[(&Type, Vec<u32>)],
) -> Result<(), String> {
    ein_plan::verify::kernel::kernel(kernel)?;
    let rank = kernel.output_rank as usize;
    let cut_reduced = ranges[rank..].iter().any(|r| matches!(r, Range::Key(_)));
    if cut_reduced && kernel.finish {
        return Err("a reduced index is cut but the kernel finishes its reduction".into());
    }
    for (operand, positions) in kernel.graph.reads() {
        let Some((kind, keys)) = inputs.get(operand as usize) else {
            return Err(format!("there is no operand {operand}"));
        };
        for (position, dim) in positions.iter().zip(&kind.array.dims) {
            if !ein_plan::verify::holds(kernel, *position, ranges, dim, keys) {
                return Err(format!(
                    "operand {operand} is cut where the kernel reads more than the part at hand"
                ));
            }
        }
    }
    Ok(())
}
