//! From a program bundle to an object file to an executable.
