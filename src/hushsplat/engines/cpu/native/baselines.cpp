// The baselines that only mean over time: `mean`, `st-taa`, `taa`.
#include <cmath>

#include "kernels.h"
#include "resample.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

// RGB and frames are the first channels of both histories; st-taa's then has the mean position in its camera's space.
enum { kFrames = 3, kPosition = 4 };

// The running mean of `before`, which counts for so many frames, and of `now`, which becomes it.
HUSH_INLINE void accumulate(const float* before, float frames, float cap, float now[kHistoryFloats]) {
    const float total = frames + 1, weight = 1 / total;
    for (int c = 0; c < kHistoryFloats; ++c) now[c] = before[c] + (now[c] - before[c]) * weight;
    now[kFrames] = total < cap ? total : cap;
}

HUSH_INLINE void keep(const BaselineStep& step, size_t pixel, const float now[kHistoryFloats]) {
    std::memcpy(step.history + pixel * kHistoryFloats, now, kHistoryFloats * sizeof(float));
    show(step, pixel, now);
}

// Which pixel of the history lands on which of this frame: the nearest wins, then the first, whatever the threads do.
constexpr uint64_t kNobody = ~(uint64_t)0;

HUSH_INLINE void land(uint64_t* key, float z, uint32_t pixel) {
    uint32_t depth;
    std::memcpy(&depth, &z, 4);  // positive floats are ordered as their bits
    const uint64_t mine = (uint64_t)depth << 32 | pixel;
    uint64_t there = __atomic_load_n(key, __ATOMIC_RELAXED);
    while (mine < there && !__atomic_compare_exchange_n(key, &there, mine, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

HUSH_INLINE void moved(const CameraMotion& motion, const float* point, float out[3]) {
    for (int c = 0; c < 3; ++c) {
        const float* m = motion.change + 4 * c;
        out[c] = point[c] + (m[0] * point[0] + m[1] * point[1] + m[2] * point[2] + m[3]);
    }
}

void warp_row(const BaselineStep& step, int y, uint64_t* keys) {
    const CameraMotion& motion = step.motion;
    for (int x = 0; x < step.width; ++x) {
        const size_t pixel = (size_t)y * step.width + x;
        float point[3];
        moved(motion, step.previous + pixel * kHistoryFloats + kPosition, point);
        if (!(point[2] > 1e-6f)) continue;
        const float column = std::floor(point[0] / point[2] * motion.other_fx + motion.other_cx);
        const float row = std::floor(point[1] / point[2] * motion.other_fy + motion.other_cy);
        if (column >= 0 && column < (float)step.width && row >= 0 && row < (float)step.height)
            land(keys + (size_t)row * step.width + (size_t)column, point[2], (uint32_t)pixel);
    }
}

// The history that landed on a pixel, seen from this frame's camera; 0 frames if it is too far from what is there now.
HUSH_INLINE float landed_history(const BaselineStep& step, size_t source, const float* now, float reach,
                                 float* before) {
    const float* there = step.previous + source * kHistoryFloats;
    std::memcpy(before, there, kHistoryFloats * sizeof(float));
    moved(step.motion, there + kPosition, before + kPosition);
    float apart = 0;
    for (int c = kPosition; c < kPosition + 3; ++c) apart += (now[c] - before[c]) * (now[c] - before[c]);
    return apart < reach * reach ? before[kFrames] : 0;
}

void gather_row(const BaselineStep& step, const Planes& planes, int y, const uint64_t* keys, float cap, float reach) {
    const CameraMotion& motion = step.motion;  // to this frame's camera
    alignas(32) float depth[8];
    for (int x = 0; x < step.width; ++x) {
        if (x % 8 == 0) store(depth, filled_depth<HoleFill::mean>(planes, 0, x, y, step.far));
        const size_t pixel = (size_t)y * step.width + x;
        const float z = depth[x % 8];
        float now[kHistoryFloats] = {0,
                                     0,
                                     0,
                                     1,
                                     ((float)x + 0.5f - motion.other_cx) / motion.other_fx * z,
                                     ((float)y + 0.5f - motion.other_cy) / motion.other_fy * z,
                                     z,
                                     0};
        observed(step, pixel, now);
        float before[kHistoryFloats];
        if (keys && keys[pixel] != kNobody) {
            const float frames = landed_history(step, (uint32_t)keys[pixel], now, reach, before);
            if (frames > 0) accumulate(before, frames, cap, now);
        } else if (step.previous && !keys) {
            const float* there = step.previous + pixel * kHistoryFloats;
            accumulate(there, there[kFrames], cap, now);
        }
        keep(step, pixel, now);
    }
}

// Mean ± gamma · deviation of the 3×3 neighbourhood of eight pixels, colour by colour.
HUSH_INLINE void range_around(const Planes& planes, int x, int y, float gamma, float least[3][8], float most[3][8]) {
    for (int c = 0; c < 3; ++c) {
        f32x8 around[9], sum = splat(0), squares = splat(0);
        for (int k = 0; k < 9; ++k) {
            around[k] = load(planes.clamped_row(c, y + k / 3 - 1) + x + k % 3 - 1);
            sum = sum + around[k];
        }
        const f32x8 mean = sum * splat(1 / 9.0f);
        for (int k = 0; k < 9; ++k) squares = squares + (around[k] - mean) * (around[k] - mean);
        const f32x8 deviation = splat(gamma) * sqrt(squares * splat(1 / 9.0f));
        store(least[c], mean - deviation);
        store(most[c], mean + deviation);
    }
}

void clip_row(const BaselineStep& step, const Planes& planes, int y, float cap, float gamma) {
    const bool moves = step.previous && !step.motion.is_static;
    for (int x = 0; x < step.width; x += 8) {
        alignas(32) float least[3][8], most[3][8];
        PlacesBefore before;
        if (moves) {
            const f32x8 depth = filled_depth<HoleFill::mean>(planes, 3, x, y, step.far);
            before = places_before(step.motion, x, y, depth, step.width, step.height);
            range_around(planes, x, y, gamma, least, most);
        }
        for (int k = 0; k < 8 && x + k < step.width; ++k) {
            const size_t pixel = (size_t)y * step.width + x + k;
            float now[kHistoryFloats] = {0, 0, 0, 1};
            for (int c = 0; c < 3; ++c) now[c] = planes.row(c, y)[x + k];
            if (moves && (before.valid >> k & 1)) {
                alignas(32) float old[kHistoryFloats];
                store(old, sampled_history(step, before, k));
                for (int c = 0; c < 3; ++c)
                    old[c] = old[c] < least[c][k] ? least[c][k] : old[c] > most[c][k] ? most[c][k] : old[c];
                accumulate(old, old[kFrames], cap, now);
            } else if (step.previous && !moves) {
                const float* old = step.previous + pixel * kHistoryFloats;
                accumulate(old, old[kFrames], cap, now);
            }
            keep(step, pixel, now);
        }
    }
}

}  // namespace

// Its history is the mean itself, three floats a pixel.
void baseline_mean(const BaselineStep& step, int frames) {
    each_row(step.height, step.threads, [&](int y) {
        const float weight = 1 / (float)frames;
        for (size_t pixel = (size_t)y * step.width, end = pixel + step.width; pixel < end; ++pixel) {
            float now[3];
            observed(step, pixel, now);
            for (int c = 0; c < 3; ++c) {
                const float before = step.previous ? step.previous[3 * pixel + c] : 0;
                step.history[3 * pixel + c] = now[c] = before + (now[c] - before) * weight;
            }
            show(step, pixel, now);
        }
    });
}

// The previous frame is thrown forward: scattered in one pass, gathered in the next.
void baseline_st_taa(const BaselineStep& step, float cap, float reach) {
    const Planes planes(step.width, step.height, 1);
    const bool warped = step.previous && !step.motion.is_static;
    const Recycled landed(warped ? sizeof(uint64_t) * step.width * step.height : 1);
    uint64_t* const keys = warped ? static_cast<uint64_t*>(landed.get()) : nullptr;
    each_row(step.height, step.threads, [&](int y) {
        clean_depth_row(step, planes, 0, y);
        for (int x = 0; keys && x < step.width; ++x) keys[(size_t)y * step.width + x] = kNobody;
    });
    if (keys) each_row(step.height, step.threads, [&](int y) { warp_row(step, y, keys); });
    each_row(step.height, step.threads, [&](int y) { gather_row(step, planes, y, keys, cap, reach); });
}

void baseline_taa(const BaselineStep& step, float cap, float gamma) {
    const Planes planes(step.width, step.height, 4);
    each_row(step.height, step.threads, [&](int y) {
        clean_depth_row(step, planes, 3, y);
        for (int x = 0; x < step.width; ++x) {
            float now[3];
            observed(step, (size_t)y * step.width + x, now);
            for (int c = 0; c < 3; ++c) planes.row(c, y)[x] = now[c];
        }
        for (int c = 0; c < 3; ++c) planes.repeat_edges(c, y);
    });
    each_row(step.height, step.threads, [&](int y) { clip_row(step, planes, y, cap, gamma); });
}

}  // namespace hush::HUSH_ISA
