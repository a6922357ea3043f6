//! Elements of a step's result: a kernel's value, or what its reduction makes of many.
//!
//! Sums of single precision are added up in double precision, one after another. Must not know other steps.
//!
//! ```text
//! [i: 3 | k: 4] f32 = sum a0[i, k] if k <= i   ->   s = 0.0_f64; for k in 0..4 { if k <= i { s += a0[i, k] } }; f32(s)
//! ```

use super::Code;
use super::point::Poisoned;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use ein_plan::small_rounds::RoundStep;
use ein_plan::{DType, Function, Position, Reduction};

impl Code<'_, '_> {
    /// The element of a step's result at these values of its output indices. A fault leaves the rounds.
    pub(super) fn element(&mut self, step: &RoundStep, outputs: &[Value]) -> Value {
        match step.kernel.reduction {
            Some(reduction) => self.reduced(step, reduction, outputs),
            None => self.plain(step, outputs),
        }
    }

    /// A value without a reduction; zero where the guard fails.
    fn plain(&mut self, step: &RoundStep, at: &[Value]) -> Value {
        let kernel = &step.kernel;
        let mut known = vec![None; kernel.graph.len()];
        let (value, poison) = match kernel.guard {
            None => self.node(step, at, kernel.root, &mut known),
            Some(guard) => {
                let (holds, bad) = self.node(step, at, guard, &mut known);
                let (value, poison) = self.node(step, at, kernel.root, &mut known);
                let zero = self.zero(kernel.graph.dtype(kernel.root));
                let value = self.builder.ins().select(holds, value, zero);
                let poison = poison.map(|poison| self.builder.ins().band(poison, holds));
                (value, self.joined(bad, poison))
            }
        };
        if let Some(poison) = poison {
            self.fault_if(poison);
        }
        value
    }

    fn reduced(&mut self, step: &RoundStep, reduction: Reduction, outputs: &[Value]) -> Value {
        let kernel = &step.kernel;
        let rank = kernel.output_rank as usize;
        let dtype = kernel.graph.dtype(kernel.root);
        // Indices that the guard fixes are looked at there alone.
        let mut fixed = vec![None; kernel.indices.len()];
        for (index, position) in kernel.fixed() {
            let extent = kernel.indices[index.0 as usize].extent;
            if extent > 0 {
                fixed[index.0 as usize] = Some(self.fixed_at(step, position, extent));
            }
        }
        let reduced = rank..kernel.indices.len();
        let extent = |at: usize| match fixed[at] {
            Some(_) => 1,
            None => kernel.indices[at].extent,
        };
        let extents: Vec<u64> = reduced.map(extent).collect();
        let first = self.first(reduction, dtype);
        let end = self.nest(&extents, first, &mut |code, inner, carried| {
            let mut at = outputs.to_vec();
            let inner = inner.iter().zip(&fixed[rank..]);
            at.extend(inner.map(|(own, fixed)| fixed.unwrap_or(*own)));
            code.turn(step, reduction, (&at, dtype), carried)
        });
        self.finished(reduction, dtype, &end)
    }

    fn fixed_at(&mut self, step: &RoundStep, position: Position, extent: u64) -> Value {
        self.position(step, position, extent).0
    }

    /// Takes in a point, if the guard holds there.
    fn turn(
        &mut self,
        step: &RoundStep,
        reduction: Reduction,
        (at, dtype): (&[Value], DType),
        carried: Vec<Value>,
    ) -> Vec<Value> {
        let kernel = &step.kernel;
        let mut known = vec![None; kernel.graph.len()];
        let Some(guard) = kernel.guard else {
            let value = self.node(step, at, kernel.root, &mut known);
            return self.taken(step, reduction, (at, dtype), value, &carried);
        };
        let (holds, bad) = self.node(step, at, guard, &mut known);
        if let Some(bad) = bad {
            self.fault_if(bad);
        }
        let (here, on) = (self.builder.create_block(), self.builder.create_block());
        for value in &carried {
            let kind = self.builder.func.dfg.value_type(*value);
            self.builder.append_block_param(on, kind);
        }
        let arguments = |values: &[Value]| -> Vec<BlockArg> {
            values.iter().copied().map(BlockArg::Value).collect()
        };
        let left = arguments(&carried);
        self.builder.ins().brif(holds, here, &[], on, &left);
        self.builder.switch_to_block(here);
        let value = self.node(step, at, kernel.root, &mut known);
        let taken = self.taken(step, reduction, (at, dtype), value, &carried);
        self.builder.ins().jump(on, &arguments(&taken));
        self.builder.switch_to_block(on);
        self.builder.block_params(on).to_vec()
    }

    /// Returns what is carried before the first point.
    fn first(&mut self, reduction: Reduction, dtype: DType) -> Vec<Value> {
        let wide = match dtype {
            DType::F32 => DType::F64,
            other => other,
        };
        match reduction {
            Reduction::Sum | Reduction::Norm1 => vec![self.zero(wide)],
            Reduction::Prod => vec![self.number(wide, 1.0, 1)],
            Reduction::Mean => {
                let none = self.builder.ins().iconst(types::I64, 0);
                vec![self.zero(wide), none]
            }
            Reduction::Max => vec![self.number(dtype, f64::NEG_INFINITY, i64::MIN)],
            Reduction::Min => vec![self.number(dtype, f64::INFINITY, i64::MAX)],
            Reduction::NormInf => vec![self.zero(dtype)],
            Reduction::Any => vec![self.truth(false)],
            Reduction::All => vec![self.truth(true)],
            Reduction::ArgMax | Reduction::ArgMin => {
                let none = self.builder.ins().iconst(types::I64, -1);
                vec![self.zero(dtype), none]
            }
            Reduction::LogSumExp | Reduction::Norm => {
                unreachable!("a loop with a {} is made step by step", reduction.name())
            }
        }
    }

    fn taken(
        &mut self,
        step: &RoundStep,
        reduction: Reduction,
        (at, dtype): (&[Value], DType),
        (value, poison): Poisoned,
        carried: &[Value],
    ) -> Vec<Value> {
        if let Some(poison) = poison {
            self.fault_if(poison);
        }
        let wide = |code: &mut Self, value| match dtype {
            DType::F32 => code.builder.ins().fpromote(types::F64, value),
            _ => value,
        };
        match reduction {
            Reduction::Sum => {
                let value = wide(self, value);
                vec![self.binary(Function::Add, carried[0], value)]
            }
            Reduction::Norm1 => {
                let (value, _) = self.apply(Function::Abs, &[value], dtype, None);
                let value = wide(self, value);
                vec![self.binary(Function::Add, carried[0], value)]
            }
            Reduction::Prod => {
                let value = wide(self, value);
                vec![self.binary(Function::Mul, carried[0], value)]
            }
            Reduction::Mean => {
                let value = wide(self, value);
                let sum = self.binary(Function::Add, carried[0], value);
                vec![sum, self.builder.ins().iadd_imm_s(carried[1], 1)]
            }
            Reduction::Max => vec![self.extreme(Function::Max, carried[0], value, dtype)],
            Reduction::Min => vec![self.extreme(Function::Min, carried[0], value, dtype)],
            Reduction::NormInf => {
                let (value, _) = self.apply(Function::Abs, &[value], dtype, None);
                vec![self.extreme(Function::Max, carried[0], value, dtype)]
            }
            Reduction::Any => vec![self.builder.ins().bor(carried[0], value)],
            Reduction::All => vec![self.builder.ins().band(carried[0], value)],
            Reduction::ArgMax | Reduction::ArgMin => {
                let index = at[step.kernel.output_rank as usize];
                let better = self.better(reduction, (carried[0], carried[1]), value, dtype);
                let best = self.builder.ins().select(better, value, carried[0]);
                vec![best, self.builder.ins().select(better, index, carried[1])]
            }
            Reduction::LogSumExp | Reduction::Norm => {
                unreachable!("a loop with a {} is made step by step", reduction.name())
            }
        }
    }

    fn extreme(&mut self, function: Function, old: Value, new: Value, dtype: DType) -> Value {
        self.apply(function, &[old, new], dtype, None).0
    }

    /// Returns whether a value takes the place of the best one: it is the first, better, or the first that is not a number.
    fn better(
        &mut self,
        reduction: Reduction,
        (best, index): (Value, Value),
        value: Value,
        dtype: DType,
    ) -> Value {
        let is_first = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::SignedLessThan, index, 0);
        let function = match reduction {
            Reduction::ArgMax => Function::Gt,
            _ => Function::Lt,
        };
        let (mut better, _) = self.apply(function, &[value, best], dtype, None);
        if dtype.is_float() {
            let nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
            let best_is = self.builder.ins().fcmp(FloatCC::Ordered, best, best);
            let either = self.builder.ins().bor(better, nan);
            better = self.builder.ins().band(either, best_is);
        }
        self.builder.ins().bor(is_first, better)
    }

    /// The result of what is carried in the end.
    fn finished(&mut self, reduction: Reduction, dtype: DType, carried: &[Value]) -> Value {
        let narrow = |code: &mut Self, value| match dtype {
            DType::F32 => code.builder.ins().fdemote(types::F32, value),
            _ => value,
        };
        match reduction {
            Reduction::Sum | Reduction::Norm1 | Reduction::Prod => narrow(self, carried[0]),
            Reduction::Mean => {
                let count = self.convert(carried[1], DType::I64, dtype);
                let sum = narrow(self, carried[0]);
                self.builder.ins().fdiv(sum, count)
            }
            Reduction::ArgMax | Reduction::ArgMin => {
                let none = self
                    .builder
                    .ins()
                    .icmp_imm_s(IntCC::SignedLessThan, carried[1], 0);
                self.fault_if(none);
                carried[1]
            }
            _ => carried[0],
        }
    }

    pub(super) fn zero(&mut self, dtype: DType) -> Value {
        self.number(dtype, 0.0, 0)
    }

    /// A number of a type: the real one of floats, the whole one of integers, of `i32` the nearest one.
    fn number(&mut self, dtype: DType, real: f64, whole: i64) -> Value {
        match dtype {
            DType::F32 => self.builder.ins().f32const(real as f32),
            DType::F64 => self.builder.ins().f64const(real),
            DType::I32 => {
                let near = whole.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                self.builder
                    .ins()
                    .iconst(types::I32, i64::from(near.cast_unsigned()))
            }
            DType::I64 => self.builder.ins().iconst(types::I64, whole),
            _ => self.truth(whole != 0),
        }
    }
}
