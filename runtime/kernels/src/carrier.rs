//! One carrier of a reduction: what a partial result remembers, and how two of them become one.
//!
//! Carriers are kept wider than the arrays that hold them: floats as `f64`, integers and truth values as
//! `i64`. Must not know kernels.
//!
//! ```text
//! logsumexp: (1, 1.5) then (3, 1)  ->  (3, 1.5 e^-2 + 1)
//! ```

use crate::math::{max_nan, min_nan};
use crate::segment::Segment;
use ein_array::{Array, Data};
use ein_plan::{DType, Reduction};

/// A reduction of values of one compute type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub reduction: Reduction,
    /// Compute type of the values.
    pub value: DType,
}

/// One carrier. Floats use `float` (and `second`), integers and truth values `integer`; `number` is the
/// index of `argmax` and `argmin` and the count of `mean`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carrier {
    pub float: f64,
    pub second: f64,
    pub integer: i64,
    pub number: i64,
}

impl Rule {
    /// The carrier of no value.
    pub(crate) fn neutral(self) -> Carrier {
        use Reduction as R;
        let (least, greatest) = match self.value {
            DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            DType::I64 => (i64::MIN, i64::MAX),
            _ => (0, 1),
        };
        let carrier = |float, second, integer, number| Carrier {
            float,
            second,
            integer,
            number,
        };
        match self.reduction {
            R::Sum | R::Mean | R::Norm1 | R::NormInf | R::Any => carrier(0.0, 0.0, 0, 0),
            R::Prod | R::All => carrier(1.0, 0.0, 1, 0),
            R::Max => carrier(f64::NEG_INFINITY, 0.0, least, 0),
            R::Min => carrier(f64::INFINITY, 0.0, greatest, 0),
            R::ArgMax => carrier(f64::NEG_INFINITY, 0.0, least, -1),
            R::ArgMin => carrier(f64::INFINITY, 0.0, greatest, -1),
            R::LogSumExp => carrier(f64::NEG_INFINITY, 0.0, 0, 0),
            R::Norm => carrier(0.0, 1.0, 0, 0),
        }
    }

    /// Adds `b`, whose values come after `a`'s.
    pub(crate) fn merge(self, a: &mut Carrier, b: &Carrier) {
        use Reduction as R;
        if self.reduction.is_arg() {
            return self.merge_arg(a, b);
        }
        if !self.value.is_float() {
            let truth = self.value == DType::Bool;
            let (x, y) = (a.integer, b.integer);
            a.integer = match self.reduction {
                R::Sum | R::Norm1 | R::Mean if !truth => x.wrapping_add(y),
                R::Prod if !truth => x.wrapping_mul(y),
                R::Prod | R::Min | R::All => x.min(y),
                _ => x.max(y),
            };
            a.number += b.number;
            return;
        }
        let (x, y) = (a.float, b.float);
        match self.reduction {
            R::Prod => a.float *= y,
            R::Max | R::NormInf => a.float = max_nan(x, y),
            R::Min => a.float = min_nan(x, y),
            R::LogSumExp => {
                let top = max_nan(x, y);
                a.second = if top == f64::INFINITY {
                    1.0
                } else if top == f64::NEG_INFINITY {
                    0.0
                } else {
                    a.second * (x - top).exp() + b.second * (y - top).exp()
                };
                a.float = top;
            }
            R::Norm => {
                let scale = max_nan(x, y);
                a.second = if scale == 0.0 || scale == f64::INFINITY {
                    1.0
                } else {
                    a.second * (x / scale) * (x / scale) + b.second * (y / scale) * (y / scale)
                };
                a.float = scale;
            }
            _ => a.float += y,
        }
        a.number += b.number;
    }

    fn merge_arg(self, a: &mut Carrier, b: &Carrier) {
        if b.number < 0 {
            return;
        }
        let largest = self.reduction == Reduction::ArgMax;
        let better = if a.number < 0 {
            true
        } else if self.value.is_float() {
            let (x, y) = (a.float, b.float);
            let equal = x == y || (x.is_nan() && y.is_nan());
            let wins = !x.is_nan() && (y.is_nan() || if largest { y > x } else { y < x });
            wins || (equal && b.number < a.number)
        } else {
            let (x, y) = (a.integer, b.integer);
            let wins = if largest { y > x } else { y < x };
            wins || (x == y && b.number < a.number)
        };
        if better {
            *a = *b;
        }
    }

    /// Writes the carrier to element `at` of its columns.
    pub(crate) fn store(self, carrier: &Carrier, columns: &mut [Segment<'_>], at: usize) {
        let [first, rest @ ..] = columns else { return };
        if self.value.is_float() {
            first.set_float(at, carrier.float);
        } else {
            first.set_integer(at, carrier.integer);
        }
        if let Some(second) = rest.first_mut() {
            match self.reduction {
                Reduction::LogSumExp | Reduction::Norm => second.set_float(at, carrier.second),
                _ => second.set_integer(at, carrier.number),
            }
        }
    }

    /// Writes the reduction's result to element `at`.
    pub(crate) fn finish(self, carrier: &Carrier, result: &mut Segment<'_>, at: usize) {
        use Reduction as R;
        match self.reduction {
            R::ArgMax | R::ArgMin => result.set_integer(at, carrier.number),
            R::Mean if self.value.is_float() => {
                result.set_float(at, carrier.float / carrier.number as f64);
            }
            R::Mean => {
                let count = carrier.number.max(1);
                result.set_integer(at, carrier.integer.div_euclid(count));
            }
            R::LogSumExp => result.set_float(at, carrier.float + carrier.second.ln()),
            R::Norm if carrier.float == 0.0 => result.set_float(at, 0.0),
            R::Norm => result.set_float(at, carrier.float * carrier.second.sqrt()),
            _ if self.value.is_float() => result.set_float(at, carrier.float),
            _ => result.set_integer(at, carrier.integer),
        }
    }

    /// The carrier at element `at` of its columns.
    pub(crate) fn load(self, columns: &[Array], at: usize) -> Carrier {
        let mut carrier = Carrier::default();
        if self.value.is_float() {
            carrier.float = float_at(columns[0].data(), at);
        } else {
            carrier.integer = integer_at(columns[0].data(), at);
        }
        if let Some(second) = columns.get(1) {
            match self.reduction {
                Reduction::LogSumExp | Reduction::Norm => {
                    carrier.second = float_at(second.data(), at);
                }
                _ => carrier.number = integer_at(second.data(), at),
            }
        }
        carrier
    }
}

fn float_at(data: &Data, at: usize) -> f64 {
    data.get(at).as_f64()
}

fn integer_at(data: &Data, at: usize) -> i64 {
    match data.get(at) {
        ein_plan::Scalar::Int(x) => x,
        other => other.as_f64() as i64,
    }
}
