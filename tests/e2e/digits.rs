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

/// Places at which several values meet: with gaps, in two dimensions, from both ends, as a greatest, as a sum of products.
const MEETING: &str = "dim N, C, F, Y, X
input I: f64[N, C, Y, X]; input W: f64[C, F, 3, 4]; input w: f64[5]; input long: f64[40]
up[n, f, 2*y + r, 3*x + s]: f64[N, F, 2*Y + 1, 3*X + 1] += I[n,c,y,x] * W[c,f,r,s]
full[i + j]: f64[Y + 4]   += I[0,0,i,0] * w[j]
back[4 + i - j]: f64[Y + 4] += I[0,0,i,0] * w[j]
sure[2*i + j, c]: f64[2*Y + 9, C] += where(I[0,c,i,0] > 0, I[0,c,i,0] * w[j], 0)
peak[2*i + j]: f64[2*Y + 3]  max= I[0,0,i,0] - w[j]
wide[i + j]: f64[Y + 39]   += I[0,0,i,0] * long[j]
loss = sum[n,f,p,q] up[n,f,p,q]^2
gI[n,c,y,x] = grad(loss, I)[n,c,y,x]
gW[c,f,r,s] = grad(loss, W)[c,f,r,s]
output up; output full; output back; output sure; output peak; output wide; output gI; output gW
";

#[test]
fn values_that_meet_are_those_of_plain_loops() {
    for (n, c, f, y, x, sites) in [
        (2, 3, 2, 5, 4, 1),
        (1, 2, 3, 7, 6, 2),
        (3, 1, 2, 9, 5, 3),
        (2, 2, 1, 6, 11, 4),
        (1, 3, 5, 13, 3, 5),
    ] {
        let image = Tensor::noise(&[n, c, y, x], 1);
        let kernel = Tensor::noise(&[c, f, 3, 4], 2);
        let w = Tensor::noise(&[5], 3);
        let long = Tensor::noise(&[40], 4);
        let zeros = |shape: &[usize]| Tensor::from_fn(shape, |_| 0.0);
        let column = |channel: usize, i: usize| image.data[(channel * y + i) * x];
        let (rows, columns) = (2 * y + 1, 3 * x + 1);
        let mut up = zeros(&[n, f, rows, columns]);
        let mut places = vec![];
        for at in 0..n * c * y * x * f * 12 {
            let (s, r, g) = (at % 4, at / 4 % 3, at / 12 % f);
            let point = at / 12 / f;
            let (b, a, k, m) = (
                point % x,
                point / x % y,
                point / x / y % c,
                point / x / y / c,
            );
            let to = ((m * f + g) * rows + 2 * a + r) * columns + 3 * b + s;
            let by = ((k * f + g) * 3 + r) * 4 + s;
            up.data[to] += image.data[point] * kernel.data[by];
            places.push((to, point, by));
        }
        let (mut of_image, mut of_kernel) = (zeros(&image.shape), zeros(&kernel.shape));
        for (to, point, by) in places {
            of_image.data[point] += 2.0 * up.data[to] * kernel.data[by];
            of_kernel.data[by] += 2.0 * up.data[to] * image.data[point];
        }
        let (mut full, mut back) = (zeros(&[y + 4]), zeros(&[y + 4]));
        let (mut sure, mut peak) = (
            zeros(&[2 * y + 9, c]),
            Tensor::from_fn(&[2 * y + 3], |_| f64::NEG_INFINITY),
        );
        let mut wide = zeros(&[y + 39]);
        for i in 0..y {
            for (j, w) in w.data.iter().enumerate() {
                full.data[i + j] += column(0, i) * w;
                back.data[4 + i - j] += column(0, i) * w;
                peak.data[2 * i + j] = peak.data[2 * i + j].max(column(0, i) - w);
                for k in 0..c {
                    sure.data[(2 * i + j) * c + k] += column(k, i).max(0.0) * w;
                }
            }
            for (j, w) in long.data.iter().enumerate() {
                wide.data[i + j] += column(0, i) * w;
            }
        }
        let expected = [
            ("up", up),
            ("full", full),
            ("back", back),
            ("sure", sure),
            ("peak", peak),
            ("wide", wide),
            ("gI", of_image),
            ("gW", of_kernel),
        ];
        gives(
            MEETING,
            &[("I", image), ("W", kernel), ("w", w), ("long", long)],
            &expected,
            sites,
        );
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
