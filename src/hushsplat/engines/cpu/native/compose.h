// Passes 4 and 5: the running means, what neighbours make of the accumulated one, and the gate between them.
#pragma once

#include "denoise.h"
#include "filter.h"
#include "functions.h"
#include "trust.h"

namespace hush::HUSH_ISA {

HUSH_INLINE f32x8 rgb_channel(int channel, f32x8 y, f32x8 co, f32x8 cg) {
    return channel == 0 ? y + co - cg : channel == 1 ? y + cg : y - co - cg;
}

// Which pixels of a row somebody may look at.
struct Owned {
    int x0, x1;
    bool row;
};

// Views of eight pixels from column x on, channels `from` to `from` + count - 1, where they are owned.
template <int count>
HUSH_INLINE void write_views(const DenoiseStep& step, int y, int x, const Owned& owned, int from,
                             const f32x8 (&values)[count]) {
    alignas(32) float rows[count][8];
    for (int c = 0; c < count; ++c) store(rows[c], values[c]);
    const int first = owned.x0 > x ? owned.x0 - x : 0, end = owned.x1 - x < 8 ? owned.x1 - x : 8;
    for (int k = first; k < end; ++k)
        for (int c = 0; c < count; ++c)
            step.views[((size_t)y * step.width + x + k) * kViewFloats + from + c] = rows[c][k];
}

// How many frames make up `history_px` at this motion, at most the cap: 1 / (1 / cap + m / history_px). `known` is 2
// less the compressed motion m / (m + motion_scale_px).
HUSH_INLINE f32x8 least_frames(const DenoiserSettings& set, f32x8 known) {
    const float cap = set.accumulated_cap_frames;
    const f32x8 steady = (known - splat(1)) * splat(set.history_px);
    return quotient(splat(cap) * steady,
                    max(steady + splat(cap * set.motion_scale_px) * (splat(2) - known), splat(1e-6f)));
}

// The share of a history that is kept: t itself, or what leaves min(n, N) frames of n, N = t / (1 - t).
HUSH_INLINE f32x8 used_trust(const DenoiserSettings& set, f32x8 trust, f32x8 frames, f32x8 least) {
    if (set.history == History::share) return trust;
    const f32x8 length = max(quotient(trust, max(splat(1) - trust, splat(1e-6f))), least);
    return quotient(length, max(max(frames, length), splat(1e-6f)));
}

// Trust of the accumulated path where it is not predicted, or as it was.
HUSH_INLINE f32x8 accumulated_trust(const DenoiseStep& step, const float* predicted, f32x8 difference) {
    const DenoiserSettings& set = step.settings;
    if (step.is_static || set.trust == Trust::one) return splat(1);
    if (set.trust == Trust::constant) return splat(set.constant_trust);
    if (set.trust == Trust::heuristic) return exp2_negative(difference * splat(-kLog2E * set.sigma));
    return load(predicted);
}

// Variance of the luma over a pixel's history, of short histories in part that over 3×3 pixels: one frame has none.
HUSH_INLINE f32x8 variance_of(const DenoiserSettings& set, const float* const rows[3], f32x8 luma, f32x8 earlier) {
    const f32x8 own = max(load(rows[1] + kSquaredLuma * kPlane) - luma * luma, splat(0));
    if (set.pooled_frames <= 0) return own;
    const f32x8 share = max(splat(1) - earlier * splat(1 / set.pooled_frames), splat(0));
    if (!any(share > splat(0))) return own;
    f32x8 mean = splat(0), square = splat(0);
    for (int j = 0; j < 3; ++j)
        for (int i = -1; i < 2; ++i) {
            mean = mean + load(rows[j] + kAccumulated * kPlane + i);
            square = square + load(rows[j] + kSquaredLuma * kPlane + i);
        }
    mean = mean * splat(1 / 9.0f);
    return own + (max(square * splat(1 / 9.0f) - mean * mean, splat(0)) - own) * share;
}

// Standard error of the accumulated luma; linear in the variance below `error_floor`.
HUSH_INLINE f32x8 standard_error(const DenoiserSettings& set, f32x8 variance, f32x8 earlier) {
    const float floor = std::fmax(set.error_floor, 1e-12f);
    return quotient(variance, sqrt((variance + splat(floor)) * (earlier + splat(1e-4f))));
}

HUSH_INLINE f32x8 eighth_power(f32x8 a) {
    a = a * a;
    a = a * a;
    return a * a;
}

// The accumulated mean of eight pixels, calmed by neighbours that agree: the planes of three rows begin at the first.
HUSH_INLINE void smooth(const DenoiserSettings& set, const float* const rows[3], f32x8 error, f32x8 color[3]) {
    const f32x8 scale = quotient(splat(-1.0f / 8), splat(set.smooth_errors) * error + splat(0.01f));
    f32x8 total = splat(1), change[3] = {splat(0), splat(0), splat(0)};
    for (int j = 0; j < 3; ++j)
        for (int i = -1; i < 2; ++i) {
            if (j == 1 && i == 0) continue;
            const float* there = rows[j] + kAccumulated * kPlane + i;
            const f32x8 difference = load(there) - color[0],
                        weight = eighth_power(max(fma(abs(difference), scale, splat(1)), splat(0)));
            total = total + weight;
            change[0] = fma(weight, difference, change[0]);
            for (int c = 1; c < 3; ++c) change[c] = fma(weight, load(there + c * kPlane) - color[c], change[c]);
        }
    const f32x8 share = quotient(splat(1), total);
    for (int c = 0; c < 3; ++c) color[c] = fma(change[c], share, color[c]);
}

// Outside the picture its edge counts again.
HUSH_INLINE void repeat_edges(const DenoiseStep& step, int left, int right, int count, float* planes) {
    for (int c = 0; c < count; ++c) {
        float* plane = planes + c * kPlane;
        if (left == 0) plane[-1] = plane[0];
        if (right == step.width) plane[right - left] = plane[right - left - 1];
    }
}

// Share of the denoised path; `earlier` are the frames of the mean before this one.
HUSH_INLINE f32x8 gate_of(const DenoiseStep& step, f32x8 error, f32x8 earlier) {
    const DenoiserSettings& set = step.settings;
    if (set.gate != Gate::learned) return splat(set.gate == Gate::one ? 1.0f : 0.0f);
    const f32x8 ripe = splat(1) - exp2_negative(earlier * splat(-kLog2E / set.tau_frames));
    return splat(1) - ripe * (splat(1) - min(error * splat(std::fmax(step.weights->gamma, 1e-4f)), splat(1)));
}

// Accumulates columns left .. right - 1 of a row in the planes of its history.
HUSH_INLINE void accumulate_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right,
                                const Owned& owned, float* history, const float* const trust[2]) {
    const DenoiserSettings& set = step.settings;
    alignas(32) float filtered[4 * kPlane];
    filter_row(step, pyramid, y, left, right, filtered);
    for (int x = left; x < right; x += 8) {
        const int at = x - left;
        f32x8 now[4], value[4];
        pyramid.load_pixels(x, y, now);
        load_quads(filtered + 4 * at, 4, value);
        auto channel = [&](int c) { return history + c * kPlane + at; };
        const f32x8 difference = load(channel(kDepthDifference));
        const f32x8 known = load(channel(kValid)), frames_before = load(channel(kAccumulatedFrames));
        const i32x8 valid = known > splat(0.5f);
        const f32x8 denoised_before = load(channel(kDenoisedFrames));
        const f32x8 trust_s = select(valid,
                                     used_trust(set, accumulated_trust(step, trust[0] + at, difference), frames_before,
                                                least_frames(set, known)),
                                     splat(0));
        const f32x8 trust_h = select(valid, used_trust(set, load(trust[1] + at), denoised_before, splat(0)), splat(0));

        // Running means: a step from the sample, so that a constant stays one.
        auto update = [&](int c, f32x8 sample, f32x8 share) {
            const f32x8 mean = sample + (load(channel(c)) - sample) * share;
            store(channel(c), mean);
            return mean;
        };
        const f32x8 kept_s = frames_before * trust_s, longer_s = kept_s + splat(1),
                    share_s = quotient(kept_s, longer_s);
        const f32x8 frames_s = min(longer_s, splat(set.accumulated_cap_frames));
        for (int c = 0; c < 3; ++c) update(kAccumulated + c, now[c], share_s);
        update(kSquaredLuma, now[0] * now[0], share_s);
        store(channel(kAccumulatedFrames), frames_s);
        store(channel(kAccumulatedTrust), trust_s);
        const f32x8 kept_h = denoised_before * trust_h, longer_h = kept_h + splat(1),
                    share_h = quotient(kept_h, longer_h);
        for (int c = 0; c < 3; ++c) update(kDenoised + c, value[c], share_h);
        store(channel(kDenoisedFrames), min(longer_h, splat(set.denoised_cap_frames)));
        store(channel(kDenoisedTrust), trust_h);
        if (owned.row && step.views) {
            f32x8 rgb[3];
            for (int c = 0; c < 3; ++c) rgb[c] = rgb_channel(c, value[0], value[1], value[2]);
            write_views(step, y, x, owned, kFilteredView, rgb);
        }
    }
    repeat_edges(step, left, right, 4, history + kAccumulated * kPlane);  // the squared luma is the fourth
}

// Composes three planes of RGB for columns left .. right - 1 of a row, from the means of three rows.
HUSH_INLINE void compose_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right,
                             const Owned& owned, const float* const history[3], float* composite) {
    const DenoiserSettings& set = step.settings;
    for (int x = left; x < right; x += 8) {
        const int at = x - left;
        const float* const rows[3] = {history[0] + at, history[1] + at, history[2] + at};
        auto channel = [&](int c) { return load(rows[1] + c * kPlane); };
        f32x8 color[3] = {channel(kAccumulated), channel(kAccumulated + 1), channel(kAccumulated + 2)};
        const f32x8 earlier = channel(kAccumulatedFrames) - splat(1);
        const f32x8 error = standard_error(set, variance_of(set, rows, color[0], earlier), earlier);
        if (set.smooth) smooth(set, rows, error, color);
        const f32x8 gate = gate_of(step, error, earlier);
        f32x8 mixed[3], rgb[3];
        for (int c = 0; c < 3; ++c) mixed[c] = color[c] + (channel(kDenoised + c) - color[c]) * gate;
        for (int c = 0; c < 3; ++c) {
            rgb[c] = rgb_channel(c, mixed[0], mixed[1], mixed[2]);
            store(composite + c * kPlane + at, rgb[c]);
        }
        if (owned.row && step.views) {
            f32x8 now[4];
            pyramid.load_pixels(x, y, now);
            const bool moving = step.previous && !step.is_static;
            const Before b = before(step, splat((float)x) + iota(), (float)y, now[3]);
            write_views(step, y, x, owned, kCompositeView, rgb);
            write_views(step, y, x, owned, kGateView,
                        {gate, channel(kDepthDifference), moving ? b.motion_x : splat(0),
                         moving ? b.motion_y : splat(0), rgb_channel(0, color[0], color[1], color[2]),
                         rgb_channel(1, color[0], color[1], color[2]), rgb_channel(2, color[0], color[1], color[2])});
        }
    }
    repeat_edges(step, left, right, 3, composite);
}

}  // namespace hush::HUSH_ISA
