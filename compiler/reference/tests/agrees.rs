//! Every call of a device, on the processor, on the reference device and on the emulated GPU: the same results, up to rounding.
//!
//! ```text
//! kernel text, ranges, operands   ->   buffers of all devices, compared in the host's memory
//! ```
#![allow(clippy::unwrap_used)]

use ein_array::{Array, Data};
use ein_device::{Buffer, BufferType, Device, Draw, Launch, Member, MemberOperand, Operand, Span};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Fault, Kernel, LoopKernel, NodeId, Reduction, Source};
use einc_reference::Reference;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Elements that no pattern of a kernel repeats.
fn array(dtype: DType, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|at| ((at * 37 + 11) % 29) as f64 / 4.0 - 3.0);
    let data = match dtype {
        DType::F32 => Data::F32(values.map(|x| x as f32).collect()),
        DType::F64 => Data::F64(values.collect()),
        DType::I64 => Data::I64(values.map(|x| x as i64).collect()),
        other => panic!("no values of {other}"),
    };
    Array::new(shape.to_vec(), data).unwrap()
}

/// The numbers of buffers, which lie where their device says.
fn numbers(device: &dyn Device, buffers: &[Buffer]) -> Vec<(Vec<usize>, Vec<f64>)> {
    let one = |buffer: &Buffer| {
        assert_eq!(buffer.space(), device.space());
        let array = buffer.to_host();
        let all = (0..array.data().len()).map(|at| array.data().get(at).as_f64());
        (array.shape().to_vec(), all.collect())
    };
    buffers.iter().map(one).collect()
}

/// All devices.
fn devices() -> [Arc<dyn Device>; 3] {
    let emulated = ein_cuda::emulated().unwrap();
    [Arc::new(Cpu), emulated, Arc::new(Reference)]
}

/// Runs a closure on all devices, and compares what it gives.
fn all(what: &str, body: impl Fn(&dyn Device) -> Vec<Buffer>) {
    let [cpu, emulated, reference] = devices();
    let wanted = numbers(&*reference, &body(&*reference));
    for device in [cpu, emulated] {
        let what = format!("{what} on {}", device.name());
        agree(&what, &numbers(&*device, &body(&*device)), &wanted);
    }
}

fn agree(what: &str, found: &[(Vec<usize>, Vec<f64>)], wanted: &[(Vec<usize>, Vec<f64>)]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for ((shape, found), (wanted_shape, wanted)) in found.iter().zip(wanted) {
        assert_eq!(shape, wanted_shape, "{what}");
        for (at, (a, b)) in found.iter().zip(wanted).enumerate() {
            let near = (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(
                near || a == b || (a.is_nan() && b.is_nan()),
                "{what}, {at}: {a} and {b}"
            );
        }
    }
}

fn whole(kernel: &Kernel) -> Vec<Span> {
    let indices = kernel.indices.iter();
    indices.map(|index| (0, index.extent)).collect()
}

/// The whole operands of a kernel in a device's memory.
fn operands(kernel: &Kernel, device: &dyn Device) -> Vec<Buffer> {
    let one = |operand: &ein_plan::Operand| {
        let shape: Vec<usize> = operand
            .shape
            .iter()
            .map(|extent| *extent as usize)
            .collect();
        device.adopt(array(operand.columns[0], &shape).into())
    };
    kernel.operands.iter().map(one).collect()
}

fn read(buffers: &[Buffer]) -> Vec<Operand<'_>> {
    let one = |buffer| Operand {
        columns: std::slice::from_ref(buffer),
        start: vec![0; buffer.shape().len()],
    };
    buffers.iter().map(one).collect()
}

const KERNELS: [&str; 12] = [
    "(f32[5, 7], f32[7, 4]) [i: 5, j: 4 | k: 7] f32 = sum a0[i, k] * a1[k, j]",
    "(f32[6, 9]) [i: 6 | j: 9] f32 = logsumexp a0[i, j]",
    "(f32[6, 9]) [i: 6 | j: 9] i64 = argmax a0[i, j]",
    "(f64[6, 9]) [i: 6 | j: 9] f64 = mean a0[i, j]",
    "(f64[6, 9]) [i: 6 | j: 9] f64 = norm a0[i, j]",
    "(f32[12]) [i: 12] f32 = exp(a0[i]) * tanh(a0[i]) + 0.5_f32",
    "(f32[12]) [i: 12] f32 = where(a0[i] > 0.5_f32, a0[i], 0.0_f32)",
    "(f32[12]) [i: 10 | r: 3] f32 = max a0[i + r] if i > 2",
    "(i64[8], f32[5]) [i: 5 | p: 8] f32 = sum a1[i] if i == a0[p]",
    "(f32[4, 6]) [i: 6, j: 4] f32 = a0[j, i]",
    "(f64[4, 6]) [i: 4, j: 6] i64 = argsort(a0[i, :1], j)",
    "(i64[9]) [i: 9] i64 = abs(a0[i]) * 3 - i",
];

#[test]
fn kernels_give_the_same() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
        all(text, |device| {
            let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
            let buffers = operands(&kernel, device);
            let launch = Launch {
                kernel: &*prepared,
                ranges: whole(&kernel),
                operands: read(&buffers),
            };
            let made = device.run(&launch).unwrap();
            // What a device keeps of one run changes nothing in the next.
            assert_eq!(made, device.run(&launch).unwrap(), "{text}");
            made
        });
    }
}

#[test]
fn sums_are_carried_on_and_combined() {
    for (text, reduction) in [
        (
            "(f32[5, 6]) [i: 5 | k: 6] f32 = sum a0[i, k]",
            Reduction::Sum,
        ),
        (
            "(f32[5, 6], f32[6, 3]) [i: 5, j: 3 | k: 6] f32 = sum a0[i, k] * a1[k, j]",
            Reduction::Sum,
        ),
        (
            "(f32[5, 6]) [i: 5 | k: 6] f32 = max a0[i, k]",
            Reduction::Max,
        ),
    ] {
        let kernel: Kernel = text.parse().unwrap();
        all(text, |device| {
            let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
            let buffers = operands(&kernel, device);
            let part = |start, length| {
                let mut ranges = whole(&kernel);
                ranges[kernel.output_rank as usize] = (start, length);
                Launch {
                    kernel: &*prepared,
                    ranges,
                    operands: read(&buffers),
                }
            };
            let first = device.run(&part(0, 2)).unwrap();
            let second = device.accumulate(&part(2, 3), reduction, first).unwrap();
            let third = device.run(&part(5, 1)).unwrap();
            device.combine(reduction, second, third)
        });
    }
}

/// A result takes the memory of an operand only where nobody else holds that.
#[test]
fn an_operand_that_somebody_else_holds_stays() {
    let text = "(f32[4, 3], f32[4]) [i: 4, j: 3] f32 = a0[i, j] * 0.5_f32 + a1[i]";
    let kernel: Kernel = text.parse().unwrap();
    for shared in [false, true] {
        all(text, |device| {
            let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
            let buffers = operands(&kernel, device);
            let kept = shared.then(|| buffers[0].clone());
            let (old, other) = (buffers[0].clone(), buffers[1].clone());
            let before = old.to_host().data().clone();
            drop(buffers);
            let launch = Launch {
                kernel: &*prepared,
                ranges: whole(&kernel),
                operands: vec![
                    Operand {
                        columns: &[],
                        start: vec![0, 0],
                    },
                    Operand {
                        columns: std::slice::from_ref(&other),
                        start: vec![0],
                    },
                ],
            };
            let made = device.run_over(launch, (0, old)).unwrap();
            if let Some(kept) = kept {
                assert_eq!(kept.to_host().data(), &before);
            }
            made
        });
    }
}

#[test]
fn groups_are_their_members_one_by_one() {
    let texts = [
        "(f32[6, 5]) [n: 6 | d: 5] f32 = max a0[n, d]",
        "(f32[6, 5], f32[6]) [n: 6, d: 5] f32 = exp(a0[n, d] - a1[n])",
        "(f32[6, 5]) [n: 6 | d: 5] f32 = sum a0[n, d]",
        "(f32[6, 5], f32[6], f32[6, 5]) [n: 6, d: 5] f32 = a0[n, d] / a1[n] + a2[n, d]",
    ];
    let kernels = texts.map(|text| text.parse::<Kernel>().unwrap());
    for shared in [false, true] {
        all("a group", |device| {
            let prepared = kernels
                .each_ref()
                .map(|k| device.prepare(k, &LoopKernel::of_whole(k), false));
            let x = device.adopt(array(DType::F32, &[6, 5]).into());
            let old = device.adopt(array(DType::F32, &[6, 5]).into());
            let kept = shared.then(|| old.clone());
            let before = old.to_host().data().clone();
            let given = || {
                MemberOperand::Given(Operand {
                    columns: std::slice::from_ref(&x),
                    start: vec![0, 0],
                })
            };
            let operands = [
                vec![given()],
                vec![given(), MemberOperand::Made(0)],
                vec![MemberOperand::Made(1)],
                vec![
                    MemberOperand::Made(1),
                    MemberOperand::Made(2),
                    MemberOperand::Replaced(3),
                ],
            ];
            let members = operands.into_iter().enumerate();
            let members: Vec<Member<'_>> = members
                .map(|(number, operands)| Member {
                    kernel: &*prepared[number],
                    ranges: whole(&kernels[number]),
                    operands,
                    kept: number != 1,
                })
                .collect();
            let over = BTreeMap::from([(3, old)]);
            let made = device.run_group(&members, 1, over).unwrap();
            assert!(made[1].is_none());
            if let Some(kept) = kept {
                assert_eq!(kept.to_host().data(), &before);
            }
            made.into_iter().flatten().flatten().collect()
        });
    }
}

#[test]
fn single_points_are_changed() {
    let text = "(i64[], f64[], f64[9, 4]) [i: 9, j: 4] f64 = where(i == a0[], a1[], a2[i, j])";
    let kernel: Kernel = text.parse().unwrap();
    let update = kernel.update().unwrap();
    all(text, |device| {
        let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
        let at = Array::new(vec![], Data::I64(vec![6])).unwrap();
        let value = Array::new(vec![], Data::F64(vec![0.125])).unwrap();
        let table = array(DType::F64, &[9, 4]);
        let mut buffers = [at, value, table].map(|array| device.adopt(array.into()));
        let launch = Launch {
            kernel: &*prepared,
            ranges: whole(&kernel),
            operands: read(&buffers),
        };
        for (start, part) in device.changes(&launch, &update).unwrap() {
            let origin = vec![0; start.len()];
            device.copy_box(&mut buffers[2], &start, &part, &origin, part.shape());
        }
        buffers[2..].to_vec()
    });
}

#[test]
fn boxes_and_slices_are_copied_and_what_is_shared_stays() {
    all("copies", |device| {
        let source = device.adopt(array(DType::I64, &[3, 4]).into());
        let mut target = device.zeros(&BufferType::dense(DType::I64, vec![2, 3]));
        let shared = target.clone();
        device.copy_box(&mut target, &[0, 1], &source, &[1, 2], &[2, 2]);
        let mut rounds = device.zeros(&BufferType::dense(DType::I64, vec![3, 2, 4]));
        device.copy_slice(&mut rounds, 1, 1, &source);
        let identity = rounds.identity();
        device.copy_slice(&mut rounds, 1, 0, &source);
        // What nobody else holds is changed where it lies.
        assert_eq!(rounds.identity(), identity);
        let mut own = target.clone();
        device.unshare(&mut own);
        assert_ne!(own.identity(), target.identity());
        vec![target, shared, rounds, own]
    });
}

#[test]
fn faults_are_the_same() {
    for (text, wanted) in [
        (
            "(i64[5], i64[3]) [i: 5] i64 = a1[a0[i]]",
            Fault::OutOfRange {
                operand: 1,
                dimension: 0,
                position: 3,
                extent: 3,
            },
        ),
        (
            "(i64[5]) [i: 5] i64 = floordiv(i, i - 3)",
            Fault::DivisionByZero,
        ),
        (
            "(f32[5], i64[4]) [n: 4 | v: 5] f32 = max a0[v] if v == within(a1[n], 3)",
            Fault::NotWithin {
                check: NodeId(5),
                position: 3,
                extent: 3,
            },
        ),
        (
            "(i64[5]) [i: 5] i64 = pow(i + 1, 2 - i)",
            Fault::NegativePower,
        ),
        (
            "(f32[4, 3]) [i: 4 | j: 3] i64 = argmax a0[i, j] if i < 2",
            Fault::NothingToChoose,
        ),
    ] {
        let Ok(kernel) = text.parse::<Kernel>() else {
            panic!("{text}");
        };
        let found = devices().map(|device| {
            let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
            let buffers = operands(&kernel, &*device);
            let launch = Launch {
                kernel: &*prepared,
                ranges: whole(&kernel),
                operands: read(&buffers),
            };
            device.run(&launch).unwrap_err()
        });
        assert_eq!(found[0], found[1], "{text}");
        assert_eq!(found[1], found[2], "{text}");
        assert_eq!(found[0].fault, wanted, "{text}");
    }
}

/// Drawn numbers do not depend on the device.
#[test]
fn sources_are_the_same_numbers() {
    let sources = [
        (Source::Full(ein_plan::Scalar::Float(2.5)), vec![5, 7]),
        (Source::Iota, vec![5, 7]),
        (
            Source::Numbers((0..35).map(|n| ein_plan::Scalar::Int(n % 3)).collect()),
            vec![5, 7],
        ),
        (Source::Permutation, vec![23]),
        (Source::Uniform { lo: -1.0, hi: 2.0 }, vec![5, 7]),
        (
            Source::Normal {
                mean: 1.0,
                std: 3.0,
            },
            vec![5, 7],
        ),
        (Source::Bernoulli { p: 0.3 }, vec![5, 7]),
        (Source::Gumbel, vec![5, 7]),
    ];
    for (source, shape) in sources {
        for dtype in [DType::F64, DType::F32, DType::BF16, DType::I64] {
            for rounds in [&[][..], &[3, 1]] {
                let draw = Draw {
                    source: &source,
                    dtype,
                    stream: "w.z",
                    seed: 7,
                    rounds,
                    shape: &shape,
                };
                let ranges: Vec<Span> = shape.iter().map(|extent| (1, extent - 2)).collect();
                let made = devices().map(|device| device.generate(&draw, &ranges).to_host());
                assert_eq!(made[0], made[1], "{source:?} {dtype}");
                assert_eq!(made[1], made[2], "{source:?} {dtype}");
            }
        }
    }
}
