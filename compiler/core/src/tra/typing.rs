//! The types of the operators: what a result must be, given its inputs.
//!
//! TRA and IA share these rules; a placement is not part of them. Every function answers with the type, or
//! with what is wrong in one line. Must not know how anything is lowered.
//!
//! ```text
//! tile dim 1 of {i: 4/2} f32[4/i, 6] by j: 6/3  gives  {i: 4/2, j: 6/3} f32[4/i, 6/j]
//! ```

use super::Type;
use ein_plan::{
    ArrayDim, ArrayType, Fold, JoinInput, Kernel, KeyDim, Mesh, Range, Reduction, piece, same_cut,
};

/// Returns whether keys and arrays fit together: unique key names, pieces from 1, cuts of the same range, every key
/// dimension cutting at most one array dimension.
pub fn check(kind: &Type) -> Result<(), String> {
    for (k, key) in kind.keys.iter().enumerate() {
        if key.pieces == 0 {
            return Err(format!("key dimension `{}` has no piece", key.name));
        }
        if kind.keys[..k].iter().any(|other| other.name == key.name) {
            return Err(format!("two key dimensions are named `{}`", key.name));
        }
        let cuts = kind
            .array
            .dims
            .iter()
            .filter(|dim| dim.cut == Some(k as u32))
            .count();
        if cuts > 1 {
            return Err(format!(
                "key dimension `{}` cuts two array dimensions",
                key.name
            ));
        }
    }
    for (d, dim) in kind.array.dims.iter().enumerate() {
        if let Some(window) = &dim.window {
            ein_plan::verify::window_of(dim, window, &kind.keys)
                .map_err(|what| format!("the window of array dimension {d} {what}"))?;
        }
        if let Some(cut) = dim.cut {
            match kind.keys.get(cut as usize) {
                None => return Err(format!("array dimension {d} is cut by no key dimension")),
                Some(key) if key.extent != dim.extent => {
                    return Err(format!(
                        "array dimension {d} has extent {} but `{}` cuts {}",
                        dim.extent, key.name, key.extent
                    ));
                }
                Some(_) => {}
            }
        }
    }
    if kind.array.columns.is_empty() {
        return Err("the arrays have no column".into());
    }
    if kind.anywhere().tuples().is_none() {
        return Err("there are more tuples than can be counted".into());
    }
    Ok(())
}

/// ⋈ and λ. The key dimensions of the result are taken from `keys`, which the inputs and ranges must fit.
pub fn join(
    inputs: &[(&Type, &JoinInput)],
    kernel: &Kernel,
    ranges: &[Range],
    keys: &[KeyDim],
) -> Result<Type, String> {
    if inputs.len() != kernel.operands.len() {
        return Err(format!(
            "the kernel has {} operands but {} relations are joined",
            kernel.operands.len(),
            inputs.len()
        ));
    }
    if ranges.len() != kernel.indices.len() {
        return Err(format!(
            "the kernel has {} indices but {} ranges are given",
            kernel.indices.len(),
            ranges.len()
        ));
    }
    for (o, ((kind, input), operand)) in inputs.iter().zip(&kernel.operands).enumerate() {
        if input.keys.len() != kind.keys.len() {
            return Err(format!(
                "operand {o} does not say where each key dimension goes"
            ));
        }
        for (d, (key, to)) in kind.keys.iter().zip(&input.keys).enumerate() {
            match keys.get(*to as usize) {
                Some(target) if same_cut(target, key) => {}
                Some(target) => {
                    let KeyDim { name, .. } = key;
                    return Err(format!(
                        "operand {o}: key dimension `{name}` is {key} but `{}` is {target}",
                        target.name
                    ));
                }
                None => return Err(format!("operand {o}: there is no key dimension {to}")),
            }
            if input.keys[..d].contains(to) {
                return Err(format!("operand {o}: two key dimensions meet"));
            }
        }
        let shape: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
        if shape != operand.shape || kind.array.columns != operand.columns {
            return Err(format!("operand {o} is not what the kernel expects"));
        }
    }
    for (index, range) in kernel.indices.iter().zip(ranges) {
        if let Range::Key(key) = range {
            match keys.get(*key as usize) {
                Some(target) if target.extent == index.extent => {}
                _ => {
                    return Err(format!(
                        "index `{}` has another extent than its key dimension",
                        index.name
                    ));
                }
            }
        }
    }
    let dims = kernel
        .indices
        .iter()
        .zip(ranges)
        .take(kernel.output_rank as usize)
        .map(|(index, range)| {
            let cut = match range {
                Range::Whole => None,
                Range::Key(key) => Some(*key),
            };
            ArrayDim::new(index.extent, cut)
        })
        .collect();
    Ok(Type {
        keys: keys.to_vec(),
        array: ArrayType {
            dims,
            columns: kernel.output.clone(),
        },
    })
}

/// Σ after ⋈, of a join of that type: what is kept becomes `keys`.
pub fn fold(
    joined: &Type,
    fold: &Fold,
    kernel: &Kernel,
    ranges: &[Range],
    keys: &[KeyDim],
    mesh: &Mesh,
) -> Result<Type, String> {
    ein_plan::verify::kept(fold, keys, &joined.array, mesh)?;
    ein_plan::verify::reduced(fold, kernel, ranges)?;
    Ok(Type {
        keys: keys.to_vec(),
        array: ein_plan::verify::folded(fold, joined.array.clone()),
    })
}

/// WINDOW: `result` is the type that is stated.
pub fn window(input: &Type, result: &Type) -> Result<Type, String> {
    let from = (input.keys.clone(), input.array.clone());
    ein_plan::verify::windows(from, &result.keys, &result.array)?;
    Ok(result.clone())
}

/// Windows are read, never re-arranged.
fn no_windows(input: &Type) -> Result<(), String> {
    match input.array.dims.iter().any(|dim| dim.window.is_some()) {
        true => Err("it re-arranges windows".into()),
        false => Ok(()),
    }
}

/// Σ.
pub fn aggregate(input: &Type, group_by: &[u32], reduction: Reduction) -> Result<Type, String> {
    no_windows(input)?;
    let mut keys = vec![];
    for (d, key) in group_by.iter().enumerate() {
        match input.keys.get(*key as usize) {
            Some(dim) if !group_by[..d].contains(key) => keys.push(dim.clone()),
            _ => {
                return Err(format!(
                    "there is no key dimension {key} to group by, or it is named twice"
                ));
            }
        }
    }
    let fits = input.array.columns.first().is_some_and(|first| {
        first.compute() == *first && reduction.carrier(*first) == input.array.columns
    });
    if !fits {
        return Err(format!(
            "the arrays are no carriers of `{}`",
            reduction.name()
        ));
    }
    let mut array = input.array.clone();
    for dim in &mut array.dims {
        dim.cut = match dim.cut {
            None => None,
            Some(cut) => match group_by.iter().position(|key| *key == cut) {
                Some(at) => Some(at as u32),
                None => return Err("a key dimension that cuts the arrays is not kept".into()),
            },
        };
    }
    Ok(Type { keys, array })
}

/// REKEY.
pub fn rekey(input: &Type, keys: &[u32]) -> Result<Type, String> {
    no_windows(input)?;
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..input.keys.len() as u32) {
        return Err("the keys are not a permutation".into());
    }
    let mut array = input.array.clone();
    for dim in &mut array.dims {
        dim.cut = dim
            .cut
            .and_then(|cut| keys.iter().position(|key| *key == cut))
            .map(|at| at as u32);
    }
    Ok(Type {
        keys: keys
            .iter()
            .map(|key| input.keys[*key as usize].clone())
            .collect(),
        array,
    })
}

/// σ.
pub fn filter(input: &Type, key: u32, value: u32) -> Result<Type, String> {
    no_windows(input)?;
    let Some(dim) = input.keys.get(key as usize) else {
        return Err(format!("there is no key dimension {key}"));
    };
    if value >= dim.pieces {
        return Err(format!("`{}` has no piece {value}", dim.name));
    }
    let (_, extent) = piece(dim.extent, dim.pieces, value);
    let mut result = without_key(input, key);
    for (dim, before) in result.array.dims.iter_mut().zip(&input.array.dims) {
        if before.cut == Some(key) {
            dim.extent = extent;
        }
    }
    Ok(result)
}

/// TILE by a key dimension.
pub fn tile(input: &Type, array_dim: u32, key: &KeyDim) -> Result<Type, String> {
    no_windows(input)?;
    let mut result = input.clone();
    match result.array.dims.get_mut(array_dim as usize) {
        Some(dim) if dim.cut.is_none() && dim.extent == key.extent => {
            dim.cut = Some(input.keys.len() as u32);
        }
        _ => {
            return Err(format!(
                "array dimension {array_dim} is not whole, or has another extent"
            ));
        }
    }
    result.keys.push(key.clone());
    Ok(result)
}

/// CONCAT.
pub fn concat(input: &Type, array_dim: u32) -> Result<Type, String> {
    no_windows(input)?;
    match input
        .array
        .dims
        .get(array_dim as usize)
        .and_then(|dim| dim.cut)
    {
        Some(key) => Ok(without_key(input, key)),
        None => Err(format!("array dimension {array_dim} is not cut")),
    }
}

/// The type without a key dimension; what it cut is whole.
fn without_key(input: &Type, key: u32) -> Type {
    let mut result = input.clone();
    result.keys.remove(key as usize);
    for dim in &mut result.array.dims {
        dim.cut = match dim.cut {
            Some(cut) if cut == key => None,
            Some(cut) if cut > key => Some(cut - 1),
            other => other,
        };
    }
    result
}
