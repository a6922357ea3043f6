//! The library operations of the language, a row each.
//!
//! Must not know how anything is computed or called.
//!
//! ```text
//! qr   =>   one matrix in, Q and R out
//! ```

use crate::sema::resolve::names::Shape;
use ein_plan::Function;

/// A library operation of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// The function of the run time; `sort` is read through its order.
    pub(crate) function: Function,
    /// How many tensors it takes.
    pub(crate) tensors: usize,
    /// How many dimensions of the first one it works on.
    pub(crate) dimensions: usize,
    /// The names of its results in messages.
    pub(crate) results: &'static [&'static str],
}

const OPERATIONS: &[Operation] = &[
    row("solve", Function::Solve, 2, 2, &["x"]),
    row("cholesky", Function::Cholesky, 1, 2, &["L"]),
    row("inv", Function::Inv, 1, 2, &["inverse"]),
    row("qr", Function::Qr, 1, 2, &["Q", "R"]),
    row("eigh", Function::Eigh, 1, 2, &["w", "V"]),
    row("svd", Function::Svd, 1, 2, &["U", "s", "Vt"]),
    row("logdet", Function::Logdet, 1, 2, &["value"]),
    row("sort", Function::Argsort, 1, 1, &["sorted"]),
    row("argsort", Function::Argsort, 1, 1, &["order"]),
    row("topk", Function::Topk, 1, 1, &["values", "positions"]),
    row("fft", Function::Fft, 2, 1, &["re", "im"]),
];

const fn row(
    name: &'static str,
    function: Function,
    tensors: usize,
    dimensions: usize,
    results: &'static [&'static str],
) -> Operation {
    Operation {
        name,
        function,
        tensors,
        dimensions,
        results,
    }
}

impl Operation {
    /// The operation of that name.
    pub(crate) fn named(name: &str) -> Option<Operation> {
        OPERATIONS.iter().find(|o| o.name == name).copied()
    }

    /// Returns whether it gives a tensor or a scalar; several results are neither.
    pub(crate) fn shape(self) -> Shape {
        match self.results {
            [_] if self.function == Function::Logdet => Shape::Scalar,
            [_] => Shape::Tensor,
            _ => Shape::Poison,
        }
    }

    /// Returns the sort of one of its results.
    pub(crate) fn part_shape(self, at: usize) -> Shape {
        match at < self.results.len() {
            true => Shape::Tensor,
            false => Shape::Poison,
        }
    }

    /// Returns whether it gives positions of values in an order.
    pub(crate) fn is_ordered(self) -> bool {
        matches!(self.function, Function::Argsort | Function::Topk)
    }
}
