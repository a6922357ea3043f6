//! The compiler behind sema on hand-written programs.
#![allow(clippy::unwrap_used)]

use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, Operand, Origin, Reduction, Source,
};
use einc_core::einsum::{Definition, Output, Program, Role, Tensor, TensorId};
use einc_core::pipeline::{Options, compile, explain};

fn matmul(i: u64, k: u64, j: u64) -> Program {
    let origin = Origin {
        file: 0,
        start: 0,
        end: 0,
        line: 5,
    };
    let source = |name: &str, shape: Vec<u64>| Tensor {
        name: name.into(),
        dtype: DType::F32,
        shape,
        role: Role::Input,
        definition: Definition::Source(Source::Unbound),
        origin,
    };
    let mut graph = Graph::default();
    let [ni, nj, nk] = [0, 1, 2].map(|n| graph.add(Node::Index(IndexId(n)), DType::I64));
    let read = |graph: &mut Graph, operand, positions| {
        graph.add(
            Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            },
            DType::F32,
        )
    };
    let a = read(&mut graph, 0, vec![ni, nk]);
    let b = read(&mut graph, 1, vec![nk, nj]);
    let root = graph.add(Node::Apply(Function::Mul, vec![a, b]), DType::F32);
    let index = |name: &str, extent| Index {
        name: name.into(),
        extent,
    };
    let operand = |shape| Operand {
        columns: vec![DType::F32],
        shape,
    };
    let kernel = Kernel {
        indices: vec![index("i", i), index("j", j), index("k", k)],
        output_rank: 2,
        operands: vec![operand(vec![i, k]), operand(vec![k, j])],
        graph,
        root,
        guard: None,
        reduction: Some(Reduction::Sum),
        finish: true,
        output: vec![DType::F32],
    };
    Program {
        tensors: vec![
            source("A", vec![i, k]),
            source("B", vec![k, j]),
            Tensor {
                name: "C".into(),
                dtype: DType::F32,
                shape: vec![i, j],
                role: Role::Named,
                definition: Definition::Statement {
                    kernel,
                    operands: vec![TensorId(0), TensorId(1)],
                },
                origin,
            },
        ],
        outputs: vec![Output {
            tensor: TensorId(2),
            file: None,
            origin,
        }],
        files: vec!["matmul.ein".into()],
    }
}

#[test]
fn thin() {
    for (i, k, j, sites) in [
        (4096, 4096, 4096, 1),
        (4096, 4096, 4096, 4),
        (10, 10000, 8, 3),
    ] {
        let compiled = compile(
            &matmul(i, k, j),
            &Options {
                sites,
                deterministic: false,
            },
        )
        .unwrap();
        println!("{}", explain(&compiled));
    }
}
