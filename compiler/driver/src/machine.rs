//! Questions that the driver asks the machine: how many threads this process should use, how much memory it had.
//!
//! Must not know what they compute.
//!
//! ```text
//! 16 cores that 4 ranks may use -> 4 threads a rank
//! ```

use crate::failure::Failure;
use einc_diag::Diagnostic;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::{env, fs, thread};

/// The library that matrix products are left to: `openblas`, `blis`, `mkl` or the path of a file.
pub const BLAS: &str = "EIN_BLAS";

/// Loads the system's BLAS that `EIN_BLAS` names, if it names one.
///
/// # Errors
/// `E0716` if it cannot be used.
pub fn blas() -> Result<(), Failure> {
    let Some(wanted) = env::var_os(BLAS).filter(|wanted| !wanted.is_empty()) else {
        return Ok(());
    };
    let wanted = wanted.to_string_lossy();
    ein_kernels::load_blas(&wanted).map_err(|why| {
        let message = format!("the BLAS that {BLAS} names cannot be used: {why}");
        Failure::wrong(vec![Diagnostic::error("E0716", message).help(format!(
            "unset {BLAS} to compute without one, or name openblas, blis, mkl or the path of a library"
        ))])
    })
}

/// Memory of this process, in bytes, as the kernel counts it.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// The most that it has had.
    pub peak: u64,
    /// Pages of files that it has now, nearly all of them the program's own code.
    pub files: u64,
}

impl Resident {
    /// The figures of now, if the kernel says them.
    pub fn now() -> Option<Resident> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let bytes = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kibibytes * 1024)
        };
        Some(Resident {
            peak: bytes("VmHWM:")?,
            files: bytes("RssFile:")?,
        })
    }

    /// How much more than at an earlier time the process has had, the code that ran for the first time left out.
    pub fn beyond(&self, before: &Resident) -> u64 {
        let code = self.files.saturating_sub(before.files);
        self.peak.saturating_sub(before.peak).saturating_sub(code)
    }
}

/// The machine's cores, whether or not this process may use them.
pub fn cores() -> usize {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| numbers(text.trim()));
    let mine = thread::available_parallelism().map_or(1, usize::from);
    listed.map_or(mine, |all| all.len().max(mine))
}

/// The numbers in a list such as `0-3,8`.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let ranges = list.split(',').map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    });
    let ranges: Option<Vec<_>> = ranges.collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// The cores that this process's threads keep to, by thread, if all such threads are as many as the cores or a multiple of that; else none, since
/// the system then knows better. `number` of `processes` have as many threads each, and may use the same cores.
pub fn kept(threads: usize, (number, processes): (usize, usize)) -> Vec<usize> {
    // A BLAS starts threads of its own, which may run where the thread may that starts them.
    if ein_kernels::blas_in_use().is_some() {
        return vec![];
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = allowed.and_then(|list| numbers(list.trim()));
    spread(&allowed.unwrap_or_default(), threads, (number, processes))
}

/// As [`kept`], of these cores.
fn spread(cores: &[usize], threads: usize, (number, processes): (usize, usize)) -> Vec<usize> {
    let all = threads.saturating_mul(processes);
    if cores.len() < 2 || !all.is_multiple_of(cores.len()) {
        return vec![];
    }
    let first = number * threads;
    let thread = |thread: usize| cores[(first + thread) % cores.len()];
    (0..threads).map(thread).collect()
}

/// The place of a rank, as it tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPlace {
    /// Stands for the machine.
    pub machine: u64,
    /// Stands for the cores of it that the rank may use.
    pub cores: u64,
    /// How many threads may run at once there, by those cores and by what its group of processes is given.
    pub threads: usize,
}

impl RankPlace {
    /// Where this process runs.
    pub fn here() -> RankPlace {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let mut lines = status.lines();
        let allowed = lines.find(|line| line.starts_with("Cpus_allowed:"));
        RankPlace {
            machine: named(&[
                &read("/proc/sys/kernel/hostname"),
                &read("/proc/sys/kernel/random/boot_id"),
            ]),
            cores: named(&[allowed.unwrap_or_default()]),
            threads: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// This rank's share of the threads, given where all ranks are, itself included: ranks that may use the same cores share
    /// them, ranks that a launcher has bound to cores of their own have those.
    pub fn share(&self, all: &[RankPlace]) -> usize {
        (self.threads / self.sharing(all).max(1)).max(1)
    }

    /// The number of a rank, which is `own` in the list of all, among those that may use the same cores, and how many these are.
    pub fn among(&self, all: &[RankPlace], own: usize) -> (usize, usize) {
        let before = &all[..own.min(all.len())];
        (self.sharing(before), self.sharing(all))
    }

    /// How many of the ranks may use the same cores, itself included.
    pub fn sharing(&self, all: &[RankPlace]) -> usize {
        let same = |other: &&RankPlace| (other.machine, other.cores) == (self.machine, self.cores);
        all.iter().filter(same).count()
    }
}

/// A number that stands for texts; the same in every process of a program.
fn named(texts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(numbers("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(numbers("0"), Some(vec![0]));
        assert_eq!(numbers("x"), None);
    }

    #[test]
    fn threads_keep_to_cores_where_they_fill_them() {
        let cores = [2, 3, 6, 7];
        assert_eq!(spread(&cores, 4, (0, 1)), cores);
        assert_eq!(spread(&cores, 8, (0, 1)), [cores, cores].concat());
        // Two ranks of two, eight of one.
        assert_eq!(spread(&cores, 2, (1, 2)), [6, 7]);
        assert_eq!(spread(&cores, 1, (5, 8)), [3]);
        for free in [
            spread(&cores, 3, (0, 1)),
            spread(&cores, 1, (0, 1)),
            spread(&cores, 1, (0, 6)),
            spread(&cores[..1], 1, (0, 1)),
            spread(&[], 1, (0, 1)),
        ] {
            assert!(free.is_empty());
        }
    }

    #[test]
    fn ranks_share_the_cores_that_they_have_in_common() {
        let place = |machine, cores, threads| RankPlace {
            machine,
            cores,
            threads,
        };
        // Four on 16 cores, not bound, and one alone on another machine.
        let free = place(1, 7, 16);
        let alone = place(2, 7, 16);
        let all = [free, free, free, free, alone];
        assert_eq!((free.share(&all), alone.share(&all)), (4, 16));
        // More ranks than cores.
        assert_eq!(place(1, 7, 2).share(&[place(1, 7, 2); 4]), 1);
        assert_eq!(place(1, 7, 2).sharing(&[place(1, 7, 2); 4]), 4);
        // Bound to four cores each.
        let bound = [place(1, 1, 4), place(1, 2, 4), place(1, 3, 4)];
        assert!(bound.iter().all(|rank| rank.share(&bound) == 4));
        assert_eq!(alone.among(&all, 4), (0, 1));
        assert_eq!(free.among(&all, 2), (2, 4));
        let here = RankPlace::here();
        assert_eq!(here, RankPlace::here());
        assert!(here.share(&[here]) >= 1);
    }
}
