//! Lowering: Einstein IR → TRA, for a given chunking.
//!
//! A statement becomes a join of its operands' chunks whose kernel is the statement's own, run on chunks. An
//! operand's dimension may be cut only where it is read by an index's bare name whose range is cut the same
//! way; everything else (affine positions, gathers, numbers, an index used twice) needs it whole. If a reduced
//! index is cut, the join gives carriers, which are aggregated over the key and then finished. Where a tensor
//! rests cut otherwise than a statement gives or needs it, TILE and CONCAT re-chunk it. Must not know why a
//! chunking was chosen, nor sites.
//!
//! ```text
//! C = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]   with k in 3 pieces:
//! C.partial = join(A{k}, B{k}) …;  C = aggregate sum C.partial keep {}
//! ```

use super::operands::split_operands;
use super::{Chunking, Names, Operation, Output, Program, Relation, Type, finish, typing};
use crate::einsum::{self, Definition, TensorId};
use ein_plan::{
    ArrayDim, ArrayType, JoinInput, Kernel, KeyDim, Node, Range, Reduction, RelationId,
};
use std::collections::BTreeMap;

/// Lowers a program. The chunking has one entry a tensor, each with one number from 1 an index or dimension.
pub fn from_einsum(program: &einsum::Program, chunking: &Chunking) -> Result<Program, String> {
    check_chunking(program, chunking)?;
    let mut lowering = Lowering {
        program,
        chunking,
        dim_names: dim_names(program),
        forms: vec![vec![]; program.tensors.len()],
        names: Names::taken(program.tensors.iter().map(|t| t.name.as_str())),
        relations: vec![],
    };
    for (number, tensor) in program.tensors.iter().enumerate() {
        let id = TensorId(number as u32);
        match &tensor.definition {
            Definition::Source(_) => {}
            Definition::Statement { kernel, operands } => {
                lowering.statement(id, kernel, operands)?
            }
        }
    }
    let mut outputs = vec![];
    for output in &program.outputs {
        let pieces = &chunking.dims[output.tensor.0 as usize];
        outputs.push(Output {
            name: program.tensor(output.tensor).name.clone(),
            relation: lowering.form(output.tensor, pieces)?,
            file: output.file.clone(),
            origin: output.origin,
        });
    }
    Ok(Program {
        relations: lowering.relations,
        outputs,
        files: program.files.clone(),
    })
}

struct Lowering<'a> {
    program: &'a einsum::Program,
    chunking: &'a Chunking,
    /// By tensor and dimension: what a key dimension that cuts it is called.
    dim_names: Vec<Vec<String>>,
    /// By tensor: the relations that hold it, with the pieces of each dimension.
    forms: Vec<Vec<(Vec<u32>, RelationId)>>,
    names: Names,
    relations: Vec<Relation>,
}

impl Lowering<'_> {
    /// The relation of a tensor cut into those pieces; made if it is not there yet.
    fn form(&mut self, tensor: TensorId, pieces: &[u32]) -> Result<RelationId, String> {
        let at = tensor.0 as usize;
        if let Some((_, relation)) = self.forms[at].iter().find(|(form, _)| form == pieces) {
            return Ok(*relation);
        }
        let Definition::Source(source) = &self.program.tensor(tensor).definition else {
            let (_, rests) = self.forms[at]
                .iter()
                .find(|(form, _)| *form == self.chunking.dims[at])
                .ok_or("a tensor is used before it is made")?;
            return self.rechunk(tensor, *rests, pieces, "");
        };
        // What can be made anywhere is made as it is needed; what is read is read once and then re-chunked.
        let rests = &self.chunking.dims[at];
        if !source.is_free() && rests != pieces {
            let rests = self.form(tensor, rests)?;
            return self.rechunk(tensor, rests, pieces, "");
        }
        let kind = self.kind(tensor, pieces);
        let operation = Operation::Source {
            name: self.program.tensor(tensor).name.clone(),
            source: source.clone(),
        };
        let suffix = if rests == pieces { "" } else { "again" };
        let relation = self.push(tensor, suffix, kind, operation);
        self.forms[at].push((pieces.to_vec(), relation));
        Ok(relation)
    }

    fn statement(
        &mut self,
        tensor: TensorId,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Result<(), String> {
        let at = tensor.0 as usize;
        let pieces = &self.chunking.indices[at];
        let target = &self.chunking.dims[at];
        let rank = kernel.output_rank as usize;
        let (mut kernel, reads) = split_operands(kernel, pieces);

        let mut keys = vec![];
        let mut ranges = vec![];
        for (index, pieces) in kernel.indices.iter().zip(pieces) {
            ranges.push(if *pieces > 1 {
                keys.push(KeyDim {
                    name: index.name.clone(),
                    extent: index.extent,
                    pieces: *pieces,
                });
                Range::Key(keys.len() as u32 - 1)
            } else {
                Range::Whole
            });
        }
        let mut inputs = vec![];
        for (operand, cuts) in &reads {
            let form: Vec<u32> = cuts
                .iter()
                .map(|cut| cut.map_or(1, |index| pieces[index.0 as usize]))
                .collect();
            let relation = self.form(operands[*operand as usize], &form)?;
            let mut to = vec![0; self.relations[relation.0 as usize].kind.keys.len()];
            for (dim, cut) in self.relations[relation.0 as usize]
                .kind
                .array
                .dims
                .iter()
                .zip(cuts)
            {
                if let (Some(key), Some(index)) = (dim.cut, cut)
                    && let Range::Key(target) = ranges[index.0 as usize]
                {
                    to[key as usize] = target;
                }
            }
            inputs.push(JoinInput { relation, keys: to });
        }

        // The carriers of a reduction that is cut have their own columns; `split` says which reduction it is.
        let value = kernel.graph.dtype(kernel.root);
        let stored = kernel.output.clone();
        let split = kernel
            .reduction
            .filter(|_| pieces[rank..].iter().any(|pieces| *pieces > 1));
        if let Some(reduction) = split {
            kernel.finish = false;
            kernel.output = reduction.carrier(value);
        }
        let kinds: Vec<(Type, JoinInput)> = inputs
            .iter()
            .map(|input| {
                let kind = self.relations[input.relation.0 as usize].kind.clone();
                (kind, input.clone())
            })
            .collect();
        let kinds: Vec<(&Type, &JoinInput)> = kinds.iter().map(|(k, i)| (k, i)).collect();
        let kind = typing::join(&kinds, &kernel, &ranges, &keys)?;
        let indices = kernel.indices[..rank].to_vec();
        let may_be_empty =
            kernel.guard.is_some() || kernel.indices[rank..].iter().any(|i| i.extent == 0);
        let natural = kind.pieces();
        let suffix = match split {
            Some(_) => "partial",
            None if natural == *target => "",
            None => "given",
        };
        let operation = Operation::Join {
            inputs,
            kernel,
            ranges,
        };
        let mut result = self.push(tensor, suffix, kind, operation);

        if let Some(reduction) = split {
            // Cutting the carriers as the tensor will rest makes the aggregation a reduce-scatter.
            let tiled: Vec<u32> = natural
                .iter()
                .zip(target)
                .map(|(given, wanted)| if *given == 1 { *wanted } else { *given })
                .collect();
            let carriers = self.rechunk(tensor, result, &tiled, "partial")?;
            result = self.aggregate(tensor, carriers, reduction, tiled == *target)?;
            let suffix = if tiled == *target { "" } else { "given" };
            if reduction.is_arg() && may_be_empty {
                let check = finish::something_chosen(reduction, value, &indices);
                let check = self.map(tensor, &[result], check, "check")?;
                let kernel = finish::chosen(reduction, value, &indices, stored[0]);
                result = self.map(tensor, &[result, check], kernel, suffix)?;
            } else if let Some(kernel) = finish::kernel(reduction, value, &indices, stored[0]) {
                result = self.map(tensor, &[result], kernel, suffix)?;
            }
        }
        let form = self.relations[result.0 as usize].kind.pieces();
        self.forms[at].push((form, result));
        let rests = self.rechunk(tensor, result, target, "rests")?;
        debug_assert_eq!(self.relations[rests.0 as usize].kind.pieces(), *target);
        Ok(())
    }

    /// Σ of carriers over every key dimension that cuts no array dimension.
    fn aggregate(
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
    fn map(
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
            },
        };
        Ok(self.push(tensor, suffix, kind, operation))
    }

    /// TILE and CONCAT from one chunking to another. What is whole is tiled first, so that a later CONCAT
    /// exchanges pieces instead of gathering everything in one place. Finished forms are remembered; `what`
    /// names those that are not (`partial`) or the last one (`rests`: the tensor itself).
    fn rechunk(
        &mut self,
        tensor: TensorId,
        from: RelationId,
        target: &[u32],
        what: &str,
    ) -> Result<RelationId, String> {
        let mut steps = vec![];
        let start = self.relations[from.0 as usize].kind.pieces();
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if *have == 1 && *want > 1 {
                steps.push((dim, true));
            }
        }
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if *have > 1 && have != want {
                steps.push((dim, false));
            }
        }
        for (dim, (have, want)) in start.iter().zip(target).enumerate() {
            if *have > 1 && have != want && *want > 1 {
                steps.push((dim, true));
            }
        }
        let mut relation = from;
        let last = steps.len();
        for (number, (dim, cut)) in steps.into_iter().enumerate() {
            let kind = &self.relations[relation.0 as usize].kind;
            let array_dim = dim as u32;
            let (kind, operation) = if cut {
                let key = KeyDim {
                    name: self.key_name(tensor, dim, kind),
                    extent: kind.array.dims[dim].extent,
                    pieces: target[dim],
                };
                let kind = typing::tile(kind, array_dim, &key)?;
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
                let form = self.relations[relation.0 as usize].kind.pieces();
                let forms = &mut self.forms[tensor.0 as usize];
                if !forms.iter().any(|(other, _)| *other == form) {
                    forms.push((form, relation));
                }
            }
        }
        Ok(relation)
    }

    /// The type of a tensor's own relation, cut into those pieces.
    fn kind(&self, tensor: TensorId, pieces: &[u32]) -> Type {
        let described = self.program.tensor(tensor);
        let mut kind = Type {
            keys: vec![],
            array: ArrayType {
                dims: vec![],
                columns: vec![described.dtype],
            },
        };
        for (dim, (extent, pieces)) in described.shape.iter().zip(pieces).enumerate() {
            let cut = (*pieces > 1).then_some(kind.keys.len() as u32);
            if cut.is_some() {
                kind.keys.push(KeyDim {
                    name: self.key_name(tensor, dim, &kind),
                    extent: *extent,
                    pieces: *pieces,
                });
            }
            kind.array.dims.push(ArrayDim {
                extent: *extent,
                cut,
            });
        }
        kind
    }

    /// A name for a new key dimension of a relation.
    fn key_name(&self, tensor: TensorId, dim: usize, kind: &Type) -> String {
        let mut name = self.dim_names[tensor.0 as usize][dim].clone();
        while kind.keys.iter().any(|key| key.name == name) {
            name.push('\'');
        }
        name
    }

    fn push(
        &mut self,
        tensor: TensorId,
        suffix: &str,
        kind: Type,
        operation: Operation,
    ) -> RelationId {
        let described = self.program.tensor(tensor);
        let mut name = described.name.clone();
        if !suffix.is_empty() {
            name = self.names.fresh(&format!("{name}.{suffix}"));
        }
        self.relations.push(Relation {
            name,
            tensor: described.name.clone(),
            kind,
            operation,
            origin: described.origin,
        });
        RelationId(self.relations.len() as u32 - 1)
    }
}

/// What the dimensions of each tensor are called: by the indices of its own statement, or of the first that
/// reads it by bare names; else `d0`, `d1`, …
fn dim_names(program: &einsum::Program) -> Vec<Vec<String>> {
    let mut found: BTreeMap<(u32, usize), String> = BTreeMap::new();
    for (number, tensor) in program.tensors.iter().enumerate() {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        for (dim, index) in kernel.indices[..kernel.output_rank as usize]
            .iter()
            .enumerate()
        {
            found.insert((number as u32, dim), index.name.clone());
        }
        for (_, node, _) in kernel.graph.iter() {
            let Node::Read {
                operand, positions, ..
            } = node
            else {
                continue;
            };
            for (dim, position) in positions.iter().enumerate() {
                if let Some(index) = kernel.graph.as_index(*position) {
                    found
                        .entry((operands[*operand as usize].0, dim))
                        .or_insert_with(|| kernel.indices[index.0 as usize].name.clone());
                }
            }
        }
    }
    program
        .tensors
        .iter()
        .enumerate()
        .map(|(number, tensor)| {
            (0..tensor.shape.len())
                .map(|dim| {
                    found
                        .get(&(number as u32, dim))
                        .cloned()
                        .unwrap_or_else(|| format!("d{dim}"))
                })
                .collect()
        })
        .collect()
}

fn check_chunking(program: &einsum::Program, chunking: &Chunking) -> Result<(), String> {
    let fits = chunking.indices.len() == program.tensors.len()
        && chunking.dims.len() == program.tensors.len()
        && program
            .tensors
            .iter()
            .zip(&chunking.indices)
            .zip(&chunking.dims)
            .all(|((tensor, indices), dims)| {
                let count = match &tensor.definition {
                    Definition::Source(_) => 0,
                    Definition::Statement { kernel, .. } => kernel.indices.len(),
                };
                indices.len() == count
                    && dims.len() == tensor.shape.len()
                    && indices.iter().chain(dims).all(|pieces| *pieces > 0)
            });
    if fits {
        Ok(())
    } else {
        Err("the chunking does not fit the program".into())
    }
}
