//! Sums: where the text leaves one out, reductions that it writes, and scatters, which are sums over what goes to one place.
//!
//! Must not know kernels.
//!
//! ```text
//! y[n] = X[n,d] * w[d]   =>   y[n] = sum[d] X[n,d] * w[d]
//! ```

pub(crate) mod implicit;
pub(crate) mod rearrange;
pub(crate) mod reduce;
pub(crate) mod scatter;
