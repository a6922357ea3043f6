//! Long windows, in steps: a reduction over many neighbours as reductions of reductions over a few.
//!
//! Eight neighbours give one value, eight of these values one for 64 neighbours, and so on. The largest of 250 neighbours is the largest of four of
//! those, two of which overlap; their sum is one of parts that lie side by side. A window in two dimensions is a window of windows, and so
//! is a filter whose weights are products of one for each dimension. As with any reordered sum, rounding may differ. Must not know
//! placements.
//!
//! ```text
//! y: f64[900] = [n: 900 | j: 100] max x[n + j]
//! y.of8: f64[992] = [n: 992] max(max(x[n], x[n + 1]), …);  y.of64: f64[936] = [n: 936] max(max(y.of8[n], y.of8[n + 8]), …);  y: f64[900] = [n: 900] max(y.of64[n], y.of64[n + 36])
//! ```

use crate::einsum::{Program, Rewriting, Statement, TensorId, canonical};
use crate::rules::{
    element, elementwise, factors, laws, may_fault, neutral, over, renamed, short_window, times,
    values,
};
use ein_plan::{
    Affine, DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};

/// The values that a step combines.
const STEP: i64 = 8;
/// How many times as many points a reduction has as its steps, at least.
const FEWER: u64 = 2;
/// Fewest points of a reduction that is taken in steps.
const FEWEST_POINTS: u64 = 1 << 12;

/// Returns the program in which reductions over long windows go in steps.
pub fn stepped(program: &Program) -> Program {
    let step = |program: &Program| {
        Rewriting::of_statements(program, |mut statement| {
            let window = Window::of(statement.kernel)?;
            let operands = statement.operands.to_vec();
            window.steps(&operands, &mut |part, new| statement.add(part, new))
        })
    };
    // A window of windows leaves windows.
    let mut all = step(program);
    loop {
        let next = step(&all);
        if next.tensors.len() == all.tensors.len() {
            return next;
        }
        all = next;
    }
}

/// A reduction over a window: what it combines follows from a place, which moves with an index of the result and with a reduced one.
struct Window<'a> {
    kernel: &'a Kernel,
    reduction: Reduction,
    combine: Function,
    value: DType,
    /// The index of the result.
    moves: usize,
    /// The reduced index.
    beside: usize,
    /// How far the place moves with each of them: the first number is positive.
    apart: (i64, i64),
    /// The part of a value that follows from the place, which is the index `moves` there.
    inner: Kernel,
    /// Factors that follow from the indices otherwise, in the kernel's graph.
    outer: Vec<NodeId>,
}

impl Window<'_> {
    fn of(kernel: &Kernel) -> Option<Window<'_>> {
        let value = kernel.graph.dtype(kernel.root);
        let kept = match kernel.reduction? {
            Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All => true,
            Reduction::Sum => !matches!(value, DType::Bool),
            Reduction::Mean => matches!(value, DType::F32 | DType::F64) && kernel.guard.is_none(),
            _ => false,
        };
        let rank = kernel.output_rank as usize;
        let one = kernel.finish && kernel.output == [value] && kernel.library().is_none();
        let points = values(kernel, 0..kernel.indices.len());
        let is_long = values(kernel, rank..kernel.indices.len()) > short_window::MOST;
        if !kept || !one || !is_long || points < FEWEST_POINTS {
            return None;
        }
        if kernel.indices.len() >= 127 || !kernel.scattered().is_empty() || may_fault(kernel) {
            return None;
        }
        let reduced = rank..kernel.indices.len();
        let pairs = (0..rank).flat_map(|moves| reduced.clone().map(move |beside| (moves, beside)));
        let windows = pairs.filter_map(|pair| Window::between(kernel, pair));
        let windows = windows.filter(Window::has_fewer_points);
        windows.min_by_key(Window::points)
    }

    /// The window of an index of the result and a reduced one, if it is one.
    fn between(kernel: &Kernel, (moves, beside): (usize, usize)) -> Option<Window<'_>> {
        let (graph, rank) = (&kernel.graph, kernel.output_rank as usize);
        let forms: Vec<Option<Affine>> = (graph.iter())
            .map(|(id, _, _)| graph.as_affine(id))
            .collect();
        let weights = |form: &Affine| (weight(form, moves), weight(form, beside));
        let both = forms.iter().flatten().map(weights);
        let apart = both
            .filter(|(own, other)| *own != 0 && *other != 0)
            .map(|(own, other)| (own.saturating_abs(), other.saturating_mul(own.signum())))
            .min_by_key(|(own, _)| *own)?;
        let mut window = Window {
            kernel,
            reduction: match kernel.reduction? {
                Reduction::Mean => Reduction::Sum,
                other => other,
            },
            combine: Function::Add,
            value: graph.dtype(kernel.root),
            moves,
            beside,
            apart,
            inner: kernel.clone(),
            outer: vec![],
        };
        window.combine = laws::step(window.reduction)?;
        // In the place of both indices stands the place, for now as an index of its own.
        let place = IndexId(kernel.indices.len() as u32);
        let first = window.first_place()?;
        let placed = |form: &Affine| {
            let (own, other) = weights(form);
            let times = own / apart.0;
            let fits = own != 0
                && times.checked_mul(apart.0) == Some(own)
                && times.checked_mul(apart.1) == Some(other);
            let taken_off = times.checked_mul(first)?;
            let both = [moves, beside].map(|index| IndexId(index as u32));
            let others = form.terms.iter().filter(|term| !both.contains(&term.0));
            let terms = others.copied().chain([(place, times)]).collect();
            let constant = form.constant.checked_sub(taken_off)?;
            fits.then_some(Affine { constant, terms })
        };
        let mut inner = Graph::default();
        let moved = inner.append(graph, |graph, id, node, dtype| {
            match forms[id.0 as usize].as_ref().and_then(placed) {
                Some(form) => graph.add_affine(&form),
                None => graph.add(node, dtype),
            }
        });
        let depends = inner.dependencies();
        let needs = |node: NodeId| depends[moved[node.0 as usize].0 as usize];
        let bit = |index: usize| 1u128 << index;
        let pair = bit(moves) | bit(beside);
        let rest = (rank..kernel.indices.len()).filter(|index| *index != beside);
        let rest = rest.fold(0, |all, index| all | bit(index));
        let factors = match window.reduction {
            Reduction::Sum if rest != 0 && kernel.guard.is_none() => factors(graph, kernel.root),
            _ => vec![kernel.root],
        };
        let (within, outer): (Vec<NodeId>, Vec<NodeId>) =
            factors.into_iter().partition(|f| needs(*f) & pair == 0);
        let within: Vec<NodeId> = within.iter().map(|f| moved[f.0 as usize]).collect();
        let all = within.iter().fold(0, |all, f| all | depends[f.0 as usize]);
        let is_apart = outer.iter().all(|factor| needs(*factor) & rest == 0)
            && kernel.guard.is_none_or(|guard| needs(guard) & pair == 0);
        if !is_apart || all >> place.0 & 1 == 0 || all & rest != rest {
            return None;
        }
        window.outer = outer;
        let mut root = times(&mut inner, &within, window.value);
        if let Some(guard) = kernel.guard {
            let nothing = Node::Constant(neutral(window.reduction, window.value)?);
            let nothing = inner.add(nothing, window.value);
            let guard = moved[guard.0 as usize];
            let chosen = Node::Apply(Function::Select, vec![guard, root, nothing]);
            root = inner.add(chosen, window.value);
        }
        let extent = window.extent()?;
        let inner = Kernel {
            graph: inner,
            root,
            guard: None,
            ..kernel.clone()
        };
        window.inner = renamed(inner, &|index| match index == place {
            true => IndexId(moves as u32),
            false => index,
        });
        window.inner.indices[moves].extent = extent;
        Some(window)
    }

    /// The number that is added to a place so that the first one is 0.
    fn first_place(&self) -> Option<i64> {
        let last = i64::try_from(self.width().checked_sub(1)?).ok()?;
        Some(match self.apart.1 < 0 {
            true => last.checked_mul(self.apart.1.checked_neg()?)?,
            false => 0,
        })
    }

    /// The number of neighbours.
    fn width(&self) -> u64 {
        self.kernel.indices[self.beside].extent
    }

    /// The number of places.
    fn extent(&self) -> Option<u64> {
        let last = |index: usize| self.kernel.indices[index].extent.checked_sub(1);
        let far = |index: usize, apart: i64| last(index)?.checked_mul(apart.unsigned_abs());
        let end = far(self.moves, self.apart.0)?.checked_add(far(self.beside, self.apart.1)?)?;
        let end = end.checked_add(1)?;
        i64::try_from(end).ok().map(|_| end)
    }

    /// The reduced indices but that of the window.
    fn rest(&self) -> Vec<usize> {
        let reduced = self.kernel.output_rank as usize..self.kernel.indices.len();
        reduced.filter(|index| *index != self.beside).collect()
    }

    /// The indices of the result that the part within depends on.
    fn own(&self) -> Vec<usize> {
        let needs = self.inner.graph.dependencies()[self.inner.root.0 as usize];
        let outputs = 0..self.kernel.output_rank as usize;
        outputs.filter(|index| needs >> index & 1 == 1).collect()
    }

    /// True if the window itself goes in steps.
    fn is_long(&self) -> bool {
        self.outer.is_empty() && self.width() > short_window::MOST
    }

    /// The points of the steps.
    fn points(&self) -> u64 {
        let all = self.own().into_iter().chain(self.rest());
        let within = values(&self.inner, all);
        let left = values(self.kernel, 0..self.kernel.output_rank as usize);
        let width = self.width();
        match self.is_long() {
            true => {
                let steps = (width.ilog2() / STEP.ilog2()) as u64;
                let each = values(&self.inner, self.own()).saturating_mul(STEP as u64);
                let left = left.saturating_mul(STEP as u64);
                within
                    .saturating_add(each.saturating_mul(steps))
                    .saturating_add(left)
            }
            false => within.saturating_add(left.saturating_mul(width)),
        }
    }

    /// True if the steps have few points for those of the reduction.
    fn has_fewer_points(&self) -> bool {
        let all = values(self.kernel, 0..self.kernel.indices.len());
        let parts = self.is_long() || !self.rest().is_empty();
        parts && self.points().saturating_mul(FEWER) <= all
    }

    /// The reduction in steps, the first of which are added.
    fn steps(
        &self,
        operands: &[TensorId],
        add: &mut impl FnMut(&str, Statement) -> TensorId,
    ) -> Option<Statement> {
        let own = self.own();
        let first = match self.is_read() {
            true => Level {
                kernel: elementwise(&self.inner).canonical(),
                operands: operands.to_vec(),
                width: 1,
            },
            false => {
                let line = canonical::statement(self.line(&own), operands);
                Level::of(&self.inner, &own, add("line", line), 1)
            }
        };
        if !self.is_long() {
            return self.of_few(&first, operands);
        }
        let mut levels = vec![first];
        let width = i64::try_from(self.width()).ok()?;
        while let Some(last) = levels.last()
            && last.width * STEP <= width
        {
            let next = last.width * STEP;
            let step = self.step(last, &own)?;
            let tensor = add(&format!("of{next}"), step.0);
            levels.push(Level::of(&step.1, &own, tensor, next));
        }
        self.of_many(&levels)
    }

    /// The part within, reduced over the rest: the values of a line along which the window moves.
    fn line(&self, own: &[usize]) -> Kernel {
        let rest = self.rest();
        let all: Vec<usize> = own.iter().chain(&rest).copied().collect();
        let line = Kernel {
            output_rank: own.len() as u32,
            reduction: self.kernel.reduction.filter(|_| !rest.is_empty()),
            ..self.inner.clone()
        };
        over(line, &self.inner, &all)
    }

    /// True if a value is an element that is read.
    fn is_read(&self) -> bool {
        let is_read = matches!(self.inner.graph.node(self.inner.root), Node::Read { .. });
        is_read && self.rest().is_empty()
    }

    /// How far two neighbours are apart.
    fn distance(&self) -> i64 {
        self.apart.1.abs()
    }

    /// The next level: a statement, and a kernel whose indices are those of its result.
    fn step(&self, last: &Level, own: &[usize]) -> Option<(Statement, Kernel)> {
        let mut next = elementwise(&last.kernel);
        let far = (STEP - 1)
            .checked_mul(last.width)?
            .checked_mul(self.distance())?;
        let extent = next.indices[self.moves].extent.checked_sub(far as u64)?;
        next.indices[self.moves].extent = extent;
        let apart = last.width.checked_mul(self.distance())?;
        let places = (0..STEP).map(|number| (last, (1, number * apart)));
        let (graph, root, of, operands) = self.combined(places.collect());
        let shape = next.clone();
        (next.graph, next.root, next.operands) = (graph, root, of);
        next.output = vec![self.value];
        next.output_rank = own.len() as u32;
        let statement = canonical::statement(over(next, &shape, own), &operands);
        Some((statement, shape))
    }

    /// The values of some levels at some places, combined.
    fn combined(
        &self,
        values: Vec<(&Level, (i64, i64))>,
    ) -> (Graph, NodeId, Vec<Operand>, Vec<TensorId>) {
        let mut graph = Graph::default();
        let (mut of, mut operands) = (vec![], vec![]);
        let values = values.into_iter().map(|(level, (times, plus))| {
            let place = Affine {
                constant: plus,
                terms: vec![(IndexId(self.moves as u32), times)],
            };
            let root = level.at(&mut graph, of.len() as u32, self.moves, &place);
            of.extend(level.kernel.operands.iter().cloned());
            operands.extend(&level.operands);
            root
        });
        let values: Vec<NodeId> = values.collect();
        let all = values
            .into_iter()
            .reduce(|all, next| graph.add(Node::Apply(self.combine, vec![all, next]), self.value));
        (graph, all.expect("a window has values"), of, operands)
    }

    /// The result of the widest values that fit, and of narrower ones for what they leave.
    fn of_many(&self, levels: &[Level]) -> Option<Statement> {
        let width = i64::try_from(self.width()).ok()?;
        let mut places = vec![];
        let mut taken = 0;
        for level in levels.iter().rev() {
            while taken + level.width <= width {
                places.push((level, taken));
                taken += level.width;
            }
            // Values that are there twice count once in the largest of them.
            if taken < width && self.reduction != Reduction::Sum {
                places.push((level, width - level.width));
                taken = width;
            }
        }
        let (step, distance) = (self.apart.0, self.distance());
        let places = places.into_iter();
        let places = places.map(|(level, first)| (level, (step, first * distance)));
        let (graph, root, of, operands) = self.combined(places.collect());
        let mut result = elementwise(self.kernel);
        (result.graph, result.root, result.operands) = (graph, root, of);
        if self.kernel.reduction == Some(Reduction::Mean) {
            result.root = self.divided(&mut result.graph, root);
        }
        Some(canonical::statement(result, &operands))
    }

    /// A sum over the window, divided by the number of its terms.
    fn divided(&self, graph: &mut Graph, sum: NodeId) -> NodeId {
        let count = Scalar::Float(self.width() as f64);
        let count = graph.add(Node::Constant(count), self.value);
        graph.add(Node::Apply(Function::Div, vec![sum, count]), self.value)
    }

    /// The reduction over the window alone, which reads what the rest was reduced to.
    fn of_few(&self, first: &Level, operands: &[TensorId]) -> Option<Statement> {
        let mut result = Kernel {
            guard: None,
            ..self.kernel.clone()
        };
        let place = Affine {
            constant: self.first_place()?,
            terms: vec![
                (IndexId(self.moves as u32), self.apart.0),
                (IndexId(self.beside as u32), self.apart.1),
            ],
        };
        let number = result.operands.len() as u32;
        let value = first.at(&mut result.graph, number, self.moves, &place);
        result
            .operands
            .extend(first.kernel.operands.iter().cloned());
        let factors = [&self.outer[..], &[value]].concat();
        result.root = times(&mut result.graph, &factors, self.value);
        let outputs = 0..self.kernel.output_rank as usize;
        let left: Vec<usize> = outputs.chain([self.beside]).collect();
        let operands = [operands, &first.operands].concat();
        Some(canonical::statement(
            over(result, self.kernel, &left),
            &operands,
        ))
    }
}

/// The factor of an index in an affine form.
fn weight(form: &Affine, index: usize) -> i64 {
    let index = IndexId(index as u32);
    let own = form.terms.iter().find(|(other, _)| *other == index);
    own.map_or(0, |(_, weight)| *weight)
}

/// An affine form with a place in the place of an index that it has.
fn moved_to(mut form: Affine, index: usize, place: &Affine) -> Option<Affine> {
    let times = weight(&form, index);
    form.terms.retain(|(other, _)| other.0 as usize != index);
    (times != 0).then(|| form.plus(place, times)).flatten()
}

/// Values of so many neighbours: an element for each point of the result, with the place in one of its indices.
struct Level {
    kernel: Kernel,
    operands: Vec<TensorId>,
    width: i64,
}

impl Level {
    /// The elements of a tensor over some indices of a kernel.
    fn of(kernel: &Kernel, own: &[usize], tensor: TensorId, width: i64) -> Level {
        let mut read = elementwise(kernel);
        let dtype = kernel.graph.dtype(kernel.root);
        (read.graph, read.operands) = (Graph::default(), vec![]);
        read.root = element((&mut read.graph, &mut read.operands), kernel, own, dtype);
        Level {
            kernel: read,
            operands: vec![tensor],
            width,
        }
    }

    /// Adds the value at a place to a graph, in which its operands have these numbers and those after.
    fn at(&self, graph: &mut Graph, operands: u32, moves: usize, place: &Affine) -> NodeId {
        let own = &self.kernel.graph;
        let moved = graph.append(own, |graph, id, mut node, dtype| {
            if let Node::Read { operand, .. } = &mut node {
                *operand += operands;
            }
            match own
                .as_affine(id)
                .and_then(|form| moved_to(form, moves, place))
            {
                Some(form) => graph.add_affine(&form),
                None => graph.add(node, dtype),
            }
        });
        moved[self.kernel.root.0 as usize]
    }
}
