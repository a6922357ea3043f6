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
//!
//! The body of a block is indented; its first lines are its states and the collected values:
//!
//! ```text
//! repeat t < 100 until small {   // model.ein:7
//!   carry x.0 -> x.1
//!   collect y at 0
//!   x: f32[8] = state 0 of t
//!   ys: f32[100, 8] = collected 0 of t    (after the block; so too `last 0 of t`, `rounds of t`; `counter of t` inside)
//! ```

use super::{
    Block, BlockId, Bound, Definition, Item, LoopValue, Nest, Output, Program, Role, Tensor,
    TensorId,
};
use ein_plan::Kernel;
use ein_plan::print::expression::{body, indices};
use ein_plan::print::{Name, assertion, complex, destination, files, list, origin};
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
        self.body(f, &self.nest(), None, 0)?;
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
            Definition::Loop(value) => self.loop_text(*value),
        };
        let origin = origin(tensor.origin, &self.files);
        format!("{role}{name}: {dtype}[{shape}] = {definition}{origin}")
    }

    fn body(
        &self,
        f: &mut fmt::Formatter<'_>,
        nest: &Nest,
        block: Option<BlockId>,
        depth: usize,
    ) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for item in nest.body(block) {
            match item {
                Item::Tensor(id) => writeln!(f, "{indent}{}", self.tensor_text(self.tensor(*id)))?,
                Item::Block(id) => {
                    let block = self.block(*id);
                    writeln!(f, "{indent}{}", self.block_text(block))?;
                    for state in &block.states {
                        let (initial, next) = (Some(&state.initial), Some(&state.next));
                        let (initial, next) = (self.name(initial), self.name(next));
                        writeln!(f, "{indent}  carry {initial} -> {next}")?;
                    }
                    for collected in &block.collected {
                        let value = self.name(Some(&collected.value));
                        writeln!(f, "{indent}  collect {value} at {}", collected.dim)?;
                    }
                    self.body(f, nest, Some(*id), depth + 1)?;
                    writeln!(f, "{indent}}}")?;
                }
            }
        }
        Ok(())
    }

    /// The line that opens a block.
    pub fn block_text(&self, block: &Block) -> String {
        let bound = match &block.bound {
            Bound::Rounds(rounds) => rounds.to_string(),
            Bound::Value(bound) => self.name(Some(bound)),
            Bound::Unbounded => "inf".to_string(),
        };
        let until = block.until.map(|until| self.name(Some(&until)));
        let until = until.map_or(String::new(), |until| format!(" until {until}"));
        let origin = origin(block.origin, &self.files);
        format!("repeat {} < {bound}{until} {{{origin}", Name(&block.name))
    }

    fn loop_text(&self, value: LoopValue) -> String {
        let of = match self.blocks.get(value.block().0 as usize) {
            Some(block) => Name(&block.name).to_string(),
            None => "unknown".to_string(),
        };
        match value {
            LoopValue::Counter(_) => format!("counter of {of}"),
            LoopValue::State(_, number) => format!("state {number} of {of}"),
            LoopValue::Last(_, number) => format!("last {number} of {of}"),
            LoopValue::Rounds(_) => format!("rounds of {of}"),
            LoopValue::Collected(_, number) => format!("collected {number} of {of}"),
        }
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
        let to = destination(output.replaces.as_deref(), output.file.as_deref());
        let asserts = assertion(output.asserts.as_deref()) + complex(output.complex);
        let origin = origin(output.origin, &self.files);
        format!(
            "output {}{to}{asserts}{origin}",
            self.name(Some(&output.tensor))
        )
    }
}
