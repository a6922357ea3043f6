// A matrix library for the host, for tests of what calls NVIDIA's: `libcublas.so`. Matrices lie by columns. It refuses what NVIDIA's refuses:
// lines that are shorter than what they hold, and types that do not go together.

#include <algorithm>
#include <stdint.h>
#include <string.h>

namespace {

enum Result { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum Type { F32 = 0, F64 = 1, F16 = 2, BF16 = 14 };

double load(const void* at, Type type, int64_t element) {
    switch (type) {
        case F32: return ((const float*)at)[element];
        case F64: return ((const double*)at)[element];
        case F16: return (float)((const _Float16*)at)[element];
        default: {
            const uint32_t bits = (uint32_t)((const uint16_t*)at)[element] << 16;
            float number;
            memcpy(&number, &bits, 4);
            return number;
        }
    }
}
void store(void* at, Type type, int64_t element, double number) {
    switch (type) {
        case F32: ((float*)at)[element] = (float)number; break;
        case F64: ((double*)at)[element] = number; break;
        case F16: ((_Float16*)at)[element] = (_Float16)(float)number; break;
        default: {
            const float single = (float)number;
            uint32_t bits;
            memcpy(&bits, &single, 4);
            bits = single == single ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000;
            ((uint16_t*)at)[element] = (uint16_t)(bits >> 16);
        }
    }
}

}  // namespace

#define CALL extern "C" __attribute__((visibility("default"))) Result

CALL cublasCreate_v2(void** handle) { *handle = new char; return SUCCESS; }
CALL cublasDestroy_v2(void* handle) { delete (char*)handle; return SUCCESS; }
CALL cublasSetStream_v2(void*, void*) { return SUCCESS; }
CALL cublasGemmStridedBatchedEx_64(void*, int turn_a, int turn_b, int64_t m, int64_t n, int64_t k, const void* alpha, const void* a, Type type_a,
                                   int64_t line_a, long long batch_a, const void* b, Type type_b, int64_t line_b, long long batch_b,
                                   const void* beta, void* c, Type type_c, int64_t line_c, long long batch_c, int64_t batches, int compute, int) {
    const bool of_double = compute == 70;  // CUBLAS_COMPUTE_64F
    if (!of_double && compute != 68) return NOT_SUPPORTED;
    if (type_a != type_b || (type_a == F64) != of_double) return NOT_SUPPORTED;
    if (type_c != type_a && !(type_c == F32 && (type_a == F16 || type_a == BF16))) return NOT_SUPPORTED;
    const auto least = [](int64_t length) { return std::max<int64_t>(1, length); };
    if (m < 0 || n < 0 || k < 0 || batches < 0 || line_a < least(turn_a ? k : m) || line_b < least(turn_b ? n : k) || line_c < least(m)) {
        return INVALID_VALUE;
    }
    const double scale = of_double ? *(const double*)alpha : *(const float*)alpha;
    const double keeps = of_double ? *(const double*)beta : *(const float*)beta;
    if (keeps != 0.0) return NOT_SUPPORTED;
    for (int64_t batch = 0; batch < batches; ++batch) {
        for (int64_t column = 0; column < n; ++column) {
            for (int64_t row = 0; row < m; ++row) {
                double sum = 0.0;
                for (int64_t inner = 0; inner < k; ++inner) {
                    const int64_t in_a = batch * batch_a + (turn_a ? row * line_a + inner : inner * line_a + row);
                    const int64_t in_b = batch * batch_b + (turn_b ? inner * line_b + column : column * line_b + inner);
                    sum += load(a, type_a, in_a) * load(b, type_b, in_b);
                }
                store(c, type_c, batch * batch_c + column * line_c + row, scale * sum);
            }
        }
    }
    return SUCCESS;
}
