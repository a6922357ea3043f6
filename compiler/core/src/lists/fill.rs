//! The value of an expression wherever a listed tensor is not listed.
//!
//! A product with 0 is 0, and a sum with an infinity is that infinity, whatever the other side is: values that are not listed are taken to be
//! finite. Must not know lists.
//!
//! ```text
//! where(A[i, j] != 0.0, d[j] + A[i, j], inf)   with A[i, j] = 0   is   inf
//! exp(A[i, j] * x[j])                          with A[i, j] = 0   is   1
//! d[j] + A[i, j]                               with A[i, j] = 0   is   not known
//! ```

use crate::einsum::scalar::{apply, convert, stored, truth};
use ein_plan::{DType, Function, Graph, Node, NodeId, Scalar};

/// The zero of a stored type.
pub fn zero(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(false),
        dtype if dtype.is_float() => Scalar::Float(0.0),
        _ => Scalar::Int(0),
    }
}

/// Returns whether two numbers are the same; 0 is -0, and NaN is no number.
pub fn is_same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a == b,
        (a, b) => a.as_f64() == b.as_f64(),
    }
}

/// By node: its value where the nodes for which `known` has one have that value, if no other read changes it.
pub fn values(graph: &Graph, known: impl Fn(NodeId) -> Option<Scalar>) -> Vec<Option<Scalar>> {
    let mut values: Vec<Option<Scalar>> = Vec::with_capacity(graph.len());
    for (id, node, dtype) in graph.iter() {
        let value = |id: &NodeId| values[id.0 as usize];
        let given = known(id).map(|fill| convert(fill, dtype));
        let value = match node {
            _ if given.is_some() => given,
            Node::Constant(constant) => Some(*constant),
            Node::Index(_) | Node::Read { .. } => None,
            Node::Convert(from) => value(from).map(|value| convert(value, dtype)),
            Node::Apply(function, arguments) => {
                let known: Vec<Option<Scalar>> = arguments.iter().map(value).collect();
                // The type in which a function computes is that of its last argument: of a choice, that of its branches.
                let computed = arguments.last().map_or(dtype, |last| graph.dtype(*last));
                of_function(*function, arguments, &known, computed, dtype)
            }
        };
        values.push(value.map(|value| stored(value, dtype)));
    }
    values
}

/// The value of a function of which some arguments are known.
fn of_function(
    function: Function,
    arguments: &[NodeId],
    known: &[Option<Scalar>],
    computed: DType,
    dtype: DType,
) -> Option<Scalar> {
    let is = |at: usize, value: Scalar| known[at].is_some_and(|known| is_same(known, value));
    let infinite = |at: usize| {
        let value = known[at].filter(|_| dtype.is_float())?.as_f64();
        value.is_infinite().then_some(value)
    };
    if function == Function::Select {
        return match known[0] {
            Some(condition) if truth(condition) => known[1],
            Some(_) => known[2],
            None if arguments[1] == arguments[2] => known[1],
            None => known[1].filter(|value| is(2, *value)),
        };
    }
    if let Some(all) = known.iter().copied().collect::<Option<Vec<Scalar>>>() {
        return apply(function, &all, computed).ok();
    }
    match function {
        Function::Mul if is(0, zero(dtype)) || is(1, zero(dtype)) => Some(zero(dtype)),
        Function::Div if is(0, zero(dtype)) => Some(zero(dtype)),
        Function::And if is(0, Scalar::Bool(false)) || is(1, Scalar::Bool(false)) => {
            Some(Scalar::Bool(false))
        }
        Function::Or if is(0, Scalar::Bool(true)) || is(1, Scalar::Bool(true)) => {
            Some(Scalar::Bool(true))
        }
        Function::Add => infinite(0).or(infinite(1)).map(Scalar::Float),
        Function::Sub => (infinite(0).or(infinite(1).map(|value| -value))).map(Scalar::Float),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_plan::Kernel;

    /// The value of an expression where the operand 0 is a number.
    fn at(expression: &str, fill: f64) -> Option<Scalar> {
        let kernel: Kernel = expression.parse().unwrap();
        let read = |id: NodeId| match kernel.graph.node(id) {
            Node::Read { operand: 0, .. } => Some(Scalar::Float(fill)),
            _ => None,
        };
        values(&kernel.graph, read)[kernel.root.0 as usize]
    }

    #[test]
    fn products_choices_and_infinities_are_known() {
        let statement = |text: &str| format!("(f32[4], f32[4]) [i: 4] f32 = {text}");
        for (text, fill, value) in [
            ("-(a1[i] * a0[i]) / a1[i]", 0.0, Some(0.0)),
            ("exp(a0[i] * a1[i])", 0.0, Some(1.0)),
            (
                "where(a0[i] != 0.0, a1[i] + a0[i], inf)",
                0.0,
                Some(f64::INFINITY),
            ),
            ("where(a1[i] > 0.0, a0[i] * 2.0, a0[i])", 0.0, Some(0.0)),
            ("where(a1[i] > 0.0, a0[i] + 2.0, a0[i])", 0.0, None),
            ("exp(a0[i] - a1[i])", f64::NEG_INFINITY, Some(0.0)),
            ("a1[i] - a0[i]", f64::NEG_INFINITY, Some(f64::INFINITY)),
            ("a1[i] + a0[i]", 0.0, None),
            ("a1[i] / a0[i]", 0.0, None),
            (
                "where(and(a0[i] > 0.0, a1[i] > 0.0), a1[i], 0.0)",
                0.0,
                Some(0.0),
            ),
        ] {
            let found = at(&statement(text), fill).map(Scalar::as_f64);
            assert_eq!(found, value, "{text}");
        }
    }
}
