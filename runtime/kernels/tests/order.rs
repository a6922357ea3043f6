//! `argsort`, `sort` and `topk` against a sort by comparisons: NaN is the largest, equal values keep their order.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Options, run};
use ein_plan::Kernel;
use half::{bf16, f16};

/// Values that a task of its own is worth, and a little more.
const MANY: usize = (1 << 14) + 1;

/// The results of an operation for all rows.
fn ordered(rows: usize, data: Data, text: &str) -> Data {
    let dtype = data.dtype();
    let count = data.len() / rows;
    let text = text
        .replace("ROWS", &rows.to_string())
        .replace("COUNT", &count.to_string());
    let kernel: Kernel = text.replace("TYPE", dtype.name()).parse().unwrap();
    let array = Array::new(vec![rows, count], data).unwrap();
    let chunk = Chunk {
        columns: vec![&array],
        start: vec![0, 0],
    };
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let result = run(&kernel, &ranges, &[chunk], &Options::default()).unwrap();
    result[0].data().clone()
}

fn positions(rows: usize, data: Data, text: &str) -> Vec<i64> {
    match ordered(rows, data, text) {
        Data::I64(positions) => positions,
        other => panic!("positions of type {}", other.dtype().name()),
    }
}

fn argsort(rows: usize, data: Data) -> Vec<i64> {
    positions(
        rows,
        data,
        "(TYPE[ROWS, COUNT]) [p: ROWS, i: COUNT] i64 = argsort(a0[p, :1], i)",
    )
}

fn topk(chosen: usize, data: Data) -> Vec<i64> {
    let text = "(TYPE[ROWS, COUNT]) [p: ROWS, i: CHOSEN] i64 = topk(a0[p, :1], i)";
    positions(1, data, &text.replace("CHOSEN", &chosen.to_string()))
}

fn compared<T: PartialOrd>(values: &[T], descends: bool) -> Vec<i64> {
    let mut order: Vec<i64> = (0..values.len() as i64).collect();
    let nan = |x: &T| x.partial_cmp(x).is_none();
    order.sort_by(|a, b| {
        let (a, b) = (&values[*a as usize], &values[*b as usize]);
        let ascending = a.partial_cmp(b).unwrap_or_else(|| nan(a).cmp(&nan(b)));
        match descends {
            true => ascending.reverse(),
            false => ascending,
        }
    });
    order
}

fn check<T: PartialOrd>(values: &[T], data: Data) {
    let order = compared(values, false);
    let what = format!("{} of {}", data.dtype().name(), values.len());
    assert!(argsort(1, data.clone()) == order, "{what}");
    let text = "(TYPE[ROWS, COUNT]) [p: ROWS, i: COUNT] TYPE = sort(a0[p, :1], i)";
    let width = data.bytes().len() / values.len();
    let elements: Vec<&[u8]> = data.bytes().chunks(width).collect();
    let expected: Vec<&[u8]> = order.iter().map(|at| elements[*at as usize]).collect();
    assert!(
        ordered(1, data.clone(), text).bytes() == expected.concat(),
        "values, {what}"
    );
    let want = compared(values, true);
    for chosen in [1, 3, 100, values.len() / 20, values.len()] {
        if (1..=values.len()).contains(&chosen) {
            assert!(
                topk(chosen, data.clone()) == want[..chosen],
                "{chosen} of {}",
                data.dtype().name()
            );
        }
    }
}

/// Numbers without a pattern.
fn noise(count: usize) -> Vec<u64> {
    let step = |x: &u64| {
        let x = x.wrapping_mul(6_364_136_223_846_793_005);
        Some(x.wrapping_add(1_442_695_040_888_963_407))
    };
    let all = std::iter::successors(Some(7), step);
    all.map(|x| x >> 11 ^ x << 30 ^ x >> 40)
        .take(count)
        .collect()
}

#[test]
fn positions_are_in_the_order_of_comparisons() {
    for count in [1, 2, 31, 1000, MANY, 3 * MANY + 17, 300_000] {
        // All bit patterns, NaN of both signs and infinities among them.
        let any = noise(count);
        macro_rules! check {
            ($variant:ident, $of:expr) => {{
                let values: Vec<_> = any.iter().map($of).collect();
                check(&values, Data::$variant(values.clone()));
            }};
        }
        check!(F64, |x| f64::from_bits(*x));
        check!(F32, |x| f32::from_bits(*x as u32));
        check!(F16, |x| f16::from_bits(*x as u16));
        check!(BF16, |x| bf16::from_bits(*x as u16));
        check!(I64, |x| *x as i64);
        check!(I32, |x| *x as i32);
        check!(U8, |x| *x as u8);
    }
}

#[test]
fn equal_values_keep_their_order() {
    let special = [
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.5,
    ];
    let check = |values: Vec<f64>| check(&values, Data::F64(values.clone()));
    check(
        noise(5 * MANY)
            .iter()
            .map(|x| special[*x as usize % special.len()])
            .collect(),
    );
    check(vec![3.0; 2 * MANY + 5]);
    // Nearly all values agree in every bit but the last ones, and one is far from them.
    let near = |x: &u64| f64::from_bits(1.0f64.to_bits() + x % 5000);
    let mut close: Vec<f64> = noise(2 * MANY).iter().map(near).collect();
    close[MANY] = f64::NEG_INFINITY;
    check(close);
    let rising = || (0..400_000).map(f64::from);
    check(rising().collect());
    check(rising().rev().collect());
}

#[test]
fn every_row_is_ordered_by_itself() {
    let values: Vec<f32> = noise(70 * 13).iter().map(|x| (*x % 9) as f32).collect();
    let want: Vec<i64> = values
        .chunks(13)
        .flat_map(|row| compared(row, false))
        .collect();
    assert_eq!(argsort(70, Data::F32(values)), want);
}
