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
