//! Counts and other whole sums of the points whose value is between two values of the result, as the difference of two.
//!
//! Those below the upper one less those below the lower one; each is found by sorting, where that pays (see [`super::ranked`]). Only whole
//! numbers are summed so: a small sum of others would be lost in the difference of two large ones. Must not know placements.
//!
//! ```text
//! h: i64[900] = [i: 900 | j: 90000] sum x[j] >= e[i] and x[j] < e[i + 1] as i64
//! h.upper: i64[900] = [i: 900 | j: 90000] sum 1 if x[j] < e[i + 1];   h.lower: i64[900] = [i: 900 | j: 90000] sum 1 if x[j] < e[i]
//! h: i64[900] = [i: 900] where(e[i] <= e[i + 1], h.upper[i] - h.lower[i], 0)
//! ```

use super::ranked::Ranked;
use crate::einsum::{Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, elementwise};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};

/// Returns the program in which points between two values are counted from below.
pub fn from_below(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        Some(Between::of(guarded(statement.kernel)?)?.statements(statement))
    })
}

/// A sum of the points between two values.
struct Between {
    lower: NodeId,
    upper: NodeId,
    /// The comparison of the lower value with the upper one that holds where there may be points between them.
    ordered: Function,
    /// The points below the upper value, and those that are not above the lower one.
    parts: [Kernel; 2],
    kernel: Kernel,
}

/// A comparison of a point with a value: `point function value`.
struct Side {
    place: usize,
    function: Function,
    point: NodeId,
    value: NodeId,
}

impl Between {
    fn of(kernel: Kernel) -> Option<Between> {
        let dtype = kernel.graph.dtype(kernel.root);
        let counts = kernel.reduction == Some(Reduction::Sum) && dtype.is_integer();
        if !counts || kernel.indices.len() >= 128 {
            return None;
        }
        let conditions = conjuncts(&kernel.graph, kernel.guard?);
        let sides = sides(&kernel, &conditions);
        let pairs = sides
            .iter()
            .flat_map(|low| sides.iter().map(move |high| (low, high)));
        let mut pairs = pairs.filter(|(low, high)| {
            let lower = matches!(low.function, Function::Gt | Function::Ge);
            let upper = matches!(high.function, Function::Lt | Function::Le);
            lower && upper && low.point == high.point
        });
        pairs.find_map(|(low, high)| {
            let without = match low.function {
                Function::Ge => Function::Lt,
                _ => Function::Le,
            };
            let rest = (0..conditions.len()).filter(|at| ![low.place, high.place].contains(at));
            let rest: Vec<NodeId> = rest.map(|at| conditions[at]).collect();
            let part = |function: Function, value: NodeId| {
                let mut part = kernel.clone();
                part.guard = None;
                let compared = Node::Apply(function, vec![low.point, value]);
                let compared = part.graph.add(compared, DType::Bool);
                rest.iter().for_each(|condition| part.restrict(*condition));
                part.restrict(compared);
                part.output = vec![dtype];
                Ranked::of(part.clone()).map(|_| part)
            };
            Some(Between {
                // Of `x > a and x < a` the difference would be what is at `a`, taken away.
                ordered: match (low.function, high.function) {
                    (Function::Gt, Function::Lt) => Function::Lt,
                    _ => Function::Le,
                },
                lower: low.value,
                upper: high.value,
                parts: [part(high.function, high.value)?, part(without, low.value)?],
                kernel: kernel.clone(),
            })
        })
    }

    fn statements(self, mut statement: Rewritten<'_>) -> Statement {
        let dtype = self.kernel.graph.dtype(self.kernel.root);
        let all: Vec<usize> = (0..self.kernel.output_rank as usize).collect();
        let mut operands = statement.operands.to_vec();
        let mut whole = elementwise(&self.kernel);
        let (graph, shapes) = (&mut whole.graph, &mut whole.operands);
        let names = ["upper", "lower"];
        let [upper, lower] = [0, 1].map(|number| {
            let part = canonical::statement(self.parts[number].clone(), statement.operands);
            operands.push(statement.add(names[number], part));
            element((&mut *graph, &mut *shapes), &self.kernel, &all, dtype)
        });
        let zero = graph.add(Node::Constant(Scalar::Int(0)), dtype);
        let between = graph.add(Node::Apply(Function::Sub, vec![upper, lower]), dtype);
        let ordered = Node::Apply(self.ordered, vec![self.lower, self.upper]);
        let ordered = graph.add(ordered, DType::Bool);
        whole.root = graph.add(
            Node::Apply(Function::Select, vec![ordered, between, zero]),
            dtype,
        );
        canonical::statement(whole, &operands)
    }
}

/// The comparisons among some conditions, each seen from both of its sides.
fn sides(kernel: &Kernel, conditions: &[NodeId]) -> Vec<Side> {
    let numbered = conditions.iter().enumerate();
    let both = numbered.flat_map(|(place, id)| {
        let (function, point, value) = match kernel.graph.node(*id) {
            Node::Apply(function, sides) if sides.len() == 2 => (*function, sides[0], sides[1]),
            _ => return vec![],
        };
        let turned = match function {
            Function::Lt => Function::Gt,
            Function::Le => Function::Ge,
            Function::Gt => Function::Lt,
            Function::Ge => Function::Le,
            _ => return vec![],
        };
        let side = |function, point, value| Side {
            place,
            function,
            point,
            value,
        };
        vec![side(function, point, value), side(turned, value, point)]
    });
    both.collect()
}
