//! Reductions in which the points of other groups stand for one value.
//!
//! `max[n] where(at[n] == g, x[n], 0)` takes in a 0 for every point that is in another group. That is the greatest value of the group's own points, and
//! 0 if there are any others, which their number says; a sum has the value as often as there are others; a mean is the group's sum over the number of all points, and `any` asks whether there are points.
//! The points are then gone through once, and not once for each group. Must not know placements.
//!
//! ```text
//! y: f32[70] = [g: 70 | n: 900] max where(at[n] == g, x[n], 0)
//! y.own: f32[70] = [g: 70 | n: 900] max x[n] if at[n] == g
//! y.count: i64[70] = [g: 70 | n: 900] sum 1 if at[n] == g
//! y: f32[70] = [g: 70] where(y.count[g] < 900, max(y.own[g], 0), y.own[g])
//! ```

use super::group_values::at_place;
use crate::einsum::{Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, elementwise, may_fault_in, zero};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction, Scalar};

/// Returns the program in which the points of other groups are counted.
pub fn counted(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| match truths(statement.kernel) {
        Some(found) => Some(are_there(found, statement)),
        None => {
            let kernel = statement.kernel;
            let chosen = chosen_last(kernel);
            let others = Others::of(kernel).or_else(|| Others::of(chosen.as_ref()?))?;
            Some(others.statements(statement))
        }
    })
}

/// The kernel with a choice by what is compared with another choice as a choice between two of them, `where(where(c, x, k) == m, a, b)` as
/// `where(c, where(x == m, a, b), where(k == m, a, b))`: gradients of extremes by group ask whether a value is the extreme.
fn chosen_last(kernel: &Kernel) -> Option<Kernel> {
    let mut chosen = kernel.clone();
    let graph = &mut chosen.graph;
    let choice = |graph: &Graph, id: NodeId| match graph.node(id) {
        Node::Apply(Function::Select, parts) => Some([parts[0], parts[1], parts[2]]),
        _ => None,
    };
    let [test, yes, no] = choice(graph, kernel.root)?;
    let Node::Apply(function, sides) = graph.node(test).clone() else {
        return None;
    };
    let [left, right] = sides[..] else {
        return None;
    };
    let at = [left, right].map(|side| choice(graph, side));
    let place = at.iter().position(Option::is_some)?;
    let [condition, value, other] = at[place]?;
    let dtype = graph.dtype(kernel.root);
    let [value, other] = [value, other].map(|of| {
        let mut sides = vec![left, right];
        sides[place] = of;
        let test = graph.add(Node::Apply(function, sides), DType::Bool);
        graph.add(Node::Apply(Function::Select, vec![test, yes, no]), dtype)
    });
    let root = Node::Apply(Function::Select, vec![condition, value, other]);
    chosen.root = graph.add(root, dtype);
    Some(chosen)
}

/// How many points of a group meet the condition of `any`, or do not meet that of `all`.
fn truths(kernel: &Kernel) -> Option<Kernel> {
    // A point with the other truth value changes nothing.
    let decides = match kernel.reduction? {
        Reduction::Any => Scalar::Bool(true),
        Reduction::All => Scalar::Bool(false),
        _ => return None,
    };
    let mut found = guarded(kernel).filter(|_| kernel.finish)?;
    (*found.graph.node(found.root) == Node::Constant(decides)).then_some(())?;
    number(&mut found);
    is_of_groups(&found).then_some(found)
}

/// The statement that there are such points, or for `all` that there are none.
fn are_there(found: Kernel, mut statement: Rewritten<'_>) -> Statement {
    let kernel = statement.kernel;
    let all: Vec<usize> = (0..kernel.output_rank as usize).collect();
    let count = statement.add("count", canonical::statement(found, statement.operands));
    let mut whole = elementwise(kernel);
    let (graph, operands) = (&mut whole.graph, &mut whole.operands);
    let number = element((&mut *graph, operands), kernel, &all, DType::I64);
    let none = graph.add(Node::Constant(Scalar::Int(0)), DType::I64);
    let function = match kernel.reduction {
        Some(Reduction::Any) => Function::Gt,
        _ => Function::Eq,
    };
    whole.root = graph.add(Node::Apply(function, vec![number, none]), DType::Bool);
    canonical::statement(whole, &statement.operands_and(count))
}

/// Makes a reduction one of the number of points.
fn number(kernel: &mut Kernel) {
    kernel.root = kernel.graph.add(Node::Constant(Scalar::Int(1)), DType::I64);
    (kernel.reduction, kernel.output) = (Some(Reduction::Sum), vec![DType::I64]);
}

/// Returns whether the points of each group are gone through alone, with what they read of their group at their places.
fn is_of_groups(kernel: &Kernel) -> bool {
    !kernel.passed_over().is_empty() || at_place(kernel).is_some()
}

/// A reduction whose value is chosen by whether a point is in a group.
struct Others<'a> {
    kernel: &'a Kernel,
    /// The condition that it is, the value then, and the value of all others.
    inside: NodeId,
    value: NodeId,
    outside: NodeId,
    /// How many points there are for each element of the result.
    points: i64,
}

impl Others<'_> {
    fn of(kernel: &Kernel) -> Option<Others<'_>> {
        let few = kernel.indices.len() < 128;
        if !few || kernel.guard.is_some() || !kernel.finish {
            return None;
        }
        let Node::Apply(Function::Select, parts) = kernel.graph.node(kernel.root) else {
            return None;
        };
        let (inside, value, outside) = (parts[0], parts[1], parts[2]);
        let depends = kernel.graph.dependencies();
        let rank = kernel.output_rank;
        let reduced = kernel.indices.get(rank as usize..)?.iter();
        let points = reduced.fold(1u64, |all, index| all.saturating_mul(index.extent));
        let takes = match kernel.reduction? {
            Reduction::Max | Reduction::Min => depends[outside.0 as usize] >> rank == 0,
            Reduction::Mean => is_zero(kernel, outside),
            Reduction::Sum => {
                let dtype = kernel.graph.dtype(kernel.root);
                let nothing = Node::Constant(zero(dtype));
                let adds = *kernel.graph.node(outside) != nothing;
                adds && depends[outside.0 as usize] >> rank == 0 && kernel.output == [dtype]
            }
            _ => false,
        };
        // The value of a point is computed where it is in a group, as before.
        let may_stop = [inside, outside].map(|part| may_fault_in(kernel, part));
        if !takes || points == 0 || may_stop.contains(&true) {
            return None;
        }
        let others = Others {
            kernel,
            inside,
            value,
            outside,
            points: i64::try_from(points).ok()?,
        };
        is_of_groups(&others.own()).then_some(others)
    }

    /// The reduction of the points of a group.
    fn own(&self) -> Kernel {
        let mean = self.kernel.reduction == Some(Reduction::Mean);
        let dtype = self.kernel.graph.dtype(self.value);
        Kernel {
            root: self.value,
            guard: Some(self.inside),
            reduction: match mean {
                true => Some(Reduction::Sum),
                false => self.kernel.reduction,
            },
            output: vec![dtype],
            ..self.kernel.clone()
        }
    }

    fn statements(self, mut statement: Rewritten<'_>) -> Statement {
        let kernel = self.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        let all: Vec<usize> = (0..kernel.output_rank as usize).collect();
        let own = statement.add("own", canonical::statement(self.own(), statement.operands));
        let mut operands = statement.operands_and(own);
        let mut whole = elementwise(kernel);
        let (graph, shapes) = (&mut whole.graph, &mut whole.operands);
        let own = element((&mut *graph, &mut *shapes), kernel, &all, dtype);
        whole.root = match kernel.reduction {
            Some(Reduction::Mean) => {
                let points = Scalar::Float(self.points as f64);
                let points = graph.add(Node::Constant(points), dtype);
                graph.add(Node::Apply(Function::Div, vec![own, points]), dtype)
            }
            reduction => {
                let mut count = self.own();
                number(&mut count);
                let count = canonical::statement(count, statement.operands);
                operands.push(statement.add("count", count));
                let count = element((&mut *graph, &mut *shapes), kernel, &all, DType::I64);
                let points = graph.add(Node::Constant(Scalar::Int(self.points)), DType::I64);
                let fewer = Node::Apply(Function::Lt, vec![count, points]);
                let fewer = graph.add(fewer, DType::Bool);
                let mut both =
                    |function, a, b, dtype| graph.add(Node::Apply(function, vec![a, b]), dtype);
                let both = match reduction {
                    Some(Reduction::Max) => both(Function::Max, own, self.outside, dtype),
                    Some(Reduction::Sum) => {
                        let others = both(Function::Sub, points, count, DType::I64);
                        let others = graph.add(Node::Convert(others), dtype);
                        let others = Node::Apply(Function::Mul, vec![others, self.outside]);
                        let others = graph.add(others, dtype);
                        graph.add(Node::Apply(Function::Add, vec![own, others]), dtype)
                    }
                    _ => both(Function::Min, own, self.outside, dtype),
                };
                let chosen = Node::Apply(Function::Select, vec![fewer, both, own]);
                graph.add(chosen, dtype)
            }
        };
        canonical::statement(whole, &operands)
    }
}

fn is_zero(kernel: &Kernel, node: NodeId) -> bool {
    matches!(kernel.graph.node(node), Node::Constant(Scalar::Float(x)) if *x == 0.0)
}
