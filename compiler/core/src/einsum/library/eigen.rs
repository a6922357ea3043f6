//! Eigenvalues and eigenvectors of a real matrix that need not be symmetric, by Schur's triangular form in complex numbers.
//!
//! The iteration is the textbook's, of the whole matrix with a shift from its last corner; vectors are substituted back. Must not know
//! programs.
//!
//! ```text
//! eigen [[0 -1][1 0]]   =>   0 - 1i, 0 + 1i
//! ```

use super::Matrix;

/// Parts of a complex number.
type Complex = (f64, f64);

/// A value below this part of the matrix is a rounding error of the iteration.
const ROUNDING: f64 = 1e-10;

fn add(a: Complex, b: Complex) -> Complex {
    (a.0 + b.0, a.1 + b.1)
}

fn sub(a: Complex, b: Complex) -> Complex {
    (a.0 - b.0, a.1 - b.1)
}

fn mul(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn div(a: Complex, b: Complex) -> Complex {
    let size = b.0 * b.0 + b.1 * b.1;
    let (re, im) = mul(a, (b.0, -b.1));
    (re / size, im / size)
}

fn size(a: Complex) -> f64 {
    a.0.hypot(a.1)
}

fn root(a: Complex) -> Complex {
    let re = ((size(a) + a.0) / 2.0).max(0.0).sqrt();
    (re, ((size(a) - a.0) / 2.0).max(0.0).sqrt().copysign(a.1))
}

/// A square matrix, row by row.
type Square = Vec<Vec<Complex>>;

/// Turns two neighbouring rows or columns of a matrix, from the left by (c, s; -s̄, c̄), or from the right by its adjoint.
fn turn(m: &mut Square, at: usize, (c, s): (Complex, Complex), is_left: bool) {
    let conj = |x: Complex| (x.0, -x.1);
    for k in 0..m.len() {
        let (i, j) = if is_left {
            ((at, k), (at + 1, k))
        } else {
            ((k, at), (k, at + 1))
        };
        let (x, y) = (m[i.0][i.1], m[j.0][j.1]);
        let (first, second) = match is_left {
            true => ((c, s), (mul((-1.0, 0.0), conj(s)), conj(c))),
            false => ((conj(c), conj(s)), (mul((-1.0, 0.0), s), c)),
        };
        m[i.0][i.1] = add(mul(first.0, x), mul(first.1, y));
        m[j.0][j.1] = add(mul(second.0, x), mul(second.1, y));
    }
}

/// The rotation that takes (x, y) to (r, 0).
fn rotation(x: Complex, y: Complex) -> (Complex, Complex) {
    let length = size(x).hypot(size(y));
    match length > 0.0 {
        true => ((x.0 / length, -x.1 / length), (y.0 / length, -y.1 / length)),
        false => ((1.0, 0.0), (0.0, 0.0)),
    }
}

/// T and Q with A Q = Q T, T upper triangular and Q unitary.
fn schur(a: &Matrix) -> Option<(Square, Square)> {
    let n = a.rows;
    let square = |value: &dyn Fn(usize, usize) -> f64| -> Square {
        let row = |i| (0..n).map(|j| (value(i, j), 0.0)).collect();
        (0..n).map(row).collect()
    };
    let mut t = square(&|i, j| a.at(i, j));
    let mut q = square(&|i, j| f64::from(u8::from(i == j)));
    // Hessenberg form: nothing is left below the first subdiagonal.
    for k in 0..n.saturating_sub(2) {
        for i in (k + 1..n - 1).rev() {
            let by = rotation(t[i][k], t[i + 1][k]);
            turn(&mut t, i, by, true);
            turn(&mut t, i, by, false);
            turn(&mut q, i, by, false);
        }
    }
    let (mut end, mut rounds) = (n, 0);
    while end > 1 {
        let at = end - 1;
        let beside = size(t[at][at]) + size(t[at - 1][at - 1]);
        if size(t[at][at - 1]) <= f64::EPSILON * beside {
            t[at][at - 1] = (0.0, 0.0);
            (end, rounds) = (at, 0);
            continue;
        }
        rounds += 1;
        if rounds > 1000 {
            return None;
        }
        let shift = match rounds % 10 {
            0 => add(t[at][at], (0.0, size(t[at][at - 1]))),
            _ => corner(&t, at),
        };
        (0..end).for_each(|i| t[i][i] = sub(t[i][i], shift));
        let mut turns = vec![];
        for i in 0..at {
            let by = rotation(t[i][i], t[i + 1][i]);
            turn(&mut t, i, by, true);
            turns.push(by);
        }
        for (i, by) in turns.into_iter().enumerate() {
            turn(&mut t, i, by, false);
            turn(&mut q, i, by, false);
        }
        (0..end).for_each(|i| t[i][i] = add(t[i][i], shift));
    }
    Some((t, q))
}

/// The eigenvalue of the 2 × 2 matrix that ends at a place of the diagonal, the one closer to it.
fn corner(t: &Square, at: usize) -> Complex {
    let (a, b, c, d) = (t[at - 1][at - 1], t[at - 1][at], t[at][at - 1], t[at][at]);
    let half = mul((0.5, 0.0), sub(a, d));
    let gap = root(add(mul(half, half), mul(b, c)));
    let middle = mul((0.5, 0.0), add(a, d));
    let (one, other) = (add(middle, gap), sub(middle, gap));
    if size(sub(one, d)) < size(sub(other, d)) {
        one
    } else {
        other
    }
}

/// The real parts of the values, their imaginary parts, and so of the vectors (columns), one behind the other.
pub(super) fn eigen(a: &Matrix) -> Option<Vec<f64>> {
    let n = a.rows;
    let (t, q) = schur(a)?;
    let scale = a.data.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let mut found: Vec<(Complex, Vec<Complex>)> = vec![];
    for k in 0..n {
        let mut x = vec![(0.0, 0.0); n];
        x[k] = (1.0, 0.0);
        for i in (0..k).rev() {
            let rest = (i + 1..=k).fold((0.0, 0.0), |sum, j| add(sum, mul(t[i][j], x[j])));
            let gap = sub(t[k][k], t[i][i]);
            let least = f64::EPSILON * scale.max(1e-100);
            let gap = if size(gap) < least { (least, 0.0) } else { gap };
            x[i] = div(rest, gap);
        }
        let row = |i: usize| (0..=k).fold((0.0, 0.0), |sum, j| add(sum, mul(q[i][j], x[j])));
        let vector = directed((0..n).map(row).collect());
        let (re, im) = t[k][k];
        // A real matrix has real values and pairs.
        let im = if im.abs() <= ROUNDING * scale {
            0.0
        } else {
            im
        };
        found.push(((re, im), vector));
    }
    // The values of a pair have one real part, up to rounding.
    let place = |re: f64| (re / (ROUNDING * scale.max(f64::MIN_POSITIVE))).round() + 0.0;
    found.sort_by(|((a, b), _), ((c, d), _)| {
        let real = place(*a).total_cmp(&place(*c));
        real.then(b.total_cmp(d))
    });
    let values = || found.iter().map(|(value, _)| value);
    let vectors = || (0..n).flat_map(|i| found.iter().map(move |(_, vector)| vector[i]));
    let all = (values().map(|value| value.0)).chain(values().map(|value| value.1));
    let all = all.chain(vectors().map(|x| x.0));
    Some(all.chain(vectors().map(|x| x.1)).collect())
}

/// A vector of length 1 whose first component that is not small is positive.
fn directed(vector: Vec<Complex>) -> Vec<Complex> {
    let largest = vector.iter().fold(0.0, |most: f64, x| most.max(size(*x)));
    let length = vector.iter().map(|x| size(*x).powi(2)).sum::<f64>().sqrt();
    let first = vector.iter().find(|x| size(**x) > 0.43 * largest);
    let Some(first) = first.copied() else {
        return vector;
    };
    let factor = div(
        (1.0 / length, 0.0),
        (first.0 / size(first), first.1 / size(first)),
    );
    vector.into_iter().map(|x| mul(x, factor)).collect()
}
