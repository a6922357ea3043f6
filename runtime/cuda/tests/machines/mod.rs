//! The GPU that the tests run on: the emulated one, or with `EIN_DEVICE=gpu` the first of this machine.

use ein_cuda::{Emulated, Gpu};
use std::sync::Arc;

/// A device that has done nothing yet.
pub fn gpu() -> Gpu {
    match std::env::var("EIN_DEVICE").as_deref() {
        Ok("gpu") => {
            ein_cuda::nvidia(0, &Arc::default())
                .unwrap_or_else(|why| panic!("{why}"))
                .0
        }
        _ => Gpu::new(Arc::new(Emulated::new().unwrap())),
    }
}
