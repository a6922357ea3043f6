//! Differences that readers take themselves have the bits of differences that are made.

use super::{Numbers, Program, everything, program, same};
use ein_plan::DType;

/// A layer norm over the last dimension of `shape`, whose rows are its others; a mean of some function of the difference is its deviation.
fn norm(dtype: DType, (n, d): (usize, usize), of: &str, last: &str) -> Program {
    let mut numbers = Numbers(11);
    let (whole, row) = (format!("{dtype}[{n}, {d}]"), format!("{dtype}[{n}]"));
    let vector = format!("{dtype}[{d}]");
    let given = vec![
        numbers.array(dtype, &[n, d]),
        numbers.array(dtype, &[d]),
        numbers.array(dtype, &[d]),
    ];
    let texts: [(String, &[usize]); 4] = [
        (
            format!("({whole}) [n: {n} | d: {d}] {dtype} = mean a0[n, d]"),
            &[0],
        ),
        (
            format!("({whole}, {row}) [n: {n}, d: {d}] {dtype} = a0[n, d] - a1[n]"),
            &[0, 3],
        ),
        (format!("({whole}) [n: {n} | d: {d}] {dtype} = {of}"), &[4]),
        (
            format!(
                "({whole}, {row}, {vector}, {vector}, {whole}) [n: {n}, d: {d}] {dtype} = {last}"
            ),
            &[4, 5, 1, 2, 0],
        ),
    ];
    program(&texts, given)
}

const LAST: &str = "a2[d] * a0[n, d] / sqrt(a1[n] + 0.001) + a3[d]";

/// The same with constants of a type.
fn constants(text: &str, dtype: DType) -> String {
    text.replace("0.001", &format!("0.001_{dtype}"))
        .replace("2.0", &format!("2.0_{dtype}"))
}

#[test]
fn a_layer_norm_has_the_bits_of_its_parts() {
    for dtype in [DType::F32, DType::F64] {
        for sizes in [
            (1, 1),
            (5, 3),
            (1000, 7),
            (1000, 33),
            (300, 1031),
            (20, 70_001),
            (70_001, 4),
        ] {
            let name = format!("{dtype} {sizes:?}");
            let last = constants(LAST, dtype);
            for of in ["mean pow(a0[n, d], 2.0)", "mean a0[n, d] * a0[n, d]"] {
                let norm = norm(dtype, sizes, &constants(of, dtype), &last);
                same(&name, &norm, 1, &everything);
            }
        }
    }
}

#[test]
fn whatever_reads_a_difference_has_its_bits() {
    let sizes = (333, 517);
    for of in [
        "sum a0[n, d]",
        "norm1 a0[n, d]",
        "norm a0[n, d]",
        "max a0[n, d]",
        "logsumexp a0[n, d]",
        "sum exp(a0[n, d])",
        "sum a0[n, d] * a0[n, d]",
        "norm1 pow(a0[n, d], 2.0)",
        "sum a0[n, d] if d < 300",
    ] {
        for last in [
            LAST,
            "exp(a0[n, d])",
            "a0[n, d] * a1[n] + a4[n, d]",
            "where(a0[n, d] < a1[n], a0[n, d], a4[n, d])",
        ] {
            let (of, last) = (&constants(of, DType::F32), constants(last, DType::F32));
            let name = format!("{of}; {last}");
            same(&name, &norm(DType::F32, sizes, of, &last), 1, &everything);
        }
    }
}

#[test]
fn a_part_of_the_rows_of_a_layer_norm_is_swept_like_the_whole() {
    let part = |kernel: &ein_plan::Kernel| {
        let mut ranges = everything(kernel);
        ranges[0] = (100, 111);
        ranges
    };
    let last = constants(LAST, DType::F32);
    let of = constants("mean pow(a0[n, d], 2.0)", DType::F32);
    let norm = norm(DType::F32, (300, 1031), &of, &last);
    same("rows 100 to 211", &norm, 1, &part);
}

/// What a difference reads may be gone where its last reader stands.
#[test]
fn a_difference_of_what_is_written_over_before_its_reader_is_made() {
    let (n, d) = (300, 1031);
    let mut numbers = Numbers(13);
    let (whole, row) = (format!("f32[{n}, {d}]"), format!("f32[{n}]"));
    let own = format!("[n: {n}, d: {d}] f32 =");
    let texts: [(String, &[usize]); 5] = [
        (
            format!("({whole}) [n: {n} | d: {d}] f32 = mean a0[n, d]"),
            &[0],
        ),
        (format!("({whole}, {row}) {own} a0[n, d] - a1[n]"), &[0, 1]),
        (
            format!("({whole}) [n: {n} | d: {d}] f32 = mean a0[n, d] * a0[n, d]"),
            &[2],
        ),
        (format!("({whole}, {row}) {own} a0[n, d] * a1[n]"), &[0, 3]),
        (format!("({whole}, {row}) {own} a0[n, d] + a1[n]"), &[2, 3]),
    ];
    let program = program(&texts, vec![numbers.array(DType::F32, &[n, d])]);
    let over = [(3, 0)];
    let kept = |number| number >= 3;
    let options = ein_kernels::Options::default();
    let want = super::one_by_one(&program, &everything, &options).unwrap();
    let got = super::together(&program, 1, (&kept, &over), &everything, &options).unwrap();
    for number in [3, 4] {
        let got = got[number].as_ref().unwrap();
        assert_eq!(got.data().bytes(), want[number].data().bytes(), "{number}");
    }
}

/// A difference is another one where its reader does not read it at its own point.
#[test]
fn a_difference_that_is_read_elsewhere_is_made() {
    let (n, d) = (300, 11);
    let (whole, row) = (format!("f32[{n}, {d}, {d}]"), format!("f32[{n}]"));
    let own = format!("[n: {n}, a: {d}, b: {d}] f32 =");
    let texts: [(String, &[usize]); 4] = [
        (
            format!("({whole}) [n: {n} | a: {d}, b: {d}] f32 = mean a0[n, a, b]"),
            &[0],
        ),
        (
            format!("({whole}, {row}) {own} a0[n, a, b] - a1[n]"),
            &[0, 1],
        ),
        (
            format!("({whole}) [n: {n} | a: {d}, b: {d}] f32 = mean a0[n, a, b] * a0[n, a, b]"),
            &[2],
        ),
        (
            format!("({whole}, {row}) {own} a0[n, b, a] * a1[n]"),
            &[2, 3],
        ),
    ];
    let given = vec![Numbers(17).array(DType::F32, &[n, d, d])];
    same("turned", &program(&texts, given), 1, &everything);
}
