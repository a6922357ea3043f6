// Sources that are made: element e of a tensor is made of the four 32-bit words at position 4 e of a ChaCha8 stream. The logarithm and the
// cosine are FreeBSD's, operation by operation, so that the numbers have the same bits on every device; units are compiled without fusing
// products and sums.

namespace ein {

// The key of a stream, as eight words.
struct Key { unsigned words[8]; };
struct Words { bits first, second; };

DEVICE unsigned rotated(unsigned x, int by) { return x << by | x >> (32 - by); }
DEVICE void quarter_round(unsigned* x, int a, int b, int c, int d) {
    x[a] += x[b]; x[d] = rotated(x[d] ^ x[a], 16);
    x[c] += x[d]; x[b] = rotated(x[b] ^ x[c], 12);
    x[a] += x[b]; x[d] = rotated(x[d] ^ x[a], 8);
    x[c] += x[d]; x[b] = rotated(x[b] ^ x[c], 7);
}
DEVICE Words drawn(Key key, bits element) {
    const bits block = element / 4;
    unsigned start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (int word = 0; word < 8; ++word) start[4 + word] = key.words[word];
    start[12] = (unsigned)block;
    start[13] = (unsigned)(block >> 32);
    start[14] = start[15] = 0;
    unsigned x[16];
    for (int word = 0; word < 16; ++word) x[word] = start[word];
    for (int round = 0; round < 4; ++round) {
        quarter_round(x, 0, 4, 8, 12);
        quarter_round(x, 1, 5, 9, 13);
        quarter_round(x, 2, 6, 10, 14);
        quarter_round(x, 3, 7, 11, 15);
        quarter_round(x, 0, 5, 10, 15);
        quarter_round(x, 1, 6, 11, 12);
        quarter_round(x, 2, 7, 8, 13);
        quarter_round(x, 3, 4, 9, 14);
    }
    const int first = (int)(element % 4) * 4;
    bits words[4];
    for (int word = 0; word < 4; ++word) words[word] = x[first + word] + start[first + word];
    return {words[0] | words[1] << 32, words[2] | words[3] << 32};
}

// Uniform in [0, 1), 53 bits; and in (0, 1).
DEVICE double unit(bits word) { return (double)(word >> 11) * 1.1102230246251565404e-16; }
DEVICE double inner(bits word) { return ((double)(word >> 12) + 0.5) * 2.2204460492503130808e-16; }

// The logarithm of a positive, normal number.
DEVICE double log_exactly(double x) {
    bits all = (bits)__double_as_longlong(x);
    unsigned high = (unsigned)(all >> 32);
    if (all == 0x3ff0000000000000ULL) return 0.0;
    high += 0x3ff00000 - 0x3fe6a09e;
    const double exponent = (double)((int)(high >> 20) - 0x3ff);
    high = (high & 0x000fffff) + 0x3fe6a09e;
    all = (bits)high << 32 | (all & 0xffffffff);
    const double f = __longlong_as_double((whole)all) - 1.0, half = 0.5 * f * f, s = f / (2.0 + f), z = s * s, w = z * z;
    const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double rest = odd + even;
    return s * (half + rest) + exponent * 1.90821492927058770002e-10 - half + f + exponent * 6.93147180369123816490e-01;
}

// Sine and cosine of x + y, x from -pi/4 to pi/4.
DEVICE double cos_of_rest(double x, double y) {
    const double z = x * x, w = z * z;
    const double r = z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)) +
                     w * w * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
    const double half = 0.5 * z, most = 1.0 - half;
    return most + (((1.0 - most) - half) + (z * r - x * y));
}
DEVICE double sin_of_rest(double x, double y) {
    const double z = x * x, w = z * z;
    const double r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
                     z * w * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    const double v = z * x;
    return x - ((z * (0.5 * y - v * r) - y) - v * -1.66666666666666324348e-01);
}

// The cosine of an angle from 0 to 2 pi.
DEVICE double cos_exactly(double x) {
    const double first = 1.57079632673412561417e+00, first_tail = 6.07710050650619224932e-11;
    const unsigned high = (unsigned)((bits)__double_as_longlong(x) >> 32) & 0x7fffffff;
    if (high <= 0x3fe921fb) return high < 0x3e46a09e ? 1.0 : cos_of_rest(x, 0.0);
    const bool near_multiple = (high <= 0x400f6a7a && (high & 0xfffff) == 0x921fb) || high == 0x4012d97c || high == 0x401921fb;
    int n;
    double y, tail;
    if (!near_multiple) {
        n = high <= 0x4002d97c ? 1 : high <= 0x400f6a7a ? 2 : high <= 0x4015fdbc ? 3 : 4;
        const double z = x - n * first, by = n * first_tail;
        y = z - by;
        tail = (z - y) - by;
    } else {
        const double to_int = 6755399441055744.0;
        const double multiple = (x * 6.36619772367581382433e-01 + to_int) - to_int;
        n = (int)multiple;
        double r = x - multiple * first, w = multiple * first_tail;
        y = r - w;
        const int exponent = (int)(high >> 20);
        if (exponent - (int)((bits)__double_as_longlong(y) >> 52 & 0x7ff) > 16) {
            double t = r;
            w = multiple * 6.07710050630396597660e-11;
            r = t - w;
            w = multiple * 2.02226624879595063154e-21 - ((t - r) - w);
            y = r - w;
            if (exponent - (int)((bits)__double_as_longlong(y) >> 52 & 0x7ff) > 49) {
                t = r;
                w = multiple * 2.02226624871116645580e-21;
                r = t - w;
                w = multiple * 8.47842766036889956997e-32 - ((t - r) - w);
                y = r - w;
            }
        }
        tail = (r - y) - w;
    }
    switch (n & 3) {
        case 0: return cos_of_rest(y, tail);
        case 1: return -sin_of_rest(y, tail);
        case 2: return -cos_of_rest(y, tail);
        default: return sin_of_rest(y, tail);
    }
}

DEVICE double normal(Words drawn, double mean, double deviation) {
    const double radius = ::sqrt(-2.0 * log_exactly(1.0 - unit(drawn.first)));
    return mean + deviation * (radius * cos_exactly(6.28318530717958647693 * unit(drawn.second)));
}
DEVICE double gumbel(Words drawn) { return -log_exactly(-log_exactly(inner(drawn.first))); }

// A made number as it is stored: rounded once, whole types take the floor.
template <class T> DEVICE void store_made(T& to, double x) { to = (T)to_i64(::floor(x)); }
DEVICE void store_made(truth& to, double x) { to.byte = x != 0.0; }
DEVICE void store_made(double& to, double x) { to = x; }
DEVICE void store_made(float& to, double x) { to = (float)x; }
// Rounded to a float whose last digit remembers what was lost, the number can be rounded again.
DEVICE float rounded_to_odd(double x) {
    const float near = (float)x;
    const unsigned all = __float_as_uint(near);
    if ((double)near == x || x != x || all % 2 == 1) return near;
    return __uint_as_float(::fabs((double)near) > ::fabs(x) ? all - 1 : all + 1);
}
DEVICE void store_made(f16& to, double x) { store(to, rounded_to_odd(x)); }
DEVICE void store_made(bf16& to, double x) { store(to, rounded_to_odd(x)); }
template <class T> DEVICE void store_made(T& to, whole x) { to = (T)x; }
DEVICE void store_made(truth& to, whole x) { to.byte = x != 0; }
DEVICE void store_made(float& to, whole x) { to = (float)(double)x; }
DEVICE void store_made(f16& to, whole x) { store_made(to, (double)x); }
DEVICE void store_made(bf16& to, whole x) { store_made(to, (double)x); }

}  // namespace ein
