//! Programs of kernels: strips, or from memory to memory where what a point takes is one compiled group of neighbours, or one curve.
//!
//! Lanes then need no register, strips may be as long as neighbours go on, and nothing is copied to the result. Bits are those of the
//! strip machine. Must not know how programs are run.
//!
//! ```text
//! [n, d] a0[n, d] - a1[] * a2[n, d]   over 4096 x 256:   16 strips of 65536 lanes, of one loop each
//! ```

use crate::compiled::{self, Code};
use crate::memo::Ready;
use crate::nest::Nest;
use crate::program::{Kind, Operation, Program, Request};
use crate::{Fusion, fuse, unary_epilogue};
use ein_fused::Group;
use ein_plan::schedule::access::Place;
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
    let Some(mut asked) = Asked::of(points, runs, fusion) else {
        return (Program::at(&request, places), true);
    };
    let mut code = |group: &Group| asked.code(group);
    if let Some(program) = through(&request, places, (kernel, &[kernel.root]), &mut code) {
        return (program, true);
    }
    let mut program = Program::at(&request, places);
    let fewest = if fusion == Fusion::Always {
        1
    } else {
        fuse::FEWEST
    };
    fuse::replace(&mut program, fewest, &mut code);
    (program, asked.complete)
}

/// The code that a program asks for.
struct Asked {
    points: u64,
    fusion: Fusion,
    /// Whether there was code for every group so far.
    complete: bool,
}

impl Asked {
    /// For so many runs over so many points each; none if nothing is to be compiled.
    fn of(points: u64, runs: u64, fusion: Fusion) -> Option<Asked> {
        let few = fusion == Fusion::WhenWorthwhile && points < compiled::FEWEST_POINTS;
        (fusion != Fusion::Never && !few).then(|| Asked {
            points: points.saturating_mul(runs),
            fusion,
            complete: true,
        })
    }

    fn code(&mut self, group: &Group) -> Option<Code> {
        let code = compiled::code(group, self.points, self.fusion);
        self.complete &= code.is_some();
        code
    }
}

/// Element-wise kernels in one, over ranges that are gone through in parts of these lengths.
pub(crate) struct Several<'a> {
    /// Its root is one of the results.
    pub kernel: &'a Kernel,
    /// What is computed, ascending: the columns stand in this order.
    pub results: &'a [NodeId],
    pub ranges: &'a [(i64, i64)],
    pub lengths: &'a [usize],
    /// Where its operands lie.
    pub places: &'a [Place],
}

impl Several<'_> {
    /// Its program, made for so many runs, if it can go from memory to memory and there is code for it; else one that is not direct.
    pub(crate) fn ready(&self, runs: u64, fusion: Fusion) -> Ready {
        let lengths = self.ranges.iter().map(|(_, n)| *n as u64);
        let points = lengths.fold(1, u64::saturating_mul);
        let output: Vec<usize> = (0..self.ranges.len()).collect();
        let request = self.request(&output);
        let mut asked = Asked::of(points, runs, fusion);
        let kernel = (self.kernel, self.results);
        let program = asked.as_mut().and_then(|asked| {
            through(&request, self.places, kernel, &mut |group| {
                asked.code(group)
            })
        });
        let complete = program.is_some() || asked.is_none_or(|asked| asked.complete);
        Ready {
            program: program.unwrap_or_else(|| Program::at(&request, self.places)),
            parts: None,
            complete,
        }
    }

    fn request<'r>(&'r self, output: &'r [usize]) -> Request<'static, 'r> {
        Request::of_kernel(self.kernel, &[], (output, &[]), self.ranges, self.lengths)
    }
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
    let nest = |reads: &[_]| Nest::long(request.output, request.lengths, reads, request.apart);
    let mut program = Program::straight(request, places, results, nest)?;
    let beside = is_beside(&program, kernel);
    if beside && results == [kernel.root] && unary_epilogue::alone(&mut program) {
        program.direct = true;
        return Some(program);
    }
    if !beside || !is_one_group(&program, results) {
        return None;
    }
    fuse::replace(&mut program, 1, code);
    let last = program.levels.last()?.last()?;
    program.direct =
        matches!(last.kind, Kind::Fused(ref fused) if fused.outputs.len() == results.len());
    program.direct.then_some(program)
}

/// Whether all reads of the innermost level are of neighbours as they lie.
fn is_beside(program: &Program<'_>, kernel: &Kernel) -> bool {
    let number = program.value();
    let mut level = program.levels.last().into_iter().flatten();
    level.all(|operation| match &operation.kind {
        Kind::Read(read) => {
            let register = program.registers[operation.node as usize];
            let stored = kernel.operands[read.operand].columns[read.column];
            !operation.uniform && register.poison.is_none() && stored == number && read.is_inside()
        }
        _ => true,
    })
}

/// Whether the operations of the innermost level but for reads are those of one group, the results among them.
fn is_one_group(program: &Program<'_>, results: &[NodeId]) -> bool {
    let Some(level) = program.levels.last() else {
        return false;
    };
    let number = program.value();
    let fits = |operation: &Operation| match &operation.kind {
        Kind::Read(_) => true,
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
