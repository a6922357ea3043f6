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

#[test]
fn steps_and_epochs_are_counted_as_the_progress_counts_them() {
    let text = regression(
        "far = mean[n] (z[n] - 1e6)^2\n\
         train { loss: far; data: X over N by 8; steps: 5; optimizer: sgd(lr: 1e30) }",
    );
    let error = attempt(&text, 2).err().expect("it went on");
    assert!(
        error.message.contains("at step 2 (epoch 1): "),
        "{}",
        error.message
    );
    let after = text.replace(
        "train {",
        "train { loss: far; data: X over N by 8; steps: 1; optimizer: sgd(lr: 1e-9) }\ntrain {",
    );
    let error = attempt(&after, 1).err().expect("it went on");
    assert!(
        error
            .message
            .contains("at step 2 (epoch 1) of its `train` block: "),
        "{}",
        error.message
    );
}
