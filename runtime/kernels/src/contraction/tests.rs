//! Which kernels are taken: the tests of results cannot tell, since strips compute everything.

use super::*;
use ein_plan::{
    Function, Graph, Index, IndexId, LoopKind, Node, NodeId, Operand, Reduction, Scalar,
};

struct Case {
    kernel: Kernel,
    arrays: Vec<Array>,
}

impl Case {
    fn taken(&self) -> bool {
        let operands: Vec<Chunk<'_>> = self
            .arrays
            .iter()
            .map(|array| Chunk {
                columns: vec![array],
                start: vec![0; array.shape().len()],
            })
            .collect();
        let ranges: Vec<(u64, u64)> = self.kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let loops = crate::schedule(&self.kernel, &ranges, &operands);
        match &loops.kind {
            LoopKind::Matmul(form) => run(&self.kernel, form, &ranges, &operands).is_some(),
            _ => false,
        }
    }
}

/// `extents` of the indices, `rank` of the output, and for each operand its type, shape and positions (sums of
/// indices, less a number; what is outside reads 0).
type Position<'a> = (&'a [usize], i64);

fn case(
    extents: &[u64],
    rank: u32,
    operands: &[(DType, &[u64], &[Position<'_>])],
    body: impl Fn(&mut Graph, &[NodeId]) -> NodeId,
) -> Case {
    let mut graph = Graph::default();
    let mut reads = vec![];
    for (number, (dtype, _, positions)) in operands.iter().enumerate() {
        let mut list = vec![];
        let mut plain = true;
        for (indices, less) in *positions {
            let mut nodes = indices.iter().map(|i| Node::Index(IndexId(*i as u32)));
            let first = nodes.next().expect("a position has an index");
            let mut sum = graph.add(first, DType::I64);
            for node in nodes {
                let next = graph.add(node, DType::I64);
                sum = graph.add(Node::Apply(Function::Add, vec![sum, next]), DType::I64);
                plain = false;
            }
            if *less != 0 {
                let less = graph.add(Node::Constant(Scalar::Int(*less)), DType::I64);
                sum = graph.add(Node::Apply(Function::Sub, vec![sum, less]), DType::I64);
                plain = false;
            }
            list.push(sum);
        }
        let compute = dtype.compute();
        let zero = Node::Constant(Scalar::Float(0.0));
        let otherwise = (!plain).then(|| graph.add(zero, compute));
        let read = Node::Read {
            operand: number as u32,
            column: 0,
            positions: list,
            otherwise,
        };
        reads.push(graph.add(read, compute));
    }
    let root = body(&mut graph, &reads);
    let kernel = Kernel {
        indices: extents
            .iter()
            .map(|n| Index {
                name: "i".into(),
                extent: *n,
            })
            .collect(),
        output_rank: rank,
        operands: operands
            .iter()
            .map(|(dtype, shape, _)| Operand {
                columns: vec![*dtype],
                shape: shape.to_vec(),
            })
            .collect(),
        output: vec![graph.dtype(root)],
        graph,
        root,
        guard: None,
        reduction: Some(Reduction::Sum),
        finish: true,
    };
    let arrays = operands
        .iter()
        .map(|(dtype, shape, _)| {
            let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
            Array::zeros(*dtype, &shape)
        })
        .collect();
    Case { kernel, arrays }
}

fn product(graph: &mut Graph, reads: &[NodeId]) -> NodeId {
    graph.add(Node::Apply(Function::Mul, reads.to_vec()), DType::F32)
}

#[test]
fn plain_batched_and_permuted_products_are_taken() {
    let f = DType::F32;
    let plain = case(
        &[20, 30, 40],
        2,
        &[
            (f, &[20, 40], &[(&[0], 0), (&[2], 0)]),
            (f, &[40, 30], &[(&[2], 0), (&[1], 0)]),
        ],
        product,
    );
    assert!(plain.taken());
    // q[n, h, t, e] = x[n, t, d] w[d, h, e] in half precision
    let heads = case(
        &[2, 3, 20, 16, 24],
        4,
        &[
            (DType::F16, &[2, 20, 24], &[(&[0], 0), (&[2], 0), (&[4], 0)]),
            (f, &[24, 3, 16], &[(&[4], 0), (&[1], 0), (&[3], 0)]),
        ],
        product,
    );
    assert!(heads.taken());
}

#[test]
fn products_over_a_normaliser_are_taken() {
    // out[b, t, d] = weight[b, t, s] v[b, s, d] / total[b, t]
    let f = DType::F32;
    let attention = case(
        &[2, 20, 16, 24],
        3,
        &[
            (f, &[2, 20, 24], &[(&[0], 0), (&[1], 0), (&[3], 0)]),
            (f, &[2, 24, 16], &[(&[0], 0), (&[3], 0), (&[2], 0)]),
            (f, &[2, 20], &[(&[0], 0), (&[1], 0)]),
        ],
        |graph, reads| {
            let over = product(graph, &reads[..2]);
            graph.add(Node::Apply(Function::Div, vec![over, reads[2]]), DType::F32)
        },
    );
    assert!(attention.taken());
}

#[test]
fn convolutions_are_taken() {
    // O[n, f, y, x] = (I[n, c, y + r - 1, x + s - 1] else 0) K[f, c, r, s]
    let f = DType::F32;
    let convolution = case(
        &[2, 8, 10, 10, 4, 3, 3],
        4,
        &[
            (
                f,
                &[2, 4, 10, 10],
                &[(&[0], 0), (&[4], 0), (&[2, 5], 1), (&[3, 6], 1)],
            ),
            (
                f,
                &[8, 4, 3, 3],
                &[(&[1], 0), (&[4], 0), (&[5], 0), (&[6], 0)],
            ),
        ],
        product,
    );
    assert!(convolution.taken());
}

#[test]
fn vectors_are_taken_where_one_factor_has_all_indices() {
    let f = DType::F32;
    let vector = case(
        &[200, 400],
        1,
        &[
            (f, &[200, 400], &[(&[0], 0), (&[1], 0)]),
            (f, &[400], &[(&[1], 0)]),
        ],
        product,
    );
    assert!(vector.taken());
    // Two factors of one row each: rows of a sweep.
    let rows = case(
        &[200, 400],
        1,
        &[
            (f, &[200, 400], &[(&[0], 0), (&[1], 0)]),
            (f, &[200, 400], &[(&[0], 0), (&[1], 0)]),
        ],
        product,
    );
    assert!(!rows.taken());
}
