// Sorted raster: Gaussians in the order of their centres' depth, blended front to back until a pixel is opaque.
#include <algorithm>

#include "footprint.h"
#include "harmonics.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

constexpr float kHalfLog2E = 0.72134752044448170f;  // exp(-D²/2) = 2^(-D² · this)
constexpr float kHalfInverseLn2 = kHalfLog2E;       // 2 ln(o) · this = log2(o)

struct Entry {
    uint32_t key;   // bits of the centre's depth: positive floats sort as integers
    int32_t slot;   // chunk · kChunk + slot
};

// Least significant digit first, stable; `scratch` is as long as `entries`. The result ends up in `entries`.
void radix_sort(Entry* entries, Entry* scratch, size_t n) {
    static thread_local uint32_t counts[3][2048];
    std::memset(counts, 0, sizeof counts);
    for (size_t k = 0; k < n; ++k) {
        uint32_t key = entries[k].key;
        ++counts[0][key & 2047];
        ++counts[1][key >> 11 & 2047];
        ++counts[2][key >> 22];
    }
    Entry *from = entries, *to = scratch;
    for (int pass = 0; pass < 3; ++pass) {
        uint32_t sum = 0;
        bool one_digit = false;
        for (uint32_t& c : counts[pass]) {
            uint32_t here = c;
            one_digit |= here == n;
            c = sum;
            sum += here;
        }
        if (one_digit) continue;
        for (size_t k = 0; k < n; ++k) to[counts[pass][from[k].key >> (11 * pass) & 2047]++] = from[k];
        Entry* swap = from;
        from = to;
        to = swap;
    }
    if (from != entries) std::memcpy(entries, from, n * sizeof(Entry));
}

// Of equal depths the smaller index comes first: the order of chunks changes with the camera.
void order_ties(const Scene& scene, Entry* entries, size_t n) {
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && entries[end].key == entries[begin].key;) ++end;
        if (end - begin > 1)
            std::sort(entries + begin, entries + end,
                      [&](const Entry& a, const Entry& b) { return scene.id[a.slot] < scene.id[b.slot]; });
    }
}

struct TileBuffers {
    alignas(64) float rest[kTile * kTile];  // transmittance
    alignas(64) float color[3][kTile * kTile];
    alignas(64) float depth[kTile * kTile];  // sum of weight · depth
    uint64_t open;     // cells with a pixel that is not opaque yet
    uint64_t touched;  // cells drawn to since `open` was last brought up to date

    void clear(const Tile& tile) {
        for (int y = 0; y < kTile; ++y)
            for (int x = 0; x < kTile; x += 8) {
                i8 inside = iota_int() + splat_int(x) < splat_int(y < tile.height ? tile.width : 0);
                store(rest + y * kTile + x, select(inside, splat(1), splat(0)));
            }
        std::memset(color, 0, sizeof color);
        std::memset(depth, 0, sizeof depth);
        open = touched = ~0ull;
        update_open();
    }

    void update_open() {
        for (uint64_t left = touched & open; left; left &= left - 1) {
            int index = __builtin_ctzll(left);
            const float* corner = rest + index / kCells * kCell * kTile + index % kCells * kCell;
            f8 most = load(corner);
            for (int y = 1; y < kCell; ++y) most = max(most, load(corner + y * kTile));
            if (!any(most >= splat(kOpaque))) open &= ~(1ull << index);
        }
        touched = 0;
    }
};

template <bool Surfels, bool LowPass, bool Clipped, bool Depth>
__attribute__((noinline)) void blend(TileBuffers& buffers, const Footprint& f, f4 rgb) {
    const f8 level = splat(f.p.log_opacity + kMaxLevel);
    const f8 log2_opacity = splat(f.p.log_opacity * kHalfInverseLn2);
    const f8 red = splat(rgb[0]), green = splat(rgb[1]), blue = splat(rgb[2]);
    for (int y = f.y0 & -kCell; y < f.y1; y += kCell) {
        const CellRows<Surfels, LowPass, Clipped> rows(f, y);
        for (int x = f.x0 & -kCell; x < f.x1; x += kCell) {
            const uint64_t cell = 1ull << (y / kCell * kCells + x / kCell);
            if (!(buffers.open & cell)) continue;
            unsigned left = rows.needed(f, x, level);
            if (!left) continue;
            buffers.touched |= cell;
            const f8 dx = splat((float)x + 0.5f - f.p.center_x) + iota();
            for (; left; left &= left - 1) {
                const int row = __builtin_ctz(left), at = (y + row) * kTile + x;
                f8 rest = load(buffers.rest + at);
                i8 counts = rest >= splat(kOpaque);
                if (!any(counts)) continue;
                Fragment g = fragment<Surfels, LowPass, Clipped>(f, rows, row, dx);
                f8 squared = g.q / g.s;
                counts &= squared < level;
                if constexpr (Clipped) counts &= g.valid;
                f8 alpha = exp2_negative(log2_opacity - squared * splat(kHalfLog2E));
                f8 weight = select(counts, alpha * rest, splat(0));
                store(buffers.rest + at, rest - weight);
                store(buffers.color[0] + at, load(buffers.color[0] + at) + weight * red);
                store(buffers.color[1] + at, load(buffers.color[1] + at) + weight * green);
                store(buffers.color[2] + at, load(buffers.color[2] + at) + weight * blue);
                if constexpr (Depth) {
                    f8 depth = select(counts, weight / g.inverse_depth, splat(0));
                    store(buffers.depth + at, load(buffers.depth + at) + depth);
                }
            }
        }
    }
}

// True if some cell under the footprint is still open.
HUSH_INLINE bool visible(const TileBuffers& buffers, const Footprint& f) {
    int cx0 = f.x0 / kCell, cx1 = (f.x1 - 1) / kCell, cy0 = f.y0 / kCell, cy1 = (f.y1 - 1) / kCell;
    uint64_t in_row = ((2ull << (cx1 - cx0)) - 1) << cx0, mask = 0;
    for (int cy = cy0; cy <= cy1; ++cy) mask |= in_row << (cy * kCells);
    return (mask & buffers.open) != 0;
}

template <bool Surfels, bool Depth>
void draw_tile(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int index,
               TileBuffers& buffers) {
    static thread_local Buffer<Entry> entries, scratch;
    const Tile tile = tile_at(lists, camera, index);
    const size_t most = (size_t)(lists.begin[index + 1] - lists.begin[index]) * kChunk;
    entries.resize(most);
    scratch.resize(most);
    size_t n = 0;
    for (int entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
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
    buffers.clear(tile);
    for (size_t k = 0; k < n && buffers.open; ++k) {
        if (k % 64 == 63) buffers.update_open();
        const int at = entries[k].slot;
        const Footprint f = footprint(scene, camera, tile, at / kChunk, at % kChunk);
        if (!visible(buffers, f)) continue;
        const f4 rgb = color_of(colors, camera.eye, scene.id[at]);
        const uint8_t flags = scene.flags[at];
        if (flags & kClipped) blend<Surfels, Surfels, true, Depth>(buffers, f, rgb);
        else if (Surfels && (flags & kLowPass)) blend<Surfels, Surfels, false, Depth>(buffers, f, rgb);
        else blend<Surfels, false, false, Depth>(buffers, f, rgb);
    }
}

void write_tile(const TileBuffers& buffers, const Tile& tile, int width, const SortedOutput& out) {
    for (int y = 0; y < tile.height; ++y)
        for (int x = 0; x < tile.width; ++x) {
            const int at = y * kTile + x;
            const size_t pixel = (size_t)(tile.y0 + y) * width + tile.x0 + x;
            const float rest = buffers.rest[at], hit = 1 - rest;
            for (int c = 0; c < 3; ++c) out.color[3 * pixel + c] = buffers.color[c][at] + rest * out.background[c];
            out.alpha[pixel] = hit;
            if (out.depth) out.depth[pixel] = hit > 0 ? buffers.depth[at] / hit : 0;
        }
}

}  // namespace

void sorted(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
            const SortedOutput& out) {
    parallel_for(lists.columns * lists.rows, threads, [&](int index) {
        TileBuffers buffers;
        auto* draw = scene.surfels ? (out.depth ? draw_tile<true, true> : draw_tile<true, false>)
                                   : (out.depth ? draw_tile<false, true> : draw_tile<false, false>);
        draw(scene, camera, lists, colors, index, buffers);
        write_tile(buffers, tile_at(lists, camera, index), camera.width, out);
    });
}

}  // namespace hush::HUSH_ISA
