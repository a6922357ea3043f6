//! One matrix: solved, factored, decomposed.
//!
//! The factorisations are faer's (blocked, on one thread: the same bits on any number of them). What faer leaves open is
//! fixed here: the diagonal of R is not negative, and of a vector of `eigh` or `svd` the first component that is not small
//! (more than [`SMALL`] of its largest) is positive. Must not know chunks.
//!
//! ```text
//! cholesky of [[4 2][2 5]]   ->   [[2 0][1 2]]
//! ```

use crate::library::{Matrix, Problem};
use ein_array::Data;
use ein_plan::Function;
use faer::linalg::solvers::{DenseSolveCore, PartialPivLu, Solve};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::prelude::ReborrowMut;
use faer::traits::RealField;
use faer::{Mat, MatRef, Par, Side};

/// A component of a vector that has at most this part of the largest does not decide its sign.
const SMALL: f64 = 0.43;

/// A type in which matrices are computed.
pub(crate) trait Real: RealField + Copy + PartialOrd + Send + Sync {
    /// The elements, where they are of this type.
    fn all(data: &Data) -> Option<&[Self]>;
    /// The element at a place.
    fn of(data: &Data, at: usize) -> Self;
    /// Stores it at a place among elements of its own type.
    fn put(self, data: &mut Data, at: usize);
    /// Whether it is a number.
    fn finite(self) -> bool;
    /// As `f64`.
    fn wide(self) -> f64;
    /// From `f64`.
    fn from_wide(x: f64) -> Self;
}

macro_rules! real {
    ($t:ty, $variant:ident) => {
        impl Real for $t {
            fn all(data: &Data) -> Option<&[$t]> {
                match data {
                    Data::$variant(values) => Some(values),
                    _ => None,
                }
            }
            fn of(data: &Data, at: usize) -> $t {
                match data {
                    Data::$variant(values) => values[at],
                    other => other.get(at).as_f64() as $t,
                }
            }
            fn put(self, data: &mut Data, at: usize) {
                if let Data::$variant(values) = data {
                    values[at] = self;
                }
            }
            fn finite(self) -> bool {
                self.is_finite()
            }
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn from_wide(x: f64) -> $t {
                x as $t
            }
        }
    };
}

real!(f32, F32);
real!(f64, F64);

fn mat<T: Real>(matrix: &Matrix<T>) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(&matrix.data, matrix.rows, matrix.columns)
}

/// Whether all above the diagonal is 0.
fn is_lower<T: Real>(a: MatRef<'_, T>) -> bool {
    (0..a.nrows()).all(|i| (i + 1..a.ncols()).all(|j| a[(i, j)].wide() == 0.0))
}

/// The elements in row-major order, appended.
fn append<T: Real>(to: &mut Vec<T>, from: MatRef<'_, T>, sign: impl Fn(usize, usize) -> T) {
    for i in 0..from.nrows() {
        to.extend((0..from.ncols()).map(|j| from[(i, j)] * sign(i, j)));
    }
}

fn plain<T: Real>(_: usize, _: usize) -> T {
    T::from_wide(1.0)
}

/// LU with partial pivoting of a matrix that has a pivot in every column.
fn lu<T: Real>(a: &Matrix<T>) -> Result<PartialPivLu<T>, Problem> {
    let lu = mat(a).partial_piv_lu();
    let zero = |i: &usize| {
        let pivot = lu.U()[(*i, *i)];
        pivot.wide() == 0.0 || !pivot.finite()
    };
    match (0..a.rows).find(zero) {
        Some(pivot) => Err(Problem::Singular {
            pivot: pivot as u64,
        }),
        None => Ok(lu),
    }
}

/// For each right side b, x with A x = b.
///
/// A triangular matrix is solved as it is, in n² operations a side.
pub(crate) fn solve<T: Real>(a: &Matrix<T>, sides: &[Vec<T>]) -> Result<Vec<Vec<T>>, Problem> {
    let whole = mat(a);
    let (lower, upper) = (is_lower(whole), is_lower(whole.transpose()));
    let mut x = Mat::from_fn(a.rows, sides.len(), |i, j| sides[j][i]);
    if lower || upper {
        if let Some(pivot) = (0..a.rows).find(|i| whole[(*i, *i)].wide() == 0.0) {
            let pivot = pivot as u64;
            return Err(Problem::Singular { pivot });
        }
        match lower {
            true => solve_lower_triangular_in_place(whole, x.rb_mut(), Par::Seq),
            false => solve_upper_triangular_in_place(whole, x.rb_mut(), Par::Seq),
        }
    } else {
        lu(a)?.solve_in_place(x.rb_mut());
    }
    let column = |j: usize| (0..a.rows).map(|i| x[(i, j)]).collect();
    Ok((0..sides.len()).map(column).collect())
}

/// What an operation with one matrix gives, several results one behind the other.
pub(crate) fn factor<T: Real>(operation: Function, a: &Matrix<T>) -> Result<Vec<T>, Problem> {
    let mut values = vec![];
    match operation {
        Function::Cholesky => {
            let factor = mat(a).llt(Side::Lower).map_err(|error| {
                let faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index } =
                    error;
                Problem::NotPositive {
                    pivot: index as u64,
                }
            })?;
            append(&mut values, factor.L(), plain);
        }
        Function::Inv => append(&mut values, lu(a)?.inverse().as_ref(), plain),
        Function::Qr => {
            let qr = mat(a).qr();
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
            let found = mat(a).self_adjoint_eigen(Side::Lower);
            let found = found.map_err(|_| Problem::NoConvergence)?;
            let vectors = found.U();
            values.extend(found.S().column_vector().iter().copied());
            let signs = signs(vectors);
            append(&mut values, vectors, |_, k| signs[k]);
        }
        Function::Svd => {
            let found = mat(a).thin_svd().map_err(|_| Problem::NoConvergence)?;
            let (u, v) = (found.U(), found.V());
            let signs = signs(u);
            append(&mut values, u, |_, k| signs[k]);
            values.extend(found.S().column_vector().iter().copied());
            append(&mut values, v.transpose(), |k, _| signs[k]);
        }
        Function::Logdet => values.push(T::from_wide(logdet(a)?)),
        _ => {}
    }
    Ok(values)
}

/// By column: 1, or -1 where the first component that is not small is negative.
fn signs<T: Real>(vectors: MatRef<'_, T>) -> Vec<T> {
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

fn logdet<T: Real>(a: &Matrix<T>) -> Result<f64, Problem> {
    let lu = lu(a)?;
    let (order, _) = lu.P().arrays();
    let mut negative = is_odd(order);
    let mut sum = 0.0;
    for i in 0..a.rows {
        let pivot = lu.U()[(i, i)].wide();
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
