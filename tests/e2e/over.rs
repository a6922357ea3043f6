//! Tensors so large that results take the memory of what ends with them: what is still read must not change.
//!
//! Must not know when that is done.

use crate::families::{inputs, on_sites_and_ranks};
use einc_tests::Tensor;

/// So many that the part of each of 4 sites is worth it.
const N: usize = 1_100_003;

/// A state that becomes another one's next, one that is put out too, what is read after what is made of it, and slices that are kept.
const PROGRAM: &str = "dim N
input x: f64[N]; input z: f64[N]
repeat t < 4 {
  state s[n] = x[n]
  state old[n] = z[n]
  u[n]        = s[n] * 0.5 + z[n]
  v[n]        = max(u[n], 0.1)
  w[n]        = where(v[n] > 0.4, v[n] - old[n], u[n])
  next s[n]   = w[n] * 0.75 - z[n] / 3.0
  next old[n] = s[n]
  edge[t]     = s[7]
}
a[n] = relu(s[n])
b[n] = a[n] - old[n]
c[n] = a[n] * b[n] + x[n]
output s
output a
output c
output edge
";

/// Between products: what ends with a step that changes it element by element.
const LAYERS: &str = "dim N; dim K; dim D; dim J
input X: f64[N, D]; input W: f64[D, K]; input V: f64[K, J]
h[n,k] = X[n,d] * W[d,k]
r[n,k] = relu(h[n,k] - 0.25)
q[n,j] = r[n,k] * V[k,j]
p[n,k] = q[n,j] * V[k,j]
g[n,k] = where(r[n,k] > 0, p[n,k], 0)
o[d,k] = X[n,d] * g[n,k]
output q
output o
";

#[test]
fn layers_and_the_way_back_are_what_loops_say() {
    let folder = tempfile::tempdir().unwrap();
    // Factors that are too large to be gone through with each block of rows.
    let (n, k, d, j) = (1201, 1003, 40, 34);
    let x = Tensor::noise(&[n, d], 1);
    let (w, v) = (Tensor::noise(&[d, k], 2), Tensor::noise(&[k, j], 3));
    let arguments = inputs(folder.path(), &[("X", &x), ("W", &w), ("V", &v)]);
    let source = folder.path().join("layers.ein");
    std::fs::write(&source, LAYERS).unwrap();
    let (mut q, mut o) = (vec![0.0; n * j], vec![0.0; d * k]);
    for (row, q) in x.data.chunks(d).zip(q.chunks_mut(j)) {
        let mut hidden = vec![-0.25; k];
        for (x, w) in row.iter().zip(w.data.chunks(k)) {
            hidden.iter_mut().zip(w).for_each(|(h, w)| *h += x * w);
        }
        for (h, v) in hidden.iter().zip(v.data.chunks(j)) {
            q.iter_mut().zip(v).for_each(|(q, v)| *q += h.max(0.0) * v);
        }
        for (at, v) in v
            .data
            .chunks(j)
            .enumerate()
            .filter(|(at, _)| hidden[*at] > 0.0)
        {
            let back: f64 = q.iter().zip(v).map(|(q, v)| q * v).sum();
            let column = o.iter_mut().skip(at).step_by(k);
            column.zip(row).for_each(|(o, x)| *o += x * back);
        }
    }
    on_sites_and_ranks(&source, &arguments, &["q", "o"], |output, how| {
        for (name, want) in [("q", &q), ("o", &o)] {
            let got = output(name);
            assert_eq!(got.data.len(), want.len(), "{name}, {how}");
            for (at, (got, want)) in got.data.iter().zip(want).enumerate() {
                let close = (got - want).abs() <= 1e-9 * (1.0 + want.abs());
                assert!(close, "{name}[{at}] is {got}, not {want}, {how}");
            }
        }
    });
}

#[test]
fn what_is_read_later_stays_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (x, z) = (Tensor::noise(&[N], 1), Tensor::noise(&[N], 2));
    let arguments = inputs(folder.path(), &[("x", &x), ("z", &z)]);
    let source = folder.path().join("over.ein");
    std::fs::write(&source, PROGRAM).unwrap();
    let (mut s, mut a, mut c, mut edge) = (vec![], vec![], vec![], vec![]);
    for (n, (x, z)) in x.data.iter().zip(&z.data).enumerate() {
        let (mut own, mut old) = (*x, *z);
        for _ in 0..4 {
            if n == 7 {
                edge.push(own);
            }
            let u = own * 0.5 + z;
            let v = u.max(0.1);
            let w = if v > 0.4 { v - old } else { u };
            (own, old) = (w * 0.75 - z / 3.0, own);
        }
        s.push(own);
        a.push(own.max(0.0));
        c.push(own.max(0.0) * (own.max(0.0) - old) + x);
    }
    let wanted = [("s", s), ("a", a), ("c", c), ("edge", edge)];
    let saved: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    on_sites_and_ranks(&source, &arguments, &saved, |output, how| {
        for (name, want) in &wanted {
            let got = output(name);
            assert_eq!(got.data.len(), want.len(), "{name}, {how}");
            for (at, (got, want)) in got.data.iter().zip(want).enumerate() {
                let close = (got - want).abs() <= 1e-13 * (1.0 + want.abs());
                assert!(close, "{name}[{at}] is {got}, not {want}, {how}");
            }
        }
    });
}
