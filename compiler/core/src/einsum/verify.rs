//! The verifier of Einstein programs. Invariants:
//!
//! - names are unique; operands stand before their users; only tensors that an output needs are there;
//! - an output replaces a source of its own type and shape, if the program reads that at all;
//! - elements of every tensor can be counted, also in bytes;
//! - a statement's kernel keeps the invariants of `ein_plan::verify::kernel`, finishes its reduction, and gives one
//!   column of the tensor's type, with the tensor's shape; its operands are the tensors that it names, in
//!   canonical form ([`super::canonical`]);
//! - a source suits its tensor: `permutation` has one dimension, `full` a value of the right kind; in a block it is random;
//! - blocks: see `blocks`.
//!
//! Must not know how programs come about.
//!
//! ```text
//! tensor `C`: its shape is [4, 8] but its indices run over [4, 6]
//! ```

mod blocks;

use super::{Definition, Program, Tensor, TensorId, canonical};
use ein_plan::verify::kernel::{elements, kernel as verify_kernel};
use ein_plan::{DType, Kernel, Operand, Scalar, Source};
use std::collections::HashSet;

/// The first broken invariant, if there is one.
pub fn verify(program: &Program) -> Result<(), String> {
    blocks::verify(program)?;
    let mut names = HashSet::new();
    for (at, tensor) in program.tensors.iter().enumerate() {
        let checked = match names.insert(&tensor.name) {
            true => verify_tensor(program, at, tensor),
            false => Err("the name is used twice".to_string()),
        };
        checked.map_err(|what| format!("tensor `{}`: {what}", tensor.name))?;
    }
    verify_outputs(program)?;
    let needed = program.which_are_needed();
    match program
        .tensors
        .iter()
        .zip(needed)
        .find(|(_, needed)| !needed)
    {
        Some((tensor, _)) => Err(format!("tensor `{}`: no output needs it", tensor.name)),
        None => Ok(()),
    }
}

/// Outputs are tensors, and each replaces a carried tensor of its own type and shape that no other replaces.
fn verify_outputs(program: &Program) -> Result<(), String> {
    let mut replaced = HashSet::new();
    for output in &program.outputs {
        let Some(next) = program.tensors.get(output.tensor.0 as usize) else {
            return Err(format!("an output is tensor {}", output.tensor.0));
        };
        let Some(name) = &output.replaces else {
            continue;
        };
        if !replaced.insert(name) {
            return Err(format!("two outputs replace `{name}`"));
        }
        let old = program.tensors.iter().find(|tensor| tensor.name == *name);
        let same = |old: &Tensor| {
            let source = matches!(old.definition, Definition::Source(_));
            source && (old.dtype, &old.shape) == (next.dtype, &next.shape)
        };
        if !old.is_none_or(same) {
            return Err(format!("`{}` cannot replace `{name}`", next.name));
        }
    }
    Ok(())
}

fn verify_tensor(program: &Program, at: usize, tensor: &Tensor) -> Result<(), String> {
    elements(&tensor.shape).ok_or("it has more elements than can be counted")?;
    match &tensor.definition {
        Definition::Source(source) => verify_source(source, tensor),
        Definition::Loop(value) => blocks::verify_value(program, tensor, *value),
        Definition::Statement { kernel, operands } => {
            if operands.iter().any(|operand| operand.0 as usize >= at) {
                return Err("an operand does not stand before it".into());
            }
            if !operands
                .iter()
                .all(|o| blocks::visible(program, *o, tensor.block))
            {
                return Err("an operand is of a block that is not around it".into());
            }
            if program.innermost(operands) != tensor.block {
                return Err("it reads nothing of the innermost block that it is in".into());
            }
            verify_statement(program, tensor, kernel, operands)
        }
    }
}

fn verify_source(source: &Source, tensor: &Tensor) -> Result<(), String> {
    match source {
        _ if tensor.block.is_some() && !source.is_random() => {
            Err(format!("`{source}` does not depend on the round"))
        }
        Source::Permutation if tensor.shape.len() != 1 => {
            Err("a permutation has one dimension".into())
        }
        Source::Numbers(values)
            if elements(&tensor.shape) != Some(values.len() as u64)
                || tensor.shape.contains(&0)
                || !values.iter().all(|value| is_kept_in(*value, tensor.dtype)) =>
        {
            Err(format!("`{source}` is no value of its type"))
        }
        Source::Full(value)
            if matches!(value, Scalar::Bool(_)) != (tensor.dtype == DType::Bool) =>
        {
            Err(format!("`{source}` is no value of {}", tensor.dtype))
        }
        _ => Ok(()),
    }
}

/// Returns whether a scalar has the form in which values of that type are kept.
fn is_kept_in(value: Scalar, dtype: DType) -> bool {
    match value {
        Scalar::Float(_) => dtype.is_float(),
        Scalar::Int(_) => dtype.is_integer(),
        Scalar::Bool(_) => dtype == DType::Bool,
    }
}

fn verify_statement(
    program: &Program,
    tensor: &Tensor,
    kernel: &Kernel,
    operands: &[TensorId],
) -> Result<(), String> {
    let expected: Vec<Operand> = operands
        .iter()
        .map(|id| Operand {
            columns: vec![program.tensor(*id).dtype],
            shape: program.tensor(*id).shape.clone(),
        })
        .collect();
    if kernel.operands != expected {
        return Err("its operands are not what its kernel takes".into());
    }
    verify_kernel(kernel)?;
    if !kernel.finish || kernel.output != [tensor.dtype] {
        return Err(format!("its kernel does not give {}", tensor.dtype));
    }
    let output = &kernel.indices[..kernel.output_rank as usize];
    let shape: Vec<u64> = output.iter().map(|index| index.extent).collect();
    if shape != tensor.shape {
        return Err(format!(
            "its shape is {:?} but its indices run over {shape:?}",
            tensor.shape
        ));
    }
    if canonical::statement(kernel.clone(), operands).1 != operands {
        return Err("its operands are not in canonical order".into());
    }
    Ok(())
}
