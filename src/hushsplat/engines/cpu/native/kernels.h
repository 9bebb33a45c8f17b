// The passes of one instruction set.
#pragma once

#include "baselines.h"
#include "denoise.h"
#include "engine.h"
#include "vec.h"

namespace hush::HUSH_ISA {

void project(Scene& scene, const Camera& camera, int chunk);
// The same for the slots whose bits are set, and their neighbours: nobody else may need the chunk in this frame.
void project_some(Scene& scene, const Camera& camera, int chunk, const uint64_t wanted[2]);
void stochastic(Scene&, const Camera&, const TileLists&, const float* levels, const uint32_t* sequence, int samples,
                Order, int threads, int32_t* id, float* depth);
void sorted(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
void exact(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
void sorted_gradient(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const GradientJob&);
void exact_gradient(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const FragmentTape&,
                    const GradientJob&);
double ssim(const float* first, const float* second, int width, int height, int threads, float* by_first);
void adam(const AdamStep&, int threads);
// Who is seen joins the set: `samples`[tile] times in each tile, 0 leaves it out. Of two at one depth the smaller slot
// wins.
void discover(Scene&, const Camera&, const TileLists&, const RandomLevels&, const uint8_t* samples, int threads,
              uint64_t* members);
void active_set(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const ActiveJob&);
void decode(const int32_t* id, int samples, int width, int height, const Camera&, const Colors&, int threads,
            const float* background, float* color);
double peak_flops(int threads);  // per second
double peak_bytes(int threads);
void decode_view(const int32_t* id, const float* depth, int samples, int width, int height, const float* payload,
                 int count, const float* axes, int threads, float* view);
void denoise(const DenoiseStep& step, int threads);
void baseline_mean(const BaselineStep& step, int frames);
void baseline_st_taa(const BaselineStep& step, float cap, float reach);
void baseline_taa(const BaselineStep& step, float cap, float gamma);
void baseline_svgf(const BaselineStep& step, const SvgfSettings& settings);

// The chunk is projected by the first tile that needs it; hidden chunks never are.
HUSH_INLINE void ensure_projected(Scene& scene, const Camera& camera, int chunk) {
    std::atomic<uint8_t>& state = scene.state[chunk];
    if (state.load(std::memory_order_acquire) == 2) return;
    uint8_t fresh = 0;
    if (!state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) return await_projected(state);
    project(scene, camera, chunk);
    if (state.exchange(2, std::memory_order_acq_rel) == 3) wake_waiting();
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

// Calls visit(slot) for the Gaussians of a chunk whose box meets the tile.
template <class Visit>
HUSH_INLINE void each_in_tile(const Scene& scene, int chunk, const Tile& tile, Visit&& visit) {
    const ChunkReach& reach = scene.reach[chunk];
    const int right = tile.x0 + tile.width, bottom = tile.y0 + tile.height;
    if (reach.x0 >= right || reach.x1 <= tile.x0 || reach.y0 >= bottom || reach.y1 <= tile.y0) return;
    const i16x16 x0 = splat_short(tile.x0), x1 = splat_short(right), y0 = splat_short(tile.y0),
                 y1 = splat_short(bottom);
    const int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk];
    for (int k = 0; k < kChunk; k += 16) {
        i16x16 inside = (load(box + k) < x1) & (load(box + kChunk + k) > x0) & (load(box + 2 * kChunk + k) < y1) &
                        (load(box + 3 * kChunk + k) > y0);
        for (unsigned left = bits(inside); left; left &= left - 1) visit(k + __builtin_ctz(left) / 2);
    }
}

}  // namespace hush::HUSH_ISA
