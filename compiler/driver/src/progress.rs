//! What is told while a program trains: a line an epoch, and one for each validation.
//!
//! Must not know how steps are run.
//!
//! ```text
//! epoch 3/30, step 69/690: loss 0.41203
//! epoch 3/30, step 69/690: accuracy 0.9361
//! ```

use crate::exit;
use ein_exec::{Event, Session};
use std::sync::Mutex;

/// Loss over an epoch so far.
#[derive(Default)]
struct Sum {
    loss: f64,
    rows: u64,
}

/// Who is told of steps.
pub struct Records {
    /// By block: steps of an epoch.
    epochs: Vec<u64>,
    sum: Mutex<Sum>,
}

impl Records {
    /// Nothing told yet.
    pub fn new(session: &Session) -> Records {
        let epochs = session.blocks.iter();
        Records {
            epochs: epochs.map(|block| block.steps_per_epoch.max(1)).collect(),
            sum: Mutex::default(),
        }
    }

    /// Tells of one event, on standard error.
    pub fn tell(&self, event: &Event) {
        match event {
            Event::Step {
                block,
                step,
                steps,
                epoch,
                rows,
                loss,
                ..
            } => {
                let Ok(mut sum) = self.sum.lock() else {
                    return;
                };
                sum.loss += loss * *rows as f64;
                sum.rows += rows;
                let per_epoch = self.epochs.get(*block).copied().unwrap_or(1);
                if (step + 1) % per_epoch == 0 || step + 1 == *steps {
                    let mean = sum.loss / sum.rows.max(1) as f64;
                    let epochs = steps.div_ceil(per_epoch);
                    exit::complain(&format!(
                        "epoch {}/{epochs}, step {}/{steps}: loss {mean:.6}\n",
                        epoch + 1,
                        step + 1
                    ));
                    *sum = Sum::default();
                }
            }
            Event::Validated {
                step,
                epoch,
                name,
                value,
                ..
            } => exit::complain(&format!(
                "epoch {}, step {}: {name} {value:.6}\n",
                epoch + 1,
                step + 1
            )),
        }
    }
}
