//! Loops in loops, with values that go from one turn to the next.
//!
//! Must not know what a turn does.
//!
//! ```text
//! nest [3, 4] (s)   ->   for i in 0..3 { for j in 0..4 { s = body(i, j, s) } }
//! ```

use super::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};

/// A turn: takes the values of the indices and what is carried, and returns what is carried on.
pub(super) type Turn<'t, 'f, 'r> =
    dyn FnMut(&mut Code<'f, 'r>, &[Value], Vec<Value>) -> Vec<Value> + 't;

impl<'f, 'r> Code<'f, 'r> {
    /// Makes a turn for all values of indices of these extents, the last one fastest; returns what is carried in the end.
    pub(super) fn nest(
        &mut self,
        extents: &[u64],
        carried: Vec<Value>,
        turn: &mut Turn<'_, 'f, 'r>,
    ) -> Vec<Value> {
        self.inner(extents, &mut vec![], carried, turn)
    }

    fn inner(
        &mut self,
        extents: &[u64],
        at: &mut Vec<Value>,
        carried: Vec<Value>,
        turn: &mut Turn<'_, 'f, 'r>,
    ) -> Vec<Value> {
        let Some((extent, inner)) = extents.split_first() else {
            return turn(self, at, carried);
        };
        if extents.contains(&0) {
            return carried;
        }
        let zero = self.builder.ins().iconst(types::I64, 0);
        if *extent == 1 {
            at.push(zero);
            let carried = self.inner(inner, at, carried, turn);
            at.pop();
            return carried;
        }
        let (head, end) = (self.builder.create_block(), self.builder.create_block());
        self.builder.append_block_param(head, types::I64);
        for value in &carried {
            let kind = self.builder.func.dfg.value_type(*value);
            self.builder.append_block_param(head, kind);
            self.builder.append_block_param(end, kind);
        }
        let values = |values: &[Value]| -> Vec<BlockArg> {
            values.iter().copied().map(BlockArg::Value).collect()
        };
        let mut first = values(&[zero]);
        first.extend(values(&carried));
        self.builder.ins().jump(head, &first);
        self.builder.switch_to_block(head);
        let parameters = self.builder.block_params(head).to_vec();
        at.push(parameters[0]);
        let carried = self.inner(inner, at, parameters[1..].to_vec(), turn);
        at.pop();
        let next = self.builder.ins().iadd_imm_s(parameters[0], 1);
        let less = IntCC::SignedLessThan;
        let more = self.builder.ins().icmp_imm_s(less, next, *extent as i64);
        let mut again = values(&[next]);
        again.extend(values(&carried));
        let out = values(&carried);
        self.builder.ins().brif(more, head, &again, end, &out);
        self.builder.switch_to_block(end);
        self.builder.block_params(end).to_vec()
    }
}
