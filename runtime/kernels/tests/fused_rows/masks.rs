//! Rows that a mask makes one number outside a range of columns: what is left out of them changes nothing.

use super::{Numbers, Program, alike, everything, one_by_one, program, same, together};
use ein_array::{Array, Data};
use ein_kernels::{Fusion, Options};
use ein_plan::{DType, Kernel};

/// Attention over `t` rows and `s` columns, of the `scaled` scores that `condition` chooses; the others are a number.
fn attention(
    (t, s, d): (usize, usize, usize),
    condition: &str,
    scaled: &str,
    other: &str,
) -> Program {
    let h = 2;
    let mut numbers = Numbers(31);
    let scores = format!("f32[{h}, {t}, {s}]");
    let row = format!("h: {h}, t: {t}");
    program(
        &[
            (
                format!(
                    "(f32[{h}, {t}, {d}], f32[{h}, {s}, {d}]) [{row}, s: {s} | d: {d}] f32 = sum a0[h, t, d] * a1[h, s, d]"
                ),
                &[0, 1][..],
            ),
            (
                format!("({scores}) [{row}, s: {s}] f32 = where({condition}, {scaled}, {other})"),
                &[3],
            ),
            (
                format!("({scores}) [{row} | s: {s}] f32 = max a0[h, t, s]"),
                &[4],
            ),
            (
                format!(
                    "({scores}, f32[{h}, {t}]) [{row}, s: {s}] f32 = exp(a0[h, t, s] - a1[h, t])"
                ),
                &[4, 5],
            ),
            (
                format!("({scores}) [{row} | s: {s}] f32 = sum a0[h, t, s]"),
                &[6],
            ),
            (
                format!(
                    "({scores}, f32[{h}, {s}, {d}], f32[{h}, {t}]) [{row}, d: {d} | s: {s}] f32 = sum a0[h, t, s] * a1[h, s, d] / a2[h, t]"
                ),
                &[6, 2, 7],
            ),
        ],
        vec![
            numbers.array(DType::F32, &[h, t, d]),
            numbers.array(DType::F32, &[h, s, d]),
            numbers.array(DType::F32, &[h, s, d]),
        ],
    )
}

/// The same of whatever is compiled, whether all members are kept or the last one only.
fn attended(program: &Program, ranges: &dyn Fn(&Kernel) -> Vec<(u64, u64)>) {
    for fusion in [Fusion::Never, Fusion::Always] {
        let options = Options {
            fusion,
            ..Options::default()
        };
        for all in [true, false] {
            let kept = |number: usize| all || number == program.kernels.len() - 1;
            alike(program, 2, &kept, ranges, &options);
        }
    }
}

#[test]
fn attention_of_what_a_mask_chooses() {
    let conditions = [
        "s <= t",
        "s < t + 7",
        "and(t >= s, s + 100 > t)",
        "not(or(s > t, t - s > 300))",
        "t < s",
        "and(s >= 2 * t, s < 411)",
        "s < 256",
    ];
    for sizes in [(301, 301, 24), (40, 600, 16), (700, 515, 8), (3, 1500, 40)] {
        for condition in conditions {
            let scaled = "a0[h, t, s] / 8.0";
            for other in ["-inf", "0.25"] {
                attended(&attention(sizes, condition, scaled, other), &everything);
            }
        }
    }
}

/// A factor that all blocks of a few rows read, of which each needs other columns, and by turns other terms.
#[test]
fn blocks_of_few_rows_need_parts_of_a_factor() {
    let (t, s, d) = (103, 6000, 10);
    let mut numbers = Numbers(17);
    let scores = format!("f32[{t}, {s}]");
    let texts = [
        (
            format!(
                "(f32[{t}, {d}], f32[{s}, {d}]) [t: {t}, s: {s} | d: {d}] f32 = sum a0[t, d] * a1[s, d]"
            ),
            &[0, 1][..],
        ),
        (
            format!(
                "({scores}) [t: {t}, s: {s}] f32 = where(and(s >= 30 * t, s < 60 * t + 5), a0[t, s] + 1.0, 0.0)"
            ),
            &[3],
        ),
        (
            format!(
                "({scores}, f32[{d}, {s}]) [t: {t}, d: {d} | s: {s}] f32 = sum a0[t, s] * a1[d, s]"
            ),
            &[4, 2],
        ),
    ];
    let given = vec![
        numbers.array(DType::F32, &[t, d]),
        numbers.array(DType::F32, &[s, d]),
        numbers.array(DType::F32, &[d, s]),
    ];
    let program = program(&texts, given);
    alike(&program, 1, &|n| n > 0, &everything, &Options::default());
}

#[test]
fn a_part_of_the_rows_or_of_the_heads() {
    let part = |kernel: &Kernel| {
        let mut ranges = everything(kernel);
        (ranges[0], ranges[1]) = ((1, 1), (57, 200));
        ranges
    };
    let scaled = "0.125 * a0[h, t, s] + 0.5";
    attended(&attention((300, 400, 24), "s <= t", scaled, "-inf"), &part);
}

/// A row without columns is the exponential of no number, and 0 is not 0 any more where it meets what is no number.
#[test]
fn what_is_left_out_is_no_number_where_it_would_not_be() {
    let scaled = "a0[h, t, s] / 8.0";
    let bits = |program: &Program| {
        let options = Options::default();
        let want = one_by_one(program, &everything, &options).unwrap();
        let kept = |number: usize| number == 5;
        let got = together(program, 2, (&kept, &[]), &everything, &options).unwrap();
        let got = got[5].clone().unwrap();
        let nan = |array: &Array| -> Vec<bool> {
            let elements = 0..array.data().len();
            elements
                .map(|at| array.data().get(at).as_f64().is_nan())
                .collect()
        };
        assert_eq!(nan(&want[5]), nan(&got));
        nan(&got).into_iter().filter(|nan| *nan).count()
    };
    let (h, d) = (2, 16);
    // The first row of each head.
    assert_eq!(
        bits(&attention((300, 300, d), "s < t", scaled, "-inf")),
        h * d
    );
    // No row of a head has anything in column 299 but the last one; the others have 0 there.
    for no_number in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        let mut program = attention((300, 300, d), "s <= t", scaled, "-inf");
        if let Data::F32(values) = program.given[2].data_mut() {
            values[299 * d + 3] = no_number;
        }
        assert!(bits(&program) >= 299);
    }
}

/// Members that are no products have the bits of their parts, wherever they begin and end.
#[test]
fn masked_rows_have_the_bits_of_their_parts() {
    let (n, k) = (130, 1031);
    for (condition, outside) in [
        ("k <= n", "-inf_f64"),
        ("k > 3 * n", "0.0_f64"),
        ("and(k >= n, k <= n + 64)", "2.5_f64"),
        ("n + k < 1000", "-0.0_f64"),
        ("k < n - 400", "1.0_f64"),
    ] {
        let rows = format!("f64[{n}, {k}]");
        for (chosen, otherwise) in [("a0[n, k] * a0[n, k]", outside), (outside, "exp(a0[n, k])")] {
            let texts = [
                (
                    format!(
                        "({rows}) [n: {n}, k: {k}] f64 = where({condition}, {chosen}, {otherwise})"
                    ),
                    &[0][..],
                ),
                (
                    format!("({rows}) [n: {n} | k: {k}] f64 = max a0[n, k]"),
                    &[1],
                ),
                (
                    format!("({rows}, f64[{n}]) [n: {n}, k: {k}] f64 = exp(a0[n, k] - a1[n])"),
                    &[1, 2],
                ),
                (
                    format!(
                        "({rows}, {rows}) [n: {n}, k: {k}] f64 = 2.0_f64 * tanh(a0[n, k]) - a1[n, k]"
                    ),
                    &[3, 1],
                ),
                (
                    format!("({rows}) [n: {n} | k: {k}] f64 = sum a0[n, k]"),
                    &[4],
                ),
                (
                    format!("({rows}, f64[{n}]) [n: {n}, k: {k}] f64 = a0[n, k] / a1[n]"),
                    &[3, 5],
                ),
            ];
            let given = vec![Numbers(5).array(DType::F64, &[n, k])];
            let program = program(&texts, given);
            same(
                &format!("{condition} else {outside}"),
                &program,
                1,
                &everything,
            );
            let part = |kernel: &Kernel| {
                let mut ranges = everything(kernel);
                ranges[0] = (17, 90);
                ranges
            };
            same(&format!("rows 17.. of {condition}"), &program, 1, &part);
        }
    }
}
