//! Lowering: Einstein IR → TRA, for a given chunking.
//!
//! A statement becomes a join of its operands' chunks whose kernel is the statement's own, run on chunks. An
//! operand's dimension may be cut only where it is read by an index's bare name whose range is cut the same
//! way. What is read at affine positions, or by an index used twice, may be had in windows; everything else (gathers) is needed whole. If a reduced
//! index is cut, the join gives carriers, which are aggregated over the key and then finished. Where a tensor
//! rests cut otherwise than a statement gives or needs it, TILE and CONCAT re-chunk it. Must not know why a
//! chunking was chosen, nor sites; `loops` adds what goes from round to round, `steps` what a
//! result goes through until it rests.
//!
//! ```text
//! C = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]   with k in 3 pieces:
//! C.partial = join(A{k}, B{k}) …;  C = aggregate sum C.partial keep {}
//! ```

mod loops;
mod steps;
mod windows;

use super::blocks::Nesting;
use super::names::dim_names;
use super::operands::split_operands;
use super::reads::{Part, Windows};
use super::{Chunking, Cut, Names, Operation, Output, Program, Relation, Type, finish, typing};
use crate::einsum::{self, Definition, TensorId};
use ein_plan::{
    ArrayDim, ArrayType, Block, DType, Index, IndexId, JoinInput, Kernel, KeyDim, Range, Reduction,
    RelationId,
};

/// A lowered program, and the relations that its tensors are.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The program.
    pub program: Program,
    /// By tensor: the join that its statement became; none for sources.
    pub statements: Vec<Option<RelationId>>,
    /// By tensor: the aggregation of its carriers, if the join left them apart.
    pub aggregates: Vec<Option<RelationId>>,
    /// By tensor: its relation as it rests; none where it is only read in another form.
    pub rests: Vec<Option<RelationId>>,
}

/// Lowers a program. The chunking has one entry a tensor, each with one cut an index or dimension.
pub fn from_einsum(program: &einsum::Program, chunking: &Chunking) -> Result<Program, String> {
    lower(program, chunking).map(|lowered| lowered.program)
}

/// [`from_einsum`], with what became of each tensor.
pub fn lower(program: &einsum::Program, chunking: &Chunking) -> Result<Lowered, String> {
    check_chunking(program, chunking)?;
    let none = || vec![None; program.tensors.len()];
    let mut lowering = Lowering {
        program,
        chunking,
        dim_names: dim_names(program),
        forms: vec![vec![]; program.tensors.len()],
        windows: vec![vec![]; program.tensors.len()],
        names: Names::taken(program.tensors.iter().map(|t| t.name.as_str())),
        relations: vec![],
        statements: none(),
        aggregates: none(),
        blocks: loops::headers(program),
        nesting: Nesting::new(program.blocks.len()),
    };
    for (number, tensor) in program.tensors.iter().enumerate() {
        let id = TensorId(number as u32);
        lowering.go_to(tensor)?;
        match &tensor.definition {
            Definition::Source(_) => {}
            Definition::Loop(value) => lowering.loop_value(id, *value)?,
            Definition::Statement { kernel, operands } => {
                lowering.statement(id, kernel, operands)?
            }
        }
    }
    let left = lowering.nesting.leave(0);
    lowering.moves(left)?;
    let mut outputs = vec![];
    for output in &program.outputs {
        let cuts = &chunking.dims[output.tensor.0 as usize];
        outputs.push(Output {
            name: program.tensor(output.tensor).name.clone(),
            relation: lowering.form(output.tensor, cuts)?,
            replaces: output.replaces.clone(),
            file: output.file.clone(),
            asserts: output.asserts.clone(),
            complex: output.complex,
            origin: output.origin,
        });
    }
    let at_rest = lowering
        .forms
        .iter()
        .zip(&chunking.dims)
        .map(|(forms, dims)| {
            let form = forms.iter().find(|(form, _)| form == dims);
            form.map(|(_, relation)| *relation)
        });
    let mut lowered = Lowered {
        rests: at_rest.collect(),
        statements: lowering.statements,
        aggregates: lowering.aggregates,
        program: Program {
            relations: lowering.relations,
            blocks: lowering.blocks,
            outputs,
            files: program.files.clone(),
            mesh: chunking.mesh.clone(),
        },
    };
    if !program.blocks.is_empty() {
        lowered.arrange();
    }
    Ok(lowered)
}

struct Lowering<'a> {
    program: &'a einsum::Program,
    chunking: &'a Chunking,
    /// By tensor and dimension: what a key dimension that cuts it is called.
    dim_names: Vec<Vec<String>>,
    /// By tensor: the relations that hold it, with the cut of each dimension.
    forms: Vec<Vec<(Vec<Cut>, RelationId)>>,
    /// By tensor: the relations that hold windows of it.
    windows: Vec<Vec<RelationId>>,
    names: Names,
    relations: Vec<Relation>,
    statements: Vec<Option<RelationId>>,
    aggregates: Vec<Option<RelationId>>,
    blocks: Vec<Block>,
    nesting: Nesting,
}

/// The carriers that the join of a statement gives.
struct Carriers<'a> {
    reduction: Reduction,
    /// True if those of one element are still in several tuples.
    apart: bool,
    /// True if there may be no point to reduce.
    may_be_empty: bool,
    /// The type of the reduced values.
    value: DType,
    /// The type of the tensor.
    stored: DType,
    /// The indices of the output.
    indices: &'a [Index],
}

impl Lowering<'_> {
    /// The relation of a tensor that is cut so; made if it is not there yet.
    fn form(&mut self, tensor: TensorId, cuts: &[Cut]) -> Result<RelationId, String> {
        let at = tensor.0 as usize;
        if let Some((_, relation)) = self.forms[at].iter().find(|(form, _)| form == cuts) {
            return Ok(*relation);
        }
        let Definition::Source(source) = &self.program.tensor(tensor).definition else {
            let (_, rests) = self.forms[at]
                .iter()
                .find(|(form, _)| *form == self.chunking.dims[at])
                .ok_or("a tensor is used before it is made")?;
            return self.rechunk(tensor, *rests, cuts, "");
        };
        // What can be made anywhere is made as it is needed; what is read is read once and then re-chunked.
        let rests = &self.chunking.dims[at];
        if !source.is_free() && rests != cuts {
            let rests = self.form(tensor, rests)?;
            return self.rechunk(tensor, rests, cuts, "");
        }
        let kind = self.kind(tensor, cuts);
        let operation = Operation::Source {
            name: self.program.tensor(tensor).name.clone(),
            source: source.clone(),
        };
        let suffix = if rests == cuts { "" } else { "again" };
        let relation = self.push(tensor, suffix, kind, operation);
        self.forms[at].push((cuts.to_vec(), relation));
        Ok(relation)
    }

    /// Which indices of a statement move the windows of its operands, and which operands are read in windows.
    fn windowed(&self, at: usize, pieces: &[u32], operands: &[TensorId]) -> (Vec<bool>, Vec<bool>) {
        let mut moving = self.chunking.moving.get(at).cloned().unwrap_or_default();
        for (moves, pieces) in moving.iter_mut().zip(pieces) {
            *moves &= *pieces > 1;
        }
        let mut windowed = self.chunking.windowed.get(at).cloned().unwrap_or_default();
        if moving.is_empty() {
            windowed.clear();
        }
        windowed.resize(operands.len(), false);
        (moving, windowed)
    }

    fn statement(
        &mut self,
        tensor: TensorId,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Result<(), String> {
        let at = tensor.0 as usize;
        let index_cuts = &self.chunking.indices[at];
        let target = &self.chunking.dims[at];
        let rank = kernel.output_rank as usize;
        let pieces: Vec<u32> = index_cuts.iter().map(|cut| cut.pieces).collect();
        let (moving, windowed) = self.windowed(at, &pieces, operands);
        let windows = Windows::Of {
            operands: &windowed,
            moving: &moving,
        };
        let (mut kernel, reads) = split_operands(kernel, &pieces, &windows);

        let (keys, ranges) = keys_of(&kernel.indices, index_cuts);
        let fold = self.fold(at, &kernel.indices, &ranges, &keys);
        let inputs = reads
            .iter()
            .map(|(operand, parts)| {
                let cuts = (&index_cuts[..], &ranges[..]);
                self.input(operands[*operand as usize], parts, &kernel.indices, cuts)
            })
            .collect::<Result<Vec<_>, _>>()?;

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
        let mut kind = typing::join(&kinds, &kernel, &ranges, &keys)?;
        let fold = fold.map(|(fold, keys)| (fold, keys, &self.chunking.mesh));
        if let Some((fold, keys, mesh)) = &fold {
            kind = typing::fold(&kind, fold, &kernel, &ranges, keys, mesh)?;
        }
        let indices = kernel.indices[..rank].to_vec();
        let may_be_empty =
            kernel.guard.is_some() || kernel.indices[rank..].iter().any(|i| i.extent == 0);
        let natural = kind.cuts();
        // Whether carriers of one element are still apart.
        let apart = kind.keys.len() > natural.iter().filter(|cut| !cut.is_whole()).count();
        let finished =
            split.is_none_or(|reduction| !reduction.needs_finish() && stored == kernel.output);
        let suffix = match (apart, finished) {
            (true, _) => "partial",
            (false, false) => "carrier",
            (false, true) if natural == *target => "",
            (false, true) => "given",
        };
        let operation = Operation::Join {
            inputs,
            kernel,
            ranges,
            fold: fold.map(|(fold, _, _)| fold),
        };
        let mut result = self.push(tensor, suffix, kind, operation);
        self.statements[at] = Some(result);

        if let Some(reduction) = split {
            let carriers = Carriers {
                reduction,
                apart,
                may_be_empty,
                value,
                stored: stored[0],
                indices: &indices,
            };
            result = self.finish(tensor, result, &natural, &carriers)?;
        }
        let form = self.relations[result.0 as usize].kind.cuts();
        self.forms[at].push((form, result));
        let rests = self.rechunk(tensor, result, target, "rests")?;
        debug_assert_eq!(self.relations[rests.0 as usize].kind.cuts(), *target);
        Ok(())
    }

    /// The input of a join that reads these parts of a tensor.
    fn input(
        &mut self,
        tensor: TensorId,
        parts: &[Part],
        indices: &[Index],
        (index_cuts, ranges): (&[Cut], &[Range]),
    ) -> Result<JoinInput, String> {
        let windows = parts.iter().any(|part| matches!(part, Part::Window { .. }));
        if windows {
            return self.windows(tensor, parts, indices, (index_cuts, ranges));
        }
        let cut_by = |part: &Part| match part.piece() {
            Some(IndexId(index)) => index_cuts[index as usize].clone(),
            None => Cut::whole(),
        };
        let form: Vec<Cut> = parts.iter().map(cut_by).collect();
        let relation = self.form(tensor, &form)?;
        let kind = &self.relations[relation.0 as usize].kind;
        let mut keys = vec![0; kind.keys.len()];
        for (dim, part) in kind.array.dims.iter().zip(parts) {
            if let (Some(key), Some(index)) = (dim.cut, part.piece())
                && let Range::Key(target) = ranges[index.0 as usize]
            {
                keys[key as usize] = target;
            }
        }
        Ok(JoinInput { relation, keys })
    }

    /// Makes values of the carriers that a join gives: combines those of one element, if they are apart, and takes the finishing step.
    fn finish(
        &mut self,
        tensor: TensorId,
        given: RelationId,
        natural: &[Cut],
        carriers: &Carriers<'_>,
    ) -> Result<RelationId, String> {
        let at = tensor.0 as usize;
        let target = &self.chunking.dims[at];
        let (reduction, indices) = (carriers.reduction, carriers.indices);
        let mut result = given;
        let mut form = natural.to_vec();
        if carriers.apart {
            // Cutting the carriers as the tensor will rest makes the aggregation a reduce-scatter.
            let scattered = self.chunking.scattered.get(at);
            let wanted = scattered.filter(|cuts| !cuts.is_empty()).unwrap_or(target);
            for (given, wanted) in form.iter_mut().zip(wanted) {
                if given.is_whole() {
                    given.clone_from(wanted);
                }
            }
            let partial = self.rechunk(tensor, result, &form, "partial")?;
            result = self.aggregate(tensor, partial, reduction, form == *target)?;
            self.aggregates[at] = Some(result);
        }
        let suffix = if form == *target { "" } else { "given" };
        let (value, stored) = (carriers.value, carriers.stored);
        if reduction.is_arg() && carriers.may_be_empty {
            let check = finish::something_chosen(reduction, value, indices);
            let check = self.map(tensor, &[result], check, "check")?;
            let kernel = finish::chosen(reduction, value, indices, stored);
            result = self.map(tensor, &[result, check], kernel, suffix)?;
        } else if let Some(kernel) = finish::kernel(reduction, value, indices, stored) {
            result = self.map(tensor, &[result], kernel, suffix)?;
        }
        Ok(result)
    }

    /// The type of a tensor's own relation, cut so.
    fn kind(&self, tensor: TensorId, cuts: &[Cut]) -> Type {
        let described = self.program.tensor(tensor);
        let mut kind = Type {
            keys: vec![],
            array: ArrayType {
                dims: vec![],
                columns: vec![described.dtype],
            },
        };
        for (dim, (extent, cut)) in described.shape.iter().zip(cuts).enumerate() {
            let extent = *extent;
            let key = (!cut.is_whole()).then_some(kind.keys.len() as u32);
            if key.is_some() {
                let name = self.key_name(tensor, dim, &kind);
                kind.keys.push(key_dim(&Index { name, extent }, cut));
            }
            kind.array.dims.push(ArrayDim::new(extent, key));
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
            block: described.block.map(loops::block),
            origin: described.origin,
        });
        RelationId(self.relations.len() as u32 - 1)
    }
}

/// The key dimension that cuts an index so.
fn key_dim(index: &Index, cut: &Cut) -> KeyDim {
    KeyDim {
        name: index.name.clone(),
        extent: index.extent,
        pieces: cut.pieces,
        axes: cut.axes.clone(),
    }
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
                    Definition::Loop(value) if value.is_carried() => tensor.shape.len(),
                    Definition::Source(_) | Definition::Loop(_) => 0,
                    Definition::Statement { kernel, .. } => kernel.indices.len(),
                };
                indices.len() == count
                    && dims.len() == tensor.shape.len()
                    && indices.iter().chain(dims).all(|cut| cut.pieces > 0)
            });
    if fits {
        Ok(())
    } else {
        Err("the chunking does not fit the program".into())
    }
}

/// The keys of a statement's join, one for each index that is cut, and the range of each index.
fn keys_of(indices: &[Index], cuts: &[Cut]) -> (Vec<KeyDim>, Vec<Range>) {
    let mut keys = vec![];
    let mut ranges = vec![];
    for (index, cut) in indices.iter().zip(cuts) {
        ranges.push(if cut.is_whole() {
            Range::Whole
        } else {
            keys.push(key_dim(index, cut));
            Range::Key(keys.len() as u32 - 1)
        });
    }
    (keys, ranges)
}
