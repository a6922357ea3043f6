//! The time of a program at one site, to which nothing moves.
//!
//! Inputs are taken to be written once, and statements of loops to be computed as often as these have rounds. Must not know forms of tensors.
//!
//! ```text
//! C: f32[512, 512] = [i: 512, j: 512 | k: 512] sum A[i, k] * B[k, j]   ->   0.0036 s
//! ```

use super::choice::choice;
use super::mesh::AXES;
use super::problem::{Kind, Problem};
use crate::cost::Rates;
use crate::einsum::Program;
use crate::ia::layout::StatementRole;

/// Seconds that one site takes for a program, by its rates.
pub fn seconds_alone(program: &Program, rates: &Rates) -> f64 {
    let problem = Problem::new(program);
    let of_tensor = |(at, tensor): (usize, &super::problem::Tensor)| match &tensor.kind {
        Kind::Loaded => rates.touched * tensor.floats * tensor.width,
        Kind::Kept | Kind::Free => 0.0,
        Kind::Made(statement) => {
            let whole = [StatementRole::Every; AXES];
            let choice = choice(&problem, at, statement, [1; AXES], whole);
            rates.of_operations(&choice.pace, choice.load)
                + tensor.times * rates.of_tuples(choice.touched, choice.needs.len() + 1)
        }
    };
    problem.tensors.iter().enumerate().map(of_tensor).sum()
}
