// Passes 4 and 5: the running means and the gate between them.
#pragma once

#include "denoise.h"
#include "filter.h"
#include "functions.h"
#include "trust.h"

namespace hush::HUSH_ISA {

HUSH_INLINE f8 rgb_channel(int channel, f8 y, f8 co, f8 cg) {
    return channel == 0 ? y + co - cg : channel == 1 ? y + cg : y - co - cg;
}

// The views of eight pixels from column x on, for those from `first` to `end` - 1.
HUSH_INLINE void write_views(const DenoiseStep& step, int y, int x, int first, int end, const f8 rgb[3], const f8 filtered[4],
                             f8 gate, f8 difference, f8 depth) {
    alignas(32) float rows[kViewFloats][8];
    for (int c = 0; c < 3; ++c) {
        store(rows[c], rgb[c]);
        store(rows[3 + c], rgb_channel(c, filtered[0], filtered[1], filtered[2]));
    }
    store(rows[6], gate);
    store(rows[7], difference);
    const bool moving = step.previous && !step.is_static;
    const Before b = before(step, splat((float)x) + iota(), (float)y, depth);
    store(rows[8], moving ? b.motion_x : splat(0));
    store(rows[9], moving ? b.motion_y : splat(0));
    for (int k = first; k < end; ++k)
        for (int c = 0; c < kViewFloats; ++c) step.views[((size_t)y * step.width + x + k) * kViewFloats + c] = rows[c][k];
}

// Trust of the accumulated path where it is not predicted, or as it was.
HUSH_INLINE f8 accumulated_trust(const DenoiseStep& step, const float* predicted, f8 difference) {
    const DenoiserSettings& set = step.settings;
    if (step.is_static || set.trust == Trust::one) return splat(1);
    if (set.trust == Trust::heuristic) return exp2_negative(difference * splat(-kLog2E * set.sigma));
    return load(predicted);
}

// Share of the denoised path.
HUSH_INLINE f8 gate_of(const DenoiseStep& step, f8 luma, f8 squared_luma, f8 frames) {
    const DenoiserSettings& set = step.settings;
    if (set.gate != Gate::learned) return splat(set.gate == Gate::denoised ? 1.0f : 0.0f);
    const f8 variance = max(squared_luma * splat(1 - 1e-6f) - luma * luma, splat(0));
    const f8 error = sqrt(variance / (frames + splat(1e-4f)));
    const f8 ripe = splat(1) - exp2_negative(frames * splat(-kLog2E / set.tau_frames));
    return splat(1) - ripe * (splat(1) - min(error * splat(std::fmax(step.weights->gamma, 1e-4f)), splat(1)));
}

// Accumulates columns left .. right - 1 of a row in the planes of its history, and composes three planes of RGB. Views
// are written for x0 .. x1 - 1 if the row is `owned`.
HUSH_INLINE void compose_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, int x0, int x1,
                             bool owned, float* history, const float* const trust[2], float* composite) {
    const DenoiserSettings& set = step.settings;
    alignas(32) float filtered[4 * kPlane];
    filter_row(step, pyramid, y, left, right, filtered);
    for (int x = left; x < right; x += 8) {
        const int at = x - left;
        f8 now[4], value[4];
        pyramid.load_pixels(x, y, now);
        load_quads(filtered + 4 * at, 4, value);
        auto channel = [&](int c) { return history + c * kPlane + at; };
        const f8 difference = load(channel(kDepthDifference));
        const i8 valid = load(channel(kValid)) > splat(0.5f);
        const f8 trust_s = select(valid, accumulated_trust(step, trust[0] + at, difference), splat(0));
        const f8 trust_h = select(valid, load(trust[1] + at), splat(0));

        // Running means: a step from the sample, so that a constant stays one.
        auto update = [&](int c, f8 sample, f8 share) {
            const f8 mean = sample + (load(channel(c)) - sample) * share;
            store(channel(c), mean);
            return mean;
        };
        const f8 kept_s = load(channel(kAccumulatedFrames)) * trust_s, longer_s = kept_s + splat(1), share_s = kept_s / longer_s;
        const f8 frames_s = min(longer_s, splat(set.accumulated_cap));
        const f8 s[3] = {update(kAccumulated, now[0], share_s), update(kAccumulated + 1, now[1], share_s),
                         update(kAccumulated + 2, now[2], share_s)};
        const f8 squared_luma = update(kSquaredLuma, now[0] * now[0], share_s);
        store(channel(kAccumulatedFrames), frames_s);
        store(channel(kAccumulatedTrust), trust_s);
        const f8 kept_h = load(channel(kDenoisedFrames)) * trust_h, longer_h = kept_h + splat(1), share_h = kept_h / longer_h;
        const f8 d[3] = {update(kDenoised, value[0], share_h), update(kDenoised + 1, value[1], share_h),
                         update(kDenoised + 2, value[2], share_h)};
        store(channel(kDenoisedFrames), min(longer_h, splat(set.denoised_cap)));
        store(channel(kDenoisedTrust), trust_h);

        const f8 gate = gate_of(step, s[0], squared_luma, frames_s);
        f8 mixed[3], rgb[3];
        for (int c = 0; c < 3; ++c) mixed[c] = s[c] + (d[c] - s[c]) * gate;
        for (int c = 0; c < 3; ++c) {
            rgb[c] = rgb_channel(c, mixed[0], mixed[1], mixed[2]);
            store(composite + c * kPlane + at, rgb[c]);
        }
        if (owned && step.views) {
            const int end = right - x < 8 ? right - x : 8;
            write_views(step, y, x, x0 > x ? x0 - x : 0, x1 - x < end ? x1 - x : end, rgb, value, gate, difference, now[3]);
        }
    }
    // Outside the picture its edge counts again.
    if (left == 0)
        for (int c = 0; c < 3; ++c) composite[c * kPlane - 1] = composite[c * kPlane];
    if (right == step.width)
        for (int c = 0; c < 3; ++c) composite[c * kPlane + right - left] = composite[c * kPlane + right - left - 1];
}

}  // namespace hush::HUSH_ISA
