#!/bin/sh
# Builds a CUDA driver, compiler and matrix library that run on the host into a folder: sh runtime/cuda/tests/host/build.sh FOLDER. Programs
# that find them (LD_LIBRARY_PATH=FOLDER) take the path to a real GPU, without one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
compile() {
  "${CXX:-c++}" -std=c++17 -O2 -fPIC -shared -fvisibility=hidden "$@"
}
compile "$here/driver.cpp" -o "$1/libcuda.so" -ldl
compile "-DHEADER=\"$here/../../src/emulated/threads.hpp\"" "$here/compiler.cpp" -o "$1/libnvrtc.so" -ldl
compile "$here/matrices.cpp" -o "$1/libcublas.so"
