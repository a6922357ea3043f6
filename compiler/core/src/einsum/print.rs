//! Einstein programs as text: one tensor a line, with its type. [`super::parse`] reads it back.
//!
//! Names, numbers and expressions are printed as in plans (`ein_plan::print`). Of an origin only file and line are
//! printed. Must not know what is printed for.
//!
//! ```text
//! files "model.ein"
//! input A: f32[4, 6] = load("a.npy")   // model.ein:1
//! param B: f32[6, 8] = normal(0.0, 0.02)   // model.ein:2
//! C: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]   // model.ein:5
//! output C -> "c.npy"   // model.ein:6
//! ```

use super::{Definition, Output, Program, Role, Tensor, TensorId};
use ein_plan::Kernel;
use ein_plan::print::expression::{body, indices};
use ein_plan::print::{Name, files, list, origin};
use std::fmt;

impl Role {
    /// The word before a tensor's name, if its role has one.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Role::Input => Some("input"),
            Role::Param => Some("param"),
            Role::Named => None,
            Role::Hidden => Some("hidden"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&files(&self.files))?;
        for tensor in &self.tensors {
            writeln!(f, "{}", self.tensor_text(tensor))?;
        }
        for output in &self.outputs {
            writeln!(f, "{}", self.output_text(output))?;
        }
        Ok(())
    }
}

impl Program {
    /// One tensor as it is printed, without a line end.
    pub fn tensor_text(&self, tensor: &Tensor) -> String {
        let role = tensor.role.word().map(|word| format!("{word} "));
        let (role, name) = (role.unwrap_or_default(), Name(&tensor.name));
        let (dtype, shape) = (tensor.dtype, list(&tensor.shape));
        let definition = match &tensor.definition {
            Definition::Source(source) => source.to_string(),
            Definition::Statement { kernel, operands } => self.statement_text(kernel, operands),
        };
        let origin = origin(tensor.origin, &self.files);
        format!("{role}{name}: {dtype}[{shape}] = {definition}{origin}")
    }

    fn statement_text(&self, kernel: &Kernel, operands: &[TensorId]) -> String {
        let name = |operand: u32| self.name(operands.get(operand as usize));
        format!("{} {}", indices(kernel), body(kernel, &name))
    }

    fn name(&self, id: Option<&TensorId>) -> String {
        match id.and_then(|id| self.tensors.get(id.0 as usize)) {
            Some(tensor) => Name(&tensor.name).to_string(),
            None => "unknown".to_string(),
        }
    }

    fn output_text(&self, output: &Output) -> String {
        let file = match &output.file {
            Some(file) => format!(" -> {file:?}"),
            None => String::new(),
        };
        let origin = origin(output.origin, &self.files);
        format!("output {}{file}{origin}", self.name(Some(&output.tensor)))
    }
}
