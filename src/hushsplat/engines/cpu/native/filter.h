// Pass 3: the anisotropic filter over the pyramid of this frame.
#pragma once

#include <cmath>

#include "denoise.h"
#include "functions.h"
#include "pyramid.h"
#include "rows.h"
#include "trust.h"

namespace hush::HUSH_ISA {

// The kernels of eight pixels.
struct Kernels8 {
    f32x8 lod, dx, dy;   // level of detail; px from one probe's offset of 1 to the next, along the major axis
    f32x8 outer, inner;  // weight of each of the outer and of each of the inner two probes
};

HUSH_INLINE Kernels8 kernels_from(const f32x8 v[4], float lean) {
    const f32x8 zero = splat(0), floor = softplus(v[3]);
    const f32x8 ax = max(v[1], zero) + floor, ay = max(v[0], zero) + floor;
    const f32x8 z = tanh(v[2]) * sqrt(ax * ay + splat(1e-8f));
    const f32x8 mean = splat(0.5f) * (ax + ay), half = splat(0.5f) * (ax - ay);
    const f32x8 radius = sqrt(half * half + z * z + splat(1e-12f)) - splat(1e-6f);
    const f32x8 minor = max(mean - radius, splat(1e-4f)), major = max(mean + radius, minor);
    // The major direction may lean slightly towards x.
    const f32x8 u = half + mean * splat(lean), length = sqrt(u * u + z * z + splat(1e-12f));
    const i32x8 right = u >= zero;
    const f32x8 c = select(right, length + u, z), s = select(right, z, length - u);
    const f32x8 step = minor / sqrt(c * c + s * s);
    const f32x8 ratio = minor / major, squared = ratio * ratio;
    const f32x8 outer = exp2_negative(squared * splat(-0.5f * 2.25f * kLog2E)),
                inner = exp2_negative(squared * splat(-0.5f * 0.25f * kLog2E));
    const f32x8 share = splat(0.5f) / (outer + inner);
    return {min(max(log2(minor), zero), splat(3)), c * step, s * step, outer * share, inner * share};
}

// V of a row, blurred by [1 2 1]ᵀ[1 2 1] / 16 with repeated edges, four floats a pixel.
HUSH_INLINE void blur_views(const DenoiseStep& step, int y, int left, int right, float* out) {
    alignas(32) float column[4 * (kPlane + 2)];  // weighted sums over three rows, from left - 1 to right
    const float* rows[3];
    for (int j = 0; j < 3; ++j)
        rows[j] = step.neural_view + 4 * (size_t)clamp_index(y + j - 1, step.height) * step.width;
    auto sum = [](f32x8 a, f32x8 b, f32x8 c) {
        return (limited_view(a) + limited_view(c)) + splat(2) * limited_view(b);
    };
    const int first = left > 0 ? left - 1 : 0, last = right < step.width ? right : step.width - 1;
    int x = first;
    for (; x < last; x += 2)
        store(column + 4 * (x - left + 1), sum(load(rows[0] + 4 * x), load(rows[1] + 4 * x), load(rows[2] + 4 * x)));
    if (x == last) {
        auto single = [&](int j) { return join(load_four(rows[j] + 4 * x), f32x4{}); };
        store_four(column + 4 * (x - left + 1), low_half(sum(single(0), single(1), single(2))));
    }
    if (left == 0) store_four(column, load_four(column + 4));
    if (right == step.width) store_four(column + 4 * (right - left + 1), load_four(column + 4 * (right - left)));
    for (int k = 0; k < 4 * (right - left); k += 8)
        store(out + k, (load(column + k) + load(column + k + 8) + splat(2) * load(column + k + 4)) * splat(1 / 16.0f));
}

// Where one level of the pyramid is read by eight pixels, of which each may be at a level of its own.
struct LevelPlaces {
    f32x8 scale, u, v;  // texels per px; the pixel's centre from that of its texel's corner, in px
    i32x8 column, row, width, last_row, begin;  // its texel; the level
};

HUSH_INLINE LevelPlaces level_places(const Pyramid& pyramid, int x, int y, i32x8 level) {
    LevelPlaces p;
    const i32x8 columns = splat_int(x) + iota_int();
    for (int k = Pyramid::kLevels - 1; k >= 0; --k) {
        const i32x8 here = level == splat_int(k), texel = columns >> k;
        auto pick = [&](auto& place, auto value) {
            place = k == Pyramid::kLevels - 1 ? value : select(here, value, place);
        };
        pick(p.scale, splat(1.0f / (1 << k)));
        pick(p.u, to_float(columns - (texel << k)) + splat(0.5f));  // the place inside the texel stays exact
        pick(p.v, splat((float)(y & ((1 << k) - 1)) + 0.5f));
        pick(p.column, texel);
        pick(p.row, splat_int(y >> k));
        pick(p.width, splat_int(pyramid.width[k]));
        pick(p.last_row, splat_int(pyramid.height[k] - 1));
        pick(p.begin, splat_int(pyramid.begin[k]));
    }
    return p;
}

// Two rows of two texels for each of eight pixels, and their weights.
struct Reads {
    alignas(32) int32_t above[8], below[8];  // texel of the left one
    alignas(32) float upper[16], lower[16];  // weights, left and right of a pixel together, in the order of slot_of
};

constexpr int slot_of[8] = {0, 1, 4, 5, 2, 3, 6, 7};  // where a pixel's pair of weights lies

HUSH_INLINE void store_pairs(float* pairs, f32x8 left, f32x8 right) {
#if defined(__AVX2__)
    store(pairs, (f32x8)_mm256_unpacklo_ps((__m256)left, (__m256)right));
    store(pairs + 8, (f32x8)_mm256_unpackhi_ps((__m256)left, (__m256)right));
#else
    for (int k = 0; k < 8; ++k) {
        pairs[2 * slot_of[k]] = left[k];
        pairs[2 * slot_of[k] + 1] = right[k];
    }
#endif
}

HUSH_INLINE f32x8 load_pair(const float* pair) {  // the first in the lower four lanes, the second in the upper four
#if defined(__AVX2__)
    double both;
    std::memcpy(&both, pair, sizeof both);
    return (f32x8)_mm256_permutevar_ps(_mm256_castpd_ps(_mm256_set1_pd(both)),
                                       _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
#else
    return {f32x4{pair[0], pair[0], pair[0], pair[0]}, f32x4{pair[1], pair[1], pair[1], pair[1]}};
#endif
}

// The bilinear sample at `dx`, `dy` px from the pixels' centres. At the edges all the weight goes to the texel inside.
HUSH_INLINE void plan_reads(const LevelPlaces& p, f32x8 dx, f32x8 dy, f32x8 weight, Reads& reads) {
    const i32x8 zero = splat_int(0), one = splat_int(1);
    const f32x8 u = (p.u + dx) * p.scale - splat(0.5f), v = (p.v + dy) * p.scale - splat(0.5f);
    const i32x8 floor_u = floor_int(u), floor_v = floor_int(v);
    const i32x8 column = p.column + floor_u, row = p.row + floor_v, most = p.width - splat_int(2);
    f32x8 s = u - to_float(floor_u);
    s = select(column < zero, splat(0), select(column > most, splat(1), s));
    const i32x8 left = max(min(column, most), zero);
    s = select(p.width == one, splat(0), s);
    const i32x8 top = min(max(row, zero), p.last_row), bottom = min(max(row + one, zero), p.last_row);
    store(reads.above, p.begin + top * p.width + left);
    store(reads.below, p.begin + bottom * p.width + left);
    const f32x8 lower = (v - to_float(floor_v)) * weight, upper = weight - lower;
    const f32x8 upper_right = upper * s, lower_right = lower * s;
    store_pairs(reads.upper, upper - upper_right, upper_right);
    store_pairs(reads.lower, lower - lower_right, lower_right);
}

// Four trilinear probes along the major axis for eight pixels, 32 texels each at most; four floats a pixel.
HUSH_INLINE void probe(const Pyramid& pyramid, const Kernels8& kernel, int x, int y, int count, float* out) {
    const i32x8 fine = min(truncate(kernel.lod), splat_int(Pyramid::kLevels - 2));
    const f32x8 blend = kernel.lod - to_float(fine);
    const bool one_level = !any(blend > splat(0));  // small kernels, most of them
    Reads reads[8];
    int planned = 0;
    for (int coarse = 0; coarse < (one_level ? 1 : 2); ++coarse) {
        const LevelPlaces places = level_places(pyramid, x, y, coarse ? fine + splat_int(1) : fine);
        const f32x8 share = coarse ? blend : splat(1) - blend;
        for (int k = 0; k < 4; ++k) {
            const f32x8 offset = splat((float)k - 1.5f), weight = k == 0 || k == 3 ? kernel.outer : kernel.inner;
            plan_reads(places, offset * kernel.dx, offset * kernel.dy, weight * share, reads[planned++]);
        }
    }
    for (int k = 0; k < count; ++k) {
        f32x8 upper = splat(0), lower = splat(0);
        for (int n = 0; n < planned; ++n) {
            const Reads& r = reads[n];
            upper = load(pyramid.texels + 4 * (size_t)r.above[k]) * load_pair(r.upper + 2 * slot_of[k]) + upper;
            lower = load(pyramid.texels + 4 * (size_t)r.below[k]) * load_pair(r.lower + 2 * slot_of[k]) + lower;
        }
        const f32x8 sum = upper + lower;
        store_four(out + 4 * k, low_half(sum) + high_half(sum));
    }
}

// Zero-shot: both axes are 2, so the probes read level 1 alone, at x - 3, x - 1, x + 1, x + 3: for an even column
// texels m - 2 .. m + 2 around m = x / 2 with the weights below, for an odd one with the same, mirrored.
HUSH_INLINE void filter_row_isotropic(const Pyramid& pyramid, int y, int left, int right, float* out) {
    const float outer = std::exp(-0.5f * 2.25f), inner = std::exp(-0.5f * 0.25f), sum = 2 * (outer + inner);
    const float a = outer / sum, b = inner / sum;
    const float weights[5] = {0.75f * a, 0.25f * a + 0.75f * b, 0.25f * b + 0.75f * b, 0.25f * b + 0.75f * a,
                              0.25f * a};
    const int w = pyramid.width[1], h = pyramid.height[1], above = (y + 1) / 2 - 1;
    const float t = y % 2 ? 0.25f : 0.75f;
    const float *top = pyramid.row(1, clamp_index(above, h)), *bottom = pyramid.row(1, clamp_index(above + 1, h));
    auto texel = [&](int m) {
        m = clamp_index(m, w);
        const f32x4 upper = load_four(top + 4 * m);
        return upper + (load_four(bottom + 4 * m) - upper) * t;
    };
    int m = left / 2;
    f32x4 window[5] = {texel(m - 2), texel(m - 1), texel(m), texel(m + 1), texel(m + 2)};
    for (int x = left; x < right; ++x) {
        if (x / 2 != m) {
            m = x / 2;
            for (int k = 0; k < 4; ++k) window[k] = window[k + 1];
            window[4] = texel(m + 2);
        }
        f32x4 value = {0, 0, 0, 0};
        for (int k = 0; k < 5; ++k) value += window[k] * weights[x % 2 ? 4 - k : k];
        store_four(out + 4 * (x - left), value);
    }
}

// This frame's value on the denoised path, for columns left .. right - 1 of a row: Y, Co, Cg, anything.
HUSH_INLINE void filter_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, float* out) {
    if (!step.settings.spatial_filter) {
        std::memcpy(out, pyramid.row(0, y) + 4 * left, (size_t)(right - left) * sizeof(f32x4));
    } else if (step.settings.zero_shot || !step.neural_view) {
        filter_row_isotropic(pyramid, y, left, right, out);
    } else {
        alignas(32) float views[4 * kPlane];
        blur_views(step, y, left, right, views);
        for (int x = left; x < right; x += 8) {
            f32x8 v[4];
            load_quads(views + 4 * (x - left), 4, v);
            probe(pyramid, kernels_from(v, step.settings.filter_lean), x, y, right - x < 8 ? right - x : 8,
                  out + 4 * (x - left));
        }
    }
}

}  // namespace hush::HUSH_ISA
