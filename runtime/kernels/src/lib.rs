//! What one site computes on one chunk.
