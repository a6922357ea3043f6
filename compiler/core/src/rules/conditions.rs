//! Reductions of chosen values as reductions over the points that are chosen.
//!
//! A sum leaves out the points at which its guard is false, and so it does with those at which `where(c, x, 0)` chooses the 0. But a guard may give an
//! index a value, or compare it with an index of the result, and then the loops pass over all its other values ([`Kernel::passed_over`]); or the
//! terms are a product of matrices, of which one has zeros. Only these kernels are rewritten: what a mask leaves of a row is better chosen in the
//! row. Must not know placements.
//!
//! ```text
//! [k: 70 | n: 900] sum where(label[n] == k, x[n], 0.0)   ->   [k: 70 | n: 900] sum x[n] if label[n] == k
//! [k: 70 | n: 900] sum label[n] == k as i64              ->   [k: 70 | n: 900] sum 1 if label[n] == k
//! [k: 70 | n: 900] sum (label[n] == k as i64) * y[n]     ->   [k: 70 | n: 900] sum y[n] if label[n] == k
//! [i: 70, j: 70 | k: 70] sum where(k <= i, A[i, k] * B[k, j], 0.0)   ->   [i: 70, j: 70 | k: 70] sum A[i, k] * B[k, j] if k <= i
//! ```

use super::{may_fault_in, neutral};
use crate::einsum::{Definition, Program, canonical};
use ein_plan::schedule::matmul::is_masked_product;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction, Scalar};

/// Returns the program with its conditions where loops make use of them.
pub fn conditioned(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(better) = guarded(kernel)
            && better != *kernel
            && (better.passed_over().len() > kernel.passed_over().len()
                || is_masked_product(&better))
        {
            (*kernel, *operands) = canonical::statement(better, operands);
        }
    }
    program
}

/// The kernel with its conditions in the guard; none if it reduces nothing.
pub(crate) fn guarded(kernel: &Kernel) -> Option<Kernel> {
    let reduction = kernel.reduction?;
    let mut guarded = kernel.clone();
    guarded.guard = None;
    for condition in conditions(kernel) {
        guarded.restrict(condition);
    }
    while let Some((value, condition)) = chosen(&mut guarded, reduction) {
        // A condition further in is only looked at where those before it hold.
        if guarded.guard.is_some() && may_fault_in(&guarded, condition) {
            break;
        }
        guarded.root = value;
        guarded.restrict(condition);
    }
    Some(guarded)
}

/// The conditions of a guard, those first that are looked at first.
pub(crate) fn conditions(kernel: &Kernel) -> Vec<NodeId> {
    let (mut all, mut open) = (vec![], Vec::from_iter(kernel.guard));
    while let Some(condition) = open.pop() {
        match both(kernel, condition) {
            Some((first, second)) => open.extend([second, first]),
            None => all.push(condition),
        }
    }
    all
}

/// The two conditions of `and(a, b)`, or of `where(a, b, false)`: a guard is evaluated as a whole, so that `a` may hide no fault of `b`.
fn both(kernel: &Kernel, condition: NodeId) -> Option<(NodeId, NodeId)> {
    match kernel.graph.node(condition) {
        Node::Apply(Function::And, sides) => Some((sides[0], sides[1])),
        Node::Apply(Function::Select, parts) => {
            let never = Node::Constant(Scalar::Bool(false));
            let is_both = *kernel.graph.node(parts[2]) == never;
            (is_both && !may_fault_in(kernel, parts[1])).then_some((parts[0], parts[1]))
        }
        _ => None,
    }
}

/// The value that is reduced, and the condition: where it does not hold, the kernel's value leaves the reduction as it is.
fn chosen(kernel: &mut Kernel, reduction: Reduction) -> Option<(NodeId, NodeId)> {
    let root = kernel.root;
    match kernel.graph.node(root) {
        Node::Constant(_) => None,
        // These ask for a point at which a condition holds, or at which it does not.
        _ if matches!(reduction, Reduction::Any | Reduction::All) => {
            let is_any = reduction == Reduction::Any;
            let condition = match is_any {
                true => root,
                false => negated(kernel, root),
            };
            let found = Node::Constant(Scalar::Bool(is_any));
            Some((kernel.graph.add(found, DType::Bool), condition))
        }
        Node::Apply(Function::Mul, _) if reduction == Reduction::Sum => {
            let product = chosen_factor(kernel)?;
            let mut others = product.others.iter();
            let is_nothing =
                others.all(|other| is_finite(kernel, *other) && !may_fault_in(kernel, *other));
            is_nothing.then_some((product.value, product.condition))
        }
        // 0 over a number is 0.
        Node::Apply(Function::Div, sides) if reduction == Reduction::Sum => {
            let (over, under) = (sides[0], sides[1]);
            let is_number = matches!(kernel.graph.node(under), Node::Constant(Scalar::Float(x)) if *x != 0.0 && !x.is_nan());
            if !is_number {
                return None;
            }
            kernel.root = over;
            let found = chosen(kernel, reduction);
            kernel.root = root;
            let (value, condition) = found?;
            let dtype = kernel.graph.dtype(root);
            let value = Node::Apply(Function::Div, vec![value, under]);
            Some((kernel.graph.add(value, dtype), condition))
        }
        _ => of_choice(kernel, root, reduction),
    }
}

/// The value that a node chooses, and the condition: where it does not hold, the node's value leaves the reduction as it is.
fn of_choice(kernel: &mut Kernel, node: NodeId, reduction: Reduction) -> Option<(NodeId, NodeId)> {
    let graph = &mut kernel.graph;
    let dtype = graph.dtype(node);
    match graph.node(node).clone() {
        Node::Apply(Function::Select, parts) => {
            let neutral = Node::Constant(neutral(reduction, dtype)?);
            if *graph.node(parts[2]) == neutral {
                Some((parts[1], parts[0]))
            } else if *graph.node(parts[1]) == neutral {
                Some((parts[2], negated(kernel, parts[0])))
            } else {
                None
            }
        }
        Node::Convert(truth)
            if graph.dtype(truth) == DType::Bool && reduction == Reduction::Sum =>
        {
            Some((graph.add(Node::Constant(one(dtype)), dtype), truth))
        }
        _ => None,
    }
}

/// A product of which one factor is 0 where a condition does not hold.
pub(crate) struct ChosenFactor {
    pub(crate) condition: NodeId,
    /// The product where the condition holds.
    pub(crate) value: NodeId,
    /// The other factors: where these are finite and the condition does not hold, the product is 0.
    pub(crate) others: Vec<NodeId>,
}

/// The value of a kernel as such a product, if it is one.
pub(crate) fn chosen_factor(kernel: &mut Kernel) -> Option<ChosenFactor> {
    let Node::Apply(Function::Mul, sides) = kernel.graph.node(kernel.root).clone() else {
        return None;
    };
    factor(kernel, &sides)
}

fn factor(kernel: &mut Kernel, sides: &[NodeId]) -> Option<ChosenFactor> {
    (0..2).find_map(|at| {
        let (side, other) = (sides[at], sides[1 - at]);
        let mut product = match kernel.graph.node(side).clone() {
            Node::Apply(Function::Mul, sides) => factor(kernel, &sides)?,
            _ => {
                let (value, condition) = of_choice(kernel, side, Reduction::Sum)?;
                ChosenFactor {
                    condition,
                    value,
                    others: vec![],
                }
            }
        };
        let graph = &mut kernel.graph;
        let dtype = graph.dtype(side);
        product.value = match *graph.node(product.value) == Node::Constant(one(dtype)) {
            true => other,
            false => {
                let mut sides = [product.value; 2];
                sides[1 - at] = other;
                graph.add(Node::Apply(Function::Mul, sides.to_vec()), dtype)
            }
        };
        product.others.push(other);
        Some(product)
    })
}

/// Returns true if a value is known to be neither infinite nor NaN.
pub(crate) fn is_finite(kernel: &Kernel, node: NodeId) -> bool {
    let graph = &kernel.graph;
    let dtype = graph.dtype(node);
    match graph.node(node) {
        _ if !dtype.is_float() => true,
        Node::Constant(value) => value.as_f64().is_finite(),
        // The greatest whole numbers are beyond the range of f16.
        Node::Convert(from) => match graph.dtype(*from) {
            DType::Bool => true,
            of => !of.is_float() && matches!(dtype, DType::F32 | DType::F64),
        },
        Node::Apply(Function::Select, parts) => {
            parts[1..].iter().all(|part| is_finite(kernel, *part))
        }
        _ => false,
    }
}

/// The one of a type.
pub(crate) fn one(dtype: DType) -> Scalar {
    match dtype.is_float() {
        true => Scalar::Float(1.0),
        false => Scalar::Int(1),
    }
}

/// A node that is true where a condition is false.
fn negated(kernel: &mut Kernel, condition: NodeId) -> NodeId {
    use Function as F;
    let graph = &mut kernel.graph;
    let opposite = match graph.node(condition) {
        Node::Apply(F::Not, of) => return of[0],
        Node::Apply(F::Ne, sides) => Some((F::Eq, sides.clone())),
        Node::Apply(F::Or, sides) => {
            let sides = sides.clone().into_iter();
            let sides = sides.map(|side| negated(kernel, side)).collect();
            return kernel.graph.add(Node::Apply(F::And, sides), DType::Bool);
        }
        // Of floats neither may hold.
        Node::Apply(function, sides) if !graph.dtype(sides[0]).is_float() => {
            let opposite = match function {
                F::Lt => Some(F::Ge),
                F::Le => Some(F::Gt),
                F::Gt => Some(F::Le),
                F::Ge => Some(F::Lt),
                F::Eq => Some(F::Ne),
                _ => None,
            };
            opposite.map(|function| (function, sides.clone()))
        }
        _ => None,
    };
    let (function, sides) = opposite.unwrap_or((F::Not, vec![condition]));
    graph.add(Node::Apply(function, sides), DType::Bool)
}
