//! Programs that go from memory to memory: what a point takes is one compiled group of neighbours, whose lanes need no register.
//!
//! Strips may then be as long as neighbours go on, and nothing is copied to the result. Bits are those of the strip machine. Must
//! not know how groups are compiled.
//!
//! ```text
//! [n, d] a0[n, d] - a1[] * a2[n, d]   over 4096 x 256:   16 strips of 65536 lanes, of one loop each
//! ```

use crate::compiled::Code;
use crate::drive::Driver;
use crate::fuse;
use crate::machine::Machine;
use crate::nest::Nest;
use crate::program::{Kind, Operation, Place, Program, Request};
use crate::segment::Segment;
use crate::{stream, wide};
use ein_fused::Group;
use ein_plan::{DType, Kernel};
use std::ops::Range;

/// The program of a request, which is all of a kernel, if it can go from memory to memory and `code` has its group's.
pub(crate) fn program(
    request: &Request<'static, '_>,
    places: &[Place],
    kernel: &Kernel,
    code: &mut dyn FnMut(&Group) -> Option<Code>,
) -> Option<Program<'static>> {
    let stored = *kernel.output.first()?;
    let points = (request.output.iter()).map(|index| request.lengths[*index].max(1) as u64);
    let bytes = points.product::<u64>() * stored.size() as u64;
    if request.reduction.is_some()
        || request.guard.is_some()
        || kernel.graph.dtype(kernel.root) != stored
        || !matches!(stored, DType::F32 | DType::F64)
        || bytes >= stream::FAR as u64
    {
        return None;
    }
    let nest = |reads: &[_], _| Nest::long(request.output, request.lengths, reads);
    let mut program = Program::around(request, places, nest)?;
    if !is_one_group(&program, kernel) {
        return None;
    }
    fuse::replace(&mut program, 1, code);
    program.direct = matches!(
        program.levels.last()?.last()?.kind,
        Kind::Fused(ref fused) if fused.outputs == [program.root]
    );
    program.direct.then_some(program)
}

/// Whether the innermost level is reads of neighbours and operations of one group, which end in the root.
fn is_one_group(program: &Program<'_>, kernel: &Kernel) -> bool {
    let Some(level) = program.levels.last() else {
        return false;
    };
    let number = program.value();
    let fits = |operation: &Operation| match &operation.kind {
        Kind::Read(read) => {
            let register = program.registers[operation.node as usize];
            let stored = kernel.operands[read.operand].columns[read.column];
            !operation.uniform && register.poison.is_none() && stored == number && read.is_inside()
        }
        Kind::Apply(..) => fuse::fits(operation, &program.registers)
            .is_some_and(|double| double.is_none_or(|double| double == (number == DType::F64))),
        _ => false,
    };
    let applied = |operation: &&Operation| matches!(operation.kind, Kind::Apply(..));
    level.iter().all(fits)
        && level.iter().filter(applied).count() <= fuse::MOST
        && level
            .last()
            .is_some_and(|last| last.node == program.root && applied(&last))
}

/// Some units of a driver's program, one after another, into their part of the result.
pub(crate) fn run(driver: &Driver<'_, '_>, units: Range<u64>, column: &mut Segment<'_>) {
    let program = driver.program();
    let Some((inner, outer)) = program.levels.split_last() else {
        return;
    };
    let mut machine: Machine<'_, '_> = driver.machine();
    let mut loops = driver.unit_loops();
    wide::execute(&mut machine, 0);
    loops.set(units.start);
    let (mut moved, mut at) = (0, 0);
    for _ in units {
        driver.place(&mut machine, &loops, moved);
        for level in moved + 1..outer.len() {
            wide::execute(&mut machine, level);
        }
        let lanes = machine.extents.lanes();
        match column {
            Segment::F32(to) => machine.through(inner, &mut to[at..at + lanes]),
            Segment::F64(to) => machine.through(inner, &mut to[at..at + lanes]),
            _ => unreachable!("a program is direct for results of floats"),
        }
        at += lanes;
        moved = loops.advance();
    }
}
