//! Running reductions along several axes, one axis after the other.
//!
//! A running reduction is gone through once where the guard compares one reduced index with one of the result. Of a second comparison the
//! loops would look at every pair. What is reduced along the second axis is a tensor of its own, of which the first one's walk reads one
//! element a place. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: f32[9, 9] = [i: 9, j: 9 | p: 9, q: 9] sum A[p, q] if and(p <= i, q <= j)
//! y.axis: f32[9, 9] = [p: 9, j: 9 | q: 9] sum A[p, q] if q <= j;  y: f32[9, 9] = [i: 9, j: 9 | p: 9] sum y.axis[p, j] if p <= i
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{element, may_fault, over};
use ein_plan::schedule::guard::{besides, comparison, conjuncts};
use ein_plan::{Kernel, Reduction};

/// How many times as large as the result the tensor in between may be.
const MOST_LARGER: u64 = 4;

/// Returns the program in which a running reduction goes along one axis.
pub fn by_axis(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (mut inner, outer) = steps(statement.kernel)?;
        // From the first axis to the last one; each reads what the next one makes.
        let mut outers = vec![outer];
        while let Some((next, outer)) = steps(&inner) {
            outers.push(outer);
            inner = next;
        }
        let mut made = canonical::statement(inner, statement.operands);
        while let Some(outer) = outers.pop() {
            let axis = statement.add("axis", made);
            made = canonical::statement(outer, &statement.operands_and(axis));
        }
        Some(made)
    })
}

/// The kernel of the other axes, and that of the first one, which reads it behind its own operands.
fn steps(kernel: &Kernel) -> Option<(Kernel, Kernel)> {
    use Reduction as R;
    let scan = kernel.scanned()?;
    let takes = matches!(
        kernel.reduction?,
        R::Sum | R::Prod | R::Max | R::Min | R::Any | R::All | R::LogSumExp
    );
    let (output, reduced) = (scan.output.0 as usize, scan.reduced.0 as usize);
    let larger = kernel.indices[output].extent.saturating_mul(MOST_LARGER);
    let fits = takes && kernel.finish && kernel.indices[reduced].extent <= larger;
    if !fits || may_fault(kernel) {
        return None;
    }
    let rank = kernel.output_rank as usize;
    let first = |i: usize| if i == output { reduced } else { i };
    let kept: Vec<usize> = (0..rank).map(first).collect();
    let others = (rank..kernel.indices.len()).filter(|i| *i != reduced);
    let own: Vec<usize> = kept.iter().copied().chain(others).collect();
    let dtype = kernel.graph.dtype(kernel.root);
    let mut inner = kernel.clone();
    (inner.guard, inner.output) = (None, vec![dtype]);
    besides(kernel, &scan)
        .into_iter()
        .for_each(|c| inner.restrict(c));
    let inner = over(inner, kernel, &own).canonical();
    inner.scanned()?;
    let mut outer = kernel.clone();
    let mut conditions = conjuncts(&kernel.graph, kernel.guard?).into_iter();
    outer.guard = conditions.find(|id| comparison(kernel, *id) == Some(scan));
    outer.root = element(
        (&mut outer.graph, &mut outer.operands),
        kernel,
        &kept,
        dtype,
    );
    let left: Vec<usize> = (0..rank).chain([reduced]).collect();
    Some((inner, over(outer, kernel, &left)))
}
