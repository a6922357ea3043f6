//! Scatters into the rows of an output, of points that lie row by row or across, against plain loops.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{Options, run};
use ein_plan::{DType, Kernel};
use reference::{Owned, array, chunks};

fn owned(dtype: DType, shape: &[u64], of: impl Fn(usize) -> f64) -> Owned {
    let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    Owned {
        columns: vec![array(dtype, &shape, of)],
        start: vec![0; shape.len()],
    }
}

fn bytes(arrays: &mut [Array]) -> Vec<u8> {
    arrays[0].data_mut().bytes_mut().to_vec()
}

#[test]
fn rows_are_added_up_where_their_points_lie() {
    let read = ["a1[i, j]", "a1[i, j] * a1[i, j]", "a2[j, i]"];
    for (number, (n, k, m)) in [(37, 5, 300), (700, 9, 131), (3, 2000, 9000), (90, 1, 1)]
        .into_iter()
        .enumerate()
    {
        for (dtype, reduction) in [
            (DType::F32, "sum"),
            (DType::F64, "sum"),
            (DType::I64, "sum"),
            (DType::I32, "max"),
            (DType::F32, "min"),
        ] {
            for (at, read) in read.iter().enumerate() {
                let t = dtype.name();
                let odd = (number + at) % 2 == 1;
                let guard = match odd {
                    true => "and(a0[j] == k, rem(j, 3) == 1)",
                    false => "a0[j] == k",
                };
                let text = format!(
                    "(i64[{m}], {t}[{n}, {m}], {t}[{m}, {n}]) [i: {n}, k: {k} | j: {m}] {t} = {reduction} {read} if {guard}"
                );
                let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
                // Whole numbers, small enough for exact sums. Some points have no place.
                let value = |e: usize| ((e * 37 + e / 3) % 29) as f64 - 11.0;
                let place = |e: usize| ((e * e + 3 * e) % (k as usize + 2)) as f64 - 1.0;
                let operands = [
                    owned(DType::I64, &[m], place),
                    owned(dtype, &[n, m], value),
                    owned(dtype, &[m, n], value),
                ];
                let part = vec![(n / 3, n - n / 3), (0, k), (m / 4, m - m / 4)];
                for ranges in [vec![(0, n), (0, k), (0, m)], part] {
                    let evaluate = |threads| {
                        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                        let run = || run(&kernel, &ranges, &chunks(&operands), &Options::default());
                        pool.build().unwrap().install(run).unwrap()
                    };
                    let mut got = evaluate(1);
                    assert!(bytes(&mut got) == bytes(&mut evaluate(3)), "{text}");
                    let [(i0, rows), (_, k), (j0, points)] = ranges[..] else {
                        panic!("three indices")
                    };
                    let (start, f): (f64, fn(f64, f64) -> f64) = match reduction {
                        "sum" => (0.0, |a, b| a + b),
                        "max" => (f64::from(i32::MIN), f64::max),
                        _ => (f64::INFINITY, f64::min),
                    };
                    let mut want = vec![start; (rows * k) as usize];
                    for j in (j0..j0 + points).filter(|j| !odd || j % 3 == 1) {
                        let to = place(j as usize);
                        for i in (i0..i0 + rows).filter(|_| (0.0..k as f64).contains(&to)) {
                            let x = match at {
                                0 => value((i * m + j) as usize),
                                1 => value((i * m + j) as usize).powi(2),
                                _ => value((j * n + i) as usize),
                            };
                            let to = &mut want[((i - i0) * k) as usize + to as usize];
                            *to = f(*to, x);
                        }
                    }
                    let got: Vec<f64> = (0..want.len())
                        .map(|at| got[0].data().get(at).as_f64())
                        .collect();
                    assert!(got == want, "{text} {ranges:?}");
                }
            }
        }
    }
}
