//! The gradient of `eig`: eigenvalues and eigenvectors of a matrix that need not be symmetric.
//!
//! For A V = V diag(w), with X̄ for ∂L/∂re X + i ∂L/∂im X and Vᴴ for the adjoint matrix, Ā is the real part of V⁻ᴴ M Vᴴ. On the diagonal M is
//! w̄, and beside it (Vᴴ G)[k, l] / conj(w[l] − w[k]), where G is what flows to the vectors less what their length and direction take back:
//! G[:, l] = v̄ − v re(v̄ᴴ v) + i e im(v̄ᴴ v) / v[p], with e the unit vector of the component p that is positive by convention. (Boeddeker et
//! al. 2017, "On the computation of complex-valued gradients", have the length alone.) Eigenvalues must be distinct as far as something flows to their vectors. The linear system
//! is solved in real numbers, of twice the size. Must not know sites.
//!
//! ```text
//! w only: Ā = re(V⁻ᴴ diag(w̄) Vᴴ)
//! ```

use super::library::{Draft, Maker};
use super::transpose::Piece;
use crate::einsum::TensorId;
use ein_plan::library::Argument;
use ein_plan::{Function, NodeId, Reduction};

/// The parts of a complex number.
type Pair = [NodeId; 2];

/// The square of the part of the largest component that one must exceed to be not small.
const SMALL: f64 = 0.43 * 0.43;

/// Which of the results of a call are read: eigenvalues or vectors.
#[derive(Clone, Copy)]
enum Part {
    Values,
    Vectors,
}

/// conj(a) b.
fn inner(draft: &mut Draft, [a, b]: Pair, [c, d]: Pair) -> Pair {
    let sketch = &mut draft.sketch;
    let (ac, bd) = (sketch.mul(a, c), sketch.mul(b, d));
    let (ad, bc) = (sketch.mul(a, d), sketch.mul(b, c));
    [sketch.add(ac, bd), sketch.sub(ad, bc)]
}

impl Maker<'_, '_> {
    /// The parts of an element of the result, or of its adjoint.
    fn element(&self, draft: &mut Draft, (of, part): (TensorId, Part), n: u64, at: Pair) -> Pair {
        let n = n as i64;
        let sketch = &mut draft.sketch;
        let (place, starts) = match part {
            Part::Values => (at[0], [0, n]),
            Part::Vectors => {
                let columns = sketch.whole(n);
                let line = sketch.apply(Function::Mul, &[columns, at[0]]);
                let place = sketch.apply(Function::Add, &[line, at[1]]);
                (place, [2 * n, 2 * n + n * n])
            }
        };
        starts.map(|start| {
            let start = draft.sketch.whole(start);
            let place = draft.sketch.apply(Function::Add, &[place, start]);
            self.out(draft, of, &[place])
        })
    }

    fn vector(&self, draft: &mut Draft, n: u64, at: Pair) -> Pair {
        self.element(draft, (self.call.tensor, Part::Vectors), n, at)
    }

    fn eigenvalue(&self, draft: &mut Draft, n: u64, at: NodeId) -> Pair {
        self.element(draft, (self.call.tensor, Part::Values), n, [at, at])
    }

    /// Both parts of a tensor over own indices, summed over those behind the first `rank`.
    fn pair(
        &mut self,
        (extents, rank): (&[u64], usize),
        what: &str,
        root: impl Fn(&Self, &mut Draft) -> Pair,
    ) -> [TensorId; 2] {
        [("re", 0), ("im", 1)].map(|(name, part)| {
            let mut draft = self.draft(extents);
            let root = root(self, &mut draft)[part];
            self.tensor(draft, rank, root, &format!("{what}.{name}"))
        })
    }

    fn both(&self, draft: &mut Draft, of: [TensorId; 2], at: &[NodeId]) -> Pair {
        of.map(|tensor| self.made(draft, tensor, at))
    }

    /// By vector, the first component that is not small.
    fn pivots(&mut self, n: u64) -> TensorId {
        let square = |m: &Self, draft: &mut Draft| {
            let (l, i) = (draft.own(0), draft.own(1));
            let v = m.vector(draft, n, [i, l]);
            inner(draft, v, v)[0]
        };
        let mut draft = self.draft(&[n, n]);
        let root = square(self, &mut draft);
        let largest = self.reduced(draft, 1, (root, Reduction::Max), "largest");
        let mut draft = self.draft(&[n, n]);
        let size = square(self, &mut draft);
        let (l, i) = (draft.own(0), draft.own(1));
        let largest = self.made(&mut draft, largest, &[l]);
        let sketch = &mut draft.sketch;
        let least = sketch.number(SMALL, self.dtype);
        let least = sketch.mul(least, largest);
        let is_large = sketch.compare(Function::Gt, size, least);
        let none = sketch.whole(n as i64);
        let root = sketch.select(is_large, i, none);
        self.reduced(draft, 1, (root, Reduction::Min), "pivot")
    }

    /// G: what flows to the vectors, without what changes their lengths and directions.
    fn flow_to_vectors(&mut self, n: u64) -> [TensorId; 2] {
        let flow = (self.adjoint, Part::Vectors);
        let along = self.pair((&[n, n], 1), "along", |m, draft| {
            let (l, i) = (draft.own(0), draft.own(1));
            let (g, v) = (
                m.element(draft, flow, n, [i, l]),
                m.vector(draft, n, [i, l]),
            );
            inner(draft, g, v)
        });
        let pivots = self.pivots(n);
        self.pair((&[n, n], 2), "across", |m, draft| {
            let (i, l) = (draft.own(0), draft.own(1));
            let [g_re, g_im] = m.element(draft, flow, n, [i, l]);
            let [v_re, v_im] = m.vector(draft, n, [i, l]);
            let [length, direction] = m.both(draft, along, &[l]);
            let pivot = m.made(draft, pivots, &[l]);
            let sketch = &mut draft.sketch;
            let zero = sketch.number(0.0, m.dtype);
            let is_pivot = sketch.compare(Function::Eq, i, pivot);
            let turned = sketch.div(direction, v_re);
            let turned = sketch.select(is_pivot, turned, zero);
            let [re, im] = [(g_re, v_re), (g_im, v_im)].map(|(g, v)| {
                let taken = sketch.mul(v, length);
                sketch.sub(g, taken)
            });
            [re, sketch.add(im, turned)]
        })
    }

    /// M: w̄ on the diagonal, and (Vᴴ G)[k, l] / conj(w[l] − w[k]) beside it.
    fn middle(&mut self, n: u64) -> [TensorId; 2] {
        let flow = self.flow_to_vectors(n);
        let product = self.pair((&[n, n, n], 2), "product", |m, draft| {
            let (k, l, i) = (draft.own(0), draft.own(1), draft.own(2));
            let (v, g) = (m.vector(draft, n, [i, k]), m.both(draft, flow, &[i, l]));
            inner(draft, v, g)
        });
        self.pair((&[n, n], 2), "middle", |m, draft| {
            let (k, l) = (draft.own(0), draft.own(1));
            let [a, b] = m.both(draft, product, &[k, l]);
            let (first, second) = (m.eigenvalue(draft, n, k), m.eigenvalue(draft, n, l));
            let on = m.element(draft, (m.adjoint, Part::Values), n, [k, k]);
            let sketch = &mut draft.sketch;
            let [c, d] = [0, 1].map(|part| sketch.sub(second[part], first[part]));
            // (a + bi) / (c - di) = (a + bi)(c + di) / (c² + d²).
            let (cc, dd) = (sketch.mul(c, c), sketch.mul(d, d));
            let size = sketch.add(cc, dd);
            let (ac, bd) = (sketch.mul(a, c), sketch.mul(b, d));
            let (ad, bc) = (sketch.mul(a, d), sketch.mul(b, c));
            let zero = sketch.number(0.0, m.dtype);
            let (no_re, no_im) = (
                sketch.compare(Function::Eq, a, zero),
                sketch.compare(Function::Eq, b, zero),
            );
            let is_nothing = sketch.and(no_re, no_im);
            let is_on = sketch.compare(Function::Eq, k, l);
            let beside = [sketch.sub(ac, bd), sketch.add(ad, bc)];
            [0, 1].map(|part| {
                let quotient = sketch.div(beside[part], size);
                let beside = sketch.select(is_nothing, zero, quotient);
                sketch.select(is_on, on[part], beside)
            })
        })
    }

    /// Ā of a square matrix of `n` rows.
    pub(super) fn eig(&mut self, argument: &Argument, number: usize, n: u64) -> Piece {
        let middle = self.middle(n);
        // M Vᴴ, a row for each of its columns: its real part, and its imaginary one behind it.
        let right = self.pair((&[n, n, n], 2), "right", |m, draft| {
            let (k, j, l) = (draft.own(0), draft.own(1), draft.own(2));
            let (v, middle) = (m.vector(draft, n, [j, l]), m.both(draft, middle, &[k, l]));
            inner(draft, v, middle)
        });
        let mut draft = self.draft(&[n, 2 * n]);
        let (j, r) = (draft.own(0), draft.own(1));
        let (is_upper, row) = halves(&mut draft, r, n);
        let [re, im] = self.both(&mut draft, right, &[row, j]);
        let root = draft.sketch.select(is_upper, re, im);
        let side = self.tensor(draft, 2, root, "side");
        // Vᴴ = Xᵀ − i Yᵀ of V = X + i Y as a real matrix: Xᵀ and Yᵀ over −Yᵀ and Xᵀ.
        let mut draft = self.draft(&[2 * n, 2 * n]);
        let (r, c) = (draft.own(0), draft.own(1));
        let ((is_upper, row), (is_left, column)) =
            (halves(&mut draft, r, n), halves(&mut draft, c, n));
        let [re, im] = self.vector(&mut draft, n, [column, row]);
        let sketch = &mut draft.sketch;
        let turned = sketch.neg(im);
        let above = sketch.select(is_left, re, im);
        let below = sketch.select(is_left, turned, re);
        let root = sketch.select(is_upper, above, below);
        let matrix = self.tensor(draft, 2, root, "matrix");
        let solved = self.rows(matrix, side, n, 2 * n);
        self.over(argument, number, &[], |m, draft| {
            let (r, c) = (draft.own(0), draft.own(1));
            m.made(draft, solved, &[c, r])
        })
    }
}

/// Of an index over two halves: whether it is in the first one, and its place there.
fn halves(draft: &mut Draft, index: NodeId, n: u64) -> (NodeId, NodeId) {
    let sketch = &mut draft.sketch;
    let half = sketch.whole(n as i64);
    let is_first = sketch.compare(Function::Lt, index, half);
    (is_first, sketch.apply(Function::Rem, &[index, half]))
}
