//! The code of a group: one loop of 128-bit vectors, without a branch or a call in it.
//!
//! The function takes a number of lanes, a positive multiple of [`Group::width`], and the address of a table of
//! addresses: of the lanes of each input, then of each output. It gives the bits that the strip machine gives. Must not
//! know who calls it, nor where its code is put.
//!
//! ```text
//! fn(lanes: i64, addresses: *const *mut u8)
//! ```

use crate::Group;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    AbiParam, BlockArg, Endianness, Function, InstBuilder, MemFlagsData, Signature, Type,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use ein_plan::Function as Operation;

/// The signature of every group's function.
pub fn signature(convention: CallConv, pointer: Type) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params.push(AbiParam::new(types::I64));
    signature.params.push(AbiParam::new(pointer));
    signature
}

/// The function of a group, for a target with 64-bit addresses.
pub fn function(group: &Group, config: TargetFrontendConfig) -> Function {
    let signature = signature(config.default_call_conv, config.pointer_type());
    let mut function = Function::with_name_signature(UserFuncName::user(0, 0), signature);
    let mut buffers = FunctionBuilderContext::new();
    let mut body = Body {
        double: group.double,
        builder: FunctionBuilder::new(&mut function, &mut buffers),
    };
    body.write(group);
    body.builder.finalize(config);
    function
}

struct Body<'f> {
    double: bool,
    builder: FunctionBuilder<'f>,
}

impl Body<'_> {
    /// The vectors of numbers, and of truth values: all bits of a lane are set or none.
    fn types(&self) -> (Type, Type) {
        if self.double {
            (types::F64X2, types::I64X2)
        } else {
            (types::F32X4, types::I32X4)
        }
    }

    fn write(&mut self, group: &Group) {
        let unaligned = MemFlagsData::new().with_notrap();
        let (numbers, _) = self.types();
        let size = if self.double { 8 } else { 4 };
        let entry = self.builder.create_block();
        let turn = self.builder.create_block();
        let end = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.append_block_param(turn, types::I64);
        self.builder.switch_to_block(entry);
        let parameters = self.builder.block_params(entry).to_vec();
        let (lanes, table) = (parameters[0], parameters[1]);
        let count = group.inputs.len() + group.outputs.len();
        // What is the same in all turns; its addresses are done with before the others are there, so that these find registers.
        let mut values: Vec<Option<Value>> = vec![];
        for (at, input) in group.inputs.iter().enumerate() {
            values.push(input.uniform.then(|| {
                let address = self.address(table, at);
                self.uniform(address, input.truth)
            }));
        }
        values.resize(group.inputs.len() + group.steps.len(), None);
        let moves = |at: usize| group.inputs.get(at).is_none_or(|input| !input.uniform);
        let addresses: Vec<Option<Value>> = (0..count)
            .map(|at| moves(at).then(|| self.address(table, at)))
            .collect();
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.ins().jump(turn, &[BlockArg::Value(zero)]);

        self.builder.switch_to_block(turn);
        let first = self.builder.block_params(turn)[0];
        let offset = self.builder.ins().imul_imm_s(first, size);
        for (at, input) in group.inputs.iter().enumerate() {
            if let Some(address) = addresses[at] {
                values[at] = Some(if input.truth {
                    let from = self.builder.ins().iadd(address, first);
                    self.load_truths(from)
                } else {
                    let from = self.builder.ins().iadd(address, offset);
                    self.builder.ins().load(numbers, unaligned, from, 0)
                });
            }
        }
        let kinds = group.truths();
        for (number, (f, arguments)) in group.steps.iter().enumerate() {
            let arguments = &arguments[..f.arity()];
            let list: Vec<Value> = arguments
                .iter()
                .map(|a| values[*a as usize].expect("arguments stand before their users"))
                .collect();
            let of_truths = arguments.iter().all(|a| kinds[*a as usize]);
            values[group.inputs.len() + number] = Some(self.apply(*f, &list, of_truths));
        }
        for (output, address) in group.outputs.iter().zip(&addresses[group.inputs.len()..]) {
            let value = values[*output as usize].expect("an output is a step");
            let address = address.expect("an output has lanes of its own");
            if kinds[*output as usize] {
                let to = self.builder.ins().iadd(address, first);
                self.store_truths(value, to);
            } else {
                let to = self.builder.ins().iadd(address, offset);
                self.builder.ins().store(unaligned, value, to, 0);
            }
        }
        let width = group.width() as i64;
        let next = self.builder.ins().iadd_imm_s(first, width);
        let more = self.builder.ins().icmp(IntCC::SignedLessThan, next, lanes);
        self.builder
            .ins()
            .brif(more, turn, &[BlockArg::Value(next)], end, &[]);
        self.builder.switch_to_block(end);
        self.builder.ins().return_(&[]);
        self.builder.seal_all_blocks();
    }

    /// An address of the table.
    fn address(&mut self, table: Value, number: usize) -> Value {
        let unaligned = MemFlagsData::new().with_notrap();
        let at = 8 * number as i32;
        self.builder.ins().load(types::I64, unaligned, table, at)
    }

    /// All lanes of an input that has one value.
    fn uniform(&mut self, address: Value, truth: bool) -> Value {
        let unaligned = MemFlagsData::new().with_notrap();
        let (numbers, truths) = self.types();
        if !truth {
            let lane = numbers.lane_type();
            let x = self.builder.ins().load(lane, unaligned, address, 0);
            return self.builder.ins().splat(numbers, x);
        }
        let lane = truths.lane_type();
        let x = self.builder.ins().load(types::I8, unaligned, address, 0);
        let holds = self.builder.ins().icmp_imm_s(IntCC::NotEqual, x, 0);
        let mask = self.builder.ins().bmask(lane, holds);
        self.builder.ins().splat(truths, mask)
    }

    /// A number in all lanes.
    fn number(&mut self, x: f64) -> Value {
        let (numbers, _) = self.types();
        let lane = if self.double {
            self.builder.ins().f64const(x)
        } else {
            self.builder.ins().f32const(x as f32)
        };
        self.builder.ins().splat(numbers, lane)
    }

    fn cast(&mut self, to: Type, x: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(to, flags, x)
    }

    /// Bytes 0 and 1 as lanes of no bit and all bits.
    fn load_truths(&mut self, from: Value) -> Value {
        let unaligned = MemFlagsData::new().with_notrap();
        let (_, truths) = self.types();
        let bytes = if self.double {
            let two = self.builder.ins().load(types::I16, unaligned, from, 0);
            self.builder.ins().scalar_to_vector(types::I16X8, two)
        } else {
            let four = self.builder.ins().load(types::I32, unaligned, from, 0);
            self.builder.ins().scalar_to_vector(types::I32X4, four)
        };
        let bytes = self.cast(types::I8X16, bytes);
        let mut lanes = self.builder.ins().swiden_low(bytes);
        lanes = self.builder.ins().swiden_low(lanes);
        if self.double {
            lanes = self.builder.ins().swiden_low(lanes);
        }
        debug_assert_eq!(self.builder.func.dfg.value_type(lanes), truths);
        // 0 - 1 has all bits.
        self.builder.ins().ineg(lanes)
    }

    fn store_truths(&mut self, value: Value, to: Value) {
        let unaligned = MemFlagsData::new().with_notrap();
        let lanes = if self.double { 2 } else { 4 };
        for lane in 0..lanes {
            let x = self.builder.ins().extractlane(value, lane);
            let bit = self.builder.ins().band_imm_s(x, 1);
            self.builder
                .ins()
                .istore8(unaligned, bit, to, i32::from(lane));
        }
    }

    /// a where the truth value holds, else b.
    fn choose(&mut self, truth: Value, a: Value, b: Value) -> Value {
        let (numbers, truths) = self.types();
        if self.builder.func.dfg.value_type(a) == truths {
            return self.builder.ins().bitselect(truth, a, b);
        }
        let mask = self.cast(numbers, truth);
        self.builder.ins().bitselect(mask, a, b)
    }

    fn compare(&mut self, how: FloatCC, a: Value, b: Value) -> Value {
        self.builder.ins().fcmp(how, a, b)
    }

    fn apply(&mut self, f: Operation, a: &[Value], of_truths: bool) -> Value {
        use Operation as F;
        if of_truths && f != F::Select {
            return self.logic(f, a);
        }
        match f {
            F::Add => self.builder.ins().fadd(a[0], a[1]),
            F::Sub => self.builder.ins().fsub(a[0], a[1]),
            F::Mul => self.builder.ins().fmul(a[0], a[1]),
            F::Div => self.builder.ins().fdiv(a[0], a[1]),
            F::Min | F::Max => {
                let how = if f == F::Min {
                    FloatCC::LessThan
                } else {
                    FloatCC::GreaterThan
                };
                let first = self.compare(how, a[0], a[1]);
                let chosen = self.choose(first, a[0], a[1]);
                let nan = self.compare(FloatCC::Unordered, a[0], a[0]);
                self.choose(nan, a[0], chosen)
            }
            F::Eq => self.compare(FloatCC::Equal, a[0], a[1]),
            F::Ne => self.compare(FloatCC::NotEqual, a[0], a[1]),
            F::Lt => self.compare(FloatCC::LessThan, a[0], a[1]),
            F::Le => self.compare(FloatCC::LessThanOrEqual, a[0], a[1]),
            F::Gt => self.compare(FloatCC::GreaterThan, a[0], a[1]),
            F::Ge => self.compare(FloatCC::GreaterThanOrEqual, a[0], a[1]),
            F::Select => self.choose(a[0], a[1], a[2]),
            F::Neg => self.builder.ins().fneg(a[0]),
            F::Abs => self.builder.ins().fabs(a[0]),
            F::Sqrt => self.builder.ins().sqrt(a[0]),
            F::Rsqrt => {
                let root = self.builder.ins().sqrt(a[0]);
                let one = self.number(1.0);
                self.builder.ins().fdiv(one, root)
            }
            F::Relu => {
                let zero = self.number(0.0);
                let low = self.compare(FloatCC::LessThanOrEqual, a[0], zero);
                self.choose(low, zero, a[0])
            }
            F::Sign => {
                let (zero, one) = (self.number(0.0), self.number(1.0));
                let minus = self.number(-1.0);
                let low = self.compare(FloatCC::LessThan, a[0], zero);
                // NaN stays, and -0 becomes 0.
                let even = self.builder.ins().fadd(a[0], zero);
                let rest = self.choose(low, minus, even);
                let high = self.compare(FloatCC::GreaterThan, a[0], zero);
                self.choose(high, one, rest)
            }
            F::Floor => self.builder.ins().floor(a[0]),
            F::Ceil => self.builder.ins().ceil(a[0]),
            F::Round => self.builder.ins().nearest(a[0]),
            F::Stop => a[0],
            other => unreachable!("a group has no {}", other.name()),
        }
    }

    /// A function of truth values that gives a truth value.
    fn logic(&mut self, f: Operation, a: &[Value]) -> Value {
        use Operation as F;
        match f {
            F::And => self.builder.ins().band(a[0], a[1]),
            F::Or => self.builder.ins().bor(a[0], a[1]),
            F::Not => self.builder.ins().bnot(a[0]),
            F::Ne => self.builder.ins().bxor(a[0], a[1]),
            F::Eq => {
                let differ = self.builder.ins().bxor(a[0], a[1]);
                self.builder.ins().bnot(differ)
            }
            F::Stop => a[0],
            other => unreachable!("a group has no {} of truth values", other.name()),
        }
    }
}
