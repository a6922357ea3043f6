//! Counts of points at which two conditions hold, and whether there is such a point, as products of matrices of truths; and products of
//! matrices of narrow whole numbers, as `whole_products` finds them, in floats.
//!
//! `count[n] (a[n, i] and b[n, j])` looks at every point for each pair. As numbers, the truths of `a` and of `b` are matrices, and the count is their
//! product. In f64 that is exact for as many points as there can be. `any[n] (a[n, i] and b[n, j])` asks only if the product is more than 0, for
//! which f32 is enough; `all[n] (a[n, i] or b[n, j])` asks if no point has neither. Must not know placements.
//!
//! ```text
//! y: i64[9, 9] = [i: 9, j: 9 | n: 90] sum 1 if and(x[n, i] > 0, x[n, j] > 0)
//! y.product: f64[9, 9] = [i: 9, j: 9 | n: 90] sum (x[n, i] > 0 as f64) * (x[n, j] > 0 as f64);  y: i64[9, 9] = [i: 9, j: 9] y.product[i, j] as i64
//! ```

use super::whole_products;
use crate::einsum::nodes::read;
use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, elementwise, may_fault, values_of_bits};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction, Scalar};

/// The fewest values of the indices that one of the conditions alone depends on.
const LEAST: u64 = 4;

/// Returns the program in which such counts, questions and products are products of floats.
pub fn multiplied(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let product =
            product(statement.kernel).or_else(|| whole_products::product(statement.kernel))?;
        let truth = product.graph.dtype(product.root);
        let product = canonical::statement(product, statement.operands);
        let product = statement.add("product", product);
        let kernel = statement.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        let all: Vec<usize> = (0..kernel.output_rank as usize).collect();
        let mut count = elementwise(kernel);
        let (graph, operands) = (&mut count.graph, &mut count.operands);
        let found = element((&mut *graph, operands), kernel, &all, truth);
        let compared = |graph: &mut Graph, function| {
            let none = graph.add(Node::Constant(Scalar::Float(0.0)), truth);
            graph.add(Node::Apply(function, vec![found, none]), DType::Bool)
        };
        count.root = match kernel.reduction {
            Some(Reduction::Any) => compared(graph, Function::Gt),
            Some(Reduction::All) => compared(graph, Function::Eq),
            _ if dtype == truth => found,
            // Only whole numbers wrap.
            _ if dtype == DType::I32 => {
                let whole = graph.add(Node::Convert(found), DType::I64);
                graph.add(Node::Convert(whole), dtype)
            }
            _ => graph.add(Node::Convert(found), dtype),
        };
        Some(canonical::statement(
            count,
            &statement.operands_and(product),
        ))
    })
}

/// The product of the truths of two conditions.
fn product(kernel: &Kernel) -> Option<Kernel> {
    let dtype = kernel.graph.dtype(kernel.root);
    let plain = kernel.finish && kernel.output == [dtype] && kernel.indices.len() < 128;
    if !plain || may_fault(kernel) {
        return None;
    }
    let mut product = guarded(kernel)?;
    // For `all`, those points are counted at which its condition does not hold.
    let counts = match product.graph.node(product.root) {
        Node::Constant(Scalar::Int(one)) => *one == 1,
        Node::Constant(Scalar::Float(one)) => *one == 1.0,
        Node::Constant(Scalar::Bool(holds)) => *holds == (kernel.reduction == Some(Reduction::Any)),
        _ => false,
    };
    let guard = product.guard.filter(|_| counts)?;
    if !product.passed_over().is_empty() || product.scanned().is_some() {
        return None;
    }
    // A count that is more than 0 stays so in f32, however it is rounded.
    let truth = match kernel.reduction? {
        Reduction::Sum => DType::F64,
        Reduction::Any | Reduction::All => DType::F32,
        _ => return None,
    };
    let graph = &product.graph;
    let depends = graph.dependencies();
    let output = (1u128 << product.output_rank) - 1;
    let of = |node: NodeId| depends[node.0 as usize] & output;
    let conditions = conjuncts(graph, guard);
    let all = |side: &[NodeId]| side.iter().fold(0, |all, condition| all | of(*condition));
    // Conditions with the indices of the first one that has some, and the others.
    let rows = conditions.iter().map(|condition| of(*condition));
    let common = rows.clone().fold(output, |common, own| match own {
        0 => common,
        own => common & own,
    });
    let rows = rows.map(|own| own & !common).find(|own| *own != 0)?;
    let (left, right): (Vec<NodeId>, Vec<NodeId>) =
        (conditions.iter()).partition(|condition| of(**condition) & rows != 0);
    let (of_left, of_right) = (all(&left), all(&right));
    let own = [of_left & !of_right, of_right & !of_left];
    let is_small = own.map(|own| values_of_bits(&product, own) < LEAST);
    // Comparisons of indices alone bound what the loops go over.
    if is_small.contains(&true)
        || !conditions
            .iter()
            .all(|condition| read(graph, &[*condition]))
    {
        return None;
    }
    let graph = &mut product.graph;
    let sides = [left, right].map(|side| as_number(graph, &side, truth));
    product.root = graph.add(Node::Apply(Function::Mul, sides.to_vec()), truth);
    (product.guard, product.output) = (None, vec![truth]);
    product.reduction = Some(Reduction::Sum);
    Some(product)
}

/// 1 where all of these conditions hold, else 0.
fn as_number(graph: &mut Graph, conditions: &[NodeId], truth: DType) -> NodeId {
    let both = |all, next| Node::Apply(Function::And, vec![all, next]);
    let all = conditions.iter().copied();
    let all = all.reduce(|all, next| graph.add(both(all, next), DType::Bool));
    let all = all.expect("a side of a product has a condition");
    graph.add(Node::Convert(all), truth)
}
