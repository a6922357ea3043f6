//! Conversions of a machine, between the compute types.
//!
//! From float to integer a value is truncated; what is out of range saturates, and NaN is 0. Must not know other
//! operations.
//!
//! ```text
//! i32 of 2.9 -2.9 1e20 NaN   ->   2 -2 2147483647 0
//! ```

use super::Machine;
use crate::operations as op;
use crate::program::Register;
use ein_plan::DType;

impl Machine<'_, '_> {
    #[inline(always)]
    pub(super) fn convert(&mut self, to: Register, argument: u32, n: usize) {
        let a = self.program.registers[argument as usize];
        macro_rules! same {
            ($bank:ident) => {{
                let (before, to) = self.$bank.split(to, n);
                to.copy_from_slice(before.lanes(a, n));
            }};
        }
        macro_rules! from {
            ($target:ident, $source:ident, $f:expr) => {{
                let (_, to) = self.$target.split(to, n);
                op::map(to, self.$source.lanes(a, n), $f);
            }};
        }
        use DType as D;
        match (to.dtype, a.dtype) {
            (D::F32, D::F32) => same!(f32s),
            (D::F32, D::F64) => from!(f32s, f64s, |x| x as f32),
            (D::F32, D::I32) => from!(f32s, i32s, |x| x as f32),
            (D::F32, D::I64) => from!(f32s, i64s, |x| x as f32),
            (D::F32, _) => from!(f32s, truths, f32::from),
            (D::F64, D::F32) => from!(f64s, f32s, f64::from),
            (D::F64, D::F64) => same!(f64s),
            (D::F64, D::I32) => from!(f64s, i32s, f64::from),
            (D::F64, D::I64) => from!(f64s, i64s, |x| x as f64),
            (D::F64, _) => from!(f64s, truths, f64::from),
            (D::I32, D::F32) => from!(i32s, f32s, |x| x as i32),
            (D::I32, D::F64) => from!(i32s, f64s, |x| x as i32),
            (D::I32, D::I32) => same!(i32s),
            (D::I32, D::I64) => from!(i32s, i64s, |x| x as i32),
            (D::I32, _) => from!(i32s, truths, i32::from),
            (D::I64, D::F32) => from!(i64s, f32s, |x| x as i64),
            (D::I64, D::F64) => from!(i64s, f64s, |x| x as i64),
            (D::I64, D::I32) => from!(i64s, i32s, i64::from),
            (D::I64, D::I64) => same!(i64s),
            (D::I64, _) => from!(i64s, truths, i64::from),
            (_, D::F32) => from!(truths, f32s, |x| u8::from(x != 0.0)),
            (_, D::F64) => from!(truths, f64s, |x| u8::from(x != 0.0)),
            (_, D::I32) => from!(truths, i32s, |x| u8::from(x != 0)),
            (_, D::I64) => from!(truths, i64s, |x| u8::from(x != 0)),
            _ => same!(truths),
        }
    }
}
