//! What the driver asks the machine: how many threads this process should use, how much memory it had.
//!
//! Must not know what they compute.
//!
//! ```text
//! 16 cores, 4 ranks on this machine -> 4 threads a rank
//! ```

use crate::session::Failure;
use einc_diag::Diagnostic;
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
        .and_then(|text| count(text.trim()));
    let mine = thread::available_parallelism().map_or(1, usize::from);
    listed.map_or(mine, |all| all.max(mine))
}

/// The threads of a process that shares the machine with `neighbours` processes of the same job, itself included:
/// never more than its share, nor than it may use.
pub fn threads(neighbours: usize) -> usize {
    let mine = thread::available_parallelism().map_or(1, usize::from);
    mine.min((cores() / neighbours.max(1)).max(1))
}

/// How many ranks of the job a launcher put on this machine, if it says so.
pub fn local_ranks() -> usize {
    [
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "PALS_LOCAL_SIZE",
        "SLURM_NTASKS_PER_NODE",
    ]
    .iter()
    .find_map(|name| env::var(name).ok()?.parse().ok())
    .unwrap_or(1)
}

/// The numbers in a list such as `0-3,8`.
fn count(list: &str) -> Option<usize> {
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((from, to)) => {
                let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
                (to + 1).checked_sub(from)
            }
            None => part.parse::<usize>().ok().map(|_| 1),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("x"), None);
        assert!(threads(1) >= 1 && threads(10_000) == 1);
    }
}
