//! Placements under local operators: where the result is if the inputs are there, and where the inputs have to be for the result
//! to be there.
//!
//! This is the paper's definition of the local operators, as far as sites go: ⋈ᴸ combines what is at one site, Σᴸ groups what is at
//! one site, and the others carry the site through. Must not know rules.
//!
//! ```text
//! ⋈ᴸ(ALL, ⟨0⟩) is at ⟨0⟩;   Σᴸ(⟨0⟩, sum) of a relation cut by key dimension 1 is partial;   ⋈ᴸ(⟨0⟩, ⟨1⟩) of unjoined keys is nowhere
//! ```

use super::content::Content;
use super::function::Kernels;
use super::keys::KeyRange;
use super::language::Algebra;
use super::placement::{Placement, Role};
use ein_plan::{Mesh, Reduction};

/// Where the result is if the inputs are at these placements; `None` if what the sites then hold is no placement of the result: tuples
/// would be missing, or wrong.
pub fn natural(
    operator: &Algebra,
    inputs: &[(&Content, &Placement)],
    kernels: &Kernels,
    mesh: &Mesh,
) -> Option<Placement> {
    let axes = 0..mesh.axes.len();
    if let (Algebra::Aggregate { keep, coarse, .. }, [(kind, _)]) = (operator, inputs)
        && !keep
            .iter()
            .zip(coarse)
            .all(|(key, to)| blocks_are_full(kind, *key, to.as_ref(), mesh))
    {
        return None;
    }
    if inputs.iter().any(|(_, at)| at.0.len() != axes.len()) {
        return None;
    }
    let roles: Option<Vec<Role>> = axes
        .map(|axis| match mesh.axes[axis] {
            1 => Some(Role::Every),
            _ => {
                let roles: Vec<(&Content, &Role)> = inputs
                    .iter()
                    .map(|(kind, at)| (*kind, &at.0[axis]))
                    .collect();
                role(operator, &roles, kernels, mesh, axis)
            }
        })
        .collect();
    roles.map(Placement)
}

fn role(
    operator: &Algebra,
    inputs: &[(&Content, &Role)],
    kernels: &Kernels,
    mesh: &Mesh,
    axis: usize,
) -> Option<Role> {
    if let Algebra::Join { .. } = operator {
        return role_of_join(operator, inputs, kernels);
    }
    let [(kind, at)] = inputs else { return None };
    let dims = match at {
        Role::Every => return Some(Role::Every),
        Role::Partial(of) => {
            let passes = match operator {
                Algebra::Aggregate {
                    reduction,
                    before,
                    after,
                    ..
                } => reduction == of && before.is_identity() && after.is_identity(),
                Algebra::Map { function, .. } => kernels.commutes(function, *of),
                _ => true,
            };
            return passes.then_some(Role::Partial(*of));
        }
        Role::Keys(dims) => dims,
    };
    let through = |map: &dyn Fn(u32) -> Option<u32>| -> Option<Role> {
        let dims: Option<Vec<u32>> = dims.iter().map(|dim| map(*dim)).collect();
        dims.map(Role::Keys)
    };
    match operator {
        Algebra::Join { .. } => None,
        Algebra::Aggregate {
            keep,
            coarse,
            reduction,
            after,
            ..
        } => through(&|dim| {
            let at = kind.place(keep, dim)?;
            // A coarser key dimension still cuts along the axes whose digits it keeps.
            match coarse.get(at as usize).and_then(Option::as_ref) {
                Some(range) if dims.len() > 1 || !range.axes.contains(&(axis as u8)) => None,
                _ => Some(at),
            }
        })
        .or_else(|| {
            let spread = are_spread((kind, dims), (keep, coarse), mesh, axis);
            let adds = commutative(*reduction) && after.is_identity();
            (spread && adds).then_some(Role::Partial(*reduction))
        }),
        Algebra::Filter(_) | Algebra::Tile { .. } => Some(Role::Keys(dims.clone())),
        // A window is made of what several coordinates have.
        Algebra::Window { .. } => None,
        Algebra::Map { keys, .. } => through(&|dim| kind.place(keys, dim)),
        Algebra::Replicate { at, .. } => through(&|dim| Some(dim + u32::from(dim >= *at))),
        Algebra::Concat { array_dim } => {
            let key = kind.dims.get(*array_dim as usize)?.cut?;
            through(&|dim| (dim != key).then(|| dim - u32::from(dim > key)))
        }
    }
}

/// The role of a join's result along an axis: partial if all inputs are, else cut as they are, if they agree.
fn role_of_join(
    operator: &Algebra,
    inputs: &[(&Content, &Role)],
    kernels: &Kernels,
) -> Option<Role> {
    let Algebra::Join {
        inputs: maps,
        keep,
        function,
        ..
    } = operator
    else {
        return None;
    };
    let partial = |(_, role): &&(&Content, &Role)| matches!(role, Role::Partial(_));
    if inputs.iter().any(|input| partial(&input)) {
        let all = inputs
            .iter()
            .all(|(_, role)| **role == Role::Partial(Reduction::Sum));
        return (all && kernels.adds(function)).then_some(Role::Partial(Reduction::Sum));
    }
    let mut cut: Option<Vec<u32>> = None;
    for ((_, role), map) in inputs.iter().zip(maps) {
        if let Role::Keys(dims) = role {
            let joined: Vec<u32> = dims.iter().map(|dim| map[*dim as usize]).collect();
            if cut.as_ref().is_some_and(|have| *have != joined) {
                return None;
            }
            cut = Some(joined);
        }
    }
    let Some(joined) = cut else {
        return Some(Role::Every);
    };
    let place = |key: u32| keep.iter().position(|k| *k == key).map(|at| at as u32);
    // A joined key dimension that is left out is equal to one that is kept, if some input says so.
    let equal = |key: u32| {
        inputs.iter().zip(maps).find_map(|((kind, _), map)| {
            let own = map.iter().position(|to| *to == key)? as u32;
            (0..map.len() as u32)
                .filter(|other| kind.which.same(own, *other))
                .find_map(|other| place(map[other as usize]))
        })
    };
    let kept = joined.iter().map(|key| place(*key).or_else(|| equal(*key)));
    kept.collect::<Option<_>>().map(Role::Keys)
}

/// Returns whether groups are spread over the coordinates of an axis so that each holds an addend of every group.
fn are_spread(
    (kind, dims): (&Content, &[u32]),
    (keep, coarse): (&[u32], &[Option<KeyRange>]),
    mesh: &Mesh,
    axis: usize,
) -> bool {
    let free = dims.iter().all(|dim| {
        let kept = keep.iter().position(|kept| kept == dim);
        let spread = kept.is_none_or(|at| coarse.get(at).is_some_and(Option::is_some));
        // Only single key dimensions have digits.
        let digits = kept.is_none() || dims.len() == 1;
        spread && digits && !kind.which.positions().contains(dim)
    });
    let pieces = dims.iter().fold(1u64, |n, dim| {
        n.saturating_mul(u64::from(kind.keys[*dim as usize].pieces))
    });
    let blocks = match dims {
        [dim] => kind.keys[*dim as usize].blocks(mesh),
        _ => u64::from(mesh.axes[axis]),
    };
    free && !dims.is_empty() && pieces >= blocks
}

/// Returns whether every coordinate of a coarser key dimension has pieces of the one that it is made of: digits of its axes, and no block empty.
fn blocks_are_full(kind: &Content, key: u32, to: Option<&KeyRange>, mesh: &Mesh) -> bool {
    let (Some(to), Some(from)) = (to, kind.keys.get(key as usize)) else {
        return to.is_none();
    };
    to.axes.iter().all(|axis| from.axes.contains(axis))
        && to.blocks(mesh) == u64::from(to.pieces)
        && u64::from(from.pieces) >= from.blocks(mesh)
}

/// Returns whether a reduction's carriers may be combined in any order: all but those that the first of equal values wins.
pub fn commutative(reduction: Reduction) -> bool {
    !reduction.is_arg()
}

/// Where the inputs have to be for the result to be at a placement without addends. Where no placement of the inputs gives a role,
/// every coordinate has to hold them: the result is then there too, and sliced.
pub fn required(operator: &Algebra, kinds: &[&Content], result: &Placement) -> Vec<Placement> {
    (0..kinds.len())
        .map(|number| {
            let role = |role: &Role| match role {
                Role::Keys(dims) => {
                    let back = dims.iter().map(|dim| before(operator, kinds, number, *dim));
                    back.collect::<Option<_>>().map_or(Role::Every, Role::Keys)
                }
                _ => Role::Every,
            };
            Placement(result.0.iter().map(role).collect())
        })
        .collect()
}

/// The key dimension of an input that is a key dimension of the result.
fn before(operator: &Algebra, kinds: &[&Content], number: usize, dim: u32) -> Option<u32> {
    match operator {
        Algebra::Join { inputs, keep, .. } => {
            let joined = keep.get(dim as usize)?;
            let at = inputs[number].iter().position(|to| to == joined)?;
            Some(at as u32)
        }
        Algebra::Aggregate { keep, .. } | Algebra::Map { keys: keep, .. } => {
            keep.get(dim as usize).copied()
        }
        Algebra::Filter(_) => Some(dim),
        Algebra::Window { .. } => None,
        Algebra::Tile { .. } => ((dim as usize) < kinds[number].keys.len()).then_some(dim),
        Algebra::Replicate { at, .. } => (dim != *at).then(|| dim - u32::from(dim > *at)),
        Algebra::Concat { array_dim } => {
            let key = kinds[number].dims.get(*array_dim as usize)?.cut?;
            Some(dim + u32::from(dim >= key))
        }
    }
}
