//! Sites as the ranks of an MPI job.
//!
//! A program is not linked to MPI: a shim for each MPI implementation travels inside it as bytes, and the
//! one that fits the launcher is opened only when a launcher has started the program.
//!
//! ```text
//! mpirun -n 3 ./matmul   ->   OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=3: the shim "openmpi"
//! ```
