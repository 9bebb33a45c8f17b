// Eight pixels, pixel by pixel in memory and channel by channel in registers.
#pragma once

#include "vec.h"

namespace hush::HUSH_ISA {

HUSH_INLINE f32x4 load_four(const float* p) { return load_as<f32x4>(p); }
HUSH_INLINE void store_four(float* p, f32x4 v) { std::memcpy(p, &v, 16); }

// Row k lane j becomes row j lane k.
HUSH_INLINE void transpose_four(f32x4& a, f32x4& b, f32x4& c, f32x4& d) {
    const f32x4 ab = HUSH_SHUFFLE(a, b, 0, 4, 1, 5), cd = HUSH_SHUFFLE(c, d, 0, 4, 1, 5);
    const f32x4 ab2 = HUSH_SHUFFLE(a, b, 2, 6, 3, 7), cd2 = HUSH_SHUFFLE(c, d, 2, 6, 3, 7);
    a = HUSH_SHUFFLE(ab, cd, 0, 1, 4, 5);
    b = HUSH_SHUFFLE(ab, cd, 2, 3, 6, 7);
    c = HUSH_SHUFFLE(ab2, cd2, 0, 1, 4, 5);
    d = HUSH_SHUFFLE(ab2, cd2, 2, 3, 6, 7);
}

#if defined(__AVX2__)

// rows[k] lane j becomes rows[j] lane k.
HUSH_INLINE void transpose(f32x8 rows[8]) {
    __m256 a[8], b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k] = _mm256_unpacklo_ps((__m256)rows[k], (__m256)rows[k + 1]);
        a[k + 1] = _mm256_unpackhi_ps((__m256)rows[k], (__m256)rows[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {
        b[k] = _mm256_shuffle_ps(a[k], a[k + 2], 0x44);
        b[k + 1] = _mm256_shuffle_ps(a[k], a[k + 2], 0xee);
        b[k + 2] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0x44);
        b[k + 3] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0xee);
    }
    for (int k = 0; k < 4; ++k) {
        rows[k] = (f32x8)_mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
        rows[k + 4] = (f32x8)_mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
    }
}

// In either half: rows[k] lane j becomes rows[j] lane k, for four rows.
HUSH_INLINE void transpose_halves(f32x8 rows[4]) {
    const __m256 a = _mm256_unpacklo_ps((__m256)rows[0], (__m256)rows[1]),
                 b = _mm256_unpackhi_ps((__m256)rows[0], (__m256)rows[1]);
    const __m256 c = _mm256_unpacklo_ps((__m256)rows[2], (__m256)rows[3]),
                 d = _mm256_unpackhi_ps((__m256)rows[2], (__m256)rows[3]);
    rows[0] = (f32x8)_mm256_shuffle_ps(a, c, 0x44);
    rows[1] = (f32x8)_mm256_shuffle_ps(a, c, 0xee);
    rows[2] = (f32x8)_mm256_shuffle_ps(b, d, 0x44);
    rows[3] = (f32x8)_mm256_shuffle_ps(b, d, 0xee);
}

HUSH_INLINE f32x8 join(f32x4 low, f32x4 high) {
    return (f32x8)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)low), (__m128)high, 1);
}
HUSH_INLINE f32x4 low_half(f32x8 v) { return (f32x4)_mm256_castps256_ps128((__m256)v); }
HUSH_INLINE f32x4 high_half(f32x8 v) { return (f32x4)_mm256_extractf128_ps((__m256)v, 1); }

#else

HUSH_INLINE void transpose_halves(f32x8 rows[4]) {
    transpose_four(rows[0].low, rows[1].low, rows[2].low, rows[3].low);
    transpose_four(rows[0].high, rows[1].high, rows[2].high, rows[3].high);
}

HUSH_INLINE void transpose(f32x8 rows[8]) {
    transpose_halves(rows);
    transpose_halves(rows + 4);
    for (int k = 0; k < 4; ++k) {
        const f32x4 corner = rows[k].high;
        rows[k].high = rows[k + 4].low;
        rows[k + 4].low = corner;
    }
}

HUSH_INLINE f32x8 join(f32x4 low, f32x4 high) { return {low, high}; }
HUSH_INLINE f32x4 low_half(f32x8 v) { return v.low; }
HUSH_INLINE f32x4 high_half(f32x8 v) { return v.high; }

#endif

// Eight channels of eight pixels that lie `stride` floats apart.
HUSH_INLINE void load_channels(const float* pixels, int stride, f32x8 channels[8]) {
    for (int k = 0; k < 8; ++k) channels[k] = load(pixels + k * stride);
    transpose(channels);
}

// Four channels of eight pixels.
HUSH_INLINE void load_quads(const float* pixels, int stride, f32x8 channels[4]) {
    for (int k = 0; k < 4; ++k)
        channels[k] = join(load_four(pixels + k * stride), load_four(pixels + (k + 4) * stride));
    transpose_halves(channels);
}

// The same for the first `count` pixels only, of which just `floats` each are read; the rest are 0.
HUSH_INLINE void load_some_quads(const float* pixels, int stride, int floats, int count, f32x8 channels[4]) {
    if (count >= 8 && floats == 4) return load_quads(pixels, stride, channels);
    alignas(32) float block[8 * 4] = {};
    for (int k = 0; k < count && k < 8; ++k)
        for (int c = 0; c < floats; ++c) block[4 * k + c] = pixels[k * stride + c];
    load_quads(block, 4, channels);
}

// Stores four channels of eight pixels, in this order: the last float of a pixel may lie where the next one begins.
HUSH_INLINE void store_quads(float* pixels, int stride, const f32x8 channels[4]) {
    f32x8 rows[4] = {channels[0], channels[1], channels[2], channels[3]};
    transpose_halves(rows);
    for (int k = 0; k < 4; ++k) store_four(pixels + k * stride, low_half(rows[k]));
    for (int k = 0; k < 4; ++k) store_four(pixels + (k + 4) * stride, high_half(rows[k]));
}

}  // namespace hush::HUSH_ISA
