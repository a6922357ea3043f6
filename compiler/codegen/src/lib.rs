//! Turns an encoded bundle into an executable: a copy of this process's own, with the bundle behind it.
//!
//! A built program is einc itself, which finds that it carries a bundle and runs that. So nothing is linked, and
//! no compiler is needed. Must not know what a bundle holds.
//!
//! ```text
//! einc + bundle -> ./model        ./model: own_payload() -> the bundle        einc: own_payload() -> none
//! ```

mod executable;
mod payload;
pub mod shim;

pub use executable::build;
pub use payload::own_payload;
