//! The table of derivatives: for every argument of a scalar function, the adjoint that flows to it.
//!
//! `v` is the adjoint of the value `y` of the function, `a` and `b` are its arguments. A function or argument without a
//! row has no derivative: comparisons, truth values, `sign`, `floor`, `ceil`, `round`, integer division, `stop`.
//! `select` is not here, since its branches are a matter of paths (see [`super::backward`]). Must not know kernels.
//!
//! ```text
//! tanh   a: v * (1 - y * y)
//! ```

use super::sketch::Sketch;
use ein_plan::{Function, NodeId};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI, SQRT_2};

/// A function at one point.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// Its first argument.
    pub(super) a: NodeId,
    /// Its second argument; of a function of one argument, the first again.
    pub(super) b: NodeId,
    /// Its value.
    pub(super) y: NodeId,
    /// The adjoint of its value.
    pub(super) v: NodeId,
}

/// The adjoint of one argument.
pub(super) type Rule = fn(&mut Sketch, At) -> NodeId;

/// A row: the function, and for each of its arguments the adjoint, as text and as a rule.
pub(super) type Row = (Function, &'static [(&'static str, Rule)]);

/// Every function that has a derivative.
pub(super) const ROWS: &[Row] = &[
    (Function::Add, &[("v", |_, x| x.v), ("v", |_, x| x.v)]),
    (
        Function::Sub,
        &[("v", |_, x| x.v), ("-v", |s, x| s.neg(x.v))],
    ),
    (
        Function::Mul,
        &[
            ("v * b", |s, x| s.mul(x.v, x.b)),
            ("v * a", |s, x| s.mul(x.v, x.a)),
        ],
    ),
    (
        Function::Div,
        &[
            ("v / b", |s, x| s.div(x.v, x.b)),
            ("-(v * y) / b", |s, x| {
                let product = s.mul(x.v, x.y);
                let quotient = s.div(product, x.b);
                s.neg(quotient)
            }),
        ],
    ),
    (
        Function::Rem,
        &[
            ("v", |_, x| x.v),
            ("-v * floor(a / b)", |s, x| {
                let quotient = s.div(x.a, x.b);
                let floor = s.apply(Function::Floor, &[quotient]);
                let product = s.mul(x.v, floor);
                s.neg(product)
            }),
        ],
    ),
    (
        Function::Pow,
        &[
            ("v * b * a^(b - 1), 0 where b is 0", power_of_base),
            ("v * y * log(a), 0 where a is 0 and b >= 0", |s, x| {
                let zero = s.number(0.0, s.graph.dtype(x.a));
                let (at_zero, rising) = (
                    s.compare(Function::Eq, x.a, zero),
                    s.compare(Function::Ge, x.b, zero),
                );
                let flat = s.and(at_zero, rising);
                let log = s.apply(Function::Log, &[x.a]);
                let slope = s.mul(x.y, log);
                let adjoint = s.mul(x.v, slope);
                s.select(flat, zero, adjoint)
            }),
        ],
    ),
    (
        Function::Min,
        &[
            ("v where a < b, v / 2 where equal", |s, x| {
                chosen(s, Function::Lt, x.a, x.b, x.v)
            }),
            ("v where b < a, v / 2 where equal", |s, x| {
                chosen(s, Function::Lt, x.b, x.a, x.v)
            }),
        ],
    ),
    (
        Function::Max,
        &[
            ("v where a > b, v / 2 where equal", |s, x| {
                chosen(s, Function::Gt, x.a, x.b, x.v)
            }),
            ("v where b > a, v / 2 where equal", |s, x| {
                chosen(s, Function::Gt, x.b, x.a, x.v)
            }),
        ],
    ),
    (Function::Neg, &[("-v", |s, x| s.neg(x.v))]),
    (Function::Exp, &[("v * y", |s, x| s.mul(x.v, x.y))]),
    (Function::Log, &[("v / a", |s, x| s.div(x.v, x.a))]),
    (
        Function::Log1p,
        &[("v / (1 + a)", |s, x| {
            let one = s.number(1.0, s.graph.dtype(x.a));
            let sum = s.add(one, x.a);
            s.div(x.v, sum)
        })],
    ),
    (
        Function::Expm1,
        &[("v * exp(a)", |s, x| {
            let exp = s.apply(Function::Exp, &[x.a]);
            s.mul(x.v, exp)
        })],
    ),
    (
        Function::Sqrt,
        &[("v / (2 * y)", |s, x| {
            let two = s.number(2.0, s.graph.dtype(x.a));
            let twice = s.mul(two, x.y);
            s.div(x.v, twice)
        })],
    ),
    (
        Function::Rsqrt,
        &[("-v * y * y * y / 2", |s, x| {
            let square = s.mul(x.y, x.y);
            let cube = s.mul(square, x.y);
            scaled(s, x.v, cube, -0.5)
        })],
    ),
    (
        Function::Tanh,
        &[("v * (1 - y * y)", |s, x| {
            let one = s.number(1.0, s.graph.dtype(x.a));
            let square = s.mul(x.y, x.y);
            let slope = s.sub(one, square);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Sigmoid,
        &[("v * y * (1 - y)", |s, x| {
            let one = s.number(1.0, s.graph.dtype(x.a));
            let other = s.sub(one, x.y);
            let slope = s.mul(x.y, other);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Relu,
        &[("v where y > 0", |s, x| {
            let zero = s.number(0.0, s.graph.dtype(x.a));
            let positive = s.compare(Function::Gt, x.y, zero);
            s.select(positive, x.v, zero)
        })],
    ),
    (
        Function::Gelu,
        &[(
            "v * ((1 + erf(a / sqrt 2)) / 2 + a * exp(-a * a / 2) / sqrt(2 pi))",
            |s, x| {
                let dtype = s.graph.dtype(x.a);
                let scale = s.number(1.0 / SQRT_2, dtype);
                let part = s.mul(x.a, scale);
                let erf = s.apply(Function::Erf, &[part]);
                let one = s.number(1.0, dtype);
                let below = s.add(one, erf);
                let half = s.number(0.5, dtype);
                let below = s.mul(half, below);
                let square = s.mul(part, part);
                let exponent = s.neg(square);
                let bell = s.apply(Function::Exp, &[exponent]);
                let density = scaled(s, x.a, bell, 1.0 / (2.0 * PI).sqrt());
                let slope = s.add(below, density);
                s.mul(x.v, slope)
            },
        )],
    ),
    (
        Function::Erf,
        &[("v * exp(-a * a) * 2 / sqrt(pi)", |s, x| {
            let square = s.mul(x.a, x.a);
            let exponent = s.neg(square);
            let bell = s.apply(Function::Exp, &[exponent]);
            scaled(s, x.v, bell, FRAC_2_SQRT_PI)
        })],
    ),
    (
        Function::Sin,
        &[("v * cos(a)", |s, x| {
            let slope = s.apply(Function::Cos, &[x.a]);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Cos,
        &[("-v * sin(a)", |s, x| {
            let slope = s.apply(Function::Sin, &[x.a]);
            let product = s.mul(x.v, slope);
            s.neg(product)
        })],
    ),
    (
        Function::Tan,
        &[("v * (1 + y * y)", |s, x| {
            let square = s.mul(x.y, x.y);
            let slope = one_and(s, square);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Asin,
        &[("v / sqrt((1 - a) * (1 + a))", |s, x| {
            let root = root_of_complement(s, x.a);
            s.div(x.v, root)
        })],
    ),
    (
        Function::Acos,
        &[("-v / sqrt((1 - a) * (1 + a))", |s, x| {
            let root = root_of_complement(s, x.a);
            let quotient = s.div(x.v, root);
            s.neg(quotient)
        })],
    ),
    (
        Function::Atan,
        &[("v / (1 + a * a)", |s, x| {
            let square = s.mul(x.a, x.a);
            let sum = one_and(s, square);
            s.div(x.v, sum)
        })],
    ),
    (
        Function::Atan2,
        &[
            ("v * (b / h) / h, h = hypot(a, b)", |s, x| {
                over_distance(s, x, x.b)
            }),
            ("-v * (a / h) / h, h = hypot(a, b)", |s, x| {
                let adjoint = over_distance(s, x, x.a);
                s.neg(adjoint)
            }),
        ],
    ),
    (
        Function::Sinh,
        &[("v * cosh(a)", |s, x| {
            let slope = s.apply(Function::Cosh, &[x.a]);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Cosh,
        &[("v * sinh(a)", |s, x| {
            let slope = s.apply(Function::Sinh, &[x.a]);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Asinh,
        &[("v / hypot(a, 1)", |s, x| {
            let one = s.number(1.0, s.graph.dtype(x.a));
            let distance = s.apply(Function::Hypot, &[x.a, one]);
            s.div(x.v, distance)
        })],
    ),
    (
        Function::Acosh,
        &[("v / (sqrt(a - 1) * sqrt(a + 1))", |s, x| {
            let one = s.number(1.0, s.graph.dtype(x.a));
            let (less, more) = (s.sub(x.a, one), s.add(x.a, one));
            let less = s.apply(Function::Sqrt, &[less]);
            let more = s.apply(Function::Sqrt, &[more]);
            let product = s.mul(less, more);
            s.div(x.v, product)
        })],
    ),
    (
        Function::Atanh,
        &[("v / ((1 - a) * (1 + a))", |s, x| {
            let complement = complement(s, x.a);
            s.div(x.v, complement)
        })],
    ),
    (
        Function::Exp2,
        &[("v * y * log(2)", |s, x| scaled(s, x.v, x.y, LN_2))],
    ),
    (
        Function::Log2,
        &[("v / (a * log(2))", |s, x| over_scaled(s, x.v, x.a, LN_2))],
    ),
    (
        Function::Log10,
        &[("v / (a * log(10))", |s, x| over_scaled(s, x.v, x.a, LN_10))],
    ),
    (
        Function::Cbrt,
        &[("v / (3 * y * y)", |s, x| {
            let square = s.mul(x.y, x.y);
            over_scaled(s, x.v, square, 3.0)
        })],
    ),
    (
        Function::Hypot,
        &[
            ("v * (a / y), 0 where y is 0", |s, x| {
                part_of_distance(s, x, x.a)
            }),
            ("v * (b / y), 0 where y is 0", |s, x| {
                part_of_distance(s, x, x.b)
            }),
        ],
    ),
    (
        Function::Erfc,
        &[("-v * exp(-a * a) * 2 / sqrt(pi)", |s, x| {
            let square = s.mul(x.a, x.a);
            let exponent = s.neg(square);
            let bell = s.apply(Function::Exp, &[exponent]);
            scaled(s, x.v, bell, -FRAC_2_SQRT_PI)
        })],
    ),
    (
        Function::Erfinv,
        &[("v * exp(y * y) * sqrt(pi) / 2", |s, x| {
            let square = s.mul(x.y, x.y);
            let bell = s.apply(Function::Exp, &[square]);
            scaled(s, x.v, bell, 1.0 / FRAC_2_SQRT_PI)
        })],
    ),
    (
        Function::Lgamma,
        &[("v * polygamma(0, a)", |s, x| {
            let zero = s.number(0.0, s.graph.dtype(x.a));
            let slope = s.apply(Function::Polygamma, &[zero, x.a]);
            s.mul(x.v, slope)
        })],
    ),
    (
        Function::Polygamma,
        &[
            ("0: the language has numbers there", |s, x| {
                s.number(0.0, s.graph.dtype(x.a))
            }),
            ("v * polygamma(a + 1, b)", |s, x| {
                let next = one_and(s, x.a);
                let slope = s.apply(Function::Polygamma, &[next, x.b]);
                s.mul(x.v, slope)
            }),
        ],
    ),
    (
        Function::Abs,
        &[("v * sign(a)", |s, x| {
            let slope = s.apply(Function::Sign, &[x.a]);
            s.mul(x.v, slope)
        })],
    ),
];

/// The rule for one argument of a function, if it has a derivative.
pub(super) fn rule(function: Function, argument: usize) -> Option<Rule> {
    let (_, rules) = ROWS.iter().find(|(of, _)| *of == function)?;
    rules.get(argument).map(|(_, rule)| *rule)
}

/// `v * x * factor`.
fn scaled(s: &mut Sketch, v: NodeId, x: NodeId, factor: f64) -> NodeId {
    let factor = s.number(factor, s.graph.dtype(x));
    let slope = s.mul(factor, x);
    s.mul(v, slope)
}

/// `v / (x * factor)`.
fn over_scaled(s: &mut Sketch, v: NodeId, x: NodeId, factor: f64) -> NodeId {
    let factor = s.number(factor, s.graph.dtype(x));
    let divisor = s.mul(factor, x);
    s.div(v, divisor)
}

/// `1 + x`.
fn one_and(s: &mut Sketch, x: NodeId) -> NodeId {
    let one = s.number(1.0, s.graph.dtype(x));
    s.add(one, x)
}

/// `(1 - x) * (1 + x)`, which keeps its digits where x is near 1.
fn complement(s: &mut Sketch, x: NodeId) -> NodeId {
    let one = s.number(1.0, s.graph.dtype(x));
    let (less, more) = (s.sub(one, x), s.add(one, x));
    s.mul(less, more)
}

fn root_of_complement(s: &mut Sketch, x: NodeId) -> NodeId {
    let complement = complement(s, x);
    s.apply(Function::Sqrt, &[complement])
}

/// `v * (side / y)` with y = hypot(a, b); 0 where both sides are 0, as of a norm.
fn part_of_distance(s: &mut Sketch, x: At, side: NodeId) -> NodeId {
    let zero = s.number(0.0, s.graph.dtype(x.y));
    let at_zero = s.compare(Function::Eq, x.y, zero);
    let slope = s.div(side, x.y);
    let adjoint = s.mul(x.v, slope);
    s.select(at_zero, zero, adjoint)
}

/// `v * (side / h) / h` with h = hypot(a, b).
fn over_distance(s: &mut Sketch, x: At, side: NodeId) -> NodeId {
    let distance = s.apply(Function::Hypot, &[x.a, x.b]);
    let cosine = s.div(side, distance);
    let slope = s.div(cosine, distance);
    s.mul(x.v, slope)
}

/// The adjoint of `a` in the choice between it and `b`. Equal values share, so that what is smooth in spite of the
/// choice, such as `max(x, 0) + log1p(exp(-abs(x)))`, has its derivative everywhere.
fn chosen(s: &mut Sketch, better: Function, a: NodeId, b: NodeId, v: NodeId) -> NodeId {
    let dtype = s.graph.dtype(v);
    let zero = s.number(0.0, dtype);
    let first = s.compare(better, a, b);
    let two = s.number(2.0, dtype);
    let half = s.div(v, two);
    let equal = s.compare(Function::Eq, a, b);
    let rest = s.select(equal, half, zero);
    s.select(first, v, rest)
}

/// The adjoint of the base of a power.
fn power_of_base(s: &mut Sketch, x: At) -> NodeId {
    let dtype = s.graph.dtype(x.a);
    let zero = s.number(0.0, dtype);
    match s.value(x.b) {
        Some(0.0) => zero,
        Some(1.0) => x.v,
        Some(2.0) => scaled(s, x.v, x.a, 2.0),
        Some(3.0) => {
            let square = s.mul(x.a, x.a);
            scaled(s, x.v, square, 3.0)
        }
        Some(exponent) => {
            let less = s.number(exponent - 1.0, dtype);
            let power = s.apply(Function::Pow, &[x.a, less]);
            scaled(s, x.v, power, exponent)
        }
        None => {
            let one = s.number(1.0, dtype);
            let less = s.sub(x.b, one);
            let power = s.apply(Function::Pow, &[x.a, less]);
            let slope = s.mul(x.b, power);
            let adjoint = s.mul(x.v, slope);
            let flat = s.compare(Function::Eq, x.b, zero);
            s.select(flat, zero, adjoint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_row_or_no_derivative() {
        use Function::*;
        let none = [
            FloorDiv, And, Or, Eq, Ne, Lt, Le, Gt, Ge, Select, Not, Sign, Floor, Ceil, Round, Stop,
            Nextafter, Within, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight, Popcount,
        ];
        // Library operations have rules of their own.
        for function in Function::ALL {
            let rows = ROWS.iter().filter(|(of, _)| of == function).count();
            let has_row = !none.contains(function) && !function.is_library();
            let expected = usize::from(has_row);
            assert_eq!(rows, expected, "{}", function.name());
        }
        for (function, rules) in ROWS {
            assert_eq!(rules.len(), function.arity(), "{}", function.name());
        }
    }
}
