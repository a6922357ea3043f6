//! Reductions of rows against plain loops: every length of a row, ties, NaN, infinities, zeros of both signs, parts of ranges,
//! partial results; on any number of threads. Extremes bit for bit.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Options, run};
use ein_plan::{DType, Kernel, Reduction};

/// Shape of the operand, indices, and how the operand is read.
struct Form {
    shape: Vec<u64>,
    indices: String,
    read: &'static str,
    /// The operand's dimensions that are output indices and reduced ones, in order.
    output: Vec<usize>,
    reduced: Vec<usize>,
}

impl Form {
    /// An operand whose dimensions are named in `read`, the given ones of them the output's, in that order; the others are reduced.
    fn new(shape: &[u64], read: &'static str, output: &[usize]) -> Form {
        let names: Vec<&str> = read.split(", ").collect();
        let others = (0..shape.len()).filter(|dimension| !output.contains(dimension));
        let reduced: Vec<usize> = others.collect();
        let listed = |dimensions: &[usize]| {
            let each = dimensions.iter();
            let each =
                each.map(|dimension| format!("{}: {}", names[*dimension], shape[*dimension]));
            each.collect::<Vec<_>>().join(", ")
        };
        Form {
            shape: shape.to_vec(),
            indices: format!("{} | {}", listed(output), listed(&reduced)),
            read,
            output: output.to_vec(),
            reduced,
        }
    }
}

fn forms() -> Vec<Form> {
    let lengths = (2..70).chain([127, 128, 129, 511, 512, 513, 530, 1055, 2000]);
    let mut forms: Vec<Form> = lengths.map(|k| Form::new(&[23, k], "n, k", &[0])).collect();
    forms.push(Form::new(&[5, 7, 9, 11], "a, b, c, d", &[1, 0]));
    forms.push(Form::new(&[70_000, 3], "n, k", &[0]));
    // Of these, rows are no neighbours or there is one only.
    forms.push(Form::new(&[40, 60], "k, n", &[1]));
    forms.push(Form::new(&[900], "k", &[]));
    forms
}

const REDUCTIONS: [Reduction; 4] = [
    Reduction::Max,
    Reduction::Min,
    Reduction::ArgMax,
    Reduction::ArgMin,
];

fn kernel(form: &Form, reduction: Reduction, dtype: DType) -> Kernel {
    let shape: Vec<String> = form.shape.iter().map(u64::to_string).collect();
    let text = format!(
        "({dtype}[{}]) [{}] {} = {} a0[{}]",
        shape.join(", "),
        form.indices,
        reduction.result(dtype),
        reduction.name(),
        form.read
    );
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Few different values, so that there are ties; `odd` ones now and then.
fn values(count: usize, odd: &[f64]) -> Vec<f64> {
    let mut state = 12345u64;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let draw = (state >> 33) as usize;
            match odd.get(draw % 61) {
                Some(x) => *x,
                None => ((draw >> 8) % 37) as f64 - 18.0,
            }
        })
        .collect()
}

fn array(shape: &[u64], values: &[f64], dtype: DType) -> Array {
    let data = match dtype {
        DType::F64 => Data::F64(values.to_vec()),
        _ => Data::F32(values.iter().map(|x| *x as f32).collect()),
    };
    Array::new(shape.iter().map(|n| *n as usize).collect(), data).unwrap()
}

fn count(ranges: &[(u64, u64)]) -> u64 {
    ranges.iter().map(|r| r.1).product()
}

/// The values of indices at a number of their points.
fn point(ranges: &[(u64, u64)], mut number: u64) -> Vec<u64> {
    let mut at = vec![0; ranges.len()];
    for (at, (start, n)) in at.iter_mut().zip(ranges).rev() {
        *at = start + number % n;
        number /= n;
    }
    at
}

/// What every output point is reduced from, in order.
fn terms(form: &Form, ranges: &[(u64, u64)], values: &[f64]) -> Vec<Vec<f64>> {
    let (outer, inner) = ranges.split_at(form.output.len());
    let element = |row: u64, term: u64| {
        let mut own = vec![0; form.shape.len()];
        let output = form.output.iter().zip(point(outer, row));
        for (dimension, at) in output.chain(form.reduced.iter().zip(point(inner, term))) {
            own[*dimension] = at;
        }
        let linear = own
            .iter()
            .zip(&form.shape)
            .fold(0, |sum, (at, n)| sum * n + at);
        values[linear as usize]
    };
    let row = |row: u64| (0..count(inner)).map(|term| element(row, term)).collect();
    (0..count(outer)).map(row).collect()
}

/// Value and number for every output point, by plain loops.
fn plain(
    form: &Form,
    reduction: Reduction,
    ranges: &[(u64, u64)],
    values: &[f64],
) -> Vec<(f64, i64)> {
    let inner = &ranges[form.output.len()..];
    let largest = matches!(reduction, Reduction::Max | Reduction::ArgMax);
    let best = |row: Vec<f64>| {
        let mut best: Option<(f64, i64)> = None;
        for (term, x) in row.into_iter().enumerate() {
            let extents = form.reduced.iter().map(|d| form.shape[*d]);
            let at = point(inner, term as u64);
            let number = at.iter().zip(extents).fold(0, |sum, (at, n)| sum * n + at) as i64;
            let takes = best.is_none_or(|(s, _)| {
                !s.is_nan() && (x.is_nan() || if largest { x > s } else { x < s })
            });
            if takes {
                best = Some((x, number));
            }
        }
        best.unwrap()
    };
    terms(form, ranges, values).into_iter().map(best).collect()
}

fn evaluated(kernel: &Kernel, ranges: &[(u64, u64)], operand: &Array) -> Vec<Array> {
    let chunk = Chunk {
        columns: vec![operand],
        start: vec![0; operand.shape().len()],
    };
    run(kernel, ranges, &[chunk], &Options::default()).unwrap()
}

fn same_value(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}

fn agree(odd: &[f64], part: impl Fn((u64, u64)) -> (u64, u64), signs: bool) {
    for form in forms() {
        let count: u64 = form.shape.iter().product();
        let values = values(count as usize, odd);
        for dtype in [DType::F32, DType::F64] {
            let operand = array(&form.shape, &values, dtype);
            for reduction in REDUCTIONS {
                for finish in [true, false] {
                    let mut kernel = kernel(&form, reduction, dtype);
                    if !finish {
                        kernel.finish = false;
                        kernel.output = reduction.carrier(dtype);
                    }
                    let ranges: Vec<(u64, u64)> =
                        kernel.indices.iter().map(|i| part((0, i.extent))).collect();
                    let want = plain(&form, reduction, &ranges, &values);
                    let got = evaluated(&kernel, &ranges, &operand);
                    for (at, (value, number)) in want.into_iter().enumerate() {
                        let of = |column: usize| got[column].data().get(at);
                        let values = !(finish && reduction.is_arg());
                        let numbers = reduction
                            .is_arg()
                            .then(|| of(got.len() - 1).as_f64() as i64);
                        let x = if values { of(0).as_f64() } else { value };
                        let same = same_value(x, value) || (!signs && x == value);
                        assert!(
                            same && numbers.is_none_or(|n| n == number),
                            "{reduction:?} {dtype} [{}] {ranges:?}, row {at}: {x} at {numbers:?}, not {value} at {number}",
                            form.indices
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn ties_go_to_the_first_one() {
    agree(&[], |range| range, true);
}

#[test]
fn infinities_and_zeros_of_both_signs_are_what_the_loops_give() {
    // Strips of a column or of a single long row have lanes, and any of two zeros.
    agree(
        &[f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, -0.0],
        |range| range,
        false,
    );
}

#[test]
fn nan_wins_and_the_first_one_counts() {
    agree(
        &[f64::NAN, 2.0f64.powi(100), f64::NEG_INFINITY],
        |range| range,
        true,
    );
}

#[test]
fn parts_of_ranges_have_global_numbers() {
    agree(
        &[f64::NAN],
        |(start, n)| (start + n / 5, n - n / 5 - n / 4),
        true,
    );
}

/// A value that no gradient goes through is the value.
#[test]
fn a_stopped_read_is_a_read() {
    let operand = array(&[40, 70], &values(2800, &[f64::NAN]), DType::F32);
    for reduction in REDUCTIONS {
        let dtype = reduction.result(DType::F32);
        let run = |body: &str| {
            let text = format!(
                "(f32[40, 70]) [n: 40 | k: 70] {dtype} = {} {body}",
                reduction.name()
            );
            let kernel: Kernel = text.parse().unwrap();
            let mut found = evaluated(&kernel, &[(0, 40), (0, 70)], &operand);
            found[0].data_mut().bytes_mut().to_vec()
        };
        assert!(run("stop(a0[n, k])") == run("a0[n, k]"), "{reduction:?}");
    }
}

#[test]
fn the_first_of_two_zeros_gives_the_sign() {
    for length in 3..600 {
        let form = Form::new(&[2, length], "n, k", &[0]);
        let count = length as usize;
        let row = |first: f64| {
            (0..count).map(move |at| {
                if at == count - 1 {
                    -first
                } else if at == count / 2 {
                    first
                } else {
                    -1.0
                }
            })
        };
        let values: Vec<f64> = row(-0.0).chain(row(0.0)).collect();
        for dtype in [DType::F32, DType::F64] {
            let kernel = kernel(&form, Reduction::Max, dtype);
            let got = evaluated(
                &kernel,
                &[(0, 2), (0, length)],
                &array(&form.shape, &values, dtype),
            );
            let signs = [0, 1].map(|row| got[0].data().get(row).as_f64().is_sign_negative());
            assert_eq!(signs, [true, false], "rows of {length} {dtype}");
        }
    }
}

/// Sums, means and norms, whole and as carriers, to what their type's rounding allows.
#[test]
fn totals_are_what_the_loops_give() {
    let reductions = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Norm,
        Reduction::Norm1,
        Reduction::NormInf,
    ];
    for form in forms() {
        let count: u64 = form.shape.iter().product();
        let values = values(count as usize, &[1e-3, -0.0, 300.5]);
        for (dtype, near) in [(DType::F32, 1e-6), (DType::F64, 1e-13)] {
            let operand = array(&form.shape, &values, dtype);
            let values: Vec<f64> = (0..values.len())
                .map(|at| operand.data().get(at).as_f64())
                .collect();
            for reduction in reductions {
                let kernel = kernel(&form, reduction, dtype);
                let ranges: Vec<(u64, u64)> =
                    kernel.indices.iter().map(|i| (0, i.extent)).collect();
                let got = evaluated(&kernel, &ranges, &operand);
                let mut partial = kernel.clone();
                partial.finish = false;
                partial.output = reduction.carrier(dtype);
                let carrier = evaluated(&partial, &ranges, &operand);
                let rows = terms(&form, &ranges, &values);
                for (row, x) in rows.iter().enumerate() {
                    let sum = |f: &dyn Fn(f64) -> f64| x.iter().map(|x| f(*x)).sum::<f64>();
                    let size = sum(&|x| x.abs());
                    let (want, scale) = match reduction {
                        Reduction::Sum => (sum(&|x| x), size),
                        Reduction::Mean => (sum(&|x| x) / x.len() as f64, size / x.len() as f64),
                        Reduction::Norm1 => (size, size),
                        Reduction::Norm => (sum(&|x| x * x).sqrt(), size),
                        _ => (x.iter().fold(0.0, |s: f64, x| s.max(x.abs())), 0.0),
                    };
                    let of = |column: &Array| column.data().get(row).as_f64();
                    let from_carrier = match reduction {
                        Reduction::Mean => of(&carrier[0]) / of(&carrier[1]),
                        Reduction::Norm => of(&carrier[0]) * of(&carrier[1]).sqrt(),
                        _ => of(&carrier[0]),
                    };
                    for x in [of(&got[0]), from_carrier] {
                        assert!(
                            (x - want).abs() <= near * scale,
                            "{reduction:?} {dtype} [{}], row {row}: {x}, not {want}",
                            form.indices
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() {
    let form = Form::new(&[5001, 67], "n, k", &[0]);
    let values = values(5001 * 67, &[f64::NAN, -0.0, 0.0]);
    for reduction in REDUCTIONS {
        let kernel = kernel(&form, reduction, DType::F32);
        let operand = array(&form.shape, &values, DType::F32);
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let mut made = pool.install(|| evaluated(&kernel, &[(0, 5001), (0, 67)], &operand));
            made[0].data_mut().bytes_mut().to_vec()
        };
        let one = bytes(1);
        for threads in [2, 3, 5] {
            assert!(bytes(threads) == one, "{reduction:?} on {threads} threads");
        }
    }
}

/// What is added up of a row need not be its elements.
#[test]
fn terms_of_rows_are_what_loops_say() {
    let of = |x: f64, less: f64| x - less;
    type Term = fn(f64, f64) -> f64;
    let terms: [(&str, Term); 6] = [
        ("a0[n, k] * a0[n, k]", |x, _| x * x),
        ("pow(a0[n, k], TWO)", |x, _| x * x),
        ("abs(a0[n, k] - a1[n])", |x, less| (x - less).abs()),
        ("a0[n, k] - a1[n]", of),
        ("pow(a0[n, k] - a1[n], TWO)", |x, less| {
            (x - less) * (x - less)
        }),
        ("(a0[n, k] - a1[5]) * (a0[n, k] - a1[5])", |x, _| {
            (x - 3.5) * (x - 3.5)
        }),
    ];
    for dtype in [DType::F32, DType::F64] {
        for k in [64u64, 65, 511, 513, 2000] {
            let n = 37u64;
            let (x, mut less) = (values((n * k) as usize, &[]), values(n as usize, &[]));
            less[5] = 3.5;
            let operands = [array(&[n, k], &x, dtype), array(&[n], &less, dtype)];
            let chunk = |array| Chunk {
                columns: vec![array],
                start: vec![
                    0;
                    if std::ptr::eq(array, &operands[0]) {
                        2
                    } else {
                        1
                    }
                ],
            };
            let chunks = [chunk(&operands[0]), chunk(&operands[1])];
            for (term, value) in terms {
                let two = if dtype == DType::F32 {
                    "2.0"
                } else {
                    "2.0_f64"
                };
                let term = term.replace("TWO", two);
                for reduction in ["sum", "mean", "norm1", "max"] {
                    let text = format!(
                        "({dtype}[{n}, {k}], {dtype}[{n}]) [n: {n} | k: {k}] {dtype} = {reduction} {term}"
                    );
                    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                    let ranges = [(2, n - 3), (0, k)];
                    let got = run(&kernel, &ranges, &chunks, &Options::default()).unwrap();
                    for row in 0..n - 3 {
                        let at = (row + 2) as usize;
                        let elements = x[at * k as usize..][..k as usize].iter();
                        let terms = elements.map(|x| value(*x, less[at]));
                        let want = match reduction {
                            "sum" => terms.sum(),
                            "mean" => terms.sum::<f64>() / k as f64,
                            "norm1" => terms.map(f64::abs).sum(),
                            _ => terms.fold(f64::MIN, f64::max),
                        };
                        let got = got[0].data().get(row as usize).as_f64();
                        let close = (got - want).abs() <= 1e-6 * (1.0 + want.abs());
                        assert!(close, "{text}: row {row} is {got}, not {want}");
                    }
                }
            }
        }
    }
}
