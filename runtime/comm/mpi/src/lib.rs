//! The MPI shim: rsmpi inside, a C ABI outside.
