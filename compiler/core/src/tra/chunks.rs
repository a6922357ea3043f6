//! Operators on chunks: the shared part of the interpreters of TRA and IA.
//!
//! Every function makes the tuples of the
//! keys that it is asked for, and fails if a chunk that one of them needs is not in the map it is given; an
//! interpreter of IA gives it what is at one site. Naive: loops over elements. Must not know sites.
//!
//! ```text
//! {(0): [1 2 3], (1): [4 5]}   concat dim 0   {(): [1 2 3 4 5]}
//! ```

use super::Type;
use super::chunk::{Chunk, Content, Stop};
use super::evaluate::{Operand, combine, evaluate};
use crate::einsum::values::filled;
use ein_plan::{Fold, JoinInput, Kernel, KeyDim, Mesh, Range, Reduction, Source, piece};

fn get<'a>(content: &'a Content, key: &[u32]) -> Result<&'a Chunk, Stop> {
    content
        .get(key)
        .ok_or_else(|| Stop::Absent(format!("the tuple {key:?} is needed where it is not")))
}

/// ⋈ and λ. `inputs` are contents with their types and where their key dimensions go; `dims` are the result's.
pub fn join(
    inputs: &[(&Content, &Type, &JoinInput)],
    kernel: &Kernel,
    ranges: &[Range],
    dims: &[KeyDim],
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    let mut result = Content::new();
    for key in keys {
        let mut operands = vec![];
        for (content, input_kind, input) in inputs {
            let from: Vec<u32> = input.keys.iter().map(|k| key[*k as usize]).collect();
            let placed = input_kind.anywhere();
            operands.push(Operand {
                chunk: get(content, &from)?,
                start: placed.ranges(&from).iter().map(|(s, _)| *s).collect(),
            });
        }
        let ranges: Vec<(u64, u64)> = kernel
            .indices
            .iter()
            .zip(ranges)
            .map(|(index, range)| match range {
                Range::Whole => (0, index.extent),
                Range::Key(k) => {
                    let k = *k as usize;
                    piece(index.extent, dims[k].pieces, key[k])
                }
            })
            .collect();
        let chunk = evaluate(kernel, &ranges, &operands);
        let chunk = chunk.map_err(|error| Stop::Fault(error.to_string()))?;
        result.insert(key.clone(), chunk);
    }
    Ok(result)
}

/// Σ after ⋈; `kind` is the result's type, whose key dimensions' blocks the axes of `mesh` number.
pub fn fold(
    inputs: &[(&Content, &Type, &JoinInput)],
    kernel: &Kernel,
    ranges: &[Range],
    fold: &Fold,
    kind: &Type,
    keys: &[Vec<u32>],
    mesh: &Mesh,
) -> Result<Content, Stop> {
    let mut result = Content::new();
    for key in keys {
        let members = fold.members(&kind.keys, key, mesh);
        let joined = join(inputs, kernel, ranges, &fold.keys, &members)?;
        let together = joined
            .into_values()
            .reduce(|sum, next| match kernel.reduction {
                Some(reduction) => Chunk {
                    columns: combine(reduction, &kernel.output, &sum.columns, &next.columns),
                    shape: sum.shape,
                },
                None => sum,
            });
        let together = together.ok_or_else(|| Stop::Absent(format!("nothing makes up {key:?}")))?;
        result.insert(key.clone(), together);
    }
    Ok(result)
}

/// Every key of the input that becomes `key`, in key order: `free` are the input's key dimensions that `key`
/// does not fix, `fixed[d]` is the input's key dimension of `key[d]`.
fn members(input: &Type, key: &[u32], fixed: &[u32]) -> Vec<Vec<u32>> {
    let placed = input.anywhere();
    placed
        .all_keys()
        .filter(|from| fixed.iter().zip(key).all(|(d, k)| from[*d as usize] == *k))
        .collect()
}

/// Σ.
pub fn aggregate(
    content: &Content,
    input: &Type,
    group_by: &[u32],
    reduction: Reduction,
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    let mut result = Content::new();
    for key in keys {
        let mut sum: Option<Chunk> = None;
        for member in members(input, key, group_by) {
            let next = get(content, &member)?;
            sum = Some(match sum {
                None => next.clone(),
                Some(sum) => Chunk {
                    columns: combine(reduction, &input.array.columns, &sum.columns, &next.columns),
                    shape: sum.shape,
                },
            });
        }
        let sum = sum.ok_or_else(|| Stop::Absent(format!("nothing makes up {key:?}")))?;
        result.insert(key.clone(), sum);
    }
    Ok(result)
}

/// Tuples under new keys: output key dimension d is the input's `keys_from[d]`; `fixed` are coordinates of
/// input key dimensions that the output does not have.
pub fn rekey(
    content: &Content,
    arity: usize,
    keys_from: &[u32],
    fixed: &[(u32, u32)],
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    keys.iter()
        .map(|key| {
            let mut from = vec![0; arity];
            for (d, k) in keys_from.iter().zip(key) {
                from[*d as usize] = *k;
            }
            for (d, k) in fixed {
                from[*d as usize] = *k;
            }
            Ok((key.clone(), get(content, &from)?.clone()))
        })
        .collect()
}

/// TILE; `kind` is the result's type.
pub fn tile(
    content: &Content,
    array_dim: u32,
    kind: &Type,
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    let placed = kind.anywhere();
    keys.iter()
        .map(|key| {
            let from = &key[..key.len().saturating_sub(1)];
            let chunk = get(content, from)?;
            let mut ranges: Vec<(u64, u64)> = chunk.shape.iter().map(|n| (0, *n)).collect();
            ranges[array_dim as usize] = placed.ranges(key)[array_dim as usize];
            Ok((key.clone(), chunk.part(&ranges)))
        })
        .collect()
}

/// CONCAT; `input` and `kind` are the types before and after.
pub fn concat(
    content: &Content,
    input: &Type,
    array_dim: u32,
    kind: &Type,
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    let dim = array_dim as usize;
    let Some(cut) = input.array.dims[dim].cut else {
        return Err(Stop::Absent("the array dimension is not cut".into()));
    };
    let fixed: Vec<u32> = (0..input.keys.len() as u32).filter(|k| *k != cut).collect();
    let (before, after) = (input.anywhere(), kind.anywhere());
    let mut result = Content::new();
    for key in keys {
        let mut parts = vec![];
        for member in members(input, key, &fixed) {
            let mut start = vec![0; input.array.dims.len()];
            start[dim] = before.ranges(&member)[dim].0;
            parts.push((start, get(content, &member)?));
        }
        let shape: Vec<u64> = after.ranges(key).iter().map(|(_, n)| *n).collect();
        let chunk = Chunk::together(&shape, kind.array.columns.len(), &parts);
        result.insert(key.clone(), chunk);
    }
    Ok(result)
}

/// WINDOW; `input` and `kind` are the types before and after.
pub fn window(
    content: &Content,
    input: &Type,
    kind: &Type,
    keys: &[Vec<u32>],
) -> Result<Content, Stop> {
    for key in input.anywhere().all_keys() {
        get(content, &key)?;
    }
    let whole = super::chunk::whole(content, input);
    Ok(super::chunk::cut(&whole, kind, keys))
}

/// The whole of a source; `inputs` gives by name what is not known without it.
pub fn source(source: &Source, name: &str, kind: &Type, inputs: &dyn Fn(&str) -> Chunk) -> Chunk {
    let shape: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
    match filled(source, shape.iter().product(), kind.array.columns[0]) {
        Some(data) => Chunk {
            columns: vec![data],
            shape,
        },
        None => inputs(name),
    }
}
