// Sorted raster: Gaussians in the order of their centres' depth, blended front to back until a pixel is opaque.
#include "normals.h"
#include "sorted_tile.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

enum Detail { kColorOnly, kWithDepth, kWithGeometry };

struct TileBuffers : OpenTile {
    alignas(64) float color[3][kTile * kTile];
    alignas(64) float geometry[kGeometry][kTile * kTile];  // sums of weight · value; of depth alone the first is used

    void clear(const Tile& tile, Detail detail) {
        OpenTile::clear(tile);
        std::memset(color, 0, sizeof color);
        const int channels[] = {0, 1, kGeometry};
        std::memset(geometry, 0, channels[detail] * sizeof geometry[0]);
    }
};

HUSH_INLINE void add(float* at, f32x8 value) { store(at, load(at) + value); }

template <bool Surfels, bool LowPass, bool Clipped, Detail Wanted>
__attribute__((noinline)) void blend(TileBuffers& buffers, const Footprint& f, f32x4 rgb, const float* normal) {
    const f32x8 red = splat(rgb[0]), green = splat(rgb[1]), blue = splat(rgb[2]);
    each_row<Surfels, LowPass, Clipped>(buffers, f, [&](const RowOfFragments& r) __attribute__((always_inline)) {
        const f32x8 zero = splat(0), weight = r.alpha * r.rest, inverse = r.fragment.inverse_depth;
        const int at = r.at;
        store(buffers.rest + at, r.rest - weight);
        add(buffers.color[0] + at, weight * red);
        add(buffers.color[1] + at, weight * green);
        add(buffers.color[2] + at, weight * blue);
        if constexpr (Wanted != kColorOnly) add(buffers.geometry[0] + at, select(r.counts, weight / inverse, zero));
        if constexpr (Wanted == kWithGeometry) {
            const f32x8 first = select(r.counts, weight * inverse, zero);
            add(buffers.geometry[1] + at, first);
            add(buffers.geometry[2] + at, select(r.counts, first * inverse, zero));
            for (int axis = 0; axis < 3; ++axis) add(buffers.geometry[3 + axis] + at, weight * splat(normal[axis]));
        }
    });
}

constexpr size_t kAhead = 16;  // entries: they are in the order of depth, not of memory

HUSH_INLINE void prefetch(const Scene& scene, int at) {
    __builtin_prefetch(&scene.projected[at]);
    __builtin_prefetch(&scene.projected[at].hyy);
    __builtin_prefetch(&scene.id[at]);
    const int16_t* box = &scene.box[(size_t)(at / kChunk) * 4 * kChunk] + at % kChunk;
    for (int side = 0; side < 4; ++side) __builtin_prefetch(box + side * kChunk);
}

template <bool Surfels, Detail Wanted>
void draw_tile(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int index,
               TileBuffers& buffers) {
    static thread_local Buffer<Entry> entries;
    const Tile tile = tile_at(lists, camera, index);
    const size_t n = list_tile(scene, camera, lists, index, entries);
    buffers.clear(tile, Wanted);
    for (size_t k = 0; k < n && buffers.open; ++k) {
        if (k % 64 == 63) buffers.update_open();
        const int at = entries[k].slot;
        if (k + kAhead < n) prefetch(scene, entries[k + kAhead].slot);
        if (k + kAhead / 2 < n) prefetch_color(colors, scene.id[entries[k + kAhead / 2].slot]);
        const Footprint f = footprint(scene, camera, tile, at / kChunk, at % kChunk);
        if (!visible(buffers, f)) continue;
        const f32x4 rgb = color_of(colors, camera.eye, scene.id[at]);
        float normal[3] = {};
        if constexpr (Wanted == kWithGeometry) normal_of(scene, camera, at, normal);
        const uint8_t flags = scene.flags[at];
        if (flags & kClipped)
            blend<Surfels, Surfels, true, Wanted>(buffers, f, rgb, normal);
        else if (Surfels && (flags & kLowPass))
            blend<Surfels, Surfels, false, Wanted>(buffers, f, rgb, normal);
        else
            blend<Surfels, false, false, Wanted>(buffers, f, rgb, normal);
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
            if (out.depth) out.depth[pixel] = hit > 0 ? buffers.geometry[0][at] / hit : 0;
            if (out.geometry)
                for (int c = 0; c < kGeometry; ++c) out.geometry[kGeometry * pixel + c] = buffers.geometry[c][at];
        }
}

template <bool Surfels>
auto* drawing(const SortedOutput& out) {
    return out.geometry ? draw_tile<Surfels, kWithGeometry>
           : out.depth  ? draw_tile<Surfels, kWithDepth>
                        : draw_tile<Surfels, kColorOnly>;
}

}  // namespace

void sorted(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
            const SortedOutput& out) {
    auto* draw = scene.surfels ? drawing<true>(out) : drawing<false>(out);
    parallel_for(lists.columns * lists.rows, threads, [&](int index) {
        TileBuffers buffers;
        draw(scene, camera, lists, colors, index, buffers);
        write_tile(buffers, tile_at(lists, camera, index), camera.width, out);
    });
}

}  // namespace hush::HUSH_ISA
