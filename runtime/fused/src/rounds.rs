//! The code of a loop whose steps are small: all of its rounds in one function, element by element.
//!
//! The function takes the address of a table of addresses (of each place, then of a number that says how it ended, then of what is handed to steps
//! that are called), the number of the round to begin with, and the number to stop at. It returns the number of the round that it did not make, with the number of an [`Ended`] in the table. A
//! round that faults changes no state: what a round ends with is put into its place when all of it is computed. Must not know plans, nor where
//! the code is put.
//!
//! ```text
//! fn(addresses: *const *mut u8, first: i64, most: i64) -> i64
//! ```

mod apply;
mod inner;
mod nest;
mod point;
mod reduce;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, Function, InstBuilder, MemFlagsData, Signature, Type, UserFuncName,
    Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use ein_plan::small_rounds::{Ended, RoundBody, RoundItem, RoundStep, SmallRounds};
use ein_plan::{DType, Position};
use std::collections::BTreeMap;

/// The addresses of the functions that the code calls, by type: each takes the number of a [`ein_plan::Function`] among
/// [`ein_plan::Function::ALL`] and its arguments, the second one twice where there is one.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// `extern "C" fn(i64, f32, f32) -> f32`.
    pub f32s: usize,
    /// `extern "C" fn(i64, f64, f64) -> f64`.
    pub f64s: usize,
    /// `extern "C" fn(i64, i32, i32) -> i32`.
    pub i32s: usize,
    /// `extern "C" fn(i64, i64, i64) -> i64`.
    pub i64s: usize,
    /// A power with an exponent that is known, `extern "C" fn(i64, f32, f32) -> f32`.
    pub powers_f32: usize,
    /// Such a power, `extern "C" fn(i64, f64, f64) -> f64`.
    pub powers_f64: usize,
    /// A step that is called, `extern "C" fn(*const (), i64, *const *mut u8) -> i64`: it takes what is handed to it, its number, and the table of
    /// addresses. It returns 0, or another number where it has a fault.
    pub steps: usize,
}

/// The signature of every such function.
pub fn signature(convention: CallConv, pointer: Type) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params.push(AbiParam::new(pointer));
    signature.params.push(AbiParam::new(types::I64));
    signature.params.push(AbiParam::new(types::I64));
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// The function of a loop, for a target with 64-bit addresses.
pub fn function(rounds: &SmallRounds, calls: &Calls, config: TargetFrontendConfig) -> Function {
    let signature = signature(config.default_call_conv, config.pointer_type());
    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut buffers = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut buffers);
    let fault = builder.create_block();
    let mut code = Code {
        rounds,
        calls,
        convention: config.default_call_conv,
        builder,
        table: None,
        addresses: vec![],
        scalars: BTreeMap::new(),
        fault,
    };
    code.write();
    code.builder.finalize(config);
    function
}

/// A place that a step changes in place when the round has ended.
struct Change {
    dtype: DType,
    address: Value,
    value: Value,
    inside: Value,
}

struct Code<'f, 'r> {
    rounds: &'r SmallRounds,
    calls: &'r Calls,
    convention: CallConv,
    builder: FunctionBuilder<'f>,
    /// The address of the table.
    table: Option<Value>,
    /// By place.
    addresses: Vec<Value>,
    /// The values of scalar places that are known in this round.
    scalars: BTreeMap<usize, Value>,
    /// Where a fault leads.
    fault: Block,
}

impl Code<'_, '_> {
    fn write(&mut self) {
        let [entry, head, body, end] = [(); 4].map(|()| self.builder.create_block());
        self.builder.append_block_params_for_function_params(entry);
        self.builder.append_block_param(head, types::I64);
        self.builder.append_block_param(end, types::I64);
        self.builder.append_block_param(end, types::I64);
        self.builder.switch_to_block(entry);
        let parameters = self.builder.block_params(entry).to_vec();
        let [table, first, most] = parameters[..] else {
            unreachable!("the signature has three parameters");
        };
        let count = self.rounds.places.len();
        self.table = Some(table);
        self.addresses = (0..count).map(|at| self.address(table, at)).collect();
        let status = self.address(table, count);
        self.builder.ins().jump(head, &[BlockArg::Value(first)]);

        self.builder.switch_to_block(head);
        let round = self.builder.block_params(head)[0];
        let reached = self.builder.ins().iconst(types::I64, Ended::Most as i64);
        let more = self.builder.ins().icmp(IntCC::SignedLessThan, round, most);
        let out = [BlockArg::Value(round), BlockArg::Value(reached)];
        self.builder.ins().brif(more, body, &[], end, &out);

        self.builder.switch_to_block(body);
        let given = self.rounds.given.iter().map(|(_, place)| *place);
        self.load_scalars(given);
        self.round(&self.rounds.body, round);
        let next = self.builder.ins().iadd_imm_s(round, 1);
        match self.rounds.body.until {
            None => {
                self.builder.ins().jump(head, &[BlockArg::Value(next)]);
            }
            Some(until) => {
                let ends = self.scalar(until);
                let held = self.builder.ins().iconst(types::I64, Ended::Until as i64);
                let out = [BlockArg::Value(next), BlockArg::Value(held)];
                let again = [BlockArg::Value(next)];
                self.builder.ins().brif(ends, end, &out, head, &again);
            }
        }

        self.builder.switch_to_block(self.fault);
        let faulty = self.builder.ins().iconst(types::I64, Ended::Fault as i64);
        let out = [BlockArg::Value(round), BlockArg::Value(faulty)];
        self.builder.ins().jump(end, &out);

        self.builder.switch_to_block(end);
        let out = self.builder.block_params(end).to_vec();
        let unaligned = MemFlagsData::new().with_notrap();
        self.builder.ins().store(unaligned, out[1], status, 0);
        self.builder.ins().return_(&[out[0]]);
        self.builder.seal_all_blocks();
    }

    /// An address of the table.
    fn address(&mut self, table: Value, number: usize) -> Value {
        let unaligned = MemFlagsData::new().with_notrap();
        let at = 8 * number as i32;
        self.builder.ins().load(types::I64, unaligned, table, at)
    }

    /// All that a round of a loop does.
    fn round(&mut self, body: &RoundBody, round: Value) {
        if let Some(counter) = body.counter {
            self.put(counter, round);
        }
        self.load_scalars(body.states.iter().map(|state| state.place));
        let mut changes = vec![];
        let rounds = self.rounds;
        for item in &body.items {
            let number = match item {
                RoundItem::Step(number) => *number,
                RoundItem::Loop(inner) => {
                    self.inner_rounds(inner);
                    continue;
                }
            };
            let step = &rounds.steps[number];
            match &step.points {
                None if step.called.is_some() => self.called(number, step),
                None => self.whole(step),
                Some(points) => {
                    for point in points {
                        changes.push(self.changed(step, point));
                    }
                }
            }
        }
        for (value, all) in &body.collected {
            self.collect(*value, *all, round);
        }
        for change in changes {
            let old = self.load(change.dtype, change.address);
            let new = self.builder.ins().select(change.inside, change.value, old);
            self.store(change.dtype, new, change.address);
        }
        for state in body.states.iter().filter(|s| s.place != s.next) {
            self.copy(state.next, self.addresses[state.place], state.place);
        }
    }

    /// Loads those of these places that are scalars. What a branch would be the first to load would not be there behind it.
    fn load_scalars(&mut self, places: impl Iterator<Item = usize>) {
        for place in places {
            if self.rounds.places[place].shape.is_empty() {
                let value = self.load(self.rounds.places[place].dtype, self.addresses[place]);
                self.scalars.insert(place, value);
            }
        }
    }

    /// All of a step's result.
    fn whole(&mut self, step: &RoundStep) {
        let kernel = &step.kernel;
        let rank = kernel.output_rank as usize;
        let result = &self.rounds.places[step.result];
        let (dtype, is_scalar) = (result.dtype, result.shape.is_empty());
        let outputs: Vec<u64> = kernel.indices[..rank].iter().map(|i| i.extent).collect();
        let mut scalar = None;
        self.nest(&outputs, vec![], &mut |code, at, carried| {
            let value = code.element(step, at);
            let (_, address) = code.element_address(step.result, at);
            code.store(dtype, value, address);
            scalar = Some(value);
            carried
        });
        if let (true, Some(value)) = (is_scalar, scalar) {
            let held = self.held(dtype, value);
            self.scalars.insert(step.result, held);
        }
    }

    /// Calls for a step.
    fn called(&mut self, number: usize, step: &RoundStep) {
        let mut signature = Signature::new(self.convention);
        signature.params = vec![AbiParam::new(types::I64); 3];
        signature.returns.push(AbiParam::new(types::I64));
        let signature = self.builder.import_signature(signature);
        let table = self.table.expect("the table is there before its rounds");
        let handed = self.address(table, self.rounds.places.len() + 1);
        let number = self.builder.ins().iconst(types::I64, number as i64);
        let address = self
            .builder
            .ins()
            .iconst(types::I64, self.calls.steps as i64);
        let arguments = [handed, number, table];
        let call = self
            .builder
            .ins()
            .call_indirect(signature, address, &arguments);
        let faulty = self.builder.inst_results(call)[0];
        self.fault_if(faulty);
        self.load_scalars([step.result].into_iter());
    }

    /// An element that a step changes of a state.
    fn changed(&mut self, step: &RoundStep, point: &ein_plan::Point) -> Change {
        let rank = step.kernel.output_rank as usize;
        let mut at = vec![None; rank];
        let mut inside = self.truth(true);
        for (index, position) in point {
            let extent = step.kernel.indices[index.0 as usize].extent;
            let (value, within) = self.position(step, *position, extent);
            inside = self.builder.ins().band(inside, within);
            at[index.0 as usize] = Some(value);
        }
        let at: Option<Vec<Value>> = at.into_iter().collect();
        let at = at.expect("a point that is changed names every index");
        let (value, poison) = self.value(step, &at);
        if let Some(poison) = poison {
            let faulty = self.builder.ins().band(poison, inside);
            self.fault_if(faulty);
        }
        let (dtype, address) = self.element_address(step.result, &at);
        Change {
            dtype,
            address,
            value,
            inside,
        }
    }

    /// A position, or 0 where that is outside, and whether it is inside.
    fn position(&mut self, step: &RoundStep, position: Position, extent: u64) -> (Value, Value) {
        let value = match position {
            Position::Constant(value) => self.builder.ins().iconst(types::I64, value),
            Position::Scalar(operand) => self.scalar(step.operands[operand as usize]),
        };
        let within = IntCC::UnsignedLessThan;
        let inside = self.builder.ins().icmp_imm_u(within, value, extent as i64);
        let zero = self.builder.ins().iconst(types::I64, 0);
        (self.builder.ins().select(inside, value, zero), inside)
    }

    /// The value of a scalar place.
    fn scalar(&self, place: usize) -> Value {
        let known = self.scalars.get(&place);
        *known.expect("scalars are there before they are read")
    }

    /// Sets a scalar place.
    fn put(&mut self, place: usize, value: Value) {
        self.store(
            self.rounds.places[place].dtype,
            value,
            self.addresses[place],
        );
        self.scalars.insert(place, value);
    }

    /// Puts a value of this round among those of all rounds.
    fn collect(&mut self, value: usize, all: usize, round: Value) {
        let place = &self.rounds.places[value];
        let bytes = (place.elements() * place.dtype.size() as u64) as i64;
        let offset = self.builder.ins().imul_imm_s(round, bytes);
        let to = self.builder.ins().iadd(self.addresses[all], offset);
        self.copy(value, to, value);
    }

    /// Copies the elements of a place, as many as another one has.
    fn copy(&mut self, from: usize, to: Value, like: usize) {
        let (dtype, count) = (
            self.rounds.places[from].dtype,
            self.rounds.places[like].elements(),
        );
        let (from, size) = (self.addresses[from], dtype.size() as i64);
        self.nest(&[count], vec![], &mut |code, at, carried| {
            let offset = code.builder.ins().imul_imm_s(at[0], size);
            let source = code.builder.ins().iadd(from, offset);
            let value = code.load(dtype, source);
            let target = code.builder.ins().iadd(to, offset);
            code.store(dtype, value, target);
            carried
        });
    }

    /// The type of values in registers.
    fn register(dtype: DType) -> Type {
        match dtype.compute() {
            DType::F32 => types::F32,
            DType::F64 => types::F64,
            DType::I32 => types::I32,
            DType::I64 => types::I64,
            _ => types::I8,
        }
    }

    /// The type of an integer in memory.
    fn stored(dtype: DType) -> Type {
        match dtype.size() {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            _ => types::I64,
        }
    }

    /// An element, as it is computed.
    fn load(&mut self, dtype: DType, address: Value) -> Value {
        let unaligned = MemFlagsData::new().with_notrap();
        let (kind, wide) = (Self::stored(dtype), Self::register(dtype));
        match dtype {
            // Any byte but 0 is true.
            DType::Bool => {
                let value = self.builder.ins().load(kind, unaligned, address, 0);
                self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
            }
            _ if wide == kind || wide.is_float() => {
                self.builder.ins().load(wide, unaligned, address, 0)
            }
            _ => {
                let value = self.builder.ins().load(kind, unaligned, address, 0);
                self.widened(dtype, value)
            }
        }
    }

    /// Puts a value into memory, where an integer wraps.
    fn store(&mut self, dtype: DType, value: Value, address: Value) {
        let unaligned = MemFlagsData::new().with_notrap();
        let value = self.narrowed(dtype, value);
        self.builder.ins().store(unaligned, value, address, 0);
    }

    /// A value as it is read from a place of this type after it was stored there.
    fn held(&mut self, dtype: DType, value: Value) -> Value {
        let narrow = self.narrowed(dtype, value);
        match narrow == value {
            true => value,
            false => self.widened(dtype, narrow),
        }
    }

    /// The low bits of an integer that are stored.
    fn narrowed(&mut self, dtype: DType, value: Value) -> Value {
        let (kind, wide) = (Self::stored(dtype), Self::register(dtype));
        match wide == kind || wide.is_float() {
            true => value,
            false => self.builder.ins().ireduce(kind, value),
        }
    }

    /// An integer of few bits, as it is computed.
    fn widened(&mut self, dtype: DType, value: Value) -> Value {
        let wide = Self::register(dtype);
        match dtype {
            DType::U8 | DType::U16 | DType::U32 => self.builder.ins().uextend(wide, value),
            _ => self.builder.ins().sextend(wide, value),
        }
    }

    fn truth(&mut self, holds: bool) -> Value {
        self.builder.ins().iconst(types::I8, i64::from(holds))
    }

    /// Leaves the rounds where a truth value holds.
    fn fault_if(&mut self, faulty: Value) {
        let sound = self.builder.create_block();
        self.builder.ins().brif(faulty, self.fault, &[], sound, &[]);
        self.builder.switch_to_block(sound);
    }
}
