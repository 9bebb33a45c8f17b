// The gradient of the sorted raster: the same walk, front to back. What of the loss is still behind a pixel is known
// from the finished picture, so that nothing has to be remembered from the first walk.
#include "normals.h"
#include "project_gradient.h"
#include "sorted_tile.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

struct GradientTile : OpenTile {
    alignas(64) float behind[kTile * kTile];  // Σ weight · dL/dweight of all that comes after
    alignas(64) float by_color[3][kTile * kTile];
    alignas(64) float by_alpha[kTile * kTile];
    alignas(64) float by_geometry[kGeometry][kTile * kTile];

    void load_job(const Tile& tile, int width, const GradientJob& job) {
        OpenTile::clear(tile);
        for (int y = 0; y < tile.height; ++y)
            for (int x = 0; x < tile.width; ++x) {
                const int at = y * kTile + x;
                const size_t pixel = (size_t)(tile.y0 + y) * width + tile.x0 + x;
                by_alpha[at] = job.by_alpha[pixel];
                float sum = job.by_alpha[pixel] * job.alpha[pixel];
                for (int c = 0; c < 3; ++c) {
                    by_color[c][at] = job.by_color[3 * pixel + c];
                    sum += job.by_color[3 * pixel + c] * job.color[3 * pixel + c];
                }
                if (job.geometry)
                    for (int c = 0; c < kGeometry; ++c) {
                        by_geometry[c][at] = job.by_geometry[kGeometry * pixel + c];
                        sum += job.by_geometry[kGeometry * pixel + c] * job.geometry[kGeometry * pixel + c];
                    }
                behind[at] = sum;
            }
        // Lanes outside the picture are computed along and count nothing; they must only be numbers.
        for (int y = 0; y < kTile; ++y)
            for (int x = y < tile.height ? tile.width : 0; x < kTile; ++x) {
                const int at = y * kTile + x;
                behind[at] = by_alpha[at] = 0;
                for (auto& plane : by_color) plane[at] = 0;
                for (auto& plane : by_geometry) plane[at] = 0;
            }
    }
};

// False if no fragment took part.
template <bool LowPass, bool Clipped, bool Geometry>
__attribute__((noinline)) bool gather(GradientTile& tile, const Footprint& f, f32x4 rgb, const float* normal,
                                      PartialSums& partial) {
    const f32x8 red = splat(rgb[0]), green = splat(rgb[1]), blue = splat(rgb[2]);
    VectorSums<Geometry> sums;
    bool seen = false;
    each_row<true, LowPass, Clipped>(tile, f, [&](const RowOfFragments& r) __attribute__((always_inline)) {
        if (!any(r.counts)) return;
        seen = true;
        const int at = r.at;
        const f32x8 zero = splat(0), one = splat(1), weight = r.alpha * r.rest, dy = splat(r.dy);
        const f32x8 by_red = load(tile.by_color[0] + at), by_green = load(tile.by_color[1] + at);
        const f32x8 by_blue = load(tile.by_color[2] + at);
        f32x8 by_weight = red * by_red + green * by_green + blue * by_blue + load(tile.by_alpha + at);
        f32x8 by_inverse_depth = zero;
        if constexpr (Geometry) {
            const f32x8 inverse = select(r.counts, r.fragment.inverse_depth, one), depth = one / inverse;
            const f32x8 by_depth = load(tile.by_geometry[0] + at), by_first = load(tile.by_geometry[1] + at);
            const f32x8 by_square = load(tile.by_geometry[2] + at);
            by_weight += depth * by_depth + inverse * by_first + inverse * inverse * by_square;
            by_inverse_depth = weight * (by_first + splat(2) * inverse * by_square - depth * depth * by_depth);
            for (int axis = 0; axis < 3; ++axis) {
                const f32x8 by_axis = load(tile.by_geometry[3 + axis] + at);
                by_weight += splat(normal[axis]) * by_axis;
                sums.row[kSumNormal + axis] += weight * by_axis;
            }
        }
        const f32x8 behind = load(tile.behind + at) - weight * by_weight;
        store(tile.behind + at, behind);
        store(tile.rest + at, r.rest - weight);
        const f32x8 by_alpha = r.rest * by_weight - behind / max(one - r.alpha, splat(kLeastThrough));
        const f32x8 h = splat(-0.5f) * r.alpha * by_alpha;
        sums.row[kSumRed] += weight * by_red;
        sums.row[kSumGreen] += weight * by_green;
        sums.row[kSumBlue] += weight * by_blue;
        const f32x8 t = select(r.counts, r.fragment.t, one);
        sums.add(r.dx, dy, h, select(r.counts, r.squared, zero), t, r.fragment.plane);
        if constexpr (Geometry)
            sums.add_inverse_depth(r.dx, dy, by_inverse_depth, f.p.inverse_depth, t, r.fragment.plane);
    });
    if (seen) sums.store_to(partial);
    return seen;
}

template <bool Geometry>
void walk_tile(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int index,
               const GradientJob& job, std::vector<PartialSums>& found) {
    static thread_local Buffer<Entry> entries_of_thread;
    static thread_local std::unique_ptr<GradientTile> tile_of_thread{new GradientTile};
    Buffer<Entry>& entries = entries_of_thread;
    GradientTile& buffers = *tile_of_thread;
    const Tile tile = tile_at(lists, camera, index);
    const size_t n = list_tile(scene, camera, lists, index, entries);
    buffers.load_job(tile, camera.width, job);
    PartialSums partial;
    for (size_t k = 0; k < n && buffers.open; ++k) {
        if (k % 64 == 63) buffers.update_open();
        const int at = entries[k].slot;
        const Footprint f = footprint(scene, camera, tile, at / kChunk, at % kChunk);
        if (!visible(buffers, f)) continue;
        const f32x4 rgb = color_of(colors, camera.eye, scene.id[at]);
        float normal[3] = {};
        if constexpr (Geometry) normal_of(scene, camera, at, normal);
        const uint8_t flags = scene.flags[at];
        const bool seen = flags & kClipped   ? gather<true, true, Geometry>(buffers, f, rgb, normal, partial)
                          : flags & kLowPass ? gather<true, false, Geometry>(buffers, f, rgb, normal, partial)
                                             : gather<false, false, Geometry>(buffers, f, rgb, normal, partial);
        if (!seen) continue;
        partial.slot = at;
        found.push_back(partial);
    }
}

}  // namespace

void sorted_gradient(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
                     const GradientJob& job) {
    std::vector<std::vector<PartialSums>> found(lists.columns * lists.rows);
    parallel_for((int)found.size(), threads, [&](int index) {
        auto* walk = job.geometry ? walk_tile<true> : walk_tile<false>;
        walk(scene, camera, lists, colors, index, job, found[index]);
    });
    chain_through_projection(scene, camera, colors, found, threads, job);
}

}  // namespace hush::HUSH_ISA
