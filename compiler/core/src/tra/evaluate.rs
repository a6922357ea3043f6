//! Kernels on chunks, point by point: what the interpreters of TRA and IA run.
//!
//! Only what a point needs is evaluated: the untaken branch of a select is not, nor anything where the guard
//! fails. Positions and indices are global numbers. Must not know keys.
//!
//! ```text
//! [i: 2 | k: 3] f32 = sum a0[i, k]   at i 1..2, k 0..3   with a0 from row 1 on: [[4 5 6]]   gives   [15]
//! ```

use super::carrier;
use super::chunks::{Chunk, offset, positions};
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};

/// An operand of one tuple.
pub struct Operand<'a> {
    /// Its chunk.
    pub chunk: &'a Chunk,
    /// The global number at which each dimension begins.
    pub start: Vec<u64>,
}

/// What a kernel gives on `ranges` (start and length of each index): one column, or the carrier's. The error is
/// why a run would stop.
pub fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Operand<'_>],
) -> Result<Chunk, String> {
    let rank = kernel.output_rank as usize;
    let lengths: Vec<u64> = ranges.iter().map(|(_, length)| *length).collect();
    let (outer, inner) = lengths.split_at(rank);
    let value = kernel.graph.dtype(kernel.root);
    let mut columns = vec![vec![]; kernel.output.len()];
    for out in positions(outer) {
        let mut sum = kernel.reduction.map(|r| carrier::neutral(r, value));
        let mut plain = zero(value);
        for reduced in positions(inner) {
            let point: Vec<i64> = out
                .iter()
                .chain(&reduced)
                .zip(ranges)
                .map(|(at, (start, _))| (at + start) as i64)
                .collect();
            let mut evaluator = Evaluator {
                kernel,
                operands,
                point: &point,
                known: vec![None; kernel.graph.len()],
            };
            if let Some(guard) = kernel.guard
                && !truth(evaluator.node(guard)?)
            {
                continue;
            }
            let x = evaluator.node(kernel.root)?;
            match (&mut sum, kernel.reduction) {
                (Some(sum), Some(reduction)) => {
                    let index = point.get(rank).copied().unwrap_or(0);
                    let one = carrier::single(reduction, value, x, index);
                    *sum = carrier::merge(reduction, value, sum, &one);
                }
                _ => plain = x,
            }
        }
        let results = match (sum, kernel.reduction) {
            (Some(sum), Some(reduction)) if kernel.finish => {
                vec![carrier::finish(reduction, &sum)]
            }
            (Some(sum), _) => sum,
            _ => vec![plain],
        };
        for (column, result) in columns.iter_mut().zip(results) {
            column.push(result);
        }
    }
    Ok(Chunk {
        shape: outer.to_vec(),
        columns,
    })
}

/// Two columns of carriers, element by element; `a` stands before `b`.
pub fn combine(
    reduction: Reduction,
    columns: &[DType],
    a: &[Vec<Scalar>],
    b: &[Vec<Scalar>],
) -> Vec<Vec<Scalar>> {
    let element = |columns: &[Vec<Scalar>], at: usize| -> Vec<Scalar> {
        columns.iter().map(|column| column[at]).collect()
    };
    let count = a.first().map_or(0, Vec::len);
    let mut result = vec![vec![]; columns.len()];
    for at in 0..count {
        let both = carrier::merge(reduction, columns[0], &element(a, at), &element(b, at));
        for (column, x) in result.iter_mut().zip(both) {
            column.push(x);
        }
    }
    result
}

struct Evaluator<'a> {
    kernel: &'a Kernel,
    operands: &'a [Operand<'a>],
    point: &'a [i64],
    known: Vec<Option<Scalar>>,
}

impl Evaluator<'_> {
    /// The value of a node at the point. Works with a stack of its own, since a long sum is a deep graph.
    fn node(&mut self, root: NodeId) -> Result<Scalar, String> {
        let mut stack = vec![root];
        while let Some(&top) = stack.last() {
            if self.known[top.0 as usize].is_some() {
                stack.pop();
                continue;
            }
            match self.missing(top) {
                Some(argument) => stack.push(argument),
                None => {
                    let value = self.apply(top)?;
                    self.known[top.0 as usize] = Some(value);
                    stack.pop();
                }
            }
        }
        Ok(self.value(root))
    }

    fn value(&self, id: NodeId) -> Scalar {
        self.known[id.0 as usize].unwrap_or(Scalar::Int(0))
    }

    /// An argument that the node needs and that is not known yet.
    fn missing(&self, id: NodeId) -> Option<NodeId> {
        let unknown = |id: &NodeId| self.known[id.0 as usize].is_none();
        match self.kernel.graph.node(id) {
            Node::Apply(Function::Select, arguments) => {
                let (condition, branches) = arguments.split_first()?;
                if unknown(condition) {
                    return Some(*condition);
                }
                let taken = branches.get(usize::from(!truth(self.value(*condition))))?;
                unknown(taken).then_some(*taken)
            }
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => {
                let first = positions.iter().copied().find(unknown);
                first.or_else(|| {
                    let outside = self.outside(*operand, positions).is_some();
                    otherwise.filter(|id| outside && unknown(id))
                })
            }
            node => node.arguments().find(unknown),
        }
    }

    /// The first dimension in which known positions are outside the operand, and the position.
    fn outside(&self, operand: u32, positions: &[NodeId]) -> Option<(usize, i64)> {
        let shape = &self.kernel.operands[operand as usize].shape;
        positions
            .iter()
            .zip(shape)
            .enumerate()
            .map(|(dim, (position, extent))| (dim, integer(self.value(*position)), *extent))
            .find(|(_, at, extent)| *at < 0 || *at as u64 >= *extent)
            .map(|(dim, at, _)| (dim, at))
    }

    fn apply(&self, id: NodeId) -> Result<Scalar, String> {
        let dtype = self.kernel.graph.dtype(id);
        match self.kernel.graph.node(id) {
            Node::Constant(value) => Ok(converted(*value, dtype)),
            Node::Index(index) => Ok(Scalar::Int(self.point[index.0 as usize])),
            Node::Convert(argument) => Ok(converted(self.value(*argument), dtype)),
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => {
                if let Some((dim, at)) = self.outside(*operand, positions) {
                    return match otherwise {
                        Some(otherwise) => Ok(self.value(*otherwise)),
                        None => Err(format!(
                            "operand {operand} is read at position {at} of dimension {dim}"
                        )),
                    };
                }
                let Operand { chunk, start } = &self.operands[*operand as usize];
                let local: Vec<u64> = positions
                    .iter()
                    .zip(start)
                    .map(|(position, start)| {
                        (integer(self.value(*position)) as u64).wrapping_sub(*start)
                    })
                    .collect();
                if local.iter().zip(&chunk.shape).any(|(at, n)| at >= n) {
                    return Err(format!("operand {operand} is read outside its chunk"));
                }
                let element = chunk.columns[*column as usize][offset(&chunk.shape, &local)];
                Ok(converted(element, dtype))
            }
            Node::Apply(Function::Select, arguments) => {
                let taken = 1 + usize::from(!truth(self.value(arguments[0])));
                Ok(self.value(arguments[taken]))
            }
            Node::Apply(function, arguments) => {
                let arguments: Vec<Scalar> = arguments.iter().map(|a| self.value(*a)).collect();
                function_of(*function, &arguments, dtype)
            }
        }
    }
}

fn zero(dtype: DType) -> Scalar {
    converted(Scalar::Int(0), dtype)
}

/// A value in a compute type: float to integer truncates and saturates, NaN is 0; integers wrap.
fn converted(x: Scalar, dtype: DType) -> Scalar {
    match (x, dtype) {
        (x, DType::Bool) => Scalar::Bool(truth(x)),
        (Scalar::Float(x), DType::I32) => Scalar::Int(i64::from(x as i32)),
        (Scalar::Int(x), DType::I32) => Scalar::Int(i64::from(x as i32)),
        (Scalar::Float(x), DType::I64) => Scalar::Int(x as i64),
        (x, DType::I32 | DType::I64) => Scalar::Int(integer(x)),
        (x, _) => Scalar::Float(x.as_f64()),
    }
}

fn integer(x: Scalar) -> i64 {
    match x {
        Scalar::Int(n) => n,
        other => other.as_f64() as i64,
    }
}

fn truth(x: Scalar) -> bool {
    x.as_f64() != 0.0
}

fn function_of(function: Function, arguments: &[Scalar], dtype: DType) -> Result<Scalar, String> {
    use Function as F;
    let a = arguments[0];
    let b = arguments.get(1).copied().unwrap_or(a);
    if matches!(function, F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge) {
        let order = match (a, b) {
            (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(&b)),
            _ => a.as_f64().partial_cmp(&b.as_f64()),
        };
        return Ok(Scalar::Bool(match function {
            F::Eq => order.is_some_and(|o| o.is_eq()),
            F::Ne => !order.is_some_and(|o| o.is_eq()),
            F::Lt => order.is_some_and(|o| o.is_lt()),
            F::Le => order.is_some_and(|o| o.is_le()),
            F::Gt => order.is_some_and(|o| o.is_gt()),
            _ => order.is_some_and(|o| o.is_ge()),
        }));
    }
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => {
            let result = whole(function, a, b)?;
            Ok(converted(Scalar::Int(result), dtype))
        }
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(match function {
            F::And | F::Min | F::Mul => a && b,
            F::Or | F::Max | F::Add => a || b,
            F::Not => !a,
            _ => a,
        })),
        _ => Ok(Scalar::Float(real(function, a.as_f64(), b.as_f64()))),
    }
}

fn whole(function: Function, a: i64, b: i64) -> Result<i64, String> {
    use Function as F;
    let divided = || {
        if b == 0 {
            return Err("an integer is divided by zero".to_string());
        }
        let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
        let down = rest != 0 && (rest < 0) != (b < 0);
        Ok((
            quotient.wrapping_sub(i64::from(down)),
            if down { rest + b } else { rest },
        ))
    };
    Ok(match function {
        F::Add => a.wrapping_add(b),
        F::Sub => a.wrapping_sub(b),
        F::Mul => a.wrapping_mul(b),
        F::Div | F::FloorDiv => divided()?.0,
        F::Rem => divided()?.1,
        F::Pow if b < 0 => return Err("an integer is raised to a negative power".into()),
        F::Pow => {
            let (mut result, mut base, mut left) = (1i64, a, b);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                left >>= 1;
            }
            result
        }
        F::Min => a.min(b),
        F::Max => a.max(b),
        F::Neg => a.wrapping_neg(),
        F::Abs => a.wrapping_abs(),
        F::Sign => a.signum(),
        F::Relu => a.max(0),
        _ => a,
    })
}

fn real(function: Function, a: f64, b: f64) -> f64 {
    use Function as F;
    match function {
        F::Add => a + b,
        F::Sub => a - b,
        F::Mul => a * b,
        F::Div => a / b,
        F::FloorDiv => (a / b).floor(),
        F::Rem => a - b * (a / b).floor(),
        F::Pow => a.powf(b),
        F::Min if a.is_nan() || b.is_nan() => f64::NAN,
        F::Max if a.is_nan() || b.is_nan() => f64::NAN,
        F::Min => a.min(b),
        F::Max => a.max(b),
        F::Neg => -a,
        F::Exp => a.exp(),
        F::Log => a.ln(),
        F::Log1p => a.ln_1p(),
        F::Expm1 => a.exp_m1(),
        F::Sqrt => a.sqrt(),
        F::Rsqrt => 1.0 / a.sqrt(),
        F::Tanh => a.tanh(),
        F::Sigmoid => 1.0 / (1.0 + (-a).exp()),
        F::Relu if a.is_nan() => a,
        F::Relu => a.max(0.0),
        F::Gelu => a * (1.0 + libm::erf(a / std::f64::consts::SQRT_2)) / 2.0,
        F::Erf => libm::erf(a),
        F::Sin => a.sin(),
        F::Cos => a.cos(),
        F::Abs => a.abs(),
        F::Sign if a == 0.0 || a.is_nan() => a,
        F::Sign => a.signum(),
        F::Floor => a.floor(),
        F::Ceil => a.ceil(),
        F::Round => a.round_ties_even(),
        _ => a,
    }
}
