//! The verifier of blocks. Invariants:
//!
//! - names of blocks are unique, and a block stands after the one around it;
//! - what is of a block stands together, what it begins with before it, what it gives after it, in the block around it;
//! - an operand is of the same block or of one around it; a statement is in the innermost block that it reads of;
//! - a state, what it begins with, its `next` and its last value have one type and shape; what is collected has one more
//!   dimension, as long as there are rounds at most, and they are a number;
//! - bounds, counters and numbers of rounds are scalars of i64, `until` is a truth value;
//! - every state and everything collected is needed, and each value of a block is one tensor.
//!
//! Must not know how programs come about.
//!
//! ```text
//! block `t`: `x.1`, which state 0 becomes, is f32[4], but it begins with f32[8]
//! ```

use crate::einsum::{BlockId, Bound, Definition, Item, LoopValue, Program, Tensor, TensorId};
use ein_plan::DType;
use ein_plan::print::list;
use std::collections::HashSet;

/// The first broken invariant of the blocks of a program.
pub(super) fn verify(program: &Program) -> Result<(), String> {
    let mut names = HashSet::new();
    for (at, block) in program.blocks.iter().enumerate() {
        let checked = match (names.insert(&block.name), block.parent) {
            (false, _) => Err("the name is used twice".to_string()),
            (_, Some(parent)) if parent.0 as usize >= at => {
                Err("it does not stand after the block around it".to_string())
            }
            _ => references(program, BlockId(at as u32)),
        };
        checked.map_err(|what| format!("block `{}`: {what}", block.name))?;
    }
    for tensor in &program.tensors {
        let value = match &tensor.definition {
            Definition::Loop(value) => Some(value.block()),
            _ => None,
        };
        let known = |block: BlockId| (block.0 as usize) < program.blocks.len();
        if !value.into_iter().chain(tensor.block).all(known) {
            return Err(format!("tensor `{}`: it is of no block", tensor.name));
        }
    }
    together(program)?;
    let mut values = HashSet::new();
    for tensor in &program.tensors {
        if let Definition::Loop(value) = &tensor.definition
            && !values.insert(*value)
        {
            return Err(format!(
                "tensor `{}`: another tensor is the same",
                tensor.name
            ));
        }
    }
    for at in 0..program.blocks.len() {
        let id = BlockId(at as u32);
        contents(program, id, &values).map_err(|what| {
            let name = &program.block(id).name;
            format!("block `{name}`: {what}")
        })?;
    }
    order(program)
}

/// Returns whether the tensor can be seen in that block.
pub(super) fn visible(program: &Program, id: TensorId, from: Option<BlockId>) -> bool {
    program.encloses(program.tensor(id).block, from)
}

/// Everything that a block names is there.
fn references(program: &Program, id: BlockId) -> Result<(), String> {
    let block = program.block(id);
    let bound = match block.bound {
        Bound::Value(bound) => Some(bound),
        Bound::Rounds(_) | Bound::Unbounded => None,
    };
    let named = (block.states.iter().flat_map(|s| [s.initial, s.next]))
        .chain(block.collected.iter().map(|c| c.value))
        .chain(block.until)
        .chain(bound);
    for tensor in named {
        if tensor.0 as usize >= program.tensors.len() {
            return Err(format!("it names tensor {}", tensor.0));
        }
    }
    Ok(())
}

/// Checks that the items of a block stand together.
fn together(program: &Program) -> Result<(), String> {
    let mut ended: HashSet<BlockId> = HashSet::new();
    let mut open: Vec<BlockId> = vec![];
    for tensor in &program.tensors {
        let path = program.path(tensor.block);
        let common = open.iter().zip(&path).take_while(|(a, b)| a == b).count();
        ended.extend(open.drain(common..));
        if path.iter().any(|block| ended.contains(block)) {
            return Err(format!(
                "tensor `{}`: it does not stand together with its block",
                tensor.name
            ));
        }
        open = path;
    }
    Ok(())
}

/// Checks that the initial values of a block stand before it, also where nothing stands in it: before its results.
fn order(program: &Program) -> Result<(), String> {
    let nest = program.nest();
    let mut seen = vec![false; program.tensors.len()];
    let mut expected = 0;
    let mut begun = vec![false; program.blocks.len()];
    let mut open: Vec<std::slice::Iter<'_, Item>> = vec![nest.program.iter()];
    while let Some(items) = open.last_mut() {
        match items.next() {
            None => {
                open.pop();
            }
            Some(Item::Tensor(id)) => {
                if id.0 != expected {
                    let name = &program.tensor(TensorId(expected)).name;
                    return Err(format!(
                        "tensor `{name}`: its block has given results before"
                    ));
                }
                expected += 1;
                seen[id.0 as usize] = true;
            }
            Some(Item::Block(id)) => {
                begun[id.0 as usize] = true;
                let block = program.block(*id);
                let inside = |of: &TensorId| program.encloses(Some(*id), program.tensor(*of).block);
                let before = block.states.iter().map(|s| s.initial);
                let outer = block.states.iter().map(|s| s.next);
                let outer = outer.chain(block.collected.iter().map(|c| c.value));
                let outer = outer.chain(block.until).filter(|id| !inside(id));
                let bound = match block.bound {
                    Bound::Value(bound) => Some(bound),
                    Bound::Rounds(_) | Bound::Unbounded => None,
                };
                if let Some(late) = before
                    .chain(outer)
                    .chain(bound)
                    .find(|id| !seen[id.0 as usize])
                {
                    let (block, late) = (&block.name, &program.tensor(late).name);
                    return Err(format!(
                        "block `{block}`: `{late}` does not stand before it"
                    ));
                }
                open.push(nest.body(Some(*id)).iter());
            }
        }
    }
    match begun.iter().position(|begun| !begun) {
        Some(at) => Err(format!(
            "block `{}`: nothing needs it",
            program.blocks[at].name
        )),
        None => Ok(()),
    }
}

/// Checks that the tensors that a block names suit it.
fn contents(program: &Program, id: BlockId, values: &HashSet<LoopValue>) -> Result<(), String> {
    let block = program.block(id);
    let inner = Some(id);
    let name = |id: TensorId| &program.tensor(id).name;
    if let Bound::Value(bound) = block.bound {
        if !visible(program, bound, block.parent) {
            return Err(format!(
                "its bound `{}` is not of a block around it",
                name(bound)
            ));
        }
        is_type(program, bound, DType::I64, &[], "its bound")?;
    }
    if let Some(until) = block.until {
        if !visible(program, until, inner) {
            return Err(format!("`{}`, which ends it, is not of it", name(until)));
        }
        is_type(program, until, DType::Bool, &[], "what ends it")?;
    }
    for (number, state) in (0..).zip(&block.states) {
        if !visible(program, state.initial, block.parent) {
            let name = name(state.initial);
            return Err(format!(
                "state {number} begins with `{name}`, which is not of a block around it"
            ));
        }
        if !visible(program, state.next, inner) {
            let name = name(state.next);
            return Err(format!(
                "state {number} becomes `{name}`, which is not of it"
            ));
        }
        let begins = program.tensor(state.initial);
        let what = format!("what state {number} becomes");
        is_type(program, state.next, begins.dtype, &begins.shape, &what)?;
        let used = [LoopValue::State(id, number), LoopValue::Last(id, number)];
        if !used.iter().any(|value| values.contains(value)) {
            return Err(format!("state {number}: nothing needs it"));
        }
    }
    for (number, collected) in (0..).zip(&block.collected) {
        if !visible(program, collected.value, inner) {
            let name = name(collected.value);
            return Err(format!("`{name}`, which is collected, is not of it"));
        }
        if collected.dim as usize > program.tensor(collected.value).shape.len() {
            return Err(format!(
                "it collects {number} at dimension {}",
                collected.dim
            ));
        }
        if !matches!(block.bound, Bound::Rounds(_)) {
            return Err("it collects, but its bound is no number".to_string());
        }
        if !values.contains(&LoopValue::Collected(id, number)) {
            return Err(format!("what it collects as {number}: nothing needs it"));
        }
    }
    Ok(())
}

fn is_type(
    program: &Program,
    id: TensorId,
    dtype: DType,
    shape: &[u64],
    what: &str,
) -> Result<(), String> {
    let tensor = program.tensor(id);
    if tensor.dtype == dtype && tensor.shape == shape {
        return Ok(());
    }
    let (is, should) = (list(&tensor.shape), list(shape));
    Err(format!(
        "`{}`, {what}, is {}[{is}] instead of {dtype}[{should}]",
        tensor.name, tensor.dtype
    ))
}

/// Checks that a value of a block has the right type and stands where it can be seen. The blocks are verified.
pub(super) fn verify_value(
    program: &Program,
    tensor: &Tensor,
    value: LoopValue,
) -> Result<(), String> {
    let block = program.block(value.block());
    let place = match value.is_result() {
        true => block.parent,
        false => Some(value.block()),
    };
    if tensor.block != place {
        return Err("it stands in another block".to_string());
    }
    let (dtype, shape) = match value {
        LoopValue::Counter(_) | LoopValue::Rounds(_) => (DType::I64, vec![]),
        LoopValue::State(_, number) | LoopValue::Last(_, number) => {
            let state = block.states.get(number as usize);
            let state = state.ok_or_else(|| format!("there is no state {number}"))?;
            let of = program.tensor(state.initial);
            (of.dtype, of.shape.clone())
        }
        LoopValue::Collected(_, number) => {
            let collected = block.collected.get(number as usize);
            let collected = collected.ok_or_else(|| format!("nothing is collected as {number}"))?;
            let of = program.tensor(collected.value);
            let mut shape = of.shape.clone();
            if let Bound::Rounds(rounds) = block.bound {
                shape.insert(collected.dim as usize, rounds);
            }
            (of.dtype, shape)
        }
    };
    match tensor.dtype == dtype && tensor.shape == shape {
        true => Ok(()),
        false => Err(format!("it should be {dtype}[{}]", list(&shape))),
    }
}
