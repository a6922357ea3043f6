//! Meshes, types, placements and folds by themselves: what holds of them whatever step they belong to.
//!
//! Must not know plans.
//!
//! ```text
//! it is placed by `k` on an axis that does not number its blocks
//! ```

use super::kernel;
use super::{MOST_AXES, MOST_TUPLES};
use crate::kernel::Kernel;
use crate::mesh::Mesh;
use crate::plan::{Fold, Range, same_cut};
use crate::relation::{ArrayDim, ArrayType, AxisRole, KeyDim, RelationType, Window};
use std::collections::HashSet;

/// Whether a mesh has one to [`MOST_AXES`] axes, and no more sites than there are.
pub fn mesh(mesh: &Mesh, sites: u32) -> Result<(), String> {
    let mut counts = mesh.axes.iter();
    let used = counts.try_fold(1u32, |n, count| n.checked_mul(*count));
    let fits = (1..=MOST_AXES).contains(&mesh.axes.len())
        && used.is_some_and(|used| 0 < used && used <= sites);
    match fits {
        true => Ok(()),
        false => Err(format!("there is no mesh {mesh} of {sites} sites")),
    }
}

/// Whether key dimensions have names of their own, pieces, and distinct axes of the mesh.
pub fn key_dims(keys: &[KeyDim], mesh: &Mesh) -> Result<(), String> {
    let mut names = HashSet::new();
    for key in keys {
        if key.pieces == 0 {
            return Err(format!("key dimension `{}` has no piece", key.name));
        }
        if !names.insert(&key.name) {
            return Err(format!("two key dimensions are named `{}`", key.name));
        }
        let distinct: HashSet<&u8> = key.axes.iter().collect();
        let there = key
            .axes
            .iter()
            .all(|axis| usize::from(*axis) < mesh.axes.len());
        if distinct.len() != key.axes.len() || !there {
            return Err(format!(
                "the blocks of `{}` are not numbered by axes of the mesh, each once",
                key.name
            ));
        }
    }
    Ok(())
}

/// Whether a fold keeps what it may: a key dimension as it is, or, if it does not cut the joined array, by the
/// blocks of some of its axes.
pub fn kept(fold: &Fold, result: &[KeyDim], array: &ArrayType, mesh: &Mesh) -> Result<(), String> {
    let distinct: HashSet<&u32> = fold.keep.iter().collect();
    if distinct.len() != fold.keep.len() || result.len() != fold.keep.len() {
        return Err("it keeps a key dimension twice, or others than its result has".into());
    }
    let cuts = |number: u32| array.dims.iter().any(|dim| dim.cut == Some(number));
    for (number, to) in fold.keep.iter().zip(result) {
        let from = fold.keys.get(*number as usize);
        let from = from.ok_or("it keeps a key dimension that is not there")?;
        if same_cut(from, to) {
            continue;
        }
        let some = to.axes.iter().all(|axis| from.axes.contains(axis));
        let full = from.pieces >= from.blocks(mesh) && to.pieces == to.blocks(mesh);
        if from.extent != to.extent || !some || !full || cuts(*number) {
            return Err(format!("it cannot keep `{}` as {to}", from.name));
        }
    }
    let gone = |number: &u32| cuts(*number) && !fold.keep.contains(number);
    match (0..fold.keys.len() as u32).find(gone) {
        None => Ok(()),
        Some(_) => Err("it does not keep a key dimension that cuts the arrays".into()),
    }
}

/// Whether the joined tuples of a fold are parts of one reduction: what is not kept is a reduced index.
pub fn reduced(fold: &Fold, kernel: &Kernel, ranges: &[Range]) -> Result<(), String> {
    let inner = &ranges[kernel.output_rank as usize..];
    for number in 0..fold.keys.len() as u32 {
        if !fold.keep.contains(&number) && !inner.contains(&Range::Key(number)) {
            return Err("it combines what is not reduced".into());
        }
    }
    let value = kernel.graph.dtype(kernel.root);
    let carriers = kernel.reduction.map(|reduction| reduction.carrier(value));
    match !kernel.finish && carriers.as_ref() == Some(&kernel.output) {
        true => Ok(()),
        false => Err("its kernel gives no carriers to combine".into()),
    }
}

/// The array of a fold's result, whose key dimensions are those that it keeps.
pub fn folded(fold: &Fold, mut array: ArrayType) -> ArrayType {
    for dim in &mut array.dims {
        let kept = dim
            .cut
            .and_then(|cut| fold.keep.iter().position(|k| *k == cut));
        dim.cut = kept.map(|at| at as u32);
    }
    array
}

/// Whether keys, arrays and placement fit together.
pub fn relation_type(kind: &RelationType, mesh: &Mesh) -> Result<(), String> {
    key_dims(&kind.keys, mesh)?;
    let mut cuts = HashSet::new();
    for (number, dim) in kind.array.dims.iter().enumerate() {
        if let Some(window) = &dim.window {
            window_of(dim, window, &kind.keys)
                .map_err(|what| format!("the window of array dimension {number} {what}"))?;
        }
        let Some(cut) = dim.cut else { continue };
        match kind.keys.get(cut as usize) {
            None => return Err(format!("there is no key dimension {cut} to cut by")),
            Some(key) if key.extent != dim.extent => {
                return Err(format!(
                    "array dimension {number} has extent {} but `{}` cuts {}",
                    dim.extent, key.name, key.extent
                ));
            }
            Some(key) if !cuts.insert(cut) => {
                return Err(format!("`{}` cuts two array dimensions", key.name));
            }
            Some(_) => {}
        }
    }
    if kind.array.columns.is_empty() || kind.array.columns.len() > 2 {
        return Err("the arrays have no column, or more than a carrier has".into());
    }
    let tuples = kind.tuples().filter(|tuples| *tuples <= MOST_TUPLES);
    let shape: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
    let whole = kernel::elements(&shape).and_then(|n| n.checked_mul(tuples?));
    if whole.is_none() {
        return Err("it has more tuples or elements than can be counted".into());
    }
    placement(kind, mesh)
}

/// Whether a dimension's window can be moved over it.
pub fn window_of(dim: &ArrayDim, window: &Window, keys: &[KeyDim]) -> Result<(), String> {
    let known = window.key.is_none_or(|key| (key as usize) < keys.len());
    let moves = window.key.is_some() == (window.scale != 0);
    let divided = window.divisor > 1;
    match (dim.cut, known && moves) {
        _ if window.divisor < 1 => Err("is divided by no positive number".into()),
        (_, true) if divided && window.key.is_none() => {
            Err("is divided, but moved by nothing".into())
        }
        (Some(_), _) => Err("is one of a piece".into()),
        (None, false) => Err("is moved by nothing, or by no key dimension".into()),
        (None, true) if window.low > window.high => Err("ends before it begins".into()),
        (None, true) => Ok(()),
    }
}

/// Whether a placement has a role for each axis, and key dimensions on axes of theirs.
pub fn placement(kind: &RelationType, mesh: &Mesh) -> Result<(), String> {
    if kind.placement.roles.len() != mesh.axes.len() {
        return Err("its placement has not one role for each axis".into());
    }
    for (axis, role) in (0u8..).zip(&kind.placement.roles) {
        if let AxisRole::Key(number) = role {
            match kind.keys.get(*number as usize) {
                None => return Err(format!("there is no key dimension {number}")),
                Some(key) if !key.axes.contains(&axis) => {
                    return Err(format!(
                        "it is placed by `{}` on an axis that does not number its blocks",
                        key.name
                    ));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}
