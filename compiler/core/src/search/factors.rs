//! Running sums of values that depend on the place of the result: what depends on it is taken out of the sum.
//!
//! A running sum is gone through once where its terms are the same for all places ([`Kernel::scanned`]). A factor that only the place of the result
//! determines, or a choice between two sums by such a condition, hides that; the gradient of a running product has both. Each sum becomes a statement of its
//! own, of which a place reads one element. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: f32[9] = [n: 9 | m: 9] sum w[n] * x[m] if m <= n
//! y.sum: f32[9] = [n: 9 | m: 9] sum x[m] if m <= n;  y: f32[9] = [n: 9] w[n] * y.sum[n]
//! ```

use crate::einsum::{Program, Rewriting, TensorId, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, may_fault, renamed};
use ein_plan::schedule::guard::{comparison, conjuncts};
use ein_plan::{Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};

/// The most sums that one becomes.
const MOST_SUMS: usize = 4;

/// Returns the program with running sums of terms that are the same for all places.
pub fn factored(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let guarded = guarded(statement.kernel)?;
        let (outside, sums) = sums(&guarded)?;
        let operands = statement.operands;
        let mut add = |sum| statement.add("sum", sum);
        Some(outside.statement((&guarded, operands), &sums, &mut add))
    })
}

/// The nodes that are summed, where each of their sums is a running one and that of the kernel's value is not.
fn sums(kernel: &Kernel) -> Option<(Outside, Vec<NodeId>)> {
    let graph = &kernel.graph;
    let float = graph.dtype(kernel.root).is_float();
    if kernel.reduction != Some(Reduction::Sum) || !float || kernel.guard.is_none() {
        return None;
    }
    // What is chosen is computed whether it is chosen or not.
    if may_fault(kernel) || !kernel.passed_over().is_empty() {
        return None;
    }
    let conditions = conjuncts(graph, kernel.guard?);
    let depends = graph.dependencies();
    let reduced = !((1u128 << kernel.output_rank) - 1);
    let mut scans = conditions.iter().enumerate();
    scans.find_map(|(at, id)| {
        let scan = comparison(kernel, *id)?;
        let bit = 1u128 << scan.output.0;
        let mut rest = conditions
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        if rest.any(|(_, id)| depends[id.0 as usize] & bit != 0) {
            return None;
        }
        // A sum of nothing is 0, and so it has to be behind a factor: it may be infinite.
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let enough = !scan.suffix || extent(scan.reduced) >= extent(scan.output);
        let outside = Outside {
            depends: depends.clone(),
            reduced,
            factors: conditions.len() == 1 && scan.inclusive && enough && extent(scan.reduced) > 0,
        };
        let mut sums = vec![];
        outside.collect(graph, kernel.root, &mut sums);
        let same = |id: &NodeId| depends[id.0 as usize] & bit == 0;
        (sums.len() <= MOST_SUMS && sums.iter().all(same)).then_some((outside, sums))
    })
}

/// The parts of a value that may stand outside of a sum.
struct Outside {
    /// By node: the indices that it depends on.
    depends: Vec<u128>,
    /// The indices that are summed.
    reduced: u128,
    /// True if factors may stand outside.
    factors: bool,
}

impl Outside {
    /// The places of a node's arguments in which their sums may stand; none if the sum of the node itself is wanted.
    fn within(&self, graph: &Graph, id: NodeId) -> &'static [usize] {
        let free = |id: NodeId| self.depends[id.0 as usize] & self.reduced == 0;
        let Node::Apply(function, a) = graph.node(id) else {
            return &[];
        };
        match function {
            Function::Add | Function::Sub => &[0, 1],
            Function::Neg => &[0],
            Function::Select if free(a[0]) => &[1, 2],
            Function::Mul if self.factors && free(a[0]) => &[1],
            Function::Mul | Function::Div if self.factors && free(a[1]) => &[0],
            _ => &[],
        }
    }

    /// The nodes of which sums are wanted.
    fn collect(&self, graph: &Graph, root: NodeId, sums: &mut Vec<NodeId>) {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let within = self.within(graph, id);
            if within.is_empty() && !is_zero(graph, id) && !sums.contains(&id) {
                sums.push(id);
            }
            let arguments: Vec<NodeId> = graph.node(id).arguments().collect();
            open.extend(within.iter().map(|at| arguments[*at]));
        }
    }

    /// The statement of the places, which reads sums that `add` makes tensors of.
    fn statement(
        &self,
        (kernel, operands): (&Kernel, &[TensorId]),
        sums: &[NodeId],
        add: &mut dyn FnMut((Kernel, Vec<TensorId>)) -> TensorId,
    ) -> (Kernel, Vec<TensorId>) {
        let rank = kernel.output_rank as usize;
        let mut operands = operands.to_vec();
        let mut outer = kernel.clone();
        outer.indices.truncate(rank);
        (outer.guard, outer.reduction) = (None, None);
        let mut summed: Vec<Option<NodeId>> = vec![None; kernel.graph.len()];
        for sum in sums {
            let guard = kernel
                .guard
                .map_or(0, |guard| self.depends[guard.0 as usize]);
            let needs = self.depends[sum.0 as usize] | guard;
            let kept: Vec<usize> = (0..rank).filter(|i| needs >> i & 1 == 1).collect();
            let inner = of_sum(kernel, *sum, &kept);
            let dtype = kernel.graph.dtype(*sum);
            let tensor = add(canonical::statement(inner, &operands));
            let Kernel {
                graph,
                operands: of,
                ..
            } = &mut outer;
            summed[sum.0 as usize] = Some(element((graph, of), kernel, &kept, dtype));
            operands.push(tensor);
        }
        outer.root = self.outer(&mut outer.graph, kernel.root, &mut summed);
        canonical::statement(outer, &operands)
    }

    /// A node with sums in the places of what is summed.
    fn outer(&self, graph: &mut Graph, root: NodeId, summed: &mut [Option<NodeId>]) -> NodeId {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            let within = self.within(graph, id);
            let mut arguments: Vec<NodeId> = graph.node(id).arguments().collect();
            let missing = within.iter().map(|at| arguments[*at]);
            let missing: Vec<NodeId> = missing.filter(|a| summed[a.0 as usize].is_none()).collect();
            if summed[id.0 as usize].is_none() && !missing.is_empty() {
                open.extend(missing);
                continue;
            }
            open.pop();
            if summed[id.0 as usize].is_some() {
                continue;
            }
            for at in within {
                arguments[*at] = summed[arguments[*at].0 as usize].unwrap_or(arguments[*at]);
            }
            summed[id.0 as usize] = Some(match graph.node(id) {
                Node::Apply(function, _) => {
                    let (node, dtype) = (Node::Apply(*function, arguments), graph.dtype(id));
                    graph.add(node, dtype)
                }
                _ => id,
            });
        }
        summed[root.0 as usize].unwrap_or(root)
    }
}

fn is_zero(graph: &Graph, id: NodeId) -> bool {
    *graph.node(id) == Node::Constant(Scalar::Float(0.0))
}

/// The kernel that sums a node of another one, at these of its output indices.
fn of_sum(kernel: &Kernel, sum: NodeId, kept: &[usize]) -> Kernel {
    let rank = kernel.output_rank as usize;
    let mut inner = kernel.clone();
    inner.root = sum;
    inner.output = vec![kernel.graph.dtype(sum)];
    inner.output_rank = kept.len() as u32;
    let own: Vec<usize> = kept
        .iter()
        .copied()
        .chain(rank..kernel.indices.len())
        .collect();
    inner.indices = own.iter().map(|i| kernel.indices[*i].clone()).collect();
    renamed(inner, &|index| {
        let at = own.iter().position(|i| *i == index.0 as usize);
        at.map_or(index, |at| IndexId(at as u32))
    })
}
