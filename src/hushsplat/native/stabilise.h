// Passes 4 to 6: the running means, the gate between them, and the stabilisation of what is shown.
#pragma once

#include "denoise.h"
#include "filter.h"
#include "trust.h"

namespace hush::HUSH_ISA {

HUSH_INLINE f8 rgb_channel(int channel, f8 y, f8 co, f8 cg) {
    return channel == 0 ? y + co - cg : channel == 1 ? y + cg : y - co - cg;
}

// The views of eight pixels from column x on, for those from `first` to `end` - 1.
HUSH_INLINE void write_views(const DenoiseStep& step, int y, int x, int first, int end, const float rgb[3][8],
                             const f8 filtered[3], f8 gate, f8 difference, f8 depth) {
    alignas(32) float rows[kViewFloats][8];
    for (int c = 0; c < 3; ++c) {
        store(rows[c], load(rgb[c]));
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

// Accumulates and composes columns left .. right - 1 of a row; the state is written for x0 .. x1 - 1 if `owned`.
HUSH_INLINE void compose_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, int x0, int x1,
                             bool owned, const float* history, float* const trust[2], float* composite) {
    const DenoiserSettings& set = step.settings;
    const f4* now = pyramid.level[0] + (size_t)y * step.width;
    alignas(32) f4 filtered[288];
    filter_row(step, pyramid, y, left, right, filtered);
    for (int x = left; x < right; x += 8) {
        const int count = right - x < 8 ? right - x : 8, at = x - left;
        alignas(32) float current[4][8], value[4][8];
        alignas(32) float block[8 * kStateFloats];
        const float* pixels = history + (size_t)at * kStateFloats;
        if (count < 8) {
            std::memset(block, 0, sizeof block);
            std::memcpy(block, pixels, (size_t)count * kStateFloats * sizeof(float));
            pixels = block;
        }
        for (int k = 0; k < 8; ++k)
            for (int c = 0; c < 4; ++c) {
                current[c][k] = now[x + (k < count ? k : 0)][c];
                value[c][k] = filtered[at + (k < count ? k : 0)][c];
            }
        f8 low[8], high[8];
        load_channels(pixels, kStateFloats, low);
        load_channels(pixels + 8, kStateFloats, high);
        const i8 valid = high[kValid - 8] > splat(0.5f);
        const f8 difference = high[kDepthDifference - 8];

        // Trust of the accumulated path.
        f8 trust_s = splat(1);
        if (set.trust == Trust::learned && !step.is_static) trust_s = load(trust[0] + at);
        if (set.trust == Trust::heuristic && !step.is_static)
            trust_s = exp2_negative(difference * splat(-1.4426950408889634f * set.sigma));
        trust_s = select(valid, trust_s, splat(0));
        const f8 trust_h = select(valid, load(trust[1] + at), splat(0));

        // Running means.
        const f8 luma = load(current[0]);
        const f8 kept_s = low[kAccumulatedFrames] * trust_s, frames_s = kept_s + splat(1), share_s = kept_s / frames_s;
        auto mean = [](f8 before, f8 now, f8 share) { return now + (before - now) * share; };
        for (int c = 0; c < 3; ++c) low[c] = mean(low[c], load(current[c]), share_s);
        low[kSquaredLuma] = mean(low[kSquaredLuma], luma * luma, share_s);
        low[kAccumulatedFrames] = min(frames_s, splat(set.accumulated_cap));
        low[kAccumulatedTrust] = trust_s;
        const f8 kept_h = high[kDenoisedFrames - 8] * trust_h, frames_h = kept_h + splat(1), share_h = kept_h / frames_h;
        low[kDenoised] = mean(low[kDenoised], load(value[0]), share_h);
        low[kDenoised + 1] = mean(low[kDenoised + 1], load(value[1]), share_h);
        high[kDenoised + 2 - 8] = mean(high[kDenoised + 2 - 8], load(value[2]), share_h);
        high[kDenoisedFrames - 8] = min(frames_h, splat(set.denoised_cap));
        high[kDenoisedTrust - 8] = trust_h;

        // Gate.
        f8 gate = splat(set.gate == Gate::denoised ? 1.0f : 0.0f);
        if (set.gate == Gate::learned) {
            const f8 frames = low[kAccumulatedFrames];
            const f8 variance = max(low[kSquaredLuma] * splat(1 - 1e-6f) - low[0] * low[0], splat(0));
            const f8 error = sqrt(variance / (frames + splat(1e-4f)));
            const f8 ripe = splat(1) - exp2_negative(frames * splat(-1.4426950408889634f / set.tau_frames));
            gate = splat(1) - ripe * (splat(1) - min(error * splat(std::fmax(step.weights->gamma, 1e-4f)), splat(1)));
        }
        f8 mixed[3] = {low[0] + (low[kDenoised] - low[0]) * gate, low[1] + (low[kDenoised + 1] - low[1]) * gate,
                       low[2] + (high[0] - low[2]) * gate};
        alignas(32) float rgb[3][8];
        for (int c = 0; c < 3; ++c) {
            high[kStabilised - 8 + c] = rgb_channel(c, mixed[0], mixed[1], mixed[2]);
            store(rgb[c], high[kStabilised - 8 + c]);
        }
        for (int k = 0; k < count; ++k) {
            const f4 pixel = {rgb[0][k], rgb[1][k], rgb[2][k], 0};
            std::memcpy(composite + 4 * (at + k), &pixel, 16);
        }
        if (!owned) continue;
        if (step.views) {
            const f8 seen[3] = {load(value[0]), load(value[1]), load(value[2])};
            write_views(step, y, x, x0 > x ? x0 - x : 0, x1 - x < count ? x1 - x : count, rgb, seen, gate, difference, load(current[3]));
        }
        high[kDepth - 8] = load(current[3]);
        high[kSpare - 8] = splat(0);
        transpose(low);
        transpose(high);
        for (int k = 0; k < count; ++k) {
            if (x + k < x0 || x + k >= x1) continue;
            const size_t pixel = (size_t)y * step.width + x + k;
            store(step.state + pixel * kStateFloats, low[k]);
            store(step.state + pixel * kStateFloats + 8, high[k]);
        }
    }
}

HUSH_INLINE f4 least(f4 a, f4 b) { return a < b ? a : b; }
HUSH_INLINE f4 most(f4 a, f4 b) { return a > b ? a : b; }

HUSH_INLINE f4 load_pixel(const float* p) {
    f4 v;
    std::memcpy(&v, p, 16);
    return v;
}

// Blends the composite with the frame shown before, within what its neighbourhood allows; writes what is shown.
HUSH_INLINE void stabilise_row(const DenoiseStep& step, int y, int x0, int x1, const float* above, const float* row,
                               const float* below, const float* history) {
    const DenoiserSettings& set = step.settings;
    const bool blend = set.stabilise && step.previous && !step.is_static;
    const f4 zero = {0, 0, 0, 0};
    f4 low[3], high[3];  // extremes of the three columns around x
    auto column = [&](int x, int place) {
        x = (x < 0 ? 0 : x >= step.width ? step.width - 1 : x) - x0;
        const f4 a = load_pixel(above + 4 * x), b = load_pixel(row + 4 * x), c = load_pixel(below + 4 * x);
        low[place] = least(a, least(b, c));
        high[place] = most(a, most(b, c));
    };
    if (blend) {
        column(x0 - 1, 0);
        column(x0, 1);
    }
    for (int x = x0; x < x1; ++x) {
        const f4 color = load_pixel(row + 4 * (x - x0));
        f4 shown = color;
        if (blend) {
            column(x + 1, 2);
            const float* before = history + (size_t)(x - x0) * kStateFloats;
            const f4 tolerance = (most(high[0], most(high[1], high[2])) - least(low[0], least(low[1], low[2]))) * 0.5f +
                                 set.stabilise_slack;
            const f4 kept = least(most(load_pixel(before + kStabilised), color - tolerance), color + tolerance);
            const f4 change = most(color - kept, kept - color);
            const float largest = std::fmax(change[0], std::fmax(change[1], change[2]));
            const bool same = before[kValid] > 0.5f && (before[kDepthDifference] <= set.stabilise_depth || largest < set.stabilise_rescue);
            if (same) shown = kept * set.stabilise_weight + color * (1 - set.stabilise_weight);
            low[0] = low[1], low[1] = low[2], high[0] = high[1], high[1] = high[2];
        }
        shown = most(shown, zero);
        const size_t pixel = (size_t)y * step.width + x;
        for (int c = 0; c < 3; ++c) {
            step.shown[3 * pixel + c] = shown[c];
            step.state[pixel * kStateFloats + kStabilised + c] = shown[c];
        }
    }
}

}  // namespace hush::HUSH_ISA
