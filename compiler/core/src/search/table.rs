//! Tables of prices over variables.
//!
//! Must not know networks.
//!
//! ```text
//! x in 0..2, y in 0..2: price(x, y) = [[3, 1], [2, 4]]
//! ```

use std::rc::Rc;

/// A table of prices over some variables, the last one fastest; infinite where a combination is not allowed.
#[derive(Clone, Debug)]
pub struct Table {
    /// Different variables.
    pub variables: Vec<usize>,
    /// One price a combination.
    pub prices: Prices,
}

/// The entries of a table, with a number that equal entries may share.
#[derive(Clone, Debug)]
pub struct Prices {
    /// The entries.
    pub values: Rc<Vec<f64>>,
    /// Equal numbers mean equal entries.
    pub number: u64,
}
