//! The adjoint of the value that a statement reduces, from the adjoint of the statement: one case a reduction.
//!
//! `v` is the adjoint of the result `y`, `x` the value at a point. `max`, `min` and `norminf` share equally among ties;
//! `norm` over zeros gives 0; `prod` multiplies the other values, so that zeros are as good as any. Must not know how the
//! value is computed, nor where it is read.
//!
//! ```text
//! logsumexp   v * exp(x - y)        max   v / count where x == y
//! ```

use super::backward::{Path, Term};
use super::sketch::{Copy, Sketch};
use super::transpose::unique;
use super::{Adjoint, Statement, Statements};
use crate::einsum::{Program, TensorId};
use ein_plan::{DType, Function, Index, Kernel, Node, NodeId, Reduction};

/// Up to so many points the product of the others is computed for each of them.
const MOST_PRODUCTS: u64 = 256;

/// A statement ready for the reverse pass: the adjoint of its root.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) sketch: Sketch,
    pub(super) seed: Vec<Term>,
    /// A node with the root's value that is cheap to have.
    pub(super) stored: NodeId,
}

/// A statement whose adjoint is known.
struct Case<'a> {
    tensor: TensorId,
    kernel: &'a Kernel,
    sketch: Sketch,
    dtype: DType,
    /// The adjoint of the result.
    v: NodeId,
}

/// The adjoint of the root of a statement.
pub(super) fn prepare(
    program: &mut Program,
    statements: &mut Statements,
    tensor: TensorId,
    (kernel, operands): (&Kernel, &[TensorId]),
    adjoint: Adjoint,
) -> Prepared {
    let mut sketch = Sketch::of_statement(kernel, operands);
    let dtype = sketch.graph.dtype(kernel.root);
    let out = places(&mut sketch, kernel.output_rank as usize);
    let v = match adjoint {
        Adjoint::Constant(value) => sketch.number(value, dtype),
        Adjoint::Tensor(adjoint) => sketch.read(adjoint, out.clone(), None, dtype),
    };
    let mut path: Path = kernel
        .guard
        .map(|guard| (guard, true))
        .into_iter()
        .collect();
    let mut stored = kernel.root;
    let mut case = Case {
        tensor,
        kernel,
        sketch,
        dtype,
        v,
    };
    let x = kernel.root;
    let seed = match kernel.reduction {
        None => {
            if program.tensor(tensor).dtype == dtype {
                stored = case.sketch.read(tensor, out, None, dtype);
            }
            v
        }
        Some(Reduction::Sum) => v,
        Some(Reduction::Mean) => {
            let one = case.sketch.number(1.0, dtype);
            let count = case.count(program, statements, one);
            case.sketch.div(v, count)
        }
        Some(Reduction::Prod) => case.product(program, statements),
        Some(Reduction::Max | Reduction::Min) => case.extreme(program, statements, x, &mut path),
        Some(Reduction::NormInf) => {
            let size = case.sketch.apply(Function::Abs, &[x]);
            let share = case.extreme(program, statements, size, &mut path);
            let sign = case.sketch.apply(Function::Sign, &[x]);
            case.sketch.mul(share, sign)
        }
        Some(Reduction::LogSumExp) => {
            let least = case.sketch.number(f64::NEG_INFINITY, dtype);
            path.push((case.sketch.compare(Function::Gt, x, least), true));
            let y = case.result(program, statements);
            let difference = case.sketch.sub(x, y);
            let share = case.sketch.apply(Function::Exp, &[difference]);
            case.sketch.mul(v, share)
        }
        Some(Reduction::Norm) => {
            let y = case.result(program, statements);
            let zero = case.sketch.number(0.0, dtype);
            path.push((case.sketch.compare(Function::Eq, y, zero), false));
            let share = case.sketch.div(x, y);
            case.sketch.mul(v, share)
        }
        Some(Reduction::Norm1) => {
            let sign = case.sketch.apply(Function::Sign, &[x]);
            case.sketch.mul(v, sign)
        }
        // No derivative flows through these.
        Some(Reduction::Any | Reduction::All | Reduction::ArgMax | Reduction::ArgMin) => {
            case.sketch.number(0.0, dtype)
        }
    };
    Prepared {
        sketch: case.sketch,
        seed: vec![(path, seed)],
        stored,
    }
}

/// Nodes of the first indices.
fn places(sketch: &mut Sketch, count: usize) -> Vec<NodeId> {
    (0..count).map(|at| sketch.index(at)).collect()
}

impl Case<'_> {
    fn rank(&self) -> usize {
        self.kernel.output_rank as usize
    }

    /// A tensor over the result's dimensions, at the point.
    fn read_out(&mut self, tensor: TensorId) -> NodeId {
        let rank = self.rank();
        let out = places(&mut self.sketch, rank);
        self.sketch.read(tensor, out, None, self.dtype)
    }

    /// A tensor over all indices, at the point.
    fn read_all(&mut self, tensor: TensorId) -> NodeId {
        let all = places(&mut self.sketch, self.kernel.indices.len());
        self.sketch.read(tensor, all, None, self.dtype)
    }

    /// The statement's result, as it was before it was rounded to the type that it is stored in.
    fn result(&mut self, program: &mut Program, statements: &mut Statements) -> NodeId {
        let exact = statements.exact(program, self.tensor, self.dtype);
        self.read_out(exact)
    }

    /// A hidden tensor: a reduction of an expression of the sketch over the statement's points.
    fn reduced(
        &self,
        program: &mut Program,
        statements: &mut Statements,
        what: &str,
        (reduction, root, guard): (Reduction, NodeId, Option<NodeId>),
    ) -> TensorId {
        let statement = Statement {
            indices: self.kernel.indices.clone(),
            rank: self.rank(),
            sketch: &self.sketch,
            root,
            guard,
            reduction: Some(reduction),
        };
        let name = format!("grad.{}.{what}", program.tensor(self.tensor).name);
        let origin = program.tensor(self.tensor).origin;
        statements.push(program, statement, &name, origin)
    }

    /// The sum of an expression over the points; a number where every point counts 1.
    fn count(
        &mut self,
        program: &mut Program,
        statements: &mut Statements,
        each: NodeId,
    ) -> NodeId {
        if self.sketch.value(each) == Some(1.0) && self.kernel.guard.is_none() {
            let reduced = &self.kernel.indices[self.rank()..];
            let points: f64 = reduced.iter().map(|index| index.extent as f64).product();
            // Over nothing there is no point at which the adjoint is looked at.
            return self.sketch.number(points.max(1.0), self.dtype);
        }
        let sum = (Reduction::Sum, each, self.kernel.guard);
        let count = self.reduced(program, statements, "count", sum);
        self.read_out(count)
    }

    /// An equal share for each of the points at which `x` is the result; the path says which those are.
    fn extreme(
        &mut self,
        program: &mut Program,
        statements: &mut Statements,
        x: NodeId,
        path: &mut Path,
    ) -> NodeId {
        let (x, y) = if is_exact(&self.sketch, x) {
            (x, self.result(program, statements))
        } else {
            // What is computed twice need not be equal twice, so it is stored.
            let value = self.stored(program, statements, x);
            let x = self.read_all(value);
            let reduction = match self.kernel.reduction {
                Some(Reduction::Min) => Reduction::Min,
                _ => Reduction::Max,
            };
            let extreme = (reduction, x, self.kernel.guard);
            let y = self.reduced(program, statements, "extreme", extreme);
            (x, self.read_out(y))
        };
        let chosen = self.sketch.compare(Function::Eq, x, y);
        path.push((chosen, true));
        let one = self.sketch.number(1.0, self.dtype);
        let zero = self.sketch.number(0.0, self.dtype);
        let each = self.sketch.select(chosen, one, zero);
        let count = self.count(program, statements, each);
        self.sketch.div(self.v, count)
    }

    /// A hidden tensor over all indices with the values of an expression, 0 where the guard does not hold.
    fn stored(
        &mut self,
        program: &mut Program,
        statements: &mut Statements,
        x: NodeId,
    ) -> TensorId {
        let zero = self.sketch.number(0.0, self.dtype);
        let root = match self.kernel.guard {
            Some(guard) => self.sketch.select(guard, x, zero),
            None => x,
        };
        let statement = Statement {
            indices: self.kernel.indices.clone(),
            rank: self.kernel.indices.len(),
            sketch: &self.sketch,
            root,
            guard: None,
            reduction: None,
        };
        let name = format!("grad.{}.value", program.tensor(self.tensor).name);
        let origin = program.tensor(self.tensor).origin;
        statements.push(program, statement, &name, origin)
    }

    /// `v` times the product of the other values.
    fn product(&mut self, program: &mut Program, statements: &mut Statements) -> NodeId {
        let reduced = &self.kernel.indices[self.rank()..];
        let points: u64 = reduced
            .iter()
            .fold(1, |points, index| points.saturating_mul(index.extent));
        if points <= MOST_PRODUCTS {
            let others = self.others(program, statements);
            let others = self.read_all(others);
            return self.sketch.mul(self.v, others);
        }
        // The result over x where x is not 0; else the product of what is not 0, if no other is.
        let x = self.kernel.root;
        let (zero, one) = (
            self.sketch.number(0.0, self.dtype),
            self.sketch.number(1.0, self.dtype),
        );
        let is_zero = self.sketch.compare(Function::Eq, x, zero);
        let not_zero = self.sketch.compare(Function::Ne, x, zero);
        let kept = match self.kernel.guard {
            Some(guard) => self.sketch.and(guard, not_zero),
            None => not_zero,
        };
        let rest = (Reduction::Prod, x, Some(kept));
        let rest = self.reduced(program, statements, "rest", rest);
        let rest = self.read_out(rest);
        let each = self.sketch.select(is_zero, one, zero);
        let zeros = (Reduction::Sum, each, self.kernel.guard);
        let zeros = self.reduced(program, statements, "zeros", zeros);
        let zeros = self.read_out(zeros);
        let only = self.sketch.compare(Function::Eq, zeros, one);
        let at_zero = self.sketch.select(only, rest, zero);
        let y = self.result(program, statements);
        let elsewhere = self.sketch.div(y, x);
        let others = self.sketch.select(is_zero, at_zero, elsewhere);
        self.sketch.mul(self.v, others)
    }

    /// A hidden tensor over all indices: the product of the values at the other points.
    fn others(&self, program: &mut Program, statements: &mut Statements) -> TensorId {
        let (rank, count) = (self.rank(), self.kernel.indices.len());
        let mut indices: Vec<Index> = self.kernel.indices.clone();
        indices.extend_from_slice(&self.kernel.indices[rank..]);
        unique(&mut indices);
        let mut to = Sketch::default();
        let nodes: Vec<NodeId> = (0..count)
            .map(|at| match at < rank {
                true => to.index(at),
                false => to.index(at + count - rank),
            })
            .collect();
        let mut other = to.truth(false);
        for (at, node) in nodes.iter().enumerate().skip(rank) {
            let here = to.index(at);
            let differs = to.compare(Function::Ne, here, *node);
            let always = to.truth(true);
            other = match at == rank {
                true => differs,
                false => to.select(other, always, differs),
            };
        }
        let mut copy = Copy::new(&self.sketch, nodes, None);
        let root = copy.node(&mut to, self.kernel.root);
        if let Some(guard) = self.kernel.guard {
            let guard = copy.node(&mut to, guard);
            other = to.and(other, guard);
        }
        let statement = Statement {
            indices,
            rank: count,
            sketch: &to,
            root,
            guard: Some(other),
            reduction: Some(Reduction::Prod),
        };
        let name = format!("grad.{}.others", program.tensor(self.tensor).name);
        let origin = program.tensor(self.tensor).origin;
        statements.push(program, statement, &name, origin)
    }
}

/// Returns whether a value has the same bits however often, and in whatever company, it is computed: nothing in it rounds.
fn is_exact(sketch: &Sketch, id: NodeId) -> bool {
    use Function::*;
    sketch.below(&[id]).into_iter().all(|id| {
        let float = sketch.graph.dtype(id).is_float();
        match sketch.graph.node(id) {
            Node::Apply(function, _) if float => matches!(
                function,
                Min | Max | Neg | Abs | Relu | Sign | Floor | Ceil | Round | Select | Stop
            ),
            _ => true,
        }
    })
}
