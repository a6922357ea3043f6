//! Reductions key by key: `sum[m] x[m] if segment[m] == segment[n]` for every `n`.
//!
//! The value is reduced at the points that have a key alone, keys and values are gone through once, in the order of the points, and every output point
//! looks at what its key has come to; where the guard also compares a reduced with an output index, at what it has come to so far. A fault is left to the
//! ordinary loops, which find the lowest one. Must not know where guards come from.
//!
//! ```text
//! [n: 4 | m: 4] sum x[m] if s[m] == s[n]   of x = 1 2 3 4, s = 7 9 7 9   ->   4 6 4 6, in 4 additions
//! ```

mod groups;

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::math::{max_nan, min_nan};
use crate::parallel;
use crate::program::{Program, Request};
use crate::scan::Lines;
use crate::segment::Segment;
use ein_array::{Array, Data};
use ein_plan::schedule::Grouped;
use ein_plan::schedule::grouped::{Keys, grouping};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction};
use groups::{Groups, KeysOf};

/// A kernel that reduces so; `None` if it faults.
pub(crate) fn run(
    kernel: &Kernel,
    grouped: &Grouped,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    use Reduction as R;
    let (_, keys) = grouping(kernel)?;
    let reduction = kernel.reduction?;
    let rule = Rule {
        reduction,
        value: kernel.graph.dtype(kernel.root),
    };
    let axes = Axes::of(kernel, grouped, &keys, ranges);
    let carriers = axes.carriers(kernel, rule, &keys, operands)?;
    let points = axes.keys(kernel, keys.of_point, &axes.points, operands)?;
    let outputs = axes.keys(kernel, keys.of_output, &axes.outputs, operands)?;
    let keyed = Keyed {
        axes: &axes,
        points: KeysOf::new(points.data())?,
        outputs: KeysOf::new(outputs.data())?,
    };
    let rank = kernel.output_rank as usize;
    let shape: Vec<usize> = axes.lengths[..rank].to_vec();
    let columns = kernel.output.iter();
    let mut columns: Vec<Array> = columns.map(|d| Array::zeros(*d, &shape)).collect();
    let places = axes.places(rank);
    let neutral = rule.neutral();
    let number = rule.value != DType::Bool;
    let plain = number && matches!(reduction, R::Sum | R::Prod | R::Max | R::Min);
    match (plain, carriers[0].data()) {
        (true, Data::F64(values)) => {
            let start = neutral.float;
            let totals = match reduction {
                R::Max => keyed.reduced(values, start, max_nan),
                R::Min => keyed.reduced(values, start, min_nan),
                R::Prod => keyed.reduced(values, start, |x, y| x * y),
                _ => keyed.reduced(values, start, |x, y| x + y),
            };
            let mut to = Segment::of(columns[0].data_mut());
            places.store(&totals, |at, total| to.set_float(at, total));
        }
        (true, Data::I64(values)) => {
            let start = neutral.integer;
            let totals = match reduction {
                R::Max => keyed.reduced(values, start, i64::max),
                R::Min => keyed.reduced(values, start, i64::min),
                R::Prod => keyed.reduced(values, start, i64::wrapping_mul),
                _ => keyed.reduced(values, start, i64::wrapping_add),
            };
            let mut to = Segment::of(columns[0].data_mut());
            places.store(&totals, |at, total| to.set_integer(at, total));
        }
        _ => {
            let all = 0..carriers[0].data().len();
            let values: Vec<Carrier> = all.map(|at| rule.load(&carriers, at)).collect();
            let totals = keyed.reduced(&values, neutral, |mut total, more| {
                rule.merge(&mut total, &more);
                total
            });
            let to = columns.iter_mut().map(|c| Segment::of(c.data_mut()));
            let mut to: Vec<Segment<'_>> = to.collect();
            places.store(&totals, |at, total| match kernel.finish {
                true => rule.finish(&total, &mut to[0], at),
                false => rule.store(&total, &mut to, at),
            });
        }
    }
    Some(columns)
}

/// The indices of a kernel by what they are to its groups.
struct Axes {
    /// Start and length of each index; of a scanned one, what some output point takes in.
    ranges: Vec<(i64, i64)>,
    lengths: Vec<usize>,
    /// The output indices on which keys and values of points depend: each of their points has groups of its own.
    own: Vec<usize>,
    /// `own`, then the reduced indices that tell points apart, the scanned one first.
    points: Vec<usize>,
    /// `own`, then the other output indices, the scanned one first.
    outputs: Vec<usize>,
    /// The other reduced indices.
    inner: Vec<usize>,
    lines: Option<Lines>,
}

impl Axes {
    fn of(kernel: &Kernel, grouped: &Grouped, keys: &Keys, ranges: &[(u64, u64)]) -> Axes {
        let rank = kernel.output_rank as usize;
        let mut ranges = crate::signed(ranges);
        let scan = grouped.scan.as_ref();
        let scanned = scan.map(|scan| (scan.reduced.0 as usize, scan.output.0 as usize));
        let lines = scan.zip(scanned).map(|(scan, (along, output))| {
            let (lines, lowest) = Lines::new(scan, ranges[along], ranges[output], (1, 1));
            ranges[along] = (lowest, lines.used as i64);
            lines
        });
        let passed = |i: &usize| grouped.passed.iter().any(|index| index.0 as usize == *i);
        let own: Vec<usize> = (0..rank).filter(|i| !passed(i)).collect();
        let depends = kernel.graph.dependencies()[keys.of_point.0 as usize];
        let tells = |i: &usize| depends >> i & 1 == 1;
        let first = scanned.into_iter();
        let along = first.clone().map(|(along, _)| along);
        let output = first.map(|(_, output)| output);
        let is_scanned =
            |i: &usize| scanned.is_some_and(|(along, output)| *i == along || *i == output);
        let reduced = (rank..ranges.len()).filter(|i| !is_scanned(i));
        let points = own.iter().copied().chain(along);
        let outputs = own.iter().copied().chain(output);
        Axes {
            points: points.chain(reduced.clone().filter(tells)).collect(),
            outputs: outputs
                .chain((0..rank).filter(|i| passed(i) && !is_scanned(i)))
                .collect(),
            inner: reduced.filter(|i| !tells(i)).collect(),
            own,
            lines,
            lengths: ranges.iter().map(|(_, n)| *n as usize).collect(),
            ranges,
        }
    }

    fn count(&self, indices: &[usize]) -> usize {
        indices.iter().map(|i| self.lengths[*i]).product()
    }

    /// The value, reduced at each point that has a key; `None` after a fault.
    fn carriers(
        &self,
        kernel: &Kernel,
        rule: Rule,
        keys: &Keys,
        operands: &[Chunk<'_>],
    ) -> Option<Vec<Array>> {
        let wide = |dtype: DType| match dtype.is_float() {
            true => DType::F64,
            false => DType::I64,
        };
        let mut graph = kernel.graph.clone();
        let guard = keys.rest.iter().copied().reduce(|guard, next| {
            graph.add(Node::Apply(Function::And, vec![guard, next]), DType::Bool)
        });
        let types = rule.reduction.carrier(rule.value).into_iter().map(wide);
        let value = (&graph, kernel.root, guard);
        self.evaluated(
            value,
            Some(rule.reduction),
            (&self.points, &self.inner),
            types.collect(),
            operands,
        )
    }

    /// The values of a node at the points of some indices; `None` after a fault.
    fn keys(
        &self,
        kernel: &Kernel,
        key: NodeId,
        at: &[usize],
        operands: &[Chunk<'_>],
    ) -> Option<Array> {
        let value = (&kernel.graph, key, None);
        let types = vec![kernel.graph.dtype(key)];
        self.evaluated(value, None, (at, &[]), types, operands)?
            .pop()
    }

    fn evaluated(
        &self,
        (graph, root, guard): (&Graph, NodeId, Option<NodeId>),
        reduction: Option<Reduction>,
        (output, reduced): (&[usize], &[usize]),
        types: Vec<DType>,
        operands: &[Chunk<'_>],
    ) -> Option<Vec<Array>> {
        let shape: Vec<usize> = output.iter().map(|i| self.lengths[*i]).collect();
        let mut columns: Vec<Array> = types
            .iter()
            .map(|dtype| Array::zeros(*dtype, &shape))
            .collect();
        if shape.contains(&0) {
            return Some(columns);
        }
        let program = Program::new(&Request {
            graph,
            operands,
            root,
            guard,
            reduction,
            output,
            reduced,
            ranges: &self.ranges,
            lengths: &self.lengths,
            lanes: None,
            apart: false,
            patches: false,
        });
        let driver = Driver::new(&program, &self.ranges, &[], false);
        let segments = columns
            .iter_mut()
            .map(|column| Segment::of(column.data_mut()));
        match driver.run(segments.collect()) {
            None => Some(columns),
            Some(_) => None,
        }
    }

    /// Where the output points lie.
    fn places(&self, rank: usize) -> Places {
        let mut strides = vec![1; rank];
        for d in (1..rank).rev() {
            strides[d - 1] = strides[d] * self.lengths[d];
        }
        let along = |indices: &[usize]| {
            indices.iter().fold(vec![0], |before, i| {
                let (length, stride) = (self.lengths[*i], strides[*i]);
                let steps = move |x: usize| (0..length).map(move |n| x + n * stride);
                before.into_iter().flat_map(steps).collect::<Vec<usize>>()
            })
        };
        Places {
            own: along(&self.own),
            passed: along(&self.outputs[self.own.len()..]),
        }
    }
}

/// Where output points lie: the sum of a place among the indices that have groups of their own, and one among the others.
struct Places {
    own: Vec<usize>,
    passed: Vec<usize>,
}

impl Places {
    fn store<T: Copy>(&self, totals: &[Vec<T>], mut store: impl FnMut(usize, T)) {
        for (own, totals) in self.own.iter().zip(totals) {
            for (passed, total) in self.passed.iter().zip(totals) {
                store(own + passed, *total);
            }
        }
    }
}

/// Keys of points and of output points.
struct Keyed<'a> {
    axes: &'a Axes,
    points: KeysOf<'a>,
    outputs: KeysOf<'a>,
}

impl Keyed<'_> {
    /// By point of the indices that have groups of their own: what each output point comes to.
    fn reduced<T: Copy + Send + Sync>(
        &self,
        values: &[T],
        neutral: T,
        next: impl Fn(T, T) -> T + Copy + Sync,
    ) -> Vec<Vec<T>> {
        let own = self.axes.count(&self.axes.own);
        let (points, outputs) = (
            self.axes.count(&self.axes.points[self.axes.own.len()..]),
            self.axes.count(&self.axes.outputs[self.axes.own.len()..]),
        );
        let groups = |number: usize| {
            let values = &values[number * points..][..points];
            let (first, goal) = (number * points, number * outputs);
            let mut groups = Groups::new(&self.points, first..first + points, neutral);
            let mut totals = vec![neutral; outputs];
            let take = |groups: &mut Groups<T>, all: std::ops::Range<usize>| {
                for at in all {
                    groups.take(self.points.at(first + at), values[at], next);
                }
            };
            let look = |groups: &Groups<T>, to: &mut [T], from: usize| {
                for (at, total) in to.iter_mut().enumerate() {
                    *total = groups.of(self.outputs.at(goal + from + at));
                }
            };
            let Some(lines) = &self.axes.lines else {
                take(&mut groups, 0..points);
                look(&groups, &mut totals, 0);
                return totals;
            };
            let (each, wide) = (points / lines.used.max(1), outputs / lines.outputs.max(1));
            let taken = |element: usize| {
                let place = lines.element(element, 1);
                place * each..(place + 1) * each
            };
            (0..lines.before).for_each(|element| take(&mut groups, taken(element)));
            for output in lines.none..lines.outputs {
                let number = output - lines.none;
                if number < lines.each {
                    take(&mut groups, taken(lines.before + number));
                }
                let place = lines.output(output, 1) * wide;
                look(&groups, &mut totals[place..place + wide], place);
            }
            totals
        };
        parallel::map(own, groups)
    }
}
