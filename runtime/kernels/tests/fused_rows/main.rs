//! Sweeps give the bits of their members one by one, whatever the sizes, blocks and threads.
#![allow(clippy::unwrap_used, missing_docs)]

mod inlined;
mod masks;

use ein_array::{Array, Data};
use ein_kernels::{
    Chunk, Fault, Fusion, KernelError, Member, Operand, Options, fused_rows_over, run,
};
use ein_plan::{DType, Kernel};
use std::collections::BTreeMap;

/// A program of kernels: their texts, and where each operand comes from (given ones first, then members).
struct Program {
    kernels: Vec<Kernel>,
    operands: Vec<Vec<usize>>,
    given: Vec<Array>,
}

/// A generator of numbers; the same ones on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    fn array(&mut self, dtype: DType, shape: &[usize]) -> Array {
        let n: usize = shape.iter().product();
        let mut value = || self.next(4001) as f64 / 1000.0 - 2.0;
        let data = match dtype {
            DType::F32 => Data::F32((0..n).map(|_| value() as f32).collect()),
            DType::F64 => Data::F64((0..n).map(|_| value()).collect()),
            DType::I64 => Data::I64((0..n).map(|_| (value() * 10.0) as i64).collect()),
            other => panic!("{other}"),
        };
        Array::new(shape.to_vec(), data).unwrap()
    }
}

/// Runs the members one after another.
fn one_by_one(
    program: &Program,
    ranges: &dyn Fn(&Kernel) -> Vec<(u64, u64)>,
    options: &Options,
) -> Result<Vec<Array>, (usize, KernelError)> {
    let mut made: Vec<Array> = vec![];
    for (number, (kernel, operands)) in program.kernels.iter().zip(&program.operands).enumerate() {
        let chunks: Vec<Chunk<'_>> = operands
            .iter()
            .map(|at| match at.checked_sub(program.given.len()) {
                None => whole(&program.given[*at]),
                Some(member) => {
                    let other = &program.kernels[member];
                    let start = ranges(other).into_iter().map(|(start, _)| start);
                    Chunk {
                        columns: vec![&made[member]],
                        start: start.take(other.output_rank as usize).collect(),
                    }
                }
            })
            .collect();
        let result = run(kernel, &ranges(kernel), &chunks, options);
        made.extend(result.map_err(|error| (number, error))?);
    }
    Ok(made)
}

fn whole(array: &Array) -> Chunk<'_> {
    Chunk {
        columns: vec![array],
        start: vec![0; array.shape().len()],
    }
}

/// Members that are kept, each with what is given that its result may take the memory of: all read it at their own row, if at all.
fn replaced(
    program: &Program,
    rows: usize,
    kept: &dyn Fn(usize) -> bool,
    ranges: &dyn Fn(&Kernel) -> Vec<(u64, u64)>,
) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = vec![];
    for (at, given) in program.given.iter().enumerate() {
        let beside = program
            .kernels
            .iter()
            .zip(&program.operands)
            .all(|(kernel, operands)| {
                let mut reads = kernel.graph.reads();
                reads.all(|(operand, positions)| {
                    operands[operand as usize] != at
                        || kernel.rows_read(positions) >= rows
                            && positions
                                .iter()
                                .all(|p| kernel.graph.as_index(*p).is_some())
                })
            });
        let fits = |member: &usize| {
            let kernel = &program.kernels[*member];
            let shape = ranges(kernel).into_iter().take(kernel.output_rank as usize);
            kept(*member)
                && kernel.output == [given.dtype()]
                && shape
                    .map(|(_, n)| n as usize)
                    .eq(given.shape().iter().copied())
                && kernel.output_rank as usize >= rows
                && found.iter().all(|(other, _)| other != member)
        };
        let members = || (0..program.kernels.len()).rev().filter(fits);
        let reader = members().find(|member| program.operands[*member].contains(&at));
        if beside && let Some(member) = reader.or(members().next()) {
            found.push((member, at));
        }
    }
    found
}

/// Whether a member is kept, and what is written over, as [`replaced`] says.
type Wanted<'a> = (&'a dyn Fn(usize) -> bool, &'a [(usize, usize)]);

/// The same as a sweep.
fn together(
    program: &Program,
    rows: usize,
    (kept, over): Wanted<'_>,
    ranges: &dyn Fn(&Kernel) -> Vec<(u64, u64)>,
    options: &Options,
) -> Result<Vec<Option<Array>>, (usize, KernelError)> {
    let old = |at: usize| over.iter().find(|(_, given)| *given == at);
    let members: Vec<Member<'_>> = (program.kernels.iter().zip(&program.operands))
        .enumerate()
        .map(|(number, (kernel, operands))| Member {
            kernel,
            ranges: ranges(kernel),
            operands: operands
                .iter()
                .map(|at| match at.checked_sub(program.given.len()) {
                    None => match old(*at) {
                        Some((member, _)) => Operand::Old(*member),
                        None => Operand::Given(whole(&program.given[*at])),
                    },
                    Some(member) => Operand::Made(member),
                })
                .collect(),
            kept: kept(number),
            memo: None,
        })
        .collect();
    let arrays = over
        .iter()
        .map(|(member, at)| (*member, program.given[*at].clone()));
    let arrays: BTreeMap<usize, Array> = arrays.collect();
    let address = |array: &Array| array.data().bytes().as_ptr();
    let places: Vec<_> = arrays
        .iter()
        .map(|(member, array)| (*member, address(array)))
        .collect();
    let made = fused_rows_over(&members, rows, arrays, options)?;
    for (member, place) in places {
        let made = made[member].as_ref().unwrap();
        assert_eq!(
            address(&made[0]),
            place,
            "member {member} is where the old one was"
        );
    }
    let first = |columns: Option<Vec<Array>>| columns.map(|mut columns| columns.remove(0));
    Ok(made.into_iter().map(first).collect())
}

fn everything(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel
        .indices
        .iter()
        .map(|index| (0, index.extent))
        .collect()
}

/// Whether what a member made is what was wanted, but for the order of sums.
fn close(member: usize, want: &Array, got: &Array) {
    let (want, got) = (want.data(), got.data());
    for at in 0..want.len() {
        let (want, got) = (want.get(at).as_f64(), got.get(at).as_f64());
        let far = (want - got).abs() > 1e-4 * (1.0 + want.abs());
        assert!(!far, "member {member} at {at}: {got}, not {want}");
    }
}

/// A sweep makes about what its members make one by one.
fn alike(
    program: &Program,
    rows: usize,
    kept: &dyn Fn(usize) -> bool,
    ranges: &dyn Fn(&Kernel) -> Vec<(u64, u64)>,
    options: &Options,
) {
    let want = one_by_one(program, ranges, options).unwrap();
    let got = together(program, rows, (kept, &[]), ranges, options).unwrap();
    for (number, (want, got)) in want.iter().zip(got).enumerate() {
        assert_eq!(got.is_some(), kept(number));
        if let Some(got) = got {
            close(number, want, &got);
        }
    }
}

fn same(
    name: &str,
    program: &Program,
    rows: usize,
    ranges: &(dyn Fn(&Kernel) -> Vec<(u64, u64)> + Sync),
) {
    for fusion in [Fusion::Never, Fusion::Always] {
        let options = Options {
            fusion,
            ..Options::default()
        };
        let want = one_by_one(program, ranges, &options);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            for all in [true, false] {
                let last = program.kernels.len() - 1;
                let kept = |number: usize| all || number == last;
                let over = replaced(program, rows, &kept, ranges);
                for over in [&[][..], &over] {
                    let got =
                        pool.install(|| together(program, rows, (&kept, over), ranges, &options));
                    match (&want, got) {
                        (Ok(want), Ok(got)) => {
                            for (number, (want, got)) in want.iter().zip(got).enumerate() {
                                let Some(got) = got else {
                                    assert!(!kept(number));
                                    continue;
                                };
                                assert_eq!(got.shape(), want.shape());
                                let equal = got.data().bytes() == want.data().bytes();
                                assert!(
                                    equal,
                                    "{name}: member {number}, {threads} threads, {fusion:?}"
                                );
                            }
                        }
                        (Err(want), Err(got)) => assert_eq!(*want, got, "{name}"),
                        (want, got) => panic!("{name}: {got:?}, not {want:?}"),
                    }
                }
            }
        }
    }
}

fn program(texts: &[(String, &[usize])], given: Vec<Array>) -> Program {
    let read = |text: &String| {
        text.parse::<Kernel>()
            .unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    Program {
        kernels: texts.iter().map(|(text, _)| read(text)).collect(),
        operands: texts
            .iter()
            .map(|(_, operands)| operands.to_vec())
            .collect(),
        given,
    }
}

fn softmax(n: usize, d: usize) -> Program {
    let mut numbers = Numbers(7);
    program(
        &[
            (
                format!("(f32[{n}, {d}]) [n: {n} | d: {d}] f32 = max a0[n, d]"),
                &[0],
            ),
            (
                format!("(f32[{n}, {d}], f32[{n}]) [n: {n}, d: {d}] f32 = exp(a0[n, d] - a1[n])"),
                &[0, 1],
            ),
            (
                format!("(f32[{n}, {d}]) [n: {n} | d: {d}] f32 = sum a0[n, d]"),
                &[2],
            ),
            (
                format!("(f32[{n}, {d}], f32[{n}]) [n: {n}, d: {d}] f32 = a0[n, d] / a1[n]"),
                &[2, 3],
            ),
        ],
        vec![numbers.array(DType::F32, &[n, d])],
    )
}

#[test]
fn a_softmax_has_the_bits_of_its_parts() {
    for (n, d) in [
        (1, 1),
        (5, 3),
        (1000, 7),
        (300, 1031),
        (20, 70_001),
        (3, 400_000),
        (70_001, 4),
    ] {
        same(&format!("{n} x {d}"), &softmax(n, d), 1, &everything);
    }
}

#[test]
fn a_part_of_the_rows_is_swept_like_the_whole() {
    let part = |kernel: &Kernel| {
        let mut ranges: Vec<(u64, u64)> = everything(kernel);
        ranges[0] = (100, 111);
        ranges
    };
    same("rows 100 to 211", &softmax(300, 1031), 1, &part);
    let none = |kernel: &Kernel| {
        let mut ranges: Vec<(u64, u64)> = everything(kernel);
        ranges[0] = (100, 0);
        ranges
    };
    same("no rows", &softmax(300, 1031), 1, &none);
}

/// Products of matrices are not cut as the whole is, so their sums may be taken in another order.
#[test]
fn products_are_close_to_their_parts() {
    let (b, h, q, k, d) = (2, 3, 301, 77, 40);
    let mut numbers = Numbers(11);
    let row = format!("b: {b}, h: {h}, q: {q}");
    let scores = format!("f32[{b}, {h}, {q}, {k}]");
    let texts = [
        (
            format!(
                "(f32[{b}, {h}, {q}, {d}], f32[{b}, {h}, {k}, {d}]) [{row}, k: {k} | d: {d}] f32 = sum a0[b, h, q, d] * a1[b, h, k, d]"
            ),
            &[0, 1][..],
        ),
        (
            format!("({scores}) [{row} | k: {k}] f32 = max a0[b, h, q, k]"),
            &[3],
        ),
        (
            format!(
                "({scores}, f32[{b}, {h}, {q}]) [{row}, k: {k}] f32 = exp(a0[b, h, q, k] - a1[b, h, q])"
            ),
            &[3, 4],
        ),
        (
            format!(
                "({scores}, f32[{b}, {k}, {h}, {d}]) [{row}, d: {d} | k: {k}] f32 = sum a0[b, h, q, k] * a1[b, k, h, d]"
            ),
            &[5, 2],
        ),
    ];
    let given = vec![
        numbers.array(DType::F32, &[b, h, q, d]),
        numbers.array(DType::F32, &[b, h, k, d]),
        numbers.array(DType::F32, &[b, k, h, d]),
    ];
    let program = program(&texts, given);
    let part = |kernel: &Kernel| {
        let mut ranges: Vec<(u64, u64)> = everything(kernel);
        ranges[2] = (9, 250);
        ranges
    };
    for ranges in [&everything as &dyn Fn(&Kernel) -> Vec<(u64, u64)>, &part] {
        let options = Options::default();
        for all in [true, false] {
            let kept = |number: usize| all || number == 3;
            alike(&program, 3, &kept, ranges, &options);
        }
    }
}

/// What divides a row divides its terms where that is something else: 0 and numbers near it, no number, and the infinite one.
#[test]
fn rows_are_divided_by_any_number() {
    let (t, s, d) = (60, 200, 30);
    let mut numbers = Numbers(3);
    let text = format!(
        "(f32[{t}, {s}], f32[{s}, {d}], f32[{t}]) [t: {t}, d: {d} | s: {s}] f32 = sum a0[t, s] * a1[s, d] / a2[t]"
    );
    let mut under = numbers.array(DType::F32, &[t]);
    if let Data::F32(values) = under.data_mut() {
        let odd = [0.0, f32::INFINITY, f32::NAN, 1e-41, 3.0, f32::MAX];
        values[..odd.len()].copy_from_slice(&odd);
    }
    let given = vec![
        numbers.array(DType::F32, &[t, s]),
        numbers.array(DType::F32, &[s, d]),
        under,
    ];
    let program = program(&[(text, &[0, 1, 2])], given);
    let options = Options::default();
    let want = one_by_one(&program, &everything, &options).unwrap();
    let got = together(&program, 1, (&|_| true, &[]), &everything, &options).unwrap();
    let (want, got) = (want[0].data(), got[0].as_ref().unwrap().data());
    for at in 0..t * d {
        let (want, got) = (want.get(at).as_f64(), got.get(at).as_f64());
        let same = want == got || want.is_nan() && got.is_nan();
        let close = (want - got).abs() <= 1e-4 * (1.0 + want.abs());
        assert!(same || close, "{at}: {got}, not {want}");
    }
}

/// A factor that all blocks of a few rows read, and whose columns do not lie side by side; with one block of another size at the end, on a
/// part of the columns, and beside one whose columns do.
#[test]
fn blocks_of_few_rows_share_a_factor() {
    let (n, h, l) = (103, 6000, 10);
    let mut numbers = Numbers(23);
    let values = format!("f32[{n}, {h}]");
    let texts = [
        (
            format!(
                "(f32[{n}, {l}], f32[{h}, {l}]) [n: {n}, h: {h} | l: {l}] f32 = sum a0[n, l] * a1[h, l]"
            ),
            &[0, 1][..],
        ),
        (
            format!(
                "({values}, {values}) [n: {n}, h: {h}] f32 = where(a0[n, h] > 0.0, a1[n, h], 0.0)"
            ),
            &[3, 4],
        ),
        (
            format!(
                "(f32[{n}, {l}], f32[{l}, {h}]) [n: {n}, h: {h} | l: {l}] f32 = sum a0[n, l] * a1[l, h]"
            ),
            &[0, 2],
        ),
        (
            format!("({values}, {values}) [n: {n}, h: {h}] f32 = a0[n, h] - a1[n, h]"),
            &[5, 6],
        ),
    ];
    let given = vec![
        numbers.array(DType::F32, &[n, l]),
        numbers.array(DType::F32, &[h, l]),
        numbers.array(DType::F32, &[l, h]),
        numbers.array(DType::F32, &[n, h]),
    ];
    let program = program(&texts, given);
    let part = |kernel: &Kernel| {
        let mut ranges: Vec<(u64, u64)> = everything(kernel);
        ranges[1] = (700, 5003);
        ranges
    };
    for ranges in [&everything as &dyn Fn(&Kernel) -> Vec<(u64, u64)>, &part] {
        let options = Options::default();
        for rows in [1, 2] {
            alike(&program, rows, &|_| true, ranges, &options);
        }
    }
}

/// What reduces all rows is merged block by block: close to the whole, and the same on any number of threads.
#[test]
fn numbers_are_gathered() {
    for (n, d) in [(1, 1), (3, 7), (1000, 33), (301, 1031), (5, 90_001)] {
        let mut numbers = Numbers(13);
        let shape = format!("f32[{n}, {d}]");
        let texts = [
            (
                format!("({shape}, {shape}) [n: {n}, d: {d}] f32 = a0[n, d] - 3.0_f32 * a1[n, d]"),
                &[0, 1][..],
            ),
            (
                format!("({shape}) [| n: {n}, d: {d}] f32 = norm a0[n, d]"),
                &[2],
            ),
            (
                format!("({shape}, {shape}) [| n: {n}, d: {d}] f32 = mean a0[n, d] * a1[n, d]"),
                &[0, 2],
            ),
            (
                format!("({shape}) [| n: {n}, d: {d}] f32 = max a0[n, d]"),
                &[2],
            ),
            (
                format!("({shape}) [n: {n} | d: {d}] f32 = sum a0[n, d]"),
                &[2],
            ),
        ];
        let given = vec![
            numbers.array(DType::F32, &[n, d]),
            numbers.array(DType::F32, &[n, d]),
        ];
        let program = program(&texts, given);
        let none = |kernel: &Kernel| {
            let mut ranges = everything(kernel);
            ranges[0] = (0, 0);
            ranges
        };
        for ranges in [
            &everything as &(dyn Fn(&Kernel) -> Vec<(u64, u64)> + Sync),
            &none,
        ] {
            let options = Options::default();
            let want = one_by_one(&program, ranges, &options).unwrap();
            let made = |threads: usize, over: bool| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let kept = |number: usize| number > 0;
                let pool = pool.build().unwrap();
                let over = match over {
                    true => replaced(&program, 1, &kept, ranges),
                    false => vec![],
                };
                let made = || together(&program, 1, (&kept, &over), ranges, &options);
                pool.install(|| made().unwrap())
            };
            let got = made(3, false);
            let bits = |made: &[Option<Array>]| -> Vec<Vec<u8>> {
                let arrays = made.iter().flatten();
                arrays.map(|array| array.data().bytes().to_vec()).collect()
            };
            assert_eq!(bits(&got), bits(&made(1, false)), "{n} x {d}");
            assert_eq!(
                bits(&got),
                bits(&made(3, true)),
                "{n} x {d}, over what is given"
            );
            for (number, (want, got)) in want.iter().zip(got).enumerate().skip(1) {
                let got = got.unwrap();
                assert_eq!(got.shape(), want.shape());
                for at in 0..want.data().len() {
                    let (want, got) = (want.data().get(at).as_f64(), got.data().get(at).as_f64());
                    let near = want == got
                        || (want.is_nan() && got.is_nan())
                        || (want - got).abs() <= 1e-5 * want.abs();
                    assert!(
                        near,
                        "{n} x {d}, member {number} at {at}: {got}, not {want}"
                    );
                }
            }
        }
    }
}

/// A rule of updates: a window of the data as gradients, states, what only the rule reads, equal results, a row of its own, and numbers
/// of what is made.
#[test]
fn a_rule_of_updates_has_the_bits_of_its_parts() {
    for (n, d) in [(1, 1), (7, 3), (60, 1003), (3, 70_001)] {
        for (dtype, name) in [(DType::F32, "f32"), (DType::F64, "f64")] {
            let mut numbers = Numbers(29);
            let whole = format!("{name}[{n}, {d}]");
            let own = format!("[n: {n}, d: {d}] {name} =");
            let of = |x: &str| format!("{x}_{name}");
            let (slow, fast, rate) = (of("0.9"), of("0.1"), of("0.01"));
            let mean = format!("({whole}, {whole}) {own} {slow} * a0[n, d] + {fast} * a1[n, d]");
            // Given: the data, a param, two states, a row, a number.
            let texts = [
                (format!("({name}[3, {n}, {d}]) {own} a0[2, n, d]"), &[0][..]),
                (
                    format!(
                        "({whole}, {whole}) [| n: {n}, d: {d}] {name} = max a0[n, d] * a1[n, d]"
                    ),
                    &[1, 6],
                ),
                (mean.clone(), &[2, 6]),
                (
                    format!(
                        "({whole}, {whole}) {own} {slow} * a0[n, d] + {fast} * (a1[n, d] * a1[n, d])"
                    ),
                    &[3, 6],
                ),
                (mean, &[2, 6]),
                (
                    format!("({whole}, {name}[]) {own} a0[n, d] / (a1[] * a1[] + {rate})"),
                    &[9, 5],
                ),
                (
                    format!(
                        "({whole}, {whole}, {whole}, {name}[{d}]) {own} where(a0[n, d] > a3[d], a0[n, d] - {rate} * (a1[n, d] / (sqrt(a2[n, d]) + {rate})), a1[n, d])"
                    ),
                    &[1, 8, 11, 4],
                ),
                (
                    format!("({whole}) [| n: {n}, d: {d}] {name} = min a0[n, d]"),
                    &[12],
                ),
                (
                    format!("({whole}) [n: {n} | d: {d}] {name} = sum a0[n, d]"),
                    &[12],
                ),
                (
                    format!("({whole}, {name}[{n}]) {own} a0[n, d] - a1[n]"),
                    &[12, 14],
                ),
            ];
            let texts: Vec<(String, &[usize])> = texts.into_iter().collect();
            let given = vec![
                numbers.array(dtype, &[3, n, d]),
                numbers.array(dtype, &[n, d]),
                numbers.array(dtype, &[n, d]),
                numbers.array(dtype, &[n, d]),
                numbers.array(dtype, &[d]),
                numbers.array(dtype, &[]),
            ];
            let program = program(&texts, given);
            same(&format!("{n} x {d} of {name}"), &program, 1, &everything);
        }
    }
}

/// Terms that one loop makes with what it writes are added up as the strip machine adds them, in strips that sizes do not divide, and
/// whether it is written over, past the caches or not at all.
#[test]
fn what_a_loop_gathers_has_the_bits_of_strips() {
    for (dtype, name, rate) in [
        (DType::F32, "f32", "0.5_f32"),
        (DType::F64, "f64", "0.5_f64"),
    ] {
        for (b, n, d) in [
            (1, 64, 64),
            (1, 1, 5000),
            (1, 4099, 1),
            (3, 301, 7),
            (2, 700, 33),
            (2, 301, 1031),
            (1, 3, 90_001),
        ] {
            let mut numbers = Numbers(29);
            let whole = format!("{name}[{b}, {n}, {d}]");
            let own = format!("[b: {b}, n: {n}, d: {d}] {name} =");
            let at = "[b, n, d]";
            let total = |how: &str| format!("[| b: {b}, n: {n}, d: {d}] {name} = {how}");
            let texts = [
                (
                    format!("({name}[2, {b}, {n}, {d}]) {own} a0[1, b, n, d]"),
                    &[0][..],
                ),
                (
                    format!("({whole}, {whole}) {} a0{at} * a1{at}", total("sum")),
                    &[1, 3],
                ),
                (
                    format!("({whole}, {whole}) {own} {rate} * a0{at} + a1{at}"),
                    &[2, 3],
                ),
                (format!("({whole}) {} a0{at}", total("norm")), &[1]),
                (
                    format!("({whole}, {whole}) {own} a0{at} / (sqrt(abs(a1{at})) + {rate})"),
                    &[5, 1],
                ),
                (format!("({whole}) {} a0{at}", total("norm")), &[7]),
                (format!("({whole}) {} a0{at}", total("norm1")), &[7]),
                (
                    format!("({whole}, {whole}) {} a0{at} - a1{at}", total("mean")),
                    &[7, 1],
                ),
                (
                    format!("({whole}, {whole}) {} a0{at} - a1{at}", total("max")),
                    &[5, 1],
                ),
                (format!("({whole}) {} a0{at}", total("min")), &[7]),
                (format!("({whole}) {} a0{at}", total("norminf")), &[1]),
                (
                    format!("({whole}, {whole}) {own} a0{at} - {rate} * a1{at}"),
                    &[1, 7],
                ),
            ];
            for special in [None, Some(f64::NAN), Some(f64::INFINITY), Some(-0.0)] {
                let mut given = vec![
                    numbers.array(dtype, &[2, b, n, d]),
                    numbers.array(dtype, &[b, n, d]),
                    numbers.array(dtype, &[b, n, d]),
                ];
                if let Some(value) = special {
                    let at = numbers.next(b * n * d);
                    match given[1].data_mut() {
                        Data::F32(v) => v[at] = value as f32,
                        Data::F64(v) => v[at] = value,
                        other => panic!("{}", other.dtype()),
                    }
                }
                let program = program(&texts, given);
                // Numbers, what is written over, and what has room of its own.
                let kept = |number: usize| number != 0 && number != 4;
                for rows in [1, 3] {
                    let made = |fusion: Fusion, threads: usize, over: bool| {
                        let options = Options {
                            fusion,
                            ..Options::default()
                        };
                        let over = match over {
                            true => replaced(&program, rows, &kept, &everything),
                            false => vec![],
                        };
                        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                        let made =
                            || together(&program, rows, (&kept, &over), &everything, &options);
                        let made = pool.build().unwrap().install(|| made().unwrap());
                        let bytes = made.iter().flatten().map(|a| a.data().bytes().to_vec());
                        bytes.collect::<Vec<_>>()
                    };
                    let want = made(Fusion::Never, 1, false);
                    assert_eq!(want.len(), 10);
                    for (threads, over) in [(1, false), (3, false), (3, true)] {
                        let got = made(Fusion::Always, threads, over);
                        for (number, (want, got)) in want.iter().zip(&got).enumerate() {
                            let what = format!("{b} x {n} x {d} of {name} with {special:?}");
                            assert_eq!(want, got, "{what}: {number} of {rows}, over {over}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_several_indices_and_stored_types() {
    let (b, h, d) = (5, 33, 700);
    let mut numbers = Numbers(3);
    let texts = [
        (
            format!("(f64[{b}, {h}, {d}]) [b: {b}, h: {h} | d: {d}] f64 = mean a0[b, h, d]"),
            &[0][..],
        ),
        (
            format!(
                "(f64[{b}, {h}, {d}], f64[{b}, {h}]) [b: {b}, h: {h} | d: {d}] bf16 = mean (a0[b, h, d] - a1[b, h]) * (a0[b, h, d] - a1[b, h])"
            ),
            &[0, 2],
        ),
        (
            format!(
                "(f64[{b}, {h}, {d}], f64[{b}, {h}], bf16[{b}, {h}], f64[{d}]) [b: {b}, h: {h}, d: {d}] f16 = (a0[b, h, d] - a1[b, h]) * f64(a2[b, h]) + a3[d]"
            ),
            &[0, 2, 3, 1],
        ),
        (
            format!("(f16[{b}, {h}, {d}]) [b: {b}, h: {h} | d: {d}] i64 = argmax a0[b, h, d]"),
            &[4],
        ),
    ];
    let given = vec![
        numbers.array(DType::F64, &[b, h, d]),
        numbers.array(DType::F64, &[d]),
    ];
    same("norm", &program(&texts, given), 2, &everything);
}

#[test]
fn the_first_fault_of_the_first_member_is_told() {
    let (n, d) = (400, 900);
    let mut numbers = Numbers(5);
    let mut x = numbers.array(DType::I64, &[n, d]);
    if let Data::I64(values) = x.data_mut() {
        values.iter_mut().for_each(|v| *v = v.abs() + 1);
        values[399 * d + 5] = 0;
        values[250 * d + 800] = 0;
        values[250 * d + 3] = -7;
    }
    let texts = [
        (
            format!("(i64[{n}, {d}]) [n: {n}, d: {d}] i64 = a0[n, d] * 1"),
            &[0][..],
        ),
        (
            format!("(i64[{n}, {d}]) [n: {n} | d: {d}] i64 = sum floordiv(1000, a0[n, d])"),
            &[1],
        ),
        (
            format!(
                "(i64[{n}, {d}], i64[{n}], i64[{d}]) [n: {n}, d: {d}] i64 = a2[a0[n, d]] + a1[n]"
            ),
            &[1, 2, 0],
        ),
    ];
    let mut program = program(&texts, vec![x, numbers.array(DType::I64, &[d])]);
    program.operands = vec![vec![0], vec![2], vec![2, 3, 1]];
    same("faults", &program, 1, &everything);
    let error = together(
        &program,
        1,
        (&|_| true, &[]),
        &everything,
        &Options::default(),
    )
    .unwrap_err();
    assert_eq!((error.0, error.1.fault), (1, Fault::DivisionByZero));
    assert_eq!(error.1.point, [250, 800]);
}

/// Chains of random operations between whole tensors and rows.
#[test]
fn random_programs_have_the_bits_of_their_parts() {
    for seed in 0..120 {
        let mut numbers = Numbers(seed * 977 + 1);
        let double = numbers.next(3) == 0;
        let (name, dtype) = if double {
            ("f64", DType::F64)
        } else {
            ("f32", DType::F32)
        };
        let rows = 1 + numbers.next(2);
        let mut shape = vec![1 + numbers.next(400)];
        if rows == 2 {
            shape = vec![1 + numbers.next(20), 1 + numbers.next(30)];
        }
        let most = [3, 40, 700, 9000][numbers.next(4)];
        let d = 1 + numbers.next(most);
        let names: Vec<String> = (0..rows).map(|r| format!("r{r}")).collect();
        let (row_shape, row_at) = (list(&shape), names.join(", "));
        let row_index: Vec<String> = (0..rows).map(|r| format!("r{r}: {}", shape[r])).collect();
        let row_index = row_index.join(", ");
        shape.push(d);
        let full_shape = list(&shape);
        let given = vec![numbers.array(dtype, &shape), numbers.array(dtype, &[d])];
        // Which tensors are whole: the first one, and members; the second one is a single row.
        let mut whole: Vec<Option<bool>> = vec![Some(true), None];
        let (mut kernels, mut operands) = (vec![], vec![]);
        for _ in 0..2 + numbers.next(7) {
            let (a, b) = (numbers.next(whole.len()), numbers.next(whole.len()));
            let kind = |at: usize| match whole[at] {
                Some(true) => (format!("{name}[{full_shape}]"), format!("[{row_at}, d]")),
                Some(false) => (format!("{name}[{row_shape}]"), format!("[{row_at}]")),
                None => (format!("{name}[{d}]"), "[d]".to_owned()),
            };
            let ((type_a, at_a), (type_b, at_b)) = (kind(a), kind(b));
            let (x, y) = (format!("a0{at_a}"), format!("a1{at_b}"));
            let value = [
                format!("exp({x} - abs({y}))"),
                format!("{x} * {y} + {x}"),
                format!("max({x}, {y}) - tanh({x})"),
                format!(
                    "where({x} < {y}, {x}, {y} / ({x} * {x} + 1.0{}))",
                    if double { "_f64" } else { "" }
                ),
            ];
            let value = &value[numbers.next(4)];
            let across = whole[a] == Some(true) || whole[b] == Some(true);
            let reduced =
                numbers.next(2) == 0 && whole[a] != Some(false) && whole[b] != Some(false);
            let same = a == b;
            let value = if same {
                value.replace("a1[", "a0[")
            } else {
                value.clone()
            };
            let types = if same {
                type_a
            } else {
                format!("{type_a}, {type_b}")
            };
            let text = if reduced && across {
                let how = ["sum", "max", "min", "mean", "norm", "logsumexp"][numbers.next(6)];
                whole.push(Some(false));
                format!("({types}) [{row_index} | d: {d}] {name} = {how} {value}")
            } else {
                whole.push(Some(true));
                format!("({types}) [{row_index}, d: {d}] {name} = {value}")
            };
            let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            operands.push(if same { vec![a] } else { vec![a, b] });
            kernels.push(kernel);
        }
        let program = Program {
            kernels,
            operands,
            given,
        };
        same(&format!("seed {seed}"), &program, rows, &everything);
    }
}

fn list(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
    extents.join(", ")
}
