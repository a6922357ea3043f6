//! Common subexpressions: two tensors with the same definition are one, and what no output needs is dropped.
//!
//! Random sources and files are told apart by their tensor's name, so they are never shared; nor are inputs and params, whatever they
//! begin with, since a run may bind a file to each. Statements of different
//! blocks read different tensors, so what is shared stays in its block. Must not know
//! chunkings.
//!
//! ```text
//! y = [i: 4] f32 a0[i] * 2.0 (x); z = [k: 4] f32 a0[k] * 2.0 (x)   gives   y, with z another name of it
//! ```

use crate::einsum::{Definition, LoopValue, Program, TensorId, canonical};
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
    Loop(LoopValue),
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
            Definition::Source(_) if tensor.role.is_bound() => None,
            Definition::Source(Source::Full(value)) => {
                Some(Value::Full(*value, tensor.dtype, tensor.shape.clone()))
            }
            Definition::Source(Source::Iota) => {
                Some(Value::Iota(tensor.dtype, tensor.shape.clone()))
            }
            Definition::Source(_) => None,
            Definition::Loop(value) => Some(Value::Loop(*value)),
        };
        same.push(value.map_or(id, |value| *values.entry(value).or_insert(id)));
    }
    let output_names = program.outputs.iter();
    let output_names = output_names.map(|output| program.tensor(output.tensor).name.clone());
    let output_names = output_names.collect();
    let mut result = program.clone();
    let one = |id: &mut TensorId| *id = same[id.0 as usize];
    for tensor in &mut result.tensors {
        if let Definition::Statement { operands, .. } = &mut tensor.definition {
            operands.iter_mut().for_each(one);
        }
    }
    result.rename_ends(one);
    let result = result.needed();
    Shared {
        program: result.canonical(),
        output_names,
    }
}
