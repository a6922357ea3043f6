//! Training of built programs: the lines of a `train` block.
//!
//! Must not know gradients or how steps are run.
//!
//! ```text
//! train {
//!   loss: ce
//!   data: (X, y) over N by 64 shuffle
//!   epochs: 3
//!   optimizer: adamw(lr: 0.01)
//! }
//! ```

use super::{Dim, Expr, Tensor, expression::listed};

/// A `train` block that is being built.
#[derive(Clone, Debug)]
pub struct Train {
    lines: Vec<String>,
}

impl Train {
    /// Trains all params that the loss depends on.
    pub fn new(loss: &Tensor) -> Train {
        Train {
            lines: vec![format!("loss: {}", loss.name())],
        }
    }

    /// `data: (X, y) over N by 64`: the tensors with the batched dim, and the rows of a batch; shuffled, or in order.
    pub fn data(self, tensors: &[&Tensor], over: &Dim, batch: u64, shuffle: bool) -> Train {
        let names = listed(tensors.iter().map(|tensor| tensor.name()));
        let (over, shuffle) = (Expr::from(over), if shuffle { " shuffle" } else { "" });
        self.line(format!("data: ({names}) over {over} by {batch}{shuffle}"))
    }

    /// `epochs: 3`.
    pub fn epochs(self, epochs: u64) -> Train {
        self.setting("epochs", Expr::from(epochs as i64))
    }

    /// `optimizer: adamw(lr: 0.01)`; see [`super::named`].
    pub fn optimizer(self, rule: Expr) -> Train {
        self.setting("optimizer", rule)
    }

    /// `strategy: ist(local_steps: 10)`.
    pub fn strategy(self, strategy: Expr) -> Train {
        self.setting("strategy", strategy)
    }

    /// Any other line: `clip: 1.0`, `schedule: cosine(floor: 0.1)`.
    pub fn setting(self, key: &str, value: impl Into<Expr>) -> Train {
        let value = value.into();
        self.line(format!("{key}: {value}"))
    }

    fn line(mut self, line: String) -> Train {
        self.lines.push(line);
        self
    }

    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| format!("  {line}\n"))
            .collect();
        format!("train {{\n{}}}", lines.concat())
    }
}
