// One Gaussian's footprint in a tile, cell by cell of 8×8 px: which rows matter, and the fragment equation on eight
// pixels.
#pragma once

#include "kernels.h"

namespace hush::HUSH_ISA {

constexpr float kHalfLog2E = 0.72134752044448170f;  // exp(-D²/2) = 2^(-D² · this); 2 ln(o) · this = log2(o)

struct Footprint {
    Projected p;         // centre relative to the tile
    float nearest;       // largest 1 / depth in the footprint
    float near;          // world units
    int x0, x1, y0, y1;  // px, relative to the tile, clipped to it
};

struct TileBox {
    int x0, x1, y0, y1;  // px, relative to the tile, clipped to it
};

HUSH_INLINE TileBox box_in_tile(const Scene& scene, const Tile& tile, int chunk, int slot) {
    const int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk] + slot;
    auto clip = [](int v, int size) { return v < 0 ? 0 : v > size ? size : v; };
    return {clip(box[0] - tile.x0, tile.width), clip(box[kChunk] - tile.x0, tile.width),
            clip(box[2 * kChunk] - tile.y0, tile.height), clip(box[3 * kChunk] - tile.y0, tile.height)};
}

HUSH_INLINE Footprint footprint(const Scene& scene, const Camera& camera, const Tile& tile, int chunk, int slot) {
    const size_t at = (size_t)chunk * kChunk + slot;
    const TileBox box = box_in_tile(scene, tile, chunk, slot);
    Footprint f = {scene.projected[at], scene.nearest[at], camera.near, box.x0, box.x1, box.y0, box.y1};
    f.p.center_x -= (float)tile.x0;
    f.p.center_y -= (float)tile.y0;
    return f;
}

// The eight rows of a line of cells: what of the fragment equation stays the same along each row.
template <bool Surfels, bool LowPass, bool Clipped>
struct CellRows {
    alignas(32) float uy[8], vv[8], t[8], h1[8], h0[8], low[8];
    f32x8 middle;   // dx at which Q is least
    f32x8 most_s;   // no fragment of the footprint has a larger S, with some slack for rounding
    unsigned rows;  // one bit per row inside the footprint's box

    HUSH_MEMBER CellRows(const Footprint& f, int y) {
        const Projected& p = f.p;
        f32x8 dy = splat((float)y + 0.5f - p.center_y) + iota();
        f32x8 u = splat(p.uy) * dy, v = splat(p.vy) * dy;
        store(uy, u);
        store(vv, v * v);
        store(t, fma(splat(p.gy), dy, splat(1)));
        if constexpr (!Surfels) {
            store(h1, splat(p.hxy) * dy);
            store(h0, splat(p.hyy) * dy * dy);
        }
        if constexpr (LowPass) store(low, (dy + dy) * dy);
        middle = u * splat(-1 / p.ux);
        float ratio = f.nearest / p.inverse_depth;  // S <= (centre's depth / least depth)²; too loose if near the eye
        most_s = splat(1.0002f * ratio * ratio);
        int first = f.y0 - y, end = f.y1 - y;
        rows = (first > 0 ? 0xffu << first : 0xffu) & (end < 8 ? (1u << end) - 1 : 0xffu);
    }

    HUSH_MEMBER f32x8 scale_at(const Footprint& f, float dx) const {
        f32x8 along = splat(f.p.gx * dx) + load(t);
        f32x8 s = along * along;
        if constexpr (!Surfels) s += (splat(f.p.hxx * dx) + load(h1)) * splat(dx) + load(h0);
        return s;
    }

    // The rows in which D² < level can hold in the eight columns from x on.
    HUSH_MEMBER unsigned needed(const Footprint& f, int x, f32x8 level) const {
        const float left = (float)x + 0.5f - f.p.center_x;
        f32x8 dx = min(max(middle, splat(left)), splat(left + 7));
        f32x8 u = splat(f.p.ux) * dx + load(uy);
        f32x8 s = most_s;
        if constexpr (Clipped) s = max(scale_at(f, left), scale_at(f, left + 7)) * splat(1.0002f);  // S is convex
        i32x8 need = u * u + load(vv) < level * s;
        if constexpr (LowPass) {
            float nearest = left > 0 ? left : left < -7 ? left + 7 : 0;  // of the eight columns to the centre
            need |= splat(2 * nearest * nearest) + load(low) < level + splat(1e-4f);
        }
        return bits(need) & rows;
    }
};

// D² = q / s; `inverse_depth` is 1 / z; lanes of `valid` false have no fragment.
struct Fragment {
    f32x8 q, s, inverse_depth;
    i32x8 valid;
    f32x8 t;      // 1 + g·d
    i32x8 plane;  // the low-pass does not decide here
};

template <bool Surfels, bool LowPass, bool Clipped>
HUSH_INLINE Fragment fragment(const Footprint& f, const CellRows<Surfels, LowPass, Clipped>& rows, int row, f32x8 dx) {
    const Projected& p = f.p;
    Fragment g;
    f32x8 t = fma(splat(p.gx), dx, splat(rows.t[row]));
    f32x8 u = splat(p.ux) * dx + splat(rows.uy[row]);
    g.q = u * u + splat(rows.vv[row]);
    g.valid = g.plane = splat_int(-1);
    g.t = t;
    if constexpr (Surfels) {
        g.s = t * t;
        g.inverse_depth = splat(p.inverse_depth) * t;
        if constexpr (LowPass) {
            f32x8 low = ((dx + dx) * dx + splat(rows.low[row])) * g.s;
            i32x8 plane = g.q <= low;
            if constexpr (Clipped) {
                // Where the plane is not hit, S may be anything: the low-pass then stands alone.
                plane &= (t > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
                low = select(plane, low, (dx + dx) * dx + splat(rows.low[row]));
                g.s = select(plane, g.s, splat(1));
            }
            g.q = select(plane, g.q, low);
            g.plane = plane;
            g.inverse_depth = select(plane, g.inverse_depth, splat(p.inverse_depth));
        } else if constexpr (Clipped) {
            g.valid = (t > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
        }
    } else {
        g.s = fma(t, t, fma(fma(splat(p.hxx), dx, splat(rows.h1[row])), dx, splat(rows.h0[row])));
        g.inverse_depth = splat(p.inverse_depth) * g.s / t;
        // Of absurdly large ellipsoids S may be rounded below 0.
        if constexpr (Clipped)
            g.valid = (t > splat(0)) & (g.s > splat(0)) & (g.inverse_depth * splat(f.near) < splat(1));
    }
    return g;
}

}  // namespace hush::HUSH_ISA
