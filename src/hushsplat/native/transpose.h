// Eight pixels of eight channels, pixel by pixel or channel by channel.
#pragma once

#include "vec.h"

namespace hush::HUSH_ISA {

HUSH_INLINE i8 float_to_bits(f8 a) {
    i8 r;
    std::memcpy(&r, &a, sizeof r);
    return r;
}

HUSH_INLINE f8 reciprocal(f8 a) {  // to rounding
#if defined(__AVX2__)
    f8 r = (f8)_mm256_rcp_ps((__m256)a);
    return r * (splat(2) - a * r);
#else
    return splat(1) / a;
#endif
}

// rows[k] lane j becomes rows[j] lane k.
HUSH_INLINE void transpose(f8 rows[8]) {
#if defined(__AVX2__)
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
        rows[k] = (f8)_mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
        rows[k + 4] = (f8)_mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
    }
#else
    alignas(32) float in[8][8], out[8][8];
    for (int k = 0; k < 8; ++k) store(in[k], rows[k]);
    for (int k = 0; k < 8; ++k)
        for (int j = 0; j < 8; ++j) out[j][k] = in[k][j];
    for (int k = 0; k < 8; ++k) rows[k] = load(out[k]);
#endif
}

// Channels from .. from + 7 of eight pixels that lie `stride` floats apart.
HUSH_INLINE void load_channels(const float* pixels, int stride, f8 channels[8]) {
    for (int k = 0; k < 8; ++k) channels[k] = load(pixels + k * stride);
    transpose(channels);
}

// The reverse, for the first `count` pixels only.
HUSH_INLINE void store_channels(float* pixels, int stride, f8 channels[8], int count) {
    transpose(channels);
    for (int k = 0; k < 8 && k < count; ++k) store(pixels + k * stride, channels[k]);
}

}  // namespace hush::HUSH_ISA
