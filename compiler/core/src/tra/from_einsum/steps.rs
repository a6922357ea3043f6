//! Steps from the result of a join to the relation that rests as the chunking says: aggregation, kernels that keep the keys, TILE and CONCAT.
//!
//! Must not know which of them a statement needs.
//!
//! ```text
//! C.partial {k: 6/3, i: 4/1} f32[i, 8]   ->   C = aggregate sum C.partial keep {i};   C.cut = tile C 1
//! ```

use super::{Lowering, key_dim};
use crate::einsum::TensorId;
use crate::tra::{Cut, Operation, Type, typing};
use ein_plan::{Fold, Index, JoinInput, Kernel, KeyDim, Range, Reduction, RelationId};

impl Lowering<'_> {
    /// Returns whether and how a statement's joined tuples are combined as they are made, and the key dimensions of what
    /// comes out; `keys` are those of the join.
    pub(super) fn fold(
        &self,
        at: usize,
        indices: &[Index],
        ranges: &[Range],
        keys: &[KeyDim],
    ) -> Option<(Fold, Vec<KeyDim>)> {
        let addends = self.chunking.addends.get(at)?;
        let (mut keep, mut left) = (vec![], vec![]);
        for ((index, range), addend) in indices.iter().zip(ranges).zip(addends) {
            let Range::Key(key) = range else { continue };
            match addend {
                Some(cut) if cut.is_whole() => continue,
                Some(cut) => left.push(key_dim(index, cut)),
                None => left.push(keys[*key as usize].clone()),
            }
            keep.push(*key);
        }
        let fold = Fold {
            keys: keys.to_vec(),
            keep,
        };
        (left != keys).then_some((fold, left))
    }

    /// Σ of carriers over every key dimension that cuts no array dimension.
    pub(super) fn aggregate(
        &mut self,
        tensor: TensorId,
        input: RelationId,
        reduction: Reduction,
        rests: bool,
    ) -> Result<RelationId, String> {
        let kind = &self.relations[input.0 as usize].kind;
        let group_by: Vec<u32> = (0..kind.keys.len() as u32)
            .filter(|key| kind.array.dims.iter().any(|dim| dim.cut == Some(*key)))
            .collect();
        let kind = typing::aggregate(kind, &group_by, reduction)?;
        let last =
            !reduction.needs_finish() && kind.array.columns == [self.program.tensor(tensor).dtype];
        let suffix = match (last, rests) {
            (true, true) => "",
            (true, false) => "given",
            (false, _) => "carrier",
        };
        let operation = Operation::Aggregate {
            input,
            group_by,
            reduction,
        };
        Ok(self.push(tensor, suffix, kind, operation))
    }

    /// A kernel of relations that all have one key and one chunking, and keep them.
    pub(super) fn map(
        &mut self,
        tensor: TensorId,
        inputs: &[RelationId],
        kernel: Kernel,
        suffix: &str,
    ) -> Result<RelationId, String> {
        let first = self.relations[inputs[0].0 as usize].kind.clone();
        let mut ranges: Vec<Range> = first
            .array
            .dims
            .iter()
            .map(|dim| dim.cut.map_or(Range::Whole, Range::Key))
            .collect();
        ranges.resize(kernel.indices.len(), Range::Whole);
        let inputs: Vec<JoinInput> = inputs
            .iter()
            .map(|input| JoinInput {
                relation: *input,
                keys: (0..first.keys.len() as u32).collect(),
            })
            .collect();
        let kinds: Vec<(&Type, &JoinInput)> = inputs
            .iter()
            .map(|input| (&self.relations[input.relation.0 as usize].kind, input))
            .collect();
        let kind = typing::join(&kinds, &kernel, &ranges, &first.keys)?;
        let operation = match inputs[..] {
            [JoinInput { relation, .. }] => Operation::Transform {
                input: relation,
                kernel,
                ranges,
            },
            _ => Operation::Join {
                inputs,
                kernel,
                ranges,
                fold: None,
            },
        };
        Ok(self.push(tensor, suffix, kind, operation))
    }

    /// TILE and CONCAT from one chunking to another. What is whole is tiled first, so that a later CONCAT
    /// exchanges pieces instead of gathering everything in one place. Finished forms are remembered; `what`
    /// names those that are not (`partial`) or the last one (`rests`: the tensor itself).
    pub(super) fn rechunk(
        &mut self,
        tensor: TensorId,
        from: RelationId,
        target: &[Cut],
        what: &str,
    ) -> Result<RelationId, String> {
        let mut steps = vec![];
        let start = self.relations[from.0 as usize].kind.cuts();
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if have.is_whole() && !want.is_whole() {
                steps.push((dim, true));
            }
        }
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if !have.is_whole() && have != want {
                steps.push((dim, false));
            }
        }
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if !have.is_whole() && have != want && !want.is_whole() {
                steps.push((dim, true));
            }
        }
        let mut relation = from;
        let last = steps.len();
        for (number, (dim, cut)) in steps.into_iter().enumerate() {
            let kind = &self.relations[relation.0 as usize].kind;
            let array_dim = dim as u32;
            let (kind, operation) = if cut {
                let index = Index {
                    name: self.key_name(tensor, dim, kind),
                    extent: kind.array.dims[dim].extent,
                };
                let kind = typing::tile(kind, array_dim, &key_dim(&index, &target[dim]))?;
                (
                    kind,
                    Operation::Tile {
                        input: relation,
                        array_dim,
                    },
                )
            } else {
                let kind = typing::concat(kind, array_dim)?;
                (
                    kind,
                    Operation::Concat {
                        input: relation,
                        array_dim,
                    },
                )
            };
            let suffix = match what {
                "rests" if number + 1 == last => "",
                "partial" => "partial.cut",
                _ if kind.keys.is_empty() => "whole",
                _ => "cut",
            };
            relation = self.push(tensor, suffix, kind, operation);
            if what != "partial" {
                let form = self.relations[relation.0 as usize].kind.cuts();
                let forms = &mut self.forms[tensor.0 as usize];
                if !forms.iter().any(|(other, _)| *other == form) {
                    forms.push((form, relation));
                }
            }
        }
        Ok(relation)
    }
}
