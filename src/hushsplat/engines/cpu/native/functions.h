// Elementary functions on eight lanes, as exact as the denoiser needs them.
#pragma once

#include "vec.h"

namespace hush::HUSH_ISA {

constexpr float kLog2E = 1.4426950408889634f;

HUSH_INLINE i32x8 float_to_bits(f32x8 a) {
    i32x8 r;
    std::memcpy(&r, &a, sizeof r);
    return r;
}

HUSH_INLINE f32x8 abs(f32x8 a) { return max(a, -a); }

// 1 + exp(-x), relative error below 3e-6: the power of two by adding to an exponent, the rest by a polynomial of
// degree 4.
HUSH_INLINE f32x8 one_plus_exp_negated(f32x8 x) {
    constexpr float kShift =
        12582912.0f + 127;  // 1.5 · 2^23: leaves the nearest integer, biased as an exponent, in the low bits
    x = min(max(x, splat(-60.0f)), splat(60.0f));
    const f32x8 shifted = x * splat(-kLog2E) + splat(kShift);
    const f32x8 f = x * splat(-kLog2E) - (shifted - splat(kShift));
    f32x8 p = splat(9.570090905e-3f) * f + splat(5.591786356e-2f);
    p = p * f + splat(2.402474514e-1f);
    p = p * f + splat(6.931218144e-1f);
    p = p * f + splat(9.999992613e-1f);
    return p * bits_to_float(float_to_bits(shifted) << 23) + splat(1);
}

// a / b to about 2e-7, for b that is neither 0 nor near the ends of float32.
HUSH_INLINE f32x8 quotient(f32x8 a, f32x8 b) {
#if defined(__AVX2__)
    const f32x8 r = (f32x8)_mm256_rcp_ps((__m256)b);
    return a * r * (splat(2) - b * r);
#else
    return a / b;
#endif
}

HUSH_INLINE f32x8 sigmoid(f32x8 x) { return quotient(splat(1), one_plus_exp_negated(x)); }
HUSH_INLINE f32x8 silu(f32x8 x) { return quotient(x, one_plus_exp_negated(x)); }

// log2(x) for normal x > 0, to about 1e-7: x = m · 2^n with m between √½ and √2, log2 m = 2/ln 2 · artanh((m - 1)/(m +
// 1)).
HUSH_INLINE f32x8 log2(f32x8 x) {
    const i32x8 bits = float_to_bits(x), whole = (bits - splat_int(0x3f3504f3)) >> 23;
    const f32x8 m = bits_to_float(bits - (whole << 23));
    const f32x8 t = (m - splat(1)) / (m + splat(1)), tt = t * t;
    f32x8 p = splat(2.8853900817779268f / 7) * tt + splat(2.8853900817779268f / 5);
    p = p * tt + splat(2.8853900817779268f / 3);
    p = p * tt + splat(2.8853900817779268f);
    return p * t + to_float(whole);
}

// log(1 + exp(x)), absolute error about 1e-7.
HUSH_INLINE f32x8 softplus(f32x8 x) {
    return max(x, splat(0)) + log2(splat(1) + exp2_negative(-abs(x) * splat(kLog2E))) * splat(0.6931471805599453f);
}

HUSH_INLINE f32x8 tanh(f32x8 x) {
    const f32x8 e = exp2_negative(-abs(x) * splat(2 * kLog2E)), size = (splat(1) - e) / (splat(1) + e);
    return select(x < splat(0), -size, size);
}

}  // namespace hush::HUSH_ISA
