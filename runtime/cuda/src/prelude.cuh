// What generated kernels are made of: stored types, integers that wrap, the scalar functions as the language defines them, and the carriers
// of reductions. Stands behind `cuda.cuh` (a GPU's compiler) or `threads.hpp` and `checked.hpp` (a C++ compiler), which define `DEVICE`, `In`,
// `Out` and the built-in names.

namespace ein {

typedef long long whole;
typedef unsigned long long bits;

// ---- stored types

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
struct truth { unsigned char byte; };

DEVICE float value(f16 x) {
    const unsigned sign = (unsigned)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31, digits = x.bits & 0x3ff;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | digits << 13);
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint((float)digits * 5.9604644775390625e-8f));
    return __uint_as_float(sign | (exponent + 112) << 23 | digits << 13);
}
DEVICE float value(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
DEVICE float value(float x) { return x; }
DEVICE double value(double x) { return x; }
DEVICE int value(unsigned char x) { return x; }
DEVICE int value(unsigned short x) { return x; }
DEVICE int value(signed char x) { return x; }
DEVICE int value(short x) { return x; }
DEVICE int value(int x) { return x; }
DEVICE whole value(unsigned x) { return x; }
DEVICE whole value(whole x) { return x; }
DEVICE whole value(bits x) { return (whole)x; }
DEVICE bool value(truth x) { return x.byte != 0; }

// Rounded to the nearest, ties to even.
DEVICE void store(f16& to, float x) {
    const unsigned all = __float_as_uint(x), sign = all >> 16 & 0x8000, size = all & 0x7fffffff;
    unsigned half;
    if (size > 0x7f800000) half = 0x7e00;
    else if (size >= 0x477ff000) half = 0x7c00;
    else if (size < 0x38800000) half = (unsigned)rintf(__uint_as_float(size) * 16777216.0f);
    else half = (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13;
    to.bits = (unsigned short)(sign | half);
}
DEVICE void store(bf16& to, float x) {
    const unsigned all = __float_as_uint(x);
    const bool nan = (all & 0x7fffffff) > 0x7f800000;
    to.bits = (unsigned short)((nan ? all | 0x400000 : all + 0x7fff + (all >> 16 & 1)) >> 16);
}
DEVICE void store(f16& to, double x) { store(to, (float)x); }
DEVICE void store(bf16& to, double x) { store(to, (float)x); }
DEVICE void store(float& to, float x) { to = x; }
DEVICE void store(float& to, double x) { to = (float)x; }
DEVICE void store(double& to, float x) { to = x; }
DEVICE void store(double& to, double x) { to = x; }
DEVICE void store(unsigned char& to, int x) { to = (unsigned char)x; }
DEVICE void store(unsigned short& to, int x) { to = (unsigned short)x; }
DEVICE void store(signed char& to, int x) { to = (signed char)x; }
DEVICE void store(short& to, int x) { to = (short)x; }
DEVICE void store(int& to, int x) { to = x; }
DEVICE void store(unsigned& to, whole x) { to = (unsigned)x; }
DEVICE void store(whole& to, whole x) { to = x; }
DEVICE void store(bits& to, whole x) { to = (bits)x; }
DEVICE void store(truth& to, bool x) { to.byte = x; }

// ---- conversions between the types of values: to an integer truncated and saturated, NaN to 0

DEVICE int to_i32(double x) {
    return x != x ? 0 : x <= -2147483648.0 ? -2147483647 - 1 : x >= 2147483647.0 ? 2147483647 : (int)x;
}
DEVICE whole to_i64(double x) {
    const whole most = 9223372036854775807LL;
    return x != x ? 0 : x <= -9223372036854775808.0 ? -most - 1 : x >= 9223372036854775808.0 ? most : (whole)x;
}
DEVICE int to_i32(float x) { return to_i32((double)x); }
DEVICE whole to_i64(float x) { return to_i64((double)x); }
DEVICE int to_i32(int x) { return x; }
DEVICE int to_i32(whole x) { return (int)(unsigned)x; }
DEVICE int to_i32(bool x) { return x; }
DEVICE whole to_i64(int x) { return x; }
DEVICE whole to_i64(whole x) { return x; }
DEVICE whole to_i64(bool x) { return x; }

// ---- integers, which wrap

DEVICE int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
DEVICE int sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
DEVICE int mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE whole add(whole a, whole b) { return (whole)((bits)a + (bits)b); }
DEVICE whole sub(whole a, whole b) { return (whole)((bits)a - (bits)b); }
DEVICE whole mul(whole a, whole b) { return (whole)((bits)a * (bits)b); }
DEVICE float add(float a, float b) { return a + b; }
DEVICE float mul(float a, float b) { return a * b; }
DEVICE double add(double a, double b) { return a + b; }
DEVICE double mul(double a, double b) { return a * b; }
DEVICE int neg(int a) { return sub(0, a); }
DEVICE whole neg(whole a) { return sub((whole)0, a); }
DEVICE int abs(int a) { return a < 0 ? neg(a) : a; }
DEVICE whole abs(whole a) { return a < 0 ? neg(a) : a; }
DEVICE float abs(float a) { return fabsf(a); }
DEVICE double abs(double a) { return fabs(a); }

// Division by zero is told by the kernel's flag; the value is any.
template <class T> DEVICE T whole_floordiv(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return neg(a);
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class T> DEVICE T whole_rem(T a, T b) {
    if (b == 0 || b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
DEVICE int floordiv(int a, int b) { return whole_floordiv(a, b); }
DEVICE whole floordiv(whole a, whole b) { return whole_floordiv(a, b); }
DEVICE int rem(int a, int b) { return whole_rem(a, b); }
DEVICE whole rem(whole a, whole b) { return whole_rem(a, b); }

DEVICE whole pow(whole a, whole b) {
    whole power = 1;
    for (whole square = a; b > 0; b /= 2, square = mul(square, square)) {
        if (b % 2 == 1) power = mul(power, square);
    }
    return power;
}
DEVICE int pow(int a, int b) { return to_i32(pow((whole)a, (whole)b)); }
DEVICE int shl(int a, int b) { return b >= 0 && b < 32 ? (int)((unsigned)a << b) : 0; }
DEVICE whole shl(whole a, whole b) { return b >= 0 && b < 64 ? (whole)((bits)a << b) : 0; }
DEVICE int shr(int a, int b) { return b >= 0 && b < 32 ? a >> b : a >> 31; }
DEVICE whole shr(whole a, whole b) { return b >= 0 && b < 64 ? a >> b : a >> 63; }
DEVICE int popcount(int a) { return __popc((unsigned)a); }
DEVICE whole popcount(whole a) { return __popcll((bits)a); }

// ---- functions of any number

template <class T> DEVICE T min(T a, T b) { return a != a ? a : a < b ? a : b; }
template <class T> DEVICE T max(T a, T b) { return a != a ? a : a > b ? a : b; }
template <class T> DEVICE T sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a + (T)0; }
template <class T> DEVICE T relu(T a) { return a <= 0 ? (T)0 : a; }
DEVICE int floor(int a) { return a; }
DEVICE whole floor(whole a) { return a; }
DEVICE int ceil(int a) { return a; }
DEVICE whole ceil(whole a) { return a; }
DEVICE int round(int a) { return a; }
DEVICE whole round(whole a) { return a; }

// ---- functions of floating-point values

DEVICE float floor(float a) { return floorf(a); }
DEVICE double floor(double a) { return ::floor(a); }
DEVICE float ceil(float a) { return ceilf(a); }
DEVICE double ceil(double a) { return ::ceil(a); }
DEVICE float round(float a) { return rintf(a); }
DEVICE double round(double a) { return rint(a); }

// The floor of the exact quotient, rounded once; NaN of an infinite a.
DEVICE double floordiv(double a, double b) {
    if (a - a != 0.0 && b != 0.0) return a - a;
    const double floor = ::floor(a / b);
    const double rest = floor == 0.0 ? a : ::fma(-floor, b, a);
    return (rest < 0.0 && b > 0.0) || (rest > 0.0 && b < 0.0) ? floor - 1.0 : floor;
}
DEVICE float floordiv(float a, float b) { return (float)floordiv((double)a, (double)b); }
// The remainder with the sign of the divisor, rounded once.
DEVICE double rem(double a, double b) {
    const double rest = fmod(a, b);
    if (rest == 0.0) return copysign(0.0, b);
    return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
DEVICE float rem(float a, float b) { return (float)rem((double)a, (double)b); }

#define EIN_OF_ONE(name, single, in_double) \
    DEVICE float name(float a) { return single(a); } \
    DEVICE double name(double a) { return in_double(a); }
#define EIN_OF_TWO(name, single, in_double) \
    DEVICE float name(float a, float b) { return single(a, b); } \
    DEVICE double name(double a, double b) { return in_double(a, b); }
EIN_OF_ONE(exp, ::expf, ::exp)
EIN_OF_ONE(log, ::logf, ::log)
EIN_OF_ONE(log1p, ::log1pf, ::log1p)
EIN_OF_ONE(expm1, ::expm1f, ::expm1)
EIN_OF_ONE(sqrt, ::sqrtf, ::sqrt)
EIN_OF_ONE(tanh, ::tanhf, ::tanh)
EIN_OF_ONE(erf, ::erff, ::erf)
EIN_OF_ONE(erfc, ::erfcf, ::erfc)
EIN_OF_ONE(sin, ::sinf, ::sin)
EIN_OF_ONE(cos, ::cosf, ::cos)
EIN_OF_ONE(tan, ::tanf, ::tan)
EIN_OF_ONE(asin, ::asinf, ::asin)
EIN_OF_ONE(acos, ::acosf, ::acos)
EIN_OF_ONE(atan, ::atanf, ::atan)
EIN_OF_ONE(sinh, ::sinhf, ::sinh)
EIN_OF_ONE(cosh, ::coshf, ::cosh)
EIN_OF_ONE(asinh, ::asinhf, ::asinh)
EIN_OF_ONE(acosh, ::acoshf, ::acosh)
EIN_OF_ONE(atanh, ::atanhf, ::atanh)
EIN_OF_ONE(exp2, ::exp2f, ::exp2)
EIN_OF_ONE(log2, ::log2f, ::log2)
EIN_OF_ONE(log10, ::log10f, ::log10)
EIN_OF_ONE(cbrt, ::cbrtf, ::cbrt)
EIN_OF_TWO(pow, ::powf, ::pow)
EIN_OF_TWO(atan2, ::atan2f, ::atan2)
EIN_OF_TWO(hypot, ::hypotf, ::hypot)
EIN_OF_TWO(nextafter, ::nextafterf, ::nextafter)

template <class T> DEVICE T rsqrt(T a) { return (T)1 / sqrt(a); }
template <class T> DEVICE T sigmoid(T a) { return (T)1 / ((T)1 + exp(-a)); }
// The tail of the error function keeps the digits that 1 + erf loses where a is negative.
template <class T> DEVICE T gelu(T a) {
    const T share = erfc(a * (T)-0.70710678118654752440) * (T)0.5;
    return share == 0 ? (T)0 : a * share;
}
DEVICE double lgamma(double a) { return ::lgamma(a); }
DEVICE float lgamma(float a) { return (float)::lgamma((double)a); }
DEVICE double erfinv(double a) { return ::erfinv(a); }
DEVICE float erfinv(float a) { return (float)::erfinv((double)a); }

// The power with a whole exponent that is not negative.
DEVICE double whole_power(double a, int n) {
    double power = 1.0;
    for (; n > 0; n /= 2, a *= a) {
        if (n % 2 == 1) power *= a;
    }
    return power;
}
// The derivative number n + 1 of log Γ at x > 0: steps up to where the asymptotic series (Abramowitz and Stegun, 6.3.18 and 6.4.11) is exact.
DEVICE double polygamma_of_positive(int n, double x) {
    const double bernoulli[9] = {1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0, -3617.0 / 510.0,
                                 43867.0 / 798.0};
    if (x - x != 0.0) return x != x || n == 0 ? x : 0.0;
    double factorial = 1.0, steps = 0.0, series = 0.0;
    for (int k = 2; k <= n; ++k) factorial *= k;
    for (; x < 12.0 + n; x += 1.0) steps += 1.0 / whole_power(x, n + 1);
    double ratio = n == 0 ? 0.5 : 1.0;
    for (int k = 3; k <= n + 1; ++k) ratio *= k;
    for (int k = 1; k <= 9; ++k) {
        series += bernoulli[k - 1] * ratio / whole_power(x, 2 * k + n);
        ratio *= (2.0 * k + n) * (2.0 * k + n + 1.0) / ((2.0 * k + 1.0) * (2.0 * k + 2.0));
    }
    if (n == 0) return ::log(x) - 0.5 / x - series - steps;
    const double power = whole_power(x, n);
    const double size = factorial / n / power + factorial / 2.0 / (power * x) + series + factorial * steps;
    return n % 2 == 1 ? size : -size;
}
DEVICE double polygamma(double order, double x) {
    const int n = (int)order;
    if (!(x <= 0.0)) return polygamma_of_positive(n, x);
    const double fraction = x - ::floor(x);
    if (!(fraction > 0.0)) return n % 2 == 1 && fraction == 0.0 ? __longlong_as_double(0x7ff0000000000000LL) : __longlong_as_double(0x7ff8000000000000LL);
    // The reflection formula, its cotangent's derivative written as that of the fraction.
    const double difference = polygamma_of_positive(n, 1.0 - x) - polygamma_of_positive(n, 1.0 - fraction);
    return polygamma_of_positive(n, fraction) + (n % 2 == 1 ? -difference : difference);
}
DEVICE float polygamma(float order, float x) { return (float)polygamma((double)order, (double)x); }

// ---- carriers of reductions: what a partial result remembers. `single` is the carrier of one value, at a number of the reduced index;
// `merge` makes one of two, whatever their order; `finish` is the result.

template <class T> struct Limit;
template <> struct Limit<int> {
    static DEVICE int least() { return -2147483647 - 1; }
    static DEVICE int most() { return 2147483647; }
};
template <> struct Limit<whole> {
    static DEVICE whole least() { return -9223372036854775807LL - 1; }
    static DEVICE whole most() { return 9223372036854775807LL; }
};
template <> struct Limit<float> {
    static DEVICE float least() { return __uint_as_float(0xff800000u); }
    static DEVICE float most() { return __uint_as_float(0x7f800000u); }
};
template <> struct Limit<double> {
    static DEVICE double least() { return -most(); }
    static DEVICE double most() { return __longlong_as_double(0x7ff0000000000000LL); }
};

// A carrier of one column.
template <class T> struct One { T first; };
// A carrier of two.
template <class T, class U> struct Two { T first; U second; };

template <class T> struct Sum {
    typedef One<T> Carrier;
    static DEVICE Carrier neutral() { return {(T)0}; }
    static DEVICE Carrier single(T x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {add(a.first, b.first)}; }
    static DEVICE T finish(Carrier a) { return a.first; }
};
template <class T> struct Norm1 : Sum<T> {
    static DEVICE One<T> single(T x, whole) { return {abs(x)}; }
};
template <class T> struct Prod {
    typedef One<T> Carrier;
    static DEVICE Carrier neutral() { return {(T)1}; }
    static DEVICE Carrier single(T x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {mul(a.first, b.first)}; }
    static DEVICE T finish(Carrier a) { return a.first; }
};
template <class T> struct Max {
    typedef One<T> Carrier;
    static DEVICE Carrier neutral() { return {Limit<T>::least()}; }
    static DEVICE Carrier single(T x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {max(a.first, b.first)}; }
    static DEVICE T finish(Carrier a) { return a.first; }
};
template <class T> struct NormInf : Max<T> {
    static DEVICE One<T> neutral() { return {(T)0}; }
    static DEVICE One<T> single(T x, whole) { return {abs(x)}; }
};
template <class T> struct Min {
    typedef One<T> Carrier;
    static DEVICE Carrier neutral() { return {Limit<T>::most()}; }
    static DEVICE Carrier single(T x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {min(a.first, b.first)}; }
    static DEVICE T finish(Carrier a) { return a.first; }
};
template <class T> struct Any {
    typedef One<bool> Carrier;
    static DEVICE Carrier neutral() { return {false}; }
    static DEVICE Carrier single(bool x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {a.first || b.first}; }
    static DEVICE bool finish(Carrier a) { return a.first; }
};
template <class T> struct All {
    typedef One<bool> Carrier;
    static DEVICE Carrier neutral() { return {true}; }
    static DEVICE Carrier single(bool x, whole) { return {x}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {a.first && b.first}; }
    static DEVICE bool finish(Carrier a) { return a.first; }
};
template <class T> struct Mean {
    typedef Two<T, whole> Carrier;
    static DEVICE Carrier neutral() { return {(T)0, 0}; }
    static DEVICE Carrier single(T x, whole) { return {x, 1}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) { return {add(a.first, b.first), a.second + b.second}; }
    static DEVICE T finish(Carrier a) { return a.first / (T)a.second; }
};
// The value that wins, and its number; -1: none yet. NaN wins, and of equal values the lowest number.
template <class T, bool largest> struct Arg {
    typedef Two<T, whole> Carrier;
    static DEVICE Carrier neutral() { return {largest ? Limit<T>::least() : Limit<T>::most(), -1}; }
    static DEVICE Carrier single(T x, whole number) { return {x, number}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) {
        if (b.second < 0) return a;
        if (a.second < 0) return b;
        const bool a_nan = a.first != a.first, b_nan = b.first != b.first;
        if ((a_nan && b_nan) || a.first == b.first) return a.second < b.second ? a : b;
        return b_nan || (!a_nan && (largest ? b.first > a.first : b.first < a.first)) ? b : a;
    }
    static DEVICE whole finish(Carrier a) { return a.second; }
};
template <class T> struct ArgMax : Arg<T, true> {};
template <class T> struct ArgMin : Arg<T, false> {};
template <class T> struct LogSumExp {
    typedef Two<T, T> Carrier;
    static DEVICE Carrier neutral() { return {Limit<T>::least(), (T)0}; }
    static DEVICE Carrier single(T x, whole) { return {x, x == Limit<T>::least() ? (T)0 : (T)1}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) {
        const T top = max(a.first, b.first);
        if (top == Limit<T>::least()) return {top, (T)0};
        if (top == Limit<T>::most()) return {top, (T)1};
        return {top, a.second * exp(a.first - top) + b.second * exp(b.first - top)};
    }
    static DEVICE T finish(Carrier a) {
        const bool infinite = a.first == Limit<T>::least() || a.first == Limit<T>::most();
        return infinite ? a.first : a.first + log(a.second);
    }
};
template <class T> struct Norm {
    typedef Two<T, T> Carrier;
    static DEVICE Carrier neutral() { return {(T)0, (T)1}; }
    static DEVICE Carrier single(T x, whole) { return {abs(x), (T)1}; }
    static DEVICE Carrier merge(Carrier a, Carrier b) {
        const T scale = max(a.first, b.first);
        if (scale == (T)0 || scale == Limit<T>::most()) return {scale, (T)1};
        const T x = a.first / scale, y = b.first / scale;
        return {scale, a.second * (x * x) + b.second * (y * y)};
    }
    static DEVICE T finish(Carrier a) { return a.first == (T)0 || a.first == Limit<T>::most() ? a.first : a.first * sqrt(a.second); }
};

// ---- carriers of the threads of a warp or a block, merged in the order of the threads; the first thread has the result

DEVICE int down(int x, unsigned by) { return __shfl_down_sync(0xffffffffu, x, by); }
DEVICE whole down(whole x, unsigned by) { return __shfl_down_sync(0xffffffffu, x, by); }
DEVICE float down(float x, unsigned by) { return __shfl_down_sync(0xffffffffu, x, by); }
DEVICE double down(double x, unsigned by) { return __shfl_down_sync(0xffffffffu, x, by); }
DEVICE bool down(bool x, unsigned by) { return __shfl_down_sync(0xffffffffu, (int)x, by) != 0; }
template <class T> DEVICE One<T> down(One<T> x, unsigned by) { return {down(x.first, by)}; }
template <class T, class U> DEVICE Two<T, U> down(Two<T, U> x, unsigned by) {
    const T first = down(x.first, by);
    const U second = down(x.second, by);
    return {first, second};
}

template <class Rule> DEVICE typename Rule::Carrier over_warp(typename Rule::Carrier own) {
    for (unsigned by = 16; by > 0; by /= 2) own = Rule::merge(own, down(own, by));
    return own;
}
template <class Rule> DEVICE typename Rule::Carrier over_block(typename Rule::Carrier own) {
    __shared__ typename Rule::Carrier of_warps[32];
    own = over_warp<Rule>(own);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) own = Rule::merge(own, of_warps[warp]);
    }
    __syncthreads();
    return own;
}

}  // namespace ein
