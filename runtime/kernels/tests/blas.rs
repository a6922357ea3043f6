//! Products that are left to a system's BLAS, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Options, blas_in_use, load_blas, run};
use ein_plan::Kernel;
use reference::{Owned, array, chunks, close, interpret};
use std::path::{Path, PathBuf};

/// The library of this name among the system's.
fn of_system(name: &str) -> Option<PathBuf> {
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let folders = usual.iter().map(|folder| Path::new(folder).join(name));
    folders.into_iter().find(|path| path.exists())
}

/// The one that `EINC_TEST_OPENBLAS` names, else the system's.
fn openblas() -> Option<PathBuf> {
    let named = std::env::var_os("EINC_TEST_OPENBLAS").map(PathBuf::from);
    named
        .filter(|path| path.exists())
        .or_else(|| of_system("libopenblas.so.0"))
}

/// A process has one library, so each is tried in a process of its own. Some take 64-bit sizes in functions of the plain names.
#[test]
fn other_libraries_agree_too() {
    let others = [
        ("libblis.so.4", "libblis4-openmp"),
        ("libblis64.so.4", "libblis64-4-openmp"),
        ("libopenblas64.so.0", ""),
        ("libmkl_rt.so", ""),
    ];
    for (name, package) in others {
        let Some(library) = of_system(name) else {
            assert!(
                package.is_empty() || std::env::var_os("EINC_TEST_MPI").is_none(),
                "tests/all.sh installs {package}"
            );
            continue;
        };
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "products_agree_with_the_naive_evaluator"])
            .env("EINC_TEST_OPENBLAS", &library)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.success() && said.contains("1 passed"),
            "{}: {said}{}",
            library.display(),
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}

/// Rows and columns in any order on either side and in the result, batches, vectors, windows, several inner tiles, numbers.
const KERNELS: [&str; 11] = [
    "(f32[40, 30], f32[30, 50]) [i: 40, j: 50 | k: 30] f32 = sum a0[i, k] * a1[k, j]",
    "(f64[30, 40], f64[50, 30]) [i: 40, j: 50 | k: 30] f64 = sum a0[k, i] * a1[j, k] * 2.5_f64",
    "(f32[40, 30], f32[30, 50]) [j: 50, i: 40 | k: 30] f32 = sum a0[i, k] * a1[k, j]",
    "(f32[5, 40, 30], f32[5, 50, 30]) [b: 5, i: 40, j: 50 | k: 30] f32 = sum a0[b, i, k] * a1[b, j, k]",
    "(f32[9, 8, 30], f32[30, 7, 6]) [a: 9, c: 7, b: 8, d: 6 | k: 30] f32 = sum a0[a, b, k] * a1[k, c, d]",
    "(f32[70, 90], f32[90]) [i: 70 | k: 90] f32 = sum a0[i, k] * a1[k]",
    "(f64[70, 90], f64[70]) [k: 90 | i: 70] f64 = sum a0[i, k] * a1[i]",
    "(f32[70, 90], f32[70]) [i: 70, k: 90] f32 = a0[i, k] * a1[i]",
    "(f32[20, 700, 3], f32[3, 17, 700]) [i: 20, j: 17 | k: 700, l: 3] f32 = sum a0[i, k, l] * a1[l, j, k]",
    "(f32[2, 3, 12, 12], f32[7, 3, 3, 3]) [n: 2, f: 7, y: 12, x: 12 | c: 3, r: 3, s: 3] f32 = sum (a0[n, c, y + r - 1, x + s - 1] else 0.0) * a1[f, c, r, s]",
    "(f32[40, 40], f32[40, 50]) [j: 50 | i: 40] f32 = sum a0[i, i] * a1[i, j]",
];

#[test]
fn products_agree_with_the_naive_evaluator() {
    assert!(
        load_blas("nonsense")
            .unwrap_err()
            .contains("openblas, blis and mkl")
    );
    assert!(
        load_blas("/nowhere/libblas.so")
            .unwrap_err()
            .contains("/nowhere/libblas.so")
    );
    assert!(blas_in_use().is_none());
    let Some(library) = openblas() else {
        assert!(
            std::env::var_os("EINC_TEST_MPI").is_none(),
            "tests/all.sh installs libopenblas0"
        );
        eprintln!("not run: there is no OpenBLAS here (apt-get install libopenblas0)");
        return;
    };
    load_blas(library.to_str().unwrap()).unwrap();
    let named = library.file_name().unwrap().to_str().unwrap();
    assert!(blas_in_use().unwrap().contains(named));
    assert!(!named.contains("openblas") || blas_in_use().unwrap().contains("OpenBLAS"));
    for text in KERNELS {
        let Ok(kernel) = text.parse::<Kernel>() else {
            panic!("{text} cannot be read: {:?}", text.parse::<Kernel>());
        };
        let owned: Vec<Owned> = kernel
            .operands
            .iter()
            .enumerate()
            .map(|(salt, operand)| {
                let shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
                let value = |e: usize| ((e * (7 * salt + 3) + e / 5) % 23) as f64 / 4.0 - 2.5;
                Owned {
                    columns: vec![array(operand.columns[0], &shape, value)],
                    start: vec![0; shape.len()],
                }
            })
            .collect();
        let chunks = chunks(&owned);
        let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let got = run(&kernel, &ranges, &chunks, &Options::default()).unwrap();
        let want = interpret(&kernel, &ranges, &owned).unwrap();
        for (at, (value, scale)) in want.iter().enumerate() {
            let x = got[0].data().get(at).as_f64();
            assert!(
                close(got[0].dtype(), x, value.f(), *scale),
                "{text}: element {at} is {x}, not {value:?}"
            );
        }
    }
}
