//! The operations of a program.
//!
//! Must not know how operations are found or executed.
//!
//! ```text
//! r0 = a0[i]; r1 = r0 * r0; fused {r0, r1} -> r2
//! ```

use crate::compiled::Code;
use ein_plan::{Function, Scalar};

/// One operation; its result goes to the register of `node`.
#[derive(Clone)]
pub(crate) struct Operation {
    pub node: u32,
    /// Computed in one lane.
    pub uniform: bool,
    /// Copied to all lanes afterwards.
    pub splat: bool,
    pub kind: Kind,
}

/// What an operation does.
#[derive(Clone)]
pub(crate) enum Kind {
    Constant(Scalar),
    Index {
        index: usize,
        /// Step of each dimension of the strip.
        lanes: Vec<i64>,
    },
    Read(Box<Read>),
    Apply(Function, [u32; 3]),
    Convert(u32),
    /// A function and the arithmetic around it.
    Curve(Box<Curve>),
    /// Several operations in one loop; the results go to registers of their own.
    Fused(Box<Fused>),
    /// Goes on at operation `to` of the level if no lane of `condition` is `wanted`.
    Skip {
        condition: u32,
        wanted: bool,
        to: usize,
    },
}

/// A read, prepared.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub operand: usize,
    pub column: usize,
    pub dims: Vec<Position>,
    pub otherwise: Option<u32>,
    /// Distance in elements between lanes that are neighbours along each dimension of the strip.
    pub lanes: Vec<i64>,
    /// Whether some position is a register that differs between lanes.
    pub scattered: bool,
    /// True if positions go on evenly, or not at all, along the last dimension of the strip.
    pub by_rows: bool,
}

impl Read {
    /// Whether everything that is read is there, at places that follow from the indices alone.
    pub(crate) fn is_inside(&self) -> bool {
        let known = |form: &Form| matches!(form, Form::Followed(f) if !f.checked && f.divisor == 1 && f.modulus.is_none());
        self.dims.iter().all(|dim| known(&dim.form))
    }
}

/// A position of a read.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// First position that the chunk holds, and how many.
    pub start: i64,
    pub length: i64,
    /// Distance in elements between neighbours.
    pub stride: i64,
    pub form: Form,
}

/// How a position is found.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// It follows from the indices alone.
    Followed(Followed),
    /// The value of a node.
    Value(u32),
}

/// A position `(constant + Σ coefficient · index) / divisor % modulus`, both rounded down.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    pub constant: i64,
    pub terms: Vec<(usize, i64)>,
    /// Steps of the affine form along the strip.
    pub lanes: Vec<i64>,
    pub divisor: i64,
    pub modulus: Option<i64>,
    /// It may be outside.
    pub checked: bool,
}

impl Followed {
    /// The affine form at a point.
    pub(crate) fn form(&self, point: &[i64]) -> i64 {
        let terms = self.terms.iter();
        terms.fold(self.constant, |sum, (i, c)| sum + c * point[*i])
    }

    /// The quotient of a value of the affine form.
    pub(crate) fn quotient(&self, form: i64) -> i64 {
        match self.divisor {
            1 => form,
            divisor => form.div_euclid(divisor),
        }
    }

    /// The position at a value of the affine form.
    pub(crate) fn position(&self, form: i64) -> i64 {
        let quotient = self.quotient(form);
        self.modulus.map_or(quotient, |m| quotient.rem_euclid(m))
    }
}

/// A compiled group and the registers that it works on.
#[derive(Clone)]
pub(crate) struct Fused {
    pub code: Code,
    /// Lanes that are worked on at once.
    pub width: usize,
    /// Nodes that are read.
    pub inputs: Vec<u32>,
    /// Nodes that are written.
    pub outputs: Vec<u32>,
}

/// `(f(scale · x - shift) + plus) · (by · x)` of single precision, or `x / under`; all but x are the same in all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    pub function: Function,
    /// The node x.
    pub argument: u32,
    pub scale: Option<u32>,
    pub shift: Option<u32>,
    pub plus: Option<u32>,
    /// The last factor, if there is one; without a node it is x.
    pub by: Option<Option<u32>>,
    /// What x is divided by, if that is all; the function is [`Function::Stop`] then.
    pub under: Option<u32>,
}

impl Curve {
    /// The function alone.
    pub(crate) fn of(function: Function, argument: u32) -> Curve {
        Curve {
            function,
            argument,
            scale: None,
            shift: None,
            plus: None,
            by: None,
            under: None,
        }
    }

    /// The nodes whose values it needs.
    pub(crate) fn arguments(&self) -> Vec<u32> {
        let uniform = [
            self.scale,
            self.shift,
            self.plus,
            self.by.flatten(),
            self.under,
        ];
        let uniform = uniform.into_iter().flatten();
        uniform.chain([self.argument]).collect()
    }
}

impl Operation {
    /// The nodes whose values it needs.
    pub(crate) fn arguments(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Constant(_) | Kind::Index { .. } => vec![],
            Kind::Read(read) => {
                let positions = read.dims.iter().filter_map(|dim| match dim.form {
                    Form::Value(id) => Some(id),
                    Form::Followed(_) => None,
                });
                positions.chain(read.otherwise).collect()
            }
            Kind::Apply(f, a) => a[..f.arity()].to_vec(),
            Kind::Convert(a) => vec![*a],
            Kind::Curve(curve) => curve.arguments(),
            Kind::Skip { condition, .. } => vec![*condition],
            Kind::Fused(fused) => fused.inputs.clone(),
        }
    }
}
