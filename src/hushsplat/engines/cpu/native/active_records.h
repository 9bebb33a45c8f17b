// What a member of the active set needs to be blended: one cache line each, made from its projection eight at a time.
#pragma once

#include "active_profile.h"
#include "footprint.h"
#include "harmonics.h"
#include "transpose.h"

namespace hush::HUSH_ISA {

// The fragment equation is D² = Q / S (engine.h). Nearly all members hardly change their depth across their footprint;
// for them one ellipse stands for the quotient: that of the contour D² = kFitLevel, which is an ellipse though not
// around the projected centre. With γ = sup of g·d and η = sup of h(d, d) where Q = 1, its alpha is off by at most
// 0.83 γ + 2 γ² + 0.7 η (times the opacity, to first order; near D = 0.65 the first term, near D² = 5 the last).
// Members for which that exceeds ActiveSetSettings::ellipse_error are drawn by the quotient itself.
constexpr float kFitLevel = 2;
constexpr float kLowPassLevel = 2 * kHalfLog2E;   // D² of the low-pass of surfels is 2 |d|²
constexpr float kNoLowPass = 1e6f;                // the plane decides everywhere
constexpr float kLeastLog2 = -7.99435343685886f;  // log2(1 / 255)

struct Record {
    float x, y;         // px, centre of the ellipse
    float ux, uy, vy;   // Q = (ux dx + uy dy)² + (vy dy)², alpha = 2^(log_opacity - Q)
    float log_opacity;  // base 2
    float red, green, blue;
    float depth;  // at (x, y)
    float slope;  // dx at which Q is least in a row, per dy
    // Of an ellipse: depth per px in x and in y, factor of the low-pass, nothing, -1.
    // Of the ray form: gx, gy, hxx, hxy, hyy as in Projected.
    float form[5];

    HUSH_MEMBER bool is_ray() const { return form[4] >= 0; }
};
static_assert(sizeof(Record) == 64, "one cache line, written below as sixteen floats");

// Pixels whose centre lies between `low` and `high`; the same as in project.cpp, without clipping to the picture.
HUSH_INLINE void pixels_between(f32x8 low, f32x8 high, i32x8* first, i32x8* end) {
    const f32x8 most = splat(20000), half = splat(0.5f);
    *first = -floor_int(-max(min(low - half, most), -most));
    *end = floor_int(max(min(high + half, most), -most));
}

// How far a single ellipse may be off, see above.
HUSH_INLINE f32x8 ellipse_error(f32x8 ux, f32x8 uy, f32x8 vy, f32x8 gx, f32x8 gy, f32x8 hxx, f32x8 hxy, f32x8 hyy,
                                i32x8 low_pass) {
    const f32x8 iu = splat(1) / ux, iv = splat(1) / vy, skew = uy * iu;
    const f32x8 a = gx * iu, b = (gy - gx * skew) * iv;
    const f32x8 gamma = sqrt(a * a + b * b);
    const f32x8 eta = hxx * iu * iu + ((hxx * skew - hxy) * skew + hyy) * iv * iv;
    // With the low-pass the ellipse stays around the projected centre: S is taken as 1, which is off by 1.16 γ.
    return gamma * (select(low_pass, splat(1.16f), splat(0.83f)) + splat(2) * gamma) + splat(0.7f) * eta;
}

// Eight members: records without colour, and boxes in which alpha can reach `prune`.
template <bool Surfels>
HUSH_INLINE void make_records(const Scene& scene, const int32_t slot[8], float log2_prune, float most_error,
                              Record out[8], PixelBox box[8]) {
    f32x8 first[8], rest[4];
    for (int k = 0; k < 8; ++k) first[k] = load(&scene.projected[slot[k]].center_x);
    for (int k = 0; k < 4; ++k)
        rest[k] = join(load_four(&scene.projected[slot[k]].hxy), load_four(&scene.projected[slot[k + 4]].hxy));
    transpose(first);
    transpose_halves(rest);
    const f32x8 gx = first[5], gy = first[6], hxx = first[7], hxy = rest[0], hyy = rest[1];
    alignas(32) int32_t low_pass_lanes[8], clipped_lanes[8];
    for (int k = 0; k < 8; ++k) {
        low_pass_lanes[k] = scene.flags[slot[k]] & kLowPass ? -1 : 0;
        clipped_lanes[k] = scene.flags[slot[k]] & kClipped ? -1 : 0;
    }
    const i32x8 low_pass = Surfels ? load(low_pass_lanes) : splat_int(0);
    i32x8 flat = (ellipse_error(first[2], first[3], first[4], gx, gy, hxx, hxy, hyy, low_pass) < splat(most_error)) &
                 ~load(clipped_lanes);

    const f32x8 unit = splat(0.84932180028801907f);  // root of kHalfLog2E: exp(-D²/2) = 2^-Q
    f32x8 x = first[0], y = first[1], ux = first[2] * unit, uy = first[3] * unit,
          vy = max(first[4], -first[4]) * unit;  // only its square counts; of surfels it may be negative
    const f32x8 log_opacity = rest[3] * splat(kHalfLog2E);
    f32x8 depth = splat(1) / rest[2];
    // The contour is d'(M - kG)d - 2k g·d - k = 0 with Q = d'Md and S = 1 + 2 g·d + d'Gd.
    const f32x8 k = splat(kFitLevel * kHalfLog2E);
    const f32x8 n11 = ux * ux - k * (gx * gx + hxx), n12 = ux * uy - k * (gx * gy + splat(0.5f) * hxy);
    const f32x8 n22 = uy * uy + vy * vy - k * (gy * gy + hyy), over = k / (n11 * n22 - n12 * n12);
    const f32x8 ex = (n22 * gx - n12 * gy) * over, ey = (n11 * gy - n12 * gx) * over;
    const f32x8 scale = splat(1) / (splat(1) + gx * ex + gy * ey);
    const f32x8 fitted_ux = sqrt(n11 * scale), fitted_uy = n12 * scale / fitted_ux;
    const f32x8 fitted_vy = sqrt(n22 * scale - fitted_uy * fitted_uy);
    const i32x8 fit = flat & ~low_pass & (n11 > splat(0)) & (fitted_vy > splat(0));  // the last: false if no number
    flat &= fit | low_pass;
    ux = select(fit, fitted_ux, ux), uy = select(fit, fitted_uy, uy), vy = select(fit, fitted_vy, vy);
    x = select(fit, x + ex, x), y = select(fit, y + ey, y);
    depth = select(fit, depth * (splat(1) - gx * ex - gy * ey), depth);

    const f32x8 reach = sqrt(max(log_opacity - splat(log2_prune), splat(0)));
    f32x8 half_y = reach / vy, half_x = half_y * sqrt(uy * uy + vy * vy) / ux;
    if constexpr (Surfels) {
        const f32x8 radius =
            select(low_pass, reach * splat(1 / 1.2011224087864498f), splat(0));  // root of kLowPassLevel
        half_x = max(half_x, radius), half_y = max(half_y, radius);
    }
    i32x8 side[4];
    pixels_between(x - half_x, x + half_x, &side[0], &side[1]);
    pixels_between(y - half_y, y + half_y, &side[2], &side[3]);
    alignas(32) int32_t sides[4][8];
    for (int s = 0; s < 4; ++s) store(sides[s], side[s]);
    const unsigned is_flat = bits(flat);
    for (int lane = 0; lane < 8; ++lane) {  // within the footprint at 1/255, which of rays is all that is known
        const int chunk = slot[lane] / kChunk, at = slot[lane] % kChunk;
        const int16_t* known = &scene.box[(size_t)chunk * 4 * kChunk] + at;
        int end[4] = {known[0], known[kChunk], known[2 * kChunk], known[3 * kChunk]};
        if (is_flat >> lane & 1)
            for (int s = 0; s < 4; ++s)
                end[s] = s % 2 ? (sides[s][lane] < end[s] ? sides[s][lane] : end[s])
                               : (sides[s][lane] > end[s] ? sides[s][lane] : end[s]);
        box[lane] = {(int16_t)end[0], (int16_t)end[1], (int16_t)end[2], (int16_t)end[3]};
    }

    const f32x8 zero = splat(0), center = splat(1) / rest[2];
    const f32x8 pass = Surfels ? select(low_pass, splat(kLowPassLevel), splat(kNoLowPass)) : zero;
    f32x8 low[8] = {x, y, ux, uy, vy, log_opacity, zero, zero};
    f32x8 high[8] = {zero,
                     depth,
                     -uy / ux,
                     select(flat, -gx * center, gx),
                     select(flat, -gy * center, gy),
                     select(flat, pass, hxx),
                     select(flat, zero, hxy),
                     select(flat, splat(-1), max(hyy, zero))};
    transpose(low);
    transpose(high);
    for (int lane = 0; lane < 8; ++lane) {
        store(&out[lane].x, low[lane]);
        store(&out[lane].blue, high[lane]);
    }
}

}  // namespace hush::HUSH_ISA
