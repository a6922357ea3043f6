//! Who started this process, told from the environment.
//!
//! Must not know shims.
//!
//! ```text
//! OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3   ->   openmpi, rank 1 of 3
//! ```

/// A launcher that started this process as one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The name of the shim that fits: `openmpi` or `mpich`.
    pub shim: &'static str,
    /// This process's number, from 0.
    pub rank: u32,
    /// How many processes it started; 0 where it does not say.
    pub size: u32,
}

/// The launcher of this process, if it was started by one. Slurm's variables alone do not count: they are
/// there in every job, also for programs that are no MPI programs.
pub fn launched() -> Option<Launcher> {
    launched_with(|name| std::env::var(name).ok())
}

/// Returns the number of tasks of the Slurm step that this process belongs to, and the process's own number, if the step has several
/// tasks and no MPI connects them. Each task would then compute everything by itself and overwrite the results of the others.
pub fn unconnected_tasks() -> Option<(u32, u32)> {
    unconnected_with(|name| std::env::var(name).ok())
}

fn unconnected_with(variable: impl Fn(&str) -> Option<String> + Copy) -> Option<(u32, u32)> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let tasks = number("SLURM_STEP_NUM_TASKS").filter(|tasks| *tasks > 1)?;
    let alone = launched_with(variable).is_none();
    alone.then(|| (tasks, number("SLURM_PROCID").unwrap_or(0)))
}

fn launched_with(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<u32>().ok());
    let first = |names: &[&str]| names.iter().find_map(|name| number(name));
    let slurm = &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
    if let Some(rank) = number("OMPI_COMM_WORLD_RANK") {
        return Some(Launcher {
            shim: "openmpi",
            rank,
            size: number("OMPI_COMM_WORLD_SIZE").unwrap_or(0),
        });
    }
    if let Some(rank) = number("PMI_RANK") {
        return Some(Launcher {
            shim: "mpich",
            rank,
            size: number("PMI_SIZE").unwrap_or(0),
        });
    }
    if let Some(rank) = number("PMIX_RANK") {
        return Some(Launcher {
            shim: "openmpi",
            rank,
            size: first(slurm).unwrap_or(0),
        });
    }
    if let Some(rank) = number("MPI_LOCALRANKID") {
        return Some(Launcher {
            shim: "mpich",
            rank: first(&["PMI_ID", "SLURM_PROCID"]).unwrap_or(rank),
            size: first(&["PMI_SIZE"]).or_else(|| first(slurm)).unwrap_or(0),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<Launcher> {
        launched_with(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// Outside of a step, as in a batch script, Slurm's numbers say nothing of this process.
    #[test]
    fn tasks_without_an_mpi_are_told_from_a_job() {
        let tasks = |variables: &[(&str, &str)]| {
            unconnected_with(|name| {
                let found = variables.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let step = ("SLURM_STEP_NUM_TASKS", "4");
        assert_eq!(tasks(&[("SLURM_NTASKS", "4")]), None);
        assert_eq!(tasks(&[step, ("SLURM_PROCID", "2")]), Some((4, 2)));
        assert_eq!(tasks(&[step, ("PMIX_RANK", "2")]), None);
        assert_eq!(tasks(&[("SLURM_STEP_NUM_TASKS", "1")]), None);
    }

    fn launcher(shim: &'static str, rank: u32, size: u32) -> Option<Launcher> {
        Some(Launcher { shim, rank, size })
    }

    #[test]
    fn launchers_are_told_from_their_variables() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(
            with(&[
                ("OMPI_COMM_WORLD_RANK", "1"),
                ("OMPI_COMM_WORLD_SIZE", "3"),
                ("PMIX_RANK", "1")
            ]),
            launcher("openmpi", 1, 3)
        );
        assert_eq!(
            with(&[
                ("PMI_RANK", "2"),
                ("PMI_SIZE", "4"),
                ("MPI_LOCALRANKID", "0")
            ]),
            launcher("mpich", 2, 4)
        );
        assert_eq!(
            with(&[("PMIX_RANK", "2"), ("SLURM_NTASKS", "4")]),
            launcher("openmpi", 2, 4)
        );
        assert_eq!(with(&[("MPI_LOCALRANKID", "1")]), launcher("mpich", 1, 0));
        assert_eq!(with(&[("PMI_RANK", "many")]), None);
    }
}
