//! Scalar functions and conversions.
//!
//! Cheap ones are instructions, all others calls of the functions that the strip machine has, so that both give the same bits. Must not know
//! kernels.
//!
//! ```text
//! add f64 v1 v2 -> fadd       exp f32 v1 -> call f32s(number of exp, v1, v1)       floordiv i64 v1 0 -> 0, poisoned
//! ```

use super::Code;
use super::point::Poisoned;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Type, Value, types};
use ein_plan::{DType, Function, Scalar};

impl Code<'_, '_> {
    /// A function of values of type `of`, and whether it has no value. `exponent`: the second argument, if it is a constant.
    pub(super) fn apply(
        &mut self,
        function: Function,
        values: &[Value],
        of: DType,
        exponent: Option<Scalar>,
    ) -> Poisoned {
        use Function as F;
        let a = values[0];
        let b = values.get(1).copied().unwrap_or(a);
        if function == F::Stop {
            return (a, None);
        }
        if let Some(truth) = self.compared(function, a, b, of) {
            return (truth, None);
        }
        match of {
            DType::Bool => (self.logic(function, a, b), None),
            DType::F32 | DType::F64 => (self.real(function, (a, b), of, exponent), None),
            _ => self.whole_number(function, (a, b), of),
        }
    }

    /// A sum or product of floats or integers.
    pub(super) fn binary(&mut self, function: Function, a: Value, b: Value) -> Value {
        let is_float = self.builder.func.dfg.value_type(a).is_float();
        match (function, is_float) {
            (Function::Mul, true) => self.builder.ins().fmul(a, b),
            (Function::Mul, false) => self.builder.ins().imul(a, b),
            (_, true) => self.builder.ins().fadd(a, b),
            (_, false) => self.builder.ins().iadd(a, b),
        }
    }

    fn compared(&mut self, function: Function, a: Value, b: Value, of: DType) -> Option<Value> {
        use Function as F;
        let (real, whole) = match function {
            F::Eq => (FloatCC::Equal, IntCC::Equal),
            F::Ne => (FloatCC::NotEqual, IntCC::NotEqual),
            F::Lt => (FloatCC::LessThan, IntCC::SignedLessThan),
            F::Le => (FloatCC::LessThanOrEqual, IntCC::SignedLessThanOrEqual),
            F::Gt => (FloatCC::GreaterThan, IntCC::SignedGreaterThan),
            F::Ge => (FloatCC::GreaterThanOrEqual, IntCC::SignedGreaterThanOrEqual),
            _ => return None,
        };
        Some(match of.is_float() {
            true => self.builder.ins().fcmp(real, a, b),
            false => self.builder.ins().icmp(whole, a, b),
        })
    }

    fn logic(&mut self, function: Function, a: Value, b: Value) -> Value {
        use Function as F;
        match function {
            F::And | F::Min | F::Mul => self.builder.ins().band(a, b),
            F::Or | F::Max | F::Add => self.builder.ins().bor(a, b),
            F::Not => self.builder.ins().bxor_imm_u(a, 1),
            other => unreachable!("{} of truth values", other.name()),
        }
    }

    fn real(
        &mut self,
        function: Function,
        (a, b): (Value, Value),
        of: DType,
        exponent: Option<Scalar>,
    ) -> Value {
        use Function as F;
        match function {
            F::Add => self.builder.ins().fadd(a, b),
            F::Sub => self.builder.ins().fsub(a, b),
            F::Mul => self.builder.ins().fmul(a, b),
            F::Div => self.builder.ins().fdiv(a, b),
            F::Neg => self.builder.ins().fneg(a),
            F::Abs => self.builder.ins().fabs(a),
            F::Sqrt => self.builder.ins().sqrt(a),
            F::Min | F::Max => {
                let how = match function {
                    F::Min => FloatCC::LessThan,
                    _ => FloatCC::GreaterThan,
                };
                let first = self.builder.ins().fcmp(how, a, b);
                let chosen = self.builder.ins().select(first, a, b);
                let nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
                self.builder.ins().select(nan, a, chosen)
            }
            F::Pow if exponent.is_some() => {
                let address = match of {
                    DType::F32 => self.calls.powers_f32,
                    _ => self.calls.powers_f64,
                };
                self.call(address, function, (a, b), Self::register(of))
            }
            _ => self.function(function, (a, b), of),
        }
    }

    fn whole_number(&mut self, function: Function, (a, b): (Value, Value), of: DType) -> Poisoned {
        use Function as F;
        let value = match function {
            F::Add => self.builder.ins().iadd(a, b),
            F::Sub => self.builder.ins().isub(a, b),
            F::Mul => self.builder.ins().imul(a, b),
            F::Neg => self.builder.ins().ineg(a),
            F::Min => self.builder.ins().smin(a, b),
            F::Max => self.builder.ins().smax(a, b),
            F::BitAnd => self.builder.ins().band(a, b),
            F::BitOr => self.builder.ins().bor(a, b),
            F::BitXor => self.builder.ins().bxor(a, b),
            F::Floor | F::Ceil | F::Round => a,
            F::Within => {
                let less = IntCC::UnsignedGreaterThanOrEqual;
                let outside = self.builder.ins().icmp(less, a, b);
                let negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, b, 1);
                return (a, Some(self.builder.ins().bor(outside, negative)));
            }
            F::FloorDiv | F::Rem | F::Div => {
                let zero = self.builder.ins().icmp_imm_s(IntCC::Equal, b, 0);
                return (self.function(function, (a, b), of), Some(zero));
            }
            F::Pow => {
                let below = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, b, 0);
                return (self.function(function, (a, b), of), Some(below));
            }
            _ => self.function(function, (a, b), of),
        };
        (value, None)
    }

    /// A call of the function of this type.
    fn function(&mut self, function: Function, arguments: (Value, Value), of: DType) -> Value {
        let address = match of {
            DType::F32 => self.calls.f32s,
            DType::F64 => self.calls.f64s,
            DType::I32 => self.calls.i32s,
            _ => self.calls.i64s,
        };
        self.call(address, function, arguments, Self::register(of))
    }

    fn call(&mut self, to: usize, function: Function, (a, b): (Value, Value), kind: Type) -> Value {
        let mut signature = Signature::new(self.convention);
        signature.params.push(AbiParam::new(types::I64));
        signature.params.push(AbiParam::new(kind));
        signature.params.push(AbiParam::new(kind));
        signature.returns.push(AbiParam::new(kind));
        let signature = self.builder.import_signature(signature);
        let number = Function::ALL.iter().position(|other| *other == function);
        let number = number.expect("every function is among all") as i64;
        let number = self.builder.ins().iconst(types::I64, number);
        let address = self.builder.ins().iconst(types::I64, to as i64);
        let call = self
            .builder
            .ins()
            .call_indirect(signature, address, &[number, a, b]);
        self.builder.inst_results(call)[0]
    }

    /// A value of one type as one of another: towards zero, the nearest where it is out of range, 0 of what is not a number.
    pub(super) fn convert(&mut self, value: Value, from: DType, to: DType) -> Value {
        let kind = Self::register(to);
        match (from, to) {
            (from, to) if from == to => value,
            (DType::F32, DType::F64) => self.builder.ins().fpromote(kind, value),
            (DType::F64, DType::F32) => self.builder.ins().fdemote(kind, value),
            (DType::F32 | DType::F64, DType::Bool) => {
                let zero = match from {
                    DType::F32 => self.builder.ins().f32const(0.0),
                    _ => self.builder.ins().f64const(0.0),
                };
                self.builder.ins().fcmp(FloatCC::NotEqual, value, zero)
            }
            (DType::F32 | DType::F64, _) => self.builder.ins().fcvt_to_sint_sat(kind, value),
            (DType::Bool, DType::F32 | DType::F64) => {
                let whole = self.builder.ins().uextend(types::I32, value);
                self.builder.ins().fcvt_from_sint(kind, whole)
            }
            (DType::Bool, _) => self.builder.ins().uextend(kind, value),
            (_, DType::F32 | DType::F64) => self.builder.ins().fcvt_from_sint(kind, value),
            (_, DType::Bool) => self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0),
            (DType::I32, _) => self.builder.ins().sextend(kind, value),
            _ => self.builder.ins().ireduce(kind, value),
        }
    }
}
