#!/bin/sh
# Installs what the whole test suite needs on Debian (two MPIs, a C++ compiler, libclang, which the MPI bindings are made
# with, OpenBLAS and BLIS, Python and iproute2) and runs it: format, lints, documentation, unit, property, end-to-end and MPI tests. Nothing is
# skipped silently: the last lines say what ran.
set -eu
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing=
for pair in mpicc.openmpi:libopenmpi-dev mpirun.openmpi:openmpi-bin mpicc.mpich:libmpich-dev mpirun.mpich:mpich cc:gcc c++:g++ python3:python3 tc:iproute2; do
  command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
find /usr/lib /usr/local/lib -name 'libclang.so*' -o -name 'libclang-[0-9]*.so*' 2>/dev/null | grep -q . || missing="$missing libclang-dev"
find /usr/lib* -name libopenblas.so.0 2>/dev/null | grep -q . || missing="$missing libopenblas0"
find /usr/lib* -name libblis.so.4 2>/dev/null | grep -q . || missing="$missing libblis4-openmp"
find /usr/lib* -name libblis64.so.4 2>/dev/null | grep -q . || missing="$missing libblis64-4-openmp"
if [ -n "$missing" ]; then
  echo "installing$missing"
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

cargo fmt --all --check
# Lints and documentation read the same checked crates: with clippy as the compiler of both, cargo checks each crate once. The tests build
# each crate once more, with code, and share that with `cargo run --release -p einc`.
checked() {
  RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings RUSTDOCFLAGS=-Dwarnings \
    cargo "$@" --release --workspace --exclude ein-mpi --locked
}
checked check --all-targets
checked doc --no-deps --quiet
# EINC_TEST_MPI=1: a missing MPI fails the tests instead of being reported as not run. PROPTEST_RNG_SEED: property tests draw the same cases
# in every run of this script; `cargo test` by hand draws new ones.
EINC_TEST_MPI=1 PROPTEST_RNG_SEED=1 cargo test --release --workspace --exclude ein-mpi --locked
# On the reference device too, whose elements the host cannot see: what walks a plan looks at none that it has not asked for.
EIN_DEVICE=reference cargo test --release --workspace --exclude ein-mpi --locked --test e2e --test functions -- properties every_function
# And on the emulated GPU, which runs generated CUDA C++ and checks every access; and on the path to a real one, over a driver, a compiler and a
# matrix library that run on the host.
EIN_DEVICE=emulated cargo test --release --workspace --exclude ein-mpi --locked --test functions -- every_function
host=target/host-cuda
sh runtime/cuda/tests/host/build.sh "$host"
# Where NVIDIA's compiler is installed, it has to accept every generated text too. HOST_CUDA_NVRTC=FILE names one that lies elsewhere.
: "${HOST_CUDA_NVRTC:=$(find /usr/lib /usr/local -name 'libnvrtc.so*' 2>/dev/null | head -n 1)}"
[ -z "$HOST_CUDA_NVRTC" ] || export HOST_CUDA_NVRTC
on_host() {
  EIN_DEVICE=gpu PROPTEST_RNG_SEED=1 XDG_CACHE_HOME="$PWD/$host/cache" LD_LIBRARY_PATH="$PWD/$host${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" cargo test --release --workspace --exclude ein-mpi --locked "$@"
}
on_host --test gpu_products --test gpu_groups --test gpu_random
on_host --test e2e -- properties
if cargo deny --version >/dev/null 2>&1; then cargo deny --offline check bans licenses sources; fi
echo "everything passed"
