//! Random expressions, with what is known of their values.
//!
//! An operation is only applied where its result stays small and where what it computes is defined; comparisons,
//! rounding and positions take exact values only, so that no rounding error is ever magnified into another answer.
//! Must not know statements.
//!
//! ```text
//! where(x0[i] < x1[i, 2 * k - 1] else 0.0, x0[i], 0.5 * tanh(x1[i, k]))
//! ```

use super::Quality;
use super::numbers::Numbers;
use ein_plan::{DType, Function, Graph, Index, Node, NodeId, Operand, Reduction, Scalar};

/// An expression and what is known of it.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub node: NodeId,
    pub dtype: DType,
    pub quality: Quality,
}

/// Multiples of the unit may be this large: exact in f32, sums of a few hundred included.
const MOST_STEPS: f64 = 16_384.0;
/// Values that are not exact stay below this, so that their errors stay below what is tolerated of small ones.
pub(super) const MOST_INEXACT: f64 = 256.0;
const COMPUTE: [DType; 5] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool];

pub(super) struct Builder<'a> {
    pub numbers: &'a mut Numbers,
    pub graph: Graph,
    pub(super) indices: &'a [Index],
    pub(super) operands: &'a [Operand],
    pub(super) qualities: &'a [Quality],
    /// The terms that were made so far, to be used again.
    made: Vec<Term>,
}

pub(super) fn exact(bound: f64, fraction: u32) -> Quality {
    Quality {
        bound,
        fraction,
        exact: true,
        usable: true,
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        numbers: &'a mut Numbers,
        indices: &'a [Index],
        operands: &'a [Operand],
        qualities: &'a [Quality],
    ) -> Builder<'a> {
        Builder {
            numbers,
            graph: Graph::default(),
            indices,
            operands,
            qualities,
            made: vec![],
        }
    }

    /// A type of values that suits the reduction.
    pub(super) fn type_for(&mut self, reduction: Option<Reduction>) -> DType {
        match reduction {
            Some(Reduction::Any | Reduction::All) => DType::Bool,
            Some(Reduction::Mean | Reduction::LogSumExp | Reduction::Norm) => {
                *self.numbers.pick(&COMPUTE[..2])
            }
            Some(_) => *self.numbers.pick(&COMPUTE[..4]),
            None => *self.numbers.pick(&COMPUTE),
        }
    }

    /// Makes the expression that is reduced (over that many points), or given out.
    pub(super) fn root(&mut self, dtype: DType, reduction: Option<Reduction>, points: u64) -> Term {
        let chooses = matches!(
            reduction,
            Some(Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin)
        );
        if (chooses || reduction == Some(Reduction::NormInf))
            && self.numbers.one_in(3)
            && let Some(wild) = self.read(dtype, 0, false)
        {
            return wild;
        }
        let mut term = self.term(dtype, 3);
        if reduction.is_some_and(Reduction::is_arg) && !term.quality.exact {
            term = self.leaf(dtype, 0);
        }
        if reduction == Some(Reduction::Prod) {
            // A product of many values is small only if they are.
            if !term.quality.exact {
                term = self.leaf_exact(dtype);
            }
            let few = points <= 8 && term.quality.fraction == 0;
            term = match few {
                true => self.within(term, 2.0),
                false => self.apply(Function::Sign, &[term]),
            };
        }
        let masked = dtype.is_float()
            && (chooses || reduction == Some(Reduction::LogSumExp))
            && self.numbers.one_in(3);
        if masked {
            let condition = self.condition();
            let mask = match reduction {
                Some(Reduction::Min | Reduction::ArgMin) => f64::INFINITY,
                _ => f64::NEG_INFINITY,
            };
            let mask = self.graph.add(Node::Constant(Scalar::Float(mask)), dtype);
            let arguments = vec![condition, term.node, mask];
            term.node = self
                .graph
                .add(Node::Apply(Function::Select, arguments), dtype);
            term.quality.usable = false;
        }
        term
    }

    /// An exact truth value.
    pub(super) fn condition(&mut self) -> NodeId {
        self.term(DType::Bool, 2).node
    }

    pub(super) fn constant(&mut self, value: Scalar, dtype: DType) -> Term {
        let bound = value.as_f64().abs();
        let node = self.graph.add(Node::Constant(value), dtype);
        Term {
            node,
            dtype,
            quality: exact(bound, u32::from(bound.fract() != 0.0)),
        }
    }

    pub(super) fn number(&mut self, number: i64, dtype: DType) -> Term {
        let value = match dtype {
            DType::Bool => Scalar::Bool(number != 0),
            _ if dtype.is_float() => Scalar::Float(number as f64),
            _ => Scalar::Int(number),
        };
        self.constant(value, dtype)
    }

    pub(super) fn convert(&mut self, term: Term, dtype: DType) -> Term {
        if term.dtype == dtype {
            return term;
        }
        let node = self.graph.add(Node::Convert(term.node), dtype);
        let mut quality = term.quality;
        if !dtype.is_float() {
            quality.fraction = 0;
        }
        if dtype == DType::Bool || term.dtype == DType::Bool {
            quality.bound = 1.0;
        }
        Term {
            node,
            dtype,
            quality,
        }
    }

    /// A function of terms, or the first of them where the result would be too large.
    pub(super) fn apply(&mut self, function: Function, terms: &[Term]) -> Term {
        // The first value: of a choice that is the second term.
        let first = terms[usize::from(function == Function::Select)];
        let bounds: Vec<f64> = terms.iter().map(|t| t.quality.bound).collect();
        let fraction = terms.iter().map(|t| t.quality.fraction).max().unwrap_or(0);
        let largest = bounds.iter().copied().fold(0.0, f64::max);
        let sum_of = |f: fn(&Term) -> u32| terms.iter().map(f).sum::<u32>();
        let mut quality = Quality {
            exact: terms.iter().all(|t| t.quality.exact),
            ..exact(largest, fraction)
        };
        match function {
            Function::Add | Function::Sub => quality.bound = bounds.iter().sum(),
            Function::Mul => {
                quality.bound = bounds.iter().product();
                quality.fraction = sum_of(|t| t.quality.fraction);
            }
            Function::Floor | Function::Ceil | Function::Round => {
                quality = exact(largest + 1.0, 0);
            }
            Function::Sign => quality = exact(1.0, 0),
            Function::Rem | Function::FloorDiv => quality.bound = largest + 1.0,
            Function::Eq
            | Function::Ne
            | Function::Lt
            | Function::Le
            | Function::Gt
            | Function::Ge => quality = exact(1.0, 0),
            Function::Select => quality.bound = bounds[1].max(bounds[2]),
            Function::Pow => quality.bound = bounds[0] * bounds[0],
            Function::Exp | Function::Expm1 => {
                quality.bound = bounds[0].exp();
                quality.exact = false;
            }
            Function::Div
            | Function::Log
            | Function::Log1p
            | Function::Sqrt
            | Function::Rsqrt
            | Function::Tanh
            | Function::Sigmoid
            | Function::Gelu
            | Function::Erf
            | Function::Sin
            | Function::Cos
            | Function::Atan
            | Function::Asinh
            | Function::Log2
            | Function::Log10
            | Function::Erfc
            | Function::Hypot => {
                quality.bound = largest.max(1.0);
                quality.exact = false;
            }
            _ => {}
        }
        let steps = |q: &Quality| q.bound * f64::from(1u32 << q.fraction.min(20));
        let before = terms.iter().map(|t| steps(&t.quality)).fold(0.0, f64::max);
        let large = if quality.exact {
            MOST_STEPS
        } else {
            MOST_INEXACT
        };
        if steps(&quality) > large.max(before) {
            return first;
        }
        let types: Vec<DType> = terms.iter().map(|t| t.dtype).collect();
        let Ok(dtype) = function.result(&types) else {
            return first;
        };
        let arguments = terms.iter().map(|t| t.node).collect();
        let node = self.graph.add(Node::Apply(function, arguments), dtype);
        Term {
            node,
            dtype,
            quality,
        }
    }

    /// The term cut off beyond a whole bound.
    pub(super) fn within(&mut self, term: Term, bound: f64) -> Term {
        if term.quality.bound <= bound || term.dtype == DType::Bool {
            return term;
        }
        let high = self.number(bound as i64, term.dtype);
        let low = self.number(-(bound as i64), term.dtype);
        let cut = self.apply(Function::Min, &[term, high]);
        let mut cut = self.apply(Function::Max, &[cut, low]);
        cut.quality.bound = bound;
        cut
    }

    /// An expression of that type, at most that deep.
    fn term(&mut self, dtype: DType, depth: u32) -> Term {
        if self.numbers.one_in(6) {
            let again: Vec<Term> = self
                .made
                .iter()
                .filter(|t| t.dtype == dtype)
                .copied()
                .collect();
            if !again.is_empty() {
                return *self.numbers.pick(&again);
            }
        }
        let term = match depth {
            0 => self.leaf(dtype, 1),
            _ if self.numbers.one_in(5) => self.leaf(dtype, depth),
            _ if dtype == DType::Bool => self.truth(depth - 1),
            _ if self.numbers.one_in(6) => {
                let condition = self.truth(depth - 1);
                let (a, b) = (self.term(dtype, depth - 1), self.term(dtype, depth - 1));
                self.apply(Function::Select, &[condition, a, b])
            }
            _ if dtype.is_float() && self.numbers.one_in(3) => self.smooth(dtype, depth - 1),
            _ => self.arithmetic(dtype, depth - 1),
        };
        self.made.push(term);
        term
    }

    pub(super) fn exact_term(&mut self, dtype: DType, depth: u32) -> Term {
        let term = self.term(dtype, depth);
        if term.quality.exact {
            term
        } else {
            self.leaf_exact(dtype)
        }
    }

    fn truth(&mut self, depth: u32) -> Term {
        let comparisons = [
            Function::Eq,
            Function::Ne,
            Function::Lt,
            Function::Le,
            Function::Gt,
            Function::Ge,
        ];
        match self.numbers.between(0, 4) {
            0 => {
                let a = self.term(DType::Bool, depth);
                self.apply(Function::Not, &[a])
            }
            1 => {
                let (a, b) = (self.term(DType::Bool, depth), self.term(DType::Bool, depth));
                let function = *self.numbers.pick(&[Function::And, Function::Or]);
                self.apply(function, &[a, b])
            }
            _ => {
                let dtype = *self.numbers.pick(&COMPUTE[..4]);
                let (a, b) = (self.exact_term(dtype, depth), self.exact_term(dtype, depth));
                let function = *self.numbers.pick(&comparisons);
                self.apply(function, &[a, b])
            }
        }
    }

    fn arithmetic(&mut self, dtype: DType, depth: u32) -> Term {
        let a = self.term(dtype, depth);
        match self.numbers.between(0, 9) {
            0..=4 => {
                let b = self.term(dtype, depth);
                let two = [Function::Add, Function::Sub, Function::Mul, Function::Mul];
                let more = [Function::Min, Function::Max];
                let function = *self.numbers.pick(&[&two[..], &more[..]].concat());
                self.apply(function, &[a, b])
            }
            5 if a.quality.exact => {
                let divisor = *self.numbers.pick(&[-3, 2, 3, 4]);
                let divisor = self.number(divisor, dtype);
                let function = match dtype.is_integer() {
                    true => *self.numbers.pick(&[Function::Rem, Function::FloorDiv]),
                    // The quotient of floating-point values rounds, so the remainder of few is exact.
                    false => Function::Floor,
                };
                let arguments = [a, divisor];
                self.apply(function, &arguments[..function.arity()])
            }
            6 if dtype.is_integer() => {
                let two = self.number(2, dtype);
                self.apply(Function::Pow, &[a, two])
            }
            7 if a.quality.exact => {
                let rounding = [Function::Ceil, Function::Round, Function::Sign];
                let function = *self.numbers.pick(&rounding);
                self.apply(function, &[a])
            }
            _ => {
                let one = [Function::Neg, Function::Abs, Function::Relu, Function::Stop];
                let function = *self.numbers.pick(&one);
                self.apply(function, &[a])
            }
        }
    }

    /// A function that rounds, of an argument for which it is tame.
    fn smooth(&mut self, dtype: DType, depth: u32) -> Term {
        let a = self.term(dtype, depth);
        let a = self.within(a, 4.0);
        let one = self.number(1, dtype);
        let size = self.apply(Function::Abs, &[a]);
        let positive = self.apply(Function::Add, &[size, one]);
        let anywhere = [
            Function::Exp,
            Function::Expm1,
            Function::Tanh,
            Function::Sigmoid,
            Function::Gelu,
            Function::Erf,
            Function::Sin,
            Function::Cos,
            Function::Atan,
            Function::Asinh,
            Function::Erfc,
        ];
        match self.numbers.between(0, 6) {
            0 => self.apply(Function::Log, &[positive]),
            1 => {
                let functions = [
                    Function::Sqrt,
                    Function::Log1p,
                    Function::Log2,
                    Function::Log10,
                ];
                let function = *self.numbers.pick(&functions);
                self.apply(function, &[positive])
            }
            2 => self.apply(Function::Rsqrt, &[positive]),
            3 => {
                let over = self.term(dtype, depth);
                self.apply(Function::Div, &[over, positive])
            }
            _ => {
                let function = *self.numbers.pick(&anywhere);
                self.apply(function, &[a])
            }
        }
    }
}
