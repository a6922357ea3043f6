//! Reads and writes .npy, .npz and .safetensors, a chunk at a time.
