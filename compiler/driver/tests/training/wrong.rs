//! Runs that stop.
//!
//! ```text
//! exp of something large   ->   E0801, the step, the tensor
//! ```

use crate::{attempt, regression};

#[test]
fn a_loss_that_is_not_finite_names_the_step_and_the_first_bad_tensor() {
    let text = regression(
        "grown[n] = exp(200 * z[n] * z[n])\nsteep = mean[n] grown[n]\n\
         train { loss: steep; data: X over N by 8; epochs: 5; optimizer: sgd(lr: 100) }",
    );
    for sites in 1..=3 {
        let Err(error) = attempt(&text, sites) else {
            panic!("it went on");
        };
        assert_eq!(error.code, "E0801");
        assert!(error.message.contains("at step"), "{}", error.message);
        assert!(error.tensor.is_some(), "{}", error.message);
    }
}
