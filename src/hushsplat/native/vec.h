// Eight lanes at a time, by compiler vector extensions: AVX2 where the build allows it, SSE2 or NEON pairs elsewhere.
// Everything lives in a namespace per instruction set, so that the linker can never mix two builds of one function.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef HUSH_ISA
#error "HUSH_ISA names the instruction set this file is compiled for; see CMakeLists.txt"
#endif

namespace hush::HUSH_ISA {

typedef float f8 __attribute__((vector_size(32), aligned(32)));
typedef int32_t i8 __attribute__((vector_size(32), aligned(32)));
typedef uint32_t u8 __attribute__((vector_size(32), aligned(32)));
typedef int16_t s8 __attribute__((vector_size(16), aligned(16)));
typedef float f4 __attribute__((vector_size(16), aligned(16)));

typedef int16_t s16 __attribute__((vector_size(32), aligned(32)));

#define HUSH_MEMBER inline __attribute__((always_inline))
#define HUSH_INLINE static HUSH_MEMBER

HUSH_INLINE f8 splat(float x) { return f8{x, x, x, x, x, x, x, x}; }
HUSH_INLINE i8 splat_int(int32_t x) { return i8{x, x, x, x, x, x, x, x}; }
HUSH_INLINE f8 iota() { return f8{0, 1, 2, 3, 4, 5, 6, 7}; }
HUSH_INLINE i8 iota_int() { return i8{0, 1, 2, 3, 4, 5, 6, 7}; }

HUSH_INLINE f8 load(const float* p) { f8 v; std::memcpy(&v, p, 32); return v; }
HUSH_INLINE i8 load(const int32_t* p) { i8 v; std::memcpy(&v, p, 32); return v; }
HUSH_INLINE void store(float* p, f8 v) { std::memcpy(p, &v, 32); }
HUSH_INLINE void store(int32_t* p, i8 v) { std::memcpy(p, &v, 32); }
HUSH_INLINE i8 load_short(const int16_t* p) { s8 v; std::memcpy(&v, p, 16); return __builtin_convertvector(v, i8); }
HUSH_INLINE void store_short(int16_t* p, i8 v) { s8 w = __builtin_convertvector(v, s8); std::memcpy(p, &w, 16); }

HUSH_INLINE f8 min(f8 a, f8 b) { return a < b ? a : b; }
HUSH_INLINE f8 max(f8 a, f8 b) { return a > b ? a : b; }
HUSH_INLINE i8 min(i8 a, i8 b) { return a < b ? a : b; }
HUSH_INLINE i8 max(i8 a, i8 b) { return a > b ? a : b; }

HUSH_INLINE f8 sqrt(f8 a) {
#if defined(__AVX2__)
    return (f8)_mm256_sqrt_ps((__m256)a);
#else
    f8 r;
    for (int k = 0; k < 8; ++k) r[k] = __builtin_sqrtf(a[k]);
    return r;
#endif
}

// One bit per lane whose mask is set.
HUSH_INLINE unsigned bits(i8 mask) {
#if defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps((__m256)mask);
#else
    unsigned r = 0;
    for (int k = 0; k < 8; ++k) r |= (unsigned)(mask[k] < 0) << k;
    return r;
#endif
}

// Sixteen short lanes: every second bit of the result is one lane.
HUSH_INLINE unsigned bits(s16 mask) {
#if defined(__AVX2__)
    return (unsigned)_mm256_movemask_epi8((__m256i)mask) & 0x55555555u;
#else
    unsigned r = 0;
    for (int k = 0; k < 16; ++k) r |= (unsigned)(mask[k] < 0) << (2 * k);
    return r;
#endif
}

HUSH_INLINE s16 load16(const int16_t* p) { s16 v; std::memcpy(&v, p, 32); return v; }

HUSH_INLINE bool any(i8 mask) {
#if defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    return bits(mask) != 0;
#endif
}

HUSH_INLINE i8 truncate(f8 a) { return __builtin_convertvector(a, i8); }
HUSH_INLINE f8 to_float(i8 a) { return __builtin_convertvector(a, f8); }

HUSH_INLINE i8 floor_int(f8 a) {
    i8 t = truncate(a);
    return t + (i8)(to_float(t) > a);  // a true comparison is -1
}

HUSH_INLINE f8 gather(const float* table, i8 index) {
#if defined(__AVX2__)
    return (f8)_mm256_i32gather_ps(table, (__m256i)index, 4);
#else
    f8 r;
    for (int k = 0; k < 8; ++k) r[k] = table[index[k]];
    return r;
#endif
}

// 2^x for x in -126 .. 0; relative error below 2e-7 (degree-6 minimax-like polynomial on -0.5 .. 0.5).
HUSH_INLINE f8 exp2_negative(f8 x) {
    x = max(x, splat(-126.0f));
    f8 shifted = x + splat(12582912.0f);  // 1.5 · 2^23: rounds to the nearest integer in the low bits
    f8 whole = shifted - splat(12582912.0f);
    f8 f = x - whole;
    f8 p = splat(1.535336188319500e-4f);
    p = p * f + splat(1.339887440266574e-3f);
    p = p * f + splat(9.618437357674640e-3f);
    p = p * f + splat(5.550332471162809e-2f);
    p = p * f + splat(2.402264791363012e-1f);
    p = p * f + splat(6.931472028550421e-1f);
    p = p * f + splat(1.0f);
    i8 scale = (truncate(whole) + splat_int(127)) << 23;
    return p * (f8)scale;
}

#if defined(__clang__)
#define HUSH_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define HUSH_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, i8{__VA_ARGS__})
#endif

// Lane k of the result is the least lane of rows[k].
HUSH_INLINE f8 row_minima(const f8 rows[8]) {
    f8 half[4], quarter[2];
    for (int k = 0; k < 4; ++k)
        half[k] = min(HUSH_SHUFFLE(rows[k], rows[k + 4], 0, 1, 2, 3, 8, 9, 10, 11),
                      HUSH_SHUFFLE(rows[k], rows[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    for (int k = 0; k < 2; ++k)
        quarter[k] = min(HUSH_SHUFFLE(half[2 * k], half[2 * k + 1], 0, 8, 1, 9, 4, 12, 5, 13),
                         HUSH_SHUFFLE(half[2 * k], half[2 * k + 1], 2, 10, 3, 11, 6, 14, 7, 15));
    return min(HUSH_SHUFFLE(quarter[0], quarter[1], 0, 1, 8, 9, 4, 5, 12, 13),
               HUSH_SHUFFLE(quarter[0], quarter[1], 2, 3, 10, 11, 6, 7, 14, 15));
}

HUSH_INLINE float horizontal_min(f8 v) {
    float r = v[0];
    for (int k = 1; k < 8; ++k) r = v[k] < r ? v[k] : r;
    return r;
}

}  // namespace hush::HUSH_ISA
