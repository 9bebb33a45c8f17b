// What the sorted raster and its gradient share: a tile's Gaussians in the order of their centres' depth, and which of
// its cells are still open.
#pragma once

#include <algorithm>

#include "footprint.h"
#include "harmonics.h"
#include "radix.h"

namespace hush::HUSH_ISA {
namespace {

// Of equal depths the smaller index comes first: the order of chunks changes with the camera.
inline void order_ties(const Scene& scene, Entry* entries, size_t n) {
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && entries[end].key == entries[begin].key;) ++end;
        if (end - begin > 1)
            std::sort(entries + begin, entries + end,
                      [&](const Entry& a, const Entry& b) { return scene.id[a.slot] < scene.id[b.slot]; });
    }
}

// What is still to be seen of a tile: transmittance, and which cells of 8×8 px are worth a look.
struct OpenTile {
    alignas(64) float rest[kTile * kTile];  // transmittance
    uint64_t open;                          // cells with a pixel that is not opaque yet
    uint64_t touched;                       // cells drawn to since `open` was last brought up to date

    void clear(const Tile& tile) {
        for (int y = 0; y < kTile; ++y)
            for (int x = 0; x < kTile; x += 8) {
                i32x8 inside = iota_int() + splat_int(x) < splat_int(y < tile.height ? tile.width : 0);
                store(rest + y * kTile + x, select(inside, splat(1), splat(0)));
            }
        open = touched = ~0ull;
        update_open();
    }

    void update_open() {
        for (uint64_t left = touched & open; left; left &= left - 1) {
            int index = __builtin_ctzll(left);
            const float* corner = rest + index / kCells * kCell * kTile + index % kCells * kCell;
            f32x8 most = load(corner);
            for (int y = 1; y < kCell; ++y) most = max(most, load(corner + y * kTile));
            if (!any(most >= splat(kOpaque))) open &= ~(1ull << index);
        }
        touched = 0;
    }
};

// A row of eight pixels of which some take a fragment.
struct RowOfFragments {
    int at;  // of the first pixel in the tile's buffers
    f32x8 dx;
    float dy;       // px, from the projected centre
    f32x8 rest;     // transmittance before the fragments
    f32x8 squared;  // D²
    f32x8 alpha;    // 0 in lanes without a fragment
    i32x8 counts;   // lanes with one
    Fragment fragment;
};

// Calls visit(row) for what a Gaussian still adds to the tile; the visitor blends, and stores the new transmittance.
template <bool Surfels, bool LowPass, bool Clipped, class Visit>
HUSH_INLINE void each_row(OpenTile& tile, const Footprint& f, Visit&& visit) {
    const f32x8 level = splat(f.p.log_opacity + kMaxLevel);
    const f32x8 log2_opacity = splat(f.p.log_opacity * kHalfLog2E);
    for (int y = f.y0 & -kCell; y < f.y1; y += kCell) {
        const CellRows<Surfels, LowPass, Clipped> rows(f, y);
        for (int x = f.x0 & -kCell; x < f.x1; x += kCell) {
            const uint64_t cell = 1ull << (y / kCell * kCells + x / kCell);
            if (!(tile.open & cell)) continue;
            unsigned left = rows.needed(f, x, level);
            if (!left) continue;
            tile.touched |= cell;
            RowOfFragments r;
            r.dx = splat((float)x + 0.5f - f.p.center_x) + iota();
            for (; left; left &= left - 1) {
                const int row = __builtin_ctz(left);
                r.at = (y + row) * kTile + x;
                r.dy = (float)(y + row) + 0.5f - f.p.center_y;
                r.rest = load(tile.rest + r.at);
                r.counts = r.rest >= splat(kOpaque);
                if (!any(r.counts)) continue;
                r.fragment = fragment<Surfels, LowPass, Clipped>(f, rows, row, r.dx);
                r.squared = r.fragment.q / r.fragment.s;
                r.counts &= r.squared < level;
                if constexpr (Clipped) r.counts &= r.fragment.valid;
                f32x8 alpha = exp2_negative(log2_opacity - r.squared * splat(kHalfLog2E));
                r.alpha = select(r.counts, alpha, splat(0));
                visit(r);
            }
        }
    }
}

// True if some cell under the footprint is still open.
HUSH_INLINE bool visible(const OpenTile& buffers, const Footprint& f) {
    int cx0 = f.x0 / kCell, cx1 = (f.x1 - 1) / kCell, cy0 = f.y0 / kCell, cy1 = (f.y1 - 1) / kCell;
    uint64_t in_row = ((2ull << (cx1 - cx0)) - 1) << cx0, mask = 0;
    for (int cy = cy0; cy <= cy1; ++cy) mask |= in_row << (cy * kCells);
    return (mask & buffers.open) != 0;
}

// The Gaussians of a tile, nearest centre first.
inline size_t list_tile(Scene& scene, const Camera& camera, const TileLists& lists, int index, Buffer<Entry>& entries) {
    static thread_local Buffer<Entry> scratch;
    const Tile tile = tile_at(lists, camera, index);
    const size_t most = (lists.begin[index + 1] - lists.begin[index]) * kChunk;
    entries.resize(most);
    scratch.resize(most);
    size_t n = 0;
    for (size_t entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
        const int chunk = lists.chunk[entry];
        ensure_projected(scene, camera, chunk);
        each_in_tile(scene, chunk, tile, [&](int slot) {
            float depth = 1 / scene.projected[(size_t)chunk * kChunk + slot].inverse_depth;
            Entry e;
            std::memcpy(&e.key, &depth, 4);
            e.slot = chunk * kChunk + slot;
            entries[n++] = e;
        });
    }
    radix_sort(entries.get(), scratch.get(), n);
    order_ties(scene, entries.get(), n);
    return n;
}

}  // namespace
}  // namespace hush::HUSH_ISA
