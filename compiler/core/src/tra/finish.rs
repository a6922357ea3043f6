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
    let column =
        |graph: &mut Graph, number: u32| read(graph, 0, number, columns[number as usize], indices);
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
        operands: vec![operand(columns, indices)],
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![output],
    };
    Some(kernel.canonical())
}

/// Of a carrier of `argmax` or `argmin`: 0 where something was chosen; where nothing was, the kernel stops as the
/// reduction itself would. What [`chosen`] adds up.
pub fn something_chosen(reduction: Reduction, value: DType, indices: &[Index]) -> Kernel {
    let mut graph = Graph::default();
    let index = read(&mut graph, 0, 1, DType::I64, indices);
    let zero = graph.add(Node::Constant(Scalar::Int(0)), DType::I64);
    let guard = graph.add(Node::Apply(Function::Ge, vec![index, zero]), DType::Bool);
    let mut name = "chosen".to_string();
    while indices.iter().any(|index| index.name == name) {
        name.push('\'');
    }
    let kernel = Kernel {
        indices: indices
            .iter()
            .cloned()
            .chain([Index { name, extent: 1 }])
            .collect(),
        output_rank: indices.len() as u32,
        operands: vec![operand(reduction.carrier(value), indices)],
        graph,
        root: zero,
        guard: Some(guard),
        reduction: Some(reduction),
        finish: true,
        output: vec![DType::I64],
    };
    kernel.canonical()
}

/// The index of a carrier of `argmax` or `argmin` (operand 0), plus what [`something_chosen`] gave (operand 1).
pub fn chosen(reduction: Reduction, value: DType, indices: &[Index], output: DType) -> Kernel {
    let mut graph = Graph::default();
    let index = read(&mut graph, 0, 1, DType::I64, indices);
    let zero = read(&mut graph, 1, 0, DType::I64, indices);
    let sum = graph.add(Node::Apply(Function::Add, vec![index, zero]), DType::I64);
    let kernel = Kernel {
        indices: indices.to_vec(),
        output_rank: indices.len() as u32,
        operands: vec![
            operand(reduction.carrier(value), indices),
            operand(vec![DType::I64], indices),
        ],
        graph,
        root: sum,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![output],
    };
    kernel.canonical()
}

fn operand(columns: Vec<DType>, indices: &[Index]) -> Operand {
    Operand {
        columns,
        shape: indices.iter().map(|index| index.extent).collect(),
    }
}

/// A column of an operand at the indices.
fn read(graph: &mut Graph, operand: u32, column: u32, dtype: DType, indices: &[Index]) -> NodeId {
    let positions = (0..indices.len() as u32)
        .map(|index| graph.add(Node::Index(IndexId(index)), DType::I64))
        .collect();
    graph.add(
        Node::Read {
            operand,
            column,
            positions,
            otherwise: None,
        },
        dtype,
    )
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
