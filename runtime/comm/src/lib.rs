//! How sites talk to each other: threads or MPI behind one trait.
