//! Gradients of factorisations of a matrix.
//!
//! With X̄ for the adjoint of X: `cholesky` and `eigh` as in Giles (2008) and Murray (2016), "Differentiation of the Cholesky
//! decomposition": with S the adjoint of a full symmetric matrix, what is read of it is the lower triangle, so Ā is S + Sᵀ
//! below the diagonal, S on it and 0 above. `qr` (at least as many rows as columns) as in Walter and Lehmann (2018), `svd`
//! as in Townsend (2016); of `eigh` and `svd` the values must be distinct as far as something flows to their vectors. Where
//! nothing flows, nothing is divided, so that equal or vanishing values have a gradient of their own. Must not know sites.
//!
//! ```text
//! qr: Ā = (Q̄ + Q sym(M)) R⁻ᵀ, M = R R̄ᵀ − Q̄ᵀ Q, where sym takes the lower triangle for both
//! ```

use super::library::{Draft, Maker};
use super::transpose::Piece;
use crate::einsum::TensorId;
use ein_plan::library::Argument;
use ein_plan::{Function, NodeId};

/// Where a matrix stands in a result that has several, one behind the other.
#[derive(Clone, Copy)]
struct Part {
    start: u64,
    columns: u64,
}

impl Part {
    fn at(self, draft: &mut Draft, row: NodeId, column: NodeId) -> NodeId {
        let sketch = &mut draft.sketch;
        let (columns, start) = (
            sketch.whole(self.columns as i64),
            sketch.whole(self.start as i64),
        );
        let line = sketch.apply(Function::Mul, &[columns, row]);
        let at = sketch.apply(Function::Add, &[line, column]);
        match self.start {
            0 => at,
            _ => sketch.apply(Function::Add, &[at, start]),
        }
    }
}

/// A quotient, 0 where the numerator is.
fn quotient(m: &Maker<'_, '_>, draft: &mut Draft, a: NodeId, b: NodeId) -> NodeId {
    let sketch = &mut draft.sketch;
    let zero = sketch.number(0.0, m.dtype);
    let value = sketch.div(a, b);
    let nothing = sketch.compare(Function::Eq, a, zero);
    sketch.select(nothing, zero, value)
}

impl Maker<'_, '_> {
    /// An element of the call's result.
    fn value(&self, draft: &mut Draft, part: Part, row: NodeId, column: NodeId) -> NodeId {
        let at = part.at(draft, row, column);
        self.out(draft, self.call.tensor, &[at])
    }

    /// An element of its adjoint.
    fn flow(&self, draft: &mut Draft, part: Part, row: NodeId, column: NodeId) -> NodeId {
        let at = part.at(draft, row, column);
        self.out(draft, self.adjoint, &[at])
    }

    /// The sum over the last own index of a product, as a tensor over the first two.
    fn product(
        &mut self,
        extents: [u64; 3],
        what: &str,
        factors: impl FnOnce(&Self, &mut Draft, [NodeId; 3]) -> [NodeId; 2],
    ) -> TensorId {
        let mut draft = self.draft(&extents);
        let own = [draft.own(0), draft.own(1), draft.own(2)];
        let [a, b] = factors(self, &mut draft, own);
        let root = draft.sketch.mul(a, b);
        self.tensor(draft, 2, root, what)
    }

    /// Ā from S: S + Sᵀ below the diagonal, S on it, 0 above.
    pub(super) fn lower(&mut self, argument: &Argument, number: usize, full: TensorId) -> Piece {
        self.over(argument, number, &[], |m, draft| {
            let (r, c) = (draft.own(0), draft.own(1));
            let one = m.made(draft, full, &[r, c]);
            let other = m.made(draft, full, &[c, r]);
            let sketch = &mut draft.sketch;
            let both = sketch.apply(Function::Add, &[one, other]);
            let below = sketch.compare(Function::Lt, c, r);
            let on = sketch.compare(Function::Eq, c, r);
            let zero = sketch.number(0.0, m.dtype);
            let rest = sketch.select(on, one, zero);
            sketch.select(below, both, rest)
        })
    }

    /// S = L⁻ᵀ Φ(Lᵀ L̄) L⁻¹, where Φ takes the lower triangle with half its diagonal.
    pub(super) fn cholesky(&mut self, n: u64) -> TensorId {
        let read = |m: &Self, draft: &mut Draft| {
            let whole = [draft.sketch.whole(-1), draft.sketch.whole(-2)];
            vec![m.out(draft, m.call.tensor, &whole)]
        };
        let inverse = self.library(Function::Inv, &[n, n], read, "inverse");
        let mut draft = self.draft(&[n, n, n]);
        let (i, j, k) = (draft.own(0), draft.own(1), draft.own(2));
        let l = self.out(&mut draft, self.call.tensor, &[k, i]);
        let v = self.out(&mut draft, self.adjoint, &[k, j]);
        let root = draft.sketch.mul(l, v);
        let product = self.tensor(draft, 2, root, "product");
        let mut draft = self.draft(&[n, n, n]);
        let (a, j, i) = (draft.own(0), draft.own(1), draft.own(2));
        let left = self.made(&mut draft, inverse, &[i, a]);
        let phi = self.made(&mut draft, product, &[i, j]);
        let sketch = &mut draft.sketch;
        let (below, on) = (
            sketch.compare(Function::Lt, j, i),
            sketch.compare(Function::Eq, j, i),
        );
        let (half, zero) = (
            sketch.number(0.5, self.dtype),
            sketch.number(0.0, self.dtype),
        );
        let halved = sketch.mul(half, phi);
        let rest = sketch.select(on, halved, zero);
        let phi = sketch.select(below, phi, rest);
        let root = sketch.mul(left, phi);
        let left = self.tensor(draft, 2, root, "left");
        let mut draft = self.draft(&[n, n, n]);
        let (a, b, j) = (draft.own(0), draft.own(1), draft.own(2));
        let left = self.made(&mut draft, left, &[a, j]);
        let right = self.made(&mut draft, inverse, &[j, b]);
        let root = draft.sketch.mul(left, right);
        self.tensor(draft, 2, root, "full")
    }

    /// S = V (diag(w̄) + F ∘ (Vᵀ V̄)) Vᵀ, F[k, l] = 1 / (w[l] − w[k]); where nothing flows to a pair of vectors their
    /// eigenvalues may be equal.
    pub(super) fn eigh(&mut self, n: u64) -> TensorId {
        // Eigenvalues first, then the vectors' rows.
        let vectors = Part {
            start: n,
            columns: n,
        };
        let vector = |draft: &mut Draft, row, column| vectors.at(draft, row, column);
        let mut draft = self.draft(&[n, n, n]);
        let (k, l, i) = (draft.own(0), draft.own(1), draft.own(2));
        let (one, other) = (vector(&mut draft, i, k), vector(&mut draft, i, l));
        let v = self.out(&mut draft, self.call.tensor, &[one]);
        let adjoint = self.out(&mut draft, self.adjoint, &[other]);
        let root = draft.sketch.mul(v, adjoint);
        let product = self.tensor(draft, 2, root, "product");
        let mut draft = self.draft(&[n, n]);
        let (k, l) = (draft.own(0), draft.own(1));
        let m = self.made(&mut draft, product, &[k, l]);
        let first = self.out(&mut draft, self.call.tensor, &[k]);
        let second = self.out(&mut draft, self.call.tensor, &[l]);
        let value = self.out(&mut draft, self.adjoint, &[k]);
        let gap = draft.sketch.sub(second, first);
        let beside = quotient(self, &mut draft, m, gap);
        let on = draft.sketch.compare(Function::Eq, k, l);
        let root = draft.sketch.select(on, value, beside);
        let middle = self.tensor(draft, 2, root, "middle");
        let mut draft = self.draft(&[n, n, n]);
        let (r, l, k) = (draft.own(0), draft.own(1), draft.own(2));
        let at = vector(&mut draft, r, k);
        let v = self.out(&mut draft, self.call.tensor, &[at]);
        let m = self.made(&mut draft, middle, &[k, l]);
        let root = draft.sketch.mul(v, m);
        let left = self.tensor(draft, 2, root, "left");
        let mut draft = self.draft(&[n, n, n]);
        let (r, c, l) = (draft.own(0), draft.own(1), draft.own(2));
        let left = self.made(&mut draft, left, &[r, l]);
        let at = vector(&mut draft, c, l);
        let v = self.out(&mut draft, self.call.tensor, &[at]);
        let root = draft.sketch.mul(left, v);
        self.tensor(draft, 2, root, "full")
    }

    /// Ā Rᵀ = Q̄ + Q sym(R R̄ᵀ − Q̄ᵀ Q), solved row by row.
    pub(super) fn qr(&mut self, argument: &Argument, number: usize, m: u64, n: u64) -> Piece {
        let q = Part {
            start: 0,
            columns: n,
        };
        let r = Part {
            start: m * n,
            columns: n,
        };
        let ours = self.product([n, n, n], "upper", |of, draft, [k, l, j]| {
            [of.value(draft, r, k, j), of.flow(draft, r, l, j)]
        });
        let theirs = self.product([n, n, m], "lower", |of, draft, [k, l, i]| {
            [of.flow(draft, q, i, k), of.value(draft, q, i, l)]
        });
        let mut draft = self.draft(&[n, n]);
        let (k, l) = (draft.own(0), draft.own(1));
        let mut gap = |of: &Self, row, column| {
            let one = of.made(&mut draft, ours, &[row, column]);
            let other = of.made(&mut draft, theirs, &[row, column]);
            draft.sketch.sub(one, other)
        };
        let (lower, upper) = (gap(self, k, l), gap(self, l, k));
        let below = draft.sketch.compare(Function::Le, l, k);
        let root = draft.sketch.select(below, lower, upper);
        let both = self.tensor(draft, 2, root, "both");
        let turned = self.product([m, n, n], "turned", |of, draft, [i, l, k]| {
            [of.value(draft, q, i, k), of.made(draft, both, &[k, l])]
        });
        let mut draft = self.draft(&[m, n]);
        let (i, l) = (draft.own(0), draft.own(1));
        let flow = self.flow(&mut draft, q, i, l);
        let turned = self.made(&mut draft, turned, &[i, l]);
        let root = draft.sketch.add(flow, turned);
        let side = self.tensor(draft, 2, root, "side");
        let mut draft = self.draft(&[n, n]);
        let (k, l) = (draft.own(0), draft.own(1));
        let root = self.value(&mut draft, r, k, l);
        let factor = self.tensor(draft, 2, root, "factor");
        let rows = self.rows(factor, side, m, n);
        self.over(argument, number, &[], |of, draft| {
            let (i, j) = (draft.own(0), draft.own(1));
            of.made(draft, rows, &[i, j])
        })
    }

    /// Ā = U K Vᵀ + (Ū − U Uᵀ Ū) S⁻¹ Vᵀ + U S⁻¹ (V̄ᵀ − V̄ᵀ V Vᵀ), where K has s̄ on its diagonal and beside it
    /// ((P − Pᵀ)[k, l] s[l] + s[k] (O − Oᵀ)[k, l]) / (s[l]² − s[k]²), P = Uᵀ Ū, O = Vᵀ V̄. Of the other two the one whose
    /// side is longer than the other is not 0.
    pub(super) fn svd(&mut self, argument: &Argument, number: usize, m: u64, n: u64) -> Piece {
        let c = m.min(n);
        let u = Part {
            start: 0,
            columns: c,
        };
        let s = Part {
            start: m * c,
            columns: 1,
        };
        let vt = Part {
            start: m * c + c,
            columns: n,
        };
        let left = self.product([c, c, m], "left", |of, draft, [k, l, i]| {
            [of.value(draft, u, i, k), of.flow(draft, u, i, l)]
        });
        let right = self.product([c, c, n], "right", |of, draft, [k, l, j]| {
            [of.value(draft, vt, k, j), of.flow(draft, vt, l, j)]
        });
        let mut draft = self.draft(&[c, c]);
        let (k, l) = (draft.own(0), draft.own(1));
        let nought = draft.sketch.whole(0);
        let (first, second) = (
            self.value(&mut draft, s, k, nought),
            self.value(&mut draft, s, l, nought),
        );
        let mut skew = |of: &Self, tensor: TensorId, by: NodeId| {
            let (one, other) = (
                of.made(&mut draft, tensor, &[k, l]),
                of.made(&mut draft, tensor, &[l, k]),
            );
            let gap = draft.sketch.sub(one, other);
            draft.sketch.mul(gap, by)
        };
        let (turn, tilt) = (skew(self, left, second), skew(self, right, first));
        let sketch = &mut draft.sketch;
        let above = sketch.add(turn, tilt);
        let (gap, sum) = (sketch.sub(second, first), sketch.add(second, first));
        let below = sketch.mul(gap, sum);
        let beside = quotient(self, &mut draft, above, below);
        let value = self.flow(&mut draft, s, k, nought);
        let on = draft.sketch.compare(Function::Eq, k, l);
        let root = draft.sketch.select(on, value, beside);
        let middle = self.tensor(draft, 2, root, "middle");
        match n > m {
            false => {
                let turned = self.product([m, c, c], "turned", |of, draft, [i, l, k]| {
                    [of.value(draft, u, i, k), of.made(draft, middle, &[k, l])]
                });
                let inside = (m > n).then(|| {
                    self.product([m, c, c], "inside", |of, draft, [i, l, k]| {
                        [of.value(draft, u, i, k), of.made(draft, left, &[k, l])]
                    })
                });
                let side = self.side([m, c], turned, inside, |of, draft, i, l| {
                    let nought = draft.sketch.whole(0);
                    [of.flow(draft, u, i, l), of.value(draft, s, l, nought)]
                });
                self.over(argument, number, &[c], |of, draft| {
                    let (i, j, l) = (draft.own(0), draft.own(1), draft.own(2));
                    let (a, b) = (of.made(draft, side, &[i, l]), of.value(draft, vt, l, j));
                    draft.sketch.mul(a, b)
                })
            }
            true => {
                let turned = self.product([c, n, c], "turned", |of, draft, [k, j, l]| {
                    [of.made(draft, middle, &[k, l]), of.value(draft, vt, l, j)]
                });
                let inside = self.product([c, n, c], "inside", |of, draft, [k, j, l]| {
                    [of.made(draft, right, &[l, k]), of.value(draft, vt, l, j)]
                });
                let side = self.side([c, n], turned, Some(inside), |of, draft, k, j| {
                    let nought = draft.sketch.whole(0);
                    [of.flow(draft, vt, k, j), of.value(draft, s, k, nought)]
                });
                self.over(argument, number, &[c], |of, draft| {
                    let (i, j, k) = (draft.own(0), draft.own(1), draft.own(2));
                    let (a, b) = (of.value(draft, u, i, k), of.made(draft, side, &[k, j]));
                    draft.sketch.mul(a, b)
                })
            }
        }
    }

    /// `turned`, and what flows to vectors and is not `inside` their own span, over their values.
    fn side(
        &mut self,
        extents: [u64; 2],
        turned: TensorId,
        inside: Option<TensorId>,
        flow: impl FnOnce(&Self, &mut Draft, NodeId, NodeId) -> [NodeId; 2],
    ) -> TensorId {
        let Some(inside) = inside else {
            return turned;
        };
        let mut draft = self.draft(&extents);
        let (a, b) = (draft.own(0), draft.own(1));
        let [flow, value] = flow(self, &mut draft, a, b);
        let inside = self.made(&mut draft, inside, &[a, b]);
        let outside = draft.sketch.sub(flow, inside);
        let outside = quotient(self, &mut draft, outside, value);
        let turned = self.made(&mut draft, turned, &[a, b]);
        let root = draft.sketch.add(turned, outside);
        self.tensor(draft, 2, root, "side")
    }

    /// The rows x with factor · x = side's row.
    pub(super) fn rows(&mut self, factor: TensorId, side: TensorId, m: u64, n: u64) -> TensorId {
        let mut draft = self.draft(&[m, n]);
        let (i, j) = (draft.own(0), draft.own(1));
        let sketch = &mut draft.sketch;
        let (rows, columns) = (sketch.whole(-1), sketch.whole(-2));
        let matrix = self.made(&mut draft, factor, &[rows, columns]);
        let right = self.made(&mut draft, side, &[i, rows]);
        let root = draft.sketch.apply(Function::Solve, &[matrix, right, j]);
        self.tensor(draft, 2, root, "rows")
    }
}
