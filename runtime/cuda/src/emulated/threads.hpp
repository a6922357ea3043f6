// A GPU for a C++ compiler: blocks one after the other, and the threads of a block as fibers that run in turns between barriers. It includes
// as little as it can, since every unit of kernels is compiled with it.

#include <stdlib.h>
#include <ucontext.h>

#define __global__
#define EXPORTED __attribute__((visibility("default")))
#define __device__
#define __shared__ static thread_local

extern "C" {
float expf(float); float logf(float); float log1pf(float); float expm1f(float); float sqrtf(float); float tanhf(float);
float erff(float); float erfcf(float); float sinf(float); float cosf(float); float tanf(float); float asinf(float);
float acosf(float); float atanf(float); float sinhf(float); float coshf(float); float asinhf(float); float acoshf(float);
float atanhf(float); float exp2f(float); float log2f(float); float log10f(float); float cbrtf(float); float powf(float, float);
float atan2f(float, float); float hypotf(float, float); float nextafterf(float, float); float floorf(float); float ceilf(float);
float rintf(float); float fabsf(float);
double exp(double); double log(double); double log1p(double); double expm1(double); double sqrt(double); double tanh(double);
double erf(double); double erfc(double); double sin(double); double cos(double); double tan(double); double asin(double);
double acos(double); double atan(double); double sinh(double); double cosh(double); double asinh(double); double acosh(double);
double atanh(double); double exp2(double); double log2(double); double log10(double); double cbrt(double); double pow(double, double);
double atan2(double, double); double hypot(double, double); double nextafter(double, double); double floor(double);
double ceil(double); double rint(double); double fabs(double); double fma(double, double, double); double fmod(double, double);
double copysign(double, double); double lgamma_r(double, int*);
}

static inline float __uint_as_float(unsigned x) { float y; __builtin_memcpy(&y, &x, 4); return y; }
static inline unsigned __float_as_uint(float x) { unsigned y; __builtin_memcpy(&y, &x, 4); return y; }
static inline double __longlong_as_double(long long x) { double y; __builtin_memcpy(&y, &x, 8); return y; }
static inline long long __double_as_longlong(double x) { long long y; __builtin_memcpy(&y, &x, 8); return y; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline double lgamma(double x) { int sign; return lgamma_r(x, &sign); }

// Winitzki's closed form (2008), then Halley's steps; where |a| is near 1, the complement is what they compare.
static inline double erfinv(double a) {
    const double size = fabs(a);
    if (!(size < 1.0)) return size == 1.0 ? a * __builtin_inf() : __builtin_nan("");
    const double logarithm = log1p(-size * size), half = 2.0 / (3.14159265358979323846 * 0.147) + logarithm / 2.0;
    const double square = sqrt(half * half - logarithm / 0.147) - half;
    double x = sqrt(square > 0.0 ? square : 0.0);
    for (int step = 0; step < 3; ++step) {
        const double over = size < 0.5 ? erf(x) - size : (1.0 - size) - erfc(x);
        const double by = over / (1.12837916709551257390 * exp(-x * x));
        x -= by / (1.0 + x * by);
    }
    return copysign(x, a);
}

namespace emulated {

// What went wrong in a launch: `access` says at which element of how many.
struct Wrong { const char* what; unsigned long long at, length; };

enum Waits { runs, at_warp, at_block, ended };

struct Fiber { ucontext_t context; Waits waits; unsigned parity; };

// The launch that this thread of the host carries out.
struct Launch {
    Wrong wrong;
    Fiber* fibers;
    ucontext_t scheduler;
    void (*body)(void*);
    void* arguments;
    unsigned long long exchanged[2][1024];
};
static thread_local Launch* launch_of_thread;
static thread_local unsigned thread_number, block_number, block_size, grid_size;

struct ThreadNumber { operator unsigned() const { return thread_number; } };
struct BlockNumber { operator unsigned() const { return block_number; } };
struct BlockSize { operator unsigned() const { return block_size; } };
struct GridSize { operator unsigned() const { return grid_size; } };

static __attribute__((noinline, cold)) void say_wrong(const char* what, unsigned long long at, unsigned long long length) {
    Wrong& wrong = launch_of_thread->wrong;
    if (!wrong.what) wrong = Wrong{what, at, length};
}

static inline void wait(Waits at) {
    Launch& launch = *launch_of_thread;
    Fiber& own = launch.fibers[thread_number];
    own.waits = at;
    swapcontext(&own.context, &launch.scheduler);
}

template <class T> static inline T shuffled_down(T x, unsigned by) {
    Launch& launch = *launch_of_thread;
    Fiber& own = launch.fibers[thread_number];
    const unsigned parity = own.parity, lane = thread_number % 32;
    own.parity = 1 - parity;
    unsigned long long word = 0;
    __builtin_memcpy(&word, &x, sizeof x);
    launch.exchanged[parity][thread_number] = word;
    wait(at_warp);
    // Beyond the warp, a lane gets what it has given.
    word = launch.exchanged[parity][lane + by < 32 ? thread_number + by : thread_number];
    __builtin_memcpy(&x, &word, sizeof x);
    return x;
}

static inline void fiber_begins() {
    Launch& launch = *launch_of_thread;
    launch.body(launch.arguments);
    launch.fibers[thread_number].waits = ended;
}

// The threads of a block take their turns from the first to the last in one block and from the last to the first in the next, so that results
// which depend on who comes first are seen: no barrier stands where one must.
static unsigned in_turn(unsigned number, unsigned turn) {
    return turn % 2 == 0 ? number : block_size - 1 - number;
}

// Runs the threads of a block in turns; those of a warp, or of the block, go on when all that have not ended wait for it.
static void block_in_turns(Launch& launch, unsigned turn, char* stacks, unsigned long long stack) {
    for (unsigned thread = 0; thread < block_size; ++thread) {
        Fiber& fiber = launch.fibers[thread];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks + thread * stack;
        fiber.context.uc_stack.ss_size = stack;
        fiber.context.uc_link = &launch.scheduler;
        makecontext(&fiber.context, fiber_begins, 0);
        fiber.waits = runs;
        fiber.parity = 0;
    }
    for (;;) {
        bool all_ended = true, goes_on = false, all_at_block = true;
        for (unsigned number = 0; number < block_size; ++number) {
            const unsigned thread = in_turn(number, turn);
            if (launch.fibers[thread].waits == runs) {
                thread_number = thread;
                swapcontext(&launch.scheduler, &launch.fibers[thread].context);
            }
        }
        for (unsigned first = 0; first < block_size; first += 32) {
            bool all_at_warp = true;
            const unsigned last = first + 32 < block_size ? first + 32 : block_size;
            for (unsigned thread = first; thread < last; ++thread) {
                const Waits waits = launch.fibers[thread].waits;
                all_ended &= waits == ended;
                all_at_warp &= waits == at_warp || waits == ended;
                all_at_block &= waits == at_block || waits == ended;
            }
            for (unsigned thread = first; all_at_warp && thread < last; ++thread) {
                if (launch.fibers[thread].waits == at_warp) { launch.fibers[thread].waits = runs; goes_on = true; }
            }
        }
        if (all_ended) return;
        for (unsigned thread = 0; all_at_block && thread < block_size; ++thread) {
            if (launch.fibers[thread].waits == at_block) { launch.fibers[thread].waits = runs; goes_on = true; }
        }
        if (!goes_on) { say_wrong("threads of a block wait at different barriers", 0, 0); return; }
    }
}

// Carries a launch out; `meet`: whether its threads meet at barriers. False if something is wrong, which is in `wrong`.
static bool launch(unsigned blocks, unsigned threads, bool meet, void (*body)(void*), void* arguments, Wrong* wrong) {
    Launch launch;
    launch.wrong = Wrong{nullptr, 0, 0};
    launch.body = body;
    launch.arguments = arguments;
    launch_of_thread = &launch;
    grid_size = blocks;
    block_size = threads;
    const unsigned long long stack = 32 << 10;
    char* stacks = meet ? (char*)malloc(threads * stack) : nullptr;
    launch.fibers = meet ? (Fiber*)malloc(threads * sizeof(Fiber)) : nullptr;
    // Of launches of one block, every other one begins with the last thread.
    static thread_local unsigned launches = 0;
    const unsigned first = launches++;
    for (block_number = 0; block_number < blocks && !launch.wrong.what; ++block_number) {
        const unsigned turn = first + block_number;
        if (meet) block_in_turns(launch, turn, stacks, stack);
        else for (unsigned number = 0; number < threads; ++number) {
            thread_number = in_turn(number, turn);
            body(arguments);
        }
    }
    free(stacks);
    free(launch.fibers);
    *wrong = launch.wrong;
    return !launch.wrong.what;
}

}  // namespace emulated

// The names that CUDA has built in.
static const struct { emulated::ThreadNumber x; } threadIdx = {};
static const struct { emulated::BlockNumber x; } blockIdx = {};
static const struct { emulated::BlockSize x; } blockDim = {};
static const struct { emulated::GridSize x; } gridDim = {};
static inline void __syncthreads() { emulated::wait(emulated::at_block); }
template <class T> static inline T __shfl_down_sync(unsigned, T x, unsigned by) { return emulated::shuffled_down(x, by); }
