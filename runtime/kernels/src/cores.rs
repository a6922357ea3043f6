//! The cores that threads keep to, where the threads of a program are as many as its cores.
//!
//! A thread that wakes may be put on the core of the one that woke it, also where another core is idle, and both stay there for milliseconds: a
//! kernel then takes twice as long. So the threads of a pool keep to a core each. The one that begins kernels only goes to its own when a large one begins,
//! and may be moved away again: what it does alone it does wherever there is room. Must not know how many threads there are.
//!
//! ```text
//! cores 0 1, a pool of two: thread 1 keeps to 1; thread 0, on 1 when a product of 10^8 points begins, goes to 0
//! ```

use std::cell::RefCell;

/// Points of a kernel that is worth a move.
const LARGE: u64 = 1 << 20;

thread_local! {
    /// The core that this thread begins kernels on, and all that it may run on.
    static HOME: RefCell<Option<(usize, Vec<usize>)>> = const { RefCell::new(None) };
}

/// This thread runs on these cores alone from now on. That the system may refuse changes nothing but speed.
pub fn keep_to(cores: &[usize]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_setaffinity};
        let mut set = CpuSet::new();
        for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
            set.set(*core);
        }
        let _refused = sched_setaffinity(None, &set);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = cores;
}

/// This thread goes to the first one of these cores whenever it begins a large kernel, and may be moved to the others.
pub fn begin_at(cores: &[usize]) {
    let home = cores.first().map(|first| (*first, cores.to_vec()));
    HOME.with(|own| *own.borrow_mut() = home);
}

/// Goes where large kernels begin, if one over these ranges is.
pub(crate) fn large(ranges: &[(u64, u64)]) {
    let points = (ranges.iter()).fold(1u64, |points, (_, n)| points.saturating_mul(*n));
    if points < LARGE {
        return;
    }
    HOME.with(|own| {
        if let Some((home, all)) = &*own.borrow()
            && here() != Some(*home)
        {
            keep_to(&[*home]);
            keep_to(all);
        }
    });
}

/// The core that this thread runs on.
fn here() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return Some(rustix::thread::sched_getcpu());
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).expect("every thread has cores");
        (0..1024).filter(|core| set.is_set(*core)).collect()
    }

    #[test]
    fn large_kernels_begin_at_home_and_threads_stay_free() {
        std::thread::spawn(|| {
            let all = allowed();
            for home in &all {
                let mut cores = all.clone();
                cores.retain(|core| core != home);
                cores.insert(0, *home);
                begin_at(&cores);
                large(&[(7, LARGE)]);
                assert_eq!(allowed(), all);
            }
            // What has no home, and what is small, stays.
            keep_to(&all[..1]);
            let other = [all.last().copied().unwrap_or_default(), all[0]];
            begin_at(&other);
            large(&[(0, LARGE / 2), (0, 1)]);
            assert_eq!(allowed(), all[..1]);
            begin_at(&[]);
            large(&[(7, LARGE)]);
            assert_eq!(allowed(), all[..1]);
        })
        .join()
        .expect("the thread ends well");
    }
}
