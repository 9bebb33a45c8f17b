// Pass 2: how far the history of each path can be trusted.
#pragma once

#include "denoise.h"
#include "functions.h"
#include "reproject.h"
#include "rows.h"

namespace hush::HUSH_ISA {

constexpr float kMostView = 1e4f;  // limit of V0 .. V3

HUSH_INLINE f32x8 limited_view(f32x8 v) {  // 0 where it is not finite
    return select(v - v == splat(0), min(max(v, splat(-kMostView)), splat(kMostView)), splat(0));
}

// V2 of eight pixels.
HUSH_INLINE f32x8 forward_view(const DenoiseStep& step, int x, int y, int count) {
    if (!step.neural_view || step.settings.zero_shot) return splat(0);
    f32x8 view[4];
    load_some_quads(step.neural_view + 4 * ((size_t)y * step.width + x), 4, 4, count, view);
    return limited_view(view[2]);
}

// Features of both paths for columns left .. right - 1, eight planes each.
HUSH_INLINE void trust_features(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right,
                                const float* history, const float* compressed_row, float* accumulated,
                                float* denoised) {
    const f32x8 frames_scale = splat(1 / step.settings.accumulated_cap_frames),
                denoised_scale = splat(1 / step.settings.denoised_cap_frames);
    for (int x = left; x < right; x += 8, history += 8, compressed_row += 8, accumulated += 8, denoised += 8) {
        f32x8 now[4];
        pyramid.load_pixels(x, y, now);
        auto before = [&](int channel) { return load(history + channel * kPlane); };
        const f32x8 compressed = load(compressed_row), squared = compressed * compressed,
                    difference = before(kDepthDifference);
        const f32x8 a[8] = {abs(now[0] - before(kAccumulated)),
                            before(kAccumulatedTrust),
                            squared,
                            before(kAccumulatedFrames) * frames_scale,
                            compressed,
                            difference,
                            compressed * difference,
                            forward_view(step, x, y, right - x)};
        const f32x8 luma = before(kDenoised);
        const f32x8 dy = now[0] - luma, dco = now[1] - before(kDenoised + 1), dcg = now[2] - before(kDenoised + 2);
        const f32x8 d[8] = {abs(dy),
                            luma,
                            before(kDenoisedTrust),
                            before(kDenoisedFrames) * denoised_scale,
                            compressed,
                            sqrt(dy * dy + dco * dco + dcg * dcg),
                            difference,
                            squared};
        for (int c = 0; c < 8; ++c) {
            store(accumulated + c * kPlane, a[c]);
            store(denoised + c * kPlane, d[c]);
        }
    }
}

// What a layer hands to the next one inside a function: eight channels of kTogether pixels.
struct Between {
    alignas(64) float values[8 * kTogether];
};

// 1×1 layer and SiLU; channels lie `in_stride` and `out_stride` floats apart. Sixteen pixels share each weight.
HUSH_INLINE void pointwise(const float* in, int in_stride, const float* weight, const float* bias, float* out,
                           int out_stride) {
    for (int k = 0; k < kTogether; k += 16)
        for (int first = 0; first < 8; first += 4) {
            f32x8 sum[4][2];
            for (int o = 0; o < 4; ++o) sum[o][0] = sum[o][1] = splat(bias[first + o]);
            for (int c = 0; c < 8; ++c) {
                const f32x8 a = load(in + c * in_stride + k), b = load(in + c * in_stride + k + 8);
                for (int o = 0; o < 4; ++o) {
                    const f32x8 w = splat(weight[8 * c + first + o]);
                    sum[o][0] = a * w + sum[o][0];
                    sum[o][1] = b * w + sum[o][1];
                }
            }
            for (int o = 0; o < 4; ++o) {
                store(out + (first + o) * out_stride + k, silu(sum[o][0]));
                store(out + (first + o) * out_stride + k + 8, silu(sum[o][1]));
            }
        }
}

// One channel of a depthwise layer: taps of three rows, kTogether pixels.
HUSH_INLINE void depthwise(const float* const rows[3], int channel, const float* weight, const float* bias,
                           f32x8 sum[kTogether / 8]) {
    for (int g = 0; g < kTogether / 8; ++g) sum[g] = splat(bias[channel]);
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) {
            const f32x8 w = splat(weight[8 * (3 * j + i) + channel]);
            const float* tap = rows[j] + channel * kPlane + i - 1;
            for (int g = 0; g < kTogether / 8; ++g) sum[g] = load(tap + 8 * g) * w + sum[g];
        }
}

HUSH_INLINE void depthwise(const float* const rows[3], const float* weight, const float* bias, Between& out) {
    for (int c = 0; c < 8; ++c) {
        f32x8 sum[kTogether / 8];
        depthwise(rows, c, weight, bias, sum);
        for (int g = 0; g < kTogether / 8; ++g) store(out.values + c * kTogether + 8 * g, sum[g]);
    }
}

// Calls layer(first pixel) for groups of kTogether; planes are wide enough for the last one to run over.
template <class Layer>
HUSH_INLINE void each_group(int columns, Layer&& layer) {
    for (int k = 0; k < columns; k += kTogether) layer(k);
}

// First 1×1 layer.
HUSH_INLINE void encode_row(const DenoiserWeights& w, const float* features, float* out, int columns) {
    each_group(columns, [&](int k) { pointwise(features + k, kPlane, w.encode, w.encode_bias, out + k, kPlane); });
}

// Depthwise and 1×1, then 1×1: one row of `out` from three of the encoded.
HUSH_INLINE void hidden_row(const DenoiserWeights& w, const float* const rows[3], float* out, int columns) {
    each_group(columns, [&](int k) {
        const float* const here[3] = {rows[0] + k, rows[1] + k, rows[2] + k};
        Between a, b;
        depthwise(here, w.depthwise1, w.depthwise1_bias, a);
        pointwise(a.values, kTogether, w.point1, w.point1_bias, b.values, kTogether);
        pointwise(b.values, kTogether, w.point2, w.point2_bias, out + k, kPlane);
    });
}

HUSH_INLINE void accumulated_trust_row(const DenoiserWeights& w, const float* const rows[3], float* trust,
                                       int columns) {
    each_group(columns, [&](int k) {
        const float* const here[3] = {rows[0] + k, rows[1] + k, rows[2] + k};
        Between a, b;
        depthwise(here, w.depthwise2, w.depthwise2_bias, a);
        pointwise(a.values, kTogether, w.point3, w.point3_bias, b.values, kTogether);
        for (int g = 0; g < kTogether; g += 8) {
            f32x8 sum = splat(w.head_bias);
            for (int c = 0; c < 8; ++c) sum = load(b.values + c * kTogether + g) * splat(w.head[c]) + sum;
            store(trust + k + g, sigmoid(sum));
        }
    });
}

HUSH_INLINE void denoised_trust_row(const DenoiserWeights& w, const float* const rows[3], float* trust, int columns) {
    each_group(columns, [&](int k) {
        const float* const here[3] = {rows[0] + k, rows[1] + k, rows[2] + k};
        f32x8 total[kTogether / 8];
        for (f32x8& t : total) t = splat(w.denoised_head_bias);
        for (int c = 0; c < 8; ++c) {
            f32x8 sum[kTogether / 8];
            depthwise(here, c, w.denoised_depthwise, w.denoised_depthwise_bias, sum);
            for (int g = 0; g < kTogether / 8; ++g) total[g] = silu(sum[g]) * splat(w.denoised_head[c]) + total[g];
        }
        for (int g = 0; g < kTogether / 8; ++g) store(trust + k + 8 * g, sigmoid(total[g]));
    });
}

}  // namespace hush::HUSH_ISA
