//! Positions as affine forms over indices, with the interval of their values.
//!
//! A form whose values are all far from the ends of `i64` may be computed in any order; other nodes are left
//! to the wrapping arithmetic of the graph. Must not know operands.
//!
//! ```text
//! 2 * y + r - 1   with y in 0..7, r in 0..3   ->   -1 + 2 y + 1 r   in -1..=13
//! (y + 1) % 7     with y in 0..7              ->   1 + 1 y, modulus 7   in 0..=6
//! ```

use crate::{DType, Function, Graph, IndexId, Node, Scalar};

/// An affine form with the interval of its values, if no value leaves ±2^62.
#[derive(Clone, Debug, PartialEq)]
pub struct Form64 {
    /// The constant term.
    pub constant: i64,
    /// Indices with their coefficients.
    pub terms: Vec<(usize, i64)>,
    /// The lowest value over the ranges.
    pub low: i64,
    /// The highest value over the ranges.
    pub high: i64,
}

impl Form64 {
    /// The value at a point.
    pub fn at(&self, point: &[i64]) -> i64 {
        let terms = self.terms.iter();
        terms.fold(self.constant, |sum, (index, c)| sum + c * point[*index])
    }

    /// The lowest value and the highest over some of its ranges.
    pub fn ends(&self, ranges: &[(i64, i64)]) -> (i64, i64) {
        let known = bounded(self.constant, self.terms.clone(), ranges);
        known.map_or((self.low, self.high), |known| (known.low, known.high))
    }

    /// The coefficient of an index, and the form without it.
    pub fn without(mut self, index: usize, ranges: &[(i64, i64)]) -> Option<(i64, Form64)> {
        let own = self.terms.iter().find(|term| term.0 == index);
        let step = own.map_or(0, |term| term.1);
        self.terms.retain(|term| term.0 != index);
        Some((step, bounded(self.constant, self.terms, ranges)?))
    }

    /// `self + factor * other`.
    pub fn plus(&self, other: &Form64, factor: i64, ranges: &[(i64, i64)]) -> Option<Form64> {
        let mut terms = self.terms.clone();
        for (index, coefficient) in &other.terms {
            let more = coefficient.checked_mul(factor)?;
            match terms.iter_mut().find(|(i, _)| i == index) {
                Some((_, c)) => *c = c.checked_add(more)?,
                None => terms.push((*index, more)),
            }
        }
        terms.retain(|(_, c)| *c != 0);
        let constant = other.constant.checked_mul(factor)?;
        bounded(self.constant.checked_add(constant)?, terms, ranges)
    }
}

/// The form of a number.
pub fn number(constant: i64, ranges: &[(i64, i64)]) -> Option<Form64> {
    bounded(constant, vec![], ranges)
}

/// The affine form of every `I64` node that has one, over the given ranges.
pub fn affine_forms(graph: &Graph, ranges: &[(i64, i64)]) -> Vec<Option<Form64>> {
    let mut forms: Vec<Option<Form64>> = Vec::with_capacity(graph.len());
    for (_, node, dtype) in graph.iter() {
        let form = (dtype == DType::I64).then(|| match node {
            Node::Constant(Scalar::Int(c)) => number(*c, ranges),
            Node::Index(IndexId(i)) => bounded(0, vec![(*i as usize, 1)], ranges),
            Node::Apply(function, a) => {
                let at = |n: usize| a.get(n).and_then(|id| forms[id.0 as usize].as_ref());
                match function {
                    Function::Add => at(0)?.plus(at(1)?, 1, ranges),
                    Function::Sub => at(0)?.plus(at(1)?, -1, ranges),
                    Function::Neg => number(0, ranges)?.plus(at(0)?, -1, ranges),
                    Function::Mul => {
                        let (x, y) = (at(0)?, at(1)?);
                        let zero = number(0, ranges)?;
                        if x.terms.is_empty() {
                            zero.plus(y, x.constant, ranges)
                        } else if y.terms.is_empty() {
                            zero.plus(x, y.constant, ranges)
                        } else {
                            None
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        });
        forms.push(form.flatten());
    }
    forms
}

/// A position that follows from the indices alone: an affine form, its quotient by `divisor`, or what a division of that by `modulus`
/// leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionForm {
    /// The constant term.
    pub constant: i64,
    /// Indices with their coefficients.
    pub terms: Vec<(usize, i64)>,
    /// The divisor of the affine form, whose quotient is rounded down; 1 where it is not divided.
    pub divisor: i64,
    /// The divisor of the quotient, if the rest is the position.
    pub modulus: Option<i64>,
    /// The lowest value that may come up.
    pub low: i64,
    /// The highest value that may come up.
    pub high: i64,
}

impl PositionForm {
    fn affine(form: &Form64) -> PositionForm {
        PositionForm {
            constant: form.constant,
            terms: form.terms.clone(),
            divisor: 1,
            modulus: None,
            low: form.low,
            high: form.high,
        }
    }

    /// The quotient by a positive number, rounded down, if it has a form.
    fn quotient(mut self, by: i64) -> Option<PositionForm> {
        if let Some(modulus) = &mut self.modulus {
            // Whole rounds have to stay whole.
            if *modulus % by != 0 {
                return None;
            }
            *modulus /= by;
        }
        self.divisor = self.divisor.checked_mul(by)?;
        (self.low, self.high) = (self.low.div_euclid(by), self.high.div_euclid(by));
        if self.low == self.high {
            (self.constant, self.terms) = (self.low, vec![]);
            (self.divisor, self.modulus) = (1, None);
        }
        Some(self)
    }

    /// The remainder by a positive number, if it has a form.
    fn rest(mut self, modulus: i64) -> Option<PositionForm> {
        if self.modulus.is_some_and(|own| own % modulus != 0) {
            return None;
        }
        let rounds = self.low.div_euclid(modulus);
        if self.modulus.is_none() && rounds == self.high.div_euclid(modulus) {
            // It never goes round.
            let before = rounds.checked_mul(modulus)?;
            self.constant = (self.constant).checked_sub(before.checked_mul(self.divisor)?)?;
            self.low -= before;
            self.high -= before;
        } else {
            (self.low, self.high, self.modulus) = (0, modulus - 1, Some(modulus));
        }
        Some(self)
    }
}

/// The form of every node that has one, as a position, over the given ranges.
pub fn position_forms(graph: &Graph, forms: &[Option<Form64>]) -> Vec<Option<PositionForm>> {
    let mut positions: Vec<Option<PositionForm>> = Vec::with_capacity(forms.len());
    for ((_, node, _), form) in graph.iter().zip(forms) {
        let divided = || {
            let Node::Apply(function @ (Function::FloorDiv | Function::Rem), sides) = node else {
                return None;
            };
            let Node::Constant(Scalar::Int(by @ 1..)) = graph.node(sides[1]) else {
                return None;
            };
            let of = positions[sides[0].0 as usize].clone()?;
            match function {
                Function::FloorDiv => of.quotient(*by),
                _ => of.rest(*by),
            }
        };
        let position = form.as_ref().map(PositionForm::affine).or_else(divided);
        positions.push(position);
    }
    positions
}

fn bounded(constant: i64, terms: Vec<(usize, i64)>, ranges: &[(i64, i64)]) -> Option<Form64> {
    const LIMIT: i128 = 1 << 62;
    let (mut low, mut high) = (i128::from(constant), i128::from(constant));
    for (index, coefficient) in &terms {
        let (start, length) = ranges[*index];
        let c = i128::from(*coefficient);
        let ends = [
            c * i128::from(start),
            c * (i128::from(start) + i128::from(length.max(1)) - 1),
        ];
        low += ends[0].min(ends[1]);
        high += ends[0].max(ends[1]);
    }
    (low > -LIMIT && high < LIMIT).then_some(Form64 {
        constant,
        terms,
        low: low as i64,
        high: high as i64,
    })
}
