//! The bits of a factorisation do not depend on the number of threads.
#![allow(clippy::unwrap_used)]

use ein_matrix::{Matrix, Real};
use ein_plan::Function;

fn matrix(n: usize) -> Matrix<f64> {
    let element = |at: usize| match at / n == at % n {
        true => 20.0,
        false => ((at * 7 + 3) as f64).sin() + ((at % n * n + at / n) as f64 * 7.0 + 3.0).sin(),
    };
    Matrix {
        rows: n,
        columns: n,
        data: (0..n * n).map(element).collect(),
    }
}

/// Sizes on both sides of the one from which threads share a matrix.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    use Function::{Cholesky, Eig, Eigh, Inv, Logdet, Lu, Qr, Svd};
    for n in [90, 331] {
        let results = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let mut results = vec![];
                for operation in [Cholesky, Inv, Lu, Logdet, Qr, Eigh, Eig, Svd] {
                    let mut a = matrix(n);
                    if operation == Cholesky {
                        (0..n).for_each(|i| a.data[i * n + i] = 2.0 * n as f64);
                    }
                    if operation == Logdet {
                        (0..n).for_each(|i| a.data[i * n + i] = 4.0 * n as f64);
                    }
                    results.push(f64::factor(operation, a).unwrap());
                }
                let sides = [matrix(n).data[..n].to_vec(), vec![1.0; n]];
                results.extend(f64::solve(&matrix(n), &sides).unwrap());
                results
            })
        };
        let one = results(1);
        for threads in [2, 3, 5] {
            assert!(results(threads) == one, "{n} rows, {threads} threads");
        }
    }
}
