//! Sparse files that rounds go through column by column, and reductions of their rows and columns that carry more than one number.

use crate::sparse_products::lists_of_so_many;

const ROUNDS: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
repeat t < 40 {
  state v[i<N] = d[i]
  state w[i<N] = d[i]
  y[j] = sum[i] A[i,j] * (v[i] / (abs(d[i]) + 1))
  m[j] = max[i] where(B[i,j] != 0, v[i] * B[i,j], -9)
  next v[j] = tanh(y[j]) + 0.01 * m[j]
  next w[i] = tanh(sum[j] B[i,j] * w[j]) + 0.1 * y[i]
}
some[j] = f64(any[i] (A[i,j] != 0 and d[i] > 1.5))
every[i] = f64(all[j] (A[i,j] == 0 or d[j] < 1.5))
size[j] = norm[i] A[i,j] * d[i]
soft[i] = logsumexp[j] where(A[i,j] != 0, A[i,j] * d[j], -inf)
output v
output w
output some
output every
output size
output soft
"#;

#[test]
fn columns_in_rounds_are_those_of_dense_inputs() {
    let names = ["v", "w", "some", "every", "size", "soft"];
    let dense = lists_of_so_many([1500, 1600], ROUNDS, &names);
    for (name, values) in names.iter().zip(&dense) {
        assert!(values.iter().any(|x| *x != values[0]), "{name}");
    }
}
