//! Required and actual placements: what an operator asks of an input, what a relation has, and the one
//! `satisfies` between them.
//!
//! Two relations are co-located if, axis by axis, they have the same role, and key dimensions with that role are
//! cut alike, since the mapping to sites (`ein_plan::RelationType::coordinates`) depends on that alone. Must not
//! know what moves tuples, nor what it costs.
//!
//! ```text
//! GRID(*, j) satisfies GRID(i, j);  GRID(i, j) satisfies itself;  GRID(j, i) does not satisfy GRID(i, j)
//! ```

use super::{Operation, Program, Relation};
use ein_plan::print;
use ein_plan::{AxisRole, Fold, JoinInput, KeyDim, Mesh, Placement};

/// A requirement of an operator on an input's placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Required {
    /// Any placement will do.
    Any,
    /// Each tuple at least where this placement has it.
    At(Placement),
}

/// Returns whether a relation at this placement is where an operator needs it: along each axis with several coordinates
/// at equal ones, or at all.
pub fn satisfies(actual: &Placement, required: &Required, mesh: &Mesh) -> bool {
    let Required::At(wanted) = required else {
        return true;
    };
    let roles = actual.roles.iter().zip(&wanted.roles).zip(&mesh.axes);
    roles
        .into_iter()
        .all(|((have, want), count)| *count == 1 || *have == AxisRole::Every || have == want)
}

/// A placement under a map of key dimensions; `None` if one that it names has no image.
pub fn image(placement: &Placement, map: impl Fn(u32) -> Option<u32>) -> Option<Placement> {
    let role = |role: &AxisRole| match role {
        AxisRole::Key(key) => map(*key).map(AxisRole::Key),
        other => Some(*other),
    };
    let roles = placement.roles.iter().map(role).collect::<Option<_>>()?;
    Some(Placement { roles })
}

/// Returns the requirement of a join at `result` on an input: along each axis the same, where the result is cut by a key
/// dimension that the input has; all of it where the input does not have it.
pub fn of_join_input(input: &JoinInput, fold: Option<&Fold>, result: &Placement) -> Required {
    let role = |role: &AxisRole| match role {
        AxisRole::Key(key) => {
            let joined = match fold {
                None => Some(*key),
                Some(fold) => fold.keep.get(*key as usize).copied(),
            };
            let of_input = joined.and_then(|joined| position(&input.keys, joined));
            of_input.map_or(AxisRole::Every, AxisRole::Key)
        }
        other => *other,
    };
    Required::At(Placement {
        roles: result.roles.iter().map(role).collect(),
    })
}

/// Returns the requirements of an operator with this result on each input, in the order of [`Operation::inputs`]; a requirement that it
/// cannot have from any placement of an input is an error.
pub fn requirements(program: &Program, relation: &Relation) -> Result<Vec<Required>, String> {
    let result = &relation.kind.placement;
    let through = |map: &dyn Fn(u32) -> Option<u32>| -> Result<Vec<Required>, String> {
        let before = image(result, map)
            .ok_or("no placement of its input gives this placement of its result")?;
        Ok(vec![Required::At(before)])
    };
    match &relation.operation {
        Operation::Source { .. } | Operation::Loop { .. } => Ok(vec![]),
        Operation::Broadcast { .. } | Operation::Shuffle { .. } | Operation::Window { .. } => {
            Ok(vec![Required::Any])
        }
        Operation::LocalJoin { inputs, fold, .. } => Ok(inputs
            .iter()
            .map(|input| of_join_input(input, fold.as_ref(), result))
            .collect()),
        Operation::LocalAggregate { keep: keys, .. } | Operation::LocalMap { keys, .. } => {
            through(&|dim| keys.get(dim as usize).copied())
        }
        Operation::LocalFilter { key, .. } => through(&|dim| Some(dim + u32::from(dim >= *key))),
        Operation::LocalTile { input, .. } => {
            let new = program.relation(*input).kind.keys.len() as u32;
            Ok(vec![Required::At(before_tile(result, new))])
        }
        Operation::LocalConcat { input, array_dim } => {
            let dims = &program.relation(*input).kind.array.dims;
            let key = concat_key(dims, *array_dim).ok_or("the array dimension is not cut")?;
            through(&|dim| Some(dim + u32::from(dim >= key)))
        }
    }
}

/// Where a TILE needs its input: the new key dimension has no counterpart, so along an axis where it places the
/// pieces, everywhere.
pub fn before_tile(result: &Placement, new: u32) -> Placement {
    let role = |role: &AxisRole| match role {
        AxisRole::Key(key) if *key == new => AxisRole::Every,
        other => *other,
    };
    Placement {
        roles: result.roles.iter().map(role).collect(),
    }
}

/// The key dimension that a CONCAT of that array dimension takes away.
pub fn concat_key(dims: &[ein_plan::ArrayDim], array_dim: u32) -> Option<u32> {
    dims.get(array_dim as usize).and_then(|dim| dim.cut)
}

/// Where `key` stands in a list of key dimensions.
pub fn position(keys: &[u32], key: u32) -> Option<u32> {
    keys.iter().position(|k| *k == key).map(|at| at as u32)
}

/// Along every axis that numbers blocks of the key dimension by them, along the others everywhere.
pub fn by_one_key(keys: &[KeyDim], key: u32, mesh: &Mesh) -> Placement {
    let axes = (0u8..).zip(&mesh.axes).map(|(axis, _)| axis);
    let role = |axis| match keys[key as usize].axes.contains(&axis) {
        true => AxisRole::Key(key),
        false => AxisRole::Every,
    };
    Placement {
        roles: axes.map(role).collect(),
    }
}

/// Along each axis by the key dimension with the most pieces, if one's blocks are numbered by it.
pub fn spread(keys: &[KeyDim], mesh: &Mesh) -> Placement {
    let axes = (0u8..).zip(&mesh.axes).map(|(axis, _)| axis);
    let role = |axis| {
        let numbered = (0u32..)
            .zip(keys)
            .filter(|(_, key)| key.axes.contains(&axis));
        let longest = numbered.max_by_key(|(at, key)| (key.pieces, std::cmp::Reverse(*at)));
        longest.map_or(AxisRole::First, |(at, _)| AxisRole::Key(at))
    };
    Placement {
        roles: axes.map(role).collect(),
    }
}

/// A placement in a relation's name: `all`, `one`, or `by` what each axis says.
pub fn placement_name(placement: &Placement, keys: &[KeyDim]) -> String {
    let same = |role: AxisRole| placement.roles.iter().all(|other| *other == role);
    if same(AxisRole::Every) {
        return "all".into();
    }
    if same(AxisRole::First) {
        return "one".into();
    }
    let names = placement.roles.iter().map(|role| match role {
        AxisRole::Every => "all",
        AxisRole::First => "one",
        AxisRole::Key(dim) => keys.get(*dim as usize).map_or("", |key| key.name.as_str()),
    });
    format!("by.{}", names.collect::<Vec<_>>().join("."))
}

/// The last check of a program: every input is where its operator needs it. The error names both sides.
pub fn check(program: &Program, relation: &Relation) -> Result<(), String> {
    let required = requirements(program, relation)?;
    for (input, required) in relation.operation.inputs().into_iter().zip(required) {
        let input: &Relation = program.relation(input);
        let actual = &input.kind.placement;
        if !satisfies(actual, &required, &program.mesh) {
            let text = |placement| print::placement(placement, &input.kind.keys);
            let required = match &required {
                Required::Any => "any placement".into(),
                Required::At(placement) => text(placement),
            };
            return Err(format!(
                "it requires `{}` at {required}, which is at {}",
                input.name,
                text(actual)
            ));
        }
    }
    Ok(())
}
