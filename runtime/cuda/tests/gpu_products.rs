//! Products of matrices on a GPU: what the library is given as it lies, what is packed, and what the processor gives.
//!
//! ```text
//! a0[i, k] * a1[k, j]   ->   one product, no launch;   a0[i, k] * exp(a1[k, j])   ->   one launch, one product
//! ```
#![allow(clippy::unwrap_used, missing_docs)]

mod machines;

use ein_array::{Array, Data};
use ein_cuda::{Counts, Gpu};
use ein_device::{Buffer, Device, Launch, Launched, Operand};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Kernel, LoopKernel, Scalar};
use half::{bf16, f16};
use machines::gpu;

/// Numbers of an operand: multiples of 1/8 that every type holds, or places from 0 to 6.
fn operand(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let count: usize = shape.iter().product();
    let eighths = |at: usize| ((at * 37 + 11 * seed) % 29) as f32 / 8.0 - 1.5;
    let all = (0..count).map(eighths);
    let data = match dtype {
        DType::F16 => Data::F16(all.map(f16::from_f32).collect()),
        DType::BF16 => Data::BF16(all.map(bf16::from_f32).collect()),
        DType::F64 => Data::F64(all.map(f64::from).collect()),
        DType::I64 => Data::I64((0..count).map(|at| (at * 5 % 7) as i64).collect()),
        _ => Data::F32(all.collect()),
    };
    Array::new(shape.to_vec(), data).unwrap()
}

/// Runs a kernel at these ranges, of operands of which each dimension begins at these places.
fn run(
    device: &dyn Device,
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[(Array, Vec<u64>)],
) -> Launched {
    let prepared = device.prepare(kernel, &LoopKernel::of_whole(kernel), false);
    let columns: Vec<Vec<Buffer>> = (operands.iter())
        .map(|(array, _)| vec![device.adopt(array.clone().into())])
        .collect();
    let operands = operands.iter().zip(&columns);
    device.run(&Launch {
        kernel: &*prepared,
        ranges: ranges.to_vec(),
        operands: operands
            .map(|((_, start), columns)| Operand {
                columns,
                start: start.clone(),
            })
            .collect(),
    })
}

/// Compares a GPU with the processor, of whole operands but for `parts`: the dimension of an operand that is given from a place on.
fn check(
    text: &str,
    ranges: Option<&[(u64, u64)]>,
    parts: &[(usize, usize, u64, usize)],
) -> Counts {
    check_on(gpu(), text, ranges, parts)
}

fn check_on(
    gpu: Gpu,
    text: &str,
    ranges: Option<&[(u64, u64)]>,
    parts: &[(usize, usize, u64, usize)],
) -> Counts {
    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let ranges = ranges.unwrap_or(&whole);
    let operands = kernel.operands.iter().enumerate().map(|(number, own)| {
        let mut shape: Vec<usize> = own.shape.iter().map(|n| *n as usize).collect();
        let mut start = vec![0; shape.len()];
        for (_, dim, from, length) in parts.iter().filter(|part| part.0 == number) {
            start[*dim] = *from;
            shape[*dim] = *length;
        }
        (operand(own.columns[0], &shape, number), start)
    });
    let operands: Vec<(Array, Vec<u64>)> = operands.collect();
    let got = run(&gpu, &kernel, ranges, &operands);
    let want = run(&Cpu, &kernel, ranges, &operands);
    match (got, want) {
        (Ok(got), Ok(want)) => {
            let (got, want) = (got[0].to_host(), want[0].to_host());
            assert_eq!(got.shape(), want.shape(), "{text}");
            let tolerance = match got.dtype() {
                DType::F16 | DType::BF16 => 1e-2,
                DType::F32 => 1e-5,
                _ => 1e-13,
            };
            for at in 0..want.data().len() {
                let (a, b) = (got.data().get(at).as_f64(), want.data().get(at).as_f64());
                let agrees = (a - b).abs() <= tolerance * b.abs().max(8.0);
                assert!(agrees, "{text}: element {at}: {a}, not {b}");
            }
        }
        (got, want) => assert_eq!(
            got.map(|_| "a result").map_err(|e| (e.fault, e.point)),
            want.map(|_| "a result").map_err(|e| (e.fault, e.point)),
            "{text}"
        ),
    }
    gpu.counts()
}

/// Returns (products, launches), with nothing on the cores.
fn on_gpu(counts: Counts) -> (u64, u64) {
    assert_eq!(counts.on_cores, 0);
    (counts.products, counts.launches)
}

#[test]
fn factors_that_lie_as_matrices_are_taken_as_they_lie() {
    for text in [
        "(f32[17, 23], f32[23, 19]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j]",
        "(f64[23, 17], f64[19, 23]) [i: 17, j: 19 | k: 23] f64 = sum a0[k, i] * a1[j, k]",
        "(f32[23, 17], f32[19, 23]) [j: 19, i: 17 | k: 23] f32 = sum -(a0[k, i] * a1[j, k])",
        "(f32[2, 3, 17, 15], f32[2, 3, 19, 15]) [b: 2, h: 3, t: 17, s: 19 | d: 15] f32 = sum a0[b, h, t, d] * a1[b, h, s, d] / 8.0",
        "(f32[1, 17, 3, 16], f32[1, 19, 3, 16]) [b: 1, h: 3, t: 17, s: 19 | d: 16] f32 = sum a0[b, t, h, d] * a1[b, s, h, d]",
        "(f32[17, 23], f32[23, 19]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j] / sqrt(64.0)",
        "(f32[4, 5, 30], f32[30, 16]) [a: 4, b: 5, j: 16 | k: 30] f32 = sum a0[a, b, k] * a1[k, j]",
        "(f32[100, 9, 7], f32[9, 7]) [i: 100 | k: 9, l: 7] f32 = sum a0[i, k, l] * a1[k, l]",
        "(f16[17, 23], f16[23, 19]) [i: 17, j: 19 | k: 23] f16 = sum a0[i, k] * a1[k, j]",
        "(f16[17, 23], f16[23, 19]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j]",
        "(bf16[17, 23], bf16[23, 19]) [i: 17, j: 19 | k: 23] bf16 = sum a0[i, k] * a1[k, j]",
    ] {
        assert_eq!(on_gpu(check(text, None, &[])), (1, 0), "{text}");
    }
}

#[test]
fn other_factors_are_packed_and_other_results_copied() {
    for (text, launches) in [
        (
            "(f32[17, 23], f32[23, 19]) [i: 17, j: 19 | k: 23] f32 = sum exp(a0[i, k]) * a1[k, j]",
            1,
        ),
        (
            "(f32[40, 9], f32[6, 8]) [y: 30, f: 8, x: 5 | r: 4] f32 = sum a0[y + r, x] * a1[r, f]",
            2,
        ),
        (
            "(f32[17, 23], f32[23, 19], f32[17]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j] / exp(a2[i])",
            1,
        ),
        (
            "(f32[17, 23], f32[23, 19], f32[]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j] * a2[]",
            1,
        ),
        (
            "(f16[17, 23], f32[23, 19]) [i: 17, j: 19 | k: 23] f32 = sum a0[i, k] * a1[k, j]",
            1,
        ),
        (
            "(f32[17, 23], f32[23, 19]) [i: 17, j: 19 | k: 23] f16 = sum a0[i, k] * a1[k, j]",
            1,
        ),
        (
            "(f32[2, 17, 3, 16], f32[2, 19, 3, 16]) [b: 2, t: 17, h: 3, s: 19 | d: 16] f32 = sum a0[b, t, h, d] * a1[b, s, h, d]",
            3,
        ),
        (
            "(f32[17, 23], f32[23, 19, 2]) [j: 19, i: 17, l: 2 | k: 23] f32 = sum a0[i, k] * a1[k, j, l]",
            1,
        ),
        (
            "(f32[7, 23], f32[23, 19], i64[17]) [i: 17, j: 19 | k: 23] f32 = sum a0[a2[i], k] * a1[k, j]",
            1,
        ),
        (
            "(f32[16, 16, 20], f32[20, 16]) [i: 16, j: 16 | k: 20] f32 = sum a0[i, i, k] * a1[k, j]",
            0,
        ),
    ] {
        let counts = on_gpu(check(text, None, &[]));
        assert_eq!(counts, (1, launches), "{text}");
    }
}

#[test]
fn parts_of_operands_and_of_results() {
    let text = "(f32[40, 50], f32[50, 60]) [i: 40, j: 60 | k: 50] f32 = sum a0[i, k] * a1[k, j]";
    let ranges = [(11, 13), (7, 31), (20, 17)];
    let counts = check(text, Some(&ranges), &[(0, 0, 10, 20), (1, 1, 5, 40)]);
    assert_eq!(on_gpu(counts), (1, 0));
    // No term, and no element.
    check(text, Some(&[(0, 40), (0, 60), (3, 0)]), &[]);
    check(text, Some(&[(0, 0), (0, 60), (0, 50)]), &[]);
}

/// By working space in bytes: the products that a kernel is made by.
fn pieces(text: &str, cases: &[(u64, u64)]) {
    for (bytes, products) in cases {
        let counts = check_on(gpu().working_in(*bytes), text, None, &[]);
        let found = (counts.products, counts.on_cores);
        assert_eq!(found, (*products, 0), "{bytes} bytes");
    }
}

#[test]
fn large_factors_are_packed_in_pieces() {
    pieces(
        "(f32[4, 30, 14], f32[6, 8]) [n: 4, f: 8, y: 25, x: 14 | r: 6] f32 = sum a0[n, y + r, x] * a1[r, f]",
        &[(1 << 20, 1), (8000, 10), (600, 125)],
    );
}

/// The result's rows are two indices, and its columns lie between them.
#[test]
fn large_results_are_copied_in_pieces() {
    pieces(
        "(f32[40, 6, 24], f32[24, 20]) [i: 40, j: 20, h: 6 | k: 24] f32 = sum a0[i, h, k] * a1[k, j]",
        &[(1 << 20, 1), (8000, 3), (600, 40)],
    );
}

#[test]
fn a_factor_without_a_value_is_told_as_by_the_processor() {
    let text = "(f32[5, 23], f32[23, 19], i64[17]) [i: 17, j: 19 | k: 23] f32 = sum a0[a2[i], k] * a1[k, j]";
    let counts = check(text, None, &[]);
    assert_eq!(counts.on_cores, 1);
}

#[test]
fn results_that_must_not_depend_on_sites_are_sums_in_order() {
    let kernel: Kernel =
        "(f32[64, 64], f32[64, 64]) [i: 64, j: 64 | k: 64] f32 = sum a0[i, k] * a1[k, j]"
            .parse()
            .unwrap();
    let gpu = gpu();
    let prepared = gpu.prepare(&kernel, &LoopKernel::of_whole(&kernel), true);
    let operands = [0, 1].map(|number| gpu.adopt(operand(DType::F32, &[64, 64], number).into()));
    let part = |from: u64, length: u64| {
        let operands = operands.iter().map(|buffer| Operand {
            columns: std::slice::from_ref(buffer),
            start: vec![0, 0],
        });
        let made = gpu.run(&Launch {
            kernel: &*prepared,
            ranges: vec![(from, length), (0, 64), (0, 64)],
            operands: operands.collect(),
        });
        let made = made.unwrap()[0].to_host();
        (0..made.data().len())
            .map(|at| made.data().get(at))
            .collect::<Vec<Scalar>>()
    };
    let parts = [part(0, 23), part(23, 41)].concat();
    assert_eq!(part(0, 64), parts);
    assert_eq!(gpu.counts().products, 0);
}
