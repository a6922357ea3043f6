//! The parts of functions of complex numbers, by formulas in their parts.
//!
//! Quotients are Smith's: the divisor is scaled by its larger part, so that nothing overflows in between. Roots and logarithms are the
//! principal ones, with the cut along the negative real numbers. Where a formula needs a size or a sign, it has branches that are smooth by
//! themselves, so that it has all derivatives on the axes, too. Must not know tensors.
//!
//! ```text
//! exp(a + bi)   =>   re: exp(a) * cos(b),  im: exp(a) * sin(b)
//! ```

use crate::sema::{
    complex::value::{Splitter, Value},
    expressions::arena::{ExprId, Form},
};
use ein_plan::{DType, Function, Scalar};

impl Splitter<'_, '_> {
    /// A function with a complex result.
    pub(crate) fn function(
        &mut self,
        function: Function,
        of: &[ExprId],
        part: DType,
    ) -> Option<Value> {
        if function == Function::Select {
            let condition = self.real(of[0])?;
            let a = self.under(condition, true, |c| c.value(of[1]))?;
            let b = self.under(condition, false, |c| c.value(of[2]))?;
            return Some(self.select(condition, a, b));
        }
        let first = self.value(of[0])?;
        let second = match of.get(1) {
            Some(second) => Some(self.value(*second)?),
            None => None,
        };
        let both = second.unwrap_or(first);
        let (re, im) = match function {
            Function::Neg => (self.negative(first.re), self.negative(first.im)),
            Function::Stop => {
                let mut stop = |x: Option<ExprId>| x.map(|x| self.call(Function::Stop, &[x]));
                (stop(first.re), stop(first.im))
            }
            Function::Add => (self.plus(first.re, both.re), self.plus(first.im, both.im)),
            Function::Sub => (self.minus(first.re, both.re), self.minus(first.im, both.im)),
            Function::Mul => {
                let [first, both] = [first, both].map(|factor| self.with_a_part(factor));
                return Some(self.product(first, both));
            }
            Function::Div => return Some(self.quotient(first, both)),
            Function::Exp => self.exponential(first),
            Function::Exp2 => self.exponential_of_two(first),
            Function::Expm1 => self.exponential_less_one(first),
            Function::Log | Function::Log2 | Function::Log10 => self.logarithm(function, first),
            Function::Log1p => self.logarithm_of_more(first),
            Function::Sqrt => return Some(self.root(first)),
            Function::Rsqrt => {
                let one = self.number(1.0, part);
                let (re, im) = (Some(one), None);
                let root = self.root(first);
                return Some(self.quotient(Value { re, im, part }, root));
            }
            Function::Sign => self.direction(first),
            Function::Sin | Function::Cos | Function::Sinh | Function::Cosh => {
                self.of_a_sum(function, first)
            }
            _ => return self.tangent_or_inverse(function, first),
        };
        Some(Value { re, im, part })
    }

    fn select(&mut self, condition: ExprId, a: Value, b: Value) -> Value {
        let (x, y) = (self.whole(a), self.whole(b));
        let mut part =
            |at: usize, needed: bool| needed.then(|| self.choose(condition, x[at], y[at]));
        Value {
            re: part(0, a.re.or(b.re).is_some()),
            im: part(1, a.im.or(b.im).is_some()),
            part: a.part,
        }
    }

    /// (a + bi)(c + di) = ac − bd + (ad + bc)i.
    pub(crate) fn product(&mut self, x: Value, y: Value) -> Value {
        let (ac, bd) = (self.times(x.re, y.re), self.times(x.im, y.im));
        let (ad, bc) = (self.times(x.re, y.im), self.times(x.im, y.re));
        let re = self.minus(ac, bd);
        let im = self.plus(ad, bc);
        Value {
            re: self.of_product(re),
            im: self.of_product(im),
            part: x.part,
        }
    }

    /// The quotient. With p the larger part of the divisor, q the other one and r = q / p, it is (a + br + (b − ar)i) / (p + qr) where the real
    /// part is larger, and (ar + b + (br − a)i) / (p + qr) where the imaginary one is.
    fn quotient(&mut self, x: Value, y: Value) -> Value {
        let (Some(c), Some(d)) = (y.re, y.im) else {
            return self.quotient_by_part(x, y);
        };
        let (size_c, size_d) = (
            self.call(Function::Abs, &[c]),
            self.call(Function::Abs, &[d]),
        );
        let is_real = self.test(Function::Ge, size_c, size_d);
        let (p, q) = (self.choose(is_real, c, d), self.choose(is_real, d, c));
        let ratio = self.call(Function::Div, &[q, p]);
        let rest = self.call(Function::Mul, &[q, ratio]);
        let divisor = self.call(Function::Add, &[p, rest]);
        let ratio = Some(ratio);
        let (a, b) = (x.re, x.im);
        let (ar, br) = (self.times(a, ratio), self.times(b, ratio));
        let (re_1, re_2) = (self.plus(a, br), self.plus(ar, b));
        let (im_1, im_2) = (self.minus(b, ar), self.minus(br, a));
        let mut part = |first: Option<ExprId>, second: Option<ExprId>| {
            let zero = self.number(0.0, x.part);
            let (first, second) = (first.unwrap_or(zero), second.unwrap_or(zero));
            let chosen = self.choose(is_real, first, second);
            self.call(Function::Div, &[chosen, divisor])
        };
        Value {
            re: Some(part(re_1, re_2)),
            im: Some(part(im_1, im_2)),
            part: x.part,
        }
    }

    /// The quotient by a divisor of which one part is 0: (a + bi) / c, (a + bi) / (di) = b/d − (a/d)i.
    fn quotient_by_part(&mut self, x: Value, y: Value) -> Value {
        let zero = self.number(0.0, x.part);
        let (divisor, is_imaginary) = match (y.re, y.im) {
            (None, Some(im)) => (im, true),
            (re, _) => (re.unwrap_or(zero), false),
        };
        let mut over = |x: Option<ExprId>| x.map(|x| self.call(Function::Div, &[x, divisor]));
        let (re, im) = (over(x.re), over(x.im));
        match is_imaginary {
            true => Value {
                re: im,
                im: self.negative(re),
                part: x.part,
            },
            false => Value {
                re,
                im,
                part: x.part,
            },
        }
    }

    /// A factor of which a part is written, so that 0 times what is infinite is not 0.
    fn with_a_part(&mut self, x: Value) -> Value {
        let zero = self.number(0.0, x.part);
        Value {
            re: x.re.or(x.im.is_none().then_some(zero)),
            ..x
        }
    }

    fn exponential(&mut self, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        self.exponential_of(Function::Exp, std::f64::consts::E, x)
    }

    /// 2^z, with an angle of b log 2.
    fn exponential_of_two(&mut self, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        let im = x.im.map(|im| self.scaled(im, std::f64::consts::LN_2));
        self.exponential_of(Function::Exp2, 2.0, Value { im, ..x })
    }

    /// The function of the real part times cos b + i sin b. A power that may be infinite is one of less, times the rest: what it is multiplied by
    /// may be small.
    fn exponential_of(
        &mut self,
        function: Function,
        base: f64,
        x: Value,
    ) -> (Option<ExprId>, Option<ExprId>) {
        let Some(im) = x.im else {
            let size = x.re.map(|re| self.call(function, &[re]));
            return (size.or(Some(self.number(1.0, x.part))), None);
        };
        let [cos, sin] = [Function::Cos, Function::Sin].map(|of| self.call(of, &[im]));
        let Some(re) = x.re else {
            return (Some(cos), Some(sin));
        };
        let (bound, less) = match x.part {
            DType::F32 => (80.0, 64.0),
            _ => (700.0, 512.0),
        };
        let [bound, shift, none, rest, one] =
            [bound, less, 0.0, base.powf(less), 1.0].map(|number| self.number(number, x.part));
        let is_large = self.test(Function::Gt, re, bound);
        let shift = self.choose(is_large, shift, none);
        let rest = self.choose(is_large, rest, one);
        let exponent = self.call(Function::Sub, &[re, shift]);
        let size = self.call(function, &[exponent]);
        let most = match x.part {
            DType::F32 => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        let most = self.number(most, x.part);
        let is_infinite = self.test(Function::Gt, size, most);
        let part = [cos, sin].map(|of| {
            let part = self.call(Function::Mul, &[size, of]);
            let part = self.call(Function::Mul, &[part, rest]);
            let is_zero = self.test(Function::Eq, of, none);
            let is_none = self.test(Function::And, is_infinite, is_zero);
            Some(self.choose(is_none, of, part))
        });
        (part[0], part[1])
    }

    /// exp(a + bi) − 1 = (exp(a) − 1) cos b − 2 sin(b/2)² + i exp(a) sin b.
    fn exponential_less_one(&mut self, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        let [re, im] = self.whole(x);
        let less = self.call(Function::Expm1, &[re]);
        if x.im.is_none() {
            return (Some(less), None);
        }
        let half = self.scaled(im, 0.5);
        let [size, cos, sin, sin_half] = [
            (Function::Exp, re),
            (Function::Cos, im),
            (Function::Sin, im),
            (Function::Sin, half),
        ]
        .map(|(function, of)| self.call(function, &[of]));
        let first = self.call(Function::Mul, &[less, cos]);
        let square = self.call(Function::Mul, &[sin_half, sin_half]);
        let second = self.scaled(square, 2.0);
        let re = self.call(Function::Sub, &[first, second]);
        (Some(re), Some(self.call(Function::Mul, &[size, sin])))
    }

    /// log |z| + i angle(z), both of them times what a base asks for.
    fn logarithm(&mut self, function: Function, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        use std::f64::consts::{LOG2_E, LOG10_E};
        let [re, im] = self.whole(x);
        let size = self.magnitude(x);
        let far = self.call(function, &[size]);
        let factor = match function {
            Function::Log2 => LOG2_E,
            Function::Log10 => LOG10_E,
            _ => 1.0,
        };
        let angle = self.call(Function::Atan2, &[im, re]);
        let angle = self.scaled(angle, factor);
        if x.re.is_none() || x.im.is_none() {
            return (Some(far), Some(angle));
        }
        // With p the larger part and q the other one, |z|² − 1 is (p − 1)(p + 1) + q².
        let one = self.number(1.0, x.part);
        let (size_re, size_im) = (
            self.call(Function::Abs, &[re]),
            self.call(Function::Abs, &[im]),
        );
        let is_real = self.test(Function::Ge, size_re, size_im);
        let (p, q) = (self.choose(is_real, re, im), self.choose(is_real, im, re));
        let (less, more) = (
            self.call(Function::Sub, &[p, one]),
            self.call(Function::Add, &[p, one]),
        );
        let product = self.call(Function::Mul, &[less, more]);
        let square = self.call(Function::Mul, &[q, q]);
        let excess = self.call(Function::Add, &[product, square]);
        let re = self.log_near_one((size, excess), factor, far);
        (Some(re), Some(angle))
    }

    /// log(1 + z): with a the real part and b the imaginary one, |1 + z|² − 1 is a(a + 2) + b².
    fn logarithm_of_more(&mut self, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        let [re, im] = self.whole(x);
        let (one, two) = (self.number(1.0, x.part), self.number(2.0, x.part));
        let more = self.call(Function::Add, &[one, re]);
        let size = self.magnitude(Value {
            re: Some(more),
            ..x
        });
        let far = self.call(Function::Log, &[size]);
        let sum = self.call(Function::Add, &[re, two]);
        let product = self.call(Function::Mul, &[re, sum]);
        let square = self.call(Function::Mul, &[im, im]);
        let excess = self.call(Function::Add, &[product, square]);
        let near = self.log_near_one((size, excess), 1.0, far);
        (Some(near), Some(self.call(Function::Atan2, &[im, more])))
    }

    /// The logarithm of a size near 1, by what its square is more than 1, times a factor; `far` elsewhere.
    fn log_near_one(
        &mut self,
        (size, excess): (ExprId, ExprId),
        factor: f64,
        far: ExprId,
    ) -> ExprId {
        let near = self.call(Function::Log1p, &[excess]);
        let near = self.scaled(near, 0.5 * factor);
        let ty = self.checker.arena.ty(size);
        let bounds = [0.5, 1.5].map(|bound| {
            let form = Form::Constant(Scalar::Float(bound));
            self.checker.arena.add(form, ty)
        });
        let (above, below) = (
            self.test(Function::Gt, size, bounds[0]),
            self.test(Function::Lt, size, bounds[1]),
        );
        let is_near = self.test(Function::And, above, below);
        self.choose(is_near, near, far)
    }

    /// z / |z|, 0 at 0.
    fn direction(&mut self, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        let size = self.magnitude(x);
        let zero = self.number(0.0, x.part);
        let is_zero = self.test(Function::Eq, size, zero);
        let mut part = |x: Option<ExprId>| {
            let quotient = self.call(Function::Div, &[x?, size]);
            Some(self.choose(is_zero, zero, quotient))
        };
        (part(x.re), part(x.im))
    }

    /// The absolute value.
    pub(crate) fn magnitude(&mut self, x: Value) -> ExprId {
        match (x.re, x.im) {
            (Some(re), Some(im)) => self.call(Function::Hypot, &[re, im]),
            (Some(part), None) | (None, Some(part)) => self.call(Function::Abs, &[part]),
            (None, None) => self.number(0.0, x.part),
        }
    }

    /// The principal root: with s = √((|z| + |a|) / 2) and t = |b| / (2s), it is s + ti where a is not negative, else t + si, and its imaginary
    /// part has the sign of b, that of a zero too: the cut is continuous from above for 0 and from below for -0.
    pub(crate) fn root(&mut self, x: Value) -> Value {
        let (zero, half) = (self.number(0.0, x.part), self.number(0.5, x.part));
        let [re, im] = self.whole(x);
        // The root of a quarter is half the root, and a number so large has a quarter whose size is finite.
        let [quarter, one, two] = [0.25, 1.0, 2.0].map(|number| self.number(number, x.part));
        let far = match x.part {
            DType::F32 => f64::from(f32::MAX) / 8.0,
            _ => f64::MAX / 8.0,
        };
        let far = self.number(far, x.part);
        let [size_re, size_im] = [re, im].map(|part| self.call(Function::Abs, &[part]));
        let larger = self.call(Function::Max, &[size_re, size_im]);
        let is_far = self.test(Function::Gt, larger, far);
        let less = self.choose(is_far, quarter, one);
        let more = self.choose(is_far, two, one);
        let [re, im] = [re, im].map(|part| self.call(Function::Mul, &[part, less]));
        let size = self.call(Function::Hypot, &[re, im]);
        let inverse = self.call(Function::Div, &[one, im]);
        let (negative, negative_zero) = (
            self.test(Function::Lt, im, zero),
            self.test(Function::Lt, inverse, zero),
        );
        let is_below = self.test(Function::Or, negative, negative_zero);
        let is_right = self.test(Function::Ge, re, zero);
        let turned = [re, im].map(|part| self.call(Function::Neg, &[part]));
        let (size_re, size_im) = (
            self.choose(is_right, re, turned[0]),
            self.choose(is_below, turned[1], im),
        );
        let sum = self.call(Function::Add, &[size, size_re]);
        let mean = self.call(Function::Mul, &[sum, half]);
        let large = self.call(Function::Sqrt, &[mean]);
        let twice = self.call(Function::Add, &[large, large]);
        let quotient = self.call(Function::Div, &[size_im, twice]);
        let is_zero = self.test(Function::Eq, large, zero);
        let small = self.choose(is_zero, zero, quotient);
        let root_re = self.choose(is_right, large, small);
        let root_im = self.choose(is_right, small, large);
        let turned = self.call(Function::Neg, &[root_im]);
        let root_im = self.choose(is_below, turned, root_im);
        Value {
            re: Some(self.call(Function::Mul, &[root_re, more])),
            im: Some(self.call(Function::Mul, &[root_im, more])),
            part: x.part,
        }
    }

    /// A real value times a number.
    pub(crate) fn scaled(&mut self, x: ExprId, factor: f64) -> ExprId {
        if factor == 1.0 {
            return x;
        }
        let ty = self.checker.arena.ty(x);
        let form = Form::Constant(Scalar::Float(factor));
        let factor = self.checker.arena.add(form, ty);
        self.call(Function::Mul, &[factor, x])
    }

    /// sin(a + bi) = sin a cosh b + i cos a sinh b, cos(a + bi) = cos a cosh b − i sin a sinh b,
    /// sinh(a + bi) = sinh a cos b + i cosh a sin b, cosh(a + bi) = cosh a cos b + i sinh a sin b.
    fn of_a_sum(&mut self, function: Function, x: Value) -> (Option<ExprId>, Option<ExprId>) {
        use Function::{Cos, Cosh, Sin, Sinh};
        let (other, even, odd) = match function {
            Sin => (Cos, Cosh, Sinh),
            Cos => (Sin, Cosh, Sinh),
            Sinh => (Cosh, Cos, Sin),
            _ => (Sinh, Cos, Sin),
        };
        let [re, im] = self.whole(x);
        let own = self.call(function, &[re]);
        if x.im.is_none() {
            return (Some(own), None);
        }
        let [other, even, odd] =
            [(other, re), (even, im), (odd, im)].map(|(function, of)| self.call(function, &[of]));
        let imaginary = self.times(Some(other), Some(odd));
        let imaginary = match function {
            Cos => self.negative(imaginary),
            _ => imaginary,
        };
        (self.times(Some(own), Some(even)), imaginary)
    }
}
