//! Many numbers divided by one, with multiplications instead: the bits of division.
//!
//! A processor multiplies sixteen numbers in the time in which it divides one. With y' the inverse of y as it is rounded, and q within a unit of
//! the last place of x / y, fma(fma(-q, y, x), y', q) is x / y as it is rounded (Markstein 1990), as long as nothing on the way leaves the normal numbers;
//! that q is made of two parts of the inverse (Brisebarre, Muller and Raina 2004, section 4). What may leave them is divided. Must not know where
//! numbers come from.
//!
//! ```text
//! 1 5 7 by 10   ->   0.1 0.5 0.7, each the nearest number
//! ```

use crate::wide::{self, Job};

/// Lanes that are looked at together: one that is far from 1 sends them all to the divider.
const PART: usize = 64;
/// Binary orders of magnitude around 1 in which dividends, and half of that in which divisors, are near.
const NEAR: i32 = 64;

/// `to[l] = from[l] / by`.
pub(crate) fn run(to: &mut [f32], from: &[f32], by: f32) {
    wide::run(Lanes { to, from, by });
}

struct Lanes<'l> {
    to: &'l mut [f32],
    from: &'l [f32],
    by: f32,
}

/// The bits of 2^k.
const fn power(k: i32) -> u32 {
    ((k + 127) as u32) << 23
}

/// Whether a dividend is near: 0, or of a magnitude between 2^-64 and 2^64. Not -0, whose sign a sum with 0 loses.
#[inline(always)]
fn is_near(x: f32) -> bool {
    let bits = x.to_bits();
    let magnitude = (bits & 0x7fff_ffff).wrapping_sub(power(-NEAR));
    (magnitude < power(NEAR) - power(-NEAR)) | (bits == 0)
}

impl Job for Lanes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        let Lanes { to, from, by } = self;
        let near = power(-NEAR / 2)..power(NEAR / 2);
        // A multiplication and addition in one that the processor does not have would take far longer than a division.
        if !wide::has_wide() || !near.contains(&by.to_bits()) {
            for (to, x) in to.iter_mut().zip(from) {
                *to = x / by;
            }
            return;
        }
        let inverse = 1.0 / by;
        let lost = (-inverse).mul_add(by, 1.0) * inverse;
        let (to, to_rest) = to.as_chunks_mut::<PART>();
        let (from, from_rest) = from.as_chunks::<PART>();
        for (to, from) in to.iter_mut().zip(from) {
            let mut far = 0;
            for (to, x) in to.iter_mut().zip(from) {
                let close = x.mul_add(inverse, x * lost);
                let rest = (-close).mul_add(by, *x);
                *to = rest.mul_add(inverse, close);
                far |= u32::from(!is_near(*x));
            }
            if far != 0 {
                for (to, x) in to.iter_mut().zip(from) {
                    *to = x / by;
                }
            }
        }
        for (to, x) in to_rest.iter_mut().zip(from_rest) {
            *to = x / by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PART, run};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    #[track_caller]
    fn check(x: &[f32], by: f32) {
        let mut quotients = vec![f32::NAN; x.len()];
        run(&mut quotients, x, by);
        for (x, quotient) in x.iter().zip(quotients) {
            let wanted = x / by;
            let equal =
                quotient.to_bits() == wanted.to_bits() || wanted.is_nan() && quotient.is_nan();
            assert!(equal, "{x:e} / {by:e} is {wanted:e}, not {quotient:e}");
        }
    }

    #[test]
    fn quotients_have_the_bits_of_division() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        // Mantissas of all kinds: random ones, and few bits from either end of their range.
        let mut mantissa = |kind: u32| match kind % 3 {
            0 => random.next_u32() & 0x7f_ffff,
            1 => random.next_u32() & 7,
            _ => 0x7f_ffff - (random.next_u32() & 7),
        };
        for round in 0..20_000 {
            let by = f32::from_bits(((round % 67 + 94) << 23) | mantissa(round));
            let x: Vec<f32> = (0..PART as u32)
                .map(|k| f32::from_bits(((k * 2 + 63) << 23) | mantissa(k + round / 3)))
                .collect();
            check(&x, by);
            check(&x.iter().map(|x| -x).collect::<Vec<_>>(), by);
        }
    }

    #[test]
    fn quotients_of_what_is_far_from_one_are_divided() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1e-45,
            -1e-40,
            f32::MIN_POSITIVE,
            1e-30,
            3e30,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            7e-20,
            5e19,
        ];
        for by in special {
            for x in special {
                let mut lanes = vec![3.0; 2 * PART + 5];
                (lanes[PART + 9], lanes[2 * PART]) = (x, x);
                check(&lanes, by);
                check(&vec![x; PART + 1], by);
            }
        }
    }
}
