//! The strip interpreter compiled three times: for any processor, and for those with AVX2 or AVX-512.
//!
//! All give the same bits: no operation is contracted or reordered. Must not know what is executed.
//!
//! ```text
//! execute(machine, 3)   on AVX-512: 16 lanes an instruction, on AVX2: 8, else 4
//! ```
#![allow(unsafe_code)]

use crate::accumulate::Accumulator;
use crate::drive::Driver;
use crate::machine::Machine;
use crate::segment::Segment;

/// Work that is compiled for each kind of processor.
pub(crate) trait Job {
    /// What comes of it.
    type Output;
    /// Does it; inlined, with all that it calls.
    fn run(self) -> Self::Output;
}

/// Does a job in the widest instructions.
#[inline]
pub(crate) fn run<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the processor has these instructions.
        return unsafe { run_avx512(job) };
    } else if has_avx2() {
        // SAFETY: the processor has these instructions.
        return unsafe { run_avx2(job) };
    }
    job.run()
}

/// Whether vectors have 32 bytes or more.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_wide() -> bool {
    has_avx2()
}

/// Whether vectors have 64 bytes.
pub(crate) fn has_widest() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Executes one level of a machine's program.
#[inline]
pub(crate) fn execute(machine: &mut Machine<'_, '_>, level: usize) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the processor has these instructions.
        return unsafe { execute_avx512(machine, level) };
    } else if has_avx2() {
        // SAFETY: the processor has these instructions.
        return unsafe { execute_avx2(machine, level) };
    }
    machine.execute_here(level);
}

/// Adds the present strip to the accumulator.
#[inline]
pub(crate) fn accumulate(
    driver: &Driver<'_, '_>,
    machine: &Machine<'_, '_>,
    accumulator: &mut Accumulator,
) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the processor has these instructions.
        return unsafe { accumulate_avx512(driver, machine, accumulator) };
    } else if has_avx2() {
        // SAFETY: the processor has these instructions.
        return unsafe { accumulate_avx2(driver, machine, accumulator) };
    }
    driver.accumulate_here(machine, accumulator);
}

struct Runs<'r, 'p, 'a, 'm, 'c, 's> {
    driver: &'r Driver<'p, 'a>,
    machine: &'r Machine<'m, 'a>,
    accumulator: &'r mut Accumulator,
    to: (&'c mut [Segment<'s>], usize),
}

impl Job for Runs<'_, '_, '_, '_, '_, '_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Runs {
            driver,
            machine,
            accumulator,
            to,
        } = self;
        driver.accumulate_runs_here(machine, accumulator, to);
    }
}

/// Reduces each run of lanes of the present strip into a result, from an element of the columns on.
#[inline]
pub(crate) fn accumulate_runs<'a>(
    driver: &Driver<'_, 'a>,
    machine: &Machine<'_, 'a>,
    accumulator: &mut Accumulator,
    to: (&mut [Segment<'_>], usize),
) {
    run(Runs {
        driver,
        machine,
        accumulator,
        to,
    });
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<J: Job>(job: J) -> J::Output {
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn run_avx512<J: Job>(job: J) -> J::Output {
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn execute_avx2(machine: &mut Machine<'_, '_>, level: usize) {
    machine.execute_here(level);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn accumulate_avx2(
    driver: &Driver<'_, '_>,
    machine: &Machine<'_, '_>,
    accumulator: &mut Accumulator,
) {
    driver.accumulate_here(machine, accumulator);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && has_avx2()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn execute_avx512(machine: &mut Machine<'_, '_>, level: usize) {
    machine.execute_here(level);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn accumulate_avx512(
    driver: &Driver<'_, '_>,
    machine: &Machine<'_, '_>,
    accumulator: &mut Accumulator,
) {
    driver.accumulate_here(machine, accumulator);
}
