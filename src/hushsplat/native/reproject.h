// Pass 1: the previous state as this frame's camera sees it.
#pragma once

#include "denoise.h"
#include "kernels.h"
#include "filter.h"

namespace hush::HUSH_ISA {

// In a reprojected pixel the last two channels of the state carry what the other passes ask for.
constexpr int kDepthDifference = kDepth;  // relative, 0 .. 1
constexpr int kValid = kSpare;            // 1 where there is history

HUSH_INLINE void catmull_rom(f8 t, float w[4][8]) {
    f8 t2 = t * t, t3 = t2 * t;
    store(w[0], t2 - splat(0.5f) * (t + t3));
    store(w[1], splat(1) - splat(2.5f) * t2 + splat(1.5f) * t3);
    store(w[2], splat(0.5f) * t + splat(2) * t2 - splat(1.5f) * t3);
    store(w[3], splat(0.5f) * (t3 - t2));
}

// Taps and weights of eight pixels, found from their integer places plus the motion: rounding is relative to the motion.
struct Taps {
    alignas(32) float wx[4][8], wy[4][8];
    alignas(32) int32_t x[8], y[8];        // first of the four columns and rows
    alignas(32) int32_t at_x[8], at_y[8];  // the pixel that the place lies in

    HUSH_MEMBER Taps(const DenoiseStep& step, int column, int row, f8 motion_x, f8 motion_y) {
        const i8 fx = floor_int(motion_x), fy = floor_int(motion_y);
        catmull_rom(motion_x - to_float(fx), wx);
        catmull_rom(motion_y - to_float(fy), wy);
        const i8 columns = splat_int(column) + iota_int(), rows = splat_int(row);
        store(x, columns + fx - splat_int(1));
        store(y, rows + fy - splat_int(1));
        const i8 zero = splat_int(0);
        store(at_x, min(max(columns + floor_int(motion_x + splat(0.5f)), zero), splat_int(step.width - 1)));
        store(at_y, min(max(rows + floor_int(motion_y + splat(0.5f)), zero), splat_int(step.height - 1)));
    }
};

// All 16 channels of the previous state for pixel `lane`, by 16 taps, kept within the four central ones.
template <class Tap>
HUSH_INLINE void sample_taps(const Taps& taps, int lane, Tap&& tap, float* out) {
    f8 wx[4], wy[4];
    for (int k = 0; k < 4; ++k) {
        wx[k] = splat(taps.wx[k][lane]);
        wy[k] = splat(taps.wy[k][lane]);
    }
    for (int half = 0; half < kStateFloats; half += 8) {
        f8 line[4];
        for (int j = 0; j < 4; ++j) {
            line[j] = load(tap(j, 0) + half) * wx[0];
            for (int k = 1; k < 4; ++k) line[j] = load(tap(j, k) + half) * wx[k] + line[j];
        }
        const f8 sum = (line[0] * wy[0] + line[1] * wy[1]) + (line[2] * wy[2] + line[3] * wy[3]);
        const f8 a = load(tap(1, 1) + half), b = load(tap(1, 2) + half), c = load(tap(2, 1) + half), d = load(tap(2, 2) + half);
        store(out + half, min(max(sum, min(min(a, b), min(c, d))), max(max(a, b), max(c, d))));
    }
}

HUSH_INLINE void sample_state(const DenoiseStep& step, const Taps& taps, int lane, float* out) {
    const int x = taps.x[lane], y = taps.y[lane];
    const size_t line = (size_t)step.width * kStateFloats;
    if (x >= 0 && y >= 0 && x + 3 < step.width && y + 3 < step.height) {
        const float* corner = step.previous + (size_t)y * line + (size_t)x * kStateFloats;
        __builtin_prefetch(corner + 4 * line + kStateFloats);  // the next row of this block will want it
        sample_taps(taps, lane, [&](int j, int k) { return corner + (size_t)j * line + k * kStateFloats; }, out);
        return;
    }
    auto clamp = [](int k, int size) { return k < 0 ? 0 : k >= size ? size - 1 : k; };
    sample_taps(taps, lane, [&](int j, int k) {
        return step.previous + (size_t)clamp(y + j, step.height) * line + (size_t)clamp(x + k, step.width) * kStateFloats;
    }, out);
}

// Where eight pixels were in the previous frame.
struct Before {
    f8 motion_x, motion_y;  // px; 1e9 where that place cannot be told
    f8 depth;
    i8 valid;
};

HUSH_INLINE Before before(const DenoiseStep& step, f8 column, float row, f8 depth) {
    const float* m = step.motion;
    const f8 limit = splat(1e9f);
    f8 px = (column + splat(0.5f - step.cx)) * splat(1 / step.fx), py = splat((row + 0.5f - step.cy) / step.fy);
    f8 iz = splat(1) / depth;
    f8 ex = splat(m[0]) * px + splat(m[1]) * py + splat(m[2]) + splat(m[3]) * iz;
    f8 ey = splat(m[4]) * px + splat(m[5]) * py + splat(m[6]) + splat(m[7]) * iz;
    f8 ez = splat(m[8]) * px + splat(m[9]) * py + splat(m[10]) + splat(m[11]) * iz;
    Before b;
    b.depth = depth * (splat(1) + ez);
    const i8 front = b.depth > splat(1e-6f);
    f8 scale = splat(1) / select(front, splat(1) + ez, splat(1));
    f8 mx = splat(step.previous_fx) * (ex - px * ez) * scale + splat(step.previous_fx - step.fx) * px + splat(step.previous_cx - step.cx);
    f8 my = splat(step.previous_fy) * (ey - py * ez) * scale + splat(step.previous_fy - step.fy) * py + splat(step.previous_cy - step.cy);
    const i8 told = front & (mx - mx <= splat(0)) & (my - my <= splat(0));  // the last two: finite
    b.motion_x = select(told, min(max(mx, -limit), limit), limit);
    b.motion_y = select(told, min(max(my, -limit), limit), limit);
    f8 x = column + splat(0.5f) + b.motion_x, y = splat(row + 0.5f) + b.motion_y;
    b.valid = told & (x >= splat(0)) & (x < splat((float)step.width)) & (y >= splat(0)) & (y < splat((float)step.height));
    return b;
}

HUSH_INLINE f8 depth_difference(f8 a, f8 b) { return max(a - b, b - a) / max(max(a, b), splat(1e-6f)); }

// Fills 16 floats a pixel: the reprojected state, with depth difference and validity in its last two.
HUSH_INLINE void reproject_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, float* history) {
    const f4* now = pyramid.level[0] + (size_t)y * step.width;
    if (!step.previous) {
        std::memset(history, 0, (size_t)(right - left) * kStateFloats * sizeof(float));
        for (int x = left; x < right; ++x) history[(x - left) * kStateFloats + kDepthDifference] = 1;
        return;
    }
    if (step.is_static) {
        const float* previous = step.previous + ((size_t)y * step.width + left) * kStateFloats;
        std::memcpy(history, previous, (size_t)(right - left) * kStateFloats * sizeof(float));
        for (int x = left; x < right; ++x) {
            float* pixel = history + (x - left) * kStateFloats;
            const float most = std::fmax(std::fmax(now[x][3], pixel[kDepth]), 1e-6f);
            pixel[kDepthDifference] = std::fabs(now[x][3] - pixel[kDepth]) / most;
            pixel[kValid] = 1;
        }
        return;
    }
    for (int x = left; x < right; x += 8) {
        const int count = right - x < 8 ? right - x : 8;
        alignas(32) float depth[8];
        for (int k = 0; k < 8; ++k) depth[k] = now[x + (k < count ? k : 0)][3];
        const Before b = before(step, splat((float)x) + iota(), (float)y, load(depth));
        const unsigned valid = bits(b.valid);
        const Taps taps(step, x, y, select(b.valid, b.motion_x, splat(0)), select(b.valid, b.motion_y, splat(0)));
        alignas(32) float seen[8] = {}, difference[8];
        for (int k = 0; k < count; ++k) {
            float* pixel = history + (x - left + k) * kStateFloats;
            if (valid >> k & 1) {
                sample_state(step, taps, k, pixel);
                seen[k] = step.previous[((size_t)taps.at_y[k] * step.width + taps.at_x[k]) * kStateFloats + kDepth];
            } else {
                store(pixel, splat(0));
                store(pixel + 8, splat(0));
            }
        }
        store(difference, select(b.valid, depth_difference(b.depth, load(seen)), splat(1)));
        for (int k = 0; k < count; ++k) {
            history[(x - left + k) * kStateFloats + kDepthDifference] = difference[k];
            history[(x - left + k) * kStateFloats + kValid] = (float)(valid >> k & 1);
        }
    }
}

}  // namespace hush::HUSH_ISA
