//! Reads at affine positions on 1 to 5 sites against plain loops: what moves is what a site lacks of its windows, as stated.

use einc_tests::{Finished, Tensor, einc};

/// Every way of reading that has windows, with sizes that do not divide.
const READS: &str = "dim N
input x: f64[N]; input Z: f64[N, N]; input w: f64[3]
A[i,j] = 2 * Z[i,j] - 1
diagonal[i]    = A[i,i]
trace          = sum[i] A[i,i]
shifted[i]     = x[i] + (x[i-1] else 0) - 3 * (x[i+2] else 1)
guarded[i<N]   = where(i >= 2, x[i-2], 5)
reversed[i<N]  = x[N-1-i] * x[i]
paired[i<N/2]  = x[2*i] - x[2*i+1]
first[k<3,j]   = Z[k,j] + Z[k+1,j]
around[i<N]    = x[(i+1)%N]
cross[i,j]     = Z[i,j] + (Z[i-1,j] else 0) + (Z[i,j+1] else 0) + (Z[i+1,j-1] else 0)
smooth[i<N]    = sum[r<3] w[r] * (x[i+r-1] else 0)
pooled[i<N/3]  = max[r<3] x[3*i+r]
dilated[i<N]   = sum[r<3] w[r] * (x[i+2*r-2] else 0)
loss           = sum[i] smooth[i]^2
gx[i]          = grad(loss, x)[i]
gw[r]          = grad(loss, w)[r]
repeat k < 4 {
  state u[i,j] = Z[i,j]
  next u[i,j] = u[i,j] + 0.1 * ((u[i-1,j] else 0) + (u[i+1,j] else 0) + (u[i,j-1] else 0) + (u[i,j+1] else 0) - 4 * u[i,j])
}
output diagonal; output trace; output shifted; output guarded; output reversed; output paired; output first; output around
output cross; output smooth; output pooled; output dilated; output gx; output gw; output u
";

fn expected(x: &Tensor, z: &Tensor, w: &Tensor) -> Vec<(&'static str, Tensor)> {
    let n = x.data.len();
    let size = n as i64;
    let at = |i: i64| (0..size).contains(&i).then(|| x.data[i as usize]);
    let in_z = |i: i64, j: i64| {
        let inside = (0..size).contains(&i) && (0..size).contains(&j);
        inside.then(|| z.data[(i * size + j) as usize])
    };
    let line = |length: usize, f: &dyn Fn(i64) -> f64| {
        Tensor::from_fn(&[length], |number| f(number as i64))
    };
    let grid = |rows: usize, f: &dyn Fn(i64, i64) -> f64| {
        Tensor::from_fn(&[rows, n], |number| {
            f((number / n) as i64, (number % n) as i64)
        })
    };
    let zero = |value: Option<f64>| value.unwrap_or(0.0);
    let a = |i: i64| 2.0 * zero(in_z(i, i)) - 1.0;
    let taps = |i: i64, step: i64| -> f64 {
        let terms = (0..3).map(|r| w.data[r as usize] * zero(at(i + step * (r - 1))));
        terms.sum()
    };
    let smooth: Vec<f64> = (0..size).map(|i| taps(i, 1)).collect();
    let of_smooth = |i: i64| match (0..size).contains(&i) {
        true => smooth[i as usize],
        false => 0.0,
    };
    let mut u = z.clone();
    for _ in 0..4 {
        let old = |i: i64, j: i64| match (0..size).contains(&i) && (0..size).contains(&j) {
            true => u.data[(i * size + j) as usize],
            false => 0.0,
        };
        u = grid(n, &|i, j| {
            let around = old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1);
            old(i, j) + 0.1 * (around - 4.0 * old(i, j))
        });
    }
    vec![
        ("diagonal", line(n, &a)),
        ("trace", Tensor::from_fn(&[], |_| (0..size).map(a).sum())),
        (
            "shifted",
            line(n, &|i| {
                zero(at(i)) + zero(at(i - 1)) - 3.0 * at(i + 2).unwrap_or(1.0)
            }),
        ),
        ("guarded", line(n, &|i| at(i - 2).unwrap_or(5.0))),
        (
            "reversed",
            line(n, &|i| zero(at(size - 1 - i)) * zero(at(i))),
        ),
        (
            "paired",
            line(n / 2, &|i| zero(at(2 * i)) - zero(at(2 * i + 1))),
        ),
        (
            "first",
            grid(3, &|k, j| zero(in_z(k, j)) + zero(in_z(k + 1, j))),
        ),
        ("around", line(n, &|i| zero(at((i + 1) % size)))),
        (
            "cross",
            grid(n, &|i, j| {
                let others = [in_z(i - 1, j), in_z(i, j + 1), in_z(i + 1, j - 1)];
                zero(in_z(i, j)) + others.into_iter().map(zero).sum::<f64>()
            }),
        ),
        ("smooth", line(n, &|i| taps(i, 1))),
        (
            "pooled",
            line(n / 3, &|i| {
                let three = (0..3).map(|r| zero(at(3 * i + r)));
                three.fold(f64::NEG_INFINITY, f64::max)
            }),
        ),
        ("dilated", line(n, &|i| taps(i, 2))),
        (
            "gx",
            line(n, &|i| {
                let terms = (0..3).map(|r| 2.0 * of_smooth(i - r + 1) * w.data[r as usize]);
                terms.sum()
            }),
        ),
        (
            "gw",
            line(3, &|r| {
                let terms = (0..size).map(|i| 2.0 * of_smooth(i) * zero(at(i + r - 1)));
                terms.sum()
            }),
        ),
        ("u", u),
    ]
}

/// Every line of the program moves what its plan says, over all rounds.
fn moved_as_stated(finished: &Finished) {
    let lines = finished.stderr.lines().chain(finished.stdout.lines());
    let stated = |line: &&str| line.contains(": moved ") && line.contains(" (stated ");
    for line in lines.filter(stated) {
        let (moved, stated) = line.split_once(" (stated ").unwrap();
        let stated = stated.strip_suffix(')').unwrap();
        assert!(moved.ends_with(&format!("moved {stated}")), "{finished}");
    }
}

#[test]
fn reads_at_affine_positions_are_those_of_plain_loops() {
    for (n, sites) in [(23, 1), (23, 2), (24, 3), (31, 4), (29, 5), (60, 4)] {
        let tensors = [
            ("x", Tensor::noise(&[n], 1)),
            ("Z", Tensor::noise(&[n, n], 2)),
            ("w", Tensor::noise(&[3], 3)),
        ];
        let expected = expected(&tensors[0].1, &tensors[1].1, &tensors[2].1);
        gives(READS, &tensors, &expected, sites);
    }
}

/// Asserts what a program gives on so many sites, and that it moves what its plan says.
pub fn gives(text: &str, inputs: &[(&str, Tensor)], expected: &[(&str, Tensor)], sites: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("model.ein"), text).unwrap();
    for deterministic in [false, true] {
        let mut arguments: Vec<String> = vec!["run".into(), path("model.ein")];
        arguments.extend(["--stats".into(), "--sites".into(), sites.to_string()]);
        if deterministic {
            arguments.push("--deterministic".into());
        }
        for (name, tensor) in inputs {
            let file = path(&format!("{name}.npy"));
            tensor.write_f64(std::path::Path::new(&file));
            arguments.extend(["--input".into(), format!("{name}={file}")]);
        }
        for (name, _) in expected {
            let file = path(&format!("{name}.out.npy"));
            arguments.extend(["--save".into(), format!("{name}={file}")]);
        }
        moved_as_stated(&einc(&arguments).success());
        for (name, tensor) in expected {
            let file = path(&format!("{name}.out.npy"));
            let found = Tensor::read(std::path::Path::new(&file));
            found.assert_close(tensor, 1e-12, &format!("{name} of {inputs:?} on {sites}"));
        }
    }
}

/// What a plan moves, in floats.
pub fn transfer(text: &str, sites: u32) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.ein");
    std::fs::write(&file, text).unwrap();
    let sites = sites.to_string();
    let plan = einc(&["plan", file.to_str().unwrap(), "--sites", &sites]).success();
    let (_, rest) = plan.stdout.split_once(": transfer ").unwrap();
    let (floats, _) = rest.split_once(" floats").unwrap();
    floats.parse().unwrap()
}

#[test]
fn plans_move_what_is_read() {
    let heat = "input u0: f32[8192, 8192]
repeat k < 100 {
  state u[i,j] = u0[i,j]
  next u[i,j] = u[i,j] + 0.1 * ((u[i-1,j] else 0) + (u[i+1,j] else 0) + (u[i,j-1] else 0) + (u[i,j+1] else 0) - 4 * u[i,j])
}
output u
";
    let cases = [
        (
            "the diagonal of a sum",
            "input X: f32[4000, 4000]; input Y: f32[4000, 4000]
Z[i,j] = X[i,j] + Y[i,j]
d[i] = Z[i,i]
output d
",
            4,
            0,
        ),
        // Four addends, of which one is where they are added up.
        (
            "a trace",
            "input Z: f32[8000, 8000]\nt = sum[i] Z[i,i]\noutput t\n",
            4,
            4,
        ),
        (
            "a shift",
            "input x: f32[100000000]\ny[i] = x[i] + (x[i-1] else 0)\noutput y\n",
            4,
            3,
        ),
        // Tiles of 4096²: two edges and a corner of each, once a round.
        ("heat on 4", heat, 4, 100 * 4 * (2 * 4096 + 1)),
        // Tiles of 2048²: 24 inner edges seen from both sides, and 36 corners.
        ("heat on 16", heat, 16, 100 * (48 * 2048 + 36)),
        (
            "a convolution of rows",
            "input x: f32[1, 3, 8192, 8192]; param w: f32[4, 3, 3, 3] = zeros
y[n,o,i<8192,j<8192] = sum[c,r<3,s<3] w[o,c,r,s] * (x[n,c,i+r-1,j+s-1] else 0)
output y
",
            4,
            3 * 4 * (2 * 4096 + 1),
        ),
        // Rows of a ring: each site gets a row of either neighbour.
        (
            "a periodic stencil",
            "input u0: f32[4096, 4096]
repeat k < 10 {
  state u[i,j] = u0[i,j]
  next u[i,j] = 0.25 * (u[(i+1) % 4096, j] + u[(i-1) % 4096, j] + u[i, (j+1) % 4096] + u[i, (j-1) % 4096])
}
output u
",
            4,
            10 * 4 * 2 * 4096,
        ),
        (
            "the first rows",
            "input X: f32[10000000, 34]
repeat t < 10 {
  state c[k<10, d] = X[k,d]
  dist[n,k] = sum[d] (X[n,d] - c[k,d])^2
  near[n] = argmin[k] dist[n,k]
  total[near[n], d]: f32[10, 34] += X[n,d]
  next c[k,d] = total[k,d] / 1000000
}
output c
",
            4,
            10 * (4 + 4) * 340,
        ),
        // Both edges of each tile, and the first and last rows of all.
        ("heat with kept borders", &heat.replace("(u[i-1,j] else 0)", "u[max(i-1,0),j]").replace("(u[i+1,j] else 0)", "u[min(i+1,8191),j]").replace("(u[i,j-1] else 0)", "u[i,max(j-1,0)]").replace("(u[i,j+1] else 0)", "u[i,min(j+1,8191)]"), 4, 100 * 65_540),
        (
            "neighbours on a torus",
            "input u0: f32[8192, 8192]
repeat k < 100 {
  state u[i,j] = u0[i,j]
  n[i<8192,j<8192] = sum[a<3,b<3] u[(i+a+8191) % 8192, (j+b+8191) % 8192]
  next u[i,j] = where(n[i,j] - u[i,j] == 3, 1, 0)
}
output u
",
            4,
            100 * 65_552,
        ),
        (
            "one element",
            "input x: f32[100000000]\nz[i] = x[i] * 2\nr = z[7]\ns = sum[i] z[i]\noutput r\noutput s\n",
            4,
            8,
        ),
        (
            "look-ups with an else",
            "input x: f32[100000000]; input t: i64[64]\nz[i] = x[i] * 2\ny[n] = z[t[n] + 1] else 0\noutput y\noutput z\n",
            4,
            512,
        ),
    ];
    for (what, text, sites, floats) in cases {
        assert_eq!(transfer(text, sites), floats, "{what}");
    }
}

/// Reads that stay at an end, or go around one at a summed offset.
#[test]
fn reads_at_the_ends_are_those_of_plain_loops() {
    const ENDS: &str = "dim N = 13
dim M = 7
input x: f64[N, M] = load(\"x.npy\")
z[i,j] = 2 * x[i,j]
y[i<N,j<M] = z[max(i-2,0),j] - z[min(i+1,N-1), clip(j-1,0,M-1)] + z[5,j]
w[i<N,j<M] = sum[r<3,s<2] (r + 1) * z[(i+r+N-1) % N, (j+s+M-1) % M] * z[clip(i+r-1,0,N-1), j]
one = z[12,3]
output y
output w
output one
";
    let x = Tensor::noise(&[13, 7], 3);
    let z = |i: i64, j: i64| 2.0 * x.at(&[i as usize, j as usize]);
    let at = |e: usize| ((e / 7) as i64, (e % 7) as i64);
    let y = Tensor::from_fn(&[13, 7], |e| {
        let (i, j) = at(e);
        z((i - 2).max(0), j) - z((i + 1).min(12), (j - 1).clamp(0, 6)) + z(5, j)
    });
    let w = Tensor::from_fn(&[13, 7], |e| {
        let (i, j) = at(e);
        let term = |r: i64, s: i64| {
            let around = z((i + r + 12) % 13, (j + s + 6) % 7);
            (r + 1) as f64 * around * z((i + r - 1).clamp(0, 12), j)
        };
        (0..3).map(|r| term(r, 0) + term(r, 1)).sum()
    });
    let one = Tensor::from_fn(&[], |_| z(12, 3));
    for sites in 1..=5 {
        let expected = [("y", y.clone()), ("w", w.clone()), ("one", one.clone())];
        gives(ENDS, &[("x", x.clone())], &expected, sites);
    }
}

/// A stencil on a torus with its gradient. A round is linear, so the gradient of the sum of squares goes back through its adjoint.
#[test]
fn reads_around_the_end_are_those_of_plain_loops() {
    const RING: &str = "dim N
input Z: f64[N, N]
repeat k < 4 {
  state u[i,j] = Z[i,j]
  next u[i,j] = 0.3 * u[(i+1) % N, j] - 0.2 * u[i, (j-2) % N] + 0.5 * u[(i-1) % N, (j+N-1) % N] + 0.1 * u[i,j]
}
loss   = sum[i,j] u[i,j]^2
g[i,j] = grad(loss, Z)[i,j]
output u; output g
";
    let taps = [(1, 0, 0.3), (0, -2, -0.2), (-1, -1, 0.5), (0, 0, 0.1)];
    for (n, sites) in [(7, 1), (23, 2), (24, 3), (31, 4), (29, 5)] {
        let round = |u: &Tensor, direction: i64| {
            let at = |i: i64, by: i64| (i + direction * by).rem_euclid(n) as usize;
            Tensor::from_fn(&u.shape, |number| {
                let (i, j) = (number as i64 / n, number as i64 % n);
                let read = |(di, dj, weight)| weight * u.at(&[at(i, di), at(j, dj)]);
                taps.map(read).iter().sum()
            })
        };
        let z = Tensor::noise(&[n as usize, n as usize], 4);
        let u = (0..4).fold(z.clone(), |u, _| round(&u, 1));
        let doubled = Tensor::from_fn(&u.shape, |number| 2.0 * u.data[number]);
        let g = (0..4).fold(doubled, |g, _| round(&g, -1));
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        std::fs::write(path("model.ein"), RING).unwrap();
        z.write_f64(std::path::Path::new(&path("Z.npy")));
        let mut arguments = vec!["run".into(), path("model.ein"), "--stats".into()];
        arguments.extend(["--sites".into(), sites.to_string()]);
        arguments.extend(["--input".into(), format!("Z={}", path("Z.npy"))]);
        for name in ["u", "g"] {
            let file = path(&format!("{name}.out.npy"));
            arguments.extend(["--save".into(), format!("{name}={file}")]);
        }
        moved_as_stated(&einc(&arguments).success());
        for (name, wanted) in [("u", &u), ("g", &g)] {
            let file = path(&format!("{name}.out.npy"));
            let found = Tensor::read(std::path::Path::new(&file));
            found.assert_close(wanted, 1e-12, &format!("{name} of {n} on {sites}"));
        }
    }
}
