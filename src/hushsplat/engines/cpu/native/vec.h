// Eight lanes at a time, by compiler vector extensions: one register with AVX2, two registers (SSE2, NEON) elsewhere.
// Everything lives in a namespace per instruction set, so that the linker can never mix two builds of one function.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef HUSH_ISA
#error "HUSH_ISA names the instruction set this file is compiled for; see CMakeLists.txt"
#endif

#define HUSH_MEMBER inline __attribute__((always_inline))
#define HUSH_INLINE static HUSH_MEMBER

#if defined(__clang__)
#define HUSH_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define HUSH_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a < b){__VA_ARGS__})
#endif

namespace hush::HUSH_ISA {

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef int16_t i16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

template <class Vector, class Lane>
HUSH_INLINE Vector load_as(const Lane* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
HUSH_INLINE void store(int16_t* p, i16x8 v) { std::memcpy(p, &v, 16); }

// What differs between one register and two: f32x8 and i32x8 are eight lanes, i16x16 are sixteen short ones. Masks are
// what comparisons return: a lane is -1 (true) or 0 (false).
//   select(mask, a, b)  a where the mask is true, else b; a ternary would do for one register only
//   bits(mask)          one bit per lane; of i16x16 every second bit is a lane
//   min, max            b where a lane of a or b is no number, on every machine
//   fma(a, b, c)        a · b + c, fused if the machine can: left to itself, the compiler fuses here and not there
#if defined(__AVX2__)

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

HUSH_INLINE f32x8 splat(float x) { return f32x8{x, x, x, x, x, x, x, x}; }
HUSH_INLINE i32x8 splat_int(int32_t x) { return i32x8{x, x, x, x, x, x, x, x}; }
HUSH_INLINE i16x16 splat_short(int16_t x) { return (i16x16)_mm256_set1_epi16(x); }
HUSH_INLINE f32x8 iota() { return f32x8{0, 1, 2, 3, 4, 5, 6, 7}; }
HUSH_INLINE i32x8 iota_int() { return i32x8{0, 1, 2, 3, 4, 5, 6, 7}; }

HUSH_INLINE f32x8 load(const float* p) { return load_as<f32x8>(p); }
HUSH_INLINE i32x8 load(const int32_t* p) { return load_as<i32x8>(p); }
HUSH_INLINE i16x16 load(const int16_t* p) { return load_as<i16x16>(p); }
HUSH_INLINE void store(float* p, f32x8 v) { std::memcpy(p, &v, 32); }
HUSH_INLINE void store(int32_t* p, i32x8 v) { std::memcpy(p, &v, 32); }

HUSH_INLINE f32x8 select(i32x8 mask, f32x8 a, f32x8 b) { return mask ? a : b; }
HUSH_INLINE i32x8 select(i32x8 mask, i32x8 a, i32x8 b) { return mask ? a : b; }
HUSH_INLINE f32x8 min(f32x8 a, f32x8 b) { return (f32x8)_mm256_min_ps((__m256)a, (__m256)b); }
HUSH_INLINE f32x8 max(f32x8 a, f32x8 b) { return (f32x8)_mm256_max_ps((__m256)a, (__m256)b); }
HUSH_INLINE i32x8 min(i32x8 a, i32x8 b) { return a < b ? a : b; }
HUSH_INLINE i32x8 max(i32x8 a, i32x8 b) { return a > b ? a : b; }
HUSH_INLINE f32x8 sqrt(f32x8 a) { return (f32x8)_mm256_sqrt_ps((__m256)a); }
HUSH_INLINE f32x8 fma(f32x8 a, f32x8 b, f32x8 c) { return (f32x8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }

HUSH_INLINE unsigned bits(i32x8 mask) { return (unsigned)_mm256_movemask_ps((__m256)mask); }
HUSH_INLINE unsigned bits(i16x16 mask) { return (unsigned)_mm256_movemask_epi8((__m256i)mask) & 0x55555555u; }
HUSH_INLINE bool any(i32x8 mask) { return !_mm256_testz_si256((__m256i)mask, (__m256i)mask); }

HUSH_INLINE i32x8 truncate(f32x8 a) { return __builtin_convertvector(a, i32x8); }
HUSH_INLINE f32x8 to_float(i32x8 a) { return __builtin_convertvector(a, f32x8); }
HUSH_INLINE f32x8 bits_to_float(i32x8 a) { return (f32x8)a; }
HUSH_INLINE i32x8 float_bits(f32x8 a) { return (i32x8)a; }
HUSH_INLINE i32x8 wrapping_sum(i32x8 a, i32x8 b) { return (i32x8)((u32x8)a + (u32x8)b); }
HUSH_INLINE i16x8 to_short(i32x8 a) { return __builtin_convertvector(a, i16x8); }

// Lane k of the result is the least lane of rows[k].
HUSH_INLINE f32x8 row_minima(const f32x8 rows[8]) {
    f32x8 half[4], quarter[2];
    for (int k = 0; k < 4; ++k)
        half[k] = min(HUSH_SHUFFLE(rows[k], rows[k + 4], 0, 1, 2, 3, 8, 9, 10, 11),
                      HUSH_SHUFFLE(rows[k], rows[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    for (int k = 0; k < 2; ++k)
        quarter[k] = min(HUSH_SHUFFLE(half[2 * k], half[2 * k + 1], 0, 8, 1, 9, 4, 12, 5, 13),
                         HUSH_SHUFFLE(half[2 * k], half[2 * k + 1], 2, 10, 3, 11, 6, 14, 7, 15));
    return min(HUSH_SHUFFLE(quarter[0], quarter[1], 0, 1, 8, 9, 4, 5, 12, 13),
               HUSH_SHUFFLE(quarter[0], quarter[1], 2, 3, 10, 11, 6, 7, 14, 15));
}

#else

// A vector type of 32 bytes would do too, but where registers have 16, GCC compares and selects it lane by lane.
template <class Half>
struct Pair {
    Half low, high;
    HUSH_MEMBER auto operator[](int k) const {
        constexpr int n = sizeof(Half) / sizeof(low[0]);
        return k < n ? low[k] : high[k - n];
    }
};
using f32x8 = Pair<f32x4>;
using i32x8 = Pair<i32x4>;
using i16x16 = Pair<i16x8>;

#define HUSH_OPERATOR(op)                                                        \
    template <class Half>                                                        \
    HUSH_INLINE auto operator op(Pair<Half> a, Pair<Half> b) {                   \
        return Pair<decltype(a.low op b.low)>{a.low op b.low, a.high op b.high}; \
    }
HUSH_OPERATOR(+)
HUSH_OPERATOR(-)
HUSH_OPERATOR(*)
HUSH_OPERATOR(/)
HUSH_OPERATOR(<)
HUSH_OPERATOR(<=)
HUSH_OPERATOR(>)
HUSH_OPERATOR(>=)
HUSH_OPERATOR(==)
HUSH_OPERATOR(&)
HUSH_OPERATOR(|)
#undef HUSH_OPERATOR

template <class Half>
HUSH_INLINE Pair<Half> operator-(Pair<Half> a) {
    return {-a.low, -a.high};
}
template <class Half>
HUSH_INLINE Pair<Half> operator~(Pair<Half> a) {
    return {~a.low, ~a.high};
}
template <class Half>
HUSH_INLINE Pair<Half> operator<<(Pair<Half> a, int by) {
    return {a.low << by, a.high << by};
}
template <class Half>
HUSH_INLINE Pair<Half> operator>>(Pair<Half> a, int by) {
    return {a.low >> by, a.high >> by};
}
template <class Half>
HUSH_INLINE void operator+=(Pair<Half>& a, Pair<Half> b) {
    a = a + b;
}
template <class Half>
HUSH_INLINE void operator&=(Pair<Half>& a, Pair<Half> b) {
    a = a & b;
}
template <class Half>
HUSH_INLINE void operator|=(Pair<Half>& a, Pair<Half> b) {
    a = a | b;
}

HUSH_INLINE f32x8 splat(float x) { return {f32x4{x, x, x, x}, f32x4{x, x, x, x}}; }
HUSH_INLINE i32x8 splat_int(int32_t x) { return {i32x4{x, x, x, x}, i32x4{x, x, x, x}}; }
HUSH_INLINE i16x16 splat_short(int16_t x) { return {i16x8{x, x, x, x, x, x, x, x}, i16x8{x, x, x, x, x, x, x, x}}; }
HUSH_INLINE f32x8 iota() { return {f32x4{0, 1, 2, 3}, f32x4{4, 5, 6, 7}}; }
HUSH_INLINE i32x8 iota_int() { return {i32x4{0, 1, 2, 3}, i32x4{4, 5, 6, 7}}; }

HUSH_INLINE f32x8 load(const float* p) { return {load_as<f32x4>(p), load_as<f32x4>(p + 4)}; }
HUSH_INLINE i32x8 load(const int32_t* p) { return {load_as<i32x4>(p), load_as<i32x4>(p + 4)}; }
HUSH_INLINE i16x16 load(const int16_t* p) { return {load_as<i16x8>(p), load_as<i16x8>(p + 8)}; }
template <class Half, class Lane>
HUSH_INLINE void store(Lane* p, Pair<Half> v) {
    std::memcpy(p, &v.low, 16);
    std::memcpy(p + 16 / sizeof(Lane), &v.high, 16);
}

// Bit by bit: becomes and, andnot, or (SSE2) or one bit select (NEON); `mask ? a : b` would compare the mask with 0.
HUSH_INLINE f32x4 select(i32x4 mask, f32x4 a, f32x4 b) { return (f32x4)((mask & (i32x4)a) | (~mask & (i32x4)b)); }
HUSH_INLINE i32x4 select(i32x4 mask, i32x4 a, i32x4 b) { return (mask & a) | (~mask & b); }
template <class Half>
HUSH_INLINE Pair<Half> select(i32x8 mask, Pair<Half> a, Pair<Half> b) {
    return {select(mask.low, a.low, b.low), select(mask.high, a.high, b.high)};
}

#if defined(__SSE2__)

HUSH_INLINE f32x4 min(f32x4 a, f32x4 b) { return (f32x4)_mm_min_ps((__m128)a, (__m128)b); }
HUSH_INLINE f32x4 max(f32x4 a, f32x4 b) { return (f32x4)_mm_max_ps((__m128)a, (__m128)b); }
HUSH_INLINE f32x4 sqrt(f32x4 a) { return (f32x4)_mm_sqrt_ps((__m128)a); }
HUSH_INLINE f32x4 fma(f32x4 a, f32x4 b, f32x4 c) { return a * b + c; }
HUSH_INLINE i16x8 to_short(i32x8 a) { return (i16x8)_mm_packs_epi32((__m128i)a.low, (__m128i)a.high); }
HUSH_INLINE bool any(i32x8 mask) { return _mm_movemask_ps((__m128)(mask.low | mask.high)) != 0; }
HUSH_INLINE unsigned bits(i32x8 mask) {
    return (unsigned)(_mm_movemask_ps((__m128)mask.low) | _mm_movemask_ps((__m128)mask.high) << 4);
}
HUSH_INLINE unsigned bits(i16x16 mask) {
    int low = _mm_movemask_epi8((__m128i)mask.low), high = _mm_movemask_epi8((__m128i)mask.high);
    return ((unsigned)low | (unsigned)high << 16) & 0x55555555u;
}

#else

HUSH_INLINE f32x4 min(f32x4 a, f32x4 b) { return select(a < b, a, b); }
HUSH_INLINE f32x4 max(f32x4 a, f32x4 b) { return select(a > b, a, b); }

#if defined(__aarch64__)
HUSH_INLINE f32x4 sqrt(f32x4 a) { return (f32x4)vsqrtq_f32((float32x4_t)a); }
HUSH_INLINE f32x4 fma(f32x4 a, f32x4 b, f32x4 c) {
    return (f32x4)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
HUSH_INLINE unsigned sum(i32x4 a) { return (unsigned)vaddvq_s32((int32x4_t)a); }
HUSH_INLINE unsigned sum(i16x8 a) { return (uint16_t)vaddvq_s16((int16x8_t)a); }
#else
HUSH_INLINE f32x4 sqrt(f32x4 a) {
    return f32x4{__builtin_sqrtf(a[0]), __builtin_sqrtf(a[1]), __builtin_sqrtf(a[2]), __builtin_sqrtf(a[3])};
}
HUSH_INLINE f32x4 fma(f32x4 a, f32x4 b, f32x4 c) { return a * b + c; }
HUSH_INLINE unsigned sum(i32x4 a) { return (unsigned)(a[0] + a[1] + a[2] + a[3]); }
HUSH_INLINE unsigned sum(i16x8 a) { return (uint16_t)(a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7]); }
#endif

HUSH_INLINE i16x8 to_short(i32x8 a) {  // the lower halves
    return HUSH_SHUFFLE((i16x8)a.low, (i16x8)a.high, 0, 2, 4, 6, 8, 10, 12, 14);
}
HUSH_INLINE unsigned bits(i32x8 mask) {
    return sum((mask.low & i32x4{1, 2, 4, 8}) | (mask.high & i32x4{16, 32, 64, 128}));
}
HUSH_INLINE unsigned bits(i16x16 mask) {
    const i16x8 lane = {1 << 0, 1 << 2, 1 << 4, 1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14};
    return sum(mask.low & lane) | sum(mask.high & lane) << 16;
}
HUSH_INLINE bool any(i32x8 mask) { return bits(mask) != 0; }

#endif

HUSH_INLINE i32x4 min(i32x4 a, i32x4 b) { return select(a < b, a, b); }
HUSH_INLINE i32x4 max(i32x4 a, i32x4 b) { return select(a > b, a, b); }
HUSH_INLINE f32x8 min(f32x8 a, f32x8 b) { return {min(a.low, b.low), min(a.high, b.high)}; }
HUSH_INLINE f32x8 max(f32x8 a, f32x8 b) { return {max(a.low, b.low), max(a.high, b.high)}; }
HUSH_INLINE i32x8 min(i32x8 a, i32x8 b) { return {min(a.low, b.low), min(a.high, b.high)}; }
HUSH_INLINE i32x8 max(i32x8 a, i32x8 b) { return {max(a.low, b.low), max(a.high, b.high)}; }
HUSH_INLINE f32x8 sqrt(f32x8 a) { return {sqrt(a.low), sqrt(a.high)}; }
HUSH_INLINE f32x8 fma(f32x8 a, f32x8 b, f32x8 c) { return {fma(a.low, b.low, c.low), fma(a.high, b.high, c.high)}; }

HUSH_INLINE i32x8 truncate(f32x8 a) {
    return {__builtin_convertvector(a.low, i32x4), __builtin_convertvector(a.high, i32x4)};
}
HUSH_INLINE f32x8 to_float(i32x8 a) {
    return {__builtin_convertvector(a.low, f32x4), __builtin_convertvector(a.high, f32x4)};
}
HUSH_INLINE f32x8 bits_to_float(i32x8 a) { return {(f32x4)a.low, (f32x4)a.high}; }
HUSH_INLINE i32x8 float_bits(f32x8 a) { return {(i32x4)a.low, (i32x4)a.high}; }
HUSH_INLINE i32x8 wrapping_sum(i32x8 a, i32x8 b) {
    return {(i32x4)((u32x4)a.low + (u32x4)b.low), (i32x4)((u32x4)a.high + (u32x4)b.high)};
}

HUSH_INLINE f32x4 row_minima(f32x4 a, f32x4 b, f32x4 c, f32x4 d) {
    f32x4 ab = min(HUSH_SHUFFLE(a, b, 0, 4, 1, 5), HUSH_SHUFFLE(a, b, 2, 6, 3, 7));
    f32x4 cd = min(HUSH_SHUFFLE(c, d, 0, 4, 1, 5), HUSH_SHUFFLE(c, d, 2, 6, 3, 7));
    return min(HUSH_SHUFFLE(ab, cd, 0, 1, 4, 5), HUSH_SHUFFLE(ab, cd, 2, 3, 6, 7));
}
HUSH_INLINE f32x8 row_minima(const f32x8 rows[8]) {
    f32x4 half[8];
    for (int k = 0; k < 8; ++k) half[k] = min(rows[k].low, rows[k].high);
    return {row_minima(half[0], half[1], half[2], half[3]), row_minima(half[4], half[5], half[6], half[7])};
}

#endif

// columns[b] has bit b of each of 32 bytes.
HUSH_INLINE void bit_columns(const uint8_t* bytes, uint32_t columns[8]) {
#if defined(__AVX2__)
    __m256i v;
    std::memcpy(&v, bytes, 32);
    for (int b = 8; b-- > 0; v = _mm256_add_epi8(v, v)) columns[b] = (uint32_t)_mm256_movemask_epi8(v);
#else
    for (int b = 0; b < 8; ++b) columns[b] = 0;
    for (int k = 0; k < 4; ++k) {
        uint64_t word;
        std::memcpy(&word, bytes + 8 * k, 8);
        for (int b = 0; b < 8; ++b) {  // the product has the lowest bit of byte j in bit 56 + j
            const uint64_t lowest = word >> b & 0x0101010101010101ull;
            columns[b] |= (uint32_t)(lowest * 0x0102040810204080ull >> 56) << 8 * k;
        }
    }
#endif
}

// Stores past the caches if memory is aligned to 32 bytes: for whole lines that nobody reads soon.
HUSH_INLINE void stream(float* p, f32x8 v, bool aligned) {
#if defined(__AVX2__)
    if (aligned) return _mm256_stream_ps(p, (__m256)v);
#endif
    (void)aligned;
    store(p, v);
}

HUSH_INLINE i32x8 floor_int(f32x8 a) {
    i32x8 t = truncate(a);
    return t + (to_float(t) > a);  // a true comparison is -1
}

// 2^x for x in -126 .. 0; relative error below 2e-7 (degree-6 minimax-like polynomial on -0.5 .. 0.5).
HUSH_INLINE f32x8 exp2_negative(f32x8 x) {
    x = max(x, splat(-126.0f));
    f32x8 shifted = x + splat(12582912.0f);  // 1.5 · 2^23: rounds to the nearest integer in the low bits
    f32x8 whole = shifted - splat(12582912.0f);
    f32x8 f = x - whole;
    f32x8 p = splat(1.535336188319500e-4f);
    p = p * f + splat(1.339887440266574e-3f);
    p = p * f + splat(9.618437357674640e-3f);
    p = p * f + splat(5.550332471162809e-2f);
    p = p * f + splat(2.402264791363012e-1f);
    p = p * f + splat(6.931472028550421e-1f);
    p = p * f + splat(1.0f);
    i32x8 scale = (truncate(whole) + splat_int(127)) << 23;
    return p * bits_to_float(scale);
}

HUSH_INLINE float horizontal_max(f32x8 v) {
    float r = v[0];
    for (int k = 1; k < 8; ++k) r = v[k] > r ? v[k] : r;
    return r;
}
HUSH_INLINE float horizontal_min(f32x8 v) {
    float r = v[0];
    for (int k = 1; k < 8; ++k) r = v[k] < r ? v[k] : r;
    return r;
}

}  // namespace hush::HUSH_ISA
