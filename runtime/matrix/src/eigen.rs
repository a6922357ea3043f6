//! Eigenvalues and eigenvectors of a matrix that need not be symmetric.
//!
//! Both element types are computed in f64. The values stand in the order of their real and then their imaginary parts. A vector has the
//! length 1, and its first component that is not small is positive without an imaginary part. Must not know arrays or chunks.
//!
//! ```text
//! eigen of [[0 -1][1 0]]   ->   values 0 - 1i, 0 + 1i; vectors (0.71, 0.71i), (0.71, -0.71i)
//! ```

use super::{Matrix, Number, SMALL, begin};
use ein_plan::Problem;
use faer::linalg::solvers::Eigen;
use faer::{Mat, MatRef, c64};

/// The real parts of the values, their imaginary parts, and so of the vectors, one behind the other.
pub(super) fn eigen<T: Number>(a: &Matrix<T>) -> Result<Vec<T>, Problem> {
    begin();
    let n = a.rows;
    if n == 0 {
        return Ok(vec![]);
    }
    let wide = Mat::from_fn(n, n, |i, j| a.data[i * n + j].wide());
    let found = Eigen::<f64>::new_from_real(wide.as_ref()).map_err(|_| Problem::NoConvergence)?;
    let (values, vectors) = (found.S().column_vector(), found.U());
    let mut order: Vec<usize> = (0..n).collect();
    // -0 stands before 0 in the total order, and is the same value.
    let key = |k: usize| (values[k].re + 0.0, values[k].im + 0.0);
    order.sort_by(|a, b| {
        let (a, b) = (key(*a), key(*b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let factors: Vec<c64> = order.iter().map(|k| factor(vectors, *k)).collect();
    let vector = |i: usize, at: usize| vectors[(i, order[at])] * factors[at];
    let rows = || (0..n).flat_map(|i| (0..n).map(move |at| (i, at)));
    let all = (order.iter().map(|k| values[*k].re))
        .chain(order.iter().map(|k| values[*k].im))
        .chain(rows().map(|(i, at)| vector(i, at).re))
        .chain(rows().map(|(i, at)| vector(i, at).im));
    Ok(all.map(T::from_wide).collect())
}

/// The factor that gives a column its length and its direction.
fn factor(vectors: MatRef<'_, c64>, k: usize) -> c64 {
    let column = || (0..vectors.nrows()).map(move |i| vectors[(i, k)]);
    let largest = column().fold(0.0, |most: f64, x| most.max(x.norm()));
    let length = column().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
    let first = column().find(|x| x.norm() > SMALL * largest);
    first.map_or(c64::new(1.0, 0.0), |x| x.conj() / (x.norm() * length))
}
