//! Totals as rows and their total, so that what is summed up whole can be summed up in a sweep, row by row.
//!
//! A norm of a parameter reads all of it once more, although a sweep has just had every row of it in a cache. Its rows' norms can be
//! made there; the norm of these is taken where somebody needs it. That is another order of summation, so plans that promise
//! the order leave totals whole. Must not know sweeps.
//!
//! ```text
//! s = norm[i,j] u[i,j]   ->   s.rows[i] = norm[j] u[i,j], and, right before its first reader, s = norm[i] s.rows[i]
//! ```

use ein_plan::{
    ArrayDim, ArrayType, DType, Index, IndexId, JoinInput, Kernel, KernelId, Node, Operand,
    Operation, Plan, Range, Reduction, RelationId, RelationType, Step,
};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest elements of a tuple that are summed up.
const LARGE: u64 = 1 << 16;
/// Fewest elements of a row, of which the rows' results are so small a part.
const ROW: u64 = 64;

/// The plan with the totals that are `wanted` taken by rows, and, by total, the relation of its rows. The plan has no sweeps, and
/// nothing is freed yet.
pub(super) fn by_rows(
    plan: &Plan,
    wanted: impl Fn(RelationId) -> bool,
) -> (Plan, BTreeMap<RelationId, RelationId>) {
    let blocks = plan.blocks_of_steps();
    let mut split = plan.clone();
    split.steps.clear();
    let mut renamed: Vec<RelationId> = vec![];
    let mut rows: BTreeMap<RelationId, RelationId> = BTreeMap::new();
    // By step before which they stand: totals of rows that are there.
    let mut waiting: BTreeMap<usize, Vec<(usize, Step)>> = BTreeMap::new();
    let mut starts = vec![0u32; plan.steps.len() + 1];
    for number in 0..=plan.steps.len() {
        // Behind the loops that end here, before those that begin.
        let end = split.steps.len() as u32;
        for repeat in &mut split.repeats {
            if repeat.end as usize == number && number > 0 {
                repeat.end = end;
            }
        }
        for (old, mut total) in waiting.remove(&number).unwrap_or_default() {
            total.result = RelationId(split.steps.len() as u32);
            renamed[old] = total.result;
            split.steps.push(total);
        }
        starts[number] = split.steps.len() as u32;
        let Some(step) = plan.steps.get(number) else {
            break;
        };
        let made = RelationId(split.steps.len() as u32);
        let parts = match blocks[number] {
            None if wanted(step.result) => parts(plan, step),
            _ => None,
        };
        let mut first = step.clone();
        first.result = made;
        renamed.push(made);
        if let Some((of_rows, kind, total, ranges)) = parts {
            let keys = (0..step.kind.keys.len() as u32).collect();
            let mut second = step.clone();
            second.operation = Operation::LocalJoin {
                inputs: vec![JoinInput {
                    relation: made,
                    keys,
                }],
                kernel: number_of(&mut split.kernels, total),
                ranges: ranges[..1].to_vec(),
                fold: None,
            };
            first.kind = kind;
            first.tensor.push_str(".rows");
            if let Operation::LocalJoin { kernel, .. } = &mut first.operation {
                *kernel = number_of(&mut split.kernels, of_rows);
            }
            let before = first_use(plan, step.result);
            waiting.entry(before).or_default().push((number, second));
            rows.insert(step.result, made);
        }
        rename(&mut first.operation, &renamed);
        split.steps.push(first);
    }
    for (repeat, old) in split.repeats.iter_mut().zip(&plan.repeats) {
        repeat.first = starts[old.first as usize].min(repeat.end);
        repeat.block.rename(|relation| renamed[relation.0 as usize]);
    }
    for output in &mut split.outputs {
        output.relation = renamed[output.relation.0 as usize];
    }
    let used: BTreeSet<KernelId> = (split.steps.iter())
        .filter_map(|step| match &step.operation {
            Operation::LocalJoin { kernel, .. } => Some(*kernel),
            _ => None,
        })
        .collect();
    let mut numbers = vec![KernelId(0); split.kernels.len()];
    let mut kept = vec![];
    for (number, kernel) in (0u32..).zip(std::mem::take(&mut split.kernels)) {
        if used.contains(&KernelId(number)) {
            numbers[number as usize] = KernelId(kept.len() as u32);
            kept.push(kernel);
        }
    }
    split.kernels = kept;
    for step in &mut split.steps {
        if let Operation::LocalJoin { kernel, .. } = &mut step.operation {
            *kernel = numbers[kernel.0 as usize];
        }
    }
    (split, rows)
}

/// The kernel of a total's rows, their type, the kernel of the total of them, and the total's ranges; none if it has no rows that
/// are worth it.
fn parts(plan: &Plan, step: &Step) -> Option<(Kernel, RelationType, Kernel, Vec<Range>)> {
    let Operation::LocalJoin {
        kernel,
        ranges,
        fold: None,
        ..
    } = &step.operation
    else {
        return None;
    };
    let kernel = &plan.kernels[kernel.0 as usize];
    let reduction = kernel.reduction?;
    let splits = match reduction {
        Reduction::Sum | Reduction::Norm | Reduction::Norm1 | Reduction::NormInf => true,
        Reduction::Max | Reduction::Min => true,
        // Rows are of equal length, so the mean of their means is the mean.
        Reduction::Mean => kernel.finish,
        _ => false,
    };
    let value = kernel.graph.dtype(kernel.root);
    let plain = kernel.output_rank == 0
        && kernel.indices.len() > 1
        && kernel.guard.is_none()
        && kernel.library().is_none()
        && matches!(value, DType::F32 | DType::F64);
    let own = kernel.graph.iter().any(|(_, node, _)| {
        let Node::Read { positions, .. } = node else {
            return false;
        };
        let first = positions.first();
        positions.len() > 1 && first.is_some_and(|p| kernel.graph.as_index(*p) == Some(IndexId(0)))
    });
    if !splits || !plain || !own {
        return None;
    }
    let mut points = kernel.indices.iter().zip(ranges).map(|(index, range)| {
        let pieces = match range {
            Range::Whole => 1,
            Range::Key(key) => step.kind.keys[*key as usize].pieces.into(),
        };
        index.extent.div_ceil(pieces)
    });
    let rows = points.next().unwrap_or(1);
    let row = points.fold(1u64, u64::saturating_mul);
    if row < ROW || rows.saturating_mul(row) < LARGE {
        return None;
    }
    let index = kernel.indices[0].clone();
    let of_rows = Kernel {
        output_rank: 1,
        finish: true,
        output: vec![value],
        ..kernel.clone()
    };
    let kind = RelationType {
        array: ArrayType {
            dims: vec![ArrayDim {
                extent: index.extent,
                cut: match ranges[0] {
                    Range::Whole => None,
                    Range::Key(key) => Some(key),
                },
            }],
            columns: vec![value],
        },
        ..step.kind.clone()
    };
    let total = total(kernel, index, value);
    Some((of_rows, kind, total, ranges.clone()))
}

/// The same reduction of the rows' results.
fn total(kernel: &Kernel, index: Index, value: DType) -> Kernel {
    let mut graph = ein_plan::Graph::default();
    let at = graph.add(Node::Index(IndexId(0)), DType::I64);
    let root = graph.add(
        Node::Read {
            operand: 0,
            column: 0,
            positions: vec![at],
            otherwise: None,
        },
        value,
    );
    Kernel {
        operands: vec![Operand {
            columns: vec![value],
            shape: vec![index.extent],
        }],
        indices: vec![index],
        graph,
        root,
        ..kernel.clone()
    }
}

fn number_of(kernels: &mut Vec<Kernel>, kernel: Kernel) -> KernelId {
    let known = kernels.iter().position(|known| *known == kernel);
    let number = known.unwrap_or_else(|| {
        kernels.push(kernel);
        kernels.len() - 1
    });
    KernelId(number as u32)
}

/// The first step, outside of all loops, before which a relation must be there.
fn first_use(plan: &Plan, relation: RelationId) -> usize {
    let mut reads = plan.steps.iter();
    let mut first = reads
        .position(|step| step.operation.inputs().contains(&relation))
        .unwrap_or(plan.steps.len());
    for repeat in &plan.repeats {
        let block = &repeat.block;
        let body = repeat.first as usize..repeat.end as usize;
        let mut around = block.begins_with().chain(block.ends_with());
        if body.contains(&first) || around.any(|used| used == relation) {
            first = first.min(repeat.first as usize);
        }
    }
    first
}

fn rename(operation: &mut Operation, to: &[RelationId]) {
    let new = |relation: &mut RelationId| *relation = to[relation.0 as usize];
    match operation {
        Operation::Source { .. } | Operation::Loop { .. } => {}
        Operation::LocalJoin { inputs, .. } => {
            inputs.iter_mut().for_each(|input| new(&mut input.relation));
        }
        Operation::Broadcast { input }
        | Operation::Shuffle { input }
        | Operation::LocalAggregate { input, .. }
        | Operation::LocalConcat { input, .. }
        | Operation::LocalTile { input, .. }
        | Operation::LocalFilter { input, .. } => new(input),
    }
}
