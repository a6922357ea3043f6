//! Required and actual placements: what an operator asks of an input, what a relation has, and the one
//! `satisfies` between them.
//!
//! Two relations are co-located on key dimensions D if both are PART_D with the same frontier of D in the
//! same order, since the mapping to sites (`ein_plan::RelationType::site`) depends on that alone. Must not know
//! what moves tuples, nor what it costs.
//!
//! ```text
//! ALL satisfies PART(i);  PART(i) satisfies PART(i);  PART(i, j) does not satisfy PART(i)
//! ```

use super::{Operation, Program, Relation};
use ein_plan::{JoinInput, Placement};

/// What an operator requires of an input's placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Required {
    /// Any placement will do.
    Any,
    /// Every tuple at every site.
    All,
    /// Each tuple at least at the site that PART of these key dimensions gives it.
    Part(Vec<u32>),
}

/// Whether a relation at this placement is where an operator needs it. At one site everything is.
pub fn satisfies(actual: &Placement, required: &Required, sites: u32) -> bool {
    match (actual, required) {
        _ if sites == 1 => true,
        (_, Required::Any) | (Placement::All, _) => true,
        (Placement::Part(_), Required::All) => false,
        (Placement::Part(have), Required::Part(want)) => have == want,
    }
}

impl Required {
    /// The placement that exactly meets the requirement; `Any` asks for nothing.
    pub fn placement(&self) -> Option<Placement> {
        match self {
            Required::Any => None,
            Required::All => Some(Placement::All),
            Required::Part(dims) => Some(Placement::Part(dims.clone())),
        }
    }
}

impl From<&Placement> for Required {
    fn from(placement: &Placement) -> Required {
        match placement {
            Placement::All => Required::All,
            Placement::Part(dims) => Required::Part(dims.clone()),
        }
    }
}

/// Key dimensions `dims` under a map of key dimensions; `None` if one has no image or their order changes
/// (then the mapping to sites is another one).
pub fn image(dims: &[u32], map: impl Fn(u32) -> Option<u32>) -> Option<Vec<u32>> {
    let image: Vec<u32> = dims.iter().map(|dim| map(*dim)).collect::<Option<_>>()?;
    image
        .windows(2)
        .all(|pair| pair[0] < pair[1])
        .then_some(image)
}

/// What a join at `result` requires of an input: the same part where the input has all of D, else ALL.
pub fn of_join_input(input: &JoinInput, result: &Placement) -> Required {
    let Placement::Part(dims) = result else {
        return Required::All;
    };
    let preimage = image(dims, |dim| position(&input.keys, dim));
    preimage.map_or(Required::All, Required::Part)
}

/// What an operator with this result requires of each input, in the order of [`Operation::inputs`]; what it
/// cannot have from any placement of an input is an error.
pub fn requirements(program: &Program, relation: &Relation) -> Result<Vec<Required>, String> {
    let result = &relation.kind.placement;
    let through = |map: &dyn Fn(u32) -> Option<u32>| -> Result<Vec<Required>, String> {
        Ok(vec![match result {
            Placement::All => Required::All,
            Placement::Part(dims) => Required::Part(
                image(dims, map)
                    .ok_or("no placement of its input gives this placement of its result")?,
            ),
        }])
    };
    match &relation.operation {
        Operation::Source { .. } => Ok(vec![]),
        Operation::Broadcast { .. } | Operation::Shuffle { .. } => Ok(vec![Required::Any]),
        Operation::LocalJoin { inputs, .. } => Ok(inputs
            .iter()
            .map(|input| of_join_input(input, result))
            .collect()),
        Operation::LocalAggregate { keep: keys, .. } | Operation::LocalMap { keys, .. } => {
            through(&|dim| keys.get(dim as usize).copied())
        }
        Operation::LocalFilter { key, .. } => through(&|dim| Some(dim + u32::from(dim >= *key))),
        Operation::LocalTile { input, .. } => {
            // The new key dimension has no counterpart: a piece may go anywhere only from ALL.
            let new = program.relation(*input).kind.keys.len() as u32;
            match result {
                Placement::Part(dims) if dims.contains(&new) => Ok(vec![Required::All]),
                _ => through(&Some),
            }
        }
        Operation::LocalConcat { input, array_dim } => {
            let dims = &program.relation(*input).kind.array.dims;
            let key = concat_key(dims, *array_dim).ok_or("the array dimension is not cut")?;
            through(&|dim| Some(dim + u32::from(dim >= key)))
        }
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

/// The last check of a program: every input is where its operator needs it. The error names both sides.
pub fn check(program: &Program, relation: &Relation) -> Result<(), String> {
    let required = requirements(program, relation)?;
    for (input, required) in relation.operation.inputs().into_iter().zip(required) {
        let input: &Relation = program.relation(input);
        if !satisfies(&input.kind.placement, &required, program.sites) {
            return Err(format!(
                "it requires `{}` at {required:?}, which is at {:?}",
                input.name, input.kind.placement
            ));
        }
    }
    Ok(())
}
