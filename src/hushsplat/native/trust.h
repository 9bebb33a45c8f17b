// Pass 2: how far the history of each path can be trusted. Pixels carry their eight channels together.
#pragma once

#include "denoise.h"
#include "filter.h"
#include "reproject.h"
#include "transpose.h"

namespace hush::HUSH_ISA {

// 1 / (1 + exp(-x)), to about 1e-6: the exponential by a polynomial of degree 5, the quotient by a refined reciprocal.
HUSH_INLINE f8 sigmoid(f8 x) {
    x = min(max(x * splat(-1.4426950408889634f), splat(-60.0f)), splat(60.0f));
    f8 shifted = x + splat(12582912.0f);  // 1.5 · 2^23: the nearest integer in the low bits
    f8 f = x - (shifted - splat(12582912.0f));
    f8 p = splat(1.33908642e-3f);
    p = p * f + splat(9.67017257e-3f);
    p = p * f + splat(5.55037696e-2f);
    p = p * f + splat(2.40222404e-1f);
    p = p * f + splat(6.93147182e-1f);
    p = p * f + splat(1.0f);
    f8 e = bits_to_float(float_to_bits(p) + (float_to_bits(shifted) << 23));  // times a power of two
    return reciprocal(splat(1) + e);
}

HUSH_INLINE f8 silu(f8 x) { return x * sigmoid(x); }

// Features of both paths for columns left .. right - 1; eight floats a pixel each.
HUSH_INLINE void trust_features(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right,
                                const float* history, float* accumulated, float* denoised) {
    const f4* now = pyramid.level[0] + (size_t)y * step.width;
    const bool moving = step.previous && !step.is_static;
    const f8 frames_scale = splat(1 / step.settings.accumulated_cap), denoised_scale = splat(1 / step.settings.denoised_cap);
    for (int x = left; x < right; x += 8) {
        const int count = right - x < 8 ? right - x : 8;
        alignas(32) float current[4][8], view[8] = {};
        alignas(32) float block[8 * kStateFloats];
        const float* pixels = history + (size_t)(x - left) * kStateFloats;
        if (count < 8) {  // do not read past the row
            std::memset(block, 0, sizeof block);
            std::memcpy(block, pixels, (size_t)count * kStateFloats * sizeof(float));
            pixels = block;
        }
        for (int k = 0; k < 8; ++k)
            for (int c = 0; c < 4; ++c) current[c][k] = now[x + (k < count ? k : 0)][c];
        if (step.neural_view && !step.settings.zero_shot)
            for (int k = 0; k < count; ++k) {
                const float v2 = step.neural_view[4 * ((size_t)y * step.width + x + k) + 2];
                view[k] = limited_view(v2);
            }
        f8 low[8];
        load_channels(pixels, kStateFloats, low);
        f8 high[8];
        load_channels(pixels + 8, kStateFloats, high);
        f8 compressed = splat(0);
        if (moving) {
            const Before b = before(step, splat((float)x) + iota(), (float)y, load(current[3]));
            const f8 mx = b.motion_x, my = b.motion_y;
            f8 length = sqrt(mx * mx + my * my);
            compressed = length / (length + splat(step.settings.motion_scale_px));
        }
        const f8 luma = load(current[0]), co = load(current[1]), cg = load(current[2]);
        const f8 squared = compressed * compressed, difference = high[kDepthDifference - 8];
        f8 a[8];
        f8 luma_difference = luma - low[kAccumulated];
        a[0] = max(luma_difference, -luma_difference);
        a[1] = low[kAccumulatedTrust];
        a[2] = squared;
        a[3] = low[kAccumulatedFrames] * frames_scale;
        a[4] = compressed;
        a[5] = difference;
        a[6] = compressed * difference;
        a[7] = load(view);
        store_channels(accumulated + (size_t)(x - left) * 8, 8, a, count);
        const f8 dy = luma - low[kDenoised], dco = co - low[kDenoised + 1], dcg = cg - high[kDenoised + 2 - 8];
        f8 d[8];
        d[0] = max(dy, -dy);
        d[1] = low[kDenoised];
        d[2] = high[kDenoisedTrust - 8];
        d[3] = high[kDenoisedFrames - 8] * denoised_scale;
        d[4] = compressed;
        d[5] = sqrt(dy * dy + dco * dco + dcg * dcg);
        d[6] = difference;
        d[7] = squared;
        store_channels(denoised + (size_t)(x - left) * 8, 8, d, count);
    }
}

constexpr int kTogether = 4;  // pixels that share each load of a weight

// 1×1 layer and SiLU on pixels of eight channels.
HUSH_INLINE void pointwise(const float* pixels, const float* weight, const float* bias, float* out) {
    f8 sum[kTogether];
    for (int p = 0; p < kTogether; ++p) sum[p] = load(bias);
    for (int k = 0; k < 8; ++k) {
        const f8 w = load(weight + 8 * k);
        for (int p = 0; p < kTogether; ++p) sum[p] = splat(pixels[8 * p + k]) * w + sum[p];
    }
    for (int p = 0; p < kTogether; ++p) store(out + 8 * p, silu(sum[p]));
}

HUSH_INLINE void depthwise(const float* const rows[3], const float* weight, const float* bias, f8 sum[kTogether]) {
    for (int p = 0; p < kTogether; ++p) sum[p] = load(bias);
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) {
            const f8 w = load(weight + 8 * (3 * j + i));
            for (int p = 0; p < kTogether; ++p) sum[p] = load(rows[j] + 8 * (p + i - 1)) * w + sum[p];
        }
}

// Calls layer(first pixel) for groups of kTogether; rings are wide enough for the last one to run over.
template <class Layer>
HUSH_INLINE void each_group(int count, Layer&& layer) {
    for (int k = 0; k < count; k += kTogether) layer(k);
}

HUSH_INLINE float sum_of(f8 v) {
    alignas(32) float p[8];
    store(p, v);
    return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

// First 1×1 layer, in place; what lies past the row is left as it is.
HUSH_INLINE void encode_row(const DenoiserWeights& w, float* pixels, int count) {
    each_group(count, [&](int k) {
        alignas(32) float out[8 * kTogether];
        pointwise(pixels + 8 * k, w.encode, w.encode_bias, out);
        const int here = count - k < kTogether ? count - k : kTogether;
        std::memcpy(pixels + 8 * k, out, (size_t)here * 8 * sizeof(float));
    });
}

// Depthwise and 1×1, then 1×1: one row of `out` from three of the encoded.
HUSH_INLINE void hidden_row(const DenoiserWeights& w, const float* above, const float* row, const float* below, float* out,
                            int count) {
    each_group(count, [&](int k) {
        const float* rows[3] = {above + 8 * k, row + 8 * k, below + 8 * k};
        f8 sum[kTogether];
        alignas(32) float first[8 * kTogether], second[8 * kTogether];
        depthwise(rows, w.depthwise1, w.depthwise1_bias, sum);
        for (int p = 0; p < kTogether; ++p) store(first + 8 * p, sum[p]);
        pointwise(first, w.point1, w.point1_bias, second);
        pointwise(second, w.point2, w.point2_bias, first);
        const int here = count - k < kTogether ? count - k : kTogether;
        std::memcpy(out + 8 * k, first, (size_t)here * 8 * sizeof(float));
    });
}

HUSH_INLINE void sigmoid_row(float* values, int count) {
    for (int k = 0; k < count; k += 8) store(values + k, sigmoid(load(values + k)));  // rows are padded to eights
}

HUSH_INLINE void accumulated_trust_row(const DenoiserWeights& w, const float* above, const float* row, const float* below,
                                       int count, float* trust) {
    const f8 head = load(w.head);
    each_group(count, [&](int k) {
        const float* rows[3] = {above + 8 * k, row + 8 * k, below + 8 * k};
        f8 sum[kTogether];
        alignas(32) float first[8 * kTogether], second[8 * kTogether];
        depthwise(rows, w.depthwise2, w.depthwise2_bias, sum);
        for (int p = 0; p < kTogether; ++p) store(first + 8 * p, sum[p]);
        pointwise(first, w.point3, w.point3_bias, second);
        for (int p = 0; p < kTogether; ++p) trust[k + p] = sum_of(load(second + 8 * p) * head) + w.head_bias;
    });
    sigmoid_row(trust, count);
}

HUSH_INLINE void denoised_trust_row(const DenoiserWeights& w, const float* above, const float* row, const float* below,
                                    int count, float* trust) {
    const f8 head = load(w.denoised_head);
    each_group(count, [&](int k) {
        const float* rows[3] = {above + 8 * k, row + 8 * k, below + 8 * k};
        f8 sum[kTogether];
        depthwise(rows, w.denoised_depthwise, w.denoised_depthwise_bias, sum);
        for (int p = 0; p < kTogether; ++p) trust[k + p] = sum_of(silu(sum[p]) * head) + w.denoised_head_bias;
    });
    sigmoid_row(trust, count);
}

}  // namespace hush::HUSH_ISA
