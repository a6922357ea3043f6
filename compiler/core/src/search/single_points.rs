//! Updates of single elements of a state, written so that the state is changed in place.
//!
//! A round that gives a state back but for elements at places which scalars name changes those alone ([`Kernel::update`]). Here a place that is an
//! expression gets a name, further conditions go to the new value, and an element that something is added to becomes one that is replaced. Must
//! not know placements.
//!
//! ```text
//! s.next: f64[900] = [i: 900] where(and(i == t + 1, on[i]), 0, s[i])
//! s.next.at: i64[] = [] t + 1
//! s.next: f64[900] = [i: 900] where(i == s.next.at[], where(on[i], 0, s[i]), s[i])
//! ```

use crate::einsum::{Definition, Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::{element, may_fault_in};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Scalar};

/// Returns the program in which elements of states are changed at places that have names.
pub fn named(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        Some(Changes::of(&statement)?.statement(statement))
    })
}

/// A kernel that gives an operand back but for single points.
struct Changes {
    kernel: Kernel,
    /// The first one decides.
    cases: Vec<Case>,
    /// The element of the operand.
    own: NodeId,
}

/// The points at which an element is another one.
struct Case {
    /// For each index that has one place: its node, and the place.
    places: Vec<(NodeId, NodeId)>,
    value: NodeId,
}

impl Changes {
    fn of(statement: &Rewritten<'_>) -> Option<Changes> {
        let kernel = statement.kernel;
        let plain = kernel.reduction.is_none() && kernel.guard.is_none();
        let few = kernel.output.len() == 1 && (1..128).contains(&kernel.indices.len());
        if !plain || !few || kernel.update().is_some() {
            return None;
        }
        let mut kernel = kernel.clone();
        let (mut cases, mut rest) = (vec![], kernel.root);
        while kernel.own_element(rest).is_none() {
            let (condition, value, others) = choice(&mut kernel, rest)?;
            cases.push(Case::of(&mut kernel, condition, value, others)?);
            rest = others;
        }
        let operand = kernel.own_element(rest)?;
        let state = statement.operand(operand);
        let carried = matches!(state.definition, Definition::Loop(_));
        (carried && !cases.is_empty()).then_some(Changes {
            kernel,
            cases,
            own: rest,
        })
    }

    fn statement(self, mut statement: Rewritten<'_>) -> Statement {
        let mut kernel = self.kernel;
        let mut operands = statement.operands.to_vec();
        let mut root = self.own;
        for case in self.cases.iter().rev() {
            let mut at_point: Option<NodeId> = None;
            for (index, place) in &case.places {
                let mut place = *place;
                if kernel.position(place).is_none() {
                    let mut named = kernel.clone();
                    named.indices.clear();
                    (named.output, named.output_rank) = (vec![DType::I64], 0);
                    named.root = place;
                    let named = canonical::statement(named, &operands);
                    operands.push(statement.add("at", named));
                    let (graph, shapes) = (&mut kernel.graph, &mut kernel.operands);
                    place = element((graph, shapes), statement.kernel, &[], DType::I64);
                }
                let is_there = Node::Apply(Function::Eq, vec![*index, place]);
                let is_there = kernel.graph.add(is_there, DType::Bool);
                at_point = Some(match at_point {
                    None => is_there,
                    Some(others) => {
                        let both = Node::Apply(Function::And, vec![others, is_there]);
                        kernel.graph.add(both, DType::Bool)
                    }
                });
            }
            let at_point = at_point.expect("a case has a place");
            let dtype = kernel.graph.dtype(root);
            let chosen = Node::Apply(Function::Select, vec![at_point, case.value, root]);
            root = kernel.graph.add(chosen, dtype);
        }
        kernel.root = root;
        canonical::statement(kernel, &operands)
    }
}

impl Case {
    /// The points at which all of a condition may hold; there the value is `value` if it does, else `others`.
    fn of(kernel: &mut Kernel, condition: NodeId, value: NodeId, others: NodeId) -> Option<Case> {
        let depends = kernel.graph.dependencies();
        let (mut places, mut further) = (vec![], vec![]);
        // All of it is evaluated for every element. Moved, it is not: it must be none that may stop the run.
        if may_fault_in(kernel, condition) {
            return None;
        }
        for part in conjuncts(&kernel.graph, condition) {
            let place = place(kernel, part).filter(|(index, at)| {
                depends[at.0 as usize] == 0 && places.iter().all(|(known, _)| known != index)
            });
            match place {
                Some(place) => places.push(place),
                None => further.push(part),
            }
        }
        if places.is_empty() {
            return None;
        }
        let dtype = kernel.graph.dtype(value);
        let value = further.into_iter().rev().fold(value, |value, condition| {
            let chosen = Node::Apply(Function::Select, vec![condition, value, others]);
            kernel.graph.add(chosen, dtype)
        });
        Some(Case { places, value })
    }
}

/// A node as a condition, the value where it holds, and the value elsewhere.
fn choice(kernel: &mut Kernel, node: NodeId) -> Option<(NodeId, NodeId, NodeId)> {
    let graph = &mut kernel.graph;
    let dtype = graph.dtype(node);
    match graph.node(node).clone() {
        Node::Apply(Function::Select, parts) => {
            let (condition, first, second) = (parts[0], parts[1], parts[2]);
            Some(match graph.node(condition).clone() {
                Node::Apply(Function::Ne, sides) => {
                    let equal = graph.add(Node::Apply(Function::Eq, sides), DType::Bool);
                    (equal, second, first)
                }
                Node::Apply(Function::Not, of) => (of[0], second, first),
                _ => (condition, first, second),
            })
        }
        // Where nothing is added the element stays.
        Node::Apply(Function::Add, sides) => {
            let both = [(sides[0], sides[1]), (sides[1], sides[0])];
            both.into_iter().find_map(|(own, more)| {
                kernel.own_element(own)?;
                let (condition, more) = added(kernel, more)?;
                let sum = Node::Apply(Function::Add, vec![own, more]);
                Some((condition, kernel.graph.add(sum, dtype), own))
            })
        }
        _ => None,
    }
}

/// A number that is 0 but where a condition holds: the condition, and the number there.
fn added(kernel: &mut Kernel, node: NodeId) -> Option<(NodeId, NodeId)> {
    let graph = &mut kernel.graph;
    let dtype = graph.dtype(node);
    let is_zero = |id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Int(n)) => *n == 0,
        Node::Constant(Scalar::Float(x)) => *x == 0.0,
        _ => false,
    };
    match graph.node(node).clone() {
        Node::Apply(Function::Select, parts) => is_zero(parts[2]).then_some((parts[0], parts[1])),
        Node::Convert(condition) if graph.dtype(condition) == DType::Bool => {
            let one = match dtype.is_float() {
                true => Scalar::Float(1.0),
                false => Scalar::Int(1),
            };
            Some((condition, graph.add(Node::Constant(one), dtype)))
        }
        _ => None,
    }
}

/// The index and the place of `i == place`.
fn place(kernel: &Kernel, condition: NodeId) -> Option<(NodeId, NodeId)> {
    let Node::Apply(Function::Eq, sides) = kernel.graph.node(condition) else {
        return None;
    };
    let index = |id: NodeId| kernel.graph.as_index(id).is_some();
    let both = [(sides[0], sides[1]), (sides[1], sides[0])];
    both.into_iter().find(|(at, _)| index(*at))
}
