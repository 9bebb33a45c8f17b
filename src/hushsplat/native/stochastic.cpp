// Stochastic raster: a fragment is kept if D² lies below its random level, the nearest kept one wins the pixel.
#include <cmath>

#include "footprint.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

HUSH_INLINE uint32_t mix32(uint32_t x) {  // as render/sampling.py
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

// The table of levels, and the largest level in each run of 8, 16 and 32 entries: how far a row can reach at all.
struct Levels {
    alignas(64) float level[kTable + 8];
    alignas(64) float most[3][kTable];

    void fill(const float* table) {
        for (int k = 0; k < kTable + 8; ++k) level[k] = table[k % kTable];
        for (int k = 0; k < kTable; ++k) {
            float m = level[k];
            for (int j = 1; j < 8; ++j) m = level[k + j] > m ? level[k + j] : m;
            most[0][k] = m;
        }
        for (int w = 1; w < 3; ++w)
            for (int k = 0; k < kTable; ++k) {
                float a = most[w - 1][k], b = most[w - 1][(k + (4 << w)) % kTable];
                most[w][k] = a > b ? a : b;
            }
    }
};

// The buffers of a tile: nearest 1/z and who holds it; `farthest` is the least 1/z of each cell and of the tile.
struct TileBuffers {
    alignas(64) float inverse_depth[kTile * kStride];
    alignas(64) int32_t id[kTile * kStride];
    float cell[kCells * kCells];
    float farthest;
    uint64_t touched;  // cells drawn to since `farthest` was last brought up to date

    void clear(const Tile& tile) {
        const float never = 3e38f;  // pixels outside the picture are never won and hide nothing
        for (int y = 0; y < kTile; ++y)
            for (int x = 0; x < kStride; x += 8) {
                f8 column = iota() + splat((float)x);
                store(inverse_depth + y * kStride + x,
                      y < tile.height ? (column < splat((float)tile.width) ? splat(0) : splat(never)) : splat(never));
                store(id + y * kStride + x, splat_int(-1));
            }
        for (float& c : cell) c = 0;
        farthest = 0;
        touched = ~0ull;
    }

    void update_farthest() {
        for (uint64_t left = touched; left; left &= left - 1) {
            int index = __builtin_ctzll(left);
            const float* corner = inverse_depth + index / kCells * kCell * kStride + index % kCells * kCell;
            f8 least = load(corner);
            for (int y = 1; y < kCell; ++y) least = min(least, load(corner + y * kStride));
            cell[index] = horizontal_min(least);
        }
        touched = 0;
        farthest = cell[0];
        for (float c : cell) farthest = c < farthest ? c : farthest;
    }
};

// True if the footprint lies behind everything that its cells have kept so far; marks the cells otherwise.
HUSH_INLINE bool hidden(TileBuffers& buffers, const Footprint& f, float nearest) {
    int cx0 = f.x0 / kCell, cx1 = (f.x1 - 1) / kCell, cy0 = f.y0 / kCell, cy1 = (f.y1 - 1) / kCell;
    uint64_t in_row = ((2ull << (cx1 - cx0)) - 1) << cx0;
    bool open = false;
    uint64_t mask = 0;
    for (int cy = cy0; cy <= cy1; ++cy) {
        mask |= in_row << (cy * kCells);
        for (int cx = cx0; cx <= cx1; ++cx) open |= buffers.cell[cy * kCells + cx] < nearest;
    }
    if (open) buffers.touched |= mask;
    return !open;
}

template <bool Surfels, bool LowPass, bool Clipped>
HUSH_INLINE void draw(TileBuffers& buffers, const Levels& levels, const Footprint& f, uint32_t first, int32_t id) {
    const int width = f.x1 - f.x0;
    const float* most = width <= 8 ? levels.most[0] : width <= 16 ? levels.most[1] : levels.most[2];
    const f8 log_opacity = splat(f.log_opacity);
    const i8 id8 = splat_int(id);
    for (int y = f.y0; y < f.y1; y += 8) {
        uint32_t corner = first + (uint32_t)kRowStep * (uint32_t)(y - f.y0);
        f8 level = splat(kMaxLevel);
        if (width <= 32) {
            i8 at = (splat_int((int32_t)corner) + splat_int(kRowStep) * iota_int()) & splat_int(kTable - 1);
            level = gather(most, at);
        }
        i8 begin, end;
        row_spans<Surfels, LowPass>(f, y, level + log_opacity, &begin, &end);
        unsigned left = bits(begin < end) & (f.y1 - y >= 8 ? 0xffu : (1u << (f.y1 - y)) - 1);
        alignas(32) int32_t begins[8], ends[8];
        store(begins, begin);
        store(ends, end);
        for (; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            const Row row = row_at<Surfels>(f, y + lane);
            float* z_row = buffers.inverse_depth + (y + lane) * kStride;
            int32_t* id_row = buffers.id + (y + lane) * kStride;
            uint32_t at = corner + (uint32_t)kRowStep * lane - (uint32_t)f.x0;
            for (int x = begins[lane]; x < ends[lane]; x += 8) {
                f8 dx = splat((float)x + 0.5f - f.center_x) + iota();
                Fragment g = fragment<Surfels, LowPass, Clipped>(f, row, dx);
                f8 z = load(z_row + x);
                f8 random = load(levels.level + ((at + (uint32_t)x) & (kTable - 1))) + log_opacity;
                i8 kept = (g.q < random * g.s) & (g.inverse_depth > z);
                if constexpr (Clipped) kept &= g.valid;
                store(z_row + x, kept ? g.inverse_depth : z);
                store(id_row + x, kept ? id8 : load(id_row + x));
            }
        }
    }
}

HUSH_INLINE int32_t anchor(float center) {  // the pixel of the centre, as render/sampling.py
    center = center < -1e6f ? -1e6f : center > 1e6f ? 1e6f : center;
    return (int32_t)std::floor(center);
}

template <bool Surfels>
void draw_tile(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Levels& levels,
               uint32_t sequence, TileBuffers& buffers) {
    const Tile tile = tile_at(lists, camera, index);
    buffers.clear(tile);
    for (int entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
        const int chunk = lists.chunk[entry];
        if (lists.inverse_near[chunk] <= buffers.farthest) break;  // this one and all behind it are hidden
        ensure_projected(scene, camera, chunk);
        const float* center = &scene.projected[(size_t)chunk * scene.rows() * kChunk];
        each_in_tile(scene, chunk, tile, buffers.farthest, [&](int slot) {
            Footprint f = footprint<Surfels>(scene, camera, tile, chunk, slot);
            if (hidden(buffers, f, scene.nearest[(size_t)chunk * kChunk + slot])) return;
            int32_t id = scene.id[(size_t)chunk * kChunk + slot];
            uint32_t key = mix32((uint32_t)id ^ sequence);
            int32_t column = anchor(center[kCenterX * kChunk + slot]), line = anchor(center[kCenterY * kChunk + slot]);
            uint32_t first = key + (uint32_t)kRowStep * (uint32_t)(tile.y0 + f.y0 - line) + (uint32_t)(tile.x0 + f.x0 - column);
            if (f.flags & kClipped) {
                if (Surfels) draw<Surfels, true, true>(buffers, levels, f, first, id);
                else draw<Surfels, false, true>(buffers, levels, f, first, id);
            } else if (Surfels && (f.flags & kLowPass)) {
                draw<Surfels, Surfels, false>(buffers, levels, f, first, id);
            } else {
                draw<Surfels, false, false>(buffers, levels, f, first, id);
            }
        });
        buffers.update_farthest();
    }
}

void write_tile(const TileBuffers& buffers, const Tile& tile, int width, int32_t* id, float* depth) {
    for (int y = 0; y < tile.height; ++y) {
        size_t out = (size_t)(tile.y0 + y) * width + tile.x0;
        for (int x = 0; x < tile.width; ++x) {
            float w = buffers.inverse_depth[y * kStride + x];
            id[out + x] = buffers.id[y * kStride + x];
            depth[out + x] = w > 0 ? 1 / w : 0;
        }
    }
}

}  // namespace

void stochastic(Scene& scene, const Camera& camera, const TileLists& lists, const float* levels, const uint32_t* sequence,
                int samples, int threads, int32_t* id, float* depth) {
    const size_t pixels = (size_t)camera.width * camera.height;
    Buffer<Levels> tables(samples);
    for (int s = 0; s < samples; ++s) tables[s].fill(levels + (size_t)s * kTable);
    const int tiles = lists.columns * lists.rows;
    parallel_for(tiles, threads, [&](int index) {
        static thread_local TileBuffers buffers;
        for (int s = 0; s < samples; ++s) {
            if (scene.surfels) draw_tile<true>(scene, camera, lists, index, tables[s], sequence[s], buffers);
            else draw_tile<false>(scene, camera, lists, index, tables[s], sequence[s], buffers);
            write_tile(buffers, tile_at(lists, camera, index), camera.width, id + s * pixels, depth + s * pixels);
        }
    });
}

}  // namespace hush::HUSH_ISA
