//! Complex numbers: values of the types c64 and c128, which are pairs of real values.
//!
//! The checker has complex tensors and expressions like any others. No program has them: before one is put together, every complex tensor becomes
//! two real ones, and every complex expression two real expressions. Where data come from or go to, a complex tensor is one real tensor with a
//! last dimension of 2. Must not know syntax, nor what stands below the checked program.
//!
//! ```text
//! input z: c64[N]; w[i] = z[i] * z[i]; output w
//!   =>   z: f32[N, 2];  z.re[i] = z[i, 0];  z.im[i] = z[i, 1]
//!        w.re[i] = z.re[i] * z.re[i] - z.im[i] * z.im[i];  w.im[i] = z.re[i] * z.im[i] + z.im[i] * z.re[i]
//!        output w[i, p] = where(p == 0, w.re[i], w.im[i]) complex
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `types` | what may meet what, and which functions complex numbers have |
//! | `data` | inputs, params and sources |
//! | `fourier` | transforms, by those of two real tensors |
//! | `eigen` | eigenvalues and eigenvectors, by four real tensors |
//! | `value` | the parts of an expression |
//! | `functions` | the parts of functions, by formulas |
//! | `inverses` | those of tangents, of sigmoid, and of inverse functions |
//! | `derivatives` | gradients, Jacobians and derivatives along directions |
//! | `product` | products over indices, by halves |
//! | `tensors` | the parts of tensors, states and outputs |

pub(crate) mod data;
pub(crate) mod derivatives;
pub(crate) mod eigen;
pub(crate) mod fourier;
pub(crate) mod functions;
pub(crate) mod inverses;
pub(crate) mod product;
pub(crate) mod tensors;
pub(crate) mod types;
pub(crate) mod value;
