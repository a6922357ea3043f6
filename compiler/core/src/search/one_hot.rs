//! Sums of products with a truth, of which the points are passed over at which it is false.
//!
//! `f64(k[n] == g) * x[n]` is 0 for the points of other groups, but NaN for those of them at which `x[n]` is infinite or NaN. So the points of a group are
//! summed alone, and the sum is NaN if there are such points in other groups: if the group has fewer of them than there are in all. Must not know placements.
//!
//! ```text
//! y: f32[70] = [g: 70 | n: 900] sum (k[n] == g as f32) * x[n]
//! y.own: f32[70] = [g: 70 | n: 900] sum where(k[n] == g, x[n], 0)
//! y.odd: i64[] = [| n: 900] sum not(abs(x[n]) < inf) as i64;  y.odd_own: i64[70] = [g: 70 | n: 900] sum where(k[n] == g, not(abs(x[n]) < inf) as i64, 0)
//! y: f32[70] = [g: 70] where(y.odd_own[g] < y.odd[], nan, y.own[g])
//! ```

use crate::einsum::{Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::conditions::{chosen_factor, guarded, is_finite};
use crate::rules::{element, elementwise, may_fault, over, values, values_passed_over, zero};
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};

/// How many times its points a sum goes through them at least, if it is to pass over them: then a product with a vector costs as much as looking at its
/// factors.
const TIMES: u64 = 16;

/// As [`TIMES`], of a product of matrices, with at least [`COLUMNS`] columns.
const TIMES_ROWS: u64 = 128;

const COLUMNS: u64 = 8;

/// How many times the points whose factors are looked at must go into all points.
const FEWER: u64 = 4;

/// Returns the program in which sums pass over points at which a factor is 0.
pub fn chosen(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        Some(OneHot::of(statement.kernel)?.statements(statement))
    })
}

/// Returns true if a kernel is such a sum.
pub(super) fn is_of_truths(kernel: &Kernel) -> bool {
    OneHot::of(kernel).is_some()
}

/// A sum of products with a truth.
struct OneHot {
    /// The sum, with the nodes below in its graph.
    kernel: Kernel,
    condition: NodeId,
    /// The product where the condition holds.
    value: NodeId,
    /// 1 where one of the other factors is infinite or NaN, else 0.
    odd: NodeId,
    /// The indices that tell the points apart at which these are looked at, those of the result first.
    looked_at: Vec<usize>,
    /// Factors and divisors of the sum as a whole, the innermost one last.
    outside: Vec<(Function, NodeId)>,
}

impl OneHot {
    fn of(kernel: &Kernel) -> Option<OneHot> {
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = matches!(kernel.reduction?, Reduction::Sum | Reduction::Mean);
        let plain = kernel.finish && kernel.guard.is_none() && kernel.output == [dtype];
        // The bits of a number tell so many indices apart.
        let few = kernel.indices.len() < 128;
        if !few || !is_sum || !plain || !dtype.is_float() || may_fault(kernel) {
            return None;
        }
        let mut kernel = kernel.clone();
        let outside = taken_out(&mut kernel);
        let product = chosen_factor(&mut kernel)?;
        let unknown = product.others.iter();
        let unknown = unknown.filter(|other| !is_finite(&kernel, **other));
        let unknown: Vec<NodeId> = unknown.copied().collect();
        let odd = odd(&mut kernel, &unknown)?;
        let says = kernel.graph.dependencies()[odd.0 as usize];
        let rank = kernel.output_rank as usize;
        let looked_at = (0..kernel.indices.len()).filter(|i| *i >= rank || says >> i & 1 == 1);
        let looked_at: Vec<usize> = looked_at.collect();
        let times = values(&kernel, (0..rank).filter(|i| !looked_at.contains(i)));
        let columns = values(&kernel, looked_at.iter().copied().filter(|i| *i < rank));
        let least = match columns >= COLUMNS {
            true => TIMES_ROWS,
            false => TIMES,
        };
        let found = OneHot {
            condition: product.condition,
            value: product.value,
            odd,
            looked_at,
            outside,
            kernel,
        };
        let own = guarded(&Kernel {
            reduction: Some(Reduction::Sum),
            ..found.own(found.value)
        })?;
        (times >= FEWER && values_passed_over(&own) >= least).then_some(found)
    }

    /// The reduction of a value of the points at which the condition holds.
    fn own(&self, value: NodeId) -> Kernel {
        let mut own = self.kernel.clone();
        let dtype = own.graph.dtype(value);
        let nothing = own.graph.add(Node::Constant(zero(dtype)), dtype);
        let choice = Node::Apply(Function::Select, vec![self.condition, value, nothing]);
        own.root = own.graph.add(choice, dtype);
        own.output = vec![dtype];
        own
    }

    /// The number of the points at which a factor is infinite or NaN, in a group and in all.
    fn counts(&self) -> [Kernel; 2] {
        let own = Kernel {
            reduction: Some(Reduction::Sum),
            ..self.own(self.odd)
        };
        let rank = self.kernel.output_rank as usize;
        let all = Kernel {
            root: self.odd,
            output_rank: self.looked_at.iter().filter(|i| **i < rank).count() as u32,
            ..own.clone()
        };
        [own, over(all, &self.kernel, &self.looked_at)]
    }

    fn statements(self, mut statement: Rewritten<'_>) -> Statement {
        let kernel = statement.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        let [own_count, count] = self.counts();
        let rank = kernel.output_rank as usize;
        let all: Vec<usize> = (0..rank).collect();
        let looked_at = self.looked_at.iter().copied().filter(|i| *i < rank);
        let looked_at: Vec<usize> = looked_at.collect();
        let parts = [
            ("own", self.own(self.value), &all, dtype),
            ("odd_own", own_count, &all, DType::I64),
            ("odd", count, &looked_at, DType::I64),
        ];
        let mut operands = statement.operands.to_vec();
        let mut whole = elementwise(kernel);
        let (graph, shapes) = (&mut whole.graph, &mut whole.operands);
        let parts = parts.map(|(name, part, indices, dtype)| {
            let part = canonical::statement(part, statement.operands);
            operands.push(statement.add(name, part));
            element((&mut *graph, &mut *shapes), kernel, indices, dtype)
        });
        let [own, odd_own, odd] = parts;
        let elsewhere = Node::Apply(Function::Lt, vec![odd_own, odd]);
        let elsewhere = graph.add(elsewhere, DType::Bool);
        let unknown = graph.add(Node::Constant(Scalar::Float(f64::NAN)), dtype);
        let choice = Node::Apply(Function::Select, vec![elsewhere, unknown, own]);
        let sum = graph.add(choice, dtype);
        let outside = self.outside.iter().rev();
        whole.root = outside.fold(sum, |sum, (function, by)| {
            graph.add(Node::Apply(*function, vec![sum, *by]), dtype)
        });
        canonical::statement(whole, &operands)
    }
}

/// Takes factors and divisors out of a kernel's value that are the same for all points of a sum.
fn taken_out(kernel: &mut Kernel) -> Vec<(Function, NodeId)> {
    let depends = kernel.graph.dependencies();
    let same = |node: NodeId| depends[node.0 as usize] >> kernel.output_rank == 0;
    let mut outside = vec![];
    while let Node::Apply(function, sides) = kernel.graph.node(kernel.root) {
        let (value, by) = match (function, &sides[..]) {
            (Function::Mul | Function::Div, [value, by]) if same(*by) => (*value, *by),
            (Function::Mul, [by, value]) if same(*by) => (*value, *by),
            _ => break,
        };
        outside.push((*function, by));
        kernel.root = value;
    }
    outside
}

/// A node that is 1 where one of these values is infinite or NaN, else 0; none without values.
fn odd(kernel: &mut Kernel, values: &[NodeId]) -> Option<NodeId> {
    let graph = &mut kernel.graph;
    let finite = values.iter().map(|value| {
        let dtype = graph.dtype(*value);
        let size = graph.add(Node::Apply(Function::Abs, vec![*value]), dtype);
        let infinite = graph.add(Node::Constant(Scalar::Float(f64::INFINITY)), dtype);
        graph.add(Node::Apply(Function::Lt, vec![size, infinite]), DType::Bool)
    });
    let finite: Vec<NodeId> = finite.collect();
    let all = finite
        .into_iter()
        .reduce(|all, next| graph.add(Node::Apply(Function::And, vec![all, next]), DType::Bool))?;
    let odd = graph.add(Node::Apply(Function::Not, vec![all]), DType::Bool);
    Some(graph.add(Node::Convert(odd), DType::I64))
}
