//! Groups of operations that are compiled: when they are, and that they give what the strip machine gives.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Member, Options, fused_rows, groups_compiled, run};
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Scalar};

/// `max(min(x * 0.5 + x, 3) / x, -x)` over a matrix whose rows have 1003 elements, in the given type.
fn chain(rows: u64, dtype: DType) -> Kernel {
    let mut graph = Graph::default();
    let positions = (0..2)
        .map(|i| graph.add(Node::Index(IndexId(i)), DType::I64))
        .collect();
    let read = Node::Read {
        operand: 0,
        column: 0,
        positions,
        otherwise: None,
    };
    let compute = dtype.compute();
    let x = graph.add(read, compute);
    let half = graph.add(Node::Constant(Scalar::Float(0.5)), compute);
    let three = graph.add(Node::Constant(Scalar::Float(3.0)), compute);
    let mut apply = |f, a: &[NodeId]| graph.add(Node::Apply(f, a.to_vec()), compute);
    let scaled = apply(Function::Mul, &[x, half]);
    let sum = apply(Function::Add, &[scaled, x]);
    let low = apply(Function::Min, &[sum, three]);
    let ratio = apply(Function::Div, &[low, x]);
    let minus = apply(Function::Neg, &[x]);
    let root = apply(Function::Max, &[ratio, minus]);
    let index = |name: &str, extent| Index {
        name: name.into(),
        extent,
    };
    Kernel {
        indices: vec![index("i", rows), index("j", 1003)],
        output_rank: 2,
        operands: vec![Operand {
            columns: vec![dtype],
            shape: vec![rows, 1003],
        }],
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![dtype],
    }
}

fn evaluate(kernel: &Kernel, values: &Data, fusion: Fusion) -> Data {
    let shape = kernel.operands[0].shape.iter().map(|n| *n as usize);
    let array = Array::new(shape.collect(), values.clone()).unwrap();
    let chunk = Chunk {
        columns: vec![&array],
        start: vec![0, 0],
    };
    let options = Options {
        fusion,
        ..Options::default()
    };
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    run(kernel, &ranges, &[chunk], &options).unwrap()[0]
        .data()
        .clone()
}

fn value(e: usize) -> f64 {
    (e * 7919 % 1999) as f64 / 128.0 - 7.015_625 - 1.0 / 256.0
}

#[test]
fn a_chain_is_compiled_once_there_is_enough_work() {
    let (few, many) = (chain(2, DType::F32), chain(4001, DType::F32));
    let values = |rows: usize| Data::F32((0..rows * 1003).map(|e| value(e) as f32).collect());
    let before = groups_compiled();
    let small = evaluate(&few, &values(2), Fusion::WhenWorthwhile);
    assert_eq!(groups_compiled(), before, "2006 points are not worth it");
    let large = evaluate(&many, &values(4001), Fusion::WhenWorthwhile);
    assert_eq!(groups_compiled(), before + 1);
    let again = evaluate(&many, &values(4001), Fusion::WhenWorthwhile);
    assert_eq!(groups_compiled(), before + 1, "it is compiled once");
    assert_eq!(large, again);
    let (Data::F32(small), Data::F32(large)) = (small, large) else {
        panic!("both are f32");
    };
    assert_eq!(small, large[..2006]);
    for (e, y) in large.iter().enumerate() {
        let x = value(e) as f32;
        let low = (x * 0.5 + x).min(3.0);
        assert_eq!((low / x).max(-x), *y, "at {x}");
    }
    // Here, since the number of groups is the process's.
    double_precision_is_compiled_too();
    members_of_a_sweep_are_one_group();
}

fn members_of_a_sweep_are_one_group() {
    let kernel = |text: &str| text.parse::<Kernel>().unwrap();
    let kernels = [
        kernel("(f32[40, 900], f32[40, 900]) [n: 40, d: 900] f32 = a0[n, d] * a1[n, d]"),
        kernel("(f32[40, 900]) [n: 40, d: 900] f32 = sqrt(abs(a0[n, d]))"),
        kernel("(f32[40, 900], f32[40, 900]) [n: 40, d: 900] f32 = a0[n, d] / a1[n, d]"),
    ];
    let values = |shift: usize| {
        let values = (0..36_000).map(|e| value(e + shift) as f32).collect();
        Array::new(vec![40, 900], Data::F32(values)).unwrap()
    };
    let given = [values(0), values(7)];
    let whole = |array| {
        ein_kernels::Operand::Given(Chunk {
            columns: vec![array],
            start: vec![0, 0],
        })
    };
    let made = ein_kernels::Operand::Made;
    let operands = [
        vec![whole(&given[0]), whole(&given[1])],
        vec![made(0)],
        vec![made(0), made(1)],
    ];
    let members = kernels.iter().zip(operands).enumerate();
    let members: Vec<Member<'_>> = members
        .map(|(number, (kernel, operands))| Member {
            kernel,
            ranges: vec![(0, 40), (0, 900)],
            operands,
            kept: number != 1,
            memo: None,
        })
        .collect();
    let options = Options {
        fusion: Fusion::Always,
        ..Options::default()
    };
    let before = groups_compiled();
    let results = fused_rows(&members, 1, &options).unwrap();
    assert_eq!(groups_compiled(), before + 1, "three members, one loop");
    assert!(results[1].is_none(), "nobody wants it whole");
    let last = results[2].as_ref().unwrap()[0].data();
    for at in 0..36_000 {
        let product = (value(at) as f32) * (value(at + 7) as f32);
        let want = f64::from(product / product.abs().sqrt());
        assert_eq!(last.get(at).as_f64(), want, "at {at}");
    }
}

fn double_precision_is_compiled_too() {
    let kernel = chain(3, DType::F64);
    let values = Data::F64((0..3009).map(value).collect());
    let Data::F64(got) = evaluate(&kernel, &values, Fusion::Always) else {
        panic!("it is f64");
    };
    for (e, y) in got.iter().enumerate() {
        let x = value(e);
        let low = (x * 0.5 + x).min(3.0);
        assert_eq!((low / x).max(-x), *y, "at {x}");
    }
}
