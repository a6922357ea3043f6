//! Rounds of built programs: the body of a `repeat`.
//!
//! Must not know how rounds are run.
//!
//! ```text
//! repeat t < 9 until x < 1 {
//!   state x = 100.0
//!   next x = x / 2
//! }
//! ```

use super::{Expr, Tensor, definition};

/// The body of a `repeat` that is being built.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    lines: Vec<String>,
    until: Option<Expr>,
}

impl Rounds {
    /// `state h[n] = begins`: it has the value of its `next` in the round that follows.
    pub fn state<I: Into<Expr>>(
        &mut self,
        name: &str,
        indices: impl IntoIterator<Item = I>,
        begins: impl Into<Expr>,
    ) -> Tensor {
        let line = definition(name, indices, begins);
        self.lines.push(format!("state {line}"));
        Tensor::named(name)
    }

    /// `next h[n] = value`. Returns the tensor of the next values, which other lines of the round may read.
    pub fn next<I: Into<Expr>>(
        &mut self,
        state: &Tensor,
        indices: impl IntoIterator<Item = I>,
        value: impl Into<Expr>,
    ) -> Tensor {
        let line = definition(state.name(), indices, value);
        self.lines.push(format!("next {line}"));
        Tensor::named(&format!("next {}", state.name()))
    }

    /// `length = value`: a scalar, made anew in every round.
    pub fn scalar(&mut self, name: &str, value: impl Into<Expr>) -> Tensor {
        self.define(name, [] as [Expr; 0], value)
    }

    /// `y[n] = value`, made anew in every round. With the counter among the indices it collects the slices of all rounds.
    pub fn define<I: Into<Expr>>(
        &mut self,
        name: &str,
        indices: impl IntoIterator<Item = I>,
        value: impl Into<Expr>,
    ) -> Tensor {
        self.lines.push(definition(name, indices, value));
        Tensor::named(name)
    }

    /// Ends the rounds behind the first one after which the condition holds.
    pub fn until(&mut self, condition: Expr) {
        self.until = Some(condition);
    }

    pub(super) fn text(&self, counter: &str, rounds: &Expr) -> String {
        let until = self.until.as_ref();
        let until = until.map_or(String::new(), |until| format!(" until {until}"));
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| format!("  {line}\n"))
            .collect();
        format!(
            "repeat {counter} < {rounds}{until} {{\n{}}}",
            lines.concat()
        )
    }
}
