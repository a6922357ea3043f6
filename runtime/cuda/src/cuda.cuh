// Names that generated kernels and their prelude use, for a GPU's own compiler: arrays are pointers, and nothing checks where they are read.

#define DEVICE __device__ __forceinline__

namespace ein {
template <class T> using In = const T* __restrict__;
template <class T> using Out = T* __restrict__;
}  // namespace ein
