//! Every scalar function, and every reduction, of every type that it takes: the emulated GPU against the processor.
//!
//! ```text
//! lgamma of f32 at 0.5, -1.5, inf, nan, …   ->   the same numbers but for a few roundings
//! ```
#![allow(clippy::unwrap_used)]

mod machines;

use ein_array::{Array, Data};
use ein_device::{Buffer, Device, Launch, Operand, Prepared};
use ein_device_cpu::Cpu;
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, LoopKernel, LoopKind, Node, NodeId, Reduction,
    Scalar,
};
use half::{bf16, f16};
use machines::gpu;

fn array(dtype: DType, shape: &[usize], value: impl Fn(usize) -> f64) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(value);
    let data = match dtype {
        DType::F16 => Data::F16(values.map(f16::from_f64).collect()),
        DType::BF16 => Data::BF16(values.map(bf16::from_f64).collect()),
        DType::F32 => Data::F32(values.map(|x| x as f32).collect()),
        DType::F64 => Data::F64(values.collect()),
        DType::U8 => Data::U8(values.map(|x| x as i64 as u8).collect()),
        DType::U16 => Data::U16(values.map(|x| x as i64 as u16).collect()),
        DType::U32 => Data::U32(values.map(|x| x as i64 as u32).collect()),
        DType::U64 => Data::U64(values.map(|x| x as i64 as u64).collect()),
        DType::I8 => Data::I8(values.map(|x| x as i64 as i8).collect()),
        DType::I16 => Data::I16(values.map(|x| x as i64 as i16).collect()),
        DType::I32 => Data::I32(values.map(|x| x as i32).collect()),
        DType::I64 => Data::I64(values.map(|x| x as i64).collect()),
        DType::Bool => Data::Bool(values.map(|x| u8::from(x > 0.0)).collect()),
        DType::C64 | DType::C128 => unreachable!("no type of arrays"),
    };
    Array::new(shape.to_vec(), data).unwrap()
}

/// A kernel, its operands, and how far from the processor's a result may be, relative to its size.
struct Case {
    what: String,
    kernel: Kernel,
    operands: Vec<Array>,
    near: f64,
}

fn run(device: &dyn Device, kernel: &dyn Prepared, case: &Case) -> Vec<Array> {
    let adopt = |array: &Array| device.adopt(Buffer::from(array.clone()));
    let columns: Vec<Buffer> = case.operands.iter().map(adopt).collect();
    let made = device.run(&Launch {
        kernel,
        ranges: (case.kernel.indices.iter().map(|index| (0, index.extent))).collect(),
        operands: (columns.iter())
            .map(|column| Operand {
                columns: std::slice::from_ref(column),
                start: vec![0; column.shape().len()],
            })
            .collect(),
    });
    let made = made.unwrap_or_else(|error| panic!("{}: {error}", case.what));
    made.iter()
        .map(|buffer| buffer.to_host().as_ref().clone())
        .collect()
}

/// Runs all cases on both devices.
fn compare(cases: &[Case]) {
    let gpu = gpu();
    let strips = LoopKernel::whole(LoopKind::Strips);
    let prepare = |device: &dyn Device| -> Vec<Box<dyn Prepared>> {
        let kernels = cases.iter().map(|case| &case.kernel);
        kernels
            .map(|kernel| device.prepare(kernel, &strips, false))
            .collect()
    };
    let (on_gpu, on_cpu) = (prepare(&gpu), prepare(&Cpu));
    for (case, (on_gpu, on_cpu)) in cases.iter().zip(on_gpu.iter().zip(&on_cpu)) {
        let found = run(&gpu, &**on_gpu, case);
        let wanted = run(&Cpu, &**on_cpu, case);
        for (column, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            for at in 0..wanted.data().len() {
                let (x, y) = (found.data().get(at), wanted.data().get(at));
                let (a, b) = (x.as_f64(), y.as_f64());
                let near = (a - b).abs() <= case.near * b.abs().max(1e-3);
                assert!(
                    x == y || a == b || near || (a.is_nan() && b.is_nan()),
                    "{}, column {column}, element {at}: {x:?}, not {y:?}; of {:?}",
                    case.what,
                    case.operands
                        .iter()
                        .map(|o| o.data().get(at % o.data().len()))
                        .collect::<Vec<_>>()
                );
            }
        }
    }
    assert_eq!(gpu.counts().on_cores, 0);
}

const SPECIAL: [f64; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    3.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e30,
];

/// A kernel of one or two operands of a stored type, at all points of a row.
fn pointwise(function: Function, stored: DType, operands: Vec<Array>) -> Kernel {
    let count = operands[0].data().len() as u64;
    let mut graph = Graph::default();
    let index = graph.add(Node::Index(IndexId(0)), DType::I64);
    let read = |operand: usize| Node::Read {
        operand: operand as u32,
        column: 0,
        positions: vec![index],
        otherwise: None,
    };
    let arguments: Vec<NodeId> = (operands.iter().enumerate())
        .map(|(number, array)| graph.add(read(number), array.dtype().compute()))
        .collect();
    let types: Vec<DType> = arguments.iter().map(|a| graph.dtype(*a)).collect();
    let result = function.result(&types).unwrap();
    let root = graph.add(Node::Apply(function, arguments), result);
    Kernel {
        indices: vec![Index {
            name: "i".into(),
            extent: count,
        }],
        output_rank: 1,
        operands: (operands.iter())
            .map(|array| ein_plan::Operand {
                columns: vec![array.dtype()],
                shape: vec![count],
            })
            .collect(),
        root,
        graph,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![if result == stored.compute() {
            stored
        } else {
            result
        }],
    }
}

#[test]
fn every_function_of_every_type() {
    let mut cases = vec![];
    for function in Function::ALL.iter().copied().filter(|f| !f.is_library()) {
        for dtype in DType::ALL {
            let types = match function {
                Function::Select => vec![DType::Bool, dtype, dtype],
                _ => vec![dtype; function.arity()],
            };
            let compute: Vec<DType> = types.iter().map(|dtype| dtype.compute()).collect();
            if function.result(&compute).is_err() || function == Function::Within {
                continue;
            }
            // Second arguments that fault are those of integers that are 0 (division) or negative (powers): not among these.
            let whole_divisor = dtype.is_integer()
                && matches!(function, Function::FloorDiv | Function::Rem | Function::Pow);
            let value = |operand: usize, at: usize| {
                let (a, b) = (at % 37, at / 37 % 31);
                match operand {
                    0 if at < 12 && dtype.is_float() && function != Function::Polygamma => {
                        SPECIAL[at]
                    }
                    0 if function == Function::Polygamma => (a % 4) as f64,
                    0 if dtype.is_float() => (a as f64 - 18.0) * 0.37,
                    0 => (a as f64 - 18.0) * 3.0,
                    _ if whole_divisor => 1.0 + (b % 5) as f64,
                    _ if dtype.is_float() && at % 12 == 5 => SPECIAL[at / 12 % 12],
                    _ if dtype.is_float() => (b as f64 - 15.0) * 0.23,
                    _ => b as f64 - 15.0,
                }
            };
            let operands = types.iter().enumerate();
            let operands: Vec<Array> = operands
                .map(|(number, dtype)| array(*dtype, &[600], |at| value(number, at)))
                .collect();
            cases.push(Case {
                what: format!("{} of {dtype}", function.name()),
                kernel: pointwise(function, dtype, operands.clone()),
                operands,
                near: match dtype {
                    DType::F64 => 1e-13,
                    DType::F32 => 2e-6,
                    DType::F16 => 1e-3,
                    _ => 8e-3,
                },
            });
        }
    }
    assert!(cases.len() > 250, "{}", cases.len());
    compare(&cases);
}

/// By one thread, by a warp and by a block; of a row that is masked, and carriers that are not finished.
#[test]
fn every_reduction_of_every_length() {
    let mut cases = vec![];
    for reduction in Reduction::ALL {
        for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool] {
            let fits = match dtype {
                DType::Bool => matches!(reduction, Reduction::Any | Reduction::All),
                DType::I32 | DType::I64 => !matches!(
                    reduction,
                    Reduction::Any
                        | Reduction::All
                        | Reduction::Mean
                        | Reduction::LogSumExp
                        | Reduction::Norm
                ),
                _ => !matches!(reduction, Reduction::Any | Reduction::All),
            };
            if !fits {
                continue;
            }
            // Carriers of these remember the same in several ways; what pieces of them give is compared in `gpu_random`.
            let in_two = matches!(reduction, Reduction::LogSumExp | Reduction::Norm);
            for (length, finish) in [(7u64, true), (50, true), (50, in_two), (2311, true)] {
                for guarded in [false, true] {
                    let rows = 5;
                    let text = format!(
                        "({dtype}[{rows}, {length}]) [n: {rows} | k: {length}] {} = {} a0[n, k]{}",
                        reduction.result(dtype),
                        reduction.name(),
                        if guarded { " if rem(k, 3) < n + 1" } else { "" }
                    );
                    let mut kernel: Kernel =
                        text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
                    if !finish {
                        kernel.finish = false;
                        kernel.output = reduction.carrier(dtype);
                    }
                    let value = |at: usize| {
                        let x = ((at * 7919 + 13) % 4001) as f64 / 400.0 - 5.0;
                        match (reduction, dtype.is_float()) {
                            (Reduction::Prod, true) => 1.0 + x / 4000.0,
                            (Reduction::All, _) => f64::from(u8::from(at % 2311 != 100)),
                            (Reduction::Any, _) => f64::from(u8::from(at % 2311 == 100)),
                            // Equal values: the lowest number wins.
                            _ if reduction.is_arg() => x.round(),
                            _ => x * if dtype.is_float() { 1.0 } else { 40.0 },
                        }
                    };
                    let operand = array(dtype, &[rows, length as usize], value);
                    cases.push(Case {
                        what: text,
                        kernel,
                        operands: vec![operand],
                        near: if dtype == DType::F64 { 1e-12 } else { 2e-5 },
                    });
                }
            }
        }
    }
    compare(&cases);
}

/// Half precision is rounded to the nearest everywhere.
#[test]
fn all_halves_are_stored_as_they_were_read() {
    let halves = |f: &dyn Fn(u16) -> f64, dtype| array(dtype, &[1 << 16], |at| f(at as u16));
    let f = halves(&|bits| f16::from_bits(bits).to_f64(), DType::F16);
    let b = halves(&|bits| bf16::from_bits(bits).to_f64(), DType::BF16);
    let singles = array(DType::F32, &[1 << 16], |at| {
        f64::from(f32::from_bits(
            (at as u32).wrapping_mul(65_521 * 7) ^ 0x3580_1234,
        ))
    });
    let mut cases = vec![];
    for (what, operand, stored) in [
        ("f16", &f, DType::F16),
        ("bf16", &b, DType::BF16),
        ("f32 as f16", &singles, DType::F16),
        ("f32 as bf16", &singles, DType::BF16),
    ] {
        let mut kernel = pointwise(Function::Stop, DType::F32, vec![operand.clone()]);
        kernel.output = vec![stored];
        cases.push(Case {
            what: what.into(),
            kernel,
            operands: vec![operand.clone()],
            near: 0.0,
        });
    }
    compare(&cases);
}

/// The kernel that the scalars are for is parsed back from its text, as users of the crate make it.
#[test]
fn constants_keep_their_bits() {
    let mut cases = vec![];
    for (value, dtype) in [
        (Scalar::Float(-0.0), DType::F32),
        (Scalar::Float(f64::NEG_INFINITY), DType::F32),
        (Scalar::Float(0.1), DType::F32),
        (Scalar::Float(f64::MIN_POSITIVE / 8.0), DType::F64),
        (Scalar::Float(f64::NAN), DType::F64),
        (Scalar::Float(-1.0e300), DType::F64),
        (Scalar::Int(i64::MIN), DType::I64),
        (Scalar::Int(i64::from(i32::MIN)), DType::I32),
        (Scalar::Bool(true), DType::Bool),
    ] {
        let mut graph = Graph::default();
        let root = graph.add(Node::Constant(value), dtype);
        let kernel = Kernel {
            indices: vec![],
            output_rank: 0,
            operands: vec![],
            root,
            graph,
            guard: None,
            reduction: None,
            finish: true,
            output: vec![dtype],
        };
        cases.push(Case {
            what: format!("{value:?} of {dtype}"),
            kernel,
            operands: vec![],
            near: 0.0,
        });
    }
    let (gpu, strips) = (gpu(), LoopKernel::whole(LoopKind::Strips));
    let kernels = cases.iter().map(|case| &case.kernel);
    let prepared: Vec<_> = kernels
        .map(|kernel| gpu.prepare(kernel, &strips, false))
        .collect();
    for (case, prepared) in cases.iter().zip(&prepared) {
        let found = run(&gpu, &**prepared, case);
        let wanted = run(&Cpu, &*Cpu.prepare(&case.kernel, &strips, false), case);
        assert_eq!(
            found[0].data().bytes(),
            wanted[0].data().bytes(),
            "{}",
            case.what
        );
    }
}
