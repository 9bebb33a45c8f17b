// The lists of chunks that each tile has to look at, in the largest picture, where every chunk may be anywhere.
#include "engine.h"

#include <cmath>
#include <cstdio>
#include <type_traits>

// 8.4 million Gaussians at 16384 × 16384 px make four billion entries.
static_assert(sizeof(decltype(hush::TileLists::begin)::value_type) == 8, "offsets into the lists overflow");

namespace {

hush::Camera camera_of(int side, float focal) {
    hush::Camera camera{};
    for (int axis = 0; axis < 3; ++axis) camera.rotation[4 * axis] = 1;
    camera.fx = camera.fy = focal, camera.cx = camera.cy = 0.5f * (float)side;
    camera.width = camera.height = side, camera.near = 0.2f;
    return camera;
}

hush::Scene scene_at(float depth, float scale, int count) {
    std::vector<float> means(3 * (size_t)count, 0), scales(3 * (size_t)count, scale), rotations(4 * (size_t)count, 0);
    std::vector<float> opacities(count, 0.5f);
    for (int k = 0; k < count; ++k) means[3 * (size_t)k + 2] = depth, rotations[4 * (size_t)k] = 1;
    return hush::Scene(means.data(), scales.data(), rotations.data(), opacities.data(), count, false, 2);
}

// Whether each of so many chunks is in each tile, or in none.
bool lists_have(hush::Scene&& scene, const hush::Camera& camera, size_t chunks_per_tile) {
    hush::TileLists lists;
    hush::begin_frame(scene, camera, lists);
    const size_t tiles = (size_t)lists.columns * lists.rows;
    if (lists.begin.size() != tiles + 1 || lists.chunk.size() != tiles * chunks_per_tile) return false;
    for (size_t tile = 0; tile <= tiles; ++tile)
        if (lists.begin[tile] != tile * chunks_per_tile) return false;
    for (size_t k = 0; k < lists.chunk.size(); ++k)
        if (lists.chunk[k] != (int)(k % chunks_per_tile)) return false;
    return true;
}

int failures = 0;

void check(bool condition, const char* name) {
    std::printf("%s %s\n", condition ? "ok    " : "FAILED", name);
    failures += !condition;
}

}  // namespace

int main() {
    constexpr int kCount = 100 * hush::kChunk;
    check(lists_have(scene_at(0, 3, kCount), camera_of(16384, 1e4f), 100), "around the eye: in every tile");
    check(lists_have(scene_at(-50, 1, kCount), camera_of(16384, 1e4f), 0), "behind the eye: in none");
    // Infinity times zero: where such a camera sees a chunk cannot be told, so that it may be anywhere.
    check(lists_have(scene_at(50, 0, kCount), camera_of(640, INFINITY), 100), "a place that is not a number");
    return failures;
}
