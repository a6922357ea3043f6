//! Tensors that are laid out in another shape, and running sums by blocks, on 1 to 5 sites against plain loops.

use crate::windows::{gives, transfer};
use einc_tests::Tensor;

/// Quotients and rests of indices on either side of `=`, with sizes that do not divide.
const SHAPES: &str = "dim N, A, B
input x: f64[N]; input Z: f64[A, B]; input V: f64[A, B, 3]
flat[B*a + b]: f64[A*B] = 2 * Z[a,b]
deep[p < 3*A*B]   = V[p / (3*B), (p / 3) % B, p % 3]
turned[3*B*a + 3*b + c]: f64[3*A*B] = V[a,b,c]
folded[q < N/4, r<4] = x[4*q + r]
spread[2*i]: f64[2*N] += x[i]
doubled[i < 2*N] = x[i / 2]
weight = sum[p] flat[p]^3
gz[a,b] = grad(weight, Z)[a,b]
output flat; output deep; output turned; output folded; output spread; output doubled; output gz
";

#[test]
fn tensors_of_other_shapes_have_the_same_elements() {
    for (n, a, b, sites) in [
        (23, 5, 7, 1),
        (23, 5, 7, 2),
        (24, 12, 4, 3),
        (31, 9, 11, 4),
        (29, 3, 50, 5),
    ] {
        let x = Tensor::noise(&[n], 1);
        let z = Tensor::noise(&[a, b], 2);
        let v = Tensor::noise(&[a, b, 3], 3);
        let same = |tensor: &Tensor, shape: &[usize], f: &dyn Fn(f64) -> f64| {
            Tensor::from_fn(shape, |number| f(tensor.data[number]))
        };
        let expected = [
            ("flat", same(&z, &[a * b], &|z| 2.0 * z)),
            ("deep", same(&v, &[a * b * 3], &|v| v)),
            ("turned", same(&v, &[a * b * 3], &|v| v)),
            ("folded", same(&x, &[n / 4, 4], &|x| x)),
            (
                "spread",
                Tensor::from_fn(&[2 * n], |number| match number % 2 {
                    0 => x.data[number / 2],
                    _ => 0.0,
                }),
            ),
            (
                "doubled",
                Tensor::from_fn(&[2 * n], |number| x.data[number / 2]),
            ),
            ("gz", same(&z, &[a, b], &|z| 24.0 * z * z)),
        ];
        gives(SHAPES, &[("x", x), ("Z", z), ("V", v)], &expected, sites);
    }
}

/// Running reductions in both directions, over rows too, with a gradient.
const RUNNING: &str = "dim N
input x: f64[N]; input U: f64[3, N]
sums[i]      = sum[j <= i] x[j]
strict[i]    = sum[j < i] x[j] * x[j]
after[i<N]   = sum[j<N] where(j >= i, x[j], 0)
greatest[i]  = max[j <= i] x[j]
rows[b,i]    = sum[j <= i] U[b,j]
energy       = sum[i] sums[i]^2
gx[i]        = grad(energy, x)[i]
output sums; output strict; output after; output greatest; output rows; output gx
";

#[test]
fn running_reductions_are_those_of_plain_loops() {
    for (n, sites) in [(71, 1), (71, 2), (64, 3), (100, 4), (131, 5)] {
        let x = Tensor::noise(&[n], 1);
        let u = Tensor::noise(&[3, n], 2);
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let line = |f: &dyn Fn(usize) -> f64| Tensor::from_fn(&[n], f);
        let sums = line(&|i| sum(&x.data[..=i]));
        let expected = [
            ("strict", line(&|i| x.data[..i].iter().map(|x| x * x).sum())),
            ("after", line(&|i| sum(&x.data[i..]))),
            (
                "greatest",
                line(&|i| {
                    x.data[..=i]
                        .iter()
                        .copied()
                        .fold(f64::NEG_INFINITY, f64::max)
                }),
            ),
            (
                "rows",
                Tensor::from_fn(&[3, n], |at| sum(&u.data[at / n * n..=at])),
            ),
            ("gx", line(&|i| 2.0 * sum(&sums.data[i..]))),
            ("sums", sums.clone()),
        ];
        gives(RUNNING, &[("x", x), ("U", u)], &expected, sites);
    }
}

#[test]
fn plans_move_what_is_read() {
    let cases = [
        (
            "a matrix as a vector, cut by rows",
            "input X: f32[1000, 2000]\ny[i,j] = X[i,j] + (X[i-1,j] else 0)\nz[2000*i + j]: f32[2000000] = y[i,j]\noutput z\n",
            3 * 2000,
        ),
        // The rows at the seams of four sites, and 2500 totals to one site and back.
        (
            "a running sum",
            "input x: f32[6250000]\ny[i] = sum[j <= i] x[j]\noutput y\n",
            2 * 2500,
        ),
    ];
    for (what, text, most) in cases {
        let moved = transfer(text, 4);
        assert!(moved <= most, "{what} moves {moved} floats");
    }
}
