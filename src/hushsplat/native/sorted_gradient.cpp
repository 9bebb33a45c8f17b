// The gradient of the sorted raster: the same walk, front to back. What of the loss is still behind a pixel is known from
// the finished picture, so that nothing has to be remembered from the first walk.
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
__attribute__((noinline)) bool gather(GradientTile& tile, const Footprint& f, f4 rgb, const float* normal,
                                      PartialSums& partial) {
    const f8 level = splat(f.p.log_opacity + kMaxLevel);
    const f8 log2_opacity = splat(f.p.log_opacity * kHalfInverseLn2);
    const f8 red = splat(rgb[0]), green = splat(rgb[1]), blue = splat(rgb[2]);
    VectorSums<Geometry> sums;
    bool seen = false;
    for (int y = f.y0 & -kCell; y < f.y1; y += kCell) {
        const CellRows<true, LowPass, Clipped> rows(f, y);
        for (int x = f.x0 & -kCell; x < f.x1; x += kCell) {
            const uint64_t cell = 1ull << (y / kCell * kCells + x / kCell);
            if (!(tile.open & cell)) continue;
            unsigned left = rows.needed(f, x, level);
            if (!left) continue;
            tile.touched |= cell;
            const f8 dx = splat((float)x + 0.5f - f.p.center_x) + iota();
            for (; left; left &= left - 1) {
                const int row = __builtin_ctz(left), at = (y + row) * kTile + x;
                f8 rest = load(tile.rest + at);
                i8 counts = rest >= splat(kOpaque);
                if (!any(counts)) continue;
                Fragment g = fragment<true, LowPass, Clipped>(f, rows, row, dx);
                f8 squared = g.q / g.s;
                counts &= squared < level;
                if constexpr (Clipped) counts &= g.valid;
                if (!any(counts)) continue;
                seen = true;
                const f8 zero = splat(0);
                f8 alpha = select(counts, exp2_negative(log2_opacity - squared * splat(kHalfLog2E)), zero);
                f8 weight = alpha * rest;
                f8 by_red = load(tile.by_color[0] + at), by_green = load(tile.by_color[1] + at);
                f8 by_blue = load(tile.by_color[2] + at);
                f8 by_weight = red * by_red + green * by_green + blue * by_blue + load(tile.by_alpha + at);
                f8 by_inverse_depth = zero;
                if constexpr (Geometry) {
                    f8 inverse = select(counts, g.inverse_depth, splat(1)), depth = splat(1) / inverse;
                    f8 by_depth = load(tile.by_geometry[0] + at), by_square = load(tile.by_geometry[2] + at);
                    f8 by_first = load(tile.by_geometry[1] + at);
                    by_weight += depth * by_depth + inverse * by_first + inverse * inverse * by_square;
                    by_inverse_depth = weight * (by_first + splat(2) * inverse * by_square - depth * depth * by_depth);
                    for (int axis = 0; axis < 3; ++axis) {
                        f8 by_axis = load(tile.by_geometry[3 + axis] + at);
                        by_weight += splat(normal[axis]) * by_axis;
                        sums.row[kSumNormal + axis] += weight * by_axis;
                    }
                }
                f8 behind = load(tile.behind + at) - weight * by_weight;
                store(tile.behind + at, behind);
                store(tile.rest + at, rest - weight);
                f8 by_alpha = rest * by_weight - behind / max(splat(1) - alpha, splat(kLeastThrough));
                f8 h = splat(-0.5f) * alpha * by_alpha;
                const f8 dy = splat((float)(y + row) + 0.5f - f.p.center_y);
                sums.row[kSumRed] += weight * by_red;
                sums.row[kSumGreen] += weight * by_green;
                sums.row[kSumBlue] += weight * by_blue;
                squared = select(counts, squared, zero);
                const f8 t = select(counts, g.t, splat(1));
                sums.add(dx, dy, h, squared, t, g.plane);
                if constexpr (Geometry) sums.add_inverse_depth(dx, dy, by_inverse_depth, f.p.inverse_depth, t, g.plane);
            }
        }
    }
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
        const f4 rgb = color_of(colors, camera.eye, scene.id[at]);
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
