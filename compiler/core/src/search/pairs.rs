//! Sums over pairs of points that a comparison of their values chooses.
//!
//! Of each first point, the second ones are summed: a sum by groups where values are equal, or one of all that is below a value. What depends on
//! the first point alone is a factor of that sum. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! c: f32[] = [| i: 900, j: 900] sum v[i] * w[j] if a[i] == b[j]
//! c.each: f32[900] = [i: 900 | j: 900] sum w[j] if a[i] == b[j];  c: f32[] = [| i: 900] sum v[i] * c.each[i]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, may_fault, neutral, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::schedule::leaves::leaves;
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction};

/// Pairs for each point, at least, where values are equal, and where they are compared otherwise.
const LEAST: [u64; 2] = [64, 512];

/// Returns the program in which pairs are summed for each of their first points.
pub fn each_first(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (each, sum) = steps(&guarded(statement.kernel)?)?;
        let each = statement.add("each", canonical::statement(each, statement.operands));
        Some(canonical::statement(sum, &statement.operands_and(each)))
    })
}

/// The sums of the second points for each first one, and that of the first ones, which reads them behind its own operands.
pub(super) fn steps(kernel: &Kernel) -> Option<(Kernel, Kernel)> {
    let rank = kernel.output_rank as usize;
    let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.finish;
    if !is_sum || kernel.indices.len() != rank + 2 || may_fault(kernel) {
        return None;
    }
    if kernel.scanned().is_some() || !kernel.passed_over().is_empty() {
        return None;
    }
    let (first, second) = (rank, rank + 1);
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let has = |id: NodeId, index: usize| depends[id.0 as usize] >> index & 1 == 1;
    let conditions = conjuncts(graph, kernel.guard?);
    let (both, alone): (Vec<NodeId>, Vec<NodeId>) = conditions
        .into_iter()
        .partition(|id| has(*id, first) && has(*id, second));
    let [comparison] = both[..] else {
        return None;
    };
    let Node::Apply(function, sides) = graph.node(comparison) else {
        return None;
    };
    use Function::{Eq, Ge, Gt, Le, Lt};
    let least = match function {
        Eq => LEAST[0],
        Lt | Le | Gt | Ge => LEAST[1],
        _ => return None,
    };
    let extent = |i: usize| kernel.indices[i].extent;
    let points = extent(first).saturating_add(extent(second));
    let many = extent(first).saturating_mul(extent(second)) >= points.saturating_mul(least);
    let apart = |id: NodeId| has(id, first) != has(id, second);
    if !many || !sides.iter().all(|side| apart(*side)) {
        return None;
    }
    let found = leaves(graph, kernel.root, |_| false)?;
    if found
        .factors
        .iter()
        .any(|(id, _)| has(*id, first) && has(*id, second))
    {
        return None;
    }
    let dtype = graph.dtype(kernel.root);
    let one = Node::Constant(neutral(Reduction::Prod, dtype)?);
    let is_one = |id: NodeId| *graph.node(id) == one;
    let factors = found.factors.into_iter().filter(|(id, _)| !is_one(*id));
    let (of_second, of_first): (Vec<_>, Vec<_>) = factors.partition(|(id, _)| has(*id, second));

    let mut each = kernel.clone();
    (each.guard, each.output) = (Some(comparison), vec![dtype]);
    let inner = alone.iter().filter(|id| has(**id, second));
    inner.for_each(|id| each.restrict(*id));
    each.root = product(&mut each.graph, &of_second, (&one, dtype));
    each.output_rank += 1;

    let mut sum = kernel.clone();
    sum.guard = None;
    let outer = alone.iter().filter(|id| !has(**id, second));
    outer.for_each(|id| sum.restrict(*id));
    let own: Vec<usize> = (0..=first).collect();
    let read = element((&mut sum.graph, &mut sum.operands), kernel, &own, dtype);
    let mut factors = of_first;
    factors.push((read, false));
    sum.root = product(&mut sum.graph, &factors, (&one, dtype));
    if found.negative {
        sum.root = sum
            .graph
            .add(Node::Apply(Function::Neg, vec![sum.root]), dtype);
    }
    Some((each, over(sum, kernel, &own)))
}

/// The product of factors, of which some divide; `one` if there are none.
fn product(graph: &mut Graph, factors: &[(NodeId, bool)], (one, dtype): (&Node, DType)) -> NodeId {
    let mut factors = factors.iter();
    let first = match factors.as_slice() {
        [(first, false), ..] => {
            factors.next();
            *first
        }
        _ => graph.add(one.clone(), dtype),
    };
    factors.fold(first, |product, (factor, divides)| {
        let function = match divides {
            true => Function::Div,
            false => Function::Mul,
        };
        graph.add(Node::Apply(function, vec![product, *factor]), dtype)
    })
}
