//! Kernels on chunks, point by point: what the interpreters of TRA and IA run, and the reference device.
//!
//! Only what a point needs is evaluated: the untaken branch of a select is not, nor anything where the guard
//! fails. Positions and indices are global numbers. Must not know keys.
//!
//! ```text
//! [i: 2 | k: 3] f32 = sum a0[i, k]   at i 1..2, k 0..3   with a0 from row 1 on: [[4 5 6]]   gives   [15]
//! ```

use super::carrier;
use super::chunk::{Chunk, offset, positions};
use crate::einsum::library;
use crate::einsum::scalar::{self, NoValue, convert, stored, truth};
use ein_plan::{
    DType, Fault, Function, Kernel, KernelError, Library, Node, NodeId, Problem, Reduction, Scalar,
};

/// An operand of one tuple.
pub struct Operand<'a> {
    /// Its chunk.
    pub chunk: &'a Chunk,
    /// The global number at which each dimension begins.
    pub start: Vec<u64>,
}

/// Evaluates a kernel on `ranges` (start and length of each index): one column, or the carrier's.
///
/// # Errors
/// Why and where a run would stop: the first faulty point, an empty `argmax` only if there is no other.
pub fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Operand<'_>],
) -> Result<Chunk, KernelError> {
    let rank = kernel.output_rank as usize;
    let lengths: Vec<u64> = ranges.iter().map(|(_, length)| *length).collect();
    let (outer, inner) = lengths.split_at(rank);
    if let Some(call) = kernel.library() {
        let read = |operand: u32, at: &[u64]| {
            let Operand { chunk, start } = &operands[operand as usize];
            let local: Vec<u64> = at.iter().zip(start).map(|(at, start)| at - start).collect();
            chunk.columns[0][offset(&chunk.shape, &local)]
        };
        let column = library::evaluate(kernel, &call, ranges, &read).map_err(|point| {
            let problem = problem(kernel, &call, &point, &read);
            let operation = call.operation;
            let fault = Fault::Library { operation, problem };
            KernelError { fault, point }
        })?;
        return Ok(Chunk {
            shape: lengths,
            columns: vec![column],
        });
    }
    let value = kernel.graph.dtype(kernel.root);
    let mut columns = vec![vec![]; kernel.output.len()];
    let mut nothing = None;
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
            let failed = |fault| KernelError {
                fault,
                point: point.iter().map(|at| *at as u64).collect(),
            };
            let mut evaluator = Evaluator {
                kernel,
                operands,
                point: &point,
                known: vec![None; kernel.graph.len()],
            };
            if let Some(guard) = kernel.guard
                && !truth(evaluator.node(guard).map_err(failed)?)
            {
                continue;
            }
            let x = evaluator.node(kernel.root).map_err(failed)?;
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
                let result = carrier::finish(reduction, &sum);
                if result.is_none() && nothing.is_none() {
                    let starts = ranges.iter().map(|(start, _)| *start);
                    let point = out.iter().zip(starts).map(|(at, start)| at + start);
                    nothing = Some(point.collect());
                }
                vec![result.unwrap_or(Scalar::Int(-1))]
            }
            (Some(sum), _) => sum,
            _ => vec![plain],
        };
        for ((column, dtype), result) in columns.iter_mut().zip(&kernel.output).zip(results) {
            column.push(stored(result, *dtype));
        }
    }
    if let Some(point) = nothing {
        let fault = Fault::NothingToChoose;
        return Err(KernelError { fault, point });
    }
    Ok(Chunk {
        shape: outer.to_vec(),
        columns,
    })
}

/// Why a call of a library operation has no result. Which pivot failed is not known here: it is said to be the first.
fn problem(
    kernel: &Kernel,
    call: &Library,
    point: &[u64],
    read: &dyn Fn(u32, &[u64]) -> Scalar,
) -> Problem {
    for (number, argument) in (0u32..).zip(&call.arguments) {
        let (rows, columns) = call.matrix(kernel, number as usize);
        for at in positions(&[rows, columns]) {
            let dims = argument.at.iter().enumerate();
            let place = dims.map(|(dim, index)| match index {
                Some(index) => point[index.0 as usize],
                None => at[usize::from(argument.whole[0] != dim)],
            });
            let place: Vec<u64> = place.collect();
            if !read(argument.operand, &place).as_f64().is_finite() {
                return Problem::NotFinite {
                    argument: number,
                    row: at[0],
                    column: at[1],
                };
            }
        }
    }
    match call.operation {
        Function::Cholesky => Problem::NotPositive { pivot: 0 },
        Function::Logdet => Problem::NegativeDeterminant,
        Function::Eigh | Function::Eig | Function::Svd => Problem::NoConvergence,
        _ => Problem::Singular { pivot: 0 },
    }
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
    fn node(&mut self, root: NodeId) -> Result<Scalar, Fault> {
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

    fn apply(&self, id: NodeId) -> Result<Scalar, Fault> {
        let dtype = self.kernel.graph.dtype(id);
        match self.kernel.graph.node(id) {
            Node::Constant(value) => Ok(convert(*value, dtype)),
            Node::Index(index) => Ok(Scalar::Int(self.point[index.0 as usize])),
            Node::Convert(argument) => Ok(convert(self.value(*argument), dtype)),
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => {
                if let Some((dim, at)) = self.outside(*operand, positions) {
                    return match otherwise {
                        Some(otherwise) => Ok(self.value(*otherwise)),
                        None => Err(Fault::OutOfRange {
                            operand: *operand,
                            dimension: dim as u32,
                            position: at,
                            extent: self.kernel.operands[*operand as usize].shape[dim],
                        }),
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
                let inside = local.iter().zip(&chunk.shape).all(|(at, n)| at < n);
                assert!(inside, "operand {operand} is read outside its chunk");
                let element = chunk.columns[*column as usize][offset(&chunk.shape, &local)];
                Ok(convert(element, dtype))
            }
            Node::Apply(Function::Select, arguments) => {
                let taken = 1 + usize::from(!truth(self.value(arguments[0])));
                Ok(self.value(arguments[taken]))
            }
            Node::Apply(function, arguments) => {
                let types = arguments
                    .first()
                    .map_or(dtype, |a| self.kernel.graph.dtype(*a));
                let arguments: Vec<Scalar> = arguments.iter().map(|a| self.value(*a)).collect();
                scalar::apply(*function, &arguments, types).map_err(|why| match why {
                    NoValue::DivisionByZero => Fault::DivisionByZero,
                    NoValue::NegativePower => Fault::NegativePower,
                    NoValue::NotWithin(position, extent) => Fault::NotWithin {
                        check: id,
                        position,
                        extent,
                    },
                })
            }
        }
    }
}

fn zero(dtype: DType) -> Scalar {
    convert(Scalar::Int(0), dtype)
}

fn integer(x: Scalar) -> i64 {
    match x {
        Scalar::Int(n) => n,
        other => other.as_f64() as i64,
    }
}
