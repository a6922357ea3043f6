#!/bin/sh
# Runs the tests of kernels, random programs, library functions and optimizers on the first GPU of this machine: `--device gpu`. It needs an NVIDIA
# driver, and NVIDIA's run-time compiler and matrix library where the system or LD_LIBRARY_PATH finds them; `einc doctor` says what is missing.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked --bin einc
target/release/einc doctor
export EIN_DEVICE=gpu
tests() {
  cargo test --release --workspace --exclude ein-mpi --locked "$@"
}
tests --test gpu_products --test gpu_groups --test gpu_random --test gpu_functions
tests --test functions --test optimizers
tests --test e2e -- properties
echo "everything passed on the GPU"
