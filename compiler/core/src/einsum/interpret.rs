//! The oracle: an Einstein program computed by its definition, one point after the other.
//!
//! Loops over all points in row-major order, floating point in `f64` (values are rounded where a tensor stores
//! them), integers and truth values exactly. Only what a point needs is evaluated: neither the untaken branch of a
//! `where`, nor an `else` in range, nor anything where the guard is false. Slow on purpose; must not know how programs are
//! really run.
//!
//! ```text
//! C: f32[2] = [i: 2 | k: 2] sum A[i, k]   with A = 1 2 3 4   gives   3 7
//! ```

mod rounds;

use super::library;
use super::scalar::{self, NoValue, convert, stored, truth};
use super::values::filled;
use super::{Program, Tensor, TensorId};
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar, Source};

pub use super::values::{FaultKind, Values};

/// Where and why a run stops: at the lowest such point of the first such tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The tensor that is computed.
    pub tensor: TensorId,
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The values of the statement's indices (for [`FaultKind::NothingToChoose`] those of the output).
    pub point: Vec<u64>,
}

/// The outputs' values in order. `inputs` gives the values of a source (`full` and `iota` are known without it).
pub fn interpret(
    program: &Program,
    inputs: &dyn Fn(&Tensor) -> Values,
) -> Result<Vec<Values>, Fault> {
    let all = interpret_all(program, inputs)?;
    let of = |output: &super::Output| all[output.tensor.0 as usize].clone();
    Ok(program.outputs.iter().map(of).collect())
}

/// The values of every tensor, of those in a block what they were in the last round. `inputs` must give a source in a
/// block the same values in every round; see [`interpret_rounds`].
pub fn interpret_all(
    program: &Program,
    inputs: &dyn Fn(&Tensor) -> Values,
) -> Result<Vec<Values>, Fault> {
    interpret_rounds(program, &|tensor, _| inputs(tensor))
}

/// The values of every tensor. `inputs` is told the rounds that the blocks around a source are in, the outermost
/// block's first. What is in a block that made no round has no elements.
pub fn interpret_rounds(
    program: &Program,
    inputs: &dyn Fn(&Tensor, &[u64]) -> Values,
) -> Result<Vec<Values>, Fault> {
    rounds::run(program, inputs)
}

fn source_values(source: &Source, tensor: &Tensor, inputs: &dyn Fn(&Tensor) -> Values) -> Values {
    let count: u64 = tensor.shape.iter().product();
    match filled(source, count, tensor.dtype) {
        Some(data) => Values {
            shape: tensor.shape.clone(),
            data,
        },
        None => inputs(tensor),
    }
}

/// The values of one statement, or the lowest point that has none.
pub fn statement(kernel: &Kernel, operands: &[&Values]) -> Result<Values, (FaultKind, Vec<u64>)> {
    let rank = kernel.output_rank as usize;
    let extents: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
    let (outer, inner) = extents.split_at(rank);
    if let Some(call) = kernel.library() {
        return library::statement(kernel, &call, operands);
    }
    let value = kernel.graph.dtype(kernel.root);
    let mut evaluator = Evaluator {
        kernel,
        operands,
        point: vec![0; extents.len()],
        known: vec![None; kernel.graph.len()],
        stack: vec![],
    };
    let mut data = vec![];
    for_each_point(outer, |out| {
        evaluator.point[..rank].copy_from_slice(out);
        // What is reduced: values with the first reduced index at which they stand.
        let mut met: Vec<(Scalar, u64)> = vec![];
        for_each_point(inner, |reduced| {
            evaluator.point[rank..].copy_from_slice(reduced);
            let at_point = |kind| (kind, [out, reduced].concat());
            evaluator.known.fill(None);
            if let Some(guard) = kernel.guard
                && !truth(evaluator.evaluate(guard).map_err(at_point)?)
            {
                return Ok(());
            }
            let x = evaluator.evaluate(kernel.root).map_err(at_point)?;
            met.push((x, reduced.first().copied().unwrap_or(0)));
            Ok(())
        })?;
        let result = match kernel.reduction {
            Some(reduction) => reduce(reduction, value, &met),
            None => met.first().map(|(x, _)| *x),
        };
        let result = result.ok_or_else(|| (FaultKind::NothingToChoose, out.to_vec()))?;
        data.push(stored(result, kernel.output[0]));
        Ok(())
    })?;
    Ok(Values {
        shape: outer.to_vec(),
        data,
    })
}

/// Every point of a box, in row-major order.
fn for_each_point<E>(
    extents: &[u64],
    mut visit: impl FnMut(&[u64]) -> Result<(), E>,
) -> Result<(), E> {
    if extents.contains(&0) {
        return Ok(());
    }
    let mut point = vec![0; extents.len()];
    loop {
        visit(&point)?;
        let Some(next) = (0..extents.len()).rfind(|d| point[*d] + 1 < extents[*d]) else {
            return Ok(());
        };
        point[next] += 1;
        point[next + 1..].fill(0);
    }
}

/// A reduction of values of a compute type, by its definition; `None` where there is nothing to choose from.
fn reduce(reduction: Reduction, value: DType, met: &[(Scalar, u64)]) -> Option<Scalar> {
    let numbers = || met.iter().map(|(x, _)| x.as_f64());
    let truths = || met.iter().map(|(x, _)| truth(*x));
    let fold = |start: Scalar, function: Function, absolute: bool| {
        let step = |sum: Scalar, x: Scalar| {
            let x = match absolute {
                true => scalar::apply(Function::Abs, &[x], value)?,
                false => x,
            };
            scalar::apply(function, &[sum, x], value)
        };
        let result = met.iter().try_fold(start, |sum, (x, _)| step(sum, *x));
        result.unwrap_or(start)
    };
    let number = |x: i32| convert(Scalar::Int(i64::from(x)), value);
    let extreme = |largest: bool| match (value, largest) {
        (DType::I32, true) => Scalar::Int(i64::from(i32::MAX)),
        (DType::I32, false) => Scalar::Int(i64::from(i32::MIN)),
        (DType::I64, true) => Scalar::Int(i64::MAX),
        (DType::I64, false) => Scalar::Int(i64::MIN),
        (_, true) => Scalar::Float(f64::INFINITY),
        (_, false) => Scalar::Float(f64::NEG_INFINITY),
    };
    Some(match reduction {
        Reduction::Sum => fold(number(0), Function::Add, false),
        Reduction::Norm1 => fold(number(0), Function::Add, true),
        Reduction::NormInf => fold(number(0), Function::Max, true),
        Reduction::Prod => fold(number(1), Function::Mul, false),
        Reduction::Max => fold(extreme(false), Function::Max, false),
        Reduction::Min => fold(extreme(true), Function::Min, false),
        Reduction::Any => Scalar::Bool(truths().any(|x| x)),
        Reduction::All => Scalar::Bool(truths().all(|x| x)),
        Reduction::Mean => Scalar::Float(numbers().sum::<f64>() / met.len() as f64),
        Reduction::LogSumExp => {
            let largest = numbers().fold(f64::NEG_INFINITY, f64::max);
            let bad = numbers().any(f64::is_nan);
            let sum: f64 = numbers().map(|x| (x - largest).exp()).sum();
            Scalar::Float(match largest {
                _ if bad => f64::NAN,
                edge if edge.is_infinite() => edge,
                _ => largest + sum.ln(),
            })
        }
        Reduction::Norm => {
            let scale = numbers().map(f64::abs).fold(0.0, f64::max);
            let bad = numbers().any(f64::is_nan);
            let sum: f64 = numbers().map(|x| (x / scale).powi(2)).sum();
            Scalar::Float(match scale {
                _ if bad => f64::NAN,
                edge if edge == 0.0 || edge.is_infinite() => edge,
                _ => scale * sum.sqrt(),
            })
        }
        Reduction::ArgMax => Scalar::Int(chosen(Function::Gt, met)? as i64),
        Reduction::ArgMin => Scalar::Int(chosen(Function::Lt, met)? as i64),
    })
}

/// The index of the first value that no other beats; the first NaN beats everything.
fn chosen(beats: Function, met: &[(Scalar, u64)]) -> Option<u64> {
    let is_nan = |x: Scalar| matches!(x, Scalar::Float(x) if x.is_nan());
    let mut best = *met.first()?;
    for (x, at) in met {
        let better = is_nan(*x) || scalar::apply(beats, &[*x, best.0], DType::I64).is_ok_and(truth);
        if better && !is_nan(best.0) {
            best = (*x, *at);
        }
    }
    Some(best.1)
}

struct Evaluator<'a> {
    kernel: &'a Kernel,
    operands: &'a [&'a Values],
    point: Vec<u64>,
    /// Values of nodes at this point.
    known: Vec<Option<Scalar>>,
    stack: Vec<NodeId>,
}

impl Evaluator<'_> {
    /// The value of a node at the point. Has a stack of its own, since a long sum is a deep graph.
    fn evaluate(&mut self, root: NodeId) -> Result<Scalar, FaultKind> {
        self.stack.push(root);
        while let Some(&top) = self.stack.last() {
            if self.known[top.0 as usize].is_none() {
                if let Some(argument) = self.missing(top) {
                    self.stack.push(argument);
                    continue;
                }
                self.known[top.0 as usize] = Some(self.compute(top)?);
            }
            self.stack.pop();
        }
        Ok(self.value(root))
    }

    /// The value of a node that is known, or any value of one that is not needed.
    fn value(&self, id: NodeId) -> Scalar {
        self.known[id.0 as usize].unwrap_or(Scalar::Int(0))
    }

    fn position(&self, id: NodeId) -> i64 {
        match self.value(id) {
            Scalar::Int(x) => x,
            other => other.as_f64() as i64,
        }
    }

    /// The first argument that the node needs and that is not known yet.
    fn missing(&self, id: NodeId) -> Option<NodeId> {
        let unknown = |id: NodeId| self.known[id.0 as usize].is_none().then_some(id);
        match self.kernel.graph.node(id) {
            Node::Apply(Function::Select, arguments) => unknown(arguments[0]).or_else(|| {
                let taken = if truth(self.value(arguments[0])) {
                    1
                } else {
                    2
                };
                unknown(arguments[taken])
            }),
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => positions.iter().find_map(|p| unknown(*p)).or_else(|| {
                self.outside(*operand, positions)?;
                unknown((*otherwise)?)
            }),
            node => node.arguments().find_map(unknown),
        }
    }

    /// The first position outside the operand. The positions are known.
    fn outside(&self, operand: u32, positions: &[NodeId]) -> Option<FaultKind> {
        let shape = &self.kernel.operands[operand as usize].shape;
        (0..)
            .zip(positions)
            .zip(shape)
            .find_map(|((dimension, position), extent)| {
                let (position, extent) = (self.position(*position), *extent);
                let inside = u64::try_from(position).is_ok_and(|p| p < extent);
                (!inside).then_some(FaultKind::OutOfRange {
                    operand,
                    dimension,
                    position,
                    extent,
                })
            })
    }

    fn compute(&self, id: NodeId) -> Result<Scalar, FaultKind> {
        let dtype = self.kernel.graph.dtype(id);
        match self.kernel.graph.node(id) {
            Node::Constant(value) => Ok(*value),
            Node::Index(index) => Ok(Scalar::Int(self.point[index.0 as usize] as i64)),
            Node::Convert(argument) => Ok(convert(self.value(*argument), dtype)),
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => match (self.outside(*operand, positions), otherwise) {
                (Some(_), Some(otherwise)) => Ok(self.value(*otherwise)),
                (Some(fault), None) => Err(fault),
                (None, _) => {
                    let values = self.operands[*operand as usize];
                    let offset = positions
                        .iter()
                        .zip(&values.shape)
                        .fold(0, |at, (p, extent)| {
                            at * *extent as usize + self.position(*p) as usize
                        });
                    Ok(values.data[offset])
                }
            },
            Node::Apply(function, arguments) => {
                let types = arguments
                    .first()
                    .map_or(dtype, |a| self.kernel.graph.dtype(*a));
                let arguments: Vec<Scalar> = arguments.iter().map(|a| self.value(*a)).collect();
                scalar::apply(*function, &arguments, types).map_err(|why| match why {
                    NoValue::DivisionByZero => FaultKind::DivisionByZero,
                    NoValue::NegativePower => FaultKind::NegativePower,
                    NoValue::NotWithin(position, extent) => {
                        FaultKind::NotWithin { position, extent }
                    }
                })
            }
        }
    }
}
