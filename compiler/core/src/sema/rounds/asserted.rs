//! Assertions on data in rounds: a state of the block says whether one has held so far, and what is tested is its last value.
//!
//! A block that has `until` ends as soon as one of its assertions does not hold. Must not know what is asserted.
//!
//! ```text
//! repeat t < 9 { state x = 1.0; next x = x / 2; assert x > 0 }
//!   =>   state t.held.1 = true; next t.held.1 = t.held.1 and x > 0;  the assertion: t.held.1 after the block
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    Checker,
    definitions::tensors::{Assertion, Definition, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
};
use ein_plan::{DType, Function};
use einc_diag::Span;

impl Checker<'_> {
    /// Moves the assertions of the rounds of a block, whose statements have been read, to after the block.
    pub(crate) fn end_assertions(&mut self, id: BlockId, is_outermost: bool) {
        let parent = self.built.blocks[id.0 as usize].parent;
        for number in 0..self.built.asserts.len() {
            let Assertion {
                value, span, block, ..
            } = self.built.asserts[number];
            if block != Some(id) {
                continue;
            }
            let last = self.held_after(id, value, span);
            let assertion = &mut self.built.asserts[number];
            assertion.value = last;
            assertion.block = parent;
            // What stands in the program itself is always tested.
            if is_outermost && assertion.of.as_ref().is_some_and(Vec::is_empty) {
                assertion.of = None;
            }
        }
    }

    /// Adds a state that says whether a truth value of the rounds has held so far. Returns whether it held in all of them.
    fn held_after(&mut self, id: BlockId, value: TensorRef, span: Span) -> TensorRef {
        let block = &self.built.blocks[id.0 as usize];
        let (number, until) = (block.states.len() as u32, block.until);
        let name = format!("{}.held.{}", block.name, number + 1);
        let begin = self.arena.truth(true);
        let begin = self.truth_value(format!("{name}.initial"), begin, span);
        let before = self.loop_truth(name.clone(), LoopValue::State(id, number), span);
        let both = self.truth_of(Function::And, &[before, value]);
        let next = self.truth_value(format!("{name}.next"), both, span);
        self.built.blocks[id.0 as usize]
            .states
            .push((begin, Some(next)));
        if let Some(until) = until {
            let failed = self.truth_of(Function::Not, &[next]);
            let ends = self.element(until, vec![], DType::Bool);
            let ends = Form::Apply(Function::Or, vec![ends, failed]);
            let ends = self.arena.add(ends, Ty::Typed(DType::Bool));
            let ends = self.truth_value(format!("{name}.until"), ends, span);
            self.built.blocks[id.0 as usize].until = Some(ends);
        }
        let last = self.loop_truth(format!("{name}.last"), LoopValue::Last(id, number), span);
        let last = self.element(last, vec![], DType::Bool);
        self.truth_value(format!("{name}.all"), last, span)
    }

    /// A function of truth values.
    fn truth_of(&mut self, function: Function, of: &[TensorRef]) -> ExprId {
        let of = of.iter().map(|of| self.element(*of, vec![], DType::Bool));
        let form = Form::Apply(function, of.collect());
        self.arena.add(form, Ty::Typed(DType::Bool))
    }

    fn truth_value(&mut self, name: String, value: ExprId, span: Span) -> TensorRef {
        self.add_statement(name, value, vec![], vec![], span, Role::Hidden)
    }

    fn loop_truth(&mut self, name: String, value: LoopValue, span: Span) -> TensorRef {
        self.add_tensor(Tensor {
            name,
            dtype: DType::Bool,
            shape: vec![],
            role: Role::Hidden,
            definition: Definition::Loop(value),
            span,
        })
    }
}
