//! Independent subnets: which indices of a program count neurons, and the program of a net that has some of the neurons.
//!
//! A *neuron index* is made by one weight, goes through element-wise functions and statistics of each neuron, and is
//! contracted with another weight. If it runs over some of the neurons only, the program is that of a smaller net, and its
//! params are blocks of the larger one's. Must not know surface syntax, sites, or how blocks are chosen and moved.
//!
//! `classes` says which dimensions go together, `recognise` which of them are neurons and why others cannot be cut, `sums` what becomes of sums over them, `weights` what weights are made of, `cut` makes the smaller program,
//! `volume` counts what blocks hold and cost.
//!
//! ```text
//! a[n,k] = sum x[n,d] W1[d,k];  h[n,k] = relu a[n,k];  z[n,c] = sum h[n,k] W2[k,c]
//!   =>   neurons k of W1: W1 (dim 1), W2 (dim 0)
//! ```

mod classes;
mod cut;
mod recognise;
mod sums;
pub mod volume;
mod weights;

pub use cut::{blocks, cut};
pub use recognise::{Asked, Failure, Found, recognise};

/// Neurons of one layer: an index of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neurons {
    /// The param that makes them; unique among layers.
    pub name: String,
    /// How many there are.
    pub size: u64,
    /// Params that have them, with the dimension.
    pub params: Vec<(String, usize)>,
}
