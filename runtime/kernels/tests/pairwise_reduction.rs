//! Reductions of functions of two elements against the naive evaluator: all orders of indices, sizes that do not divide, parts
//! of ranges; the same bits on any number of threads, in parts of the output, and in sweeps.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Member, Operand, Options, fused_rows, run};
use ein_plan::{DType, Kernel};
use reference::{Owned, array, close, interpret};

/// Shapes of operands, indices, body. `T` stands for the type, `2T` for two in it.
const CASES: [&str; 27] = [
    // Blocks: wide, narrow and partial panels, rows that are left over.
    "(T[37, 7], T[131, 7]) [n: 37, k: 131 | d: 7] T = sum pow(a0[n, d] - a1[k, d], 2T)",
    "(T[37, 7], T[131, 7]) [k: 131, n: 37 | d: 7] T = sum (a0[n, d] - a1[k, d]) * (a0[n, d] - a1[k, d])",
    "(T[9, 150], T[21, 150]) [n: 9, k: 21 | d: 150] T = mean pow(a0[n, d] - a1[k, d], 2T)",
    "(T[9, 150], T[150, 21]) [n: 9, k: 21 | d: 150] T = sum abs(a0[n, d] - a1[d, k])",
    "(T[12, 30], T[70, 30]) [n: 12, k: 70 | d: 30] T = max abs(a0[n, d] - a1[k, d])",
    "(T[33, 40], T[40, 70]) [i: 33, j: 70 | k: 40] T = min a0[i, k] + a1[k, j]",
    "(T[33, 40], T[40, 70]) [j: 70, i: 33 | k: 40] T = max a0[i, k] + a1[k, j]",
    "(T[3, 10, 5], T[3, 20, 5]) [b: 3, n: 10, k: 20 | d: 5] T = sum pow(a0[b, n, d] - a1[b, k, d], 2T)",
    "(T[10, 5, 3], T[20, 5, 3]) [n: 10, k: 20, b: 3 | d: 5] T = sum pow(a0[n, d, b] - a1[k, d, b], 2T)",
    "(T[12, 3, 5], T[17, 5, 3]) [n: 12, k: 17 | c: 3, d: 5] T = sum abs(a0[n, c, d] - a1[k, d, c])",
    "(T[5, 4, 6], T[18, 6]) [y: 4, x: 5, k: 18 | d: 6] T = sum pow(a0[x, y, d] - a1[k, d], 2T)",
    "(T[44], T[16, 5]) [x: 40, k: 16 | r: 5] T = sum abs(a0[x + r] - a1[k, r])",
    // Lines.
    "(T[50, 100], T[100]) [i: 50 | d: 100] T = sum pow(a0[i, d] - a1[d], 2T)",
    "(T[100], T[3, 50, 100]) [b: 3, i: 50 | d: 100] T = mean abs(a1[b, i, d] - a0[d])",
    "(T[7, 3, 333], T[7, 3, 333]) [i: 7, j: 3 | d: 333] T = sum a0[i, j, d] * a1[i, j, d]",
    "(T[200001], T[200001]) [ | d: 200001] T = sum a0[d] * a1[d]",
    "(T[2, 140000], T[2, 140000]) [i: 2 | d: 140000] T = max abs(a0[i, d] - a1[i, d])",
    // Lines to one element each.
    "(T[7, 3, 333], T[7]) [i: 7, j: 3 | d: 333] T = sum pow(a0[i, j, d] - a1[i], 2T)",
    "(T[7, 3, 333], T[3]) [i: 7, j: 3 | d: 333] T = mean abs(a1[j] - a0[i, j, d])",
    "(T[5, 16], T[5]) [i: 5 | d: 16] T = max abs(a0[i, d] - a1[i])",
    "(T[2, 5, 40], T[2, 5]) [i: 2, j: 5 | d: 40] T = min a0[i, j, d] + a1[i, j]",
    "(T[200001], T[]) [ | d: 200001] T = sum pow(a0[d] - a1[], 2T)",
    "(T[5, 40], T[5, 3]) [i: 5, k: 3 | d: 40] T = sum pow(a0[i, d] - a1[i, k], 2T)",
    // Others are contractions.
    "(T[61, 80], T[80]) [i: 61 | d: 80] T = sum a0[i, d] * a1[d]",
    // Sums of rows.
    "(T[70], T[70, 2500]) [j: 2500 | d: 70] T = sum a0[d] * a1[d, j]",
    "(T[2, 9], T[9, 2, 1100]) [b: 2, j: 1100 | d: 9] T = sum a0[b, d] * a1[d, b, j]",
    "(T[131], T[131, 1200]) [j: 1200 | d: 131] T = sum pow(a0[d] - a1[d, j], 2T)",
];

fn kernel(text: &str, dtype: DType) -> Kernel {
    let two = if dtype == DType::F64 {
        "2.0_f64"
    } else {
        "2.0"
    };
    let text = text.replace("2T", two).replace('T', dtype.name());
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn operands(kernel: &Kernel) -> Vec<Owned> {
    let of = |(number, operand): (usize, &ein_plan::Operand)| {
        let shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
        let value = |e: usize| ((e * (7 * number + 3) + e / 5) % 211) as f64 / 16.0 - 6.5;
        Owned {
            columns: vec![array(operand.columns[0], &shape, value)],
            start: vec![0; shape.len()],
        }
    };
    kernel.operands.iter().enumerate().map(of).collect()
}

fn chunks(owned: &[Owned]) -> Vec<Chunk<'_>> {
    let chunk = |o: &'_ Owned| o.start.clone();
    owned
        .iter()
        .map(|o| Chunk {
            columns: o.columns.iter().collect(),
            start: chunk(o),
        })
        .collect()
}

fn whole(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel.indices.iter().map(|i| (0, i.extent)).collect()
}

fn evaluated(kernel: &Kernel, ranges: &[(u64, u64)], owned: &[Owned]) -> Array {
    let mut result = run(kernel, ranges, &chunks(owned), &Options::default()).unwrap();
    result.remove(0)
}

fn check(kernel: &Kernel, ranges: &[(u64, u64)], owned: &[Owned], got: &Array) {
    let want = interpret(kernel, ranges, owned).unwrap();
    assert_eq!(got.data().len(), want.len());
    for (at, (value, scale)) in want.iter().enumerate() {
        let x = got.data().get(at).as_f64();
        let near = close(got.dtype(), x, value.f(), *scale);
        assert!(
            near,
            "element {at}: {x}, not {value:?}\n{kernel:?}\n{ranges:?}"
        );
    }
}

fn all() -> impl Iterator<Item = Kernel> {
    let both = [DType::F32, DType::F64];
    both.into_iter()
        .flat_map(|dtype| CASES.iter().map(move |text| kernel(text, dtype)))
}

/// All kernels over a part of each range.
fn agree_over(part: impl Fn((u64, u64)) -> (u64, u64)) {
    for kernel in all() {
        let owned = operands(&kernel);
        let ranges: Vec<(u64, u64)> = whole(&kernel).into_iter().map(&part).collect();
        let found = evaluated(&kernel, &ranges, &owned);
        check(&kernel, &ranges, &owned, &found);
    }
}

#[test]
fn all_forms_agree_with_the_naive_evaluator() {
    agree_over(|range| range);
}

#[test]
fn parts_of_ranges_agree_with_the_naive_evaluator() {
    agree_over(|(start, n)| (start + n / 5, n - n / 5 - n / 4));
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() {
    for kernel in all() {
        let owned = operands(&kernel);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            pool.install(|| evaluated(&kernel, &whole(&kernel), &owned))
        };
        let one = on(1);
        for threads in [2, 3, 5] {
            assert_eq!(
                one.data(),
                on(threads).data(),
                "{threads} threads\n{kernel:?}"
            );
        }
    }
}

#[test]
fn nan_and_infinity_come_through() {
    let kernel = kernel(
        "(T[6, 70], T[20, 70]) [i: 6, j: 20 | k: 70] T = min a0[i, k] + a1[j, k]",
        DType::F32,
    );
    let mut owned = operands(&kernel);
    if let Data::F32(values) = owned[0].columns[0].data_mut() {
        values[70 + 3] = f32::NAN;
        values[2 * 70..3 * 70].fill(f32::INFINITY);
        values[3 * 70 + 69] = f32::NEG_INFINITY;
    }
    let ranges = whole(&kernel);
    let got = evaluated(&kernel, &ranges, &owned);
    check(&kernel, &ranges, &owned, &got);
    assert!(got.data().get(20).as_f64().is_nan());
    assert_eq!(got.data().get(40).as_f64(), f64::INFINITY);
    assert_eq!(got.data().get(60).as_f64(), f64::NEG_INFINITY);
}

/// The nearest of some points, in a sweep over blocks of rows and step by step.
#[test]
fn sweeps_have_the_bits_of_their_steps() {
    for (n, k, d) in [(3001u64, 70u64, 16u64), (501, 3, 40), (40, 9001, 5)] {
        let distance = format!(
            "(f32[{n}, {d}], f32[{k}, {d}]) [n: {n}, k: {k} | d: {d}] f32 = sum pow(a0[n, d] - a1[k, d], 2.0)"
        );
        let nearest = format!("(f32[{n}, {k}]) [n: {n} | k: {k}] i64 = argmin a0[n, k]");
        let (distance, nearest): (Kernel, Kernel) =
            (distance.parse().unwrap(), nearest.parse().unwrap());
        let owned = operands(&distance);
        let made = evaluated(&distance, &whole(&distance), &owned);
        let columns = Owned {
            columns: vec![made],
            start: vec![0, 0],
        };
        let near = evaluated(&nearest, &whole(&nearest), std::slice::from_ref(&columns));
        let Data::I64(found) = near.data() else {
            panic!("argmin is i64");
        };
        for (row, found) in found.iter().enumerate() {
            let of = |at: i64| {
                columns.columns[0]
                    .data()
                    .get(row * k as usize + at as usize)
                    .as_f64()
            };
            let first = (0..k as i64).reduce(|a, b| if of(b) < of(a) { b } else { a });
            assert_eq!(Some(*found), first, "row {row}");
        }
        let members = [
            Member {
                kernel: &distance,
                ranges: whole(&distance),
                operands: chunks(&owned).into_iter().map(Operand::Given).collect(),
                kept: true,
                memo: None,
            },
            Member {
                kernel: &nearest,
                ranges: whole(&nearest),
                operands: vec![Operand::Made(0)],
                kept: true,
                memo: None,
            },
        ];
        let swept = fused_rows(&members, 1, &Options::default()).unwrap();
        let column = |member: usize| swept[member].as_ref().unwrap()[0].data();
        assert!(
            column(0) == columns.columns[0].data(),
            "distances of {n}, {k}, {d}"
        );
        assert!(column(1) == near.data(), "nearest of {n}, {k}, {d}");
    }
}
