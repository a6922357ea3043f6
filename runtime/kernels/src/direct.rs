//! Programs of kernels: strips, or from memory to memory where what a point takes is one compiled group of neighbours.
//!
//! Lanes then need no register, strips may be as long as neighbours go on, and nothing is copied to the result. Bits are those of the
//! strip machine. Must not know how programs are run.
//!
//! ```text
//! [n, d] a0[n, d] - a1[] * a2[n, d]   over 4096 x 256:   16 strips of 65536 lanes, of one loop each
//! ```

use crate::compiled::{self, Code};
use crate::nest::Nest;
use crate::program::{Kind, Operation, Place, Program, Request};
use crate::{Fusion, fuse, stream};
use ein_fused::Group;
use ein_plan::{DType, Kernel, NodeId};

/// The program of a request, which is all of a kernel, of operands at these places, with compiled groups where they are worth it for
/// so many runs over so many points each; and whether no group is left that may be compiled later.
pub(crate) fn program(
    request: &Request<'_, '_>,
    places: &[Place],
    kernel: &Kernel,
    (points, runs): (u64, u64),
    fusion: Fusion,
) -> (Program<'static>, bool) {
    let request = Request {
        operands: &[],
        ..*request
    };
    let few = fusion == Fusion::WhenWorthwhile && points < compiled::FEWEST_POINTS;
    if fusion == Fusion::Never || few {
        return (Program::at(&request, places), true);
    }
    let points = points.saturating_mul(runs);
    let mut complete = true;
    let mut code = |group: &Group| {
        let code = compiled::code(group, points, fusion);
        complete &= code.is_some();
        code
    };
    if !is_far(&request, kernel)
        && let Some(program) = through(&request, places, (kernel, &[kernel.root]), &mut code)
    {
        return (program, true);
    }
    let mut program = Program::at(&request, places);
    let fewest = if fusion == Fusion::Always {
        1
    } else {
        fuse::FEWEST
    };
    fuse::replace(&mut program, fewest, &mut code);
    (program, complete)
}

/// The program of a kernel with several results, as of [`program`], if it can go from memory to memory and there is code for it; else one
/// that is not direct. The results' columns are those of `results` in ascending order.
pub(crate) fn several(
    request: &Request<'static, '_>,
    places: &[Place],
    (kernel, results): (&Kernel, &[NodeId]),
    (points, runs): (u64, u64),
    fusion: Fusion,
) -> (Program<'static>, bool) {
    let few = fusion == Fusion::WhenWorthwhile && points < compiled::FEWEST_POINTS;
    let mut complete = true;
    let mut code = |group: &Group| {
        let code = compiled::code(group, points.saturating_mul(runs), fusion);
        complete &= code.is_some();
        code
    };
    let tried = fusion != Fusion::Never && !few;
    let program = tried.then(|| through(request, places, (kernel, results), &mut code));
    match program.flatten() {
        Some(program) => (program, true),
        None => (Program::at(request, places), complete),
    }
}

/// The group of a kernel with several results over all of its indices, its operands lying at these places.
pub(crate) fn group_of_several(
    (kernel, results): (&Kernel, &[NodeId]),
    ranges: &[(i64, i64)],
    places: &[Place],
) -> Option<Group> {
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let output: Vec<usize> = (0..ranges.len()).collect();
    let request = Request::of_kernel(kernel, &[], (&output, &[]), ranges, &lengths);
    let mut found = None;
    let mut note = |group: &Group| {
        found = Some(group.clone());
        None
    };
    // Without code it is none.
    let _none = through(&request, places, (kernel, results), &mut note);
    found
}

/// The groups of a kernel over these ranges of its indices, its operands lying at these ranges of theirs.
pub(crate) fn groups(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Vec<(u64, u64)>],
) -> Vec<Group> {
    let rank = kernel.output_rank as usize;
    let ranges: Vec<(i64, i64)> = ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect();
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let output: Vec<usize> = (0..rank).collect();
    let reduced: Vec<usize> = (rank..ranges.len()).collect();
    let axes = (output.as_slice(), reduced.as_slice());
    let request = Request::of_kernel(kernel, &[], axes, &ranges, &lengths);
    let places: Vec<Place> = operands.iter().map(|ranges| Place::new(ranges)).collect();
    let mut found = vec![];
    let mut note = |group: &Group| {
        if !found.contains(group) {
            found.push(group.clone());
        }
        None
    };
    // Without code it is none; its group may be one of its own, as its strips are.
    let _none = through(&request, &places, (kernel, &[kernel.root]), &mut note);
    fuse::replace(&mut Program::at(&request, &places), fuse::FEWEST, &mut note);
    found
}

/// Whether the result of a request, which is all of a kernel, stays in no cache: strips can be written past them.
fn is_far(request: &Request<'_, '_>, kernel: &Kernel) -> bool {
    let points = (request.output.iter()).map(|index| request.lengths[*index].max(1) as u64);
    let size = kernel
        .output
        .first()
        .map_or(0, |stored| stored.size() as u64);
    points.product::<u64>() * size >= stream::FAR as u64
}

/// The program of a request, which is all of a kernel, if it can go from memory to memory and `code` has its group's.
fn through(
    request: &Request<'static, '_>,
    places: &[Place],
    (kernel, results): (&Kernel, &[NodeId]),
    code: &mut dyn FnMut(&Group) -> Option<Code>,
) -> Option<Program<'static>> {
    let stored = *kernel.output.first()?;
    if request.reduction.is_some()
        || request.guard.is_some()
        || kernel.graph.dtype(kernel.root) != stored
        || !matches!(stored, DType::F32 | DType::F64)
    {
        return None;
    }
    let nest = |reads: &[_]| Nest::long(request.output, request.lengths, reads);
    let mut program = Program::straight(request, places, results, nest)?;
    if !is_one_group(&program, kernel, results) {
        return None;
    }
    fuse::replace(&mut program, 1, code);
    let last = program.levels.last()?.last()?;
    program.direct =
        matches!(last.kind, Kind::Fused(ref fused) if fused.outputs.len() == results.len());
    program.direct.then_some(program)
}

/// Whether the innermost level is reads of neighbours and operations of one group, the results among them.
fn is_one_group(program: &Program<'_>, kernel: &Kernel, results: &[NodeId]) -> bool {
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
    let made = |result: &NodeId| {
        let mut applied = level.iter().filter(applied);
        applied.any(|operation| operation.node == result.0)
    };
    level.iter().all(fits)
        && level.iter().filter(applied).count() <= fuse::MOST
        && results.iter().all(made)
}
