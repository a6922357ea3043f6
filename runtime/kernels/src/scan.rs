//! Prefix and suffix reductions: `sum[m < n] x[m]` and `sum[m > n] x[m]` for every `n`.
//!
//! Where the guard compares a reduced index `m` with an output index `n` that neither the value nor the rest of the guard
//! holds, the result for one `n` is that of its neighbour and a little more. So the value is reduced for every
//! `m` alone, and these partial results are gone through once, upwards or downwards. A fault is left to the ordinary loops,
//! which find the lowest one. Must not know where guards come from.
//!
//! ```text
//! [n: 4 | m: 4] sum x[m] if m <= n   of x = 1 2 3 4   ->   1 3 6 10, in 4 additions
//! [n: 4 | m: 4] sum x[m] if m > n    of x = 1 2 3 4   ->   9 7 4 0, in 3 additions
//! ```

mod lines;
mod totals;

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::program::{Program, Request};
use crate::segment::Segment;
use crate::stream;
use ein_array::Array;
use ein_plan::schedule::Scan;
use ein_plan::schedule::guard::besides;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};
pub(crate) use lines::Lines;
use totals::Lying;

/// A kernel that reduces along this scan; `None` if it faults.
pub(crate) fn run(
    kernel: &Kernel,
    scan: &Scan,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    use Reduction as R;
    let reduction = kernel.reduction?;
    let running = Running::of(kernel, scan, ranges);
    let rule = Rule {
        reduction,
        value: kernel.graph.dtype(kernel.root),
    };
    let shape = &running.shape[..];
    let number = rule.value != DType::Bool;
    if number && matches!(reduction, R::Sum | R::Prod | R::Max | R::Min) {
        // One column holds what a plain reduction has come to, finished or not.
        let mut column = crate::memory::room(kernel.output[0], shape);
        let plain = running.conditions.is_empty() && running.lines.used > 0;
        let lying = plain.then(|| running.lying(kernel, operands)).flatten();
        let partial = match lying {
            Some(_) => vec![],
            None if running.is_of_values(rule) => vec![running.values(kernel, rule, operands)?],
            None => running.partial(kernel, rule, operands, true)?,
        };
        let lying = lying.unwrap_or_else(|| Lying::partial(partial[0].data(), &running.lines));
        let streams = column.data().bytes().len() >= stream::FAR;
        let to = (Segment::of(column.data_mut()), streams);
        running.lines.totals(rule, &lying, to);
        return Some(vec![column]);
    }
    let partial = running.partial(kernel, rule, operands, false)?;
    running.carried(kernel, rule, &partial)
}

/// A scan over ranges.
struct Running {
    /// Start and length of each index; of the reduced one, what the last output point takes in.
    ranges: Vec<(i64, i64)>,
    lengths: Vec<usize>,
    /// The output's shape.
    shape: Vec<usize>,
    /// The indices of a partial result: the output's with the reduced one in the place of the scan's.
    output: Vec<usize>,
    /// The other reduced indices.
    reduced: Vec<usize>,
    /// Which of the output's dimensions is scanned.
    scanned: usize,
    /// What the guard says besides.
    conditions: Vec<NodeId>,
    lines: Lines,
}

impl Running {
    fn of(kernel: &Kernel, scan: &Scan, ranges: &[(u64, u64)]) -> Running {
        let (scanned, along) = (scan.output.0 as usize, scan.reduced.0 as usize);
        let rank = kernel.output_rank as usize;
        let mut ranges = crate::signed(ranges);
        let shape = ranges[..rank].iter().map(|(_, n)| *n as usize).collect();
        let lengths = |indices: &[(i64, i64)]| indices.iter().map(|(_, n)| *n as usize).product();
        let beside = (
            lengths(&ranges[..scanned]),
            lengths(&ranges[scanned + 1..rank]),
        );
        let (lines, lowest) = Lines::new(scan, ranges[along], ranges[scanned], beside);
        ranges[along] = (lowest, lines.used as i64);
        let lengths = ranges.iter().map(|(_, n)| *n as usize).collect();
        let swap = |i: usize| if i == scanned { along } else { i };
        Running {
            shape,
            output: (0..rank).map(swap).collect(),
            reduced: (rank..ranges.len()).filter(|i| *i != along).collect(),
            scanned,
            conditions: besides(kernel, scan),
            lines,
            ranges,
            lengths,
        }
    }

    /// The elements that are reduced, if they lie in lines.
    fn lying<'a>(&self, kernel: &Kernel, operands: &'a [Chunk<'a>]) -> Option<Lying<'a>> {
        let output = (&self.output[..], self.scanned);
        Lying::of(kernel, operands, &self.ranges, output, &self.reduced)
    }

    /// Returns whether one value is reduced at each number of the reduced index, of a type whose totals can be taken as it is.
    fn is_of_values(&self, rule: Rule) -> bool {
        let taken = matches!(
            rule.value,
            DType::F32 | DType::F64 | DType::I32 | DType::I64
        );
        taken && self.reduced.is_empty() && self.lines.used > 0
    }

    /// The value for each number of the reduced index, which changes nothing where the conditions do not hold; `None` after a fault.
    fn values(&self, kernel: &Kernel, rule: Rule, operands: &[Chunk<'_>]) -> Option<Array> {
        let mut graph = kernel.graph.clone();
        let mut root = kernel.root;
        let neutral = rule.neutral();
        let neutral = match rule.value.is_float() {
            true => Scalar::Float(neutral.float),
            false => Scalar::Int(neutral.integer),
        };
        for condition in &self.conditions {
            let nothing = graph.add(Node::Constant(neutral), rule.value);
            let chosen = Node::Apply(Function::Select, vec![*condition, root, nothing]);
            root = graph.add(chosen, rule.value);
        }
        let shape: Vec<usize> = self.output.iter().map(|i| self.lengths[*i]).collect();
        let mut values = crate::memory::room(rule.value, &shape);
        let program = Program::new(&Request {
            graph: &graph,
            operands,
            root,
            guard: None,
            reduction: None,
            output: &self.output,
            reduced: &[],
            ranges: &self.ranges,
            lengths: &self.lengths,
            lanes: None,
            apart: false,
            patches: false,
        });
        let driver = Driver::new(&program, &self.ranges, &[], true);
        match driver.run(vec![Segment::of(values.data_mut())]) {
            None => Some(values),
            Some(_) => None,
        }
    }

    /// What comes of the reduction for each number of the reduced index alone; `None` after a fault.
    fn partial(
        &self,
        kernel: &Kernel,
        rule: Rule,
        operands: &[Chunk<'_>],
        finish: bool,
    ) -> Option<Vec<Array>> {
        let wide = |dtype: DType| match dtype.is_float() {
            true => DType::F64,
            false => DType::I64,
        };
        let shape: Vec<usize> = self.output.iter().map(|i| self.lengths[*i]).collect();
        let columns = rule.reduction.carrier(rule.value).into_iter();
        let mut partial: Vec<Array> = columns.map(|d| Array::zeros(wide(d), &shape)).collect();
        if self.lines.used == 0 {
            return Some(partial);
        }
        let mut graph = kernel.graph.clone();
        let conditions = self.conditions.iter().copied();
        let guard = conditions.reduce(|guard, next| {
            graph.add(Node::Apply(Function::And, vec![guard, next]), DType::Bool)
        });
        let program = Program::new(&Request {
            graph: &graph,
            operands,
            root: kernel.root,
            guard,
            reduction: Some(rule.reduction),
            output: &self.output,
            reduced: &self.reduced,
            ranges: &self.ranges,
            lengths: &self.lengths,
            lanes: None,
            apart: false,
            patches: false,
        });
        let driver = Driver::new(&program, &self.ranges, &[], finish);
        let segments = partial.iter_mut().map(|p| Segment::of(p.data_mut()));
        match driver.run(segments.collect()) {
            None => Some(partial),
            Some(_) => None,
        }
    }

    /// Goes through partial results of several columns; `None` if an output point has nothing to choose from.
    fn carried(&self, kernel: &Kernel, rule: Rule, partial: &[Array]) -> Option<Vec<Array>> {
        let chooses = rule.reduction.is_arg();
        let along = self.output[self.scanned];
        let (start, used) = self.ranges[along];
        let columns = kernel.output.iter();
        let columns = columns.map(|dtype| Array::zeros(*dtype, &self.shape));
        let mut columns: Vec<Array> = columns.collect();
        let to = columns.iter_mut().map(|c| Segment::of(c.data_mut()));
        let mut to: Vec<Segment<'_>> = to.collect();
        let mut store = |at: usize, carrier: Carrier| match kernel.finish {
            true => rule.finish(&carrier, &mut to[0], at),
            false => rule.store(&carrier, &mut to, at),
        };
        let carrier = |at: usize| {
            let mut carrier = rule.load(partial, at);
            // What was chosen from one value is the number of that value.
            if chooses && carrier.number >= 0 {
                carrier.number = start + (at / self.lines.inner) as i64 % used;
            }
            carrier
        };
        let carriers: Vec<Carrier> = (0..partial[0].data().len()).map(carrier).collect();
        let next = |mut total: Carrier, more: Carrier| {
            rule.merge(&mut total, &more);
            total
        };
        let mut nothing_chosen = false;
        self.lines
            .walk(&carriers, rule.neutral(), next, |at, total| {
                nothing_chosen |= chooses && kernel.finish && total.number < 0;
                store(at, total);
            });
        (!nothing_chosen).then_some(columns)
    }
}
