// How the baselines read an observation and the history behind it: docs/denoiser.md, "Reproject".
#pragma once

#include "baselines.h"
#include "recycle.h"
#include "threads.h"
#include "vec.h"

namespace hush::HUSH_ISA {

constexpr float kLargest = 1e9f;  // values beyond count as not finite: their squares would not be

HUSH_INLINE bool usable(const float* color, float depth) {
    auto fine = [](float v) { return v <= kLargest && v >= -kLargest; };
    return fine(color[0]) & fine(color[1]) & fine(color[2]) & fine(depth);
}

constexpr int kBand = 16;  // rows per job

template <class Row>
HUSH_INLINE void each_row(int height, int threads, Row&& row) {
    parallel_for((height + kBand - 1) / kBand, threads, [&](int band) {
        const int end = (band + 1) * kBand < height ? (band + 1) * kBand : height;
        for (int y = band * kBand; y < end; ++y) row(y);
    });
}

// This frame's RGB; black where it cannot be used.
HUSH_INLINE void observed(const BaselineStep& step, size_t pixel, float rgb[3]) {
    const float* color = step.color + 3 * pixel;
    const bool fine = usable(color, step.depth[pixel]);
    for (int c = 0; c < 3; ++c) rgb[c] = fine ? color[c] : 0;
}

HUSH_INLINE void show(const BaselineStep& step, size_t pixel, const float* color) {
    for (int c = 0; c < 3; ++c) step.shown[3 * pixel + c] = color[c] > 0 ? color[c] : 0;
}

// Planes of floats whose rows may be read some columns beyond either end.
struct Planes {
    static constexpr int kMargin =
        40;  // floats before and after a row: the farthest tap, and eight lanes beyond the end
    const int width, height, stride;
    Recycled memory;
    float* const data;

    Planes(int width, int height, int count)
        : width(width),
          height(height),
          stride(kMargin + (width + 7) / 8 * 8 + kMargin),
          memory((size_t)stride * height * count * sizeof(float)),
          data(static_cast<float*>(memory.get())) {}
    HUSH_MEMBER float* row(int plane, int y) const { return data + ((size_t)plane * height + y) * stride + kMargin; }
    HUSH_MEMBER float* clamped_row(int plane, int y) const {
        return row(plane, y < 0 ? 0 : y >= height ? height - 1 : y);
    }
    HUSH_MEMBER void fill_margins(int plane, int y, float value) const {
        float* line = row(plane, y);
        for (int x = -kMargin; x < 0; ++x) line[x] = value;
        for (int x = width; x < stride - kMargin; ++x) line[x] = value;
    }
    HUSH_MEMBER void repeat_edges(int plane, int y) const {
        float* line = row(plane, y);
        line[-1] = line[0];
        line[width] = line[width - 1];
    }
};

// The depth of a row as far as it can be used, 0 elsewhere and beyond the ends.
HUSH_INLINE void clean_depth_row(const BaselineStep& step, const Planes& planes, int plane, int y) {
    float* line = planes.row(plane, y);
    const size_t first = (size_t)y * step.width;
    for (int x = 0; x < step.width; ++x) {
        const float z = step.depth[first + x];
        line[x] = usable(step.color + 3 * (first + x), z) && z > 0 ? z : 0;
    }
    line[-1] = 0;
    for (int x = step.width; x < step.width + 8; ++x) line[x] = 0;
}

enum class HoleFill { mean, nearest };

// Eight depths without holes: from the 3×3 neighbourhood, else the far plane.
template <HoleFill Fill>
HUSH_INLINE f32x8 filled_depth(const Planes& planes, int plane, int x, int y, float far) {
    const f32x8 zero = splat(0), own = load(planes.row(plane, y) + x);
    if (!any(own <= zero)) return own;
    f32x8 near[9];  // row by row
    for (int j = 0; j < 3; ++j) {
        const bool inside = y + j - 1 >= 0 && y + j - 1 < planes.height;
        const float* line = planes.clamped_row(plane, y + j - 1) + x - 1;
        for (int i = 0; i < 3; ++i) near[3 * j + i] = inside ? load(line + i) : zero;
    }
    f32x8 found = own;
    if (Fill == HoleFill::nearest) {
        constexpr int order[] = {1, 3, 5, 7, 0, 2, 6, 8};  // beside before diagonal, then as one reads
        for (int k : order) found = select(found > zero, found, near[k]);
    } else {
        f32x8 sum = zero, count = zero;
        for (int k = 0; k < 9; ++k) {
            sum = sum + near[k];
            count = count + select(near[k] > zero, splat(1), zero);
        }
        found = select(own > zero, own, sum / max(count, splat(1)));
    }
    return select(found > zero, found, splat(far));
}

// Where eight pixels were in the previous frame: column and row of the first of the 2×2 texels around, how far beyond.
struct PlacesBefore {
    int column[8], row[8];
    float right[8], down[8], z[8];
    unsigned valid;  // a bit per pixel
};

// Motion as a difference, so that rounding is relative to the motion and not to the place in the picture.
HUSH_INLINE PlacesBefore places_before(const CameraMotion& motion, int x, int y, f32x8 depth, int width, int height) {
    const float* m = motion.change;
    const f32x8 px = (splat((float)x + 0.5f - motion.cx) + iota()) * splat(1 / motion.fx);
    const f32x8 py = splat(((float)y + 0.5f - motion.cy) / motion.fy);
    const f32x8 near = splat(1) / depth;
    const f32x8 ex = splat(m[0]) * px + splat(m[1]) * py + splat(m[2]) + splat(m[3]) * near;
    const f32x8 ey = splat(m[4]) * px + splat(m[5]) * py + splat(m[6]) + splat(m[7]) * near;
    const f32x8 scale = splat(1) + splat(m[8]) * px + splat(m[9]) * py + splat(m[10]) + splat(m[11]) * near;
    const f32x8 z = depth * scale, ez = scale - splat(1), inverse = splat(1) / scale;
    const f32x8 dx = splat(motion.other_fx) * (ex - px * ez) * inverse + splat(motion.other_fx - motion.fx) * px +
                     splat(motion.other_cx - motion.cx);
    const f32x8 dy = splat(motion.other_fy) * (ey - py * ez) * inverse + splat(motion.other_fy - motion.fy) * py +
                     splat(motion.other_cy - motion.cy);
    const f32x8 sx = dx + splat((float)x) + iota(), sy = dy + splat((float)y);
    const i32x8 valid = (z > splat(1e-6f)) & (sx >= splat(-0.5f)) & (sx < splat((float)width - 0.5f)) &
                        (sy >= splat(-0.5f)) & (sy < splat((float)height - 0.5f));
    const f32x8 safe_dx = select(valid, dx, splat(0)), safe_dy = select(valid, dy, splat(0));
    const i32x8 whole_x = floor_int(safe_dx), whole_y = floor_int(safe_dy);
    PlacesBefore before;
    store(before.column, whole_x + splat_int(x) + iota_int());
    store(before.row, whole_y + splat_int(y));
    store(before.right, safe_dx - to_float(whole_x));
    store(before.down, safe_dy - to_float(whole_y));
    store(before.z, z);
    before.valid = bits(valid);
    return before;
}

HUSH_INLINE int clamped(int index, int count) { return index < 0 ? 0 : index >= count ? count - 1 : index; }

HUSH_INLINE void catmull_rom_weights(float t, float w[4]) {  // a = -0.5
    w[0] = t * (t * (1 - 0.5f * t) - 0.5f);
    w[1] = t * t * (1.5f * t - 2.5f) + 1;
    w[2] = t * (t * (2 - 1.5f * t) + 0.5f);
    w[3] = t * t * (0.5f * t - 0.5f);
}

// All channels of the history at pixel k of the eight, by 16 taps, kept within the four central ones.
HUSH_INLINE f32x8 sampled_history(const BaselineStep& step, const PlacesBefore& before, int k) {
    float wx[4], wy[4];
    catmull_rom_weights(before.right[k], wx);
    catmull_rom_weights(before.down[k], wy);
    int columns[4];
    for (int i = 0; i < 4; ++i) columns[i] = clamped(before.column[k] + i - 1, step.width) * kHistoryFloats;
    f32x8 sum = splat(0), least = splat(0), most = splat(0);
    for (int j = 0; j < 4; ++j) {
        const float* line =
            step.previous + (size_t)clamped(before.row[k] + j - 1, step.height) * step.width * kHistoryFloats;
        const f32x8 a = load(line + columns[0]), b = load(line + columns[1]), c = load(line + columns[2]),
                    d = load(line + columns[3]);
        const f32x8 along = splat(wx[0]) * a + splat(wx[1]) * b + splat(wx[2]) * c + splat(wx[3]) * d;
        sum = sum + splat(wy[j]) * along;
        if (j == 1) least = min(b, c), most = max(b, c);
        if (j == 2) least = min(least, min(b, c)), most = max(most, max(b, c));
    }
    return min(max(sum, least), most);
}

}  // namespace hush::HUSH_ISA
