//! Runs a program: in this process, or as one rank of an MPI job.
//!
//! Of a job, rank 0 alone speaks, and all ranks end with the same status. Must not know what the steps of a
//! plan are.
//!
//! ```text
//! mpirun -n 3 ./model   ->   connect, plan for 3 sites, agree that all could, run, rank 0 reports
//! ```

mod begin;
mod end;
mod here;
mod ranks;

use crate::{
    arguments::Format,
    environment, exit,
    failure::Failure,
    machine,
    planned::Planned,
    program::Program,
    settings::Settings,
    shims::{self, EmbeddedShim, ShimsByName},
};
use ein_comm::mpi;
use einc_diag::Diagnostic;

/// Loads, plans and runs a program, prints its results and returns the exit status. `load` gives the program
/// and, if there is one, a plan that was made before. `carried` are the shims that a built program brings along, `embedded` those of einc.
pub fn run(
    load: impl FnOnce() -> Result<(Program, Option<Planned>), Failure>,
    settings: &Settings,
    (carried, embedded): (&ShimsByName, &[EmbeddedShim]),
    format: Format,
) -> i32 {
    // Before there are threads.
    let blas = machine::blas();
    let load = || blas.and_then(|()| load());
    let launcher = mpi::launched();
    if launcher.as_ref().is_none_or(|launcher| launcher.rank == 0) {
        exit::show(environment::unknown(), &[], format);
    }
    match launcher {
        Some(launcher) => {
            let user = shims::of_user();
            let shims = shims::in_order(&user, carried, embedded);
            ranks::run(&launcher, load, settings, &shims, format)
        }
        None => match mpi::unconnected_tasks() {
            Some((tasks, number)) => unconnected(tasks, number, format),
            None => here::run(load, settings, format),
        },
    }
}

/// Returns the exit status of one of several tasks that cannot find each other. The first task prints why.
fn unconnected(tasks: u32, number: u32, format: Format) -> i32 {
    if number == 0 {
        let message = format!(
            "Slurm started {tasks} tasks, but not by way of an MPI: each would run the whole program by itself"
        );
        let error = Diagnostic::error("E0732", message)
            .help("start them with `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH), or with `mpirun`")
            .help("for copies that have nothing to do with each other, unset SLURM_STEP_NUM_TASKS");
        exit::show(vec![error], &[], format);
    }
    1
}
