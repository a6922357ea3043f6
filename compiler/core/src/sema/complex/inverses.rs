//! The parts of tangents, of the sigmoid, and of the inverses of circular and hyperbolic functions.
//!
//! The inverses are Kahan's (Branch cuts for complex elementary functions, 1987): they are made of roots of 1 − z and 1 + z, whose parts meet
//! in sums without cancellation, and -0 lies below a cut. No exponential of a large number is in between. Must not know tensors.
//!
//! ```text
//! asin(a + bi)   =>   with p + qi = √(1 − z) and r + si = √(1 + z):  re: atan2(a, p * r - q * s),  im: asinh(p * s - q * r)
//! ```

use crate::sema::{
    complex::value::{Splitter, Value},
    expressions::arena::ExprId,
};
use ein_plan::Function;

impl Splitter<'_, '_> {
    /// A function of this file; `None` of another one.
    pub(crate) fn tangent_or_inverse(&mut self, function: Function, x: Value) -> Option<Value> {
        use Function::{Acos, Acosh, Asin, Asinh, Atan, Atanh, Sigmoid, Tan, Tanh};
        let real_of_reals = matches!(function, Tan | Tanh | Atan | Asinh | Sigmoid);
        if x.im.is_none() && real_of_reals {
            let re = x.re.unwrap_or_else(|| self.number(0.0, x.part));
            let re = Some(self.call(function, &[re]));
            return Some(Value { re, ..x });
        }
        let turned = |c: &mut Self, x: Value| Value {
            re: c.negative(x.im),
            im: x.re,
            ..x
        };
        let turned_back = |c: &mut Self, x: Value| Value {
            re: x.im,
            im: c.negative(x.re),
            ..x
        };
        Some(match function {
            Tanh => self.hyperbolic_tangent(x),
            Sigmoid => self.sigmoid(x),
            Asin => self.arc_sine(x),
            Acos => self.arc_cosine(x),
            Acosh => self.area_cosine(x),
            Atanh => self.area_tangent(x),
            // Of these, f(z) is −i g(iz).
            Tan | Atan | Asinh => {
                let of = turned(self, x);
                let done = match function {
                    Tan => self.hyperbolic_tangent(of),
                    Atan => self.area_tangent(of),
                    _ => self.arc_sine(of),
                };
                turned_back(self, done)
            }
            _ => return None,
        })
    }

    fn mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.call(Function::Mul, &[a, b])
    }

    /// exp(−|x|), −|x|, with branches that are smooth at 0, and whether x is negative.
    fn small_exponential(&mut self, x: ExprId, zero: ExprId) -> (ExprId, ExprId, ExprId) {
        let is_negative = self.test(Function::Lt, x, zero);
        let turned = self.call(Function::Neg, &[x]);
        let exponent = self.choose(is_negative, x, turned);
        let exponential = self.call(Function::Exp, &[exponent]);
        (exponential, exponent, is_negative)
    }

    /// With t = tanh a and s = 1 / cosh a = 2q / (1 + q²), q = exp(−|a|): (t + i s² sin b cos b) / (t² + s² cos² b).
    fn hyperbolic_tangent(&mut self, x: Value) -> Value {
        let [re, im] = self.whole(x);
        let (zero, one) = (self.number(0.0, x.part), self.number(1.0, x.part));
        let tanh = self.call(Function::Tanh, &[re]);
        let (exponential, ..) = self.small_exponential(re, zero);
        let square = self.mul(exponential, exponential);
        let sum = self.call(Function::Add, &[one, square]);
        let twice = self.scaled(exponential, 2.0);
        let secant = self.call(Function::Div, &[twice, sum]);
        let (cos, sin) = (
            self.call(Function::Cos, &[im]),
            self.call(Function::Sin, &[im]),
        );
        let (first, second) = (self.mul(tanh, tanh), self.mul(secant, cos));
        let second = self.mul(second, second);
        let divisor = self.call(Function::Add, &[first, second]);
        let product = self.mul(sin, cos);
        let secant = self.mul(secant, secant);
        let product = self.mul(product, secant);
        Value {
            re: Some(self.call(Function::Div, &[tanh, divisor])),
            im: Some(self.call(Function::Div, &[product, divisor])),
            part: x.part,
        }
    }

    /// 1 / (1 + exp(−z)). With q = exp(−|a|), m = 1 − q and h = cos(b / 2) the divisor is m² + 4qh², the imaginary part has q sin b above it,
    /// and the real one m + 2qh², or q (2h² − m) where a is negative; 2h² − m is q + cos b, which is exact away from the pole.
    fn sigmoid(&mut self, x: Value) -> Value {
        let [re, im] = self.whole(x);
        let zero = self.number(0.0, x.part);
        let (exponential, exponent, is_negative) = self.small_exponential(re, zero);
        let less = self.call(Function::Expm1, &[exponent]);
        let rest = self.call(Function::Neg, &[less]);
        let half = self.scaled(im, 0.5);
        let cos = self.call(Function::Cos, &[half]);
        let sin = self.call(Function::Sin, &[im]);
        let square = self.mul(cos, cos);
        let double = self.scaled(square, 2.0);
        let shared = self.mul(exponential, double);
        let (first, second) = (self.mul(rest, rest), self.scaled(shared, 2.0));
        let divisor = self.call(Function::Add, &[first, second]);
        let right = self.call(Function::Add, &[rest, shared]);
        let [near, cos] = [
            self.call(Function::Sub, &[double, rest]),
            self.call(Function::Cos, &[im]),
        ];
        let far = self.call(Function::Add, &[exponential, cos]);
        let limit = self.number(0.5, x.part);
        let is_far = self.test(Function::Lt, exponential, limit);
        let left = self.choose(is_far, far, near);
        let left = self.mul(exponential, left);
        let above = self.choose(is_negative, left, right);
        let product = self.mul(exponential, sin);
        Value {
            re: Some(self.call(Function::Div, &[above, divisor])),
            im: Some(self.call(Function::Div, &[product, divisor])),
            part: x.part,
        }
    }

    /// The parts of √(1 − z) and √(1 + z).
    fn roots_beside(&mut self, x: Value) -> [ExprId; 4] {
        let [re, im] = self.whole(x);
        let one = self.number(1.0, x.part);
        // 1 − z has −0 as imaginary part where z has 0. Of a real z it is a constant.
        let turned = match x.im {
            Some(im) => self.call(Function::Neg, &[im]),
            None => self.number(-0.0, x.part),
        };
        let less = self.call(Function::Sub, &[one, re]);
        let more = self.call(Function::Add, &[one, re]);
        let [p, q] = self.root_of(less, turned, x);
        let [r, s] = self.root_of(more, im, x);
        [p, q, r, s]
    }

    fn root_of(&mut self, re: ExprId, im: ExprId, like: Value) -> [ExprId; 2] {
        let root = self.root(Value {
            re: Some(re),
            im: Some(im),
            ..like
        });
        self.whole(root)
    }

    fn arc_sine(&mut self, x: Value) -> Value {
        let [p, q, r, s] = self.roots_beside(x);
        let [re, _] = self.whole(x);
        let (pr, qs) = (self.mul(p, r), self.mul(q, s));
        let (ps, qr) = (self.mul(p, s), self.mul(q, r));
        let cosine = self.call(Function::Sub, &[pr, qs]);
        let above = self.call(Function::Sub, &[ps, qr]);
        Value {
            re: Some(self.call(Function::Atan2, &[re, cosine])),
            im: Some(self.call(Function::Asinh, &[above])),
            part: x.part,
        }
    }

    /// 2 atan2(p, r) + i asinh(qr − ps), with the roots of asin.
    fn arc_cosine(&mut self, x: Value) -> Value {
        let [p, q, r, s] = self.roots_beside(x);
        let (ps, qr) = (self.mul(p, s), self.mul(q, r));
        let above = self.call(Function::Sub, &[qr, ps]);
        let half = self.call(Function::Atan2, &[p, r]);
        Value {
            re: Some(self.scaled(half, 2.0)),
            im: Some(self.call(Function::Asinh, &[above])),
            part: x.part,
        }
    }

    /// asinh(pr + qs) + 2i atan2(q, r), with p + qi = √(z − 1) and r + si = √(z + 1).
    fn area_cosine(&mut self, x: Value) -> Value {
        let [re, im] = self.whole(x);
        let one = self.number(1.0, x.part);
        let less = self.call(Function::Sub, &[re, one]);
        let more = self.call(Function::Add, &[re, one]);
        let [p, q] = self.root_of(less, im, x);
        let [r, s] = self.root_of(more, im, x);
        let (pr, qs) = (self.mul(p, r), self.mul(q, s));
        let sum = self.call(Function::Add, &[pr, qs]);
        let half = self.call(Function::Atan2, &[q, r]);
        Value {
            re: Some(self.call(Function::Asinh, &[sum])),
            im: Some(self.scaled(half, 2.0)),
            part: x.part,
        }
    }

    /// With c = |a|, u = |1 − c − bi| and v = |1 + c + bi|, the real part is ¼ log1p(4c / u²), or ½ log(v / u) where v is more than 2u, and has
    /// the sign of a. The imaginary one is half the angle of 1 + z, less that of 1 − z.
    fn area_tangent(&mut self, x: Value) -> Value {
        let [re, im] = self.whole(x);
        let (zero, one) = (self.number(0.0, x.part), self.number(1.0, x.part));
        let is_negative = self.test(Function::Lt, re, zero);
        let turned = self.call(Function::Neg, &[re]);
        let size = self.choose(is_negative, turned, re);
        let less = self.call(Function::Sub, &[one, size]);
        let more = self.call(Function::Add, &[one, size]);
        let (u, v) = (
            self.call(Function::Hypot, &[less, im]),
            self.call(Function::Hypot, &[more, im]),
        );
        let four = self.number(4.0, x.part);
        let (first, second) = (
            self.call(Function::Div, &[size, u]),
            self.call(Function::Div, &[four, u]),
        );
        let excess = self.mul(first, second);
        let far = self.call(Function::Log1p, &[excess]);
        let far = self.scaled(far, 0.25);
        let ratio = self.call(Function::Div, &[v, u]);
        let near = self.call(Function::Log, &[ratio]);
        let near = self.scaled(near, 0.5);
        let twice = self.scaled(u, 2.0);
        let is_near = self.test(Function::Gt, v, twice);
        let found = self.choose(is_near, near, far);
        let opposite = self.call(Function::Neg, &[found]);
        let before = self.call(Function::Sub, &[one, re]);
        let behind = self.call(Function::Add, &[one, re]);
        let angles = [before, behind].map(|of| self.call(Function::Atan2, &[im, of]));
        let sum = self.call(Function::Add, &angles);
        Value {
            re: Some(self.choose(is_negative, opposite, found)),
            im: Some(self.scaled(sum, 0.5)),
            part: x.part,
        }
    }
}
