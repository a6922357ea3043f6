//! Library operations by textbook methods in `f64`: the oracle's side of them, independent of the run time's.
//!
//! Gaussian elimination with partial pivoting, Cholesky's recurrence, Gram-Schmidt twice over, Jacobi rotations: slow and
//! plain. What is left open by mathematics is fixed as in the language: R's diagonal is not negative, and the first
//! component of a vector of `eigh` or `svd` that is not small is positive. Must not know programs.
//!
//! ```text
//! solve [[2 1][1 3]] [3 5]   =>   [0.8 1.4]
//! ```

mod eigen;
mod listed;
mod order;

use super::scalar::stored;
use super::values::{FaultKind, Values};
use ein_plan::{Function, Kernel, Library, Scalar};

/// A matrix; a vector has one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Elements in row-major order.
    pub data: Vec<f64>,
}

/// The values of a statement that is a call, or the lowest point that has none.
pub(super) fn statement(
    kernel: &Kernel,
    call: &Library,
    operands: &[&Values],
) -> Result<Values, (FaultKind, Vec<u64>)> {
    let shape: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
    let ranges: Vec<(u64, u64)> = shape.iter().map(|extent| (0, *extent)).collect();
    let read = |operand: u32, at: &[u64]| {
        let Values { shape, data } = operands[operand as usize];
        let number = shape
            .iter()
            .zip(at)
            .fold(0, |n, (extent, at)| n * extent + at);
        data[number as usize]
    };
    let data = evaluate(kernel, call, &ranges, &read)
        .map_err(|point| (FaultKind::Library(call.operation), point))?;
    Ok(Values { shape, data })
}

/// The values of a library kernel on ranges (start and length) of its indices, in row-major order of the output's.
/// `read` gives an element of an operand at global positions.
///
/// # Errors
/// The first point at which there is no result; its own indices stand where their ranges begin.
pub fn evaluate(
    kernel: &Kernel,
    library: &Library,
    ranges: &[(u64, u64)],
    read: &dyn Fn(u32, &[u64]) -> Scalar,
) -> Result<Vec<Scalar>, Vec<u64>> {
    let rank = kernel.output_rank as usize;
    let lengths: Vec<u64> = ranges[..rank].iter().map(|(_, n)| *n).collect();
    let total: u64 = lengths.iter().product();
    let mut results: Vec<(Vec<u64>, Vec<Scalar>)> = vec![];
    let mut values = vec![];
    for number in 0..total {
        let (mut point, mut rest) = (vec![0; rank], number);
        for (slot, (start, length)) in point.iter_mut().zip(ranges).rev() {
            *slot = start + rest % length;
            rest /= length;
        }
        let batch = library.batch.iter();
        let batch: Vec<u64> = batch.map(|index| point[index.0 as usize]).collect();
        let known = results.iter().position(|(at, _)| *at == batch);
        let at = match known {
            Some(at) => at,
            None => {
                let mut first = point.clone();
                for index in &library.own {
                    first[index.0 as usize] = ranges[index.0 as usize].0;
                }
                let result = one(kernel, library, &point, read).ok_or(first)?;
                results.push((batch, result));
                results.len() - 1
            }
        };
        let place = library.own.iter().fold(0, |place, index| {
            let extent = kernel.indices[index.0 as usize].extent;
            place * extent + point[index.0 as usize]
        });
        values.push(stored(results[at].1[place as usize], kernel.output[0]));
    }
    Ok(values)
}

/// The result of the call at one point.
fn one(
    kernel: &Kernel,
    library: &Library,
    point: &[u64],
    read: &dyn Fn(u32, &[u64]) -> Scalar,
) -> Option<Vec<Scalar>> {
    let mut arguments = vec![];
    for (number, argument) in library.arguments.iter().enumerate() {
        let (rows, columns) = library.matrix(kernel, number);
        let mut elements = vec![];
        for row in 0..rows {
            for column in 0..columns {
                let at = argument
                    .at
                    .iter()
                    .enumerate()
                    .map(|(dim, index)| match index {
                        Some(index) => point[index.0 as usize],
                        None if argument.whole[0] == dim => row,
                        None => column,
                    });
                elements.push(read(argument.operand, &at.collect::<Vec<u64>>()));
            }
        }
        arguments.push((rows as usize, columns as usize, elements));
    }
    if matches!(
        library.operation,
        Function::Argsort | Function::Sort | Function::Topk
    ) {
        let stored = kernel.operands[library.arguments[0].operand as usize].columns[0];
        let descends = library.operation == Function::Topk;
        let values = &arguments[0].2;
        let order = order::order(values, stored, descends).into_iter();
        return Some(match library.operation {
            Function::Sort => order.map(|at| values[at]).collect(),
            _ => order.map(|at| Scalar::Int(at as i64)).collect(),
        });
    }
    if listed::is_of_lists(library.operation) {
        let columns = arguments.into_iter().map(|(_, _, elements)| elements);
        let columns: Vec<Vec<Scalar>> = columns.collect();
        return listed::call((kernel, library), point, &columns);
    }
    let matrices: Vec<Matrix> = arguments
        .into_iter()
        .map(|(rows, columns, elements)| Matrix {
            rows,
            columns,
            data: elements.iter().map(|x| x.as_f64()).collect(),
        })
        .collect();
    let result = call(library.operation, &matrices)?;
    Some(result.into_iter().map(Scalar::Float).collect())
}

/// Computes an operation on matrices, several results one behind the other; nothing where it stops a run.
pub fn call(operation: Function, arguments: &[Matrix]) -> Option<Vec<f64>> {
    if arguments
        .iter()
        .any(|a| a.data.iter().any(|x| !x.is_finite()))
    {
        return None;
    }
    let a = &arguments[0];
    Some(match operation {
        Function::Solve => eliminate(a, &arguments[1])?.0.data,
        Function::Inv => eliminate(a, &identity(a.rows))?.0.data,
        Function::Logdet => {
            let determinant = eliminate(a, &identity(0).tall(a.rows))?;
            (!determinant.1).then_some(vec![determinant.2])?
        }
        Function::Cholesky => cholesky(a)?.data,
        Function::Lu => pivoted(a)?,
        Function::Fft => transformed(&a.data, &arguments[1].data),
        Function::Qr => {
            let k = a.rows.min(a.columns);
            let q = orthonormal(a, k);
            let mut r = q.transposed().times(a);
            for i in 0..k {
                (0..i.min(r.columns)).for_each(|j| r.set(i, j, 0.0));
            }
            [q.data, r.data].concat()
        }
        Function::Eigh => {
            let (values, vectors) = symmetric(a);
            [values, vectors.data].concat()
        }
        Function::Eig => eigen::eigen(a)?,
        Function::Svd => {
            let (u, s, v) = singular(a);
            [u.data, s, v.transposed().data].concat()
        }
        _ => return None,
    })
}

/// The discrete Fourier transform by its definition: Σ_j x_j e^(-2πi jk/n). The angle is taken of jk mod n.
fn transformed(re: &[f64], im: &[f64]) -> Vec<f64> {
    let n = re.len();
    let turned = |k: usize, turn: fn(f64, f64, f64, f64) -> f64| {
        let part = |j: usize| {
            let angle = std::f64::consts::TAU * (j * k % n) as f64 / n as f64;
            turn(re[j], im[j], angle.cos(), angle.sin())
        };
        (0..n).map(part).sum::<f64>()
    };
    let real = (0..n).map(|k| turned(k, |a, b, cos, sin| a * cos + b * sin));
    let imaginary = (0..n).map(|k| turned(k, |a, b, cos, sin| b * cos - a * sin));
    real.chain(imaginary).collect()
}

fn identity(n: usize) -> Matrix {
    let mut identity = Matrix::zeros(n, n);
    (0..n).for_each(|i| identity.set(i, i, 1.0));
    identity
}

impl Matrix {
    fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix {
            rows,
            columns,
            data: vec![0.0; rows * columns],
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i * self.columns + j]
    }

    fn set(&mut self, i: usize, j: usize, x: f64) {
        self.data[i * self.columns + j] = x;
    }

    fn transposed(&self) -> Matrix {
        let mut other = Matrix::zeros(self.columns, self.rows);
        for i in 0..self.rows {
            (0..self.columns).for_each(|j| other.set(j, i, self.at(i, j)));
        }
        other
    }

    fn times(&self, other: &Matrix) -> Matrix {
        let mut product = Matrix::zeros(self.rows, other.columns);
        for i in 0..self.rows {
            for j in 0..other.columns {
                let terms = (0..self.columns).map(|k| self.at(i, k) * other.at(k, j));
                product.set(i, j, terms.sum());
            }
        }
        product
    }

    /// No columns, that many rows.
    fn tall(self, rows: usize) -> Matrix {
        Matrix { rows, ..self }
    }

    fn column(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self.at(i, j)).collect()
    }

    fn set_column(&mut self, j: usize, x: &[f64]) {
        (0..self.rows).for_each(|i| self.set(i, j, x[i]));
    }
}

/// X with A X = B, whether the determinant is negative, and the logarithm of its size; nothing without a pivot.
fn eliminate(a: &Matrix, b: &Matrix) -> Option<(Matrix, bool, f64)> {
    let n = a.rows;
    let (mut a, mut b) = (a.clone(), b.clone());
    let (mut negative, mut size) = (false, 0.0);
    for k in 0..n {
        let pivot = (k..n).max_by(|i, j| a.at(*i, k).abs().total_cmp(&a.at(*j, k).abs()))?;
        if a.at(pivot, k) == 0.0 {
            return None;
        }
        if pivot != k {
            negative = !negative;
            for m in [&mut a, &mut b] {
                for j in 0..m.columns {
                    let (x, y) = (m.at(k, j), m.at(pivot, j));
                    m.set(k, j, y);
                    m.set(pivot, j, x);
                }
            }
        }
        negative ^= a.at(k, k) < 0.0;
        size += a.at(k, k).abs().ln();
        for i in (0..n).filter(|i| *i != k) {
            let factor = a.at(i, k) / a.at(k, k);
            (k..n).for_each(|j| a.set(i, j, a.at(i, j) - factor * a.at(k, j)));
            (0..b.columns).for_each(|j| b.set(i, j, b.at(i, j) - factor * b.at(k, j)));
        }
    }
    for i in 0..n {
        (0..b.columns).for_each(|j| b.set(i, j, b.at(i, j) / a.at(i, i)));
    }
    Some((b, negative, size))
}

/// The order of the rows, and L and U in one; nothing without a pivot.
fn pivoted(a: &Matrix) -> Option<Vec<f64>> {
    let mut a = a.clone();
    let mut order: Vec<f64> = (0..a.rows).map(|row| row as f64).collect();
    for k in 0..a.columns {
        let pivot = (k..a.rows).max_by(|i, j| {
            let (one, other) = (a.at(*i, k).abs(), a.at(*j, k).abs());
            one.total_cmp(&other).then(j.cmp(i))
        })?;
        if a.at(pivot, k) == 0.0 {
            return None;
        }
        order.swap(k, pivot);
        for j in 0..a.columns {
            let (x, y) = (a.at(k, j), a.at(pivot, j));
            a.set(k, j, y);
            a.set(pivot, j, x);
        }
        for i in k + 1..a.rows {
            let factor = a.at(i, k) / a.at(k, k);
            a.set(i, k, factor);
            (k + 1..a.columns).for_each(|j| a.set(i, j, a.at(i, j) - factor * a.at(k, j)));
        }
    }
    Some([order, a.data].concat())
}

fn cholesky(a: &Matrix) -> Option<Matrix> {
    let mut l = Matrix::zeros(a.rows, a.rows);
    for j in 0..a.rows {
        for i in j..a.rows {
            let inner: f64 = (0..j).map(|k| l.at(i, k) * l.at(j, k)).sum();
            let rest = a.at(i, j) - inner;
            if i == j && rest <= 0.0 {
                return None;
            }
            l.set(
                i,
                j,
                if i == j {
                    rest.sqrt()
                } else {
                    rest / l.at(j, j)
                },
            );
        }
    }
    Some(l)
}

/// An orthonormal basis of the first `k` columns in their order; where they do not suffice, of unit vectors.
fn orthonormal(a: &Matrix, k: usize) -> Matrix {
    let mut q = Matrix::zeros(a.rows, k);
    for j in 0..k {
        let own = a.column(j);
        let unit = |at: usize| (0..a.rows).map(|i| f64::from(u8::from(i == at))).collect();
        let others = (0..a.rows).map(unit);
        for candidate in std::iter::once(own).chain(others) {
            let mut x: Vec<f64> = candidate;
            let before = norm(&x);
            for _ in 0..2 {
                for other in 0..j {
                    let inner: f64 = (0..a.rows).map(|i| q.at(i, other) * x[i]).sum();
                    (0..a.rows).for_each(|i| x[i] -= inner * q.at(i, other));
                }
            }
            let after = norm(&x);
            if after > 1e-10 * before {
                x.iter_mut().for_each(|x| *x /= after);
                q.set_column(j, &x);
                break;
            }
        }
    }
    q
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Eigenvalues of the lower triangle, ascending, and vectors: rotations until nothing is left beside the diagonal.
fn symmetric(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let mut a = a.clone();
    for i in 0..n {
        (0..i).for_each(|j| a.set(j, i, a.at(i, j)));
    }
    let mut vectors = identity(n);
    for _ in 0..100 {
        for p in 0..n {
            for q in p + 1..n {
                if a.at(p, q) == 0.0 {
                    continue;
                }
                let angle = (2.0 * a.at(p, q)).atan2(a.at(q, q) - a.at(p, p)) / 2.0;
                let (s, c) = angle.sin_cos();
                let turn = |m: &mut Matrix| {
                    for i in 0..n {
                        let (x, y) = (m.at(i, p), m.at(i, q));
                        m.set(i, p, c * x - s * y);
                        m.set(i, q, s * x + c * y);
                    }
                };
                turn(&mut a);
                a = a.transposed();
                turn(&mut a);
                turn(&mut vectors);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a.at(*i, *i).total_cmp(&a.at(*j, *j)));
    let mut sorted = Matrix::zeros(n, n);
    for (to, from) in order.iter().enumerate() {
        let column = vectors.column(*from);
        let sign = sign(&column);
        let column: Vec<f64> = column.iter().map(|x| sign * x).collect();
        sorted.set_column(to, &column);
    }
    (order.iter().map(|i| a.at(*i, *i)).collect(), sorted)
}

/// U, singular values, descending, and V, by rotations of columns until all are orthogonal.
fn singular(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.columns {
        let (v, s, mut u) = singular(&a.transposed());
        let mut v = v;
        for k in 0..s.len() {
            let sign = sign(&u.column(k));
            for m in [&mut u, &mut v] {
                let column: Vec<f64> = m.column(k).iter().map(|x| sign * x).collect();
                m.set_column(k, &column);
            }
        }
        return (u, s, v);
    }
    let n = a.columns;
    let (mut a, mut v) = (a.clone(), identity(n));
    for _ in 0..100 {
        for p in 0..n {
            for q in p + 1..n {
                let (x, y) = (a.column(p), a.column(q));
                let inner: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
                if inner == 0.0 {
                    continue;
                }
                let gap = norm(&y).powi(2) - norm(&x).powi(2);
                let (s, c) = ((2.0 * inner).atan2(gap) / 2.0).sin_cos();
                for m in [&mut a, &mut v] {
                    let (x, y) = (m.column(p), m.column(q));
                    let pairs = || x.iter().zip(&y);
                    let first: Vec<f64> = pairs().map(|(x, y)| c * x - s * y).collect();
                    let second: Vec<f64> = pairs().map(|(x, y)| s * x + c * y).collect();
                    m.set_column(p, &first);
                    m.set_column(q, &second);
                }
            }
        }
    }
    let sizes: Vec<f64> = (0..n).map(|j| norm(&a.column(j))).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| sizes[*j].total_cmp(&sizes[*i]));
    let mut sorted = [Matrix::zeros(a.rows, n), Matrix::zeros(n, n)];
    for (to, from) in order.iter().enumerate() {
        sorted[0].set_column(to, &a.column(*from));
        sorted[1].set_column(to, &v.column(*from));
    }
    let [scaled, mut v] = sorted;
    let mut u = orthonormal(&scaled, n);
    for k in 0..n {
        let sign = sign(&u.column(k));
        for m in [&mut u, &mut v] {
            let column: Vec<f64> = m.column(k).iter().map(|x| sign * x).collect();
            m.set_column(k, &column);
        }
    }
    (u, order.iter().map(|j| sizes[*j]).collect(), v)
}

/// -1 where the first component that is not small is negative.
fn sign(x: &[f64]) -> f64 {
    let largest = x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let first = x.iter().find(|x| x.abs() > 0.43 * largest);
    if first.is_some_and(|x| *x < 0.0) {
        -1.0
    } else {
        1.0
    }
}
