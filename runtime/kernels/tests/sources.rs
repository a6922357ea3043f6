//! Free sources: statistics, boxes, ends, and values that must never change.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Mapped, generate, generate_in_round};
use ein_plan::{DType, Scalar, Source};

fn all(source: &Source, dtype: DType, n: u64) -> Vec<f64> {
    values(&generate(source, dtype, "w", 7, &[n], &[(0, n)]))
}

fn values(array: &Array) -> Vec<f64> {
    let data = array.data();
    (0..data.len()).map(|at| data.get(at).as_f64()).collect()
}

fn moments(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (
        mean,
        x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n,
    )
}

fn near(x: f64, want: f64, tolerance: f64) -> bool {
    (x - want).abs() < tolerance
}

#[test]
fn boxes_of_every_source_and_type_are_parts_of_the_whole() {
    let sources = [
        Source::Full(Scalar::Float(1.5)),
        Source::Iota,
        Source::Numbers((0..10500).map(|n| Scalar::Int(n % 2)).collect()),
        Source::Numbers(
            (0..10500)
                .map(|n| Scalar::Float(f64::from(n % 7) / 4.0))
                .collect(),
        ),
        Source::Uniform { lo: -3.0, hi: 5.0 },
        Source::Normal {
            mean: 1.0,
            std: 2.0,
        },
        Source::Bernoulli { p: 0.3 },
        Source::Gumbel,
    ];
    let shape = [5, 1, 700, 3];
    let ranges = [(1, 3), (0, 1), (530, 170), (1, 2)];
    for source in &sources {
        for dtype in DType::ALL {
            let whole = generate(
                source,
                dtype,
                "a.b",
                3,
                &shape,
                &[(0, 5), (0, 1), (0, 700), (0, 3)],
            );
            let part = generate(source, dtype, "a.b", 3, &shape, &ranges);
            let mut cut = Array::zeros(dtype, &[3, 1, 170, 2]);
            cut.copy_box(&[0, 0, 0, 0], &whole, &[1, 0, 530, 1], &[3, 1, 170, 2]);
            assert_eq!(cut, part, "{source:?} {dtype}");
        }
    }
    let whole = values(&generate(
        &Source::Permutation,
        DType::I64,
        "p",
        3,
        &[5000],
        &[(0, 5000)],
    ));
    let part = values(&generate(
        &Source::Permutation,
        DType::I64,
        "p",
        3,
        &[5000],
        &[(4000, 900)],
    ));
    assert_eq!(whole[4000..4900], part);
    let scalar = generate(&Source::Iota, DType::I64, "", 0, &[], &[]);
    assert_eq!(scalar.data(), &Data::I64(vec![0]));
    let empty = generate(
        &Source::Gumbel,
        DType::F32,
        "",
        0,
        &[4, 0],
        &[(0, 4), (0, 0)],
    );
    assert_eq!(empty.shape(), &[4, 0]);
}

#[test]
fn every_round_of_every_loop_draws_its_own() {
    let draw = |rounds: &[u64], range: (u64, u64)| {
        let source = Source::Uniform { lo: 0.0, hi: 1.0 };
        values(&generate_in_round(
            &source,
            DType::F64,
            "w",
            (7, rounds),
            &[50],
            &[range],
        ))
    };
    let all: Vec<Vec<f64>> = [&[][..], &[0], &[1], &[0, 1], &[1, 0], &[256]]
        .map(|rounds| draw(rounds, (0, 50)))
        .to_vec();
    for (at, values) in all.iter().enumerate() {
        assert!(all[..at].iter().all(|other| other != values));
    }
    assert_eq!(draw(&[3, 4], (10, 20)), draw(&[3, 4], (0, 50))[10..30]);
}

#[test]
fn threads_do_not_change_values() {
    let make = || {
        generate(
            &Source::Gumbel,
            DType::F64,
            "g",
            1,
            &[100_000],
            &[(0, 100_000)],
        )
    };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(make)
    };
    assert!(on(1) == on(2) && on(1) == on(3));
}

#[test]
fn moments_are_right() {
    let n = 200_000;
    let (mean, variance) = moments(&all(&Source::Uniform { lo: 2.0, hi: 5.0 }, DType::F64, n));
    assert!(near(mean, 3.5, 0.01) && near(variance, 0.75, 0.01));
    let (mean, variance) = moments(&all(
        &Source::Normal {
            mean: -1.0,
            std: 3.0,
        },
        DType::F32,
        n,
    ));
    assert!(near(mean, -1.0, 0.03) && near(variance, 9.0, 0.15));
    let (mean, _) = moments(&all(&Source::Bernoulli { p: 0.2 }, DType::Bool, n));
    assert!(near(mean, 0.2, 0.005));
    let (mean, variance) = moments(&all(&Source::Gumbel, DType::F64, n));
    assert!(near(mean, 0.577_215_66, 0.015) && near(variance, 1.644_934, 0.04));
    // Neighbours are not correlated, nor are seeds and names.
    let x = all(
        &Source::Normal {
            mean: 0.0,
            std: 1.0,
        },
        DType::F64,
        n,
    );
    let lagged: f64 = x.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
    assert!(near(lagged, 0.0, 0.01));
    for (name, seed) in [("v", 7), ("w", 8)] {
        let source = Source::Normal {
            mean: 0.0,
            std: 1.0,
        };
        let y = values(&generate(&source, DType::F64, name, seed, &[n], &[(0, n)]));
        let both: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>() / n as f64;
        assert!(near(both, 0.0, 0.01));
    }
    let mut order = all(&Source::Permutation, DType::I64, 10_000);
    let (first, _) = moments(&order[..5000]);
    assert!(near(first, 5000.0, 150.0));
    order.sort_by(f64::total_cmp);
    assert!(order.iter().enumerate().all(|(n, x)| *x == n as f64));
}

#[test]
fn uniform_values_stay_below_their_upper_end() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (lo, hi) in [
            (0.0, 1.0),
            (-1.0, 0.0),
            (1.0, 1.1),
            (-1.1, -1.0),
            (0.0, 1e-3),
            (-4.0, 3.0),
        ] {
            let x = all(&Source::Uniform { lo, hi }, dtype, 100_000);
            let ends = x
                .iter()
                .fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            // A lower end that the type does not hold is rounded.
            let slack = (lo.abs() / 128.0).min(hi - lo);
            assert!(
                ends.1 < hi && ends.0 >= lo - slack,
                "{dtype} {lo} {hi}: {ends:?}"
            );
        }
    }
    // Also near 2^52, where f64 has no fractions and a sum could round up to the end.
    for lo in [-2.0, (1u64 << 52) as f64, -((1u64 << 52) as f64)] {
        let whole = all(&Source::Uniform { lo, hi: lo + 5.0 }, DType::I64, 100_000);
        for above in 0..5 {
            let share = whole
                .iter()
                .filter(|n| **n == lo + f64::from(above))
                .count();
            assert!((19_000..21_000).contains(&share), "{lo} + {above}: {share}");
        }
    }
}

/// Programs give the same numbers for the same seed for ever: these may not be edited.
#[test]
fn values_are_frozen() {
    let make = |source: &Source| {
        let array = generate(source, DType::F64, "model.w", 42, &[6], &[(1, 4)]);
        values(&array)
    };
    let got = [
        make(&Source::Uniform { lo: 0.0, hi: 1.0 }),
        make(&Source::Normal {
            mean: 0.0,
            std: 1.0,
        }),
        make(&Source::Gumbel),
        make(&Source::Bernoulli { p: 0.5 }),
        make(&Source::Permutation),
    ];
    let want: [[f64; 4]; 5] = [
        [
            0.7111696232581761,
            0.8177531883965756,
            0.9904233705302005,
            0.26114078082301095,
        ],
        [
            -1.3840325880666589,
            0.5166268976954593,
            0.08392310573049966,
            0.37945429890061216,
        ],
        [
            1.076329481771007,
            1.6034821155336503,
            4.643622046889559,
            -0.2946792551846379,
        ],
        [0.0, 0.0, 0.0, 1.0],
        [4.0, 0.0, 1.0, 2.0],
    ];
    for (got, want) in got.iter().zip(&want) {
        for (x, y) in got.iter().zip(want) {
            assert!((x - y).abs() <= 1e-15 * y.abs(), "{got:?}");
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_is_no_memory_any_more() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shorter.bin");
    std::fs::write(&path, vec![7u8; 10_000]).unwrap();
    let mapped = Mapped::of(&std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(mapped.bytes().unwrap(), vec![7u8; 10_000]);
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(9_999)
        .unwrap();
    let error = mapped.bytes().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    std::fs::remove_file(&path).unwrap();
}
