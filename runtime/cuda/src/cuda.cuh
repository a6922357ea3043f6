// What the prelude needs of a GPU's own compiler, which has the mathematical functions and the built-in names. Units are compiled with
// `--fmad=false`, so that a number has the same bits on every device where the language says so.

#define DEVICE __device__ __forceinline__

namespace ein {
template <class T> using In = const T* __restrict__;
template <class T> using Out = T* __restrict__;
}  // namespace ein
