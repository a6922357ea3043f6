//! What the outputs of a program need.
//!
//! Must not change what is kept, except the numbers of tensors.
//!
//! ```text
//! x, y reads x, z reads x, output z   =>   x, z
//! ```

use super::{Definition, Program, TensorId};

impl Program {
    /// The same program without the tensors that no output needs.
    #[must_use]
    pub fn needed(mut self) -> Program {
        let mut needed = vec![false; self.tensors.len()];
        for output in &self.outputs {
            needed[output.tensor.0 as usize] = true;
        }
        for (at, tensor) in self.tensors.iter().enumerate().rev() {
            if let (true, Definition::Statement { operands, .. }) = (needed[at], &tensor.definition)
            {
                operands.iter().for_each(|o| needed[o.0 as usize] = true);
            }
        }
        if needed.iter().all(|needed| *needed) {
            return self;
        }
        let mut numbers = vec![TensorId(0); needed.len()];
        let mut kept = vec![];
        for (at, mut tensor) in self.tensors.into_iter().enumerate() {
            if !needed[at] {
                continue;
            }
            numbers[at] = TensorId(kept.len() as u32);
            if let Definition::Statement { operands, .. } = &mut tensor.definition {
                for operand in operands {
                    *operand = numbers[operand.0 as usize];
                }
            }
            kept.push(tensor);
        }
        self.tensors = kept;
        for output in &mut self.outputs {
            output.tensor = numbers[output.tensor.0 as usize];
        }
        self
    }
}
