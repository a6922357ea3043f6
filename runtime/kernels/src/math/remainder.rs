//! Remainders of floats, exact, of quotients that the type can count, and floors of exact quotients.
//!
//! Must not know strips.
//!
//! ```text
//! rem_f32(7, 3) = 1   rem_f32(-7, 3) = 2   rem_f64(7, -3) = -2   floordiv_f64(1, 0.1) = 9
//! ```

macro_rules! remainder {
    ($name:ident, $floordiv:ident, $t:ty, $largest:ident, $digits:literal) => {
        /// Below this quotient, and for a finite divisor, the remainder is right.
        pub(crate) const $largest: $t = $digits;

        /// The remainder of a / b with the sign of b.
        #[inline(always)]
        pub(crate) fn $name(a: $t, b: $t) -> $t {
            // Rounded, the quotient may be the next whole number; then the rest has the other sign.
            let rest = (-(a / b).trunc()).mul_add(b, a);
            let beyond = rest != 0.0 && (rest < 0.0) != (a < 0.0);
            let rest = rest + if beyond { b.abs().copysign(a) } else { 0.0 };
            let below = (rest < 0.0) != (b < 0.0);
            let other = rest + if below { b } else { 0.0 };
            if rest == 0.0 { rest.copysign(b) } else { other }
        }

        /// The floor of the exact quotient: [`ein_plan::floor_quotient`].
        #[inline(always)]
        pub(crate) fn $floordiv(a: $t, b: $t) -> $t {
            let floor = (a / b).floor();
            let rest = if floor == 0.0 {
                a
            } else {
                (-floor).mul_add(b, a)
            };
            let beyond = ((rest < 0.0) & (b > 0.0)) | ((rest > 0.0) & (b < 0.0));
            let quotient = if beyond { floor - 1.0 } else { floor };
            let endless = a.is_infinite() & (b != 0.0);
            if endless { <$t>::NAN } else { quotient }
        }
    };
}

remainder!(
    rem_f32,
    floordiv_f32,
    f32,
    LARGEST_QUOTIENT_F32,
    8_388_608.0
);
remainder!(
    rem_f64,
    floordiv_f64,
    f64,
    LARGEST_QUOTIENT_F64,
    4_503_599_627_370_496.0
);
