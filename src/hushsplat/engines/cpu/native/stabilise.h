// Pass 6: the stabilisation of what is shown; and the state is written.
#pragma once

#include "denoise.h"
#include "functions.h"
#include "pyramid.h"
#include "reproject.h"
#include "rows.h"
#include "transpose.h"

namespace hush::HUSH_ISA {

// Half of the range over 3×3 pixels, for eight of them.
HUSH_INLINE f32x8 half_range(const float* const rows[3]) {
    f32x8 low[3], high[3];
    for (int i = 0; i < 3; ++i) {
        const f32x8 a = load(rows[0] + i - 1), b = load(rows[1] + i - 1), c = load(rows[2] + i - 1);
        low[i] = min(a, min(b, c));
        high[i] = max(a, max(b, c));
    }
    return (max(high[0], max(high[1], high[2])) - min(low[0], min(low[1], low[2]))) * splat(0.5f);
}

// The composite of eight pixels blended with the frame shown before, within what its neighbourhood allows.
HUSH_INLINE void stabilise(const DenoiserSettings& set, const float* const composite[3], const float* history,
                           f32x8 shown[3]) {
    f32x8 kept[3], color[3], largest = splat(0);
    for (int c = 0; c < 3; ++c) {
        const float* const rows[3] = {composite[0] + c * kPlane, composite[1] + c * kPlane, composite[2] + c * kPlane};
        color[c] = load(rows[1]);
        const f32x8 tolerance = half_range(rows) + splat(set.stabilise_slack);
        kept[c] = min(max(load(history + (kStabilised + c) * kPlane), color[c] - tolerance), color[c] + tolerance);
        largest = max(largest, abs(color[c] - kept[c]));
    }
    // `known` is 2 less the compressed motion m / (m + motion_scale_px) where there is history.
    const f32x8 known = load(history + kValid * kPlane);
    const f32x8 steady = (known - splat(1)) * splat(set.stabilise_motion_px / set.motion_scale_px);
    const f32x8 slow = quotient(steady, steady + splat(2) - known);  // 1 at rest, one half at the motion that is set
    const i32x8 same =
        (known > splat(0.5f)) & ((load(history + kDepthDifference * kPlane) <= splat(set.stabilise_depth)) |
                                 (largest < splat(set.stabilise_rescue)));
    const f32x8 weight = select(same, splat(set.stabilise_weight) * slow, splat(0));
    for (int c = 0; c < 3; ++c) shown[c] = color[c] + (kept[c] - color[c]) * weight;
}

// Writes what is shown and the new state for columns x0 .. x1 - 1; the planes begin at x0.
HUSH_INLINE void stabilise_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int x0, int x1,
                               const float* const composite[3], const float* history) {
    const bool blend = step.settings.stabilise && step.previous && !step.is_static;
    const bool aligned = reinterpret_cast<uintptr_t>(step.state) % 32 == 0;
    for (int x = x0; x < x1; x += 8, history += 8) {
        const int at = x - x0, count = x1 - x < 8 ? x1 - x : 8;
        const float* const here[3] = {composite[0] + at, composite[1] + at, composite[2] + at};
        f32x8 shown[4];
        if (blend)
            stabilise(step.settings, here, history, shown);
        else
            for (int c = 0; c < 3; ++c) shown[c] = load(here[1] + c * kPlane);
        for (int c = 0; c < 3; ++c) shown[c] = max(shown[c], splat(0));
        shown[3] = splat(0);
        f32x8 now[4], low[8], high[8];
        pyramid.load_pixels(x, y, now);
        for (int c = 0; c < 8; ++c) {
            low[c] = load(history + c * kPlane);
            high[c] = c + 8 < kStabilised ? load(history + (8 + c) * kPlane)
                      : c + 8 < kDepth    ? shown[c + 8 - kStabilised]
                                          : now[3];
        }
        high[kSpare - 8] = splat(0);
        transpose(low);
        transpose(high);
        const size_t pixel = (size_t)y * step.width + x;
        for (int k = 0; k < count; ++k) {
            stream(step.state + (pixel + k) * kStateFloats, low[k], aligned);
            stream(step.state + (pixel + k) * kStateFloats + 8, high[k], aligned);
        }
        if (x + 8 < x1) {  // the float after the last pixel belongs to the next
            store_quads(step.shown + 3 * pixel, 3, shown);
            continue;
        }
        alignas(32) float block[8 * 3 + 8];
        store_quads(block, 3, shown);
        std::memcpy(step.shown + 3 * pixel, block, (size_t)count * 3 * sizeof(float));
    }
}

}  // namespace hush::HUSH_ISA
