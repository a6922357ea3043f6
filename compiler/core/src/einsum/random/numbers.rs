//! The random choices of a case: a counter, scrambled.
//!
//! Must not know programs.
//!
//! ```text
//! seed 1: 3 0 2 2 1 …
//! ```

use ein_plan::{DType, Scalar};

/// A stream of choices.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        // The finalizer of SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    /// True once in that many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }

    /// One of the items; there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[(self.next() % items.len() as u64) as usize]
    }

    /// A size: 0 and 1 are not rare.
    pub(crate) fn size(&mut self) -> u64 {
        *self.pick(&[0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7])
    }

    /// A value of an element type: small, whole or halved; a wild one may be infinite or no number.
    pub(crate) fn value(&mut self, dtype: DType, wild: bool) -> Scalar {
        if wild && self.one_in(5) {
            return Scalar::Float(*self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]));
        }
        match dtype {
            DType::Bool => Scalar::Bool(self.one_in(2)),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::Int(self.between(0, 6)),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Scalar::Int(self.between(-6, 6)),
            _ => Scalar::Float(self.between(-12, 12) as f64 / 2.0),
        }
    }
}
