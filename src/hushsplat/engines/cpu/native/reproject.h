// Pass 1: the previous state as this frame's camera sees it.
#pragma once

#include <cmath>

#include "denoise.h"
#include "functions.h"
#include "kernels.h"
#include "pyramid.h"
#include "rows.h"
#include "transpose.h"

namespace hush::HUSH_ISA {

// In a reprojected pixel the last two channels of the state carry what the other passes ask for.
constexpr int kDepthDifference = kDepth;  // relative, 0 .. 1
constexpr int kValid = kSpare;            // 2 less the compressed motion where there is history, 0 elsewhere

HUSH_INLINE void cubic_weights(f32x8 t, float a, float* w) {  // four planes; a = -0.5 is Catmull-Rom
    f32x8 t2 = t * t, t3 = t2 * t;
    store(w, splat(a) * (t + t3) - splat(2 * a) * t2);
    store(w + kPlane, splat(1) - splat(a + 3) * t2 + splat(a + 2) * t3);
    store(w + 2 * kPlane, splat(2 * a + 3) * t2 - splat(a) * t - splat(a + 2) * t3);
    store(w + 3 * kPlane, splat(a) * (t2 - t3));
}

// Taps and weights of a row, found from its pixels' integer places plus the motion: rounding is relative to the motion.
// They are all found before the first tap is read, or the taps of eight pixels would wait for their places.
struct Taps {
    alignas(64) float wx[4 * kPlane], wy[4 * kPlane];
    alignas(64) int32_t x[kPlane], y[kPlane];  // first of the four columns and rows
    alignas(64) int32_t nearest[kPlane];       // the pixel that the place lies in
    alignas(64) float depth[kPlane];           // seen from the previous camera
    unsigned valid[kPlane / 8];                // of eight pixels, a bit each: there is history
    unsigned inside[kPlane / 8];               // all taps are in the picture

    HUSH_MEMBER void place(const DenoiseStep& step, int column, int row, int k, f32x8 motion_x, f32x8 motion_y) {
        const i32x8 fx = floor_int(motion_x), fy = floor_int(motion_y);
        cubic_weights(motion_x - to_float(fx), -step.settings.resample_sharpness, wx + k);
        cubic_weights(motion_y - to_float(fy), -step.settings.resample_sharpness, wy + k);
        const i32x8 columns = splat_int(column) + iota_int(), rows = splat_int(row), zero = splat_int(0);
        const i32x8 first_x = columns + fx - splat_int(1), first_y = rows + fy - splat_int(1);
        store(x + k, first_x);
        store(y + k, first_y);
        inside[k / 8] = bits((first_x >= zero) & (first_x < splat_int(step.width - 3)) & (first_y >= zero) &
                             (first_y < splat_int(step.height - 3)));
        const i32x8 at_x = min(max(columns + floor_int(motion_x + splat(0.5f)), zero), splat_int(step.width - 1));
        const i32x8 at_y = min(max(rows + floor_int(motion_y + splat(0.5f)), zero), splat_int(step.height - 1));
        store(nearest + k, at_y * splat_int(step.width) + at_x);
    }
};

// All 16 channels of the previous state for a pixel of the row, by 16 taps; they are then kept within the four central
// ones, or only lengths and trusts within their ranges.
template <class Tap>
HUSH_INLINE void sample_taps(const DenoiserSettings& set, const Taps& taps, int pixel, Tap&& tap, float* out) {
    f32x8 wx[4], low[2], high[2], sum[2];
    for (int k = 0; k < 4; ++k) wx[k] = splat(taps.wx[k * kPlane + pixel]);
    for (int j = 0; j < 4; ++j) {
        const f32x8 wy = splat(taps.wy[j * kPlane + pixel]);
        for (int h = 0; h < 2; ++h) {
            const f32x8 b = load(tap(j, 1) + 8 * h), c = load(tap(j, 2) + 8 * h);
            f32x8 line = b * wx[1];
            line = c * wx[2] + line;
            line = load(tap(j, 0) + 8 * h) * wx[0] + line;
            line = load(tap(j, 3) + 8 * h) * wx[3] + line;
            sum[h] = j ? line * wy + sum[h] : line * wy;
            if (j == 1) low[h] = min(b, c), high[h] = max(b, c);
            if (j == 2) low[h] = min(low[h], min(b, c)), high[h] = max(high[h], max(b, c));
        }
    }
    if (!set.resample_clamp) {
        for (int h = 0; h < 2; ++h) store(out + 8 * h, sum[h]);
        auto limit = [&](int channel, float most) { out[channel] = std::fmin(std::fmax(out[channel], 0.0f), most); };
        limit(kAccumulatedFrames, set.accumulated_cap_frames);
        limit(kAccumulatedTrust, 1);
        limit(kDenoisedFrames, set.denoised_cap_frames);
        limit(kDenoisedTrust, 1);
        return;
    }
    for (int h = 0; h < 2; ++h) store(out + 8 * h, min(max(sum[h], low[h]), high[h]));
}

HUSH_INLINE void sample_state(const DenoiseStep& step, const Taps& taps, int pixel, bool inside, float* out) {
    const int x = taps.x[pixel], y = taps.y[pixel];
    const size_t line = (size_t)step.width * kStateFloats;
    if (inside) {
        const float* corner = step.previous + (size_t)y * line + (size_t)x * kStateFloats;
        __builtin_prefetch(corner + 4 * line + kStateFloats, 0, 2);  // the next row of this block will want it
        auto tap = [&](int j, int k) { return corner + (size_t)j * line + k * kStateFloats; };
        sample_taps(step.settings, taps, pixel, tap, out);
        return;
    }
    sample_taps(
        step.settings, taps, pixel,
        [&](int j, int k) {
            return step.previous + (size_t)clamp_index(y + j, step.height) * line +
                   (size_t)clamp_index(x + k, step.width) * kStateFloats;
        },
        out);
}

// Where eight pixels were in the previous frame.
struct Before {
    f32x8 motion_x, motion_y;  // px; 1e9 where that place cannot be told
    f32x8 depth;
    i32x8 valid;
};

HUSH_INLINE Before before(const DenoiseStep& step, f32x8 column, float row, f32x8 depth) {
    const float* m = step.motion;
    const f32x8 limit = splat(1e9f);
    f32x8 px = (column + splat(0.5f - step.cx)) * splat(1 / step.fx), py = splat((row + 0.5f - step.cy) / step.fy);
    f32x8 iz = splat(1) / depth;
    f32x8 ex = splat(m[0]) * px + splat(m[1]) * py + splat(m[2]) + splat(m[3]) * iz;
    f32x8 ey = splat(m[4]) * px + splat(m[5]) * py + splat(m[6]) + splat(m[7]) * iz;
    f32x8 ez = splat(m[8]) * px + splat(m[9]) * py + splat(m[10]) + splat(m[11]) * iz;
    Before b;
    b.depth = depth * (splat(1) + ez);
    const i32x8 front = b.depth > splat(1e-6f);
    f32x8 scale = splat(1) / select(front, splat(1) + ez, splat(1));
    f32x8 mx = splat(step.previous_fx) * (ex - px * ez) * scale + splat(step.previous_fx - step.fx) * px +
               splat(step.previous_cx - step.cx);
    f32x8 my = splat(step.previous_fy) * (ey - py * ez) * scale + splat(step.previous_fy - step.fy) * py +
               splat(step.previous_cy - step.cy);
    const i32x8 told = front & (mx - mx <= splat(0)) & (my - my <= splat(0));  // the last two: finite
    b.motion_x = select(told, min(max(mx, -limit), limit), limit);
    b.motion_y = select(told, min(max(my, -limit), limit), limit);
    f32x8 x = column + splat(0.5f) + b.motion_x, y = splat(row + 0.5f) + b.motion_y;
    b.valid =
        told & (x >= splat(0)) & (x < splat((float)step.width)) & (y >= splat(0)) & (y < splat((float)step.height));
    return b;
}

HUSH_INLINE f32x8 depth_difference(f32x8 a, f32x8 b) { return quotient(abs(a - b), max(max(a, b), splat(1e-6f))); }

// Eight pixels of history, as planes.
HUSH_INLINE void store_history(float* history, const float* pixels, f32x8 difference, f32x8 valid) {
    for (int half = 0; half < kStateFloats; half += 8) {
        f32x8 channels[8];
        load_channels(pixels + half, kStateFloats, channels);
        for (int c = 0; c < 8 && half + c < kDepthDifference; ++c) store(history + (half + c) * kPlane, channels[c]);
    }
    store(history + kDepthDifference * kPlane, difference);
    store(history + kValid * kPlane, valid);
}

// Places and weights of a row's taps, and its compressed motion.
HUSH_INLINE void find_taps(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, Taps& taps,
                           float* compressed) {
    for (int x = left; x < right; x += 8) {
        const int k = x - left, count = right - x < 8 ? right - x : 8;
        f32x8 now[4];
        pyramid.load_pixels(x, y, now);
        pyramid.prefetch_pixels(x, y + 1);
        const Before b = before(step, splat((float)x) + iota(), (float)y, now[3]);
        taps.place(step, x, y, k, select(b.valid, b.motion_x, splat(0)), select(b.valid, b.motion_y, splat(0)));
        taps.valid[k / 8] = bits(b.valid) & ((1u << count) - 1);
        store(taps.depth + k, b.depth);
        const f32x8 length = sqrt(b.motion_x * b.motion_x + b.motion_y * b.motion_y);
        store(compressed + k, quotient(length, length + splat(step.settings.motion_scale_px)));
    }
}

// Fills 16 planes with the state of a moving camera, depth difference and validity in the last two.
HUSH_INLINE void sample_row(const DenoiseStep& step, const Taps& taps, int columns, const float* compressed,
                            float* history) {
    for (int k = 0; k < columns; k += 8) {
        alignas(64) float pixels[8 * kStateFloats];
        alignas(32) float seen[8] = {}, has[8] = {};
        const unsigned valid = taps.valid[k / 8], inside = taps.inside[k / 8];
        for (int i = 0; i < 8; ++i) {
            float* pixel = pixels + i * kStateFloats;
            if (valid >> i & 1) {
                sample_state(step, taps, k + i, inside >> i & 1, pixel);
                seen[i] = step.previous[(size_t)taps.nearest[k + i] * kStateFloats + kDepth];
                has[i] = 1;
            } else {
                store(pixel, splat(0));
                store(pixel + 8, splat(0));
            }
        }
        const f32x8 difference = depth_difference(load(taps.depth + k), load(seen));
        const i32x8 known = load(has) > splat(0);
        store_history(history + k, pixels, select(known, difference, splat(1)),
                      select(known, splat(2) - load(compressed + k), splat(0)));
    }
}

// The same where the camera has not moved: pixel by pixel.
HUSH_INLINE void copy_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, float* history) {
    for (int x = left; x < right; x += 8) {
        const int count = right - x < 8 ? right - x : 8;
        alignas(64) float pixels[8 * kStateFloats] = {};
        alignas(32) float seen[8];
        std::memcpy(pixels, step.previous + ((size_t)y * step.width + x) * kStateFloats,
                    (size_t)count * kStateFloats * sizeof(float));
        for (int i = 0; i < 8; ++i) seen[i] = pixels[i * kStateFloats + kDepth];
        f32x8 now[4];
        pyramid.load_pixels(x, y, now);
        store_history(history + x - left, pixels, depth_difference(now[3], load(seen)), splat(2));
    }
}

// Fills 16 planes with history and one with compressed motion.
HUSH_INLINE void reproject_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, Taps& taps,
                               float* history, float* compressed) {
    if (step.previous && !step.is_static) {
        find_taps(step, pyramid, y, left, right, taps, compressed);
        sample_row(step, taps, right - left, compressed, history);
        return;
    }
    std::memset(compressed, 0, (size_t)(kPlane - kMargin) * sizeof(float));
    if (step.previous) return copy_row(step, pyramid, y, left, right, history);
    for (int c = 0; c < kStateFloats; ++c)
        for (int k = 0; k < right - left; k += 8)
            store(history + c * kPlane + k, splat(c == kDepthDifference ? 1.0f : 0.0f));
}

}  // namespace hush::HUSH_ISA
