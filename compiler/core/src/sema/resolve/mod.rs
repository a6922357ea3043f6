//! Names, and the walk over all text that says what each stands for and in which order items are checked.
//!
//! Must not know sizes or types.
//!
//! ```text
//! y[n] = relu(X[n,d] * w[d] + b)     bound n, implicit d, uses X w b
//! ```

pub(crate) mod body_order;
pub(crate) mod counted;
pub(crate) mod cycles;
pub(crate) mod forms;
pub(crate) mod item_order;
pub(crate) mod names;
pub(crate) mod shapes;
pub(crate) mod static_scope;
pub(crate) mod unknown;
pub(crate) mod walk;
pub(crate) mod walk_call;
pub(crate) mod walk_repeat;
