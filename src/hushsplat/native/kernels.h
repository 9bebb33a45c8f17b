// The passes of one instruction set.
#pragma once

#include "engine.h"
#include "vec.h"

namespace hush::HUSH_ISA {

void project(Scene& scene, const Camera& camera, int chunk);
void stochastic(Scene&, const Camera&, const TileLists&, const float* levels, const uint32_t* sequence, int samples,
                int threads, int32_t* id, float* depth);
void sorted(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
void ordered(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
void decode(const int32_t* id, int samples, int width, int height, const Camera&, const Colors&, int threads,
            const float* background, float* color);

// The chunk is projected by the first tile that needs it; hidden chunks never are.
HUSH_INLINE void ensure_projected(Scene& scene, const Camera& camera, int chunk) {
    std::atomic<uint8_t>& state = scene.state[chunk];
    if (state.load(std::memory_order_acquire) == 2) return;
    uint8_t fresh = 0;
    if (state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) {
        project(scene, camera, chunk);
        state.store(2, std::memory_order_release);
        return;
    }
    while (state.load(std::memory_order_acquire) != 2) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

// A tile of the picture, px.
struct Tile {
    int x0, y0, width, height;
};

HUSH_INLINE Tile tile_at(const TileLists& lists, const Camera& camera, int index) {
    int x0 = index % lists.columns * kTile, y0 = index / lists.columns * kTile;
    int width = camera.width - x0, height = camera.height - y0;
    return {x0, y0, width < kTile ? width : kTile, height < kTile ? height : kTile};
}

// Calls visit(slot) for the Gaussians of a chunk whose box meets the tile and that reach nearer than `farthest` (1/z).
template <class Visit>
HUSH_INLINE void each_in_tile(const Scene& scene, int chunk, const Tile& tile, float farthest, Visit&& visit) {
    const int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk];
    const float* nearest = &scene.nearest[(size_t)chunk * kChunk];
    for (int k = 0; k < kChunk; k += 8) {
        i8 inside = (load_short(box + k) < splat_int(tile.x0 + tile.width)) &
                    (load_short(box + kChunk + k) > splat_int(tile.x0)) &
                    (load_short(box + 2 * kChunk + k) < splat_int(tile.y0 + tile.height)) &
                    (load_short(box + 3 * kChunk + k) > splat_int(tile.y0)) & (load(nearest + k) > splat(farthest));
        for (unsigned left = bits(inside); left; left &= left - 1) visit(k + __builtin_ctz(left));
    }
}

}  // namespace hush::HUSH_ISA
