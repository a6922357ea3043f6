//! One matrix: solved, factored, decomposed.
//!
//! The factorisations are faer's, blocked. Those whose bits are the same on any number of threads (Cholesky, LU, triangular
//! systems: tests hold it) work on all threads of the pool; `qr`, `eigh`, `eig` and `svd` add up by thread and stay on one. What faer leaves open is
//! fixed here: the diagonal of R is not negative, and of a vector of `eigh` or `svd` the first component that is not small
//! (more than 0.43 of its largest) is positive. Must not know arrays or
//! chunks.
//!
//! ```text
//! cholesky of [[4 2][2 5]]   ->   [[2 0][1 2]]
//! ```

mod eigen;

use ein_plan::Function;
pub use ein_plan::Problem;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{
    LltError, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::linalg::lu::partial_pivoting::{factor, inverse, solve};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::perm::PermRef;
use faer::prelude::{ReborrowMut, default};
use faer::traits::RealField;
use faer::{Mat, MatMut, MatRef, Par, Side};
use rayon::prelude::*;
use std::sync::Once;

/// A component of a vector that has at most this part of the largest does not decide its sign.
const SMALL: f64 = 0.43;

/// A matrix or vector of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns; 1 for a vector.
    pub columns: usize,
    /// Elements in row-major order.
    pub data: Vec<T>,
}

/// A type in which matrices are computed: `f32` and `f64`.
pub trait Real: Copy + PartialOrd + Send + Sync + Sized {
    /// Computes an operation with one matrix, several results one behind the other: `cholesky`, `inv`, `qr`, `eigh`, `eig`,
    /// `svd`, `logdet`, and the LU that these and `solve` share. Other functions give nothing.
    ///
    /// # Errors
    ///
    /// What the operation finds of the matrix that leaves it without a result.
    fn factor(operation: Function, a: Matrix<Self>) -> Result<Vec<Self>, Problem>;
    /// The `x` with `a x = side` for each of the sides.
    ///
    /// # Errors
    ///
    /// [`Problem::Singular`].
    fn solve(a: &Matrix<Self>, sides: &[Vec<Self>]) -> Result<Vec<Vec<Self>>, Problem>;
}

/// What the algorithms here need of a number. Only the methods of [`Real`] are generic outside, so that all of faer is compiled here.
trait Number: RealField + Copy + PartialOrd + Send + Sync {
    /// As `f64`.
    fn wide(self) -> f64;
    /// From `f64`.
    fn from_wide(x: f64) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Number for $t {
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn from_wide(x: f64) -> $t {
                x as $t
            }
        }
        impl Real for $t {
            fn factor(operation: Function, a: Matrix<$t>) -> Result<Vec<$t>, Problem> {
                factor(operation, a)
            }
            fn solve(a: &Matrix<$t>, sides: &[Vec<$t>]) -> Result<Vec<Vec<$t>>, Problem> {
                solve(a, sides)
            }
        }
    };
}

real!(f32);
real!(f64);

fn mat<T: Number>(matrix: &Matrix<T>) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(&matrix.data, matrix.rows, matrix.columns)
}

/// Whether all above the diagonal is 0.
fn is_lower<T: Number>(a: MatRef<'_, T>) -> bool {
    (0..a.nrows()).all(|i| (i + 1..a.ncols()).all(|j| a[(i, j)].wide() == 0.0))
}

/// The elements in row-major order, appended.
fn append<T: Number>(to: &mut Vec<T>, from: MatRef<'_, T>, sign: impl Fn(usize, usize) -> T) {
    for i in 0..from.nrows() {
        to.extend((0..from.ncols()).map(|j| from[(i, j)] * sign(i, j)));
    }
}

fn plain<T: Number>(_: usize, _: usize) -> T {
    T::from_wide(1.0)
}

/// Sides from which on the threads of the pool share the work on a matrix.
const SHARED: usize = 256;

/// What works on a matrix of this size.
fn workers(size: usize) -> Par {
    match size < SHARED {
        true => Par::Seq,
        false => Par::rayon(0),
    }
}

/// Keeps what has no parameter for its threads on one.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| faer::set_global_parallelism(Par::Seq));
}

/// How many lines are turned at once, and how many elements of each.
const TILE: usize = 32;

/// The elements column by column, of so many lines one behind the other; `keep` says which: others are 0.
fn turned<T: Number>(
    from: &[T],
    lines: usize,
    mut to: Vec<T>,
    keep: impl Fn(usize, usize) -> bool + Sync,
) -> Vec<T> {
    let length = from.len() / lines.max(1);
    let zero = T::from_wide(0.0);
    to.resize(from.len(), zero);
    let turn = |(number, part): (usize, &mut [T])| {
        let first = number * TILE;
        for start in (0..lines).step_by(TILE) {
            for (column, line) in part.chunks_mut(lines).enumerate() {
                let column = first + column;
                for at in start..lines.min(start + TILE) {
                    line[at] = match keep(at, column) {
                        true => from[at * length + column],
                        false => zero,
                    };
                }
            }
        }
    };
    if lines > 0 {
        let parts = to.par_chunks_mut(lines * TILE).enumerate();
        parts.for_each(turn);
    }
    to
}

/// P A = L U of a matrix with a pivot in every column, and no fewer rows than columns.
struct Lu<T> {
    rows: usize,
    columns: usize,
    /// L below the diagonal and U, column by column.
    both: Vec<T>,
    /// Row `i` of P A is row `order[i]` of A.
    order: Vec<usize>,
    back: Vec<usize>,
}

impl<T: Number> Lu<T> {
    fn new(a: &Matrix<T>) -> Result<Lu<T>, Problem> {
        let (rows, columns) = (a.rows, a.columns);
        let par = workers(columns);
        let mut lu = Lu {
            rows,
            columns,
            both: turned(&a.data, rows, vec![], |_, _| true),
            order: vec![0; rows],
            back: vec![0; rows],
        };
        let needed = factor::lu_in_place_scratch::<usize, T>(rows, columns, par, default());
        factor::lu_in_place(
            MatMut::from_column_major_slice_mut(&mut lu.both, rows, columns),
            &mut lu.order,
            &mut lu.back,
            par,
            MemStack::new(&mut MemBuffer::new(needed)),
            default(),
        );
        let zero = |i: &usize| {
            let pivot = lu.both[i * rows + i];
            pivot.wide() == 0.0 || !pivot.wide().is_finite()
        };
        match (0..columns).find(zero) {
            Some(pivot) => Err(Problem::Singular {
                pivot: pivot as u64,
            }),
            None => Ok(lu),
        }
    }

    fn both(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.both, self.rows, self.columns)
    }

    fn permutation(&self) -> PermRef<'_, usize> {
        PermRef::new_checked(&self.order, &self.back, self.rows)
    }

    /// X with A X = `x`, in its place.
    fn solve(&self, x: MatMut<'_, T>) {
        let par = workers(self.rows);
        let needed = solve::solve_in_place_scratch::<usize, T>(self.rows, x.ncols(), par);
        let mut memory = MemBuffer::new(needed);
        let (both, stack) = (self.both(), MemStack::new(&mut memory));
        solve::solve_in_place(both, both, self.permutation(), x, par, stack);
    }

    fn inverse(&self) -> Mat<T> {
        let par = workers(self.rows);
        let mut result = Mat::zeros(self.rows, self.rows);
        let needed = inverse::inverse_scratch::<usize, T>(self.rows, par);
        let mut memory = MemBuffer::new(needed);
        let (both, stack) = (self.both(), MemStack::new(&mut memory));
        let to = result.as_mut();
        inverse::inverse(to, both, both, self.permutation(), par, stack);
        result
    }
}

/// L with A = L Lᵀ, of the lower triangle.
fn cholesky<T: Number>(a: Matrix<T>) -> Result<Vec<T>, Problem> {
    let n = a.rows;
    let mut factor = turned(&a.data, n, vec![], |_, _| true);
    let par = workers(n);
    let needed = cholesky_in_place_scratch::<T>(n, par, default());
    let done = cholesky_in_place(
        MatMut::from_column_major_slice_mut(&mut factor, n, n),
        LltRegularization::default(),
        par,
        MemStack::new(&mut MemBuffer::new(needed)),
        default(),
    );
    match done {
        Ok(_) => Ok(turned(&factor, n, a.data, |column, row| column <= row)),
        Err(LltError::NonPositivePivot { index }) => Err(Problem::NotPositive {
            pivot: index as u64,
        }),
    }
}

/// For each right side b, x with A x = b.
///
/// A triangular matrix is solved as it is, in n² operations a side.
fn solve<T: Number>(a: &Matrix<T>, sides: &[Vec<T>]) -> Result<Vec<Vec<T>>, Problem> {
    let whole = mat(a);
    let (lower, upper) = (is_lower(whole), is_lower(whole.transpose()));
    let mut x = Mat::from_fn(a.rows, sides.len(), |i, j| sides[j][i]);
    if lower || upper {
        if let Some(pivot) = (0..a.rows).find(|i| whole[(*i, *i)].wide() == 0.0) {
            let pivot = pivot as u64;
            return Err(Problem::Singular { pivot });
        }
        match lower {
            true => solve_lower_triangular_in_place(whole, x.rb_mut(), workers(a.rows)),
            false => solve_upper_triangular_in_place(whole, x.rb_mut(), workers(a.rows)),
        }
    } else {
        Lu::new(a)?.solve(x.rb_mut());
    }
    let column = |j: usize| (0..a.rows).map(|i| x[(i, j)]).collect();
    Ok((0..sides.len()).map(column).collect())
}

/// Computes an operation with one matrix, several results one behind the other.
fn factor<T: Number>(operation: Function, a: Matrix<T>) -> Result<Vec<T>, Problem> {
    begin();
    let mut values = vec![];
    match operation {
        Function::Cholesky => values = cholesky(a)?,
        Function::Inv => append(&mut values, Lu::new(&a)?.inverse().as_ref(), plain),
        Function::Qr => {
            let qr = mat(&a).qr();
            let (q, r) = (qr.compute_thin_Q(), qr.thin_R());
            let sign = |k: usize| match r[(k, k)].wide() < 0.0 {
                true => T::from_wide(-1.0),
                false => T::from_wide(1.0),
            };
            append(&mut values, q.as_ref(), |_, k| sign(k));
            append(&mut values, r, |k, j| match j < k {
                true => T::from_wide(0.0),
                false => sign(k),
            });
        }
        Function::Eigh => {
            let found = mat(&a).self_adjoint_eigen(Side::Lower);
            let found = found.map_err(|_| Problem::NoConvergence)?;
            let vectors = found.U();
            values.extend(found.S().column_vector().iter().copied());
            let signs = signs(vectors);
            append(&mut values, vectors, |_, k| signs[k]);
        }
        Function::Eig => values = eigen::eigen(&a)?,
        Function::Svd => {
            let found = mat(&a).thin_svd().map_err(|_| Problem::NoConvergence)?;
            let (u, v) = (found.U(), found.V());
            let signs = signs(u);
            append(&mut values, u, |_, k| signs[k]);
            values.extend(found.S().column_vector().iter().copied());
            append(&mut values, v.transpose(), |k, _| signs[k]);
        }
        Function::Lu => {
            let lu = Lu::new(&a)?;
            let order = lu.order.iter().map(|row| T::from_wide(*row as f64));
            values.extend(order);
            values.extend(turned(&lu.both, lu.columns, a.data, |_, _| true));
        }
        Function::Logdet => values.push(T::from_wide(logdet(&a)?)),
        _ => {}
    }
    Ok(values)
}

/// By column: 1, or -1 where the first component that is not small is negative.
fn signs<T: Number>(vectors: MatRef<'_, T>) -> Vec<T> {
    let sign = |k: usize| {
        let column = || (0..vectors.nrows()).map(move |i| vectors[(i, k)].wide());
        let largest = column().fold(0.0, |most: f64, x| most.max(x.abs()));
        let first = column().find(|x| x.abs() > SMALL * largest);
        T::from_wide(if first.is_some_and(|x| x < 0.0) {
            -1.0
        } else {
            1.0
        })
    };
    (0..vectors.ncols()).map(sign).collect()
}

fn logdet<T: Number>(a: &Matrix<T>) -> Result<f64, Problem> {
    let lu = Lu::new(a)?;
    let mut negative = is_odd(&lu.order);
    let mut sum = 0.0;
    for i in 0..a.rows {
        let pivot = lu.both[i * a.rows + i].wide();
        negative ^= pivot < 0.0;
        sum += pivot.abs().ln();
    }
    match negative {
        true => Err(Problem::NegativeDeterminant),
        false => Ok(sum),
    }
}

/// Whether a permutation is a product of an odd number of exchanges.
fn is_odd(order: &[usize]) -> bool {
    let mut seen = vec![false; order.len()];
    let mut odd = false;
    for start in 0..order.len() {
        let mut at = start;
        let mut length = 0;
        while !std::mem::replace(&mut seen[at], true) {
            at = order[at];
            length += 1;
        }
        odd ^= length > 0 && length % 2 == 0;
    }
    odd
}
