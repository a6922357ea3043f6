//! Functions with arithmetic around them have the bits of their operations one by one.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Options, run};
use ein_plan::Kernel;

fn computed(text: &str, operands: &[&Array], fusion: Fusion) -> Array {
    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let chunks: Vec<Chunk<'_>> = operands
        .iter()
        .map(|array| Chunk {
            columns: vec![array],
            start: vec![0; array.shape().len()],
        })
        .collect();
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let options = Options {
        fusion,
        ..Options::default()
    };
    run(&kernel, &ranges, &chunks, &options).unwrap().remove(0)
}

fn floats(array: &Array) -> &[f32] {
    match array.data() {
        Data::F32(values) => values,
        _ => panic!("single precision"),
    }
}

/// Numbers of all sizes, zeros of both signs, infinities and NaN among them.
fn numbers(shape: &[usize], seed: usize) -> Array {
    let special = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-42,
        -1e-42,
        f32::MAX,
        1.0,
        -1.0,
    ];
    let value = |at: usize| match (at * 31 + seed) % 47 {
        k if k < special.len() => special[k],
        k => ((at * 7919 + seed * 13) % 4001) as f32 / 500.0 - 4.0 + k as f32 / 64.0,
    };
    let data = Data::F32((0..shape.iter().product()).map(value).collect());
    Array::new(shape.to_vec(), data).unwrap()
}

/// Numbers of at most this size.
fn tame(shape: &[usize], most: f32) -> Array {
    let value = |at: usize| ((at * 7919) % 4001) as f32 * (most / 2000.0) - most;
    let data = Data::F32((0..shape.iter().product()).map(value).collect());
    Array::new(shape.to_vec(), data).unwrap()
}

fn same(got: &Array, want: &Array, what: &str) {
    for (at, (got, want)) in floats(got).iter().zip(floats(want)).enumerate() {
        let equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(equal, "{what}, element {at}: {got:e}, not {want:e}");
    }
}

/// What is computed at once, and the operations that it is made of: `X` is the matrix, `R` a number a row, `V0` and so on what came before.
const CASES: &[(&str, &[&str])] = &[
    ("exp(X - R)", &["X - R", "exp(V0)"]),
    (
        "exp(0.25_f32 * X - R)",
        &["0.25_f32 * X", "V0 - R", "exp(V1)"],
    ),
    ("log(X * R) + R", &["X * R", "log(V0)", "V1 + R"]),
    ("log1p(X) + 0.5_f32", &["log1p(X)", "V0 + 0.5_f32"]),
    ("expm1(X * -3.0_f32)", &["X * -3.0_f32", "expm1(V0)"]),
    ("X * sigmoid(X)", &["sigmoid(X)", "X * V0"]),
    ("gelu(X)", &["gelu(X)"]),
    (
        "(gelu(2.0_f32 * X - R) + 0.5_f32) * X",
        &[
            "2.0_f32 * X",
            "V0 - R",
            "gelu(V1)",
            "V2 + 0.5_f32",
            "V3 * X",
        ],
    ),
    ("X / R", &["X / R"]),
    ("X / 3.0_f32", &["X / 3.0_f32"]),
    (
        "(1.0_f32 + tanh(R * X)) * (0.5_f32 * X)",
        &[
            "R * X",
            "tanh(V0)",
            "1.0_f32 + V1",
            "0.5_f32 * X",
            "V2 * V3",
        ],
    ),
    (
        "0.5_f32 * X * (1.0_f32 + erf(0.70710677_f32 * X))",
        &[
            "0.5_f32 * X",
            "0.70710677_f32 * X",
            "erf(V1)",
            "1.0_f32 + V2",
            "V0 * V3",
        ],
    ),
    // What is used twice, and factors of something else, stay what they are.
    ("tanh(R * X) * (R * X)", &["R * X", "tanh(V0)", "V1 * V0"]),
    (
        "sigmoid(X) * (2.0_f32 * exp(X))",
        &["sigmoid(X)", "exp(X)", "2.0_f32 * V1", "V0 * V2"],
    ),
    (
        "where(X > R, exp(X - R), erf(2.0_f32 * X) + R)",
        &[
            "X - R",
            "exp(V0)",
            "2.0_f32 * X",
            "erf(V2)",
            "V3 + R",
            "where(X > R, V1, V4)",
        ],
    ),
];

#[test]
fn arithmetic_around_a_function_changes_no_bit() {
    let sizes = [(1, 7), (3, 37), (5, 512), (2, 4099)];
    // Exponents up to 4 are taken by a short way, up to 90 some are.
    let kinds = [None, Some(2.0), Some(45.0)];
    for ((n, d), kind) in sizes
        .iter()
        .flat_map(|size| kinds.map(|kind| (*size, kind)))
    {
        let (mut matrix, rows) = match kind {
            None => (numbers(&[n, d], 1), numbers(&[n], 5)),
            Some(most) => (tame(&[n, d], most), tame(&[n], most)),
        };
        // A mask, as of an attention.
        if let (Some(_), Data::F32(values)) = (kind, matrix.data_mut()) {
            let masked = values.iter_mut().enumerate().filter(|(at, _)| at % 5 > 2);
            masked.for_each(|(_, x)| *x = f32::NEG_INFINITY);
        }
        let kernel = |body: &str, made: usize| {
            let whole = format!("f32[{n}, {d}]");
            let mut types = vec![whole.clone(), format!("f32[{n}]")];
            types.resize(2 + made, whole);
            let mut text = body.replace('X', "a0[i, j]").replace('R', "a1[i]");
            for k in 0..made {
                text = text.replace(&format!("V{k}"), &format!("a{}[i, j]", k + 2));
            }
            format!("({}) [i: {n}, j: {d}] f32 = {text}", types.join(", "))
        };
        for (whole, steps) in CASES {
            for fusion in [Fusion::Always, Fusion::Never] {
                let mut made: Vec<Array> = vec![];
                for step in *steps {
                    let mut operands = vec![&matrix, &rows];
                    operands.extend(&made);
                    let text = kernel(step, made.len());
                    let value = computed(&text, &operands, Fusion::Never);
                    made.push(value);
                }
                let got = computed(&kernel(whole, 0), &[&matrix, &rows], fusion);
                same(&got, made.last().unwrap(), &format!("{whole} of {n} x {d}"));
            }
        }
    }
}
