//! The outputs of a program, each with the carried tensor whose place it takes.
//!
//! Must not know how a step comes about: its pairs are given. In a program without steps that is written as one step, an output
//! `P_next` of a param `P` with its type and shape is the successor of `P`, so that both rest alike.
//!
//! ```text
//! param W: f32[4] … W_next[i] = W[i] - g[i]; output W_next   =>   output W_next replaces W
//! ```

use crate::einsum::{self, Definition, Program, Role, TensorId};
use crate::sema::{Checker, expressions::arena::TensorRef, train::update::successor_name};
use std::collections::HashMap;

impl Checker<'_> {
    /// Adds the outputs to a program whose tensors are there; `None` if one of them is not.
    pub(crate) fn lower_outputs(
        &self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
    ) -> Option<()> {
        let by_hand = match self.task.mode.step {
            None => written_by_hand(program),
            Some(_) => HashMap::new(),
        };
        for output in &self.built.outputs {
            let tensor = *numbers.get(&output.tensor)?;
            let replaces = match output.replaces {
                Some(old) => Some(self.built.tensors[old.0 as usize].name.clone()),
                None => by_hand.get(&tensor).cloned(),
            };
            program.outputs.push(einsum::Output {
                tensor,
                replaces,
                file: output.file.clone(),
                asserts: None,
                complex: output.complex,
                origin: self.origin(output.span),
            });
        }
        for assertion in &self.built.asserts {
            let tensor = match numbers.get(&assertion.value) {
                Some(tensor) => *tensor,
                // No output needs what it is about.
                None if assertion.of.is_some() => continue,
                None => return None,
            };
            program.outputs.push(einsum::Output {
                tensor,
                replaces: None,
                file: None,
                asserts: Some(assertion.said.clone()),
                complex: false,
                origin: self.origin(assertion.span),
            });
        }
        Some(())
    }
}

/// The successors of params by the convention of a step that is written by hand, with the names of the params.
fn written_by_hand(program: &Program) -> HashMap<TensorId, String> {
    let ids = (0..).map(TensorId).zip(&program.tensors);
    let named: HashMap<&str, TensorId> = ids.map(|(id, tensor)| (&*tensor.name, id)).collect();
    let params = program.tensors.iter().filter(|p| p.role == Role::Param);
    let pairs = params.filter_map(|param| {
        let id = *named.get(successor_name(&param.name).as_str())?;
        let next = program.tensor(id);
        let computed = matches!(next.definition, Definition::Statement { .. });
        let source = matches!(param.definition, Definition::Source(_));
        let alike = (next.dtype, &next.shape) == (param.dtype, &param.shape);
        (computed && source && alike).then(|| (id, param.name.clone()))
    });
    pairs.collect()
}
