//! Programs made by calls in place of a text: dims, inputs, params, definitions, rounds, training and outputs.
//!
//! A builder writes the lines of the language, and [`Program::load`] reads them as any other text: everything that the language
//! checks is checked, and a message about a built program shows the line that is wrong. Must not know sizes or types.
//!
//! ```text
//! let x = program.input("x", DType::F32, [&n]);
//! let y = program.define("y", [&i], 2 * x.at([&i]));
//!   =>   input x: f32[N]
//!        y[i] = 2 * x[i]
//! ```

mod expression;
mod rounds;
mod training;

pub use expression::{Dim, Expr, Index, Tensor, call, index, named, reduce, select, sum};
pub use rounds::Rounds;
pub use training::Train;

use crate::sema::world::{self, Loaded, Place, World};
use ein_plan::DType;
use expression::{bracketed, listed};

/// A program that is being built.
#[derive(Clone, Debug, Default)]
pub struct Program {
    text: String,
}

impl Program {
    /// A program without a line.
    pub fn new() -> Program {
        Program::default()
    }

    /// `use std.nn`: its functions are then called by their paths, `call("nn.relu", [x])`.
    pub fn import(&mut self, library: &str) {
        self.line(&format!("use {library}"));
    }

    /// `dim N`: a size that follows from data.
    pub fn dim(&mut self, name: &str) -> Dim {
        self.line(&format!("dim {name}"));
        Dim::named(name)
    }

    /// `dim N = 4`.
    pub fn dim_of(&mut self, name: &str, size: impl Into<Expr>) -> Dim {
        self.line(&format!("dim {name} = {}", size.into()));
        Dim::named(name)
    }

    /// `const c = 0.5`.
    pub fn constant(&mut self, name: &str, value: impl Into<Expr>) -> Expr {
        self.line(&format!("const {name} = {}", value.into()));
        Expr::name(name)
    }

    /// `input x: f32[N]`: data that are bound when the program runs.
    pub fn input<S: Into<Expr>>(
        &mut self,
        name: &str,
        element: DType,
        shape: impl IntoIterator<Item = S>,
    ) -> Tensor {
        let shape = bracketed(shape);
        self.line(&format!("input {name}: {element}{shape}"));
        Tensor::named(name)
    }

    /// `param w: f32[D] = zeros`: `begins` is a source, such as `call("normal", [0.0, 0.02])`, or `Expr::name("zeros")`.
    pub fn param<S: Into<Expr>>(
        &mut self,
        name: &str,
        element: DType,
        shape: impl IntoIterator<Item = S>,
        begins: impl Into<Expr>,
    ) -> Tensor {
        let (shape, begins) = (bracketed(shape), begins.into());
        self.line(&format!("param {name}: {element}{shape} = {begins}"));
        Tensor::named(name)
    }

    /// `loss = value`: a scalar.
    pub fn scalar(&mut self, name: &str, value: impl Into<Expr>) -> Tensor {
        self.define(name, [] as [Expr; 0], value)
    }

    /// `y[i] = value`.
    pub fn define<I: Into<Expr>>(
        &mut self,
        name: &str,
        indices: impl IntoIterator<Item = I>,
        value: impl Into<Expr>,
    ) -> Tensor {
        self.line(&definition(name, indices, value));
        Tensor::named(name)
    }

    /// `repeat t < rounds { … }`. Returns the result of `body`: the states, which are seen after the block with their last values,
    /// and the definitions that collect a slice a round.
    pub fn repeat<R>(
        &mut self,
        counter: &str,
        rounds: impl Into<Expr>,
        body: impl FnOnce(&mut Rounds) -> R,
    ) -> R {
        let mut block = Rounds::default();
        let seen = body(&mut block);
        let text = block.text(counter, &rounds.into());
        self.line(&text);
        seen
    }

    /// A `train` block.
    pub fn train(&mut self, train: &Train) {
        self.line(&train.text());
    }

    /// `output y`.
    pub fn output(&mut self, tensor: &Tensor) {
        self.line(&format!("output {}", tensor.name()));
    }

    /// `output y -> "y.npy"`.
    pub fn output_to(&mut self, tensor: &Tensor, file: &str) {
        self.line(&format!("output {} -> {file:?}", tensor.name()));
    }

    /// The program as a text of the language.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the program, with the libraries of `world`. `name` is the name that messages give it.
    pub fn load(&self, name: &str, world: &dyn World) -> Loaded {
        let place = Place {
            name: name.to_owned(),
            path: name.into(),
            identity: name.into(),
        };
        world::load(world, place, self.text.clone())
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// `y[i] = value`.
fn definition<I: Into<Expr>>(
    name: &str,
    indices: impl IntoIterator<Item = I>,
    value: impl Into<Expr>,
) -> String {
    format!("{name}{} = {}", bracketed(indices), value.into())
}

/// The arguments of something that is called by its name.
fn settings<V: Into<Expr> + Clone>(values: &[(&str, V)]) -> String {
    let one = |(name, value): &(&str, V)| format!("{name}: {}", value.clone().into());
    listed(values.iter().map(one))
}
