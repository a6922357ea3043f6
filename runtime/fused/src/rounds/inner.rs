//! Loops within a round.
//!
//! States begin with copies of their initial values, and what is collected with zeros. Must not know what a round computes.
//!
//! ```text
//! state b = a; repeat j < 8   ->   b = a; j = 0; head: if j < 8 { round; j = j + 1; jump head }; made = j; total = total + j
//! ```

use super::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use ein_plan::DType;
use ein_plan::small_rounds::{InnerBound, InnerRounds};

impl Code<'_, '_> {
    /// Makes the rounds of a loop. Behind it the places of its states, of what it collects and of how many rounds it made are known.
    pub(super) fn inner_rounds(&mut self, inner: &InnerRounds) {
        let body = &inner.body;
        for (state, initial) in body.states.iter().zip(&inner.initial) {
            self.copy(*initial, self.addresses[state.place], state.place);
        }
        for (_, room) in &body.collected {
            self.clear(*room);
        }
        let most = self.most(inner);
        let zero = self.builder.ins().iconst(types::I64, 0);
        let around = self.scalars.clone();
        let [head, round, end] = [(); 3].map(|()| self.builder.create_block());
        for block in [head, end] {
            self.builder.append_block_param(block, types::I64);
        }
        self.builder.ins().jump(head, &[BlockArg::Value(zero)]);

        self.builder.switch_to_block(head);
        let count = self.builder.block_params(head)[0];
        let more = self.builder.ins().icmp(IntCC::SignedLessThan, count, most);
        let out = [BlockArg::Value(count)];
        self.builder.ins().brif(more, round, &[], end, &out);

        self.builder.switch_to_block(round);
        self.round(body, count);
        let next = [BlockArg::Value(self.builder.ins().iadd_imm_s(count, 1))];
        match body.until {
            None => self.builder.ins().jump(head, &next),
            Some(until) => {
                let ends = self.scalar(until);
                self.builder.ins().brif(ends, end, &next, head, &next)
            }
        };

        self.builder.switch_to_block(end);
        let made = self.builder.block_params(end)[0];
        self.scalars = around;
        self.put(inner.made, made);
        let before = self.load(DType::I64, self.addresses[inner.total]);
        let total = self.builder.ins().iadd(before, made);
        self.store(DType::I64, total, self.addresses[inner.total]);
        self.load_scalars(body.states.iter().map(|state| state.place));
    }

    /// The most rounds that a loop may make: no more than there is room for what it collects.
    fn most(&mut self, inner: &InnerRounds) -> Value {
        let rooms = inner.body.collected.iter();
        let room = rooms
            .map(|(_, all)| self.rounds.places[*all].shape[0])
            .min();
        let room = room.unwrap_or(u64::MAX);
        let number = |most: u64| i64::try_from(most).unwrap_or(i64::MAX);
        match inner.most {
            InnerBound::Rounds(most) => {
                let most = number(most.min(room));
                self.builder.ins().iconst(types::I64, most)
            }
            InnerBound::Place(place) => {
                let room = self.builder.ins().iconst(types::I64, number(room));
                let most = self.scalar(place);
                self.builder.ins().smin(most, room)
            }
        }
    }

    /// Fills a place with zeros.
    fn clear(&mut self, place: usize) {
        let (dtype, count) = (
            self.rounds.places[place].dtype,
            self.rounds.places[place].elements(),
        );
        let (start, size) = (self.addresses[place], dtype.size() as i64);
        let zero = self.zero(dtype.compute());
        self.nest(&[count], vec![], &mut |code, at, carried| {
            let offset = code.builder.ins().imul_imm_s(at[0], size);
            let address = code.builder.ins().iadd(start, offset);
            code.store(dtype, zero, address);
            carried
        });
    }
}
