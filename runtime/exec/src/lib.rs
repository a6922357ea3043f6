//! Walks a plan on one site.
