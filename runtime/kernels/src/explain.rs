//! What is wrong at a faulty point.
//!
//! Must not know how the point was found.
//!
//! ```text
//! point [3, 0]   ->   operand 1, dimension 0, position 8 of 8
//! ```

use crate::machine::Machine;
use crate::program::{Program, Request};
use crate::{Chunk, KernelError};
use ein_plan::Kernel;

/// Evaluates a faulty point again, alone, to find out what is wrong there.
pub(crate) fn explain(kernel: &Kernel, operands: &[Chunk<'_>], point: Vec<i64>) -> KernelError {
    let ranges: Vec<(i64, i64)> = point.iter().map(|p| (*p, 1)).collect();
    let lengths = vec![1; ranges.len()];
    let request = Request::of_kernel(kernel, operands, (&[], &[]), &ranges, &lengths);
    let program = Program::new(&Request {
        reduction: None,
        ..request
    });
    let mut machine = Machine::new(&program, point.clone(), true);
    machine.execute(0);
    let fault = program
        .guard
        .and_then(|guard| machine.traced(guard))
        .or_else(|| machine.traced(program.root))
        .expect("the point was found to be faulty");
    KernelError {
        fault,
        point: point.iter().map(|p| *p as u64).collect(),
    }
}
