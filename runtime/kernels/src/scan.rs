//! Prefix reductions: `sum[m < n] x[m]` for every `n`.
//!
//! Where the guard says `m < n` or `m <= n`, for a reduced index `m` and an output index `n` that neither the value nor the
//! rest of the guard holds, the result for one `n` is the one before and a little more. So the value is reduced for every
//! `m` alone, and these partial results are gone through once. A fault is left to the ordinary loops, which find the lowest
//! one. Must not know where guards come from.
//!
//! ```text
//! [n: 4 | m: 4] sum x[m] if m <= n   of x = 1 2 3 4   ->   1 3 6 10, in 4 additions
//! ```

mod totals;

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::program::{Program, Request};
use crate::segment::Segment;
use ein_array::Array;
use ein_plan::schedule::guard::{conjuncts, dependencies};
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Reduction};
use totals::Lying;

/// `m < n`, or `m <= n`; and the rest of the guard.
struct Prefix {
    output: usize,
    reduced: usize,
    inclusive: bool,
    rest: Vec<NodeId>,
}

/// A kernel in this form; `None` if it is not, or if it faults.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    use Reduction as R;
    let reduction = kernel.reduction?;
    let prefix = find(kernel)?;
    let value = kernel.graph.dtype(kernel.root);
    let mut ranges = crate::signed(ranges);
    let number = value != DType::Bool;
    let plain = number && matches!(reduction, R::Sum | R::Prod | R::Max | R::Min);
    if ranges.iter().any(|(_, length)| *length == 0) {
        return None;
    }
    // Only what the last output point takes in is looked at.
    let (first, count) = ranges[prefix.output];
    let (start, length) = ranges[prefix.reduced];
    let taken = |n: i64| (n + i64::from(prefix.inclusive) - start).clamp(0, length);
    let used = taken(first + count - 1);
    if used == 0 {
        return None;
    }
    ranges[prefix.reduced].1 = used;
    let rank = kernel.output_rank as usize;
    let swap = |i: usize| match i == prefix.output {
        true => prefix.reduced,
        false => i,
    };
    let output: Vec<usize> = (0..rank).map(swap).collect();
    let reduced: Vec<usize> = (rank..ranges.len())
        .filter(|i| *i != prefix.reduced)
        .collect();
    // What is chosen is the number of one index.
    let chooses = reduction.is_arg();
    if chooses && reduced.iter().any(|i| kernel.indices[*i].extent != 1) {
        return None;
    }
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let mut graph = kernel.graph.clone();
    let guard = prefix.rest.iter().copied().reduce(|guard, next| {
        graph.add(Node::Apply(Function::And, vec![guard, next]), DType::Bool)
    });
    let rule = Rule { reduction, value };
    let lines = Lines {
        outer: lengths[..prefix.output].iter().product(),
        inner: lengths[prefix.output + 1..rank].iter().product(),
        used: used as usize,
        taken: (0..count).map(|n| taken(first + n) as usize).collect(),
    };
    let shape = &lengths[..rank];
    // One column holds what a plain reduction has come to, finished or not.
    let mut plain_column = plain.then(|| crate::memory::room(kernel.output[0], shape));
    if let Some(column) = &mut plain_column
        && prefix.rest.is_empty()
        && let Some(lying) = Lying::of(
            kernel,
            operands,
            &ranges,
            (&output, prefix.output),
            &reduced,
        )
    {
        lines.totals(rule, &lying, Segment::of(column.data_mut()));
        return plain_column.map(|column| vec![column]);
    }
    let program = Program::new(&Request {
        graph: &graph,
        operands,
        root: kernel.root,
        guard,
        reduction: Some(reduction),
        output: &output,
        reduced: &reduced,
        ranges: &ranges,
        lengths: &lengths,
        lanes: None,
        apart: false,
    });
    let wide = |dtype: DType| match dtype.is_float() {
        true => DType::F64,
        false => DType::I64,
    };
    let parts: Vec<usize> = output.iter().map(|i| lengths[*i]).collect();
    let partial = reduction.carrier(value).into_iter();
    let mut partial: Vec<Array> = partial.map(|d| Array::zeros(wide(d), &parts)).collect();
    let driver = Driver::new(&program, &ranges, &[], plain);
    let segments = partial.iter_mut().map(|p| Segment::of(p.data_mut()));
    if driver.run(segments.collect()).is_some() {
        return None;
    }
    if let Some(mut column) = plain_column {
        let lying = Lying::partial(partial[0].data(), &lines);
        lines.totals(rule, &lying, Segment::of(column.data_mut()));
        return Some(vec![column]);
    }
    let columns = kernel.output.iter();
    let mut columns: Vec<Array> = columns.map(|dtype| Array::zeros(*dtype, shape)).collect();
    let to = columns.iter_mut().map(|c| Segment::of(c.data_mut()));
    let mut to: Vec<Segment<'_>> = to.collect();
    let neutral = rule.neutral();
    let mut store = |at: usize, carrier: Carrier| match kernel.finish {
        true => rule.finish(&carrier, &mut to[0], at),
        false => rule.store(&carrier, &mut to, at),
    };
    let carrier = |at: usize| {
        let mut carrier = rule.load(&partial, at);
        // What was chosen from one value is the number of that value.
        if chooses && carrier.number >= 0 {
            carrier.number = start + (at / lines.inner) as i64 % used;
        }
        carrier
    };
    let carriers: Vec<Carrier> = (0..partial[0].data().len()).map(carrier).collect();
    let next = |mut total: Carrier, more: Carrier| {
        rule.merge(&mut total, &more);
        total
    };
    let mut nothing_chosen = false;
    lines.walk(&carriers, neutral, next, |at, total| {
        nothing_chosen |= chooses && kernel.finish && total.number < 0;
        store(at, total);
    });
    (!nothing_chosen).then_some(columns)
}

/// The lines along the index that is scanned.
struct Lines {
    outer: usize,
    inner: usize,
    /// Partial results of a line.
    used: usize,
    /// How many of them each output point takes in.
    taken: Vec<usize>,
}

impl Lines {
    fn walk<T: Copy>(
        &self,
        partial: &[T],
        start: T,
        next: impl Fn(T, T) -> T,
        mut store: impl FnMut(usize, T),
    ) {
        for outer in 0..self.outer {
            // All lines that lie side by side at once, so that memory is read in its order.
            let (mut totals, mut done) = (vec![start; self.inner], 0);
            for (n, taken) in self.taken.iter().enumerate() {
                while done < *taken {
                    let row = &partial[(outer * self.used + done) * self.inner..][..self.inner];
                    for (total, x) in totals.iter_mut().zip(row) {
                        *total = next(*total, *x);
                    }
                    done += 1;
                }
                let at = (outer * self.taken.len() + n) * self.inner;
                for (inner, total) in totals.iter().enumerate() {
                    store(at + inner, *total);
                }
            }
        }
    }
}

/// What the guard says of a reduced and an output index.
fn find(kernel: &Kernel) -> Option<Prefix> {
    let graph = &kernel.graph;
    let depends = dependencies(graph);
    let all = conjuncts(graph, kernel.guard?);
    let index = |id: NodeId| match graph.node(id) {
        Node::Index(IndexId(i)) => Some(*i),
        _ => None,
    };
    all.iter().enumerate().find_map(|(at, id)| {
        let Node::Apply(function, sides) = graph.node(*id) else {
            return None;
        };
        let (small, large, inclusive) = match function {
            Function::Lt => (sides[0], sides[1], false),
            Function::Le => (sides[0], sides[1], true),
            Function::Gt => (sides[1], sides[0], false),
            Function::Ge => (sides[1], sides[0], true),
            _ => return None,
        };
        let (reduced, output) = (index(small)?, index(large)?);
        let bit = 1u128 << output;
        let mut rest = all.clone();
        rest.remove(at);
        let holds = |id: &NodeId| depends[id.0 as usize] & bit != 0;
        let fits = reduced >= kernel.output_rank
            && output < kernel.output_rank
            && !holds(&kernel.root)
            && !rest.iter().any(holds);
        fits.then_some(Prefix {
            output: output as usize,
            reduced: reduced as usize,
            inclusive,
            rest,
        })
    })
}
