//! Common subexpressions: two tensors with the same definition are one, and what no output needs is dropped.
//!
//! Random sources and files are told apart by their tensor's name, so they are never shared. Must not know
//! chunkings.
//!
//! ```text
//! y = [i: 4] f32 a0[i] * 2.0 (x); z = [k: 4] f32 a0[k] * 2.0 (x)   gives   y, with z another name of it
//! ```

use crate::einsum::{Definition, Program, TensorId, canonical};
use ein_plan::{DType, Kernel, Scalar, Source};
use std::collections::HashMap;

/// A program without repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// The program.
    pub program: Program,
    /// The user's name of each output: several may have become one tensor.
    pub output_names: Vec<String>,
}

#[derive(PartialEq, Eq, Hash)]
enum Value {
    Statement(Kernel, Vec<TensorId>),
    Full(Scalar, DType, Vec<u64>),
    Iota(DType, Vec<u64>),
}

/// Shares equal tensors and drops the dead ones.
pub fn share(program: &Program) -> Shared {
    let mut same: Vec<TensorId> = vec![];
    let mut values: HashMap<Value, TensorId> = HashMap::new();
    for (number, tensor) in program.tensors.iter().enumerate() {
        let id = TensorId(number as u32);
        let value = match &tensor.definition {
            Definition::Statement { kernel, operands } => {
                let operands: Vec<TensorId> = operands.iter().map(|o| same[o.0 as usize]).collect();
                let (mut kernel, operands) = canonical::statement(kernel.clone(), &operands);
                // The names of indices say nothing about the value.
                for index in &mut kernel.indices {
                    index.name.clear();
                }
                Some(Value::Statement(kernel, operands))
            }
            Definition::Source(Source::Full(value)) => {
                Some(Value::Full(*value, tensor.dtype, tensor.shape.clone()))
            }
            Definition::Source(Source::Iota) => {
                Some(Value::Iota(tensor.dtype, tensor.shape.clone()))
            }
            Definition::Source(_) => None,
        };
        same.push(value.map_or(id, |value| *values.entry(value).or_insert(id)));
    }
    let mut needed = vec![false; program.tensors.len()];
    for output in &program.outputs {
        needed[same[output.tensor.0 as usize].0 as usize] = true;
    }
    for at in (0..needed.len()).rev() {
        if needed[at]
            && let Definition::Statement { operands, .. } = &program.tensors[at].definition
        {
            for operand in operands {
                needed[same[operand.0 as usize].0 as usize] = true;
            }
        }
    }
    let mut result = Program {
        files: program.files.clone(),
        ..Program::default()
    };
    let mut moved = vec![TensorId(0); needed.len()];
    for (at, tensor) in program.tensors.iter().enumerate() {
        if !needed[at] {
            continue;
        }
        moved[at] = TensorId(result.tensors.len() as u32);
        let mut tensor = tensor.clone();
        if let Definition::Statement { operands, .. } = &mut tensor.definition {
            for operand in operands {
                *operand = moved[same[operand.0 as usize].0 as usize];
            }
        }
        result.tensors.push(tensor);
    }
    let mut output_names = vec![];
    for output in &program.outputs {
        output_names.push(program.tensor(output.tensor).name.clone());
        let mut output = output.clone();
        output.tensor = moved[same[output.tensor.0 as usize].0 as usize];
        result.outputs.push(output);
    }
    Shared {
        program: result.canonical(),
        output_names,
    }
}
