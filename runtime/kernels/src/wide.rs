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

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
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
