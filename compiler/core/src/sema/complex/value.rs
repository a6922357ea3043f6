//! The parts of complex expressions, as real expressions.
//!
//! A part that is 0 for certain is left out, so that a real factor costs two products and not four. A sum of complex products becomes sums of
//! real products, one for each monomial, so that each of them is a contraction like any other. Must not know tensors beyond where their
//! parts are. The square of an absolute value is the sum of the squares, without a root in between.
//!
//! ```text
//! sum[k] A[i,k] * B[k,j]
//!   =>   re: (sum[k] A.re*B.re) - (sum[k] A.im*B.im),  im: (sum[k] A.re*B.im) + (sum[k] A.im*B.re)
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ComplexForm, ExprId, Form, TensorRef, Ty, VarId},
};
use ein_plan::{DType, Function, Reduction, Scalar};
use einc_diag::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A sum of products is written out up to so many monomials: products of five complex factors.
const MOST_MONOMIALS: usize = 16;

/// The parts of a complex value; `None`: 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) re: Option<ExprId>,
    pub(crate) im: Option<ExprId>,
    /// The type of the parts.
    pub(crate) part: DType,
}

/// Where the parts of a complex tensor are; `None`: they are 0.
pub(crate) type TensorParts = [Option<TensorRef>; 2];

/// A product, and whether it is taken away.
type Monomial = (bool, ExprId);

/// Makes the parts of expressions.
pub(crate) struct Splitter<'c, 'a> {
    pub(crate) checker: &'c mut Checker<'a>,
    pub(crate) tensors: FxHashMap<TensorRef, TensorParts>,
    /// Tensors that have been made for products, for the order of the program.
    pub(crate) made: Vec<TensorRef>,
    /// Under which condition the expression at hand is read, where it holds a product over indices that needs it: it reads what need not
    /// be there.
    pub(crate) path: Option<ExprId>,
    /// Which expressions of the text are such products, or are made of them.
    products_inside: Vec<bool>,
    has_products: bool,
    /// By expression and condition.
    values: FxHashMap<(ExprId, Option<ExprId>), Value>,
    reals: FxHashMap<(ExprId, Option<ExprId>), ExprId>,
    /// Sums and differences that are the parts of products.
    products: FxHashSet<ExprId>,
    /// The monomials of expressions.
    monomials: FxHashMap<ExprId, Rc<[Monomial]>>,
    /// For messages about numbers that do not fit.
    pub(crate) span: Span,
}

impl<'c, 'a> Splitter<'c, 'a> {
    pub(crate) fn new(checker: &'c mut Checker<'a>) -> Splitter<'c, 'a> {
        let products_inside = products_inside(checker);
        Splitter {
            checker,
            tensors: FxHashMap::default(),
            made: vec![],
            path: None,
            has_products: products_inside.contains(&true),
            products_inside,
            values: FxHashMap::default(),
            reals: FxHashMap::default(),
            products: FxHashSet::default(),
            monomials: FxHashMap::default(),
            span: Span::default(),
        }
    }

    /// A real expression without anything complex in it; `None` of a complex one.
    pub(crate) fn real(&mut self, id: ExprId) -> Option<ExprId> {
        if !self.checker.arena.holds_complex(id) {
            return Some(id);
        }
        let key = (id, self.path.filter(|_| self.holds_product(id)));
        if let Some(done) = self.reals.get(&key) {
            return Some(*done);
        }
        let form = self.checker.arena.form(id);
        let complex = |of: &ExprId| self.checker.complex_type(*of).is_some();
        if complex(&id) {
            return None;
        }
        let done = match &*form {
            Form::Complex(ComplexForm::Real, of) => {
                let value = self.value(of[0])?;
                self.whole(value)[0]
            }
            Form::Complex(ComplexForm::Imaginary, of) => {
                let value = self.value(of[0])?;
                self.whole(value)[1]
            }
            Form::Complex(ComplexForm::Angle, of) => {
                let value = self.value(of[0])?;
                let [re, im] = self.whole(value);
                self.call(Function::Atan2, &[im, re])
            }
            Form::Apply(Function::Abs, of) if complex(&of[0]) => {
                let value = self.value(of[0])?;
                self.magnitude(value)
            }
            Form::Apply(Function::Mul, of) if of[0] == of[1] && self.sized(of[0]).is_some() => {
                let value = self.value(self.sized(of[0])?)?;
                let squares = [value.re, value.im].map(|part| self.times(part, part));
                let sum = self.plus(squares[0], squares[1]);
                sum.unwrap_or_else(|| self.number(0.0, value.part))
            }
            Form::Apply(function @ (Function::Eq | Function::Ne), of) if complex(&of[0]) => {
                let (a, b) = (self.value(of[0])?, self.value(of[1])?);
                let (a, b) = (self.whole(a), self.whole(b));
                let tests = [0, 1].map(|at| self.test(*function, a[at], b[at]));
                match function {
                    Function::Eq => self.call(Function::And, &tests),
                    _ => self.call(Function::Or, &tests),
                }
            }
            Form::Apply(Function::Select, of) if self.holds_product(id) => {
                let condition = self.real(of[0])?;
                let first = self.under(condition, true, |c| c.real(of[1]))?;
                let second = self.under(condition, false, |c| c.real(of[2]))?;
                self.choose(condition, first, second)
            }
            Form::Reduce {
                reduction,
                vars,
                guard: Some(guard),
                body,
            } if self.holds_product(id) => {
                let guard = self.real(*guard)?;
                let form = Form::Reduce {
                    reduction: *reduction,
                    vars: vars.clone(),
                    guard: Some(guard),
                    body: self.under(guard, true, |c| c.real(*body))?,
                };
                let ty = self.checker.arena.ty(id);
                self.checker.arena.add(form, ty)
            }
            other => {
                let mut form = other.clone();
                for argument in form.arguments_mut() {
                    *argument = self.real(*argument)?;
                }
                let ty = self.checker.arena.ty(id);
                self.checker.arena.add(form, ty)
            }
        };
        self.reals.insert(key, done);
        Some(done)
    }

    /// The complex number whose absolute value an expression is.
    fn sized(&self, id: ExprId) -> Option<ExprId> {
        match &*self.checker.arena.form(id) {
            Form::Apply(Function::Abs, of) => {
                Some(of[0]).filter(|of| self.checker.complex_type(*of).is_some())
            }
            _ => None,
        }
    }

    /// The parts of a complex expression.
    pub(crate) fn value(&mut self, id: ExprId) -> Option<Value> {
        let key = (id, self.path.filter(|_| self.holds_product(id)));
        if let Some(done) = self.values.get(&key) {
            return Some(*done);
        }
        let part = self.checker.complex_type(id)?.part()?;
        let form = self.checker.arena.form(id);
        let done = match &*form {
            Form::Read {
                tensor,
                positions,
                otherwise,
            } => self.read(part, (*tensor, positions, *otherwise))?,
            Form::Convert(of) if self.checker.complex_type(*of).is_some() => {
                let of = self.value(*of)?;
                let converted = |c: &mut Self, id: ExprId| c.checker.converted(id, part);
                Value {
                    re: of.re.map(|id| converted(self, id)),
                    im: of.im.map(|id| converted(self, id)),
                    part,
                }
            }
            Form::Convert(of) => {
                let re = self.part(*of, part)?;
                Value { re, im: None, part }
            }
            Form::Complex(ComplexForm::Pair, of) => Value {
                re: self.part(of[0], part)?,
                im: self.part(of[1], part)?,
                part,
            },
            Form::Complex(ComplexForm::Conjugate, of) => {
                let of = self.value(of[0])?;
                let im = self.negative(of.im);
                Value { im, ..of }
            }
            Form::Apply(function, of) => self.function(*function, of, part)?,
            Form::Reduce {
                reduction,
                vars,
                guard,
                body,
            } => {
                let guard = match guard {
                    Some(guard) => Some(self.real(*guard)?),
                    None => None,
                };
                let body = match guard {
                    Some(guard) => self.under(guard, true, |c| c.value(*body))?,
                    None => self.value(*body)?,
                };
                if *reduction == Reduction::Prod && body.im.is_some() {
                    let done = self.product_over(vars, guard, body)?;
                    self.values.insert(key, done);
                    return Some(done);
                }
                let reduce = (*reduction, vars.as_slice(), guard);
                Value {
                    re: body.re.map(|id| self.reduced(reduce, id)),
                    im: body.im.map(|id| self.reduced(reduce, id)),
                    part,
                }
            }
            _ => return None,
        };
        self.values.insert(key, done);
        Some(done)
    }

    /// Returns whether an expression is a product over indices that needs its condition, or made of one.
    fn holds_product(&self, id: ExprId) -> bool {
        self.products_inside.get(id.0 as usize) == Some(&true)
    }

    /// Returns what an expression becomes where a condition holds, or does not hold.
    pub(crate) fn under<T>(
        &mut self,
        condition: ExprId,
        holds: bool,
        what: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let before = self.path;
        if self.has_products {
            let condition = match holds {
                true => condition,
                false => self.call(Function::Not, &[condition]),
            };
            self.path = Some(match before {
                Some(before) => self.call(Function::And, &[before, condition]),
                None => condition,
            });
        }
        let done = what(self);
        self.path = before;
        done
    }

    /// A real value as a part: an untyped number takes the type, and 0 is left out.
    fn part(&mut self, id: ExprId, part: DType) -> Option<Option<ExprId>> {
        let is_zero = |c: &Checker<'_>, id| {
            let number = c.arena.as_number(id);
            number.is_some_and(|number| number == 0.0 && number.is_sign_positive())
        };
        let id = match self.checker.arena.ty(id) {
            // What decides between two numbers may be made of complex ones.
            Ty::Number { .. } => {
                let known = self.checker.built.tensors.len() as u32;
                let id = self.checker.coerce(id, part, self.span)?;
                // Constant lists in the type of the parts.
                let all = self.checker.built.tensors.len() as u32;
                self.made.extend((known..all).map(TensorRef));
                self.real(id)?
            }
            Ty::Typed(_) => self.real(id)?,
        };
        Some((!is_zero(self.checker, id)).then_some(id))
    }

    fn read(
        &mut self,
        part: DType,
        (tensor, positions, otherwise): (TensorRef, &[ExprId], Option<ExprId>),
    ) -> Option<Value> {
        let mut at = vec![];
        for position in positions {
            at.push(self.real(*position)?);
        }
        let other = match otherwise {
            Some(otherwise) => {
                let value = self.value(otherwise)?;
                self.whole(value).map(Some)
            }
            None => [None, None],
        };
        let tensors = *self.tensors.get(&tensor)?;
        let mut parts = [None, None];
        for number in [0, 1] {
            let Some(tensor) = tensors[number] else {
                // What stands for elements that are not there need not be 0.
                if other[number].is_some_and(|id| self.checker.arena.as_number(id) != Some(0.0)) {
                    return None;
                }
                continue;
            };
            let form = Form::Read {
                tensor,
                positions: at.clone(),
                otherwise: other[number],
            };
            parts[number] = Some(self.checker.arena.add(form, Ty::Typed(part)));
        }
        let [re, im] = parts;
        Some(Value { re, im, part })
    }

    /// A reduction of a part. Sums of products are sums of their monomials.
    fn reduced(
        &mut self,
        (reduction, vars, guard): (Reduction, &[VarId], Option<ExprId>),
        body: ExprId,
    ) -> ExprId {
        let ty = self.checker.arena.ty(body);
        let one = |c: &mut Self, body: ExprId| {
            let form = Form::Reduce {
                reduction,
                vars: vars.to_vec(),
                guard,
                body,
            };
            c.checker.arena.add(form, ty)
        };
        let monomials = match reduction {
            Reduction::Sum => self.monomials(body),
            _ => [].into(),
        };
        if monomials.len() < 2 {
            return one(self, body);
        }
        let mut sum: Option<ExprId> = None;
        for (is_negative, monomial) in monomials.iter().copied() {
            let term = one(self, monomial);
            sum = Some(match (sum, is_negative) {
                (None, false) => term,
                (None, true) => self.call(Function::Neg, &[term]),
                (Some(sum), false) => self.call(Function::Add, &[sum, term]),
                (Some(sum), true) => self.call(Function::Sub, &[sum, term]),
            });
        }
        sum.unwrap_or(body)
    }

    /// The products that a part of a product is the sum of, with their signs; the part itself where they are too many.
    fn monomials(&mut self, id: ExprId) -> Rc<[Monomial]> {
        // Both parts of a product are made of both parts of its factors: looked through anew each time, long products would not end.
        if let Some(known) = self.monomials.get(&id) {
            return Rc::clone(known);
        }
        let mut all: Vec<Monomial> = match &*self.checker.arena.form(id) {
            Form::Apply(function @ (Function::Add | Function::Sub), of)
                if self.products.contains(&id) || self.is_zero(of[0]) =>
            {
                let turned = *function == Function::Sub;
                let (left, right) = (self.monomials(of[0]), self.monomials(of[1]));
                let right = right
                    .iter()
                    .map(|(negative, id)| (*negative != turned, *id));
                left.iter().copied().chain(right).collect()
            }
            Form::Apply(Function::Neg, of) => {
                let of = self.monomials(of[0]);
                of.iter().map(|(negative, id)| (!negative, *id)).collect()
            }
            Form::Apply(Function::Mul, of) => {
                let (left, right) = (self.monomials(of[0]), self.monomials(of[1]));
                match left.len() * right.len() > MOST_MONOMIALS {
                    true => vec![(false, id)],
                    false => {
                        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
                        let product =
                            |((a_negative, a), (b_negative, b)): (&Monomial, &Monomial)| {
                                let product = self.call(Function::Mul, &[*a, *b]);
                                (a_negative != b_negative, product)
                            };
                        pairs.map(product).collect()
                    }
                }
            }
            Form::Constant(zero) if zero.as_f64() == 0.0 => vec![],
            _ => vec![(false, id)],
        };
        if all.len() > MOST_MONOMIALS {
            all = vec![(false, id)];
        }
        let all: Rc<[Monomial]> = all.into();
        self.monomials.insert(id, Rc::clone(&all));
        all
    }

    fn is_zero(&self, id: ExprId) -> bool {
        matches!(&*self.checker.arena.form(id), Form::Constant(zero) if zero.as_f64() == 0.0)
    }

    /// A function of real values of one type.
    pub(crate) fn call(&mut self, function: Function, of: &[ExprId]) -> ExprId {
        let ty = self.checker.arena.ty(of[0]);
        self.checker
            .arena
            .add(Form::Apply(function, of.to_vec()), ty)
    }

    /// A comparison of real values of one type.
    pub(crate) fn test(&mut self, function: Function, a: ExprId, b: ExprId) -> ExprId {
        let form = Form::Apply(function, vec![a, b]);
        self.checker.arena.add(form, Ty::Typed(DType::Bool))
    }

    /// The first value where the condition holds, else the second.
    pub(crate) fn choose(&mut self, condition: ExprId, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.checker.arena.ty(a);
        let form = Form::Apply(Function::Select, vec![condition, a, b]);
        self.checker.arena.add(form, ty)
    }

    pub(crate) fn number(&mut self, value: f64, part: DType) -> ExprId {
        let form = Form::Constant(Scalar::Float(value));
        self.checker.arena.add(form, Ty::Typed(part))
    }

    /// Both parts, also where they are 0.
    pub(crate) fn whole(&mut self, value: Value) -> [ExprId; 2] {
        let zero = self.number(0.0, value.part);
        [value.re.unwrap_or(zero), value.im.unwrap_or(zero)]
    }

    pub(crate) fn negative(&mut self, x: Option<ExprId>) -> Option<ExprId> {
        x.map(|x| self.call(Function::Neg, &[x]))
    }

    pub(crate) fn plus(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Option<ExprId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.call(Function::Add, &[a, b])),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn minus(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Option<ExprId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.call(Function::Sub, &[a, b])),
            (a, None) => a,
            // 0 − 0 is 0, as in numpy, and −0 is on the other side of the cut of a root.
            (None, Some(b)) => match self.checker.arena.ty(b) {
                Ty::Typed(part) => {
                    let zero = self.number(0.0, part);
                    Some(self.call(Function::Sub, &[zero, b]))
                }
                Ty::Number { .. } => self.negative(Some(b)),
            },
        }
    }

    pub(crate) fn times(&mut self, a: Option<ExprId>, b: Option<ExprId>) -> Option<ExprId> {
        Some(self.call(Function::Mul, &[a?, b?]))
    }

    /// Notes that a sum or difference is a part of a product.
    pub(crate) fn of_product(&mut self, part: Option<ExprId>) -> Option<ExprId> {
        self.products.extend(part);
        part
    }
}

/// Which expressions are products of complex numbers over indices that read what need not be there, or are made of them.
fn products_inside(checker: &mut Checker<'_>) -> Vec<bool> {
    let mut inside: Vec<bool> = vec![];
    for number in 0..checker.arena.len() {
        let id = ExprId(number as u32);
        let form = checker.arena.form(id);
        let is_product = matches!(
            &*form,
            Form::Reduce { reduction: Reduction::Prod, .. } if checker.complex_type(id).is_some()
        );
        let mut arguments = form.arguments().into_iter();
        let holds = arguments.any(|of| inside[of.0 as usize]);
        inside.push(holds || (is_product && checker.has_faulty_reduction(id)));
    }
    inside
}
