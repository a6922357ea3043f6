//! The last phase of a split reduction: a kernel from carriers to the result.
//!
//! Must not know how carriers are made or combined.
//!
//! ```text
//! mean   [n: 10] f32 = a0.0[n] / f32(a0.1[n])
//! ```

use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};

/// The kernel that turns the carrier of `reduction` over values of compute type `value`, stored at `indices`,
/// into the result stored as `output`; `None` if the carrier is the result.
pub fn kernel(
    reduction: Reduction,
    value: DType,
    indices: &[Index],
    output: DType,
) -> Option<Kernel> {
    let columns = reduction.carrier(value);
    if !reduction.needs_finish() && columns == [output] {
        return None;
    }
    let mut graph = Graph::default();
    let positions: Vec<NodeId> = (0..indices.len() as u32)
        .map(|index| graph.add(Node::Index(IndexId(index)), DType::I64))
        .collect();
    let column = |graph: &mut Graph, number: u32| {
        graph.add(
            Node::Read {
                operand: 0,
                column: number,
                positions: positions.clone(),
                otherwise: None,
            },
            columns[number as usize],
        )
    };
    let root = match reduction {
        Reduction::ArgMax | Reduction::ArgMin => column(&mut graph, 1),
        Reduction::Mean => {
            let (sum, count) = (column(&mut graph, 0), column(&mut graph, 1));
            let count = graph.add(Node::Convert(count), value);
            graph.add(Node::Apply(Function::Div, vec![sum, count]), value)
        }
        Reduction::LogSumExp => {
            // At an infinite maximum the sum says nothing: the maximum is the result.
            let (top, sum) = (column(&mut graph, 0), column(&mut graph, 1));
            let log = graph.add(Node::Apply(Function::Log, vec![sum]), value);
            let finite = graph.add(Node::Apply(Function::Add, vec![top, log]), value);
            unless_infinite(&mut graph, value, top, finite)
        }
        Reduction::Norm => {
            let (scale, sum) = (column(&mut graph, 0), column(&mut graph, 1));
            let root = graph.add(Node::Apply(Function::Sqrt, vec![sum]), value);
            let finite = graph.add(Node::Apply(Function::Mul, vec![scale, root]), value);
            unless_infinite(&mut graph, value, scale, finite)
        }
        _ => column(&mut graph, 0),
    };
    let kernel = Kernel {
        indices: indices.to_vec(),
        output_rank: indices.len() as u32,
        operands: vec![Operand {
            columns,
            shape: indices.iter().map(|index| index.extent).collect(),
        }],
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![output],
    };
    Some(kernel.canonical())
}

/// `value` itself where it is infinite, else `finite`.
fn unless_infinite(graph: &mut Graph, dtype: DType, value: NodeId, finite: NodeId) -> NodeId {
    let infinity = graph.add(Node::Constant(Scalar::Float(f64::INFINITY)), dtype);
    let size = graph.add(Node::Apply(Function::Abs, vec![value]), dtype);
    let infinite = graph.add(Node::Apply(Function::Eq, vec![size, infinity]), DType::Bool);
    graph.add(
        Node::Apply(Function::Select, vec![infinite, value, finite]),
        dtype,
    )
}
