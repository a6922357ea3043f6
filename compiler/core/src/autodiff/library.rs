//! Gradients of library operations.
//!
//! With X̄ for the adjoint of X: `fft` the inverse without its division; `solve` b̄ = A⁻ᵀ x̄, Ā = −b̄ xᵀ; `inv` Ā = −Yᵀ Ȳ Yᵀ; `logdet` Ā = ȳ A⁻ᵀ; what factors a matrix is in
//! `decompositions`. `sort` and `topk` read their operand at positions that have no derivative. All of it is contractions and library
//! operations again. Must not know sites.
//!
//! ```text
//! x: [p, i] solve(A[p, :1, :2], y[p, :1], i)
//!   =>   grad.x.side: [p, i] solve(A[p, :2, :1], grad.x[p, :1], i);   grad.A: [p, i, j] -(grad.x.side[p, i] * x[p, j])
//! ```

use super::sketch::Sketch;
use super::transpose::Piece;
use super::{Adjoint, Statement, Statements};
use crate::einsum::{Program, TensorId};
use ein_plan::library::Argument;
use ein_plan::{DType, Function, Index, IndexId, Kernel, Library, NodeId, Origin, Reduction};
use einc_diag::Diagnostic;

/// A call whose adjoint is known.
pub(super) struct Call<'a> {
    pub(super) tensor: TensorId,
    kernel: &'a Kernel,
    library: &'a Library,
    operands: &'a [TensorId],
}

impl<'a> Call<'a> {
    /// The call that makes a tensor.
    pub(super) fn new(
        tensor: TensorId,
        kernel: &'a Kernel,
        library: &'a Library,
        operands: &'a [TensorId],
    ) -> Call<'a> {
        Call {
            tensor,
            kernel,
            library,
            operands,
        }
    }

    /// Returns the gradient of one operand, in pieces.
    ///
    /// # Errors
    /// `E0606` where the operation has no derivative here.
    pub(super) fn pieces(
        &self,
        program: &mut Program,
        statements: &mut Statements,
        adjoint: Adjoint,
        operand: usize,
    ) -> Result<Vec<Piece>, Diagnostic> {
        let adjoint = match adjoint {
            Adjoint::Tensor(tensor) => tensor,
            Adjoint::Constant(value) => statements.filled(program, self.tensor, value),
        };
        let mut maker = Maker {
            name: format!("grad.{}", program.tensor(self.tensor).name),
            origin: program.tensor(self.tensor).origin,
            dtype: program.tensor(self.tensor).dtype.compute(),
            program,
            statements,
            call: self,
            adjoint,
        };
        let arguments = self.library.arguments.iter().enumerate();
        let mut pieces = vec![];
        for (number, argument) in arguments.filter(|(_, a)| a.operand as usize == operand) {
            pieces.push(maker.piece(number, argument)?);
        }
        Ok(pieces)
    }
}

/// A builder of the statements of one adjoint.
pub(super) struct Maker<'a, 'c> {
    name: String,
    origin: Origin,
    pub(super) dtype: DType,
    program: &'a mut Program,
    statements: &'a mut Statements,
    pub(super) call: &'a Call<'c>,
    pub(super) adjoint: TensorId,
}

/// A statement in the making: the batch indices, and some of its own behind them.
pub(super) struct Draft {
    pub(super) sketch: Sketch,
    indices: Vec<Index>,
    /// How many batch indices there are.
    batch: usize,
}

impl Draft {
    /// An own index.
    pub(super) fn own(&mut self, at: usize) -> NodeId {
        self.sketch.index(self.batch + at)
    }
}

impl Maker<'_, '_> {
    fn extent(&self, argument: usize, dimension: usize) -> u64 {
        let (rows, columns) = self.call.library.matrix(self.call.kernel, argument);
        [rows, columns][dimension]
    }

    /// All batch indices, and own ones of these extents.
    pub(super) fn draft(&self, own: &[u64]) -> Draft {
        let batch = self.call.library.batch.iter();
        let mut indices: Vec<Index> = batch
            .map(|index| self.call.kernel.indices[index.0 as usize].clone())
            .collect();
        let count = indices.len();
        for (number, extent) in own.iter().enumerate() {
            let letters = ["r", "c", "k", "l"];
            let mut name = letters[number % letters.len()].to_owned();
            while indices.iter().any(|index| index.name == name) {
                name.push('\'');
            }
            indices.push(Index {
                name,
                extent: *extent,
            });
        }
        Draft {
            sketch: Sketch::default(),
            indices,
            batch: count,
        }
    }

    /// An element of the call's result, or of its adjoint, at the batch indices and these of its own.
    pub(super) fn out(&self, draft: &mut Draft, tensor: TensorId, own: &[NodeId]) -> NodeId {
        let library = self.call.library;
        let mut positions = vec![];
        for number in 0..self.call.kernel.output_rank {
            let index = IndexId(number);
            positions.push(match library.own.iter().position(|o| *o == index) {
                Some(at) => own[at],
                None => {
                    let at = library.batch.iter().position(|b| *b == index);
                    draft.sketch.index(at.unwrap_or(0))
                }
            });
        }
        draft.sketch.read(tensor, positions, None, self.dtype)
    }

    /// An element of a tensor that was made here: batch indices first.
    pub(super) fn made(&self, draft: &mut Draft, tensor: TensorId, own: &[NodeId]) -> NodeId {
        let batch = (0..draft.batch).map(|at| draft.sketch.index(at));
        let positions: Vec<NodeId> = batch
            .collect::<Vec<_>>()
            .into_iter()
            .chain(own.iter().copied())
            .collect();
        let dtype = self.program.tensor(tensor).dtype.compute();
        draft.sketch.read(tensor, positions, None, dtype)
    }

    /// Appends a tensor over the batch indices and the first `rank` own ones, summed over the others.
    pub(super) fn tensor(
        &mut self,
        draft: Draft,
        rank: usize,
        root: NodeId,
        what: &str,
    ) -> TensorId {
        self.reduced(draft, rank, (root, Reduction::Sum), what)
    }

    /// Appends a tensor over the batch indices and the first `rank` own ones, reduced over the others.
    pub(super) fn reduced(
        &mut self,
        draft: Draft,
        rank: usize,
        (root, reduction): (NodeId, Reduction),
        what: &str,
    ) -> TensorId {
        let rank = draft.batch + rank;
        let statement = Statement {
            reduction: (rank < draft.indices.len()).then_some(reduction),
            rank,
            indices: draft.indices,
            sketch: &draft.sketch,
            root,
            guard: None,
        };
        let name = format!("{}.{what}", self.name);
        self.statements
            .push(self.program, statement, &name, self.origin)
    }

    /// Appends a call over the batch indices and own ones of these extents.
    pub(super) fn library(
        &mut self,
        function: Function,
        own: &[u64],
        read: impl FnOnce(&Self, &mut Draft) -> Vec<NodeId>,
        what: &str,
    ) -> TensorId {
        let mut draft = self.draft(own);
        let mut arguments = read(self, &mut draft);
        arguments.extend((0..own.len()).map(|at| draft.own(at)));
        let root = draft.sketch.apply(function, &arguments);
        self.tensor(draft, own.len(), root, what)
    }

    /// The matrix of the call, whole; transposed or as it is.
    fn matrix(&self, draft: &mut Draft, transposed: bool) -> NodeId {
        let argument = &self.call.library.arguments[0];
        let batch = &self.call.library.batch;
        let mut positions = vec![];
        for (dim, index) in argument.at.iter().enumerate() {
            positions.push(match index {
                Some(index) => {
                    let at = batch.iter().position(|b| b == index);
                    draft.sketch.index(at.unwrap_or(0))
                }
                None => {
                    let row = argument.whole[0] == dim;
                    draft.sketch.whole(if row != transposed { -1 } else { -2 })
                }
            });
        }
        let tensor = self.call.operands[argument.operand as usize];
        draft.sketch.read(tensor, positions, None, self.dtype)
    }

    /// The adjoint of an argument, of its operand's dimensions; `value` has one own index for each whole dimension, and
    /// then those of `summed`.
    pub(super) fn over(
        &mut self,
        argument: &Argument,
        number: usize,
        summed: &[u64],
        value: impl FnOnce(&Self, &mut Draft) -> NodeId,
    ) -> Piece {
        let dimensions = argument.whole.len();
        let mut extents: Vec<u64> = (0..dimensions).map(|d| self.extent(number, d)).collect();
        extents.extend(summed);
        let mut draft = self.draft(&extents);
        let root = value(self, &mut draft);
        // The operand's dimensions first, then what is summed: `order[new]` is the draft's index.
        let place = |index: &IndexId| self.call.library.batch.iter().position(|b| b == index);
        let mut order: Vec<usize> = vec![];
        for (dim, index) in argument.at.iter().enumerate() {
            order.push(match index {
                Some(index) => place(index).unwrap_or(0),
                None => {
                    let which = argument.whole.iter().position(|whole| *whole == dim);
                    draft.batch + which.unwrap_or(0)
                }
            });
        }
        let rank = order.len();
        let others: Vec<usize> = (0..draft.indices.len())
            .filter(|at| !order.contains(at))
            .collect();
        order.extend(others);
        let mut sketch = Sketch::default();
        let places: Vec<NodeId> = (0..order.len())
            .map(|old| {
                let new = order.iter().position(|o| *o == old);
                sketch.index(new.unwrap_or(0))
            })
            .collect();
        let mut copy = super::sketch::Copy::new(&draft.sketch, places, None);
        let root = copy.node(&mut sketch, root);
        Piece {
            indices: order.iter().map(|at| draft.indices[*at].clone()).collect(),
            rank,
            sketch,
            root,
            guard: None,
        }
    }

    fn piece(&mut self, number: usize, argument: &Argument) -> Result<Piece, Diagnostic> {
        let n = self.extent(0, 0);
        Ok(match self.call.library.operation {
            Function::Solve => self.solve(number, argument),
            Function::Inv => {
                let mut draft = self.draft(&[n, n, n]);
                let (r, j, i) = (draft.own(0), draft.own(1), draft.own(2));
                let y = self.out(&mut draft, self.call.tensor, &[i, r]);
                let v = self.out(&mut draft, self.adjoint, &[i, j]);
                let root = draft.sketch.mul(y, v);
                let half = self.tensor(draft, 2, root, "half");
                self.over(argument, number, &[n], |m, draft| {
                    let (r, c, j) = (draft.own(0), draft.own(1), draft.own(2));
                    let half = m.made(draft, half, &[r, j]);
                    let y = m.out(draft, m.call.tensor, &[c, j]);
                    let product = draft.sketch.mul(half, y);
                    draft.sketch.neg(product)
                })
            }
            Function::Logdet => {
                let read = |m: &Self, draft: &mut Draft| vec![m.matrix(draft, false)];
                let inverse = self.library(Function::Inv, &[n, n], read, "inverse");
                self.over(argument, number, &[], |m, draft| {
                    let (r, c) = (draft.own(0), draft.own(1));
                    let inverse = m.made(draft, inverse, &[c, r]);
                    let v = m.out(draft, m.adjoint, &[]);
                    draft.sketch.mul(v, inverse)
                })
            }
            Function::Cholesky => {
                let full = self.cholesky(n);
                self.lower(argument, number, full)
            }
            Function::Eigh => {
                let full = self.eigh(n);
                self.lower(argument, number, full)
            }
            Function::Eig => self.eig(argument, number, n),
            Function::Qr => {
                let (m, n) = (self.extent(0, 0), self.extent(0, 1));
                if m < n {
                    let what = "the gradient of `qr` of a matrix with more columns than rows";
                    return Err(self.none(
                        what,
                        "matrices with at least as many rows as columns have one",
                    ));
                }
                self.qr(argument, number, m, n)
            }
            Function::Svd => {
                let (m, n) = (self.extent(0, 0), self.extent(0, 1));
                self.svd(argument, number, m, n)
            }
            Function::Fft => self.fft(number, argument, n),
            // `argsort` gives positions, and the others are read at positions.
            other => {
                let what = format!("the gradient of `{}`", other.name());
                return Err(self.none(
                    &what,
                    "see the table of derivatives in the language reference",
                ));
            }
        })
    }

    /// The adjoint of the transform is its inverse without the division, and that is the transform with the real and imaginary parts
    /// exchanged, before and after.
    fn fft(&mut self, number: usize, argument: &Argument, n: u64) -> Piece {
        let [re, im] = [("re", 0), ("im", n as i64)].map(|(what, start)| {
            let mut draft = self.draft(&[n]);
            let (r, start) = (draft.own(0), draft.sketch.whole(start));
            let at = draft.sketch.apply(Function::Add, &[r, start]);
            let root = self.out(&mut draft, self.adjoint, &[at]);
            self.tensor(draft, 1, root, what)
        });
        let read = |m: &Self, draft: &mut Draft| {
            [im, re]
                .map(|part| {
                    let whole = draft.sketch.whole(-1);
                    m.made(draft, part, &[whole])
                })
                .into()
        };
        let side = self.library(Function::Fft, &[2 * n], read, "side");
        self.over(argument, number, &[], |m, draft| {
            let start = if number == 0 { n as i64 } else { 0 };
            let (r, start) = (draft.own(0), draft.sketch.whole(start));
            let at = draft.sketch.apply(Function::Add, &[r, start]);
            m.made(draft, side, &[at])
        })
    }

    fn none(&self, what: &str, help: &str) -> Diagnostic {
        let tensor = self.name.trim_start_matches("grad.");
        let what = format!("{what} is not known: `{tensor}` is made by it");
        Diagnostic::error("E0606", what).help(help)
    }

    fn solve(&mut self, number: usize, argument: &Argument) -> Piece {
        let n = self.extent(0, 0);
        let read = |m: &Self, draft: &mut Draft| {
            let a = m.matrix(draft, true);
            let whole = draft.sketch.whole(-1);
            vec![a, m.out(draft, m.adjoint, &[whole])]
        };
        let side = self.library(Function::Solve, &[n], read, "side");
        if number == 1 {
            return self.over(argument, number, &[], |m, draft| {
                let r = draft.own(0);
                m.made(draft, side, &[r])
            });
        }
        self.over(argument, number, &[], |m, draft| {
            let (r, c) = (draft.own(0), draft.own(1));
            let side = m.made(draft, side, &[r]);
            let x = m.out(draft, m.call.tensor, &[c]);
            let product = draft.sketch.mul(side, x);
            draft.sketch.neg(product)
        })
    }
}
