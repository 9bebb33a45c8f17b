// One Gaussian's footprint in a tile: its numbers, the span of each row, and the fragment equation on eight pixels.
#pragma once

#include "kernels.h"

namespace hush::HUSH_ISA {

struct Footprint {
    float center_x, center_y;  // px, relative to the tile
    float ux, uy, vy, gx, gy, hxx, hxy, hyy, inverse_depth, log_opacity, near;
    int x0, x1, y0, y1;  // px, relative to the tile, clipped to it
    unsigned flags;
};

template <bool Surfels>
HUSH_INLINE Footprint footprint(const Scene& scene, const Camera& camera, const Tile& tile, int chunk, int slot) {
    constexpr int rows = Surfels ? kSurfelRows : kEllipsoidRows;
    const float* p = &scene.projected[(size_t)chunk * rows * kChunk] + slot;
    const int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk] + slot;
    Footprint f;
    f.center_x = p[kCenterX * kChunk] - (float)tile.x0;
    f.center_y = p[kCenterY * kChunk] - (float)tile.y0;
    f.ux = p[kUx * kChunk];
    f.uy = p[kUy * kChunk];
    f.vy = p[kVy * kChunk];
    f.gx = p[kGx * kChunk];
    f.gy = p[kGy * kChunk];
    f.inverse_depth = p[kInverseDepth * kChunk];
    f.hxx = Surfels ? 0 : p[kHxx * kChunk];
    f.hxy = Surfels ? 0 : p[kHxy * kChunk];
    f.hyy = Surfels ? 0 : p[kHyy * kChunk];
    f.log_opacity = scene.fixed[((size_t)chunk * kFixed + kLogOpacity) * kChunk + slot];
    f.near = camera.near;
    auto clip = [](int v, int size) { return v < 0 ? 0 : v > size ? size : v; };
    f.x0 = clip(box[0] - tile.x0, tile.width);
    f.x1 = clip(box[kChunk] - tile.x0, tile.width);
    f.y0 = clip(box[2 * kChunk] - tile.y0, tile.height);
    f.y1 = clip(box[3 * kChunk] - tile.y0, tile.height);
    f.flags = scene.flags[(size_t)chunk * kChunk + slot];
    return f;
}

// For eight rows from y on: where D² < level can hold, as pixel columns first .. end-1 inside the footprint's box.
template <bool Surfels, bool LowPass>
HUSH_INLINE void row_spans(const Footprint& f, int y, f8 level, i8* first, i8* end) {
    const f8 slack = splat(0.02f);  // px, against rounding
    f8 dy = splat((float)y + 0.5f - f.center_y) + iota();
    f8 t = splat(1) + splat(f.gy) * dy;
    f8 uy = splat(f.uy) * dy, vy = splat(f.vy) * dy;
    // F(dx) = Q - level S = a dx² + 2 b dx + c < 0
    f8 a = splat(f.ux * f.ux) - level * splat(f.gx * f.gx + f.hxx);
    f8 b = splat(f.ux) * uy - level * (splat(f.gx) * t + splat(0.5f * f.hxy) * dy);
    f8 c = uy * uy + vy * vy - level * (t * t + splat(f.hyy) * dy * dy);
    f8 disc = b * b - a * c;
    f8 ia = splat(1) / a;
    f8 half = sqrt(max(disc, splat(0))) * ia, middle = -b * ia;
    i8 empty = (disc < splat(0)) | (level <= splat(0));
    f8 low = empty ? splat(1e9f) : middle - half;
    f8 high = empty ? splat(-1e9f) : middle + half;
    if constexpr (LowPass) {
        f8 rest = splat(0.5f) * level - dy * dy;
        f8 reach = sqrt(max(rest, splat(0)));
        i8 inside = rest > splat(0);
        low = inside ? min(low, -reach) : low;
        high = inside ? max(high, reach) : high;
    }
    // An open conic (the footprint reaches behind the eye), or one whose ends rounding cannot tell: the whole row.
    i8 open = ~(a > splat(1e-5f * f.ux * f.ux));
    low = open ? splat(-1e9f) : low;
    high = open ? splat(1e9f) : high;
    f8 x0 = splat((float)f.x0), x1 = splat((float)f.x1);
    low = min(max(low + splat(f.center_x - 0.5f) - slack, x0), x1);
    high = min(max(high + splat(f.center_x + 0.5f) + slack, x0), x1);
    *first = -floor_int(-low);
    *end = floor_int(high);
}

// What of the fragment equation stays the same along a row.
struct Row {
    f8 uy, vv, t, h1, h0, low_pass;
};

template <bool Surfels>
HUSH_INLINE Row row_at(const Footprint& f, int y) {
    float dy = (float)y + 0.5f - f.center_y;
    float vy = f.vy * dy;
    Row row;
    row.uy = splat(f.uy * dy);
    row.vv = splat(vy * vy);
    row.t = splat(1 + f.gy * dy);
    row.h1 = splat(f.hxy * dy);
    row.h0 = splat(f.hyy * dy * dy);
    row.low_pass = splat(2 * dy * dy);
    return row;
}

// D² = q / s; `inverse_depth` is 1 / z; lanes of `valid` false have no fragment.
struct Fragment {
    f8 q, s, inverse_depth;
    i8 valid;
};

template <bool Surfels, bool LowPass, bool Clipped>
HUSH_INLINE Fragment fragment(const Footprint& f, const Row& row, f8 dx) {
    Fragment g;
    f8 t = splat(f.gx) * dx + row.t;
    f8 u = splat(f.ux) * dx + row.uy;
    g.q = u * u + row.vv;
    g.valid = splat_int(-1);
    if constexpr (Surfels) {
        g.s = t * t;
        g.inverse_depth = splat(f.inverse_depth) * t;
        if constexpr (LowPass) {
            f8 low = ((dx + dx) * dx + row.low_pass) * g.s;
            i8 plane = g.q <= low;
            if constexpr (Clipped) plane &= (t > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
            g.q = plane ? g.q : low;
            g.inverse_depth = plane ? g.inverse_depth : splat(f.inverse_depth);
        } else if constexpr (Clipped) {
            g.valid = (t > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
        }
    } else {
        g.s = t * t + ((splat(f.hxx) * dx + row.h1) * dx + row.h0);
        g.inverse_depth = splat(f.inverse_depth) * g.s / t;
        if constexpr (Clipped) g.valid = (t > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
    }
    return g;
}

}  // namespace hush::HUSH_ISA
