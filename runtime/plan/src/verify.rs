//! The verifier of plans. Invariants:
//!
//! - there is a site, at most [`MOST_SITES`], and a mesh of one to [`MOST_AXES`] axes on the first of them; steps make relations `r0`, `r1`, … in order, from relations before
//!   them; every kernel keeps the invariants of [`mod@kernel`];
//! - key dimensions have distinct names and at least one piece; a key dimension cuts at most one array dimension,
//!   of its own extent; elements, bytes and tuples can be counted; a placement has a role for each axis, and a key dimension has that role on axes that number its blocks;
//! - the type of a result is the one that its operation gives: a join's inputs are the kernel's operands, their key
//!   dimensions go to ones of the same cut, an index with the range of a key dimension has its extent, a cut
//!   reduced index leaves the reduction unfinished, and an operand that is cut is read there by nothing but the
//!   index with the same pieces; an aggregate combines carriers and keeps every key dimension that cuts; so does a
//!   fold, which may keep one that does not cut by the blocks of some of its axes;
//! - BCAST gives copies along an axis where there were none, SHUF does not, and every other step finds its inputs where it needs them ([`location`]);
//! - loops are nested, their states keep type and placement, and every relation is freed where it is used last, unless it is given out (`repeat`);
//! - every local join has loops that compute its kernel;
//! - an output is one column of the stated type and shape, and every key dimension with several pieces cuts it.
//!
//! A verified plan can be printed and parsed, encoded, measured and walked without any further check. Must not
//! know how steps are carried out.
//!
//! ```text
//! r3: it needs r1 where its own tuples are, …; but r1 is …
//! ```

mod exchange;
pub mod kernel;
pub mod location;
mod loops;
mod meetings;
mod repeat;
mod spill;
mod stream;
mod sweep;
pub mod types;

use crate::ids::RelationId;
use crate::kernel::{IndexId, Kernel, NodeId, Quotient};
use crate::plan::{JoinInput, Operation, Output, Plan, Range, Step, same_cut};
use crate::reduction::Reduction;
use crate::relation::{ArrayDim, ArrayType, KeyDim, RelationType, piece};
use meetings::locations;
use std::collections::HashSet;

pub use types::{folded, kept, key_dims, mesh, placement, reduced, relation_type, window_of};

/// The most sites that a plan may have.
pub const MOST_SITES: u32 = 1 << 16;
/// The most axes of a mesh.
pub const MOST_AXES: usize = 3;
/// The most tuples that a relation may have.
pub const MOST_TUPLES: u64 = 1 << 24;

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The step, output or kernel, such as `r3`.
    pub place: String,
    /// The broken invariant.
    pub message: String,
}

impl std::fmt::Display for VerifyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
impl std::error::Error for VerifyError {}

/// The first broken invariant of a plan, if there is one.
pub fn verify(plan: &Plan) -> Result<(), VerifyError> {
    structure(plan)?;
    loops::loops(plan)
}

/// The first broken invariant of all but the loops of a plan, if there is one.
pub(crate) fn structure(plan: &Plan) -> Result<(), VerifyError> {
    let at = |place: String| move |message| VerifyError { place, message };
    if plan.sites == 0 || plan.sites > MOST_SITES {
        return Err(at("plan".into())(format!("it has {} sites", plan.sites)));
    }
    mesh(&plan.mesh, plan.sites).map_err(at("plan".into()))?;
    for (number, kernel) in plan.kernels.iter().enumerate() {
        kernel::kernel(kernel).map_err(at(format!("kernel k{number}")))?;
    }
    repeat::nesting(plan)?;
    for (number, step) in plan.steps.iter().enumerate() {
        self::step(plan, number, step).map_err(at(step.result.to_string()))?;
    }
    for output in &plan.outputs {
        self::output(plan, output).map_err(at(format!("output {}", output.name)))?;
    }
    repeat::loops(plan)?;
    sweep::sweeps(plan).map_err(at("sweeps".into()))?;
    exchange::exchanges(plan).map_err(at("exchanges".into()))?;
    repeat::lifetimes(plan)?;
    spill::spills(plan).map_err(at("spills".into()))?;
    stream::streams(plan).map_err(at("streams".into()))
}

impl Operation {
    /// The relations that the operation reads, in order.
    pub fn inputs(&self) -> Vec<RelationId> {
        match self {
            Operation::Source { .. } | Operation::Loop { .. } => vec![],
            Operation::LocalJoin { inputs, .. } => inputs.iter().map(|i| i.relation).collect(),
            Operation::Broadcast { input }
            | Operation::Shuffle { input }
            | Operation::Window { input }
            | Operation::LocalAggregate { input, .. }
            | Operation::LocalConcat { input, .. }
            | Operation::LocalTile { input, .. }
            | Operation::LocalFilter { input, .. } => vec![*input],
        }
    }
}

fn step(plan: &Plan, number: usize, step: &Step) -> Result<(), String> {
    if step.result.0 as usize != number {
        return Err(format!("it is made by step {number}"));
    }
    relation_type(&step.kind, &plan.mesh)?;
    for input in step.operation.inputs() {
        if input >= step.result {
            return Err(format!("{input} does not stand before it"));
        }
    }
    if let Operation::Loop { value } = step.operation {
        repeat::value(plan, step, value)?;
    }
    let expected = match &step.operation {
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let Some(kernel) = plan.kernels.get(kernel.0 as usize) else {
                return Err(format!("there is no kernel k{}", kernel.0));
            };
            let own = &step.kind.keys;
            let keys = fold.as_ref().map_or(own, |fold| &fold.keys);
            let mut array = join(plan, inputs, kernel, ranges, keys)?;
            if let Some(fold) = fold {
                key_dims(&fold.keys, &plan.mesh)?;
                kept(fold, own, &array, &plan.mesh)?;
                reduced(fold, kernel, ranges)?;
                array = folded(fold, array);
            }
            (own.clone(), array)
        }
        operation => content(plan, operation, &step.kind)?,
    };
    if (&expected.0, &expected.1) != (&step.kind.keys, &step.kind.array) {
        let (keys, array) = expected;
        let placement = step.kind.placement.clone();
        let expected = RelationType {
            keys,
            array,
            placement,
        };
        return Err(format!("its type should be {expected}"));
    }
    locations(plan, step)
}

/// Keys and arrays of the result of an operation that is no join; `result` is the type that is stated.
fn content(
    plan: &Plan,
    operation: &Operation,
    result: &RelationType,
) -> Result<(Vec<KeyDim>, ArrayType), String> {
    let of = |input: &RelationId| {
        let kind = plan.kind(*input);
        (kind.keys.clone(), kind.array.clone())
    };
    let grows = |input: &RelationId| {
        let input = &plan.kind(*input).placement;
        input.grows_to(&result.placement)
    };
    match operation {
        Operation::Source { .. } if result.array.columns.len() != 1 => {
            Err("a source has one column".into())
        }
        Operation::Source { .. } | Operation::LocalJoin { .. } | Operation::Loop { .. } => {
            Ok((result.keys.clone(), result.array.clone()))
        }
        Operation::Broadcast { input } if !grows(input) => {
            Err("a broadcast gives copies along an axis".into())
        }
        Operation::Shuffle { input } if grows(input) => Err("a shuffle gives no copies".into()),
        Operation::Broadcast { input } | Operation::Shuffle { input } => Ok(of(input)),
        Operation::Window { input } => {
            let (keys, array) = (&result.keys, &result.array);
            windows(of(input), keys, array)?;
            Ok((keys.clone(), array.clone()))
        }
        Operation::LocalFilter { input, .. }
        | Operation::LocalConcat { input, .. }
        | Operation::LocalTile { input, .. }
            if plan.kind(*input).is_windowed() =>
        {
            Err("it re-arranges windows".into())
        }
        Operation::LocalAggregate {
            input,
            keep,
            reduction,
        } => aggregate(of(input), keep, *reduction),
        Operation::LocalConcat { input, array_dim } => {
            let (keys, array) = of(input);
            match array.dims.get(*array_dim as usize).and_then(|d| d.cut) {
                Some(key) => Ok(without_key(keys, array, key)),
                None => Err(format!("array dimension {array_dim} is not cut")),
            }
        }
        Operation::LocalTile { input, array_dim } => {
            let (mut keys, mut array) = of(input);
            let new = keys.len() as u32;
            let key = result.keys.last().ok_or("it has no key dimension")?;
            match array.dims.get_mut(*array_dim as usize) {
                Some(dim) if dim.is_whole() => dim.cut = Some(new),
                _ => return Err(format!("array dimension {array_dim} is not whole")),
            }
            keys.push(key.clone());
            Ok((keys, array))
        }
        Operation::LocalFilter { input, key, value } => {
            let (keys, mut array) = of(input);
            let dim = keys.get(*key as usize).filter(|dim| *value < dim.pieces);
            let dim = dim.ok_or_else(|| format!("key dimension {key} has no piece {value}"))?;
            let (_, extent) = piece(dim.extent, dim.pieces, *value);
            for cut in array.dims.iter_mut().filter(|d| d.cut == Some(*key)) {
                cut.extent = extent;
            }
            Ok(without_key(keys, array, *key))
        }
    }
}

/// Whether arrays under these keys can be windows of others: both are parts of one tensor, the others disjoint ones.
pub fn windows(
    (from_keys, from): (Vec<KeyDim>, ArrayType),
    keys: &[KeyDim],
    array: &ArrayType,
) -> Result<(), String> {
    let extents =
        |array: &ArrayType| -> Vec<u64> { array.dims.iter().map(|dim| dim.extent).collect() };
    if extents(&from) != extents(array) || from.columns != array.columns {
        return Err("its arrays are no parts of what it takes parts of".into());
    }
    let cuts = |number: u32| from.dims.iter().any(|dim| dim.cut == Some(number));
    if from.dims.iter().any(|dim| dim.window.is_some()) || !(0..from_keys.len() as u32).all(cuts) {
        return Err("it takes parts of what are no pieces of a tensor".into());
    }
    let moves = |number: u32| array.dims.iter().any(|dim| dim.key() == Some(number));
    match (0u32..).zip(keys).find(|(number, _)| !moves(*number)) {
        None => Ok(()),
        Some((_, key)) => Err(format!("`{}` says nothing of its parts", key.name)),
    }
}

fn aggregate(
    (keys, mut array): (Vec<KeyDim>, ArrayType),
    keep: &[u32],
    reduction: Reduction,
) -> Result<(Vec<KeyDim>, ArrayType), String> {
    let distinct: HashSet<&u32> = keep.iter().collect();
    if distinct.len() != keep.len() || keep.iter().any(|k| *k as usize >= keys.len()) {
        return Err("it keeps a key dimension twice, or one that is not there".into());
    }
    let value = array.columns.first().copied();
    if value.is_none_or(|v| v.compute() != v || reduction.carrier(v) != array.columns) {
        return Err(format!(
            "its input holds no carriers of {}",
            reduction.name()
        ));
    }
    if array.dims.iter().any(|dim| dim.window.is_some()) {
        return Err("it aggregates windows".into());
    }
    for dim in &mut array.dims {
        let Some(cut) = dim.cut else { continue };
        let kept = keep.iter().position(|k| *k == cut);
        let kept = kept.ok_or("it does not keep a key dimension that cuts the arrays")?;
        dim.cut = Some(kept as u32);
    }
    let keys = keep.iter().map(|k| keys[*k as usize].clone()).collect();
    Ok((keys, array))
}

fn without_key(mut keys: Vec<KeyDim>, mut array: ArrayType, key: u32) -> (Vec<KeyDim>, ArrayType) {
    keys.remove(key as usize);
    for dim in &mut array.dims {
        dim.cut = match dim.cut {
            Some(cut) if cut == key => None,
            Some(cut) if cut > key => Some(cut - 1),
            other => other,
        };
    }
    (keys, array)
}

/// The arrays that a join gives, whose result has these keys.
fn join(
    plan: &Plan,
    inputs: &[JoinInput],
    kernel: &Kernel,
    ranges: &[Range],
    keys: &[KeyDim],
) -> Result<ArrayType, String> {
    if inputs.len() != kernel.operands.len() || ranges.len() != kernel.indices.len() {
        return Err("its inputs or ranges are not as many as the kernel's".into());
    }
    for (input, operand) in inputs.iter().zip(&kernel.operands) {
        let (name, kind) = (input.relation, plan.kind(input.relation));
        let shape: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
        if shape != operand.shape || kind.array.columns != operand.columns {
            return Err(format!("{name} is not the {operand} that the kernel takes"));
        }
        let distinct: HashSet<&u32> = input.keys.iter().collect();
        if input.keys.len() != kind.keys.len() || distinct.len() != kind.keys.len() {
            return Err(format!(
                "the key dimensions of {name} do not go to one each"
            ));
        }
        for (key, to) in kind.keys.iter().zip(&input.keys) {
            let fits = keys.get(*to as usize).is_some_and(|to| same_cut(to, key));
            if !fits {
                return Err(format!("`{}` of {name} goes to another cut", key.name));
            }
        }
    }
    let mut dims = vec![];
    for (number, (index, range)) in kernel.indices.iter().zip(ranges).enumerate() {
        let reduced = number >= kernel.output_rank as usize;
        let cut = match range {
            Range::Whole => None,
            Range::Key(key) => Some(*key),
        };
        if let Some(key) = cut {
            let extent = keys.get(key as usize).map(|k| k.extent);
            if extent != Some(index.extent) {
                return Err(format!("`{}` is not as long as what cuts it", index.name));
            }
            if reduced && kernel.finish {
                return Err(format!(
                    "`{}` is cut but the reduction is finished",
                    index.name
                ));
            }
        }
        if !reduced {
            dims.push(ArrayDim::new(index.extent, cut));
        }
    }
    reads(plan, inputs, kernel, ranges)?;
    Ok(ArrayType {
        dims,
        columns: kernel.output.clone(),
    })
}

/// What a tuple of an operand holds of a dimension is all that the joined tuple reads of it.
fn reads(
    plan: &Plan,
    inputs: &[JoinInput],
    kernel: &Kernel,
    ranges: &[Range],
) -> Result<(), String> {
    for (operand, positions) in kernel.graph.reads() {
        let input = &inputs[operand as usize];
        let dims = &plan.kind(input.relation).array.dims;
        for (number, (position, dim)) in positions.iter().zip(dims).enumerate() {
            if !holds(kernel, *position, ranges, dim, &input.keys) {
                return Err(format!(
                    "dimension {number} of {} is cut, but read beyond the part at hand",
                    input.relation
                ));
            }
        }
    }
    Ok(())
}

/// Whether a tuple's part of a dimension has every position at which a kernel reads it in the joined tuple: the piece of the index
/// that reads it, or a window around the affine form of the position. `keys` says which key dimension of the join is which of the
/// operand's.
pub fn holds(
    kernel: &Kernel,
    position: NodeId,
    ranges: &[Range],
    dim: &ArrayDim,
    keys: &[u32],
) -> bool {
    let joined = |key: u32| Range::Key(keys[key as usize]);
    if let Some(cut) = dim.cut {
        let index = kernel.graph.as_index(position);
        return index.map(|index| ranges[index.0 as usize]) == Some(joined(cut));
    }
    let Some(window) = dim.window else {
        return true;
    };
    let moved_by = |index: IndexId| {
        window
            .key
            .is_some_and(|key| ranges[index.0 as usize] == joined(key))
    };
    let quotient = kernel.graph.as_quotient(position);
    // A library operation reads whole matrices, wherever its positions are.
    let Some(Quotient { form, divisor }) = quotient.filter(|_| kernel.library().is_none()) else {
        return false;
    };
    let by = form.terms.iter().find(|(index, _)| moved_by(*index));
    let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
    let reach = form.reach(extent, by.map(|(index, _)| *index));
    let scale = by.map_or(0, |(_, coefficient)| *coefficient);
    let last = i64::try_from(dim.extent).map_or(i64::MAX, |extent| extent - 1);
    reach.is_some_and(|(low, high)| {
        let (divisor, low, high) = match window.key {
            // Positions outside of the tensor are in no part of it.
            None => {
                let (low, high) = (low.div_euclid(divisor), high.div_euclid(divisor));
                (1, low.max(0), high.min(last))
            }
            Some(_) => (divisor, low, high),
        };
        let alike = (scale, divisor) == (window.scale, window.divisor);
        alike && (low > high || window.low <= low && high <= window.high)
    })
}

fn output(plan: &Plan, output: &Output) -> Result<(), String> {
    let Some(step) = plan.steps.get(output.relation.0 as usize) else {
        return Err(format!("there is no {}", output.relation));
    };
    let array = &step.kind.array;
    let shape: Vec<u64> = array.dims.iter().map(|dim| dim.extent).collect();
    if array.columns != [output.dtype] || shape != output.shape {
        return Err(format!("{} is {}", output.relation, step.kind));
    }
    if step.kind.is_windowed() {
        return Err(format!("{} holds windows", output.relation));
    }
    for (number, key) in (0..).zip(&step.kind.keys) {
        if key.pieces > 1 && !array.dims.iter().any(|dim| dim.cut == Some(number)) {
            return Err(format!("`{}` cuts no dimension of it", key.name));
        }
    }
    match &output.replaces {
        Some(name) => replaces(plan, output, name),
        None => Ok(()),
    }
}

/// An output takes the place of one tensor that no other takes, of its own type and shape if the plan reads it.
fn replaces(plan: &Plan, output: &Output, name: &str) -> Result<(), String> {
    let all = plan.outputs.iter();
    let all = all.filter(|other| other.replaces.as_deref() == Some(name));
    if all.count() > 1 {
        return Err(format!("it is not the only one that replaces `{name}`"));
    }
    let old = plan
        .steps
        .iter()
        .find(|step| matches!(&step.operation, Operation::Source { name: own, .. } if own == name));
    let same = |old: &Step| {
        let dims = old.kind.array.dims.iter().map(|dim| dim.extent);
        old.kind.array.columns == [output.dtype] && dims.eq(output.shape.iter().copied())
    };
    match old {
        Some(old) if !same(old) => Err(format!("it replaces `{name}`, which is {}", old.kind)),
        _ => Ok(()),
    }
}
