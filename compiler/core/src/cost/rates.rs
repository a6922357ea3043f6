//! The time of arithmetic: rates of a site, by what its kernels do.
//!
//! A linear model as in luo2021, section 7. A kernel's operations are those of a product of matrices, or others; each place that data name (a
//! gather's, a scatter's) takes a time of its own, since it is elsewhere in memory. Must not know placements or programs.
//!
//! ```text
//! sum a0[i, k] * a1[k, j], f32              product, no places
//! sum a0[e] * a1[a2[e], j] if i == a3[e]    other, 2 places for each e
//! ```

use ein_plan::schedule::factors::factors;
use ein_plan::schedule::guard::solved;
use ein_plan::{DType, Function, Kernel, Node, NodeId};
use serde::{Deserialize, Serialize};

/// The rates of a site, by what its kernels do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Seconds an operation of a matrix product of f32.
    pub operation: f64,
    /// Seconds a byte that is read or written.
    pub touched: f64,
    /// Seconds a tuple.
    pub tuple: f64,
    /// Seconds an operation of f32 that is none of a matrix product.
    pub element: f64,
    /// Seconds a place that data name: an element or a row that a gather reads, or that a scatter adds to.
    pub place: f64,
}

/// The kind of a kernel's operations, from which their time follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// True if they are those of matrix products.
    pub is_product: bool,
    /// How many f32 have the size of one of its numbers.
    pub width: f64,
    /// Places that data name, for each operation.
    pub places: f64,
}

impl Rates {
    /// The rates of one core of a processor of about 2020. Forms are chosen by these where no machine's are given, so that a plan does not depend on
    /// the machine on which it is made.
    pub const TYPICAL: Rates = Rates {
        operation: 1.2e-11,
        touched: 6.0e-11,
        tuple: 3.0e-6,
        element: 1.2e-10,
        place: 2.0e-9,
    };

    /// The rates of a machine of which only products, memory and tuples were measured: the others are in proportion to these, as those of
    /// [`Rates::TYPICAL`] are.
    pub fn of_products(operation: f64, touched: f64, tuple: f64) -> Rates {
        let typical = Rates::TYPICAL;
        Rates {
            operation,
            touched,
            tuple,
            element: operation * (typical.element / typical.operation),
            place: touched * (typical.place / typical.touched),
        }
    }

    /// Seconds of so many operations.
    pub fn of_operations(&self, pace: &Pace, operations: f64) -> f64 {
        let each = match pace.is_product {
            true => self.operation,
            false => self.element,
        };
        operations * (each * pace.width + self.place * pace.places)
    }

    /// Seconds of so many tuples, of which so many bytes are read and written.
    pub fn of_tuples(&self, touched: f64, tuples: usize) -> f64 {
        self.touched * touched + self.tuple * tuples as f64
    }
}

impl Pace {
    /// The pace of a kernel that does so many operations in all.
    pub fn of(kernel: &Kernel, operations: f64) -> Pace {
        let value = kernel.graph.dtype(kernel.root);
        let places = places(kernel);
        let multiplies = match kernel.library() {
            Some(library) => factorizes(library.operation),
            None => {
                let multiplied = || kernel.guard.is_none() || factors(kernel, false).is_some();
                places == 0.0 && kernel.is_product() && multiplied()
            }
        };
        Pace {
            is_product: multiplies && matches!(value, DType::F32 | DType::F64),
            width: value.size() as f64 / 4.0,
            places: places / operations.max(1.0),
        }
    }
}

/// Returns whether a library operation is mostly products of blocks of a matrix.
fn factorizes(operation: Function) -> bool {
    use Function::*;
    matches!(
        operation,
        Solve | Cholesky | Inv | Qr | Eigh | Svd | Logdet | Lu | Eig
    )
}

/// How many places a kernel goes to that its data name, in all: of reads, and of the output where the guard says where a point goes.
fn places(kernel: &Kernel) -> f64 {
    let graph = &kernel.graph;
    let mut of_data: Vec<bool> = vec![];
    for (_, node, _) in graph.iter() {
        let is_read = matches!(node, Node::Read { .. });
        let from_data = is_read || node.arguments().any(|id| of_data[id.0 as usize]);
        of_data.push(from_data);
    }
    let is_named = |id: &NodeId| of_data[id.0 as usize];
    let depends = graph.dependencies();
    let points = |indices: u128| -> f64 {
        let indices = (kernel.indices.iter().enumerate())
            .filter(|(at, _)| indices >> (*at).min(127) & 1 == 1);
        indices.map(|(_, index)| index.extent as f64).product()
    };
    let of_reads = graph.reads().filter_map(|(_, at)| {
        let named = at.iter().filter(|id| is_named(id));
        let indices = named.map(|id| depends[id.0 as usize]);
        indices.reduce(|all, indices| all | indices)
    });
    let solved = match kernel.guard {
        Some(_) => solved(kernel, &kernel.solved()).places,
        None => vec![],
    };
    let of_output = solved.iter().map(|(_, at)| at).filter(|at| is_named(at));
    let of_output = of_output.map(|at| points(depends[at.0 as usize]));
    let all = of_reads.map(points).chain(of_output);
    all.fold(0.0, |sum, places| sum + places)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_pace_of_a_kernel_follows_from_what_it_does() {
        for (text, is_product, places) in [
            (
                "(f32[9, 8], f32[8, 7]) [i: 9, j: 7 | k: 8] f32 = sum a0[i, k] * a1[k, j]",
                true,
                0.0,
            ),
            (
                "(f32[9, 8], f32[8, 7]) [i: 9, j: 7 | k: 8] f32 = max a0[i, k] * a1[k, j]",
                false,
                0.0,
            ),
            ("(f32[9]) [i: 9] f32 = exp(a0[i])", false, 0.0),
            // One look-up for each i, whatever j is.
            (
                "(f32[9, 8], i64[5]) [i: 5, j: 8] f32 = a0[a1[i], j]",
                false,
                5.0,
            ),
            // A look-up and a place in the output for each e.
            (
                "(f32[6], f32[8, 7], i64[6], i64[6]) [i: 9, j: 7 | e: 6] f32 = sum a0[e] * a1[a2[e], j] if i == a3[e]",
                false,
                12.0,
            ),
            (
                "(f64[40, 40], f64[40]) [i: 40] f64 = solve(a0[:1, :2], a1[:1], i)",
                true,
                0.0,
            ),
        ] {
            let kernel: Kernel = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let pace = Pace::of(&kernel, 100.0);
            assert_eq!(
                (pace.is_product, pace.places * 100.0),
                (is_product, places),
                "{text}"
            );
        }
    }

    #[test]
    fn time_is_that_of_operations_and_places() {
        let rates = Rates {
            operation: 1.0,
            touched: 0.0,
            tuple: 0.0,
            element: 10.0,
            place: 100.0,
        };
        let product = Pace {
            is_product: true,
            width: 2.0,
            places: 0.0,
        };
        let gather = Pace {
            is_product: false,
            width: 1.0,
            places: 0.5,
        };
        assert_eq!(rates.of_operations(&product, 3.0), 6.0);
        assert_eq!(rates.of_operations(&gather, 2.0), 120.0);
    }
}
