// Per-pixel order: every pixel's fragments sorted by their own depth and blended; also the variance of one random sample.
#include "harmonics.h"
#include "normals.h"
#include "peel.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

struct Look {
    f4 rgb;
    float normal[3];
};

// What a patch has blended so far.
struct PatchSums {
    f4 mean[kPatchPixels], square[kPatchPixels];
    float geometry[kPatchPixels][kGeometry];
};

void write_patch(const Peeler& peeler, const PatchSums& sums, const Tile& patch, int width, const SortedOutput& out) {
    for (int y = 0; y < patch.height; ++y)
        for (int x = 0; x < patch.width; ++x) {
            const int at = y * kPatch + x;
            const size_t pixel = (size_t)(patch.y0 + y) * width + patch.x0 + x;
            const float rest = peeler.rest[at], hit = 1 - rest;
            for (int c = 0; c < 3; ++c) {
                const float color = sums.mean[at][c] + rest * out.background[c];
                out.color[3 * pixel + c] = color;
                const float second = sums.square[at][c] + rest * out.background[c] * out.background[c];
                const float variance = second - color * color;
                if (out.variance) out.variance[3 * pixel + c] = variance > 0 ? variance : 0;
            }
            out.alpha[pixel] = hit;
            const float weights = sums.mean[at][3];
            if (out.depth) out.depth[pixel] = weights > 0 ? sums.geometry[at][0] / weights : 0;
            if (out.geometry)
                for (int c = 0; c < kGeometry; ++c) out.geometry[kGeometry * pixel + c] = sums.geometry[at][c];
        }
}

template <bool Surfels, bool Geometry, bool Taped>
void draw_patch(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Tile& patch,
                const Colors& colors, const SortedOutput& out, PeeledPatch* tape) {
    static thread_local struct {
        Peeler peeler;
        PatchSums sums;
        Buffer<Look> looks;
    } mine;
    Peeler& peeler = mine.peeler;  // once: a thread's own memory is looked up at every use
    PatchSums& sums = mine.sums;
    Buffer<Look>& looks = mine.looks;
    std::memset(&sums, 0, sizeof sums);
    peeler.list(scene, camera, lists, index, patch);
    looks.resize(peeler.entry_count);
    auto meet = [&](int entry) {
        const PeelEntry& e = peeler.entries[entry];
        looks[entry].rgb = color_of(colors, camera.eye, e.id);
        looks[entry].rgb[3] = 1;  // sums up the weights
        if constexpr (Geometry) normal_of(scene, camera, e.slot, looks[entry].normal);
    };
    if constexpr (Taped) {
        tape->slots.resize(peeler.entry_count);
        for (size_t k = 0; k < peeler.entry_count; ++k) tape->slots[k] = peeler.entries[k].slot;
    }
    auto visit = [&](int pixel, const Peeled& w, float rest) {
        if constexpr (Taped) tape->records.push_back({w.entry, pixel, w.alpha, w.inverse_depth});
        const float weight = rest * w.alpha;
        const f4 rgb = looks[w.entry].rgb;
        sums.mean[pixel] += weight * rgb;
        sums.square[pixel] += weight * rgb * rgb;
        float* geometry = sums.geometry[pixel];
        geometry[0] += weight / w.inverse_depth;
        if constexpr (Geometry) {
            geometry[1] += weight * w.inverse_depth;
            geometry[2] += weight * w.inverse_depth * w.inverse_depth;
            for (int axis = 0; axis < 3; ++axis) geometry[3 + axis] += weight * looks[w.entry].normal[axis];
        }
    };
    peeler.peel<Surfels>(scene, camera, tile_at(lists, camera, index), patch, out.stop, meet, visit);
    write_patch(peeler, sums, patch, camera.width, out);
}

}  // namespace

void ordered(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
             const SortedOutput& out) {
    auto* draw = out.tape       ? (out.geometry ? draw_patch<true, true, true> : draw_patch<true, false, true>)
                 : scene.surfels ? draw_patch<true, false, false>
                                 : draw_patch<false, false, false>;
    const int patches = lists.columns * lists.rows * kPatchesPerTile;
    if (out.tape) out.tape->patches.resize(patches);
    parallel_for(patches, threads, [&](int job) {
        const Tile patch = patch_at(lists, camera, job);
        if (patch.width < 1 || patch.height < 1) return;
        PeeledPatch* tape = out.tape ? &out.tape->patches[job] : nullptr;
        draw(scene, camera, lists, job / kPatchesPerTile, patch, colors, out, tape);
    });
}

}  // namespace hush::HUSH_ISA
