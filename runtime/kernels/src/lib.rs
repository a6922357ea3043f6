//! What one site computes on one chunk: kernels, combinations of carriers, free sources.
//!
//! [`execute`] evaluates any [`Kernel`] of a plan on ranges of its indices, by the loops that the plan says; [`combine()`] adds up the carriers of
//! a reduction that was split; [`generate()`] makes any box of a random or constant tensor. Everything uses
//! the rayon pool that it is called in, and no result depends on how many threads that pool has. Must not
//! know keys, sites, placements or files.
//!
//! ```text
//! run([i: 2 | k: 3] f32 = sum a0[i, k] * a1[k])  of  a0 = 1 2 3 4 5 6, a1 = 1 1 1   ->   6 15
//! ```

mod accumulate;
mod assemble;
mod blas;
mod boxes;
mod branches;
mod carrier;
mod column;
mod combine;
mod compiled;
mod contraction;
pub mod cores;
mod direct;
mod drive;
mod element;
mod explain;
mod fuse;
mod fused_rows;
mod generate;
mod grouped;
mod library;
mod line;
mod load;
mod looked;
mod lookup;
mod machine;
mod mapped;
mod math;
mod memo;
mod memory;
mod narrow;
mod nest;
mod odometer;
mod operations;
mod over;
mod pack;
mod packed;
mod pairwise_reduction;
mod parallel;
mod patched;
mod placed_matmul;
mod product;
mod program;
mod quotient;
mod rounds;
mod row_product;
mod rows;
mod scan;
mod scatter;
mod segment;
mod segment_reduce;
mod selection;
mod shelter;
mod store;
mod stream;
mod strided;
mod unary_epilogue;
mod update;
mod wide;
mod window;

pub use blas::{blas_in_use, load_blas};
pub use combine::combine;
pub use compiled::groups_compiled;
pub use ein_plan::{Fault, KernelError, Problem};
pub use fused_rows::{Member, Operand, execute_rows, fused_rows, fused_rows_over};
pub use generate::{generate, generate_in_round};
pub use mapped::Mapped;
pub use memo::Memo;
pub use memory::room;
pub use rounds::CompiledRounds;
pub use update::update;

use ein_array::Array;
use ein_plan::schedule::{Facts, choose};
use ein_plan::{Kernel, LoopKernel, LoopKind, Reduction};
use program::place_of;

/// An operand of one tuple: its columns and the global number at which each dimension begins.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    /// One array a column, all of one shape.
    pub columns: Vec<&'a Array>,
    /// Global start of each dimension.
    pub start: Vec<u64>,
}

/// How a kernel is run. The number of threads is the current rayon pool's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether results must be the same bits on any number of sites. On any number of threads they are in both settings; where it is set,
    /// what was cut is put together by [`combine()`] alone.
    pub deterministic: bool,
    /// Whether groups of cheap operations are compiled. The results are the same bits.
    pub fusion: Fusion,
}

/// When groups of cheap operations are compiled into one loop each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusion {
    /// When so much was run of them that it pays.
    #[default]
    WhenWorthwhile,
    /// At once, however few points and operations there are.
    Always,
    /// Never: the strip machine does everything.
    Never,
}

/// A kernel with the loops that compute it.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled<'a> {
    /// The kernel that is computed.
    pub kernel: &'a Kernel,
    /// By which loops; they are of this kernel, as the verifier of plans demands.
    pub loops: &'a LoopKernel,
}

/// The loops of a kernel that belongs to no plan.
pub fn schedule(kernel: &Kernel, ranges: &[(u64, u64)], operands: &[Chunk<'_>]) -> LoopKernel {
    let lengths = ranges.iter().map(|(_, n)| *n as usize).collect();
    choose(&Facts::new(
        kernel,
        lengths,
        operands.iter().map(place_of).collect(),
    ))
}

/// [`execute`] of a kernel that belongs to no plan.
///
/// # Errors
/// Those of [`execute`].
pub fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    options: &Options,
) -> Result<Vec<Array>, KernelError> {
    let loops = &schedule(kernel, ranges, operands);
    execute(Scheduled { kernel, loops }, ranges, operands, options, None)
}

/// Evaluates a kernel at `ranges` (start and length of each of its indices, in global numbers).
///
/// The result has one array for each of the kernel's output columns; their shape is the lengths of the output
/// indices. `operands[o]` holds the part of operand `o` that the ranges read; a cut dimension is read by a
/// bare index only. There are at most 127 indices. A kernel without a reduction leaves zeros where its guard fails. What can be kept for the
/// next time is in `memo`, which is this kernel's alone.
///
/// # Errors
/// The first faulty point, if an untaken branch or a failed guard does not hide it.
pub fn execute(
    Scheduled { kernel, loops }: Scheduled<'_>,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Vec<Array>, KernelError> {
    cores::large(ranges);
    if let (LoopKind::Library, Some(library)) = (&loops.kind, kernel.library()) {
        return library::run(kernel, &library, ranges, operands).map(|result| vec![result]);
    }
    let narrowed = (!loops.fixed.is_empty()).then(|| narrow::at(&loops.fixed, ranges, operands));
    let scheduled = Scheduled { kernel, loops };
    let some = narrowed.as_deref().unwrap_or(ranges);
    execute_some(scheduled, (some, ranges), operands, options, memo)
}

/// Start and length of each index.
pub(crate) type Ranges = [(u64, u64)];

/// [`execute`] at some of the points of `all`, of which there are as many every time.
fn execute_some(
    Scheduled { kernel, loops }: Scheduled<'_>,
    (ranges, all): (&Ranges, &Ranges),
    operands: &[Chunk<'_>],
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Vec<Array>, KernelError> {
    if let LoopKind::Lookup(indices) = &loops.kind
        && ranges.iter().all(|(_, n)| *n > 0)
        && let Some(result) = lookup::run(kernel, indices, ranges, operands, options.fusion)
    {
        return result;
    }
    if let LoopKind::Segments(form) = &loops.kind
        && ranges.iter().all(|(_, n)| *n > 0)
        && let Some(result) = segment_reduce::run(kernel, form, ranges, operands)
    {
        return chosen(kernel, ranges, result?);
    }
    if let Some(result) = looped(kernel, &loops.kind, ranges, operands) {
        return Ok(result);
    }
    let result = drive::run(kernel, (ranges, all), operands, options.fusion, memo)?;
    chosen(kernel, ranges, result)
}

/// The result, or a fault where `argmax` or `argmin` found nothing to choose from.
fn chosen(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    result: Vec<Array>,
) -> Result<Vec<Array>, KernelError> {
    match nothing_chosen(kernel, ranges, &result) {
        Some(point) => Err(KernelError {
            fault: Fault::NothingToChoose,
            point,
        }),
        None => Ok(result),
    }
}

/// The result of a kernel by loops that are not strips. `None` where strips are the loops, or take over: there is no point, one faults, or a number
/// is no ordinary one.
fn looped(
    kernel: &Kernel,
    kind: &LoopKind,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    if ranges.iter().any(|(_, n)| *n == 0) {
        return None;
    }
    let product = |form| contraction::run(kernel, form, ranges, operands);
    match kind {
        LoopKind::Scatter(indices) => scatter::run(kernel, indices, ranges, operands),
        LoopKind::Scan(scan) => scan::run(kernel, scan, ranges, operands),
        LoopKind::Grouped(grouped) => grouped::run(kernel, grouped, ranges, operands),
        LoopKind::RowReduce(_) => rows::run(kernel, ranges, operands),
        LoopKind::RowProduct => row_product::run(kernel, ranges, operands),
        LoopKind::Patched => patched::run(kernel, ranges, operands),
        LoopKind::Selection => selection::run(kernel, ranges, operands),
        LoopKind::GatheredSum => scatter::gathered(kernel, ranges, operands),
        LoopKind::GatheredMatmul | LoopKind::ScatteredMatmul => {
            placed_matmul::run(kernel, ranges, operands)
        }
        LoopKind::Matmul(form) => Some(vec![product(form)?]),
        LoopKind::Pairwise(form) if pairwise_reduction::leaves_to_blas(form) => {
            Some(vec![product(form.product.as_deref()?)?])
        }
        LoopKind::Pairwise(form) => Some(vec![pairwise_reduction::run(
            kernel, form, ranges, operands,
        )?]),
        LoopKind::Library
        | LoopKind::Elementwise
        | LoopKind::Gather
        | LoopKind::Lookup(_)
        | LoopKind::Segments(_)
        | LoopKind::Inlined
        | LoopKind::Strips => None,
    }
}

/// Adds what [`execute`] gives of a sum of products of matrices to `sum`, which is of its shape and type, without an array in between; whether it
/// has: else nothing is changed, and [`combine()`] does it. The bits may be others than those of [`combine()`], so nothing is added where
/// results must not depend on how a sum was cut.
pub fn add(
    Scheduled { kernel, loops }: Scheduled<'_>,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    sum: &mut Array,
    options: &Options,
) -> bool {
    cores::large(ranges);
    let form = match &loops.kind {
        LoopKind::Matmul(form) => Some(form),
        LoopKind::Pairwise(form) => form.product.as_deref(),
        _ => None,
    };
    let add = |form| contraction::add(kernel, form, ranges, operands, sum);
    !options.deterministic && form.is_some_and(add)
}

/// [`execute`] of a kernel whose result may take the memory of its operand `over` ([`Kernel::may_overwrite`]), of which `old` is the part at
/// `ranges`, and the chunk among the operands has no columns. It does take it if the result has that part's shape and type.
///
/// # Errors
/// Those of [`execute`].
pub fn run_over(
    scheduled: Scheduled<'_>,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    (over, old): (usize, Array),
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Vec<Array>, KernelError> {
    cores::large(ranges);
    let kernel = scheduled.kernel;
    let old = match scheduled.loops.kind {
        LoopKind::Patched => match patched::run_over(kernel, ranges, operands, (over, old)) {
            Ok(made) => return Ok(vec![made]),
            Err(old) => old,
        },
        _ => old,
    };
    let old = match over::run(kernel, ranges, operands, (over, old), options, memo)? {
        Ok(made) => return Ok(vec![made]),
        Err(old) => old,
    };
    let mut operands = operands.to_vec();
    operands[over].columns = vec![&old];
    execute(scheduled, ranges, &operands, options, memo)
}

/// Ranges as signed numbers.
fn signed(ranges: &[(u64, u64)]) -> Vec<(i64, i64)> {
    ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect()
}

/// The first output point at which a finished `argmax` or `argmin` found nothing to choose from.
fn nothing_chosen(kernel: &Kernel, ranges: &[(u64, u64)], result: &[Array]) -> Option<Vec<u64>> {
    if !kernel.finish || !kernel.reduction.is_some_and(Reduction::is_arg) {
        return None;
    }
    let indices = result.first()?.data();
    let mut number = (0..indices.len()).position(|at| indices.get(at).as_f64() < 0.0)? as u64;
    let mut point = vec![0; kernel.output_rank as usize];
    for (slot, (start, length)) in point.iter_mut().zip(ranges).rev() {
        *slot = start + number % length;
        number /= length;
    }
    Some(point)
}
