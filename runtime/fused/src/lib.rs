//! Code that is compiled when a program runs: groups of element-wise operations over strips of lanes, each into one loop, and loops of small
//! steps ([`rounds`]).
//!
//! A group has inputs (lanes of one floating-point type, or truth values), steps and outputs (some of the steps). It
//! knows neither where lanes come from nor how many there are. Must not know kernels.
//!
//! ```text
//! f32 (v, u) v2 = mul v0 v1; v3 = gt v2 v0; v4 = select v3 v2 v0 -> v4
//! ```

pub mod generate;
mod parse;
pub mod rounds;

use ein_plan::Function;
use std::fmt;

/// Lanes that a group reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Whether they are truth values (a byte each, 0 or 1) instead of numbers.
    pub truth: bool,
    /// Whether all have the value of the first one, which alone is stored.
    pub uniform: bool,
}

/// One operation: a function of values before it. Values are numbered: the inputs, then the steps; arguments beyond the
/// function's arity are 0.
pub type Step = (Function, [u32; 3]);

/// Operations to be done in one loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Whether numbers have double precision.
    pub double: bool,
    /// What is read.
    pub inputs: Vec<Input>,
    /// The computation, step by step.
    pub steps: Vec<Step>,
    /// The values that are stored, each a step.
    pub outputs: Vec<u32>,
}

impl Group {
    /// Lanes that are worked on at once; the number of lanes of a call is a multiple of it.
    pub fn width(&self) -> usize {
        if self.double { 2 } else { 4 }
    }

    /// Whether a group can have this function of numbers or truth values.
    pub fn has(function: Function) -> bool {
        function.is_cheap()
    }

    /// For each value whether it is a truth value.
    pub fn truths(&self) -> Vec<bool> {
        use Function::*;
        let mut truths: Vec<bool> = self.inputs.iter().map(|input| input.truth).collect();
        for step in &self.steps {
            truths.push(match step {
                (Select | Stop, a) => truths[a[usize::from(step.0 == Select)] as usize],
                (f, _) => matches!(f, And | Or | Not | Eq | Ne | Lt | Le | Gt | Ge),
            });
        }
        truths
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |input: &Input| match (input.truth, input.uniform) {
            (false, false) => "v",
            (false, true) => "u",
            (true, false) => "b",
            (true, true) => "ub",
        };
        let inputs: Vec<&str> = self.inputs.iter().map(kind).collect();
        let dtype = if self.double { "f64" } else { "f32" };
        write!(f, "{dtype} ({})", inputs.join(", "))?;
        for (at, step) in self.steps.iter().enumerate() {
            let end = if at == 0 { " " } else { "; " };
            write!(f, "{end}v{} = ", self.inputs.len() + at)?;
            let (function, arguments) = step;
            f.write_str(function.name())?;
            for argument in &arguments[..function.arity()] {
                write!(f, " v{argument}")?;
            }
        }
        let outputs: Vec<String> = self.outputs.iter().map(|o| format!("v{o}")).collect();
        write!(f, " -> {}", outputs.join(", "))
    }
}
