//! Scatters into the rows of an output, of points that lie row by row or across, against plain loops.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{Options, run};
use ein_plan::{DType, Kernel};
use reference::{Owned, array, check, chunks};

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

/// Places and rows of fewer bits are those of 64, also through a list of places, and where one is outside.
#[test]
fn numbers_of_few_bits_are_those_of_many() {
    let guards = ["PLACE == p", "a4[PLACE] == p"];
    for (narrow, least) in [(DType::I32, -1), (DType::U8, 0)] {
        for (number, guard) in guards.into_iter().enumerate() {
            let result = |dtype: DType, outside: bool| {
                let (t, wide) = (dtype.name(), dtype == DType::I64);
                let at = |read: &str| {
                    if wide {
                        read.to_owned()
                    } else {
                        format!("i64({read})")
                    }
                };
                let guard = guard.replace("PLACE", &at("a3[e]"));
                let text = format!(
                    "(f32[900], {t}[900], f32[300, 24], {t}[900], i64[80]) [p: 70, j: 24 | e: 900] f32 = sum a0[e] * a2[{}, j] if {guard}",
                    at("a1[e]"),
                );
                let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
                let place = |e: usize| ((e * e + 3 * e) % 74) as f64 + f64::from(least);
                // A row that is not there, or a place that the list does not have.
                let row = |e: usize| match (number, outside && e == 704) {
                    (0, true) => 420.0,
                    _ => ((e * 7) % 250) as f64,
                };
                let place = move |e: usize| match (number, outside && e == 704) {
                    (1, true) => 81.0,
                    (1, false) => place(e).max(0.0),
                    _ => place(e),
                };
                let operands = [
                    owned(DType::F32, &[900], |e| (e % 13) as f64 - 6.0),
                    owned(dtype, &[900], row),
                    owned(DType::F32, &[300, 24], |e| (e % 31) as f64 - 15.0),
                    owned(dtype, &[900], place),
                    owned(DType::I64, &[80], |e| (e * 3 % 80) as f64),
                ];
                let ranges = [(0, 70), (0, 24), (0, 900)];
                let made = run(&kernel, &ranges, &chunks(&operands), &Options::default());
                made.map(|mut made| bytes(&mut made))
                    .map_err(|error| (error.fault, error.point))
            };
            for outside in [false, true] {
                // The largest number of eight bits is below the number of rows.
                if outside && narrow == DType::U8 && number == 0 {
                    continue;
                }
                let (few, many) = (result(narrow, outside), result(DType::I64, outside));
                assert_eq!(few.is_err(), outside, "{narrow} {guard}");
                assert_eq!(few, many, "{narrow} {guard}, outside: {outside}");
            }
        }
    }
}

/// Lines of any width, of which the sums of a row are held block by block of columns; rows of many points and of none, in order and not, and
/// points that are summed part by part.
#[test]
fn lines_of_any_width_are_added_up() {
    let values = [
        "a2[a1[e], j]",
        "a0[e] * a2[a1[e], j]",
        "a0[e] * a2[a1[e], j] * a0[e]",
        "a0[e] * a4[e, j]",
    ];
    let sizes = [(40, 90), (3, 3000), (2, 40_000)];
    for (number, width) in [2, 3, 4, 7, 8, 9, 12, 31, 32, 33, 45, 64, 71]
        .into_iter()
        .enumerate()
    {
        for (at, (rows, points)) in sizes.into_iter().enumerate() {
            if points > 3000 && width != 8 && width != 12 {
                continue;
            }
            for (dtype, reduction) in [
                (DType::F32, "sum"),
                (DType::F64, "max"),
                (DType::F32, "prod"),
                (DType::I64, "sum"),
            ] {
                let (t, value) = (dtype.name(), values[(number + at) % values.len()]);
                let text = format!(
                    "({t}[{points}], i64[{points}], {t}[50, {width}], i64[{points}], {t}[{points}, {width}]) \
                     [p: {rows}, j: {width} | e: {points}] {t} = {reduction} {value} if a3[e] == p"
                );
                let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
                // Some points have no row; rows in the middle have no point.
                let row = |e: usize| match number % 2 {
                    0 => (e * (rows + 1) / points) as f64 * 1.4 - 1.0,
                    _ => ((e * e + 3 * e) % (rows + 2)) as f64 - 1.0,
                };
                let small = |e: usize| [1.0, -1.0, 0.5, 2.0][(e * 7 + e / 5) % 4];
                let number = |e: usize| match dtype {
                    DType::I64 => (e % 5) as f64 - 2.0,
                    _ => small(e),
                };
                let (all, width) = (points as u64, width as u64);
                let operands = [
                    owned(dtype, &[all], number),
                    owned(DType::I64, &[all], |e| ((e * 13) % 50) as f64),
                    owned(dtype, &[50, width], number),
                    owned(DType::I64, &[all], |e| row(e).floor()),
                    owned(dtype, &[all, width], number),
                ];
                check(
                    &kernel,
                    &[(0, rows as u64), (0, width), (0, all)],
                    &operands,
                );
            }
        }
    }
}

/// Lines and numbers that the points of a bag share.
#[test]
fn the_points_of_a_bag_add_one_line() {
    let (places, bags, of_bag, width) = (40u64, 300u64, 7u64, 24u64);
    let value = |e: usize| ((e * 37 + e / 3) % 29) as f64 - 11.0;
    let place = |e: usize| ((e * e + 3 * e) % 43) as f64;
    for term in ["a1[b, d]", "a1[b, d] * a2[b, k]", "a1[a3[b], d] * a4[b]"] {
        for dims in [width, 1] {
            let text = format!(
                "(i64[{bags}, {of_bag}], f32[{bags}, {width}], f32[{bags}, {of_bag}], i64[{bags}], f32[{bags}]) [v: {places}, d: {dims} | b: {bags}, k: {of_bag}] f32 = sum {term} if a0[b, k] == v"
            );
            let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}"));
            let named = |e: usize| (e * 11 % 300) as f64;
            let operands = [
                owned(DType::I64, &[bags, of_bag], place),
                owned(DType::F32, &[bags, width], value),
                owned(DType::F32, &[bags, of_bag], value),
                owned(DType::I64, &[bags], named),
                owned(DType::F32, &[bags], value),
            ];
            let ranges = [(0, places), (0, dims), (0, bags), (0, of_bag)];
            let got = run(&kernel, &ranges, &chunks(&operands), &Options::default()).unwrap();
            let mut want = vec![0.0; (places * dims) as usize];
            for b in 0..bags as usize {
                for k in 0..of_bag as usize {
                    let (at, to) = (b * of_bag as usize + k, place(b * of_bag as usize + k));
                    for d in (0..dims as usize).filter(|_| to < places as f64) {
                        let element = |row: usize| value(row * width as usize + d);
                        let x = match term {
                            "a1[b, d]" => element(b),
                            "a1[b, d] * a2[b, k]" => element(b) * value(at),
                            _ => element(named(b) as usize) * value(b),
                        };
                        want[to as usize * dims as usize + d] += x;
                    }
                }
            }
            let got: Vec<f64> = (0..want.len())
                .map(|at| got[0].data().get(at).as_f64())
                .collect();
            assert!(got == want, "{text}");
        }
    }
}
