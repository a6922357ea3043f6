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
    /// True if a number of values comes behind them.
    pub(crate) counted: bool,
    /// How many dimensions of the first one it works on.
    pub(crate) dimensions: usize,
    /// The names of its results in messages.
    pub(crate) results: &'static [&'static str],
    /// True if it is of complex numbers: two tensors of the run time's function are the parts of one.
    pub(crate) complex: bool,
}

const OPERATIONS: &[Operation] = &[
    row("solve", Function::Solve, 2, 2, &["x"]),
    row("cholesky", Function::Cholesky, 1, 2, &["L"]),
    row("inv", Function::Inv, 1, 2, &["inverse"]),
    row("qr", Function::Qr, 1, 2, &["Q", "R"]),
    row("eigh", Function::Eigh, 1, 2, &["w", "V"]),
    row("eig", Function::Eig, 1, 2, &["w", "V"]),
    row("svd", Function::Svd, 1, 2, &["U", "s", "Vt"]),
    row("logdet", Function::Logdet, 1, 2, &["value"]),
    row("sort", Function::Argsort, 1, 1, &["sorted"]),
    row("argsort", Function::Argsort, 1, 1, &["order"]),
    counted(row("topk", Function::Topk, 1, 1, &["values", "positions"])),
    row("fft", Function::Fft, 2, 1, &["re", "im"]),
    of_complex("fft"),
    of_complex("ifft"),
    of_complex("rfft"),
    of_complex("irfft"),
    counted(of_complex("irfft")),
];

const fn counted(operation: Operation) -> Operation {
    Operation {
        counted: true,
        ..operation
    }
}

/// A Fourier transform of complex numbers.
const fn of_complex(name: &'static str) -> Operation {
    Operation {
        complex: true,
        ..row(name, Function::Fft, 1, 1, &["transform"])
    }
}

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
        counted: false,
        dimensions,
        results,
        complex: false,
    }
}

impl Operation {
    /// The operation of that name.
    pub(crate) fn named(name: &str) -> Option<Operation> {
        OPERATIONS.iter().find(|o| o.name == name).copied()
    }

    /// The operation of that name that takes so many arguments, or another one of that name.
    pub(crate) fn taking(name: &str, arguments: usize) -> Option<Operation> {
        let mut of_name = OPERATIONS.iter().filter(|o| o.name == name);
        let fitting = of_name.clone().find(|o| o.arguments() == arguments);
        fitting.or_else(|| of_name.next()).copied()
    }

    /// How many arguments it takes.
    pub(crate) fn arguments(self) -> usize {
        self.tensors + usize::from(self.counted)
    }

    /// How many arguments operations of that name take: `1 or 2`.
    pub(crate) fn numbers_of_arguments(name: &str) -> String {
        let of_name = OPERATIONS.iter().filter(|o| o.name == name);
        let mut numbers: Vec<usize> = of_name.map(|o| o.arguments()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        numbers.join(" or ")
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
