//! The length of a vector of two numbers.
//!
//! Must not know strips.
//!
//! ```text
//! hypot(3, 4) = 5   hypot(1e300, 1e300) = 1.4e300   hypot(inf, NaN) = inf
//! ```

/// √(x² + y²), as if nothing in between were out of range. Corrected by what the squares and the root lose (Borges, An improved algorithm for
/// hypot(a,b), 2020, algorithm 5).
#[inline(always)]
pub(crate) fn hypot_f64(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let infinite = x == f64::INFINITY || y == f64::INFINITY;
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    // Powers of two: nothing is rounded.
    let (scale, back) = if long > 1e150 {
        (f64::from_bits(0x1a7 << 52), f64::from_bits(0x657 << 52))
    } else if long < 1e-140 {
        (f64::from_bits(0x657 << 52), f64::from_bits(0x1a7 << 52))
    } else {
        (1.0, 1.0)
    };
    let (long, short) = (long * scale, short * scale);
    let length = long.mul_add(long, short * short).sqrt();
    let (square, of_long) = (length * length, long * long);
    let lost = (-short).mul_add(short, square - of_long);
    let lost = lost + length.mul_add(length, -square) - long.mul_add(long, -of_long);
    let double = if length == 0.0 { 1.0 } else { 2.0 * length };
    let length = (length - lost / double) * back;
    if infinite { f64::INFINITY } else { length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes() {
        let (inf, nan, max) = (f64::INFINITY, f64::NAN, f64::MAX);
        let numbers = [
            0.0, -0.0, 5e-324, 3e-320, 1e-310, 2e-308, 1e-200, 3e-140, 1e-9, 1.0, -3.0, 4.0, 0.7,
            1e9, 2e150, 1e154, 7e200, 1e308, max, inf, -inf, nan,
        ];
        for x in numbers {
            for y in numbers {
                let (found, exact) = (hypot_f64(x, y), x.hypot(y));
                let apart = found.to_bits().abs_diff(exact.to_bits());
                let same = found.is_nan() && exact.is_nan();
                assert!(apart <= 1 || same, "{x} {y}: {found} {exact}");
            }
        }
    }
}
