// SVGF twice: as the paper adapted it to the stochastic stream, and with what it normally has.
#include "kernels.h"
#include "resample.h"

namespace hush::HUSH_ISA {
namespace {

// Channels of the history.
enum { kMoment1 = 3, kMoment2 = 4, kFrames = 5, kDepthBefore = 6 };
// Planes of one frame. The passes go to and fro between the first four and the second four.
enum { kRed, kGreen, kBlue, kVariance, kFirst, kSecond, kLength, kFourth, kDepthNow, kGuide, kPlanes };
constexpr float kNowhere = 1e30f;  // depth beyond the ends of a row: taps there weigh nothing
constexpr float kLog2E = 1.442695041f;
constexpr float kLongest = 65536;  // frames: counts no further
constexpr int kShortHistory = 4;   // frames: below, variance is estimated from the 7×7 neighbourhood

HUSH_INLINE f32x8 luma(f32x8 red, f32x8 green, f32x8 blue) { return (red + blue) * splat(0.25f) + green * splat(0.5f); }
HUSH_INLINE float luma(const float* c) { return (c[0] + c[2]) * 0.25f + c[1] * 0.5f; }
HUSH_INLINE f32x8 distance(f32x8 a, f32x8 b) { return max(a - b, b - a); }
// 2^-x, but never so little that its square times a variance has no exponent left: such numbers are slow.
HUSH_INLINE f32x8 falloff(f32x8 x) { return exp2_negative(max(-x, splat(-40))); }

// Disoccluded if fewer than 2 of the 4 nearest texels have about the depth that the pixel had.
HUSH_INLINE bool seen_before(const BaselineStep& step, float threshold, int column, int row, float z) {
    int passed = 0;
    for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 2; ++i) {
            const size_t texel = (size_t)clamped(row + j, step.height) * step.width + clamped(column + i, step.width);
            const float there = step.previous[texel * kHistoryFloats + kDepthBefore];
            const float apart = z > there ? z - there : there - z, most = z > there ? z : there;
            passed += apart < threshold * most;
        }
    return passed >= 2;
}

// A history is as long as that of the noisiest pixel it is made of: the mean length promises more than a mixture holds.
HUSH_INLINE float shortest_before(const BaselineStep& step, int column, int row) {
    float least = kLongest;
    for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 2; ++i) {
            const size_t texel = (size_t)clamped(row + j, step.height) * step.width + clamped(column + i, step.width);
            const float length = step.previous[texel * kHistoryFloats + kFrames];
            least = length < least ? length : least;
        }
    return least;
}

// Integrates a row: into the history, and into planes for the passes over space.
template <HoleFill Fill>
void integrate_row(const BaselineStep& step, const SvgfSettings& settings, const Planes& clean, const Planes& planes,
                   int y) {
    for (int x = 0; x < step.width; x += 8) {
        const int count = step.width - x < 8 ? step.width - x : 8;
        const f32x8 depth = filled_depth<Fill>(clean, 0, x, y, step.far);
        alignas(32) float z[8];
        store(z, depth);
        store(planes.row(kDepthNow, y) + x, depth);
        PlacesBefore before;
        const bool moves = step.previous && !step.motion.is_static;
        if (moves) before = places_before(step.motion, x, y, depth, step.width, step.height);
        for (int k = 0; k < count; ++k) {
            const size_t pixel = (size_t)y * step.width + x + k;
            alignas(32) float now[kHistoryFloats] = {0, 0, 0, 0, 0, 1, z[k], 0};
            observed(step, pixel, now);
            now[kMoment1] = luma(now);
            now[kMoment2] = now[kMoment1] * now[kMoment1];
            f32x8 old = splat(0);
            bool known = false;
            if (moves && (before.valid >> k & 1)) {
                known = seen_before(step, settings.depth_threshold, before.column[k], before.row[k], before.z[k]);
                if (known) old = sampled_history(step, before, k);
            } else if (step.previous && !moves) {
                known = seen_before(step, settings.depth_threshold, x + k, y, z[k]);
                old = load(step.previous + pixel * kHistoryFloats);
            }
            if (known) {
                alignas(32) float mixed[kHistoryFloats];
                store(mixed, old);
                if (moves) mixed[kFrames] = shortest_before(step, before.column[k], before.row[k]);
                const float frames = mixed[kFrames] + 1, running = settings.running_mean ? 1 / frames : 0;
                const float alpha = running > settings.alpha ? running : settings.alpha;
                const float moments = running > settings.moments_alpha ? running : settings.moments_alpha;
                for (int c = 0; c <= kMoment2; ++c)
                    now[c] = mixed[c] + (now[c] - mixed[c]) * (c < kMoment1 ? alpha : moments);
                now[kFrames] = frames < kLongest ? frames : kLongest;
            }
            std::memcpy(step.history + pixel * kHistoryFloats, now, sizeof now);
            for (int c = 0; c < 3; ++c) planes.row(kRed + c, y)[x + k] = now[c];
            for (int c = 0; c < 3; ++c) planes.row(kFirst + c, y)[x + k] = now[kMoment1 + c];
        }
    }
}

// The mean over the 3×3 neighbourhood, edges repeated.
HUSH_INLINE f32x8 mean_around(const Planes& planes, int plane, int x, int y) {
    f32x8 sum = splat(0);
    for (int j = -1; j <= 1; ++j) {
        const float* line = planes.clamped_row(plane, y + j) + x;
        sum = sum + load(line - 1) + load(line) + load(line + 1);
    }
    return sum * splat(1 / 9.0f);
}

// The 3×3 binomial kernel, edges repeated.
HUSH_INLINE f32x8 smooth_around(const Planes& planes, int plane, int x, int y) {
    f32x8 sum = splat(0);
    for (int j = -1; j <= 1; ++j) {
        const float* line = planes.clamped_row(plane, y + j) + x;
        sum = sum + (load(line - 1) + splat(2) * load(line) + load(line + 1)) * splat(j ? 0.0625f : 0.125f);
    }
    return sum;
}

HUSH_INLINE void show_eight(const BaselineStep& step, const f32x8 rgb[3], int x, int y) {
    alignas(32) float channel[3][8];
    for (int c = 0; c < 3; ++c) store(channel[c], max(rgb[c], splat(0)));
    float* out = step.shown + 3 * ((size_t)y * step.width + x);
    for (int k = 0; k < 8 && x + k < step.width; ++k)
        for (int c = 0; c < 3; ++c) out[3 * k + c] = channel[c][k];
}

// Paper, appendix "SVGF Baseline Details", "Spatial filter".
void adapted_filter_row(const BaselineStep& step, const SvgfSettings& settings, const Planes& planes, int y) {
    for (int x = 0; x < step.width; x += 8) {
        const f32x8 first = mean_around(planes, kFirst, x, y), second = mean_around(planes, kSecond, x, y);
        const f32x8 depth = mean_around(planes, kDepthNow, x, y);
        const f32x8 deviation = sqrt(max(second - first * first, splat(0)));
        const f32x8 per_depth = splat(kLog2E) / (splat(settings.sigma_depth) * depth + splat(1e-2f));
        const f32x8 per_luma = splat(kLog2E) / (splat(settings.sigma_luma) * deviation + splat(1e-2f));
        const f32x8 own =
            luma(load(planes.row(kRed, y) + x), load(planes.row(kGreen, y) + x), load(planes.row(kBlue, y) + x));
        f32x8 sum[3] = {splat(0), splat(0), splat(0)}, weights = splat(0);
        for (int j = -1; j <= 1; ++j)
            for (int i = -1; i <= 1; ++i) {
                f32x8 rgb[3];
                for (int c = 0; c < 3; ++c) rgb[c] = load(planes.clamped_row(kRed + c, y + j) + x + i);
                const f32x8 away = distance(load(planes.clamped_row(kDepthNow, y + j) + x + i), depth) * per_depth +
                                   distance(luma(rgb[0], rgb[1], rgb[2]), own) * per_luma;
                const f32x8 weight = splat((j ? 1 : 2) * (i ? 1 : 2) / 16.0f) * falloff(away);
                for (int c = 0; c < 3; ++c) sum[c] = sum[c] + rgb[c] * weight;
                weights = weights + weight;
            }
        for (int c = 0; c < 3; ++c) sum[c] = sum[c] / weights;
        show_eight(step, sum, x, y);
    }
}

void guide_row(const Planes& planes, int y) {
    for (int x = 0; x < planes.width; x += 8) store(planes.row(kGuide, y) + x, mean_around(planes, kDepthNow, x, y));
    planes.fill_margins(kGuide, y, kNowhere);
}

// From the moments of the pixel, or of its 7×7 neighbourhood while its history is short.
void variance_row(const SvgfSettings& settings, const Planes& planes, int y) {
    for (int x = 0; x < planes.width; x += 8) {
        const f32x8 first = load(planes.row(kFirst, y) + x), second = load(planes.row(kSecond, y) + x);
        const f32x8 length = load(planes.row(kLength, y) + x);
        f32x8 variance = max(second - first * first, splat(0));
        const i32x8 is_short = length < splat(kShortHistory);
        if (any(is_short)) {
            const f32x8 depth = load(planes.row(kGuide, y) + x);
            const f32x8 per_depth = splat(kLog2E) / (splat(settings.sigma_depth) * depth + splat(1e-2f));
            f32x8 firsts = splat(0), seconds = splat(0), weights = splat(0);
            for (int j = y < 3 ? -y : -3; j <= 3 && y + j < planes.height; ++j)
                for (int i = -3; i <= 3; ++i) {
                    const f32x8 weight =
                        falloff(distance(load(planes.row(kDepthNow, y + j) + x + i), depth) * per_depth);
                    firsts = firsts + weight * load(planes.row(kFirst, y + j) + x + i);
                    seconds = seconds + weight * load(planes.row(kSecond, y + j) + x + i);
                    weights = weights + weight;
                }
            const f32x8 mean = firsts / weights;
            const f32x8 boost =
                splat(kShortHistory) / max(length, splat(1));  // the shorter, the less is known: filter more
            variance = select(is_short, max(seconds / weights - mean * mean, splat(0)) * boost, variance);
        }
        store(planes.row(kVariance, y) + x, variance);
    }
    planes.repeat_edges(kVariance, y);
}

struct Pass {
    int from, to;  // first plane of either set
    int stride;    // px between taps
    bool feeds_back, shows;
};

// One à-trous pass with the 5×5 B3-spline or the 3×3 binomial kernel; taps beyond the picture have no weight.
template <int Radius>
void wavelet_row(const BaselineStep& step, const SvgfSettings& settings, const Planes& planes, const Pass& pass,
                 int y) {
    constexpr float kernel[3] = {Radius == 2 ? 3 / 8.0f : 1 / 2.0f, 1 / 4.0f, 1 / 16.0f};
    for (int x = 0; x < step.width; x += 8) {
        const f32x8 depth = load(planes.row(kGuide, y) + x);
        const f32x8 deviation = sqrt(smooth_around(planes, pass.from + kVariance, x, y));
        const f32x8 per_depth = splat(kLog2E) / (splat(settings.sigma_depth) * depth + splat(1e-2f));
        const f32x8 per_luma = splat(kLog2E) / (splat(settings.sigma_luma) * deviation + splat(1e-2f));
        f32x8 own[3];
        for (int c = 0; c < 3; ++c) own[c] = load(planes.row(pass.from + c, y) + x);
        const f32x8 own_luma = luma(own[0], own[1], own[2]);
        f32x8 sum[3] = {splat(0), splat(0), splat(0)}, variance = splat(0), weights = splat(0);
        for (int j = -Radius; j <= Radius; ++j) {
            const int row = y + j * pass.stride;
            if (row < 0 || row >= step.height) continue;
            const float* line = planes.row(pass.from, row) + x;
            const size_t plane = (size_t)planes.stride * planes.height;
            const float* depths = planes.row(kDepthNow, row) + x;
            for (int i = -Radius; i <= Radius; ++i) {
                const int at = i * pass.stride;
                const f32x8 red = load(line + at), green = load(line + plane + at), blue = load(line + 2 * plane + at);
                const f32x8 away = distance(load(depths + at), depth) * per_depth +
                                   distance(luma(red, green, blue), own_luma) * per_luma;
                const f32x8 weight = splat(kernel[j < 0 ? -j : j] * kernel[i < 0 ? -i : i]) * falloff(away);
                sum[0] = sum[0] + red * weight;
                sum[1] = sum[1] + green * weight;
                sum[2] = sum[2] + blue * weight;
                variance = variance + load(line + 3 * plane + at) * weight * weight;
                weights = weights + weight;
            }
        }
        const f32x8 share = splat(1) / weights;
        for (int c = 0; c < 3; ++c) sum[c] = sum[c] * share;
        for (int c = 0; c < 3; ++c) store(planes.row(pass.to + c, y) + x, sum[c]);
        store(planes.row(pass.to + kVariance, y) + x, variance * share * share);
        if (pass.shows) show_eight(step, sum, x, y);
    }
    planes.repeat_edges(pass.to + kVariance, y);
    if (pass.feeds_back)
        for (int x = 0; x < step.width; ++x)
            for (int c = 0; c < 3; ++c)
                step.history[((size_t)y * step.width + x) * kHistoryFloats + c] = planes.row(pass.to + c, y)[x];
}

}  // namespace

void baseline_svgf(const BaselineStep& step, const SvgfSettings& settings) {
    const Planes planes(step.width, step.height, settings.passes ? kPlanes : kGuide), clean(step.width, step.height, 1);
    each_row(step.height, step.threads, [&](int y) { clean_depth_row(step, clean, 0, y); });
    if (!settings.passes) {
        each_row(step.height, step.threads, [&](int y) {
            integrate_row<HoleFill::nearest>(step, settings, clean, planes, y);
            for (int plane : {kRed, kGreen, kBlue, kFirst, kSecond, kDepthNow}) planes.repeat_edges(plane, y);
        });
        each_row(step.height, step.threads, [&](int y) { adapted_filter_row(step, settings, planes, y); });
        return;
    }
    each_row(step.height, step.threads, [&](int y) {
        integrate_row<HoleFill::mean>(step, settings, clean, planes, y);
        for (int plane = 0; plane < kDepthNow; ++plane) planes.fill_margins(plane, y, 0);
        planes.repeat_edges(kDepthNow, y);
    });
    each_row(step.height, step.threads, [&](int y) { guide_row(planes, y); });
    each_row(step.height, step.threads, [&](int y) { planes.fill_margins(kDepthNow, y, kNowhere); });  // read until now
    each_row(step.height, step.threads, [&](int y) { variance_row(settings, planes, y); });
    for (int k = 0; k < settings.passes; ++k) {
        const Pass pass{k % 2 ? kFirst : kRed, k % 2 ? kRed : kFirst, 1 << k, settings.feedback && k == 0,
                        k == settings.passes - 1};
        each_row(step.height, step.threads, [&](int y) {
            if (settings.kernel == 5)
                wavelet_row<2>(step, settings, planes, pass, y);
            else
                wavelet_row<1>(step, settings, planes, pass, y);
        });
    }
}

}  // namespace hush::HUSH_ISA
