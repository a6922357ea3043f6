//! Reductions of the points whose value is below one of the result, or above it, by sorting.
//!
//! A count of all that is less than a value looks at every point for every value. In the order of all values, points and those of the result
//! together, it is a running reduction of the points. NaN stands last there: it is left out of the points, and a result that is compared with
//! it is that over nothing. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: i64[900] = [i: 900 | j: 900] sum x[j] < v[i] as i64
//! y.all: f32[1800] = v, then x;   y.order = argsort(y.all);   y.part: 1 where the order has a point, else 0
//! y.below: i64[1800] = [p: 1800 | q: 1800] sum y.part[q] if q <= p;   y: i64[900] = [i: 900 | p: 1800] sum y.below[p] if i == y.order[p]
//! ```

use crate::einsum::{Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{may_fault, neutral, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};

/// Pairs for each value that is sorted, at least: so many are looked at in the time in which one is sorted.
const LEAST: u64 = 512;

/// Returns the program in which points are sorted, where looking at every pair takes longer.
pub fn sorted(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        Some(Ranked::of(guarded(statement.kernel)?)?.statements(statement))
    })
}

/// A reduction of the points on one side of a value.
pub(super) struct Ranked {
    kernel: Kernel,
    reduction: Reduction,
    /// The value of the reduction over nothing.
    nothing: Scalar,
    /// A number of the type of the values that are compared.
    outside: Scalar,
    /// The value of a point, and what it is compared with.
    point: NodeId,
    value: NodeId,
    /// True if points below are reduced, false if it is those above.
    below: bool,
    /// True if points that are equal are reduced as well.
    equal: bool,
    /// The other conditions, which points alone meet.
    rest: Vec<NodeId>,
    /// The output indices that points depend on, the one that they do not depend on, and the reduced one.
    batch: Vec<usize>,
    output: usize,
    reduced: usize,
}

impl Ranked {
    /// Of a kernel with its conditions in the guard; none if it is not sorted for.
    pub(super) fn of(kernel: Kernel) -> Option<Ranked> {
        let reduction = kernel.reduction?;
        let takes = matches!(
            reduction,
            Reduction::Sum | Reduction::Prod | Reduction::Max | Reduction::Min
        );
        let dtype = kernel.graph.dtype(kernel.root);
        let nothing = neutral(reduction, dtype).filter(|_| takes && kernel.finish)?;
        let rank = kernel.output_rank as usize;
        if kernel.indices.len() != rank + 1 || may_fault(&kernel) {
            return None;
        }
        if kernel.scanned().is_some() || !kernel.passed_over().is_empty() {
            return None;
        }
        let depends = kernel.graph.dependencies();
        let of = |id: NodeId| depends[id.0 as usize];
        let conditions = conjuncts(&kernel.graph, kernel.guard?);
        let all = (1u128 << rank) - 1;
        let found = conditions.iter().enumerate().find_map(|(at, id)| {
            let Node::Apply(function, sides) = kernel.graph.node(*id) else {
                return None;
            };
            let (below, equal) = match function {
                Function::Lt => (true, false),
                Function::Le => (true, true),
                Function::Gt => (false, false),
                Function::Ge => (false, true),
                _ => return None,
            };
            let mut rest = conditions.clone();
            rest.remove(at);
            let both = [(sides[0], sides[1], below), (sides[1], sides[0], !below)];
            both.into_iter().find_map(|(point, value, below)| {
                let held = rest
                    .iter()
                    .fold(of(point) | of(kernel.root), |held, id| held | of(*id));
                let own = of(value) & !held;
                let fits = of(point) >> rank & 1 == 1
                    && of(value) >> rank == 0
                    && own.count_ones() == 1
                    && (held | of(value)) & all == all;
                let output = own.trailing_zeros() as usize;
                fits.then(|| (point, value, (below, equal), rest.clone(), output))
            })
        });
        let (point, value, (below, equal), rest, output) = found?;
        let extent = |i: usize| kernel.indices[i].extent;
        let (points, values) = (extent(rank), extent(output));
        let sorted = points.saturating_add(values).saturating_mul(LEAST);
        if points.saturating_mul(values) < sorted {
            return None;
        }
        Some(Ranked {
            reduction,
            nothing,
            outside: neutral(Reduction::Sum, kernel.graph.dtype(point))?,
            point,
            value,
            below,
            equal,
            rest,
            batch: (0..rank).filter(|i| *i != output).collect(),
            output,
            reduced: rank,
            kernel,
        })
    }

    /// The statement that reads the sorted points, which are added to the program.
    fn statements(&self, mut statement: Rewritten<'_>) -> Statement {
        let operands = statement.operands;
        let mut add = |part: &str, (kernel, operands): Statement| {
            statement.add(part, canonical::statement(kernel, &operands))
        };
        let of = |id: NodeId, index: usize| {
            let values = self.values(self.kernel.clone(), id, index);
            (values, operands.to_vec())
        };
        let extent = |i: usize| self.kernel.indices[i].extent;
        let (points, values) = (extent(self.reduced), extent(self.output));
        let all = points + values;
        let graph = &self.kernel.graph;
        let (compared, dtype) = (graph.dtype(self.point), graph.dtype(self.kernel.root));
        let point = add("point", of(self.point, self.reduced));
        let value = add("value", of(self.value, self.output));
        let weight = add("weight", (self.weights(), operands.to_vec()));
        // Of equal ones, what the walk takes in comes first.
        let points_first = self.below == self.equal;
        let (first, second, begin) = match points_first {
            true => ([point, value], [points, values], points),
            false => ([value, point], [values, points], values),
        };
        let behind = format!(" - {begin}");
        let (of_point, of_value) = match points_first {
            true => ("", behind.as_str()),
            false => (behind.as_str(), ""),
        };
        let Texts {
            shape,
            indices,
            places,
        } = self.texts();
        let outside = number(self.outside, compared);
        let nothing = number(self.nothing, dtype);
        let [front, back] = second;
        let text = format!(
            "({compared}[{shape}{front}], {compared}[{shape}{back}]) [{indices}p: {all}] {compared} = \
             where(p < {begin}, a0[{places}p] else {outside}, a1[{places}p - {begin}] else {outside})"
        );
        let list = add("all", (parsed(&text), first.to_vec()));
        let text = format!(
            "({compared}[{shape}{all}]) [{indices}p: {all}] i64 = argsort(a0[{places}:1], p)"
        );
        let order = add("order", (parsed(&text), vec![list]));
        let text = format!(
            "({dtype}[{shape}{points}], i64[{shape}{all}]) [{indices}p: {all}] {dtype} = \
             a0[{places}a1[{places}p]{of_point}] else {nothing}"
        );
        let part = add("part", (parsed(&text), vec![weight, order]));
        let (name, way) = (self.reduction.name(), if self.below { "<=" } else { ">=" });
        let text = format!(
            "({dtype}[{shape}{all}]) [{indices}p: {all} | q: {all}] {dtype} = {name} a0[{places}q] if q {way} p"
        );
        let side = if self.below { "below" } else { "above" };
        let running = add(side, (parsed(&text), vec![part]));
        let text = format!(
            "({dtype}[{shape}{all}], i64[{shape}{all}]) [{indices}i: {values} | p: {all}] {dtype} = \
             sum a0[{places}p] if i == a1[{places}p]{of_value}"
        );
        let found = add("found", (parsed(&text), vec![running, order]));
        canonical::statement(self.result(compared), &[found, value])
    }

    /// A node for every value of an index, as a kernel.
    fn values(&self, mut values: Kernel, id: NodeId, index: usize) -> Kernel {
        (values.guard, values.reduction) = (None, None);
        values.root = id;
        values.output = vec![values.graph.dtype(id)];
        values.output_rank = self.batch.len() as u32 + 1;
        let own: Vec<usize> = self.batch.iter().copied().chain([index]).collect();
        over(values, &self.kernel, &own)
    }

    /// The number that each point gives to the reduction: that over nothing, where a condition fails or the point is NaN.
    fn weights(&self) -> Kernel {
        let mut weights = self.kernel.clone();
        let graph = &mut weights.graph;
        let dtype = graph.dtype(weights.root);
        let mut conditions = self.rest.clone();
        if graph.dtype(self.point).is_float() {
            let is_number = Node::Apply(Function::Eq, vec![self.point; 2]);
            conditions.push(graph.add(is_number, DType::Bool));
        }
        let nothing = graph.add(Node::Constant(self.nothing), dtype);
        let root = conditions
            .into_iter()
            .fold(weights.root, |weight, condition| {
                let choice = Node::Apply(Function::Select, vec![condition, weight, nothing]);
                graph.add(choice, dtype)
            });
        self.values(weights, root, self.reduced)
    }

    /// The result, of what was found for each value.
    fn result(&self, compared: DType) -> Kernel {
        let dtype = self.kernel.graph.dtype(self.kernel.root);
        let names: Vec<String> = (0..self.reduced).map(|i| format!("x{i}")).collect();
        let output = self.kernel.indices[..self.reduced].iter().zip(&names);
        let output: Vec<String> = output
            .map(|(index, name)| format!("{name}: {}", index.extent))
            .collect();
        let own: Vec<usize> = self.batch.iter().copied().chain([self.output]).collect();
        let places: Vec<&str> = own.iter().map(|i| names[*i].as_str()).collect();
        let shape: Vec<String> = (own.iter())
            .map(|i| self.kernel.indices[*i].extent.to_string())
            .collect();
        let (places, shape) = (places.join(", "), shape.join(", "));
        let root = match compared.is_float() {
            true => format!(
                "where(a1[{places}] == a1[{places}], a0[{places}], {})",
                number(self.nothing, dtype)
            ),
            false => format!("a0[{places}]"),
        };
        let mut result = parsed(&format!(
            "({dtype}[{shape}], {compared}[{shape}]) [{}] {dtype} = {root}",
            output.join(", ")
        ));
        result.output.clone_from(&self.kernel.output);
        result
    }

    fn texts(&self) -> Texts {
        let mut texts = Texts::default();
        for i in &self.batch {
            let extent = self.kernel.indices[*i].extent;
            texts.shape += &format!("{extent}, ");
            texts.indices += &format!("b{i}: {extent}, ");
            texts.places += &format!("b{i}, ");
        }
        texts
    }
}

/// The indices that all statements have, as text: their extents, their declarations, and as positions.
#[derive(Default)]
struct Texts {
    shape: String,
    indices: String,
    places: String,
}

fn parsed(text: &str) -> Kernel {
    text.parse().expect("the text of a kernel")
}

/// A number as kernels have it.
fn number(value: Scalar, dtype: DType) -> String {
    match (value, dtype) {
        (Scalar::Float(x), DType::F32) => format!("{x:?}"),
        (Scalar::Float(x), _) => format!("{x:?}_{dtype}"),
        (Scalar::Int(n), DType::I64) => n.to_string(),
        (Scalar::Int(n), _) => format!("{n}_{dtype}"),
        (Scalar::Bool(truth), _) => truth.to_string(),
    }
}
