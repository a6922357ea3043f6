//! Work that is compiled three times: for any processor, and for those with AVX2 or AVX-512.
//!
//! All give the same bits: no operation is contracted or reordered. Must not know what the work is.
//!
//! ```text
//! run(Level { machine, level: 3 })   on AVX-512: 16 lanes an instruction, on AVX2: 8, else 4
//! ```
#![allow(unsafe_code)]

/// Bytes of the vectors of AVX2, and of AVX-512.
pub(crate) const WIDE: usize = 32;
pub(crate) const WIDEST: usize = 64;

/// Work that is compiled for each kind of processor.
pub(crate) trait Job {
    /// What comes of it.
    type Output;
    /// Does it where the widest vectors have so many bytes; inlined, with all that it calls.
    fn run<const BYTES: usize>(self) -> Self::Output;
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
    job.run::<16>()
}

/// Whether vectors have 32 bytes or more, and can be multiplied and added to in one.
pub(crate) fn has_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx2();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether vectors have 64 bytes.
pub(crate) fn has_widest() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<J: Job>(job: J) -> J::Output {
    job.run::<WIDE>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn run_avx512<J: Job>(job: J) -> J::Output {
    job.run::<WIDEST>()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("popcnt")
        && has_avx2()
}
